"""Recordings may come from other users: with junk in place of any value, each reader reads the recording or names its
file, and reads the other ones."""

from __future__ import annotations

import json
import re
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Program
from tests.malformed_values import JUNK, recording_lines, with_junk
from tests.tui.apps import SMART_HOME, opened, suites_in
from workbench.config.secrets import NO_SECRETS
from workbench.engine.recordings import result_of_recording, run_of_recording, suite_of_recording
from workbench.exchange.exporters.export import report_of, write_runs, write_table
from workbench.exchange.exporters.exported import exported_run
from workbench.exchange.exporters.forms import FORMS
from workbench.show.spans import plain
from workbench.trajectory.recording import Recording, RecordingError, read_recording
from workbench.tui.run_book.stored_runs import recalled
from workbench.tui.trajectory import headline
from workbench.tui.trajectory.run_lines import RunLines

EVERY = 67
"""Of all places with each junk. It shares no factor with the number of junk values: each place meets another."""

NUMBERS = tuple(value for value in JUNK if type(value) in (int, float))


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


def written(file: Path, lines: list[Any], *texts: tuple[str, str]) -> Path:
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    for old, new in texts:
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")
    return file


def read(file: Path) -> Recording | None:
    """Return a recording with a readable run. Return `None` if it is refused with a message that names its file."""
    try:
        recording = read_recording(file)
        result_of_recording(recording)
        suite = suite_of_recording(recording)
        run = run_of_recording(recording, suite)
    except RecordingError as error:
        assert str(file) in str(error)
        return None
    if run is not None:
        record = recalled(run[0], recording.header.started_at, recording.events, run[1])
        assert headline.verdict(record) and len(headline.facts(record)) + len(headline.start_time(record)) > 0
        lines = RunLines(record.view, 60)
        lines.settle(0, 1_000)
        assert [plain(lines.line(index)) for index in range(lines.count)]
    return recording


def exported(recordings: list[Recording], folder: Path) -> None:
    for form, row in FORMS.items():
        if row.writer:
            files = write_runs((exported_run(each, NO_SECRETS) for each in recordings), form, folder / form, "runs")
        else:
            files = write_table(report_of(recordings, NO_SECRETS), form, folder / form, "runs")
        for file in files:
            text = file.read_text(encoding="utf-8")
            if file.suffix == ".json":
                json.loads(text, parse_constant=pytest.fail)
            elif file.suffix == ".jsonl":
                assert [json.loads(line, parse_constant=pytest.fail) for line in text.splitlines()]


def test_any_value_of_a_recording_may_be_junk(tmp_path: Path) -> None:
    good = read(written(tmp_path / "good.run.jsonl", recording_lines()))
    assert good is not None and good.complete
    readable = []
    for place, lines in islice(with_junk(recording_lines()), 0, None, EVERY):
        found = read(written(tmp_path / "junk.run.jsonl", lines))
        readable += [found] if found is not None else []
        assert found is None or not re.fullmatch(r".*\.(?:ms|\w+_ms)", place) or found.trajectory.duration_ms < 1e13
    exported([good, *readable], tmp_path / "out")


@pytest.mark.slow
def test_the_largest_numbers_are_refused_or_exported(tmp_path: Path) -> None:
    readable = []
    for _, lines in islice(with_junk(recording_lines()[-1:], NUMBERS, only=(int, float)), 0, None, 3):
        found = read(written(tmp_path / "junk.run.jsonl", [*recording_lines()[:-1], *lines]))
        readable += [found] if found is not None else []
    assert len(readable) > 50
    exported(readable, tmp_path / "out")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "9" * 5_000])
def test_what_is_no_number_of_json_is_named_with_its_line(tmp_path: Path, number: str) -> None:
    lines = recording_lines()
    lines[2]["ms"] = "HERE"
    with pytest.raises(RecordingError, match=r"junk\.run\.jsonl:3: not JSON"):
        read_recording(written(tmp_path / "junk.run.jsonl", lines, ('"HERE"', number)))


TIMES = ["yesterday", "", "2026-11-22", "0001-01-01T00:00:00+23:00", "9999-12-31T23:59:59-23:00", "\0\ud800"]


async def test_recordings_without_a_time_are_opened_and_everything_beside_them(tmp_path: Path) -> None:
    folder = suites_in(tmp_path, smart_home=SMART_HOME)
    paths = [folder]
    for number, started_at in enumerate(TIMES):
        lines = recording_lines()
        lines[0]["started_at"] = started_at
        paths.append(written(tmp_path / f"{number}.run.jsonl", lines))
    lines = recording_lines()
    lines[7]["ms"] = 1e308
    paths.append(written(tmp_path / "refused.run.jsonl", lines))
    async with opened(folder, paths=paths) as app:
        assert "Looking for suites" not in app.screen
        selection = app.app.main.selection
        assert [suite.path for suite in selection.open_suites.suites[1:]] == paths[1:]
        for suite in selection.open_suites.suites[:-1]:
            selection.select(suite.path, suite.cases[0].key)
            await app.settle()
            await app.press("3")
            if suite.path.suffix == ".jsonl":
                assert selection.run is not None and selection.run.figures is not None
                assert bool(selection.run.started_at) == (suite.path.name == "2.run.jsonl")
        assert "refused.run.jsonl:8" in selection.open_suites.suites[-1].disk.errors[0].message


def test_one_recording_that_cannot_be_read_is_named_and_the_others_are_graded_and_exported(program: Program) -> None:
    lines = recording_lines()
    (program.folder / "runs").mkdir()
    written(program.folder / "runs" / "a.run.jsonl", lines)
    lines[7]["ms"] = 1e308
    written(program.folder / "runs" / "b.run.jsonl", lines)
    commands = [("grade", "runs"), *(("export", "runs", "--format", form, "-o", f"out-{form}") for form in FORMS)]
    for words in commands:
        done = program.run(*words)
        assert done.returncode == 2, (words, done.stderr)
        why = "runs/b.run.jsonl:8: incomplete reasoning_delta event: ms: must be a number of at most 1e+12"
        assert why in done.stderr
        assert ("Oslo" if words[0] == "grade" else "1 run in") in done.stdout
    lines[7]["ms"], lines[0]["started_at"] = 7.0, "yesterday"
    written(program.folder / "runs" / "b.run.jsonl", lines)
    done = program.run("grade", "runs")
    assert "2 runs" in done.stdout and not done.stderr, done
