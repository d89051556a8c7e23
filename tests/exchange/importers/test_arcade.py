"""Files of Arcade evals: run only after trust by the configured Python, and the resulting suites.

A stand-in replaces the package that they import, with only the parts that the runner reads."""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.exchange.importers.samples import ARCADE, as_json
from tests.sampled_rows import first_rows
from workbench.checks.check import CheckBase
from workbench.checks.value_kinds import Equals, Near
from workbench.config.secrets import Secrets
from workbench.engine.plan import plan_runs
from workbench.exchange.importers.forms import format_of
from workbench.exchange.importers.import_files import make_suite
from workbench.exchange.importers.scripts import gathered_sources, run_script
from workbench.exchange.importers.source_files import RefusedError, source_of

PACKAGE = """
import enum, functools
from dataclasses import dataclass, field

class FuzzyWeight(enum.Enum):
    HIGH = 5
    LOW = 3

@dataclass
class Call:
    name: str
    args: dict

@dataclass
class EvalRubric:
    fail_threshold: float = 0.8
    warn_threshold: float = 0.9

@dataclass
class BinaryCritic:
    critic_field: str
    weight: object

@dataclass
class SimilarityCritic(BinaryCritic):
    similarity_threshold: float = 0.8
    metric: str = "cosine"

class MineCritic(BinaryCritic):
    pass

@dataclass
class EvalCase:
    name: str
    user_message: str
    expected_tool_calls: list
    critics: list
    system_message: str = "You answer."
    additional_messages: list = field(default_factory=list)
    rubric: EvalRubric = field(default_factory=EvalRubric)

class Registry:
    def __init__(self):
        self._tools = {"Weather_Get": {"name": "Weather_Get", "inputSchema": {"type": "object"}}}

class EvalSuite:
    def __init__(self, name, cases):
        self.name, self.cases, self._internal_registry = name, cases, Registry()

    def _get_registry(self, track=None):
        return self._internal_registry

    async def add_mcp_server(self, url, *, headers=None, track=None, use_sse=False):
        raise AssertionError("starts a server")

    async def add_mcp_stdio_server(self, command, *, env=None, track=None):
        self._internal_registry._tools["Listed"] = {"name": "Listed"}

    async def add_arcade_gateway(self, gateway_slug, *, arcade_api_key=None, arcade_user_id=None, base_url=None):
        raise AssertionError("asks a gateway")

    def list_tool_names(self, track=None):
        return list(self._internal_registry._tools)

def tool_eval():
    def decorated(function):
        @functools.wraps(function)
        async def wrapper(key, model):
            raise AssertionError("asks a model")
        wrapper.__tool_eval__ = True
        return wrapper
    return decorated
"""
SUITE = """
import os
from pathlib import Path
from arcade_evals import *

print("this goes to standard error")
Path("ran").write_text(os.environ.get("SECRET_KEY", "no key"))

@tool_eval()
async def weather() -> EvalSuite:
    critics = [BinaryCritic("city", FuzzyWeight.HIGH), SimilarityCritic("why", FuzzyWeight.LOW, 0.7)]
    call = Call("Weather.Get", {"city": "Oslo", "why": ["a", "trip"]})
    return EvalSuite("Weather", [EvalCase("Oslo", "Rain in Oslo?", [call], critics), EvalCase("Hi", "Hi", [], [])])

@tool_eval()
def broken():
    raise ValueError("no tools here")
"""


def test_a_file_is_run_after_trust_alone(tmp_path: Path) -> None:
    program = Program(tmp_path, {"PYTHONPATH": str(tmp_path / "site"), "SECRET_KEY": "planted-4711-pw"})
    program.write("site/arcade_evals.py", PACKAGE)
    program.write("eval_weather.py", SUITE)
    untrusted = program.run("import", "eval_weather.py")
    assert untrusted.returncode == 2 and "nothing was run" in untrusted.stderr
    assert f"run the command: {sys.executable} eval_weather.py (in {tmp_path})" in untrusted.stderr
    assert not (tmp_path / "ran").exists()
    with program.ask("import", "eval_weather.py", "--python", sys.executable) as asked:
        asked.wait_for("Run eval_weather.py this once? [yes/no]")
        asked.answer("yes")
        said = asked.end()
    assert "✓ 2 critics → checks with their weights" in said
    assert "· broken: not imported: ValueError: no tools here" in said
    assert (tmp_path / "ran").read_text() == "no key"
    (tmp_path / "ran").unlink()
    assert "eval_weather.toml exists" in program.run("import", "eval_weather.py", "--trust").stderr
    assert not (tmp_path / "ran").exists()
    assert program.run("import", "eval_weather.py", "--trust", "--dry-run").returncode == 0
    assert (tmp_path / "ran").exists()
    made = (tmp_path / "eval_weather.toml").read_text(encoding="utf-8")
    assert 'city = { equals = "Oslo", weight = "high" }' in made
    assert 'why = { similar = "a trip", threshold = 0.7, weight = "low" }' in made
    assert "arcade_compatible = true" in made and 'system = "You answer."' in made
    assert program.run("validate", "eval_weather.toml").stdout == "1 valid suite (2 cases)\n"


def test_what_a_file_holds_is_the_same_here() -> None:
    source = source_of(Path("evals.json"), as_json(ARCADE))
    made = make_suite(format_of("arcade").read(source), source.name, Path("evals.toml"), Secrets())
    suite = made.file.suite
    assert suite is not None
    (case,) = suite.cases
    assert (suite.name, suite.system, suite.limits.max_rounds) == ("Weather", "Be brief.", 1)
    assert (suite.grading.fail_threshold, suite.grading.critics.arcade_compatible) == (0.85, True)
    assert (case.user, [message.content for message in case.messages]) == ("Is it raining in Oslo?", ["Hi", "Yes?"])
    (call,) = case.expected_calls()
    assert call.tool == "Weather_Get"
    args = call.args or {}
    city, days, unit = (args[name] for name in ("city", "days", "unit"))
    assert isinstance(city, Equals) and (city.equals, city.weight) == ("Oslo", "high")
    assert isinstance(days, Near) and (days.near, days.value_range, days.weight) == (3, (1, 11), 0.4)
    assert isinstance(unit, CheckBase) and unit.weight == 0
    assert "the MoodCritic of mood is not mapped: its class is defined in the script" in made.file.text
    assert [note.why for note in made.notes] == ["not imported: ValueError: no"]


@pytest.mark.parametrize(
    ("code", "python", "why"),
    first_rows(
        [
            (
                "import arcade_evals_of_nobody",
                sys.executable,
                "ModuleNotFoundError: .* name the Python .* with --python",
            ),
            ("raise SystemExit(3)", sys.executable, "exit code 3"),
            (
                "inner = ExceptionGroup('inner', [OSError('no server')])\n"
                "raise ExceptionGroup('group', [inner, ValueError('no tool')])",
                sys.executable,
                "OSError: no server; ValueError: no tool",
            ),
            ("x = 1", sys.executable, "holds no suite with cases"),
            ("x = 1", "./no-python", "cannot be started: No such file"),
            ("while True: pass", sys.executable, r"was stopped: it ran for more than 0.5 s"),
        ],
        1,
    ),
    ids=["import", "exit", "group", "empty", "python", "time"],
)
def test_what_cannot_be_run_is_refused(code: str, python: str, why: str, tmp_path: Path) -> None:
    file = tmp_path / "evals.py"
    limit_s = 0.5 if code.startswith("while") else 60
    with pytest.raises(RefusedError, match=why):
        format_of("arcade").read(run_script(file, code.encode(), python, os.environ, limit_s))


SERVERS = """
import os
from arcade_evals import *

def expecting(suite):
    suite.cases = [EvalCase("Oslo", "Rain?", [Call("Weather.Get", {})], [])]
    return suite

@tool_eval()
async def started():
    suite = EvalSuite("Started", [])
    await suite.add_mcp_stdio_server(["python", "weather.py", "--quiet"], env={"LEVEL": "2", "API_KEY": "planted-4711"})
    assert "Listed" in suite.list_tool_names()
    return expecting(suite)

@tool_eval()
async def reached():
    suite = EvalSuite("Reached", [])
    suite._internal_registry._tools.clear()
    await suite.add_mcp_server("http://localhost:8000", headers={"Authorization": f"Bearer {os.environ['TOKEN']}"})
    await suite.add_arcade_gateway("Math", arcade_api_key=os.environ["TOKEN"])
    return expecting(suite)

@tool_eval()
async def elsewhere():
    return expecting(await EvalSuite("Reached", []).add_mcp_server("http://localhost:8001/mcp/tools"))
"""


@pytest.mark.slow
def test_a_folder_becomes_a_suite_for_each_set_of_servers(tmp_path: Path) -> None:
    program = Program(tmp_path, {"PYTHONPATH": str(tmp_path / "site"), "TOKEN": "planted-0815-pw"})
    program.write("site/arcade_evals.py", PACKAGE)
    program.write("evals/more/eval_servers.py", SERVERS)
    program.write("evals/eval_bad.py", "raise ValueError('a bad day')")
    program.write("evals/other.py", "raise SystemExit('not an eval file')")
    program.write("out/.keep", "")
    words = ("import", "evals", "--python", sys.executable, "--env", "TOKEN", "-o", "out/all.toml")
    refused = program.run(*words)
    assert "  with the variables TOKEN\n" in refused.stderr and "eval_bad.py (in " in refused.stderr
    unset = program.run(*words, "--env", "NOT_SET", "--trust")
    assert "--env NOT_SET: this variable is not set" in unset.stderr
    done = program.run(*words, "--trust")
    assert (done.returncode, done.stderr) == (0, "")
    assert "evals/eval_bad.py: not imported: evals/eval_bad.py cannot be run by" in done.stdout
    assert "ValueError: a bad day" in done.stdout
    assert "a value that may be secret became $API_KEY: set this variable" in done.stdout
    texts = [(tmp_path / "out" / name).read_text(encoding="utf-8") for name in ("all.toml", "all-reached.toml")]
    assert not any("planted" in text for text in (*texts, done.stdout))
    started, reached = (tomllib.loads(text) for text in texts)
    assert [tool["name"] for tool in started["tools"]] == ["Weather_Get"] and "tools" not in reached
    assert started["servers"] == [
        {
            "name": "weather",
            "command": [sys.executable, "weather.py", "--quiet"],
            "cwd": "..",
            "env": {"LEVEL": "2", "API_KEY": "$API_KEY"},
        }
    ]
    assert reached["servers"] == [
        {"name": "localhost", "url": "http://localhost:8000/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
        {
            "name": "Math",
            "url": "https://api.arcade.dev/mcp/Math",
            "headers": {"Authorization": "Bearer ${ARCADE_API_KEY}"},
        },
    ]
    elsewhere = (tmp_path / "out" / "all-reached-3.toml").read_text(encoding="utf-8")
    assert 'url = "http://localhost:8001/mcp/tools"' in elsewhere
    assert program.run("validate", "out").stdout == "3 valid suites (3 cases)\n"


def test_tracks_become_variants_and_their_expectations(tmp_path: Path) -> None:
    expected = {"calls": [{"tool": "Search", "args": {"q": "tea"}}]}
    critic = {"critic": "BinaryCritic", "class": "BinaryCritic", "field": "q", "weight": 1.0}
    tracks = [
        {"track": "Google  Search", **expected, "critics": [critic]},
        {"track": "Bing", "calls": [], "critics": []},
    ]
    suite = {
        "name": "Search",
        "tools": [],
        "servers": [{"track": "Bing", "entry": {"url": "https://bing.example/mcp", "type": "sse"}}],
        "tracks": [{"name": "Google  Search", "tools": [{"name": "Search"}]}, {"name": "Bing", "tools": []}],
        "cases": [{"name": "plain", "user": "Hi", **expected, "critics": []}],
        "comparative": [{"name": "tea", "user": "Find tea", "tracks": tracks}],
    }
    source = source_of(Path("evals.json"), as_json({"arcade_suites": [suite]}))
    plain, compared = gathered_sources({Path("evals.py"): source})
    assert "variants" not in format_of("arcade").read(plain).suite
    made = make_suite(format_of("arcade").read(compared), "Search", tmp_path / "search.toml", Secrets())
    assert made.file.suite is not None and not made.file.problems
    google, bing = made.file.suite.variants
    assert (google.name, [tool.name for tool in google.tools]) == ("Google Search", ["Search"])
    assert [(server.url, server.transport) for server in bing.servers] == [("https://bing.example/mcp", "sse")]
    runs = plan_runs([made.file], models=["m"])
    assert [run.model for run in runs] == ["m × Google Search", "m × Bing"]
    assert [len(run.case.unordered) for run in runs] == [1, 0]
    assert [run.case.expect_no_calls for run in runs] == [False, True]
