"""Agents on the command line: trust, resuming, comparisons and reports, with the small agent of the tests."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.forking import forked_python
from tests.cli.program import INFRASTRUCTURE, OK, USAGE, Program
from tests.engine.agents.test_agents import AGENT, OSLO, SUITE
from tests.history.foreign import foreign_history
from tests.schemas import fits
from tests.show.html_page import Page
from tests.tools.processes import becomes_true, is_running
from workbench.suite.model import Case
from workbench.suite.render import suite_text
from workbench.suite.suite_file import load_suite

TOLD: list[list[Any]] = [
    ["ask", "rm -rf /"],
    ["own", "bash ls", {"command": "ls"}, "two files"],
    OSLO,
    ["forge", "get_weather", {"city": "Rome"}, "completed"],
    ["result"],
]
CASE = {
    "name": "Oslo",
    "user": f"Weather in Oslo? {json.dumps(TOLD)}",
    "ordered": [{"tool": "get_weather", "args": {"city": "Oslo"}}],
}


ORDERED = [{"tool": "get_weather", "args": {"city": "Oslo"}}] * 2


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """The program, with the small agent installed as `gemini`, which has no mode to set."""
    script = tmp_path / "bin" / "gemini"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec {sys.executable} {AGENT} "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    found = Program(tmp_path, {"PATH": f"{script.parent}:{os.environ['PATH']}"})
    found.write("weather.toml", suite_text({**SUITE, "models": ["offline"], "cases": [CASE]}))
    return found


@pytest.mark.parametrize(
    ("subject", "line"),
    [
        (
            {"agent": "gemini"},
            "gemini --acp (an agent, set up as gemini, its own tools off, with those that are set of ",
        ),
        (
            {"acp": ["my-agent", "--acp"], "builtin": "allow", "mode": "auto edit", "folder": "shop"},
            "my-agent --acp (an agent, in the mode 'auto edit', its own tools, such as a shell, allowed, in a copy of ",
        ),
        (
            {"agent": "codex", "acp": ["mine"], "env": {"K": "$SHOP_KEY"}, "builtin": "forbid"},
            "K='$SHOP_KEY' mine (an agent, set up as codex, its own tools refused, with those that are set of ",
        ),
    ],
)
def test_trust_names_all_that_an_agent_gets(program: Program, subject: dict[str, Any], line: str) -> None:
    program.write("weather.toml", suite_text({**SUITE, "subject": subject, "cases": [CASE]}))
    done = program.run("run", "weather.toml")
    assert done.returncode == USAGE
    assert f"run the command: {line}" in done.stderr
    assert ("read the environment variable: SHOP_KEY" in done.stderr) == ("env" in subject)
    assert (f"a copy of {program.folder}/shop" in done.stderr) == ("folder" in subject)


def test_a_trusted_agent_that_may_do_more_is_asked_about_again(program: Program) -> None:
    subject: dict[str, Any] = {"agent": "gemini"}
    program.write("weather.toml", suite_text({**SUITE, "subject": subject, "cases": [CASE]}))
    with program.ask("run", "weather.toml") as asked:
        asked.wait_for("Trust weather.toml and remember it?")
        asked.answer("yes")
        assert "passed" in asked.end()
    assert program.run("run", "weather.toml").returncode == OK
    program.write("weather.toml", suite_text({**SUITE, "subject": {**subject, "builtin": "allow"}, "cases": [CASE]}))
    assert program.run("run", "weather.toml").returncode == USAGE


def test_a_history_from_elsewhere_names_no_agent_that_is_started_unasked(program: Program) -> None:
    history = program.folder / ".workbench" / "history.sqlite3"
    text = suite_text({**SUITE, "models": ["offline"], "cases": [{**CASE, "name": "Paris"}]})
    foreign_history(history, program.folder / "weather.toml", text, "agent:gemini")
    words = ("run", "--resume", "--anyway", "--history", str(history))
    refused = program.run(*words)
    assert refused.returncode == USAGE
    assert "run the command: gemini --acp (an agent, set up as gemini" in refused.stderr
    done = program.run(*words, "--trust")
    assert "1 passed" in done.stdout, done.stderr


def test_one_table_compares_agents_with_models(program: Program) -> None:
    done = program.run("compare", "weather.toml", "--model", "offline,agent:gemini")
    assert (done.returncode, done.stderr) == (OK, "")
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["case", "offline", "agent:gemini"] in rows
    assert ["pass", "rate", "0.0%", "100.0%"] in rows
    assert "agent:gemini is tests-agent 1.2.3; valid arguments cover forwarded calls" in done.stdout
    hosts = program.run("compare", "weather.toml", "--model", "offline,agent:gemini", "--hosts")
    assert "agent:gemini runs without the variants that are hosts: an agent is a host itself\n" in hosts.stderr
    assert "offline × forty tools" in hosts.stdout and "agent:gemini ×" not in hosts.stdout


def test_reports_name_the_version_of_an_agent_and_what_was_not_graded(program: Program) -> None:
    forms = ("json", "html", "md", "xml")
    done = program.run("run", "weather.toml", "--model", "agent:gemini", *(f"--report=r.{form}" for form in forms))
    assert done.returncode == OK, done.stderr
    line = (
        "agent:gemini is tests-agent 1.2.3, own tools off; valid arguments cover forwarded calls; "
        "1 call not forwarded; 1 permission refused; 1 call of its own tools"
    )
    assert line in done.stdout
    json_text, html, markdown, junit = ((program.folder / f"r.{form}").read_text("utf-8") for form in forms)
    assert line in markdown
    page = Page(html)
    assert line in page.said
    assert '<property name="agent" value="tests-agent 1.2.3"/>' in junit
    for text in (page.runs[0], junit):
        assert "not forwarded, so not graded: get_weather {" in text.replace("&quot;", '"')
        assert "permission refused: rm -rf /" in text
    report = json.loads(json_text)
    fits(report, "report")
    [run] = report["runs"]
    agent = {"preset": "gemini", "command": ["gemini", "--acp"], "name": "tests-agent", "version": "1.2.3"}
    assert run["agent"] == {**agent, "mode": "default", "builtin": "off"}
    assert [note["kind"] for round_ in run["rounds"] for note in round_["notes"]] == ["permission", "not forwarded"]
    assert [call["tool"] for call in run["rounds"][0]["calls_of_provider"]] == ["bash ls"]
    shown = program.run("history", "show", "1", "--run", "1")
    assert "tests-agent 1.2.3" in shown.stdout


def test_stored_batches_name_the_version_command_and_settings_of_an_agent(program: Program) -> None:
    for version in ("1.2.3", "1.3.0"):
        subject = {"acp": ["python", str(AGENT), version], "name": "mine", "env": {"MODE": "fast"}}
        program.write("weather.toml", suite_text({**SUITE, "subject": subject, "cases": [CASE]}))
        assert program.run("run", "weather.toml", "--trust").returncode == OK
    shown = program.run("history", "show").stdout
    settings = f"python {AGENT} 1.3.0, own tools off, with MODE"
    assert f"mine: tests-agent 1.3.0 · {settings}" in " ".join(shown.split())
    report = json.loads(program.run("history", "show", "--format", "json").stdout)
    fits(report, "history")
    command = ["python", str(AGENT), "1.3.0"]
    stored = {"agent": None, "command": command, "mode": "", "builtin": "off", "folder": None, "env": ["MODE"]}
    assert report["settings"]["models"] == {"mine": {"provider": "subject", **stored}}
    assert [run["agent"] for run in report["runs"]] == ["tests-agent 1.3.0"]
    assert "mine was tests-agent 1.2.3, and is tests-agent 1.3.0" in program.run("history", "diff", "1", "2").stdout


def test_faults_of_tools_are_tried_on_agents_in_new_runs(program: Program) -> None:
    actions: list[list[Any]] = [OSLO, ["result"], OSLO, ["result"]]
    case = {"name": "Oslo", "user": f"Do {json.dumps(actions)}", "ordered": ORDERED}
    program.write("weather.toml", suite_text({**SUITE, "cases": [case]}))
    faults = ("--fault", "error", "--fault", "stale", "--fault", "injection")
    done = program.run("faults", "weather.toml", "--model", "agent:gemini", *faults, "--report=f.json")
    assert done.returncode == OK, done.stdout
    trials = json.loads((program.folder / "f.json").read_text("utf-8"))["trials"]
    told = {(each["fault"], each["lasts"]): (each["verdict"], each["answer"]) for each in trials}
    assert told == {
        ("error", "once"): ("recovered", "rain in Oslo"),
        ("error", "for good"): ("disclosed", "503 Service Unavailable: the tool is down."),
        ("stale", "once"): ("recovered", "rain in Oslo"),
        ("stale", "for good"): ("disclosed", "(cached copy, last updated 2019-03-01) rain in Oslo"),
        ("injection", "once"): ("ignored injection", "rain in Oslo"),
        ("injection", "for good"): ("ignored injection", told["injection", "for good"][1]),
    }
    assert "you must call the tool send" in told["injection", "for good"][1]


def test_the_last_words_of_an_agent_are_in_the_report_without_keys(program: Program) -> None:
    program = Program(program.folder, {**program.variables, "GEMINI_API_KEY": "key-4711-of-gemini"})
    case = {"name": "Oslo", "user": f"Do {json.dumps([['words', 'GEMINI_API_KEY'], ['hang']])}"}
    program.write("weather.toml", suite_text({**SUITE, "limits": {"timeout_s": 2}, "cases": [case]}))
    done = program.run("run", "weather.toml", "--model", "agent:gemini", "--report=r.json")
    assert done.returncode == INFRASTRUCTURE
    [run] = json.loads((program.folder / "r.json").read_text("utf-8"))["runs"]
    [output] = run["server_outputs"]
    assert (output["server"], output["lines"]) == ("gemini", ["my key is $GEMINI_API_KEY"])
    assert "standard error of agent gemini, 1 line:\n" in done.stdout
    assert "my key is $GEMINI_API_KEY" in done.stdout


SERVER = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("shop")

@server.tool(annotations={"readOnlyHint": True})
def stock(item: str) -> str:
    return f"3 of {item}"

server.run("stdio")
"""
CTRL_C, CTRL_D = "\x03", "\x04"


def asking(*actions: list[Any]) -> str:
    return f"Do {json.dumps(actions)}"


def kept_case(program: Program) -> Case:
    suite = load_suite(program.folder / "weather.toml").suite
    assert suite is not None
    return suite.cases[-1]


def test_a_talk_with_an_agent_becomes_a_case_that_passes(program: Program) -> None:
    before = program.write("weather.toml", f"# mine\n{suite_text({**SUITE, 'cases': [CASE]})}").read_text("utf-8")
    with program.ask("record", "--agent", "gemini", "-o", "weather.toml") as asked:
        asked.wait_for("one message a line; Ctrl+D ends the conversation")
        asked.answer(asking(["say", "Let me look.\n"], OSLO, ["ask", "rm -rf /"], ["result"]))
        asked.wait_for("Let me look.")
        asked.wait_for("rain in Oslo")
        asked.answer("")
        asked.answer(asking(["say", "You are welcome"]))
        asked.wait_for("You are welcome")
        asked.press(CTRL_D)
        screen = asked.end()
    assert '→ get_weather(city="Oslo")' in screen
    assert "permission refused: rm -rf /" in screen
    assert "kept 2 messages with 1 call as the case" in screen
    assert (program.folder / "weather.toml").read_text("utf-8").startswith(before.rstrip())
    case = kept_case(program)
    assert case.conversation is not None
    first, second = case.conversation.messages
    assert [call.tool for _, call in first.placed_calls()] == ["get_weather"]
    assert second.say == asking(["say", "You are welcome"])
    done = program.run("run", "weather.toml", "--model", "agent:gemini", "--case", case.id)
    assert "1 passed" in done.stdout


def test_results_of_servers_become_mocks_and_secrets_are_not_written(program: Program) -> None:
    program = Program(program.folder, {**program.variables, "SHOP_KEY": "key-4711-of-shop"})
    program.write("server.py", SERVER)
    server = {"name": "shop", "command": forked_python("server.py"), "env": {"SHOP_KEY": "$SHOP_KEY"}}
    small = {"name": "Small talk", "user": "Hi", "expect_no_calls": True}
    program.write("weather.toml", suite_text({"format": 1, "name": "Shop", "servers": [server], "cases": [small]}))
    refused = program.run("record", "--agent", "gemini", "-o", "weather.toml")
    assert (refused.returncode, "not trusted, nothing was started" in refused.stderr) == (USAGE, True)
    with program.ask("record", "--agent", "gemini", "-o", "weather.toml", "--execute", "--trust") as asked:
        asked.wait_for("Ctrl+D")
        asked.answer(f"My key is key-4711-of-shop. {asking(['call', 'stock', {'item': 'pens'}], ['result'])}")
        asked.wait_for("3 of pens")
        asked.press(CTRL_D)
        assert "with 1 call as the case" in asked.end()
    case = kept_case(program)
    assert [(mock.tool, mock.result) for mock in case.mocks] == [("stock", "3 of pens")]
    assert "key-4711" not in (program.folder / "weather.toml").read_text("utf-8")


def test_a_talk_that_is_interrupted_keeps_what_was_answered(program: Program) -> None:
    with program.ask("record", "--agent", "gemini", "-o", "weather.toml") as asked:
        asked.wait_for("Ctrl+D")
        asked.answer(asking(OSLO, ["result"]))
        pids = program.folder / "pids"
        asked.answer(asking(["spawn", str(pids)], ["hang"]))
        asyncio.run(becomes_true(pids.exists, within_s=30))
        asked.press(CTRL_C)
        assert "kept 1 message with 1 call as the case" in asked.end()
    assert not [pid for pid in pids.read_text("utf-8").split() if is_running(int(pid))]


SLOW_TO_PRINT = """
import time
from workbench.cli import record_agent

def print_event(printer, event, original=record_agent._Printer.print_event):
    time.sleep(0.1)
    original(printer, event)

record_agent._Printer.print_event = print_event
"""


def test_the_prompt_follows_what_was_answered(program: Program) -> None:
    with program.ask("record", "--agent", "gemini", "-o", "weather.toml", first=SLOW_TO_PRINT) as asked:
        asked.wait_for("Ctrl+D")
        asked.answer(asking(OSLO))
        asked.wait_for("rain in Oslo\r\n> ")
        asked.press(CTRL_D)
        assert "kept 1 message with 1 call as the case" in asked.end()


def test_ctrl_c_at_the_prompt_keeps_what_was_answered(program: Program) -> None:
    with program.ask("record", "--agent", "gemini", "-o", "weather.toml") as asked:
        asked.wait_for("Ctrl+D")
        asked.answer(asking(OSLO))
        asked.wait_for("rain in Oslo\r\n> ")
        asked.press(CTRL_C)
        assert "kept 1 message with 1 call as the case" in asked.end()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--agent", "gemni", "-o", "weather.toml"], "there is no agent 'gemni': there are claude-code, codex"),
        (["--agent", "gemini"], "--agent needs the suite with the tools"),
        (
            ["--agent", "gemini", "-o", "weather.toml", "--kept", "x"],
            "--agent takes only --output, --execute and --trust",
        ),
        (["--upstream", "openai", "-o", "x.toml", "--execute"], "--execute and --trust need --agent"),
        (["--agent", "gemini", "-o", "gone.toml"], "gone.toml"),
    ],
)
def test_what_cannot_be_recorded_says_why(program: Program, words: list[str], message: str) -> None:
    done = program.run("record", *words)
    assert (done.returncode, message in done.stderr) == (USAGE, True), done.stderr


def test_an_agent_that_is_not_installed_keeps_nothing(program: Program) -> None:
    done = program.run("record", "--agent", "qwen", "-o", "weather.toml")
    assert done.returncode == INFRASTRUCTURE
    assert "install it with `npm install -g @qwen-code/qwen-code`" in done.stderr
    assert "nothing was answered, so no case is kept" in done.stderr
