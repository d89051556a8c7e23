"""Models side by side: their cells, totals, errors and paired tests.

A cell is worded by `cell_line`, a result of a pair by `verdict_line`, the totals by `totals_rows`: reports and the app
show the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from workbench.analysis.batch_diff import CaseSide
from workbench.analysis.causes import BASELINE
from workbench.analysis.comparison import Cell, ModelTotals
from workbench.analysis.gates import GateResult
from workbench.analysis.measures import (
    AGAINST_SCORE,
    COST,
    GATE_MEASURES,
    LATENCY,
    PASS_RATE,
    SCORE,
    VALID_ARGUMENTS,
    Measure,
)
from workbench.analysis.side_by_side import Comparison, Pair, Row, front, points
from workbench.analysis.totals import PERCENTILES
from workbench.dataclasses import dataclass
from workbench.grading.argument_counts import ToolArguments
from workbench.grading.status import Status
from workbench.numerals import (
    NOTHING,
    cost_text,
    count_text,
    counted,
    counted_of,
    demanded_text,
    duration_text,
    mean_text,
    of_text,
    pace_text,
    rate_text,
    rates_text,
    reached_text,
    score_text,
    scores_text,
)
from workbench.show.doc import Block, Column, Items, Matrix, Paragraph, Section, Value, line_of, words
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import EMPTY, Line, Span
from workbench.show.views.cases import Title
from workbench.show.views.totals import checked_text
from workbench.show.visible import one_line, shortened
from workbench.suite.model import RepeatRule

UNKNOWN = "unknown"
_MIN_TITLE_CELLS = 12
_SUITE_MAX = 16
_TOOL_MAX = 24
_REASON_MAX = 1_000

_ALWAYS_SHOWN_K = 5
"""pass@k and pass^k are shown for each k up to here, and for the largest one."""

_SCORE_CELLS = len("0.67")
_SPREAD_CELLS = len("±0.47")


@dataclass(frozen=True, slots=True)
class Filtered:
    """Selected cases, each by its suite and id, and the words of the filter."""

    words: str
    cases: Collection[tuple[str, str]]


def comparison_view(
    comparison: Comparison,
    *,
    only_differences: bool = False,
    filtered: Filtered | None = None,
    interrupted: bool = False,
) -> Iterator[Block]:
    """Yield a comparison.

    With `only_differences`, cases with the same result for all graded models are left out, and with `filtered` those
    that are not selected; totals and tests cover all cases. `interrupted` tells that the batch was."""
    titles = _titles(comparison)
    chosen = [row for row in comparison.rows if filtered is None or (row.suite, row.case_id) in filtered.cases]
    rows = [row for row in chosen if row.differs or not only_differences]
    if rows:
        yield _cells(comparison.models, rows, titles)
    if filtered is not None:
        which = counted_of(len(chosen), len(comparison.rows), "case")
        only = ", only differences" if only_differences else ""
        yield Paragraph(line_of(f"{which} by the filter {filtered.words}{only}; totals and tests are of all", "muted"))
    elif only_differences:
        left_out = len(comparison.rows) - len(rows)
        some = f"left out: {counted(left_out, 'case')} on which the models agree"
        yield Paragraph(line_of(some if left_out else "every case differs", "muted"))
    yield from summary_view(comparison, interrupted=interrupted, titles=titles)


Titles = Mapping[tuple[str, str], Title]
"""The titles of cases, by suite and id."""


def summary_view(comparison: Comparison, *, interrupted: bool = False, titles: Titles | None = None) -> Iterator[Block]:
    """Yield a comparison without its cells: totals, errors, and the tests between models."""
    yield totals_matrix(comparison)
    if interrupted:
        runs = (run for row in comparison.rows for cell in row.cells if cell is not None for run in cell.runs)
        stopped = counted(sum(run.status == Status.STOPPED for run in runs), "run")
        yield Paragraph(line_of(f"interrupted: {stopped} stopped", "strong"))
    if errors := errors_of(comparison):
        yield Section(line_of("errors, which are in no rate, mean or latency"), [error_items(errors)])
    yield from tests_view(comparison, titles)


def tests_view(comparison: Comparison, titles: Titles | None = None) -> Iterator[Block]:
    """Yield the tests between models, and what there is to know of them."""
    if rule := rule_line(comparison.repeat_rules):
        yield Paragraph(line_of(rule, "muted"))
    titles = titles if titles is not None or not comparison.pairs else _titles(comparison)
    yield from (_pair(pair, titles or {}) for pair in comparison.pairs)
    if BASELINE in comparison.models:
        yield Paragraph(line_of(f"{BASELINE} is a baseline, not a language model", "muted"))


def _titles(comparison: Comparison) -> Titles:
    """Return the titles of all cases, with the suite where there are several."""
    with_suites = comparison.has_suites
    return {
        (row.suite, row.case_id): Title(row.suite_name if with_suites else "", row.case_name) for row in comparison.rows
    }


# Cells


class CellRooms(NamedTuple):
    """The room for the parts of cells, so that they stand below each other."""

    digits: int
    """The digits of the number of runs of a cell; 0 if each has one run."""
    has_spread: bool
    latency: int

    @property
    def cells(self) -> int:
        """The width of a graded cell."""
        repeats = 2 * self.digits + 3 if self.digits else 0
        spread = _SPREAD_CELLS if self.has_spread else 0
        return 2 + repeats + _SCORE_CELLS + spread + 1 + self.latency


class CellWords(NamedTuple):
    """The parts of a cell."""

    share: str
    """How many of several runs were good."""
    broke_off: str
    """The sign of the runs without a verdict."""
    score: str
    """The status of a cell that was not graded, which has no other part."""
    spread: str
    latency: str


def cell_words(cell: Cell, *, with_repeats: bool) -> CellWords:
    """Return the parts of a cell; `with_repeats` tells that some cell of the comparison has several runs."""
    if not cell.is_graded:
        return CellWords("", "", cell.status, "", "")
    return CellWords(
        f"{cell.good}/{cell.graded}" if with_repeats else "",
        cell.broke_off.sign if cell.broke_off is not None else "",
        score_text(cell.score),
        f"±{score_text(cell.spread)}" if cell.spread and with_repeats else "",
        duration_text(cell.latency_ms) if cell.latency_ms is not None else "",
    )


def cell_line(cell: Cell, rooms: CellRooms) -> Line:
    """Return the sign of a cell and its parts, each in its room."""
    sign, role = cell.status.mark
    words = cell_words(cell, with_repeats=rooms.digits > 0)
    line = [Span(f"{sign} ", role)]
    if digits := rooms.digits:
        good, slash, graded = words.share.partition("/")
        broken = cell.broke_off.role if cell.broke_off is not None else role
        line += [Span(f"{good:>{digits}}{slash or ' '}{graded:<{digits}}"), Span(f"{words.broke_off:<2}", broken)]
    if not cell.is_graded:
        return *line, Span(words.score, role)
    line.append(Span(f"{words.score:>{_SCORE_CELLS}}", role))
    if rooms.has_spread:
        line.append(Span(f"{words.spread:<{_SPREAD_CELLS}}", "muted"))
    return *line, Span(f" {words.latency:>{rooms.latency}}", "muted")


def verdict_line(side: Cell | CaseSide) -> Line:
    """Return the result of a case beside another one: its sign, its score, and how many of several runs were good."""
    sign, role = side.status.mark
    share = f" {side.good}/{side.graded}" if side.graded > 1 else ""
    return Span(sign, role), Span(f" {score_text(side.score, '')}".rstrip(), role), Span(share, "muted")


def both_verdicts(before: Cell | CaseSide, after: Cell | CaseSide) -> Line:
    """Return two results of a case, or one that became another."""
    return *verdict_line(before), Span(f" {GLYPHS.call} ", "muted"), *verdict_line(after)


def _cells(models: Sequence[str], rows: Sequence[Row], titles: Titles) -> Matrix[Row]:
    cells = [cell for row in rows for cell in row.cells if cell is not None]
    repeats = max((len(cell.runs) for cell in cells), default=1)
    latencies = [len(duration_text(cell.latency_ms)) for cell in cells if cell.latency_ms is not None]
    has_spread = any(cell.spread for cell in cells)
    rooms = CellRooms(len(str(repeats)) if repeats > 1 else 0, has_spread, max(latencies, default=0))

    def value(row: Row, column: int) -> Value:
        cell = row.cells[column]
        return Value(cell_line(cell, rooms) if cell is not None else EMPTY)

    def title(row: Row) -> Title:
        return titles[row.suite, row.case_id]

    first = Column[Row](
        "case",
        lambda row: words(title(row).whole),
        least=_MIN_TITLE_CELLS,
        fit=lambda row, width: words(title(row).cut(width)),
    )
    return Matrix(first, [one_line(model) for model in models], rows, value)


# Errors and tests


def errors_of(comparison: Comparison) -> Mapping[tuple[str, str], int]:
    """Return in how many runs of a model which error occurred, the models in the order of the columns."""
    counts: Counter[tuple[str, str]] = Counter()
    for row in comparison.rows:
        for cell in row.cells:
            for run in cell.runs if cell is not None else ():
                if run.status == Status.ERROR:
                    counts[run.model, run.reason or "it is not known why"] += 1
    order = {model: at for at, model in enumerate(comparison.models)}
    return {key: counts[key] for key in sorted(counts, key=lambda key: order[key[0]])}


def error_items(errors: Mapping[tuple[str, str], int]) -> Items:
    """Return errors as a list, `errors` as from `errors_of`."""
    return Items([_error_line(*key, runs) for key, runs in errors.items()], "other error")


def _error_line(model: str, why: str, runs: int) -> Line:
    sign = Span(f"{Status.ERROR.sign} ", Status.ERROR.role)
    return sign, Span(f"{one_line(model)}, {counted(runs, 'run')}: {shortened(one_line(why), _REASON_MAX)}")


def _pair(pair: Pair, titles: Titles) -> Section:
    """Return the results of the tests of two models, and the cases on which the two differ."""
    first, second = one_line(pair.first), one_line(pair.second)
    differing = [
        (*both_verdicts(before, after), Span(f"  {titles[after.suite, after.case_id].whole}"))
        for before, after in pair.found.discordant
    ]
    blocks: list[Block] = [Paragraph(line_of(sentence)) for sentence in pair.found.sentences(first, second)]
    return Section(
        line_of(f"{second} against {first}"), [*blocks, Items(differing, "other case")] if differing else blocks
    )


_RULES: dict[RepeatRule, str] = {"every": "every run", "last": "last run", "mean": "mean", "majority": "majority"}


def rules_text(rules: Iterable[RepeatRule]) -> str:
    """Return the rules by which cases with several runs pass or fail."""
    return ", ".join(_RULES[rule] for rule in rules)


def rule_line(rules: Sequence[RepeatRule]) -> str:
    """Return the rules as a line below a comparison, with their meaning; empty where no case has several runs."""
    if not rules:
        return ""
    which = "of each case" if len(rules) == 1 else "of a case by the last run"
    last = f"; {which}, only the last graded run counts in the pass rate and its test" if "last" in rules else ""
    return f"rule for repeats: {rules_text(rules)}{last}"


# Totals


def totals_matrix(comparison: Comparison) -> Matrix[tuple[str, list[str]]]:
    suite_names, cases = comparison.suite_names, len(comparison.rows)
    rows = list(totals_rows(comparison.totals, suite_names, cases, comparison.on_same_cases))
    first = Column[tuple[str, list[str]]]("totals", lambda row: words(row[0]), least=max(len(name) for name, _ in rows))
    models = [one_line(model) for model in comparison.models]
    return Matrix(first, models, rows, lambda row, column: words(row[1][column]))


def totals_rows(
    totals: Sequence[ModelTotals],
    suite_names: Mapping[str, str],
    cases: int,
    on_same_cases: Sequence[ModelTotals] | None,
) -> Iterator[tuple[str, list[str]]]:
    """Yield the measures, each with its value for every model.

    Counts that are 0 for all models are left out, and so are pass@k and pass^k where no case has several runs. `cases`
    is how many are compared: a value that rests on fewer says on how many. The Pareto front is that of `on_same_cases`;
    `None` while runs go on: then the pass rate alone says so, and there is no front."""
    all_cases = cases if on_same_cases is not None else 0
    yield "graded cases", [f"{each.graded} of {max(cases, each.cases)}" for each in totals]
    counted = {status for each in totals for _, status in each.counted}
    for status in (status for status in Status if status in counted):
        yield status.counted, [count_text(each.counts[status]) for each in totals]
    if any(each.endpoint_faults for each in totals):
        yield "the endpoint's failures", [of_text(each.endpoint_faults, each.failed) for each in totals]
    if any(each.runs_in_error and each.runs != each.cases for each in totals):
        yield "runs in error", [of_text(each.runs_in_error, each.runs) for each in totals]
    if any(each.repeat_rules for each in totals):
        yield "rule for repeats", [rules_text(each.repeat_rules) or NOTHING for each in totals]
    yield PASS_RATE.title, [_pass_rate(each, cases) for each in totals]
    yield "95% interval", [_interval(each) for each in totals]
    yield from _pooled(SCORE, totals, all_cases)
    if any(each.score_interval is not None for each in totals):
        bounds = [each.score_interval for each in totals]
        yield "95% of mean", [NOTHING if each is None else scores_text(*each) for each in bounds]
    for name in dict.fromkeys(name for each in totals for name in each.metrics):
        found = [each.metrics.get(name) for each in totals]
        yield one_line(f"response.{name}"), [mean_text(value) for value in found]
    yield from _arguments(totals)
    yield from _gates(totals, suite_names)
    yield from _tries(totals)
    yield from _pooled(LATENCY, totals, all_cases)
    yield from _first_token(totals, all_cases)
    yield "input tokens", [_tokens(each.input_tokens, each, all_cases) for each in totals]
    yield "output tokens", [_tokens(each.output_tokens, each, all_cases) for each in totals]
    yield COST.title, [_cost(each, all_cases) for each in totals]
    yield from _front(on_same_cases or (), all_cases)
    yield (
        "cases a minute",
        [pace_text(each.cases_a_minute) for each in totals],
    )


def _arguments(totals: Sequence[ModelTotals]) -> Iterator[tuple[str, list[str]]]:
    """Yield the rates of valid arguments: of all calls, and of each tool that some model called with invalid ones."""
    found = [each.valid_arguments for each in totals]
    if not any(each.tools for each in found):
        return
    rates = [NOTHING if not each.tools else checked_text(each.valid, each.checked) for each in found]
    yield VALID_ARGUMENTS.title, rates
    by_tool = [{tool.tool: tool for tool in each.tools} for each in found]
    for name in dict.fromkeys(tool.tool for each in found for tool in each.tools if tool.valid < tool.checked):
        of_tool = [tools.get(name) for tools in by_tool]
        yield f"· {shortened(one_line(name), _TOOL_MAX)}", list(map(_checked, of_tool))


def _checked(tool: ToolArguments | None) -> str:
    return NOTHING if tool is None else checked_text(tool.valid, tool.checked)


def _front(totals: Sequence[ModelTotals], cases: int) -> Iterator[tuple[str, list[str]]]:
    """Yield in what each model is beaten by none: by cost and score, by latency and score, and on how many cases."""
    measures = {}
    same = max((each.graded for each in totals), default=0)
    for measure in AGAINST_SCORE:
        found, _ = points(measure, totals)
        if len(found) > 1 and any(point.takes for point in found):
            measures[measure.title] = {point.name for point in front(found)}
    if measures:
        on = ([name for name, models in measures.items() if each.model in models] for each in totals)
        yield f"Pareto front{_on(same, cases)}", [", ".join(names) or NOTHING for names in on]


def _pass_rate(totals: ModelTotals, cases: int) -> str:
    """Return the pass rate, with the number of cases that it rests on where these are not all."""
    if totals.pass_rate is None:
        return NOTHING
    return f"{rate_text(totals.pass_rate)}{f' of {count_text(totals.graded)}' if totals.graded < cases else ''}"


def _on(rests_on: int, cases: int) -> str:
    """Return on how many cases a value rests, where these are not all."""
    return f" ({counted(rests_on, 'case')})" if rests_on < cases else ""


def _pooled(measure: Measure, totals: Sequence[ModelTotals], cases: int) -> Iterator[tuple[str, list[str]]]:
    """Yield the numbers of a measure over the graded cases."""
    for pooled in measure.pooled:
        yield pooled.title, [_with_cases(measure.text(pooled.of(each)), each, cases) for each in totals]


def _first_token(totals: Sequence[ModelTotals], cases: int) -> Iterator[tuple[str, list[str]]]:
    for name in PERCENTILES:
        yield f"first token {name}", [_with_cases(_first_token_text(each, name), each, cases) for each in totals]


def _first_token_text(totals: ModelTotals, name: str) -> str:
    return NOTHING if totals.first_token is None else duration_text(totals.first_token.percentiles[name])


def _with_cases(text: str, totals: ModelTotals, cases: int) -> str:
    return text if text == NOTHING else f"{text}{_on(totals.graded, cases)}"


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
    """Return the share with the number of cases that have this many graded runs, where others have fewer."""
    cases = totals.passing[k - 1].cases
    return rate_text(share) if cases == totals.graded else f"{rate_text(share)} of {count_text(cases)}"


def _gates(totals: Sequence[ModelTotals], suite_names: Mapping[str, str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the gates of the suites for each model, a row for each demand; named after its suite where several suites
    have one."""
    of_models = [{(gate.suite, gate.measure): gate for gate in each.gates} for each in totals]
    demands = {key: gate for gates in of_models for key, gate in gates.items()}
    several = len({suite for suite, _ in demands}) > 1
    for (suite, measure), demand in demands.items():
        whose = f" of {shortened(one_line(suite_names.get(suite or '', '')), _SUITE_MAX)}" if several else ""
        found = (gates.get((suite, measure)) for gates in of_models)
        yield (
            f"gate{whose}: {measure} {demanded_text(demand.minimum, is_rate=GATE_MEASURES[measure].is_rate)}",
            [NOTHING if each is None else _met(each) for each in found],
        )


def _met(gate: GateResult) -> str:
    reached = NOTHING
    if gate.reached is not None:
        reached = reached_text(gate.reached, gate.minimum, is_rate=GATE_MEASURES[gate.measure].is_rate)
    return f"{reached} {'met' if gate.met else 'missed'}"


def _interval(totals: ModelTotals) -> str:
    if totals.interval is None:
        return NOTHING
    return rates_text(totals.interval.low, totals.interval.high)


def _tokens(count: int | None, totals: ModelTotals, cases: int) -> str:
    """Return where nothing ran, nothing is known."""
    if count is None:
        return UNKNOWN if totals.runs else NOTHING
    return f"{count_text(count)}{_on(totals.cases, cases)}"


def _cost(totals: ModelTotals, cases: int) -> str:
    """Return an unknown cost is never shown as 0, but as the number of runs that it concerns."""
    if totals.cost_usd is None:
        return UNKNOWN if totals.runs_of_unknown_cost else NOTHING
    known = cost_text(totals.cost_usd) + _on(totals.cases, cases)
    return f"{known} + {totals.runs_of_unknown_cost} unknown" if totals.runs_of_unknown_cost else known
