"""Puts a run's grade where it belongs: verdicts and issues to their calls, each step's to its heading, missing calls
where they were expected, and the rest to the end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from workbench.grading.grade import Issue, RunResult
from workbench.tui.state.items import CallItem, Item, MissingItem, StepItem
from workbench.tui.state.missing import PlacedCall, missing_calls
from workbench.tui.state.run_items import RunItems


def put_grade(
    run: RunItems, result: RunResult, expected: Sequence[PlacedCall], former: RunResult | None, *, first: bool
) -> None:
    """Show a grade in the place of any before it; `first` says that there was none. `former` is what the run came to
    when it ran, where it was graded anew since."""
    outcome = run.end()
    if (asked := run.request()) is not None:
        asked.over = True
    before = _take_missing(run)
    grade = result.grade
    issues = grade.issues if grade is not None else ()
    pairings = grade.pairings if grade is not None else ()
    issues_of: defaultdict[int | None, tuple[Issue, ...]] = defaultdict(tuple)
    for issue in issues:
        issues_of[issue.call] += (issue,)
    verdicts_of = {pairing.call: pairing.arguments for pairing in reversed(pairings)}
    for place, index in enumerate(run.order):
        call = run.items[index]
        assert isinstance(call, CallItem)
        found, verdicts = issues_of[place], verdicts_of.get(place, ())
        if (found, verdicts) != (call.issues, call.verdicts):
            call.issues, call.verdicts = found, verdicts
            run.changed(index)
    steps = _grade_steps(run, result)
    outcome.result, outcome.former = result, former
    assert run.outcome is not None
    placed = missing_calls(pairings, issues, expected, run.order, run.outcome, steps)
    if placed == before:
        placed = before  # the very same items: one may be unfolded, or under the cursor
    else:
        run.rebuild()
    shown = {issue.expected_call for _, item in placed for issue in item.issues}
    outcome.issues = tuple(
        issue
        for issue in issues
        if (issue.call is None or issue.call >= len(run.order))
        and (issue.expected_call is None or issue.expected_call not in shown)
    )
    for index, item in reversed(placed):
        run.insert(index, item)
    if first:
        run.rebuild()


def _grade_steps(run: RunItems, result: RunResult) -> dict[int, int]:
    """Put the grade of each step of a chain to its heading. Behind which item each step is over, by its number."""
    grades = {grade.step: grade for grade in result.steps}
    ends: dict[int, int] = {}
    if not grades:
        return ends
    assert run.outcome is not None
    end = run.outcome
    for index in reversed(run.steps):
        item = run.items[index]
        assert isinstance(item, StepItem)
        ends[item.step], end = end, index
        if (item.grade, item.of) != (grades.get(item.step), len(grades)):
            item.grade, item.of = grades.get(item.step), len(grades)
            run.changed(index)
    return ends


def _take_missing(run: RunItems) -> list[tuple[int, MissingItem]]:
    """Take the missing calls out; each with the index of the item before which it stood, without the others."""
    taken: list[tuple[int, MissingItem]] = []
    for index in range(len(run.items) - 1, -1, -1):
        item: Item = run.items[index]
        if isinstance(item, MissingItem):
            run.remove(index)
            taken.append((index, item))
    return [(index - number, item) for number, (index, item) in enumerate(reversed(taken))]
