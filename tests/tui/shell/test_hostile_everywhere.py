"""Text that means to be more than text, on every screen and in every dialog: it is shown, and acted on by nothing."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.tui.apps import Call, Opened, conversation, opened, suites_in
from tests.tui.histories import Made, write_history
from tests.tui.shell.test_hostile import BROKEN_UP, COMMANDS, MARKED_UP, assert_safe, suite_saying
from tests.tui.walk import Walk
from workbench.engine.plan import PlannedRun
from workbench.history.edits import name_batch
from workbench.trajectory.events import EventPayload
from workbench.tui.kit.side_screen import SideScreen

MARKUP = "[red]ZQX[/red][@click=app.quit]w[/] [b]"
LONG = "漢\u0301" * 100_000 + "y" * 1_000_000
NO_WALK = frozenset(
    {
        *("suspend", "picture", "edit.file", "toml.outside", "observe", "run.save", "trajectory.save"),
        *("run.case", "run.suite", "run.shown", "run.failed", "step", "compare.run", "compare.run_all", "run.stop_all"),
        *("history.export", "history.export_as", "history.delete", "history.resume", "history.regrade"),
    }
)
"""Actions that hand over the terminal, start a program, write files, or hide the finished runs behind new ones."""

TOUR = {
    "failures": ("3", "f"),
    "grades": ("escape", "equals_sign"),
    "compare": ("escape", "v"),
    "tools": ("escape", "1", "t"),
    "history": ("escape", "h"),
    "diff": ("space", "down", "space"),
    "pair": ("end", "enter"),
    "timeline": ("escape", "h"),
    "trajectory": ("enter",),
}
"""The keys to press in turn, and the screen that they open."""


class HostileWalk(Walk):
    def __init__(self, opened: Opened) -> None:
        super().__init__(opened.app, opened.pilot, left_out=NO_WALK)
        self.opened = opened

    async def look(self, done: str) -> None:
        assert_safe(self.opened)
        for strip in self._app.screen._compositor.render_strips():
            assert not re.search(r"\wZQX", strip.text), f"markup was taken for markup after {done}: {strip.text}"
            assert not any("@click" in segment.style.meta for segment in strip if segment.style and segment.style.meta)


def runnable(text: str) -> str:
    """Return a suite with a text in every place, without a mistake or a judge."""
    typed = suite_saying(text).replace("[tools.parameters.", '[tools.parameters]\ntype = "object"\n[tools.parameters.')
    typed = re.sub(r'command = \["[^"]*"\]', 'command = ["nothing"]', typed)
    return "\n".join(line for line in typed.splitlines() if not line.startswith(("response", "enum")))


def saying(text: str, answer: str, *, right: bool = False) -> Made:
    """Return a batch whose model answers `answer`, after a correct or wrong call and another one."""
    calls: list[Call] = [(f"t{text}", {f"p{text}": text, f"q{text}": text})]
    if not right:
        calls = [(f"t{text}", {f"p{text}": text, f"q{text}": [text]}), (text, {})]

    def does(planned: PlannedRun) -> Sequence[EventPayload]:
        return conversation(planned, calls, answer)

    return Made(does, models=(f"m{text}", text), repeats=2)


@asynccontextmanager
async def hostile_app(tmp_path: Path, text: str) -> AsyncIterator[HostileWalk]:
    """Run the app with a suite, a finished run and a history that have a text in every place."""
    named = text.replace("/", "_").replace("\0", "")
    file = suites_in(tmp_path) / named / f"{named}.toml"
    file.parent.mkdir()
    file.write_text(runnable(text), encoding="utf-8")
    history = tmp_path / "history.sqlite3"
    write_history(history, file, saying(text, text, right=True), saying(text, LONG))
    name_batch(history, 2, MARKUP, print)  # a name is one line of text without control characters
    async with opened(file.parents[1], size=(80, 24), models=["offline"], history=history, trust=True) as app:
        (suite,) = app.app.open_suites.suites
        app.app.main.selection.select(suite.path, suite.cases[0].key)
        (run,) = await app.run("r")
        app.session.finish(run, saying(text, LONG).does(run))
        app.session.end_batch()
        await app.settle()
        yield HostileWalk(app)


@pytest.mark.slow
@pytest.mark.parametrize("text", [MARKUP, COMMANDS + MARKED_UP, BROKEN_UP], ids=["markup", "commands", "line breaks"])
async def test_every_screen_shows_text_as_text(tmp_path: Path, text: str) -> None:
    async with hostile_app(tmp_path, text) as walk:
        for name, keys in TOUR.items():
            for key in keys:
                await walk.opened.press(key)
                await walk.look(key)
            screen = walk.opened.app.screen
            assert isinstance(screen, SideScreen) and name == screen.NAME, screen


@pytest.mark.slow
async def test_so_does_whatever_an_action_opens(tmp_path: Path) -> None:
    async with hostile_app(tmp_path, MARKUP) as walk:
        await walk.everything()
        assert {"audit", "compare", "history", "tools"} <= walk.screens
