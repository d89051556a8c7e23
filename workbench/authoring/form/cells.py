"""Converts an expected argument (a plain value, or a table with one check) to the cells of a form's row, and back.

A plain value and an `equals` check both appear as the check `is`. The parameter `schema` is the schema of the argument,
or `None` if unknown. Every value that TOML can express is stored as typed. An invalid pattern or Python reference is
therefore reported as a problem of the suite."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from workbench.authoring.form.field_text import (
    CellError,
    only_keys,
    read_checks,
    read_choice,
    read_duration,
    read_fields,
    read_length,
    read_number,
    read_range,
    read_switch,
    read_text,
    read_tolerance,
    read_value,
    read_values,
    shown_name,
    shown_range,
    shown_text,
    shown_value,
    shown_values,
    without_keys,
)
from workbench.checks.check import (
    AMBIGUOUS_ARGUMENTS,
    CHECK_CLASSES,
    OPTION_NAMES,
    CheckBase,
    ReplacedCheck,
    carried_values,
    check_name,
)
from workbench.checks.fields import NAMED_WEIGHTS, Editor, is_percent
from workbench.checks.value_kinds import ANY_VALUE, NOT_GIVEN
from workbench.dataclasses import dataclass
from workbench.numerals import integer_if_whole
from workbench.suite.problems import did_you_mean
from workbench.suite.render import Table
from workbench.trajectory.json_schema import (
    Schema,
    allowed_values,
    is_number,
    items_of,
    keyword_value,
    sample_value,
    types_of,
)

COMMON_CHECK_KEYS = ("weight", "optional", "required", "because")
"""The options that every check has. They stay when an argument gets a different check."""

_READERS: dict[str, Callable[[str, Editor, Schema | None], object]] = {
    "value": lambda text, editor, schema: read_value(text, schema),
    "values": lambda text, editor, schema: read_values(text, schema),
    "check": lambda text, editor, schema: read_value(text, items_of(schema)),
    "checks": lambda text, editor, schema: read_checks(text, may_be_empty=editor.least == 0),
    "fields": lambda text, editor, schema: read_fields(text),
    "text": lambda text, editor, schema: read_text(text),
    "time": lambda text, editor, schema: read_text(text),
    "model": lambda text, editor, schema: read_text(text),
    "number": lambda text, editor, schema: read_number(text, editor.least, editor.most),
    "range": lambda text, editor, schema: read_range(text),
    "duration": lambda text, editor, schema: read_duration(text),
    "choice": lambda text, editor, schema: read_choice(text, editor.words),
    "length": lambda text, editor, schema: read_length(text),
    "tolerance": lambda text, editor, schema: read_tolerance(text),
    "yes or no": lambda text, editor, schema: read_switch(text),
}


@dataclass(frozen=True, slots=True)
class OptionCell:
    """An option of a check.

    `text` is the content of its cell. If the option is not written, `text` is empty, and `default` applies if there is
    a default."""

    name: str
    text: str
    default: str


def form_names() -> tuple[str, ...]:
    """Return the names of all checks in the form, in the order of the format's documentation."""
    return tuple(cls.form_name for cls in CHECK_CLASSES.values())


def class_named(name: str) -> type[CheckBase] | None:
    """Return the class of a check by its name in the form, or `None` for an unknown name."""
    for cls in CHECK_CLASSES.values():
        if cls.form_name == name:
            return cls
    return None


def lists_values(name: str | None) -> bool:
    cls = class_named(name or "")
    return cls is not None and cls.editor().input_kind == "values"


def class_of(value: object) -> type[CheckBase]:
    """Return the check class of an expected argument. A plain value has the class of an `equals` check."""
    return CHECK_CLASSES[check_name(value) or "equals"]


def kind_of(value: object) -> str:
    """Return the form's name of a check. It is `is` for a plain value and for an `equals` check."""
    return class_of(value).form_name


def expected_of(value: object) -> object:
    name = check_name(value)
    if name is None:
        return value
    return _table(value)[name]


def value_text(value: object, schema: Schema | None = None) -> str:
    """Return the text of the cell with the expected value: `living room`, `5`, `5..40`, `red, blue`.

    Text that would be read as a number is quoted (`"5"`). A check without a value, such as `present`, has an empty
    text."""
    return _shown(class_of(value).editor(), expected_of(value), schema)


def with_text(value: object, text: str, schema: Schema | None = None) -> object:
    """Replace the expected value of an argument by the text that the user typed into its cell.

    The check and its options are kept, and unchanged text changes nothing. A value typed over `present` or
    `equals_null` becomes a plain value. Raises CellError if the text is not a valid value."""
    if text.strip() == value_text(value, schema):
        return value
    cls = class_of(value)
    if cls.editor().input_kind in ("nothing", "presence"):  # a value typed here becomes the expected value
        if cls.editor().input_kind == "presence" and text.strip() in (ANY_VALUE, NOT_GIVEN):
            return {**_table(value), cls.kind: text.strip() == ANY_VALUE}
        if not text.strip():
            return {cls.kind: True}
        return with_text(_with_check(value, {"equals": ""}), text, schema)
    expected = _READERS[cls.editor().input_kind](text, cls.editor(), schema)
    if (name := check_name(value)) is None:
        return expected
    return {**_table(value), name: expected}


def with_kind(value: object, kind: str, schema: Schema | None = None) -> object:
    """Replace the check of an argument by a check of the kind `kind`.

    The new check takes over the options that every check has, and as much of the expected value as possible. Raises
    CellError for an unknown check."""
    cls = class_named(kind) or CHECK_CLASSES.get(kind)
    if cls is None:
        types = types_of(schema)
        names = [each.form_name for each in CHECK_CLASSES.values() if types & each.types]
        way_out = did_you_mean(kind, names) or "write is or one_of, for example"
        raise CellError(f"no check has this name: {way_out}")
    old = class_of(value)
    if cls is old:
        return value
    # If the old check has no value to take over, the new check starts with a value that the schema allows.
    carried = carried_values(value) or _suggested(schema)
    parts = expected_of(value) if old.nests == "list" and not old.checks_parts else [_alone(value)]
    return _with_check(
        value, cls.from_replaced(ReplacedCheck(carried, _as_text(carried[0]), _ends(value, schema), parts))
    )


def options_of(value: object) -> tuple[OptionCell, ...]:
    """Return the options of an argument's check, even if they are not written.

    Options that every check has are left out."""
    cls, table = class_of(value), _table(value)
    cells = []
    for option in cls.options:
        # An unwritten option has an empty cell, which shows the default.
        text = ""
        if option in table:
            text = _shown(cls.editor(option), table[option])
        cells.append(OptionCell(option, text, default_text(cls, option)))
    return tuple(cells)


def default_text(cls: type[CheckBase], option: str) -> str:
    """Return the default of an option as text, or "" if it has none."""
    default = cls.model_fields[option].default
    if default is None:
        return ""
    return _shown(cls.editor(option), default)


def with_option(value: object, option: str, text: str | None) -> object:
    """Set an option of the check to the text of its cell. Empty text removes the option.

    Options that exclude the new option are removed. Raises CellError for an invalid value or an unknown option."""
    cls = class_of(value)
    if option not in cls.options and option not in COMMON_CHECK_KEYS:
        raise CellError(f"the check {cls.form_name} has no option {option}")
    if text is None or not text.strip():
        return _without(value, option)
    table = _table(value)
    # Of options that exclude each other, only the new option may stay.
    if option in cls.exclusive:
        table = without_keys(table, *(set(cls.exclusive) - {option}))
    table.setdefault(cls.kind, expected_of(value))  # a plain value becomes a check, because only a check has options
    editor = cls.editor(option)
    return {**table, option: _READERS[editor.input_kind](text, editor, None)}


def weight_text(value: object) -> str:
    """Return the text of the cell with the weight: a number or a name, or "" if no weight is written."""
    weight = _table(value).get("weight")
    if weight is None:
        return ""
    if isinstance(weight, str):
        return shown_text(weight)
    return shown_value(weight)


def with_weight(value: object, text: str | None) -> object:
    """Set the weight to the text of its cell. Empty text removes it. Raises CellError if the text is not a weight."""
    if text is None or not text.strip():
        return _without(value, "weight")
    # Names of weights may be typed with spaces or hyphens.
    name = read_text(text).lower().replace(" ", "_").replace("-", "_")
    if name in NAMED_WEIGHTS:
        return _with(value, "weight", name)
    try:
        weight = read_number(text, 0)
    except CellError:
        weight = math.inf
    if math.isinf(weight):
        raise CellError(f"write a weight: a number of at least 0, or {', '.join(NAMED_WEIGHTS)}")
    return _with(value, "weight", weight)


def is_optional(value: object) -> bool:
    return _table(value).get("optional") is True


def with_optional(value: object, optional: bool) -> object:
    if not optional:
        return _without(value, "optional")
    return _with(value, "optional", True)


def because_text(value: object) -> str:
    """Return the text of the cell for the key `because`, or "" if no reason is written."""
    return shown_text(because) if isinstance(because := _table(value).get("because"), str) else ""


def required_text(value: object) -> str:
    """Return the text of the cell for the key `required`: `yes`, `no`, or "" if the key is not written."""
    required = _table(value).get("required")
    if required is None:
        return ""
    return "yes" if required is True else "no"


def with_required(value: object, required: bool | None) -> object:
    """Set whether the argument must match. `None` leaves the decision to the grader."""
    if required is None:
        return _without(value, "required")
    return _with(value, "required", required)


def as_argument(name: str, value: object) -> object:
    """Return a value as the suite writes it under an argument's name.

    For some names, the format requires an explicit check. A plain value then becomes an `equals` check."""
    if name in AMBIGUOUS_ARGUMENTS and check_name(value) is None:
        return {"equals": value}
    return value


def _table(value: object) -> Table:
    if not isinstance(value, dict) or check_name(value) is None:
        return {}
    return dict(value)


def _with(value: object, option: str, to: object) -> object:
    table = _table(value) or {"equals": value}  # a plain value cannot have an option
    return {**table, option: to}


def _without(value: object, option: str) -> object:
    table = _table(value)
    if option not in table:
        return value
    del table[option]
    return _plain(table)


def _alone(value: object) -> object:
    """Return the check without the options that every check has. It is written so inside a combined check."""
    table = _table(value)
    if not table:
        return value
    return _plain(without_keys(table, *CheckBase.model_fields))


def _with_check(value: object, check: Mapping[str, object]) -> object:
    table = _table(value)
    return _plain({**check, **only_keys(table, COMMON_CHECK_KEYS)})


def _plain(table: Table) -> object:
    """Return a table with the single key `equals` as a plain value, unless the value would be read as a check."""
    if table.keys() != {"equals"}:
        return table
    value = table["equals"]
    if looks_like_check(value):
        return table
    return value


def looks_like_check(value: object) -> bool:
    """Return whether a plain table, written as the value of an argument, would be read as a check."""
    return isinstance(value, dict) and any(key in CHECK_CLASSES or key in OPTION_NAMES for key in value)


def _shown(editor: Editor, value: object, schema: Schema | None = None) -> str:
    """Return a value as text for the cell of an editor. A value that the editor cannot represent is shown as TOML."""
    # Values of these kinds are read back unchanged. Any other value would change, so it is shown as TOML.
    match editor.input_kind, value:
        case (("nothing" | "presence"), True):
            return ""
        case "presence", False:
            return NOT_GIVEN
        case "values", list():
            return shown_values(value, schema)
        case (("range" | "length"), [int() | float() as low, int() | float() as high]):
            return shown_range(low, high)
        case "choice", str():
            return shown_name(value)
        case (("text" | "time" | "model" | "duration"), str()):
            return shown_text(value)
        case "tolerance", str() if is_percent(value):
            return value
    return shown_value(value, schema if editor.input_kind == "value" else None)


def _suggested(schema: Schema | None) -> list[object]:
    first = sample_value(schema)
    return [first, *(value for value in allowed_values(schema) or () if value != first)]


def _ends(value: object, schema: Schema | None) -> list[object]:
    """Return the ends for a new range: the numbers of the old check, or else the bounds of the schema."""
    ends = list(filter(is_number, class_of(value).ends(_table(value) or {"equals": value})))
    if ends:
        return [integer_if_whole(min(ends)), integer_if_whole(max(ends))]
    low, high = keyword_value(schema, "minimum"), keyword_value(schema, "maximum")
    if not is_number(low):
        low = -math.inf
    if not is_number(high):
        high = math.inf
    return [low, high]


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    return shown_value(value)
