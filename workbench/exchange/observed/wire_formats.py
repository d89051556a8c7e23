"""Reads requests and answers between a program and a model, in the wire formats of OpenAI and Anthropic.

Requests become lists of messages. Answers are read while they arrive."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import field

from workbench.config.models import ModelSpec, Provider
from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass, json_text, parsed_json
from workbench.exchange.importers.conversations import Note
from workbench.exchange.importers.messages import messages_of_items
from workbench.exchange.importers.source_files import Node, RefusedError, bare_values
from workbench.limits import MAX_BODY_BYTES, MAX_ERROR_BYTES, MAX_UNPACKED_BYTES
from workbench.providers.http.answers import BodyKind, SseParser, body_kind
from workbench.providers.http.endpoints import wire_of
from workbench.providers.model import FIRST_TOKEN_EVENTS, AnswerFinished, ModelError, ModelRequest
from workbench.providers.wire.errors import error_text, quoted
from workbench.providers.wire.wire import AnswerEvents, SseEvent
from workbench.trajectory.events import (
    CallFinished,
    CallStarted,
    Deviation,
    JsonValue,
    ReasoningDelta,
    StopReason,
    TextDelta,
    TextWasReasoning,
    ToolCall,
    ToolDefinition,
    Usage,
)

_PATHS: Mapping[str, Provider] = {
    "/chat/completions": "openai",
    "/responses": "openai-responses",
    "/messages": "anthropic",
}
READABLE_ENCODINGS = ("gzip", "deflate", "identity")
"""The readable compressions. The proxy requests only those that the program accepts too."""


def wire_format_of(path: str) -> Provider | None:
    """Return the wire format of requests to a path; `None` if requests to the path have no conversation."""
    for ending, wire in _PATHS.items():
        if path.rstrip("/").endswith(ending):
            return wire
    return None


@dataclass(frozen=True)
class Answer:
    """A model's answer. If it cannot be used, `problem` is the reason.

    Times are in milliseconds since the request. `response_id` is the answer's id, by which a later request of the
    Responses API may continue it."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    stop: StopReason = "answered"
    usage: Usage | None = None
    latency_ms: float = 0.0
    first_token_ms: float | None = None
    response_id: str = ""
    problem: str = ""
    deviations: tuple[Deviation, ...] = ()

    @property
    def message(self) -> dict[str, JsonValue]:
        """The answer as a message of Chat Completions."""
        calls: list[JsonValue] = []
        for call in self.calls:
            calls.append({"id": call.id, "function": {"name": call.tool, "arguments": _arguments_text(call)}})
        return {"role": "assistant", "content": self.text, "reasoning": self.reasoning, "tool_calls": calls}


def messages_in(wire: Provider, body: Node, notes: list[Note]) -> list[JsonValue]:
    """Return the messages of a request, in the form of Chat Completions or of Anthropic. Raises RefusedError.

    A note is added for each part that is left out."""
    if wire != "openai-responses":
        return bare_values(body.need("messages").items())
    items = body.need("input").listed()
    for item in items:
        if item.text_of("type") == "item_reference":
            raise item.refused("refers to an item that only the endpoint has")
    return bare_values(messages_of_items(items, notes))


def tools_in(body: Node) -> tuple[ToolDefinition, ...]:
    """Return the tools that a request offers, with their names only. More is not needed to read the answer."""
    names = []
    for tool in body.listed_of("tools"):
        inner = tool.get("function") or tool
        names.append(inner.text_of("name"))
    return tuple(ToolDefinition(name) for name in dict.fromkeys(filter(None, names)))


class Decompressor:
    """Decompresses the body of a request or an answer. Raises ValueError for an unreadable body or encoding."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding.strip().lower() or "identity"
        if self._encoding not in (*READABLE_ENCODINGS, "x-gzip"):
            raise ValueError(f"is compressed as {self._encoding}, which cannot be read here")
        self._unpack: Callable[[bytes, int], bytes] | None = None

    def feed(self, chunk: bytes) -> bytes:
        if self._encoding == "identity" or not chunk:
            return chunk
        if self._unpack is None:
            # Some servers send deflate with a zlib header, and some without.
            is_bare = self._encoding == "deflate" and chunk[0] & 15 != 8
            self._unpack = zlib.decompressobj(-zlib.MAX_WBITS if is_bare else zlib.MAX_WBITS | 32).decompress
        try:
            unpacked = self._unpack(chunk, MAX_UNPACKED_BYTES + 1)
        except zlib.error as error:
            raise ValueError(f"is not compressed as {self._encoding}, although its header says so: {error}") from None
        if len(unpacked) > MAX_UNPACKED_BYTES:
            raise ValueError(MAX_UNPACKED_BYTES.reached())
        return unpacked


@dataclass(eq=False)
class ObservedAnswerReader:
    """Reads an answer while it is forwarded.

    Its methods never raise. An error becomes the answer's `problem`."""

    wire: Provider
    model: str
    address: str
    tools: tuple[ToolDefinition, ...]
    secrets: Secrets
    clock: Callable[[], float] = time.perf_counter
    answer: Answer | None = None
    """The answer, once it has ended."""
    _status: int = 0
    _content_type: str = ""
    _unpacked: Decompressor | None = None
    _kind: BodyKind | None = None
    _held: bytearray = field(default_factory=bytearray)
    _bytes: int = 0
    _events: AnswerEvents = field(default_factory=list)
    _first_token_ms: float | None = None
    _response_id: str = ""

    def __post_init__(self) -> None:
        spec = ModelSpec(self.model or "the model", self.wire, self.model, self.address)
        self._reader = wire_of(spec, self.secrets).reader(ModelRequest(1, None, (), self.tools))
        self._parser = SseParser()
        self._began_s = self.clock()

    def begin(self, status: int, content_type: str, encoding: str) -> None:
        """Set the HTTP status, content type and content encoding of the answer, which come before its body."""
        self._status, self._content_type = status, content_type
        try:
            self._unpacked = Decompressor(encoding)
        except ValueError as error:
            self.fail(f"the answer {error}")

    def feed(self, chunk: bytes) -> None:
        """Read a piece of the body.

        If the format has an end mark, the answer is complete when the mark arrives."""
        if self.answer is None and self._unpacked is not None:
            self._guarded(lambda: self._read_piece(chunk))

    def end(self) -> None:
        if self.answer is None:
            self._guarded(self._finish)

    def fail(self, problem: str) -> None:
        """End the answer with a problem, unless the answer has already ended."""
        if self.answer is None:
            text = quoted(problem, self.secrets)
            self.answer = Answer(latency_ms=self._ms(), first_token_ms=self._first_token_ms, problem=text)

    def _ms(self) -> float:
        return (self.clock() - self._began_s) * 1000

    def _guarded(self, read: Callable[[], None]) -> None:
        try:
            read()
        except ModelError as error:
            self.fail(str(error))
        except Exception as error:  # noqa: BLE001 (a stranger's answer, which the program gets all the same)
            self.fail(f"the answer cannot be read: {error}")

    def _read_piece(self, chunk: bytes) -> None:
        assert self._unpacked is not None
        chunk = self._unpacked.feed(chunk)
        self._bytes += len(chunk)
        # For an error status, only the beginning of the body is kept, to quote it.
        if not 200 <= self._status < 300:
            self._held += chunk[: MAX_ERROR_BYTES - len(self._held)]
            return
        if self._bytes > MAX_BODY_BYTES:
            raise ValueError(f"the body is longer than {MAX_BODY_BYTES >> 20} MiB")
        if self._kind != "events":
            # Some endpoints send a wrong content type, so the first bytes are checked too.
            self._held += chunk
            self._kind = self._kind or body_kind(bytes(self._held[:64]).lstrip(), self._content_type)
            if self._kind != "events":
                return
            chunk = bytes(self._held.lstrip())
            self._held.clear()
        self._take_events(self._parser.feed(chunk))

    def _take_events(self, events: list[SseEvent]) -> None:
        for event in events:
            # The id is read from the first event, because the next request may already refer to it.
            if self.wire == "openai-responses" and not self._response_id:
                self._response_id = _response_id(event.data)
            self._read_event(event)
            if self._reader.ended:
                self._finish()
                return

    def _read_event(self, event: SseEvent) -> None:
        self._reader.feed(event)
        self._take_answer_events()

    def _take_answer_events(self) -> None:
        for event in self._reader.events:
            if self._first_token_ms is None and isinstance(event, FIRST_TOKEN_EVENTS):
                self._first_token_ms = self._ms()
            self._events.append(event)
        self._reader.events.clear()

    def _finish(self) -> None:
        if self._unpacked is None:
            raise ValueError("the endpoint sent no answer")
        if not 200 <= self._status < 300:
            words = error_text(self._held.decode("utf-8", "replace"))
            problem = f"the endpoint answered {self._status}"
            self.fail(f"{problem}: {words}" if words else problem)
            return
        if self._kind == "events":
            # The blank line after the last event may be missing.
            if not self._reader.ended:
                for event in self._parser.close():
                    self._read_event(event)
        elif self._kind == "document":
            document: JsonValue = json.loads(self._held)
            if isinstance(document, dict):
                self._response_id = str(document.get("id") or "")
            self._reader.feed_document(document)
            self._take_answer_events()
            # A document arrives as a whole, so there is no time to the first token.
            self._first_token_ms = None
        elif self._held.strip():
            raise ValueError("the body is neither a stream of events nor JSON")
        else:
            raise ValueError("the body is empty")
        self._reader.finish()
        self._take_answer_events()
        self.answer = self._made()

    def _made(self) -> Answer:
        names: dict[str, str] = {}
        calls: list[ToolCall] = []
        text: list[str] = []
        reasoning: list[str] = []
        finished = AnswerFinished("answered")
        for event in self._events:
            match event:
                case TextDelta(text=piece):
                    text.append(piece)
                case ReasoningDelta(text=piece):
                    reasoning.append(piece)
                # The model closed a tag of its reasoning that it had not opened, so the text before the tag was
                # reasoning.
                case TextWasReasoning():
                    reasoning += text
                    text.clear()
                case CallStarted(_, call_id, tool, by_provider=None):
                    names[call_id] = tool
                case CallFinished(call_id, arguments, raw, problem) if call_id in names:
                    calls.append(ToolCall(call_id, names[call_id], arguments, raw, problem))
                case AnswerFinished():
                    finished = event
        return Answer(
            "".join(text),
            "".join(reasoning),
            tuple(calls),
            finished.stop_reason,
            finished.usage,
            self._ms(),
            self._first_token_ms,
            self._response_id if self.wire == "openai-responses" else "",
            deviations=finished.deviations,
        )


def _arguments_text(call: ToolCall) -> str:
    if call.problem is not None and call.raw:
        return call.raw
    return json_text(call.arguments)


def _response_id(data: str) -> str:
    try:
        document = Node(json.loads(data))
    except ValueError:
        return ""
    return str(document.at("response").value_of("id") or "")


def body_node(body: bytes, encoding: str, place: str) -> Node:
    """Return the JSON in the body of a request. Raises RefusedError."""
    try:
        return Node(parsed_json(Decompressor(encoding).feed(body).decode("utf-8")), place)
    except (ValueError, RecursionError) as error:
        why = str(error) if str(error).startswith("is ") else "is not JSON"
        raise RefusedError(why, place) from None
