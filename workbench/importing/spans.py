"""Traces of OpenTelemetry as OTLP JSON (`workbench.importing.span_dialects` reads their attributes). The file is one
export, or one a line as collectors write them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from workbench.dataclasses import dataclass
from workbench.importing.bounds import RefusedError
from workbench.importing.conversations import Conversation, case_of
from workbench.importing.imported import Format, Imported, ImportedCase, Note, gathered
from workbench.importing.messages import conversation_of
from workbench.importing.reading import Node, Source
from workbench.importing.span_dialects import (
    Attributes,
    is_of_whole_run,
    messages_of,
    tool_result_of,
    tools_of,
    usage_of,
    whole_number,
)
from workbench.trajectory.messages import JsonValue, Usage


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
    """Returns a value of OTLP as JSON."""
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
    """Returns the longest conversation of a trace as a case, with what its tools answered. Raises RefusedError."""
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
    what = "1 span of another conversation" if others == 1 else f"{others:,} spans of other conversations"
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
    """Returns the milliseconds and the tokens of the answers, by the indices of their messages: each span has made the
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
    """Whether both begin with the same request."""
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
