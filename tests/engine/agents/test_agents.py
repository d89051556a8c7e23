"""Agents that speak ACP in place of a model. A small test agent does what its prompt scripts."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import workbench
from tests.example_counts import examples
from tests.programs import program_of
from tests.tools.processes import becomes_true, is_running
from workbench.config.agents import BuiltIn
from workbench.config.secrets import Secrets
from workbench.engine.agents import agent_model
from workbench.engine.agents.connection import AgentError
from workbench.engine.agents.setup import Setup, SetupRequest, set_up
from workbench.engine.events import RunEvent
from workbench.evaluation.approval import needs_of_plan
from workbench.evaluation.options import RunOptions
from workbench.evaluation.planner import plan
from workbench.evaluation.run import Evaluation
from workbench.grading.grade import RunResult
from workbench.limits import Limit
from workbench.show.views.agents import agent_lines
from workbench.suite.model import Subject
from workbench.suite.render import suite_text
from workbench.trajectory.events import AgentStarted, ResultReceived
from workbench.trajectory.trajectory import Trajectory

AGENT = Path(__file__).with_name("agent.py")
ROOT = Path(__file__).parents[3]

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
SUITE: dict[str, Any] = {
    "format": 1,
    "name": "Weather",
    "tools": [{"name": "get_weather", "parameters": CITY}, {"name": "send"}],
    "mocks": [{"tool": "get_weather", "result": "rain in {city}"}],
}
OSLO = ["call", "get_weather", {"city": "Oslo"}]


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use a separate folder for the folders of runs, so that a test can see the remains."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "t"))
    (tmp_path / "t").mkdir()
    return tmp_path / "t"


def suite_of(
    folder: Path,
    *actions: Sequence[Any],
    options: Sequence[str] = (),
    subject: Mapping[str, Any] | None = None,
    **case: Any,
) -> Path:
    path = folder / "weather.toml"
    told = {"acp": ["python", str(AGENT), *options], "builtin": "forbid", **(subject or {})}
    cases = [{"name": "Oslo", "user": f"Do {json.dumps(actions)}", **case}]
    path.write_text(suite_text({**SUITE, "subject": told, "cases": cases}), encoding="utf-8")
    return path


def report_of(folder: Path, *actions: Sequence[Any], **options: Any) -> workbench.Report:
    return workbench.evaluate(suite_of(folder, *actions, **options), approve=workbench.ALL)


def run_of(folder: Path, *actions: Sequence[Any], **options: Any) -> Trajectory:
    [result] = report_of(folder, *actions, **options).results
    return result.trajectory


def error_of(trajectory: Trajectory) -> str:
    assert trajectory.finish is not None
    assert trajectory.finish.reason == "error", trajectory.finish
    return trajectory.finish.error or ""


def notes_of(trajectory: Trajectory) -> list[tuple[str, str]]:
    return [(note.kind, note.text) for round_ in trajectory.rounds for note in round_.notes]


def calls_of(trajectory: Trajectory) -> list[tuple[str, Mapping[str, Any]]]:
    return [(call.tool, call.arguments) for call in trajectory.calls]


def test_a_mock_reaches_the_model_and_the_text_after_the_last_call_is_the_answer(
    tmp_path: Path, own_temporary_folder: Path
) -> None:
    actions: list[list[Any]] = [["think", "hm"], ["plan", "look"], ["say", "Wait. "], OSLO, ["result"], ["say", "!"]]
    [result] = report_of(
        tmp_path, *actions, ordered=[{"tool": "get_weather", "args": {"city": "Oslo"}}], response_contains=["rain"]
    ).results
    run = result.trajectory
    assert result.status == "passed"
    assert calls_of(run) == [("get_weather", {"city": "Oslo"})]
    assert run.final_answer == "rain in Oslo!"
    assert [round_.text for round_ in run.rounds] == ["Wait. ", "rain in Oslo!"]
    assert run.rounds[0].reasoning == "hm"
    assert notes_of(run) == [("plan", "look (pending)")]
    command = ("python", str(AGENT))
    assert run.agent == AgentStarted(1, "", command, "tests-agent", "1.2.3", "default", "forbid")
    assert not [*own_temporary_folder.iterdir()]


def test_each_run_has_a_home_and_a_working_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-agents")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "notes.txt").write_text("x", encoding="utf-8")
    names = ("HOME", "XDG_CONFIG_HOME", "TMPDIR", "OPENAI_API_KEY", "MODE")
    said = [each for name in names for each in (["env", name], ["say", "\n"])]
    subject = {"folder": "project", "env": {"MODE": "test"}}
    run = run_of(tmp_path, ["cwd"], ["say", "\n"], *said, subject=subject)
    work, home, config, temporary, key, mode = run.final_answer.splitlines()
    assert work.endswith("/work has ['notes.txt']")
    assert (key, mode) == ("None", "test")
    for place in (work, home, config, temporary):
        assert place.startswith(str(tmp_path / "t"))


def test_the_steps_of_a_chain_are_prompts_in_one_session(tmp_path: Path) -> None:
    first, second = json.dumps([OSLO]), json.dumps([["result"], ["call", "send", {}], ["say", "sent"]])
    steps = [{"user": f"One {first}", "tool": "get_weather"}, {"user": f"Two {second}", "tool": "send"}]
    result = chain_of(tmp_path, steps)
    assert result.status == "passed", result
    assert [round_.text for round_ in result.trajectory.rounds] == ["", "", "rain in Oslo", "sent"]


def chain_of(folder: Path, steps: Sequence[Mapping[str, Any]]) -> RunResult:
    path = suite_of(folder, user="", steps=steps)
    text = path.read_text(encoding="utf-8").replace('user = ""\n', "")
    path.write_text(text, encoding="utf-8")
    [result] = workbench.evaluate(path, approve=workbench.ALL).results
    return result


def test_the_calls_after_the_first_one_of_a_step_count_for_that_step(tmp_path: Path) -> None:
    first, second = json.dumps([OSLO, ["call", "send", {}], ["say", "a"]]), json.dumps([["call", "send", {}]])
    steps = [
        {"user": f"One {first}", "tool": "get_weather", "mock_result": "sun"},
        {"user": f"Two {second}", "tool": "send"},
    ]
    result = chain_of(tmp_path, steps)
    assert [round_.step_number for round_ in result.trajectory.rounds] == [1, 1, 1, 2, 2]
    assert [step.status for step in result.steps] == ["failed", "passed"]
    assert "1 call expected, 2 made" in result.steps[0].why
    results = [call.result.content for call in result.trajectory.calls if call.result is not None]
    assert (results[0], "Mock result for send" in results[1]) == ("sun", True)


def test_a_further_call_is_that_of_the_next_step_if_this_one_has_no_message(tmp_path: Path) -> None:
    actions = json.dumps([OSLO, ["call", "send", {}], ["call", "send", {}], ["say", "done"]])
    steps = [
        {"user": f"Do {actions}", "tool": "get_weather"},
        {"tool": "send"},
        {"user": 'Bye [["say", "bye"]]'},
    ]
    result = chain_of(tmp_path, steps)
    assert [round_.step_number for round_ in result.trajectory.rounds] == [1, 2, 2, 2, 3]
    assert [step.status for step in result.steps] == ["passed", "failed", "passed"]
    assert result.trajectory.finish_reason == "steps done"


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abcé \n{}", max_size=4), inner, max_size=3),
    max_leaves=6,
)
MADE = st.tuples(
    st.sampled_from(["get_weather", "send"]), st.dictionaries(st.text("xyz", min_size=1), JSON, max_size=3)
)


@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(MADE, st.lists(MADE, min_size=1, max_size=3)), max_size=5))
def test_calls_are_those_that_the_agent_sent_as_json_values_in_order_by_bare_name(
    tmp_path: Path, made: list[Any]
) -> None:
    actions, sent = [], []
    for one in made:
        if isinstance(one, tuple):
            actions.append(["call", *one])
            sent.append(one)
        else:
            actions.append(["together", one])
            sent += one
    run = run_of(tmp_path, *actions, ["say", "."])
    assert json.dumps(calls_of(run)) == json.dumps(sent)
    assert not notes_of(run)
    assert all(call.result is not None for call in run.calls)


def test_permissions_are_given_to_tools_of_the_suite_alone(tmp_path: Path) -> None:
    actions: list[list[Any]] = [
        ["ask", "rm -rf /"],
        ["ask", "echo mcp__workbench__get_weather"],
        ["permit", "send", {"to": "a"}],
    ]
    run = run_of(tmp_path, *actions, ["say", "done"])
    assert calls_of(run) == [("send", {"to": "a"})]
    assert notes_of(run) == [("permission", "rm -rf /"), ("permission", "echo mcp__workbench__get_weather")]
    assert "".join(round_.text for round_ in run.rounds) == "[no][no][once]done"


NAMES = (
    "mcp__workbench__send",
    "mcp_workbench_send",
    "workbench__send",
    "workbench_send",
    "workbench/send",
    "workbench.send",
    "mcp.workbench.send",
    "mcp__workbench/send",
    "send (workbench MCP Server)",
)


def test_every_agent_gets_the_permission_by_the_name_that_it_gives_a_tool(tmp_path: Path) -> None:
    run = run_of(tmp_path, *(["ask", name] for name in NAMES), ["say", "done"])
    assert "permission" not in dict(notes_of(run))
    assert "".join(round_.text for round_ in run.rounds) == "[once]" * len(NAMES) + "done"


@pytest.mark.parametrize(("builtin", "graded"), [("forbid", []), ("off", []), ("allow", ["bash ls"])])
def test_the_agents_own_tools_are_shown_and_graded_only_where_they_are_allowed(
    tmp_path: Path, builtin: str, graded: list[str]
) -> None:
    own = ["own", "bash ls", {"command": "ls"}, "two files"]
    run = run_of(tmp_path, own, ["ask", "edit"], ["say", "."], subject={"builtin": builtin})
    shown = run.rounds[0].calls if graded else run.rounds[0].not_offered
    assert (shown[0].tool, shown[0].arguments) == ("bash ls", {"command": "ls"})
    assert shown[0].result is not None
    assert shown[0].result.content == "two files"
    assert [call.tool for call in run.calls][:1] == graded
    assert run.final_answer == ("[once]." if graded else "[no].")
    assert [kind for kind, _ in notes_of(run)].count("permission") == (0 if graded else 1)


def test_calls_that_never_arrived_are_shown_as_not_forwarded(tmp_path: Path) -> None:
    forged = ["forge", "get_weather", {"city": "Rome"}, "completed"]
    run = run_of(tmp_path, OSLO, forged, OSLO, ["say", "."])
    assert calls_of(run) == [("get_weather", {"city": "Oslo"})] * 2
    told = 'get_weather {"city":"Rome"} was reported as completed, and never reached Workbench: forged'
    assert notes_of(run) == [("not forwarded", told)]


@pytest.mark.parametrize(
    ("actions", "options", "subject", "message"),
    [
        ([OSLO, ["crash", 3]], [], {}, "the agent subject ended with exit code 3: it fell over"),
        ([], [], {"acp": ["false"]}, "ended with exit code 1; it opened no session, so run its command in a terminal"),
        ([["say", "hi"]], ["--gone"], {"agent": "codex", "mode": "default"}, "ended with exit code 3"),
        ([["kill"]], [], {}, "the agent subject was ended by SIGKILL"),
        ([["say", "hi"]], ["--no-list"], {}, "without having listed the tools of workbench"),
        ([["say", "hi"]], ["--login"], {}, "the agent subject needs a login"),
        ([["say", "hi"]], ["--login"], {"agent": "codex"}, "set one of OPENAI_API_KEY, CODEX_API_KEY"),
        ([["say", "hi"]], [], {"mode": "yolo"}, "has no mode 'yolo': it has default, plan"),
        ([["stop", "cancelled"]], [], {}, "cancelled the prompt by itself"),
        ([["say", "hi"]], [], {"folder": "gone"}, "the folder gone of the agent subject does not exist"),
        ([["say", "hi"]], [], {"acp": ["no-such-agent"]}, "there is no program 'no-such-agent'"),
        ([["big", 33 << 20]], [], {}, "sent more than 32 MiB as a message"),
    ],
)
def test_what_is_no_failure_of_the_model_is_an_error(
    tmp_path: Path, actions: Any, options: Any, subject: Any, message: str, own_temporary_folder: Path
) -> None:
    name = {"name": "subject"} if "agent" in subject else {}
    [result] = report_of(tmp_path, *actions, options=options, subject={**subject, **name}).results
    assert result.status == "error"
    assert message in error_of(result.trajectory)
    assert not [*own_temporary_folder.iterdir()]


def test_an_agent_that_opens_no_session_is_ended_with_its_last_words_and_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_temporary_folder: Path
) -> None:
    monkeypatch.setattr(agent_model, "START_TIMEOUT_S", 1.5)
    message = error_of(run_of(tmp_path, ["say", "hi"], options=["--slow-start"]))
    assert message.startswith("the agent subject did not open a session within 1.5 s: loading a model; run its command")
    assert message.endswith(f"{AGENT} --slow-start")
    assert not [*own_temporary_folder.iterdir()]


def test_an_agent_that_is_not_installed_is_named_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "weather.toml"
    path.write_text(suite_text({**SUITE, "cases": [{"name": "Oslo", "user": "Oslo?"}]}), encoding="utf-8")
    monkeypatch.setenv("PATH", str(tmp_path))
    report = workbench.evaluate(path, models=["agent:gemini", "offline"])
    assert [result.model for result in report.results] == ["agent:gemini", "offline"]
    expected = (
        "the agent gemini is not installed: there is no program 'gemini'; "
        "install it with `npm install -g @google/gemini-cli`"
    )
    assert report.results[0].error == expected
    with pytest.raises(workbench.UsageError, match="there is no agent 'gemni': there are claude-code, codex"):
        workbench.evaluate(path, model="agent:gemni")


def test_an_agent_chosen_by_its_name_needs_no_trust_and_one_that_a_suite_names_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "codex-acp"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {AGENT} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-for-codex-4711")
    actions = [["env", "CODEX_HOME"], ["say", " "], ["env", "OPENAI_API_KEY"]]
    case = {"name": "Oslo", "user": f"Do {json.dumps(actions)}", "system": "Be brief."}
    path = tmp_path / "weather.toml"
    path.write_text(suite_text({**SUITE, "cases": [case]}), encoding="utf-8")
    with pytest.raises(AssertionError):  # its mode, read-only, is none of the small agent's
        workbench.evaluate(path, model="agent:codex").assert_passed()
    path.write_text(suite_text({**SUITE, "models": ["agent:codex"], "cases": [case]}), encoding="utf-8")
    with pytest.raises(workbench.ApprovalError, match="run the command: codex-acp"):
        workbench.evaluate(path)
    subject = {"agent": "codex", "mode": "default"}
    path.write_text(suite_text({**SUITE, "subject": subject, "cases": [case]}), encoding="utf-8")
    [result] = workbench.evaluate(path, approve=workbench.ALL, model="agent:codex").results
    home, key = result.trajectory.final_answer.split()
    assert (home.endswith("/home/.codex"), key) == (True, "sk-for-codex-4711")


def test_unknown_updates_and_stop_reasons_and_lines_that_are_no_messages_are_kept_and_shown(tmp_path: Path) -> None:
    actions: list[list[Any]] = [
        *(["raw", "Loading model…"], ["raw", "[1, 2]"], ["update", {"sessionUpdate": "hologram", "x": 1}]),
        *(["update", {"sessionUpdate": "available_commands_update"}], ["say", "fine"], ["stop", "bored"]),
    ]
    run = run_of(tmp_path, *actions)
    assert run.final_answer == "fine"
    assert [text for _, text in notes_of(run)] == [
        "the agent wrote a line that is not an ACP message: 'Loading model…'",
        "the agent wrote a line that is not an ACP message: '[1, 2]'",
        "an unknown update: hologram",
        "the agent stopped for the reason bored",
    ]


def test_floods_are_bounded_and_standard_error_is_always_read(tmp_path: Path) -> None:
    run = run_of(tmp_path, ["errors", 1 << 20], ["flood", 3_000], ["say", "alive"])
    assert run.final_answer == "alive"
    notes = notes_of(run)
    assert len(notes) == 200
    assert notes[-1] == ("message", "200 notes; further ones are left out")


def test_a_flood_beyond_the_limit_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_temporary_folder: Path
) -> None:
    monkeypatch.setattr(agent_model, "MAX_AGENT_ITEMS", Limit(500, "more than {limit} messages of its agent"))
    finish = run_of(tmp_path, ["flood", 3_000], ["say", "alive"]).finish
    assert finish is not None
    assert (finish.reason, finish.error) == ("sent too much", "more than 500 messages of its agent")
    assert not [*own_temporary_folder.iterdir()]


TOLD = {"inputTokens": 100, "outputTokens": 20, "cachedReadTokens": 5, "thoughtTokens": 3, "totalTokens": 128}
OF_GEMINI = {"_meta": {"quota": {"token_count": {"input_tokens": 44, "output_tokens": 28}}}}
CHUNK_OF_QWEN = {
    "sessionUpdate": "agent_message_chunk",
    "content": {"type": "text", "text": ""},
    "_meta": {"usage": {"inputTokens": 11, "outputTokens": 7, "totalTokens": 18, "cachedReadTokens": 4}},
}


@pytest.mark.parametrize(
    ("agent", "told", "usage"),
    [
        (None, [["answer", {"usage": TOLD}]], workbench.Usage(105, 23, 5, 3)),
        ("gemini", [["answer", OF_GEMINI]], workbench.Usage(44, 28)),
        ("qwen", [["update", CHUNK_OF_QWEN], ["update", CHUNK_OF_QWEN]], workbench.Usage(22, 14, 8)),
        ("opencode", [["answer", {"usage": TOLD}]], None),
        ("codex", [], None),
    ],
)
def test_tokens_of_prompts_are_added_and_cost_is_that_of_the_session(
    tmp_path: Path, agent: str | None, told: list[Any], usage: workbench.Usage | None
) -> None:
    prompts = [json.dumps([*told, ["cost", cost], ["say", "."]]) for cost in (0.25, 0.375)]
    steps = [{"user": f"Do {prompt}"} for prompt in prompts]
    config = json.dumps({"model": "shop/large"})
    preset = {} if agent is None else {"agent": agent, "mode": "default", "env": {"OPENCODE_CONFIG_CONTENT": config}}
    path = suite_of(tmp_path, subject=preset, user="", steps=steps)
    path.write_text(path.read_text(encoding="utf-8").replace('user = ""\n', ""), encoding="utf-8")
    [result] = workbench.evaluate(path, approve=workbench.ALL).results
    run = result.trajectory
    assert [round_.usage for round_ in run.rounds] == [usage, usage]
    assert run.usage == (None if usage is None else usage + usage)
    assert result.cost_usd == 0.375


def test_methods_of_the_agents_own_are_left_alone_and_those_of_the_protocol_are_shown(tmp_path: Path) -> None:
    told = ["_auth/status_update", "qwen/notify/session/mode-update", "session/unknown"]
    asked = ["craft/drainMidTurnQueue", "fs/read_text_file"]
    run = run_of(tmp_path, *[["tell", each] for each in told], *[["ask for", each] for each in asked], ["say", "."])
    assert [text for _, text in notes_of(run)] == [
        "an unknown notification: session/unknown",
        "the agent asked for fs/read_text_file, which is not offered",
    ]


def test_warnings_of_codex_are_no_part_of_the_answer(tmp_path: Path) -> None:
    warning = {**CHUNK_OF_QWEN, "content": {"type": "text", "text": "Warning: unknown model\n\n"}}
    codex = {"agent": "codex", "mode": "default"}
    run = run_of(tmp_path, ["update", warning], ["say", "Hello"], subject=codex)
    assert run.final_answer == "Hello"
    assert notes_of(run) == [("message", "Warning: unknown model")]


@pytest.mark.parametrize("agent", ["claude-code", "codex", "qwen"])
def test_agents_that_list_the_tools_late_are_asked_only_when_they_have_listed_them(tmp_path: Path, agent: str) -> None:
    preset = {"agent": agent, "mode": "default"}
    run = run_of(tmp_path, OSLO, ["say", "."], options=["--late"], subject=preset)
    assert calls_of(run) == [("get_weather", {"city": "Oslo"})]
    assert not notes_of(run)


def test_an_agent_that_answers_without_a_call_and_listed_the_tools_after_its_prompt_is_doubted(tmp_path: Path) -> None:
    """It may have listed them before it asked its model, so the run is graded."""
    [result] = report_of(tmp_path, OSLO, options=["--late"], ordered=[{"tool": "get_weather"}]).results
    assert result.status == "failed"
    text = "the agent listed the tools of workbench after it got its prompt, so its model may have had none of them"
    assert notes_of(result.trajectory) == [("message", text)]


@pytest.mark.parametrize(
    ("actions", "case", "is_doubted"),
    [
        ([["say", "Rain."]], {"ordered": [{"tool": "get_weather"}]}, True),
        ([["say", "Rain."]], {"response_contains": ["Sun"]}, False),
        ([OSLO, ["say", "Rain."]], {"ordered": [{"tool": "send"}]}, False),
    ],
)
def test_the_report_of_an_agent_without_a_call_says_that_its_model_may_lack_the_tools(
    tmp_path: Path, actions: Any, case: Any, is_doubted: bool
) -> None:
    report = report_of(tmp_path, *actions, **case)
    assert [result.status for result in report.results] == ["failed"]
    [line] = agent_lines(report.results)
    doubt = "no call arrived, which also happens if an agent does not offer the tools to its model"
    assert (doubt in line) == is_doubted


@pytest.mark.parametrize("builtin", get_args(BuiltIn))
def test_qwen_offers_the_tools_themselves_and_asks_no_permission_for_them(tmp_path: Path, builtin: BuiltIn) -> None:
    """Version 0.15 offers the tools if its search tool is excluded, and asks for permissions without a tool's name.

    Later versions open a session before the tools are offered, unless a variable is set."""
    wanted = SetupRequest(Subject(agent="qwen", builtin=builtin), None, ("shop", "workbench"), tmp_path)
    setup = set_up(wanted, tmp_path / "home", {"OPENAI_API_KEY": "sk-1"}, (), Secrets())
    made = json.loads((tmp_path / "home/.qwen/settings.json").read_text(encoding="utf-8"))
    assert made["tools"]["toolSearch"] == {"enabled": False}
    assert "tool_search" in made["tools"]["exclude"]
    assert ("run_shell_command" in made["tools"]["exclude"]) == (builtin == "off")
    assert made["permissions"] == {"allow": ["mcp__shop", "mcp__workbench"]}
    assert setup.environment["QWEN_CODE_LEGACY_MCP_BLOCKING"] == "1"


def test_qwen_is_given_a_description_of_every_tool(tmp_path: Path) -> None:
    """Version 0.15 does not offer a tool without one to its model."""
    actions = [["describe"]]
    assert run_of(tmp_path, *actions).final_answer == "get_weather, send"
    qwen = {"agent": "qwen", "mode": "default"}
    assert run_of(tmp_path, *actions, subject=qwen).final_answer == "get_weather: get_weather, send: send"


@pytest.mark.usefixtures("soon_killed")
@pytest.mark.parametrize("options", [[], ["--deaf"]])
def test_a_hanging_agent_ends_with_all_its_processes_when_its_time_is_over(
    tmp_path: Path, options: list[str], own_temporary_folder: Path
) -> None:
    [result] = report_of(
        tmp_path, ["spawn", str(tmp_path / "pids")], ["hang"], options=options, subject={"timeout_s": 1.5}
    ).results
    assert result.status == "error"
    assert "raise subject.timeout_s" in (result.error or "")
    pids = [int(word) for word in (tmp_path / "pids").read_text(encoding="utf-8").split()]
    asyncio.run(becomes_true(lambda: not any(map(is_running, pids))))
    assert not [*own_temporary_folder.iterdir()]


def test_two_sessions_at_once_keep_their_calls(tmp_path: Path) -> None:
    path = suite_of(tmp_path)
    cases = []
    for number in range(2):
        actions = [["call", "get_weather", {"city": f"C{number}-{each}"}] for each in range(5)]
        cases.append({"name": f"Case {number}", "user": f"Do {json.dumps([*actions, ['result']])}"})
    subject = {"acp": ["python", str(AGENT)], "builtin": "forbid"}
    path.write_text(suite_text({**SUITE, "subject": subject, "cases": cases}), encoding="utf-8")
    report = workbench.evaluate(path, approve=workbench.ALL, concurrency=2)
    for number, result in enumerate(report.results):
        cities = [call.arguments["city"] for call in result.trajectory.calls]
        assert cities == [f"C{number}-{each}" for each in range(5)]
        assert result.trajectory.final_answer == f"rain in C{number}-4"


@pytest.mark.parametrize("again", range(5))
async def test_stopping_cancels_the_prompt_and_leaves_nothing_behind(
    tmp_path: Path, own_temporary_folder: Path, again: int
) -> None:
    path = suite_of(tmp_path, ["spawn", str(tmp_path / "pids")], OSLO, ["hang", str(tmp_path / "told")])
    planned = plan(RunOptions(suites=(path,)), program_of(tmp_path / "home"))
    async with Evaluation(planned, needs_of_plan(planned).approved()) as evaluation:
        async for event in evaluation:
            if isinstance(event, RunEvent) and isinstance(event.event.payload, ResultReceived):
                evaluation.stop()
                # A second stop must not interrupt the end of the agent, at whichever step it is.
                for _ in range(again * 10):
                    await asyncio.sleep(0)
                break
    report = await evaluation.report()
    assert [result.status for result in report.results] == ["stopped"]
    assert (tmp_path / "told").read_text(encoding="utf-8") == "cancelled"
    pids = [int(word) for word in (tmp_path / "pids").read_text(encoding="utf-8").split()]
    await becomes_true(lambda: not any(map(is_running, pids)))
    assert not [*own_temporary_folder.iterdir()]


def test_a_killed_workbench_takes_the_agent_with_it(tmp_path: Path) -> None:
    path = suite_of(tmp_path, ["spawn", str(tmp_path / "pids")], ["hang"], options=["--deaf"])
    script = f"import workbench; workbench.evaluate({str(path)!r}, approve=workbench.ALL)"
    program = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT)
    asyncio.run(becomes_true((tmp_path / "pids").exists, within_s=60))
    program.send_signal(signal.SIGKILL)
    program.wait()
    pids = [int(word) for word in (tmp_path / "pids").read_text(encoding="utf-8").split()]
    asyncio.run(becomes_true(lambda: not any(map(is_running, pids)), within_s=60))


def test_the_relay_serves_only_those_who_know_the_token_of_the_run(tmp_path: Path) -> None:
    assert run_of(tmp_path, ["stranger"]).final_answer == "no answer"


def test_keys_are_redacted_in_all_that_an_agent_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-agent-4711-secret-key"
    monkeypatch.setenv("AGENT_KEY", key)
    told: list[list[Any]] = [
        ["plan", key],
        ["raw", key],
        ["own", key, {"k": key}, key],
        ["ask", key],
        ["env", "AGENT_KEY"],
    ]
    path = suite_of(tmp_path, *told, subject={"env": {"AGENT_KEY": "$AGENT_KEY"}})
    report = workbench.evaluate(path, approve=workbench.ALL, record=tmp_path / "recordings")
    [recording] = (tmp_path / "recordings").iterdir()
    assert len(report.results) == 1
    text = recording.read_text(encoding="utf-8").partition("\n")[2]
    assert (key in text, text.count("$AGENT_KEY") > 5) == (False, True)


def setup_of(folder: Path, agent: Any, environment: dict[str, str], secrets: Secrets | None = None) -> Setup:
    wanted = SetupRequest(Subject(agent=agent), None, ("office",), folder)
    return set_up(wanted, folder / "home", environment, (), secrets or Secrets())


@pytest.mark.parametrize(
    ("environment", "url", "key"),
    [
        ({"OPENAI_API_KEY": "sk-1"}, "https://api.openai.com/v1", "OPENAI_API_KEY"),
        ({"CODEX_API_KEY": "sk-1", "OPENAI_BASE_URL": "http://here/v1"}, "http://here/v1", "CODEX_API_KEY"),
    ],
)
def test_codex_takes_a_key_of_the_environment_for_its_login(
    tmp_path: Path, environment: dict[str, str], url: str, key: str
) -> None:
    setup_of(tmp_path, "codex", environment)
    written = tomllib.loads((tmp_path / "home/.codex/config.toml").read_text(encoding="utf-8"))
    provider = written["model_providers"][written["model_provider"]]
    assert (provider["base_url"], provider["env_key"]) == (url, key)


def test_opencode_sends_nothing_to_models_that_the_user_has_not_chosen(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match="has no model: set the key of a provider, such as ANTHROPIC_API_KEY"):
        setup_of(tmp_path, "opencode", {})

    def config_of(**environment: str) -> Any:
        return json.loads(setup_of(tmp_path, "opencode", environment).environment["OPENCODE_CONFIG_CONTENT"])

    assert config_of(ANTHROPIC_API_KEY="sk-1")["disabled_providers"] == ["opencode"]
    chosen = json.dumps({"model": "opencode/big-pickle"})
    assert "disabled_providers" not in config_of(OPENCODE_CONFIG_CONTENT=chosen)


def test_opencode_reads_no_instructions_above_its_folder(tmp_path: Path) -> None:
    """In an empty folder it reads none; a copied folder, whose instructions count, is the root of a repository."""
    for copied in (None, "shop"):
        work = tmp_path / str(copied) / "work"
        work.mkdir(parents=True)
        wanted = SetupRequest(Subject(agent="opencode", folder=copied), None, (), tmp_path)
        made = set_up(wanted, work.parent / "home", {"OPENAI_API_KEY": "sk-1"}, (), Secrets())
        assert ("OPENCODE_DISABLE_PROJECT_CONFIG" in made.environment) == (copied is None)
        assert (work / ".git" / "HEAD").exists() == (copied is not None)


def test_keys_are_secret_and_models_and_addresses_are_not(tmp_path: Path) -> None:
    options = {"apiKey": "key-4711-a", "headers": {"Authorization": "Bearer key-4711-b"}, "baseURL": "http://here/v1"}
    config = json.dumps({"model": "shop/large", "provider": {"shop": {"options": options}}})
    secrets = Secrets()
    environment = {
        "OPENCODE_CONFIG_CONTENT": config,
        "OPENAI_API_KEY": "key-4711-c",
        "OPENAI_BASE_URL": "http://here/v1",
    }
    setup_of(tmp_path, "opencode", environment, secrets)
    said = "key-4711-a key-4711-b key-4711-c shop/large http://here/v1"
    shown = "$OPENCODE_CONFIG_CONTENT $OPENCODE_CONFIG_CONTENT $OPENAI_API_KEY shop/large http://here/v1"
    assert secrets.redact(said) == shown
