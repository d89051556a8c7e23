"""Runs of agents that a person steps through: held at each call, answered by hand, and never asked again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engine.agents.test_agents import OSLO, suite_of
from tests.engine.stepped import Person
from tests.programs import program_of
from tests.tools.processes import becomes_true, is_running
from workbench.engine.breakpoints import breakpoint_of
from workbench.engine.checkpoint import (
    AGENT_NOT_REPEATABLE,
    SKIPPED,
    AddMessage,
    AnswerCall,
    EditArguments,
    EditResult,
    Regenerate,
    SkipCall,
)
from workbench.suite.suite_file import load_suite

CALL: list[list[Any]] = [OSLO, ["result"]]


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    found = Person(program_of(tmp_path / "home", {}))
    yield found
    found.session.close()


def test_a_run_is_held_before_requests_and_calls_and_after_results(person: Person, tmp_path: Path) -> None:
    made = person.run(load_suite(suite_of(tmp_path, *CALL)), "subject")
    assert made.held == ["request 1", "call 1", "result 1", "request 2"]
    assert made.result.trajectory.final_answer == "rain in Oslo"


@pytest.mark.parametrize(
    ("place", "command", "answer", "source"),
    [
        ("call 1", AnswerCall("hail"), "hail", "edited"),
        ("call 1", SkipCall(), SKIPPED, "skipped"),
        ("call 1", EditArguments({"city": "Bergen"}), "rain in Bergen", "suite mock"),
        ("result 1", EditResult("snow", is_error=True), "snow", "suite mock"),
    ],
)
def test_what_a_person_changes_reaches_the_agent(
    person: Person, tmp_path: Path, place: str, command: AnswerCall, answer: str, source: str
) -> None:
    made = person.run(load_suite(suite_of(tmp_path, *CALL)), "subject", {place: [command]})
    run = made.result.trajectory
    assert (run.final_answer, run.touched) == (answer, True)
    assert run.calls[0].arguments == {"city": "Oslo"}
    assert [call.result.source for call in run.calls if call.result is not None] == [source]


def test_an_added_message_is_the_next_prompt_of_the_session(person: Person, tmp_path: Path) -> None:
    more = AddMessage(f"Then {json.dumps([['call', 'send', {}]])}")
    run = person.run(load_suite(suite_of(tmp_path, *CALL)), "subject", {"call 1": [more]}).result.trajectory
    assert [call.tool for call in run.calls] == ["get_weather", "send"]


@pytest.mark.parametrize("place", ["call 1", "result 1"])
def test_an_agent_is_not_asked_again_and_nothing_is_lost(person: Person, tmp_path: Path, place: str) -> None:
    run_id = person.hold(load_suite(suite_of(tmp_path, *CALL)), "subject", place)
    assert person.held_at is not None
    assert person.session.apply_command(run_id, Regenerate(), person.held_at).result(10) == AGENT_NOT_REPEATABLE
    assert person.session.continue_run(run_id, "end", person.held_at).result(10) is None
    [result] = person.finished()
    assert (result.trajectory.final_answer, result.trajectory.touched) == ("rain in Oslo", False)


def test_breakpoints_hold_agents(person: Person, tmp_path: Path) -> None:
    person.session.set_breakpoints((breakpoint_of("tool get_weather"),))
    made = person.run(load_suite(suite_of(tmp_path, ["call", "send", {}], *CALL)), "subject", until="end")
    assert made.held[0] == "call 2"


@pytest.mark.usefixtures("soon_killed")
@pytest.mark.parametrize("place", ["request 1", "call 1", "result 1", "request 2"])
def test_a_held_agent_is_stopped_with_all_its_processes(person: Person, tmp_path: Path, place: str) -> None:
    file = load_suite(suite_of(tmp_path, ["spawn", str(tmp_path / "pids")], *CALL))
    run_id = person.hold(file, "subject", place)
    person.session.stop(run_id)
    [result] = person.finished()
    assert result.status == "stopped"
    pids = (tmp_path / "pids").read_text("utf-8").split() if place != "request 1" else []
    asyncio.run(becomes_true(lambda: not any(is_running(int(pid)) for pid in pids)))
