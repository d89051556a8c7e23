"""The changes that accepting a run makes to its case, shown before they are made."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

from workbench.authoring.expected_calls import (
    KEPT,
    AcceptedArgument,
    AcceptedCall,
    AcceptError,
    CheckChoice,
    as_expected,
    as_expected_again,
    check_calls,
)
from workbench.authoring.form.tables import value_at, with_item, with_value, without
from workbench.checks.check import EMPTY_CONTEXT, OPTION_NAMES
from workbench.checks.patterns import CheckError
from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass
from workbench.grading.critics import by_casting
from workbench.grading.grade import ArgumentVerdict, CallPairing
from workbench.grading.pairing import StepRound, rounds_of_steps
from workbench.grading.scoring import judge_arguments
from workbench.numerals import counted
from workbench.suite.model import ANY_TOOL, Case, Step, derived_id, tool_text
from workbench.suite.problems import Place
from workbench.suite.problems import written as written_place
from workbench.suite.render import Table
from workbench.suite.sameness import same
from workbench.trajectory.trajectory import CallRecord, Trajectory

NO_CALLS: Final = "no calls at all"


@dataclass(frozen=True)
class Proposal:
    """What accepting would change: the calls that become expected, and the places whose expectation is dropped or where
    a call is added. With `whole`, the run's calls replace all expected calls; with `in_place`, each stays at the place
    of its expectation."""

    case: str
    calls: tuple[AcceptedCall, ...]
    whole: bool
    in_place: bool = False
    in_order: bool = True
    """Whether the calls of a whole run have an order: that of their answers."""
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
    def summary(self) -> str:
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
        changed, name = self.expectations_in(table), table.get("name")
        if same(changed, table):
            return table
        return {"id": derived_id(name), **changed} if "id" not in table and isinstance(name, str) and name else changed

    def expectations_in(self, table: Table) -> Table:
        """Return the case's table with other expectations and nothing else changed."""
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
        if not self.in_order:
            return _without_keys(table, "ordered") | {"unordered": [call.expectation for call in self.calls]}
        return _without_keys(table, "unordered") | {"ordered": list(_positions(self.calls))}


def _without_expectation(table: Table, place: Place) -> Table:
    """Remove an expected call. A step of a chain stays and expects no call."""
    step = value_at(table, place)
    if place[0] != "steps" or not isinstance(step, dict):
        return without(table, place)
    return with_value(table, place, _without_keys(step, "tool", "args", "forbidden_args", "only_args"))


def _positions(calls: Sequence[AcceptedCall]) -> Iterable[Table]:
    for _, answer in groupby(calls, key=lambda call: call.answer):
        expected = [call.expectation for call in answer]
        yield expected[0] if len(expected) == 1 else {"any_order": expected}


def _without_keys(table: Table, *keys: str) -> Table:
    return {key: value for key, value in table.items() if key not in keys}


def accept_steps(
    case: Case, table: Table, trajectory: Trajectory, pairings: Sequence[CallPairing], only: int | None = None
) -> Proposal:
    """Accept the run of a chain, or `only` one step, counted from 1. A step without calls expects none; a step that was
    not reached stays as it is. Raises AcceptError."""
    calls: list[AcceptedCall] = []
    dropped: list[Place] = []
    gone: list[str] = []
    for number, reached in enumerate(rounds_of_steps(case, trajectory)):
        if only not in (None, number + 1) or (reached is None and only is None):
            continue
        if reached is None:
            raise AcceptError(f"step {only} was never reached")
        if reached.round.calls:
            calls.append(_taken(case, table, number, reached, pairings))
            gone += _no_longer(case, number, calls[-1])
        elif case.steps[number].tool is not None:
            dropped.append(("steps", number))
            gone += _no_longer(case, number, None)
    if only is not None and not calls and not dropped:
        raise AcceptError(f"nothing was called in step {only}, and it expects nothing")
    return Proposal(case.name, tuple(calls), only is None, in_place=True, dropped=tuple(dropped), gone=tuple(gone))


def accept_step(
    case: Case, table: Table, trajectory: Trajectory, pairings: Sequence[CallPairing], call: int
) -> Proposal:
    """Accept one call, by its index in the trajectory. It must be the first call of its step. Raises AcceptError."""
    for step, reached in enumerate(rounds_of_steps(case, trajectory), 1):
        if reached is not None and reached.round.calls and reached.first_call == call:
            return accept_steps(case, table, trajectory, pairings, step)
    raise AcceptError(
        "a step expects the first call of its answer: put the cursor on that call, or accept the run with A"
    )


def accept_step_without_call(case: Case, expected: int) -> Proposal:
    """Accept that a call was not made, by its index among the calls that the steps expect."""
    number = [number for number, step in enumerate(case.steps) if step.tool is not None][expected]
    return Proposal(case.name, (), False, dropped=(("steps", number),), gone=_no_longer(case, number, None))


def _taken(case: Case, table: Table, number: int, reached: StepRound, pairings: Sequence[CallPairing]) -> AcceptedCall:
    step, record, place = case.steps[number], reached.round.calls[0], ("steps", number)
    check_calls([record])
    written = value_at(table, place)
    assert isinstance(written, dict)
    expected = sum(earlier.tool is not None for earlier in case.steps[:number])
    pair = next((one for one in pairings if (one.expected_call, one.call) == (expected, reached.first_call)), None)
    if step.tool is None or not (pair.same_tool if pair is not None else step.tool in (ANY_TOOL, record.tool)):
        gone = ("tool", "args", "forbidden_args", "only_args")
        others = {key: value for key, value in written.items() if key not in gone}
        return as_expected(record, place, others)
    return as_expected_again(record, place, written, pair.arguments if pair is not None else _judged(step, record))


def _judged(step: Step, record: CallRecord) -> tuple[ArgumentVerdict, ...]:
    """Judge the checks of a step on a call that the grader did not pair with it."""
    try:
        return judge_arguments(
            record.tool, step.args or {}, record.arguments, equal=by_casting, context=EMPTY_CONTEXT, shared=1.0
        )
    except CheckError as error:
        raise AcceptError(f"a check of the step cannot be judged here ({error}); r runs the case again") from error


def _no_longer(case: Case, number: int, taken: AcceptedCall | None) -> tuple[str, ...]:
    """Name the tool that a step no longer expects, with the step's number."""
    tool = case.steps[number].tool
    return (
        ()
        if tool is None or (taken is not None and taken.tool == tool)
        else (f"{tool_text(tool)} in step {number + 1}",)
    )


# Keeps secrets out of what the program writes into a suite from a run or a call. A check on a value that contains a
# secret only asks that the argument is given: `$NAME` in its place would expect a different value. Text that is
# already in the suite stays as it is.

_CHECKS = ("args", "when")


def proposal_without_secrets(proposal: Proposal, secrets: Secrets) -> Proposal:
    """Return a proposal without secrets, except those already in the suite. Raises AcceptError if a tool's name
    contains one."""
    return replace(proposal, calls=tuple(_call(call, secrets) for call in proposal.calls))


def table_without_secrets(table: Table, before: Table, secrets: Secrets) -> Table:
    """Return a case that is safe to write; `before` is its present table. Secrets outside of checks become `$NAME`.
    Raises ValueError if a tool's name contains a secret."""
    if secrets.redacted(table) is table:
        return table
    written = {_text(value) for value in _all_values(before)}
    cleaned = _cleaned(table, written, secrets)
    assert isinstance(cleaned, dict)
    return cleaned


def places_without_secrets(before: object, after: object, place: Place = ()) -> Iterator[str]:
    """Yield what `table_without_secrets` did to a table: each place, and whether it is a check or a text."""
    if before == after:
        return
    if _is_present(after):
        yield f"{written_place(place)} holds a secret: checked only for `present = true`"
        return
    pairs: Iterable[tuple[str | int, object, object]]
    if isinstance(before, dict) and isinstance(after, dict) and len(before) == len(after):
        pairs = ((name, old, new) for name, old, new in zip(after, before.values(), after.values(), strict=True))
    elif isinstance(before, list) and isinstance(after, list):
        pairs = ((index, old, new) for index, (old, new) in enumerate(zip(before, after, strict=True)))
    else:
        yield f"{written_place(place)} holds a secret: replaced"
        return
    for step, old, new in pairs:
        yield from places_without_secrets(old, new, (*place, step))


def _call(call: AcceptedCall, secrets: Secrets) -> AcceptedCall:
    _check_name(call.tool, secrets)
    named = (each for each in call.arguments if each.was_expected or secrets.redact(each.name) is each.name)
    return replace(call, arguments=tuple(_argument(each, secrets) for each in named))


def _argument(argument: AcceptedArgument, secrets: Secrets) -> AcceptedArgument:
    choices = tuple(
        choice
        for choice in argument.choices
        if choice.kind == KEPT or secrets.redacted(choice.written) is choice.written
    )
    if len(choices) == len(argument.choices):
        return argument
    if choices[0].kind != KEPT and not any(_is_present(choice.written) for choice in choices):
        choices = (CheckChoice("present", _present(argument.choices[0].written)), *choices)
    return replace(argument, choices=choices, chosen=0)


def _cleaned(value: object, written: set[str], secrets: Secrets) -> object:
    shown = secrets.redacted(value)
    if shown is value or _text(value) in written:
        return value
    if isinstance(value, list):
        return [_cleaned(item, written, secrets) for item in value]
    if not isinstance(value, dict):
        return shown
    if isinstance(tool := value.get("tool"), str):
        _check_name(tool, secrets)
    return {
        name if _text(name) in written else secrets.redact(name): _cleaned_item(name, item, written, secrets)
        for name, item in value.items()
    }


def _cleaned_item(name: str, item: object, written: set[str], secrets: Secrets) -> object:
    if name not in _CHECKS or not isinstance(item, dict):
        return _cleaned(item, written, secrets)
    return {
        argument: check if secrets.redacted(check) is check or _text(check) in written else _present(check)
        for argument, check in item.items()
        if _text(argument) in written or secrets.redact(argument) is argument
    }


def _present(check: object) -> Table:
    options = {key: check[key] for key in sorted(OPTION_NAMES) if key in check} if isinstance(check, dict) else {}
    return {"present": True, **options}


def _is_present(check: object) -> bool:
    return isinstance(check, dict) and check.get("present") is True


def _check_name(tool: str, secrets: Secrets) -> None:
    if secrets.redact(tool) is not tool:
        raise AcceptError(
            f"the name of the tool {secrets.redact(tool)} contains a secret, which must not go into a suite"
        )


def _all_values(value: object) -> Iterator[object]:
    yield value
    if isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from _all_values(item)
    elif isinstance(value, list):
        for item in value:
            yield from _all_values(item)


def _text(value: object) -> str:
    return json.dumps(value, default=str, sort_keys=True)
