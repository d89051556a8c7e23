"""The rows of calls, of their checks, and of the mocks and messages of a case."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal, get_args

from workbench.authoring.form.argument_schemas import argument_of, mark, mark_name
from workbench.authoring.form.cells import (
    because_text,
    class_of,
    form_names,
    is_optional,
    kind_of,
    options_of,
    required_text,
    value_text,
    weight_text,
)
from workbench.authoring.form.field_text import (
    ABSENT,
    items_at,
    only_keys,
    shown_name,
    shown_value,
    value_at,
)
from workbench.authoring.form.inner_rows import InnerField, inner_fields, parts_text
from workbench.authoring.form.row import (
    DETAIL,
    Cell,
    CellKind,
    Field,
    FormRow,
    FormSource,
    Limits,
    field_row,
    field_rows,
    heading,
    in_turn,
    marks_of,
    number_of,
    one_of_keys,
    raw_row,
    section,
    tool_cell,
    tool_marks,
    unknown_rows,
)
from workbench.checks.answer_checks import are_named_checks
from workbench.suite.expected_calls import DisallowedCall
from workbench.suite.model import Step
from workbench.suite.problems import Place
from workbench.suite.render import Table
from workbench.trajectory.json_schema import TEXT, Schema

FORBIDDEN_ARGS = Field("forbidden_args", "names", rare=True)
ONLY_ARGS = Field("only_args", "yes_no", "no", rare=True)
OPTIONAL = Field("optional", "yes_no", "no", rare=True)
TIMES = Field("times", "times", "once", rare=True)
RETURNS_ERROR = Field("is_error", "yes_no", "either", rare=True)
BECAUSE = Field("because", "text", "no reason", rare=True)
PARALLEL = Field("parallel", "yes_no", "no", rare=True)


def calls_section(source: FormSource, owner: Place, indent: int = 0, *, is_rare: bool = False) -> Iterator[FormRow]:
    """Yield the rows of a list of expected calls. A list `ordered` may contain any-order groups."""
    written = value_at(source.table, owner)
    if written is not ABSENT and not isinstance(written, list):
        yield raw_row(owner, indent, written)
        return
    items = items_at(source.table, owner)
    yield heading(owner, indent, items, is_rare=is_rare)
    inner_indent = indent + 1 + DETAIL
    for index, item in enumerate(items):
        place: Place = (*owner, index)
        if isinstance(item, dict) and isinstance(item.get("any_order"), list):
            note = "in one answer" if item.get("parallel") is True else "in any order"
            yield FormRow("item", place, indent + 1, str(index + 1), note=note)
            yield field_row(item, place, PARALLEL, inner_indent)
            yield from unknown_rows(item, place, inner_indent, ("any_order", "parallel"))
            for inner, call in enumerate(item["any_order"]):
                at = (*place, "any_order", inner)
                yield from call_rows(source, at, call, inner_indent, f"{index + 1}.{inner + 1}")
        else:
            yield from call_rows(source, place, item, indent + 1, str(index + 1))


def call_rows(source: FormSource, place: Place, call: object, indent: int, label: str) -> Iterator[FormRow]:
    if not isinstance(call, dict):
        yield raw_row(place, indent, call, label)
        return
    inner = indent + DETAIL
    if isinstance(call.get("any_of"), list):
        yield FormRow("item", place, indent, label, note="one of")
        yield from alternative_rows(source, place, call, inner, label)
        yield from _resolved_rows(source, place, call, inner)
        yield from unknown_rows(call, place, inner, tuple(DisallowedCall.model_fields))
        return
    yield replace(_tool_row(place, call, indent, label), marks=tool_marks(source, call))
    # Rows of keys that are not written are included. `form_rows` hides these rows.
    details = [
        *argument_rows(source, (*place, "args"), call.get("args", ABSENT), inner, call),
        field_row(call, place, FORBIDDEN_ARGS, inner),
        field_row(call, place, ONLY_ARGS, inner),
        *_resolved_rows(source, place, call, inner),
        *(_condition_rows(source, place, call, inner) if _is_forbidden(place) else ()),
        *unknown_rows(call, place, inner, tuple(DisallowedCall.model_fields)),
    ]
    yield from details


def alternative_rows(source: FormSource, place: Place, call: Table, indent: int, label: str) -> Iterator[FormRow]:
    for number, alternative in enumerate(items_at(call, ("any_of",))):
        yield from call_rows(source, (*place, "any_of", number), alternative, indent, f"{label}.{number + 1}")


def _is_forbidden(place: Place) -> bool:
    """Return whether the element at a place is a whole forbidden call, and not a part of a forbidden call."""
    own = in_turn(place)
    return own[0] == "disallowed" and len(own) == 2


def _resolved_rows(source: FormSource, place: Place, call: Table, indent: int) -> Iterator[FormRow]:
    """Yield the rows for how often a call is expected, for its result, and for the reason (`because`).

    A forbidden call has only the row for the reason."""
    if _is_forbidden(place):
        yield field_row(call, place, BECAUSE, indent)
        return
    owner = in_turn(place)[0]
    if owner == "disallowed":
        yield from result_rows(place, call, indent, is_rare=True)
        yield field_row(call, place, RETURNS_ERROR, indent)
    if owner in ("ordered", "unordered", "final") and "any_of" not in place:
        ids = tuple(source.message_ids)
        if ids or "after_message" in call:
            yield field_row(call, place, Field("after_message", "text", rare=True, choices=ids), indent)
    if owner not in ("ordered", "unordered", "steps"):
        return
    if owner != "steps" and "any_of" not in place:
        yield from field_rows(call, place, (OPTIONAL, TIMES), indent)
    yield from result_rows(place, call, indent, is_rare=True)
    yield field_row(call, place, RETURNS_ERROR, indent)
    if "any_of" not in place:
        yield field_row(call, place, BECAUSE, indent)


CheckedKey = Literal["result", "message", "answer", "goal"]
"""A key whose value is a check. `result` belongs to a call, `message` and `answer` to a condition, and `goal` to a
conversation."""


def result_rows(
    place: Place, call: Table, indent: int, *, is_rare: bool = False, key: CheckedKey = "result"
) -> Iterator[FormRow]:
    """Yield the rows of the check under `key` in the table `call`.

    The table describes a call, a condition or a conversation (see `CheckedKey`)."""
    at = (*place, key)
    if key not in call:
        check = Cell("check", at, absent=True, shown=f"any {key}" if is_rare else f"which {key}?", choices=form_names())
        cells = (check,) if is_rare else (check, Cell("response", at, absent=True))
        yield FormRow("field", at, indent, key, cells, absent=True, rare=is_rare)
        return
    value = call[key]
    schema = None if key == "result" else TEXT
    parts = list(inner_fields(at, key, value, schema))
    kind, expected, _ = check_cells(at, value, schema)
    yield FormRow("field", at, indent, key, (kind, replace(expected, summary=parts_text(value, parts))))
    # The key `required` has no effect, because these checks always decide. The key `because` has an effect only where
    # an issue quotes it.
    without_effect = ("required",) if key in ("result", "goal") else ("required", "because")
    for row in option_rows(at, value, indent + 2, of_answer=True):
        if row.place[-1] not in without_effect:
            yield row
    # The labels contain the whole path, so the rows need no indentation.
    for part in parts:
        yield from _inner_rows(part, indent)


def _condition_rows(source: FormSource, place: Place, call: Table, indent: int) -> Iterator[FormRow]:
    for key in ("before", "after"):
        at = (*place, key)
        if key in call:
            yield from call_rows(source, at, call[key], indent, key)
        else:
            # When the user enters the name of a tool here, the call is written.
            yield FormRow("field", at, indent, key, (tool_cell((*at, "tool"), ABSENT),), absent=True, rare=True)


def step_rows(source: FormSource, index: int, step: object, system: str) -> Iterator[FormRow]:
    """Yield the rows of one step of a chain. `system` is the system prompt for a step without its own."""
    place: Place = ("steps", index)
    if not isinstance(step, dict):
        yield raw_row(place, 1, step, str(index + 1))
        return
    head = _tool_row(place, step, 1, str(index + 1))
    if isinstance(step.get("any_of"), list):
        head = replace(head, cells=(), note="one of")
    elif "tool" not in step:
        head = replace(head, cells=(replace(head.cells[0], absent=True, shown="no call expected"),))
    yield replace(head, marks=tool_marks(source, step))
    inner = 1 + DETAIL
    # Only the first step needs a message. The other steps may continue with the results of calls.
    asked = "what is asked?" if index == 0 or "user" in step else "none"
    fields = (Field("user", "lines", asked), Field("system", "lines", system, rare=True, empty_stays=True))
    details = list(field_rows(step, place, fields, inner))
    if isinstance(step.get("any_of"), list):
        details += alternative_rows(source, place, step, inner, str(index + 1))
    elif "tool" in step or "args" in step:
        details += argument_rows(source, (*place, "args"), step.get("args", ABSENT), inner, step)
        details += field_rows(step, place, (FORBIDDEN_ARGS, ONLY_ARGS), inner)
    if "tool" in step or "any_of" in step:
        details += _resolved_rows(source, place, step, inner)
    details.append(field_row(step, place, Field("mock_result", "value"), inner))
    yield from [*details, *unknown_rows(step, place, inner, tuple(Step.model_fields))]


def argument_rows(source: FormSource, place: Place, args: object, indent: int, call: Table) -> list[FormRow]:
    """Return the rows of a call's arguments (`args`), or of the arguments for which a mock answers (`when`)."""
    key = str(place[-1])
    if args is ABSENT or args == {}:
        if key == "when":  # without conditions, a mock answers any arguments
            return [FormRow("section", place, indent, key, absent=True, note="any")]
        # Without the key, arguments are not checked. An empty table means that the call must have no arguments.
        is_absent = args is ABSENT
        shown = "any" if is_absent else "none"
        cell = Cell("args", place, shown, is_absent, shown, choices=("any", "none"))
        return [FormRow("section", place, indent, key, (cell,), absent=is_absent)]
    if not isinstance(args, dict):
        return [raw_row(place, indent, args)]
    rows: list[FormRow] = []
    deeper = indent
    if key != "args":
        rows.append(FormRow("section", place, indent, key))
        deeper += 2
    tool = source.tool(call)
    for name, value in args.items():
        at = (*place, name)
        info = argument_of(tool, name)
        schema: Schema | None = None
        if info is not None:
            schema = info.schema
        # If the tool has no such argument, say that instead of checking the value.
        text = mark_name(tool, name) or mark(value, schema)
        kind, expected, weight = check_cells(at, value, schema)
        # The parts of the value have their own rows below this row.
        fields = list(inner_fields(at, shown_name(name), value, schema))
        expected = replace(expected, summary=parts_text(value, fields))
        cells = (Cell("key", at, shown_name(name)), kind, expected, weight)
        rows.append(FormRow("pair", at, deeper, "", cells, marks=marks_of(text)))
        rows += option_rows(at, value, deeper + 2)
        for inner in fields:
            rows += _inner_rows(inner, deeper + 2)
    return rows


def _inner_rows(field: InnerField, indent: int) -> Iterator[FormRow]:
    kind, expected, _ = check_cells(field.place, field.value, field.schema)
    cells = (kind, replace(expected, summary=field.summary))
    marks = marks_of(mark(field.value, field.schema))
    yield FormRow("field", field.place, indent, field.label, cells, marks=marks)
    # A field can be optional, but an element of a list cannot.
    is_element = isinstance(field.place[-1], int) or field.place[-1] == "each_element"
    for row in option_rows(field.place, field.value, indent + 2, of_answer=is_element):
        if row.label != "required":
            yield row


def check_cells(place: Place, value: object, schema: Schema | None) -> tuple[Cell, ...]:
    """Return the cells of one check: its kind, its expected value and its weight."""
    kind, weight = kind_of(value), weight_text(value)
    expected = Cell("expected", place, value_text(value, schema))
    if class_of(value).accepts_all:
        expected = replace(expected, shown="any value")
    of_weight = Cell("weight", place, weight)
    if not weight:
        of_weight = replace(of_weight, absent=True, shown="weight")
    return Cell("check", place, kind, choices=form_names()), expected, of_weight


def option_rows(place: Place, value: object, indent: int, *, of_answer: bool = False) -> Iterator[FormRow]:
    """Yield the rows of a check's options, and of the keys `optional` and `required` where these keys apply."""
    is_plain = kind_of(value) == "is"
    for option in options_of(value):
        cell = Cell("option", place, option.text, not option.text, option.default or "none", option=option.name)
        at = (*place, option.name)
        yield FormRow("field", at, indent, option.name, (cell,), absent=not option.text, rare=is_plain)
    if not of_answer:  # an answer cannot be left out
        optional = is_optional(value)
        cell = Cell("optional", place, "yes" if optional else "no", absent=not optional)
        yield FormRow("field", (*place, "optional"), indent, "optional", (cell,), absent=not optional, rare=True)
    if len(place) > 1 and place[-2] != "when":  # a mock matches arguments, but grades none
        text = required_text(value)
        cell = Cell("required", place, text)
        if not text:
            cell = replace(cell, absent=True, shown="yes" if of_answer else "as the grader has it")
        yield FormRow("field", (*place, "required"), indent, "required", (cell,), absent=not text, rare=True)
        text = because_text(value)
        cell = Cell("option", place, text, not text, "no reason", option="because")
        yield FormRow("field", (*place, "because"), indent, "because", (cell,), absent=not text, rare=True)


def response_rows(place: Place, response: object, indent: int = 0, *, is_rare: bool = False) -> Iterator[FormRow]:
    """Yield the rows for the check of the model's answer, or for several named checks of it."""
    if response is ABSENT:
        check = Cell("check", place, absent=True, shown="none", choices=form_names())
        cells = (check, Cell("response", place, absent=True))
        yield FormRow("field", place, indent, "response", cells, absent=True, rare=is_rare)
        return
    if isinstance(response, dict) and are_named_checks(response):
        yield FormRow("section", place, indent, "response")
        for name, value in response.items():
            at = (*place, name)
            pair = (Cell("key", at, shown_name(name)), *check_cells(at, value, TEXT)[:2])
            yield FormRow("pair", at, indent + 2, "", pair)
            yield from option_rows(at, value, indent + 2 + DETAIL, of_answer=True)
        return
    checks = check_cells(place, response, TEXT)
    # A weight has no effect here, so its cell is shown only if a weight is written.
    yield FormRow("field", place, indent, "response", checks if checks[2].text else checks[:2])
    yield from option_rows(place, response, indent + 1 + DETAIL, of_answer=True)


def _tool_row(place: Place, call: Table, indent: int, label: str) -> FormRow:
    tool = call.get("tool", ABSENT)
    cell = tool_cell((*place, "tool"), tool)
    return FormRow("item", place, indent, label, (cell,))


Role = Literal["user", "assistant", "tool"]

ANSWERS: tuple[str, ...] = ("result", "results", "error", "python")
"""The keys of a mock's answer. A mock has exactly one of them."""

ROLES: tuple[Role, ...] = get_args(Role)
STATE = Field("state", "choice", "run", choices=("run", "batch"), rare=True)
TIMES = Field("times", "number", rare=True, limits=Limits(1, whole=True))
DELAY_MS = Field("delay_ms", "number", "0", rare=True, limits=Limits(0))
IS_ERROR = Field("is_error", "yes_no", "no", rare=True)

_KEYS_OF_ROLE: dict[object, tuple[str, ...]] = {
    "user": ("content",),
    "assistant": ("content", "tool_calls"),
    "tool": ("call", "content", "is_error"),
}


def mocks_section(source: FormSource) -> Iterator[FormRow]:
    yield from section(source, "mocks", _mock_rows)


def messages_section(source: FormSource) -> Iterator[FormRow]:
    yield from section(source, "messages", _message_rows)


def _mock_rows(source: FormSource, place: Place, mock: Table) -> Iterator[FormRow]:
    indent = 1 + DETAIL
    tool = mock.get("tool", ABSENT)
    cells = (tool_cell((*place, "tool"), tool),)
    yield FormRow("item", place, 1, number_of(place), cells, marks=tool_marks(source, mock))
    details = argument_rows(source, (*place, "when"), mock.get("when", ABSENT), indent, mock)
    results = mock.get("results")
    answers: list[FormRow] = []
    if isinstance(results, list) and results and list(only_keys(mock, ANSWERS)) == ["results"]:
        chosen = Cell("one_key", (*place, "results"), "results", choices=ANSWERS)
        answers.append(FormRow("section", (*place, "results"), indent, "", (chosen,)))
        for index, result in enumerate(results):
            at = (*place, "results", index)
            cell = Cell("value", at, shown_value(result), empty_stays=True)
            answers.append(FormRow("item", at, indent + 2, str(index + 1), (cell,)))
    else:
        kinds: dict[str, CellKind] = {"result": "value", "results": "value", "error": "text", "python": "text"}
        answers.append(one_of_keys(mock, place, ANSWERS, kinds, indent))
        # A mock with two answers is an error. The second is shown, so that the user can remove it.
        for key in list(only_keys(mock, ANSWERS))[1:]:
            answers.append(raw_row((*place, key), indent, mock[key]))
    fields = [TIMES, DELAY_MS]
    if "python" in mock or "state" in mock:
        fields.insert(0, STATE)
    others = [field_row(mock, place, field, indent) for field in fields]
    others += unknown_rows(mock, place, indent, _MOCK_KEYS)
    yield from [*details, *answers, *others]


_MOCK_KEYS = ("tool", "when", *ANSWERS, "state", "times", "delay_ms")


def _message_rows(source: FormSource, place: Place, message: Table) -> Iterator[FormRow]:
    indent = 1 + DETAIL
    role = message.get("role", ABSENT)
    text = ""
    if isinstance(role, str):
        text = role
    elif role is not ABSENT:
        text = shown_value(role)
    cell = Cell("choice", (*place, "role"), text, absent=role is ABSENT, choices=ROLES)
    if not text:
        cell = replace(cell, shown="which role?")
    yield FormRow("item", place, 1, number_of(place), (cell,))
    keys = _KEYS_OF_ROLE.get(role, ("content",))
    details: list[FormRow] = []
    # The cell suggests the ids of the calls in earlier messages.
    if "call" in keys:
        ids = tuple(dict.fromkeys(_call_ids(source)))
        call = Field("call", "text", "which call?", choices=ids, empty_stays=True)
        details.append(field_row(message, place, call, indent))
    words = "none" if "tool_calls" in message else "what is said?"
    details.append(field_row(message, place, Field("content", "lines", words, empty_stays=True), indent))
    if "is_error" in keys:
        details.append(field_row(message, place, IS_ERROR, indent))
    # Keys that the role does not have are shown as unknown, so that the user can remove them.
    calls = message.get("tool_calls")
    known = ["role", *keys, "content"]
    rows: list[FormRow] = []
    if isinstance(calls, list):
        known.append("tool_calls")
        rows.append(FormRow("section", (*place, "tool_calls"), indent, "tool_calls"))
        for index, call in enumerate(calls):
            rows += _past_call_rows(source, (*place, "tool_calls", index), call, indent + 1)
    elif "tool_calls" in keys and "tool_calls" not in message:
        rows.append(FormRow("section", (*place, "tool_calls"), indent, "tool_calls", absent=True, note="none"))
    yield from [*details, *unknown_rows(message, place, indent, tuple(known)), *rows]


def _past_call_rows(source: FormSource, place: Place, call: object, indent: int) -> Iterator[FormRow]:
    if not isinstance(call, dict):
        yield raw_row(place, indent, call)
        return
    yield FormRow("item", place, indent, number_of(place), (tool_cell((*place, "tool"), call.get("tool", ABSENT)),))
    indent += DETAIL
    rows = [field_row(call, place, Field("id", "text", "which id?", empty_stays=True), indent)]
    rows += given_rows(source, place, call, indent)
    yield from [*rows, *unknown_rows(call, place, indent, ("id", "tool", "args"))]


def given_rows(source: FormSource, place: Place, call: Table, indent: int) -> list[FormRow]:
    """Return the rows of the arguments of a call that the suite prescribes. Their values are not checks."""
    rows = []
    arguments = call.get("args", {})
    if isinstance(arguments, dict):
        tool = source.tool(call)
        if not arguments:
            rows.append(FormRow("section", (*place, "args"), indent, "args", absent="args" not in call, note="none"))
        for name, value in arguments.items():
            at = (*place, "args", name)
            info = argument_of(tool, name)
            schema = info.schema if info is not None else None
            shown = shown_value(value, schema)
            cells = (Cell("key", at, shown_name(name)), Cell("value", at, shown, empty_stays=True))
            text = mark_name(tool, name) or mark({"equals": value}, schema)
            rows.append(FormRow("pair", at, indent, "", cells, marks=marks_of(text)))
    else:
        rows.append(raw_row((*place, "args"), indent, arguments))
    return rows


def _call_ids(source: FormSource) -> Iterator[str]:
    for message in items_at(source.table, ("messages",)):
        for call in items_at(message, ("tool_calls",)):
            if isinstance(call, dict) and isinstance(call.get("id"), str):
                yield call["id"]
