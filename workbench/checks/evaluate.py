"""One check against one value: a score in 0..1, whether it holds, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import JsonValue

from workbench.checks.canonical import canonical_text
from workbench.checks.describe import describe, describe_value
from workbench.checks.equality import EqualsRule, by_json, json_equal
from workbench.checks.errors import CheckError, FunctionRaisedError
from workbench.checks.loose import loose
from workbench.checks.moments import moment_credit, seconds_between
from workbench.checks.numbers import closeness, is_close, json_number
from workbench.checks.patterns import SpentTime, found
from workbench.checks.similarity import as_text, similarity
from workbench.suite.checks import (
    AllOf,
    AnyOf,
    Check,
    CheckBase,
    Contains,
    DateTime,
    Equals,
    EqualsNull,
    EqualsText,
    Judged,
    Near,
    OfType,
    OneOf,
    Pattern,
    Prefix,
    Present,
    PythonCheck,
    Range,
    Similar,
    Suffix,
    asks,
    duration_seconds,
)
from workbench.suite.decimals import decimals
from workbench.suite.moments import read_moment

CallPython = Callable[[str, JsonValue], object]
"""Calls the function behind a reference such as `"checks:is_even"` with a value. It should answer a bool."""


@dataclass(frozen=True, slots=True)
class CheckVerdict:
    """What one check says of one value. `score` is in 0..1, and can lie between for the graded checks.

    `note` is the reason alone. `measured` is false when there was nothing to measure: no number for `near`, a moment
    beyond the calendar, a value too deep to compare; the check then does not hold.
    """

    score: float
    holds: bool
    note: str = ""
    measured: bool = True


Judge = Callable[[Judged, JsonValue], CheckVerdict]
"""Says what a language model found of a value. Raises CheckError where there is no such finding."""


Said = dict[tuple[int, int], tuple[Check, JsonValue, CheckVerdict]]
"""By the ids of check and value, which are kept with the verdict: while they are, no other object has their ids."""


@dataclass(frozen=True, slots=True)
class Outside:
    """What some checks ask that stands outside of them; `None` where there is nothing to be asked.

    With `said`, what a check said of a value is kept there, so that it is found out once for all who share it. Plain
    values are not: each asks them by a rule of its own. Nor is what a judge said, who remembers it.
    With `searched`, each pattern has one time limit for all its searches.
    """

    call_python: CallPython | None = None
    judge: Judge | None = None
    said: Said | None = None
    searched: SpentTime | None = None


NOTHING_OUTSIDE = Outside()


def why(check: Check, verdict: CheckVerdict, value: JsonValue, given: bool = True) -> str:
    """The verdict as one line for a person, naming what was expected and what came."""
    got = describe_value(value) if given else "nothing"
    note = f" ({verdict.note})" if verdict.note else ""
    return f"expected {describe(check)}, got {got}{note}"


def evaluate(
    check: Check,
    value: JsonValue,
    given: bool = True,
    *,
    equal: EqualsRule = by_json,
    outside: Outside = NOTHING_OUTSIDE,
) -> CheckVerdict:
    """Evaluate a check. `given` is false when the argument was left out; then only an `optional` check holds.

    `equal` is the rule by which a plain value and `equals` are compared. Raises CheckError for `judged`, which needs
    a judge in `outside`, for `python` without `call_python` or when the function raises, and for `pattern` when its
    search takes too long; never anything else.
    """
    if not given:
        return _LEFT_OUT_ALLOWED if check.optional else _NOT_GIVEN
    if type(check) is Equals:
        try:
            return _HOLDS if equal(check, value) else _unequal(check.equals, value)
        except (OverflowError, RecursionError, ValueError) as error:
            return _not_comparable(error)
    if isinstance(check, AllOf | AnyOf):
        return _evaluate_parts(check, value, equal, outside)
    if outside.said is None or type(check) is Judged:
        return _evaluated(check, value, outside)
    place = (id(check), id(value))
    known = outside.said.get(place)
    if known is None:
        known = outside.said[place] = (check, value, _evaluated(check, value, outside))
    return known[2]


def _evaluate_parts(check: AllOf | AnyOf, value: JsonValue, equal: EqualsRule, outside: Outside) -> CheckVerdict:
    """The verdict of the part that decides: of all_of the worst, of any_of the best. A judge is asked only where the
    other parts leave it open."""
    must_all = isinstance(check, AllOf)
    found: list[tuple[CheckVerdict, Check]] = []
    for part in sorted(check.parts, key=lambda part: asks(part, Judged)):
        if asks(part, Judged) and any(verdict.holds is not must_all for verdict, _ in found):
            break
        found.append((evaluate(part, value, equal=equal, outside=outside), part))
    verdict, part = (min if must_all else max)(found, key=lambda each: (each[0].holds, each[0].score))
    if verdict.holds:
        return verdict
    return replace(verdict, note=f"{describe(part)}: {verdict.note}" if must_all else "none of them")


def _unequal(expected: JsonValue, value: JsonValue) -> CheckVerdict:
    if isinstance(expected, str) and isinstance(value, str) and canonical_text(expected) == canonical_text(value):
        return _COMPOSED_OTHERWISE
    return _NOT_EQUAL


def _evaluated(check: Check, value: JsonValue, outside: Outside) -> CheckVerdict:
    try:
        if type(check) is PythonCheck:
            return _evaluate_python(check, value, outside.call_python)
        if type(check) is Judged:
            return _evaluate_judged(check, value, outside.judge)
        if type(check) is Pattern:
            return _evaluate_pattern(check, value, outside.searched)
        return _EVALUATORS[type(check)](check, value)
    except (OverflowError, RecursionError, ValueError) as error:
        return _not_comparable(error)


def _not_comparable(error: Exception) -> CheckVerdict:
    what = "too large" if isinstance(error, OverflowError) else "too deep or too long"
    return CheckVerdict(0.0, False, f"{what} to compare", measured=False)


def all_hold(
    checks: Mapping[str, Check],
    arguments: Mapping[str, JsonValue],
    *,
    equal: EqualsRule = by_json,
    outside: Outside = NOTHING_OUTSIDE,
) -> bool:
    """Whether the checks of all named arguments hold; arguments without a check are not looked at.

    This is a mock's `when` and a prohibition's `args`. Raises CheckError as `evaluate` does.
    """
    return all(
        evaluate(check, arguments.get(name), name in arguments, equal=equal, outside=outside).holds
        for name, check in checks.items()
    )


_HOLDS = CheckVerdict(1.0, True)
_LEFT_OUT_ALLOWED = CheckVerdict(1.0, True, "not given, which is fine")
_NOT_GIVEN = CheckVerdict(0.0, False, "not given")
_NOT_EQUAL = CheckVerdict(0.0, False, "not equal")
_COMPOSED_OTHERWISE = CheckVerdict(0.0, False, "not equal: the same letters, composed differently")
_NOT_TEXT = CheckVerdict(0.0, False, "not a text")
_NO_NUMBER = CheckVerdict(0.0, False, "not a number", measured=False)


def _evaluate_python(check: PythonCheck, value: JsonValue, call_python: CallPython | None) -> CheckVerdict:
    if call_python is None:
        raise CheckError(f"the check {describe(check)!r} needs a Python function, and none may be called here")
    try:
        holds = call_python(check.python, value)
    except CheckError as error:
        raise CheckError(f"the check {describe(check)!r} cannot be asked: {error}") from error
    except Exception as error:
        raise FunctionRaisedError(f"the check {describe(check)!r} raised {type(error).__name__}: {error}") from error
    if not isinstance(holds, bool):
        # "no" is true in Python: guessing what was meant would make a wrong verdict out of a mistake.
        raise FunctionRaisedError(f"the check {describe(check)!r} must answer True or False, not {holds!r}")
    return _HOLDS if holds else CheckVerdict(0.0, False, "the function says no")


def _evaluate_judged(check: Judged, value: JsonValue, judge: Judge | None) -> CheckVerdict:
    if judge is None:
        raise CheckError(f"the check {describe(check)!r} needs a judge, and none may be asked here")
    try:
        return judge(check, value)
    except (OverflowError, RecursionError, ValueError) as error:
        raise CheckError(f"the check {describe(check)!r} cannot be judged: {error}") from error


def _evaluate_pattern(check: Pattern, value: JsonValue, spent: SpentTime | None) -> CheckVerdict:
    if not isinstance(value, str):
        return _NOT_TEXT
    return _verdict(found(check.pattern, value, spent), "not found in it")


def _verdict(holds: bool, note: str) -> CheckVerdict:
    return _HOLDS if holds else CheckVerdict(0.0, False, note)


def _equals_null(check: EqualsNull, value: JsonValue) -> CheckVerdict:
    return _verdict(value is None, "not null")


def _present(check: Present, value: JsonValue) -> CheckVerdict:
    return _HOLDS


def _one_of(check: OneOf, value: JsonValue) -> CheckVerdict:
    return _verdict(any(json_equal(allowed, value) for allowed in check.one_of), "none of them")


def _range(check: Range, value: JsonValue) -> CheckVerdict:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return CheckVerdict(0.0, False, "not a number")
    low, high = check.range
    return _verdict(low <= value <= high, "outside")


def _near(check: Near, value: JsonValue) -> CheckVerdict:
    try:
        credit = closeness(check, json_number(value))
    except (TypeError, ValueError):
        return _NO_NUMBER
    holds = is_close(check, credit)
    kept = min(max(credit, 0.0), 1.0)
    return CheckVerdict(kept, holds, "" if credit == 1.0 else f"closeness {decimals(kept)}")


def _similar(check: Similar, value: JsonValue) -> CheckVerdict:
    score = min(similarity(check.similar, as_text(value), check.metric), 1.0)
    holds = score >= check.threshold
    if score == 1.0:
        return _HOLDS
    return CheckVerdict(score, holds, f"similarity {decimals(score)}, {check.threshold:g} needed")


def _datetime(check: DateTime, value: JsonValue) -> CheckVerdict:
    if not isinstance(value, str):
        return CheckVerdict(0.0, False, "not a text that holds a moment")
    try:
        expected = read_moment(check.datetime)
    except ValueError:
        return CheckVerdict(0.0, False, "the expected moment cannot be read")
    try:
        actual = read_moment(value)
    except ValueError:
        return CheckVerdict(0.0, False, "not a moment that can be read")
    try:
        distance = seconds_between(expected, actual)
    except ValueError:
        return CheckVerdict(0.0, False, "an offset of a day or more", measured=False)
    tolerance = duration_seconds(check.tolerance)
    credit = moment_credit(distance, tolerance, duration_seconds(check.max_difference))
    if distance == 0:
        return _HOLDS
    return CheckVerdict(credit, distance <= tolerance, f"{distance:g} s apart")


def _contains(check: Contains, value: JsonValue) -> CheckVerdict:
    return _verdict(check.contains in value, "not in it") if isinstance(value, str) else _NOT_TEXT


def _prefix(check: Prefix, value: JsonValue) -> CheckVerdict:
    return _verdict(value.startswith(check.prefix), "begins otherwise") if isinstance(value, str) else _NOT_TEXT


def _suffix(check: Suffix, value: JsonValue) -> CheckVerdict:
    return _verdict(value.endswith(check.suffix), "ends otherwise") if isinstance(value, str) else _NOT_TEXT


def _of_type(check: OfType, value: JsonValue) -> CheckVerdict:
    types: type | tuple[type, ...] = _PYTHON_TYPES[check.type]
    holds = isinstance(value, types) and (isinstance(value, bool) is (types is bool))
    if check.type == "integer" and isinstance(value, float):
        holds = value.is_integer()
    return _verdict(holds, "of another type")


_PYTHON_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
    "array": list,
    "object": dict,
}


def _equals_text(check: EqualsText, value: JsonValue) -> CheckVerdict:
    return _verdict(json_equal(loose(check.equals_text), loose(value)), "another text")


# Each function takes exactly the class it stands under, which a dictionary's type cannot say.
_EVALUATORS: dict[type[CheckBase], Callable[[Any, JsonValue], CheckVerdict]] = {
    EqualsNull: _equals_null,
    Present: _present,
    OneOf: _one_of,
    Range: _range,
    Near: _near,
    Similar: _similar,
    DateTime: _datetime,
    Contains: _contains,
    Prefix: _prefix,
    Suffix: _suffix,
    OfType: _of_type,
    EqualsText: _equals_text,
}
