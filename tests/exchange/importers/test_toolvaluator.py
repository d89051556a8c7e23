"""Scripts and datasets of Toolvaluator. Stand-ins replace the packages that the scripts import."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any

from tests.cli.program import Program
from tests.exchange.importers.samples import TOOLVALUATOR, as_json

DSPY = """
class Example:
    def __init__(self, **fields):
        self.__dict__.update(fields)

    def items(self):
        return self.__dict__.items()

class LM:
    def __call__(self, *args):
        raise AssertionError("asks a model")

class Evaluate:
    def __init__(self, devset):
        self.devset = devset
"""
PACKAGE = """
from dspy import Example

def get_tool_schemas_sync(server):
    return server.tools

def eval_model(model_name, api_key, base_url, dataset, verbose=False, system_prompt=None):
    raise AssertionError("asks a model")

def eval_chained_model(model_name, api_key, dataset, base_url=None, system_prompt=None):
    raise AssertionError("asks a model")
"""
MODULE = """
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}

class Server:
    tools = {"get_weather": {"name": "get_weather", "description": "Weather.", "inputSchema": SCHEMA}}

mcp = Server()

def snow(arguments):
    return "snow"
"""
SCRIPT = """
import sys
from dspy import Example
from toolvaluator import eval_chained_model, eval_model, get_tool_schemas_sync
from my_server import SCHEMA, mcp, snow

tools = get_tool_schemas_sync(mcp)
known = dict(tool_name="get_weather", tool_description="Weather.", tool_schema=SCHEMA)

def main():
    examples = [
        Example(user_query="Oslo?", **known, expected_should_call=True, expected_tool_name="get_weather",
            expected_arguments={"city": None}, system_prompt=None),
        Example(user_query="Hi", **known, expected_should_call=False, expected_arguments={}, system_prompt="Be brief."),
    ]
    for model in ("a", "b"):
        result = eval_model(model, "key", None, examples, system_prompt="Be kind.")
    step = {"expected_tool": "get_weather", "expected_arguments": {"city": "Oslo"}, "initial_query": "Oslo?"}
    more = {"expected_tool": "get_weather", "expected_arguments": {}, "initial_query": None, "mock_result": "sun"}
    chain = {"mcp_server": mcp, "steps": [step, more]}
    result = eval_chained_model("a", "key", [
        {**chain, "mocks": {"get_weather": snow}},
        {**chain, "mocks": {"get_weather": lambda arguments: "rain"}, "steps": [step]},
        {**chain, "mocks": {}, "steps": [dict(step)]},
    ])
    print(result["num_steps"], result["num_chains"])
    sys.exit(result["score"] < 0.8)

if __name__ == "__main__":
    main()
"""


def of_script(tmp_path: Path, script: str, *words: str) -> tuple[str, dict[str, Any]]:
    program = Program(tmp_path, {"PYTHONPATH": str(tmp_path / "site")})
    program.write("site/dspy.py", DSPY)
    program.write("site/toolvaluator.py", PACKAGE)
    program.write("my_server.py", MODULE)
    program.write("tools_eval.py", script)
    done = program.run("import", "tools_eval.py", "--trust", *words)
    assert (done.returncode, done.stderr) == (0, "")
    text = (tmp_path / "tools_eval.toml").read_text(encoding="utf-8")
    assert program.run("validate", "tools_eval.toml").returncode == 0
    return done.stdout, tomllib.loads(text)


def test_a_script_is_run_and_its_datasets_become_cases(tmp_path: Path) -> None:
    said, suite = of_script(tmp_path, SCRIPT, "--python", sys.executable)
    assert suite["servers"] == [
        {"name": "my_server", "command": [sys.executable, "-c", "from my_server import mcp; mcp.run()"]}
    ]
    assert suite["grading"] == {"by": "decision", "invalid_arguments": "note", "published_report": True}
    assert "tools" not in suite
    oslo, hi, computed, coded, really = suite["cases"]
    assert oslo["ordered"] == [{"tool": "get_weather", "args": {"city": {"present": True}}}]
    assert (oslo["offer"], oslo["system"], hi["system"]) == (["get_weather"], "Be kind.", "Be brief.")
    assert hi["expect_no_calls"] is True
    first, second = computed["steps"]
    assert first == {"user": "Oslo?", "tool": "get_weather", "args": {"city": "Oslo"}}
    assert second == {"tool": "get_weather", "args": {}, "mock_result": "sun"}
    assert computed["mocks"] == [{"tool": "get_weather", "python": "my_server:snow"}]
    # A tool that the script mocks is not run, even if its mock cannot be written.
    assert "execute" not in computed and "execute" not in coded and really["execute"] is True
    assert "is code of the script: move it to a module" in said


def test_datasets_in_variables_are_found_and_no_model_is_asked(tmp_path: Path) -> None:
    script = """
import dspy

data = [dspy.Example(user_query="Oslo?", tool_name="get_weather", expected_arguments=None)]
dspy.LM()("a question")
"""
    said, suite = of_script(tmp_path, script)
    (case,) = suite["cases"]
    assert case["ordered"] == [{"tool": "get_weather"}]
    assert "does not state whether to call: here the call is expected" in said


def test_a_saved_dataset_needs_no_code(tmp_path: Path) -> None:
    program = Program(tmp_path)
    (tmp_path / "data.json").write_bytes(as_json(TOOLVALUATOR))
    assert program.run("import", "data.json").stderr == ""
    suite = tomllib.loads((tmp_path / "data.toml").read_text(encoding="utf-8"))
    oslo, arithmetic, anything = suite["cases"]
    assert oslo["ordered"][0]["args"] == {"city": "Oslo", "units": {"present": True}, "near": {"equals": {"km": 5}}}
    assert [tool["name"] for tool in suite["tools"]] == ["get_weather"]
    assert arithmetic["expect_no_calls"] is True and "args" not in anything["ordered"][0]
