"""`workbench run` records, streams and replays. Problems with a file affect neither the runs nor the report."""

from __future__ import annotations

import json
import signal
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.program import Program, read_until
from tests.cli.suites import SLOW, TOO_LATE, WEATHER, WRONG
from workbench.trajectory.recording import Recording, read_recording
from workbench.trajectory.trajectory import Trajectory


def the_recording_in(folder: Path) -> Recording:
    [file] = folder.glob("*.run.jsonl")
    return read_recording(file)


def without_times(trajectory: Trajectory) -> Trajectory:
    """Return a trajectory without times, run ids and models."""
    assert trajectory.start is not None
    rounds = [
        replace(
            round_,
            first_token_ms=None,
            latency_ms=None,
            calls=tuple(
                replace(call, result=replace(call.result, latency_ms=0.0)) if call.result else call
                for call in round_.calls
            ),
        )
        for round_ in trajectory.rounds
    ]
    start = replace(trajectory.start, model="", suite_hash="")
    return replace(trajectory, run_id="", start=start, rounds=tuple(rounds), duration_ms=0.0, loop_ms=0.0)


def test_a_recorded_run_replays_to_the_same_trajectory(program: Program) -> None:
    program.write("weather.toml", WEATHER)
    assert program.run("run", "weather.toml", "--record", "first").returncode == 0
    name = "first/weather.right.offline.1.run.jsonl"
    done = program.run("run", "weather.toml", "--model", f"replay:{name}", "--record", "again/deeper")
    assert done.returncode == 0, done.stderr
    again = the_recording_in(program.folder / "again" / "deeper")
    assert without_times(again.trajectory) == without_times(read_recording(program.folder / name).trajectory)
    assert again.trajectory.start is not None
    assert again.trajectory.start.model == f"replay:{name}"


def test_a_suite_names_recordings_relative_to_its_own_folder(program: Program) -> None:
    program.write("suites/weather.toml", WEATHER)
    program.run("run", "suites/weather.toml", "--record", "suites/kept")
    replaying = '\nmodels = ["replay:kept/weather.right.offline.1.run.jsonl"]\n[[tools]]'
    program.write("suites/weather.toml", WEATHER.replace("[[tools]]", replaying, 1))
    done = program.run("run", "suites")
    assert done.returncode == 0, done.stdout


def test_a_replay_of_what_is_no_recording_is_refused_before_anything_runs(program: Program) -> None:
    program.write("weather.toml", WEATHER)
    (program.folder / "empty").mkdir()
    names = ("nowhere.run.jsonl", "weather.toml", "empty")
    done = program.run("run", "weather.toml", *(word for name in names for word in ("--model", f"replay:{name}")))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "nowhere.run.jsonl cannot be read: No such file or directory",
        "weather.toml is not a recording: its first line is not JSON",
        "empty contains no recording (a file *.run.jsonl)",
    ]


def test_a_recording_replays_its_own_case_and_a_folder_those_that_it_has(program: Program) -> None:
    program.write("weather.toml", WEATHER + WRONG)
    program.run("run", "weather.toml", "--record", "kept")
    file = "kept/weather.right.offline.1.run.jsonl"
    one = program.run("run", "weather.toml", "--model", f"replay:{file}")
    assert one.returncode == 3
    assert f"{file} records the case 'right', not 'wrong': choose that one with --case right" in one.stdout
    assert program.run("run", "weather.toml", "--model", f"replay:{file}", "--case", "right").returncode == 0
    program.write("weather.toml", WEATHER + WRONG + WRONG.replace('"Wrong"', '"New"'))
    all_of_them = program.run("run", "weather.toml", "--model", "replay:kept")
    assert "3 runs: 1 passed, 1 failed, 1 in error" in all_of_them.stdout
    assert "kept contains no recording of the case 'new'" in all_of_them.stdout


@pytest.mark.slow
def test_a_folder_with_recordings_of_several_models_is_refused_until_one_is_chosen(program: Program) -> None:
    program.write("weather.toml", WEATHER)
    program.run("run", "weather.toml", "--record", "kept")
    program.run("run", "weather.toml", "--model", "replay:kept", "--record", "kept")
    words = ("run", "weather.toml", "--model")
    mixed = program.run(*words, "replay:kept")
    assert (mixed.returncode, mixed.stdout, mixed.stderr) == (
        2,
        "",
        "kept contains recordings of several models, offline and replay:kept: "
        "choose one, as with replay:kept#offline\n",
    )
    for model in ("offline", "replay:kept"):
        done = program.run(*words, f"replay:kept#{model}")
        assert (done.returncode, done.stderr) == (0, "")
    gone = program.run(*words, "replay:kept#other")
    assert (gone.returncode, gone.stdout, gone.stderr) == (
        2,
        "",
        "kept contains no recording of the model 'other', only of offline and replay:kept\n",
    )
    # If a suite names it, the run says so.
    program.write("weather.toml", WEATHER.replace("[[tools]]", 'models = ["replay:kept"]\n[[tools]]', 1))
    named = program.run("run", "weather.toml")
    assert named.returncode == 3
    assert "kept contains recordings of several models, offline and replay:kept: choose one" in named.stdout


def test_a_recording_in_place_of_a_suite_is_told_what_it_is_good_for(program: Program) -> None:
    program.write("weather.toml", WEATHER)
    program.run("run", "weather.toml", "--record", "out")
    [file] = (program.folder / "out").iterdir()
    program.write("renamed.jsonl", file.read_text(encoding="utf-8"))
    one = program.run("run", "renamed.jsonl")
    assert (one.returncode, one.stderr) == (
        2,
        "renamed.jsonl is a recording, not a suite: 'workbench grade renamed.jsonl' regrades it, and the model "
        "'replay:renamed.jsonl' plays it\n",
    )
    many = program.run("run", "out")
    assert many.returncode == 2
    assert "no suite at out, only recordings: regrade them with 'workbench grade out'" in many.stderr


def test_a_replay_takes_its_time_only_when_that_is_wanted(program: Program) -> None:
    program.write("weather.toml", WEATHER)
    program.run("run", "weather.toml", "--record", "out")
    [file] = (program.folder / "out").glob("*.run.jsonl")
    head, *events, end = file.read_text().splitlines()
    # Each event comes 30 ms after the one before it, so the first answer takes 180 ms.
    spread = [json.dumps({**json.loads(line), "ms": 30 * number}) for number, line in enumerate(events)]
    file.write_text("\n".join([head, *spread, end]))
    words = ("run", "weather.toml", "--model", f"replay:{file}", "--format", "json")
    paced = json.loads(program.run(*words, "--pace", "recorded").stdout)
    at_once = json.loads(program.run(*words).stdout)
    assert paced["runs"][0]["rounds"][0]["latency_ms"] >= 150
    assert at_once["runs"][0]["rounds"][0]["latency_ms"] < paced["runs"][0]["rounds"][0]["latency_ms"]


def test_only_failing_runs_are_kept_when_that_is_wanted(program: Program) -> None:
    program.write("weather.toml", WEATHER + WRONG + TOO_LATE)
    assert program.run("run", "weather.toml", "--record-failed", "out").returncode == 3
    names = sorted(file.name for file in (program.folder / "out").iterdir())
    assert names == ["weather.later.offline.1.run.jsonl", "weather.wrong.offline.1.run.jsonl"]


def test_the_stream_is_nothing_but_recordings_line_by_line(program: Program) -> None:
    program.write(
        "weather.toml", WEATHER + WRONG.replace('name = "Wrong"', 'name = "Wrong"\nskip = "not now"') + TOO_LATE
    )
    done = program.run("run", "weather.toml", "--format", "jsonl")
    assert done.returncode == 3
    runs = defaultdict(list)
    for line in done.stdout.splitlines():
        runs[json.loads(line)["run"]].append(line)
    read = {}
    for run, lines in runs.items():
        recording = read_recording(program.write(f"{run}.run.jsonl", "\n".join(lines)))
        assert recording.result is not None
        read[recording.header.case] = (recording.result["status"], len(recording.trajectory.calls))
    assert read == {"right": ("passed", 1), "wrong": ("skipped", 0), "later": ("error", 1)}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--record", "weather.toml"], "cannot record in weather.toml: it is a file"),
        (["--record-failed", ""], "an empty path is not allowed"),
    ],
)
def test_what_cannot_be_recorded_is_said_before_anything_runs(program: Program, words: list[str], said: str) -> None:
    program.write("weather.toml", WEATHER)
    done = program.run("run", "weather.toml", *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""


@pytest.mark.slow
def test_a_disk_without_room_costs_the_recording_and_not_the_report(program: Program) -> None:
    program.write("weather.toml", WEATHER)
    limited = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))"  # as if that were all there is
    done = program.run("run", "weather.toml", "--record", "out", first=limited)
    assert done.returncode == 2
    assert "1 run: 1 passed, 0 failed" in done.stdout
    history = program.folder / "data" / "toolcall-workbench" / "history.sqlite3"
    assert done.stderr.splitlines() == [
        f"the disk refuses the history {history} (disk I/O error): make room on it, or check that it works; "
        "what is not stored yet is tried again",
        f"1 run is not in the history {history}",
        "not every run could be recorded in out: File too large",
    ]


def test_a_killed_program_leaves_what_it_has_recorded(program: Program) -> None:
    program.write("slow.toml", WEATHER[: WEATHER.index("[[cases]]")] + SLOW)
    with program.start("run", "slow.toml", "--record", "out", "--verbose") as running:
        read_until(running, "model answered")
        running.send_signal(signal.SIGKILL)
    [file] = (program.folder / "out").iterdir()
    recording = read_recording(file)
    assert file.name == "slow.slow.offline.1.run.jsonl.part"
    assert not recording.complete
    assert [call.tool for call in recording.trajectory.calls] == ["get_weather"]
