"""The report of an evaluation: its runs, their totals, and the verdict on what suites and options require."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import field, fields, replace
from functools import cached_property, partial
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from workbench.analysis.causes import FailureNumbers
from workbench.analysis.failures import failure_numbers
from workbench.analysis.gates import (
    AggregateResult,
    GateResult,
    Quality,
    aggregates_of,
    quality_of,
    statistic,
    user_errors_of,
)
from workbench.analysis.measures import measure_of
from workbench.analysis.totals import Totals, counted_runs, totals_by_model
from workbench.config.secrets import NO_SECRETS, Secrets
from workbench.dataclasses import dataclass
from workbench.engine.redaction import shown_result
from workbench.evaluation.exit_codes import INFRASTRUCTURE, INTERRUPTED, NOTHING_GRADED, OK, QUALITY_MISSED, USAGE
from workbench.evaluation.plan import FinishedRun, LazyRuns
from workbench.grading.grade import RunResult
from workbench.grading.lazy_sequences import LazySequence
from workbench.grading.repeats import CaseResult, path_of_suite
from workbench.grading.status import Status
from workbench.numerals import counted, counted_of
from workbench.show.forms import LINES_MAX, PLAIN_WIDTH, endings_of, form_of_file, forms_of, pieces_of
from workbench.show.report_files import write_report
from workbench.show.spans import Line, Span
from workbench.show.text import Paint, block_lines
from workbench.show.views.batch_text import Amount, run_lines, text_report
from workbench.show.views.failures import failure_lines
from workbench.show.views.timing import Timing, timing_line
from workbench.show.views.verdict import brief_lines, broken_text, result_line, summary_text
from workbench.show.visible import one_line
from workbench.suite.grading_model import Gate
from workbench.suite.model import Case, Suite
from workbench.suite.problems import did_you_mean
from workbench.suite.rules import MEASURES, NAMED_MEASURE
from workbench.suite.suite_file import LineOf, unknown_line
from workbench.version import __version__

# These imports are lazy, because few reports are compared or become JSON.
if TYPE_CHECKING:
    from workbench.analysis.early_stop import EarlyStopping
    from workbench.analysis.early_stop_state import GateEarlyStop, PairEarlyStop
    from workbench.history.records import ShardRef
    from workbench.show.json.records import Records
    from workbench.show.json.report import BatchFacts, ReportDocument
    from workbench.show.views.baseline import AgainstBaseline
    from workbench.show.views.grade_moves import Regraded
    from workbench.show.views.runs_report import BrokenSuite, MissingRuns, ShownCase, ShownRun


class CaseResults(LazySequence[CaseResult]):
    """The results of each case with each model, in order.

    An index may also be a case id: `cases["time-in-oslo"]`."""

    def __init__(self, cases: Sequence[CaseResult]) -> None:
        self._cases = cases

    def __len__(self) -> int:
        return len(self._cases)

    def at(self, index: int) -> CaseResult:
        return self._cases[index]

    @overload
    def __getitem__(self, key: int | str) -> CaseResult: ...
    @overload
    def __getitem__(self, key: slice) -> Sequence[CaseResult]: ...
    def __getitem__(self, key: int | slice | str) -> CaseResult | Sequence[CaseResult]:
        if isinstance(key, str):
            return self.of(key)
        return super().__getitem__(key)

    def __repr__(self) -> str:
        statuses = Counter(case.status for case in self)
        counts = ", ".join(f"{statuses[status]} {status.counted}" for status in Status if statuses[status])
        return f"CaseResults({counted(len(self), 'case')}: {counts})"

    def of(self, case_id: str, *, model: str | None = None, suite: str | Path | None = None) -> CaseResult:
        """Return the result of a case.

        Give `model` and `suite` if the case ran with several models or exists in several suites. Raises KeyError if no
        result fits, and LookupError if several results fit."""
        found: list[CaseResult] = []
        for case in self:
            run = case.runs[0]
            if run.case_id != case_id or model not in (None, run.model):
                continue
            if suite is None or Path(suite).absolute() == Path(run.suite).absolute():
                found.append(case)
        if not found:
            ids = dict.fromkeys(case.runs[0].case_id for case in self)
            raise KeyError(f"there is no result of {case_id!r}: {did_you_mean(case_id, ids) or ', '.join(ids)}")
        if len(found) > 1:
            there_are = []
            for case in found:
                run = case.runs[0]
                there_are.append(f"model {run.model!r} of suite {run.suite!r}")
            which = "; ".join(there_are)
            raise LookupError(f"there are several results of {case_id!r}: choose one with of(…): {which}")
        return found[0]


@dataclass(frozen=True, kw_only=True)
class Report:
    """The runs of an evaluation in the order of its plan, and everything derived from them.

    `results` may contain secrets, but `text`, `document` and `json` do not."""

    runs: tuple[FinishedRun, ...] | LazyRuns
    """The runs, in memory or read from the history on demand."""
    suites: Mapping[str, Suite] = field(repr=False)
    """The suites of the runs, by path."""
    started_at: str
    """The start of the batch, ISO 8601 in UTC."""
    min_score: float | None = None
    interrupted: bool = False
    incomplete: bool = False
    """Whether a run or a suite is missing. Then the verdict is open."""
    broken: tuple[BrokenSuite, ...] = ()
    """Suites that were not run because of errors."""
    shard: ShardRef | None = None
    """The shard that executed these runs. The gates of the whole plan are then undecided."""
    missing: tuple[MissingRuns, ...] = ()
    """Cases of the plan with missing runs."""
    batch: int | None = None
    """The number of the batch in the history, if recorded."""
    unrecorded: int = 0
    """The number of runs that the history lacks."""
    timing: Timing | None = None
    """The timing of the batch; `None` for runs read from the history or from recordings."""
    watch: EarlyStopping | None = field(default=None, repr=False)
    """The early-stopping watch of the batch; `None` if it runs every case."""
    against: AgainstBaseline | None = None
    """The comparison with the baseline, if any."""
    regraded: tuple[Regraded, ...] | None = field(default=None, repr=False)
    """The earlier grades, if the runs are regraded."""
    suite_of: Callable[[RunResult], str] = field(default=path_of_suite, repr=False)
    """Returns the key of the suite for which a run counts. Runs with equal keys may belong to one case."""
    program_version: str = __version__
    """The version of the program that executed the runs."""
    line_of: LineOf = field(default=unknown_line, repr=False)
    """The line of a case in the file of its suite."""
    secrets: Secrets = field(default=NO_SECRETS, repr=False)

    def __repr__(self) -> str:
        return self.secrets.redact(f"Report({summary_text(self)})")

    def _repr_html_(self) -> str:
        from workbench.show.html.notebook import notebook_html

        return notebook_html(self)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each run, without secrets, with the columns of a CSV report."""
        from workbench.show.csv_rows import records_of_runs

        return [*records_of_runs(self)]

    def to_dataframe(self) -> Any:
        """Return `rows` as a data frame of pandas, or of polars if pandas is not installed.

        Raises ImportError if neither is installed."""
        rows = self.rows()
        if find_spec("pandas") is not None:
            return import_module("pandas").DataFrame(rows)
        if find_spec("polars") is not None:
            return import_module("polars").DataFrame(rows, infer_schema_length=None)
        raise ImportError("a data frame needs pandas or polars: install one of them, or use report.rows()")

    def __reduce__(self) -> tuple[Callable[..., Report], tuple[dict[str, Any]]]:
        # A pickle is usually stored or sent, so it must not contain secrets, like every other form of a report.
        redacted, lines, runs = self.secrets.redacted, {}, []
        for run in self.runs:
            runs.append(FinishedRun(run.place, redacted(run.case), redacted(run.result)))
            place = (run.result.suite, run.result.case_id)
            lines[place] = self.line_of(*place)
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        del values["secrets"]
        values["suites"] = {path: redacted(suite) for path, suite in self.suites.items()}
        return _pickled, ({**values, "runs": tuple(runs), "line_of": _KnownLines(lines)},)

    def __copy__(self) -> Report:
        return replace(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Report:
        runs = tuple(FinishedRun(run.place, run.case, deepcopy(run.result, memo)) for run in self.runs)
        return replace(self, runs=runs)

    @cached_property
    def results(self) -> Sequence[RunResult]:
        """The results of all runs."""
        if isinstance(self.runs, tuple):
            return tuple(run.result for run in self.runs)
        return self.runs.results

    @cached_property
    def _counting(self) -> Sequence[RunResult]:
        return counted_runs(self.results)

    @cached_property
    def quality(self) -> Quality:
        """The verdict on the runs, and the reasons for it.

        Forks count only if all runs are forks, because a fork repeats the beginning of another run."""
        results, of = self._counting, self.suite_of
        aggregates = aggregates_of(results, self.suites)
        if self.shard is not None:
            # A shard has only a part of the runs. Gates are judged on all runs when the shards are merged.
            without_gates = tuple(replace(each, gates=()) for each in aggregates)
            return quality_of(results, {}, suite_of=of, aggregates=without_gates)
        watched: tuple[GateEarlyStop, ...] = ()
        if self.watch is not None:
            watched = self.watch.gates
        quality = quality_of(
            results, self.suite_gates, self.min_score, suite_of=of, aggregates=aggregates, early_stops=watched
        )
        user_errors = user_errors_of(results, self.suite_gates)
        met = quality.met and all(each.met for each in user_errors)
        return replace(quality, user_errors=user_errors, met=met)

    @property
    def watched(self) -> tuple[PairEarlyStop, ...]:
        """The evidence so far about each pair of models, if a comparison may stop early; otherwise empty."""
        if self.watch is None:
            return ()
        return self.watch.pairs

    @property
    def cases(self) -> CaseResults:
        """The result of each case with each model, in the order of the plan.

        A result can also be found by its case id."""
        return CaseResults(self.quality.cases)

    @property
    def gates(self) -> tuple[GateResult, ...]:
        """The results of the suites' gates. If `min_score` is set, the only gate is this score."""
        return self.quality.gates

    @property
    def aggregates(self) -> tuple[AggregateResult, ...]:
        """The results of the aggregates that the suites define."""
        return self.quality.aggregates

    @cached_property
    def _totals(self) -> tuple[Totals, dict[str, Totals]]:
        return totals_by_model(self._counting)

    @property
    def totals(self) -> Totals:
        """The totals of all runs."""
        return self._totals[0]

    @property
    def totals_per_model(self) -> dict[str, Totals]:
        """The totals of each model's runs, in the order of the models."""
        return self._totals[1]

    @property
    def score(self) -> float | None:
        """The mean score of all runs, from 0 to 1; `None` if no run has a score."""
        return self.totals.mean_score

    def mean(self, measure: str) -> float | None:
        """Return the mean of a measure over all graded runs that have a value for it; `None` if no run has a value.

        The names of measures are those of a suite's `[[aggregates]]`: the score of a grader (`"trajectory"`), a
        quantity of its formula (`"trajectory.all_pass"`), `"score"`, `"latency_ms"`, `"tokens"`, `"cost_usd"`,
        `"valid_arguments"`, or a named check of answers (`"response.NAME"`). Raises KeyError for any other name."""
        # All runs are searched, because a named check may exist in only one case.
        named: dict[str, None] = {}
        for run in self.results:
            for metric in run.metrics:
                named[f"{NAMED_MEASURE}{metric.name}"] = None
        if measure not in (measures := (*MEASURES, *named)):
            raise KeyError(f"there is no measure {measure!r}: {did_you_mean(measure, measures) or ', '.join(measures)}")
        return statistic("mean", measure_of(measure).values(self._counting))

    @property
    def passed(self) -> bool:
        """Whether everything ran and all gates were met."""
        return self.exit_code == OK

    def assert_passed(self) -> None:
        """Raise AssertionError unless everything passed. The error message lists the failures without secrets."""
        if not self.passed:
            raise AssertionError(f"not everything passed\n{self.text(amount='little')}")

    @property
    def exit_code(self) -> int:
        """The exit code of a command that ends with this report.

        A shard has only some of the runs, so its exit code says only whether these runs could be executed."""
        # The worst outcome decides, in this order: interrupted, incomplete, errors, missed requirements, nothing
        # graded.
        confirmed = None
        if self.against is not None:
            confirmed = self.against.confirmed
        if self.interrupted or (confirmed is not None and confirmed.interrupted):
            return INTERRUPTED
        if self.incomplete:
            return USAGE
        if self._infrastructure_errors or self.totals.cost_limited or (confirmed is not None and confirmed.errors):
            return INFRASTRUCTURE
        if self._is_missed:
            return QUALITY_MISSED
        if self.nothing_graded is None:
            return OK
        return NOTHING_GRADED

    @property
    def _infrastructure_errors(self) -> int:
        # Runs that failed because of the simulated user are not counted in a suite with `gate.max_user_errors`, because
        # they have their own limit.
        return self.totals.errors - sum(each.spoilt for each in self.quality.user_errors)

    @property
    def _is_missed(self) -> bool:
        if self.shard is not None:
            return False
        if self.against is not None and self.against.fail_on is not None:
            return self.against.failed or not self.quality.gates_met
        return not self.quality.met

    @property
    def nothing_graded(self) -> str | None:
        """Why no run was graded; `None` if some run was graded.

        If the comparison with a baseline decides the exit code, the text may also say why no run was compared."""
        if self.shard is not None and not self.results:
            return None
        if self.against is not None and self.against.fail_on is not None and self.against.is_empty:
            return self.quality.nothing_graded or self.against.verdict
        return self.quality.nothing_graded

    @property
    def recorded_as(self) -> str | None:
        """Where the batch is stored in the history, or how many of its runs are not stored.

        It is `None` if the batch is not stored at all."""
        return history_note(self.batch, self.unrecorded)

    def document(self) -> ReportDocument:
        """Return the report in the form of its JSON schema."""
        from workbench.show.json.report import report_of

        failures = failure_numbers((run, self.secrets.redacted(case)) for run, case in self._graded_by(self.shown))
        return report_of(self.shown, self.quality, failures, self._facts, self.line_of)

    def json(self) -> str:
        """Return the report as JSON text."""
        return "".join(self.json_pieces())

    def pieces(self, form: str, *, lean: bool = False) -> Iterator[str]:
        """Yield the report in one of the forms in `show.forms`, in pieces, because memory may not hold the whole text.

        With `lean`, a JSON report has each checked argument only once, and no null or empty values."""
        if form == "text":
            return iter((self.text(),))
        if form == "json":
            return self.json_pieces(lean=lean)
        return pieces_of(form, "run", self)

    def write(self, path: str | Path, *, form: str | None = None) -> None:
        """Write the report into a file, without secrets.

        An existing file is replaced in one step. The extension of the file name selects the form: `.json`, `.xml`
        (JUnit), `.md`, `.html`, `.csv`, `.jsonl` or `.txt`. `form` overrides the extension. Raises ValueError for an
        unknown form, and OSError."""
        write_report(Path(path), self.pieces(self.form_of(path, form)))

    @staticmethod
    def form_of(path: str | Path, form: str | None = None) -> str:
        """Return the form in which `write` writes a file.

        Raises ValueError for an unknown form."""
        file, known = Path(path), forms_of("run", for_report=True)
        form = form or form_of_file(file, "run", for_report=True)
        if form not in known:
            there_are = f"give form= one of {', '.join(known)}, or end the name in {endings_of('run', for_report=True)}"
            raise ValueError(f"cannot write {file}: {form or 'its ending'} is not the form of a report; {there_are}")
        return form

    def json_pieces(self, *, lean: bool = False) -> Iterator[str]:
        """Yield the text of `json` in pieces, each with one run or case, so that memory never holds the whole text."""
        document, records = self.document_without_records(), self.json_records()
        if lean:
            from workbench.show.json.lean import lean_pieces

            return lean_pieces(document, records, self.secrets)
        if self.regraded is not None:
            from workbench.show.json.report import regrade_pieces

            return regrade_pieces(document, records, self.secrets)
        from workbench.show.json.records import document_pieces

        return document_pieces(document, records, self.secrets)

    def document_without_records(self) -> ReportDocument:
        """Return the JSON report without its runs, cases and regraded recordings.

        `json_records` returns these."""
        from workbench.show.json.report import report_without_records

        return report_without_records(self.results, self._totals, self.quality, self.failures, self._facts)

    def json_records(self) -> dict[str, Records[Any]]:
        """Return the runs, cases and regraded recordings of the JSON report, to be written one by one."""
        from workbench.show.json.report import regraded_records, report_records

        records = report_records(self.results, self.quality.cases, self.line_of)
        if self.regraded is not None:
            records["regraded"] = regraded_records(self.regraded)
        return records

    def shown_runs(self) -> Iterator[ShownRun]:
        """Yield each run without secrets, together with its case and the line of the case in the suite."""
        from workbench.show.views.runs_report import ShownRun

        for run in self.runs:
            line = self.line_of(run.result.suite, run.result.case_id)
            yield ShownRun(self.secrets.redacted(run.result), self.secrets.redacted(run.case), line)

    def shown_case(self, case: CaseResult) -> ShownCase:
        """Return a case's result with one model, without secrets."""
        from workbench.show.views.runs_report import ShownCase

        first = case.runs[0]
        line = self.line_of(first.suite, first.case_id)
        return ShownCase(self.secrets.redacted(case), self.secrets.redacted(self._case_of(first)), line)

    @property
    def _facts(self) -> BatchFacts:
        from workbench.show.json.report import BatchFacts

        return BatchFacts(
            program_version=self.program_version,
            started_at=self.started_at,
            interrupted=self.interrupted,
            exit_code=self.exit_code,
            nothing_graded=self.nothing_graded is not None,
            batch=self.batch,
            baseline=self.against,
            timing=self.timing,
            broken=self.broken,
            cases=self._cases,
        )

    @property
    def suite_names(self) -> dict[str, str]:
        """The names of the suites, by the suite path in the results."""
        return {path: suite.name for path, suite in self.suites.items()}

    @property
    def suite_gates(self) -> dict[str, Gate]:
        """The gates of the suites, by the suite path in the results."""
        return {path: suite.gate for path, suite in self.suites.items()}

    def _case_of(self, result: RunResult) -> Case | None:
        if isinstance(self.runs, tuple):
            return self._cases.get(result.run_id)
        return self.runs.case_of(result)

    @cached_property
    def _cases(self) -> Mapping[str, Case]:
        cases = {}
        for run in self.runs:
            if run.case is not None:
                cases[run.result.run_id] = run.case
        return cases

    def text(
        self,
        *,
        width: int = PLAIN_WIDTH,
        cut_at: int | None = None,
        paint: Paint | None = None,
        amount: Amount = "normal",
    ) -> str:
        """Return the report as text.

        Lists in the comparison with a baseline are cut at `cut_at` columns."""
        paint = paint or Paint(False)
        lines = [*self.summary_lines(width=width, paint=paint, amount=amount)]
        if self.against is not None:
            from workbench.show.views.baseline import baseline_view

            blocks = baseline_view(self.against, only_worse=amount == "little")
            lines += ["", *block_lines(blocks, cut_at, paint)]
        if self.regraded is not None:
            from workbench.show.views.grade_moves import move_lines

            lines += move_lines(self.regraded, paint)
        if self.nothing_graded is not None:
            lines.append(paint(self.nothing_graded, "warned"))
        if self.shard is not None and self._of_shard is None:
            lines.append(paint(shard_line(self.shard, len(self.runs)), "muted"))
        if self.timing is not None:
            lines.append(paint(timing_line(self.timing), "muted"))
        if self.recorded_as is not None:
            lines.append(paint(self.recorded_as, "muted"))
        if self.broken:
            lines.append(paint(broken_text(self.broken), "failed"))
        return self.secrets.redact("\n".join(lines) + "\n")

    def brief(self, details: str, *, width: int = PLAIN_WIDTH, paint: Paint | None = None) -> str:
        """Return the report in three lines: verdict, cases that did not pass, and where to find the `details`."""
        lines = map((paint or Paint(False)).line, brief_lines(self, details, width, self._of_shard))
        return self.secrets.redact("\n".join(lines) + "\n")

    @property
    def _of_shard(self) -> Line | None:
        if self.shard is None or self.exit_code:
            return None
        return (Span(shard_line(self.shard, len(self.runs))),)

    def failure_text(self, *, width: int = PLAIN_WIDTH) -> str:
        """Return the reasons why cases did not pass, without secrets, for the message of a failed test.

        The text has each case's reason, its runs with their issues, and advice on the most frequent cause."""
        plain, names = Paint(False), self.suite_names
        failed = (run for run in self.results if not run.passed and run.status.owed)
        # Redaction copies a result, so only the results that are printed are redacted.
        bad = [shown_result(result, self.secrets) for result in islice(failed, LINES_MAX)]
        reasons: dict[str, None] = {}
        for case in self.cases:
            if not case.passed and case.reason:
                reasons[case.reason] = None
        lines = [
            *map(one_line, reasons),
            *run_lines(bad, self.quality.cases, names, width, plain, in_full=False),
            *failure_lines(self.secrets.redacted(self.failures), plain),
        ]
        return self.secrets.redact("\n".join(lines) + "\n")

    def summary_lines(self, *, width: int, paint: Paint, amount: Amount) -> list[str]:
        """Return the lines about runs, totals, gates and causes of failures."""
        return [
            *text_report(
                *(self.results, self.quality),
                suite_names=self.suite_names,
                width=width,
                paint=paint,
                amount=amount,
                shown_as=partial(shown_result, secrets=self.secrets),
                verdict=self._of_shard or result_line(self),
            ),
            *failure_lines(self.secrets.redacted(self.failures), paint, with_advice=amount != "little"),
        ]

    @cached_property
    def shown(self) -> tuple[RunResult, ...]:
        """The results without secrets, all held in memory."""
        return tuple(shown_result(result, self.secrets) for result in self.results)

    @cached_property
    def failures(self) -> FailureNumbers:
        """The causes of failed runs, and the tools called in place of expected tools."""
        return failure_numbers(self._graded_by(self.results))

    def _graded_by(self, results: Sequence[RunResult]) -> Iterator[tuple[RunResult, Case | None]]:
        """Yield the results with their cases. The case is `None` for a fork that does not count."""
        # `counted_runs` returns the same object if no run is left out.
        all_forks = self._counting is self.results
        for run in results:
            counts = all_forks or not run.is_fork
            if counts:
                yield run, self._case_of(run)
            else:
                yield run, None


@dataclass(frozen=True)
class _KnownLines:
    lines: Mapping[tuple[str, str], int | None]

    def __call__(self, suite: str, case_id: str) -> int | None:
        return self.lines.get((suite, case_id))


def _pickled(values: dict[str, Any]) -> Report:
    return Report(**values)


def shard_line(shard: ShardRef, runs: int) -> str:
    """Return a sentence on how many runs of the plan the shard has, and on the command that judges all shards."""
    share = "no run is left for it"
    if runs:
        share = counted_of(runs, shard.planned, "run")
    return f"{shard}: {share}; the gates are judged by 'workbench history merge'"


def history_note(batch: int | None, unrecorded: int) -> str | None:
    """Return where a batch is stored in the history, or how many of its runs are not stored.

    Returns `None` if the batch is not stored at all."""
    if batch is None:
        return None
    if unrecorded:
        return f"batch {batch} lacks {counted(unrecorded, 'run')} in the history"
    return f"batch {batch} in the history"
