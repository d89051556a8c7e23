"""Changes to a table that follow from the text typed into a form's cells."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator

from workbench.authoring.form.argument_schemas import argument_of
from workbench.authoring.form.cells import (
    as_argument,
    with_kind,
    with_option,
    with_optional,
    with_required,
    with_weight,
)
from workbench.authoring.form.cells import with_text as with_expected
from workbench.authoring.form.field_text import (
    ABSENT,
    CellError,
    read_number,
    read_text,
    read_texts,
    read_times,
    read_value,
    read_whole,
    value_at,
    with_key_renamed,
    with_value,
    without,
)
from workbench.authoring.form.inner_rows import inner_fields
from workbench.authoring.form.row import Cell, FormRow, FormSource, holds_arguments, in_turn
from workbench.checks.check import check_name
from workbench.checks.values import is_function_reference
from workbench.dataclasses import dataclass
from workbench.suite.model import TEMPLATE_SKIP, derived_id
from workbench.suite.problems import Place
from workbench.suite.render import Table, holds_null
from workbench.suite.rules import NAMED_MEASURE
from workbench.trajectory.json_schema import TEXT, Schema

YES_NO = {"yes": True, "no": False, "true": True, "false": False}


@dataclass(frozen=True)
class Edit:
    """A change: the new table, the place for the cursor, and a summary."""

    table: Table
    place: Place
    summary: str


def edited(source: FormSource, row: FormRow, cell: Cell, text: str) -> Edit:
    """Apply the text that the user typed into a cell, and return the change.

    If the text is unchanged, the table is the same object. Raises CellError with advice if the text is invalid."""
    place = row.place
    if text == cell.text:  # the same object, so that there is no undo step
        return Edit(source.table, place, f"{name_of(source, row)} changed")
    if cell.kind == "key":
        name = read_text(text)
        table, place = _renamed(source.table, cell, name), (*cell.place[:-1], name)
    elif cell.kind == "one_key":
        table, place = _under_other_key(source.table, cell, text), (*cell.place[:-1], text)
    elif cell.kind == "args":
        table = _with_args(source.table, cell, text)
    else:
        table = with_written(source.table, cell.place, _read(source, cell, text))
        if cell.place == ("user",) and table.get("skip") == TEMPLATE_SKIP:
            # `workbench init` had skipped the case because this value was missing, so the case is no longer skipped.
            table = without(table, ("skip",))
    return Edit(table, place, f"{name_of(source, row)} changed")


def with_written(table: Table, place: Place, value: object) -> Table:
    """Set the value at a place. If `value` is `ABSENT`, remove the value at the place.

    Some tables may be written as plain text, such as a fact without a condition. The text becomes a table when another
    key is set, and plain text again when that key is removed."""
    if value is ABSENT:
        if value_at(table, place) is ABSENT:
            return table
        return with_short_forms(without(table, place), place)
    return with_short_forms(with_value(with_long_forms(table, place), place, value), place)


def with_long_forms(table: Table, place: Place) -> Table:
    """If a place is inside a value that is written as plain text, write that value as a table.

    Such values are the user's message, a fact, and a text of `final.says`."""
    for owner, key in _short_forms(place):
        text = value_at(table, owner)
        if isinstance(text, str):
            long: dict[str, object] = {key: text} if text.strip() else {}
            if key == "messages" and long:
                long = {key: [{"say": text}]}
            table = with_value(table, owner, long)
    return table


def with_short_forms(table: Table, place: Place) -> Table:
    """If the table of a fact or of a text of `final.says` has a single key, write it as plain text."""
    for owner, key in _short_forms(place):
        long = value_at(table, owner)
        if owner != ("user",) and isinstance(long, dict) and list(long) == [key]:
            table = with_value(table, owner, long[key])
    return table


def _short_forms(place: Place) -> Iterator[tuple[Place, str]]:
    """Yield the places of the tables around a place that a suite may also write as a plain text.

    Each place comes with the key under which a full table has this text."""
    if place[:1] == ("user",) and len(place) > 1:
        yield ("user",), "messages" if place[1] == "messages" else "opening"
    if place[:2] == ("user", "facts") and len(place) > 3:
        yield place[:3], "value"
    if place[:2] == ("final", "says") and len(place) > 3:
        yield place[:3], "text"


def with_id(source: FormSource, table: Table) -> Table:
    """Write the case's id into its table. The case then keeps its history even if it is renamed."""
    name = source.table.get("name")
    if not source.is_case or "id" in source.table or "id" in table or not isinstance(name, str) or not name:
        return table
    return {"id": derived_id(name), **table}


def toggled(cell: Cell) -> str | None:
    """Return the text that Enter puts into a yes-or-no cell. Return `None` for other cells."""
    if cell.kind not in ("yes_no", "optional", "required"):
        return None
    if (cell.text or cell.shown).startswith("yes"):
        return "no"
    return "yes"


def schema_of(source: FormSource, place: Place) -> Schema | None:
    """Return the schema of the argument at a place. For an answer of the model, return the schema of a string."""
    if _is_of_text(place):
        return TEXT
    above = next((at for at in range(len(place)) if holds_arguments(place[: at + 1])), None)
    if above is None or above + 1 == len(place):  # a result or all arguments, which have no schema here
        return None
    argument = place[: above + 2]
    info = argument_of(source.tool(value_at(source.table, place[:above])), str(argument[-1]))
    if info is None:
        return None
    for inner in inner_fields(argument, "", value_at(source.table, argument), info.schema):
        if inner.place == place:
            return inner.schema
    return info.schema if place == argument else None


def _is_of_text(place: Place) -> bool:
    """Return whether the check at a place applies to text: an answer, the message of a request, or a conversation."""
    if in_turn(place)[:1] == ("response",) or place[:2] == ("final", "goal"):
        return True
    if place[0] == "user":
        return place[3:5] == ("when", "answer") or place[1:3] == ("stop", "answer")
    return place[0] == "answers" and place[2:3] == ("message",)


def name_of(source: FormSource, row: FormRow) -> str:
    """Return a name for what a row shows, such as `room of set_lights`, `the call set_tv` or `tags`."""
    keys = [part for part in row.place if isinstance(part, str)]
    if row.kind == "item":
        item = value_at(source.table, row.place)
        named = ""
        for key in ("role", "name", "tool"):
            if isinstance(item, dict) and item.get(key):
                named = item[key]
        return f"{_ITEMS.get(keys[-1], keys[-1])} {named}".rstrip()
    # The name of an argument is ambiguous without the tool of its call.
    own = str(row.place[-1]) if row.place else row.label
    for length in range(len(row.place) - 1, 0, -1):
        around = value_at(source.table, row.place[:length])
        if isinstance(around, dict) and isinstance(around.get("tool"), str):
            return f"{own} of {around['tool']}"
    return own


_ITEMS = {
    "ordered": "the call",
    "any_order": "the call",
    "any_of": "the alternative",
    "unordered": "the call",
    "disallowed": "the disallowed call",
    "messages": "the message",
    "tool_calls": "the tool call",
    "mocks": "the mock",
    "results": "the result",
    "steps": "the step",
    "servers": "the server",
    "tools": "the tool",
    "provider_tools": "the provider tool",
    "aggregates": "the aggregate",
    "variants": "the variant",
    "changes": "the change of",
    "images": "the image",
    "setup": "the call of setup",
    "state": "the state that is asked of",
    "says": "the text",
    "answers": "the answer",
}


def _read(source: FormSource, cell: Cell, text: str) -> object:
    value = value_at(source.table, cell.place)
    match cell.kind:
        case "check":
            before = "" if value is ABSENT else value
            return _argument(cell, with_kind(before, read_text(text), schema_of(source, cell.place)))
        case "expected":
            return _argument(cell, with_expected(value, text, schema_of(source, cell.place)))
        case "option":
            return as_answer(cell.place, with_option(value, cell.option, text))
        case "optional":
            return with_optional(value, _yes_no(text))
        case "required":
            required = _yes_no(text) if text.strip() else None
            return as_answer(cell.place, with_required(value, required))
        case "weight":
            return with_weight(value, text)
        case "tool":
            name = read_text(text)
            # A step without a tool expects no call, and an answer without a tool applies to every tool, so the key is
            # removed.
            may_be_absent = cell.place[0] in ("steps", "answers") or cell.place[-1] == "after_tool"
            if not name and may_be_absent and "any_of" not in cell.place:
                return ABSENT
            return name
    # Two quotes stand for an empty text.
    if cell.kind in ("text", "lines") and text.strip() == '""':
        return ""
    # An empty cell removes the key, so that the default applies.
    if not text.strip():
        return text if cell.empty_stays else ABSENT
    match cell.kind:
        case "choice":
            of_answer = cell.place[-1] == "of" and text.strip().startswith(NAMED_MEASURE)  # cases define such names
            if cell.place[-1] == "extra_calls" and text.strip().startswith("["):
                return read_value(text)
            if text.strip() not in cell.choices and not of_answer:
                raise CellError(f"write one of {', '.join(cell.choices)}")
            return text.strip()
        case "number":
            limits = cell.limits
            if limits.whole:
                return read_whole(text, int(limits.least), limits.most)
            return read_number(text, limits.least, limits.most)
        case "yes_no":
            return _yes_no(text)
        case "names":
            return read_texts(text) or ABSENT
        case "words":
            return _words(text)
        case "times":
            return read_times(text)
        case "value":
            return read_value(text, schema_of(source, cell.place))
        case "json":
            return _json(text, as_text=isinstance(value, str))
        case "response":
            if cell.place == ("final", "goal"):
                return {"judged": read_text(text)}
            return read_text(text)
        case _:
            return text


def _argument(cell: Cell, value: object) -> object:
    if in_turn(cell.place)[:1] == ("response",):
        return as_answer(cell.place, value)
    return as_argument(str(cell.place[-1]), value)


def as_answer(place: Place, value: object) -> object:
    """Return a plain value as a table with `equals` if the place is a named check of the answer.

    Other values are returned unchanged."""
    own = in_turn(place)
    is_named = len(own) > 1 and own[0] == "response"
    if not is_named or check_name(value):
        return value
    return {"equals": value}


def _yes_no(text: str) -> bool:
    answer = YES_NO.get(text.strip().lower())
    if answer is None:
        raise CellError("write yes or no")
    return answer


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        raise CellError("a quotation mark is not closed") from None


def _json(text: str, *, as_text: bool) -> object:
    """Read a JSON object as a table.

    With `as_text`, return the text unchanged. Do the same if the JSON contains null, which TOML cannot express."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise CellError(f"not JSON yet, at line {error.lineno}, column {error.colno}: {error.msg}") from None
    except (ValueError, RecursionError):
        raise CellError("not JSON: it is nested too deeply, or a number is too long") from None
    if not isinstance(value, dict):
        raise CellError('a schema is an object: { "type": "object", "properties": { … } }')
    if as_text or holds_null(value):
        return text
    return value


def _renamed(table: Table, cell: Cell, name: str) -> Table:
    if not name:
        raise CellError("write a name")
    others = value_at(table, cell.place[:-1])
    if name != cell.place[-1] and isinstance(others, dict) and name in others:
        raise CellError(f"the name {name} is taken")
    renamed = with_key_renamed(table, cell.place, name)
    if holds_arguments(cell.place[:-1]) and "tool_calls" not in cell.place:
        place = (*cell.place[:-1], name)
        return with_value(renamed, place, as_argument(name, value_at(renamed, place)))
    return renamed


def _under_other_key(table: Table, cell: Cell, text: str) -> Table:
    if text not in cell.choices:
        raise CellError(f"write one of {', '.join(cell.choices)}")
    old = str(cell.place[-1])
    value = ABSENT
    if cell.text:
        value = value_at(table, cell.place)
    place = (*cell.place[:-1], text)
    if value is ABSENT:
        return with_value(table, place, _converted(text, ""))
    # Only `results` can hold several answers. Under another key, only the first answer is kept.
    if old == "results" and isinstance(value, list):
        value = (value or [""])[0]
    renamed = with_key_renamed(table, cell.place, text)
    return with_value(renamed, place, _converted(text, value))


def _converted(key: str, value: object) -> object:
    text = value if isinstance(value, str) else ""
    match key:
        case "result":
            return value
        case "results":  # the answers to successive calls
            return [value]
        case "command":
            return [text or "python"]
        case "python":
            return text if is_function_reference(text) else ""
        case _:
            return text


def _with_args(table: Table, cell: Cell, text: str) -> Table:
    match text.strip():
        case "any":
            # `without` would also remove a table that becomes empty, which must stay.
            owner = value_at(table, cell.place[:-1])
            assert isinstance(owner, dict)
            remaining = dict(owner)
            remaining.pop(str(cell.place[-1]), None)
            return with_value(table, cell.place[:-1], remaining)
        case "none":
            nothing: object = [] if cell.place == ("final", "changes") else {}
            return with_value(table, cell.place, nothing)
    raise CellError("write `any` or `none`, or add an element with +")
