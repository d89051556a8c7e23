"""Every command with a standard stream that its caller has closed, as hooks, supervisors and old CI agents do."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.cli.program import COMMAND, INFRASTRUCTURE, OK, QUALITY_MISSED, USAGE, Program
from tests.sampled_rows import first_of, in_turn
from workbench.cli.main import COMMANDS, WORDS

SUITE = """format = 1
name = "One"

[[tools]]
name = "get_weather"
parameters = { type = "object", properties = { city = { type = "string" } }, required = ["city"] }

[[mocks]]
tool = "get_weather"
result = { degrees = 21 }

[[cases]]
name = "Paris"
user = "What is the weather in Paris?"
ordered = [{ tool = "get_weather", args = { city = "Paris" } }]
"""

RUNS = {"run", "faults", "mutate", "accept", "validate", "tools", "submission"}
"""Commands that only need a suite."""

WITH: dict[str, list[str]] = {
    "": ["one.toml"],
    "attach": ["1"],
    "compare": ["one.toml", "--model", "offline"],
    "fix-prompt": ["1"],
    "grade": ["runs"],
    "export": ["runs"],
    "import": ["one.toml"],
    "init": ["--example", "slack"],
    "models add": ["local", "--preset", "ollama", "--model", "any", "--yes"],
    "record": ["--", "true"],
    "serve": ["--port", "no number"],
    "shrink": ["1"],
}


def closing(*streams: int) -> str:
    """Python that begins as it does in a process whose standard streams are closed."""
    names = ("stdin", "stdout", "stderr")
    lines = [f"os.close({stream}); sys.{names[stream]} = sys.__{names[stream]}__ = None" for stream in streams]
    return "\n".join(["import os, sys", *lines])


@pytest.mark.parametrize(("command", "stream"), in_turn(["", *COMMANDS, *WORDS], [0, 1, 2]))
def test_a_command_ends_as_it_does_with_all_streams(program: Program, command: str, stream: int) -> None:
    program.write("one.toml", SUITE)
    if {"1", "runs"}.intersection(WITH.get(command, ())):
        assert program.run("run", "one.toml", "--record", "runs").returncode == OK
    words = [*command.split(), *WITH.get(command, ["one.toml"] if command in RUNS else [])]
    done = program.run(*words, first=closing(stream))
    assert done.returncode in (OK, QUALITY_MISSED, USAGE, INFRASTRUCTURE)
    assert "Traceback" not in done.stdout + done.stderr
    # A refused command says so on the remaining stream.
    assert done.returncode != USAGE or stream == 2 or done.stderr


PAIRS = ("<&- >&-", "<&- 2>&-", ">&- 2>&-")


@pytest.mark.parametrize("closed", first_of(["<&-", ">&-", "2>&-", "<&- >&- 2>&-", *PAIRS], 1))
def test_a_run_leaves_its_report(program: Program, closed: str) -> None:
    program.write("one.toml", SUITE)
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *COMMAND, "run", "one.toml", "--report", "report.json"],
        cwd=program.folder,
        env=program.environment,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (OK, "")
    assert ("1 run: 1 passed" in done.stdout) == (" >&-" not in f" {closed}")
    assert len(json.loads((program.folder / "report.json").read_text())["runs"]) == 1


@pytest.mark.slow
def test_an_evaluation_in_a_process_without_streams_is_not_aborted(program: Program) -> None:
    program.write("one.toml", SUITE)
    evaluate = 'import workbench; workbench.evaluate("one.toml").assert_passed()'
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" -c "$1" <&- >&-', COMMAND[0], evaluate],
        cwd=program.folder,
        env=program.environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
