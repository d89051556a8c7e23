"""Files of the real Arcade evals and of the real Toolvaluator, run there and, imported, here, on one local endpoint.

`ARCADE_PYTHON` names a Python with `arcade-mcp[evals]`, `TOOLVALUATOR_PYTHON` one with `toolvaluator`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Program
from tests.providers.server import Answer, Call, Request, Server, document, said, whole_document
from workbench.suite.model import derived_id

pytestmark = pytest.mark.slow

MODEL = '[models.m]\nprovider = "openai"\nbase_url = "{url}/v1"\n'


def python_with(variable: str, package: str) -> str:
    """Return the Python that has a package. Skip the test if there is none."""
    python = os.environ.get(variable, sys.executable)
    done = subprocess.run([python, "-c", f"import {package}"], capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"{package} is not installed: set {variable} to a Python that has it")
    return python


def numbers_there(python: str, code: str, folder: Path, server: Server, *words: str) -> Any:
    """Run code of the other system in a folder, and return the JSON of its last line."""
    variables = {
        "OPENAI_BASE_URL": f"{server.url}/v1",
        "OPENAI_API_KEY": "none",
        "DSPY_CACHEDIR": str(folder / "cache"),
    }
    command = [python, "-c", code, *words]
    done = subprocess.run(command, cwd=folder, env=os.environ | variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def imported(program: Program, python: str, *words: str) -> str:
    done = program.run("import", *words, "--python", python, "--trust")
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def runs_here(program: Program, server: Server, *words: str) -> list[dict[str, Any]]:
    program.write("workbench.toml", MODEL.format(url=server.url))
    program.run("run", *words, "--model", "m", "--trust", "-q", "--report", "report.json")
    report = json.loads((program.folder / "report.json").read_text(encoding="utf-8"))
    runs: list[dict[str, Any]] = report["runs"]
    return runs


# Arcade evals.

SERVER = """
from mcp.server.fastmcp import FastMCP

mcp = FastMCP("Librarian")

@mcp.tool(name="Librarian_Search")
def search(query: str, limit: int = 10) -> str:
    return "found"

@mcp.tool(name="Librarian_List")
def list_all() -> str:
    return "all"

mcp.run()
"""
EVALS = """
import os, sys
from arcade_evals import (
    BinaryCritic, EvalRubric, EvalSuite, ExpectedMCPToolCall, NumericCritic, SimilarityCritic, tool_eval
)

@tool_eval()
async def librarian() -> EvalSuite:
    suite = EvalSuite("Librarian", "You search.", rubric=EvalRubric(fail_threshold=0.75, warn_threshold=0.85))
    await suite.add_mcp_stdio_server([sys.executable, "server.py"], env={"LEVEL": "2"})
    critics = [SimilarityCritic("query", 0.8), NumericCritic("limit", 0.2, value_range=(5, 15))]
    for message in ("python", "many", "nothing", "wrong tool", "twice"):
        call = ExpectedMCPToolCall("Librarian_Search", {"query": "Python programming", "limit": 10})
        suite.add_case(message, message, [call], list(critics))
    calls = [
        ExpectedMCPToolCall("Librarian_Search", {"query": "red"}),
        ExpectedMCPToolCall("Librarian_Search", {"query": "blue", "limit": 5}),
    ]
    suite.add_case("pair", "pair", calls, [SimilarityCritic("query", 0.5), BinaryCritic("limit", 0.5)])
    suite.add_case("list", "list", [ExpectedMCPToolCall("Librarian_List", {})], [])
    suite.add_case("hello", "hello", [], [])
    return suite

@tool_eval()
def comparison() -> EvalSuite:
    suite = EvalSuite("Search", "You search.")
    for track, name, query in (("Google", "Search", "query"), ("Bing", "WebSearch", "q")):
        schema = {"type": "object", "properties": {query: {"type": "string"}}, "required": [query]}
        suite.add_tool_definitions([{"name": name, "description": "Search.", "inputSchema": schema}], track=track)
    for message in ("basic", "filters"):
        suite.add_comparative_case(message, message).for_track(
            "Google",
            [ExpectedMCPToolCall("Search", {"query": "Python tutorials", "time": "month"})],
            [SimilarityCritic("query", 0.7), BinaryCritic("time", 0.3)],
        ).for_track("Bing", [ExpectedMCPToolCall("WebSearch", {"q": "Python"})], [BinaryCritic("q", 1.0)])
    suite.add_comparative_case("one track", "basic").for_track("Bing", [ExpectedMCPToolCall("WebSearch", {})], [])
    return suite
"""
SCORES = """
import asyncio, importlib.util, json, sys
spec = importlib.util.spec_from_file_location("evals", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
scores = []
for function in vars(module).values():
    if hasattr(function, "__tool_eval__"):
        for result in asyncio.run(function("none", "m")):
            for case in result["cases"]:
                scores.append([case["name"], result.get("track_name"), case["evaluation"].score])
print()
print(json.dumps(scores))
"""
CALLS: Mapping[str, list[tuple[str, dict[str, Any]]]] = {
    "python": [("Librarian_Search", {"query": "programming in Python"})],
    "many": [("Librarian_Search", {"query": "Python programming", "limit": 12})],
    "nothing": [],
    "wrong tool": [("Librarian_List", {})],
    "twice": [("Librarian_Search", {"query": "a"}), ("Librarian_Search", {"query": "b"})],
    "pair": [("Librarian_Search", {"query": "blue", "limit": 7}), ("Librarian_Search", {"query": "red"})],
    "list": [("Librarian_List", {})],
    "hello": [],
    "basic": [("Search", {"query": "Python tutorials"}), ("WebSearch", {"q": "Python"})],
    "filters": [("Search", {"query": "tutorials of Python", "time": "month"}), ("WebSearch", {"q": "python"})],
}


def decided(request: Request) -> Answer:
    """Answer a request with the calls for its last message, of the tools that it offers."""
    asked = request.json
    offered = {tool["function"]["name"] for tool in asked.get("tools", [])}
    wanted = [(tool, arguments) for tool, arguments in CALLS[asked["messages"][-1]["content"]] if tool in offered]
    calls = [Call(tool, arguments, f"c{number}") for number, (tool, arguments) in enumerate(wanted)]
    text = "" if calls else "Hello."
    if asked.get("stream"):
        return said("openai", text, calls)
    return document(whole_document("openai", text, calls))


def test_the_scores_of_arcade_evals_are_the_same_here(tmp_path: Path) -> None:
    python = python_with("ARCADE_PYTHON", "arcade_evals")
    program = Program(tmp_path)
    program.write("server.py", SERVER)
    program.write("evals/eval_all.py", EVALS)
    with Server(decided) as server:
        there = numbers_there(python, SCORES, tmp_path, server, "evals/eval_all.py")
        imported(program, python, "evals", "-o", "moved.toml")
        made = sorted(path.name for path in tmp_path.glob("moved*.toml"))
        runs = runs_here(program, server, *made)
    assert made == ["moved-search.toml", "moved.toml"]
    here = []
    for run in runs:
        _, _, track = run["model"].partition(" × ")
        here.append([run["case_id"], track or None, run["score"]])
    assert len(here) == 13
    scores = {(derived_id(name), track): score for name, track, score in there}
    assert {(case, track): score for case, track, score in here} == pytest.approx(scores, abs=1e-9)


# Toolvaluator.

TOOLS = """
from fastmcp import FastMCP

mcp = FastMCP("Tools")

@mcp.tool()
def get_weather(location: str, units: str = "celsius") -> str:
    return f"snow in {location}"

@mcp.tool()
def create_task(title: str, priority: str = "low") -> str:
    return "task-1"

def started(arguments):
    return f"started {arguments['title']}"
"""
EXAMPLES = """
import dspy
from toolvaluator import ExampleBuilder, eval_model, extract_input_schema, get_tool_schemas_sync
from my_server import mcp

schemas = get_tool_schemas_sync(mcp)
builder = ExampleBuilder(schemas)
builder.add_positive("get_weather", "right", {"location": "Oslo", "units": None})
builder.add_positive("get_weather", "half", {"location": "Oslo", "units": "celsius"})
builder.add_positive("get_weather", "too much", {"location": "Oslo"}, system_prompt="You know the weather.")
builder.add_positive("get_weather", "refused", {"location": "Oslo"})
builder.add_negative("get_weather", "hello")
builder.add_negative("get_weather", "needless")
builder.add_positive("create_task", "null", {"title": None})
examples = builder.build()
examples.append(dspy.Example(user_query="any", tool_name="create_task", tool_description="Creates a task.",
    tool_schema=extract_input_schema(schemas["create_task"]), expected_should_call=True,
    expected_tool_name="create_task", expected_arguments=None))
result = eval_model("openai/m", "none", None, examples)
print(f"Score: {result['score']:.3f}")
"""
CHAINS = """
from toolvaluator import ChainedExampleBuilder, eval_chained_model, get_tool_schemas_sync
from my_server import mcp, started

builder = ChainedExampleBuilder(get_tool_schemas_sync(mcp), mcp)
builder.add_chain(mocks={"get_weather": "snow"}).add_step(
    "get_weather", {"location": "Oslo"}, initial_query="chain"
).add_step("create_task", {"title": None, "priority": "high"}, mock_result="task-7")
builder.add_chain(mocks={"create_task": started}).add_step("create_task", {"title": "Pack"}, initial_query="pack")
result = eval_chained_model("openai/m", "none", builder.build())
print(f"Steps completed: {result['num_steps']}")
"""
SCORES_OF_DECISIONS = """
import json, runpy, sys
import toolvaluator
sys.path.insert(0, ".")
results = []
def kept(function):
    def evaluate(*args, **kwargs):
        results.append(function(*args, **kwargs))
        return results[-1]
    return evaluate
for name in ("eval_model", "eval_chained_model"):
    setattr(toolvaluator, name, kept(getattr(toolvaluator, name)))
for script in sys.argv[1:]:
    runpy.run_path(script, run_name="__main__")
examples, chains = results
scores = [*examples["scores"], *(chain["score"] for chain in chains["chain_results"])]
print()
print(json.dumps({"scores": scores, "steps": chains["num_steps"]}))
"""
DECISIONS: Mapping[tuple[str, str], dict[str, Any] | None] = {
    ("right", "get_weather"): {"location": "Oslo", "units": "kelvin"},
    ("half", "get_weather"): {"location": "Oslo", "units": "kelvin"},
    ("too much", "get_weather"): {"location": "Oslo", "units": "kelvin"},
    ("refused", "get_weather"): None,
    ("hello", "get_weather"): None,
    ("needless", "get_weather"): {"location": "Oslo"},
    ("null", "create_task"): {"title": None},
    ("any", "create_task"): {"title": "x", "priority": "y"},
    ("chain", "get_weather"): {"location": "Oslo"},
    ("chain", "create_task"): {"title": "Pack", "priority": "low"},
    ("pack", "create_task"): {"title": "Pack"},
}


def decision(request: Request) -> Answer:
    """Answer DSPy's prompt for one tool in its format, and a request of Workbench with the call of an offered tool."""
    asked = request.json
    text = " ".join(str(message.get("content")) for message in asked["messages"])
    if asked.get("stream"):
        first = next(message["content"] for message in asked["messages"] if message["role"] == "user")
        made = {call["function"]["name"] for each in asked["messages"] for call in each.get("tool_calls", ())}
        for tool in (each["function"]["name"] for each in asked["tools"]):
            arguments = DECISIONS.get((first, tool))
            if arguments is not None and tool not in made:
                return said("openai", calls=[Call(tool, arguments)])
        return said("openai", "No call.")
    query, tool = text.rpartition("[[ ## user_query ## ]]")[2].split("[[ ## tool_name ## ]]")
    query = query.strip().splitlines()[-1]
    name = tool.split("[[")[0].strip()
    if query.startswith("Continue the task"):
        query = "chain"
    arguments = DECISIONS[query, name]
    answer = (
        f"[[ ## should_call ## ]]\n{arguments is not None}\n\n"
        f"[[ ## arguments_json ## ]]\n{json.dumps(arguments or {})}\n\n[[ ## completed ## ]]"
    )
    return document(whole_document("openai", answer))


def test_the_scores_of_toolvaluator_are_the_same_here(tmp_path: Path) -> None:
    python = python_with("TOOLVALUATOR_PYTHON", "toolvaluator")
    program = Program(tmp_path)
    program.write("my_server.py", TOOLS)
    program.write("examples.py", EXAMPLES)
    program.write("chains.py", CHAINS)
    with Server(decision) as server:
        there = numbers_there(python, SCORES_OF_DECISIONS, tmp_path, server, "examples.py", "chains.py")
        for name in ("examples", "chains"):
            imported(program, python, f"{name}.py", "-o", f"{name}.toml")
        runs = runs_here(program, server, "examples.toml", "chains.toml")
        report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert [run["score"] for run in runs] == pytest.approx(there["scores"], abs=1e-9)
    assert there["steps"] == 3
    assert [each["numbers"].get("steps") for each in report["published"]] == [None, there["steps"]]
