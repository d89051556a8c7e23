"""Import logs of Inspect, `.json` or `.eval` files. A sample becomes a case, and its epochs become the case's runs."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from workbench.exchange.importers.conversations import (
    Format,
    ImportedCase,
    ImportedFile,
    Note,
    case_of,
    collect_cases,
    graded_as,
    merge_cases,
    without_wrong_expectations,
)
from workbench.exchange.importers.messages import conversation_of, nonnegative_number, openai_call, openai_result
from workbench.exchange.importers.source_files import Node, RefusedError, Source, as_text, bare_values
from workbench.trajectory.events import JsonValue, SourceScore

_ATTACHMENT = "attachment://"


def _recognizes(source: Source) -> bool:
    evaluation = source.root.get("eval")
    return evaluation is not None and evaluation.has("task") and source.root.first("status", "plan") is not None


def _read(source: Source) -> ImportedFile:
    log = source.root
    evaluation = log.need("eval")
    samples = log.items_of("samples")
    if not samples:
        raise RefusedError("holds no samples, because the log was written without them")
    cases, notes = collect_cases(partial(_case, each, evaluation) for each in samples)
    if not cases:
        raise RefusedError(notes[0].why, notes[0].place)
    # In the log, each epoch of a sample is a sample of its own.
    return ImportedFile(merge_cases(cases), {"name": evaluation.need("task").text()}, notes)


def _case(sample: Node, evaluation: Node) -> ImportedCase:
    attached = sample.get("attachments") or Node({})
    asked = []
    for each in sample.items_of("events"):
        if each.text_of("event") == "model":
            asked.append(each)
    answers = []
    for each in sample.need("messages").items():
        if each.text_of("role") == "assistant":
            answers.append(each)
    # The tokens and the duration of an answer are not in its message, but in the event of its request.
    measured = {_id_of_answer(event): event for event in asked}
    # If answers have no ids, events are assigned to answers in order, if there are as many events as answers.
    if "" in measured:
        measured = {}
        if len(answers) == len(asked):
            for answer, event in zip(answers, asked, strict=True):
                measured[answer.place] = event
    messages: list[Node] = []
    last_input = None
    for each in sample.need("messages").items():
        if each.text_of("role") == "user" and each.text_of("source") == "input":
            last_input = len(messages)
        messages.append(Node(_message(each, attached, measured.get(each.text_of("id") or each.place)), each.place))
    tools = next((given for event in asked if (given := event.value_of("tools"))), None)
    place = f"{sample.place} ({_text_at(sample, 'id')}, epoch {_text_at(sample, 'epoch') or 1})"
    document: dict[str, JsonValue] = {"tools": tools, "model": evaluation.text_of("model") or None}
    conversation = conversation_of(Node(document, place), messages)
    notes = list(conversation.notes)
    own: list[SourceScore] = []
    for name, score in (sample.get("scores") or Node({})).table().items():
        value = Node(score).value_of("value")
        if (number := _number(value)) is not None:
            own.append(SourceScore(f"{name} of Inspect", number, number >= 1, place))
        else:
            notes.append(Note(place, f"Inspect scored {name} = {as_text(value)}, which is not a number from 0 to 1"))
    if target := sample.value_of("target"):
        notes.append(Note(place, f"its target is {as_text(target)}, which no check asks for"))
    if sample.has("error"):
        notes.append(Note(place, f"ended with an error: {as_text(sample.at('error').value_of('message'))}"))
    conversation = replace(
        conversation,
        place=place,
        name=_text_at(sample, "id"),
        started_at=sample.text_of("started_at"),
        notes=tuple(notes),
    )
    # Agents may add user messages as notes to themselves. So the request is the last user message of the input.
    index = None
    if last_input is not None:
        at = sum(each.text_of("role") != "system" for each in messages[:last_input])
        if at < len(conversation.messages) and conversation.messages[at].role == "user":
            index = at
    case = case_of(conversation, index)
    return without_wrong_expectations(case.with_scores(tuple(own)))


_LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Inspect's values of its grades: correct, partly correct, incorrect, no answer."""


def _number(value: JsonValue) -> float | None:
    if isinstance(value, str):
        return _LETTERS.get(value)
    if not isinstance(value, int | float) or not 0 <= value <= 1:
        return None
    return float(value)


def _id_of_answer(event: Node) -> str:
    choices = event.at("output").items_of("choices")
    if choices:
        return choices[0].at("message").text_of("id")
    return ""


def _message(message: Node, attached: Node, event: Node | None) -> JsonValue:
    parts = []
    for part in message.listed_of("content"):
        parts.append(_resolved(part, attached))
    match message.text_of("role"):
        case "assistant":
            pass
        case "tool":
            error = message.get("error")
            texts = []
            for part in parts:
                if part.value:
                    texts.append(part.text_of("text") or part.value)
            if error is not None:
                texts = [error.text_of("message") or as_text(error.value)]
            answer_text = texts[0] if len(texts) == 1 else "\n".join(map(as_text, texts))
            return openai_result(message.text_of("tool_call_id"), answer_text, error is not None)
        case role:
            return {"role": role, "content": bare_values(parts)}
    thoughts: list[str] = []
    content: list[JsonValue] = []
    for part in parts:
        if part.text_of("type") == "reasoning":
            thoughts.append(part.text_of("reasoning"))
        else:
            content.append(part.value)
    calls = []
    for call in message.items_of("tool_calls"):
        calls.append(openai_call(call.text_of("id"), call.text_of("function"), call.value_of("arguments")))
    answer: dict[str, JsonValue] = {
        "role": "assistant",
        "content": content,
        "reasoning_content": "\n".join(filter(None, thoughts)),
        "tool_calls": calls,
    }
    if event is not None and (output := event.get("output")) is not None:
        if (seconds := nonnegative_number(output.get("time"))) is not None:
            answer["latency_ms"] = seconds * 1000
        answer["usage"] = _usage(output.get("usage"))
    return answer


def _usage(usage: Node | None) -> JsonValue:
    """Return token counts in the form of Anthropic's Messages API.

    Like that form, Inspect does not include cached tokens in the input tokens."""
    if usage is None:
        return None
    tokens = usage.table()
    return {
        "input_tokens": tokens.get("input_tokens"),
        "output_tokens": tokens.get("output_tokens"),
        "cache_read_input_tokens": tokens.get("input_tokens_cache_read") or 0,
        "cache_creation_input_tokens": tokens.get("input_tokens_cache_write") or 0,
        "output_tokens_details": {"thinking_tokens": tokens.get("reasoning_tokens")},
    }


def _resolved(part: Node, attached: Node) -> Node:
    """Return a part of a message with a reference replaced by the attachment. Logs store long texts as attachments."""
    text = part.value if isinstance(part.value, str) else part.text_of("text")
    if not text.startswith(_ATTACHMENT):
        return part
    found = attached.get(text.removeprefix(_ATTACHMENT))
    if found is None:
        raise part.refused("names an attachment that the log does not have")
    if isinstance(part.value, str):
        return found
    return Node({**part.table(), "text": found.value}, part.place)


def _text_at(node: Node, key: str) -> str:
    return as_text(node.value_of(key))


INSPECT = Format(_recognizes, _read, graded_as("mean"))
