"""A run of ten thousand steps costs a screen what one of a thousand does."""

from __future__ import annotations

import pytest

from tests.trajectory.scripts import events_of
from workbench.trajectory.events import Event, RequestStarted, RunStarted, TextDelta
from workbench.trajectory.messages import Message
from workbench.tui.state.run_lines import RunLines
from workbench.tui.state.run_view import RunView

SCREEN_ROWS = 40


def long_run(rounds: int) -> RunView:
    view = RunView()
    for event in events_of([("A few words.", 1)] * rounds)[:-1]:
        view.add(event)
    return view


def cost_of_a_frame(lines: RunLines, view: RunView, number: int) -> int:
    """Items laid out for one more piece of streamed text and a screen drawn at the end."""
    before = lines.laid_out
    view.add(Event("run", number, float(number), TextDelta(9_999_999, "more ")))
    lines.sync()
    for index in range(lines.count - SCREEN_ROWS, lines.count):
        lines.line(index)
    return lines.laid_out - before


@pytest.mark.parametrize("rounds", [250, 2_500])
def test_a_frame_lays_out_only_what_changed(rounds: int) -> None:
    view = long_run(rounds)
    lines = RunLines(view, 80)
    view.add(Event("run", 0, 0.0, RequestStarted(9_999_999)))
    cost_of_a_frame(lines, view, 1)
    assert [cost_of_a_frame(lines, view, number) for number in range(2, 12)] == [1] * 10


def test_jumping_anywhere_lays_out_no_more_than_a_screen() -> None:
    lines = RunLines(long_run(2_500), 80)
    assert lines.count > 10_000
    for top in (0, lines.count // 2, lines.count - SCREEN_ROWS):
        before = lines.laid_out
        for index in range(top, top + SCREEN_ROWS):
            lines.line(index)
        assert lines.laid_out - before <= SCREEN_ROWS


def test_expanding_moves_what_is_below() -> None:
    view = RunView()
    view.add(Event("run", 0, 0.0, RunStarted("h", "c", "C", "m", "Be brief. " * 40, (Message("user", "Go."),), ())))
    lines = RunLines(view, 60)
    assert (lines.count, lines.start_of(1)) == (2, 1)
    lines.toggle(0)
    assert lines.start_of(1) > 5
    assert lines.item_at(lines.start_of(1)) == 1
    lines.toggle(0)
    assert (lines.count, lines.start_of(1)) == (2, 1)
