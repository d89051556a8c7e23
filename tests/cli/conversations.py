"""A returns desk for conversations: a suite, tools, and an agent that asks before it cancels."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cli.program import Program
from tests.providers.server import Answer, Call, Request, Server, base_url_of, said

HEAD = """\
format = 1
name = "Returns desk"
system = "You are the returns desk. Ask before you change anything."

[[tools]]
name = "get_order"
annotations = { readOnlyHint = true }
parameters = { type = "object", required = ["order"], properties = { order = { type = "string" } } }

[[tools]]
name = "cancel_order"
parameters = { type = "object", required = ["order"], properties = { order = { type = "string" } } }

[[mocks]]
tool = "get_order"
python = "desk:get_order"
state = "run"

[[mocks]]
tool = "cancel_order"
python = "desk:cancel_order"
state = "run"
"""

FINAL = """
[cases.final]
changes = [{ tool = "cancel_order", args = { order = "A17" } }]
says = [{ text = "47.50", after_tool = "cancel_order" }]

[[cases.final.state]]
tool = "get_order"
args = { order = "A17" }
result = { has_fields = { status = "cancelled" } }
"""

SCRIPTED = """
[[cases]]
name = "Cancel after a yes"

[cases.user]
max_turns = 6

[[cases.user.messages]]
say = "I want to cancel an order."

[[cases.user.messages]]
id = "number"
say = "It is A17."
when = { answer = { pattern = "(?i)which order" } }

[[cases.user.messages]]
id = "yes"
say = "Yes, please cancel it."
when = { answer = { pattern = "(?i)shall i" }, called = ["get_order"] }

[[cases.user.messages]]
say = "Thanks, bye."
when = { called = ["cancel_order"] }
end = "done"
""" + FINAL.replace('args = { order = "A17" } }]', 'args = { order = "A17" }, after_message = "yes" }]')

PLAYED = (
    """
[[cases]]
name = "Impatient"

[cases.user]
model = "player"
opening = "Hello, I changed my mind."
goal = "Get the order cancelled and the money back."
style = "short"
max_turns = 6

[cases.user.facts]
name = "Ann Lee"
order = { value = "A17", when = { answer = { pattern = "(?i)which order" } } }
mail = { value = "ann@example.com", when = { answer = { pattern = "(?i)e-?mail" } } }
"""
    + FINAL
)

DESK = """\
orders = {"A17": {"status": "open", "total": "47.50"}}


def get_order(args):
    return orders[args["order"]]


def cancel_order(args):
    orders[args["order"]]["status"] = "cancelled"
    return orders[args["order"]]
"""

Script = Callable[[Mapping[str, Any]], Answer]
"""Answers the body of a request."""


def texts(body: Mapping[str, Any]) -> str:
    """Return all texts of a request's messages, one on each line."""
    return "\n".join(str(message.get("content") or "") for message in body["messages"])


def agent(body: Mapping[str, Any], *, asks: bool = True, names_amount: bool = True) -> Answer:
    """Answer as a good agent. The options make it skip its question or the amount."""
    last = body["messages"][-1]
    if last["role"] == "tool":
        if "cancelled" in last["content"]:
            return said("openai", "Done. 47.50 is paid back." if names_amount else "Done.")
        if not asks:
            return said("openai", "", [Call("cancel_order", {"order": "A17"}, "c2")])
        return said("openai", "It is open. Shall I cancel it?")
    text = last["content"].lower()
    if "a17" in text:
        return said("openai", "", [Call("get_order", {"order": "A17"})])
    if "yes" in text:
        return said("openai", "", [Call("cancel_order", {"order": "A17"}, "c2")])
    if "bye" in text:
        return said("openai", "Goodbye.")
    return said("openai", "Which order is it?")


def say(text: str, end: str | None = None) -> Answer:
    """Return an answer in which the player says something."""
    return said("openai", "", [Call("say", {"text": text} if end is None else {"text": text, "end": end})])


def leave(end: str, why: str = "the order is cancelled") -> Answer:
    """Return an answer in which the player leaves."""
    return said("openai", "", [Call("leave", {"end": end, "why": why})])


def player(body: Mapping[str, Any]) -> Answer:
    """Answer as a player that pursues the goal."""
    heard = texts(body)
    if "Done." in heard:
        return leave("done")
    if "Shall I" in heard:
        return say("yes please")
    return say("it is A17.")


@contextmanager
def desk(
    folder: Path, cases: str = SCRIPTED, *, agent: Script = agent, player: Script = player
) -> Iterator[tuple[Program, Server]]:
    """Yield the program in a folder with the suite, and a server whose scripts answer for agent and player."""

    def answer(request: Request) -> Answer:
        body = request.json
        return player(body) if body["model"] == "player" else agent(body)

    with Server(answer) as server:
        program = Program(folder)
        program.write("desk.toml", HEAD + cases)
        program.write("desk.py", DESK)
        url = base_url_of(server, "openai")
        models = ""
        for name, price in (("agent", 1.0), ("player", 2.0)):
            models += f'[models.{name}]\nprovider = "openai"\nmodel = "{name}"\nbase_url = "{url}"\n'
            models += f"price = {{ input = {price}, output = {price} }}\n"
        program.write("workbench.toml", models)
        yield program, server


def run(program: Program, *words: str, expected: int = 0) -> list[dict[str, Any]]:
    """Run the suite and return the runs of its JSON report. `expected` is the exit code."""
    given = words if "--model" in words else ("--model", "agent", *words)
    done = program.run("run", "desk.toml", "--trust", "-q", "--format", "json", *given)
    assert done.returncode == expected, done.stdout + done.stderr
    runs: list[dict[str, Any]] = json.loads(done.stdout)["runs"]
    return runs


def said_in(run: Mapping[str, Any]) -> Sequence[str]:
    """Return the user's messages in a run."""
    return [turn["text"] for turn in run["user_turns"] if turn["text"] is not None]
