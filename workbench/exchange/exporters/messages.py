"""Exports each run as one line of JSON with its messages in OpenAI's form, for fine-tuning and other programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from workbench.dataclasses import compact_json
from workbench.exchange.exporters.exported import ConversationEntry, ExportedRun, arguments_text, function_of
from workbench.trajectory.events import JsonValue, ToolCall


def lines_of_messages(runs: Iterable[ExportedRun]) -> Iterator[str]:
    """Yield a line of JSON for each run, with `messages`, `tools`, `model`, `name`, and the result as `metadata`."""
    for run in runs:
        document = {
            "messages": list(map(_message, run.conversation)),
            "tools": list(map(function_of, run.tools)),
            "model": run.result.model,
            "name": run.result.case_name,
            "metadata": run.facts,
        }
        yield f"{compact_json(document)}\n"


def _message(entry: ConversationEntry) -> dict[str, JsonValue]:
    message = entry.message
    table: dict[str, JsonValue] = {"role": entry.role, "content": message.content}
    # The key `reasoning_content` comes from DeepSeek. Most other endpoints use it too.
    if entry.answer is not None and entry.answer.reasoning:
        table["reasoning_content"] = entry.answer.reasoning
    if message.tool_calls:
        table["tool_calls"] = list(map(_call, message.tool_calls))
    if message.call_id is not None:
        table["tool_call_id"] = message.call_id
    if message.is_error:
        table["is_error"] = True
    return table


def _call(call: ToolCall) -> JsonValue:
    return {"id": call.id, "type": "function", "function": {"name": call.tool, "arguments": arguments_text(call)}}
