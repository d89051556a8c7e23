"""The breakpoint for a row of a form or a line of a run, and completions for a typed one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tables import each_row
from workbench.engine.breakpoints import Breakpoint, breakpoint_line, breakpoint_of
from workbench.grading.grade import ArgumentVerdict
from workbench.show.lazy_lines import GrowingText
from workbench.show.spans import Line, Span, plain
from workbench.show.views.run_items import (
    CallItem,
    HoldItem,
    Item,
    MessageItem,
    OutcomeItem,
    ResultItem,
    RoundItem,
    TextItem,
)
from workbench.show.views.run_lines import lines_of
from workbench.show.views.run_view import RunPlace
from workbench.suite.problems import Place
from workbench.trajectory.events import ResultReceived
from workbench.tui.breakpoints.screen import (
    NOTHING_IN_FORM,
    NOTHING_IN_RUN,
    breakpoint_in_form,
    breakpoint_in_run,
    completions_of,
)
from workbench.tui.kit.edited_text import with_breakpoint

TABLE: dict[str, Any] = {
    "user": "Dim the lights.",
    "ordered": [
        {"tool": "set_lights", "args": {"brightness": {"range": [5, 40]}, "tool": "x", "a b": 1, "bad": {"near": 1}}},
        {"any_order": [{"tool": "get time"}]},
    ],
    "steps": [{"user": "Look.", "tool": "look"}, {"user": "Rest."}],
    "mocks": [{"tool": "set_lights", "when": {"room": "hall"}, "result": {"tool": "none"}}],
}


@each_row(
    ("place", "line"),
    [
        (("ordered", 0), "tool set_lights"),
        (("ordered", 0, "args"), "tool set_lights"),
        (("ordered", 0, "args", "brightness"), "tool set_lights when { brightness = { range = [5, 40] } }"),
        (("ordered", 0, "args", "brightness", "weight"), "tool set_lights when { brightness = { range = [5, 40] } }"),
        (("ordered", 0, "args", "tool"), 'tool set_lights when { tool = "x" }'),
        (("ordered", 0, "args", "a b"), 'tool set_lights when { "a b" = 1 }'),
        (("ordered", 1, "any_order", 0), 'tool "get time"'),
        (("steps", 0, "user"), "tool look"),
        (("mocks", 0, "when", "room"), 'tool set_lights when { room = "hall" }'),
        (("mocks", 0, "result"), "tool set_lights"),
    ],
)
def test_a_row_of_a_form_means_its_call_or_its_argument(place: Place, line: str) -> None:
    assert breakpoint_in_form(TABLE, place) == breakpoint_of(line)


@pytest.mark.parametrize("place", [(), ("user",), ("ordered",), ("ordered", 1), ("steps", 1, "user")])
def test_a_row_without_a_call_means_none_and_says_where_there_is_one(place: Place) -> None:
    assert breakpoint_in_form(TABLE, place) == NOTHING_IN_FORM


def test_an_argument_whose_check_has_a_mistake_says_which() -> None:
    said = breakpoint_in_form(TABLE, ("ordered", 0, "args", "bad"))
    assert isinstance(said, str)
    assert "`near` needs exactly one of `tolerance` and `value_range`" in said


def result(is_error: bool) -> ResultItem:
    return ResultItem(ResultReceived("c", "said", is_error, "case mock", 0.0), tool="set_lights")


WRONG = ArgumentVerdict("brightness", False, 0.0, 1.0, "5..40", 60, True, "outside")
CALL = CallItem("c", "set_lights", 0, arguments={"brightness": 60, "room": "hall"}, verdicts=(WRONG,))


@each_row(
    ("item", "line"),
    [
        (CALL, "tool set_lights"),
        (result(is_error=True), "error set_lights"),
        (result(is_error=False), "tool set_lights"),
        (RoundItem(3, 2), "round 2"),
        (HoldItem(4, None), "round 4"),
        (TextItem(GrowingText("Hm.")), "round 7"),
        (MessageItem("user", GrowingText("Hi.")), "round 7"),
    ],
)
def test_an_item_of_a_run_means_its_tool_its_error_or_its_round(item: Item, line: str) -> None:
    assert breakpoint_in_run(item, RunPlace(7), ()) == breakpoint_of(line)


def test_an_argument_that_is_judged_means_its_check() -> None:
    head, brightness, room = (lines_of(CALL, 80)[at] for at in range(3))
    found = [breakpoint_in_run(CALL, RunPlace(1), line) for line in (head, brightness, room)]
    assert [breakpoint_line(each) for each in found if isinstance(each, Breakpoint)] == [
        "tool set_lights",
        "failed-check set_lights",
        "tool set_lights",
    ]


@pytest.mark.parametrize("item", [None, OutcomeItem()])
def test_where_nothing_of_a_run_is_there_is_no_breakpoint(item: Item | None) -> None:
    assert breakpoint_in_run(item, None, ()) == NOTHING_IN_RUN


def test_kinds_and_tools_complete_what_is_typed() -> None:
    def texts(typed: str) -> list[str]:
        return [one.text for one in completions_of(typed, ["set_tv", "get time", "reset"])]

    assert texts("") == ["tool ", "error", "failed-check", "round ", "not-read-only"]
    assert texts("t") == ["tool "]
    assert texts("tool set") == ["tool set_tv", "tool reset"]
    assert texts("error TIME") == ['error "get time"']
    assert texts("tool set_tv") == []
    assert texts("round 1") == texts("nonsense here") == []


def test_the_mark_takes_the_place_of_blanks_and_of_nothing_else() -> None:
    line: Line = (Span("   "), Span("call"))
    assert plain(with_breakpoint(line)) == " ◉ call"
    assert with_breakpoint(()) == ()
    assert with_breakpoint((Span(" "), Span("x"))) == (Span(" "), Span("x"))
