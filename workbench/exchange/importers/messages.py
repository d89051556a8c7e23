"""Import lists of messages in the form of OpenAI or Anthropic: requests, logs, examples for fine-tuning, trajectories.

A file has one conversation, a list of conversations, or a conversation on each line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from workbench.dataclasses import json_text
from workbench.exchange.importers.conversations import (
    NO_TOOLS,
    CallRegistry,
    Conversation,
    Format,
    ImportedCase,
    ImportedFile,
    Note,
    case_of,
    imported_of,
    indices_of,
    tool_of,
)
from workbench.exchange.importers.source_files import Node, Source, as_text, bare_values, has_type, texts_of
from workbench.providers.wire.repairs import DETAILS, THOUGHTS, split_thoughts
from workbench.providers.wire.wire import UsageCount
from workbench.suite.render import Table
from workbench.trajectory.events import Deviation, JsonValue, Message, ToolCall, Usage

_TEXTS = ("text", "input_text", "output_text", "refusal")
_ROLES = {"system", "developer", "user", "human", "assistant", "ai", "tool", "function"}


def is_message(node: Node) -> bool:
    """Return whether a value is a message in the form of OpenAI or Anthropic."""
    return node.text_of("role") in _ROLES


def is_list_of_messages(node: Node | None) -> bool:
    return node is not None and isinstance(node.value, list) and bool(node.value) and is_message(node.items()[0])


def conversation_nodes(source: Source) -> list[Node]:
    """Return the conversations of a file: lists of messages, or tables with `messages`."""
    if source.kind != "lines" and (is_list_of_messages(source.root) or source.root.has("messages")):
        return [source.root]
    return source.records


def conversation_of(node: Node, messages: list[Node] | None = None) -> Conversation:
    """Convert a list of messages, or a table with `messages` and optional `tools`, `system` and `model`.

    If `messages` is given, it replaces the messages of the node. Raises RefusedError."""
    if messages is None:
        listed = node if isinstance(node.value, list) else node.need("messages")
        messages = listed.items()
    reading = _Reading()
    for each in messages:
        reading.add(each)
    tools: dict[str, Table] = {}
    # Until 2023, OpenAI's key was `functions`.
    for each in node.items_of("tools") or node.items_of("functions"):
        kind = each.text_of("type")
        if kind not in ("function", "custom", ""):
            reading.note(each, f"a tool of the type {kind!r} is the provider's own: left out")
            continue
        tool = tool_of(each)
        name = str(tool["name"])
        if name in tools:
            reading.note(each, f"a second tool called {name!r}: left out")
        else:
            tools[name] = tool
    if not tools and reading.calls.made:
        reading.note(node, NO_TOOLS)
    texts = [_text(node.get("system"), reading), *reading.system]
    return Conversation(
        node.place,
        tuple(reading.messages),
        "\n\n".join(filter(None, texts)),
        tuple(tools.values()),
        node.text_of("model") or "imported",
        node.text_of("name", "title"),
        reasoning=reading.reasoning,
        latency_ms=reading.latency_ms,
        usage=reading.usage,
        deviations=reading.deviations,
        notes=tuple(reading.notes),
    )


class _Reading:
    def __init__(self) -> None:
        self.calls = CallRegistry()
        self.messages: list[Message] = []
        self.system: list[str] = []
        self.reasoning: dict[int, str] = {}
        self.latency_ms: dict[int, float] = {}
        self.usage: dict[int, Usage] = {}
        self.deviations: dict[int, tuple[Deviation, ...]] = {}
        self.notes: list[Note] = []

    def note(self, node: Node, reason: str) -> None:
        self.notes.append(Note(node.place, reason))

    def add(self, node: Node) -> None:
        role = node.need("role").text()
        match role:
            case "system" | "developer":
                self.system.append(_text(node.get("content"), self))
            case "user" | "human":
                self._user(node)
            case "assistant" | "ai":
                self._assistant(node)
            case "tool" | "function":
                self._result(node, node.text_of("tool_call_id", "call_id"), node.text_of("name"))
            case _:
                raise node.refused(f"has the role {role!r}, which is none of system, user, assistant and tool")

    def _user(self, node: Node) -> None:
        # In Anthropic's form, a user message has the results of calls as parts, before its text.
        parts = node.listed_of("content")
        others: list[Node] = []
        for part in parts:
            if part.text_of("type") == "tool_result":
                self._result(part, part.text_of("tool_use_id"))
            else:
                others.append(part)
        if others or not parts:
            self.messages.append(Message("user", _joined_text(others, self)))

    def _assistant(self, node: Node) -> None:
        texts: list[str] = []
        thoughts = [node.text_of("reasoning_content", "reasoning")]
        made: list[ToolCall] = []
        for part in node.listed_of("content"):
            match part.text_of("type"):
                case "tool_use":
                    made.append(self.calls.call(part, part.text_of("id"), part.text_of("name"), part.value_of("input")))
                case "thinking":
                    thoughts.append(part.text_of("thinking"))
                case _:
                    texts.append(_text(part, self))
        for each in node.items_of("tool_calls"):
            inner = each.get("function") or each
            arguments = inner.value_of("arguments", "args", "input")
            made.append(self.calls.call(each, each.text_of("id"), inner.text_of("name"), arguments))
        # Until 2023, a message in OpenAI's form had at most one call, without an id.
        if (old := node.get("function_call")) is not None:
            made.append(self.calls.call(old, "", old.text_of("name"), old.value_of("arguments")))
        at = len(self.messages)
        in_text, answer = split_thoughts("\n".join(filter(None, texts)))
        if reasoning := "\n".join(filter(None, (*thoughts, in_text))):
            self.reasoning[at] = reasoning
        repaired: list[Deviation] = []
        if in_text:
            repaired.append(Deviation(THOUGHTS, DETAILS[THOUGHTS]))
        for call in made:
            if (found := self.calls.repaired.get(call.id)) is not None:
                repaired.append(found)
        if repaired:
            self.deviations[at] = tuple(repaired)
        if (usage := _usage(node.get("usage"))) is not None:
            self.usage[at] = usage
        if (latency_ms := nonnegative_number(node.get("latency_ms"))) is not None:
            self.latency_ms[at] = latency_ms
        self.messages.append(Message("assistant", answer, tuple(made)))

    def _result(self, node: Node, given_id: str, tool: str = "") -> None:
        call_id = self.calls.id_of_answer(given_id, tool)
        if call_id is None:
            self.note(node, "a result that answers no call: left out")
            return
        is_error = node.value_of("is_error") is True
        self.messages.append(Message("tool", _text(node.get("content"), self), call_id=call_id, is_error=is_error))


def nonnegative_number(node: Node | None) -> float | None:
    """Return a number that can be a time or a count; `None` for a negative number and any other value."""
    if node is None or isinstance(node.value, bool) or not isinstance(node.value, int | float):
        return None
    # From 2**53 on, a float is not exact, and no time or count is that large.
    return node.value if 0 <= node.value < 2**53 else None


def _usage(node: Node | None) -> Usage | None:
    if node is None or not isinstance(node.value, dict):
        return None
    count = UsageCount()
    count.update(node.value)
    # Each wire format counts cached tokens in its own way, and has keys that identify it.
    if node.has("prompt_tokens"):
        usage = count.chat()
    elif node.first("cache_read_input_tokens", "cache_creation_input_tokens") is not None:
        usage = count.messages()
    else:
        usage = count.responses()
    if usage is None or not (usage.input_tokens or usage.output_tokens):
        return None
    return usage


def openai_call(given_id: str, tool: str, arguments: JsonValue) -> JsonValue:
    """Return a call in the form of OpenAI's messages, which `conversation_of` reads."""
    return {"id": given_id, "function": {"name": tool, "arguments": arguments}}


def openai_result(given_id: str, content: JsonValue, is_error: bool = False) -> JsonValue:
    """Return a tool message with the result of a call. A result that is not a text is written as JSON."""
    return {"role": "tool", "tool_call_id": given_id, "content": as_text(content), "is_error": is_error}


def _text(node: Node | None, reading: _Reading) -> str:
    if node is None:
        return ""
    if isinstance(node.value, str):
        return node.value
    if isinstance(node.value, list):
        return _joined_text(node.items(), reading)
    kind = node.text_of("type")
    text = node.first("text", "content", "refusal")
    if (kind in _TEXTS or not kind) and text is not None and isinstance(text.value, str):
        return text.value
    if isinstance(node.value, dict) and kind:
        reading.note(node, f"a part of the type {kind!r} is not text: left out")
        return ""
    return json_text(node.value)


def _joined_text(parts: Iterable[Node], reading: _Reading) -> str:
    return "\n".join(filter(None, (_text(part, reading) for part in parts)))


def read_conversations(
    nodes: list[Node],
    read: Callable[[Node], Conversation] = conversation_of,
) -> ImportedFile:
    """Make a case from each conversation.

    `read` converts a node to a conversation. Raises RefusedError if there is no conversation."""

    def make(node: Node) -> ImportedCase:
        return case_of(read(node))

    return imported_of(nodes, make, "conversation")


_ANTHROPIC_PARTS = ("tool_use", "tool_result", "thinking")


def _is_anthropic(node: Node) -> bool:
    if node.has("system") or any(tool.has("input_schema") for tool in node.listed_of("tools")):
        return True
    messages = node if isinstance(node.value, list) else node.get("messages")
    return any(has_type(_items(message.get("content")), _ANTHROPIC_PARTS) for message in _items(messages))


def _holds_conversations(source: Source) -> bool:
    nodes = conversation_nodes(source)
    return bool(nodes) and (is_list_of_messages(nodes[0]) or is_list_of_messages(nodes[0].get("messages")))


def _read(source: Source) -> ImportedFile:
    return read_conversations(conversation_nodes(source))


MESSAGES = Format(
    lambda source: _holds_conversations(source) and not any(map(_is_anthropic, conversation_nodes(source))), _read
)
ANTHROPIC = Format(
    lambda source: _holds_conversations(source) and any(map(_is_anthropic, conversation_nodes(source))), _read
)


# Items of OpenAI's Responses API. A record has such items under `input` and `output`. A session of OpenAI's Agents SDK
# is a list of such items.

_OF_ANSWERS = {"message", "function_call", "custom_tool_call", "reasoning"}
_RESULTS = {"function_call_output", "custom_tool_call_output"}
# Plain lists of messages may have items of the type "message" too, so this type identifies no format.
_TYPED = (_OF_ANSWERS | _RESULTS) - {"message"}


def _request(record: Node) -> Node:
    return record.get("request") or record


def _answer(record: Node) -> Node:
    return record.get("response") or record


def _items(node: Node | None) -> list[Node]:
    if node is None or not isinstance(node.value, list):
        return []
    return node.items()


def has_items(record: Node) -> bool:
    """Return whether a record is a conversation of the Responses API.

    Such a record is a list of items, or a table with items under `input` and `output`."""
    if isinstance(record.value, list):
        items = _items(record)
        return has_type(items, _TYPED) and (is_message(items[0]) or items[0].text_of("type") in _OF_ANSWERS | _RESULTS)
    output = _items(_answer(record).get("output"))
    return has_type(output, _OF_ANSWERS) or has_type(_items(_request(record).get("input")), _TYPED)


def conversation_of_items(record: Node) -> Conversation:
    """Convert a record of the Responses API to a conversation. Raises RefusedError."""
    notes: list[Note] = []
    if isinstance(record.value, list):
        return _with_notes(conversation_of(record, [*messages_of_items(record.items(), notes)]), notes)
    request, answer = _request(record), _answer(record)
    given, made = request.listed_of("input"), answer.items_of("output")
    if request.get("previous_response_id") is not None:
        notes.append(Note(request.place, "continues an earlier response, which is not in the record"))
    document = {}
    for key in ("tools", "model"):
        document[key] = request.value_of(key) or answer.value_of(key)
    document["system"] = request.value_of("instructions") or answer.value_of("instructions")
    messages = [*messages_of_items([*given, *made], notes)]
    conversation = _with_notes(conversation_of(Node(document, record.place), messages), notes)
    count = UsageCount()
    count.update(answer.value_of("usage"))
    answers = list(indices_of("assistant", conversation.messages))
    if not made or not answers or (counted := count.responses()) is None:
        return conversation
    return replace(conversation, usage={answers[-1]: counted})


def _with_notes(conversation: Conversation, notes: list[Note]) -> Conversation:
    return replace(conversation, notes=(*notes, *conversation.notes))


def messages_of_items(items: list[Node], notes: list[Note]) -> Iterator[Node]:
    """Yield items of the Responses API as messages. Consecutive items of the model become one message."""
    answer: dict[str, JsonValue] = {}
    place = ""
    for item in items:
        kind = item.text_of("type")
        if not kind and is_message(item):
            kind = "message"
        if isinstance(item.value, str):
            yield Node({"role": "user", "content": item.value}, item.place)
            continue
        if kind not in _OF_ANSWERS | _RESULTS:
            notes.append(Note(item.place, f"an item of the type {kind!r} is the provider's own: left out"))
            continue
        if kind in _RESULTS or (kind == "message" and item.text_of("role") not in ("assistant", "ai")):
            if answer:
                yield Node(answer, place)
                answer = {}
            yield _result(item) if kind in _RESULTS else item
            continue
        if not answer:
            place = item.place
        answer = _added(answer or {"role": "assistant", "content": []}, kind, item)
    if answer:
        yield Node(answer, place)


def _result(item: Node) -> Node:
    content = item.value_of("output")
    return Node({"role": "tool", "tool_call_id": item.text_of("call_id"), "content": content}, item.place)


def _added(answer: dict[str, JsonValue], kind: str, item: Node) -> dict[str, JsonValue]:
    if kind == "reasoning":
        parts = [*_items(item.get("summary")), *_items(item.get("content"))]
        thoughts = [str(answer.get("reasoning_content") or ""), *texts_of(parts, "text")]
        return {**answer, "reasoning_content": "\n".join(filter(None, thoughts))}
    if kind == "message":
        content = answer["content"]
        assert isinstance(content, list)
        return {**answer, "content": [*content, *bare_values(item.listed_of("content"))]}
    calls = answer.get("tool_calls", [])
    assert isinstance(calls, list)
    function: JsonValue = {"name": item.text_of("name"), "arguments": item.value_of("arguments", "input")}
    return {**answer, "tool_calls": [*calls, {"id": item.text_of("call_id", "id"), "function": function}]}


def _nodes(source: Source) -> list[Node]:
    """Return the records of a file. A list of items of the Responses API is a single record."""
    if source.kind != "lines" and has_items(source.root):
        return [source.root]
    return source.records


def _holds_items(source: Source) -> bool:
    return any(map(has_items, _nodes(source)[:1]))


def _responses_read(source: Source) -> ImportedFile:
    if _holds_items(source):
        return read_conversations(_nodes(source), read=conversation_of_items)
    return MESSAGES.read(source)


OPENAI = Format(lambda source: _holds_items(source) or MESSAGES.recognizes(source), _responses_read)
