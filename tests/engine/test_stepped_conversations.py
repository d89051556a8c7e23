"""Conversations that a user steps through and forks: the holds, the speaker in place of the user, and the cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conversations import PLAYED, SCRIPTED, agent, desk, player, say, texts
from tests.engine.stepped import Does, Person, Stepped
from tests.programs import begin, program_of
from tests.providers.server import Answer, Server, said
from workbench.engine.checkpoint import AddMessage, EditMessage, HoldPoint, Regenerate, SayMessage, refusal
from workbench.engine.events import BatchDone, RunDone
from workbench.engine.fork import Fork, ForkPoint, past_holds
from workbench.engine.plan import plan_fork
from workbench.grading.grade import RunResult
from workbench.suite.suite_file import SuiteFile, load_suite
from workbench.trajectory.events import Paused, UserSaid
from workbench.trajectory.fold import fold
from workbench.trajectory.trajectory import Trajectory

SCRIPT = ["I want to cancel an order.", "It is A17.", "Yes, please cancel it.", "Thanks, bye."]


def words_in(trajectory: Trajectory) -> list[str]:
    """The messages of the user."""
    return [turn.said.text for turn in trajectory.user_turns if turn.said is not None]


@contextmanager
def person_at(folder: Path, cases: str = SCRIPTED, **scripts: Any) -> Iterator[tuple[Person, SuiteFile, Server]]:
    """A person at the returns desk."""
    with desk(folder, cases, **scripts) as (_, server):
        person = Person(program_of(folder))
        try:
            yield person, load_suite(folder / "desk.toml"), server
        finally:
            person.session.close()


def stepped(folder: Path, does: Does, cases: str = SCRIPTED, **scripts: Any) -> Stepped:
    with person_at(folder, cases, **scripts) as (person, file, _):
        return person.run(file, "agent", does)


def test_a_run_is_held_before_each_message_of_its_user(tmp_path: Path) -> None:
    run = stepped(tmp_path, {})
    assert [place for place in run.held if place.startswith("user")] == ["user 1", "user 2", "user 4", "user 6"]
    shown = [each.payload.said.text for each in run.events if isinstance(each.payload, Paused) and each.payload.said]
    assert shown == SCRIPT == words_in(run.result.trajectory)
    assert run.result.status == "passed"


@pytest.mark.parametrize("command", [EditMessage("A17, of course."), SayMessage("A17, of course.")], ids=["e", "i"])
def test_a_person_speaks_in_place_of_a_script_which_goes_on_after_its_message(
    tmp_path: Path, command: EditMessage | SayMessage
) -> None:
    run = stepped(tmp_path, {"user 2": [command], "user 1": [AddMessage("Please hurry.")]})
    trajectory = run.result.trajectory
    assert words_in(trajectory) == [SCRIPT[0], "A17, of course.", *SCRIPT[2:]]
    said = trajectory.user_turns[1].said
    assert said is not None and (said.by, said.message, said.original) == ("person", "number", SCRIPT[1])
    assert trajectory.rounds[0].added == ("Please hurry.",)
    assert run.held.count("user 2") == 1 + isinstance(command, EditMessage)
    # The message with the id "yes" is still the one that the change must follow.
    assert run.result.status == "passed"


def test_a_message_said_in_place_of_the_last_one_is_not_the_last_one(tmp_path: Path) -> None:
    run = stepped(tmp_path, {"user 6": [SayMessage("Wait: yes?")]})
    edited = stepped(tmp_path / "edited", {"user 6": [EditMessage("Bye.")]})
    ends = [made.result.trajectory.user_turns[3].said for made in (run, edited)]
    assert [said and said.end for said in ends] == [None, "done"]


def test_a_player_is_asked_for_another_message_and_its_first_one_is_paid_too(tmp_path: Path) -> None:
    def other(body: Mapping[str, Any]) -> Answer:
        return say("A17 it is.") if "another message is wanted" in texts(body) else player(body)

    run = stepped(tmp_path, {"user 2": [Regenerate()]}, PLAYED, player=other)
    turn = run.result.trajectory.user_turns[1]
    assert words_in(run.result.trajectory)[1] == "A17 it is."
    assert [(each.text, each.fault) for each in turn.refused] == [("it is A17.", "asked again")]
    assert (len(turn.requests), run.result.trajectory.user_requests) == (2, 4)
    assert turn.refused[0].cost_usd == pytest.approx(18 * 2 / 1e6)
    assert run.result.status == "passed"


def test_a_player_may_repeat_what_a_person_told_the_agent(tmp_path: Path) -> None:
    def repeating(body: Mapping[str, Any]) -> Answer:
        return say("Yes, B99.") if "Shall I" in texts(body) else player(body)

    run = stepped(tmp_path, {"user 2": [SayMessage("A17, not B99.")]}, PLAYED, player=repeating)
    assert words_in(run.result.trajectory)[1:3] == ["A17, not B99.", "Yes, B99."]
    assert run.result.trajectory.user_turns[2].refused == ()


def test_a_script_is_not_asked_again_and_a_message_needs_a_text() -> None:
    point = HoldPoint("user", 1, lambda: fold(()), user_message=UserSaid(1, "Hello", "script"))
    assert refusal(Regenerate(), point) == "no model plays this user, so its words would be the same"
    assert refusal(Regenerate(), replace(point, can_retry=True)) is None
    assert refusal(SayMessage(" "), point) == "a message to the model needs a text"
    at_request = "the run is held before a request: the user's words can be changed before they are sent"
    assert refusal(EditMessage("Hi"), replace(point, at="request")) == at_request


def forked(person: Person, file: SuiteFile, fork: Fork) -> RunResult:
    assert file.suite is not None
    begin(person.session, [plan_fork(file, file.suite.cases[0], "agent", fork)])
    results = []
    while not isinstance(said := person.said.get(timeout=30), BatchDone):
        if isinstance(said, RunDone):
            results.append(said.result)
    (only,) = results
    return only


@pytest.mark.parametrize(
    ("at", "user", "words", "status"),
    [
        (ForkPoint(1), None, SCRIPT, "passed"),
        (ForkPoint(2), None, SCRIPT, "passed"),
        (ForkPoint(2), "A17!", [SCRIPT[0], "A17!", *SCRIPT[2:]], "passed"),
        (ForkPoint(3), None, SCRIPT, "passed"),
        (ForkPoint(4), "No, leave it.", [*SCRIPT[:2], "No, leave it."], "failed"),
        (ForkPoint(4, 1), None, SCRIPT, "passed"),
    ],
)
def test_a_fork_goes_on_with_the_script_after_its_used_messages(
    tmp_path: Path, at: ForkPoint, user: str | None, words: list[str], status: str
) -> None:
    with person_at(tmp_path) as (person, file, server):
        origin = person.run(file, "agent", until="end").result.trajectory
        asked = len(server.requests)
        fork = forked(person, file, Fork(origin, at, user=user))
        assert words_in(fork.trajectory)[: len(words)] == words
        assert (fork.status, len(server.requests) - asked) == (status, len(fork.trajectory.requested_rounds))
        if user is not None:
            said = next(turn.said for turn in fork.trajectory.user_turns if turn.text == user)
            assert said is not None and said.by == "person" and said.original in SCRIPT


def test_a_fork_of_a_played_user_asks_the_player_only_for_what_follows_with_the_facts_released(
    tmp_path: Path,
) -> None:
    heard: list[str] = []

    def listening(body: Mapping[str, Any]) -> Answer:
        heard.append(texts(body))
        return player(body)

    with person_at(tmp_path, PLAYED, player=listening) as (person, file, _):
        origin = person.run(file, "agent", until="end").result.trajectory
        before = len(heard)
        same = forked(person, file, Fork(origin, ForkPoint(2)))
        assert (words_in(same.trajectory), len(heard)) == (words_in(origin), before), "all answers are kept ones"
        assert same.trajectory.user_cost_usd == 0 and same.status == "passed"
        other = forked(person, file, Fork(origin, ForkPoint(2), user="A17 please"))
    assert words_in(other.trajectory) == ["Hello, I changed my mind.", "A17 please", "yes please"]
    assert len(heard) == before + 2 and all("order: A17" in each and "A17 please" in each for each in heard[before:])
    assert other.status == "passed"


def test_a_person_speaks_on_after_a_user_that_gave_up(tmp_path: Path) -> None:
    def deaf(body: Mapping[str, Any]) -> Answer:
        return agent(body) if "a17" in texts(body).lower() else say_nothing

    say_nothing = said("openai", "What colour is it?")
    with person_at(tmp_path, agent=deaf) as (person, file, _):
        origin = person.run(file, "agent", until="end").result.trajectory
        assert origin.finish is not None and origin.finish.reason == "user gave up"
        fork = forked(person, file, Fork(origin, ForkPoint(len(origin.rounds) + 1), user="It is A17."))
    assert words_in(fork.trajectory)[: len(words_in(origin)) + 1] == [*words_in(origin), "It is A17."]


def test_a_step_back_holds_the_run_before_the_same_message_again(tmp_path: Path) -> None:
    with person_at(tmp_path) as (person, file, _):
        run = person.run(file, "agent")
        hold = next(each for each in past_holds(run.events) if (each.paused.at, each.paused.round) == ("user", 4))
        again = forked_held(person, file, hold.fork())
    assert again.said is not None and (again.at, again.round, again.said.text) == ("user", 4, SCRIPT[2])


def forked_held(person: Person, file: SuiteFile, fork: Fork) -> Paused:
    """Return the first hold of a fork."""
    assert file.suite is not None
    run = plan_fork(file, file.suite.cases[0], "agent", fork)
    begin(person.session, [run], until="stop")
    while True:
        payload = getattr(getattr(person.said.get(timeout=30), "event", None), "payload", None)
        if isinstance(payload, Paused):
            person.session.stop(run.run_id)
            return payload
