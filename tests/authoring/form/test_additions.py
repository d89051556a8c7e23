"""The search finds everything that can be added, describes it, and opens the right field."""

from __future__ import annotations

import pytest

from tests.authoring.form.forms import EVERYTHING, source_of
from tests.tables import each_row
from workbench.authoring.form.additions import AdditionSearch, additions
from workbench.authoring.form.descriptions import placeholder
from workbench.authoring.form.edits import Edit
from workbench.authoring.form.field_text import CellError, value_at
from workbench.authoring.form.row import Cell, Limits
from workbench.authoring.form.row_changes import PendingAddition
from workbench.authoring.form.rows import every_row
from workbench.suite.problems import Place

WHOLE = Limits(1, 9, whole=True)
NEW = EVERYTHING[: EVERYTHING.index("[[cases]]")] + '[[cases]]\nname = "New"\nuser = "Go."\n'


@pytest.mark.parametrize("index", [0, 1, 2, 3, 4, None])
def test_everything_that_can_be_added_has_a_sentence(index: int | None) -> None:
    found = additions(source_of(index=index), ())
    texts = [addition.line.text for addition in found]
    assert len(texts) == len(set(texts))
    assert not [addition.line for addition in found if not addition.line.detail.rpartition(": ")[2]]


@pytest.mark.parametrize("index", [0, 1, 2, 3, 4, None])
def test_every_key_that_is_not_written_can_be_added(index: int | None) -> None:
    source = source_of(index=index)
    found = {addition.row.place for addition in additions(source, ())}
    absent = {row.place for row in every_row(source) if row.kind == "field" and row.absent}
    assert absent and absent <= found


@each_row(
    ("text", "here", "typed", "first"),
    [
        (EVERYTHING, (), "max_r", "limits.max_rounds"),
        (EVERYTHING, (), "wait", "mocks[0].delay_ms"),
        (EVERYTHING, (), "set_lig", "ordered set_lights"),
        (EVERYTHING, ("disallowed", 0), "only", "disallowed[0].only_args"),
        (EVERYTHING, ("disallowed", 1, "args"), "", "disallowed[1].args"),
        (EVERYTHING, (), "", "ordered"),
        (NEW, (), "", "ordered set_lights"),
    ],
)
def test_a_search_finds_by_name_by_sentence_and_first_at_the_cursor(
    text: str, here: Place, typed: str, first: str
) -> None:
    assert AdditionSearch(source_of(text), here).suggest(typed)[0].text == first


def test_a_choice_is_a_change_a_question_or_a_field() -> None:
    source = source_of(NEW)
    search = AdditionSearch(source, ())
    call = search.choose("ordered set_lights")
    assert isinstance(call, Edit) and value_at(call.table, ("ordered", 0, "tool")) == "set_lights"
    none = search.choose("expect_no_calls")
    assert isinstance(none, Edit) and none.table["expect_no_calls"] is True
    mock = search.choose("mocks")
    assert isinstance(mock, PendingAddition) and mock.asks == "which tool?"
    assert search.choose("limits.max_rounds") == ("limits", "max_rounds")
    with pytest.raises(CellError, match="choose an entry from the list"):
        search.choose("nonsense")


def test_an_expected_call_gets_an_alternative() -> None:
    source = source_of(EVERYTHING)
    tool = value_at(source.table, ("ordered", 0, "tool"))
    question = AdditionSearch(source, ("ordered", 0)).choose("ordered[0].any_of")
    assert isinstance(question, PendingAddition) and question.asks == "which tool instead?"
    done = question.make("set_tv")
    written = value_at(done.table, ("ordered", 0))
    assert isinstance(written, dict)
    assert (written["any_of"][0]["tool"], written["any_of"][1]["tool"]) == (tool, "set_tv")
    assert ("tool" in written, done.place) == (False, ("ordered", 0, "any_of", 1))


@each_row(
    ("cell", "shown"),
    [
        (Cell("number", ("n",), absent=True, shown="1", limits=WHOLE), "a whole number from 1 to 9; default 1"),
        (Cell("number", ("limits", "max_latency_ms"), limits=Limits(0)), "a number from 0"),
        (Cell("names", ("tags",), absent=True, shown="none"), "words, with commas between them"),
        (Cell("text", ("name",), shown="which name?"), "which name?"),
        (Cell("expected", ("ordered", 0, "args", "x"), shown="any value"), "any value; type one to require it"),
        (Cell("expected", ("ordered", 1, "any_order", 0, "args", "brightness")), "5..40"),
        (Cell("choice", ("state",), choices=("run", "batch")), "run or batch"),
    ],
)
def test_an_empty_field_says_what_it_takes(cell: Cell, shown: str) -> None:
    assert placeholder(source_of(), cell) == shown
