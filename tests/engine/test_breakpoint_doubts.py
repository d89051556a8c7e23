"""Breakpoints that may never hold a run are distinguished from the others."""

from __future__ import annotations

import pytest

from tests.tables import each_row
from workbench.engine.breakpoints import breakpoint_of, breakpoint_warning
from workbench.trajectory.events import ToolDefinition

LIGHTS = ToolDefinition(
    "set_lights",
    parameters={
        "properties": {"room": {"type": "string"}, "brightness": {"type": "integer"}, "scene": {"type": "object"}}
    },
)
OPEN = ToolDefinition("note", parameters={"properties": {"text": {}}, "additionalProperties": True})
UNTOLD = ToolDefinition("ping")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("tool set_light", 'no open suite has a known tool "set_light" (did you mean `set_lights`?)'),
        ("error xyz", 'no open suite has a known tool "xyz"'),
        (
            "tool set_lights when { nope = 1 }",
            '"set_lights" has no argument "nope" (it has brightness, room, scene)',
        ),
        ("tool set_lights when { rom = 1 }", '"set_lights" has no argument "rom" (did you mean `room`?)'),
        (
            "tool set_lights when { brightness = { rang = [50, 10] } }",
            '"rang" is not a check, so the table is compared as a value (did you mean `range`?)',
        ),
    ],
)
def test_what_may_never_hold_is_told(line: str, said: str) -> None:
    assert breakpoint_warning(breakpoint_of(line), [LIGHTS, OPEN, UNTOLD]) == said


@each_row(
    "line",
    [
        "error",
        "round 3",
        "not-read-only",
        "failed-check set_lights",
        "tool set_lights when { brightness = { range = [5, 50] } }",
        "tool set_lights when { scene = { rang = 1 } }",
        "tool set_lights when { brightness = { equals = { rang = 1 } } }",
        "tool note when { other = 1 }",
        "tool ping when { other = 1 }",
    ],
)
def test_against_others_nothing_is_said(line: str) -> None:
    assert breakpoint_warning(breakpoint_of(line), [LIGHTS, OPEN, UNTOLD]) is None


def test_without_any_known_tool_only_checks_are_doubted() -> None:
    assert breakpoint_warning(breakpoint_of("tool nope when { x = 1 }"), []) is None
    assert breakpoint_warning(breakpoint_of("tool nope when { x = { presnt = true } }"), []) is not None
