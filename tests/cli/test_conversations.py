"""Whole runs with scripted users: the messages, the ends of runs, and the grades."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conversations import SCRIPTED, Script, agent, desk, run, said_in
from tests.providers.server import Answer, Call, said

ALL = ["I want to cancel an order.", "It is A17.", "Yes, please cancel it.", "Thanks, bye."]
OTHERWISE = "I don't know. Please go on with what you have."


def test_each_message_is_said_once_its_condition_holds(tmp_path: Path) -> None:
    with desk(tmp_path) as (program, _):
        [made] = run(program)
        assert (made["status"], made["finish"], said_in(made)) == ("passed", "user done", ALL)
        assert [each["turn"] for each in made["rounds"]] == [1, 2, 2, 3, 3, 4]
        assert [(turn["by"], turn["message"]) for turn in made["user_turns"]][:3] == [
            ("script", None),
            ("script", "number"),
            ("script", "yes"),
        ]
        assert made["score"] is None
        lines = program.run("run", "desk.toml", "--model", "agent", "--trust").stdout
        assert "» Yes, please cancel it." in lines and "» user ended: done" in lines


def silent(_body: Mapping[str, Any]) -> Answer:
    return said("openai", "What colour is it?")


def busy(_body: Mapping[str, Any]) -> Answer:
    return said("openai", "", [Call("get_order", {"order": "A17"})])


def hasty(body: Mapping[str, Any]) -> Answer:
    last = body["messages"][-1]
    if last["role"] == "tool":
        return said("openai", "Done. 47.50 is paid back.")
    return said("openai", "", [Call("cancel_order", {"order": "A17"})])


ORDERED = """\
ordered = [{ tool = "get_order" }, { tool = "cancel_order", after_message = "yes" }]

[cases.user]
"""


def early(body: Mapping[str, Any]) -> Answer:
    """Name the amount only before the order is cancelled."""
    last = body["messages"][-1]
    if last["role"] == "tool" and "cancelled" not in last["content"]:
        return said("openai", "It is open, 47.50. Shall I cancel it?")
    return agent(body, names_amount=False)


@pytest.mark.parametrize(
    ("model", "changed", "finish", "kinds"),
    [
        (partial(agent, names_amount=False), {}, "user done", {"not said"}),
        (early, {}, "user done", {"not said"}),
        (partial(agent, asks=False), {}, "user done", {"wrong change"}),
        (partial(agent, asks=False), {"[cases.user]\n": ORDERED}, "user done", {"wrong order"}),
        (hasty, {}, "user done", {"wrong change"}),
        (silent, {}, "user gave up", {"missing change", "not said", "final state", "user gave up"}),
        (silent, {"max_turns = 6": "max_turns = 2"}, "turns exhausted", {"turns exhausted", "missing change"}),
        (busy, {}, "rounds exhausted", {"rounds exhausted", "missing change"}),
    ],
    ids=[
        "no amount",
        "amount too early",
        "never asks",
        "a call too early",
        "before the yes",
        "fits nothing",
        "too many turns",
        "too many rounds",
    ],
)
def test_a_bad_agent_fails_for_its_own_reason(
    tmp_path: Path, model: Script, changed: dict[str, str], finish: str, kinds: set[str]
) -> None:
    cases = SCRIPTED
    for old, new in changed.items():
        cases = cases.replace(old, new)
    with desk(tmp_path, cases, agent=model) as (program, _):
        [made] = run(program, expected=1)
    assert (made["status"], made["finish"]) == ("failed", finish)
    assert kinds <= {issue["kind"] for issue in made["grades"][0]["issues"]}


def test_a_user_whom_nothing_fits_says_so_twice_and_gives_up_with_the_answer(tmp_path: Path) -> None:
    with desk(tmp_path, agent=silent) as (program, _):
        [made] = run(program, expected=1)
    assert said_in(made) == [ALL[0], OTHERWISE, OTHERWISE]
    [issue] = [issue for issue in made["grades"][0]["issues"] if issue["kind"] == "user gave up"]
    assert issue["why"] == 'no message of the script fits in turn 4 after the answer "What colour is it?"'


def test_turns_that_run_out_after_all_was_done_are_an_error_of_the_user(tmp_path: Path) -> None:
    endless = SCRIPTED.replace("max_turns = 6", "max_turns = 3")
    with desk(tmp_path, endless) as (program, _):
        [made] = run(program, expected=3)
    assert (made["status"], made["finish"], made["error_kind"]) == ("error", "turns exhausted", "user")
    assert "went on after everything was done" in made["error"]


@pytest.mark.parametrize(
    "stop", ['{ called = ["cancel_order"] }', '{ answer = { contains = "47.50" } }'], ids=["called", "answer"]
)
def test_a_rule_stops_the_conversation(tmp_path: Path, stop: str) -> None:
    cases = SCRIPTED.replace("max_turns = 6", f"stop = {stop}")
    with desk(tmp_path, cases) as (program, _):
        [made] = run(program, expected=int("called" in stop))
    assert (made["finish"], said_in(made)) == ("stopped by rule", ALL[:3])


@pytest.mark.parametrize(
    ("expectation", "status"),
    [
        ('ordered = [{ tool = "get_order", args = { order = "A17" } }]', "passed"),
        ('ordered = [{ tool = "get_order", args = { order = "A18" } }]', "failed"),
        ('ordered = [{ tool = "cancel_order" }]', "failed"),
        ('disallowed = [{ tool = "get_order" }]', "failed"),
        ('disallowed = [{ tool = "cancel_order" }]', "passed"),
        ('response = { contains = "Shall I" }', "passed"),
        ('response = { contains = "Goodbye" }', "failed"),
    ],
)
def test_a_turn_is_graded_by_its_own_expectations(tmp_path: Path, expectation: str, status: str) -> None:
    cases = SCRIPTED.replace('id = "number"', f'id = "number"\n{expectation}')
    with desk(tmp_path, cases) as (program, _):
        [made] = run(program, expected=int(status == "failed"))
    issues = [issue["why"] for issue in made["grades"][0]["issues"] if issue["kind"] == "failed turn"]
    assert (made["status"], len(issues)) == (status, int(status == "failed"))
    assert all(why.startswith("turn 2: ") and "the case" not in why for why in issues)


def test_limits_of_calls_and_rounds_are_those_of_each_turn(tmp_path: Path) -> None:
    with desk(tmp_path, SCRIPTED.replace("[cases.user]", "limits = { max_rounds = 2 }\n\n[cases.user]")) as (
        program,
        _,
    ):
        assert run(program)[0]["status"] == "passed"
    limited = SCRIPTED.replace("[cases.user]", "limits = { max_tool_calls = 1 }\n\n[cases.user]")
    with desk(tmp_path / "calls", limited) as (program, _):
        [made] = run(program)
    assert "over calling" not in {issue["kind"] for issue in made["grades"][0]["issues"]}


def test_a_recorded_conversation_replays_without_a_model(tmp_path: Path) -> None:
    with desk(tmp_path) as (program, server):
        [first] = run(program, "--record", "runs")
        asked = len(server.requests)
        [again] = run(program, "--model", "replay:runs")
        assert len(server.requests) == asked
    assert (said_in(again), again["status"]) == (said_in(first), "passed")
