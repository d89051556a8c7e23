"""Checks of values and numbers: equality, ranges, closeness."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Annotated, ClassVar, Literal, Self

from pydantic import JsonValue, Strict, model_validator
from pydantic_core import PydanticCustomError

from workbench.checks.argument_schema import OtherValues, field_schema, items_schema
from workbench.checks.check import (
    HOLDS,
    Advice,
    CheckBase,
    CheckContext,
    CheckVerdict,
    EqualsRule,
    NeverHoldsError,
    ReplacedCheck,
    UnknownSampleError,
    ValueWriter,
    Weakness,
    by_json,
    describe,
    not_comparable,
    plain_verdict,
    with_texts,
    zero_threshold_advice,
)
from workbench.checks.fields import (
    ANY_TYPE,
    NUMBERS,
    TEXT,
    Editor,
    Number,
    Pair,
    Tolerance,
    Unit,
    distance_of,
    is_percent,
)
from workbench.checks.values import canonical, canonical_text, json_equal, json_number, published_number, without_case
from workbench.dataclasses import cached_by_identity
from workbench.numerals import integer_if_whole, number_text, range_text, score_text, setting_text
from workbench.trajectory.json_schema import Schema, is_number

IGNORE_CASE = "whether case is ignored"
"""The meaning of the option `ignore_case`."""


def ignoring_case(check: CheckBase) -> str:
    """Return `, ignoring case` for a check that ignores case, otherwise an empty text."""
    return ", ignoring case" * (getattr(check, "ignore_case", None) is True)


_LARGE = 1_000_000
"""The largest usual number. A check that accepts all smaller numbers excludes hardly anything."""

_COMPARED_ALIKE = frozenset({str, int, bool, type(None)})
"""The types for which all equality rules agree if both values have the same type.

The only exception is an expected text "None" under Arcade's rule."""

_NOT_EQUAL = CheckVerdict(0.0, False, "not equal")
_COMPOSED_OTHERWISE = CheckVerdict(0.0, False, "not equal: the same letters in a different Unicode form")
_NO_NUMBER = CheckVerdict(0.0, False, "not a number", measured=False)


class Equals(CheckBase):
    """A value equal to the expected value.

    `plain` is true if the suite writes the value alone instead of `{ equals = … }`."""

    kind = "equals"
    form_name = "is"
    written = "equals = v"
    meaning = "a value equal to this one"
    remark = "a plain value `v` means the same"
    typed = "the value"
    options: ClassVar = {"cast": "whether critics may convert types first", "ignore_case": IGNORE_CASE}
    types = ANY_TYPE
    aliases = ("eq", "value")
    is_critic = compares_texts = True
    failure_verb = "is not"

    equals: Annotated[JsonValue, Editor("value")]
    cast: bool = True
    ignore_case: bool = False
    plain: bool = False

    @property
    def is_exact(self) -> bool:  # type: ignore[override]
        return not self.ignore_case

    @property
    def bare_value(self) -> JsonValue:
        return self.equals if self.plain else None

    @property
    def expects_null(self) -> bool:
        return self.equals is None

    @property
    def listed(self) -> tuple[JsonValue, ...] | None:
        return None if self.ignore_case else self.samples()

    def samples(self) -> tuple[JsonValue, ...]:
        return (self.equals,)

    def near_misses(self, value: JsonValue, schema: Schema, others: OtherValues) -> Iterator[JsonValue]:
        if isinstance(value, dict):
            for name, inner in value.items():
                for other in others(Equals(equals=inner), field_schema(schema, name) or {}):
                    yield {**value, name: other}
        elif isinstance(value, list):
            for number, inner in enumerate(value):
                for other in others(Equals(equals=inner), items_schema(schema)):
                    yield [*value[:number], other, *value[number + 1 :]]

    def canonical(self) -> CheckBase:
        return with_texts(self, "equals", self.equals, canonical(self.equals))

    def as_written(self) -> JsonValue:
        return self.equals if self.plain else super().as_written()

    def describe(self, write_value: ValueWriter) -> str:
        return write_value(self.equals) + ignoring_case(self)

    def verdict(self, value: JsonValue, equal: EqualsRule, context: CheckContext) -> CheckVerdict:
        expected = self.equals
        if self.ignore_case:
            try:
                return _in_lower_case(self).verdict(without_case(value), equal, context)
            except RecursionError as error:
                return not_comparable(error)
        # The fast path for nearly all comparisons skips the grader's rule.
        if type(value) is type(expected) and type(value) in _COMPARED_ALIKE and expected != "None":
            if value == expected:
                return HOLDS
            return _unequal(expected, value)
        try:
            if equal(self, value):
                return HOLDS
            return _unequal(expected, value)
        except (OverflowError, RecursionError, ValueError) as error:
            return not_comparable(error)

    def evaluate(self, value: JsonValue, context: CheckContext) -> CheckVerdict:
        return self.verdict(value, by_json, context)

    @classmethod
    def from_replaced(cls, start: ReplacedCheck) -> Mapping[str, object]:
        return {"equals": start.values[0]}


_in_lower_case: Callable[[Equals], Equals] = cached_by_identity(
    lambda check: check.model_copy(update={"equals": without_case(check.equals), "ignore_case": False})
)
"""Returns a check with `ignore_case` as an exact check of lower-case text."""


ANY_VALUE, NOT_GIVEN = "any value", "not given"
"""The form's words for the two values of `present`."""


class _Flag(CheckBase):
    typed = "nothing; typing a value changes the check to `is`"

    @classmethod
    def convertible_values(cls, expected: object) -> list[object]:
        return []

    @classmethod
    def from_replaced(cls, start: ReplacedCheck) -> Mapping[str, object]:
        return {cls.kind: True}


class EqualsNull(_Flag):
    kind = "equals_null"
    written = "equals_null = true"
    meaning = "null"
    types = frozenset({"null"})
    aliases = ("isnull",)
    is_exact = True
    failure_verb = "is not"

    equals_null: Literal[True]

    @property
    def expects_null(self) -> bool:
        return True

    @property
    def critic_key(self) -> tuple[object, ...]:
        return Equals(equals=None, weight=self.weight).critic_key

    @property
    def listed(self) -> tuple[JsonValue, ...]:
        return (None,)

    def samples(self) -> tuple[JsonValue, ...]:
        return self.listed

    def describe(self, write_value: ValueWriter) -> str:
        return "null"

    def evaluate(self, value: JsonValue, context: CheckContext) -> CheckVerdict:
        return plain_verdict(value is None, "not null")


class Present(_Flag):
    kind = "present"
    written = "present = true"
    meaning = "any value that is given, null too"
    remark = "`present = false`: none is given, see [values that are not given](#values-that-are-not-given)"
    typed = "`any value` or `not given`; typing another value changes the check to `is`"
    types = ANY_TYPE
    aliases = ("exists",)

    present: Annotated[bool, Editor("presence", words=(ANY_VALUE, NOT_GIVEN))]

    @property
    def accepts_all(self) -> bool:  # type: ignore[override]
        return self.present

    @property
    def forbids(self) -> bool:
        return not self.present

    @property
    def if_missing(self) -> CheckVerdict:
        return HOLDS if self.forbids else super().if_missing

    def samples(self) -> tuple[JsonValue, ...]:
        if not self.present:
            raise NeverHoldsError("the check requires that no value is given")
        raise UnknownSampleError

    def describe(self, write_value: ValueWriter) -> str:
        return ANY_VALUE if self.present else NOT_GIVEN

    def evaluate(self, value: JsonValue, context: CheckContext) -> CheckVerdict:
        return plain_verdict(self.present, "must not be given")


class OneOf(CheckBase):
    kind = "one_of"
    written = "one_of = [v, …]"
    meaning = "a value equal to one of these"
    typed = '`red, blue, "one, two"`'
    options: ClassVar = {"ignore_case": IGNORE_CASE}
    types = ANY_TYPE
    aliases = ("in", "enum", "choices")
    compares_texts = True

    one_of: Annotated[tuple[JsonValue, ...], Strict(False), Editor("values")]
    ignore_case: bool = False

    @property
    def listed(self) -> tuple[JsonValue, ...] | None:
        return None if self.ignore_case else self.one_of

    def samples(self) -> tuple[JsonValue, ...]:
        if not self.one_of:
            raise NeverHoldsError("`one_of` lists no value")
        return self.one_of

    def canonical(self) -> CheckBase:
        return with_texts(self, "one_of", self.one_of, tuple(map(canonical, self.one_of)))

    def describe(self, write_value: ValueWriter) -> str:
        return "one of " + (", ".join(map(write_value, self.one_of)) or "nothing") + ignoring_case(self)

    def evaluate(self, value: JsonValue, context: CheckContext) -> CheckVerdict:
        listed = self.one_of
        if self.ignore_case:
            listed, value = tuple(map(without_case, listed)), without_case(value)
        return plain_verdict(any(json_equal(allowed, value) for allowed in listed), "none of them")

    @classmethod
    def convertible_values(cls, expected: object) -> list[object]:
        if isinstance(expected, list):
            return expected
        return [expected]

    @classmethod
    def from_replaced(cls, start: ReplacedCheck) -> Mapping[str, object]:
        return {"one_of": start.values}

    @classmethod
    def faults(cls, expected: object) -> Iterator[tuple[str, str]]:
        if expected == []:
            yield "must list at least one value", ""


class Range(CheckBase):
    kind = "range"
    written = "range = [low, high]"
    meaning = "a number from low to high, ends included"
    remark = "`-inf` and `inf` leave an end open"
    typed = "`5..40`; `5..` is from 5, `..40` up to 40"
    types = NUMBERS
    aliases = ("between",)
    is_approximate = may_be_infinite = True
    failure_verb = "fails range"

    range: Pair

    @property
    def reach(self) -> tuple[float, float]:
        return self.range

    @property
    def numbers(self) -> tuple[float, ...]:
        return self.range

    def samples(self) -> tuple[JsonValue, ...]:
        low, high = self.range
        if not low <= high:
            raise NeverHoldsError(f"no number lies between {setting_text(low)} and {setting_text(high)}")
        ends = [integer_if_whole(end) for end in self.range if math.isfinite(end)]
        first = 0
        if math.isfinite(low):
            first = math.ceil(low)
        elif math.isfinite(high):
            first = math.floor(high)
        # Whole numbers come first because the argument may be an integer. A range such as 0.2 to 0.8 contains none.
        if low <= first <= high:
            return tuple(dict.fromkeys((first, *ends)))
        return tuple(ends)

    def weaknesses(self, schema: Schema | None) -> Iterator[Weakness]:
        low, high = self.range
        if low <= 0 and high >= _LARGE:
            yield f"{describe(self)} accepts every usual number", "write the bounds that matter", "warning"

    def describe(self, write_value: ValueWriter) -> str:
        return range_text(*self.range)

    def evaluate(self, value: JsonValue, context: CheckContext) -> CheckVerdict:
        # In Python, `True` is the number 1.
        if isinstance(value, bool) or not isinstance(value, int | float):
            return CheckVerdict(0.0, False, "not a number")
        low, high = self.range
        return plain_verdict(low <= value <= high, "outside")

    @classmethod
    def convertible_values(cls, expected: object) -> list[object]:
        if isinstance(expected, list):
            return [end for end in expected if is_number(end)]
        return [expected]

    @classmethod
    def from_replaced(cls, start: ReplacedCheck) -> Mapping[str, object]:
        return {"range": start.ends}

    @classmethod
    def faults(cls, expected: object) -> Iterator[tuple[str, str]]:
        if isinstance(expected, list) and len(expected) == 2:
            low, high = expected
            if isinstance(low, int | float) and isinstance(high, int | float) and low > high:
                yield "must be [low, high] with low ≤ high", "swap the two numbers"


class Near(CheckBase):
    """A number close to the expected number: within `tolerance`, or by Arcade's formula for a `value_range`."""

    kind = "near"
    written = "near = n"
    meaning = "a number close to this one"
    remark = "one of `tolerance` and `value_range` is required"
    typed = "a number, with the option `tolerance` or `value_range` (`0..100`)"
    options: ClassVar = {
        "tolerance": 'how far off it may be, also as a share of the expected number: `"5%"`',
        "value_range": "low..high, where a distance of the whole range scores 0",
        "match_threshold": "the lowest score that passes, 0 to 1",
    }
    exclusive = ("tolerance", "value_range")
    types = NUMBERS | TEXT
    offered = NUMBERS
    aliases = ("numeric", "number", "approx", "about")
    is_approximate = is_critic = True

    near: Number
    tolerance: Tolerance | None = None
    value_range: Pair | None = None
    match_threshold: Unit = 0.8

    @model_validator(mode="after")
    def _one_measure(self) -> Self:
        if (self.tolerance is None) == (self.value_range is None):
            raise PydanticCustomError("check", "`near` needs exactly one of `tolerance` and `value_range`")
        if self.value_range is not None and not self.value_range[0] < self.value_range[1]:
            raise PydanticCustomError("check", "`value_range` must be [low, high] with low < high")
        return self

    @property
    def reach(self) -> tuple[float, float]:
        if self.tolerance is not None:
            distance = distance_of(self.tolerance, self.near)
            return self.near - distance, self.near + distance
        low, high = self.value_range or (self.near, self.near)
        far = (high - low) * (1 - self.match_threshold)
        return self.near - far, self.near + far

    @property
    def numbers(self) -> tuple[float, ...]:
        return (self.near,)

    def bound_to(self, value: JsonValue) -> CheckBase:
        try:
            number = published_number(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        return self.model_copy(update={"near": number})

    def samples(self) -> tuple[JsonValue, ...]:
        return (integer_if_whole(self.near),)

    def weaknesses(self, schema: Schema | None) -> Iterator[Weakness]:
        if self.tolerance is None:
            return
        # If 0 is expected, any tolerance accepts both 0 and its double, so only a huge tolerance is suspicious.
        suspicious = max(abs(self.near), 10) if self.near else _LARGE / 1000
        if distance_of(self.tolerance, self.near) >= suspicious:
            yield f"{describe(self)} accepts 0 and the double", "write a smaller tolerance", "warning"

    def advice(self) -> Iterator[Advice]:
        yield from zero_threshold_advice("match_threshold", self.match_threshold)
        if isinstance(self.tolerance, str) and not self.near:
            yield "tolerance", f"{self.tolerance} of 0 is 0, so only 0 passes", "write the tolerance as a number"

    def describe(self, write_value: ValueWriter) -> str:
        if self.value_range is not None:
            return f"near {number_text(self.near)} on {range_text(*self.value_range)}"
        tolerance = self.tolerance or 0.0
        if not isinstance(tolerance, str):
            tolerance = number_text(tolerance)
        return f"near {number_text(self.near)} ± {tolerance}"

    def evaluate(self, value: JsonValue, context: CheckContext) -> CheckVerdict:
        try:
            credit = self.closeness(json_number(value))
        except (TypeError, ValueError):
            return _NO_NUMBER
        needed = self.match_threshold if self.value_range is not None else 1.0
        kept = min(max(credit, 0.0), 1.0)
        note = ""
        if credit != 1.0:
            note = f"closeness {score_text(kept)}"
        return CheckVerdict(kept, credit >= needed, note)

    def arcade_verdict(self, value: JsonValue, equal: EqualsRule, context: CheckContext) -> CheckVerdict:
        """Return the verdict with the score of Arcade's critic, which is negative outside `value_range`."""
        try:
            number = published_number(value)
        except (TypeError, ValueError, OverflowError):
            return _NO_NUMBER
        found = self.verdict(number, equal, context)
        if found.measured:
            return replace(found, score=self.closeness(number))
        return found

    def closeness(self, actual: float) -> float:
        """Return how close a number is to `near`, at most 1.

        With `value_range = [low, high]`, this is 1 - |near - actual| with both numbers scaled to the range, as in
        Arcade's numeric critic. It is negative for a distant number. With `tolerance`, this is 1 within the tolerance,
        and falls linearly to 0 at twice the tolerance. Integers are compared exactly.

        Raises ValueError or OverflowError if the closeness is not a finite number."""
        if self.value_range is not None:
            low, high = map(float, self.value_range)
            # The order of operations is Arcade's, so the last digits agree.
            result = 1 - abs((float(self.near) - low) / (high - low) - (float(actual) - low) / (high - low))
        else:
            result = _tolerant_closeness(self.near, actual, distance_of(self.tolerance or 0, self.near))
        if not math.isfinite(result):
            raise ValueError("not a finite number")
        return result

    @classmethod
    def ends(cls, table: Mapping[str, object]) -> list[object]:
        near, tolerance = table["near"], table.get("tolerance", 0)
        if not is_number(near) or not (is_number(tolerance) or is_percent(tolerance)):
            return []
        distance = distance_of(tolerance, near)
        return [near - distance, near + distance]

    @classmethod
    def from_replaced(cls, start: ReplacedCheck) -> Mapping[str, object]:
        numbers = [number for number in start.values if is_number(number)] or [0]
        low, high = min(numbers), max(numbers)
        return {
            "near": low if low == high else integer_if_whole(low / 2 + high / 2),
            "tolerance": integer_if_whole(high / 2 - low / 2) or 1,
        }


def _unequal(expected: JsonValue, value: JsonValue) -> CheckVerdict:
    if isinstance(expected, str) and isinstance(value, str) and canonical_text(expected) == canonical_text(value):
        return _COMPOSED_OTHERWISE
    return _NOT_EQUAL


def _tolerant_closeness(near: float, actual: float, tolerance: float) -> float:
    if not (math.isfinite(near) and math.isfinite(actual)):
        away = abs(near - actual)
        if math.isnan(away):
            return away
        return float(away <= tolerance)
    # Fractions subtract integers of any size exactly.
    distance = abs(Fraction(near) - Fraction(actual))
    if distance <= tolerance:
        return 1.0
    exact = all(isinstance(number, int) for number in (near, actual, tolerance))
    # In binary floating point, 0.3 and 0.4 are slightly more than 0.1 apart. The numbers count as written in decimals.
    if not exact and math.isclose(float(distance), tolerance, rel_tol=1e-9):
        return 1.0
    if tolerance:
        return min(max(0.0, 2 - float(distance) / tolerance), _BELOW_ONE)
    return 0.0


_BELOW_ONE = math.nextafter(1.0, 0.0)
"""The largest credit for a number beyond the tolerance. Only a credit of 1 makes the check hold."""
