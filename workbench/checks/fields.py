"""The types of the fields of checks: numbers, thresholds, durations and patterns, with the form's editor for each."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeGuard, get_args, get_origin

from pydantic import AfterValidator, BeforeValidator, Field, Strict
from pydantic_core import PydanticCustomError

from workbench.checks.values import duration_seconds, is_function_reference
from workbench.dataclasses import dataclass
from workbench.startup import late_pattern

NAMED_WEIGHTS: dict[str, int] = {
    "minimal": 1,
    "very_low": 2,
    "low": 3,
    "medium": 4,
    "high": 5,
    "very_high": 6,
    "critical": 7,
}
"""The named weights with their raw values, as in Arcade's evals. Weights are normalised before use."""


WeightName = Literal["minimal", "very_low", "low", "medium", "high", "very_high", "critical"]
Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)] | WeightName

JsonType = Literal["string", "integer", "number", "boolean", "null", "array", "object"]
JSON_TYPES: tuple[str, ...] = get_args(JsonType)
"""The Python types of JSON's types, by their names in JSON Schema."""

TYPE_WORDS: Mapping[str, str] = {
    "string": "a string",
    "number": "a number",
    "integer": "an integer",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
"""JSON's types in words for messages about arguments and schemas, by their names in JSON Schema."""

ANY_TYPE = frozenset(JSON_TYPES)
NUMBERS = frozenset({"number", "integer"})
TEXT = frozenset({"string"})


@dataclass(frozen=True, slots=True)
class Editor:
    """The editor of a field in the form.

    `input_kind` is the kind of input. `least` and `most` bound a number, and `words` are the options of a choice."""

    input_kind: Literal[
        "nothing",
        "value",
        "values",
        "check",
        "checks",
        "fields",
        "length",
        "presence",
        "tolerance",
        "text",
        "time",
        "number",
        "range",
        "duration",
        "choice",
        "yes or no",
        "model",
    ]
    least: float = -math.inf
    most: float = math.inf
    words: tuple[str, ...] = ()
    """The allowed values of a choice, or examples."""


def _number(value: Any) -> Any:
    # In Python, `True` is a number.
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise PydanticCustomError("float_type", "must be a number")
    # Whole numbers of any size are compared exactly. Similarity and tolerance are computed in floats.
    try:
        float(value)
    except OverflowError as error:
        raise PydanticCustomError("number_too_large", "must be a number below 1.8e308") from error
    return value


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


Number = Annotated[int | float, BeforeValidator(_number), Editor("number")]
"""A number as it was written. A whole number is not converted to a float because that would round a large number."""


def is_percent(value: object) -> TypeGuard[str]:
    """Return whether a value is a share of another number, such as `"5%"`."""
    return isinstance(value, str) and _PERCENT.fullmatch(value) is not None


_PERCENT = late_pattern(r"[0-9]+(?:\.[0-9]+)?\s*%")


def _tolerance(value: Any) -> Any:
    if is_percent(value):
        return value
    if isinstance(value, str):
        raise PydanticCustomError("check", 'must be a number, or a share of the expected number such as "5%"')
    if _number(value) < 0:
        raise PydanticCustomError("greater_than_equal", "must be at least 0", {"ge": 0})
    return value


Tolerance = Annotated[int | float | str, BeforeValidator(_tolerance), Editor("tolerance", 0)]
"""The allowed distance of a number from the expected number: a number, or a share of the expected number such as
`"5%"`."""


def distance_of(tolerance: int | float | str, expected: float) -> int | float:
    """Return a tolerance as a distance from an expected number: 10 for 5% of 200."""
    if not isinstance(tolerance, str):
        return tolerance
    if not math.isfinite(expected):
        return 0
    # In floats, 10% of 3 would be slightly more than 0.3.
    distance = abs(Fraction(expected)) * Fraction(tolerance.removesuffix("%").strip()) / 100
    return int(distance) if distance.denominator == 1 else float(distance)


Pair = Annotated[tuple[Number, Number], Strict(False), Editor("range")]
"""Two numbers written as a TOML array."""

Unit = Annotated[float, Field(ge=0, le=1), Editor("number", 0, 1)]
"""A score or a threshold, 0..1."""

Duration = Annotated[str, AfterValidator(_duration), Editor("duration", words=("30s", "500s", "15m", "2h", "1d"))]
Regex = Annotated[str, AfterValidator(_regular_expression)]
PythonReference = Annotated[str, AfterValidator(_python_reference)]


def editor_of(annotation: Any) -> Editor:
    """Return the form's editor for a type: the editor in the type's annotation, or a general editor."""
    if get_origin(annotation) is Annotated:
        inner, *metadata = get_args(annotation)
        return editor_among(metadata) or editor_of(inner)
    if get_origin(annotation) is Literal:
        words = get_args(annotation)
        if words == (True,):
            return Editor("nothing")
        return Editor("choice", words=words)
    if annotation is bool:
        return Editor("yes or no", words=("true", "false"))
    for inner in get_args(annotation):
        if inner is not type(None):
            return editor_of(inner)
    return Editor("text")


def editor_among(metadata: Iterable[object]) -> Editor | None:
    """Return the editor in the metadata of an annotation, or `None` if there is none."""
    for each in metadata:
        if isinstance(each, Editor):
            return each
    return None
