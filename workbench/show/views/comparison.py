"""Models side by side: their cells, totals, errors and paired tests.

`cell_line` makes the text of a cell, `verdict_line` makes the text of one result of a pair, and `totals_rows` makes the
texts of totals. Reports and the app show these texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from workbench.analysis.batch_diff import CaseSide
from workbench.analysis.causes import BASELINE_MODEL
from workbench.analysis.comparison import Cell, ModelTotals
from workbench.analysis.gates import GateResult
from workbench.analysis.measures import (
    COST,
    GATE_MEASURES,
    LATENCY,
    PARETO_MEASURES,
    PASS_RATE,
    SCORE,
    VALID_ARGUMENTS,
    GateMeasureName,
    Measure,
)
from workbench.analysis.side_by_side import CaseRow, Comparison, ModelPair, pareto_front, pareto_points, weakest_models
from workbench.analysis.totals import PERCENTILES
from workbench.dataclasses import dataclass
from workbench.grading.argument_counts import ToolArguments, ValidArguments
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
from workbench.show.doc import NONE, Block, Column, Items, Matrix, Paragraph, Section, Value, line_of, words
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import Line, Span
from workbench.show.views.agents import version_lines
from workbench.show.views.cases import Title
from workbench.show.views.totals import checked_text, shown_ks, user_cost_text
from workbench.show.views.user_turns import gave_up_text
from workbench.show.visible import one_line, shortened
from workbench.suite.grading_model import RepeatRule

UNKNOWN = "unknown"
_MIN_TITLE_CELLS = 12
_SUITE_MAX = 16
_TOOL_MAX = 24
_REASON_MAX = 1_000

# The parts of cells have fixed widths, so that numbers are aligned.
_SCORE_CELLS = len("0.67")
_SPREAD_CELLS = len("±0.47")


@dataclass(frozen=True, slots=True)
class Filtered:
    """A filter of cases: the selected cases, as pairs of suite and id, and the text of the filter."""

    words: str
    cases: Collection[tuple[str, str]]


def comparison_view(
    comparison: Comparison,
    *,
    only_differences: bool = False,
    filtered: Filtered | None = None,
    interrupted: bool = False,
) -> Iterator[Block]:
    """Yield the blocks that show a comparison of models.

    With `only_differences`, cases with the same result for all graded models are omitted. With `filtered`, cases
    outside the filter are omitted. Totals and tests always cover all cases. `interrupted` is true if the batch was
    interrupted."""
    titles = _titles(comparison)
    chosen = list(comparison.rows)
    if filtered is not None:
        chosen = [row for row in chosen if (row.suite, row.case_id) in filtered.cases]
    rows = chosen
    if only_differences:
        rows = [row for row in chosen if row.differs]
    if rows:
        yield _cells(comparison.models, rows, titles)
    if filtered is not None:
        which = f"{counted_of(len(chosen), len(comparison.rows), 'case')} by the filter {filtered.words}"
        if only_differences:
            which += ", only differences"
        yield Paragraph(line_of(f"{which}; totals and tests are of all", "muted"))
    elif only_differences and len(rows) == len(comparison.rows):
        yield Paragraph(line_of("every case differs", "muted"))
    elif only_differences:
        left_out = counted(len(comparison.rows) - len(rows), "case")
        yield Paragraph(line_of(f"left out: {left_out} on which the models agree", "muted"))
    yield from summary_view(comparison, interrupted=interrupted, titles=titles)


Titles = Mapping[tuple[str, str], Title]
"""The titles of cases by suite and id."""


def result_line(comparison: Comparison) -> Line:
    """Return a line with the pass rates of all models, which is the first line of a comparison."""
    rates = []
    for totals in comparison.totals:
        rates.append(f"{one_line(totals.model)} {PASS_RATE.text(totals.pass_rate)}")
    return (Span(f"pass rates on {counted(len(comparison.rows), 'case')}: {', '.join(rates)}", "strong"),)


def first_sentences(comparison: Comparison) -> Iterator[str]:
    """Yield the most important sentence on the tests of each pair of models."""
    for pair in comparison.pairs:
        yield from islice(pair.found.sentences(one_line(pair.first), one_line(pair.second)), 1)


def summary_view(comparison: Comparison, *, interrupted: bool = False, titles: Titles | None = None) -> Iterator[Block]:
    """Yield a comparison without its cells: totals, errors, and the tests between models."""
    yield totals_matrix(comparison)
    if interrupted:
        statuses = Counter(run.status for run in comparison.runs)
        yield Paragraph(line_of(f"interrupted: {counted(statuses[Status.STOPPED], 'run')} stopped", "strong"))
    if errors := errors_of(comparison):
        yield Section(line_of("errors, which are in no rate, mean or latency"), [error_items(errors)])
    yield from tests_view(comparison, titles)


_MAX_ONLY_THERE = 3
"""Maximum number of cases that are named as failing only with the weakest model."""


def weakest_text(columns: Mapping[str, Iterable[Cell]]) -> str | None:
    """Return a sentence about the models that fail most, or `None` if there are none."""
    found = weakest_models(columns)
    if found is None:
        return None
    everyone = f"all {count_text(len(columns))}"
    failed = counted_of(found.failed, found.cases, "case")
    if not found.failed:
        return f"every case passes with {everyone}"
    if not found.differs:
        return f"with {everyone}, the same {failed} failed"
    if found.failed == found.best_failed:
        return f"with {everyone}, {failed} failed, but not the same ones"
    text = f"most failures with {_names(found.models)} ({failed})"
    if found.only_there:
        named = [one_line(name) for name in found.only_there[:_MAX_ONLY_THERE]]
        if more := len(found.only_there) - len(named):
            named.append(f"{count_text(more)} more")
        text += f", only there {', '.join(named)}"
    return f"{text}; fewest with {_names(found.best)} ({count_text(found.best_failed)})"


_MAX_NAMES = 2


def _names(models: Sequence[str]) -> str:
    if len(models) > _MAX_NAMES:
        return f"{one_line(models[0])} and {count_text(len(models) - 1)} others"
    return " and ".join(map(one_line, models))


def tests_view(comparison: Comparison, titles: Titles | None = None) -> Iterator[Block]:
    """Yield the models that fail most, the tests between models, and notes on how to read them."""
    if (most_failures := weakest_text(comparison.columns)) is not None:
        yield Paragraph(line_of(most_failures, "strong"))
    if rule := rule_line(comparison.repeat_rules):
        yield Paragraph(line_of(rule, "muted"))
    if comparison.pairs:
        titles = titles or _titles(comparison)
        for pair in comparison.pairs:
            yield _pair(pair, titles)
    if BASELINE_MODEL in comparison.models:
        yield Paragraph(line_of(f"{BASELINE_MODEL} is a baseline, not a language model", "muted"))
    for line in version_lines(comparison.runs):
        yield Paragraph(line_of(line, "muted"))


def _titles(comparison: Comparison) -> Titles:
    with_suites = comparison.has_suites
    titles: dict[tuple[str, str], Title] = {}
    for row in comparison.rows:
        suite = ""
        if with_suites:
            suite = row.suite_name
        titles[row.suite, row.case_id] = Title(suite, row.case_name)
    return titles


# Cells


class CellRooms(NamedTuple):
    """The widths of the parts of a cell, such as score and latency. All cells share them, so that parts are aligned."""

    digits: int
    """The number of digits of the largest number of runs in a cell, or 0 if each cell has one run."""
    has_spread: bool
    latency: int

    @property
    def cells(self) -> int:
        """The width of a graded cell."""
        width = 2 + _SCORE_CELLS + 1 + self.latency
        if self.digits:
            width += 2 * self.digits + 3
        if self.has_spread:
            width += _SPREAD_CELLS
        return width


class CellWords(NamedTuple):
    """The parts of a cell, as texts."""

    share: str
    """The share of good runs, if there are several."""
    ungraded_status: str
    """The sign of runs without a verdict."""
    score: str
    """The score. A cell without a grade has its status here and no other part."""
    spread: str
    latency: str


def cell_words(cell: Cell, *, with_repeats: bool) -> CellWords:
    """Return the parts of a cell as texts.

    `with_repeats` is true if any cell of the comparison has several runs."""
    if not cell.is_graded:
        return CellWords("", "", cell.status, "", "")
    share = broke_off = spread = latency = ""
    if with_repeats:
        share = f"{cell.good}/{cell.graded}"
    if cell.ungraded_status is not None:
        broke_off = cell.ungraded_status.sign
    if with_repeats and cell.spread:
        spread = f"±{score_text(cell.spread)}"
    if cell.latency_ms is not None:
        latency = duration_text(cell.latency_ms)
    return CellWords(share, broke_off, score_text(cell.score), spread, latency)


def cell_line(cell: Cell, rooms: CellRooms) -> Line:
    """Return the sign of a cell and its parts, each in its fixed width."""
    sign, role = cell.status.mark
    words = cell_words(cell, with_repeats=rooms.digits > 0)
    line = [Span(f"{sign} ", role)]
    if digits := rooms.digits:
        good, slash, graded = words.share.partition("/")
        broken = (cell.ungraded_status or cell.status).role
        line += [Span(f"{good:>{digits}}{slash or ' '}{graded:<{digits}}"), Span(f"{words.ungraded_status:<2}", broken)]
    if not cell.is_graded:
        return *line, Span(words.score, role)
    line.append(Span(f"{words.score:>{_SCORE_CELLS}}", role))
    if rooms.has_spread:
        line.append(Span(f"{words.spread:<{_SPREAD_CELLS}}", "muted"))
    return *line, Span(f" {words.latency:>{rooms.latency}}", "muted")


def verdict_line(side: Cell | CaseSide) -> Line:
    """Return one result of a compared pair: sign, score and, for several runs, the share of good runs."""
    sign, role = side.status.mark
    line = (Span(sign, role), Span(f" {score_text(side.score, '')}".rstrip(), role))
    if side.graded <= 1:
        return line
    return *line, Span(f" {side.good}/{side.graded}", "muted")


def both_verdicts(before: Cell | CaseSide, after: Cell | CaseSide) -> Line:
    """Return two results of a case, with an arrow between them."""
    return *verdict_line(before), Span(f" {GLYPHS.call} ", "muted"), *verdict_line(after)


def _cells(models: Sequence[str], rows: Sequence[CaseRow], titles: Titles) -> Matrix[CaseRow]:
    found: list[Cell] = []
    for row in rows:
        found += filter(None, row.cells)
    rooms = _rooms(found)

    def value(row: CaseRow, column: int) -> Value:
        cell = row.cells[column]
        if cell is None:
            return NONE
        shown = cell_line(cell, rooms)
        if gave_up := gave_up_text(cell.gave_up, len(cell.runs)):
            shown = (*shown, Span(f" {gave_up}", "warned"))
        return Value(shown)

    def title(row: CaseRow) -> Title:
        return titles[row.suite, row.case_id]

    first = Column[CaseRow](
        "case",
        lambda row: words(title(row).whole),
        least=_MIN_TITLE_CELLS,
        fit=lambda row, width: words(title(row).cut(width)),
    )
    return Matrix(first, list(map(one_line, models)), rows, value)


def _rooms(cells: Sequence[Cell]) -> CellRooms:
    digits = latency = 0
    for cell in cells:
        if len(cell.runs) > 1:
            digits = max(digits, len(str(len(cell.runs))))
        if cell.latency_ms is not None:
            latency = max(latency, len(duration_text(cell.latency_ms)))
    return CellRooms(digits, any(cell.spread for cell in cells), latency)


# Errors and tests


def errors_of(comparison: Comparison) -> Mapping[tuple[str, str], int]:
    """Return how many runs of each model ended in each error. Models are in the order of the columns."""
    counts: Counter[tuple[str, str]] = Counter()
    for run in comparison.runs:
        if run.status == Status.ERROR:
            counts[run.model, run.reason or "it is not known why"] += 1
    # Sorting is stable, so each model's errors keep the order of their first runs.
    order = {model: at for at, model in enumerate(comparison.models)}
    return dict(sorted(counts.items(), key=lambda item: order[item[0][0]]))


def error_items(errors: Mapping[tuple[str, str], int]) -> Items:
    """Return errors as a list. `errors` is the value of `errors_of`."""
    return Items([_error_line(*key, runs) for key, runs in errors.items()], "other error")


def _error_line(model: str, why: str, runs: int) -> Line:
    sign = Span(f"{Status.ERROR.sign} ", Status.ERROR.role)
    return sign, Span(f"{one_line(model)}, {counted(runs, 'run')}: {shortened(one_line(why), _REASON_MAX)}")


def _pair(pair: ModelPair, titles: Titles) -> Section:
    first, second = one_line(pair.first), one_line(pair.second)
    blocks: list[Block] = []
    for sentence in pair.found.sentences(first, second):
        blocks.append(Paragraph(line_of(sentence)))
    differing: list[Line] = []
    for before, after in pair.found.discordant:
        differing.append((*both_verdicts(before, after), Span(f"  {titles[after.suite, after.case_id].whole}")))
    if differing:
        blocks.append(Items(differing, "other case"))
    return Section(line_of(f"{second} against {first}"), blocks)


_RULES: dict[RepeatRule, str] = {"every": "every run", "last": "last run", "mean": "mean", "majority": "majority"}


def rules_text(rules: Iterable[RepeatRule]) -> str:
    """Return the rules for repeats in words. A rule decides whether a case with several runs passes."""
    return ", ".join(_RULES[rule] for rule in rules)


def rule_line(rules: Sequence[RepeatRule]) -> str:
    """Return a line that names and explains the rules for repeats, or "" if no case has several runs."""
    if not rules:
        return ""
    line = f"rule for repeats: {rules_text(rules)}"
    # By the rule "last", rates ignore all but the last run of a case. The reader must know that.
    if "last" not in rules:
        return line
    which = "of a case by the last run"
    if len(rules) == 1:
        which = "of each case"
    return f"{line}; {which}, only the last graded run counts in the pass rate and its test"


TotalsRow = tuple[str, list[str]]
"""The title of a row of totals, and its text for each model."""


# Totals


def totals_matrix(comparison: Comparison) -> Matrix[TotalsRow]:
    """Return the totals as a matrix of measures by model."""
    suite_names, cases = comparison.suite_names, len(comparison.rows)
    rows = list(totals_rows(comparison.totals, suite_names, cases, comparison.on_same_cases))
    # Names of measures are never cut, because some begin with the same words.
    first = Column[TotalsRow]("totals", lambda row: words(row[0]), least=max(len(name) for name, _ in rows))
    models = list(map(one_line, comparison.models))
    return Matrix(first, models, rows, lambda row, column: words(row[1][column]))


def totals_rows(
    totals: Sequence[ModelTotals],
    suite_names: Mapping[str, str],
    cases: int,
    on_same_cases: Sequence[ModelTotals] | None,
) -> Iterator[TotalsRow]:
    """Yield the measures, each with its value for every model.

    Counts that are 0 for all models are omitted, and so are pass@k and pass^k if no case has several runs. `cases` is
    the number of compared cases. If a value covers fewer cases, their number follows the value.

    The Pareto front is computed from `on_same_cases`. While runs are in progress, `on_same_cases` is `None`. The front
    is then omitted, and only the pass rate shows the number of cases that it covers."""
    # While runs are in progress, a number of cases after every value would make the values hard to find.
    all_cases = cases
    if on_same_cases is None:
        all_cases = 0

    def row(title: str, text: Callable[[ModelTotals], str]) -> TotalsRow:
        return title, list(map(text, totals))

    yield row("graded cases", lambda each: of_text(each.graded, max(cases, each.cases)))
    yield from _counts(totals)
    if any(each.endpoint_faults for each in totals):
        yield row("the endpoint's failures", lambda each: of_text(each.endpoint_faults, each.failed))
    if any(each.runs_in_error and each.runs != each.cases for each in totals):
        yield row("runs in error", lambda each: of_text(each.runs_in_error, each.runs))
    if any(each.repeat_rules for each in totals):
        yield row("rule for repeats", lambda each: rules_text(each.repeat_rules) or NOTHING)
    yield row(PASS_RATE.title, lambda each: _pass_rate(each, cases))
    yield row("95% interval", _interval)
    yield from _pooled(SCORE, totals, all_cases)
    if any(each.score_interval is not None for each in totals):
        yield row("95% of mean", _score_interval)
    metrics = dict.fromkeys(name for each in totals for name in each.metrics)
    for name in metrics:
        yield one_line(f"response.{name}"), [mean_text(each.metrics.get(name)) for each in totals]
    yield from _arguments(totals)
    yield from _gates(totals, suite_names)
    yield from _pass_at_k_rows(totals)
    yield from _pooled(LATENCY, totals, all_cases)
    yield from _first_token(totals, all_cases)
    yield row("input tokens", lambda each: _tokens(each.input_tokens, each, all_cases))
    yield row("output tokens", lambda each: _tokens(each.output_tokens, each, all_cases))
    yield row(COST.title, lambda each: _cost(each, all_cases))
    if any(each.users for each in totals):
        yield row("tokens of users", _user_tokens)
        yield row("cost of users", _user_cost)
    yield from _pareto_row(on_same_cases or (), all_cases)
    yield row("cases a minute", lambda each: pace_text(each.cases_a_minute))


def _counts(totals: Sequence[ModelTotals]) -> Iterator[TotalsRow]:
    there = set()
    for each in totals:
        for _, status in each.counted:
            there.add(status)
    for status in Status:
        if status in there:
            yield status.counted, [count_text(each.counts[status]) for each in totals]


def _arguments(totals: Sequence[ModelTotals]) -> Iterator[TotalsRow]:
    if not any(each.valid_arguments.tools for each in totals):
        return
    by_tool: list[dict[str, ToolArguments]] = []
    rates: list[str] = []
    # The keys form an ordered set: the tools in the order of their first calls.
    invalid: dict[str, None] = {}
    for each in totals:
        found = each.valid_arguments
        rate = NOTHING
        if found.tools:
            rate = _checked(found)
        rates.append(rate)
        by_tool.append({tool.tool: tool for tool in found.tools})
        for tool in found.invalid_tools:
            invalid[tool.tool] = None
    yield VALID_ARGUMENTS.title, rates
    for name in invalid:
        yield f"· {shortened(one_line(name), _TOOL_MAX)}", [_checked(tools.get(name)) for tools in by_tool]


def _checked(found: ValidArguments | ToolArguments | None) -> str:
    if found is None:
        return NOTHING
    return checked_text(found.valid, found.checked)


def _pareto_row(totals: Sequence[ModelTotals], cases: int) -> Iterator[TotalsRow]:
    names: dict[str, list[str]] = {each.model: [] for each in totals}
    for measure in PARETO_MEASURES:
        found, _ = pareto_points(measure, totals)
        # A Pareto front needs two models, and at least one value of the measure above 0.
        if len(found) > 1 and any(point.amount for point in found):
            for point in pareto_front(found):
                names[point.name].append(measure.title)
    if any(names.values()):
        same = max(each.graded for each in totals)
        yield f"Pareto front{_covered_cases(same, cases)}", [", ".join(names[each.model]) or NOTHING for each in totals]


def _pass_rate(totals: ModelTotals, cases: int) -> str:
    """Return the pass rate. If it does not cover all cases, the number of covered cases follows."""
    rate = rate_text(totals.pass_rate)
    if totals.pass_rate is None or totals.graded >= cases:
        return rate
    return f"{rate} of {count_text(totals.graded)}"


def _covered_cases(covered: int, cases: int) -> str:
    """Return the number of cases that a value covers, such as ` (4 cases)`, or "" if it covers all cases."""
    if covered >= cases:
        return ""
    return f" ({counted(covered, 'case')})"


def _pooled(measure: Measure, totals: Sequence[ModelTotals], cases: int) -> Iterator[TotalsRow]:
    for pooled in measure.pooled:
        yield pooled.title, [_with_cases(measure.text(pooled.of(each)), each, cases) for each in totals]


def _first_token(totals: Sequence[ModelTotals], cases: int) -> Iterator[TotalsRow]:
    for name in PERCENTILES:
        yield f"first token {name}", [_with_cases(_first_token_text(each, name), each, cases) for each in totals]


def _first_token_text(totals: ModelTotals, name: str) -> str:
    if totals.first_token is None:
        return NOTHING
    return duration_text(totals.first_token.percentiles[name])


def _with_cases(text: str, totals: ModelTotals, cases: int) -> str:
    if text == NOTHING:
        return text
    return f"{text}{_covered_cases(totals.graded, cases)}"


def _pass_at_k_rows(totals: Sequence[ModelTotals]) -> Iterator[TotalsRow]:
    """Yield pass@k, the chance that at least one of k runs passes, and pass^k, the chance that all k runs pass.

    pass@k is from Chen et al. (2021), and pass^k from Yao et al. (2024, τ-bench)."""
    most = max((len(each.passing) for each in totals), default=0)
    # Without repeats, pass@1 equals the pass rate, which already has a row.
    if most < 2:
        return
    yield "pass@1 = pass^1", [_share_of_k(each, 1, each.pass_at) for each in totals]
    shown = shown_ks(most)[1:]
    for k in shown:
        yield f"pass@{k}", [_share_of_k(each, k, each.pass_at) for each in totals]
    for k in shown:
        yield f"pass^{k}", [_share_of_k(each, k, each.pass_all) for each in totals]


def _share_of_k(totals: ModelTotals, k: int, shares: Mapping[int, float]) -> str:
    """Return a model's pass@k or pass^k.

    If it does not cover all graded cases, the number of covered cases follows."""
    if k not in shares:
        return NOTHING
    share, cases = rate_text(shares[k]), totals.passing[k - 1].cases
    if cases < totals.graded:
        share += f" of {count_text(cases)}"
    return share


def _gates(totals: Sequence[ModelTotals], suite_names: Mapping[str, str]) -> Iterator[TotalsRow]:
    demands: dict[tuple[str | None, GateMeasureName], GateResult] = {}
    of_models: list[dict[tuple[str | None, GateMeasureName], GateResult]] = []
    for each in totals:
        of_models.append({(gate.suite, gate.measure): gate for gate in each.gates})
        # Models may have run different suites, so a model may lack a gate.
        demands |= of_models[-1]
    with_suite = len({suite for suite, _ in demands}) > 1
    for (suite, measure), demand in demands.items():
        title = f"gate: {measure}"
        if with_suite:
            title = f"gate of {shortened(one_line(suite_names.get(suite or '', '')), _SUITE_MAX)}: {measure}"
        demanded = demanded_text(demand.minimum, is_rate=GATE_MEASURES[measure].is_rate)
        yield f"{title} {demanded}", [_met(gates.get((suite, measure))) for gates in of_models]


def _met(gate: GateResult | None) -> str:
    if gate is None:
        return NOTHING
    reached = NOTHING
    if gate.reached is not None:
        reached = reached_text(gate.reached, gate.minimum, is_rate=GATE_MEASURES[gate.measure].is_rate)
    verdict = "missed"
    if gate.met:
        verdict = "met"
    return f"{reached} {verdict}"


def _interval(totals: ModelTotals) -> str:
    if totals.interval is None:
        return NOTHING
    return rates_text(totals.interval.low, totals.interval.high)


def _score_interval(totals: ModelTotals) -> str:
    if totals.score_interval is None:
        return NOTHING
    return scores_text(*totals.score_interval)


def _tokens(count: int | None, totals: ModelTotals, cases: int) -> str:
    if count is None:
        return _unknown_of(totals.runs)
    return f"{count_text(count)}{_covered_cases(totals.cases, cases)}"


def _user_tokens(totals: ModelTotals) -> str:
    if totals.users is None:
        return NOTHING
    return UNKNOWN if totals.users.tokens is None else count_text(totals.users.tokens)


def _user_cost(totals: ModelTotals) -> str:
    if totals.users is None:
        return NOTHING
    return user_cost_text(totals.users.cost_usd)


def _unknown_of(runs: int) -> str:
    if runs:
        return UNKNOWN
    return NOTHING


def _cost(totals: ModelTotals, cases: int) -> str:
    """Return the cost, and the number of runs whose cost is unknown. An unknown cost is never shown as 0."""
    unknown = totals.runs_of_unknown_cost
    if totals.cost_usd is None:
        return _unknown_of(unknown)
    known = cost_text(totals.cost_usd) + _covered_cases(totals.cases, cases)
    if unknown:
        known += f" + {unknown} unknown"
    return known
