"""The real program stores its runs however it ends, and works without a writable history."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.history.batches import SUITE, run_kept
from tests.programs import program_of
from tests.sampled_rows import first_of
from tests.tui.holds.test_held_in_a_terminal import WAYS
from tests.tui.in_terminal import Terminal
from workbench.engine.missing_runs import resumable
from workbench.grading.status import Status
from workbench.history.history import History


def suite_in(folder: Path) -> Path:
    file = folder / "weather.toml"
    file.write_text(SUITE, encoding="utf-8")
    return file


@pytest.mark.parametrize("way", first_of(WAYS, 1))
def test_runs_are_kept_whatever_way_the_program_ends_and_what_was_under_way_can_be_made(
    tmp_path: Path, way: str
) -> None:
    suite, history = suite_in(tmp_path), tmp_path / "history.sqlite3"
    end, code = WAYS[way]
    with Terminal([str(suite), "--history", str(history)], tmp_path / "state") as terminal:
        terminal.wait_for("Paris")
        terminal.send("R")
        terminal.wait_for("✓ Paris")
        terminal.wait_for("✗ Nowhere")
        terminal.send("s")
        terminal.wait_for("the request of round 1")
        end(terminal)
        assert terminal.end() == code
    with History(history) as kept:
        held, done = kept.batches()
        assert (done.missing, done.count(Status.PASSED, Status.FAILED)) == (0, 2)
        assert all(kept.recording(run).complete for run in kept.runs(done.number))
        assert held.missing == 1
        assert [run.case.name for run in resumable(kept, held, program_of(tmp_path)).runs] == ["Paris"]


@pytest.mark.slow
def test_an_idle_screen_that_shows_last_results_of_a_history_writes_nothing(tmp_path: Path) -> None:
    history = tmp_path / "history.sqlite3"
    run_kept(tmp_path, history)
    with Terminal([str(tmp_path / "weather.toml"), "--history", str(history)], tmp_path / "state") as terminal:
        terminal.wait_for("batch #1")
        assert terminal.falls_silent(1.5)


@pytest.mark.slow
def test_a_history_that_cannot_be_written_is_said_once_and_the_runs_go_on(tmp_path: Path) -> None:
    suite, state = suite_in(tmp_path), tmp_path / "state"
    said = "directory;"  # of "Not a directory; what is not stored yet is tried again": no line ends within it
    (tmp_path / "file").touch()
    with Terminal([str(suite), "--history", str(tmp_path / "file" / "history.sqlite3")], state) as terminal:
        terminal.wait_for("Paris")
        terminal.send("r")
        terminal.wait_for(said)
        terminal.wait_for("✓ Paris")
        terminal.send("\x1b[B")
        terminal.send("z")
        terminal.wait_for(lambda: said not in terminal.screen)
        terminal.quiet(0.5)
        times = terminal.output.count(said.encode())
        terminal.send("zr")
        terminal.wait_for("✗ Nowhere")
        terminal.quiet(0.3)
        terminal.send("q")
        assert terminal.end() == 0
        assert terminal.output.count(said.encode()) == times
