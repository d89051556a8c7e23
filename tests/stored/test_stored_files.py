"""Files of an earlier version, with its names of keys and events, can still be read.

`data` holds a suite, settings, two recordings, a history with a regraded batch, and the app's memory. One recording was
stepped through: it has edits, a regenerated answer, and parts that a provider wants back."""

from __future__ import annotations

import json
import shutil
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Program
from tests.history.batches import run_kept
from workbench.config.settings_file import read_settings
from workbench.engine.recordings import result_of_recording
from workbench.grading.result_json import outcome_of, outcome_to_json
from workbench.history.history import History
from workbench.suite.suite_file import load_suite
from workbench.trajectory.recording import event_to_line, header_line, read_recording, result_line
from workbench.tui.kit.memory import Memory, ProjectPosition

DATA = Path(__file__).parent / "data"
STEPPED = DATA / "recordings" / "weather.oslo.claude.1.run.jsonl"


@pytest.fixture
def program(tmp_path: Path) -> Program:
    shutil.copytree(DATA, tmp_path, dirs_exist_ok=True)
    return Program(tmp_path)


def test_suites_and_settings_load_without_a_problem() -> None:
    file = load_suite(DATA / "weather.toml")
    assert file.problems == ()
    assert file.suite is not None
    assert [message.role for message in file.suite.cases[1].messages] == ["user", "assistant", "tool", "assistant"]
    settings = read_settings(DATA / "workbench.toml", "user")
    assert (settings.judge, settings.models["slow"].read_timeout_s) == ("slow", 300)


@pytest.mark.parametrize("file", sorted(DATA.glob("recordings/*")), ids=lambda file: file.name)
def test_a_recording_is_written_again_as_it_was(file: Path) -> None:
    recording = read_recording(file)
    outcome = outcome_to_json(outcome_of(result_of_recording(recording)))
    lines = [
        header_line(recording.header),
        *map(event_to_line, recording.events),
        result_line(recording.header.run, outcome),
    ]
    assert [json.loads(line) for line in lines] == [json.loads(line) for line in file.read_text().splitlines()]
    assert lines[:-1] == file.read_text().splitlines()[:-1]


def test_what_was_done_by_hand_is_found_in_a_recording() -> None:
    trajectory = read_recording(STEPPED).trajectory
    first = trajectory.rounds[0]
    assert [call.call.arguments for answer in first.superseded for call in answer.calls] == [{"city": "Bergen"}]
    assert (first.added, first.calls[0].sent.arguments) == (("Be brief.",), {"city": "Oslo"})
    assert first.calls[0].result is not None
    assert first.calls[0].result.content == "hail in Oslo"
    states: list[Any] = [
        *(answer.provider_state for answer in (*first.superseded, first)),
        trajectory.rounds[1].provider_state,
    ]
    assert [state["parts"][0] if state else None for state in states] == [
        {"block": {"type": "thinking", "thinking": "Oslo.", "signature": "c2lnbg=="}},
        {"block": {"type": "thinking", "thinking": "Again.", "signature": "YWJj"}},
        None,
    ]
    assert trajectory.start is not None
    assert [message.provider_state is not None for message in trajectory.start.messages] == [False, True, False]


def test_recordings_are_graded_and_replayed(program: Program) -> None:
    graded = program.run("grade", "recordings")
    assert graded.returncode == 0, graded.stderr
    assert "\n2 runs: 2 passed, 0 failed\n" in graded.stdout
    assert "no grade differs from the recorded one" in graded.stdout
    chain = "replay:recordings/weather.chain.offline.1.run.jsonl"
    replayed = program.run("run", "weather.toml", "--case", "chain", "--model", chain, "--history", "history.sqlite3")
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
    assert "1 passed, 0 failed" in replayed.stdout


def test_a_history_is_shown_compared_and_graded_again(program: Program) -> None:
    history = ("--history", "history.sqlite3")
    shown = json.loads(program.run("history", "show", "1", "--format", "json", *history).stdout)
    assert [run["status"] for run in shown["runs"]] == ["passed", "passed", "passed"]
    regraded = program.run("grade", "1", "--suite", "weather.toml", *history)
    assert regraded.returncode == 0, regraded.stderr
    assert "3 runs regraded, grading 2" in regraded.stdout
    run = program.run("history", "show", "1", "--run", "2", *history)
    assert run.returncode == 0, run.stderr
    assert "get_weather" in run.stdout


def test_a_history_of_an_earlier_version_reads_as_ever_and_takes_new_batches(tmp_path: Path) -> None:
    file = tmp_path / "history.sqlite3"
    shutil.copy(DATA / "history.sqlite3", file)
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone()[0] == 3
        stored = dict(connection.execute("SELECT place, events FROM runs JOIN details ON details.run = runs.id"))
    results, _ = run_kept(tmp_path, file, repeats=2)
    with History(file) as history:
        for run in history.runs(1):
            lines = zlib.decompress(stored[run.place]).decode().split("\n")
            assert [*map(event_to_line, history.recording(run).events)] == lines
        kept = [history.recording(run).trajectory for run in history.runs(2)]
    assert sorted(kept, key=lambda run: run.run_id) == sorted(
        (result.trajectory for result in results), key=lambda run: run.run_id
    )
    assert all(run.start is not None and run.start.tools for run in kept)


def test_what_the_app_remembers_is_read(program: Program) -> None:
    remembered = Memory(program.folder / "memory.json").read()
    assert (remembered.theme, remembered.view, remembered.right, remembered.zoomed) == ("dracula", "toml", "run", True)
    place = ProjectPosition("weather.toml", "oslo", (("suite", "weather.toml"),), ("offline",))
    assert dict(remembered.projects) == {"/project": place}
