"""The definition of a check: what a suite may ask of one argument, of a mock's condition or of the final answer.

This module defines what can be written down (docs/checks.md); `workbench.checks` evaluates it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    JsonValue,
    Strict,
    Tag,
    model_validator,
)
from pydantic_core import PydanticCustomError

from workbench.checks.references import is_function_reference
from workbench.checks.timestamps import read_timestamp
from workbench.late_patterns import late_pattern
from workbench.model_base import LateModel

NAMED_WEIGHTS: dict[str, int] = {
    "minimal": 1,
    "very_low": 2,
    "low": 3,
    "medium": 4,
    "high": 5,
    "very_high": 6,
    "critical": 7,
}
"""Named weights and their raw values, as in Arcade evals; they are normalised before use."""

WeightName = Literal["minimal", "very_low", "low", "medium", "high", "very_high", "critical"]
Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)] | WeightName

JsonType = Literal["string", "integer", "number", "boolean", "null", "array", "object"]
JSON_TYPES: tuple[str, ...] = get_args(JsonType)
"""The types of JSON by their names in JSON Schema."""

SimilarityMetric = Literal["cosine", "ratio", "partial_ratio", "token_sort_ratio", "token_set_ratio"]

OffsetRule = Literal["any", "required"]

Unit = Annotated[float, Field(ge=0, le=1)]
"""A score or a threshold, 0..1."""


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise PydanticCustomError("float_type", "must be a number")
    try:
        float(value)
    except OverflowError as error:
        raise PydanticCustomError("number_too_large", "must be a number below 1.8e308") from error
    return value


Number = Annotated[int | float, BeforeValidator(_number)]
"""A number as it was written: a whole number stays whole, so that it is compared exactly, however large."""

Pair = Annotated[tuple[Number, Number], Strict(False)]
"""Two numbers written as a TOML array."""

_DURATION = late_pattern(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)\s*", re.ASCII)
_SECONDS_PER_UNIT = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def duration_seconds(text: str) -> float:
    """Returns a duration such as `"500s"`, `"2h"` or `"250ms"` in seconds.

    Raises ValueError when the text is not a number followed by `ms`, `s`, `m`, `h` or `d`.
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a duration: write a number with ms, s, m, h or d, such as '90s'")
    return float(match[1]) * _SECONDS_PER_UNIT[match[2]]


def _duration(text: str) -> str:
    duration_seconds(text)
    return text


def _regular_expression(text: str) -> str:
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{text!r} is not a regular expression: {error}") from error
    return text


def _python_reference(text: str) -> str:
    if not is_function_reference(text):
        raise ValueError(f"{text!r} is not a Python reference: write 'module:function'")
    return text


Duration = Annotated[str, AfterValidator(_duration)]
Regex = Annotated[str, AfterValidator(_regular_expression)]
PythonReference = Annotated[str, AfterValidator(_python_reference)]


def _has_offset(text: str) -> bool:
    """Return whether a time is written with an offset; true for what cannot be read, which is reported elsewhere."""
    try:
        return read_timestamp(text).tzinfo is not None
    except (ValueError, OverflowError):
        return True


class CheckBase(LateModel):
    """What every check has: its share of the call's score, whether the argument may be left out, and whether the run
    fails when the check does not hold (`required`; `None` leaves that to the grader)."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    kind: ClassVar[str]

    weight: Weight | None = None
    optional: bool = False
    required: bool | None = None

    @property
    def parts(self) -> tuple[Check, ...]:
        """The checks nested directly in it."""
        return ()


class Equals(CheckBase):
    """Equal to a value. `plain` is true when it was written as a bare value rather than as `{ equals = … }`."""

    kind = "equals"
    equals: JsonValue
    cast: bool = True
    plain: bool = False


class EqualsNull(CheckBase):
    """The argument is null."""

    kind = "equals_null"
    equals_null: Literal[True]


class Present(CheckBase):
    """The argument is given, whatever its value, null included."""

    kind = "present"
    present: Literal[True]


class OneOf(CheckBase):
    """Equal to one of several values under JSON equality."""

    kind = "one_of"
    one_of: Annotated[tuple[JsonValue, ...], Strict(False)]


class Range(CheckBase):
    """A number between two bounds, both included."""

    kind = "range"
    range: Pair


class Near(CheckBase):
    """A number close to another: by `tolerance`, or relative to `value_range` as in Arcade's numeric critic."""

    kind = "near"
    near: Number
    tolerance: Annotated[Number, Field(ge=0)] | None = None
    value_range: Pair | None = None
    match_threshold: Unit = 0.8

    @model_validator(mode="after")
    def _one_measure(self) -> Near:
        if (self.tolerance is None) == (self.value_range is None):
            raise PydanticCustomError("check", "near needs exactly one of tolerance and value_range")
        if self.value_range is not None and not self.value_range[0] < self.value_range[1]:
            raise PydanticCustomError("check", "value_range must be [low, high] with low < high")
        return self


class Similar(CheckBase):
    """A text at least `threshold` similar to another."""

    kind = "similar"
    similar: str
    threshold: Unit = 0.8
    metric: SimilarityMetric = "cosine"


class DateTime(CheckBase):
    """A time within `tolerance` of another; credit falls to 0 at `max_difference`. With `offset = "required"` a time
    without an offset from UTC does not hold."""

    kind = "datetime"
    datetime: str
    tolerance: Duration = "500s"
    max_difference: Duration = "2h"
    offset: OffsetRule = "any"

    @model_validator(mode="after")
    def _offset_of_its_own(self) -> DateTime:
        if self.offset == "required" and not _has_offset(self.datetime):
            message = 'offset = "required" needs a time with an offset, such as 2026-05-27T19:00+02:00'
            raise PydanticCustomError("check", message)
        return self


class Contains(CheckBase):
    """A string that holds a text."""

    kind = "contains"
    contains: str


class Prefix(CheckBase):
    """A string that starts with a text."""

    kind = "prefix"
    prefix: str


class Suffix(CheckBase):
    """A string that ends with a text."""

    kind = "suffix"
    suffix: str


class Pattern(CheckBase):
    """A string in which a regular expression is found (Python's `re`, anywhere)."""

    kind = "pattern"
    pattern: Regex


class OfType(CheckBase):
    """A value of a JSON type. As in JSON Schema, 5.0 is an integer; a boolean is no number."""

    kind = "type"
    type: JsonType


class EqualsText(CheckBase):
    """Equal to a value, ignoring case, blanks and punctuation in texts, including those inside lists and tables."""

    kind = "equals_text"
    equals_text: JsonValue


class AllOf(CheckBase):
    """Several checks that must all hold."""

    kind = "all_of"
    all_of: Annotated[tuple[Check, ...], Strict(False), Field(min_length=1)]

    @property
    def parts(self) -> tuple[Check, ...]:
        return self.all_of


class AnyOf(CheckBase):
    """Several checks of which one must hold."""

    kind = "any_of"
    any_of: Annotated[tuple[Check, ...], Strict(False), Field(min_length=1)]

    @property
    def parts(self) -> tuple[Check, ...]:
        return self.any_of


class Judged(CheckBase):
    """A value that meets written criteria in the judgement of a language model. With a `scale` of two finite numbers
    the judge rates the value on it, and the check holds from `at_least` on."""

    kind = "judged"
    judged: str
    model: str | None = None
    scale: Pair | None = None
    at_least: Number | None = None

    @model_validator(mode="after")
    def _whole_scale(self) -> Judged:
        if (self.scale is None) != (self.at_least is None):
            raise PydanticCustomError("check", "scale and at_least need each other: write both, or neither")
        if self.scale is not None and self.at_least is not None:
            low, high = self.scale
            if not -math.inf < low < high < math.inf:
                raise PydanticCustomError("check", "scale must be [low, high] with low < high")
            if not low <= self.at_least <= high:
                raise PydanticCustomError("check", "at_least must be a number on the scale")
        return self


class PythonCheck(CheckBase):
    """A value for which a Python function in the suite's folder returns true, or a number from `at_least` on; needs
    trust. With `sees = "run"`, only in the checks of an answer, the function is called with the whole run."""

    kind = "python"
    python: PythonReference
    sees: Literal["value", "run"] = "value"
    at_least: Unit | None = None


CHECK_CLASSES: dict[str, type[CheckBase]] = {
    cls.kind: cls
    for cls in (
        Equals,
        EqualsNull,
        Present,
        OneOf,
        Range,
        Near,
        Similar,
        DateTime,
        Contains,
        Prefix,
        Suffix,
        Pattern,
        OfType,
        EqualsText,
        AllOf,
        AnyOf,
        Judged,
        PythonCheck,
    )
}
"""Every check by the name it is written with, in the order of the format's table."""

OPTION_NAMES: frozenset[str] = frozenset(
    name for cls in CHECK_CLASSES.values() for name in cls.model_fields if name not in CHECK_CLASSES
) - {"plain", "required", "scale", "at_least", "sees", "offset"}
"""Every option that some check takes, `weight` and `optional` included. `required`, `scale`, `at_least`, `sees` and
`offset` are left out: they are newer than the rule that a table of options alone is refused, and existing files may
expect such a value."""

RESERVED_NAMES = frozenset({*CHECK_CLASSES, *OPTION_NAMES, "plain", "required", "scale", "at_least", "sees", "offset"})
"""Names that a named check cannot have: those of checks and of options, so that one check is never taken for names."""

SWALLOWED = ("args", "forbidden_args", "mock_result")
"""Arguments with these names need an explicit check, because a table header could swallow the key."""

_OPTIONS_OF_TYPE = CheckBase.model_fields.keys() | {"type"}


def check_names_in(table: Mapping[str, Any]) -> list[str]:
    """Returns the names of checks among a table's keys, in the order written. `type` is one only together with the name
    of a JSON type and options: `{ type = "circle", radius = 3 }` is a value."""
    names = [name for name in table if name in CHECK_CLASSES]
    if "type" in names and not (table["type"] in JSON_TYPES and table.keys() <= _OPTIONS_OF_TYPE):
        names.remove("type")
    return names


def _as_table(value: Any) -> Any:
    """Convert what a suite writes into the table of one check; a bare value becomes `equals`.

    A table is a check if and only if exactly one key names a check and all others are options of it.
    """
    if isinstance(value, CheckBase):
        return value
    if not isinstance(value, dict):
        return {"equals": value, "plain": True}
    names = check_names_in(value)
    if not names:
        if value and all(key in OPTION_NAMES for key in value):
            raise PydanticCustomError("check_without_name", "check options without a check")
        return {"equals": value, "plain": True}
    name = names[0]
    others = [key for key in value if key != name and key not in CHECK_CLASSES[name].model_fields.keys() - {"plain"}]
    if others:
        raise PydanticCustomError(
            "check_mixed",
            "a table that holds the check '{name}' together with {others}",
            {"name": name, "others": ", ".join(repr(key) for key in others)},
        )
    return value


def _kind_of(value: Any) -> str | None:
    if isinstance(value, CheckBase):
        return value.kind
    return next(iter(check_names_in(value)), None)


Check = Annotated[
    Annotated[Equals, Tag("equals")]
    | Annotated[EqualsNull, Tag("equals_null")]
    | Annotated[Present, Tag("present")]
    | Annotated[OneOf, Tag("one_of")]
    | Annotated[Range, Tag("range")]
    | Annotated[Near, Tag("near")]
    | Annotated[Similar, Tag("similar")]
    | Annotated[DateTime, Tag("datetime")]
    | Annotated[Contains, Tag("contains")]
    | Annotated[Prefix, Tag("prefix")]
    | Annotated[Suffix, Tag("suffix")]
    | Annotated[Pattern, Tag("pattern")]
    | Annotated[OfType, Tag("type")]
    | Annotated[EqualsText, Tag("equals_text")]
    | Annotated[AllOf, Tag("all_of")]
    | Annotated[AnyOf, Tag("any_of")]
    | Annotated[Judged, Tag("judged")]
    | Annotated[PythonCheck, Tag("python")],
    Discriminator(_kind_of),
    BeforeValidator(_as_table),
]
"""One check as a suite writes it: a bare value, or a table with exactly one check's name."""

Checks = dict[str, Check]
"""Argument name to check."""


def are_named_checks(value: object) -> bool:
    """Returns whether what is written as `response` is read as checks by name: a table without the name of a check, in
    which every value is a table."""
    if not isinstance(value, dict) or not value or check_names_in(value):
        return False
    return all(isinstance(inner, dict | CheckBase) for inner in value.values())


def _one_or_named(value: Any) -> str:
    return NAMED_CHECKS if are_named_checks(value) else ONE_CHECK


ONE_CHECK: Final = "one check"
NAMED_CHECKS: Final = "named checks"

AnswerChecks = Annotated[
    Annotated[Check, Tag(ONE_CHECK)] | Annotated[Checks, Tag(NAMED_CHECKS)], Discriminator(_one_or_named)
]
"""What a suite asks of the final answer: one check, or several by their names."""


def with_parts(check: Check) -> Iterator[Check]:
    """Returns the check and all checks nested in it."""
    yield check
    for part in check.parts:
        yield from with_parts(part)


def asks(check: Check, *kinds: type[CheckBase]) -> bool:
    """Returns whether the check, or one nested in it, is of one of these kinds."""
    if isinstance(check, kinds):
        return True
    parts = check.parts
    return bool(parts) and any(asks(part, *kinds) for part in parts)


def asks_for_run(check: Check) -> bool:
    """Returns whether the check, or one nested in it, is a function that sees the whole run."""
    return any(isinstance(part, PythonCheck) and part.sees == "run" for part in with_parts(check))


def critic_of(check: CheckBase) -> tuple[object, ...]:
    """Returns a key that is equal for checks that are one critic, of which `arcade_compatible` has one for each
    argument name of a case.

    The key is the check's name, weight and options, whatever value is expected, whether it may be left out and whether
    it is required; `equals_null` counts as `equals`.
    """
    if isinstance(check, EqualsNull):
        check = Equals(equals=None, weight=check.weight)
    return (check.kind, *check.model_dump(exclude={check.kind, "plain", "optional", "required"}).items())
