"""Answers to the requests of real agents: the calls of a script in turn, then text.

A call counts as done if the request contains its result, so concurrent sessions and repeated requests do not mix up the
calls."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.providers.server import Answer, Api, Call, Request, document, said, whole_document
from tests.providers.server.formats import sse

_APIS: dict[str, Api] = {"completions": "openai", "responses": "openai-responses", "messages": "anthropic"}


@dataclass(frozen=True)
class Script:
    """The calls of the model, by the bare names of their tools, and its final text.

    Requests without these tools are the agent's own, such as a request for a title."""

    calls: Sequence[tuple[str, dict[str, Any]]]
    text: str = "It rains."
    last: Answer | None = None
    """Replaces the final text."""

    def __call__(self, request: Request) -> Answer:
        """Answer a request in the format of its path."""
        path = request.path.partition("?")[0]
        place = path.rpartition("/")[2]
        if request.method != "POST" or place.endswith(("count_tokens", "countTokens")):
            return document({"input_tokens": 10, "totalTokens": 10})
        method = place.partition(":")[2]
        if place not in _APIS and not method.endswith("enerateContent"):
            return document({"error": {"message": f"there is no {path}"}}, 404)
        asked = request.json
        call = self._next_call(asked)
        if call is None and self.last is not None and offered(asked):
            return self.last
        text = "" if call else self.text
        calls = [call] if call else []
        if method:
            answer = _gemini(text, calls)
            return document(answer) if method == "generateContent" else Answer((sse(answer),))
        api = _APIS[place]
        return said(api, text, calls) if asked.get("stream") else document(whole_document(api, text, calls))

    def _next_call(self, asked: dict[str, Any]) -> Call | None:
        done = len(results(asked))
        if done >= len(self.calls):
            return None
        tool, arguments = self.calls[done]
        for namespace, name in offered(asked):
            if name.endswith(tool):
                return Call(name, arguments, f"call_{done}", namespace)
        return None


def offered(asked: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the tools that a request offers, each with its namespace."""
    found = []
    for tool in asked.get("tools") or ():
        if tool.get("type") == "namespace":
            found += [(tool["name"], each["name"]) for each in tool["tools"]]
        elif "functionDeclarations" in tool:
            found += [("", each["name"]) for each in tool["functionDeclarations"]]
        elif "function" in tool:
            found.append(("", tool["function"]["name"]))
        else:
            found.append(("", str(tool.get("name") or tool.get("type"))))
    return found


def results(asked: dict[str, Any]) -> list[str]:
    """Return the tool results in a request as JSON texts, in order."""
    return [json.dumps(part, ensure_ascii=False) for part in _parts(asked) if _is_result(part)]


def _is_result(part: dict[str, Any]) -> bool:
    kinds = ("tool_result", "function_call_output")
    return part.get("role") == "tool" or part.get("type") in kinds or "functionResponse" in part


def _parts(asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the items of a conversation and the parts of their content."""
    items = asked.get("messages") or asked.get("input") or asked.get("contents") or ()
    for item in items if isinstance(items, list) else ():
        yield item
        inner = item.get("parts") or item.get("content")
        yield from (part for part in (inner if isinstance(inner, list) else ()) if isinstance(part, dict))


def _gemini(text: str, calls: Sequence[Call]) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": text}] if text else []
    for call in calls:
        made = {"name": call.tool, "args": json.loads(call.text), "id": call.id}
        parts.append({"functionCall": made, "thoughtSignature": "c2ln"})
    usage = {"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18}
    content = {"role": "model", "parts": parts}
    answered = {"content": content, "finishReason": "STOP", "index": 0}
    return {"candidates": [answered], "usageMetadata": usage, "modelVersion": "test-model", "responseId": "r"}
