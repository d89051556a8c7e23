"""The change that is proposed for a case when a run of it is accepted.

The run's calls become expected calls, and each argument has a choice of checks."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

from workbench.authoring.form.cells import COMMON_CHECK_KEYS, as_argument, looks_like_check
from workbench.authoring.form.field_text import (
    items_at,
    only_keys,
    value_at,
    with_item,
    with_value,
    without,
    without_keys,
)
from workbench.checks.check import EMPTY_CONTEXT, check_name, describe, read_check
from workbench.checks.patterns import CheckError
from workbench.checks.values import json_equal, read_timestamp
from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass
from workbench.grading.critics import equals_by_casting, judge
from workbench.grading.grade import ArgumentVerdict, CallPairing
from workbench.grading.matching import StepRound, rounds_of_steps
from workbench.grading.scoring import judge_arguments
from workbench.numerals import counted
from workbench.suite.expected_calls import ANY_TOOL, ExpectedCall
from workbench.suite.model import Case, Step, derived_id
from workbench.suite.problems import Place
from workbench.suite.problems import place_text as written_place
from workbench.suite.render import Table, one_line
from workbench.suite.toml_equality import toml_equal
from workbench.trajectory.events import JsonValue
from workbench.trajectory.trajectory import CallRecord, Trajectory


class AcceptError(ValueError):
    """Raised if a run cannot become the expectation of its case.

    The message gives the reason and the remedy in one sentence."""


@dataclass(frozen=True)
class AcceptedArgument:
    """An argument of a call that becomes expected, with its possible checks.

    `chosen` is the index of the selected check. `given` is whether the call has the argument."""

    name: str
    value: JsonValue
    given: bool
    choices: tuple[CheckChoice, ...]
    chosen: int = 0
    was_expected: bool = False
    """Whether the suite already has a check for the argument."""

    @property
    def choice(self) -> CheckChoice:
        return self.choices[self.chosen]

    @property
    def is_left_out(self) -> bool:
        return self.choice.written is None


@dataclass(frozen=True)
class AcceptedCall:
    """A call of a run that becomes expected.

    `place` is where the case had the expectation that the grader paired with the call. `other_keys` are the keys of
    that expectation except tool and arguments. `answer` is the number of the model's answer that contains the call."""

    tool: str
    answer: int
    arguments: tuple[AcceptedArgument, ...]
    place: Place | None = None
    other_keys: Table | None = None
    dropped: tuple[tuple[str, str], ...] = ()
    """The dropped expectations on arguments: each name, with a few words about it."""

    @property
    def argument_names(self) -> list[str]:
        """The names of the expected arguments, then the names of arguments whose expectations are dropped."""
        names = [each.name for each in self.arguments]
        names += (name for name, _ in self.dropped)
        return names

    @property
    def step(self) -> int | None:
        """The step of a chain, from 1, that expects the call."""
        if self.place is None or self.place[0] != "steps":
            return None
        return int(self.place[1]) + 1

    @property
    def expectation(self) -> Table:
        """The expected call as written in a suite.

        If the call has arguments, but none has a check, any arguments are allowed. If it has no arguments, none are
        allowed."""
        args = {}
        for each in self.arguments:
            if each.choice.written is not None:
                args[each.name] = each.choice.written
        call: Table = {"tool": self.tool}
        if args or not self.arguments:
            call["args"] = args
        other_keys = dict(self.other_keys or {})
        if any(each.given and each.is_left_out for each in self.arguments):
            other_keys.pop("only_args", None)
        if self.step is not None:  # in a step, the message comes first
            return {**other_keys, **call}
        return {**call, **other_keys}


def check_calls(calls: Iterable[CallRecord]) -> None:
    """Raise AcceptError if a suite cannot express one of these calls."""
    for record in calls:
        if record.call.problem is not None or not record.complete or not record.tool:
            what = record.tool or "a tool without a name"
            raise AcceptError(
                f"the arguments of a call of {what} are broken: run the case again, or accept other calls"
            )


def expect_call(record: CallRecord, place: Place | None = None, other_keys: Table | None = None) -> AcceptedCall:
    """Build the expectation of a call that was unexpected, or that was made in place of another tool's call.

    `place` is where the new expectation goes. `other_keys` are the keys to keep at this place."""
    arguments = tuple(_expected_argument(name, value) for name, value in record.arguments.items())
    return AcceptedCall(record.tool, record.round, arguments, place, other_keys)


def update_expectation(
    record: CallRecord, place: Place, written: Table, verdicts: Sequence[ArgumentVerdict]
) -> AcceptedCall:
    """Build the new expectation of a call whose tool was expected.

    `written` is the expectation that the case has now. `verdicts` are the grader's verdicts on its arguments."""
    raw = written.get("args")
    checks = _table(raw)
    by_name = {verdict.argument: verdict for verdict in verdicts}
    weight = _weight_in(checks)
    arguments = []
    for name, value in record.arguments.items():
        arguments.append(_expected_argument(name, value, checks.get(name), by_name.get(name), weight))
    lost: list[tuple[str, str]] = []
    for name, check in checks.items():
        if name in record.arguments:
            continue
        verdict = by_name.get(name)
        if verdict is None or verdict.holds is not False:
            arguments.append(AcceptedArgument(name, None, False, unchanged_choices(check), was_expected=True))
        else:
            lost.append((name, CheckChoice(KEEP_CHECK, check).text))
    if written["tool"] == ANY_TOOL and raw is None:
        # The expectation allowed any tool, so it had no checks for the arguments. An argument is left out unless the
        # user chooses a check for it.
        arguments = [replace(each, chosen=len(each.choices) - 1) for each in arguments]
    if written.get("only_args"):
        for name in record.arguments:
            if name not in checks:
                lost.append((name, _NOT_GIVEN))
    other_keys = without_keys(written, "tool", "args", "forbidden_args")
    left: list[object] = []
    for forbidden in items_at(written, ("forbidden_args",)):
        if forbidden in record.arguments:
            lost.append((str(forbidden), _NOT_GIVEN))
        else:
            left.append(forbidden)
    if left:
        other_keys["forbidden_args"] = left
    return AcceptedCall(str(written["tool"]), record.round, tuple(arguments), place, other_keys, tuple(lost))


def alternative_place(expected: ExpectedCall, place: Place, tool: str | None) -> Place:
    """Return the place of the alternative of an expected call that accepts this tool, or `place` if none accepts it."""
    for number, alternative in enumerate(expected.any_of):
        if tool is not None and alternative.may_be_call_of(tool):
            return (*place, "any_of", number)
    return place


_NOT_GIVEN = "must not be given"


def _table(value: object) -> Table:
    return value if isinstance(value, dict) else {}


def _weight_in(checks: Mapping[str, object]) -> object:
    for check in checks.values():
        if isinstance(check, dict) and "weight" in check:
            return check["weight"]
    return None


def merged_call(
    calls: Sequence[AcceptedCall],
    table: Table,
    answer: int,
    enumerated: Callable[[str], bool],
    *,
    lists_all: bool,
) -> AcceptedCall:
    """Build one expectation for a call that several runs made.

    `calls` has the call from the proposal of each run. A check is kept if all proposals keep it. Arguments that only
    some runs gave are left out. With `lists_all`, they become optional instead, for graders that count unlisted
    arguments as wrong. `table` is the case."""
    first, place = calls[0], calls[0].place
    if len(set(places_of(calls))) > 1:
        place = None
    checks: Table = {}
    others: list[Table] = [{}]
    if place is not None:
        others = [call.other_keys or {} for call in calls]
        written = _table(value_at(table, place))
        if written.get("tool") == first.tool:
            checks = _table(written.get("args"))
    by_name: dict[str, list[AcceptedArgument]] = {}
    for call in calls:
        for each in call.arguments:
            by_name.setdefault(each.name, []).append(each)
    arguments = []
    for name, found in by_name.items():
        in_all = len(found) == len(calls)
        always = in_all and all(each.given for each in found)
        kept = in_all and place is not None and all(each.choice.kind == KEEP_CHECK for each in found)
        options = _options_of(checks.get(name), _weight_in(checks))
        arguments.append(
            _merged_argument(found, options, always=always, kept=kept, enumerated=enumerated(name), lists_all=lists_all)
        )
    # Keys other than `args`, such as `only_args`, are kept if they are equal in all proposals.
    other_keys: Table = {}
    for key, value in others[0].items():
        if all(each.get(key) == value for each in others):
            other_keys[key] = value
    forbidden: list[object] = []
    for argument in items_at(others[0], ("forbidden_args",)):
        if _in_all(argument, others):
            forbidden.append(argument)
    if forbidden:
        other_keys["forbidden_args"] = forbidden
    # Several proposals may drop the same expectation, which is listed once.
    lost: dict[tuple[str, str], None] = {}
    for call in calls:
        lost |= dict.fromkeys(call.dropped)
    return AcceptedCall(first.tool, answer, tuple(arguments), place, other_keys, tuple(lost))


def places_of(calls: Iterable[AcceptedCall]) -> list[Place | None]:
    return [call.place for call in calls]


def _in_all(name: object, tables: Iterable[Table]) -> bool:
    return all(name in items_at(table, ("forbidden_args",)) for table in tables)


def _merged_argument(
    found: Sequence[AcceptedArgument],
    options: Mapping[str, object],
    *,
    always: bool,
    kept: bool,
    enumerated: bool,
    lists_all: bool,
) -> AcceptedArgument:
    given = [each for each in found if each.given]
    first = (given or found)[0]
    was_expected = any(each.was_expected for each in found)
    own_check = first.choice.written if kept else None
    if all(each.is_left_out for each in found) or not (given or kept):
        choices: tuple[CheckChoice, ...] = (CheckChoice(LEAVE_OUT),)
    elif not given:
        choices = unchanged_choices(own_check)
    elif kept or always or lists_all:
        if not (kept or always):
            options = {**options, "optional": True}
        others = [each.value for each in given[1:]]
        choices = choices_for(first.name, first.value, own_check, options, others=others, enumerated=enumerated)
    else:
        choices = (CheckChoice(LEAVE_OUT),)
    return AcceptedArgument(first.name, first.value, bool(given), choices, was_expected=was_expected)


def _expected_argument(
    name: str,
    value: JsonValue,
    check: object = None,
    verdict: ArgumentVerdict | None = None,
    weight: object = None,
) -> AcceptedArgument:
    """Build the possible checks of an argument.

    If the argument's check passed, it is kept. Otherwise, the new check gets the weight of the failed check. If the
    argument had no check, the new check gets `weight`, because either all arguments of a call have weights or none."""
    options = _options_of(check, weight)
    # `workbench init` writes the check `present` if it knows no value. The value in the run then makes a better check.
    if check == {"present": True}:
        choices = choices_for(name, value, check, options)
        return AcceptedArgument(name, value, True, choices, int(len(choices) > 2), was_expected=True)
    own_check = check if verdict is not None and verdict.holds is not False else None
    choices = choices_for(name, value, own_check, options)
    # If the check passed only in part, it is offered, but another check is selected.
    in_part = verdict is not None and bool(verdict.holds) and verdict.score < verdict.weight * _IN_FULL
    chosen = int(in_part and len(choices) > 2)
    return AcceptedArgument(name, value, True, choices, chosen, was_expected=check is not None)


def _options_of(check: object, weight: object) -> dict[str, object]:
    options: dict[str, object] = {}
    if isinstance(check, dict):
        options = only_keys(check, COMMON_CHECK_KEYS)
    if weight is not None:
        options.setdefault("weight", weight)
    return options


_IN_FULL = 1 - 1e-9


KEEP_CHECK: Final = "as written"
LEAVE_OUT: Final = "leave out"
_MAX_NUMBER = 1e15
"""The largest number that files hold without losing digits."""


@dataclass(frozen=True, slots=True)
class CheckChoice:
    """A possible expectation for an argument: its name, and the value to write into the suite.

    The value `None` means that nothing is written."""

    kind: str
    written: object = None

    @property
    def text(self) -> str:
        if self.written is None:
            return ""
        return describe(read_check(self.written))


def choices_for(
    name: str,
    value: JsonValue,
    own_check: object = None,
    options: Mapping[str, object] | None = None,
    *,
    others: Sequence[JsonValue] = (),
    enumerated: bool = False,
) -> tuple[CheckChoice, ...]:
    """Return the possible checks for an argument with this value, the preferred check first.

    The preferred check is the check in the suite (`KEEP_CHECK`), or else the exact value if TOML can express it. New
    checks get `options`, such as a weight. They must also pass for `others`, the argument's values in other runs.
    `enumerated` is whether the tool's schema lists the possible values."""
    found: list[CheckChoice] = []
    if own_check is not None:
        found.append(CheckChoice(KEEP_CHECK, own_check))
    values = (value, *others)
    if any(not json_equal(value, other) for other in others):
        checks = _checks_for_several(values, enumerated)
    else:
        checks = _checks_for(value)
    for kind, written in checks:
        with_options = {**_explicit(written), **options} if options else as_argument(name, written)
        # Each check is written, read and evaluated, because writing may change a value, for example text into a date.
        if _can_be_written(with_options) and all(_is_met(with_options, each) for each in values):
            found.append(CheckChoice(kind, with_options))
    return (*found, CheckChoice(LEAVE_OUT))


def unchanged_choices(own_check: object) -> tuple[CheckChoice, ...]:
    """Return the choices for an optional argument that the call did not have: keep the check, or leave it out."""
    return CheckChoice(KEEP_CHECK, own_check), CheckChoice(LEAVE_OUT)


def _checks_for(value: JsonValue) -> Iterator[tuple[str, object]]:
    if value is None:
        yield "exact", {"equals_null": True}
    elif looks_like_check(value):
        yield "exact", {"equals": value}
    else:
        yield "exact", value
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _MAX_NUMBER:
        around = float(f"{abs(value) / 10 or 0.1:.2g}")  # a tenth of the value, with two digits
        if isinstance(value, int):
            around = max(1, round(abs(value) / 10))
        yield "near", {"near": value, "tolerance": around}
        yield "range", {"range": [_rounded(value - around), _rounded(value + around)]}
    if isinstance(value, str):
        yield "similar", {"similar": value}
        yield "contains", {"contains": value}
        if _is_moment(value):
            yield "datetime", {"datetime": value}
    yield "present", {"present": True}


MAX_LISTED_VALUES: Final = 3
"""The maximum number of values in a check that lists them. Values that are all different count as free text and are not
listed."""


def _checks_for_several(values: Sequence[JsonValue], enumerated: bool) -> Iterator[tuple[str, object]]:
    different: list[JsonValue] = []
    for value in values:
        if not any(json_equal(value, other) for other in different):
            different.append(value)
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if enumerated:
        yield "one of", {"one_of": different}
    elif len(numbers) == len(values):
        if all(abs(number) < _MAX_NUMBER for number in numbers):
            yield "range", {"range": [min(numbers), max(numbers)]}
    elif len(different) <= MAX_LISTED_VALUES and len(different) < len(values):
        yield "one of", {"one_of": different}
    yield "present", {"present": True}


def _explicit(written: object) -> dict[str, object]:
    if isinstance(written, dict) and check_name(written):
        return dict(written)
    return {"equals": written}


def _rounded(number: float) -> float:
    if isinstance(number, int):
        return number
    return float(f"{number:.10g}")


def _is_moment(text: str) -> bool:
    try:
        read_timestamp(text)
    except (ValueError, OverflowError):
        return False
    # Without a digit, a word such as "may" or "sun" would be parsed as a time.
    return any(map(str.isdigit, text))


def _can_be_written(written: object) -> bool:
    try:
        one_line(written)
        json.dumps(written, allow_nan=False)  # raises for infinity and NaN, which cannot be an expected value
    except (ValueError, RecursionError):
        return False
    return True


def _is_met(written: object, value: JsonValue) -> bool:
    """Return whether a check, once written into a suite and read again, passes with full score for the value."""
    try:
        verdict = judge(read_check(written), value, True, arcade_compatible=False)
    except (ValueError, RecursionError, CheckError):
        return False
    return verdict.holds and math.isclose(verdict.score, 1.0)


NO_CALLS: Final = "no calls at all"


@dataclass(frozen=True)
class Proposal:
    """A proposed change of a case: calls that become expected, and expectations that are dropped or added.

    If `whole` is set, the calls of the run replace all expected calls. If `in_place` is set, each call stays at the
    place of its expectation."""

    case: str
    calls: tuple[AcceptedCall, ...]
    whole: bool
    in_place: bool = False
    in_order: bool = True
    """Whether the calls of a whole run are expected in the order of their answers."""
    added_at: Place | None = None
    dropped: tuple[Place, ...] = ()
    dropped_tools: tuple[str, ...] = ()
    """The tools of calls that are no longer expected, or `NO_CALLS`."""

    @property
    def dropped_count(self) -> int:
        """The number of expectations that the change drops, counting both calls and checks of arguments."""
        dropped = len(self.dropped_tools)
        for call in self.calls:
            dropped += len(call.dropped)
            dropped += sum(each.was_expected and each.is_left_out for each in call.arguments)
        return dropped

    def with_other_check(self, call: int, argument: int, step: int) -> Proposal:
        """Select the next (`step` 1) or previous (-1) check of an argument."""
        taken = self.calls[call]
        before = taken.arguments[argument]
        after = replace(before, chosen=(before.chosen + step) % len(before.choices))
        arguments = (*taken.arguments[:argument], after, *taken.arguments[argument + 1 :])
        changed = replace(taken, arguments=arguments)
        return replace(self, calls=(*self.calls[:call], changed, *self.calls[call + 1 :]))

    def has_any_order(self, call: AcceptedCall) -> bool:
        """Return whether a call becomes expected in any order together with the other calls of its answer."""
        if not self.whole or self.in_place:
            return False
        return sum(other.answer == call.answer for other in self.calls) > 1

    @property
    def only_removes(self) -> bool:
        """Whether the proposal only removes an expected call."""
        return not self.whole and not self.calls

    @property
    def summary(self) -> str:
        if self.only_removes:
            return f"{self.case}: {self.dropped_tools[0]} is no longer expected"
        if not self.whole:
            return f"{self.case}: the call of {self.calls[0].tool} accepted"
        if not self.calls:
            return f"{self.case}: accepted that no tool is called"
        return f"{self.case}: accepted {counted(len(self.calls), 'call')}"

    def applied(self, table: Table) -> Table:
        """Return the case's table after the change.

        If nothing changes, return the same object. Otherwise the table contains the id, so that the case keeps its
        history even if its name changes."""
        changed, name = self.expectations_in(table), table.get("name")
        if toml_equal(changed, table):
            return table
        if "id" in table or not isinstance(name, str) or not name:
            return changed
        return {"id": derived_id(name), **changed}

    def expectations_in(self, table: Table) -> Table:
        """Return the case's table after the change, but without adding the id."""
        for place in self.dropped:
            table = _without_expectation(table, place)
        if self.whole and not self.calls and not self.in_place:
            return without_keys(table, "ordered", "unordered") | {"expect_no_calls": True}
        table = without_keys(table, "expect_no_calls")
        if self.added_at is not None:
            return with_item(table, self.added_at, self.calls[0].expectation)
        if not self.whole or self.in_place:
            for call in self.calls:
                assert call.place is not None
                table = with_value(table, call.place, call.expectation)
            return table
        if not self.in_order:
            return without_keys(table, "ordered") | {"unordered": _expectations(self.calls)}
        return without_keys(table, "unordered") | {"ordered": list(_positions(self.calls))}


def _without_expectation(table: Table, place: Place) -> Table:
    """Remove an expected call. In a chain, its step stays and expects no call."""
    step = value_at(table, place)
    if place[0] != "steps" or not isinstance(step, dict):
        return without(table, place)
    return with_value(table, place, without_keys(step, *_CALL_KEYS, "result", "is_error", "because"))


_CALL_KEYS = ("tool", "args", "forbidden_args", "only_args", "any_of")
"""The keys of a step's call."""


def _positions(calls: Sequence[AcceptedCall]) -> Iterable[Table]:
    for _, answer in groupby(calls, key=lambda call: call.answer):
        # Calls that the model made in one answer may be made in any order.
        expected = _expectations(answer)
        yield expected[0] if len(expected) == 1 else {"any_order": expected}


def _expectations(calls: Iterable[AcceptedCall]) -> list[Table]:
    return [call.expectation for call in calls]


def accept_steps(
    case: Case, table: Table, trajectory: Trajectory, pairings: Sequence[CallPairing], only: int | None = None
) -> Proposal:
    """Propose to accept the run of a chain, or one step of it (`only`, from 1).

    A step in which the run made no call expects no call afterwards. A step that the run did not reach is unchanged.
    Raises AcceptError if there is nothing to accept."""
    calls: list[AcceptedCall] = []
    dropped: list[Place] = []
    gone: list[str] = []
    for number, reached in enumerate(rounds_of_steps(case, trajectory)):
        if only not in (None, number + 1) or (reached is None and only is None):
            continue
        if reached is None:
            raise AcceptError(f"step {only} was never reached, so it has no calls to accept")
        if reached.round.calls:
            calls.append(_taken(case, table, number, reached, pairings))
            gone += _no_longer(case, number, calls[-1])
        elif case.steps[number].expects_call:
            dropped.append(("steps", number))
            gone += _no_longer(case, number, None)
    if only is not None and not calls and not dropped:
        raise AcceptError(f"nothing was called in step {only}, and it expects nothing: there is nothing to accept")
    whole = only is None
    return Proposal(case.name, tuple(calls), whole, in_place=True, dropped=tuple(dropped), dropped_tools=tuple(gone))


def accept_step(
    case: Case, table: Table, trajectory: Trajectory, pairings: Sequence[CallPairing], call: int
) -> Proposal:
    """Propose to accept one call in a chain, by its index in the trajectory.

    Raises AcceptError unless it is the first call of its step."""
    for step, reached in enumerate(rounds_of_steps(case, trajectory), 1):
        if reached is not None and reached.round.calls and reached.first_call == call:
            return accept_steps(case, table, trajectory, pairings, step)
    raise AcceptError("a step expects only the first call of an answer: put the cursor there, or accept the run with A")


def accept_step_without_call(case: Case, expected: int) -> Proposal:
    """Propose that a step of a chain expects no call, because the run did not make it.

    `expected` is the index of the call among the expected calls of all steps."""
    calling = [number for number, step in enumerate(case.steps) if step.expects_call]
    number = calling[expected]
    return Proposal(case.name, (), False, dropped=(("steps", number),), dropped_tools=_no_longer(case, number, None))


def _taken(case: Case, table: Table, number: int, reached: StepRound, pairings: Sequence[CallPairing]) -> AcceptedCall:
    step, record = case.steps[number], reached.round.calls[0]
    place: Place = ("steps", number)
    check_calls([record])
    written = value_at(table, place)
    assert isinstance(written, dict)
    # The grader numbers only those steps that expect a call.
    expected = sum(earlier.expects_call for earlier in case.steps[:number])
    wanted = step.expected_call
    alternatives = () if wanted is None else wanted.alternatives
    same_tool, verdicts = any(each.tool in (ANY_TOOL, record.tool) for each in alternatives), None
    for pairing in pairings:
        if (pairing.expected_call, pairing.call) == (expected, reached.first_call):
            same_tool, verdicts = pairing.same_tool, pairing.arguments
            break
    if wanted is None or not same_tool:
        return expect_call(record, place, without_keys(written, *_CALL_KEYS))
    if wanted.any_of:
        at = alternative_place(wanted, place, record.tool)
        alternative = value_at(table, at)
        assert isinstance(alternative, dict)
        return update_expectation(record, at, alternative, verdicts or ())
    if verdicts is None:
        verdicts = _judged(step, record)
    return update_expectation(record, place, written, verdicts)


def _judged(step: Step, record: CallRecord) -> tuple[ArgumentVerdict, ...]:
    try:
        return judge_arguments(
            record.tool, step.args or {}, record.arguments, equal=equals_by_casting, context=EMPTY_CONTEXT, shared=1.0
        )
    except CheckError as error:
        why = f"a check of the step cannot be evaluated here ({error}); press r to run the case again"
        raise AcceptError(why) from error


def _no_longer(case: Case, number: int, taken: AcceptedCall | None) -> tuple[str, ...]:
    expected = case.steps[number].expected_call
    if expected is None or (taken is not None and taken.tool in [each.tool for each in expected.alternatives]):
        return ()
    return (f"{expected.tool_text} in step {number + 1}",)


# Text of a run must not bring secrets into a suite. If a check would have a secret as its value, the check becomes
# `present`, because the replacement `$NAME` would be another value. Secrets that the suite already contains stay.

_CHECKS = ("args", "when")


def proposal_without_secrets(proposal: Proposal, secrets: Secrets) -> Proposal:
    """Return a proposal without secrets, except for secrets that the suite already contains.

    Raises AcceptError if the name of a tool contains a secret."""
    return replace(proposal, calls=tuple(_call(call, secrets) for call in proposal.calls))


def table_without_secrets(table: Table, before: Table, secrets: Secrets) -> Table:
    """Return a case's table without secrets. `before` is its present table.

    A check with a secret is replaced by `present = true`. Other secrets become `$NAME`. Raises ValueError if the name
    of a tool contains a secret."""
    if secrets.redacted(table) is table:
        return table
    written = {_text(value) for value in _all_values(before)}
    cleaned = _cleaned(table, written, secrets)
    assert isinstance(cleaned, dict)
    return cleaned


def places_without_secrets(before: object, after: object, place: Place = ()) -> Iterator[str]:
    """Yield a sentence for each change that `table_without_secrets` made, with its place."""
    if before == after:
        return
    if _is_present(after):
        yield f"{written_place(place)} holds a secret, so only `present = true` is checked"
        return
    pairs: Iterable[tuple[str | int, object, object]]
    if isinstance(before, dict) and isinstance(after, dict) and len(before) == len(after):
        # Keys are paired by position, because a key that contains a secret is replaced, too.
        pairs = zip(after, before.values(), after.values(), strict=True)
    elif isinstance(before, list) and isinstance(after, list):
        pairs = zip(range(len(after)), before, after, strict=True)
    else:
        yield f"{written_place(place)} held a secret, which was replaced"
        return
    for step, old, new in pairs:
        yield from places_without_secrets(old, new, (*place, step))


def _call(call: AcceptedCall, secrets: Secrets) -> AcceptedCall:
    _check_name(call.tool, secrets)
    arguments: list[AcceptedArgument] = []
    # An argument whose name contains a secret is left out, unless the suite already has the argument.
    for each in call.arguments:
        if each.was_expected or secrets.redact(each.name) is each.name:
            arguments.append(_argument(each, secrets))
    return replace(call, arguments=tuple(arguments))


def _argument(argument: AcceptedArgument, secrets: Secrets) -> AcceptedArgument:
    choices: tuple[CheckChoice, ...] = ()
    for choice in argument.choices:
        # `redacted` returns the same object for a value without secrets.
        if choice.kind == KEEP_CHECK or secrets.redacted(choice.written) is choice.written:
            choices = (*choices, choice)
    if len(choices) == len(argument.choices):
        return argument
    # If no check is left, the argument is expected to be present.
    if choices[0].kind != KEEP_CHECK and not any(_is_present(choice.written) for choice in choices):
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
    cleaned: Table = {}
    for name, item in value.items():
        kept = name if _text(name) in written else secrets.redact(name)
        cleaned[kept] = _cleaned_item(name, item, written, secrets)
    return cleaned


def _cleaned_item(name: str, item: object, written: set[str], secrets: Secrets) -> object:
    if name not in _CHECKS or not isinstance(item, dict):
        return _cleaned(item, written, secrets)
    cleaned: Table = {}
    for argument, check in item.items():
        if _text(argument) not in written and secrets.redact(argument) is not argument:
            continue
        is_safe = secrets.redacted(check) is check or _text(check) in written
        cleaned[argument] = check if is_safe else _present(check)
    return cleaned


def _present(check: object) -> Table:
    return {"present": True} | only_keys(_table(check), ("weight", "optional", "required"))


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
