"""`workbench shrink`: find the smallest part of a failing case that still fails."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote

from workbench.cli.model_options import add_models_option
from workbench.cli.parser import add_exit_codes, add_history_options, add_named_run, natural
from workbench.evaluation.exit_codes import INFRASTRUCTURE, INTERRUPTED, OK, QUALITY_MISSED, USAGE
from workbench.startup import executes

if executes(__name__):
    from difflib import unified_diff

    from workbench.analysis.estimate import estimate
    from workbench.cli.batch_command import Experiment, experiment
    from workbench.cli.named_run import NamedRun, named_run
    from workbench.cli.redaction import create_program, redacted, warn, write
    from workbench.cli.report_output import Output
    from workbench.config.models import ConfigError
    from workbench.config.secrets import Secrets
    from workbench.encoding import toml_of
    from workbench.engine.plan import plan_runs
    from workbench.evaluation.options import RunOptions
    from workbench.evaluation.plan import Plan
    from workbench.grading.grade import RunResult
    from workbench.grading.run_summary import summary_of
    from workbench.grading.status import Status
    from workbench.history.records import HistoryError
    from workbench.lab.shrink import Document, FailureMode, OutOfRunsError, ShrinkResult, failure_mode_of, shrink
    from workbench.numerals import counted, figure, of_text
    from workbench.providers.built_in import is_built_in
    from workbench.show.report_files import why_not_writable, write_report
    from workbench.show.views.values import estimate_text
    from workbench.show.visible import one_line, visible
    from workbench.suite.case_rows import filled_table
    from workbench.suite.model import Case
    from workbench.suite.render import suite_text
    from workbench.suite.suite_file import SuiteFile, parse_suite
    from workbench.suite.variants import Variants, model_of, variant_name_of
    from workbench.trajectory.recording import RecordingError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_named_run(parser)
    add_models_option(parser, "run on this model, not that of the run")
    parser.add_argument(
        "--repeats",
        dest="votes",
        type=natural,
        default=3,
        metavar="N",
        help="runs of each attempt (default %(default)s)",
    )
    parser.add_argument(
        "--fails",
        type=natural,
        default=2,
        metavar="M",
        help="runs of an attempt that must fail in the same way (default %(default)s)",
    )
    parser.add_argument(
        "--first",
        type=natural,
        default=5,
        metavar="K",
        help="runs of the whole case at the beginning (default %(default)s)",
    )
    parser.add_argument(
        "--max-runs", type=natural, default=200, metavar="N", help="make at most N runs (default %(default)s)"
    )
    parser.add_argument("--estimate", action="store_true", help="make the first runs, estimate the rest, and stop")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the shrunk suite to this file")
    parser.add_argument("--trust", action="store_true", help="let the suites start and import what they name")
    add_history_options(parser, may_be_none=False)
    add_exit_codes(
        parser,
        {
            OK: "the shrunk case is shown",
            QUALITY_MISSED: "the case does not fail often enough",
            USAGE: "wrong usage or missing trust",
            INFRASTRUCTURE: "the case does not fail often enough, because of errors",
            INTERRUPTED: "interrupted",
        },
    )


def execute(arguments: argparse.Namespace) -> int:
    if len(arguments.model) > 1:
        warn("a case is shrunk on one model: give --model once")
        return USAGE
    if arguments.fails > arguments.votes:
        warn(f"--fails {arguments.fails} cannot be reached with --repeats {arguments.votes}")
        return USAGE
    return shrink_run(arguments)


MIN_FAILURE_SHARE = 0.8
"""The minimum share of the first runs that must fail in the same way.

A rarer failure would often be absent from an attempt by chance, so irrelevant parts would stay."""

_MAX_SHOWN = 12


class _InterruptedError(Exception):
    pass


def shrink_run(arguments: argparse.Namespace) -> int:
    """Shrink the case of a stored run. Return an exit code."""
    try:
        program = create_program()
        run = named_run(arguments, program)
    except (ConfigError, HistoryError, RecordingError) as error:
        warn(str(error))
        return USAGE
    if arguments.output is not None and (why := why_not_writable(arguments.output)) is not None:
        warn(f"cannot write {arguments.output}: {why}")
        return USAGE
    # Other cases and variants cannot affect the failure, so they are removed without a run.
    try:
        document = _only_case(run)
    except ValueError as error:
        warn(f"the row of {run.written.id} cannot be written as a case of its own: {error}")
        return USAGE
    file = parse_suite(suite_text(document), run.file.path)
    options = RunOptions(
        suites=(file,),
        models=tuple(arguments.model) or (model_of(run.result.model),),
        cases=(run.written.id,),
        repeats=min(arguments.first, arguments.max_runs),
        variants=_only_variant(run.result.model),
        by=run.by,
    )
    trying = experiment(options, program, Output(None, quiet=True), trust=arguments.trust)
    if trying is None:
        return USAGE
    try:
        return _ShrinkAttempts(arguments, trying).shrink(document)
    except _InterruptedError:
        return INTERRUPTED


def _only_variant(model: str) -> Variants:
    name = variant_name_of(model)
    if name is None:
        return Variants()
    return Variants(frozenset([name]), plain=False)


def _only_case(run: NamedRun) -> Document:
    """Return a copy of the suite with only the case and the variant of the run."""
    document: Document = toml_of(run.file.text)
    assert run.file.suite is not None
    at = [case.id for case in run.file.suite.cases].index(run.written.id)
    # The id is written into the case. Otherwise it would be derived from the name, which may be shortened.
    table = {**document["cases"][at], "id": run.written.id}
    if "each" in table:
        table = filled_table(run.written)
    document["cases"] = [table]
    variants = []
    for each in document.pop("variants", ()):
        if each["name"] == variant_name_of(run.result.model):
            variants.append(each)
    if variants:
        document["variants"] = variants
    return document


class _ShrinkAttempts:
    def __init__(self, arguments: argparse.Namespace, experiment: Experiment) -> None:
        self._arguments = arguments
        self._plan = experiment.plan
        self._experiment = experiment
        self._attempt_count = 0
        self._failure_mode: FailureMode | None = None

    def shrink(self, document: Document) -> int:
        first = self._run(self._plan)
        case, model = self._plan.runs[0].case, self._plan.runs[0].model
        # Only the most frequent failure is reproduced. A failure that first appears while shrinking is another bug.
        ways = Counter(failure_mode_of(result, case) for result in first if result.status == Status.FAILED)
        often = 0
        if ways:
            [(self._failure_mode, often)] = ways.most_common(1)
        if self._failure_mode is None or often < MIN_FAILURE_SHARE * len(first):
            others = Counter(result.status for result in first)
            came_to = ", ".join(f"{count} {status}" for status, count in others.most_common())
            warn(
                f"nothing was shrunk: of the first {counted(len(first), 'run')} ({came_to}), {often} failed in the same"
                f" way, but at least {figure(100 * MIN_FAILURE_SHARE)}% must"
            )
            if others[Status.ERROR]:
                return INFRASTRUCTURE
            return QUALITY_MISSED
        # Attempts are shorter than the whole case, so an estimate from its first runs is an upper bound.
        cell = "", case.id, model
        left = max(self._arguments.max_runs - self._attempt_count, 0)
        figures = {cell: [summary_of(result) for result in first]}
        use = estimate_text(estimate([(cell, left)], figures, is_free=is_built_in))
        kind, subject = self._failure_mode
        failure = f"{kind} ({one_line(str(subject))})" if subject is not None else str(kind)
        warn(f"{case.name} fails in {often} of {counted(len(first), 'run')}: {failure}", self._secrets)
        further = ": ".join(filter(None, (f"at most {counted(left, 'further run')}", use)))
        warn(f"{further}; none of them is in the history")
        if self._arguments.estimate:
            return OK
        offered = [tool.name for tool in first[0].trajectory.offered]
        return self._report(document, shrink(document, self._failure_mode, offered, self._fails))

    @property
    def _secrets(self) -> Secrets:
        return self._plan.program.secrets

    def _fails(self, document: Document) -> bool:
        """Return whether enough runs of a suite have the failure to reproduce. False for an invalid suite."""
        try:
            file = parse_suite(suite_text(document), self._plan.files[0].path)
        except ValueError:
            return False
        if file.suite is None:
            return False
        votes: int = self._arguments.votes
        wanted: int = self._arguments.fails
        # The limit is checked before an attempt, because the attempt could not be decided by a part of its runs.
        if self._attempt_count + votes > self._arguments.max_runs:
            raise OutOfRunsError
        results = self._run(self._attempt(file, votes))
        case: Case = file.suite.cases[0]
        failed = []
        for result in results:
            if result.status == Status.FAILED and failure_mode_of(result, case) == self._failure_mode:
                failed.append(result)
        return len(failed) >= wanted

    def _attempt(self, file: SuiteFile, votes: int) -> Plan:
        origin = self._plan.runs[0]
        runs = plan_runs(
            [file],
            models=[origin.asked_model],
            repeats=votes,
            by=origin.by,
            variants=_only_variant(origin.model),
        )
        return replace(self._plan, runs=runs, files=(file,))

    def _run(self, plan: Plan) -> Sequence[RunResult]:
        # Attempts are not recorded, because parts of a suite would distort trends and flaky cases.
        results = self._experiment.run(replace(plan, history=None), "nothing was shrunk")
        if results is None:
            raise _InterruptedError
        self._attempt_count += len(plan.runs)
        return results

    def _report(self, document: Document, shrunk: ShrinkResult) -> int:
        text = redacted(suite_text(shrunk.document))
        write(redacted("".join(f"{line}\n" for line in self._lines(document, shrunk))))
        file = self._arguments.output
        if file is None:
            write(f"\n{visible(text)}")
            return OK
        try:
            write_report(file, (text,))
        except OSError as error:
            warn(f"cannot write {file}: {error.strerror}")
            return USAGE
        return OK

    def _lines(self, document: Document, shrunk: ShrinkResult) -> Iterator[str]:
        if not shrunk.dropped:
            yield "nothing can be left out"
        for each in shrunk.dropped:
            shown = ", ".join(map(one_line, each.pieces[:_MAX_SHOWN]))
            more = ", …" if len(each.pieces) > _MAX_SHOWN else ""
            yield f"left out {of_text(len(each.pieces), each.of)} {each.kind}: {shown}{more}"
        if not shrunk.complete:
            yield f"stopped by --max-runs {self._arguments.max_runs}; perhaps more could be left out"
        yield f"{counted(self._attempt_count, 'run')} made"
        if (file := self._arguments.output) is not None:
            model = self._plan.runs[0].model
            command = f"workbench run {quote(str(file))} --model {quote(model_of(model))}"
            if (variant := variant_name_of(model)) is not None:
                command += f" --variant {quote(variant)}"
            yield one_line(f"to run it: {command}")
        if shrunk.dropped:
            yield ""
            before, after = (suite_text(each).splitlines() for each in (document, shrunk.document))
            yield from map(visible, unified_diff(before, after, "as it was", "shrunk", lineterm=""))
