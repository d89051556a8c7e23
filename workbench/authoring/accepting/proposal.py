"""What accepting a run would change of its case, to be shown before it is done: calls, checks, and what goes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

from workbench.authoring.accepting.calls import TakenCall
from workbench.authoring.form.tables import value_at, with_item, with_value, without
from workbench.suite.model import derived_id
from workbench.suite.numerals import counted
from workbench.suite.problems import Place
from workbench.suite.render import Table
from workbench.suite.sameness import same

NO_CALLS: Final = "no calls at all"


@dataclass(frozen=True)
class Proposal:
    """What accepting would do: the calls that become expected, each with its checks, and the places in the case whose
    expectation is dropped, or at which a single call is added. `whole`: the run's calls replace all others; `in_place`:
    where they are expected.
    """

    case: str
    calls: tuple[TakenCall, ...]
    whole: bool
    in_place: bool = False
    added_at: Place | None = None
    dropped: tuple[Place, ...] = ()
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
    def only_drops(self) -> bool:
        """Whether it is no more than that a call is not expected."""
        return not self.whole and not self.calls

    @property
    def said(self) -> str:
        """What was done, in words."""
        if self.only_drops:
            return f"{self.case}: {self.gone[0]} is no longer expected"
        if not self.whole:
            return f"{self.case}: the call of {self.calls[0].tool} accepted"
        if not self.calls:
            return f"{self.case}: accepted that nothing is called"
        return f"{self.case}: accepted {counted(len(self.calls), 'call')}"

    def applied(self, table: Table) -> Table:
        """The case's table as it is once this is accepted: the same one when it says all of that already, else with its
        id written out."""
        changed, name = self._applied(table), table.get("name")
        if same(changed, table):
            return table
        return {"id": derived_id(name), **changed} if "id" not in table and isinstance(name, str) and name else changed

    def _applied(self, table: Table) -> Table:
        for place in self.dropped:
            table = _without_expectation(table, place)
        if self.whole and not self.calls and not self.in_place:
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


def _without_expectation(table: Table, place: Place) -> Table:
    """A case without an expected call; a step of a chain stays, and expects none."""
    step = value_at(table, place)
    if place[0] != "steps" or not isinstance(step, dict):
        return without(table, place)
    return with_value(table, place, _without_keys(step, "tool", "args", "forbidden_args", "only_args"))


def _positions(calls: Sequence[TakenCall]) -> Iterable[Table]:
    for _, answer in groupby(calls, key=lambda call: call.answer):
        expected = [call.expectation for call in answer]
        yield expected[0] if len(expected) == 1 else {"any_order": expected}


def _without_keys(table: Table, *keys: str) -> Table:
    return {key: value for key, value in table.items() if key not in keys}
