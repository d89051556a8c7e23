"""Conversations with agents of a user's own: in Python, over ACP, and as a program that gets one request."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import workbench
from tests.cli.conversations import DESK, HEAD
from workbench.grading.grade import RunResult

SYSTEM = 'system = "You are the returns desk. Ask before you change anything."\n'
ACP_AGENT = Path(__file__).parent / "agents" / "agent.py"

PYTHON_AGENT = """
import workbench

ASKED = []


def agent(request):
    last = request.messages[-1]
    if last.role == "tool":
        return "Done. 47.50 is paid back." if "cancelled" in last.content else "It is open. Shall I cancel it?"
    ASKED.append(last.content)
    said = [each.content for each in request.messages if each.role == "user"]
    assert said == ASKED, (said, ASKED)
    tool = {1: None, 2: "get_order", 3: "cancel_order", 4: None}[len(said)]
    if tool is None:
        return "Which order is it?" if len(said) == 1 else "Goodbye."
    return workbench.call(tool, order="A17")
"""


def result_of(folder: Path, subject: str, messages: list[str]) -> RunResult:
    """Return the run of a conversation between a subject and a user with these messages."""
    said = ""
    for number, message in enumerate(messages):
        last = 'end = "done"\n' if number == len(messages) - 1 else ""
        said += f"[[cases.user.messages]]\nid = \"m{number}\"\nsay = '{message}'\n{last}\n"
    final = 'changes = [{ tool = "cancel_order", args = { order = "A17" }, after_message = "m2" }]\n'
    final += 'says = [{ text = "47.50", after_tool = "cancel_order" }]\n'
    cases = f'[[cases]]\nname = "Cancel"\n\n[cases.user]\n{said}[cases.final]\n{final}'
    (folder / "desk.toml").write_text(f"{HEAD.replace(SYSTEM, '')}\n{subject}\n{cases}", encoding="utf-8")
    (folder / "desk.py").write_text(DESK, encoding="utf-8")
    (folder / "own.py").write_text(PYTHON_AGENT, encoding="utf-8")
    [result] = workbench.evaluate(folder / "desk.toml", approve=workbench.ALL).results
    return result


def words_and_turns(result: RunResult) -> list[tuple[int | None, str]]:
    return [(round_.turn, round_.text) for round_ in result.trajectory.rounds if not round_.calls]


def test_a_python_subject_goes_on_turn_by_turn_with_all_messages_before(tmp_path: Path) -> None:
    words = ["Cancel it.", "It is A17.", "Yes.", "Bye."]
    result = result_of(tmp_path, '[subject]\npython = "own:agent"', words)
    assert result.status == "passed", result.error
    assert result.trajectory.finish_reason == "user done"
    assert words_and_turns(result) == [
        *((1, "Which order is it?"), (2, "It is open. Shall I cancel it?")),
        *((3, "Done. 47.50 is paid back."), (4, "Goodbye.")),
    ]


def test_an_agent_over_acp_gets_each_message_as_a_prompt_of_one_session(tmp_path: Path) -> None:
    order = {"order": "A17"}
    turns: list[list[Any]] = [
        [["say", "Which order is it?"]],
        [["call", "get_order", order], ["say", "Shall I?"]],
        [["call", "cancel_order", order], ["say", "Done. 47.50"]],
        [["say", "Goodbye."]],
    ]
    subject = f"[subject]\nacp = {json.dumps(['python', str(ACP_AGENT)])}\nbuiltin = 'forbid'"
    result = result_of(tmp_path, subject, [json.dumps(actions) for actions in turns])
    assert result.status == "passed", result.error
    assert result.trajectory.finish_reason == "user done"
    assert words_and_turns(result) == [(1, "Which order is it?"), (2, "Shall I?"), (3, "Done. 47.50"), (4, "Goodbye.")]


def test_a_program_that_gets_one_request_is_refused(tmp_path: Path) -> None:
    result = result_of(
        tmp_path, '[subject]\ncommand = ["python", "own.py"]', ["Cancel it.", "It is A17.", "Yes.", "Bye."]
    )
    assert result.status == "error"
    assert "cannot hold a conversation, because a program gets one request: write the" in (result.error or "")
