"""Import OpenTelemetry traces in OTLP JSON.

A file has one export, or an export on each line, as collectors write their files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from re import Match
from typing import TypeVar

from workbench.dataclasses import dataclass, parsed_json
from workbench.exchange.importers.conversations import (
    Conversation,
    Format,
    ImportedCase,
    ImportedFile,
    Note,
    case_of,
    collect_cases,
    first_refusal,
    indices_of,
)
from workbench.exchange.importers.messages import conversation_of
from workbench.exchange.importers.source_files import Node, RefusedError, Source, as_text, bare_values
from workbench.limits import MAX_TOKENS
from workbench.numerals import count_text
from workbench.trajectory.events import JsonValue, Usage

_Numbered = TypeVar("_Numbered")

# Messages, tools and token counts in the attributes of a span. The attributes follow the GenAI conventions,
# OpenInference, OpenLLMetry, Logfire with Pydantic AI, or Vercel's AI SDK. Messages of all of them are converted to
# OpenAI's form.

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
    """The attributes of a span by name, with the span's place in the file."""

    def __init__(self, values: Mapping[str, JsonValue], place: str) -> None:
        self.values = values
        self.place = place

    def node(self, key: str) -> Node | None:
        """Return the value of an attribute; `None` if the span lacks it. A text is parsed as JSON.

        Raises RefusedError for a text that is not JSON."""
        value = self.values.get(key)
        if value is None:
            return None
        try:
            return Node(value, f"{self.place}.{key}").parsed()
        except RefusedError as error:
            raise RefusedError(f"was cut off, or is not JSON ({error.why})", error.place) from error

    def items(self, key: str) -> list[Node]:
        """Return the elements of a list in an attribute; empty if the span lacks it.

        Raises RefusedError for another type."""
        found = self.node(key)
        return [] if found is None else found.items()

    def first(self, *keys: str) -> JsonValue:
        """Return the value of the first of these attributes that the span has; `None` if it has none of them."""
        for key in keys:
            if (value := self.values.get(key)) is not None:
                return value
        return None

    def text(self, *keys: str) -> str:
        """Return the first of these attributes that is a non-empty text; otherwise an empty text."""
        for key in keys:
            if isinstance(value := self.values.get(key), str) and value:
                return value
        return ""


def messages_of(span: Attributes) -> list[JsonValue]:
    """Return the messages of a span; empty if it contains none. Raises RefusedError if some are missing."""
    for read in _DIALECTS:
        found = [*read(span)]
        if _spoken(_roles(found)):
            return found
    return []


def covers_run(span: Attributes) -> bool:
    """Return whether a span covers a whole run of an agent instead of one request to the model."""
    return (
        span.values.get("gen_ai.operation.name") == "invoke_agent"
        or any(key in span.values for key in _WHOLE_RUN)
        or ("ai.prompt" in span.values and "ai.prompt.messages" not in span.values)
    )


def usage_of(span: Attributes) -> Usage | None:
    counts: dict[str, int] = {}
    for name, keys in _TOKENS.items():
        value = next(filter(lambda number: number is not None, map(whole_number, map(span.values.get, keys))), None)
        if value is not None and value <= MAX_TOKENS:
            counts[name] = value
    if not counts:
        return None
    return Usage(**counts)


def whole_number(value: JsonValue) -> int | None:
    """Return a whole number that is not negative, which OTLP may write as text; `None` for any other value."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**63:
        return None
    return int(value)


def tool_result_of(span: Attributes) -> tuple[str, str] | None:
    """Return the id of a call and its result, if this is the span of a tool; otherwise `None`."""
    call_id = span.text("gen_ai.tool.call.id", "ai.toolCall.id")
    result = span.first("gen_ai.tool.call.result", "tool_response", "ai.toolCall.result")
    if not call_id or result is None:
        return None
    return call_id, as_text(result)


def tools_of(span: Attributes) -> list[JsonValue]:
    for key in ("gen_ai.tool.definitions", "ai.prompt.tools"):
        if (given := span.node(key)) is not None:
            return [each.parsed().value for each in given.listed()]
    # `request_data` is not always JSON, so it is parsed only if it contains the word `tools`.
    if '"tools"' in as_text(span.values.get("request_data")):
        request = span.node("request_data")
        if request is not None and request.has("tools"):
            return bare_values(request.listed_of("tools"))
    if (asked := span.node("model_request_parameters")) is not None and (given := asked.get("function_tools")):
        return list(map(_of_pydantic, given.listed()))
    functions: dict[int, dict[str, JsonValue]] = {}
    for name, value in span.values.items():
        if match := _FUNCTION.fullmatch(name):
            functions.setdefault(int(match[1]), {})[match[2]] = value
    if functions:
        return list(_in_order(functions))
    tools: dict[int, JsonValue] = {}
    for name in span.values:
        if (match := _TOOL.fullmatch(name)) and (node := span.node(name)) is not None:
            tools[int(match[1])] = node.value
    return list(_in_order(tools))


def _in_order(numbered: Mapping[int, _Numbered]) -> Iterator[_Numbered]:
    # OTLP does not define an order of attributes, so they are sorted by their numbers.
    for number in sorted(numbered):
        yield numbered[number]


def _of_pydantic(tool: Node) -> JsonValue:
    written = tool.table()
    table = {"name": written.get("name"), "description": written.get("description")}
    if tool.has("parameters_json_schema"):
        table["parameters"] = written["parameters_json_schema"]
    return table


def _of_conventions(span: Attributes) -> Iterator[JsonValue]:
    if (system := span.node("gen_ai.system_instructions")) is not None:
        yield {"role": "system", "content": _texts(system.value)}
    keys: tuple[str, ...] = ("gen_ai.input.messages", "gen_ai.output.messages")
    if span.values.get("pydantic_ai.all_messages") is not None:
        keys = ("pydantic_ai.all_messages",)
    for key in keys:
        for message in span.items(key):
            yield from _of_parts(message)


def _texts(value: JsonValue) -> str:
    texts: list[str] = []
    for part in Node(value).listed():
        if isinstance(part.value, str):
            texts.append(part.value)
        elif isinstance(part.value, dict):
            texts.append(str(part.value.get("content") or ""))
    return "\n".join(texts)


def _of_parts(message: Node) -> Iterator[JsonValue]:
    """Yield a message in the form of the GenAI conventions as messages in OpenAI's form.

    Each result of a tool becomes a separate message."""
    role = message.need("role").text()
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[JsonValue] = []
    results: list[JsonValue] = []
    for part in message.items_of("parts"):
        match part.text_of("type"):
            case "text":
                texts.append(part.text_of("content"))
            case "reasoning":
                thoughts.append(part.text_of("content"))
            case "tool_call":
                function: JsonValue = {"name": part.text_of("name"), "arguments": part.table().get("arguments")}
                calls.append({"id": part.text_of("id"), "function": function})
            case "tool_call_response":
                content = as_text(part.value_of("response", "result"))
                result: dict[str, JsonValue] = {"role": "tool", "tool_call_id": part.text_of("id"), "content": content}
                results.append(result | {"is_error": part.value_of("is_error")})
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
    """Yield the messages in a list of events, as Logfire and Pydantic AI write them."""
    key = "all_messages_events"
    if "role" not in as_text(span.values.get(key)):
        key = "events"
    if "role" not in as_text(span.values.get(key)):
        return
    for event in span.items(key):
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
    """Yield the messages of a request to OpenAI or Anthropic and of its answer.

    Logfire writes these messages into attributes."""
    if '"messages"' not in as_text(span.values.get("request_data")):
        return
    request, response = span.node("request_data"), span.node("response_data")
    if request is None or not request.has("messages"):
        return
    if (system := request.get("system")) is not None:
        yield {"role": "system", "content": system.value}
    for each in request.items_of("messages"):
        yield each.value
    if response is None:
        return
    if (message := response.get("message")) is not None:
        yield {**message.table(), "role": "assistant"}
    # For a streamed answer, Logfire writes the joined text under this key.
    elif text := response.text_of("combined_chunk_content"):
        yield {"role": "assistant", "content": text}


def _of_vercel(span: Attributes) -> Iterator[JsonValue]:
    # The span of a run has `ai.prompt`, and the span of a request has `ai.prompt.messages`. Some spans have both keys.
    prompt, listed = None, span.node("ai.prompt.messages")
    if "ai.prompt.messages" not in span.values:
        prompt = span.node("ai.prompt")
    if prompt is not None:
        listed = prompt.get("messages")
        if system := prompt.text_of("system"):
            yield {"role": "system", "content": system}
        if listed is None and (asked := prompt.text_of("prompt")):
            yield {"role": "user", "content": asked}
    if listed is not None:
        for message in listed.items():
            yield from _of_vercel_message(message)
    elif prompt is None:
        return
    calls = span.items("ai.response.toolCalls") or span.items("ai.result.toolCalls")
    made = list(map(_vercel_call, calls))
    text = span.text("ai.response.text", "ai.result.text", "ai.response.object")
    if text or made:
        thoughts = span.text("ai.response.reasoning")
        yield {"role": "assistant", "content": text, "tool_calls": made, "reasoning_content": thoughts}


def _of_vercel_message(message: Node) -> Iterator[JsonValue]:
    role = message.need("role").text()
    others: list[JsonValue] = []
    calls: list[JsonValue] = []
    thoughts: list[str] = []
    for part in message.listed_of("content"):
        match part.text_of("type"):
            case "tool-call":
                calls.append(_vercel_call(part))
            case "tool-result":
                output = part.first("output", "result") or Node(None)
                kind = output.text_of("type")
                shown = output.at("value") if kind and output.has("value") else output
                yield {
                    "role": "tool",
                    "tool_call_id": part.text_of("toolCallId"),
                    "content": as_text(shown.value),
                    "is_error": part.table().get("isError") is True or kind.startswith("error"),
                }
            case "reasoning":
                thoughts.append(part.text_of("text"))
            case _:
                others.append(part.value)
    if role != "tool":
        yield {"role": role, "content": others, "tool_calls": calls, "reasoning_content": "\n".join(thoughts)}


def _vercel_call(part: Node) -> JsonValue:
    if (function := part.get("function")) is not None:
        return {"id": part.text_of("id"), "function": function.value}
    called: JsonValue = {"name": part.text_of("toolName"), "arguments": part.value_of("input", "args")}
    return {"id": part.text_of("toolCallId"), "function": called}


def _of_openllmetry(span: Attributes) -> list[JsonValue]:
    return _numbered(span, _PROMPT.fullmatch, "completion")


def _of_openinference(span: Attributes) -> list[JsonValue]:
    return _numbered(span, _MESSAGE.fullmatch, "output")


def _numbered(span: Attributes, match_of: Callable[[str], Match[str] | None], last: str) -> list[JsonValue]:
    """Return the messages of a span whose attributes have numbers, such as `gen_ai.prompt.0.role`.

    `match_of` splits an attribute's name into the kind of message, its number and its field. Messages of the kind
    `last` are answers and come after the others. Raises RefusedError if a number is missing. The SDK has then dropped
    attributes beyond its limit."""
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
        made_calls: list[JsonValue] = []
        for each in _in_order(of_message):
            called: JsonValue = {"name": each.get("name"), "arguments": each.get("arguments")}
            made_calls.append({"id": each.get("id") or "", "function": called})
        messages[place]["tool_calls"] = made_calls
    # Prompts and answers have separate numbers, which must each be complete.
    for of_last in (False, True):
        numbers = sorted(number for is_last, number in messages if is_last is of_last)
        if numbers and numbers != [*range(numbers[0], numbers[0] + len(numbers))]:
            missing = next(number for number in range(numbers[0], numbers[-1]) if number not in numbers)
            raise Node(None, span.place).refused(f"was cut off: the message number {missing} is missing")
    found: list[JsonValue] = []
    for (is_answer, _), message in sorted(messages.items(), key=lambda item: item[0]):
        if is_answer:
            found.append({"role": "assistant", **message})
        elif message.get("role"):
            found.append(message)
    return found


def _parts_in(value: JsonValue) -> JsonValue:
    if not isinstance(value, str) or not value.startswith("[{"):
        return value
    try:
        parts: JsonValue = parsed_json(value)
    except ValueError:
        return value
    typed = isinstance(parts, list) and all(isinstance(part, dict) and "type" in part for part in parts)
    return parts if typed else value


# An SDK may write several dialects into one span. The first dialect with messages is read.
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
    if source.kind == "lines":
        return source.records
    return [source.root]


def _recognizes(source: Source) -> bool:
    exports = _exports(source)
    return bool(exports) and (exports[0].has("resourceSpans") or exports[0].has("resource_spans"))


def _spans(source: Source) -> Iterator[_Span]:
    for export in _exports(source):
        for resource in (export.get("resource_spans") or export.need("resourceSpans")).items():
            for scope in resource.items_of("scopeSpans", "scope_spans"):
                for node in scope.items_of("spans"):
                    values = _attributes(node)
                    for event in node.items_of("events"):  # older conventions have the messages in events
                        values = _attributes(event) | values
                    trace = node.text_of("traceId", "trace_id")
                    start, end = _time(node, "startTimeUnixNano"), _time(node, "endTimeUnixNano")
                    yield _Span(node, trace, start, end, Attributes(values, node.place))


def _time(node: Node, key: str) -> int:
    return whole_number(node.value_of(key)) or 0


def _attributes(node: Node) -> dict[str, JsonValue]:
    return _table_of(node.items_of("attributes"))


def _table_of(pairs: list[Node]) -> dict[str, JsonValue]:
    found: dict[str, JsonValue] = {}
    for each in pairs:
        if (value := each.get("value")) is not None:
            found[each.text_of("key")] = _any_value(value)
    return found


def _any_value(node: Node) -> JsonValue:
    if (array := node.get("arrayValue")) is not None:
        return [_any_value(each) for each in array.items_of("values")]
    if (table := node.get("kvlistValue")) is not None:
        return _table_of(table.items_of("values"))
    return node.value_of("stringValue", "boolValue", "intValue", "doubleValue")


def _read(source: Source) -> ImportedFile:
    traces: dict[str, list[_Span]] = {}
    for span in _spans(source):
        traces.setdefault(span.trace, []).append(span)
    cases, notes = collect_cases(partial(_case, trace, of_trace) for trace, of_trace in traces.items())
    if not cases:
        raise first_refusal(notes, "holds no span")
    return ImportedFile(cases, notes=notes)


def _case(trace: str, spans: list[_Span]) -> ImportedCase:
    """Make a case from the longest conversation in a trace, with the results of its tools. Raises RefusedError."""
    # Files written by hand may lack the id of the trace.
    place = f"trace {trace}" if trace else "the trace"
    asked: list[tuple[_Span, list[JsonValue]]] = []
    for each in spans:
        if found_messages := messages_of(each.attributes):
            asked.append((each, found_messages))
    if not asked:
        raise RefusedError(
            "no span of a model holds its messages: record content at the source",
            place,
        )
    # Each request repeats the conversation, so the longest request contains all others of the same agent.
    span, messages = max(asked, key=lambda each: (len(each[1]), not covers_run(each[0].attributes), each[0].start_ns))
    _must_be_whole(span, messages, place)
    answered = {_answered(message) for message in messages}
    for tool in sorted(spans, key=lambda each: each.start_ns):
        if (found := tool_result_of(tool.attributes)) is None:
            continue
        call_id, result = found
        # If no later request repeats a result, it is only in the span of its tool.
        if call_id not in answered and _makes(messages, call_id):
            answered.add(call_id)
            messages.append({"role": "tool", "tool_call_id": call_id, "content": result})
    keys = ("gen_ai.request.model", "llm.model_name", "ai.model.id", "gen_ai.response.model", "model_name")
    same = [each for each in asked if _same(each[1], messages)]
    document: dict[str, JsonValue] = {"messages": messages}
    # Some SDKs write the tools or the model only into another span of the same request.
    for each, _ in [(span, messages), *same]:
        document["tools"] = document.get("tools") or tools_of(each.attributes)
        document["model"] = document.get("model") or each.attributes.text(*keys)
    conversation = conversation_of(Node(document, place))
    started = min((each.start_ns for each in spans if each.start_ns), default=0)
    latencies, usage = _measured(conversation, same)
    case = case_of(replace(conversation, started_at=_when(started), latency_ms=latencies, usage=usage))
    others = len(asked) - len(same)
    if not others:
        return case
    spans_left = "1 span of another conversation"
    if others > 1:
        spans_left = f"{count_text(others)} spans of other conversations"
    return case.with_notes(Note(place, f"{spans_left}: left out"))


def _must_be_whole(span: _Span, messages: list[JsonValue], place: str) -> None:
    dropped = span.node.first("droppedAttributesCount", "dropped_attributes_count")
    if dropped is not None and whole_number(dropped.value):
        raise RefusedError(f"was cut off: its source dropped {dropped.value} attributes of the span", place)
    roles = _roles(messages)
    if "user" in roles and _spoken(roles)[0] not in ("user", "human"):
        raise RefusedError("was cut off: it does not begin with a message of the user", place)


def _roles(messages: list[JsonValue]) -> list[JsonValue]:
    return [each.get("role") for each in messages if isinstance(each, dict)]


def _spoken(roles: list[JsonValue]) -> list[JsonValue]:
    return [role for role in roles if role not in ("system", "developer")]


def _measured(
    conversation: Conversation, spans: list[tuple[_Span, list[JsonValue]]]
) -> tuple[dict[int, float], dict[int, Usage]]:
    """Return the durations of answers in milliseconds, and their tokens, by message index.

    The duration and tokens of a span belong to the last answer in it. A span with several answers is ignored."""
    answers = list(indices_of("assistant", conversation.messages))
    latencies: dict[int, float] = {}
    usage: dict[int, Usage] = {}
    several = any(not covers_run(span.attributes) for span, _ in spans)
    for span, messages in sorted(spans, key=lambda each: each[0].end_ns - each[0].start_ns):
        roles = [role for role in _roles(messages) if role != "tool"]
        count = sum(role in ("assistant", "ai") for role in roles)
        ends = bool(roles) and roles[-1] in ("assistant", "ai")
        if not ends or not 0 < count <= len(answers) or ((several or count > 1) and covers_run(span.attributes)):
            continue
        at = answers[count - 1]
        if span.end_ns > span.start_ns:
            latencies.setdefault(at, (span.end_ns - span.start_ns) / 1e6)
        if (tokens := usage_of(span.attributes)) is not None:
            usage.setdefault(at, tokens)
    return latencies, usage


def _same(messages: list[JsonValue], others: list[JsonValue]) -> bool:
    return _first_request(messages) == _first_request(others)


def _first_request(messages: list[JsonValue]) -> JsonValue:
    texts = (each.get("content") for each in messages if isinstance(each, dict) and each.get("role") == "user")
    first = next(texts, None)
    # The request may be a text in one span, and a list with this text as its only part in another.
    if isinstance(first, list) and len(first) == 1 and isinstance(first[0], dict):
        return first[0].get("text")
    return first


def _when(ns: int) -> str:
    if not ns:
        return ""
    try:
        return datetime.fromtimestamp(ns / 1e9, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return ""


def _makes(messages: list[JsonValue], call_id: str) -> bool:
    for message in messages:
        calls = message.get("tool_calls") if isinstance(message, dict) else None
        if isinstance(calls, list) and any(Node(call).value_of("id") == call_id for call in calls):
            return True
    return False


def _answered(message: JsonValue) -> JsonValue:
    return Node(message).text_of("tool_call_id") or None


SPANS = Format(_recognizes, _read)
