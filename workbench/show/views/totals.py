"""The totals of runs or cases: counts, rates, times, tokens and cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from workbench.analysis.measures import COST, LATENCY, PASS_RATE, SCORE, VALID_ARGUMENTS, Measure
from workbench.grading.status import Status
from workbench.grading.valid_arguments import unchecked_reasons
from workbench.numerals import (
    NOTHING,
    cost_text,
    count_text,
    counted,
    counted_of,
    mean_text,
    of_text,
    rate_text,
    rates_text,
    scores_text,
    tokens_text,
    with_user_cost,
)
from workbench.show.doc import Column, Table, Value, words
from workbench.show.spans import Line, Role, Span
from workbench.show.views.agreement import agreement_lines
from workbench.show.views.grades import judging_text
from workbench.show.views.values import percentiles_text, usage_text
from workbench.show.visible import one_line, shortened

if TYPE_CHECKING:
    from workbench.analysis.comparison import ModelTotals
    from workbench.analysis.statistics import PassAtK
    from workbench.analysis.totals import Latency, Totals
    from workbench.grading.argument_counts import ValidArguments
    from workbench.grading.grade import RunResult

    AnyTotals = Totals | ModelTotals

_BETWEEN = " · "
_NAME_LEAST = 12


def run_totals(totals: Totals) -> Iterator[Line]:
    """Yield the totals of runs as lines. Each line has related figures."""
    yield _head(totals, "", counted(totals.runs, "run"))
    if totals.cost_limited:
        yield (Span(f"  {not_made_text(totals.cost_limited)}", "failed"),)
    yield from _faults(totals)
    yield from _facts(rate_fact(totals), score_fact(totals), valid_arguments_text(totals.valid_arguments))
    yield from _facts(_times(LATENCY.title, totals.latency))
    tokens = ""
    if totals.usage is not None:
        tokens = usage_text(totals.usage)
    yield from _facts(tokens, with_user_cost(cost_fact(totals), totals.user_cost_usd))
    if totals.judging.asked:
        yield from _facts(f"judging: {judging_text(totals.judging)}")
    for line in agreement_lines(totals.agreement):
        yield (Span("  "), *line)
    effort = []
    for number, noun in ((totals.retries, "requests retried"), (totals.executions, "calls executed")):
        if number:
            effort.append(f"{noun}: {count_text(number)}")
    yield from _facts(*effort)


def case_totals(totals: ModelTotals, part: str) -> Iterator[Line]:
    """Yield the totals of the cases of one model.

    `part` follows the number of cases. It says how many of the suite's cases the totals cover, and is empty if they
    cover all cases."""
    cases = counted(totals.cases, "case")
    if totals.runs != totals.cases:
        cases += f" in {counted(totals.runs, 'run')}"
        if totals.runs_in_error:
            cases += f" ({count_text(totals.runs_in_error)} in error)"
    tokens = ""
    if totals.input_tokens is not None or totals.output_tokens is not None:
        tokens = tokens_text(totals.input_tokens or 0, totals.output_tokens or 0)
    lines = [
        _head(totals, totals.model, f"{cases}{part}"),
        *_faults(totals),
        *_facts(_rate_of_cases(totals), _score_of_cases(totals), valid_arguments_text(totals.valid_arguments)),
        *_facts(_times(LATENCY.title, totals.latency), _times("first token", totals.first_token)),
        *_facts(tokens, with_user_cost(cost_fact(totals), totals.users.cost_usd if totals.users else 0)),
    ]
    for line in lines:
        yield (Span("  "), *line)


def _head(totals: AnyTotals, title: str, counts: str) -> Line:
    spans: list[Span] = []
    if title:
        spans += [Span(one_line(title), "strong"), Span(": ")]
    spans.append(Span(f"{counts}: "))
    for number, (count, status) in enumerate(totals.counted):
        if number:
            spans.append(Span(", "))
        role: Role = "text"
        if count:
            role = status.role
        spans.append(Span(f"{count_text(count)} {status.counted}", role))
    return tuple(spans)


def _facts(*facts: str) -> Iterator[Line]:
    # An unknown fact is an empty text. A line with only unknown facts is omitted.
    if text := _BETWEEN.join(filter(None, facts)):
        yield (Span(f"  {text}", "muted"),)


def _faults(totals: AnyTotals) -> Iterator[Line]:
    if totals.endpoint_faults:
        yield (Span(f"  {endpoint_text(totals.endpoint_faults, totals.failed)}"),)


def _times(name: str, times: Latency | None) -> str:
    if times is None:
        return ""
    return f"{name} {percentiles_text(times)}"


def rate_fact(totals: Totals) -> str:
    """Return the pass rate and the number of graded runs, or "" if no run was graded."""
    if totals.pass_rate is None:
        return ""
    fact = f"{PASS_RATE.title} {rate_text(totals.pass_rate)} of {counted(totals.graded, 'graded run')}"
    if totals.warned:
        fact += f", {count_text(totals.warned)} {Status.WARNED.counted}"
    return fact


def shown_ks(max_k: int) -> list[int]:
    """Return the values of k for which pass^k is shown: 1 to 5, and the largest value, `max_k`."""
    return sorted({*range(1, min(max_k, 5) + 1), max_k})


def passing_text(chances: Sequence[PassAtK]) -> str:
    """Return the chances that all of k runs pass, such as `pass^1 80.0% · pass^2 64.0%`.

    Return "" if no case has several runs."""
    if len(chances) < 2:
        return ""
    shown = shown_ks(len(chances))
    return _BETWEEN.join(f"pass^{each.k} {rate_text(each.all_of_them)}" for each in chances if each.k in shown)


def score_fact(totals: AnyTotals) -> str:
    """Return the mean score, or why there is no score although runs were graded. Return "" if no run was graded."""
    if totals.mean_score is None:
        return "" if totals.pass_rate is None else "no score: no case expects what the grader scores"
    return f"{SCORE.pooled[0].title} {mean_text(totals.mean_score)}"


def _rate_of_cases(totals: ModelTotals) -> str:
    """Return the pass rate of cases with its interval.

    A rate without an interval is omitted, because runs that were stopped early bias it."""
    if totals.pass_rate is None or totals.interval is None:
        return ""
    return f"{PASS_RATE.title} {rate_text(totals.pass_rate)} (95%: {rates_text(*totals.interval)})"


def _score_of_cases(totals: ModelTotals) -> str:
    fact = score_fact(totals)
    if totals.score_interval is not None:
        fact += f" (95%: {scores_text(*totals.score_interval)})"
    return fact


def cost_fact(totals: AnyTotals) -> str:
    """Return the cost, and the number of runs whose cost is unknown.

    Return "" if no run cost anything."""
    if not totals.cost_usd:
        return ""
    fact = cost_text(totals.cost_usd)
    if unknown := totals.runs_of_unknown_cost:
        fact += f" without {counted(unknown, 'run')} of unknown cost"
    return fact


def not_made_text(runs: int) -> str:
    """Return a text on the runs that a cost limit prevented, such as `3 runs not made: cost limit`."""
    return f"{counted(runs, 'run')} not made: cost limit"


def endpoint_text(faults: int, failed: int) -> str:
    """Return how many failures the endpoint caused, such as `2 of 5 failures are the endpoint's`."""
    verb = "are"
    if faults == 1:
        verb = "is"
    return f"{counted_of(faults, failed, 'failure')} {verb} the endpoint's"


OfModel = tuple[str, "Totals"]


def models_table(models: Mapping[str, Totals]) -> Table[OfModel]:
    """Return a table with the totals of each model in a row."""
    there = set()
    for totals in models.values():
        for _, status in totals.counted:
            there.add(status)
    # Only a status that occurs has a column.
    columns: list[Column[OfModel]] = [
        Column("model", lambda row: words(one_line(row[0]), "strong"), least=_NAME_LEAST, gap=0),
        *(_count_column(status) for status in Status if status in there),
        _column_of(PASS_RATE),
        Column(VALID_ARGUMENTS.title, _valid_arguments, right=True, from_cells=100),
        *map(_column_of, (SCORE, LATENCY, COST)),
    ]
    if any(totals.user_cost_usd != 0 for totals in models.values()):
        columns.append(Column("cost of users", lambda row: words(user_cost_text(row[1].user_cost_usd)), right=True))
    return Table(columns, list(models.items()))


def user_cost_text(usd: float | None) -> str:
    return "unknown" if usd is None else cost_text(usd)


def _count_column(status: Status) -> Column[OfModel]:
    def count(row: OfModel) -> Value:
        number = row[1].counts[status]
        role: Role = "muted"
        if number:
            role = status.role
        return Value((Span(count_text(number), role),), number)

    return Column(status.counted, count, right=True)


def _valid_arguments(row: OfModel) -> Value:
    found = row[1].valid_arguments
    if not found.tools:
        return words(NOTHING)
    return words(checked_text(found.valid, found.checked))


def _column_of(measure: Measure) -> Column[OfModel]:
    """Return a column with a measure of each model. A measure with several figures shows the first figure."""
    pooled = measure.pooled[0]
    return Column(pooled.title, lambda row: words(measure.text(pooled.of(row[1]))), right=True)


_WHY_MAX = 300


def checked_text(valid: int, checked: int) -> str:
    """Return the share of valid calls and the number of checked calls, such as `97.5% of 40`.

    A share below 1 is never rounded to 100%."""
    if not checked:
        return "unknown"
    return f"{rate_text(valid / checked)} of {count_text(checked)}"


def valid_arguments_text(valid_arguments: ValidArguments) -> str:
    """Return a text on the rate of calls with valid arguments, and on the tools with invalid calls.

    Return "" if no call could be checked."""
    if not valid_arguments.tools:
        return ""
    if not valid_arguments.checked:
        return f"{VALID_ARGUMENTS.title} unknown"
    rate = f"{VALID_ARGUMENTS.title} {rate_text(valid_arguments.valid / valid_arguments.checked)}"
    of_tools = []
    # Tools with only valid calls are omitted, because they would hide the other tools.
    for tool in valid_arguments.invalid_tools:
        of_tools.append(f"{one_line(tool.tool)} {of_text(tool.valid, tool.checked)}")
    if not of_tools:
        return rate
    return f"{rate} of {counted(valid_arguments.checked, 'call')} ({', '.join(of_tools)})"


def unchecked_lines(results: Iterable[RunResult], shown_as: Callable[[RunResult], RunResult]) -> Iterator[str]:
    """Yield a line for each tool whose calls had arguments that could not be checked, with the reason.

    Tools that an issue already reports as unknown are omitted. `shown_as` returns a run with its secrets removed, and
    is called only for runs that may yield a line."""
    reported: set[tuple[str, str]] = set()
    for result in results:
        unknown: set[tuple[str, str]] = set()
        for tool, valid in zip(result.called, result.valid_arguments, strict=False):
            if valid is None:
                unknown.add((result.suite, tool))
        new = {tool for _, tool in unknown - reported}
        if not new:
            continue
        reported |= unknown
        shown = shown_as(result)
        named = set()
        for issue in shown.issues:
            if issue.kind in ("unknown tool", "endpoint fault"):
                named.add(issue.tool)
        for tool, why in unchecked_reasons(shown.trajectory).items():
            if tool in new and tool not in named:
                yield f"the arguments of {shortened(one_line(tool), _WHY_MAX)} were not checked: {why}"
