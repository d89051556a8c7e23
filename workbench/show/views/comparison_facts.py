"""The cells and totals of a comparison in words, shared by text and Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from workbench.analysis.comparison import Cell, ModelTotals
from workbench.analysis.gates import GateResult
from workbench.analysis.measures import AGAINST_SCORE
from workbench.analysis.side_by_side import Comparison, front, points
from workbench.analysis.totals import Latency
from workbench.dataclasses import dataclass
from workbench.grading.status import Status
from workbench.numerals import (
    NOTHING,
    cost_text,
    counted,
    duration_text,
    mean_text,
    pace_text,
    rate_text,
    rates_text,
    reached_text,
    score_text,
    scores_text,
)
from workbench.show.views.argument_validity import checked_text
from workbench.show.views.cases import Title
from workbench.show.visible import one_line, shortened
from workbench.suite.model import RepeatRule

UNKNOWN = "unknown"
_SUITE_MAX = 16
_TOOL_MAX = 24

_ALWAYS_SHOWN_K = 5
"""pass@k and pass^k are shown for each k up to here, and for the largest one."""


@dataclass(frozen=True, slots=True)
class CellWords:
    """A cell in pieces: `share` is how many of its graded runs were good, `broke_off` the sign of the runs that were
    not graded, `spread` the deviation of the scores; all are empty where cells have one run. A cell that was not graded
    has its status in place of a score, and nothing else."""

    sign: str
    share: str
    broke_off: str
    score: str
    spread: str
    latency: str


def cell_words(cell: Cell, *, with_repeats: bool) -> CellWords:
    """Returns the words of a cell; `with_repeats` tells that some cell of the comparison has several runs."""
    if not cell.is_graded:
        return CellWords(cell.status.sign, "", "", cell.status, "", "")
    latency = duration_text(cell.latency_ms)
    share = f"{cell.good}/{cell.graded}" if with_repeats else ""
    spread = f"±{score_text(cell.spread)}" if with_repeats and cell.spread is not None else ""
    broke_off = cell.broke_off.sign if cell.broke_off is not None else ""
    return CellWords(cell.status.sign, share, broke_off, score_text(cell.score), spread, latency)


@dataclass(frozen=True, slots=True)
class Trouble:
    """Runs of a model that ended in the same error."""

    model: str
    why: str
    runs: int


def troubles(comparison: Comparison) -> list[Trouble]:
    """Returns the errors of all runs, equal ones of a model together, the models in the order of the columns."""
    counts: dict[str, Counter[str]] = {model: Counter() for model in comparison.models}
    for row in comparison.rows:
        for cell in row.cells:
            for run in cell.runs if cell is not None else ():
                if run.status == Status.ERROR:
                    counts[run.model][run.reason or "it is not known why"] += 1
    return [Trouble(model, why, runs) for model, of_model in counts.items() for why, runs in of_model.items()]


def titles_of(comparison: Comparison) -> dict[tuple[str, str], Title]:
    """Returns the title of every case by its suite and id, with the suite where there are several. All at once, because
    that depends on all rows."""
    with_suites = comparison.has_suites
    return {
        (row.suite, row.case_id): Title(row.suite_name if with_suites else "", row.case_name) for row in comparison.rows
    }


_RULES: dict[RepeatRule, str] = {"every": "every run", "last": "last run", "mean": "mean", "majority": "majority"}


def rules_text(rules: Iterable[RepeatRule]) -> str:
    """Returns the rules by which cases with several runs pass or fail."""
    return ", ".join(_RULES[rule] for rule in rules)


def rule_line(rules: Sequence[RepeatRule]) -> str:
    """Returns the rules as a line below a comparison, with their meaning; empty where no case has several runs."""
    if not rules:
        return ""
    which = "of each case" if len(rules) == 1 else "of a case by the last run"
    last = f"; {which}, only the last graded run counts in the pass rate and its test" if "last" in rules else ""
    return f"rule for repeats: {rules_text(rules)}{last}"


def interrupted_line(comparison: Comparison) -> str:
    """Returns the note on a batch that was interrupted."""
    runs = (run for row in comparison.rows for cell in row.cells if cell is not None for run in cell.runs)
    return f"interrupted: {counted(sum(run.status == 'stopped' for run in runs), 'run')} stopped"


def left_out_line(left_out: int) -> str:
    """Returns the note on cases that are left out where only those that differ are shown."""
    return f"left out: {counted(left_out, 'case')} on which the models agree" if left_out else "every case differs"


def totals_rows(
    totals: Sequence[ModelTotals],
    suite_names: Mapping[str, str],
    cases: int,
    on_same_cases: Sequence[ModelTotals] | None,
) -> Iterator[tuple[str, list[str]]]:
    """Yields the measures, each with its value for every model. Counts that are 0 for all models are left out, and so
    are pass@k and pass^k where no case has several runs. `cases` is how many are compared: a value that rests on
    fewer says on how many. The Pareto front is that of `on_same_cases`; `None` while runs go on: then the pass rate
    alone says so, and there is no front."""
    all_cases = cases if on_same_cases is not None else 0
    yield "graded cases", [f"{each.graded} of {max(cases, each.cases)}" for each in totals]
    counted = {status for each in totals for _, status in each.counted}
    for status in (status for status in Status if status in counted):
        yield status.counted, [f"{each.counts[status]:,}" for each in totals]
    if any(each.endpoint_faults for each in totals):
        yield "the endpoint's failures", [f"{each.endpoint_faults:,} of {each.failed:,}" for each in totals]
    if any(each.runs_in_error and each.runs != each.cases for each in totals):
        yield "runs in error", [f"{each.runs_in_error:,} of {each.runs:,}" for each in totals]
    if any(each.repeat_rules for each in totals):
        yield "rule for repeats", [rules_text(each.repeat_rules) or NOTHING for each in totals]
    yield "pass rate", [_pass_rate(each, cases) for each in totals]
    yield "95% interval", [_interval(each) for each in totals]
    yield (
        "mean score",
        [
            NOTHING if each.mean_score is None else mean_text(each.mean_score) + _on(each.graded, all_cases)
            for each in totals
        ],
    )
    if any(each.score_interval is not None for each in totals):
        bounds = [each.score_interval for each in totals]
        yield "95% of mean", [NOTHING if each is None else scores_text(*each) for each in bounds]
    for name in dict.fromkeys(name for each in totals for name in each.metrics):
        found = [each.metrics.get(name) for each in totals]
        yield one_line(f"response.{name}"), [mean_text(value) for value in found]
    yield from _arguments(totals)
    yield from _gates(totals, suite_names)
    yield from _tries(totals)
    yield from _times("latency", [(each.latency, _on(each.graded, all_cases)) for each in totals])
    yield from _times("first token", [(each.first_token, _on(each.graded, all_cases)) for each in totals])
    yield "input tokens", [_tokens(each.input_tokens, each, all_cases) for each in totals]
    yield "output tokens", [_tokens(each.output_tokens, each, all_cases) for each in totals]
    yield "cost", [_cost(each, all_cases) for each in totals]
    yield from _front(on_same_cases or (), all_cases)
    yield (
        "cases a minute",
        [pace_text(each.cases_a_minute) for each in totals],
    )


def _arguments(totals: Sequence[ModelTotals]) -> Iterator[tuple[str, list[str]]]:
    """Yields the rates of valid arguments: of all calls, and of each tool that some model called with invalid ones."""
    found = [each.valid_arguments for each in totals]
    if not any(each.tools for each in found):
        return
    yield "valid arguments", [NOTHING if not each.tools else checked_text(each.valid, each.checked) for each in found]
    by_tool = [{tool.tool: tool for tool in each.tools} for each in found]
    for name in dict.fromkeys(tool.tool for each in found for tool in each.tools if tool.valid < tool.checked):
        of_tool = [tools.get(name) for tools in by_tool]
        rates = [NOTHING if each is None else checked_text(each.valid, each.checked) for each in of_tool]
        yield f"· {shortened(one_line(name), _TOOL_MAX)}", rates


def _front(totals: Sequence[ModelTotals], cases: int) -> Iterator[tuple[str, list[str]]]:
    """Yields in what each model is beaten by none: by cost and score, by latency and score, and on how many cases."""
    measures = {}
    same = max((each.graded for each in totals), default=0)
    for measure in AGAINST_SCORE:
        found, _ = points(measure, totals)
        if len(found) > 1 and any(point.takes for point in found):
            measures[measure.title] = {point.name for point in front(found)}
    if measures:
        on = ([name for name, models in measures.items() if each.model in models] for each in totals)
        yield f"Pareto front{_on(same, cases)}", [", ".join(names) or NOTHING for names in on]


_TIMES: tuple[tuple[str, Callable[[Latency], float]], ...] = (
    ("p50", lambda latency: latency.p50_ms),
    ("p95", lambda latency: latency.p95_ms),
    ("max", lambda latency: latency.max_ms),
)


def _pass_rate(totals: ModelTotals, cases: int) -> str:
    """Returns the pass rate, with the number of cases that it rests on where these are not all."""
    if totals.pass_rate is None:
        return NOTHING
    return f"{rate_text(totals.pass_rate)}{f' of {totals.graded:,}' if totals.graded < cases else ''}"


def _on(rests_on: int, cases: int) -> str:
    """Returns on how many cases a value rests, where these are not all."""
    return f" ({counted(rests_on, 'case')})" if rests_on < cases else ""


def _times(name: str, latencies: Sequence[tuple[Latency | None, str]]) -> Iterator[tuple[str, list[str]]]:
    for which, time in _TIMES:
        yield (
            f"{name} {which}",
            [NOTHING if each is None else f"{duration_text(time(each))}{on}" for each, on in latencies],
        )


def _tries(totals: Sequence[ModelTotals]) -> Iterator[tuple[str, list[str]]]:
    most = max((len(each.passing) for each in totals), default=0)
    if most < 2:
        return
    shown = [k for k in range(1, most + 1) if k <= _ALWAYS_SHOWN_K or k == most]
    for sign, shares in (("@", [each.pass_at for each in totals]), ("^", [each.pass_all for each in totals])):
        for k in shown if sign == "@" else shown[1:]:  # for one try, both are the same
            name = f"pass{sign}{k}" if k > 1 else "pass@1 = pass^1"
            found = zip(totals, shares, strict=True)
            yield name, [_try(each, k, share[k]) if k in share else NOTHING for each, share in found]


def _try(totals: ModelTotals, k: int, share: float) -> str:
    """Returns the share with the number of cases that have this many graded runs, where others have fewer."""
    cases = totals.passing[k - 1].cases
    return rate_text(share) if cases == totals.graded else f"{rate_text(share)} of {cases:,}"


def _gates(totals: Sequence[ModelTotals], suite_names: Mapping[str, str]) -> Iterator[tuple[str, list[str]]]:
    """Yields the gates of the suites for each model, a row for each demand; named after its suite where several suites
    have one."""
    of_models = [{(gate.suite, gate.measure): gate for gate in each.gates} for each in totals]
    demands = {key: gate for gates in of_models for key, gate in gates.items()}
    several = len({suite for suite, _ in demands}) > 1
    for (suite, measure), demand in demands.items():
        whose = f" of {shortened(one_line(suite_names.get(suite or '', '')), _SUITE_MAX)}" if several else ""
        found = (gates.get((suite, measure)) for gates in of_models)
        yield (
            f"gate{whose}: {measure} {demand.minimum:.12g}",
            [NOTHING if each is None else _met(each) for each in found],
        )


def _met(gate: GateResult) -> str:
    reached = NOTHING if gate.reached is None else reached_text(gate.reached, gate.minimum)
    return f"{reached} {'met' if gate.met else 'missed'}"


def _interval(totals: ModelTotals) -> str:
    if totals.interval is None:
        return NOTHING
    return rates_text(totals.interval.low, totals.interval.high)


def _tokens(count: int | None, totals: ModelTotals, cases: int) -> str:
    """Where nothing ran, nothing is known."""
    if count is None:
        return UNKNOWN if totals.runs else NOTHING
    return f"{count:,}{_on(totals.cases, cases)}"


def _cost(totals: ModelTotals, cases: int) -> str:
    """An unknown cost is never shown as 0, but as the number of runs that it concerns."""
    if totals.cost_usd is None:
        return UNKNOWN if totals.runs_of_unknown_cost else NOTHING
    known = cost_text(totals.cost_usd) + _on(totals.cases, cases)
    return f"{known} + {totals.runs_of_unknown_cost} unknown" if totals.runs_of_unknown_cost else known
