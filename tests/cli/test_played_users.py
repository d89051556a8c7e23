"""Users played by a model with planted habits: requests, refusals, costs and replays."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cli.conversations import PLAYED, Script, agent, desk, leave, player, run, said_in, say, texts
from tests.example_counts import examples
from tests.providers.server import Answer, Call, document, error_document, said


def test_a_good_player_is_told_no_more_than_it_may_know(tmp_path: Path) -> None:
    asked: list[str] = []

    def listening(body: Mapping[str, Any]) -> Answer:
        asked.append(texts(body))
        return player(body)

    with desk(tmp_path, PLAYED, player=listening) as (program, _):
        [made] = run(program)
    assert said_in(made) == ["Hello, I changed my mind.", "it is A17.", "yes please"]
    assert (made["status"], made["finish"]) == ("passed", "user done")
    assert made["user_turns"][1]["released"] == ["name", "order"]
    assert made["user_turns"][-1]["why"] == "the order is cancelled"
    assert not any(
        "ann@example.com" in text or "get_order" in text or "open" in text.split("It is")[0] for text in asked
    )
    # Three answers of the player with 18 tokens each at 2 dollars per million. The model's figures are separate.
    assert (made["user_requests"], made["user_tokens"]["input_tokens"]) == (3, 33)
    assert made["user_cost_usd"] == pytest.approx(3 * 18 * 2 / 1e6)
    assert made["cost_usd"] == pytest.approx(5 * 18 / 1e6)
    assert made["latency_ms"] == pytest.approx(sum(each["latency_ms"] for each in made["rounds"]))


def test_a_player_hears_answers_in_words_and_no_text_beside_a_call(tmp_path: Path) -> None:
    asked: list[str] = []

    def thinking(body: Mapping[str, Any]) -> Answer:
        if "a17" in body["messages"][-1]["content"].lower() and body["messages"][-1]["role"] == "user":
            return said("openai", "I look it up first.", [Call("get_order", {"order": "A17"})])
        return agent(body)

    def listening(body: Mapping[str, Any]) -> Answer:
        asked.append(texts(body))
        return player(body)

    with desk(tmp_path, PLAYED, agent=thinking, player=listening) as (program, _):
        [made] = run(program)
    assert made["status"] == "passed" and "I look it up first." in {each["text"] for each in made["rounds"]}
    assert "Shall I cancel it?" in asked[-1] and not any("look it up" in text for text in asked)


def once(first: Answer, body: Mapping[str, Any]) -> Answer:
    """Return a first answer with a mistake, which the player corrects after the complaint."""
    return player(body) if "This was not sent" in texts(body) or "Which order" not in texts(body) else first


def always(answer: Answer, body: Mapping[str, Any]) -> Answer:
    return answer


FAULTS = [
    (say("My number is B99."), "invented", "B99"),
    (say("I am ann@example.com"), "told early", "ann@example.com"),
    (say(" "), "empty", ""),
    (said("openai", ""), "empty", ""),
    (say("How can I help you?"), "spoke as the assistant", ""),
    (say("Hello, I changed my mind."), "twice word for word", ""),
    (leave("bored"), "unknown end", ""),
    (said("openai", "I would say that it is A17."), "no message", ""),
]


@pytest.mark.parametrize(
    ("slip", "fault", "detail"), FAULTS, ids=[f"{fault}-{n}" for n, (_, fault, _) in enumerate(FAULTS)]
)
def test_a_slip_is_mended_before_it_is_sent(tmp_path: Path, slip: Answer, fault: str, detail: str) -> None:
    with desk(tmp_path, PLAYED, player=partial(once, slip)) as (program, _):
        [made] = run(program)
        assert (made["status"], said_in(made)[1:]) == ("passed", ["it is A17.", "yes please"])
        [refused] = made["user_turns"][1]["refused"]
        assert (refused["fault"], refused["detail"]) == (fault, detail)
        shown = program.run("run", "desk.toml", "--model", "agent", "--trust", "-v").stdout
    assert "it is A17.  (played · 2nd try)" in shown


@pytest.mark.parametrize(
    ("slip", "fault", "detail"), FAULTS[:5], ids=["invented", "early", "blank", "silent", "assistant"]
)
def test_a_lasting_fault_is_an_error_of_the_user(tmp_path: Path, slip: Answer, fault: str, detail: str) -> None:
    with desk(tmp_path, PLAYED, player=partial(always, slip)) as (program, server):
        [made] = run(program, "--record", "runs", expected=3)
        asked = len(server.requests)
        [again] = run(program, "--model", "replay:runs", expected=3)
        assert len(server.requests) == asked
        shown = program.run("history", "show", "1", "--run", "1").stdout
    told = f' "{detail}"' if detail else ""
    assert shown.count(f"user, not sent, {fault}{told}:") == 3
    assert made["error"] == f"the simulated user broke its rules in turn 2, three times: {fault}{told}"
    assert (made["status"], made["error_kind"], made["finish"]) == ("error", "user", "user error")
    assert again["error"] == made["error"] and again["user_turns"] == made["user_turns"]


def test_a_message_may_be_in_a_call_that_the_endpoint_left_in_the_text(tmp_path: Path) -> None:
    def as_text(body: Mapping[str, Any]) -> Answer:
        if "Which order" not in texts(body) or "Shall I" in texts(body):
            return player(body)
        return said("openai", '<tool_call>{"name": "say", "arguments": {"text": "it is A17."}}</tool_call>')

    with desk(tmp_path, PLAYED, player=as_text) as (program, _):
        [made] = run(program)
    assert (made["status"], said_in(made)[1], made["user_turns"][1]["refused"]) == ("passed", "it is A17.", [])


def test_an_ordinal_is_its_number(tmp_path: Path) -> None:
    goal = PLAYED.replace("Get the order cancelled", "Fly on May 2024 and get the order cancelled")

    def dated(body: Mapping[str, Any]) -> Answer:
        return say("On 2024th, it is A17.") if "Shall I" not in texts(body) else player(body)

    with desk(tmp_path, goal, player=dated) as (program, _):
        assert run(program)[0]["user_turns"][1]["refused"] == []


def test_a_message_with_an_end_is_still_answered_calls_included(tmp_path: Path) -> None:
    def leaving(body: Mapping[str, Any]) -> Answer:
        return say("Yes, do it. Bye", "done") if "Shall I" in texts(body) else player(body)

    with desk(tmp_path, PLAYED, player=leaving) as (program, _):
        [made] = run(program)
    assert (made["status"], made["finish"]) == ("passed", "user done")
    assert made["rounds"][-2]["calls"][0]["tool"] == "cancel_order"


def test_a_player_that_gives_up_is_graded_with_an_issue(tmp_path: Path) -> None:
    with desk(tmp_path, PLAYED, player=partial(always, leave("gave up", "nobody helps"))) as (program, _):
        [made] = run(program, expected=1)
    issues = {issue["kind"]: issue["why"] for issue in made["grades"][0]["issues"]}
    assert (made["status"], made["finish"], issues["user gave up"]) == ("failed", "user gave up", "nobody helps")


def test_a_failed_run_names_the_facts_for_which_nobody_asked(tmp_path: Path) -> None:
    def vague(_body: Mapping[str, Any]) -> Answer:
        return said("openai", "What is the matter?")

    def patient(body: Mapping[str, Any]) -> Answer:
        return leave("gave up") if texts(body).count("Assistant:") > 1 else say("I want my money back.")

    with desk(tmp_path, PLAYED, agent=vague, player=patient) as (program, _):
        [made] = run(program, expected=1)
    [issue] = [each for each in made["grades"][0]["issues"] if each["kind"] == "never asked"]
    assert issue["why"] == 'the user was never asked for "order" and "mail": no answer met their `when`'


def test_a_model_without_tools_plays_in_json(tmp_path: Path) -> None:
    def plain(body: Mapping[str, Any]) -> Answer:
        if body.get("tools"):
            return document(error_document("openai", "this model does not support tools"), 400)
        heard = texts(body)
        if "Done." in heard:
            return said("openai", '{"leave": "done", "why": "paid back"}')
        return said("openai", '{"say": "yes please"}' if "Shall I" in heard else '{"say": "it is A17."}')

    with desk(tmp_path, PLAYED, player=plain) as (program, _):
        [made] = run(program)
    assert (made["status"], said_in(made)[-1]) == ("passed", "yes please")


def test_a_player_that_does_not_answer_is_an_error_of_the_user(tmp_path: Path) -> None:
    broken = document(error_document("openai", "no such model"), 404)
    with desk(tmp_path, PLAYED, player=partial(always, broken)) as (program, _):
        [made] = run(program, expected=3)
    assert made["error"].startswith("the user's model did not answer: ") and made["error_kind"] == "user"


def test_a_rerun_pays_for_the_player_only_from_its_first_difference(tmp_path: Path) -> None:
    with desk(tmp_path, PLAYED) as (program, server):
        run(program)
        [again] = run(program)
        assert (again["user_requests"], again["user_cost_usd"], again["status"]) == (0, 0, "passed")
        [twice, _] = run(program, "--repeats", "2")
        players = [each for each in server.requests if each.json["model"] == "player"]
    # The second repeat has another user.
    assert (twice["user_requests"], len(players)) == (0, 6)


@pytest.mark.parametrize(
    ("changed", "words", "player", "paid"),
    [
        ("max_turns = 6\nvary = false", ("--repeats", "2"), player, [0, 0]),
        ("max_turns = 6", ("--repeats", "2"), player, [0, 3]),
        # A refused message is cached. An answer without a message is not: one in each of three turns.
        ("max_turns = 6", (), partial(once, FAULTS[0][0]), [0]),
        ("max_turns = 6", (), partial(once, FAULTS[7][0]), [3]),
    ],
    ids=["never varies", "varies", "refused", "no message"],
)
def test_a_second_batch_asks_the_player_for_what_was_not_remembered(
    tmp_path: Path, changed: str, words: tuple[str, ...], player: Script, paid: list[int]
) -> None:
    with desk(tmp_path, PLAYED.replace("max_turns = 6", changed), player=player) as (program, _):
        run(program)
        assert [each["user_requests"] for each in run(program, *words)] == paid


@pytest.mark.parametrize(("place", "kept"), [("nowhere", 3), ("question", 0), ("answer", 0)])
def test_no_secret_is_remembered_with_the_answers_of_a_player(tmp_path: Path, place: str, kept: int) -> None:
    secret = "correct-horse-battery-staple"
    goal = f"My word is {secret}. Get" if place == "question" else "Get"

    def telling(body: Mapping[str, Any]) -> Answer:
        if place == "answer" and "Shall I" not in texts(body):
            return say(f"it is A17, {secret}.")
        return player(body)

    with desk(tmp_path, PLAYED.replace("Get", goal), player=telling) as (program, _):
        program.write(".env", f"DESK_TOKEN={secret}\n")
        run(program)
    lines = [line for file in tmp_path.rglob("user_messages.jsonl") for line in file.read_bytes().splitlines()]
    assert len(lines) == kept


def test_the_model_of_the_user_is_chosen_on_the_command_line(tmp_path: Path) -> None:
    with desk(tmp_path, PLAYED.replace('model = "player"\n', "")) as (program, server):
        [made] = run(program, "--user-model", "player")
        assert made["status"] == "passed"
        asked = len(server.requests)
        without = program.run("run", "desk.toml", "--model", "agent", "--trust", "--repeats", "3")
        assert len(server.requests) == asked
        offline = program.run("run", "desk.toml", "--model", "agent", "--user-model", "offline")
    assert (without.returncode, without.stdout) == (2, "")
    assert without.stderr.count("no model plays the user: give --user-model MODEL") == 1
    assert 'cases: "Impatient"' in without.stderr
    assert offline.returncode == 2 and "cannot play a user" in offline.stderr


def test_recorded_users_speak_while_the_model_is_live(tmp_path: Path) -> None:
    with desk(tmp_path, PLAYED, agent=partial(agent, names_amount=False)) as (program, server):
        run(program, "--record", "runs", expected=1)
        before = [each.json["model"] for each in server.requests]
        [made] = run(program, "--user", "replay:runs", expected=1)
        after = [each.json["model"] for each in server.requests][len(before) :]
        assert set(after) == {"agent"} and said_in(made)[1:] == ["it is A17.", "yes please"]
        for user, why in (("player", "--user must name recordings"), ("replay:nowhere", "nowhere")):
            wrong = program.run("run", "desk.toml", "--model", "agent", "--user", user)
            assert (wrong.returncode, wrong.stdout) == (2, "") and why in wrong.stderr


def test_a_model_that_takes_another_way_leaves_the_recording(tmp_path: Path) -> None:
    with desk(tmp_path, PLAYED.replace("max_turns = 6", "max_turns = 2")) as (program, _):
        run(program, "--record", "runs", expected=1)
    with desk(tmp_path, PLAYED) as (program, _):
        [made] = run(program, "--user", "replay:runs", expected=3)
    assert made["error"] == "the recording has no message of the user for turn 3, because the model answers differently"


def test_a_judge_takes_the_side_of_the_model_where_the_user_was_at_fault(tmp_path: Path) -> None:
    judged = json.dumps({"mark": "MARK-OF-QUESTION", "rationale": "the user refused for no reason", "holds": False})

    def script(body: Mapping[str, Any]) -> Answer:
        return said("openai", judged) if "CRITERIA" in texts(body) else leave("gave up")

    reviewed = PLAYED.replace("max_turns = 6", 'max_turns = 6\nreview = "failed"')
    with desk(tmp_path, reviewed, player=script) as (program, _):
        [made] = run(program, "--judge", "player", expected=3)
    assert (made["status"], made["error_kind"]) == ("error", "user")
    assert made["error"] == "the simulated user broke its instructions: the user refused for no reason"


BROKEN = document(error_document("openai", "no such model"), 404)


@pytest.mark.parametrize(
    ("most", "agent", "expected"),
    [("0.5", agent, 0), ("0.4", agent, 1), ("1.0", partial(always, BROKEN), 3)],
    ids=["within", "above", "the endpoint fails too"],
)
def test_a_gate_bounds_the_share_of_spoilt_runs(tmp_path: Path, most: str, agent: Script, expected: int) -> None:
    gate = f"\n[gate]\nmax_user_errors = {most}\n{PLAYED}{PLAYED.replace('Impatient', 'Spoilt')}"
    cases = gate.replace("Hello, I changed my mind.", "Hello, I am Spoilt.", 1)

    def script(body: Mapping[str, Any]) -> Answer:
        return say("My number is B99.") if "I am Spoilt" in texts(body) else player(body)

    with desk(tmp_path, cases, agent=agent, player=script) as (program, _):
        run(program, expected=expected)


HABITS: dict[str, Script] = {
    "good": player,
    "invents": partial(always, FAULTS[0][0]),
    "slips": partial(once, FAULTS[0][0]),
    "gives up": partial(always, leave("gave up")),
    "leaves early": lambda body: say("Yes, do it. Bye", "done") if "Shall I" in texts(body) else player(body),
}
AGENTS: dict[str, Script] = {
    "good": agent,
    "hasty": partial(agent, asks=False),
    "silent": lambda _body: said("openai", "Which order is it?"),
}


@settings(max_examples=examples(75), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    habit=st.sampled_from(sorted(HABITS)),
    model=st.sampled_from(sorted(AGENTS)),
    turns=st.integers(1, 5),
    tries=st.integers(1, 3),
)
def test_every_conversation_replays_equal_without_a_model(
    tmp_path_factory: pytest.TempPathFactory, habit: str, model: str, turns: int, tries: int
) -> None:
    cases = PLAYED.replace("max_turns = 6", f"max_turns = {turns}\ntries = {tries}")
    folder = tmp_path_factory.mktemp("desk")
    with desk(folder, cases, agent=AGENTS[model], player=HABITS[habit]) as (program, server):
        first = program.run(
            "run", "desk.toml", "--trust", "-q", "--format", "json", "--model", "agent", "--record", "runs"
        )
        asked = len(server.requests)
        again = program.run("run", "desk.toml", "--trust", "-q", "--format", "json", "--model", "replay:runs")
        assert len(server.requests) == asked
    [then], [now] = json.loads(first.stdout)["runs"], json.loads(again.stdout)["runs"]
    for key in ("status", "finish", "error", "error_kind", "answer", "user_turns", "user_tokens", "user_requests"):
        assert now[key] == then[key], key
    assert [each["text"] for each in now["rounds"]] == [each["text"] for each in then["rounds"]]
    assert first.returncode == again.returncode


def test_the_tokens_and_the_cost_of_the_user_stand_apart_on_every_surface(tmp_path: Path) -> None:
    with desk(tmp_path, PLAYED) as (program, _):
        models = (tmp_path / "workbench.toml").read_text()
        other = models[: models.index("[models.player]")].replace('"agent"', '"other"').replace(".agent", ".other")
        program.write("workbench.toml", models + other)
        both = ["desk.toml", "--model", "agent,other", "--trust"]
        compared = program.run("compare", *both)
        assert compared.returncode == 0, compared.stdout + compared.stderr
        rows = {line[:15].strip(): line[15:].split() for line in compared.stdout.splitlines()}
        # The first of two runs that need the same answer of the player pays for it.
        tokens = [int(shown) for shown in rows["tokens of users"] if shown != "–"]
        assert 54 <= sum(tokens) <= 108 and len(rows["cost of users"]) == 2
        assert "+ user $0.0" in program.run("history", "show", "1").stdout
    with desk(tmp_path / "reports", PLAYED) as (program, _):
        reports = ["--report", "report.xml", "--report", "report.md"]
        assert program.run("run", "desk.toml", "--model", "agent", "--trust", *reports).returncode == 0
        found = (tmp_path / "reports" / "report.xml").read_text()
        assert 'name="user_input_tokens" value="33"' in found and 'name="user_output_tokens" value="21"' in found
        assert "\\$0.000108" in (tmp_path / "reports" / "report.md").read_text()
