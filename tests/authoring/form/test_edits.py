"""Typing into a cell: the same text changes nothing, and another one results in valid TOML or in a reason."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.authoring.form.forms import EVERYTHING, row_named, source_of
from tests.authoring.form.values import anything, texts
from tests.tables import each_row
from workbench.authoring.document import HEAD, Document
from workbench.authoring.form.edits import edited, toggled, with_id
from workbench.authoring.form.field_text import ABSENT, CellError, value_at
from workbench.authoring.form.row import FormSource
from workbench.authoring.form.rows import form_rows
from workbench.suite.render import Table
from workbench.suite.suite_text import SuiteText
from workbench.suite.toml_equality import toml_equal
from workbench.tui.case.form.page import with_table

FORMS = {index: source_of(index=index) for index in (0, 1, 2, 3, 4, None)}
DOCUMENT = Document.of(EVERYTHING)


def type_in(source: FormSource, place: tuple[str | int, ...], text: str, cell: int = 0) -> dict[str, Any]:
    """The table with a text typed into a cell of the row at a place."""
    row = row_named(source, *place)
    return edited(source, row, row.cells[cell], text).table


@pytest.mark.parametrize("index", FORMS)
def test_typing_what_stands_there_changes_nothing(index: int | None) -> None:
    source = FORMS[index]
    for row in form_rows(source):
        for cell in row.cells:
            assert edited(source, row, cell, cell.text).table is source.table


@given(st.dictionaries(texts, anything, max_size=3), st.data())
def test_whatever_an_argument_is_expected_to_be_can_be_shown_and_typed_over(args: Table, data: st.DataObject) -> None:
    source = FormSource({"name": "One", "user": "", "ordered": [{"tool": "a", "args": args}]}, ("cases", 0))
    for row in form_rows(source):
        for cell in row.cells:
            assert edited(source, row, cell, cell.text).table is source.table


@given(st.sampled_from([0, 1, 2, 3, 4, None]), st.data())
def test_whatever_is_typed_can_be_written_down_or_is_refused_in_words(index: int | None, data: st.DataObject) -> None:
    source = FORMS[index]
    row = data.draw(st.sampled_from([row for row in form_rows(source) if row.cells]))
    cell = data.draw(st.sampled_from(row.cells))
    text = data.draw(st.sampled_from(cell.choices) | texts if cell.choices else texts)
    try:
        table = edited(source, row, cell, text).table
    except CellError as error:
        assert str(error)
        return
    document = with_table(DOCUMENT, HEAD if index is None else index, table)
    assert document.parts is not None
    assert toml_equal(SuiteText.of(document.text).document, document.parts.document)
    again = FormSource(table, source.at, source.header, every_key=True)
    assert form_rows(again)


def test_a_name_a_check_and_a_value_are_edited_in_one_row() -> None:
    place = ("ordered", 0, "args", "door")
    source = FORMS[0]
    assert type_in(source, place, "gate")["ordered"][0]["args"] == {"gate": "front"}
    assert type_in(source, place, "prefix", 1)["ordered"][0]["args"] == {"door": {"prefix": "front"}}
    assert type_in(source, place, "back", 2)["ordered"][0]["args"] == {"door": "back"}
    weighted = type_in(source, place, "low", 3)["ordered"][0]["args"]
    assert weighted == {"door": {"equals": "front", "weight": "low"}}


@each_row(
    ("place", "text", "key", "value"),
    [
        (("repeats",), "3", "repeats", 3),
        (("tags",), "calm, night", "tags", ["calm", "night"]),
        (("expect_no_calls",), "no", "expect_no_calls", False),
        (("limits", "max_rounds"), "2", "limits", {"max_rounds": 2}),
        (("grading", "by"), "decision", "grading", {"by": "decision"}),
        (("extra_calls",), "forbid", "extra_calls", "forbid"),
        (("execute",), "yes", "execute", True),
        (("system",), "Be brief.\nThanks.", "system", "Be brief.\nThanks."),
    ],
)
def test_a_key_is_written_by_typing_into_its_row(place: tuple[str, ...], text: str, key: str, value: object) -> None:
    assert type_in(FORMS[1], place, text)[key] == value


@each_row(
    ("place", "cell", "text", "value"),
    [
        (("setup", 0, "args", "room"), 1, "5", "5"),
        (("setup", 0, "args", "brightness"), 1, "7", 7),
        (("answers", 0, "message"), 1, "12", {"contains": "12"}),
        (("answers", 0, "content", "size"), 1, "43", 43),
        (("answers", 0, "tool"), 0, "", ABSENT),
        (("answers", 0, "action"), 0, "decline", "decline"),
    ],
)
def test_values_of_own_calls_and_answers_have_the_type_of_their_place(
    place: tuple[str | int, ...], cell: int, text: str, value: object
) -> None:
    assert value_at(type_in(FORMS[2], place, text, cell), place) == value


def test_naming_a_tool_writes_the_call_before_which_another_one_is_forbidden() -> None:
    table = type_in(source_of(every_key=True), ("disallowed", 1, "before"), "get_lights")
    assert table["disallowed"][1] == {"tool": "set_alarm", "args": {}, "before": {"tool": "get_lights"}}


def test_the_folder_of_a_server_is_typed_and_cleared() -> None:
    cwd = ("servers", 0, "cwd")
    assert type_in(FORMS[None], cwd, "../other")["servers"][0]["cwd"] == "../other"
    without = type_in(FORMS[None], cwd, "")
    assert "cwd" not in without["servers"][0]
    assert row_named(replace(FORMS[None], table=without), *cwd).cells[0].shown == "the suite's folder"
    # A server at an address has no folder.
    assert all(row.place != ("servers", 1, "cwd") for row in form_rows(FORMS[None]))


@pytest.mark.parametrize(
    ("place", "text", "said"),
    [
        (("repeats",), "0", "from 1"),
        (("repeats",), "two", "number"),
        (("extra_calls",), "maybe", "allow, forbid"),
        (("expect_no_calls",), "perhaps", "yes or no"),
        (("grading", "fail_threshold"), "1.5", "from 0 to 1"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_way_out(place: tuple[str, ...], text: str, said: str) -> None:
    with pytest.raises(CellError, match=said):
        type_in(FORMS[1], place, text)


def test_the_check_of_an_answer_begins_with_its_text() -> None:
    table = {key: value for key, value in FORMS[1].table.items() if key != "response"}
    source = replace(FORMS[1], table=table)
    assert type_in(source, ("response",), "Bye", 1)["response"] == "Bye"
    assert type_in(source, ("response",), "contains", 0)["response"] == {"contains": ""}


def test_named_checks_of_an_answer_are_edited_one_by_one_and_stay_tables() -> None:
    source = source_of(index=1)
    polite, whole = ("response", "polite"), ("response", "whole")
    assert type_in(source, polite, "kind")["response"]["kind"] == source.table["response"]["polite"]  # type: ignore[index]
    assert type_in(source, (*polite, "scale"), "0..10")["response"]["polite"]["scale"] == [0, 10]
    assert type_in(source, whole, "is", 1)["response"]["whole"] == {"equals": "You are welcome."}
    assert type_in(source, whole, "Bye.", 2)["response"]["whole"] == {"equals": "Bye."}
    assert type_in(source, (*whole, "required"), "no")["response"]["whole"]["required"] is False
    assert type_in(source_of(index=None), ("aggregates", 1, "of"), "response.mine")["aggregates"][1]["of"] == (
        "response.mine"
    )


def test_arguments_that_do_not_matter_are_not_those_that_are_not_expected() -> None:
    assert type_in(FORMS[0], ("disallowed", 0, "args"), "none")["disallowed"][0] == {"tool": "unlock_door", "args": {}}
    assert type_in(FORMS[0], ("disallowed", 1, "args"), "any")["disallowed"][1] == {"tool": "set_alarm"}


def test_a_mock_can_answer_in_another_way() -> None:
    answers = type_in(FORMS[0], ("mocks", 1, "error"), "results")
    assert answers["mocks"][1]["results"] == ["503 Service Unavailable"]
    assert type_in(FORMS[0], ("mocks", 0, "results"), "result")["mocks"][0]["result"] == "first answer"


def test_a_schema_is_edited_as_json_and_stays_text_where_it_was() -> None:
    source = FORMS[None]
    assert type_in(source, ("tools", 0, "parameters"), '{"type": "object"}')["tools"][0]["parameters"] == {
        "type": "object"
    }
    text = '{"type": "object", "default": null}'
    assert type_in(source, ("tools", 0, "parameters"), text)["tools"][0]["parameters"] == text
    with pytest.raises(CellError, match="line 1"):
        type_in(source, ("tools", 1, "parameters"), '{"type"')


def test_the_first_edit_of_a_case_writes_its_id_and_a_rename_keeps_it() -> None:
    source = FormSource({"name": "Movie night", "user": "Go."}, ("cases", 0))
    table = with_id(source, type_in(source, ("name",), "Film night"))
    assert (table["id"], table["name"]) == ("movie-night", "Film night")


def test_yes_and_no_are_switched() -> None:
    source = FORMS[1]
    written, absent = row_named(source, "expect_no_calls").cells[0], row_named(source, "execute").cells[0]
    assert (toggled(written), toggled(absent)) == ("no", "yes")
    assert toggled(row_named(source, "user").cells[0]) is None


@pytest.mark.parametrize("place", [("system",), ("steps", 0, "system"), ("steps", 1, "user")])
def test_two_quotation_marks_are_the_empty_text(place: tuple[str | int, ...]) -> None:
    chain = FormSource({"name": "One", "steps": [{"user": "Go."}, {}]}, ("cases", 0), every_key=True)
    table = type_in(chain, place, '""')
    assert value_at(table, place) == ""
    assert row_named(replace(chain, table=table), *place).cells[0].shown in ('""', "what is asked?")
