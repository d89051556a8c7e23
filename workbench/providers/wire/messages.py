"""The wire format of Anthropic's Messages API: requests and answers.

https://docs.anthropic.com/en/api/messages
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from datetime import UTC, datetime
from typing import Any

from workbench.config.clouds import Api
from workbench.config.models import ModelSpec
from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass
from workbench.providers.model import AnswerFinished, ModelRequest
from workbench.providers.wire.errors import AnswerErrors, reports_error
from workbench.providers.wire.provider_calls import ProviderCall, ProviderCalls, ids_of_blocks
from workbench.providers.wire.repairs import AnswerText, TextEvent
from workbench.providers.wire.tool_calls import (
    CallAssembly,
    OpenCall,
    TextPieces,
    ToolNames,
    ToolOfferCache,
    accepted_names,
    arguments_to_send,
    body_text,
    name_and_description,
    object_schema,
    params_for,
    read_input,
    sent_params,
)
from workbench.providers.wire.wire import (
    Block,
    CallPart,
    Part,
    PausePart,
    SseEvent,
    TextPart,
    UsageCount,
    as_dict,
    call_part,
    dicts_in,
    parts_of,
    provider_state,
    state_of,
    text_part,
    without_fields,
)
from workbench.trajectory.events import (
    JsonValue,
    Message,
    ReasoningDelta,
    StopReason,
    TextDelta,
    TextWasReasoning,
    ToolDefinition,
)
from workbench.trajectory.media import Media, text_and_media

WIRE = "anthropic"

ANTHROPIC_VERSION = "2026-10-21"
"""The version of the API that requests name."""

_TRUNCATED = {"max_tokens", "model_context_window_exceeded"}
_PAUSED = {"pause_turn", "compaction"}
"""Stop reasons of an unfinished answer: the provider's own tools are working, or it summarised the conversation."""


@dataclass(slots=True)
class _Block:
    """One content block of an answer: text, a call, or another block, which is sent back unchanged.

    `fields` are the fields of the block's first event, with the changes by later events."""

    kind: str
    fields: dict[str, Any] = field(default_factory=dict)
    pieces: list[str] = field(default_factory=list)
    """The pieces of a text without its thoughts, or the pieces of a block of thinking."""
    written: list[str] = field(default_factory=list)
    """The pieces of a text as they arrived, including thoughts."""
    call: OpenCall | None = None
    input: list[str] = field(default_factory=list)
    """The pieces of the JSON text of an input that does not belong to a call."""
    provider_call: ProviderCall | None = None
    is_emitted: bool = False
    """Whether all events of a provider's call, or of its result, were emitted."""

    def part(self) -> Part | None:
        if self.call is not None:
            more = {name: value for name, value in self.fields.items() if name not in _OF_CALLS}
            return call_part(self.call.id, more)
        if self.kind == "thinking":
            return {"block": {**self.fields, "type": self.kind, "thinking": "".join(self.pieces)}}
        if self.kind != "text":
            return {"block": self.document()} if "type" in self.fields else None
        part = text_part(self.pieces, self.written)
        more = {name: value for name, value in self.fields.items() if name not in ("type", "text") and value}
        if part is None or not more or not "".join(self.written).strip():
            return part
        if "citations" in more:
            more["citations"] = [without_fields(each, *_ONLY_IN_CITATIONS) for each in dicts_in(more["citations"])]
        return {"text": part["text"], "block": {"type": self.kind, "text": "".join(self.written), **more}}

    def document(self) -> dict[str, Any]:
        document = dict(self.fields)
        if self.input:
            document["input"] = read_input("".join(self.input))
        if self.kind.endswith(_RESULT):
            for name in _ONLY_IN_RESULTS:
                document.pop(name, None)
        return document

    def add(self, delta: dict[str, Any]) -> None:
        for name, value in delta.items():
            if name == "partial_json" and isinstance(value, str):
                self.input.append(value)
            elif name == "citation":
                self.fields["citations"] = [*(self.fields.get("citations") or ()), value]
            elif name != "type" and value is not None:
                self.fields[name] = _grown(self.fields.get(name), value)


_OF_CALLS = ("type", "id", "name", "input")

_USE, _RESULT = "_tool_use", "_tool_result"
"""Suffixes of the types of blocks of the provider's own tools."""

_NOT_CALLS = ("redacted_thinking", "compaction")

_ONLY_IN_RESULTS = ("citations",)
"""Fields in results of a provider's own tools that the API sends but refuses in a request."""

_ONLY_IN_CITATIONS = ("file_id",)


def _grown(before: object, more: object) -> object:
    if isinstance(before, str) and isinstance(more, str):
        return before + more
    if isinstance(before, list) and isinstance(more, list):
        return [*before, *more]
    return more


class MessagesReader:
    """Reads one answer of the API.

    With `thoughts_apart`, the model's thoughts at the beginning of the text become reasoning. `continues` means that
    the answer continues a paused answer."""

    def __init__(
        self,
        round_number: int,
        calls: CallAssembly,
        errors: AnswerErrors,
        of_provider: ProviderCalls,
        *,
        thoughts_apart: bool = True,
        continues: bool = False,
    ) -> None:
        self._round = round_number
        self._calls = calls
        self.events = calls.events
        self._errors = errors
        self._of_provider = of_provider
        self._usage = UsageCount()
        self._pieces = TextPieces()
        self._text = AnswerText(round_number, apart=thoughts_apart)
        self._blocks: list[_Block] = []
        self._by_index: dict[int | None, _Block] = {}
        self._began = False
        self.ended = False
        self._reason: str | None = None
        self._container: dict[str, Any] = {}
        self._continues = continues

    def feed(self, event: SseEvent) -> None:
        """Read a server-sent event.

        Raises ModelError for an error that the event reports, and for data that is not JSON."""
        document = self._errors.document(event)
        if document is None:
            return
        kind = document.get("type") or event.event
        index = document.get("index")
        if not isinstance(index, int):
            index = None
        if kind == "content_block_delta":
            self._delta(index, as_dict(document.get("delta")))
        elif kind == "content_block_start":
            self._start(index, as_dict(document.get("content_block")))
        elif kind == "content_block_stop":
            self._stop(index)
        elif kind == "message_start":
            self._began = True
            self._end(as_dict(document.get("message")))
        elif kind == "message_delta":
            self._end({**as_dict(document.get("delta")), "usage": document.get("usage")})
        elif kind == "message_stop":
            self.ended = True

    def feed_document(self, document: JsonValue) -> None:
        """Read an answer that arrived as one document.

        Raises ModelError for a document that reports an error or is not an answer."""
        if reports_error(document):
            raise self._errors.reported(document)
        if not isinstance(document, dict) or not isinstance(content := document.get("content"), list):
            raise self._errors.no_answer(document)
        for index, block in enumerate(content):
            self._start(index, as_dict(block))
            self._stop(index)
        self._end(document)
        self._began = self.ended = True

    def finish(self) -> None:
        """Add the events that end the answer.

        Raises ModelError if the stream stopped before the answer was complete."""
        if not self._began:
            raise self._errors.empty_stream()
        if self._reason is None and not self.ended:
            raise self._errors.incomplete_stream("neither stop_reason nor message_stop")
        texts = [block for block in self._blocks if block.kind == "text"]
        if texts:
            self._answers(texts[-1], self._text.flush())
        self._calls.finish_all()
        for block in self._blocks:
            self._end_of_provider(block)
        parts = [part for block in self._blocks if (part := block.part()) is not None]
        # If the answer has calls, it is not paused, because their results must be sent before the model can continue.
        paused = self._reason in _PAUSED and not self._calls.calls
        state = self._errors.storable_state(self._state(parts, is_whole=paused or self._continues))
        deviations = (*self._text.deviations, *self._calls.deviations)
        end = AnswerFinished(self._stop_reason(), self._usage.messages(), state, deviations, paused=paused)
        self.events.append(end)

    def _state(self, parts: list[Part], *, is_whole: bool) -> JsonValue:
        """Return the data of an answer that must be sent back with it; `None` if text and calls suffice.

        With `is_whole`, all parts are included in any case."""
        state: dict[str, Any] = {"wire": WIRE, "parts": parts}
        # The next request must name the container, because code that the provider runs there may wait for the result of
        # a call.
        if self._container:
            return {**state, "container": self._container}
        if is_whole:
            return state
        return provider_state(WIRE, parts)

    def _start(self, index: int | None, given: dict[str, Any]) -> None:
        self._errors.check_parts(self._blocks)
        self._began = True
        kind = str(given.get("type"))
        block = self._by_index[index] = _Block(kind, dict(given))
        self._blocks.append(block)
        if kind == "tool_use":
            block.call = self._calls.begin(given.get("id"))
            self._calls.name(block.call, given.get("name"))
            self._calls.start(block.call)
        elif kind in ("text", "thinking"):
            self._add_text(block, given.get(kind))
        elif "type" in given and kind not in _NOT_CALLS and not kind.endswith(_RESULT):
            name = given.get("name") if kind.endswith(_USE) else kind
            block.provider_call = self._of_provider.begin(given.get("id"), name)

    def _end_of_provider(self, block: _Block) -> None:
        """Finish a call that the provider runs, or add the call's result.

        Blocks of other kinds are left alone."""
        if block.is_emitted or block.call is not None or block.kind in (*_NOT_CALLS, "text", "thinking"):
            return
        block.is_emitted = True
        document = block.document()
        if block.provider_call is not None:
            given = document.get("input")
            if not block.kind.endswith(_USE):
                given = without_fields(document, "type", "id")
            self._of_provider.finish(block.provider_call, "".join(block.input) or given)
        elif block.kind.endswith(_RESULT):
            content = document.get("content")
            is_error = bool(document.get("is_error")) or str(as_dict(content).get("type")).endswith("_error")
            name = block.kind.removesuffix(_RESULT)
            self._of_provider.result(document.get("tool_use_id"), content, is_error=is_error, name=name)

    def _delta(self, index: int | None, delta: dict[str, Any]) -> None:
        block = self._by_index.get(index)
        kind = delta.get("type")
        if block is None:
            # Some gateways omit the event that starts a block. Only text and thoughts can be read without this event.
            if kind not in ("text_delta", "thinking_delta"):
                return
            self._errors.check_parts(self._blocks)
            block = self._by_index[index] = _Block(str(kind).removesuffix("_delta"))
            self._blocks.append(block)
            self._began = True
        if kind == "text_delta" and block.kind == "text":
            self._add_text(block, delta.get("text"))
        elif kind == "thinking_delta" and block.kind == "thinking":
            self._add_text(block, delta.get("thinking"))
        elif kind == "input_json_delta" and block.call is not None:
            self._calls.add(block.call, delta.get("partial_json"))
        elif kind == "signature_delta":
            # The signature is kept, because the API verifies it when the thinking is sent back.
            block.fields["signature"] = delta.get("signature")
        else:
            if kind == "input_json_delta" and block.provider_call is not None:
                self._of_provider.piece(block.provider_call, delta.get("partial_json"))
            block.add(delta)

    def _add_text(self, block: _Block, text: object) -> None:
        if isinstance(text, str) and text and block.kind == "thinking":
            block.pieces.append(text)
            self.events.append(ReasoningDelta(self._round, text))
        elif isinstance(text, str) and text and (text := self._pieces.next(text)):
            block.written.append(text)
            self._answers(block, self._text.add(text))

    def _answers(self, block: _Block, events: list[TextEvent]) -> None:
        for event in events:
            if isinstance(event, TextDelta):
                block.pieces.append(event.text)
            # The whole text so far was thoughts, so it is removed from the answer.
            elif isinstance(event, TextWasReasoning):
                for each in self._blocks:
                    if each.kind == "text":
                        each.pieces.clear()
            self.events.append(event)

    def _stop(self, index: int | None) -> None:
        block = self._by_index.get(index)
        if block is None:
            return
        if block.call is not None:
            # Some gateways send the whole input at the start of the block, and no deltas.
            if not block.call.pieces and block.fields.get("input"):
                self._calls.add(block.call, block.fields["input"])
            self._calls.finish(block.call)
        elif block.kind == "text":
            self._answers(block, self._text.flush())
        self._end_of_provider(block)

    def _end(self, document: dict[str, Any]) -> None:
        self._usage.update(document.get("usage"))
        if reason := document.get("stop_reason"):
            self._reason = str(reason)
        if isinstance(container := document.get("container"), dict) and isinstance(container.get("id"), str):
            self._container = {name: container[name] for name in ("id", "expires_at") if name in container}

    def _stop_reason(self) -> StopReason:
        if self._reason == "refusal":
            return "refused"
        if self._reason in _TRUNCATED:
            return "truncated"
        # An answer without its announced calls is graded as a fault of the endpoint.
        return "tool calls" if self._calls.calls or self._reason == "tool_use" else "answered"


DEFAULT_MAX_TOKENS = 8192
"""The token limit of an answer, which the API requires: enough for calls and answers, and valid for every model."""

NO_TEXT = "The tool failed without saying why."
"""The text for a failed call whose result has no text: the API refuses a blank text."""

_RENAMED = {"max_completion_tokens": "max_tokens", "max_output_tokens": "max_tokens"}
_LACKING = {
    "frequency_penalty": "",
    "function_call": "tool_choice",
    "functions": "",
    "include": "",
    "logit_bias": "",
    "logprobs": "",
    "max_tool_calls": "",
    "modalities": "",
    "n": "",
    "parallel_tool_calls": 'tool_choice = { type = "auto", disable_parallel_tool_use = true }',
    "prediction": "",
    "presence_penalty": "",
    "previous_response_id": "",
    "reasoning": "thinking",
    "reasoning_effort": "thinking or output_config",
    "response_format": "output_config",
    "seed": "",
    "stop": "stop_sequences",
    "store": "",
    "text": "output_config",
    "top_logprobs": "",
    "truncation": "",
    "user": "metadata = { user_id = … }",
    "verbosity": "",
    "web_search_options": "",
}
"""Parameters of Chat Completions and Responses that this API refuses, each with its replacement.

The text is empty if there is no replacement."""


def _own_fields(spec: ModelSpec) -> dict[str, Any]:
    # At Bedrock and Vertex, the model is in the URL and the version is a field. At Bedrock, streaming is in the URL
    # too. Bedrock's other endpoint and Azure require the same fields as Anthropic.
    if spec.provider == "vertex":
        return {"anthropic_version": ANTHROPIC_VERSION, "stream": True}
    if spec.provider == "bedrock" and (spec.cloud is None or spec.cloud.endpoint == "runtime"):
        return {"anthropic_version": ANTHROPIC_VERSION}
    return {"model": spec.model, "stream": True}


class MessagesWire:
    api: Api = "messages"
    seed: int | None = None

    def __init__(self, spec: ModelSpec, secrets: Secrets) -> None:
        # Anthropic documents its base URL without `/v1`, but base URLs of gateways often include it.
        self.path = "/messages" if spec.base_url.rstrip("/").endswith("/v1") else "/v1/messages"
        self._own = _own_fields(spec)
        self._thoughts_apart = spec.thoughts == "reasoning"
        params, self.notices = sent_params(spec, "Messages", unsupported=_LACKING, renamed=_RENAMED)
        self._params = {"max_tokens": DEFAULT_MAX_TOKENS, **params}
        self._errors = AnswerErrors(spec.name, "Messages", spec.base_url, secrets)
        self._offers = ToolOfferCache(_tool, self.api)

    def body(self, request: ModelRequest) -> bytes:
        """Return the body of a request.

        Raises ModelError for a value that JSON cannot express."""
        offer = self._offers.of(request.tools)
        fields = params_for(request, self._params, ("tool_choice",)) | self._own
        if request.system and request.system.strip():
            fields["system"] = request.system
        fields |= _container(request.messages, fields.get("container"))
        fields |= {"messages": _messages(request.messages, offer.names)}
        return body_text(fields, offer)

    def reader(self, request: ModelRequest) -> MessagesReader:
        offer = self._offers.of(request.tools)
        calls = CallAssembly(request, offer.names)
        of_provider = ProviderCalls(request.round, calls, offer, ids_of_blocks(request.messages, WIRE))
        continues = bool(request.messages) and request.messages[-1].role == "assistant"
        return MessagesReader(
            request.round, calls, self._errors, of_provider, thoughts_apart=self._thoughts_apart, continues=continues
        )

    def expect_llama_cpp(self) -> None:
        """Do nothing, because llama.cpp reports its progress only in Chat Completions."""

    def tool_at(self, request: ModelRequest, error_text: str) -> str | None:
        """Return the tool that an error is about; `None` if the error names no tool."""
        return self._offers.of(request.tools).tool_at(error_text)


def _tool(tool: ToolDefinition, name: str) -> dict[str, Any]:
    return {**name_and_description(tool, name), "input_schema": object_schema(tool.parameters)}


def _container(messages: tuple[Message, ...], param: object) -> dict[str, Any]:
    """Return the request field `container` with the container of the latest answer that names one.

    The result is empty if no answer names a container, if the container has expired, or if the user's `param` names
    another container."""
    for message in reversed(messages):
        container = state_of(message, WIRE).get("container")
        if isinstance(container, dict):
            # The API creates a new container for a request that names none, and refuses an expired container.
            if isinstance(param, str) or _is_past(container.get("expires_at")):
                return {}
            named = container["id"]
            if isinstance(param, dict):
                return {"container": {**param, "id": named}}
            return {"container": named}
    return {}


def _is_past(time: object) -> bool:
    try:
        at = datetime.fromisoformat(str(time))
    except ValueError:
        return False
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return at < datetime.now(UTC)


def _messages(messages: tuple[Message, ...], names: ToolNames) -> list[dict[str, Any]]:
    """Convert the conversation to the form that the API requires, with alternating roles and accepted ids.

    Consecutive messages of one role are joined to one message. The parts of a paused answer stay separate messages."""
    call_ids: list[str] = []
    for message in messages:
        call_ids += _call_ids(message)
    # The API accepts the same characters in ids of calls as in names of tools.
    ids = accepted_names(call_ids)
    turns: list[dict[str, Any]] = []
    for message in messages:
        role = "assistant" if message.role == "assistant" else "user"
        joins = bool(turns) and turns[-1]["role"] == role
        for block in _blocks(message, names, ids):
            if block is None:
                joins = False
            elif joins:
                turns[-1]["content"].append(block)
            else:
                turns.append({"role": role, "content": [block]})
                joins = True
    return turns


def _call_ids(message: Message) -> Iterator[str]:
    for call in message.tool_calls:
        yield call.id
    if message.call_id is not None:
        yield message.call_id


def _content(message: Message) -> Iterator[dict[str, Any]]:
    for part in text_and_media(message.content, message.media):
        if isinstance(part, Media):
            source = {"type": "base64", "media_type": part.media_type, "data": part.data}
            yield {"type": "image", "source": source}
        elif part.strip():
            yield {"type": "text", "text": part}


def _blocks(message: Message, names: ToolNames, ids: Mapping[str, str]) -> Iterator[dict[str, Any] | None]:
    if message.role == "tool":
        result: dict[str, Any] = {"type": "tool_result", "tool_use_id": ids.get(message.call_id or "", "unnamed")}
        # The API refuses blank texts. It also refuses a failed result with images or without text.
        if message.media and not message.is_error:
            result["content"] = [*_content(message)]
        elif message.content.strip():
            result["content"] = message.content
        elif message.is_error:
            result["content"] = NO_TEXT
        if message.is_error:
            result["is_error"] = True
        yield result
        return
    if message.media:
        yield from _content(message)
        return
    for part in parts_of(message, WIRE):
        match part:
            case PausePart():
                yield None
            case Block(document):
                yield document
            case TextPart(text):
                yield {"type": "text", "text": text}
            case CallPart(call, more):
                arguments = arguments_to_send(call)
                name = names.accepted_name(call.tool)
                yield {"type": "tool_use", "id": ids[call.id], "name": name, "input": arguments, **more}
