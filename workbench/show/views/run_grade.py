"""The grade of a run among its items: verdicts at calls, missing calls between them, and the result at the end."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from workbench.grading.final import met_requirements, state_request_text
from workbench.grading.grade import ArgumentVerdict, CallPairing, Issue, RunResult, StepGrade
from workbench.grading.status import Status
from workbench.show.views.run_items import CallItem, ForkItem, Item, MissingItem, RunItems, StepItem, SuiteCallItem
from workbench.suite.expected_calls import ExpectedCall
from workbench.suite.model import Case, FinalTable
from workbench.suite.problems import Place

PlacedCall = tuple[Place, ExpectedCall]
"""An expected call, and its place in the case."""


def expected_of(case: Case) -> tuple[PlacedCall, ...]:
    """Return the expected calls of a case with their places, in the order of `Case.expected_calls()`.

    In a chain, the place of a call is its step, counted from 0."""
    steps: list[PlacedCall] = []
    for at, step in enumerate(case.steps):
        if step.expected_call is not None:
            steps.append((("steps", at), step.expected_call))
    return (*steps, *case.placed_expected_calls())


def missing_calls(
    pairings: Sequence[CallPairing],
    issues: Sequence[Issue],
    expected: Sequence[PlacedCall],
    calls: Sequence[int],
    outcome: int,
    steps: Mapping[int, int],
) -> list[tuple[int, MissingItem]]:
    """Return the missing calls of a run in order, each with the index of the item before which it is shown.

    `calls` has the indices of call items. The item after a call is its result. `outcome` is the index of the last item,
    the run's outcome. `steps` maps each step of a chain to the index of the item that follows the step."""
    by_expected: dict[int, CallPairing] = {}
    lost: set[int] = set()
    met: dict[int, int] = {}
    for pairing in pairings:
        if (wanted := pairing.expected_call) is None:
            continue
        by_expected[wanted] = pairing
        if pairing.call is None:
            lost.add(wanted)
        elif pairing.call < len(calls):
            met[wanted] = calls[pairing.call]
    for issue in issues:
        if issue.kind == "missing call" and issue.call is None and issue.expected_call is not None:
            lost.add(issue.expected_call)
    end = outcome
    if calls:
        end = calls[-1] + 2
    placed: list[tuple[int, MissingItem]] = []
    for index in sorted(lost):
        own: list[Issue] = []
        for issue in issues:
            if issue.expected_call == index and issue.call is None:
                own.append(issue)
        place: Place = ()
        if index < len(expected):
            place, tool = expected[index][0], expected[index][1].tool_text
        else:
            # If the case has changed since the run and lacks the call, the issues still name the tool.
            tool = "a call"
            for issue in own:
                if issue.tool:
                    tool = issue.tool
                    break
        verdicts: tuple[ArgumentVerdict, ...] = ()
        if index in by_expected:
            verdicts = by_expected[index].arguments
        item = MissingItem(tool, index, verdicts, tuple(own))
        if place[:1] == ("steps",):
            placed.append((steps.get(int(place[1]) + 1, outcome), item))
        else:
            placed.append((_expected_before(index, met, expected, end), item))
    placed.sort(key=lambda pair: pair[0])
    return placed


def _expected_before(index: int, met: Mapping[int, int], expected: Sequence[PlacedCall], end: int) -> int:
    """Return the index of the item before which a missing call is shown.

    A missing call of a sequence is shown before the next call of the sequence that the model made. If there is no such
    call, it is shown after the result of the previous call of the sequence. All other missing calls are shown at `end`.
    `met` maps the expected calls that the model made to the indices of their items."""
    position = _position(expected, index)
    if position is None:
        return end
    later, earlier = [], []
    for other, at in met.items():
        if (place := _position(expected, other)) is None:
            continue
        if place > position:
            later.append((place, at))
        else:
            earlier.append((place, at))
    if later:
        return min(later)[1]
    if earlier:
        # The result of a call is the next item, and the missing call follows the result.
        return max(earlier)[1] + 2
    return end


def _position(expected: Sequence[PlacedCall], index: int) -> int | None:
    """Return the position of an expected call in an ordered sequence, or `None` if it is not in a sequence.

    A grade may be older than the case. The position of a call that the case no longer has is its index."""
    if index >= len(expected):
        return index
    place = expected[index][0]
    if place[0] != "ordered":
        return None
    return int(place[1])


def put_grade(
    run: RunItems,
    result: RunResult,
    expected: Sequence[PlacedCall],
    former: RunResult | None,
    *,
    first: bool,
    final: FinalTable | None,
) -> None:
    """Show a grade at the items of a run. Remove the earlier grade unless this grade is the `first`.

    `former` is the original result of a regraded run. `final` has the requirements on the final state."""
    outcome = run.end()
    if (asked := run.request()) is not None:
        asked.has_ended = True
    before = _remove_missing(run)
    issues = result.issues
    pairings: Sequence[CallPairing] = ()
    if result.grade is not None:
        pairings = result.grade.pairings
    issues_of = _by_call(issues)
    # In reverse order, the first of a call's pairings is stored last and therefore counts.
    pairing_of = {pairing.call: pairing for pairing in reversed(pairings)}
    steps = _Steps(run, result)
    shown_at_calls: set[tuple[object, ...]] = set()
    for place, index in enumerate(run.order):
        call = run.items[index]
        assert isinstance(call, CallItem)
        found, verdicts = steps.notes_at(place, issues_of[place], pairing_of.get(place))
        shown_at_calls.update(map(_issue_key, found))
        if (found, verdicts) != (call.issues, call.verdicts):
            call.issues, call.verdicts = found, verdicts
            run.changed(index)
    _mark_states(run, result)
    ends = _grade_steps(run, result)
    outcome.result, outcome.former = result, former
    outcome.met, outcome.requirements = (), 0
    if final is not None and result.status.graded:
        met, outcome.requirements = met_requirements(final, issues)
        outcome.met = tuple(met)
    assert run.outcome is not None
    lost = steps.lost(pairings, issues)
    placed = missing_calls(*lost, expected, run.order, run.outcome, ends)
    placed = _after_replay(run, placed)
    if placed == before:
        # The items of the earlier grade are kept, because the user may have unfolded them or put the cursor on them.
        placed = before
    else:
        run.rebuild()
    shown = set()
    for _, item in placed:
        for issue in item.issues:
            shown.add(issue.expected_call)
    # The end of the run shows the issues that are shown nowhere else: at no call, missing call or step.
    at_end: list[Issue] = []
    for issue in issues:
        if issue.call is not None:
            is_shown = _issue_key(issue) in shown_at_calls
        else:
            is_shown = steps.reports(issue) or (issue.expected_call is not None and issue.expected_call in shown)
        # Failed steps are already shown at their headings and in the outcome.
        if issue.kind != "failed step" and not is_shown:
            at_end.append(issue)
    outcome.issues = tuple(at_end)
    # Insertion from the end keeps the earlier indices valid.
    for index, item in reversed(placed):
        run.insert(index, item)
    if first:
        run.rebuild()


def _mark_states(run: RunItems, result: RunResult) -> None:
    """Mark whether the result of each call that the suite made after the run is as expected."""
    wrong = [issue.why for issue in result.issues if issue.kind == "final state" and issue.decides]
    for index, item in enumerate(run.items):
        if not isinstance(item, SuiteCallItem) or item.call.stage != "final":
            continue
        holds = None
        if result.status.graded:
            asked = state_request_text(item.call.tool, item.call.arguments)
            holds = not any(why.startswith(f"{asked}: ") for why in wrong)
        if holds is not item.holds:
            item.holds = holds
            run.changed(index)


def _after_replay(run: RunItems, placed: list[tuple[int, MissingItem]]) -> list[tuple[int, MissingItem]]:
    """Return the missing calls of a fork. Those at the end of the copied part are moved behind the `ForkItem`."""
    fork = None
    for index, item in enumerate(run.items):
        if isinstance(item, ForkItem):
            fork = index
            break
    if fork is None:
        return placed
    last = -1
    for index in (*run.order, *run.steps):
        if index < fork:
            last = max(last, index)
    moved: list[tuple[int, MissingItem]] = []
    for index, item in placed:
        if last < index <= fork:
            index = fork + 1
        moved.append((index, item))
    return moved


def _by_call(issues: Iterable[Issue]) -> Mapping[int | None, tuple[Issue, ...]]:
    found: defaultdict[int | None, tuple[Issue, ...]] = defaultdict(tuple)
    for issue in issues:
        found[issue.call] += (issue,)
    return found


def _issue_key(issue: Issue) -> tuple[object, ...]:
    """Return a key by which the same issue is recognised in the grades of a step and of the whole run."""
    return issue.kind, issue.call, issue.argument


class _Steps:
    """The grades of a chain's steps, looked up by call. It is empty for a case that is not a chain."""

    def __init__(self, run: RunItems, result: RunResult) -> None:
        self._run = run
        self._grades = {grade.step: grade for grade in result.steps}
        self._issues = _by_call(chain.from_iterable(grade.issues for grade in result.steps))
        self._by_expected = {grade.expected_call: grade for grade in result.steps}

    def notes_at(
        self, place: int, issues: tuple[Issue, ...], pairing: CallPairing | None
    ) -> tuple[tuple[Issue, ...], tuple[ArgumentVerdict, ...]]:
        """Return the issues and the argument verdicts to show at the call with the index `place`.

        `issues` and `pairing` come from the grade of the whole run. The grade of the call's step takes precedence if it
        has issues or pairs the call with another expected call."""
        verdicts: tuple[ArgumentVerdict, ...] = ()
        wanted, other_tool = None, False
        if pairing is not None:
            verdicts, wanted = pairing.arguments, pairing.expected_call
            other_tool = wanted is not None and not pairing.same_tool
        step = self._step_at(place)
        if step is None:
            return issues, verdicts
        own = None
        if place == step.call:
            own = step.expected_call
        if wanted != own or other_tool:
            verdicts = ()
        if wanted != own or step.status == Status.FAILED or step.issues:
            issues = self._issues[place]
        return issues, verdicts

    def lost(
        self, pairings: Sequence[CallPairing], issues: Sequence[Issue]
    ) -> tuple[Sequence[CallPairing], Sequence[Issue]]:
        """Return the pairings and issues in which to look for missing calls.

        In a chain, they are the pairings and issues of its steps."""
        if not self._grades:
            return pairings, issues
        own = [issue for issue in self._issues[None] if issue.kind == "missing call"]
        names = {issue.expected_call for issue in own}
        unmet = []
        for pairing in pairings:
            if pairing.call is None and pairing.expected_call in names:
                unmet.append(pairing)
        return unmet, own

    def reports(self, issue: Issue) -> bool:
        """Return whether an issue of the run need not be shown again, because its step failed or was never reached."""
        if issue.expected_call is None:
            return False
        step = self._by_expected.get(issue.expected_call)
        return step is not None and step.status in (Status.FAILED, None)

    def _step_at(self, place: int) -> StepGrade | None:
        """Return the grade of the step that a call belongs to, or `None` for a call outside of steps."""
        above = bisect_left(self._run.steps, self._run.order[place])
        if not above or not self._grades:
            return None
        heading = self._run.items[self._run.steps[above - 1]]
        if not isinstance(heading, StepItem) or heading.step is None:
            return None
        return self._grades.get(heading.step)


def _grade_steps(run: RunItems, result: RunResult) -> dict[int, int]:
    """Show each step's grade at the step's heading. Return, for each step, the index of the item that follows it."""
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


def _remove_missing(run: RunItems) -> list[tuple[int, MissingItem]]:
    """Remove the missing calls. Return each with the index of the item that followed it, counted after removal."""
    taken: list[tuple[int, MissingItem]] = []
    for index in range(len(run.items) - 1, -1, -1):
        item: Item = run.items[index]
        if isinstance(item, MissingItem):
            run.remove(index)
            taken.append((index, item))
    return [(index - number, item) for number, (index, item) in enumerate(reversed(taken))]
