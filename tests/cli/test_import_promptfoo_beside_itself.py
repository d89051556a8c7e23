"""The verdicts of promptfoo and of the suite imported from its configuration, on one endpoint."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.program import Program
from tests.providers.server import Answer, Call, Request, Server, document, said
from tests.providers.server.formats import whole_document

PROMPTFOO = shutil.which("promptfoo")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROMPTFOO is None, reason="promptfoo is not installed: npm install -g promptfoo"),
]

WEATHER = {
    "name": "get_weather",
    "parameters": {
        "type": "object",
        "required": ["city"],
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "additionalProperties": False,
    },
}
OTHER = {"name": "get_time", "parameters": {"type": "object", "properties": {}}}
OSLO = ["get_weather", {"city": "Oslo"}]
VALID = {"type": "is-valid-openai-tools-call"}
NAME = {"type": "javascript", "value": "output[0].function.name === 'get_weather'"}
CITY = {"type": "javascript", "value": "JSON.parse(output[0].function.arguments).city === 'Oslo'"}
ONLY_WEATHER = {"type": "tool-call-f1", "value": ["get_weather"]}
ROWS: list[tuple[object, list[dict[str, Any]], bool]] = [
    ([OSLO], [VALID], True),
    ([["get_weather", {"city": 5}]], [VALID], False),
    ([["get_weather", {}]], [VALID], False),
    ([["get_weather", {"city": "Oslo", "more": 1}]], [VALID], False),
    ([["get_rain", {}]], [VALID], False),
    ([OSLO, ["get_rain", {}]], [VALID], False),
    ([OSLO, ["get_time", {}]], [VALID], True),
    ([OSLO, ["get_rain", {}]], [VALID, NAME], False),
    ("I cannot.", [VALID], False),
    ([OSLO], [ONLY_WEATHER], True),
    ([OSLO, ["get_time", {}]], [ONLY_WEATHER], False),
    ([OSLO, OSLO], [ONLY_WEATHER], True),
    ("I cannot.", [ONLY_WEATHER], False),
    ([OSLO], [NAME, CITY], True),
    ([["get_weather", {"city": "Rome"}]], [NAME, CITY], False),
    ([["get_weather", {"city": 5}]], [NAME], True),
    ([["get_time", {}]], [NAME], False),
    ("Rain in Oslo.", [{"type": "icontains", "value": "RAIN"}], True),
    ("Rain in Oslo.", [{"type": "contains", "value": "RAIN"}], False),
    ("Rain in Oslo.", [{"type": "not-contains", "value": "sun"}], True),
    ("Rain in Oslo.", [{"type": "contains-any", "value": ["sun", "Rain"]}], True),
    ("Rain in Oslo.", [{"type": "icontains-all", "value": ["rain", "oslo"]}], True),
    ("Rain in Oslo.", [{"type": "starts-with", "value": "Oslo"}], False),
    ("Rain in Oslo.", [{"type": "equals", "value": "Rain in Oslo."}], True),
    ("Rain in Oslo.", [{"type": "regex", "value": "R.in"}], True),
]


def answer_to(request: Request) -> Answer:
    """Make the calls, or return the text, in the last user message. After the results, return a text."""
    body = json.loads(request.body)
    if body["messages"][-1]["role"] == "tool":
        return said("openai", "Done.")
    wanted = json.loads(body["messages"][-1]["content"].removeprefix("Say "))
    text, calls = (wanted, []) if isinstance(wanted, str) else ("", wanted)
    made = [Call(tool, arguments, f"call_{number}") for number, (tool, arguments) in enumerate(calls)]
    if body.get("stream"):
        return said("openai", text, made)
    return document(whole_document("openai", text, made))


def test_the_verdicts_are_those_of_promptfoo(program: Program, tmp_path: Path) -> None:
    tests: list[dict[str, Any]] = []
    for number, (wanted, asserts, _) in enumerate(ROWS):
        tests.append({"description": f"t{number}", "vars": {"q": json.dumps(wanted)}, "assert": asserts})
    with Server(answer_to) as server:
        tools = [{"type": "function", "function": tool} for tool in (WEATHER, OTHER)]
        options = {"apiBaseUrl": f"{server.url}/v1", "apiKey": "none", "tools": tools}
        config = {
            "prompts": ["Say {{q}}"],
            "providers": [{"id": "openai:chat:m", "config": options}],
            "tests": tests,
        }
        file = program.write("p.yaml", yaml.safe_dump(config))
        assert PROMPTFOO is not None
        settings = {"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1", "HOME": str(tmp_path)}
        done = subprocess.run(
            [PROMPTFOO, "eval", "-c", file, "-o", tmp_path / "out.json", "--no-cache", "--no-table"],
            env=os.environ | settings,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert (tmp_path / "out.json").exists(), done.stderr + done.stdout
        theirs: dict[str, bool] = {}
        for result in json.loads((tmp_path / "out.json").read_text())["results"]["results"]:
            theirs[result["testCase"]["description"]] = result["success"]
        assert program.run("import", "p.yaml", "-o", "p.toml").returncode == 0
        model = ("--model", "openai:m", "--base-url", f"{server.url}/v1")
        asking = Program(program.folder, {"OPENAI_API_KEY": "none"})
        ran = asking.run("run", "p.toml", *model, "--no-history", "--format", "json")
    ours = {run["case_id"]: run["status"] in ("passed", "warned") for run in json.loads(ran.stdout)["runs"]}
    expected = {f"t{number}": holds for number, (_, _, holds) in enumerate(ROWS)}
    assert theirs == expected
    assert ours == expected
