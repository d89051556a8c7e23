"""Scores below 0, even negative infinity, are stored as any other, because `arcade_compatible` has no lower bound."""

from __future__ import annotations

import json
import math
import pathlib
import re
import sys

import pytest

from tests.cli.program import Program
from tests.cli.suites import WEATHER
from tests.providers.server import Answer, Call, Request, Server, said
from tests.sampled_rows import first_rows
from workbench.grading.result_json import outcome_from_json
from workbench.trajectory.recording import read_recording

SUITE = """\
format = 1
name = "Lamp"

[grading]
by = "critics"

[grading.critics]
arcade_compatible = true
tool_selection_weight = 0

[[tools]]
name = "dim"
description = "Set the brightness of a lamp."
[tools.parameters]
type = "object"
required = ["to"]
properties.to = { type = "number" }

[[cases]]
name = "Far"
user = "To 1000"
ordered = [{ tool = "dim", args = { to = { near = 5, value_range = [0, 10] } } }]

[[cases]]
name = "Beyond"
user = "To 17e307, twice"
ordered = [
    { tool = "dim", args = { to = { near = 0, value_range = [0, 1] } } },
    { tool = "dim", args = { to = { near = 0, value_range = [0, 1] } } },
]
"""
MODEL = """
[models.m]
provider = "openai"
base_url = "{url}/v1"
"""


def _dims(request: Request) -> Answer:
    messages = request.json["messages"]
    if messages[-1]["role"] == "tool":
        return said("openai", "Done.")
    if "1000" in messages[-1]["content"]:
        return said("openai", calls=[Call("dim", {"to": 1000})])
    return said("openai", calls=[Call("dim", {"to": 17e307}), Call("dim", {"to": 17e307})])


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """A project whose suite was run twice, with a score of -98.5 and one that is infinitely bad."""
    program = Program(tmp_path_factory.mktemp("lamp"))
    program.write(".workbench/.keep", "")
    program.write("lamp.toml", SUITE)
    with Server(_dims) as server:
        program.write("workbench.toml", MODEL.format(url=server.url))
        for _ in range(2):
            done = program.run("run", "lamp.toml", "--model", "m", "--trust")
            assert done.returncode == 1 and "error" not in done.stderr, done.stderr
            assert "failed -98.50" in done.stdout and "failed -inf" in done.stdout
    return program


def history(program: Program, *words: str) -> str:
    return printed(program, "history", *words)


def printed(program: Program, *words: str) -> str:
    done = program.run(*words)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.slow
def test_they_are_shown(program: Program) -> None:
    shown = history(program, "show", "1")
    assert re.search(r"^1 +✗ Lamp › Far +m +-98\.50 +0 of 1 argument right$", shown, re.MULTILINE)
    assert re.search(r"^2 +✗ Lamp › Beyond +m +-inf +0 of 2 arguments right$", shown, re.MULTILINE)
    assert "mean score -inf" in shown
    far, beyond = json.loads(history(program, "show", "1", "--format", "json"))["runs"]
    assert far["score"] == -98.5 and beyond["score"] < -1e308
    over_time = history(program, "show", "--case", "beyond")
    assert "▁▁  good in 0 of 2 batches" in over_time and over_time.count("failed -inf") == 2
    assert "✗ failed -98.50" in history(program, "show", "1", "--run", "1")


def test_they_are_compared(program: Program) -> None:
    compared = history(program, "diff", "1", "2")
    assert "0 broke · 0 fixed · 0 moved" in compared and "2 as before" in compared
    json.loads(history(program, "diff", "1", "2", "--format", "json"))


def test_they_are_exported(program: Program) -> None:
    printed(program, "export", "1", "-o", "out")
    results = [read_recording(file).result for file in (program.folder / "out").iterdir()]
    assert {outcome_from_json(result).score for result in results if result is not None} == {-98.5, -math.inf}
    printed(program, "export", "1", "-o", "out", "--format", "json")
    report = json.loads((program.folder / "out" / "batch-1.json").read_text(encoding="utf-8"))
    assert sorted(run["score"] for run in report["runs"]) == [-sys.float_info.max, -98.5]


def test_they_are_graded_again(program: Program) -> None:
    assert "no grade changed" in printed(program, "grade", "1")
    assert "-98.50" in history(program, "show", "1", "--grading", "1")


@pytest.mark.parametrize(
    ("grading", "shown"),
    first_rows([("", False), ("published_report = true", True), ("critics = { arcade_compatible = true }", True)], 1),
)
def test_the_line_of_the_published_system_stands_where_it_is_asked_for(
    tmp_path: pathlib.Path, grading: str, shown: bool
) -> None:
    weather = Program(tmp_path)
    weather.write("weather.toml", WEATHER.replace("\n[[tools]]", f"\n[grading]\n{grading}\n\n[[tools]]", 1))
    line = "Weather as Arcade evals reports it: 1 case, 1 passed, 0 failed, pass rate 100.00%"
    assert (line in weather.run("run", "weather.toml").stdout) is shown
    assert line in weather.run("run", "weather.toml", "--verbose").stdout
    [published] = json.loads(weather.run("run", "weather.toml", "--format", "json").stdout)["published"]
    assert published["numbers"]["pass_rate"] == 100.0
