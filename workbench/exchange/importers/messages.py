"""Conversations as lists of messages, as OpenAI and Anthropic have them: requests, logs, examples for fine-tuning,
trajectories. A file is one conversation or many, as a list or as JSON lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from workbench.dataclasses import json_text
from workbench.exchange.importers.conversations import (
    NO_TOOLS,
    Calls,
    Conversation,
    Format,
    Imported,
    ImportedCase,
    Note,
    case_of,
    imported_of,
    tool_of,
)
from workbench.exchange.importers.source_files import Node, Source
from workbench.providers.wire.repairs import DETAILS, THOUGHTS, parted
from workbench.providers.wire.wire import UsageCount
from workbench.suite.render import Table
from workbench.trajectory.events import Deviation, JsonValue, Message, ToolCall, Usage

_TEXTS = ("text", "input_text", "output_text", "refusal")
_ROLES = {"system", "developer", "user", "human", "assistant", "ai", "tool", "function"}


def is_message(node: Node) -> bool:
    """Return whether a value is a message of either form."""
    return node.text_of("role") in _ROLES


def is_list_of_messages(node: Node | None) -> bool:
    return node is not None and isinstance(node.value, list) and bool(node.value) and is_message(node.items()[0])


def conversation_nodes(source: Source) -> list[Node]:
    """Return the conversations of a file: lists of messages, or tables with `messages`."""
    if source.kind != "lines" and (is_list_of_messages(source.root) or source.root.has("messages")):
        return [source.root]
    return source.records


def conversation_of(node: Node, messages: list[Node] | None = None) -> Conversation:
    """Return a conversation: a list of messages, or a table with `messages` and maybe `tools`, `system` and `model`;
    with `messages`, these are the conversation's. Raises RefusedError."""
    if messages is None:
        messages = (node if isinstance(node.value, list) else node.need("messages")).items()
    reading = _Reading()
    for each in messages:
        reading.take(each)
    tools: list[Table] = []
    for each in _listed(node, "tools") or _listed(node, "functions"):
        if each.get("type") is not None and each.text_of("type") not in ("function", "custom", ""):
            reading.note(each, f"a tool of the type {each.text_of('type')!r} is the provider's own: left out")
        elif (tool := tool_of(each))["name"] not in {other["name"] for other in tools}:
            tools.append(tool)
        else:
            reading.note(each, f"a second tool called {tool['name']!r}: left out")
    if not tools and reading.calls.made:
        reading.note(node, NO_TOOLS)
    system = node.get("system")
    texts = ([_text(system, reading)] if system is not None else []) + reading.system
    return Conversation(
        node.place,
        tuple(reading.messages),
        "\n\n".join(filter(None, texts)),
        tuple(tools),
        node.text_of("model") or "imported",
        node.text_of("name", "title"),
        reasoning=reading.reasoning,
        latency_ms=reading.latency_ms,
        usage=reading.usage,
        deviations=reading.deviations,
        notes=tuple(reading.notes),
    )


def _listed(node: Node, key: str) -> list[Node]:
    found = node.get(key)
    return found.items() if found is not None else []


class _Reading:
    """Reads messages one by one."""

    def __init__(self) -> None:
        self.calls = Calls()
        self.messages: list[Message] = []
        self.system: list[str] = []
        self.reasoning: dict[int, str] = {}
        self.latency_ms: dict[int, float] = {}
        self.usage: dict[int, Usage] = {}
        self.deviations: dict[int, tuple[Deviation, ...]] = {}
        self.notes: list[Note] = []

    def note(self, node: Node, why: str) -> None:
        self.notes.append(Note(node.place, why))

    def take(self, node: Node) -> None:
        role = node.need("role").text()
        content = node.get("content")
        match role:
            case "system" | "developer":
                self.system.append(_text(content, self))
            case "user" | "human":
                self._user(content)
            case "assistant" | "ai":
                self._assistant(node, content)
            case "tool" | "function":
                given = node.text_of("tool_call_id", "call_id")
                is_error = node.get("is_error")
                self._result(
                    node, given, node.text_of("name"), content, is_error is not None and is_error.value is True
                )
            case _:
                raise node.refused(f"has the role {role!r}, which is none of system, user, assistant and tool")

    def _user(self, content: Node | None) -> None:
        parts = content.listed() if content is not None else []
        others = [part for part in parts if part.text_of("type") != "tool_result"]
        for part in parts:
            if part.text_of("type") == "tool_result":
                is_error = part.get("is_error")
                given = part.text_of("tool_use_id")
                self._result(part, given, "", part.get("content"), is_error is not None and is_error.value is True)
        if others or not parts:
            text = "\n".join(filter(None, (_text(part, self) for part in others)))
            self.messages.append(Message("user", text))

    def _assistant(self, node: Node, content: Node | None) -> None:
        texts: list[str] = []
        thoughts = [node.text_of("reasoning_content", "reasoning")]
        made: list[ToolCall] = []
        for part in content.listed() if content is not None else []:
            match part.text_of("type"):
                case "tool_use":
                    arguments = part.get("input")
                    value = arguments.value if arguments is not None else None
                    made.append(self.calls.call(part, part.text_of("id"), part.text_of("name"), value))
                case "thinking":
                    thoughts.append(part.text_of("thinking"))
                case _:
                    texts.append(_text(part, self))
        for each in _listed(node, "tool_calls"):
            inner = each.get("function") or each
            arguments = inner.first("arguments", "args", "input")
            value = arguments.value if arguments is not None else None
            made.append(self.calls.call(each, each.text_of("id"), inner.text_of("name"), value))
        if (old := node.get("function_call")) is not None:
            arguments = old.get("arguments")
            value = arguments.value if arguments is not None else None
            made.append(self.calls.call(old, "", old.text_of("name"), value))
        in_text, answer = parted("\n".join(filter(None, texts)))
        if reasoning := "\n".join(filter(None, (*thoughts, in_text))):
            self.reasoning[len(self.messages)] = reasoning
        repaired = [Deviation(THOUGHTS, DETAILS[THOUGHTS])] if in_text else []
        repaired += [self.calls.repaired[call.id] for call in made if call.id in self.calls.repaired]
        if repaired:
            self.deviations[len(self.messages)] = tuple(repaired)
        if (usage := _usage(node.get("usage"))) is not None:
            self.usage[len(self.messages)] = usage
        if (latency := node.get("latency_ms")) is not None and (latency_ms := number_of(latency)) is not None:
            self.latency_ms[len(self.messages)] = latency_ms
        self.messages.append(Message("assistant", answer, tuple(made)))

    def _result(self, node: Node, given: str, tool: str, content: Node | None, is_error: bool) -> None:
        call_id = self.calls.answered(given, tool)
        if call_id is None:
            self.note(node, "a result that answers no call: left out")
            return
        self.messages.append(Message("tool", _text(content, self), call_id=call_id, is_error=is_error))


def number_of(node: Node | None) -> float | None:
    """Return a number that is not below zero; `None` for anything else."""
    value = node.value if node is not None else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**53:
        return None
    return value


def _usage(node: Node | None) -> Usage | None:
    """Return the tokens of an answer, by the keys of one of the three wires; `None` where they do not say any."""
    if node is None or not isinstance(node.value, dict):
        return None
    count = UsageCount()
    count.update(node.value)
    if node.has("prompt_tokens"):
        usage = count.chat()
    elif node.first("cache_read_input_tokens", "cache_creation_input_tokens") is not None:
        usage = count.messages()
    else:
        usage = count.responses()
    return usage if usage is not None and (usage.input_tokens or usage.output_tokens) else None


def call_written(given_id: str, tool: str, arguments: JsonValue) -> JsonValue:
    """Return a call as a message of OpenAI has it, for `conversation_of`."""
    return {"id": given_id, "function": {"name": tool, "arguments": arguments}}


def result_written(given_id: str, content: JsonValue, is_error: bool = False) -> JsonValue:
    """Return the message that answers a call: a text, or the JSON of another value."""
    text = content if isinstance(content, str) else "" if content is None else json_text(content)
    return {"role": "tool", "tool_call_id": given_id, "content": text, "is_error": is_error}


def _text(node: Node | None, reading: _Reading) -> str:
    """Return the text of a message's content: a text, or parts of which some may be texts."""
    if node is None:
        return ""
    if isinstance(node.value, str):
        return node.value
    if isinstance(node.value, list):
        return "\n".join(filter(None, (_text(part, reading) for part in node.items())))
    kind = node.text_of("type")
    text = node.first("text", "content", "refusal")
    if (kind in _TEXTS or not kind) and text is not None and isinstance(text.value, str):
        return text.value
    if isinstance(node.value, dict) and kind:
        reading.note(node, f"a part of the type {kind!r} is no text: left out")
        return ""
    return json_text(node.value)


def read_conversations(
    nodes: list[Node],
    more: Callable[[Node], tuple[str, ...]] | None = None,
    read: Callable[[Node], Conversation] = conversation_of,
) -> Imported:
    """Return a case for each conversation.

    Raises RefusedError where there is none."""

    def make(node: Node) -> ImportedCase:
        conversation = read(node)
        return case_of(replace(conversation, tags=more(node)) if more is not None else conversation)

    return imported_of(nodes, make, "conversation")


def _parts(node: Node) -> Iterator[Node]:
    listed = node if isinstance(node.value, list) else node.get("messages")
    for message in listed.items() if listed is not None and isinstance(listed.value, list) else []:
        content = message.get("content")
        if content is not None and isinstance(content.value, list):
            yield from content.items()


def _is_anthropic(node: Node) -> bool:
    tools = node.get("tools")
    return (
        node.has("system")
        or any(tool.has("input_schema") for tool in (tools.listed() if tools is not None else []))
        or any(part.text_of("type") in ("tool_use", "tool_result", "thinking") for part in _parts(node))
    )


def _holds_conversations(source: Source) -> bool:
    nodes = conversation_nodes(source)
    return bool(nodes) and (is_list_of_messages(nodes[0]) or is_list_of_messages(nodes[0].get("messages")))


def _read(source: Source) -> Imported:
    return read_conversations(conversation_nodes(source))


MESSAGES = Format(
    lambda source: _holds_conversations(source) and not any(map(_is_anthropic, conversation_nodes(source))), _read
)
ANTHROPIC = Format(
    lambda source: _holds_conversations(source) and any(map(_is_anthropic, conversation_nodes(source))), _read
)


# Conversations as OpenAI has them: messages (`workbench.exchange.importers.messages`), or items of its Responses API,
# `input` and `output` in a record or one list, as requests, answers and the sessions of its agents hold them.

_OF_ANSWERS = {"message", "function_call", "custom_tool_call", "reasoning"}
_RESULTS = {"function_call_output", "custom_tool_call_output"}
_TYPED = (_OF_ANSWERS | _RESULTS) - {"message"}


def _request(record: Node) -> Node:
    return record.get("request") or record


def _answer(record: Node) -> Node:
    return record.get("response") or record


def _items(node: Node | None) -> list[Node]:
    return node.items() if node is not None and isinstance(node.value, list) else []


def _is_typed(items: list[Node], kinds: set[str]) -> bool:
    return any(each.text_of("type") in kinds for each in items)


def has_items(record: Node) -> bool:
    """Return whether a record is a conversation in items: a list of them, or a table of `input` and `output`."""
    if isinstance(record.value, list):
        items = _items(record)
        return _is_typed(items, _TYPED) and (is_message(items[0]) or items[0].text_of("type") in _OF_ANSWERS | _RESULTS)
    output = _items(_answer(record).get("output"))
    return _is_typed(output, _OF_ANSWERS) or _is_typed(_items(_request(record).get("input")), _TYPED)


def conversation_of_items(record: Node) -> Conversation:
    """Return a conversation in items.

    Raises RefusedError."""
    notes: list[Note] = []
    if isinstance(record.value, list):
        return _with_notes(conversation_of(record, [*messages_of_items(record.items(), notes)]), notes)
    request, answer = _request(record), _answer(record)
    given, output = request.get("input"), answer.get("output")
    items = given.listed() if given is not None else []
    if request.get("previous_response_id") is not None:
        notes.append(Note(request.place, "continues an earlier response, which is not in the record"))
    made = output.items() if output is not None else []
    document = {key: each.value for key in ("tools", "model") if (each := request.get(key) or answer.get(key))}
    if (system := request.get("instructions") or answer.get("instructions")) is not None:
        document["system"] = system.value
    messages = [*messages_of_items([*items, *made], notes)]
    conversation = _with_notes(conversation_of(Node(document, record.place), messages), notes)
    count, usage = UsageCount(), answer.get("usage")
    count.update(usage.value if usage is not None else None)
    last = max((at for at, each in enumerate(conversation.messages) if each.role == "assistant"), default=None)
    if last is None or not made or (counted := count.responses()) is None:
        return conversation
    return replace(conversation, usage={last: counted})


def _with_notes(conversation: Conversation, notes: list[Note]) -> Conversation:
    return replace(conversation, notes=(*notes, *conversation.notes))


def messages_of_items(items: list[Node], notes: list[Note]) -> Iterator[Node]:
    """Return items as messages.

    What a model says one after another, without a result or a request in between, is one answer."""
    answer: dict[str, JsonValue] = {}
    place = ""
    for item in items:
        kind = item.text_of("type") or ("message" if is_message(item) else "")
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
        place = place if answer else item.place
        answer = _added(answer or {"role": "assistant", "content": []}, kind, item)
    if answer:
        yield Node(answer, place)


def _result(item: Node) -> Node:
    content = item.get("output")
    value = content.value if content is not None else None
    return Node({"role": "tool", "tool_call_id": item.text_of("call_id"), "content": value}, item.place)


def _added(answer: dict[str, JsonValue], kind: str, item: Node) -> dict[str, JsonValue]:
    if kind == "reasoning":
        parts = [part for key in ("summary", "content") for part in _items(item.get(key))]
        text = "\n".join(filter(None, (part.text_of("text") for part in parts)))
        said = answer.get("reasoning_content")
        return {**answer, "reasoning_content": "\n".join(filter(None, [said if isinstance(said, str) else "", text]))}
    if kind == "message":
        content, said = item.get("content"), answer["content"]
        assert isinstance(said, list)
        parts_of = [each.value for each in content.listed()] if content is not None else []
        return {**answer, "content": [*said, *parts_of]}
    calls = answer.get("tool_calls")
    arguments = item.first("arguments", "input")
    call: JsonValue = {
        "id": item.text_of("call_id", "id"),
        "function": {"name": item.text_of("name"), "arguments": arguments.value if arguments is not None else None},
    }
    return {**answer, "tool_calls": [*(calls if isinstance(calls, list) else []), call]}


def _nodes(source: Source) -> list[Node]:
    """Return the records of a file that may hold items: a list that is all of a conversation is one."""
    return [source.root] if source.kind != "lines" and has_items(source.root) else source.records


def _holds_items(source: Source) -> bool:
    return any(map(has_items, _nodes(source)[:1]))


def _responses_read(source: Source) -> Imported:
    return (
        read_conversations(_nodes(source), read=conversation_of_items)
        if _holds_items(source)
        else MESSAGES.read(source)
    )


OPENAI = Format(lambda source: _holds_items(source) or MESSAGES.recognizes(source), _responses_read)
