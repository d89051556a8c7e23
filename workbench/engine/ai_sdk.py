"""Runs in the shapes of Vercel's AI SDK, converted to `external_run.RunDocument`.

The SDK writes a call as `{toolName, input}` (`args` in version 4). A call may stand alone, or in the `toolCalls` of a
result or of one of its steps. It may also be a part of a message (`tool-call`) or of a UI message (`tool-NAME`). Values
in other shapes stay unchanged. `parse_run_document` reports them as errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

Document = dict[str, Any]

_KEPT = ("case", "started_at", "answer", "error", "latency_ms")
"""The keys of a run document that are allowed besides the SDK's keys."""

_USAGE = {
    "inputTokens": "input_tokens",
    "promptTokens": "input_tokens",
    "outputTokens": "output_tokens",
    "completionTokens": "output_tokens",
    "cachedInputTokens": "cached_input_tokens",
    "reasoningTokens": "reasoning_tokens",
}


def native_call(value: object) -> object:
    """Convert a call of the AI SDK to a call of a run document. A list becomes the calls of one answer.

    Example: `{"toolName": "a", "input": {"x": 1}}` becomes `{"tool": "a", "arguments": {"x": 1}}`."""
    if isinstance(value, list):
        return [native_call(each) for each in value]
    if not isinstance(value, dict) or not isinstance(value.get("toolName"), str) or "tool" in value:
        return value
    call: Document = {"tool": value["toolName"]}
    for key in ("input", "args"):
        if value.get(key) is not None:
            call.setdefault("arguments", value[key])
    if isinstance(value.get("toolCallId"), str):
        call["id"] = value["toolCallId"]
    _add_result(call, value)
    return call


def native_run(value: object) -> object:
    """Convert a run of the AI SDK to a run document.

    The run is an SDK result, with or without steps, or a list of messages. If it is a run document already, only its
    calls are converted."""
    if is_messages(value):
        return _of_messages(value)
    if not isinstance(value, dict):
        return native_call(value)
    if isinstance(value.get("calls"), list):
        return value | {"calls": native_call(value["calls"])}
    messages = value.get("messages")
    if messages is None and isinstance(value.get("response"), dict):
        messages = value["response"].get("messages")
    if isinstance(value.get("steps"), list) and all(map(_is_step, value["steps"])):
        run = _of_steps(value["steps"])
    elif isinstance(value.get("toolCalls"), list):
        run = _of_steps([value])
    elif is_messages(messages):
        run = _of_messages(messages)
    else:
        return value
    if isinstance(value.get("text"), str):
        _answer(run, value["text"])
    if usage := usage_of(value.get("totalUsage") or value.get("usage")):
        run["usage"] = usage
    return run | {key: value[key] for key in _KEPT if key in value}


def is_messages(value: object) -> bool:
    if not isinstance(value, list) or not value:
        return False
    return all(map(_is_message, value))


def _is_message(value: object) -> bool:
    if not isinstance(value, dict) or "role" not in value or not ("content" in value or "parts" in value):
        return False
    content = value.get("parts", value.get("content"))
    return isinstance(content, str) or _are_parts(content)


def _is_step(value: object) -> bool:
    return isinstance(value, dict) and _are_parts(value.get("content"))


def _are_parts(value: object) -> bool:
    if value is None:
        return True
    return isinstance(value, list) and all(
        isinstance(part, dict) and (part.get("type") != "tool-call" or isinstance(part.get("toolName"), str))
        for part in value
    )


def _of_steps(steps: list[Any]) -> Document:
    calls: list[list[Document]] = []
    run: Document = {"calls": calls}
    for step in filter(_is_table, steps):
        # Only the text of the last step is the answer of the run.
        _answer(run, _add_parts(calls, step_parts(step)))
    return run


def step_parts(step: Mapping[str, Any]) -> list[Document]:
    """Return the parts of a step: `content` as in version 5, or text, calls and results as in version 4."""
    if isinstance(step.get("content"), list) and step["content"]:
        return [*filter(_is_table, step["content"])]
    parts: list[Document] = []
    if isinstance(step.get("text"), str):
        parts.append({"type": "text", "text": step["text"]})
    for key, kind in (("toolCalls", "tool-call"), ("toolResults", "tool-result")):
        given = step.get(key)
        for part in filter(_is_table, given if isinstance(given, list) else []):
            parts.append({"type": kind, **part})
    return parts


def _of_messages(messages: Any) -> Document:
    calls: list[list[Document]] = []
    run: Document = {"calls": calls}
    for message in messages:
        if message["role"] not in ("assistant", "tool"):
            continue
        content = message.get("parts", message.get("content"))
        text = content if isinstance(content, str) else _add_parts(calls, content)
        if message["role"] == "assistant":
            _answer(run, text)
    return run


def _answer(run: Document, text: str) -> None:
    # An empty text together with calls is not an answer: the run ended with its calls.
    run.pop("answer", None)
    if text:
        run["answer"] = text


def _add_parts(calls: list[list[Document]], parts: object) -> str:
    """Find the calls and results in the parts of an answer, and add them to `calls`.

    Returns the text of the last answer. A UI message holds several answers. A part `step-start` precedes each of
    them."""
    group: list[Document] = []
    texts: list[str] = []
    for part in filter(_is_table, parts if isinstance(parts, list) else []):
        kind = str(part.get("type", ""))
        if kind == "step-start":
            calls += [group] if group else []
            group, texts = [], []
        elif kind == "text":
            texts.append(str(part.get("text", "")))
        elif (answered := _answered(part, chain(chain.from_iterable(calls), group))) is not None:
            _add_result(answered, part)
        elif "toolName" in part and kind not in ("tool-result", "tool-error"):
            group += _only_tables(native_call(part))
        elif kind.startswith("tool-"):
            group += _only_tables(native_call({"toolName": kind.removeprefix("tool-"), **part}))
    calls += [group] if group else []
    return "".join(texts)


def _answered(part: Document, calls: Iterable[Document]) -> Document | None:
    if not any(key in part for key in _RESULTS):
        return None
    wanted = part.get("toolCallId")
    return next((call for call in calls if wanted is not None and call.get("id") == wanted), None)


_RESULTS = ("output", "result", "error", "errorText")
"""The keys of a result in a message part."""


def _add_result(call: Document, part: Mapping[str, Any]) -> None:
    """Add the result in a part to its call. The SDK may wrap the output as `{type, value}`."""
    kind = str(part.get("type", ""))
    for key in _RESULTS:
        if part.get(key) is not None:
            result = part[key]
            is_error = kind == "tool-error" or key.startswith("error")
            if isinstance(result, dict) and result.keys() == {"type", "value"}:
                is_error = is_error or str(result["type"]).startswith("error")
                result = result["value"]
            call["result"] = result
            if is_error:
                call["is_error"] = True
            return


def usage_of(record: object) -> Document:
    """Return the tokens of a step or a result under the names of `Usage`; empty if unknown."""
    usage: Document = {}
    if isinstance(record, dict):
        for theirs, ours in _USAGE.items():
            if isinstance(record.get(theirs), int):
                usage[ours] = record[theirs]
    return usage


def _is_table(value: object) -> bool:
    return isinstance(value, dict)


def _only_tables(value: object) -> list[Document]:
    return [value] if isinstance(value, dict) else []
