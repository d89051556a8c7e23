"""Suites with a subject: a program that processes each case in place of a model."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path

import pytest

import workbench
from tests.cli.program import INFRASTRUCTURE, OK, USAGE, Program
from tests.cli.suites import WEATHER
from workbench.suite.suite_file import parse_suite
from workbench.suite.trust import needs_trust

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "your-agent.md").read_text(encoding="utf-8")
[AGENT] = re.findall(r"^```python\n(import json\n.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
SUBJECT = """
[subject]
command = ["python", "agent.py"]
name = "my-agent"
env = { AGENT_KEY = "$AGENT_KEY", MODE = "test" }
"""
CHAIN_SUITE = """
format = 1
name = "Chain"
subject = { command = ["python", "agent.py"] }
tools = [{ name = "get_weather" }]
[[cases]]
name = "Trip"
steps = [
  { user = "Oslo", tool = "get_weather", args = { city = "Oslo" } },
  { user = "Thanks" },
  { user = "Bergen", tool = "get_weather", args = { city = "Bergen" } },
]
"""
CHAIN_AGENT = """
import json, sys
made = []
for step in json.load(sys.stdin)["steps"]:
    call = {"tool": "get_weather", "arguments": {"city": step["user"]}}
    made.append([] if step["user"] == "Thanks" else [call])
print(json.dumps({"calls": made}))
"""
HEAD, _, CASES = WEATHER.partition("[[tools]]")
SUITE = f"{HEAD}{SUBJECT}\n[[tools]]{CASES}"


@pytest.fixture
def agent(program: Program) -> Program:
    """A folder with a suite that has the agent of the page as its subject."""
    program.write("weather.toml", SUITE)
    program.write("agent.py", f"open('started', 'a').write('.')\n{AGENT}")
    return Program(program.folder, {"AGENT_KEY": "sk-agent-4711-secret"})


def test_nothing_starts_before_trust_and_then_it_is_run_like_a_model(agent: Program) -> None:
    refused = agent.run("run", "weather.toml")
    assert refused.returncode == USAGE
    assert "run the command: AGENT_KEY='$AGENT_KEY' MODE=test python agent.py" in refused.stderr
    assert "read the environment variable: AGENT_KEY" in refused.stderr
    assert not (agent.folder / "started").exists()
    done = agent.run("run", "weather.toml", "--trust", "--repeats", "3", "--report", "r.json")
    assert (done.returncode, done.stderr) == (OK, "")
    assert "my-agent" in done.stdout
    report = json.loads((agent.folder / "r.json").read_text())
    assert [(run["model"], run["repeat"], run["status"]) for run in report["runs"]] == [
        ("my-agent", repeat, "passed") for repeat in range(3)
    ]
    call = report["runs"][0]["rounds"][0]["calls"][0]
    assert (call["tool"], call["arguments"], call["result"]) == ("get_weather", {"city": "Oslo"}, "Rain in Oslo")
    assert report["runs"][0]["cost_usd"] is None
    assert report["runs"][0]["latency_ms"] > 0
    shown = agent.run("history", "show", "1")
    assert "my-agent" in shown.stdout


def test_its_tools_need_no_definition_and_each_new_name_is_warned_of_once(agent: Program) -> None:
    suite = SUITE.replace("get_weather", "look_up").replace('name = "my-agent"', 'name = "agent"')
    before, _, after = suite.partition("[[tools]]")
    agent.write("weather.toml", before + "[[cases]]" + after.partition("[[cases]]")[2])
    agent.write("agent.py", AGENT.replace("get_weather", "look_up"))
    done = agent.run("run", "weather.toml", "--trust", "--no-history")
    assert done.returncode == OK, done.stdout
    warned = agent.run("validate", "weather.toml").stderr
    assert warned.count("only the subject can have 'look_up': the suite defines no such tool") == 1
    with_model = agent.run("run", "weather.toml", "--trust", "--no-history", "--model", "offline")
    assert "expects 'look_up', but no such tool is offered" in with_model.stdout


def test_what_it_is_asked_and_given(agent: Program) -> None:
    agent.write("agent.py", "import sys\nopen('asked', 'w').write(sys.stdin.read())\nprint('{\"answer\": \"ok\"}')\n")
    agent.run("run", "weather.toml", "--trust")
    asked = json.loads((agent.folder / "asked").read_text())
    section = PAGE.partition("\n## The request\n")[2].partition("\n## ")[0]
    assert asked.keys() == set(re.findall(r"^- `(\w+)`: ", section, re.MULTILINE))
    assert (asked["format"], asked["case"], asked["repeat"]) == (1, "right", 0)
    assert asked["user"] == "What is the weather in Oslo?"
    assert asked["messages"] == [{"role": "user", "content": asked["user"]}]
    assert [tool["name"] for tool in asked["tools"]] == ["get_weather"]
    assert asked["mocks"] == [{"tool": "get_weather", "result": "Rain in {city}"}]


@pytest.mark.parametrize(
    ("program_text", "said"),
    [
        ("import sys; sys.exit('no key\\n')", "ended with exit code 1: no key"),
        ("import sys; print('sk-agent-4711-secret', file=sys.stderr); sys.exit(4)", "exit code 4: $AGENT_KEY"),
        ("print('thinking …')", "is not one JSON object"),
        ("print('{\"calls\": [{\"tool\": 3}]}')", "$.calls[0].tool must be a text, not a number"),
        ("print('{}')", "$: has neither calls nor an answer"),
        ("pass", "wrote nothing to standard output"),
        ("print('x' * (17 << 20))", "wrote more than 16 MiB"),
        ("print('{\"error\": \"quota\"}')", "quota"),
        ("import os; os.kill(os.getpid(), 9)", "was ended by SIGKILL"),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_an_error_with_its_cause(agent: Program, program_text: str, said: str) -> None:
    agent.write("agent.py", program_text)
    done = agent.run("run", "weather.toml", "--trust", "--report", "r.json")
    assert done.returncode == INFRASTRUCTURE, done.stdout
    (run,) = json.loads((agent.folder / "r.json").read_text())["runs"]
    assert said in run["error"]
    assert (run["status"], run["score"]) == ("error", None)
    assert "sk-agent-4711" not in done.stdout + done.stderr


def test_its_time_limit_ends_it_with_all_that_it_started(agent: Program) -> None:
    agent.write("weather.toml", SUITE.replace('name = "my-agent"', "timeout_s = 1"))
    agent.write(
        "agent.py",
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "open('pid', 'w').write(str(child.pid))\ntime.sleep(600)\n",
    )
    done = agent.run("run", "weather.toml", "--trust")
    assert done.returncode == INFRASTRUCTURE
    assert "was ended after 1 s: raise subject.timeout_s" in done.stdout
    assert _ends(int((agent.folder / "pid").read_text()))


@pytest.mark.slow
def test_a_child_that_holds_the_output_open_delays_nothing(agent: Program) -> None:
    agent.write(
        "agent.py",
        "import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        'print(\'{"calls": [{"tool": "get_weather", "arguments": {"city": "Oslo"}}]}\')\n',
    )
    assert agent.run("run", "weather.toml", "--trust").returncode == OK


def _ends(pid: int) -> bool:
    """Return whether a process ends within seconds. A zombie that no process reaps counts as ended."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
            if ") Z" in Path(f"/proc/{pid}/stat").read_text():
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
    return False


def test_beside_a_model(agent: Program) -> None:
    models = ("--model", "offline", "--model", "my-agent")
    beside = agent.run("run", "weather.toml", "--trust", *models)
    assert (beside.returncode, beside.stderr) == (OK, ""), beside.stdout
    assert "offline" in beside.stdout and "my-agent" in beside.stdout
    assert len((agent.folder / "started").read_text()) == 1
    unknown = agent.run("run", "weather.toml", "--trust", "--model", "other")
    assert unknown.returncode == USAGE


def test_a_chain_gets_its_steps_and_python_runs_it_after_approval(
    agent: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(agent.folder)
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(agent.folder / name.lower()))
    agent.write("chain.toml", CHAIN_SUITE)
    agent.write("agent.py", CHAIN_AGENT)
    with pytest.raises(workbench.ApprovalError, match=r"run the command: python agent\.py"):
        workbench.evaluate("chain.toml")
    report = workbench.evaluate("chain.toml", approve=workbench.ALL)
    assert report.passed, report.text()
    assert [len(round_.calls) for round_ in report.results[0].trajectory.rounds] == [1, 0, 1]


def test_trust_covers_the_command_and_rules_name_what_does_not_fit(agent: Program) -> None:
    stated = [
        needs_trust(file.suite, Path("weather.toml")).fingerprint
        for change in (("", ""), ("agent.py", "other.py"), ('"test"', '"live"'))
        if (file := parse_suite(SUITE.replace(*change), Path("weather.toml"))).suite is not None
    ]
    assert len(set(stated)) == 3
    wrong = SUITE.replace("format = 1", 'format = 1\nmodels = ["offline"]').replace("my-agent", "my agent: 2")
    agent.write("wrong.toml", wrong.replace('["python", "agent.py"]', '"python agent.py"'))
    done = agent.run("validate", "wrong.toml")
    assert done.returncode == USAGE
    said = done.stdout + done.stderr
    for each in (
        "`models` cannot be combined with `subject`",
        "cannot be the name of a subject",
        'write ["python", "agent.py"]',
    ):
        assert each in said
