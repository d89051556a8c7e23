"""Puts a run's grade where it belongs: verdicts and issues to their calls, each step's to its heading, missing calls
where they were expected, and the rest to the end. In a chain the word of a step stands at its calls."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from workbench.grading.grade import ArgumentVerdict, CallPairing, Issue, RunResult, StepGrade
from workbench.tui.run_book.shown.item_list import RunItems
from workbench.tui.run_book.shown.items import CallItem, ForkItem, Item, MissingItem, StepItem
from workbench.tui.run_book.shown.missing import PlacedCall, missing_calls


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
    issues_of = _by_call(issues)
    pairing_of = {pairing.call: pairing for pairing in reversed(pairings)}
    steps = _Steps(run, result)
    told: set[tuple[object, ...]] = set()
    for place, index in enumerate(run.order):
        call = run.items[index]
        assert isinstance(call, CallItem)
        found, verdicts = steps.word_on(place, issues_of[place], pairing_of.get(place))
        told.update(map(_what, found))
        if (found, verdicts) != (call.issues, call.verdicts):
            call.issues, call.verdicts = found, verdicts
            run.changed(index)
    ends = _grade_steps(run, result)
    outcome.result, outcome.former = result, former
    assert run.outcome is not None
    lost = steps.lost(pairings, issues)
    placed = missing_calls(*lost, expected, run.order, run.outcome, ends)
    placed = _behind_replay(run, placed)
    if placed == before:
        placed = before  # the very same items: one may be unfolded, or under the cursor
    else:
        run.rebuild()
    shown = {issue.expected_call for _, item in placed for issue in item.issues}
    outcome.issues = tuple(
        issue
        for issue in issues
        if issue.kind != "failed step"  # the headings say it, and the end names them
        and (_what(issue) not in told if issue.call is not None else not steps.tell(issue))
        and (issue.call is not None or issue.expected_call is None or issue.expected_call not in shown)
    )
    for index, item in reversed(placed):
        run.insert(index, item)
    if first:
        run.rebuild()


def _behind_replay(run: RunItems, placed: list[tuple[int, MissingItem]]) -> list[tuple[int, MissingItem]]:
    """In a fork, what is missing at the end of all that is told again is missing in what happened since."""
    fork = next((index for index, item in enumerate(run.items) if isinstance(item, ForkItem)), None)
    if fork is None:
        return placed
    last = max((index for index in (*run.order, *run.steps) if index < fork), default=-1)
    return [(fork + 1 if last < index <= fork else index, item) for index, item in placed]


def _by_call(issues: Iterable[Issue]) -> Mapping[int | None, tuple[Issue, ...]]:
    found: defaultdict[int | None, tuple[Issue, ...]] = defaultdict(tuple)
    for issue in issues:
        found[issue.call] += (issue,)
    return found


def _what(issue: Issue) -> tuple[object, ...]:
    """What is the same in an issue of a step and in that of the whole run."""
    return issue.kind, issue.call, issue.argument


class _Steps:
    """What the steps of a chain say of its calls, each judged on its own; nothing in a case that is none."""

    def __init__(self, run: RunItems, result: RunResult) -> None:
        self._run = run
        self._grades = {grade.step: grade for grade in result.steps}
        self._issues = _by_call(issue for grade in result.steps for issue in grade.issues)
        self._by_expected = {grade.expected_call: grade for grade in result.steps}

    def word_on(
        self, place: int, issues: tuple[Issue, ...], pairing: CallPairing | None
    ) -> tuple[tuple[Issue, ...], tuple[ArgumentVerdict, ...]]:
        """The issues and verdicts to show at a call, given those of the whole run. A step that has something to say,
        or goes by another pairing than the whole, speaks for its calls."""
        step = self._step_at(place)
        verdicts = pairing.arguments if pairing is not None else ()
        if step is None:
            return issues, verdicts
        wanted = pairing.expected_call if pairing is not None else None
        alike = wanted == (step.expected_call if place == step.call else None)
        if not alike or (pairing is not None and wanted is not None and not pairing.same_tool):
            verdicts = ()
        speaks = not alike or step.status == "failed" or bool(step.issues)
        return (self._issues[place] if speaks else issues), verdicts

    def lost(
        self, pairings: Sequence[CallPairing], issues: Sequence[Issue]
    ) -> tuple[Sequence[CallPairing], Sequence[Issue]]:
        """The pairings and issues by which calls are missing: where there are steps, in their words."""
        if not self._grades:
            return pairings, issues
        own = [issue for issue in self._issues[None] if issue.kind == "missing call"]
        names = {issue.expected_call for issue in own}
        return [pairing for pairing in pairings if pairing.call is None and pairing.expected_call in names], own

    def tell(self, issue: Issue) -> bool:
        """Whether the step that expects the call of an issue says itself what became of it, or was never reached."""
        step = self._by_expected.get(issue.expected_call) if issue.expected_call is not None else None
        return step is not None and step.status in ("failed", None)

    def _step_at(self, place: int) -> StepGrade | None:
        """The grade of the step in whose answer a call is; `None` for the calls of the final answer, and others."""
        above = bisect_left(self._run.steps, self._run.order[place])
        heading = self._run.items[self._run.steps[above - 1]] if above and self._grades else None
        if not isinstance(heading, StepItem) or heading.step is None:
            return None
        return self._grades.get(heading.step)


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
        if item.step is None:
            end = index
            continue
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
