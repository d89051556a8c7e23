"""A killed program loses only the runs in progress, which can be made later."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.program import Program, wait_until
from tests.cli.suites import SLOW, WEATHER
from tests.history.killing import content_of, is_whole
from workbench.history.history import History

ROOT = Path(__file__).parents[2]
KILLS = 100
IN_THE_MIDST = 50
"""The number of kills that must hit a half-stored batch, on any machine."""
WAITING = """
[[cases]]
name = "Waiting"
user = "What is the weather in Bergen?"
mocks = [{ tool = "get_weather", result = "Rain", delay_ms = 400 }]
ordered = [{ tool = "get_weather", args = { city = "Bergen" } }]
"""


@pytest.mark.slow
def test_a_batch_killed_at_any_moment_and_resumed_is_kept_as_if_nothing_had_happened(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "tests.history.killing", str(tmp_path), str(KILLS), str(IN_THE_MIDST), "7"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, encoding="utf-8", timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["kills"] >= KILLS
    assert found["in the midst"] >= IN_THE_MIDST
    wrong = {name: found[name] for name in ("differing", "not whole", "still claimed")}
    assert wrong == {"differing": 0, "not whole": 0, "still claimed": 0}


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


def kept(file: Path) -> int:
    """Return the number of runs in a history."""
    with History(file) as history:
        return sum(batch.planned - batch.missing for batch in history.batches())


@pytest.mark.slow
def test_the_command_line_goes_on_with_a_batch_that_was_killed(program: Program) -> None:
    program.write("weather.toml", WEATHER + WAITING)
    words = ("run", "weather.toml", "--repeats", "4", "--concurrency", "2")
    assert program.run(*words, "--history", "undisturbed.sqlite3").returncode == 0
    file = program.folder / "kept.sqlite3"
    with program.start(*words, "--history", str(file)) as running:
        wait_until(lambda: bool(kept(file)), running)
        running.kill()
    assert is_whole(file, program.folder / "copies")
    assert 0 < kept(file) < 8
    done = program.run("run", "--resume", "--history", str(file))
    assert done.returncode == 0, done.stderr
    assert content_of(file) == content_of(program.folder / "undisturbed.sqlite3")


def test_a_batch_that_goes_on_is_not_gone_on_with_elsewhere(program: Program) -> None:
    program.write("weather.toml", WEATHER + SLOW)
    words = ("run", "weather.toml", "--history", "kept.sqlite3", "--verbose")
    with program.start(*words) as running:
        while (line := running.stdout.readline()) and "passed" not in line:
            pass
        refused = program.run("run", "--resume", "1", "--history", "kept.sqlite3")
        running.kill()
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "batch 1 is running in another program" in refused.stderr
