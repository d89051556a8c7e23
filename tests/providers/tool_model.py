"""A model that calls tools as requested, behind an endpoint that works or has one fault."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal

from tests.providers.server import Answer, Api, Call, Request, Usage, said
from tests.providers.server.formats import sse

Fault = Literal[
    "none", "cumulative", "as text", "tools dropped", "think tags", "no usage", "repeated", "cut", "refused"
]

THOUGHTS = "It is 17 times 23."


def endpoint(api: Api, fault: Fault = "none") -> Callable[[Request], Answer]:
    """Return the function that answers the probes' requests."""

    def answer_to(request: Request) -> Answer:
        body = request.body.decode()
        if fault == "refused":
            return said(api)
        usage = None if fault == "no usage" else Usage(30, 9) if fault == "tools dropped" else Usage(400, 9)
        text, calls = _reaction(body)
        if fault == "tools dropped" and calls:
            text, calls = "I cannot do that.", []
        if fault == "as text" and calls:
            made = [json.dumps({"name": call.tool, "arguments": call.arguments}) for call in calls]
            text, calls = "".join(f"<tool_call>{call}</tool_call>" for call in made), []
        if fault == "think tags" and not calls:
            text = f"<think>{THOUGHTS}</think>{text}"
        if fault == "repeated":
            calls = [Call(call.tool, call.text * 2, call.id) for call in calls]
        if fault == "cut":
            calls = [Call(call.tool, call.text[:-2], call.id) for call in calls]
        if fault == "cumulative" and calls:
            return cumulative(calls, usage)
        return said(api, text, calls, usage=usage)

    return answer_to


def _reaction(body: str) -> tuple[str, list[Call]]:
    if "417" in body:
        return "It has 417 degrees.", []
    if "Save this note" in body:
        spoken = re.search(r'(?:"content"|"text"|"input"): ?"(Save this note:(?:[^"\\]|\\.)*)"', body)
        assert spoken is not None
        text: str = json.loads(f'"{spoken[1]}"')
        return "", [Call("save_note", {"text": text.partition("\n")[2]})]
    if "which weather stations" in body.lower():
        return "", [Call("list_stations", {})]
    if "oslo and in rome" in body.lower():
        return "", [Call("get_weather", {"city": "Oslo"}, "call_1"), Call("get_weather", {"city": "Rome"}, "call_2")]
    if "oslo now" in body.lower():
        return "", [Call("get_weather", {"city": "Oslo"})]
    return "No, it is not.", []


def cumulative(calls: Sequence[Call], usage: Usage | None, size: int = 7) -> Answer:
    """Return a Chat Completions answer whose chunks repeat all arguments so far."""

    def chunk(delta: dict[str, Any], reason: str | None = None) -> bytes:
        return sse({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})

    pieces: list[bytes] = []
    for index, call in enumerate(calls):
        head = {"index": index, "id": call.id, "type": "function", "function": {"name": call.tool, "arguments": ""}}
        pieces.append(chunk({"tool_calls": [head]}))
        ends = [*range(size, len(call.text), size), len(call.text)]
        for end in ends:
            so_far = {"index": index, "function": {"arguments": call.text[:end]}}
            pieces.append(chunk({"tool_calls": [so_far]}))
    counted = {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens} if usage else None
    pieces += [chunk({}, "tool_calls"), sse({"choices": [], "usage": counted}), sse("[DONE]")]
    return Answer(tuple(pieces))
