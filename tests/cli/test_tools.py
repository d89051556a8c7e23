"""`workbench tools` on real servers: their lists, and a manual call of one tool."""

from __future__ import annotations

import json
import signal
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.cli.forking import write_forked_python
from tests.cli.program import Program, wait_until
from tests.cli.suites import WEATHER
from tests.samples import SAMPLES

SERVERS = Path(__file__).parents[1] / "tools" / "servers"
WORKSHOP = f"""
format = 1
name = "Workshop"

[[tools]]
name = "written"
description = "Written out."

[[servers]]
name = "shop"
command = ["python", "{SERVERS / "workshop.py"}"]
env = {{ SHOP_TOKEN = "$SHOP_TOKEN" }}
"""
GONE = """
[[servers]]
name = "gone"
prefix = "gone_"
command = ["no-such-program-anywhere"]
"""
OFFICE = str(SAMPLES / "office.toml")


@pytest.fixture
def shop(program: Program, monkeypatch: pytest.MonkeyPatch) -> Program:
    program.write("shop.toml", WORKSHOP)
    program.write(".env", "SHOP_TOKEN=hush-hush-9000\n")
    return program


def audited(program: Program) -> list[dict[str, Any]]:
    file = program.folder / "state" / "toolcall-workbench" / "executions.jsonl"
    if not file.exists():
        return []
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


TASKS = f"""
import sys
sys.path.insert(0, {str(SERVERS)!r})
from plain import PlainServer

server = PlainServer("tasks")

@server.tool()
def look_up(city: str) -> str:
    "Look up the weather of a city."
    return city

@server.tool()
def research(topic: str) -> str:
    "Research a topic for a long time."
    return topic

server._tools["look_up"][0]["execution"] = {{"taskSupport": "optional"}}
server._tools["research"][0]["execution"] = {{"taskSupport": "required"}}
server.run()
"""


@pytest.mark.slow
def test_a_tool_that_demands_tasks_is_named_and_not_offered(program: Program) -> None:
    program.write("tasks.py", TASKS)
    program.write(
        "tasks.toml",
        'format = 1\nname = "Tasks"\n[[servers]]\nname = "slow"\ncommand = ["python", "tasks.py"]\nprefix = "s_"\n'
        '[[cases]]\nid = "a"\nname = "A"\nuser = "Hello"\nexpect_no_calls = true\n',
    )
    listed = program.run("tools", "tasks.toml", "--trust")
    assert listed.returncode == 0 and "server slow: 1 tool" in listed.stdout and "s_look_up(" in listed.stdout
    assert listed.stdout.count("s_research") == 1 == listed.stdout.count("not offered to models")
    done = program.run("tools", "tasks.toml", "--trust", "--lint")
    assert done.returncode == 1 and "s_research" in done.stdout and 'taskSupport = "required"' in done.stdout
    (source,) = json.loads(program.run("tools", "tasks.toml", "--trust", "--format", "json").stdout)["suites"][0][
        "sources"
    ]
    assert [tool["name"] for tool in source["tools"]] == ["s_look_up"] and source["task_tools"] == ["s_research"]
    ran = program.run("run", "tasks.toml", "--model", "offline", "--trust", "--format", "json")
    offered = json.loads(ran.stdout)
    assert "s_research" not in json.dumps(offered) and ran.returncode == 0


def test_one_bad_tool_is_named_and_the_others_are_used(program: Program) -> None:
    tools = [
        {"name": "look_up", "description": "Look up the weather of a city.", "inputSchema": {"properties": {}}},
        {"name": "bare", "description": "Has no schema at all."},
    ]
    pages = json.dumps([{"tools": tools, "nextCursor": "same"}])
    program.write(
        "odd.toml",
        f'format = 1\nname = "Odd"\n[[servers]]\nname = "odd"\n'
        f'command = ["python", "{SERVERS / "pages.py"}", {pages!r}]\n'
        '[[cases]]\nid = "a"\nname = "A"\nuser = "Hello"\nexpect_no_calls = true\n',
    )
    listed = program.run("tools", "odd.toml", "--trust")
    assert listed.returncode == 0 and "server odd: 1 tool" in listed.stdout and "look_up()" in listed.stdout
    faults = [
        "repaired: look_up: inputSchema.type is missing, and the protocol requires it",
        "left out: bare: inputSchema is missing, and the protocol requires it",
        'cut short: nextCursor "same" was sent before: it does not advance',
    ]
    assert [line.strip() for line in listed.stdout.splitlines()[-3:]] == faults
    linted = program.run("tools", "odd.toml", "--trust", "--lint", "--format", "json")
    suite = json.loads(linted.stdout)["suites"][0]
    assert linted.returncode == 1
    assert [(each["rule"], each["severity"], each["where"]) for each in suite["findings"][:3]] == [
        ("malformed tool", "error", "inputSchema.type"),
        ("malformed tool", "error", "inputSchema"),
        ("cursor", "warning", "nextCursor"),
    ]
    assert [issue["outcome"] for issue in suite["sources"][0]["issues"]] == ["repaired", "left out", "cut short"]


def test_the_question_speaks_of_servers_and_of_no_model(shop: Program) -> None:
    shop.write("workbench.toml", '[models.local]\nprovider = "openai"\nbase_url = "http://localhost:1/v1"\n')
    asked = shop.run("tools", "shop.toml")
    assert "trusting shop.toml allows it, on this machine, to:" in asked.stderr
    assert "run the command:" in asked.stderr
    assert "model" not in asked.stderr


def test_tools_are_listed_with_parameters_hints_and_sizes(program: Program) -> None:
    python = write_forked_python(program.folder / "python")
    done = program.run("tools", OFFICE, first=f"import sys; sys.executable = {str(python)!r}")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    at = lines.index("    send_email(to: string, subject: string, body: string, cc?: string[]|null)")
    assert lines[at + 1].startswith("        not read-only · destructive · ")
    assert "characters ≈ " in lines[at + 1]
    assert lines[at + 2] == "        Send an e-mail."
    assert any(line.startswith("  server office: 5 tools, ") for line in lines)
    assert audited(program) == []


def test_a_server_that_does_not_start_is_said_and_its_remembered_tools_are_shown(shop: Program) -> None:
    first = shop.run("tools", "shop.toml", "--trust", "--format", "json")
    assert first.returncode == 0, first.stderr
    (written, served) = json.loads(first.stdout)["suites"][0]["sources"]
    assert ([tool["name"] for tool in written["tools"]], written["server"]) == (["written"], None)
    listed = {tool["name"]: tool for tool in served["tools"]}
    assert listed["add"]["annotations"]["readOnlyHint"] is True
    assert listed["add"]["tokens"] == -(-listed["add"]["characters"] // 4)
    shop.write(".env", "")
    shop.write("shop.toml", WORKSHOP + GONE)
    second = shop.run("tools", "shop.toml", "--trust")
    assert second.returncode == 3
    assert "server shop: server 'shop' needs the environment variable SHOP_TOKEN" in second.stdout
    assert "  as listed on 20" in second.stdout
    assert "    add(a: integer, b: integer)" in second.stdout
    assert "server gone: server 'gone' cannot be started" in second.stdout


def test_a_call_prints_what_the_model_would_read_and_is_audited(shop: Program) -> None:
    done = shop.run(
        "tools", "shop.toml", "--trust", "--call", "echo", "--args", '{"text": "a\\u001b[31m\\nhush-hush-9000"}'
    )
    assert (done.returncode, done.stdout) == (0, "a␛[31m\n$SHOP_TOKEN\n")
    started, ended = audited(shop)
    assert (started["event"], started["tool"], started["allowed"], started["case"]) == (
        "started",
        "echo",
        "by hand",
        None,
    )
    assert started["arguments"] == {"text": "a\x1b[31m\n$SHOP_TOKEN"}
    assert (ended["event"], ended["outcome"], ended["suite"]) == ("ended", "ok", str(shop.folder / "shop.toml"))


def test_a_tool_error_answers_one_and_a_dead_server_three(shop: Program) -> None:
    refused = shop.run("tools", "shop.toml", "--trust", "--call", "refuse", "--format", "json")
    assert refused.returncode == 1
    said = json.loads(refused.stdout)
    assert (said["is_error"], said["server"], "closed" in said["content"]) == (True, "shop", True)
    crashed = shop.run("tools", "shop.toml", "--trust", "--call", "crash")
    assert (crashed.returncode, crashed.stdout) == (3, "")
    assert "server 'shop' ended with exit code 3" in crashed.stderr
    assert [line["outcome"] for line in audited(shop) if line["event"] == "ended"] == ["tool error", "server error"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--call", "add", "--args", '{"a": "x", "c": 1}'], "args.a: 'x' is not of type 'integer'"),
        (["--call", "nothing"], "there is no tool 'nothing'; there are add, breed"),
        (["--call", "written"], "written is defined in the suite"),
    ],
)
def test_what_cannot_be_called_answers_two_and_says_why(shop: Program, words: list[str], said: str) -> None:
    done = shop.run("tools", "shop.toml", "--trust", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert audited(shop) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["weather.toml", "--call", "get_weather"], "get_weather is defined in the suite"),
        (["shop.toml", "--server", "other"], "there is no server 'other'; there are shop"),
        (["shop.toml", "--trust", "--call", "add", "--args", "[1]"], "--args must be a JSON object"),
        (["shop.toml", "--trust", "--args", "{}"], "--args are the arguments of a call: name the tool with --call"),
        (["shop.toml", "--trust", "--call", "add", "--args", '{"a": NaN}'], "NaN is not a JSON number"),
        (["shop.toml"], "not trusted"),
        (["nowhere.toml"], "nowhere.toml"),
    ],
)
def test_wrong_usage_starts_nothing(shop: Program, words: list[str], said: str) -> None:
    shop.write("weather.toml", WEATHER)
    done = shop.run("tools", *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (shop.folder / "state" / "toolcall-workbench" / "log" / "servers").exists()


def test_a_log_that_cannot_be_written_keeps_a_tool_from_being_called(shop: Program) -> None:
    (shop.folder / "state" / "toolcall-workbench" / "executions.jsonl").mkdir(parents=True)
    done = shop.run("tools", "shop.toml", "--trust", "--call", "add", "--args", '{"a": 1, "b": 2}')
    assert (done.returncode, done.stdout) == (3, "")
    assert "add was not executed: the audit log" in done.stderr


def test_ctrl_c_ends_a_call_that_hangs_and_closes_the_server(shop: Program) -> None:
    running = shop.start("tools", "shop.toml", "--trust", "--call", "hang")
    wait_until(lambda: bool(audited(shop)), running)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate()
    assert (running.returncode, out) == (130, "")
    assert "Traceback" not in err
    assert audited(shop)[-1]["outcome"] == "stopped"


LINTED = """
format = 1
name = "Linted"

[[tools]]
name = "get.user"
description = "Gets one user by the id of the account."
[tools.parameters]
type = "object"
[tools.parameters.properties.id]
type = "string"

[[tools]]
name = "unlock"
description = "Opens the door without a key."

[[cases]]
name = "A"
user = "B"

[[cases.tools]]
name = "unlock"
description = "Opens the door for this case."
"""


def test_lint_names_what_is_hard_to_use_by_tool_and_place(program: Program) -> None:
    program.write("linted.toml", LINTED)
    done = program.run("tools", "linted.toml", "--lint")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "Linted  linted.toml"
    assert lines[1] == "  get.user"
    assert lines[2].startswith("    warning: OpenAI and Anthropic accept only A-Z, a-z, 0-9, _ and -")
    assert lines[3] == "    warning: id: it has no description (describe it)"
    assert lines[4] == "  3 tools: 0 errors, 2 warnings"
    program.write("linted.toml", LINTED.replace("Opens the door for this case.", ""))
    assert "  case a: unlock" in program.run("tools", "linted.toml", "--lint").stdout.splitlines()
    assert "  in case a: 1 tool" in program.run("tools", "linted.toml").stdout


def test_lint_answers_one_for_an_error_and_is_part_of_the_json(program: Program) -> None:
    program.write("linted.toml", LINTED.replace('type = "object"', 'type = "object"\nanyOf = [{ required = ["id"] }]'))
    done = program.run("tools", "linted.toml", "--lint", "--format", "json")
    assert done.returncode == 1, done.stderr
    (suite,) = json.loads(done.stdout)["suites"]
    assert [tool["name"] for tool in suite["sources"][0]["tools"]] == ["get.user", "unlock"]
    assert [source["case"] for source in suite["sources"]] == [None, "a"]
    (error,) = [finding for finding in suite["findings"] if finding["severity"] == "error"]
    assert (error["rule"], error["tools"]) == ("refused schema", [{"name": "get.user", "server": None, "case": None}])


def test_lint_and_a_call_are_not_asked_for_at_once(program: Program) -> None:
    done = program.run("tools", OFFICE, "--lint", "--call", "create_task")
    assert done.returncode == 2
    assert "--lint and --call cannot be used together" in done.stderr
