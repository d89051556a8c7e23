"""The changes that accepting a run makes to its case, shown before they are made: calls, checks, and what is
dropped.
"""

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
    """What accepting would change: the calls that become expected, and the places whose expectation is dropped or where
    a call is added. With `whole`, the run's calls replace all expected calls; with `in_place`, each stays at the place
    of its expectation."""

    case: str
    calls: tuple[TakenCall, ...]
    whole: bool
    in_place: bool = False
    added_at: Place | None = None
    dropped: tuple[Place, ...] = ()
    gone: tuple[str, ...] = ()
    """The tools of calls that are no longer expected, or `NO_CALLS`."""

    @property
    def drops(self) -> int:
        """The number of expectations that disappear: whole calls and checks of arguments."""
        left_out = sum(
            each.was_expected and each.choice.written is None for call in self.calls for each in call.arguments
        )
        return len(self.gone) + sum(len(call.lost) for call in self.calls) + left_out

    def with_other_check(self, call: int, argument: int, step: int) -> Proposal:
        """Select the next (`step` 1) or previous (-1) check of an argument."""
        taken = self.calls[call]
        before = taken.arguments[argument]
        after = replace(before, chosen=(before.chosen + step) % len(before.choices))
        arguments = (*taken.arguments[:argument], after, *taken.arguments[argument + 1 :])
        changed = replace(taken, arguments=arguments)
        return replace(self, calls=(*self.calls[:call], changed, *self.calls[call + 1 :]))

    @property
    def only_drops(self) -> bool:
        """Whether accepting only drops an expected call."""
        return not self.whole and not self.calls

    @property
    def said(self) -> str:
        """Describe the change in words."""
        if self.only_drops:
            return f"{self.case}: {self.gone[0]} is no longer expected"
        if not self.whole:
            return f"{self.case}: the call of {self.calls[0].tool} accepted"
        if not self.calls:
            return f"{self.case}: accepted that no tool is called"
        return f"{self.case}: accepted {counted(len(self.calls), 'call')}"

    def applied(self, table: Table) -> Table:
        """Return the case's table with this change. Returns the same object when nothing changes; otherwise the id is
        written out."""
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
    """Remove an expected call. A step of a chain stays and expects no call."""
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
