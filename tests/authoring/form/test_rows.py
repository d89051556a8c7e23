"""A form has a row for everything in a case or suite. Problems and marks are at their rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest

from tests.authoring.form.forms import EVERYTHING, row_named, shown, source_of
from tests.sampled_rows import first_of
from tests.tables import each_row
from workbench.authoring.form.field_text import InvalidText
from workbench.authoring.form.row import FormSource
from workbench.authoring.form.rows import form_rows
from workbench.suite.model import Case, Suite
from workbench.suite.problems import Place
from workbench.suite.render import Table

FORMS = pytest.mark.parametrize("index", [0, 1, 2, 3, 4, None])

SMALL = """
format = 1
name = "Home"
{head}

[[cases]]
name = "One"
user = "Go."
{case}
"""


@FORMS
@pytest.mark.parametrize("every_key", [True, False])
def test_everything_that_is_written_can_be_edited(index: int | None, every_key: bool) -> None:
    source = source_of(index=index, every_key=every_key)
    cells = {cell.place for row in form_rows(source) for cell in row.cells if not cell.absent}
    leaves = [place for place in leaves_of(source.table) if place != ("format",)]
    missing = [place for place in leaves if not any(place[:length] in cells for length in range(1, len(place) + 1))]
    assert not missing


@pytest.mark.parametrize(("index", "keys"), [(0, Case.model_fields), (None, Suite.model_fields)])
def test_every_key_of_the_format_has_a_row(index: int | None, keys: Iterable[str]) -> None:
    source = source_of(SMALL.format(head="", case=""), index)
    # These have rows where they are written, and the format where it is wrong.
    unusual = {"cases", "format", "subject", "expect_nothing_yet", "stop_on_failure"}
    assert set(keys) - {row.place[0] for row in form_rows(source) if row.place} <= unusual


@FORMS
def test_every_place_has_one_row(index: int | None) -> None:
    places = [row.place for row in form_rows(source_of(index=index)) if row.kind != "more"]
    assert len(places) == len(set(places))


def test_what_is_not_written_is_folded_into_the_last_row() -> None:
    usual, every = (shown(source_of(index=1, every_key=every)) for every in (False, True))
    assert [line.split()[0] for line in usual.splitlines() if line[1] != " "] == [
        *("name", "user", "expect_no_calls", "response", "variants", "id", "add")
    ]
    assert "max_rounds" in every and "forbidden_args" not in every


def test_a_row_that_asks_or_has_a_problem_or_invalid_text_is_not_folded() -> None:
    place = ("limits", "max_rounds")
    text = InvalidText("many", "max_rounds", "write a whole number")
    gone = source_of(SMALL.format(head="", case='steps = [{ tool = "a" }]'), every_key=False)
    assert row_named(gone, "steps", 0, "user").cells[0].is_missing
    typed = replace(gone, invalid_texts={("number", place, ""): text})
    revealed = replace(gone, revealed=place)
    assert row_named(typed, *place).cells[0].invalid == text
    for source in (typed, revealed):
        assert row_named(source, "limits").kind == "section" and row_named(source, *place)
    assert "many" in shown(typed) and "not applied: write a whole number" in shown(typed)


def test_an_id_that_appears_moves_no_row_above_the_last_one() -> None:
    source = source_of(SMALL.format(head="", case='tags = ["a"]'), every_key=False)
    rows = [row.place for row in form_rows(source)]
    with_one = form_rows(replace(source, table={"id": "one", **source.table}))
    assert [row.place for row in with_one] == [*rows[:-1], ("id",), rows[-1]]


def test_what_is_not_written_shows_what_holds() -> None:
    source = source_of(index=1)
    assert row_named(source, "limits", "max_rounds").cells[0].shown == "suite: 7"
    assert row_named(source, "limits", "timeout_s").cells[0].shown == "120"
    assert row_named(source, "grading", "accuracy", "mode").cells[0].shown == "suite: flexible"
    assert row_named(source, "system").cells[0].shown == "suite: You are a smart home assistant."
    assert row_named(source, "models").cells[0].shown == "suite: offline, local-llama"
    assert row_named(source_of(SMALL.format(head="", case="")), "id").cells[0].shown == "one"
    of_suite = source_of(SMALL.format(head="", case=""), index=None)
    assert row_named(of_suite, "gate", "quarantine").cells[0].shown == "none"


@pytest.mark.parametrize("index", [0, None])
@pytest.mark.parametrize(
    "head", ["", "[gate]\nquarantine = []\nmin_score = 0.5\n", 'tags = ["x"]\nmodels = []\nexecute = true\n']
)
def test_no_value_is_shown_as_python_writes_it(index: int | None, head: str) -> None:
    text = SMALL.format(head=head, case="")
    cells = [cell.shown for row in form_rows(source_of(text, index=index, every_key=True)) for cell in row.cells]
    assert len(cells) > 20
    assert not [shown for shown in cells if re.search(r"\(\)|\('|\[\]|\['|\bNone\b|\bTrue\b|\bFalse\b|<\w", shown)]


@each_row(
    ("case", "place"),
    [
        ('tags = "evening"', ("tags",)),
        ("[cases.limits]\nmax_rounds = 0", ("limits", "max_rounds")),
        ("ordred = []", ("ordred",)),
        ('ordered = [{ tool = "a", args = { x = { range = [9, 1] } } }]', ("ordered", 0, "args", "x")),
        ('ordered = [{ any_order = [{ tool = "" }] }]', ("ordered", 0, "any_order", 0)),
        ('mocks = [{ tool = "a" }]', ("mocks", 0)),
        ('messages = [{ role = "tool", content = "21" }]', ("messages", 0)),
        ('steps = "two"', ("steps",)),
    ],
)
def test_a_problem_stands_at_the_row_of_its_place(case: str, place: Place) -> None:
    source = source_of(SMALL.format(head="", case=case), every_key=False)
    assert row_named(source, *place).problems


def test_problems_of_other_cases_are_not_shown() -> None:
    wrong = SMALL.format(head="", case='tags = "evening"')
    source = source_of(wrong + wrong[wrong.index("[[cases]]") :].replace("One", "Two"), 1, every_key=False)
    assert {problem.where.split(".")[0] for row in form_rows(source) for problem in row.problems} == {"cases[1]"}


def test_what_a_tools_schema_refuses_is_marked() -> None:
    case = """
[[cases.ordered]]
tool = "set_lights"
args = { room = "attic", brightness = 5, colour = "red" }
[[cases.ordered]]
tool = "set_light"
"""
    head = EVERYTHING[EVERYTHING.index("[[tools]]") : EVERYTHING.index("[[mocks]]")]
    source = source_of(SMALL.format(head=head, case=case))
    assert row_named(source, "ordered", 0, "args", "room").marks
    assert not row_named(source, "ordered", 0, "args", "brightness").marks
    assert row_named(source, "ordered", 0, "args", "colour").marks
    assert "set_lights" in row_named(source, "ordered", 1).problems[0].hint


@pytest.mark.parametrize("width", first_of([20, 39, 60, 120], 2))
def test_no_line_is_wider_than_the_pane(width: int) -> None:
    from rich.cells import cell_len

    for index in (0, 2, None):
        assert all(cell_len(line) <= width for line in shown(source_of(index=index), width).split("\n"))


def test_a_long_text_costs_no_more_than_what_is_shown() -> None:
    source = source_of(SMALL.format(head=f'description = "{"word " * 200_000}"', case=""), None)
    assert len(shown(source)) < 5_000


def leaves_of(table: Table, place: Place = ()) -> Iterator[Place]:
    """Yield the places of values that are neither tables nor lists of tables."""
    for key, value in table.items():
        if isinstance(value, dict) and value:
            yield from leaves_of(value, (*place, key))
        elif isinstance(value, list) and any(isinstance(element, dict) for element in value):
            for index, element in enumerate(value):
                if isinstance(element, dict):
                    yield from leaves_of(element, (*place, key, index))
        else:
            yield (*place, key)


STEPS: Table = {"name": "One", "steps": [{"user": "Go."}, {}]}


@pytest.mark.parametrize(
    ("case", "suite", "shown"),
    [
        ({}, {}, "none"),
        ({}, {"system": "Be kind."}, "suite: Be kind."),
        ({}, {"system": ""}, 'suite: ""'),
        ({"system": "Be brief."}, {"system": "Be kind."}, "case: Be brief."),
        ({"system": ""}, {"system": "Be kind."}, 'case: ""'),
    ],
)
def test_a_step_without_a_prompt_shows_the_one_that_holds(case: Table, suite: Table, shown: str) -> None:
    source = FormSource({**STEPS, **case}, ("cases", 0), suite, every_key=True)
    assert row_named(source, "steps", 1, "system").cells[0].shown == shown
