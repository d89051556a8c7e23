"""The differences of two tables."""

from __future__ import annotations

from tests.tables import each_row
from workbench.authoring.form.field_text import first_change
from workbench.suite.problems import Place

CASE = {"name": "A", "ordered": [{"tool": "t", "args": {"room": "x"}}, {"tool": "u"}]}


@each_row(
    ("after", "place"),
    [
        (CASE, ()),
        ({**CASE, "name": "B"}, ("name",)),
        ({**CASE, "id": "a", "skip": "no"}, ("skip",)),
        ({"id": "a", **CASE}, ("id",)),
        ({**CASE, "ordered": [{"tool": "t", "args": {"room": "y"}}, {"tool": "u"}]}, ("ordered", 0, "args", "room")),
        ({**CASE, "ordered": CASE["ordered"][:1]}, ("ordered", 1)),
        ({"name": "A"}, ("ordered",)),
    ],
)
def test_the_first_change_is_found_however_deep_it_is(after: object, place: Place) -> None:
    assert first_change(CASE, after) == place
    assert first_change(after, CASE) == place
