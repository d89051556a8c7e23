"""`workbench export`, as a user runs them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.sampled_rows import first_of, first_rows
from workbench.engine.recordings import result_of_recording
from workbench.exchange.exporters.forms import FORMS
from workbench.trajectory.recording import read_recording, recordings_in

SUITE = """
format = 1
name = "Weather"
models = ["offline"]
[[tools]]
name = "get_weather"
[[cases]]
name = "Oslo"
user = "Call get_weather."
[[cases.ordered]]
tool = "get_weather"
"""


@pytest.fixture
def program(tmp_path: Path) -> Program:
    program = Program(tmp_path)
    program.write("weather.toml", SUITE)
    done = program.run("run", "weather.toml", "--record", "runs", "--repeats", "2")
    assert done.returncode in (0, 1), done.stderr
    return program


def test_a_batch_and_a_folder_of_recordings_are_exported_in_every_form(program: Program) -> None:
    for form in FORMS:
        for words in (["export", "1", "-o", f"batch-{form}"], ["export", "runs", "-o", f"runs-{form}"]):
            done = program.run(*words, "--format", form)
            assert done.returncode == 0, done.stderr
            assert "2 runs in " in done.stdout
        of_batch, of_runs = (sorted((program.folder / f"{place}-{form}").iterdir()) for place in ("batch", "runs"))
        assert len(of_batch) == len(of_runs) == (2 if form == "atif" else 1)
        assert FORMS[form].ending in of_batch[0].name
        if form == "messages":
            said = [
                [json.loads(line)["messages"] for line in file.read_text().splitlines()]
                for file in (*of_batch, *of_runs)
            ]
            assert said[0] == said[1] and len(said[0]) == 2
    with (program.folder / "runs-csv" / "runs.csv").open(encoding="utf-8", newline="") as file:
        assert [row["case_id"] for row in csv.DictReader(file)] == ["oslo", "oslo"]
    lines = (program.folder / "batch-records" / "batch-1.jsonl").read_text().splitlines()
    assert [json.loads(line)["repeat"] for line in lines] == [0, 1]


@pytest.mark.parametrize("form", first_of(["messages", "inspect", "otlp", "atif"], 1))
def test_an_exported_batch_is_imported_and_graded_the_same(program: Program, form: str) -> None:
    assert program.run("export", "1", "-o", "out", "--format", form).returncode == 0
    for number, file in enumerate(sorted((program.folder / "out").iterdir())):
        done = program.run("import", str(file), "-o", f"again{number}.toml", "--recordings", "again", "--force")
        assert done.returncode == 0, done.stderr
    assert "2 runs: 2 passed" in program.run("grade", "again").stdout
    read = [read_recording(path) for path in recordings_in(program.folder / "again")]
    calls = [call.tool for each in read for call in result_of_recording(each).trajectory.calls]
    assert calls == ["get_weather"] * 2


@pytest.mark.parametrize(
    ("words", "why"),
    first_rows(
        [
            ("export runs", "name a folder with -o"),
            ("export runs -o out", "name a form with --format (messages, inspect, otlp, atif, csv, records)"),
            ("export runs --format atif -o x.json", "x.json looks like a file name: atif writes several files"),
            ("export runs --format csv -o weather.toml", "weather.toml already exists: move it away"),
            ("export runs --format csv -o out --otlp http://h", "--otlp sends the runs and writes no file"),
            ("export runs --format csv -o out --otlp-content", "--otlp-content goes with --otlp"),
            ("export runs --otlp", "set OTEL_EXPORTER_OTLP_ENDPOINT"),
            ("export weather.toml --format csv -o out", "left out: weather.toml is not a recording"),
            ("export nowhere --format messages -o out", "no file and no folder has this name either"),
            ("export 1", "name the folder with -o"),
            ("export 1 --otlp http://h --format csv", "leave the folder and --format out"),
        ],
        3,
    ),
)
def test_what_cannot_be_exported_is_said_and_nothing_is_written(program: Program, words: str, why: str) -> None:
    before = {file.name for file in program.folder.iterdir()}
    done = program.run(*words.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert why in done.stderr
    assert {file.name for file in program.folder.iterdir()} == before
