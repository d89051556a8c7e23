"""The keys of all models and judges of a batch are registered as secrets before anything of the batch is written.

The source of the models' names and the names of the variables do not matter."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.cli.suites import WEATHER
from tests.history.unpacking import texts_in
from tests.providers.server import Answer, Call, Request, Server, said
from tests.tui.in_terminal import Terminal

KEY = "zz-4711-planted"
VARIABLE = "MYSTUFF"
"""A name that does not suggest a secret value."""

SUITE = WEATHER.replace('name = "Right"', f'name = "Right {KEY}"').replace("Oslo?", f"Oslo? {KEY}")


def oslo(request: Request) -> Answer:
    """Call the tool, then answer with text."""
    if request.json["messages"][-1]["role"] == "tool":
        return said("openai", "Done.")
    return said("openai", calls=[Call("get_weather", {"city": "Oslo"})])


def with_key(program: Program) -> Program:
    """The program with the suite in a project with its own history, and the key in its environment."""
    program.write("workbench.toml", "")
    program.write("weather.toml", SUITE)
    (program.folder / ".workbench").mkdir()
    return replace(program, variables={VARIABLE: KEY})


def keyed(server: Server) -> tuple[str, ...]:
    """Sends a request with the key."""
    return ("--model", "openai:gpt-x", "--base-url", f"{server.url}/v1", "--api-key-env", VARIABLE)


def history_of(program: Program) -> Path:
    return program.folder / ".workbench" / "history.sqlite3"


def assert_kept_without_key(program: Program) -> None:
    kept = texts_in(history_of(program))
    assert any(f"Oslo? ${VARIABLE}" in text for text in kept), "the suite is among them"
    assert not [text for text in kept if KEY in text]


@pytest.mark.parametrize("command", ["run", "compare"])
def test_the_key_of_a_model_of_the_command_line_is_in_no_history_and_no_recording(
    program: Program, command: str
) -> None:
    program = with_key(program)
    words = ("--concurrency", "1", "--record", "recordings", "--model", "offline")
    with Server(oslo) as server:
        done = program.run(command, "weather.toml", *words, *keyed(server))
    assert {request.headers.get("authorization") for request in server.requests} == {f"Bearer {KEY}"}
    assert "batch 1 in the history" in done.stdout, done.stderr
    assert KEY not in done.stdout + done.stderr
    assert_kept_without_key(program)
    recordings = list((program.folder / "recordings").iterdir())
    assert len(recordings) == 2
    assert not [file for file in recordings if KEY in file.read_text(encoding="utf-8")]


@pytest.mark.slow
def test_the_app_keeps_no_key_either(program: Program) -> None:
    program = with_key(program)
    with (
        Server(oslo) as server,
        Terminal(
            ["weather.toml", "--trust", *keyed(server)],
            program.folder / "state",
            folder=program.folder,
            environment=program.variables,
        ) as terminal,
    ):
        terminal.wait_for("Not run yet")
        terminal.send("R")
        terminal.wait_for("✓")
        terminal.send("q")
        assert terminal.end() == 0
    assert_kept_without_key(program)


def test_an_export_without_the_variable_has_no_key(program: Program) -> None:
    program = with_key(program)
    with Server(oslo) as server:
        program.run("run", "weather.toml", "--quiet", *keyed(server))
    (program.folder / "runs").mkdir()
    program = replace(program, variables={})
    for form in ("recordings", "json"):
        done = program.run("export", "1", "-o", "runs", "--format", form)
        assert (done.returncode, done.stderr) == (0, "")
    written = [file.read_text(encoding="utf-8") for file in (program.folder / "runs").iterdir()]
    assert [f"Right ${VARIABLE}" in text for text in written] == [True, True]
    assert not [text for text in written if KEY in text]


def test_a_batch_goes_on_with_a_case_whose_id_held_the_key(program: Program) -> None:
    program = with_key(program)
    with Server(oslo) as server:
        program.run("run", "weather.toml", "--quiet", "--repeats", "2", *keyed(server))
        with closing(sqlite3.connect(history_of(program))) as connection, connection:
            connection.execute("UPDATE runs SET status = NULL WHERE place = 1")
            connection.execute("UPDATE parts SET passed = 1")
        done = program.run("run", "--resume", "--quiet", "--format", "json", *keyed(server))
    assert done.stderr == ""
    report = json.loads(done.stdout)
    assert [run["status"] for run in report["runs"]] == ["passed", "passed"]
    assert len(report["cases"]) == 1, "what was kept and what is new is one case"
    assert KEY not in done.stdout
