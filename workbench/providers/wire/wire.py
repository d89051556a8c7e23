"""The interface of wire formats, which write the bodies of requests and read answers, without any connection."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from workbench.config.clouds import Api
from workbench.dataclasses import dataclass
from workbench.limits import MAX_TOKENS
from workbench.providers.model import AnswerFinished, ModelRequest
from workbench.trajectory.events import JsonValue, Message, ModelEvent, ToolCall, Usage
from workbench.trajectory.media import Media


class SseEvent(NamedTuple):
    """One server-sent event: its name, by default `message`, and its data. Lines of data are joined by `\\n`."""

    event: str
    data: str


AnswerEvents = list[ModelEvent | AnswerFinished]


class AnswerReader(Protocol):
    """A reader of one answer, event by event."""

    events: AnswerEvents
    """The events of the answer that were read and not yet taken. After an error, these are the events before it."""

    @property
    def ended(self) -> bool:
        """Whether the last event of the answer has arrived. The reader then needs no further events."""
        ...

    def feed(self, event: SseEvent) -> None:
        """Read one server-sent event.

        Raises ModelError for an error that the event reports, and for data that is not JSON."""
        ...

    def feed_document(self, document: JsonValue) -> None:
        """Read an answer that arrived as one JSON document instead of a stream.

        Raises ModelError for a document that reports an error or is not an answer."""
        ...

    def finish(self) -> None:
        """Add the remaining events at the end of the stream, ending with `AnswerFinished`.

        Raises ModelError for an empty stream, and for an answer that is not marked as complete."""
        ...


class Wire(Protocol):
    """One wire format, set up for one model.

    `path` is appended to the base URL. `notices` and `seed` have the same meaning as in `Model`."""

    api: Api
    path: str
    notices: tuple[str, ...]
    seed: int | None

    def body(self, request: ModelRequest) -> bytes:
        """Return the body of a request as JSON.

        The JSON of the tools is cached, because most requests have the same tools."""
        ...

    def reader(self, request: ModelRequest) -> AnswerReader:
        """Return a reader for the answer to that request."""
        ...

    def expect_llama_cpp(self) -> None:
        """Ask for progress reports on the prompt in all later requests, because the server is llama.cpp."""
        ...

    def tool_at(self, request: ModelRequest, error_text: str) -> str | None:
        """Return the suite's name of the tool that an endpoint's error message is about; `None` if it names no tool."""
        ...


_MAX_NUMBER = MAX_TOKENS // 3
"""The largest plausible token count. The sum of three such counts stays within the limit of stored counts."""


def as_dict(value: object) -> dict[str, Any]:
    """Return a value from an answer if it is an object; otherwise an empty object.

    Endpoints may send other values where their API defines objects."""
    return value if isinstance(value, dict) else {}


def dicts_in(value: object) -> Iterator[dict[str, Any]]:
    """Yield the objects in a list from an answer; nothing if the value is not a list."""
    if isinstance(value, list):
        for item in value:
            if isinstance(item, dict):
                yield item


class UsageCount:
    """Collects the token counts of one answer. If the endpoint repeats a count, the last value is used."""

    def __init__(self) -> None:
        self._fields: dict[str, Any] = {}

    def update(self, usage: object) -> None:
        """Add the usage that a chunk reports, if any."""
        for name, value in as_dict(usage).items():
            if value is not None:
                self._fields[name] = value

    def chat(self) -> Usage | None:
        """Return the token usage, read from the fields of Chat Completions; `None` if none was reported."""
        # DeepSeek reports cached tokens in a different field.
        cached = self._number("prompt_tokens_details", "cached_tokens") or self._number("prompt_cache_hit_tokens")
        reasoning = self._number("completion_tokens_details", "reasoning_tokens")
        return self._usage(self._number("prompt_tokens"), self._number("completion_tokens"), cached, reasoning)

    def responses(self) -> Usage | None:
        """Return the token usage, read from the fields of Responses; `None` if none was reported."""
        cached = self._number("input_tokens_details", "cached_tokens")
        reasoning = self._number("output_tokens_details", "reasoning_tokens")
        return self._usage(self._number("input_tokens"), self._number("output_tokens"), cached, reasoning)

    def messages(self) -> Usage | None:
        """Return the token usage, read from the fields of Messages; `None` if none was reported."""
        # The API's number of input tokens excludes tokens written to and read from the cache. `Usage` includes both.
        cached = self._number("cache_read_input_tokens")
        total = self._number("input_tokens") + self._number("cache_creation_input_tokens") + cached
        reasoning = self._number("output_tokens_details", "thinking_tokens")
        return self._usage(total, self._number("output_tokens"), cached, reasoning)

    def _usage(self, input_tokens: int, output_tokens: int, cached: int, reasoning: int) -> Usage | None:
        if not self._fields:
            return None
        return Usage(input_tokens, output_tokens, cached, reasoning)

    def _number(self, *path: str) -> int:
        value: Any = self._fields
        for name in path:
            value = as_dict(value).get(name)
        if isinstance(value, int | float) and 0 <= value <= _MAX_NUMBER:
            return int(value)
        return 0


# The provider state of an answer is the data that a provider requires back unchanged, in order with the text and the
# calls. As JSON it is `{"wire": NAME, "parts": [...]}`. Each part is one of `{"block": {...}}`, `{"call": ID}` and
# `{"text": "..."}`. A block may have the `text` that it contains. A call may have further fields in `more`. A text may
# have a `phase`, and `written` is the text with the model's thoughts. `{"pause": true}` separates the messages of an
# answer that the provider paused. A wire format ignores the state of other formats.

Part = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Block:
    """A part of an answer, other than text and calls, that is sent back unchanged."""

    document: dict[str, Any]


@dataclass(frozen=True, slots=True)
class TextPart:
    """A part of an answer's text.

    `phase` is the value of this field in the Responses API."""

    text: str
    phase: str | None = None


@dataclass(frozen=True, slots=True)
class CallPart:
    """A tool call in an answer. `more` are further fields that the provider sent with it."""

    call: ToolCall
    more: dict[str, Any]


@dataclass(frozen=True, slots=True)
class PausePart:
    """The position where the provider paused the answer. The parts after it form another message."""


def provider_state(wire: str, parts: list[Part]) -> JsonValue:
    """Return the data of an answer with these parts that must be sent back with it.

    It is `None` for a plain answer: at most one text, followed by calls."""
    is_special = any(not {"block", "more", "phase", "written"}.isdisjoint(part) for part in parts)
    if is_special or any("text" in part for part in parts[1:]):
        return {"wire": wire, "parts": [*parts]}
    return None


def state_of(message: Message, wire: str) -> dict[str, Any]:
    """Return the provider state in a message if it was stored by the format `wire`; otherwise an empty object."""
    state = as_dict(message.provider_state)
    return state if state.get("wire") == wire else {}


def text_part(pieces: list[str], written: list[str]) -> Part | None:
    """Return a part for a text; `None` for an empty text.

    `pieces` are the pieces of the answer's text. `written` are the pieces of the text including the model's
    thoughts."""
    text, whole = "".join(pieces), "".join(written)
    if not whole:
        return None
    if text == whole:
        return {"text": text}
    return {"text": text, "written": whole}


def call_part(call_id: str, more: dict[str, Any]) -> Part:
    """Return a part for a call. `more` are its fields besides id, name and arguments."""
    if more:
        return {"call": call_id, "more": more}
    return {"call": call_id}


def without_fields(document: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return a copy of an object from an answer, without the named fields and without fields that are `null`."""
    return {name: value for name, value in document.items() if name not in names and value is not None}


def parts_of(message: Message, wire: str) -> Iterator[Block | TextPart | CallPart | PausePart]:
    """Yield the parts of an assistant's message: blocks, texts, calls and pauses, in the order of the answer."""
    parts = state_of(message, wire).get("parts")
    calls = {call.id: call for call in message.tool_calls}
    # If the user has edited the message, its state no longer fits. Then the blocks come first, followed by the text and
    # the calls.
    if not isinstance(parts, list) or not _fits(parts, message.content, list(calls)):
        parts = [part for part in parts or () if "block" in part and "text" not in part]
        parts.append({"text": message.content})
        parts += [{"call": call_id} for call_id in calls]
    for part in parts:
        if "pause" in part:
            yield PausePart()
        elif "block" in part:
            yield Block(part["block"])
        elif "call" in part:
            yield CallPart(calls[part["call"]], part.get("more", {}))
        elif (text := part.get("written", part["text"])).strip():
            yield TextPart(text, part.get("phase"))


def _fits(parts: list[Part], content: str, call_ids: list[str]) -> bool:
    text = "".join(part.get("text", "") for part in parts)
    return text == content and [part["call"] for part in parts if "call" in part] == call_ids


def data_url(media: Media) -> str:
    return f"data:{media.media_type};base64,{media.data}"


def joined_states(first: JsonValue, second: JsonValue) -> JsonValue:
    """Join the provider states of an answer that the provider paused.

    `first` and `second` are the states before and after the pause, each with all parts."""
    before, after = as_dict(first), as_dict(second)
    return {**before, **after, "parts": [*before.get("parts", ()), {"pause": True}, *after.get("parts", ())]}
