"""Maps an expected argument, a plain value or a table with one check, to the cells of a form row and back.

A plain value and `equals` both appear as the check `is`. `schema` is that of the argument, `None` if unknown. Anything
TOML can express is stored as typed; whether a pattern or a Python reference is valid is left to the suite's problems.
"""

from __future__ import annotations

import math
import re
from typing import Final, get_args

from workbench.authoring.form.typed import (
    CellError,
    read_checks,
    read_choice,
    read_duration,
    read_number,
    read_range,
    read_switch,
    read_text,
    read_value,
    read_values,
    shown_name,
    shown_range,
    shown_text,
    shown_value,
    shown_values,
)
from workbench.checks.kinds import (
    CHECK_CLASSES,
    JSON_TYPES,
    NAMED_WEIGHTS,
    OPTION_NAMES,
    SWALLOWED,
    CheckBase,
    OffsetRule,
    SimilarityMetric,
    check_names_in,
)
from workbench.checks.references import is_function_reference
from workbench.dataclasses import dataclass
from workbench.suite.problems import did_you_mean
from workbench.suite.render import Table
from workbench.trajectory.json_schema import Schema, is_number, type_of
from workbench.trajectory.json_types import allowed_values, keyword, sample_value

IS: Final = "is"
"""The form's name for the check of a plain value and of `equals`."""

KINDS: tuple[str, ...] = (IS, *(name for name in CHECK_CLASSES if name != "equals"))
"""All checks by their name in the form, in the order of the format's documentation."""

WITHOUT_VALUE = frozenset({"present", "equals_null"})
"""Checks without an expected value. Their value cell is empty."""

OF_TEXT = frozenset({"similar", "datetime", "contains", "prefix", "suffix", "pattern", "judged", "python"})
"""Checks whose value is text."""

OF_CHECKS = frozenset({"all_of", "any_of"})
"""Checks whose value is a list of checks."""

_LIKE_PLAIN = frozenset({IS, "equals_text"})
"""Checks whose value is read according to the argument's schema."""

OF_EVERY_CHECK = ("weight", "optional", "required")
"""The options of every check. They stay when an argument gets a different check."""

_METRICS: tuple[str, ...] = get_args(SimilarityMetric)


@dataclass(frozen=True, slots=True)
class OptionCell:
    """An option of a check. `text` is the content of the cell, empty if the option is not written; `default` then
    applies, which is empty if there is none."""

    name: str
    text: str
    default: str


def kind_of(value: object) -> str:
    """Return the check's name, `is` for a plain value and for `equals`."""
    name = _check_name(value)
    return IS if name in (None, "equals") else str(name)


def expected_of(value: object) -> object:
    """Return the value that the check expects."""
    name = _check_name(value)
    return value[name] if name is not None and isinstance(value, dict) else value


def value_text(value: object, schema: Schema | None = None) -> str:
    """Return the text of the value cell: `living room`, `5`, `"5"` for text that would be read as a number, `5..40`,
    `red, blue`. It is empty for `present` and `equals_null`."""
    kind, expected = kind_of(value), expected_of(value)
    match kind, expected:
        case ("present" | "equals_null", True):
            return ""
        case "one_of", list():
            return shown_values(expected, schema)
        case "range", [int() | float() as low, int() | float() as high]:
            return shown_range(low, high)
        case "type", str():
            return shown_name(expected)
        case _, str() if kind in OF_TEXT:
            return shown_text(expected)
    return shown_value(expected, schema if kind in _LIKE_PLAIN else None)


def with_value(value: object, text: str, schema: Schema | None = None) -> object:
    """Set the expected value from the text of its cell; the check and its options stay. Unchanged text changes nothing.
    A value typed over `present` or `equals_null` becomes a plain value.

    `value` is the argument from before the edit. Raises CellError if the text is not a valid value.
    """
    if text.strip() == value_text(value, schema):
        return value
    kind = kind_of(value)
    if kind in WITHOUT_VALUE and text.strip():
        return with_value(_with_check(value, "equals", ""), text, schema)
    if kind in WITHOUT_VALUE:
        return _with_check(value, kind, True)
    expected: object
    match kind:
        case "one_of":
            expected = read_values(text, schema)
        case "range":
            expected = read_range(text)
        case "near":
            expected = read_number(text)
        case "type":
            expected = read_choice(text, JSON_TYPES)
        case "all_of" | "any_of":
            expected = read_checks(text)
        case _ if kind in OF_TEXT:
            expected = read_text(text)
        case _:
            expected = read_value(text, schema)
    name = _check_name(value)
    return expected if name is None else {**_table(value), name: expected}


def with_kind(value: object, kind: str, schema: Schema | None = None) -> object:
    """Replace the check. It takes over as much of the expected value as possible; `OF_EVERY_CHECK` stay. Raises
    CellError if there is no such check."""
    kind = IS if kind == "equals" else kind
    if kind not in KINDS:
        raise CellError(
            f"no check has this name: {did_you_mean(kind, KINDS) or 'write is, one_of or range, for example'}"
        )
    if kind == kind_of(value):
        return value
    carried = _carried_values(value, schema)
    match kind:
        case "all_of" | "any_of":
            parts = expected_of(value) if kind_of(value) in OF_CHECKS else [_alone(value)]
            return _with_check(value, kind, parts)
        case "type":
            return _with_check(value, kind, type_of(carried[0]))
        case "equals_text":
            return _with_check(value, kind, carried[0])
        case "present" | "equals_null":
            return _with_check(value, kind, True)
        case "one_of":
            return _with_check(value, kind, carried)
        case "range":
            return _with_check(value, kind, _ends(value, carried, schema))
        case "near":
            numbers = [number for number in carried if is_number(number)] or [0]
            low, high = min(numbers), max(numbers)
            near = _table(_with_check(value, kind, low if low == high else _short(low / 2 + high / 2)))
            return {**near, "tolerance": _short(high / 2 - low / 2) or 1}
        case "pattern":
            return _with_check(value, kind, re.escape(_as_text(carried[0])).replace("\\ ", " "))
        case "python":
            return _with_check(value, kind, _as_text(carried[0]) if is_function_reference(_as_text(carried[0])) else "")
        case _ if kind in OF_TEXT:
            return _with_check(value, kind, _as_text(carried[0]))
    return _with_check(value, "equals", carried[0])


def options_of(value: object) -> tuple[OptionCell, ...]:
    """Return the options of the argument's check, written or not. Options of every check have their own cells."""
    name = _check_name(value) or "equals"
    table = _table(value)
    cells = []
    for option, field in CHECK_CLASSES[name].model_fields.items():
        if option not in (name, "plain", *OF_EVERY_CHECK):
            default = "" if field.default is None else _option_text(field.default)
            cells.append(OptionCell(option, _option_text(table[option]) if option in table else "", default))
    return tuple(cells)


def with_option(value: object, option: str, text: str | None) -> object:
    """Set an option of the check from the text of its cell; empty text removes it. Setting `tolerance` of `near`
    removes `value_range`, and vice versa.

    Raises CellError if the text is not a valid value or the check has no such option.
    """
    name = _check_name(value) or "equals"
    if option not in {cell.name for cell in options_of(value)}:
        raise CellError(f"the check {kind_of(value)} has no option {option}")
    if text is None or not text.strip():
        return _without(value, option)
    table = _table(value)
    if name == "near" and option in ("tolerance", "value_range"):
        table.pop("value_range" if option == "tolerance" else "tolerance", None)
    table.setdefault(name, expected_of(value))
    return {**table, option: _option_value(name, option, text)}


def weight_text(value: object) -> str:
    """Return the text of the weight cell: a number or a name, empty if none is written."""
    weight = _table(value).get("weight")
    return "" if weight is None else _option_text(weight)


def with_weight(value: object, text: str | None) -> object:
    """Set the weight from the text of its cell; empty text removes it. Raises CellError."""
    if text is None or not text.strip():
        return _without(value, "weight")
    name = read_text(text).lower().replace(" ", "_").replace("-", "_")
    if name in NAMED_WEIGHTS:
        return _with(value, "weight", name)
    try:
        weight = read_number(text, 0)
    except CellError:
        weight = math.inf
    if math.isinf(weight):
        raise CellError(f"write a number of at least 0, or {', '.join(NAMED_WEIGHTS)}")
    return _with(value, "weight", weight)


def is_optional(value: object) -> bool:
    """Return whether the argument may be left out."""
    return _table(value).get("optional") is True


def with_optional(value: object, optional: bool) -> object:
    """Set whether the argument may be left out."""
    return _with(value, "optional", True) if optional else _without(value, "optional")


def required_text(value: object) -> str:
    """Return the text of the cell for `required`: yes, no, or empty if it is not written."""
    required = _table(value).get("required")
    return "" if required is None else "yes" if required is True else "no"


def with_required(value: object, required: bool | None) -> object:
    """Set whether the argument must hold; `None` leaves that to the grader."""
    return _without(value, "required") if required is None else _with(value, "required", required)


def as_argument(name: str, value: object) -> object:
    """Return the value as it can be written under an argument's name: as `equals` where the format requires an explicit
    check."""
    return {"equals": value} if name in SWALLOWED and _check_name(value) is None else value


def _check_name(value: object) -> str | None:
    return next(iter(check_names_in(value)), None) if isinstance(value, dict) else None


def _table(value: object) -> Table:
    """Return a copy of the check's table, empty for a plain value."""
    return dict(value) if isinstance(value, dict) and _check_name(value) is not None else {}


def _with(value: object, option: str, to: object) -> object:
    table = _table(value) or {"equals": value}
    return {**table, option: to}


def _without(value: object, option: str) -> object:
    table = _table(value)
    if option not in table:
        return value
    del table[option]
    return _plain(table)


def _alone(value: object) -> object:
    """Return the check without weight and optionality, to be part of a combined check."""
    table = _table(value)
    return _plain({key: table[key] for key in table if key not in CheckBase.model_fields}) if table else value


def _with_check(value: object, name: str, expected: object) -> object:
    """Replace the check and drop the options of the old one."""
    table = _table(value)
    return _plain({name: expected, **{key: table[key] for key in OF_EVERY_CHECK if key in table}})


def _plain(table: Table) -> object:
    """Return a table with only `equals` as a plain value, unless that would be read as a check."""
    if table.keys() != {"equals"}:
        return table
    value = table["equals"]
    if isinstance(value, dict) and any(key in CHECK_CLASSES or key in OPTION_NAMES for key in value):
        return table
    return value


def _option_text(value: object) -> str:
    match value:
        case [int() | float() as low, int() | float() as high]:
            return shown_range(low, high)
        case str():
            return shown_text(value)
    return shown_value(value)


def _option_value(check: str, option: str, text: str) -> object:
    match option:
        case "cast":
            return read_switch(text)
        case "value_range" | "scale":
            return read_range(text)
        case "at_least":
            return read_number(text)
        case "sees":
            return read_choice(text, ("value", "run"))
        case "offset":
            return read_choice(text, get_args(OffsetRule))
        case "threshold" | "match_threshold":
            return read_number(text, 0, 1)
        case "tolerance" if check == "near":
            return read_number(text, 0)
        case "tolerance" | "max_difference":
            return read_duration(text)
        case "metric":
            return read_choice(text, _METRICS)
    return read_text(text)


def _carried_values(value: object, schema: Schema | None) -> list[object]:
    """Return values that a new check can start with, at least one."""
    expected = expected_of(value)
    match kind_of(value):
        case "present" | "equals_null":
            first = sample_value(schema)
            carried = [first, *(value for value in allowed_values(schema) or () if value != first)]
        case "one_of" if isinstance(expected, list):
            carried = expected
        case "type" if isinstance(expected, str):
            carried = [sample_value({"type": expected})]
        case "all_of" | "any_of":
            carried = _carried_values(expected[0], schema) if isinstance(expected, list) and expected else []
        case "range" if isinstance(expected, list):
            carried = [end for end in expected if is_number(end)]
        case _:
            carried = [expected]
    return carried or [sample_value(schema)]


def _ends(value: object, carried: list[object], schema: Schema | None) -> list[object]:
    """Return a range that contains the old value, otherwise the schema's bounds."""
    tolerance = _table(value).get("tolerance", 0) if kind_of(value) == "near" else 0
    numbers = [number for number in carried if is_number(number)] if kind_of(value) not in WITHOUT_VALUE else []
    if numbers and is_number(tolerance):
        return [_short(min(numbers) - tolerance), _short(max(numbers) + tolerance)]
    low, high = keyword(schema, "minimum"), keyword(schema, "maximum")
    return [low if is_number(low) else -math.inf, high if is_number(high) else math.inf]


def _short(number: int | float) -> int | float:
    return int(number) if isinstance(number, float) and number.is_integer() and abs(number) < 1e15 else number


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else shown_value(value)
