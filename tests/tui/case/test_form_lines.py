"""The values of a form's keys form one column, and long labels stay legible at both ends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from workbench.authoring.form.row import Cell, FormRow
from workbench.authoring.form.rows import CASE_LABELS, WIDEST_LABEL
from workbench.show.spans import plain
from workbench.tui.case.form.page import lay_out


def row_called(label: str) -> FormRow:
    return FormRow("field", (label,), 0, label, (Cell("text", (label,), "value"),), label_cells=CASE_LABELS)


@pytest.mark.parametrize("width", [52, 68, 100])
def test_the_values_of_a_case_stand_in_one_column(width: int) -> None:
    rows = [row_called(label) for label in ("name", "user", "extra_calls", "expect_no_calls", "response_contains")]
    assert len({lay_out(row, width).spots[0].start for row in rows}) == 1


@pytest.mark.parametrize(
    ("label", "width", "shown"),
    [
        ("expect_no_calls", 49, " expect_no_calls  value"),
        ("request › customer › notify", 49, " …customer › notify  value"),
        ("result › destination_airport_code", 49, " …destination…_code  value"),
    ],
)
def test_a_value_stands_beside_its_label(label: str, width: int, shown: str) -> None:
    row = replace(row_called(label), label_cells=min(len(label), WIDEST_LABEL))
    assert [plain(line) for line in lay_out(row, width).lines] == [shown]


def test_a_label_without_room_is_cut_in_its_middle_and_a_narrow_pane_gives_its_room_to_values() -> None:
    long = replace(row_called("destination_airport_code_of_arrival"), label_cells=18)
    assert "destination_airport_code_of_arrival" in plain(lay_out(long, 80).lines[0])
    assert plain(lay_out(long, 40).lines[0]).startswith(" destination_a…rrival")
    assert lay_out(row_called("name"), 20).spots[0].start < CASE_LABELS
