"""Turns calls of a run into expected calls, with the checks that are possible for each argument."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from workbench.authoring.form.cells import OF_EVERY_CHECK, as_argument
from workbench.authoring.form.tables import items_at, value_at
from workbench.checks.check import CHECK_CLASSES, OPTION_NAMES, check_name, describe, read_check
from workbench.checks.patterns import CheckError
from workbench.checks.values import json_equal, read_timestamp
from workbench.dataclasses import dataclass
from workbench.grading.critics import judge
from workbench.grading.grade import ArgumentVerdict
from workbench.suite.model import ANY_TOOL
from workbench.suite.problems import Place
from workbench.suite.render import Table, one_line
from workbench.trajectory.events import JsonValue
from workbench.trajectory.trajectory import CallRecord


class AcceptError(ValueError):
    """Raised when a run cannot become the expectation. The message says why and what to do, in one sentence."""


@dataclass(frozen=True)
class AcceptedArgument:
    """An argument and the checks that could be written for it. `chosen` is the selected check; `given` is false for an
    argument that the call does not have."""

    name: str
    value: JsonValue
    given: bool
    choices: tuple[CheckChoice, ...]
    chosen: int = 0
    was_expected: bool = False
    """Whether the suite already has a check for it."""

    @property
    def choice(self) -> CheckChoice:
        """The selected check."""
        return self.choices[self.chosen]


@dataclass(frozen=True)
class AcceptedCall:
    """A call that becomes expected. `place` is where the expectation it was paired with stands, whose other keys are
    `kept`. `answer` is the number of the model's answer that contains the call."""

    tool: str
    answer: int
    arguments: tuple[AcceptedArgument, ...]
    place: Place | None = None
    other_keys: Table | None = None
    lost: tuple[tuple[str, str], ...] = ()
    """Expectations on arguments that are dropped: their names, each with a few words."""

    @property
    def step(self) -> int | None:
        """The step of a chain, from 1, that expects the call."""
        place = self.place
        return int(place[1]) + 1 if place is not None and place[0] == "steps" else None

    @property
    def expectation(self) -> Table:
        """The expected call as the suite writes it. If given arguments have no check at all, arguments do not matter. A
        call without arguments expects none."""
        args = {each.name: each.choice.written for each in self.arguments if each.choice.written is not None}
        call: Table = {"tool": self.tool}
        if args or not self.arguments:
            call["args"] = args
        other_keys = dict(self.other_keys or {})
        if any(each.given and each.choice.written is None for each in self.arguments):
            other_keys.pop("only_args", None)
        return {**other_keys, **call} if self.step is not None else {**call, **other_keys}


def check_calls(calls: Iterable[CallRecord]) -> None:
    """Raise AcceptError if a suite cannot expect one of these calls."""
    for record in calls:
        if record.call.problem is not None or not record.complete or not record.tool:
            what = record.tool or "a tool without a name"
            raise AcceptError(
                f"the arguments of a call of {what} are broken: run the case again, or accept other calls"
            )


def as_expected(record: CallRecord, place: Place | None = None, other_keys: Table | None = None) -> AcceptedCall:
    """Expect a call that was not expected before, or whose tool differs from the expected one. `place` is where it
    goes; the keys in `kept` stay there."""
    arguments = tuple(_argument(name, value) for name, value in record.arguments.items())
    return AcceptedCall(record.tool, record.round, arguments, place, other_keys)


def as_expected_again(
    record: CallRecord, place: Place, written: Table, verdicts: Sequence[ArgumentVerdict]
) -> AcceptedCall:
    """Expect a call of the expected tool. `written` is the present expectation, `verdicts` the grader's verdicts on its
    arguments."""
    raw = written.get("args")
    checks: Mapping[str, object] = raw if isinstance(raw, dict) else {}
    text = {verdict.argument: verdict for verdict in verdicts}
    weight = _weight_in(checks)
    arguments = [
        _argument(name, value, checks.get(name), text.get(name), weight) for name, value in record.arguments.items()
    ]
    lost: list[tuple[str, str]] = []
    for name, check in checks.items():
        if name in record.arguments:
            continue
        verdict = text.get(name)
        if verdict is None or verdict.holds is not False:
            arguments.append(AcceptedArgument(name, None, False, unchanged_choices(check), was_expected=True))
        else:
            lost.append((name, CheckChoice(KEPT, check).text))
    if written["tool"] == ANY_TOOL and raw is None:
        # An expectation of any call says nothing about the arguments of this one.
        arguments = [replace(each, chosen=len(each.choices) - 1) for each in arguments]
    if written.get("only_args"):
        lost += [(name, "must not be given") for name in record.arguments if name not in checks]
    other_keys = {key: value for key, value in written.items() if key not in ("tool", "args", "forbidden_args")}
    forbidden = written.get("forbidden_args")
    if isinstance(forbidden, list):
        lost += [(name, "must not be given") for name in forbidden if name in record.arguments]
        if left := [name for name in forbidden if name not in record.arguments]:
            other_keys["forbidden_args"] = left
    return AcceptedCall(str(written["tool"]), record.round, tuple(arguments), place, other_keys, tuple(lost))


def _weight_in(checks: Mapping[str, object]) -> object:
    """Return the weight of the first check that has one."""
    return next((check["weight"] for check in checks.values() if isinstance(check, dict) and "weight" in check), None)


def merged_call(
    calls: Sequence[AcceptedCall],
    table: Table,
    answer: int,
    enumerated: Callable[[str], bool],
    *,
    lists_all: bool,
) -> AcceptedCall:
    """Expect what one call has in common in several runs, whose proposals have it as `calls`. Checks that are kept by
    all of them are kept. Arguments that are not always given are left out; with `lists_all`, which graders ask for that
    count the others as wrong, they are optional. `table` is the case's."""
    first, place = calls[0], calls[0].place
    if any(call.place != place for call in calls):
        place = None
    written = value_at(table, place) if place is not None else None
    raw = written.get("args") if isinstance(written, dict) and written.get("tool") == first.tool else None
    checks: Mapping[str, object] = raw if isinstance(raw, dict) else {}
    by_call = [{each.name: each for each in call.arguments} for call in calls]
    arguments = []
    for name in dict.fromkeys(name for given in by_call for name in given):
        found = [given[name] for given in by_call if name in given]
        arguments.append(
            _merged_argument(
                found,
                _options_of(checks.get(name), _weight_in(checks)),
                always=len(found) == len(calls) and all(each.given for each in found),
                kept=place is not None and len(found) == len(calls) and all(each.choice.kind == KEPT for each in found),
                enumerated=enumerated(name),
                lists_all=lists_all,
            )
        )
    others = [call.other_keys or {} for call in calls] if place is not None else [{}]
    other_keys = {key: value for key, value in others[0].items() if all(each.get(key) == value for each in others)}
    if forbidden := [name for name in items_at(others[0], ("forbidden_args",)) if _in_all(name, others)]:
        other_keys["forbidden_args"] = forbidden
    lost = dict.fromkeys(each for call in calls for each in call.lost)
    return AcceptedCall(first.tool, answer, tuple(arguments), place, other_keys, tuple(lost))


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
    first = given[0] if given else found[0]
    was_expected = any(each.was_expected for each in found)
    own_check = first.choice.written if kept else None
    if all(each.choice.written is None for each in found) or not (given or kept):
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


def _argument(
    name: str,
    value: JsonValue,
    check: object = None,
    verdict: ArgumentVerdict | None = None,
    weight: object = None,
) -> AcceptedArgument:
    """Build the choices for an argument. Its check is kept where it holds; a new check takes over its weight. An
    argument without a check gets the given `weight`, since either all arguments of a call have one or none has."""
    options = _options_of(check, weight)
    own_check = check if verdict is not None and verdict.holds is not False else None
    choices = choices_for(name, value, own_check, options)
    # A check that holds only in part stays available, but a check that the value meets in full is preselected.
    in_part = verdict is not None and verdict.holds and verdict.score < verdict.weight * _IN_FULL
    return AcceptedArgument(name, value, True, choices, 1 if in_part and len(choices) > 2 else 0, check is not None)


def _options_of(check: object, weight: object) -> dict[str, object]:
    options: dict[str, object] = {}
    if isinstance(check, dict):
        options = {key: check[key] for key in OF_EVERY_CHECK if key in check}
    if weight is not None:
        options.setdefault("weight", weight)
    return options


_IN_FULL = 1 - 1e-9


KEPT: Final = "as written"
LEAVE_OUT: Final = "leave out"
_MAX_NUMBER = 1e15
"""Larger numbers lose digits in files."""


@dataclass(frozen=True, slots=True)
class CheckChoice:
    """One way to write an expectation: its name and the value as the suite writes it, `None` where nothing is
    written."""

    kind: str
    written: object = None

    @property
    def text(self) -> str:
        """Describe the check in a few words."""
        return "" if self.written is None else describe(read_check(self.written))


def choices_for(
    name: str,
    value: JsonValue,
    own_check: object = None,
    options: Mapping[str, object] | None = None,
    *,
    others: Sequence[JsonValue] = (),
    enumerated: bool = False,
) -> tuple[CheckChoice, ...]:
    """Return the checks for the argument `name` with this value, the preferred one first: the suite's own check
    (`kept`), otherwise the exact value where TOML can express it. New checks get `options`, such as a weight, and also
    hold for the values that other runs gave; `enumerated` says that the tool's schema lists the possible ones."""
    found = [CheckChoice(KEPT, own_check)] if own_check is not None else []
    different = any(not json_equal(value, other) for other in others)
    for kind, written in _checks_for_several((value, *others), enumerated) if different else _checks_for(value):
        with_options = {**_explicit(written), **options} if options else as_argument(name, written)
        if _can_be_written(with_options) and all(_is_met(with_options, each) for each in (value, *others)):
            found.append(CheckChoice(kind, with_options))
    return (*found, CheckChoice(LEAVE_OUT))


def unchanged_choices(own_check: object) -> tuple[CheckChoice, ...]:
    """Return the choices for an argument that was not given and whose check allows that."""
    return CheckChoice(KEPT, own_check), CheckChoice(LEAVE_OUT)


def _checks_for(value: JsonValue) -> Iterator[tuple[str, object]]:
    if value is None:
        yield "exact", {"equals_null": True}
    elif isinstance(value, dict) and any(key in CHECK_CLASSES or key in OPTION_NAMES for key in value):
        yield "exact", {"equals": value}
    else:
        yield "exact", value
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _MAX_NUMBER:
        around = max(1, round(abs(value) / 10)) if isinstance(value, int) else float(f"{abs(value) / 10 or 0.1:.2g}")
        yield "near", {"near": value, "tolerance": around}
        yield "range", {"range": [_rounded(value - around), _rounded(value + around)]}
    if isinstance(value, str):
        yield "similar", {"similar": value}
        yield "contains", {"contains": value}
        if _is_moment(value):
            yield "datetime", {"datetime": value}
    yield "present", {"present": True}


FEW: Final = 3
"""As many different values are listed, if one of them came again: what never comes again is free text."""


def _checks_for_several(values: Sequence[JsonValue], enumerated: bool) -> Iterator[tuple[str, object]]:
    """Yield the checks for different values, the preferred one first."""
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
    elif len(different) <= FEW and len(different) < len(values):
        yield "one of", {"one_of": different}
    yield "present", {"present": True}


def _explicit(written: object) -> dict[str, object]:
    return dict(written) if isinstance(written, dict) and check_name(written) else {"equals": written}


def _rounded(number: float) -> float:
    return number if isinstance(number, int) else float(f"{number:.10g}")


def _is_moment(text: str) -> bool:
    try:
        read_timestamp(text)
    except (ValueError, OverflowError):
        return False
    return any(char.isdigit() for char in text)


def _can_be_written(written: object) -> bool:
    try:
        one_line(written)
        json.dumps(written, allow_nan=False)  # raises for infinity and NaN, which cannot be expected
    except (ValueError, RecursionError):
        return False
    return True


def _is_met(written: object, value: JsonValue) -> bool:
    """Return whether the check, read as the suite would read it, holds for the value in full."""
    try:
        verdict = judge(read_check(written), value, True, arcade_compatible=False)
    except (ValueError, RecursionError, CheckError):
        return False
    return verdict.holds and math.isclose(verdict.score, 1.0)
