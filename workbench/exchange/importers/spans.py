"""Traces of OpenTelemetry as OTLP JSON (`workbench.exchange.importers.spans` reads their attributes).

The file is one export, or one a line as collectors write them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from re import Match

from workbench.dataclasses import dataclass, json_text, parsed_json
from workbench.exchange.importers.conversations import (
    Conversation,
    Format,
    Imported,
    ImportedCase,
    Note,
    case_of,
    gathered,
)
from workbench.exchange.importers.messages import conversation_of
from workbench.exchange.importers.source_files import Node, RefusedError, Source
from workbench.limits import MAX_TOKENS
from workbench.numerals import count_text
from workbench.trajectory.events import JsonValue, Usage

# The messages, tools and token counts that a span holds, in the attributes of the GenAI conventions and of those
# who write others: OpenInference, OpenLLMetry, Logfire with Pydantic AI, and Vercel's AI SDK. Messages are
# OpenAI's.

_MESSAGE = re.compile(r"llm\.(input|output)_messages\.(\d{1,6})\.message\.(.+)")
_PROMPT = re.compile(r"gen_ai\.(prompt|completion)\.(\d{1,6})\.(.+)")
_CALL = re.compile(r"tool_calls\.(\d{1,6})\.(?:tool_call\.)?(?:function\.)?(id|name|arguments)")
_PART = re.compile(r"contents\.(\d{1,6})\.message_content\.text")
_TOOL = re.compile(r"llm\.tools\.(\d{1,6})\.tool\.json_schema")
_FUNCTION = re.compile(r"llm\.request\.functions\.(\d{1,6})\.(name|description|parameters)")

_WHOLE_RUN = ("all_messages_events", "pydantic_ai.all_messages")
_TOKENS = {
    "input_tokens": (
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.prompt_tokens",
        "llm.token_count.prompt",
        "ai.usage.inputTokens",
        "ai.usage.promptTokens",
    ),
    "output_tokens": (
        "gen_ai.usage.output_tokens",
        "gen_ai.usage.completion_tokens",
        "llm.token_count.completion",
        "ai.usage.outputTokens",
        "ai.usage.completionTokens",
    ),
    "cached_input_tokens": (
        "gen_ai.usage.cache_read.input_tokens",
        "gen_ai.usage.cache_read_input_tokens",
        "gen_ai.usage.details.cache_read_tokens",
        "llm.token_count.prompt_details.cache_read",
        "ai.usage.cachedInputTokens",
    ),
    "reasoning_tokens": (
        "gen_ai.usage.reasoning.output_tokens",
        "gen_ai.usage.reasoning_tokens",
        "gen_ai.usage.details.reasoning_tokens",
        "llm.token_count.completion_details.reasoning",
        "ai.usage.reasoningTokens",
    ),
}


class Attributes:
    """The attributes of a span by their names, with its place in the file."""

    def __init__(self, values: Mapping[str, JsonValue], place: str) -> None:
        self.values = values
        self.place = place

    def node(self, key: str) -> Node | None:
        """Return a value, and of a JSON text what it says.

        Raises RefusedError for a text that is no JSON."""
        value = self.values.get(key)
        if value is None:
            return None
        try:
            return Node(value, f"{self.place}.{key}").parsed()
        except RefusedError as error:
            raise RefusedError(f"was cut off, or is no JSON at all ({error.why})", error.place) from error

    def text(self, *keys: str) -> str:
        """Return the first of some values that is a text."""
        return next((value for key in keys if isinstance(value := self.values.get(key), str) and value), "")


def messages_of(span: Attributes) -> list[JsonValue]:
    """Return the conversation of a span, empty where it holds none.

    Raises RefusedError for one that was cut off."""
    for read in _DIALECTS:
        found = [*read(span)]
        if any(isinstance(each, dict) and each.get("role") not in ("system", "developer") for each in found):
            return found
    return []


def is_of_whole_run(span: Attributes) -> bool:
    """Return whether a span stands for all answers of an agent and not for one."""
    return (
        span.values.get("gen_ai.operation.name") == "invoke_agent"
        or any(key in span.values for key in _WHOLE_RUN)
        or ("ai.prompt" in span.values and "ai.prompt.messages" not in span.values)
    )


def usage_of(span: Attributes) -> Usage | None:
    """Return the tokens that a span counts, `None` where it counts none."""
    counts: dict[str, int] = {}
    for name, keys in _TOKENS.items():
        value = next((number for key in keys if (number := whole_number(span.values.get(key))) is not None), None)
        if value is not None and value <= MAX_TOKENS:
            counts[name] = value
    return Usage(**counts) if counts else None


def whole_number(value: JsonValue) -> int | None:
    """Return a number that OTLP writes as a number or as a text, `None` for anything else."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        return int(value)
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 2**63 else None


def tool_result_of(span: Attributes) -> tuple[str, str] | None:
    """Return the call that the span of a tool answers, and the answer."""
    call_id = span.text("gen_ai.tool.call.id", "ai.toolCall.id")
    keys = ("gen_ai.tool.call.result", "tool_response", "ai.toolCall.result")
    result = next((value for key in keys if (value := span.values.get(key)) is not None), None)
    return (call_id, as_text(result)) if call_id and result is not None else None


def tools_of(span: Attributes) -> list[JsonValue]:
    """Return the definitions of tools that a span holds."""
    for key in ("gen_ai.tool.definitions", "ai.prompt.tools"):
        if (given := span.node(key)) is not None:
            return [each.parsed().value for each in given.listed()]
    if (
        '"tools"' in as_text(span.values.get("request_data"))
        and (request := span.node("request_data")) is not None
        and (given := request.get("tools")) is not None
    ):
        return [each.value for each in given.listed()]
    if (asked := span.node("model_request_parameters")) is not None and (given := asked.get("function_tools")):
        return [_of_pydantic(each) for each in given.listed()]
    functions: dict[int, dict[str, JsonValue]] = {}
    for name, value in span.values.items():
        if match := _FUNCTION.fullmatch(name):
            functions.setdefault(int(match[1]), {})[match[2]] = value
    if functions:
        return [each for _, each in sorted(functions.items())]
    found = {int(match[1]): name for name in span.values if (match := _TOOL.fullmatch(name))}
    return [node.value for _, name in sorted(found.items()) if (node := span.node(name)) is not None]


def _of_pydantic(tool: Node) -> JsonValue:
    written = tool.table()
    return {"name": written.get("name"), "description": written.get("description")} | (
        {"parameters": written["parameters_json_schema"]} if tool.has("parameters_json_schema") else {}
    )


def as_text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json_text(value)


def _of_conventions(span: Attributes) -> Iterator[JsonValue]:
    if (system := span.node("gen_ai.system_instructions")) is not None:
        yield {"role": "system", "content": _texts(system.value)}
    whole = span.node("pydantic_ai.all_messages")
    keys = ("gen_ai.input.messages", "gen_ai.output.messages")
    for given in [whole] if whole is not None else map(span.node, keys):
        for message in given.items() if given is not None else []:
            yield from _of_parts(message)


def _texts(value: JsonValue) -> str:
    parts = value if isinstance(value, list) else [value]
    return "\n".join(
        part if isinstance(part, str) else str(part.get("content") or "")
        for part in parts
        if isinstance(part, str | dict)
    )


def _of_parts(message: Node) -> Iterator[JsonValue]:
    """Return a message of the conventions as messages of OpenAI: each result is one of its own."""
    role = message.need("role").text()
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[JsonValue] = []
    results: list[JsonValue] = []
    parts = message.get("parts")
    for part in parts.items() if parts is not None else []:
        match part.text_of("type"):
            case "text":
                texts.append(part.text_of("content"))
            case "reasoning":
                thoughts.append(part.text_of("content"))
            case "tool_call":
                function: JsonValue = {"name": part.text_of("name"), "arguments": part.table().get("arguments")}
                calls.append({"id": part.text_of("id"), "function": function})
            case "tool_call_response":
                response = part.first("response", "result")
                content = as_text(response.value) if response is not None else ""
                failed = part.get("is_error")
                result: dict[str, JsonValue] = {"role": "tool", "tool_call_id": part.text_of("id"), "content": content}
                results.append(result | ({"is_error": failed.value} if failed is not None else {}))
            case kind:
                texts.append(f"({kind or 'a part'}, not imported)")
    if texts or thoughts or calls or not results:
        content = "\n".join(texts) or message.text_of("content")
        table: dict[str, JsonValue] = {"role": role if role != "tool" else "user", "content": content}
        if calls:
            table["tool_calls"] = calls
        if thoughts:
            table["reasoning_content"] = "\n".join(thoughts)
        yield table
    yield from results


def _of_events(span: Attributes) -> Iterator[JsonValue]:
    """Return the messages that Logfire and Pydantic AI have as a list of events."""
    key = next((key for key in ("all_messages_events", "events") if "role" in as_text(span.values.get(key))), "")
    events = span.node(key)
    for event in events.items() if events is not None else []:
        kind = event.text_of("event.name")
        message = event.need("message") if kind == "gen_ai.choice" else event
        table = dict(message.table())
        table["role"] = message.text_of("role") or kind.removeprefix("gen_ai.").removesuffix(".message")
        if kind == "gen_ai.choice":
            table["role"] = "assistant"
        if table["role"] == "tool" and "tool_call_id" not in table:
            table["tool_call_id"] = event.text_of("id")
        yield table


def _of_requests(span: Attributes) -> Iterator[JsonValue]:
    """Return the messages that Logfire has as the body of a request to OpenAI or Anthropic, and the answer to it."""
    if '"messages"' not in as_text(span.values.get("request_data")):
        return
    request, response = span.node("request_data"), span.node("response_data")
    listed = request.get("messages") if request is not None else None
    if request is None or listed is None:
        return
    if (system := request.get("system")) is not None:
        yield {"role": "system", "content": system.value}
    yield from (each.value for each in listed.items())
    if response is not None and (message := response.get("message")) is not None:
        yield {**message.table(), "role": "assistant"}
    elif response is not None and (text := response.text_of("combined_chunk_content")):
        yield {"role": "assistant", "content": text}


def _of_vercel(span: Attributes) -> Iterator[JsonValue]:
    prompt = span.node("ai.prompt") if "ai.prompt.messages" not in span.values else None
    listed = span.node("ai.prompt.messages") or (prompt.get("messages") if prompt is not None else None)
    if prompt is not None:
        if system := prompt.text_of("system"):
            yield {"role": "system", "content": system}
        if listed is None and (asked := prompt.text_of("prompt")):
            yield {"role": "user", "content": asked}
    for message in listed.items() if listed is not None else []:
        yield from _of_vercel_message(message)
    if listed is None and prompt is None:
        return
    calls = span.node("ai.response.toolCalls") or span.node("ai.result.toolCalls")
    made = [_vercel_call(each) for each in calls.items()] if calls is not None else []
    text = span.text("ai.response.text", "ai.result.text", "ai.response.object")
    if text or made:
        thoughts = span.text("ai.response.reasoning")
        yield {"role": "assistant", "content": text, "tool_calls": made, "reasoning_content": thoughts}


def _of_vercel_message(message: Node) -> Iterator[JsonValue]:
    role, content = message.need("role").text(), message.get("content")
    others: list[JsonValue] = []
    calls: list[JsonValue] = []
    thoughts: list[str] = []
    for part in content.listed() if content is not None else []:
        match part.text_of("type"):
            case "tool-call":
                calls.append(_vercel_call(part))
            case "tool-result":
                output = part.first("output", "result")
                kind, inner = (output.text_of("type"), output.get("value")) if output is not None else ("", None)
                shown = inner if kind and inner is not None else output
                yield {
                    "role": "tool",
                    "tool_call_id": part.text_of("toolCallId"),
                    "content": as_text(shown.value) if shown is not None else "",
                    "is_error": part.table().get("isError") is True or kind.startswith("error"),
                }
            case "reasoning":
                thoughts.append(part.text_of("text"))
            case _:
                others.append(part.value)
    if role != "tool":
        yield {"role": role, "content": others, "tool_calls": calls, "reasoning_content": "\n".join(thoughts)}


def _vercel_call(part: Node) -> JsonValue:
    arguments = part.first("input", "args")
    function = part.get("function")
    if function is not None:
        return {"id": part.text_of("id"), "function": function.value}
    value = arguments.value if arguments is not None else None
    return {"id": part.text_of("toolCallId"), "function": {"name": part.text_of("toolName"), "arguments": value}}


def _of_openllmetry(span: Attributes) -> list[JsonValue]:
    return _numbered(span, _PROMPT.fullmatch, "completion")


def _of_openinference(span: Attributes) -> list[JsonValue]:
    return _numbered(span, _MESSAGE.fullmatch, "output")


def _numbered(span: Attributes, match_of: Callable[[str], Match[str] | None], last: str) -> list[JsonValue]:
    """Return the messages that a span has in attributes of their own, those of `last` after the others.

    Raises RefusedError where one in between is missing, as where a limit of attributes was reached."""
    messages: dict[tuple[bool, int], dict[str, JsonValue]] = {}
    calls: dict[tuple[bool, int], dict[int, dict[str, JsonValue]]] = {}
    for key, value in span.values.items():
        match = match_of(key)
        if match is None:
            continue
        place = (match[1] == last, int(match[2]))
        message = messages.setdefault(place, {})
        if call := _CALL.fullmatch(match[3]):
            made = calls.setdefault(place, {}).setdefault(int(call[1]), {})
            made[call[2]] = value
        elif _PART.fullmatch(match[3]):
            message["content"] = "\n".join(filter(None, (as_text(message.get("content") or ""), as_text(value))))
        elif match[3] == "content":
            message["content"] = _parts_in(value)
        elif match[3] in ("role", "tool_call_id", "name"):
            message[match[3]] = "assistant" if value == "model" else value
        elif match[3] == "reasoning":
            message["reasoning_content"] = value
    for place, of_message in calls.items():
        messages[place]["tool_calls"] = [
            {"id": each.get("id") or "", "function": {"name": each.get("name"), "arguments": each.get("arguments")}}
            for _, each in sorted(of_message.items())
        ]
    for of_last in (False, True):
        numbers = sorted(number for is_last, number in messages if is_last is of_last)
        if numbers and numbers != [*range(numbers[0], numbers[0] + len(numbers))]:
            missing = next(number for number in range(numbers[0], numbers[-1]) if number not in numbers)
            raise Node(None, span.place).refused(f"was cut off: the message number {missing} is missing")
    return [
        {"role": "assistant" if place[0] else "", **message}
        for place, message in sorted(messages.items())
        if place[0] or message.get("role")
    ]


def _parts_in(value: JsonValue) -> JsonValue:
    """Return the parts of a message that are written as one JSON text; any other text stays."""
    if not isinstance(value, str) or not value.startswith("[{"):
        return value
    try:
        parts: JsonValue = parsed_json(value)
    except ValueError:
        return value
    typed = isinstance(parts, list) and all(isinstance(part, dict) and "type" in part for part in parts)
    return parts if typed else value


_DIALECTS: tuple[Callable[[Attributes], Iterator[JsonValue] | list[JsonValue]], ...] = (
    _of_conventions,
    _of_events,
    _of_requests,
    _of_vercel,
    _of_openllmetry,
    _of_openinference,
)


@dataclass(frozen=True)
class _Span:
    node: Node
    trace: str
    start_ns: int
    end_ns: int
    attributes: Attributes


def _exports(source: Source) -> list[Node]:
    return source.records if source.kind == "lines" else [source.root]


def _recognizes(source: Source) -> bool:
    exports = _exports(source)
    return bool(exports) and (exports[0].has("resourceSpans") or exports[0].has("resource_spans"))


def _spans(source: Source) -> Iterator[_Span]:
    for export in _exports(source):
        for resource in (export.get("resource_spans") or export.need("resourceSpans")).items():
            scopes = resource.first("scopeSpans", "scope_spans")
            for scope in scopes.items() if scopes is not None else []:
                spans = scope.get("spans")
                for node in spans.items() if spans is not None else []:
                    values = _attributes(node)
                    events = node.get("events")
                    for event in events.items() if events is not None else []:
                        values = _attributes(event) | values
                    trace = node.text_of("traceId", "trace_id")
                    start, end = _time(node, "startTimeUnixNano"), _time(node, "endTimeUnixNano")
                    yield _Span(node, trace, start, end, Attributes(values, node.place))


def _time(node: Node, key: str) -> int:
    found = node.get(key)
    return (whole_number(found.value) or 0) if found is not None else 0


def _attributes(node: Node) -> dict[str, JsonValue]:
    listed = node.get("attributes")
    found: dict[str, JsonValue] = {}
    for each in listed.items() if listed is not None else []:
        value = each.get("value")
        if value is not None:
            found[each.text_of("key")] = _any_value(value)
    return found


def _any_value(node: Node) -> JsonValue:
    """Return a value of OTLP as JSON."""
    for key in ("stringValue", "boolValue", "intValue", "doubleValue"):
        if (found := node.get(key)) is not None:
            return found.value
    if (array := node.get("arrayValue")) is not None:
        values = array.get("values")
        return [_any_value(each) for each in values.items()] if values is not None else []
    if (table := node.get("kvlistValue")) is not None:
        values = table.get("values")
        pairs = values.items() if values is not None else []
        return {each.text_of("key"): _any_value(inner) for each in pairs if (inner := each.get("value")) is not None}
    return None


def _read(source: Source) -> Imported:
    traces: dict[str, list[_Span]] = {}
    for span in _spans(source):
        traces.setdefault(span.trace, []).append(span)
    makers: list[Callable[[], ImportedCase]] = [partial(_case, trace, spans) for trace, spans in traces.items()]
    cases, notes = gathered(makers)
    if not cases:
        raise RefusedError(notes[0].why if notes else "holds no span", notes[0].place if notes else "")
    return Imported(cases, notes=notes)


def _case(trace: str, spans: list[_Span]) -> ImportedCase:
    """Return the longest conversation of a trace as a case, with what its tools answered.

    Raises RefusedError."""
    place = f"trace {trace}" if trace else "the trace"
    asked = [(span, messages) for span in spans if (messages := messages_of(span.attributes))]
    if not asked:
        raise RefusedError(
            "no span of a model holds its messages: record content at the source, as without it there are names only",
            place,
        )
    span, messages = max(
        asked, key=lambda each: (len(each[1]), not is_of_whole_run(each[0].attributes), each[0].start_ns)
    )
    _must_be_whole(span, messages, place)
    answered = {_answered(message) for message in messages}
    for tool in sorted(spans, key=lambda each: each.start_ns):
        if (found := tool_result_of(tool.attributes)) is None:
            continue
        call_id, result = found
        if call_id not in answered and _makes(messages, call_id):
            answered.add(call_id)
            messages.append({"role": "tool", "tool_call_id": call_id, "content": result})
    keys = ("gen_ai.request.model", "llm.model_name", "ai.model.id", "gen_ai.response.model", "model_name")
    alike = [span, *(each for each, said in asked if each is not span and _same(said, messages))]
    document: dict[str, JsonValue] = {
        "messages": messages,
        "tools": next(filter(None, (tools_of(each.attributes) for each in alike)), []),
        "model": next(filter(None, (each.attributes.text(*keys) for each in alike)), ""),
    }
    conversation = conversation_of(Node(document, place))
    started = min((each.start_ns for each in spans if each.start_ns), default=0)
    latencies, usage = _measured(conversation, [each for each in asked if _same(each[1], messages)])
    case = case_of(replace(conversation, started_at=_when(started), latency_ms=latencies, usage=usage))
    others = sum(not _same(each, messages) for _, each in asked)
    if not others:
        return case
    what = "1 span of another conversation" if others == 1 else f"{count_text(others)} spans of other conversations"
    return case.noted(Note(place, f"{what}: left out"))


def _must_be_whole(span: _Span, messages: list[JsonValue], place: str) -> None:
    dropped = span.node.first("droppedAttributesCount", "dropped_attributes_count")
    if dropped is not None and whole_number(dropped.value):
        raise RefusedError(f"was cut off: its source dropped {dropped.value} attributes of the span", place)
    roles = [each.get("role") for each in messages if isinstance(each, dict)]
    first = next((role for role in roles if role not in ("system", "developer")), None)
    if first not in ("user", "human") and "user" in roles:
        raise RefusedError("was cut off: it does not begin with a message of the user", place)


def _measured(
    conversation: Conversation, spans: list[tuple[_Span, list[JsonValue]]]
) -> tuple[dict[int, float], dict[int, Usage]]:
    """Return the milliseconds and the tokens of the answers, by the indices of their messages: each span has made the
    last answer of its messages. One that stands for several answers says nothing of one of them."""
    answers = [index for index, message in enumerate(conversation.messages) if message.role == "assistant"]
    latencies: dict[int, float] = {}
    usage: dict[int, Usage] = {}
    several = any(not is_of_whole_run(span.attributes) for span, _ in spans)
    for span, messages in sorted(spans, key=lambda each: each[0].end_ns - each[0].start_ns):
        roles = [each.get("role") for each in messages if isinstance(each, dict)]
        count = sum(role in ("assistant", "ai") for role in roles)
        ends = bool(roles) and next((role for role in reversed(roles) if role != "tool"), None) in ("assistant", "ai")
        if not ends or not 0 < count <= len(answers) or ((several or count > 1) and is_of_whole_run(span.attributes)):
            continue
        at = answers[count - 1]
        if span.end_ns > span.start_ns:
            latencies.setdefault(at, (span.end_ns - span.start_ns) / 1e6)
        if (tokens := usage_of(span.attributes)) is not None:
            usage.setdefault(at, tokens)
    return latencies, usage


def _same(messages: list[JsonValue], others: list[JsonValue]) -> bool:
    """Return whether both begin with the same request."""
    return _first_request(messages) == _first_request(others)


def _first_request(messages: list[JsonValue]) -> JsonValue:
    texts = (each.get("content") for each in messages if isinstance(each, dict) and each.get("role") == "user")
    first = next(texts, None)
    parts = first if isinstance(first, list) else []
    said = [part.get("text") for part in parts if isinstance(part, dict)]
    return said[0] if len(said) == len(parts) == 1 else first


def _when(ns: int) -> str:
    try:
        return datetime.fromtimestamp(ns / 1e9, UTC).isoformat(timespec="milliseconds") if ns else ""
    except (OverflowError, ValueError, OSError):
        return ""


def _makes(messages: list[JsonValue], call_id: str) -> bool:
    return any(
        isinstance(message, dict)
        and isinstance(calls := message.get("tool_calls"), list)
        and any(isinstance(call, dict) and call.get("id") == call_id for call in calls)
        for message in messages
    )


def _answered(message: JsonValue) -> JsonValue:
    found = message.get("tool_call_id") if isinstance(message, dict) else None
    return found if isinstance(found, str) else None


SPANS = Format(_recognizes, _read)
