"""A running batch of the history case by case, in this program or another one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.programs import program_of
from tests.providers.server import Answer, Request, Server, Signal, said
from tests.sampled_rows import first_of
from tests.tui.apps import SMART_HOME, Opened, opened, suites_in
from tests.tui.histories import BEGAN, keep_run, keeping, well
from workbench.engine.events import BatchDone
from workbench.engine.plan import plan_runs
from workbench.evaluation.approval import needs_of_plan
from workbench.evaluation.options import RunOptions, Stop
from workbench.evaluation.planner import plan
from workbench.evaluation.run import Evaluation
from workbench.history.edits import remove_batches
from workbench.history.writer import HistoryWriter
from workbench.suite.suite_file import load_suite
from workbench.tui.comparison.batch_screen import ComparedBatchScreen
from workbench.tui.comparison.screen import CompareScreen
from workbench.tui.trajectory.screen import TrajectoryScreen

HELLO = said("openai", "Hello.")
MODELS = '[models.{name}]\nprovider = "openai"\nmodel = "m"\nbase_url = "{url}/v1"\n'
GREETINGS = 'format = 1\nname = "Greetings"\n' + "".join(
    f'\n[[cases]]\nname = "Greeting {number}"\nuser = "Say hello."\nexpect_no_calls = true\n' for number in (1, 2)
)


def cells_of(app: Opened, name: str) -> str:
    """Return the row of a case."""
    line = next(line for line in app.screen.splitlines()[2:] if name in line)
    return " ".join(line.split(name, 1)[1].split())


def title(app: Opened) -> str:
    return app.screen.splitlines()[0]


def batch_screen(app: Opened) -> ComparedBatchScreen:
    screen = app.app.screen
    assert isinstance(screen, ComparedBatchScreen)
    return screen


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read again at every news, and when it is shown again."""
    monkeypatch.setattr("workbench.tui.comparison.batch_screen.RELOAD_INTERVAL_S", 0.0)


@pytest.mark.slow
async def test_a_batch_of_this_program_fills_in_as_its_runs_end(tmp_path: Path) -> None:
    gate = Signal()

    def when_told(_: Request) -> Answer:
        return Answer((gate, *HELLO.pieces))

    with Server(lambda _: HELLO) as quick, Server(when_told) as slow:
        suites = suites_in(tmp_path, greetings=GREETINGS)
        written = "".join(MODELS.format(name=name, url=each.url) for name, each in (("quick", quick), ("slow", slow)))
        (suites / "workbench.toml").write_text(written, encoding="utf-8")
        history = tmp_path / "history.sqlite3"
        async with opened(
            suites, size=(80, 24), trust=True, live=True, history=history, models=("quick", "slow")
        ) as app:
            await app.press("home", "R")
            await app.until(lambda: len(slow.requests) == 2 and app.app.main.book.progress().done == 2)
            await app.press("h", "enter")
            screen = batch_screen(app)
            assert "… 2 of 4 runs" in title(app) and "as of" not in title(app)
            assert re.fullmatch(r"✓ 1\.00 \S+ ms … to come", cells_of(app, "Greeting 2"))
            await app.press("right", "enter")
            assert "This run has not started yet" in app.screen
            gate.set()
            await app.until(lambda: cells_of(app, "Greeting 2").count("✓") == 2 and "…" not in title(app))
            assert "2 cases · 2 models" in title(app)
            await app.until(lambda: dict(screen.totals.rows)["graded cases"] == ["2 of 2", "2 of 2"])
            await app.press("enter")
            assert isinstance(app.app.screen, TrajectoryScreen)


class Other:
    """Another program, which makes a batch of three runs."""

    def __init__(self, history: Path, suite: Path) -> None:
        self._now = [BEGAN]
        self._writer = HistoryWriter(history, pytest.fail)
        self.runs = plan_runs([load_suite(suite)])
        self._keep = keeping(self._writer, self.runs, self._now)

    def make(self, at: int) -> None:
        keep_run(self._keep, self.runs[at], well(), self._now)
        assert self._writer.wait_until_written(10)

    def end(self) -> None:
        self._keep(BatchDone("batch"))
        assert self._writer.wait_until_written(10)

    def close(self) -> None:
        self._writer.close()


@contextmanager
def other_program(folder: Path) -> Iterator[tuple[Path, Path, Other]]:
    """A folder of suites, a history, and the program."""
    suites, history = suites_in(folder, home=SMART_HOME), folder / "history.sqlite3"
    with closing(Other(history, suites / "home.toml")) as other:
        other.make(0)
        yield suites, history, other


@pytest.mark.slow
@pytest.mark.parametrize("width", [80, 160])
async def test_a_batch_of_another_program_is_as_of_then_until_f5_reads_it_again(tmp_path: Path, width: int) -> None:
    with other_program(tmp_path) as (suites, history, other):
        async with opened(suites, size=(width, 24), live=True, history=history) as app:
            await app.press("h", "enter")
            screen = batch_screen(app)
            assert re.search(r"… 1 of 3.* as of \d\d:\d\d.*F5", title(app))
            assert cells_of(app, "Lights off") == "… to come"
            await app.press("down", "o")
            other.make(1)
            await app.settle()
            assert cells_of(app, "Lights off") == "… to come"
            await app.press("f5")
            assert "Reloaded: 1 more run finished" in app.screen
            assert "… 2 of 3" in title(app)
            assert cells_of(app, "Lights off").startswith("✓ 1.00")
            assert screen.state.sorting is not None
            await app.press("f5")
            assert "Reloaded: no more runs finished" in app.screen
            other.make(2)
            other.end()
            await app.press("f5")
            assert "…" not in title(app) and "as of" not in title(app)
            await app.until(lambda: dict(screen.totals.rows)["graded cases"] == ["3 of 3"])


@pytest.mark.parametrize("width", first_of([80, 160], 1))
async def test_what_a_stopped_batch_lacks_is_in_its_head(tmp_path: Path, width: int) -> None:
    with other_program(tmp_path) as (suites, history, other):
        async with opened(suites, size=(width, 24), live=True, history=history) as app:
            await app.press("h", "enter")
            other.end()
            await app.press("f5")
            assert "2 runs missing  3 cases" in title(app)


@pytest.mark.slow
async def test_it_is_read_again_when_it_is_shown_again(tmp_path: Path) -> None:
    with other_program(tmp_path) as (suites, history, other):
        async with opened(suites, live=True, history=history) as app:
            await app.press("h", "enter", "enter")
            assert isinstance(app.app.screen, TrajectoryScreen)
            other.make(1)
            await app.press("escape")
            assert "… 2 of 3" in title(app)
            assert cells_of(app, "Lights off").startswith("✓")


@pytest.mark.slow
async def test_what_is_missing_in_a_batch_that_was_cut_off_is_not_said_to_come(tmp_path: Path) -> None:
    with other_program(tmp_path) as (suites, history, other):
        async with opened(suites, live=True, history=history) as app:
            await app.press("h", "enter")
            assert cells_of(app, "Lights off") == "… to come"
            other.close()
            await app.press("f5")
            assert cells_of(app, "Lights off") == "·"
            assert "3 cases · 1 model" in title(app) and "of 3" not in title(app)
            await app.press("down", "enter")
            assert "This case has not run on this model" in app.screen


async def test_a_batch_that_is_gone_says_so_and_what_was_read_stays(tmp_path: Path) -> None:
    with other_program(tmp_path) as (suites, history, other):
        other.close()
        async with opened(suites, live=True, history=history) as app:
            await app.press("h", "enter")
            remove_batches(history, [1], pytest.fail)
            await app.press("f5")
            assert "▲ There is no batch '#1'" in app.screen
            assert cells_of(app, "Movie night").startswith("✓")


@pytest.mark.slow
async def test_a_batch_has_other_cells_when_it_is_resumed_here(tmp_path: Path) -> None:
    with other_program(tmp_path) as (suites, history, other):
        other.close()
        async with opened(suites, live=True, history=history) as app:
            await app.press("h", "c", "enter")
            screen = batch_screen(app)
            await app.until(lambda: not [key for key in keys_of(screen) if screen.state.at(key).stage != "done"])
            assert "…" not in title(app)


def keys_of(screen: CompareScreen) -> list[tuple[str, str, str]]:
    return [case.on(model) for case in screen.state.cases for model in screen.state.models]


async def test_with_nothing_shown_nothing_is_said_to_be_left_to_run(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), models=("one", "two")) as app:
        await app.press("v", "slash", *"xyz", "enter")
        await app.press("R")
        assert "No case is shown" in app.screen
        await app.press("escape")
        runs = await app.run("R")
        assert len(runs) == 6
        await app.press("R")
        assert "Nothing is left to run: the rest is running" in app.screen
        await app.press("f5")
        assert "These runs are shown as they progress" in app.screen


COLOURS = """
format = 1
name = "Colours"
[[tools]]
name = "paint"
description = "Set the colour of the light."
parameters = { type = "object", properties = { colour = { type = "string", enum = ["red"] } }, required = ["colour"] }
""" + "".join(
    f"""
[[cases]]
name = "Light {number}"
user = "Set the colour of the light to 'violet'."
[[cases.ordered]]
tool = "paint"
args = {{ colour = "red" }}
"""
    for number in range(12)
)


@pytest.mark.slow
async def test_a_batch_that_was_stopped_early_is_tested_by_what_stopped_it(tmp_path: Path) -> None:
    suites, history = suites_in(tmp_path, colours=COLOURS), tmp_path / "history.sqlite3"
    options = RunOptions(
        suites=(suites,), models=("offline", "offline:careless"), until=Stop(), compares=True, concurrency=1,
        history=history,
    )  # fmt: skip
    made = plan(options, program_of(tmp_path / "home"))
    async with Evaluation(made, needs_of_plan(made).approved()) as going:
        report = await going.report()
    assert report.watched[0].decided and report.watched[0].cases < 12
    async with opened(suites, size=(100, 30), history=history) as app:
        await app.press("h", "enter", "right", "p")
        await app.until(lambda: "Is it better?" in app.screen)
        assert f"decided after {report.watched[0].cases} of 12 cases: careless better on 0, worse on" in app.screen
        assert "McNemar" not in app.screen and "permutation" not in app.screen
        await app.press("escape", "y")
        await app.until(lambda: "a real difference at the 5% level (e-value" in app.app.clipboard)
        assert "saved; the pass rates" in app.app.clipboard
