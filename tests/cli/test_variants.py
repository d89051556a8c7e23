"""Variants in `workbench run` and `workbench compare`: approval, execution and storage."""

from __future__ import annotations

import json

import pytest

from tests.cli.program import Program
from tests.cli.suites import WEATHER, WRONG
from tests.cli.test_tools import SERVERS

SERVER = f"""
import sys
sys.path.append({str(SERVERS)!r})
from plain import PlainServer
server = PlainServer("weather")
@server.tool()
def get_weather(city: str) -> str:
    return "Sun in " + city
server.run()
"""

ON_A_SERVER = """
format = 1
name = "Weather"
execute = true

[[servers]]
name = "weather"
command = ["python", "server.py"]

[[variants]]
name = "renamed"
[[variants.changes]]
tool = "get_weather"
name = "forecast"
arguments = { city = "place" }

[[variants]]
name = "lost"
[[variants.changes]]
tool = "nothing"
description = "x"

[[cases]]
name = "Right"
user = "What is the weather forecast for the place Oslo?"
[[cases.ordered]]
tool = "get_weather"
args = { city = "Oslo" }
"""


@pytest.mark.slow
def test_a_server_gets_the_names_it_knows_and_a_change_of_nothing_is_an_error(program: Program) -> None:
    program.write("server.py", SERVER)
    program.write("suite.toml", ON_A_SERVER)
    words = ("--trust", "--execute-all", "--format", "json", "--quiet")
    done = program.run("run", "suite.toml", "--variant", "renamed", *words)
    [run] = json.loads(done.stdout)["runs"]
    assert (run["model"], run["status"]) == ("offline × renamed", "passed"), done.stderr
    [call] = run["rounds"][0]["calls"]
    assert (call["tool"], call["arguments"]) == ("forecast", {"place": "Oslo"})
    assert "Sun in Oslo" in json.dumps(call["result"])
    lost = program.run("run", "suite.toml", "--variant", "lost", *words)
    assert lost.returncode == 3
    assert "the variant changes 'nothing', but there is no such tool" in lost.stdout


def test_variants_from_files_are_compared_kept_resumed_and_graded_again(program: Program) -> None:
    program.write("suite.toml", WEATHER + WRONG)
    program.write("new.toml", 'name = "v2"\n[[changes]]\ntool = "get_weather"\nname = "forecast"\n')
    program.write("terse.txt", "Be terse.\n")
    done = program.run(
        "compare", "suite.toml", "--variant", "new.toml", "--system", "terse.txt", "--format", "json", "--quiet"
    )
    assert json.loads(done.stdout)["models"] == ["offline", "offline × v2", "offline × terse"], done.stderr
    shown = program.run("history", "show", "1", "--run", "2")
    assert "forecast" in shown.stdout
    again = program.run("grade", "1")
    assert "6 runs regraded" in again.stdout, again.stderr
    assert again.stderr == ""

    recorded = program.run("run", "suite.toml", "--case", "right", "--variant", "new.toml", "--record", "runs")
    assert recorded.returncode == 0, recorded.stderr
    graded = program.run("grade", "runs")
    assert "1 run: 1 passed" in graded.stdout
    by_today = program.run("grade", "runs", "--suite", "suite.toml")
    assert "is a run of a variant, but the suite 'Weather' has no variant 'v2'" in by_today.stderr


def test_another_set_of_tools_stands_for_the_expected_one_with_arguments_of_other_names(program: Program) -> None:
    other = WEATHER.replace('[[cases]]', """[[variants]]
name = "v2"
offer = ["forecast"]
names = { get_weather = "forecast" }
[[variants.changes]]
tool = "get_weather"
arguments = { city = "place" }
[[variants.tools]]
name = "forecast"
description = "Weather forecast"
[variants.tools.parameters]
type = "object"
required = ["place"]
[variants.tools.parameters.properties]
place = { type = "string", description = "City name" }

[[cases]]""", 1)  # fmt: skip
    program.write("suite.toml", other)
    done = program.run("run", "suite.toml", "--variants", "--format", "json", "--quiet")
    runs = json.loads(done.stdout)["runs"]
    assert [(run["model"], run["status"]) for run in runs] == [("offline", "passed"), ("offline × v2", "passed")]
    assert runs[1]["rounds"][0]["calls"][0]["arguments"] == {"place": "Oslo"}


def test_words_that_mean_no_variant_are_refused(program: Program) -> None:
    program.write("suite.toml", WEATHER)
    program.write("bad.toml", "name = ")
    for words, problem in (
        (("--variant", "v9"), "there is no variant 'v9'"),
        (("--variants",), "no suite has variants"),
        (("--variant", "bad.toml"), "bad.toml is not TOML"),
        (("--system", "gone.txt"), "gone.txt cannot be read"),
        (("--model", "offline × v9"), "choose the variant with --variant"),
    ):
        done = program.run("run", "suite.toml", *words)
        assert done.returncode == 2
        assert problem in done.stderr
