"""Draws the pictures of `docs/pictures`: drives the app on the sample suites with the offline model, and exports its
screens as SVG.

Run it from any folder: `python docs/make_pictures.py [FOLDER]`."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from textual.pilot import Pilot

from workbench.config.folders import Folders, bundled
from workbench.config.program import create_program
from workbench.engine.events import BatchListener
from workbench.evaluation.runtime import Runtime
from workbench.show.views.run_items import ResultItem
from workbench.tui.audit.screen import AuditScreen
from workbench.tui.comparison.paired import PairedScreen
from workbench.tui.faults.screen import FaultsScreen
from workbench.tui.faults.trials import FaultsDialog
from workbench.tui.history.batches_screen import HistoryScreen
from workbench.tui.history.changes import BatchDiffScreen
from workbench.tui.shell.workbench import Workbench
from workbench.tui.terminal.environment import terminal_environment
from workbench.tui.terminal.screenshot import svg_of

Drive = Callable[[Workbench, "Pilot[int]"], Awaitable[None]]

PICTURES = Path(__file__).parent / "pictures"
ORDERS = Path(__file__).parent / "orders.txt"
LONGEST_WAIT_S = 60.0


@dataclass(frozen=True)
class Picture:
    """A picture: its name, the size of the terminal in cells, the theme, the steps before it is drawn, and the suite
    (by default all samples)."""

    name: str
    size: tuple[int, int]
    drive: Drive
    theme: str = "graphite"
    suite: Path | None = None


async def _everything_run(app: Workbench, pilot: Pilot[int]) -> None:
    """Run all suites and select a case with a wrong argument."""
    await pilot.press("home", "R")
    await _until(pilot, lambda: app.main.book.progress().total > 0 and not app.main.book.progress().is_active)
    await _named(app, pilot, "HR assistant")


async def _narrow(app: Workbench, pilot: Pilot[int]) -> None:
    await _everything_run(app, pilot)
    await pilot.press("3", "home")


async def _help(app: Workbench, pilot: Pilot[int]) -> None:
    await pilot.press("question_mark")


async def _form(app: Workbench, pilot: Pilot[int]) -> None:
    """Add a call to a case, with the list of tools open."""
    await _named(app, pilot, "Send message with typo")
    await pilot.press("2", *["down"] * 3, "plus")


async def _toml(app: Workbench, pilot: Pilot[int]) -> None:
    """Type a case as TOML, with an error in it."""
    await _named(app, pilot, "Fuzzy weights")
    await pilot.press(
        "2", "o", "e", *["down"] * 4, "end", "enter", *"tagz = [", "quotation_mark", *"dm", "quotation_mark", "]"
    )


async def _accept(app: Workbench, pilot: Pilot[int]) -> None:
    """Show the calls of a model that are about to become the expectation."""
    await _everything_run(app, pilot)
    await pilot.press("A")


async def _tools(app: Workbench, pilot: Pilot[int]) -> None:
    """Show the tools of a suite, one of them in detail."""
    await _named(app, pilot, "Send direct message")
    await pilot.press("t", "down")


async def _grades(app: Workbench, pilot: Pilot[int]) -> None:
    """Show a run about which the graders disagree, and the explanation of one score."""
    await _everything_run(app, pilot)
    await _named(app, pilot, "Weather in Tokyo, exact units")
    await pilot.press("equals_sign", "right_curly_bracket", "enter", "tab", "tab")


async def _failures(app: Workbench, pilot: Pilot[int]) -> None:
    """Show the causes of failed runs."""
    await _everything_run(app, pilot)
    await pilot.press("home", "f", "down", "down")


async def _held(app: Workbench, pilot: Pilot[int]) -> None:
    """Show a run held at a breakpoint while the arguments of its call are edited."""
    await _named(app, pilot, "E-mail to a name")
    await pilot.press("2", *["down"] * 6, "b", "r")
    await _until(pilot, lambda: bool(app.main.book.held_runs))
    await pilot.press("3", "e", "down", "end", "left", "left", *"@example.com")


async def _stepped(app: Workbench, pilot: Pilot[int]) -> None:
    """Show the end of the same run, with a mock made from the call."""
    await _held(app, pilot)
    await pilot.press("ctrl+s", "s")
    await _until(pilot, lambda: any(run.paused and run.paused.at == "result" for run in app.main.book.held_runs))
    await pilot.press("M", "c")
    await _until(pilot, lambda: not app.main.book.active_runs())


async def _fork(app: Workbench, pilot: Pilot[int]) -> None:
    """Show a passed run, and a fork of it with a wrong tool result."""
    await _named(app, pilot, "Times ten")
    await pilot.press("r")
    await _until(pilot, lambda: app.main.book.progress().total > 0 and not app.main.book.active_runs())
    await pilot.press("3", "home")
    while not isinstance(app.main.run_pane.run_list.item, ResultItem):
        await pilot.press("down")
    await pilot.press("Y", *["down"] * 3, "enter", "f7", *"51", "escape", *["up"] * 3, "enter")
    await _until(pilot, lambda: len(app.main.selection.runs) > 1 and not app.main.book.active_runs())


async def _pair(app: Workbench, pilot: Pilot[int]) -> None:
    """Show the same two runs side by side."""
    await _fork(app, pilot)
    app.main.action_do("run.pair")


async def _breakpoints(app: Workbench, pilot: Pilot[int]) -> None:
    """Show the choices for a new breakpoint."""
    await pilot.press("B", "a")


async def _chain(app: Workbench, pilot: Pilot[int]) -> None:
    """Show finished chains, two of them with the statuses of their steps in the tree."""
    await _named(app, pilot, "Nothing more to do")
    await pilot.press("R")
    await _until(pilot, lambda: app.main.book.progress().total > 0 and not app.main.book.active_runs())
    await pilot.press("1", "right")
    await _named(app, pilot, "A dozen")
    await pilot.press("right", "down", "down", "up", "up")


async def _audit(app: Workbench, pilot: Pilot[int]) -> None:
    """Show the audit's findings in all suites."""
    await pilot.press("home", "exclamation_mark")
    await _until(pilot, lambda: isinstance(app.screen, AuditScreen) and app.screen.is_done)


async def _compare(app: Workbench, pilot: Pilot[int]) -> None:
    """Compare three models on a suite, with the cursor on a case that one of them fails."""
    from scripted_models import MODELS, scripted_models  # which stands beside this file

    with scripted_models() as named:
        folder = app.program.folders.config
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "workbench.toml").write_text(named, encoding="utf-8")
        app.main.selection.models = tuple(MODELS)
        await _named(app, pilot, "Movie night")
        await pilot.press("v", "R")
        await _until(pilot, lambda: app.main.book.progress().total > 0 and not app.main.book.progress().is_active)
        await pilot.press(*["down"] * 4, "asterisk", "right")
        await pilot.pause(0.5)


async def _paired(app: Workbench, pilot: Pilot[int]) -> None:
    """Compare the small model with the first one."""
    await _compare(app, pilot)
    await pilot.press("right", "p")
    await _until(pilot, lambda: isinstance(app.screen, PairedScreen))


async def _variant(app: Workbench, pilot: Pilot[int]) -> None:
    """Compare a suite with a variant of a tool's description, with the cursor on a case that the variant mends."""
    app.main.action_do("variant.run")
    await _until(pilot, lambda: app.main.book.progress().total > 0 and not app.main.book.active_runs())
    await pilot.press("asterisk", "right", "down")
    await pilot.pause(0.5)


async def _needed(app: Workbench, pilot: Pilot[int]) -> None:
    """Show how much so few cases can tell about that difference."""
    await _variant(app, pilot)
    await pilot.press("p")
    await _until(pilot, lambda: isinstance(app.screen, PairedScreen))


async def _faults(app: Workbench, pilot: Pilot[int]) -> None:
    """Show all faults of a tool, with a robust model and two weak ones."""
    app.main.selection.models = ("offline", "offline:gullible", "offline:stubborn")
    await _named(app, pilot, "Weather in Tokyo, any units")
    app.main.action_do("faults")
    await _until(pilot, lambda: isinstance(app.screen, FaultsDialog))
    await pilot.press("down", "enter", "enter", "home", "enter")
    await _until(pilot, lambda: isinstance(app.screen, FaultsScreen))
    await pilot.press("right", "end", "up")


async def _history(app: Workbench, pilot: Pilot[int]) -> None:
    """Run all suites, then one of them again, before and after the calls of a failed case were accepted."""
    await _everything_run(app, pilot)
    for keys in (("R",), ("A", "enter", "R")):
        await pilot.press(*keys)
        await _until(pilot, lambda: not app.main.book.progress().is_active)
    await pilot.press("h")
    await _until(pilot, lambda: isinstance(app.screen, HistoryScreen) and app.screen.state.is_read)


async def _changes(app: Workbench, pilot: Pilot[int]) -> None:
    """Show the changes between two batches."""
    await _history(app, pilot)
    await pilot.press("space", "down", "space")
    await _until(pilot, lambda: isinstance(app.screen, BatchDiffScreen))
    await pilot.press("down")


async def _named(app: Workbench, pilot: Pilot[int], name: str) -> None:
    row = next(row for row in app.main.selection.tree.rows if row.case is not None and row.case.name == name)
    app.main.selection.select(row.key.path, row.key.part)
    await pilot.pause()


async def _until(pilot: Pilot[int], condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(LONGEST_WAIT_S):
        while not condition():
            await pilot.pause(0.05)
    await pilot.pause(0.1)


ALL_PICTURES = (
    Picture("workbench", (140, 40), _everything_run),
    Picture("light", (140, 40), _everything_run, "paper"),
    Picture("narrow", (80, 24), _narrow),
    Picture("keys", (100, 40), _help),
    Picture("form", (120, 32), _form),
    Picture("toml", (120, 32), _toml),
    Picture("accept", (120, 36), _accept),
    Picture("tools", (120, 36), _tools),
    Picture("grades", (120, 36), _grades),
    Picture("failures", (120, 36), _failures),
    Picture("audit", (120, 36), _audit),
    Picture("chain", (120, 32), _chain),
    Picture("held", (120, 32), _held),
    Picture("stepped", (120, 32), _stepped),
    Picture("fork", (120, 32), _fork),
    Picture("pair", (120, 20), _pair),
    Picture("compare", (120, 32), _compare),
    Picture("paired", (100, 18), _paired),
    Picture("variant", (120, 28), _variant, suite=ORDERS),
    Picture("needed", (100, 16), _needed, suite=ORDERS),
    Picture("faults", (120, 38), _faults),
    Picture("history", (120, 26), _history),
    Picture("changes", (120, 24), _changes),
    Picture("breakpoints", (100, 12), _breakpoints),
)


async def draw(picture: Picture, suites: Path) -> str:
    """Return a picture as SVG."""
    with tempfile.TemporaryDirectory() as state:
        program = create_program(Folders(Path(state), *(Path(state) / name for name in ("log", "config", "data"))), {})

        history = Path(state) / "history.sqlite3"

        def open_runtime(listener: BatchListener) -> Runtime:
            return Runtime(listener, program, asks=True, history=history)

        opened = suites
        if picture.suite is not None:  # a name that no search for suites finds
            opened = Path(shutil.copy(picture.suite, Path(state) / f"{picture.suite.stem}.toml"))
        terminal = terminal_environment({"COLORTERM": "truecolor", "EDITOR": "vi"})
        app = Workbench(
            [opened],
            open_runtime=open_runtime,
            program=program,
            terminal=terminal,
            trust=True,
            history=history,
        )
        async with app.run_test(size=picture.size) as pilot:
            app.theme = picture.theme
            # The watcher of files never ends.
            await _until(pilot, lambda: all(worker.group == "watch" for worker in app.workers))
            await picture.drive(app, pilot)
            await pilot.pause(0.1)
            drawing = svg_of(app)
            await asyncio.to_thread(app.services.runner.close)
        return drawing


def main(folder: Path, suites: Path) -> None:
    """Draw all pictures into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for picture in ALL_PICTURES:
        (folder / f"{picture.name}.svg").write_text(asyncio.run(draw(picture, suites)), encoding="utf-8")
        sys.stdout.write(f"{picture.name}.svg\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES, bundled("sample_suites"))
