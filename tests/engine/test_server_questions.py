"""Servers that ask in the middle of a call: the case answers, and what it does not answer is declined and named."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import workbench

SERVER = Path(__file__).parents[1] / "tools" / "servers" / "asker.py"

FORM = {
    "type": "object",
    "properties": {"size": {"type": "integer", "maximum": 50}, "name": {"type": "string"}},
    "required": ["size"],
}


def suite(
    answers: str, *, server: str = 'answers = ["elicitation", "sampling"]', head: str = "", case: str = ""
) -> str:
    return (
        f'format = 1\nname = "Ask"\nexecute = true\n{head}\n'
        f'[[servers]]\nname = "shop"\ncommand = [{json.dumps(sys.executable)}, {json.dumps(str(SERVER))}]\n{server}\n'
        f'[[cases]]\nname = "Book"\nuser = "Book."\nordered = [{{ tool = "*" }}]\n{case}\n{answers}\n'
    )


def elicit(message: str = "Which Size?", schema: dict[str, Any] = FORM) -> dict[str, Any]:
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def sample(text: str = "2+2?", **more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": {"type": "text", "text": text}}]
    return {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": 100, **more}}


NO_FIELDS = {"type": "object", "properties": {}}
OPEN = {
    "method": "elicitation/create",
    "params": {"mode": "url", "message": "Pay", "url": "https://example.test/", "elicitationId": "e1"},
}


def run(folder: Path, text: str, tool: str = "ask", arguments: dict[str, Any] | None = None) -> Any:
    """Return the only run of a suite, whose model makes one call."""

    async def agent(request: Any) -> Any:
        if request.results:
            return request.results[-1].content
        return workbench.call(tool, **(arguments or {}))

    (folder / "ask.toml").write_text(text)
    (result,) = workbench.evaluate(folder / "ask.toml", model=agent, approve=workbench.ALL, execute_all=True).results
    return result


def replied(result: Any) -> Any:
    assert result.error is None, result.error
    return json.loads(result.trajectory.calls[0].result.content)


def answer(**keys: Any) -> str:
    written = "".join(f"{key} = {value}\n" for key, value in keys.items())
    return f"[[cases.answers]]\n{written}"


FILLED = answer(to='"elicitation"', tool='"ask"', message='{ contains = "Size" }', content="{ size = 42 }")


@pytest.mark.parametrize(
    ("asked", "answers", "reply", "source"),
    [
        (elicit(), FILLED, {"action": "accept", "content": {"size": 42}}, "case"),
        (elicit(), answer(to='"elicitation"', action='"cancel"') + FILLED, {"action": "cancel"}, "case"),
        (elicit(), answer(to='"elicitation"', action='"decline"'), {"action": "decline"}, "case"),
        (elicit("Which colour?"), FILLED, {"action": "decline"}, "nobody"),
        (elicit(), answer(to='"sampling"', text='"four"'), {"action": "decline"}, "nobody"),
        (elicit("Sure?", NO_FIELDS), answer(to='"elicitation"'), {"action": "accept", "content": {}}, "case"),
        (OPEN, answer(to='"elicitation"', message='"Pay"'), {"action": "accept"}, "case"),
        (sample(), answer(to='"sampling"', message='{ contains = "2" }', text='"four"'), "four", "case"),
    ],
)
def test_the_first_answer_that_fits_is_sent(
    tmp_path: Path, asked: dict[str, Any], answers: str, reply: Any, source: str
) -> None:
    result = run(tmp_path, suite(answers), arguments=asked)
    got = replied(result)["result"]
    if isinstance(reply, str):
        got = got["content"]["text"]
    assert got == reply
    (event,) = result.trajectory.asked_by_servers
    assert (event.source, event.server, event.tool) == (source, "shop", "ask")
    assert result.trajectory.calls[0].asked == (event,)
    assert bool(result.trajectory.notices) == (source == "nobody")
