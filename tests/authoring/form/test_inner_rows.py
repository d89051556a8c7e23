"""Fields below `has_fields` have rows of their own: `request › reason`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.authoring.form.forms import row_named, source_of
from tests.tables import each_row
from workbench.authoring.form.completions import suggestions
from workbench.authoring.form.edits import edited
from workbench.authoring.form.field_text import value_at
from workbench.authoring.form.row_changes import PendingAddition, addition_at
from workbench.authoring.form.rows import form_rows
from workbench.suite.problems import Place

TEXT = """
format = 1
name = "Shop"
[[tools]]
name = "refund"
[tools.parameters]
type = "object"
[tools.parameters.properties.request]
type = "object"
[tools.parameters.properties.request.properties]
reason = { type = "string" }
how = { type = "object", properties = { fast = { type = "boolean" }, size = { type = "integer", maximum = 5 } } }
[[cases]]
name = "Refund"
user = "Refund it."
[[cases.ordered]]
tool = "refund"
[cases.ordered.args.request.has_fields]
reason = { contains = "broken", ignore_case = true, because = "it must be said" }
how.fast = true
how.size = { has_fields = { "a.b" = { range = [1, 9] } } }
labels = { same_elements = ["a"] }
"""
SOURCE = source_of(TEXT)
FIELDS = ("ordered", 0, "args", "request", "has_fields")


def test_each_field_has_a_row_with_its_path_and_its_problems() -> None:
    labels = [row.label for row in form_rows(SOURCE) if row.place[: len(FIELDS)] == FIELDS]
    assert [label for label in labels if "›" in label] == [
        "request › reason",
        "request › how › fast",
        'request › how › size › "a.b"',
        "request › labels",
        "request › labels › 1",
    ]
    assert {"ignore_case", "because", "in_order", "optional"} <= set(labels)
    assert "required" not in labels


@each_row(
    ("place", "cell", "text", "after"),
    [
        (("reason",), 1, "lost", {"contains": "lost", "ignore_case": True, "because": "it must be said"}),
        (("reason",), 0, "is", {"equals": "broken", "because": "it must be said"}),
        (("how", "fast"), 1, "false", False),
        (("how", "size", "has_fields", "a.b"), 1, "2..3", {"range": [2, 3]}),
        (("labels",), 0, "has_elements", {"has_elements": ["a"]}),
        (("labels",), 0, "has_length", {"has_length": 1}),
        (("labels",), 0, "each_element", {"each_element": "a"}),
        (("labels",), 0, "none_of", {"none_of": [{"same_elements": ["a"]}]}),
        (
            ("reason", "ignore_case"),
            0,
            "false",
            {"contains": "broken", "ignore_case": False, "because": "it must be said"},
        ),
        (("reason", "because"), 0, "", {"contains": "broken", "ignore_case": True}),
    ],
)
def test_a_field_is_edited_in_its_row(place: tuple[str, ...], cell: int, text: str, after: Any) -> None:
    row = row_named(SOURCE, *FIELDS, *place)
    table = edited(SOURCE, row, row.cells[cell], text).table
    where = row.cells[cell].place
    assert value_at(table, where) == after


def test_a_field_is_completed_by_its_own_schema() -> None:
    fast = row_named(SOURCE, *FIELDS, "how", "fast")
    assert [each.text for each in suggestions(SOURCE, fast.cells[1], "")] == ["true", "false"]
    kinds = [each.text for each in suggestions(SOURCE, fast.cells[0], "")]
    assert "none_of" in kinds
    assert "contains" not in kinds


PARTS = source_of(
    TEXT[: TEXT.index("[[cases]]")]
    + """
[[cases]]
name = "Refund"
user = "Refund it."
[[cases.ordered]]
tool = "refund"
[cases.ordered.args]
tags = { same_elements = [{ prefix = "a" }, "b"] }
n = { none_of = [{ range = [1, 2] }] }
plain = { any_of = [1, 2] }
[cases.ordered.result.has_fields]
status = { one_of = ["open"] }
lines = { each_element = { has_fields = { id = { type = "integer" } } } }
"""
)
CALL = ("ordered", 0)


def test_elements_and_parts_of_a_result_have_rows() -> None:
    rows = {row.label: row for row in form_rows(PARTS) if "›" in row.label}
    assert list(rows) == [
        "tags › 1",
        "tags › 2",
        "n › 1",
        "plain › 1",
        "plain › 2",
        "result › status",
        "result › lines",
        "result › lines › each › id",
    ]
    assert row_named(PARTS, *CALL, "result").cells[1].summary == "3 fields"


@pytest.mark.parametrize(
    ("place", "text", "after"),
    [
        (("args", "tags", "same_elements", 0), "x", {"prefix": "x"}),
        (("args", "tags", "same_elements", 1), "c", "c"),
        (("args", "n", "none_of", 0), "3..4", {"range": [3, 4]}),
        (("args", "plain", "any_of", 1), "3", 3),
        (("result", "has_fields", "status"), "shut", {"one_of": ["shut"]}),
    ],
)
def test_a_part_is_edited_in_its_row(place: Place, text: str, after: object) -> None:
    row = row_named(PARTS, *CALL, *place)
    assert value_at(edited(PARTS, row, row.cells[1], text).table, (*CALL, *place)) == after


@pytest.mark.parametrize(
    ("place", "answer", "after"),
    [
        (("args", "tags", "same_elements", 0), "new", [{"prefix": "a"}, "new", "b"]),
        (("args", "plain", "any_of", 1), "3", [1, 2, 3]),
        (("result", "has_fields", "status"), "id", {"present": True}),
    ],
)
def test_a_part_is_added_beside_another(place: Place, answer: str, after: object) -> None:
    found = addition_at(PARTS, row_named(PARTS, *CALL, *place))
    assert isinstance(found, PendingAddition)
    edit = found.make(answer)
    assert value_at(edit.table, edit.place if isinstance(after, dict) else (*CALL, *place[:-1])) == after


def test_only_fields_may_be_left_out() -> None:
    optional = [row.place[:-1] for row in form_rows(PARTS) if row.label == "optional"]
    assert (*CALL, "result", "has_fields", "status") in optional
    assert (*CALL, "args", "tags", "same_elements", 0) not in optional
