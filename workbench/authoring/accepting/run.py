"""Accepts what a model did as the expectation of a case, from a run and its pairing with the expected calls.

A whole run becomes the sequence of its calls. Several calls of one answer become one any-order group, because a model
that requests them together says nothing about their order. If the run has exactly the expected calls, in an allowed
order, only arguments change. Checks that hold are kept. The calls of a chain go into its steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workbench.authoring.accepting.calls import AcceptedCall, as_expected, as_expected_again, check_calls
from workbench.authoring.accepting.proposal import (
    NO_CALLS,
    Proposal,
    accept_step,
    accept_step_without_call,
    accept_steps,
)
from workbench.authoring.form.tables import value_at
from workbench.dataclasses import dataclass
from workbench.grading.grade import CallPairing
from workbench.suite.model import Case, tool_text
from workbench.suite.problems import Place
from workbench.suite.render import Table
from workbench.trajectory.trajectory import CallRecord, Trajectory


def accept_run(case: Case, table: Table, trajectory: Trajectory, pairings: Sequence[CallPairing]) -> Proposal:
    """Accept all calls of a run, or the first call of each step. `pairings` are those of the grader for this case.
    Raises AcceptError."""
    if case.steps:
        return accept_steps(case, table, trajectory, pairings)
    check_calls(trajectory.calls)
    paired = _paired(case, pairings)
    calls = tuple(
        _taken(record, table, paired.get(index) if index in paired and paired[index].pairing.same_tool else None)
        for index, record in enumerate(trajectory.calls)
    )
    met = {call.place for call in calls}
    gone = tuple(call.tool_text for place, call in case.placed_expected_calls() if place not in met)
    if calls and "expect_no_calls" in table:
        gone = (NO_CALLS, *gone)
    return Proposal(case.name, calls, whole=True, in_place=_is_as_expected(case, calls), gone=gone)


def accept_call(
    case: Case, table: Table, trajectory: Trajectory, pairings: Sequence[CallPairing], call: int
) -> Proposal:
    """Accept one call, by its index: in place of the expectation it was paired with, in its step, or as an additional
    call. Raises AcceptError."""
    if case.steps:
        return accept_step(case, table, trajectory, pairings, call)
    record = trajectory.calls[call]
    check_calls([record])
    paired = _paired(case, pairings)
    if call in paired:
        expected = value_at(table, paired[call].place)
        gone = (
            () if paired[call].pairing.same_tool or not isinstance(expected, dict) else (tool_text(expected["tool"]),)
        )
        return Proposal(case.name, (_taken(record, table, paired[call]),), whole=False, gone=gone)
    key = "unordered" if case.unordered and not case.ordered else "ordered"
    index = len(case.unordered) if key == "unordered" else _position_for(call, paired, len(case.ordered))
    gone = (NO_CALLS,) if "expect_no_calls" in table else ()
    return Proposal(case.name, (_taken(record, table, None),), whole=False, added_at=(key, index), gone=gone)


def accept_missing(case: Case, expected: int) -> Proposal:
    """Accept that an expected call, by its index in the case, was not made: it is no longer expected."""
    if case.steps:
        return accept_step_without_call(case, expected)
    place, call = list(case.placed_expected_calls())[expected]
    return Proposal(case.name, (), whole=False, dropped=(place,), gone=(call.tool_text,))


@dataclass(frozen=True)
class _Pair:
    place: Place
    pairing: CallPairing


def _paired(case: Case, pairings: Sequence[CallPairing]) -> dict[int, _Pair]:
    """Map each call to the expectation that it was paired with."""
    places = [place for place, _ in case.placed_expected_calls()]
    return {
        pairing.call: _Pair(places[pairing.expected_call], pairing)
        for pairing in pairings
        if pairing.call is not None and pairing.expected_call is not None and pairing.expected_call < len(places)
    }


def _taken(record: CallRecord, table: Table, pair: _Pair | None) -> AcceptedCall:
    if pair is None or not pair.pairing.same_tool:
        return as_expected(record, pair.place if pair is not None else None)
    written = value_at(table, pair.place)
    assert isinstance(written, dict)
    return as_expected_again(record, pair.place, written, pair.pairing.arguments)


def _is_as_expected(case: Case, calls: Sequence[AcceptedCall]) -> bool:
    """Return whether a run has exactly the expected calls, in an allowed order."""
    places = [call.place for call in calls]
    if None in places or len(places) != sum(1 for _ in case.expected_calls()) or not places:
        return False
    positions = [int(place[1]) for place in places if place is not None and place[0] == "ordered"]
    return positions == sorted(positions)


def _position_for(call: int, paired: Mapping[int, _Pair], count: int) -> int:
    """Return where an unexpected call belongs in the sequence: after the expectation met before it, otherwise before
    the one met after it, otherwise at the end."""
    met = {index: pair.place[1] for index, pair in paired.items() if pair.place[0] == "ordered"}
    before = [int(position) for index, position in met.items() if index < call]
    after = [int(position) for index, position in met.items() if index > call]
    return max(before) + 1 if before else min(after) if after else count
