"""Add, remove, duplicate, move and group the elements that the rows of a form show.

Functions that change a table return the change, or the reason why it is impossible."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Literal

from workbench.authoring.form.answer_rows import ANSWERED
from workbench.authoring.form.argument_schemas import argument_of, arguments_of, tool_named
from workbench.authoring.form.call_rows import ROLES
from workbench.authoring.form.cells import with_option, with_optional, with_required
from workbench.authoring.form.completions import Completion, complete
from workbench.authoring.form.edits import Edit, as_answer, name_of, schema_of, with_long_forms, with_short_forms
from workbench.authoring.form.field_text import (
    ABSENT,
    CellError,
    items_at,
    read_text,
    read_value,
    value_at,
    with_item,
    with_items_swapped,
    with_value,
    without,
    without_keys,
)
from workbench.authoring.form.inner_rows import LISTS_OF_CHECKS
from workbench.authoring.form.row import FormRow, FormSource, holds_arguments, in_turn
from workbench.authoring.typed_servers import NEW_COMMAND
from workbench.checks.answer_checks import are_named_checks
from workbench.checks.check import check_name
from workbench.dataclasses import dataclass
from workbench.suite.grading_model import NEW_SUITE_EXTRA_CALLS
from workbench.suite.problems import Place
from workbench.suite.render import Table, suite_text
from workbench.trajectory.events import ToolDefinition


def expected_call(tool: ToolDefinition | str) -> Table:
    """Return an expected call. Each required argument of the tool gets a suggested value.

    If the tool requires no arguments, or only its name is known, any arguments are allowed."""
    if isinstance(tool, str):
        return {"tool": tool}
    from workbench.analysis.prefilled import first_value  # imported on use, because the first screen does not need it

    args = {}
    for argument in arguments_of(tool):
        if argument.required:
            args[argument.name] = first_value(argument.name, argument.schema)
    call: Table = {"tool": tool.name}
    if args:
        call["args"] = args
    return call


def _given_call(tool: ToolDefinition | str) -> Table:
    """Return a call for the suite to make. Required arguments get suggested values, or "" for the user to fill in."""
    from workbench.analysis.prefilled import values_of  # imported on use, because the first screen does not need it

    call = expected_call(tool)
    args = call.get("args")
    if isinstance(args, dict):
        # If there is no suggestion, an empty text is written for the user to fill in, because TOML has no null.
        suggested = values_of(args)
        for name in args:
            value = suggested.get(name)
            args[name] = "" if value is None else value
    return call


def new_message(role: Literal["user", "assistant", "tool"] = "user") -> Table:
    if role == "tool":
        return {"role": role, "call": "", "content": ""}
    return {"role": role, "content": ""}


def new_mock(tool: ToolDefinition | str) -> Table:
    return {"tool": _tool_name(tool), "result": {"ok": True}}


def _tool_name(tool: ToolDefinition | str) -> str:
    return tool if isinstance(tool, str) else tool.name


def new_step(tool: ToolDefinition | str | None, user: str | None) -> Table:
    """Return a step of a chain.

    `tool` is the tool of its expected call, and `user` is its message. Both may be `None`."""
    step: Table = {}
    if user is not None:
        step["user"] = user
    if tool is not None:
        step |= expected_call(tool)
    return step


def new_suite(name: str) -> str:
    """Return the text of a suite that has no cases and uses the offline model."""
    grading = {"extra_calls": NEW_SUITE_EXTRA_CALLS}
    return suite_text({"format": 1, "name": name, "models": ["offline"], "grading": grading})


CALL_LISTS = ("ordered", "unordered", "disallowed")
_ELEMENT_NAMES = {
    "servers": "server",
    "tools": "tool",
    "provider_tools": "provider tool",
    "aggregates": "aggregate",
    "variants": "variant",
}
"""The lists of named elements, each with the word for one element."""

_MAPS = (
    *(("servers", "env"), ("servers", "headers"), ("variants", "names"), ("variants", "changes", "arguments")),
    *(("subject", "env"), ("answers", "content"), ("user", "facts")),
)
"""The tables whose keys are not given by the format. Each is written as the keys of its place."""


@dataclass(frozen=True)
class PendingAddition:
    """A key or element to add to a form, for which the user may have to answer a question.

    `asks` is the question, or "" if there is none. `suggest` returns completions of the answer. `make` returns the
    change for an answer, or raises CellError if the answer is invalid."""

    asks: str
    make: Callable[[str], Edit]
    suggest: Callable[[str], tuple[Completion, ...]] = lambda typed: ()
    must_choose: bool = False
    """Whether only suggested answers are valid."""


def addition_at(source: FormSource, row: FormRow) -> PendingAddition | str:
    """Return how to add an element to the list that a row shows or belongs to.

    If nothing can be added, return the reason."""
    place = row.place
    for length in range(len(place), 0, -1):  # from the innermost list outward
        at = place[:length]
        if length < len(place) and _are_parts(source, at):
            return _part(source, at, place[length])
        if holds_arguments(at) and isinstance(value_at(source.table, at[:-1]), dict):
            return _argument(source, at)
        if _keys_of(at) in _MAPS:
            return _variable(source, at)
        if in_turn(at) == ("response",) and source.is_case:
            return _named_check(source, at)
        if (adder := _adder(at)) is not None:
            # The new element follows the element with the cursor. If the row shows the list itself, the new element
            # goes to the end of the list.
            index: str | int = len(items_at(source.table, at))
            inside = length < len(place)
            if inside:
                index = place[length]
            if isinstance(index, int):
                return adder(source, (*at, index + inside))
        for inner in ("any_order", "any_of"):
            if not _is_list((*at, inner)):
                continue
            if isinstance(value_at(source.table, (*at, inner)), list) and length == len(place):
                return _call(source, (*at, inner, len(items_at(source.table, (*at, inner)))))
    if source.is_chain:
        lists = "steps, messages or mocks"
    elif source.is_case:
        lists = "ordered, messages or mocks"
    else:
        lists = "tools, servers or mocks"
    return f"nothing can be added here: go to a list, such as {lists}"


def has_elements(place: Place) -> bool:
    """Return whether a place has a list, or a table whose keys are free names."""
    if holds_arguments(place) or _keys_of(place) in _MAPS or in_turn(place) == ("response",):
        return True
    return _is_list(place)


def removed(source: FormSource, row: FormRow) -> Edit | str:
    """Remove the list element that a row shows.

    If the row shows no list element, remove the row's key, so that the key's default applies."""
    if row.absent or row.kind == "more":
        return "there is nothing to remove here"
    text = f"{name_of(source, row)} removed"
    cell = row.cells[0] if row.cells else None
    if cell is not None and cell.kind in ("option", "optional", "required"):
        value = value_at(source.table, cell.place)
        if cell.kind == "option":
            value = with_option(value, cell.option, None)
        elif cell.kind == "optional":
            value = with_optional(value, False)
        else:
            value = with_required(value, None)
        value = as_answer(cell.place, value)
        return Edit(with_value(source.table, cell.place, value), row.place, text)
    if row.place in (("name",), ("format",)):
        return f"a {'case' if source.is_case else 'suite'} needs `{row.place[0]}`"
    if holds_arguments(row.place) or holds_arguments(row.place[:-1]):
        table = _without_argument(source.table, row.place)
    else:
        table = with_short_forms(without(source.table, row.place), row.place)
    return Edit(table, _beside(source.table, table, row.place), text)


def duplicated(source: FormSource, row: FormRow) -> Edit | str:
    """Duplicate the element that a row shows or belongs to."""
    place = item_of(row.place)
    if place is None:
        return "only elements of a list can be duplicated: calls, messages, mocks, steps, tools, servers"
    copy = deepcopy(value_at(source.table, place))
    if isinstance(copy, dict):
        # If two elements of the list must not have the same name or id, the copy needs a new name or id.
        unique = ""
        if "tool_calls" in place or _keys_of(place) == ("user", "messages"):
            unique = "id"
        elif place[0] in _ELEMENT_NAMES:
            unique = "name"
        if isinstance(copy.get(unique), str):
            items = items_at(source.table, place[:-1])
            taken = [item.get(unique) for item in items if isinstance(item, dict)]
            name, number = f"{copy[unique]}_2", 2
            while name in taken:
                number += 1
                name = f"{copy[unique]}_{number}"
            copy[unique] = name
    after = _after(place)  # the cursor goes to the copy, because the user will change it
    return Edit(with_item(source.table, after, copy), after, f"{_item_name(source, place)} duplicated")


def moved(source: FormSource, row: FormRow, step: int) -> Edit | str:
    """Move the list element of a row by one position, up (-1) or down (1)."""
    place = item_of(row.place)
    if place is None:
        return "only elements of a list can be moved: calls, messages, mocks, steps, tools, servers"
    index = _index(place)
    other = index + step
    if not 0 <= other < len(items_at(source.table, place[:-1])):
        if step < 0:
            return "it is already the first one"
        return "it is already the last one"
    table = with_items_swapped(source.table, place, other)
    rest = row.place[len(place) :]
    return Edit(table, (*place[:-1], other, *rest), f"{_item_name(source, place)} moved")


def grouped(source: FormSource, row: FormRow) -> Edit | str:
    """Put the call of a row into an any-order group.

    The call joins a neighbouring group. If there is none, it forms a group with the next call."""
    place = _ordered_item(row)
    if place is None:
        return "put the cursor on a call of `ordered`: only those have an order"
    if _is_in_group(place) or is_group(source.table, place):
        return "this call is already in an any-order group"
    index, owner = _index(place), place[:-1]
    items = items_at(source.table, owner)
    call = items[index]
    before, after = (*owner, index - 1), (*owner, index + 1)
    text = f"{_item_name(source, place)} put into an any-order group"
    rest = row.place[len(place) :]
    if index and is_group(source.table, before):
        inner = (*before, "any_order", len(items_at(source.table, (*before, "any_order"))))
        return Edit(without(with_item(source.table, inner, call), place), (*inner, *rest), text)
    if index + 1 < len(items) and is_group(source.table, after):
        joined = with_item(source.table, (*after, "any_order", 0), call)
        return Edit(without(joined, place), (*place, "any_order", 0, *rest), text)
    # The new group contains the call and the next call. For the last call of the list, it contains the call and the
    # previous call.
    first, last = max(index - 1, 0), index
    if index + 1 < len(items):
        first, last = index, index + 1
    group = {"any_order": items[first : last + 1]}
    inner = (*owner, first, "any_order", index - first)
    table = with_value(source.table, owner, [*items[:first], group, *items[last + 1 :]])
    return Edit(table, (*inner, *rest), text)


def ungrouped(source: FormSource, row: FormRow) -> Edit | str:
    """Take the call of a row out of its any-order group, and put it after the group.

    If a group then has a single call, the group is dissolved."""
    place = _ordered_item(row)
    if place is None or not (_is_in_group(place) or is_group(source.table, place)):
        return "this call is not in an any-order group"
    group = place[:-2] if _is_in_group(place) else place
    calls = items_at(source.table, (*group, "any_order"))
    index, owner = _index(group), group[:-1]
    items = items_at(source.table, owner)
    # If the cursor is on the group itself, the calls of the group replace the group.
    if group == place:
        table = with_value(source.table, owner, [*items[:index], *calls, *items[index + 1 :]])
        return Edit(table, place, "the any-order group removed")
    left = [call for number, call in enumerate(calls) if number != place[-1]]
    taken = calls[_index(place)]
    # A group of a single call means the same as the call, so it is dissolved.
    remaining: list[object] = [{"any_order": left}] if len(left) > 1 else left
    table = with_value(source.table, owner, [*items[:index], *remaining, taken, *items[index + 1 :]])
    at = (*owner, index + len(remaining), *row.place[len(place) :])
    return Edit(table, at, f"{_item_name(source, place)} taken out of its group")


def _is_in_group(place: Place) -> bool:
    return place[-2] == "any_order"


def _ordered_item(row: FormRow) -> Place | None:
    place = item_of(row.place)
    if place is None or in_turn(place)[:1] != ("ordered",):
        return None
    start = len(place) - len(in_turn(place))
    return place[: start + 4] if place[start + 2 : start + 3] == ("any_order",) else place[: start + 2]


def is_group(table: Table, place: Place) -> bool:
    return isinstance(value_at(table, (*place, "any_order")), list)


def item_of(place: Place) -> Place | None:
    """Return the place of the innermost list element around a place. Lists inside values are ignored."""
    for length in range(len(place), 1, -1):
        if isinstance(place[length - 1], int) and _is_list(place[: length - 1]):
            return place[:length]
    return None


def _is_list(place: Place) -> bool:
    return _adder(place) is not None


def _adder(place: Place) -> Callable[[FormSource, Place], PendingAddition | str] | None:
    """Return the function that adds an element to the list at a place, or `None` if there is no such list."""
    key = place[-1]
    # A key inside a value may have any name, so it never names a list of the format. The same holds for a server's
    # `answers`, whose keys are names of requests.
    if isinstance(key, int) or not _VALUE_KEYS.isdisjoint(place[:-1]) or (key == "answers" and len(place) > 1):
        return None
    return _LISTS.get(".".join(_keys_of(place)[-2:]), _LISTS.get(key))


def _keys_of(place: Place) -> tuple[str, ...]:
    return tuple(part for part in place if isinstance(part, str))


_VALUE_KEYS = frozenset({"args", "result", "response", "when", "message"})
"""Keys with a value of any form. Every place below them is inside such a value."""


def _are_parts(source: FormSource, place: Place) -> bool:
    key = place[-1]
    if key not in LISTS_OF_CHECKS and key != "has_fields":
        return False
    # The key could also be the name of an argument, so the table must be a check of this kind.
    return not _VALUE_KEYS.isdisjoint(place[:-1]) and check_name(value_at(source.table, place[:-1])) == key


def _part(source: FormSource, place: Place, neighbour: str | int) -> PendingAddition:
    if isinstance(neighbour, int):
        schema = schema_of(source, (*place, neighbour))
        at = (*place, neighbour + 1)

        def make_element(answer: str) -> Edit:
            return Edit(with_item(source.table, at, read_value(answer, schema)), at, f"an element of {place[-1]} added")

        return PendingAddition("which value?", make_element, partial(complete, "value", schema=schema))
    used = _keys(source, place)

    def make_field(answer: str) -> Edit:
        at = (*place, _unused(_name(answer), used))
        return Edit(with_value(source.table, at, {"present": True}), at, f"the field {at[-1]} added")

    return PendingAddition("which field?", make_field)


def _item_name(source: FormSource, place: Place) -> str:
    return name_of(source, FormRow("item", place, 0, ""))


def _index(place: Place) -> int:
    index = place[-1]
    assert isinstance(index, int)
    return index


def _after(place: Place) -> Place:
    return (*place[:-1], _index(place) + 1)


def _beside(before: Table, after: Table, place: Place) -> Place:
    """Return where the cursor goes after a removal: to the next element, or else to the previous element."""
    owner, left = value_at(before, place[:-1]), value_at(after, place[:-1])
    if isinstance(left, list) and left and isinstance(place[-1], int):
        return (*place[:-1], min(place[-1], len(left) - 1))
    # In a table with fixed keys, the row of the removed key remains, and the cursor stays there.
    names_are_free = (
        holds_arguments(place[:-1]) or _keys_of(place[:-1]) in _MAPS or in_turn(place)[:-1] == ("response",)
    )
    if not names_are_free or not isinstance(owner, dict) or not isinstance(left, dict):
        return place
    keys = list(owner)
    at = keys.index(str(place[-1]))
    near = [*keys[at + 1 :], *reversed(keys[:at])]
    return next(((*place[:-1], key) for key in near if key in left), place)


def _without_argument(table: Table, place: Place) -> Table:
    """Remove an argument, or all arguments.

    If no argument is left, the call no longer checks its arguments."""
    if not holds_arguments(place):
        return without(table, place)
    # `without` would also remove the table around the argument if it became empty.
    owner = value_at(table, place[:-1])
    remaining = dict(owner) if isinstance(owner, dict) else {}
    remaining.pop(str(place[-1]), None)
    return with_value(table, place[:-1], remaining)


def _call(source: FormSource, place: Place) -> PendingAddition:
    def make(answer: str) -> Edit:
        call = expected_call(_tool(source, answer))
        return Edit(with_item(source.table, place, call), place, f"the call {call['tool']} added")

    return PendingAddition("which tool?", make, lambda typed: complete("expected tool", typed, tools=source.tools))


_ALTERNATIVE_KEYS = ("tool", "args", "forbidden_args", "only_args")
"""The keys that each alternative of a call has separately. The other keys stay next to `any_of`."""


def alternative(source: FormSource, place: Place) -> PendingAddition:
    """Return how to add an alternative to the call at `place`. Both calls become alternatives in an `any_of` list."""

    def make(answer: str) -> Edit:
        call = value_at(source.table, place)
        assert isinstance(call, dict)
        first = {key: call[key] for key in _ALTERNATIVE_KEYS if key in call}
        added = expected_call(_tool(source, answer))
        both = {"any_of": [first, added], **without_keys(call, *_ALTERNATIVE_KEYS)}
        return Edit(with_value(source.table, place, both), (*place, "any_of", 1), f"the call {added['tool']} added")

    return PendingAddition(
        "which tool instead?", make, lambda typed: complete("expected tool", typed, tools=source.tools)
    )


def _step(source: FormSource, place: Place) -> PendingAddition | str:
    # The format allows a case either steps or these keys.
    excluded = {*CALL_LISTS, "extra_calls", "expect_no_calls"}
    if not source.is_chain and excluded & source.table.keys():
        return "a case has expected calls or steps, not both: remove ordered, unordered and the like first"

    def make(answer: str) -> Edit:
        table = source.table
        user = None
        if "steps" not in table and isinstance(table.get("user"), str):  # the message moves to step 1
            user = str(table["user"])
            table = without(table, ("user",))
        step = new_step(_tool(source, answer) if answer.strip() else None, user)
        return Edit(with_item(table, place, step), place, "a step added")

    return PendingAddition(
        "which tool? none: no call", make, lambda typed: complete("expected tool", typed, tools=source.tools)
    )


def _mock(source: FormSource, place: Place) -> PendingAddition:
    def make(answer: str) -> Edit:
        tool = _tool(source, answer)
        return Edit(with_item(source.table, place, new_mock(tool)), place, "a mock added")

    return PendingAddition("which tool?", make, lambda typed: complete("tool", typed, tools=source.tools))


def _change(source: FormSource, place: Place) -> PendingAddition:
    def make(answer: str) -> Edit:
        name = _name(answer)
        item: Table = {"tool": name}
        if place[0] == "final":
            item = expected_call(_tool(source, answer))
        return Edit(with_item(source.table, place, item), place, f"the change of {name} added")

    return PendingAddition("of which tool?", make, lambda typed: complete("tool", typed, tools=source.tools))


def _own_call(source: FormSource, place: Place) -> PendingAddition:
    def make(answer: str) -> Edit:
        call = _given_call(_tool(source, answer))
        if place[0] == "final":
            call["result"] = {"present": True}
        return Edit(with_item(source.table, place, call), place, f"the call {call['tool']} added")

    return PendingAddition("which tool?", make, lambda typed: complete("tool", typed, tools=source.tools))


def _answer(source: FormSource, place: Place) -> PendingAddition:
    def make(answer: str) -> Edit:
        to = answer.strip()
        if to not in ANSWERED:
            raise CellError(f"write one of {', '.join(ANSWERED)}")
        item: Table = {"to": to}
        if to == "sampling":
            item["text"] = ""
        return Edit(with_item(source.table, place, item), place, f"an answer to {to} added")

    suggest = partial(complete, "word", words=ANSWERED)
    return PendingAddition("to which request?", make, suggest, must_choose=True)


def _image(source: FormSource, place: Place) -> PendingAddition:
    def make(answer: str) -> Edit:
        item: Table = {"file": _name(answer)}
        return Edit(with_item(source.table, place, item), place, f"the image {item['file']} added")

    return PendingAddition("which file, from the suite's folder?", make)


def _past_call(source: FormSource, place: Place) -> PendingAddition:
    def make(answer: str) -> Edit:
        tool = _tool(source, answer)
        name = _tool_name(tool)
        taken = set()
        for message in items_at(source.table, ("messages",)):
            for past in items_at(message, ("tool_calls",)):
                if isinstance(past, dict):
                    taken.add(past.get("id"))
        # The ids are short, because users type them as the `call` of a later message.
        number = 1
        while (call_id := f"c{number}") in taken:
            number += 1
        call = {"id": call_id, "tool": name, "args": {}}
        return Edit(with_item(source.table, place, call), place, f"the tool call {name} added")

    return PendingAddition("which tool?", make, lambda typed: complete("tool", typed, tools=source.tools))


def _scripted_message(source: FormSource, place: Place) -> PendingAddition:
    def make(answer: str) -> Edit:
        # If the case has a single message, this message becomes the first message of the script.
        table = with_long_forms(source.table, place)
        at = (*place[:-1], max(_index(place), len(items_at(table, place[:-1])) if table is not source.table else 0))
        return Edit(with_item(table, at, {"say": _some_text(answer)}), at, "a message of the user added")

    return PendingAddition("what does the user say?", make)


def _text(source: FormSource, place: Place) -> PendingAddition:
    def make(answer: str) -> Edit:
        return Edit(with_item(source.table, place, _some_text(answer)), place, "a text added")

    return PendingAddition("which text must an answer contain?", make)


def _some_text(answer: str) -> str:
    text = read_text(answer)
    if not text:
        raise CellError("write a text")
    return text


def _message(source: FormSource, place: Place) -> PendingAddition:
    def make(answer: str) -> Edit:
        for role in ROLES:
            if role == answer.strip():
                return Edit(with_item(source.table, place, new_message(role)), place, "a message added")
        raise CellError(f"write one of {', '.join(ROLES)}")

    return PendingAddition("whose message?", make, lambda typed: complete("word", typed, words=ROLES), must_choose=True)


def _result(source: FormSource, place: Place) -> PendingAddition:
    return PendingAddition("", lambda _: Edit(with_item(source.table, place, ""), place, "a result added"))


def _named_item(source: FormSource, place: Place) -> PendingAddition:
    kind = _ELEMENT_NAMES[str(place[0])]

    def make(answer: str) -> Edit:
        item: Table = {"name": _name(answer)}
        if kind == "server":
            item["command"] = [*NEW_COMMAND]
        return Edit(with_item(source.table, place, item), place, f"the {kind} {item['name']} added")

    return PendingAddition(f"the {kind}'s name?", make)


def _argument(source: FormSource, place: Place) -> PendingAddition:
    call = value_at(source.table, place[:-1])
    tool = source.tool(call)
    used = _keys(source, place)

    def make(answer: str) -> Edit:
        from workbench.analysis.prefilled import first_value  # imported here: the first screen does not need it

        name = _unused(_name(answer), used)
        info = argument_of(tool, name)
        # Values of arguments in past calls and setup calls are not expectations, so no value is suggested.
        value: object = ""
        if "tool_calls" not in place and place[0] != "setup" and place[:2] != ("final", "state"):
            schema = None if info is None else info.schema
            value = first_value(name, schema)
        at = (*place, name)
        return Edit(with_value(source.table, at, value), at, f"{name} added")

    return PendingAddition("which argument?", make, lambda typed: complete("argument", typed, tool=tool, used=used))


def _named_check(source: FormSource, place: Place) -> PendingAddition | str:
    written = value_at(source.table, place)
    if written is not ABSENT and not are_named_checks(written):
        return "the answer has one check without a name: write it as response.NAME in the TOML to add others"
    used = _keys(source, place)

    def make(answer: str) -> Edit:
        at = (*place, _unused(_name(answer), used))
        return Edit(with_value(source.table, at, {"contains": ""}), at, f"{at[-1]} added")

    return PendingAddition("which name?", make)


def _variable(source: FormSource, place: Place) -> PendingAddition:
    used = _keys(source, place)

    def make(answer: str) -> Edit:
        name = _unused(_name(answer), used)
        return Edit(with_value(source.table, (*place, name), ""), (*place, name), f"{name} added")

    return PendingAddition("which name?", make)


def _keys(source: FormSource, place: Place) -> tuple[str, ...]:
    written = value_at(source.table, place)
    return tuple(written) if isinstance(written, dict) else ()


def _tool(source: FormSource, answer: str) -> ToolDefinition | str:
    name = _name(answer)
    return tool_named(source.tools, name) or name


def _name(answer: str) -> str:
    name = read_text(answer)
    if not name:
        raise CellError("write a name")
    return name


def _unused(name: str, used: tuple[str, ...]) -> str:
    if name in used:
        raise CellError(f"the name {name} is taken")
    return name


_LISTS: dict[str, Callable[[FormSource, Place], PendingAddition | str]] = {
    **dict.fromkeys((*CALL_LISTS, "any_order", "any_of"), _call),
    "steps": _step,
    "mocks": _mock,
    "messages": _message,
    "user.messages": _scripted_message,
    "tool_calls": _past_call,
    "results": _result,
    "changes": _change,
    "images": _image,
    "setup": _own_call,
    "final.state": _own_call,
    "final.says": _text,
    "answers": _answer,
    **dict.fromkeys(_ELEMENT_NAMES, _named_item),
}
