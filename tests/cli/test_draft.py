"""`workbench init --draft`: a model drafts the cases of a suite, and only valid ones are written."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.program import Program
from tests.cli.test_init import suite_of
from tests.providers.server import (
    CUT,
    HANG,
    Answer,
    Call,
    Request,
    Server,
    Signal,
    Tell,
    document,
    error_document,
    said,
)
from tests.sampled_rows import first_rows
from tests.tools.web import hosted

SUBMIT = "submit_requests"
SECRET = "planted-51ac07-secret"
ADD = [
    {"user": "How much is 40 plus 2?", "tool": "add", "arguments": {"a": 40, "b": 2}},
    {"user": "how much is 40 plus 2", "tool": "add", "arguments": {"a": 40, "b": 2}},
    {"user": "Sum up one and two.", "tool": "add", "arguments": {"a": "one", "b": 2}},
    {"user": "Take 3 from 9.", "tool": "ad", "arguments": {"a": 9, "b": 3}},
    {"user": "Is 5 and 6 more than ten?", "tool": "add", "arguments": {"a": 5, "b": 6}},
    {"user": "Say 'add 1 and 1' \x1b[31mback to me.", "tool": "echo", "arguments": {"text": {"python": "os:abort"}}},
    {"user": "Say the sum aloud.", "tool": "echo", "arguments": {"text": "any"}, "free": ["text"]},
    {"user": f"Add 1 and {SECRET}.", "tool": "add", "arguments": {"a": 1, "b": 1}},
    {"user": "How much is the root of 16?", "tool": None},
    {"user": "Which is bigger, 3 or 4?", "kind": "near", "tool": "add", "arguments": {"a": 3, "b": 4}},
    "rubbish",
]
DOES = {
    "How much is 40 plus 2?": [Call("add", {"a": 40, "b": 2})],
    "Is 5 and 6 more than ten?": [Call("add", {"a": 6, "b": 5})],
    "Say the sum aloud.": [Call("echo", {"text": "The sum."})],
}


def drafting(asked: Callable[[str], Answer], said_of: Counter[str] | None = None) -> Callable[[Request], Answer]:
    """Return an endpoint that drafts as `asked` decides, and makes the calls of `DOES`."""

    def answer(request: Request) -> Answer:
        user = request.json["messages"][-1]["content"]
        if request.json["tools"][0]["function"]["name"] == SUBMIT:
            return asked(user.rpartition("Write about the tool ")[2].partition(":")[0].strip('"'))
        if said_of is not None:
            said_of[user] += 1
        return said("openai", calls=DOES[user]) if user in DOES else said("openai", "I cannot.")

    return answer


def submitted(*drafts: Any) -> Answer:
    return said("openai", calls=[Call(SUBMIT, {"requests": list(drafts)})])


def words(url: str, endpoint: str, *more: str) -> tuple[str, ...]:
    model = f"openai:m@{endpoint}/v1"
    return ("init", "--url", url, "--trust", "--tool", "add,echo", "-o", "new.toml", "--draft", model, *more)


@pytest.mark.slow
def test_only_drafts_that_hold_are_written_and_each_other_one_is_accounted_for(program: Program) -> None:
    made: Counter[str] = Counter()
    text = "<think>Let me see.</think>\n```json\n" + json.dumps({"requests": []}) + "\n```"
    answers = {"add": submitted(*ADD), "echo": said("openai", text)}
    program = Program(program.folder, {"OPENAI_API_KEY": SECRET})
    with hosted("sdk_workshop") as tools, Server(drafting(answers.__getitem__, made)) as server:
        done = program.run(*words(tools.url, server.url, "--yes"))
        assert done.returncode == 3, done.stderr  # one question came to nothing
        suite = suite_of(program.folder / "new.toml")
        again = program.run(
            "run", "new.toml", "--model", f"openai:m@{server.url}/v1", "-q", "--trust", "--tag", "draft"
        )
    assert "is asked 2 questions, and each draft is run 3 times: up to 26 requests, about" in done.stderr
    assert "cost unknown" in done.stderr
    lines = done.stderr.splitlines()
    assert "not drafted: echo: the list of drafts is empty" in lines
    for line in (
        "dropped 7 drafts:",
        "  add: “how much is 40 plus 2” nearly the same as “How much is 40 plus 2?”",
        '  add: “Sum up one and two.” the schema of add refuses "a"',
        '  add: “Take 3 from 9.” there is no tool "ad": did you mean `add`?',
        "  add: “Say 'add 1 and 1' ␛[31mback to me.” the schema of echo refuses \"text\"",
        "  add: “Add 1 and $OPENAI_API_KEY.” the draft holds a secret",
        "  add: “Which is bigger, 3 or 4?” it was drafted as a near miss of add, but expects that tool",
        "  add: the draft is not a JSON object",
        "running 4 drafts, 3 times each",
        "dropped 1 draft:",
    ):
        assert line in lines, done.stderr
    assert "ten?” 3 of 3 runs did something else: wrong argument: call 1 add.a: expected 5, got 6" in lines[-1]
    drafts = [case for case in suite.cases if "draft" in case.tags]
    assert [(case.user, case.skip) for case in drafts] == [
        ("How much is 40 plus 2?", None),
        ("Say the sum aloud.", None),
        ("How much is the root of 16?", None),
    ]
    assert [case.skip for case in suite.cases if "draft" not in case.tags] == ["write the request"]  # of echo
    assert drafts[2].expect_no_calls
    assert "3 drafted by" in done.stdout
    assert (program.folder / "new.toml").read_text() in done.stdout  # all of it is shown
    assert SECRET not in done.stdout + done.stderr
    assert again.returncode == 0, again.stdout


ONCE = """
from workbench.providers.model import RetryPolicy
from workbench.evaluation.runtime import Runtime
Runtime.__init__.__kwdefaults__["retries"] = RetryPolicy(attempts=1)
"""
"""To begin a program with that makes no request again."""


def ending(reason: str) -> Answer:
    """An answer that the model did not end itself."""
    pieces = said("openai", '{"requests": [').pieces
    return Answer(tuple(each.replace(b'"stop"', f'"{reason}"'.encode()) for each in pieces if isinstance(each, bytes)))


UNAUTHORIZED = document(error_document("openai", f"no such key {SECRET}"), 401)


@pytest.mark.parametrize(
    ("answer", "why"),
    first_rows(
        [
            (
                said("openai", "I'd love to help! {"),
                "the answer holds no drafts (“I'd love to help! {”): it is not JSON",
            ),
            (said("openai", calls=[Call("rm", {})]), "the model called rm instead of submit_requests"),
            (said("openai", calls=[Call(SUBMIT, '{"requests": [')]), "the answer cannot be read: "),
            (submitted({"user": 3}), "the draft has no request"),
            (said("openai", calls=[Call(SUBMIT, {"requests": "many"})]), "is not a JSON object with a list `requests`"),
            (UNAUTHORIZED, "401"),
            (ending("length"), "the answer was cut off: raise max_tokens"),
            (ending("content_filter"), "the model refused"),
            (
                Answer((*said("openai", calls=[Call(SUBMIT, {"requests": []})]).pieces[:3], CUT)),
                "in the middle of its answer",
            ),
        ],
        2,
    ),
)
def test_an_answer_that_holds_nothing_is_said_and_nothing_is_written(
    program: Program, answer: Answer, why: str
) -> None:
    with hosted("sdk_workshop") as tools, Server(drafting(lambda _: answer)) as server:
        program = Program(program.folder, {"OPENAI_API_KEY": SECRET})
        done = program.run(*words(tools.url, server.url, "--yes"), first=ONCE)
    assert done.returncode in (1, 3)
    assert why in done.stderr
    assert "nothing was written: there is no draft" in done.stderr
    assert SECRET not in done.stderr
    assert [*program.folder.glob("*.toml")] == []


def test_a_person_is_asked_before_the_model_and_again_before_the_file(program: Program) -> None:
    made: Counter[str] = Counter()
    with hosted("sdk_workshop") as tools, Server(drafting(lambda _: submitted(*ADD[:1]), made)) as server:
        line = words(tools.url, server.url, "--repeats", "2")
        assert "give --yes, or use a terminal" in program.run(*line).stderr
        with program.ask(*line) as asked:
            asked.wait_for("Ask? [yes/no]")
            asked.answer("no")
            assert "nothing was asked and nothing was written" in asked.end()
        assert not made
        with program.ask(*line) as asked:
            asked.wait_for("Ask? [yes/no]")
            asked.answer("yes")
            asked.wait_for('user = "How much is 40 plus 2?"')
            asked.wait_for("Write new.toml? [yes/no]")
            asked.answer("no")
            assert "nothing was written to new.toml; the suite with its drafts is in " in " ".join(asked.end().split())
    (kept,) = program.folder.rglob("drafts/new.1.toml")
    assert [case.user for case in suite_of(kept).cases if "draft" in case.tags] == ["How much is 40 plus 2?"]
    assert made == {"How much is 40 plus 2?": 2}
    assert [*program.folder.glob("*.toml")] == []


def test_what_was_drafted_before_ctrl_c_is_kept(program: Program) -> None:
    came = Signal()
    waiting = Answer((b": waits\n\n", Tell(came), HANG))
    drafts = drafting(lambda _: submitted(*ADD[:1]))

    def answer(request: Request) -> Answer:
        return drafts(request) if b"submit_requests" in request.body else waiting

    with hosted("sdk_workshop") as tools, Server(answer) as server:
        going = program.start(*words(tools.url, server.url, "--yes"))
        came.wait()
        going.send_signal(signal.SIGINT)
        _, errors = going.communicate()
        assert going.wait() == 130, errors
    assert "nothing was written to new.toml; the suite with its drafts is in " in errors
    (kept,) = program.folder.rglob("drafts/new.1.toml")
    (case,) = [case for case in suite_of(kept).cases if "draft" in case.tags]
    assert (case.user, case.skip) == ("How much is 40 plus 2?", "draft, not checked: a run is missing")
    assert not (program.folder / "new.toml").exists()


@pytest.mark.slow
def test_drafts_that_could_not_be_checked_are_kept_and_skipped(program: Program) -> None:
    def refusing(request: Request) -> Answer:
        return (
            answer(request) if b"submit_requests" in request.body else document(error_document("openai", "gone"), 404)
        )

    answer = drafting(lambda _: submitted(*ADD[:1]))
    with hosted("sdk_workshop") as tools, Server(refusing) as server:
        done = program.run(*words(tools.url, server.url, "--yes"))
    assert done.returncode == 3, done.stderr
    assert "1 draft could not be checked, and will be skipped: " in done.stderr
    assert (suite_of(program.folder / "new.toml").cases[0].skip or "").startswith("draft, not checked: ")


def test_drafts_are_added_to_a_suite_whose_every_other_byte_stays(program: Program) -> None:
    model, text = "openai:m@{}/v1", SHOP.replace("\n", "\r\n")
    file = program.folder / "shop.toml"
    file.write_bytes(text.encode())
    with Server(drafting(lambda about: submitted(*ADD))) as server:
        more = ("--draft", model.format(server.url), "--tool", "add", "--yes")
        done = program.run("init", "--add-to", "shop.toml", *more)
        assert done.returncode == 0, done.stderr
        again = program.run("init", "--add-to", "shop.toml", *more)
    assert "nearly the same as “how much is 40 plus 2?”" in done.stderr
    assert file.read_bytes().startswith(text.encode())
    added = suite_of(file).cases[1:]
    assert [case.user for case in added] == ["Say the sum aloud.", "How much is the root of 16?"]
    assert '+user = "Say the sum aloud."' in done.stdout
    assert (again.returncode, "no draft is left" in again.stderr) == (1, True)
    wrong = program.run("init", "--add-to", "shop.toml")
    assert (wrong.returncode, "give --draft too" in wrong.stderr) == (2, True)


SHOP = """format = 1  # mine
name = "Shop"

[[tools]]
name = "add"
parameters = '''
{"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}'''

[[tools]]
name = "echo"
parameters = '{"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}'

[[cases]]
name = "Sums"
user = "how much is 40 plus 2?"
expect_no_calls = true
"""
