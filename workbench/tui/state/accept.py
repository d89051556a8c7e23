"""What a model did, taken as what is expected: from a case, a run and its pairing to the case's table as it would be.

A whole run becomes the sequence of its calls; several calls of one answer are one position with any order, since a
model that asks for them at once says nothing of an order among them. Where the run has exactly the expected calls, in
an order that is allowed, what is written stays where it is, and only arguments change. Checks that hold are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

from workbench.grading.grade import ArgumentVerdict, CallPairing
from workbench.suite.model import Case, derived_id
from workbench.suite.places import Place
from workbench.suite.render import Table
from workbench.suite.sameness import same
from workbench.trajectory.messages import JsonValue
from workbench.trajectory.trajectory import CallRecord, Trajectory
from workbench.tui.state.accept_checks import KEPT, CheckChoice, choices_for, kept_choices
from workbench.tui.state.form.tables import value_at, with_item, with_value, without
from workbench.tui.state.words import many

NO_CALLS: Final = "no calls at all"


class AcceptError(ValueError):
    """A run that cannot be taken as the expectation; the message says why, and what to do, in one sentence."""


@dataclass(frozen=True)
class TakenArgument:
    """An argument with the checks that could be written for it, and which one is; `given`: whether the call has it."""

    name: str
    value: JsonValue
    given: bool
    choices: tuple[CheckChoice, ...]
    chosen: int = 0
    was_expected: bool = False
    """Whether the suite has a check for it."""

    @property
    def choice(self) -> CheckChoice:
        """The check that is written."""
        return self.choices[self.chosen]


@dataclass(frozen=True)
class TakenCall:
    """A call that becomes expected. `place` is that of the expectation with which it was paired, whose other keys are
    `kept`; `answer` is the number of the model's answer it came in."""

    tool: str
    answer: int
    arguments: tuple[TakenArgument, ...]
    place: Place | None = None
    kept: Table | None = None
    lost: tuple[tuple[str, str], ...] = ()
    """What was expected of arguments, by their names, and is no more, in a few words."""

    @property
    def expectation(self) -> Table:
        """The expected call as the suite writes it. Without any check on arguments that were given, arguments do not
        matter; a call without arguments expects none."""
        args = {each.name: each.choice.written for each in self.arguments if each.choice.written is not None}
        table: Table = {"tool": self.tool, **(self.kept or {})}
        return table | {"args": args} if args or not self.arguments else table


@dataclass(frozen=True)
class Proposal:
    """What accepting would do: the calls that become expected, each with its checks, and what is dropped (places in the
    case) or added (the place at which a single call goes in). `whole`: the run's calls replace all others.
    """

    case: str
    calls: tuple[TakenCall, ...]
    whole: bool
    in_place: bool = False
    added_at: Place | None = None
    dropped: Place | None = None
    gone: tuple[str, ...] = ()
    """The tools of the calls that are expected no more, or that no calls were expected."""

    @property
    def drops(self) -> int:
        """How many expectations will no longer be there: whole calls, and what was asked of arguments."""
        left_out = sum(
            each.was_expected and each.choice.written is None for call in self.calls for each in call.arguments
        )
        return len(self.gone) + sum(len(call.lost) for call in self.calls) + left_out

    def with_other_check(self, call: int, argument: int, step: int) -> Proposal:
        """The next check of an argument, or the one before."""
        taken = self.calls[call]
        before = taken.arguments[argument]
        after = replace(before, chosen=(before.chosen + step) % len(before.choices))
        arguments = (*taken.arguments[:argument], after, *taken.arguments[argument + 1 :])
        changed = replace(taken, arguments=arguments)
        return replace(self, calls=(*self.calls[:call], changed, *self.calls[call + 1 :]))

    @property
    def said(self) -> str:
        """What was done, in words."""
        if self.dropped is not None:
            return f"{self.case}: {self.gone[0]} is no longer expected"
        if not self.whole:
            return f"{self.case}: the call of {self.calls[0].tool} accepted"
        if not self.calls:
            return f"{self.case}: accepted that nothing is called"
        return f"{self.case}: accepted {many(len(self.calls), 'call')}"

    def applied(self, table: Table) -> Table:
        """The case's table as it is once this is accepted: the same one when it says all of that already, else with its
        id written out."""
        changed, name = self._applied(table), table.get("name")
        if same(changed, table):
            return table
        return {"id": derived_id(name), **changed} if "id" not in table and isinstance(name, str) and name else changed

    def _applied(self, table: Table) -> Table:
        if self.dropped is not None:
            return without(table, self.dropped)
        if not self.calls:
            return _without_keys(table, "ordered", "unordered") | {"expect_no_calls": True}
        table = _without_keys(table, "expect_no_calls")
        if self.added_at is not None:
            return with_item(table, self.added_at, self.calls[0].expectation)
        if not self.whole or self.in_place:
            for call in self.calls:
                assert call.place is not None
                table = with_value(table, call.place, call.expectation)
            return table
        return _without_keys(table, "unordered") | {"ordered": list(_positions(self.calls))}


def accept_run(case: Case, table: Table, trajectory: Trajectory, pairings: Sequence[CallPairing]) -> Proposal:
    """Take all calls of a run. `pairings` are the grader's, of this very case. Raises AcceptError."""
    _check_case(case)
    _check_calls(trajectory.calls)
    paired = _paired(case, pairings)
    calls = tuple(
        _taken(record, table, paired.get(index) if index in paired and paired[index].pairing.same_tool else None)
        for index, record in enumerate(trajectory.calls)
    )
    met = {call.place for call in calls}
    gone = tuple(call.tool for place, call in case.placed_expected_calls() if place not in met)
    if calls and "expect_no_calls" in table:
        gone = (NO_CALLS, *gone)
    return Proposal(case.name, calls, whole=True, in_place=_is_as_expected(case, calls), gone=gone)


def accept_call(
    case: Case, table: Table, trajectory: Trajectory, pairings: Sequence[CallPairing], call: int
) -> Proposal:
    """Take one call, by its index: in place of the expectation that it was paired with, or as one more. Raises
    AcceptError."""
    _check_case(case)
    record = trajectory.calls[call]
    _check_calls([record])
    paired = _paired(case, pairings)
    if call in paired:
        expected = value_at(table, paired[call].place)
        gone = () if paired[call].pairing.same_tool or not isinstance(expected, dict) else (expected["tool"],)
        return Proposal(case.name, (_taken(record, table, paired[call]),), whole=False, gone=gone)
    key = "unordered" if case.unordered and not case.ordered else "ordered"
    index = len(case.unordered) if key == "unordered" else _position_for(call, paired, len(case.ordered))
    gone = (NO_CALLS,) if "expect_no_calls" in table else ()
    return Proposal(case.name, (_taken(record, table, None),), whole=False, added_at=(key, index), gone=gone)


def accept_missing(case: Case, expected: int) -> Proposal:
    """Take it that an expected call, by its place among the case's, was not made: it is expected no more."""
    _check_case(case)
    place, call = list(case.placed_expected_calls())[expected]
    return Proposal(case.name, (), whole=False, dropped=place, gone=(call.tool,))


@dataclass(frozen=True)
class _Pair:
    place: Place
    pairing: CallPairing


def _check_case(case: Case) -> None:
    if case.steps:
        raise AcceptError("this case is a chain, whose steps cannot run yet: write what each one expects in the form")


def _check_calls(calls: Iterable[CallRecord]) -> None:
    for record in calls:
        if record.call.problem is not None or not record.complete or not record.tool:
            what = record.tool or "a tool without a name"
            raise AcceptError(
                f"the arguments of a call of {what} are broken: run the case again, or accept other calls"
            )


def _paired(case: Case, pairings: Sequence[CallPairing]) -> dict[int, _Pair]:
    """The expectations by the calls that they were paired with."""
    places = [place for place, _ in case.placed_expected_calls()]
    return {
        pairing.call: _Pair(places[pairing.expected_call], pairing)
        for pairing in pairings
        if pairing.call is not None and pairing.expected_call is not None and pairing.expected_call < len(places)
    }


def _taken(record: CallRecord, table: Table, pair: _Pair | None) -> TakenCall:
    if pair is None or not pair.pairing.same_tool:
        fresh = tuple(_argument(name, value) for name, value in record.arguments.items())
        return TakenCall(record.tool, record.round, fresh, pair.place if pair is not None else None)
    written = value_at(table, pair.place)
    assert isinstance(written, dict)
    checks = written.get("args") or {}
    verdicts = {verdict.argument: verdict for verdict in pair.pairing.arguments}
    weight = next((check["weight"] for check in checks.values() if isinstance(check, dict) and "weight" in check), None)
    arguments: list[TakenArgument] = []
    lost: list[tuple[str, str]] = []
    for name, value in record.arguments.items():
        check = checks.get(name)
        arguments.append(_argument(name, value, check, verdicts.get(name), weight))
    for name, check in checks.items():
        verdict = verdicts.get(name)
        if name in record.arguments:
            continue
        if verdict is None or verdict.holds is not False:
            arguments.append(TakenArgument(name, None, False, kept_choices(check), was_expected=True))
        else:
            lost.append((name, CheckChoice(KEPT, check).text))
    kept = {key: value for key, value in written.items() if key not in ("tool", "args")}
    if "forbidden_args" in kept:
        lost += [(name, "must not be given") for name in kept["forbidden_args"] if name in record.arguments]
        kept["forbidden_args"] = [name for name in kept["forbidden_args"] if name not in record.arguments]
        if not kept["forbidden_args"]:
            del kept["forbidden_args"]
    return TakenCall(written["tool"], record.round, tuple(arguments), pair.place, kept, tuple(lost))


def _argument(
    name: str,
    value: JsonValue,
    check: object = None,
    verdict: ArgumentVerdict | None = None,
    weight: object = None,
) -> TakenArgument:
    """An argument that was given: its check is kept where it holds, else the new one has its weight. One without a
    check gets the `weight` of another, as either all arguments of a call have one or none has."""
    options: dict[str, object] = {}
    if isinstance(check, dict):
        options = {key: check[key] for key in ("weight", "optional") if key in check}
    if weight is not None:
        options.setdefault("weight", weight)
    kept = check if verdict is not None and verdict.holds is not False else None
    choices = choices_for(name, value, kept, options)
    # A check that holds in part is there to be taken again, but what was done is not all that it asks for.
    in_part = verdict is not None and verdict.holds and verdict.score < verdict.weight * _IN_FULL
    return TakenArgument(name, value, True, choices, 1 if in_part and len(choices) > 2 else 0, check is not None)


_IN_FULL = 1 - 1e-9


def _is_as_expected(case: Case, calls: Sequence[TakenCall]) -> bool:
    """Whether a run has exactly the expected calls, in an order that is allowed."""
    places = [call.place for call in calls]
    if None in places or len(places) != sum(1 for _ in case.expected_calls()) or not places:
        return False
    positions = [int(place[1]) for place in places if place is not None and place[0] == "ordered"]
    return positions == sorted(positions)


def _position_for(call: int, paired: Mapping[int, _Pair], count: int) -> int:
    """Where in the sequence a call belongs that is not expected: behind the expectation met before it, else before the
    one met after it, else at the end."""
    met = {index: pair.place[1] for index, pair in paired.items() if pair.place[0] == "ordered"}
    before = [int(position) for index, position in met.items() if index < call]
    after = [int(position) for index, position in met.items() if index > call]
    return max(before) + 1 if before else min(after) if after else count


def _positions(calls: Sequence[TakenCall]) -> Iterable[Table]:
    for _, answer in groupby(calls, key=lambda call: call.answer):
        expected = [call.expectation for call in answer]
        yield expected[0] if len(expected) == 1 else {"any_order": expected}


def _without_keys(table: Table, *keys: str) -> Table:
    return {key: value for key, value in table.items() if key not in keys}
