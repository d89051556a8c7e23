"""Adding, taking away, copying, moving and grouping at the rows of a form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pydantic import JsonValue

from tests.authoring.form.forms import EVERYTHING, row_named, source_of
from tests.sampled_rows import first_of
from workbench.authoring.document import HEAD, Document
from workbench.authoring.form.edits import Edit
from workbench.authoring.form.field_text import CellError, value_at
from workbench.authoring.form.row import FormRow, FormSource
from workbench.authoring.form.row_changes import (
    PendingAddition,
    addition_at,
    duplicated,
    grouped,
    moved,
    removed,
    ungrouped,
)
from workbench.authoring.form.rows import form_rows, row_at
from workbench.suite.problems import Place
from workbench.suite.render import Table
from workbench.suite.suite_text import SuiteText
from workbench.suite.toml_equality import toml_equal
from workbench.trajectory.events import ToolDefinition
from workbench.tui.case.form.page import FormPage, with_table

FORMS = {index: source_of(index=index) for index in (0, 1, 2, 3, 4, None)}
CHANGES: dict[str, Callable[[FormSource, FormRow], Edit | str]] = {
    "remove": removed,
    "duplicate": duplicated,
    "up": lambda source, row: moved(source, row, -1),
    "down": lambda source, row: moved(source, row, 1),
    "group": grouped,
    "ungroup": ungrouped,
}


def made(result: Edit | str) -> Edit:
    assert isinstance(result, Edit), result
    return result


def add(source: FormSource, place: Place, answer: str) -> Edit:
    found = addition_at(source, row_named(source, *place))
    assert isinstance(found, PendingAddition), found
    return found.make(answer)


def at(edit: Edit, *place: str | int) -> Any:
    return value_at(edit.table, place)


def called(edit: Edit) -> list[Any]:
    """The tools of `ordered`, groups as lists."""
    return [
        [call["tool"] for call in item["any_order"]] if "any_order" in item else item["tool"]
        for item in at(edit, "ordered")
    ]


def test_an_image_is_added_by_its_file() -> None:
    edit = add(FORMS[2], ("images",), "pictures/product.png")
    assert at(edit, "images") == [{"file": "pictures/sum.png"}, {"file": "pictures/product.png"}]
    assert edit.summary == "the image pictures/product.png added"


@pytest.mark.parametrize("index", first_of(FORMS, 1))
@pytest.mark.parametrize("change", first_of(CHANGES, 3))
def test_every_change_at_every_row_can_be_written_down_or_says_why_not(index: int | None, change: str) -> None:
    source, document = FORMS[index], Document.of(EVERYTHING)
    tried: set[str] = set()
    for row in form_rows(source):
        result = CHANGES[change](source, row)
        if isinstance(result, str):
            assert result
            continue
        if repr(result) in tried:  # at each row of a call, the call is changed
            continue
        tried.add(repr(result))
        after = FormSource(result.table, source.at, source.header)
        assert row_at(form_rows(after), result.place) is not None or change == "remove"
        if len(tried) % 7 == 1:  # each takes a while
            parts = with_table(document, HEAD if index is None else index, result.table).parts
            assert parts is not None and toml_equal(SuiteText.of(parts.text).document, parts.document)


@pytest.mark.parametrize("index", first_of(FORMS, 1))
def test_what_is_added_at_any_row_stands_where_the_cursor_goes(index: int | None) -> None:
    source = FORMS[index]
    tried: set[str] = set()
    for row in form_rows(source):
        found = addition_at(source, row)
        if isinstance(found, PendingAddition):
            answer = next((one.text for one in found.suggest("")), "brand_new")
            edit = found.make(answer)
            if repr(edit) in tried:  # at each row of a list, the list is added to
                continue
            tried.add(repr(edit))
            assert row_at(form_rows(FormSource(edit.table, source.at, source.header)), edit.place) is not None


def test_a_call_is_added_behind_the_cursor_and_filled_in_from_its_schema() -> None:
    edit = add(FORMS[0], ("ordered", 0), "set_lights")
    assert edit.place == ("ordered", 1)
    assert at(edit, "ordered", 1) == {"tool": "set_lights", "args": {"room": "living room"}}


def test_the_tools_that_can_be_called_are_suggested() -> None:
    found = addition_at(FORMS[0], row_named(FORMS[0], "ordered"))
    assert isinstance(found, PendingAddition)
    assert [one.text for one in found.suggest("")] == ["set_lights", "lock_door", "web_search", "*"]


def test_an_argument_is_added_once() -> None:
    place: Place = ("ordered", 1, "any_order", 0)
    assert at(add(FORMS[0], (*place, "args", "room"), "colour"), *place, "args", "colour") is not None
    with pytest.raises(CellError, match="is taken"):
        add(FORMS[0], (*place, "args", "room"), "brightness")


def test_a_group_takes_another_call() -> None:
    assert called(add(FORMS[0], ("ordered", 1), "lock_door")) == [
        "lock_door",
        ["set_lights", "set_thermostat", "lock_door"],
    ]


def test_a_case_becomes_a_chain_with_its_request_in_the_first_step() -> None:
    source = FormSource({"name": "One", "user": "Go."}, ("cases", 0), every_key=True)
    edit = add(source, ("steps",), "calculate")
    assert edit.table == {"name": "One", "steps": [{"user": "Go.", "tool": "calculate"}]}


def test_a_tool_call_of_the_conversation_gets_an_id_of_its_own() -> None:
    edit = add(FORMS[0], ("messages", 1, "tool_calls", 0), "lock_door")
    assert at(edit, "messages", 1, "tool_calls", 1) == {"id": "c2", "tool": "lock_door", "args": {}}


def test_taking_the_last_call_away_takes_the_list_away() -> None:
    edit = made(removed(FORMS[0], row_named(FORMS[0], "unordered", 0)))
    assert "unordered" not in edit.table


def test_a_key_is_set_back_to_what_holds_without_it() -> None:
    edit = made(removed(FORMS[0], row_named(FORMS[0], "limits", "timeout_s")))
    assert "limits" not in edit.table
    option = row_named(FORMS[0], "response", "threshold")
    assert at(made(removed(FORMS[0], option)), "response") == {"similar": "Good night."}


def test_the_name_of_a_case_cannot_be_taken_away() -> None:
    assert removed(FORMS[0], row_named(FORMS[0], "name")) == "a case needs `name`"


def test_a_call_moves_over_a_group_and_back() -> None:
    down = made(moved(FORMS[0], row_named(FORMS[0], "ordered", 0, "args", "door"), 1))
    assert called(down) == [["set_lights", "set_thermostat"], "lock_door"]
    assert down.place == ("ordered", 1, "args", "door")
    source = FormSource(down.table, ("cases", 0))
    assert toml_equal(made(moved(source, row_named(source, "ordered", 1), -1)).table, FORMS[0].table)


def test_a_call_beside_a_group_joins_it_and_leaves_it_again() -> None:
    joined = made(grouped(FORMS[0], row_named(FORMS[0], "ordered", 0)))
    assert called(joined) == [["lock_door", "set_lights", "set_thermostat"]]
    source = FormSource(joined.table, ("cases", 0))
    left = made(ungrouped(source, row_named(source, *joined.place)))
    assert called(left) == [["set_lights", "set_thermostat"], "lock_door"]


def test_two_calls_become_a_group_and_the_group_two_calls() -> None:
    table: Table = {"name": "One", "user": "", "ordered": [{"tool": "a"}, {"tool": "b"}, {"tool": "c"}]}
    source = FormSource(table, ("cases", 0))
    group = made(grouped(source, row_named(source, "ordered", 1)))
    assert called(group) == ["a", ["b", "c"]]
    source = FormSource(group.table, ("cases", 0))
    assert called(made(ungrouped(source, row_named(source, "ordered", 1)))) == ["a", "b", "c"]
    assert called(made(ungrouped(source, row_named(source, "ordered", 1, "any_order", 0)))) == ["a", "c", "b"]


def test_a_call_with_alternatives_is_grouped_and_ungrouped_as_a_whole() -> None:
    either = {"any_of": [{"tool": "b", "args": {"x": 1}}, {"tool": "c", "args": {"y": 2}}]}
    source = FormSource({"name": "One", "user": "", "ordered": [{"tool": "a"}, either]}, ("cases", 0))
    row = row_named(source, "ordered", 1, "any_of", 1, "args", "y")
    assert ungrouped(source, row) == "this call is not in an any-order group"
    group = made(grouped(source, row))
    assert at(group, "ordered") == [{"any_order": [{"tool": "a"}, either]}]
    source = FormSource(group.table, ("cases", 0))
    left = made(ungrouped(source, row_named(source, *group.place)))
    assert at(left, "ordered") == [{"tool": "a"}, either]
    assert left.place == row.place


def test_copies_have_names_of_their_own() -> None:
    edit = made(duplicated(FORMS[None], row_named(FORMS[None], "tools", 1)))
    assert [tool["name"] for tool in at(edit, "tools")] == ["set_lights", "lock_door", "lock_door_2"]
    edit = made(duplicated(FORMS[0], row_named(FORMS[0], "messages", 1, "tool_calls", 0)))
    assert [call["id"] for call in at(edit, "messages", 1, "tool_calls")] == ["c1", "c1_2"]


def test_an_aggregate_is_added_by_its_name() -> None:
    edit = add(FORMS[None], ("aggregates", 0), "Careful")
    assert edit.summary == "the aggregate Careful added"
    assert at(edit, "aggregates", 1) == {"name": "Careful"}


def test_a_provider_tool_is_added_by_its_name() -> None:
    edit = add(FORMS[None], ("provider_tools", 0), "code_execution")
    assert edit.summary == "the provider tool code_execution added"
    assert at(edit, "provider_tools", 1) == {"name": "code_execution"}


@pytest.mark.parametrize(
    ("place", "answer", "added"),
    [
        (("answers", 0), "sampling", {"to": "sampling", "text": ""}),
        (("setup",), "set_lights", {"tool": "set_lights", "args": {"room": "living room"}}),
        (("final", "state"), "set_lights", {"tool": "set_lights", "args": {"room": ""}, "result": {"present": True}}),
    ],
)
def test_an_own_call_or_an_answer_is_added_with_what_it_needs(place: Place, answer: str, added: Table) -> None:
    source = FORMS[2]
    if place[0] == "final":  # a schema that suggests nothing
        room: dict[str, JsonValue] = {
            "type": "object",
            "properties": {"room": {"type": "string"}},
            "required": ["room"],
        }
        source = replace(source, tools=(ToolDefinition(name="set_lights", parameters=room),))
    edit = add(source, place, answer)
    assert at(edit, *edit.place) == added


def test_where_nothing_can_be_added_the_lists_that_are_there_are_named() -> None:
    chain = FormSource({"name": "One", "steps": [{"user": "Go."}]}, ("cases", 0))
    assert addition_at(chain, row_named(chain, "name")) == (
        "nothing can be added here: go to a list, such as steps, messages or mocks"
    )


def test_the_field_of_what_is_added_to_a_list_opens_where_it_will_stand() -> None:
    chain = FormSource({"name": "One", "steps": [{"user": "Go.", "tool": "a"}, {"tool": "b"}]}, ("cases", 0))
    page = FormPage()
    page.show(chain)
    page.go_to(("steps",))
    assert page.current is not None
    found = addition_at(chain, page.current)
    assert isinstance(found, PendingAddition)
    page.ask(found)
    assert page.rows[page.row - 1].place[:2] == ("steps", 1)
    assert page.rows[page.row + 1].kind == "more"


def test_a_variant_is_added_by_its_name_and_its_changes_by_their_tool() -> None:
    edit = add(FORMS[None], ("variants", 0), "terse")
    assert at(edit, "variants", 1) == {"name": "terse"}
    edit = add(FORMS[None], ("variants", 0, "changes", 0), "lock_door")
    assert edit.summary == "the change of lock_door added"
    assert at(edit, "variants", 0, "changes")[1] == {"tool": "lock_door"}
    edit = add(FORMS[None], ("variants", 0, "names", "lock_door"), "set_lights")
    assert at(edit, "variants", 0, "names") == {"lock_door": "lock", "set_lights": ""}


@pytest.mark.parametrize("index", FORMS)
def test_every_change_can_be_tried_at_every_row(index: int | None) -> None:
    source = FORMS[index]
    for row in form_rows(source):
        for change in CHANGES.values():
            assert isinstance(change(source, row), Edit | str), row.place


def test_calls_of_a_turn_are_grouped_and_taken_out_again() -> None:
    source = FORMS[3]
    calls: Place = ("user", "messages", 0, "ordered")
    group = made(grouped(source, row_named(source, *calls, 0)))
    assert [call["tool"] for call in at(group, *calls, 0, "any_order")] == ["lock_door", "set_lights"]
    assert group.place == (*calls, 0, "any_order", 0)
    after = replace(source, table=group.table)
    apart = made(ungrouped(after, row_named(after, *group.place)))
    assert [call["tool"] for call in at(apart, *calls)] == ["set_lights", "lock_door"]
