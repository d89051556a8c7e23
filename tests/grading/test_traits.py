"""Every grader has all its parts: its formula, its words on screens, and the report of its original system."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from workbench.analysis.published_reports import PublishedSystem, system_of
from workbench.grading.explanation import GRADER_EXPLANATIONS
from workbench.grading.grade import Grade
from workbench.grading.run import GRADERS_BY_NAME as GRADING
from workbench.grading.status import Status
from workbench.grading.traits import TRAITS
from workbench.suite.grading_model import GRADERS, GraderName
from workbench.suite.rules import GRADER_QUANTITIES
from workbench.suite.settings import Grading

ROOM = Path(__file__).parents[2] / "workbench"
NAMED_ELSEWHERE = {
    "suite": "the names and options as they are written",
    "exchange": "each form's own rubric decides which grader an imported suite has",
    "grading": "the graders themselves",
    "authoring": "the form has the options of each grader as fields, under its name",
    "cli": "the names, for a help that imports no grader",
}
"""Rooms that know graders by name, and why."""
PUBLISHED_REPORTS = Path("analysis/published_reports.py")
"""Has one system for each grader, which the test below compares with the graders."""


def test_every_grader_has_all_its_parts_in_the_same_order() -> None:
    assert tuple(TRAITS) == tuple(GRADING) == tuple(GRADER_EXPLANATIONS) == tuple(GRADER_QUANTITIES) == GRADERS


@pytest.mark.parametrize("name", GRADERS)
def test_a_grader_says_what_screens_need(name: GraderName) -> None:
    traits = TRAITS[name]
    numbers = dict.fromkeys(GRADER_QUANTITIES[name], 1.0)
    assert traits.system and isinstance(system_of(name), PublishedSystem)
    assert traits.parts(Grade(name, 1.0, Status.PASSED, "", numbers=numbers))
    low, high = traits.thresholds(Grading(by=name))
    assert 0 < low <= high <= 1


def test_no_other_room_decides_by_the_name_of_a_grader() -> None:
    """`trajectory` is left out: it is also the name of a room, of a screen and of a form."""
    found = []
    for file in sorted(ROOM.rglob("*.py")):
        place = file.relative_to(ROOM)
        if place.parts[0] in NAMED_ELSEWHERE or place == PUBLISHED_REPORTS:
            continue
        text = file.read_text(encoding="utf-8")
        if not any(f'"{name}"' in text for name in GRADERS):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Compare):
                values = [*ast.walk(node)]
            elif isinstance(node, ast.match_case):
                values = [*ast.walk(node.pattern)]
            elif isinstance(node, ast.Dict):
                values = [key for key in node.keys if key is not None]
            else:
                continue
            names = {each.value for each in values if isinstance(each, ast.Constant)}
            found += [f"{place}: {name}" for name in GRADERS if name in names and name != "trajectory"]
    assert not found
