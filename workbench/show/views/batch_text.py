"""The text report of a batch: a table of runs with the issues below each run, then the gates and the totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Literal

from workbench.analysis.causes import BASELINE_MODEL
from workbench.analysis.gates import Quality
from workbench.analysis.measures import COST, LATENCY, SCORE
from workbench.analysis.statistics import pass_at_k
from workbench.analysis.totals import counted_runs, totals_by_model
from workbench.grading.grade import Grade, Issue, RunResult
from workbench.grading.repeats import CaseResult, LazyCaseResults
from workbench.grading.run_summary import is_not_needed
from workbench.grading.status import Status, graders_disagree, passed_or_failed
from workbench.numerals import NOTHING, counted, score_text
from workbench.show.doc import NONE, Column, Table, Value, words
from workbench.show.forms import LINES_MAX
from workbench.show.rows import TableLayout
from workbench.show.signs import FORK
from workbench.show.spans import Line, Span
from workbench.show.text import Paint, table_lines
from workbench.show.views.agents import agent_lines
from workbench.show.views.cases import Title, repeats_lines
from workbench.show.views.gates import demands
from workbench.show.views.grades import (
    DISAGREE,
    deciders_line,
    grades_line,
    is_doubt,
    issue_text,
    judgement_text,
    metric_text,
    parts_line,
    step_lines,
    why_passed,
)
from workbench.show.views.server_output import ServerOutputs
from workbench.show.views.totals import models_table, passing_text, run_totals, unchecked_lines
from workbench.show.views.trajectory import EDITED, repaired_line, unread_text
from workbench.show.visible import one_line, shortened

Amount = Literal["little", "normal", "much"]

CASE_WIDTH_MIN, _MODEL_WIDTH_MIN = 12, 8
ISSUE_WIDTH_MAX = 400
_COST_FROM = 72


def text_report(
    results: Sequence[RunResult],
    quality: Quality,
    *,
    suite_names: Mapping[str, str],
    width: int,
    paint: Paint,
    amount: Amount = "normal",
    shown_as: Callable[[RunResult], RunResult] = lambda result: result,
    verdict: Line = (),
) -> Iterator[str]:
    """Yield the lines of the report: the runs, then the summary, which begins with the `verdict`.

    `suite_names` are the names of suites by path. `width` is in terminal cells. `shown_as` returns a run without its
    secrets. At most `LINES_MAX` runs are listed.

    Forks are in the table, but count only if all runs are forks. If `amount` is "little", passed runs are omitted. If
    it is "much", the issues of passed runs and the result of each grader are added."""
    # A generator, because runs beyond the limit are only counted, and need no search for secrets.
    listed = (result for result in results if _is_listed(result, amount))
    shown = [shown_as(result) for result in islice(listed, LINES_MAX)]
    if shown:
        yield from run_lines(shown, quality.cases, suite_names, width, paint, in_full=amount == "much")
        if more := sum(1 for _ in listed):
            yield f"and {counted(more, 'other run')}: --format records or csv has all of them"
        yield ""
    if verdict:
        yield paint.line(verdict)
    yield from _notice_lines(results, paint, shown_as)
    if (repaired := repaired_line(results)) is not None:
        yield paint(f"▲ {repaired}", "warned")
    for line in agent_lines(results):
        yield paint(f"  {line}", "muted")
    for line in unchecked_lines(results, shown_as):
        yield paint(f"▲ {one_line(line)}", "warned")
    yield from _fork_lines(results, paint)
    counting = counted_runs(results)
    models = dict.fromkeys(result.model for result in counting)
    apart: dict[str, None] = {}
    for result in counting:
        if result.grading.quarantined:
            apart[result.case_name] = None
    if apart:
        yield paint(f"  in quarantine, and in no gate: {', '.join(map(one_line, apart))}", "muted")
    for demand in demands(quality, suite_names, with_model=len(models) > 1):
        yield from map(paint.line, demand.lines)
    whole, of_models = totals_by_model(counting)
    if len(models) > 1:
        yield from table_lines(models_table(of_models), width, paint, titled=True)
    yield from map(paint.line, run_totals(whole))
    if len(models) == 1 and (text := passing_text(pass_at_k(quality.cases.passes))):
        yield paint(f"  {text}", "muted")
    if any(result.grader is not None for result in counting):
        yield deciders_line(counting, paint)
    much = amount == "much"
    asked = [result for result in counting if much or result.grading.shows_published]
    if asked:
        # Lazy import: few reports have graders of published systems.
        from workbench.show.views.published import published_lines

        yield from map(paint.line, published_lines(asked, suite_names, with_details=much))
    if any(result.model == BASELINE_MODEL and result.grader is not None for result in counting):
        yield paint(f"  {BASELINE_MODEL} is a baseline, not a language model", "muted")


def _is_listed(result: RunResult, amount: Amount) -> bool:
    if is_not_needed(result):
        return False
    return amount != "little" or result.status not in (Status.PASSED, Status.SKIPPED, Status.NOT_GRADED)


def run_title(result: RunResult, suite_names: Mapping[str, str]) -> str:
    """Return the suite and the case of a run on one line. Repeats after the first have a number, and forks a sign."""
    return _title(result, suite_names).whole


def _title(result: RunResult, suite_names: Mapping[str, str]) -> Title:
    suite = suite_names.get(result.suite, Path(result.suite).stem)
    lead = tail = ""
    if result.is_fork:
        lead = f"{FORK} "
    if result.repeat:
        tail = f" #{result.repeat + 1}"
    return Title(suite, result.case_name, lead=lead, tail=tail)


def runs_table(runs: Sequence[RunResult], suite_names: Mapping[str, str]) -> Table[RunResult]:
    """Return runs as rows of a table. Costs are shown if any cost is known and not 0."""
    columns: list[Column[RunResult]] = [
        Column("", lambda run: words(run.status.sign, run.status.role)),
        Column(
            "case",
            lambda run: words(run_title(run, suite_names)),
            least=CASE_WIDTH_MIN,
            fit=lambda run, width: words(_title(run, suite_names).cut(width)),
            gap=1,
        ),
        Column("model", lambda run: words(one_line(run.model), "muted"), least=_MODEL_WIDTH_MIN),
        Column(SCORE.title, _score, right=True),
        Column("", _disagreement, gap=0),
        Column(LATENCY.title, lambda run: words(LATENCY.text(run.limited_ms or None)), right=True),
        Column("calls", lambda run: Value((Span(str(len(run.trajectory.calls))),)), right=True),
    ]
    if any(run.cost_usd for run in runs):
        cost = Column[RunResult](
            COST.title, lambda run: words(COST.text(run.cost_usd)), right=True, from_cells=_COST_FROM
        )
        columns.append(cost)
    return Table(columns, runs)


def _score(run: RunResult) -> Value:
    if not run.grades:
        return words(NOTHING)
    return words(score_text(run.score))


def _disagreement(run: RunResult) -> Value:
    if not graders_disagree(run.grades):
        return NONE
    return words(DISAGREE)


def run_lines(
    runs: Sequence[RunResult],
    cases: LazyCaseResults,
    suite_names: Mapping[str, str],
    width: int,
    paint: Paint,
    *,
    in_full: bool,
) -> Iterator[str]:
    """Yield the table of runs, with the issues of each run below it.

    After the last repeat of a case, the combined result of its repeats follows."""
    ending = _cases_by_last_run(runs, cases)
    outputs = ServerOutputs(paint)
    laid = TableLayout(runs_table(runs, suite_names), titled=True, measured=len(runs))
    if runs:
        yield paint.line(laid.titles(width))
    for run in runs:
        yield paint.line(laid.line(run, width))
        if in_full and run.grades:
            yield grades_line(run.grades)
            if (parts := parts_line(run.grades[0])) is not None:
                yield parts
        yield from _details(run, paint, outputs, in_full)
        if run.run_id in ending:
            yield from repeats_lines(ending[run.run_id], paint, with_arguments=in_full)


def _cases_by_last_run(results: Sequence[RunResult], cases: LazyCaseResults) -> dict[str, CaseResult]:
    """Return the cases that have repeats, by the id of their last shown run.

    Runs are identified by id, because the removal of secrets from a run creates a new object."""
    places = {run.run_id: place for place, run in enumerate(results)}
    last: dict[str, CaseResult] = {}
    for case in cases.repeated:
        shown = []
        for run in case.runs:
            if run.run_id in places:
                shown.append(run.run_id)
        if shown:
            last[max(shown, key=lambda run_id: places[run_id])] = case
    return last


def _details(result: RunResult, paint: Paint, outputs: ServerOutputs, in_full: bool) -> Iterator[str]:
    if result.error is not None:
        yield paint(f"    {result.status}: {one_line(result.error)}", result.status.role)
    yield from outputs.of_end(result, 4)
    if result.trajectory.touched:
        yield paint(f"    {EDITED}", "muted")
    if unread := unread_text(result.trajectory):
        yield paint(f"    {unread}", "muted")
    # An issue of a step is also an issue of the whole run. It must be shown only once.
    shown: set[tuple[object, ...]] = set()
    # If all steps of a chain passed, the result of the chain says enough.
    if in_full or any(step.status != Status.PASSED for step in result.steps):
        for step, line in zip(result.steps, step_lines(result.steps, paint, ISSUE_WIDTH_MAX), strict=True):
            yield f"    {line}"
            if in_full or step.status != Status.PASSED:
                for issue in step.issues:
                    yield _issue_line(issue, indent=6)
                shown.update(map(_issue_key, step.issues))
    in_short = result.status == Status.PASSED and not in_full
    # In the short form, a passed run shows only issues that are worth a look although the run passed.
    if result.grade is not None:
        for issue in _run_issues(result, result.grade, shown):
            if not in_short or is_doubt(issue, result):
                yield _issue_line(issue, indent=4)
        if not in_short and (why := why_passed(result)):
            yield paint(f"    {why}", "muted")
    if not in_short:
        for metric in result.metrics:
            held = passed_or_failed(metric.holds)
            place = ""
            if metric.about is None:
                place = "response."
            yield f"    {paint(held.sign, held.role)} {place}{shortened(metric_text(metric), ISSUE_WIDTH_MAX)}"
    if in_full:
        for judgement in result.judgements:
            yield paint(f"    {shortened(judgement_text(judgement), ISSUE_WIDTH_MAX)}", "muted")


def _run_issues(result: RunResult, grade: Grade, shown: Container[tuple[object, ...]]) -> Iterator[Issue]:
    """Yield the issues of a run, except those in `shown`.

    Issues of the kind `failed step` are also omitted, and so are missing calls of steps that the run never reached."""
    never = set()
    for step in result.steps:
        if step.status is None:
            never.add(("missing call", step.expected_call))
    for issue in grade.issues:
        is_of_step = issue.kind == "failed step" and result.steps
        if not is_of_step and _issue_key(issue) not in shown and (issue.kind, issue.expected_call) not in never:
            yield issue


def _issue_key(issue: Issue) -> tuple[object, ...]:
    """Return a key by which the same mistake is recognised in the issues of a step and of the whole run.

    A call with the wrong tool in a step may be a call in the wrong order in the run, so both kinds have one key."""
    return issue.kind.replace("wrong order", "wrong tool"), issue.call, issue.expected_call, issue.argument


def _issue_line(issue: Issue, *, indent: int) -> str:
    """Return an issue on one line. Only very long lines are cut, because readers of a log need whole lines."""
    return " " * indent + shortened(issue_text(issue), ISSUE_WIDTH_MAX)


def _notice_lines(
    results: Sequence[RunResult], paint: Paint, shown_as: Callable[[RunResult], RunResult]
) -> Iterator[str]:
    """Yield each notice on a deviation of a run from its suite once, with the number of affected runs."""
    notices: Counter[str] = Counter()
    outputs, lines = ServerOutputs(paint), list[str]()
    for result in results:
        if result.has_notices:
            trajectory = shown_as(result).trajectory
            notices.update(trajectory.notices)
            if trajectory.start is not None:
                lines += outputs.lines(result.suite, trajectory.start.server_outputs, 2)
    for notice, runs in notices.items():
        yield paint(f"▲ {one_line(notice)} ({counted(runs, 'run')})", "warned")
    yield from lines


def _fork_lines(results: Sequence[RunResult], paint: Paint) -> Iterator[str]:
    """Yield a line with the number of forks, if any. Forks count only if there are no other runs."""
    forks = sum(result.is_fork for result in results)
    if forks and forks == len(results):
        yield paint(f"{counted(forks, 'fork')} and no other run: the numbers below are about forks", "warned")
    elif forks:
        they = "the forks are"
        if forks == 1:
            they = "the fork is"
        runs = counted(len(results) - forks, "run")
        yield f"{runs}, {counted(forks, 'fork')}: {they} not counted in the numbers below or in the exit code"
