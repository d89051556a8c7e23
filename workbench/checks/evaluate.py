"""Evaluates one check against one value: a score in 0..1, whether it holds, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pydantic import JsonValue

from workbench.checks.canonical import canonical_text, loose
from workbench.checks.closeness import closeness, is_close, json_number, seconds_between, timestamp_credit
from workbench.checks.describe import CheckError, FunctionRaisedError, describe, describe_value
from workbench.checks.equality import EqualsRule, by_json, json_equal
from workbench.checks.kinds import (
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
from workbench.checks.patterns import SpentTime, found
from workbench.checks.similarity import as_text, similarity
from workbench.checks.timestamps import read_timestamp
from workbench.dataclasses import dataclass
from workbench.decimals import decimals

CallPython = Callable[[str, JsonValue], object]
"""Calls the function behind a reference such as `"checks:is_even"` with a value. It should return a bool."""


@dataclass(frozen=True, slots=True)
class CheckVerdict:
    """The result of one check for one value. `score` is in 0..1, with values in between for the graded checks.

    `note` is the reason alone. `measured` is false when there was nothing to measure: no number for `near`, a time
    beyond the calendar, a value nested too deeply. The check then does not hold.
    """

    score: float
    holds: bool
    note: str = ""
    measured: bool = True
    number: float | None = None
    """What a judge gave on its scale."""


Judge = Callable[[Judged, JsonValue], CheckVerdict]
"""Returns the judgement of a language model on a value. Raises CheckError where there is none."""


VerdictCache = dict[tuple[int, int], tuple[Check, JsonValue, CheckVerdict]]
"""Verdicts by the ids of check and value. An entry holds on to both, so that no other object can get their ids."""


@dataclass(frozen=True, slots=True)
class CheckContext:
    """What some checks need beyond the value; `None` where it is not available.

    `verdicts` is shared by evaluations of the same values, so that each is computed once. Plain values are not cached,
    because each grader compares them by its own rule, and judgements are not, because the judge remembers them.
    `search_time` gives each pattern one time limit for all its searches. `run` is the run for functions that see it.
    """

    call_python: CallPython | None = None
    judge: Judge | None = None
    verdicts: VerdictCache | None = None
    search_time: SpentTime | None = None
    run: JsonValue = None


EMPTY_CONTEXT = CheckContext()


def why(check: Check, verdict: CheckVerdict, value: JsonValue, given: bool = True) -> str:
    """Returns the verdict as one line for a person, with the expected and the actual value."""
    got = describe_value(value) if given else "nothing"
    note = f" ({verdict.note})" if verdict.note else ""
    return f"expected {describe(check)}, got {got}{note}"


def evaluate(
    check: Check,
    value: JsonValue,
    given: bool = True,
    *,
    equal: EqualsRule = by_json,
    context: CheckContext = EMPTY_CONTEXT,
) -> CheckVerdict:
    """Evaluate a check against a value.

    `given` is false when the argument was left out; only an `optional` check holds then. `equal` is the rule for plain
    values and `equals`; inside `any_of` and `all_of` these are compared as in `one_of`.

    Raises CheckError for `judged` without a judge in `context`, for `python` without `call_python` or when the function
    raises, and for `pattern` when its search takes too long. Raises nothing else.
    """
    if not given:
        return _LEFT_OUT_ALLOWED if check.optional else _NOT_GIVEN
    if type(check) is Equals:
        expected = check.equals
        if type(value) is type(expected) and type(value) in _COMPARED_ALIKE and expected != "None":
            return _HOLDS if value == expected else _unequal(expected, value)
        try:
            return _HOLDS if equal(check, value) else _unequal(expected, value)
        except (OverflowError, RecursionError, ValueError) as error:
            return _not_comparable(error)
    if isinstance(check, AllOf | AnyOf):
        return _evaluate_parts(check, value, context)
    if context.verdicts is None or type(check) is Judged or (type(check) is PythonCheck and check.sees == "run"):
        return _evaluated(check, value, context)
    place = (id(check), id(value))
    known = context.verdicts.get(place)
    if known is None:
        known = context.verdicts[place] = (check, value, _evaluated(check, value, context))
    return known[2]


_COMPARED_ALIKE = frozenset({str, int, bool, type(None)})
"""The types of values that every rule of equality compares alike where both sides have one type. Arcade's has one
exception, the expected text `None`."""


def _evaluate_parts(check: AllOf | AnyOf, value: JsonValue, context: CheckContext) -> CheckVerdict:
    """Returns the verdict of the deciding part: the worst of `all_of`, the best of `any_of`. A judge is asked only when
    the other parts do not decide."""
    must_all = isinstance(check, AllOf)
    found: list[tuple[CheckVerdict, Check]] = []
    for part in sorted(check.parts, key=lambda part: asks(part, Judged)):
        if asks(part, Judged) and any(verdict.holds is not must_all for verdict, _ in found):
            break
        found.append((evaluate(part, value, context=context), part))
    verdict, part = (min if must_all else max)(found, key=lambda each: (each[0].holds, each[0].score))
    if verdict.holds:
        return verdict
    return replace(verdict, note=f"{describe(part)}: {verdict.note}" if must_all else "none of them")


def _unequal(expected: JsonValue, value: JsonValue) -> CheckVerdict:
    if isinstance(expected, str) and isinstance(value, str) and canonical_text(expected) == canonical_text(value):
        return _COMPOSED_OTHERWISE
    return _NOT_EQUAL


def _evaluated(check: Check, value: JsonValue, context: CheckContext) -> CheckVerdict:
    try:
        if type(check) is PythonCheck:
            return _evaluate_python(check, context.run if check.sees == "run" else value, context.call_python)
        if type(check) is Judged:
            return _evaluate_judged(check, value, context.judge)
        if type(check) is Pattern:
            return _evaluate_pattern(check, value, context.search_time)
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
    context: CheckContext = EMPTY_CONTEXT,
) -> bool:
    """Returns whether the checks of all named arguments hold. Arguments without a check are ignored.

    This evaluates a mock's `when` and a prohibition's `args`. Raises CheckError as `evaluate` does.
    """
    return all(
        evaluate(check, arguments.get(name), name in arguments, equal=equal, context=context).holds
        for name, check in checks.items()
    )


_HOLDS = CheckVerdict(1.0, True)
_LEFT_OUT_ALLOWED = CheckVerdict(1.0, True, "not given, which is allowed")
_NOT_GIVEN = CheckVerdict(0.0, False, "not given")
_NOT_EQUAL = CheckVerdict(0.0, False, "not equal")
_COMPOSED_OTHERWISE = CheckVerdict(0.0, False, "not equal: the same letters in a different Unicode form")
_NOT_TEXT = CheckVerdict(0.0, False, "not text")
_NO_NUMBER = CheckVerdict(0.0, False, "not a number", measured=False)


def _evaluate_python(check: PythonCheck, value: JsonValue, call_python: CallPython | None) -> CheckVerdict:
    if call_python is None:
        raise CheckError(f"the check {describe(check)!r} needs a Python function, but none may be called here")
    try:
        holds = call_python(check.python, value)
    except CheckError as error:
        raise CheckError(f"the check {describe(check)!r} cannot be called: {error}") from error
    except Exception as error:
        raise FunctionRaisedError(f"the check {describe(check)!r} raised {type(error).__name__}: {error}") from error
    try:
        return _returned(check, holds)
    except ValueError as error:
        raise FunctionRaisedError(f"the check {describe(check)!r} {error}") from None


def _returned(check: PythonCheck, returned: object) -> CheckVerdict:
    """Returns the verdict that a function's result means: true or false, a score, or a table of either with a reason.

    Raises ValueError for anything else: "no" is true in Python, and guessing what was meant would turn a mistake into a
    wrong verdict.
    """
    if isinstance(returned, bool):
        return _HOLDS if returned else CheckVerdict(0.0, False, "the function returned False")
    reason: object = ""
    score, holds = returned, None
    if isinstance(returned, dict):
        if not returned or returned.keys() - {"score", "holds", "reason"}:
            raise ValueError(f"must return a table of `score`, `holds` and `reason`, not {returned!r}")
        score, holds, reason = (returned.get(key) for key in ("score", "holds", "reason"))
        if not isinstance(reason, str | None) or not isinstance(holds, bool | None) or score is holds is None:
            raise ValueError(f"must return `holds` (a bool), `score` (0..1) or both, not {returned!r}")
        score = holds if score is None else score
    if not isinstance(score, int | float) or not 0 <= score <= 1:
        allowed = "True or False" if check.at_least is None else "True, False or a number from 0 to 1"
        raise ValueError(f"must return {allowed}, not {returned!r}")
    if holds is None and not isinstance(score, bool):
        if check.at_least is None:
            raise ValueError(f"must return True or False, not {returned!r}: for a score, write `at_least` next to it")
        holds = score >= check.at_least
    holds = bool(score) if holds is None else holds
    needed = "" if check.at_least is None else f", at least {check.at_least:g} needed"
    words = " ".join(reason.split()) if isinstance(reason, str) else ""
    return CheckVerdict(float(score), holds, words or f"the function returned {decimals(float(score))}{needed}")


def _evaluate_judged(check: Judged, value: JsonValue, judge: Judge | None) -> CheckVerdict:
    if judge is None:
        raise CheckError(f"the check {describe(check)!r} needs a judge, but none may be asked here")
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
        return CheckVerdict(0.0, False, "not text with a date and time")
    try:
        expected = read_timestamp(check.datetime)
    except ValueError:
        return CheckVerdict(0.0, False, "the expected date and time is invalid")
    try:
        actual = read_timestamp(value)
    except ValueError:
        return CheckVerdict(0.0, False, "not a valid date and time")
    if check.offset == "required" and actual.tzinfo is None:
        return CheckVerdict(0.0, False, "no offset from UTC")
    try:
        distance = seconds_between(expected, actual)
    except ValueError:
        return CheckVerdict(0.0, False, "an offset of a day or more", measured=False)
    tolerance = duration_seconds(check.tolerance)
    credit = timestamp_credit(distance, tolerance, duration_seconds(check.max_difference))
    if distance == 0:
        return _HOLDS
    return CheckVerdict(credit, distance <= tolerance, f"{distance:g} s apart")


def _contains(check: Contains, value: JsonValue) -> CheckVerdict:
    return _verdict(check.contains in value, "does not contain it") if isinstance(value, str) else _NOT_TEXT


def _prefix(check: Prefix, value: JsonValue) -> CheckVerdict:
    return _verdict(value.startswith(check.prefix), "starts differently") if isinstance(value, str) else _NOT_TEXT


def _suffix(check: Suffix, value: JsonValue) -> CheckVerdict:
    return _verdict(value.endswith(check.suffix), "ends differently") if isinstance(value, str) else _NOT_TEXT


def _of_type(check: OfType, value: JsonValue) -> CheckVerdict:
    types: type | tuple[type, ...] = _PYTHON_TYPES[check.type]
    holds = isinstance(value, types) and (isinstance(value, bool) is (types is bool))
    if check.type == "integer" and isinstance(value, float):
        holds = value.is_integer()
    return _verdict(holds, "wrong type")


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
    return _verdict(json_equal(loose(check.equals_text), loose(value)), "different text")


# Each function takes exactly the class it is listed under, which the type of a dictionary cannot express.
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
