"""The wire format of OpenAI's Responses API: requests and answers.

https://platform.openai.com/docs/api-reference/responses
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import Any

from workbench.config.clouds import Api
from workbench.config.models import ModelSpec
from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass
from workbench.providers.model import AnswerFinished, ModelRequest
from workbench.providers.wire.errors import AnswerErrors, reports_error
from workbench.providers.wire.provider_calls import (
    ProviderCall,
    ProviderCalls,
    ids_of_blocks,
    item_call,
    item_result,
)
from workbench.providers.wire.repairs import AnswerText, TextEvent
from workbench.providers.wire.tool_calls import (
    CallAssembly,
    OpenCall,
    TextPieces,
    ToolNames,
    ToolOfferCache,
    arguments_text,
    body_text,
    name_and_description,
    object_schema,
    params_for,
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
    data_url,
    dicts_in,
    parts_of,
    provider_state,
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

WIRE = "openai-responses"

_CALL = "function_call"
_OWN = (_CALL, "message", "reasoning")
"""The kinds of items for calls of offered tools, texts and reasoning. Other items, except `compaction`, are calls of
the provider's own tools."""

_NOT_CALLS = (*_OWN, "compaction")

_ONLY_IN_ANSWERS: tuple[str, ...] = ("created_by",)
_ONLY_IN_REASONING = (*_ONLY_IN_ANSWERS, "status")
"""Fields of items that the API sends but refuses in a request."""

_TERMINAL = {"response.completed", "response.incomplete", "response.failed", "response.cancelled"}


@dataclass(slots=True)
class _Item:
    """One output item of an answer.

    `document` is the item in the form in which it is sent back. The document of a call lacks the arguments."""

    kind: str
    call: OpenCall | None = None
    pieces: list[str] = field(default_factory=list)
    """The pieces of a message, without thoughts in it."""
    written: list[str] = field(default_factory=list)
    """The pieces of a message as they arrived, including thoughts."""
    phase: str | None = None
    provider_call: ProviderCall | None = None
    has_streamed_reasoning: bool = False
    """Whether the reasoning was emitted piece by piece as it arrived."""
    document: dict[str, Any] = field(default_factory=dict)
    done: bool = False

    def part(self, *, with_id: bool) -> Part | None:
        """Return the item as a part of the provider state, with the item's id only if `with_id` is set.

        Returns `None` for an item without content."""
        document = self.document
        if not with_id:
            document = without_fields(document, "id")
        if self.call is not None:
            return call_part(self.call.id, document)
        if self.kind == "message":
            return self._message(document)
        return {"block": document} if document else None

    def _message(self, document: dict[str, Any]) -> Part | None:
        part = text_part(self.pieces, self.written)
        if part is None:
            return None
        content = [*dicts_in(document.get("content"))]
        text = "".join(str(each.get("text") or each.get("refusal") or "") for each in content)
        # A message without an id is sent back as plain text, which every server accepts.
        if text == "".join(self.written) and ("id" in document or any(map(_is_special, content))):
            return {"text": part["text"], "block": document}
        if self.phase:
            part["phase"] = self.phase
        return part


def _is_special(part: dict[str, Any]) -> bool:
    more = without_fields(part, "type", "text")
    return part.get("type") != "output_text" or any(more.values())


class ResponsesReader:
    """Reads one answer of the API.

    `stored` means that the API stores the response. With `thoughts_apart`, the model's thoughts at the beginning of the
    text become reasoning."""

    def __init__(
        self,
        round_number: int,
        calls: CallAssembly,
        errors: AnswerErrors,
        of_provider: ProviderCalls,
        *,
        stored: bool = False,
        thoughts_apart: bool = True,
    ) -> None:
        self._round = round_number
        self._calls = calls
        self.events = calls.events
        self._errors = errors
        self._of_provider = of_provider
        self._stored = stored
        self._usage = UsageCount()
        self._pieces = TextPieces()
        self._answer = AnswerText(round_number, apart=thoughts_apart)
        self._items: list[_Item] = []
        self._by_key: dict[int | str, _Item] = {}
        self._began = self._refused = False
        self._status: str | None = None
        self._why_incomplete: object = None

    @property
    def ended(self) -> bool:
        """Whether the final response has arrived."""
        return self._status is not None

    def feed(self, event: SseEvent) -> None:
        """Read a server-sent event.

        Raises ModelError for an error that the event reports, and for data that is not JSON."""
        document = self._errors.document(event)
        if document is None:
            return
        kind = str(document.get("type") or event.event)
        delta = document.get("delta")
        if kind == "response.output_text.delta":
            self._text(self._item(document, "message"), delta)
        elif kind == "response.refusal.delta":
            self._refused = True
            self._text(self._item(document, "message"), delta)
        elif kind in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta"):
            self._reasoning(self._item(document, "reasoning"), delta)
        elif kind == "response.reasoning_summary_part.added" and document.get("summary_index"):
            self.events.append(ReasoningDelta(self._round, "\n\n"))
        elif kind == "response.function_call_arguments.delta":
            self._calls.add(self._call(self._item(document, _CALL)), delta)
        # Some servers send the arguments of a call only when the call is complete.
        elif kind == "response.function_call_arguments.done":
            call = self._call(self._item(document, _CALL))
            if not call.pieces:
                self._calls.add(call, document.get("arguments"))
        elif kind == "response.output_item.added" and isinstance(item := document.get("item"), dict):
            self._add(self._item({**item, **document}, item.get("type"), new=True), item)
        elif kind == "response.output_item.done" and isinstance(item := document.get("item"), dict):
            self._complete(self._item({**item, **document}, item.get("type")), item)
        elif kind in _TERMINAL:
            self._end(document.get("response"), kind.removeprefix("response."))
        self._began = self._began or kind.startswith("response.")

    def feed_document(self, document: JsonValue) -> None:
        """Read an answer that arrived as one document.

        Raises ModelError for a document that reports an error or is not an answer."""
        if reports_error(document):
            raise self._errors.reported(document)
        if not isinstance(document, dict) or not isinstance(document.get("output"), list):
            raise self._errors.no_answer(document)
        self._began = True
        self._end(document, "completed")

    def finish(self) -> None:
        """Add the events that end the answer.

        Raises ModelError if the stream stopped before the answer was complete."""
        if not self._began:
            raise self._errors.empty_stream()
        if self._status not in ("completed", "incomplete"):
            raise self._errors.incomplete_stream("neither response.completed nor response.incomplete")
        messages = [item for item in self._items if item.kind == "message"]
        if messages:
            self._answers(messages[-1], self._answer.flush())
        self._calls.finish_all()
        for item in self._items:
            self._end_of_provider(item)
        state = self._errors.storable_state(provider_state(WIRE, list(self._parts())))
        deviations = (*self._answer.deviations, *self._calls.deviations)
        self.events.append(AnswerFinished(self._stop_reason(), self._usage.responses(), state, deviations))

    def _item(self, document: dict[str, Any], kind: object, *, new: bool = False) -> _Item:
        """Return the item that an event is about, and create the item if it is unknown.

        An item of another kind is not the same item. With `new`, a finished item with the same key is replaced."""
        # Some servers omit `output_index`, and some reuse an index for an item of another kind.
        key = document.get("output_index")
        if not isinstance(key, int):
            key = str(document.get("item_id") or document.get("id") or kind)
        kind = str(kind)
        item = self._by_key.get(key)
        if item is None or (new and item.done) or item.kind != kind:
            self._errors.check_parts(self._items)
            item = self._by_key[key] = _Item(kind)
            self._items.append(item)
        return item

    def _call(self, item: _Item, given_id: object = None) -> OpenCall:
        if item.call is None:
            item.call = self._calls.begin(given_id)
        return item.call

    def _add(self, item: _Item, document: dict[str, Any]) -> None:
        if item.kind == _CALL:
            call = self._call(item, document.get("call_id"))
            self._calls.name(call, document.get("name"))
        elif item.kind not in _OWN and not item.done:
            # Keep the document now, because some servers never send the last event of an item of their own tools.
            item.document = _returned(document)
            self._begin_of_provider(item)

    def _complete(self, item: _Item, document: dict[str, Any]) -> None:
        if item.done:
            return
        item.done = True
        if item.kind == _CALL:
            self._add(item, document)
            self._calls.finish(self._call(item), document.get("arguments"))
            item.document = without_fields(_returned(document), "type", "call_id", "name", "arguments")
        elif item.kind == "message":
            if isinstance(phase := document.get("phase"), str):
                item.phase = phase
            if not item.written:
                for part in dicts_in(document.get("content")):
                    self._refused = self._refused or bool(part.get("refusal"))
                    self._text(item, part.get("text") or part.get("refusal"))
            self._answers(item, self._answer.flush())
            item.document = {"role": "assistant", **_returned(document)}
        elif item.kind == "reasoning":
            # A reasoning item without content can be sent back only if the API has stored the original.
            if document.get("encrypted_content") or document.get("content") or self._stored:
                item.document = _returned(document)
            if not item.has_streamed_reasoning:
                for part in (*dicts_in(document.get("summary")), *dicts_in(document.get("content"))):
                    self._reasoning(item, part.get("text"))
        else:
            item.document = _returned(document)
            self._begin_of_provider(item)
            self._end_of_provider(item)

    def _begin_of_provider(self, item: _Item) -> None:
        if item.provider_call is None and item.kind not in _NOT_CALLS:
            name, _ = item_call(item.document)
            item.provider_call = self._of_provider.begin(item.document.get("id"), name)

    def _end_of_provider(self, item: _Item) -> None:
        if item.provider_call is None or item.provider_call.is_finished:
            return
        name, given = item_call(item.document)
        self._of_provider.finish(item.provider_call, given)
        if (found := item_result(item.document)) is not None:
            content, is_error = found
            self._of_provider.result(item.document.get("id"), content, is_error=is_error, name=name)

    def _end(self, response: object, status: str) -> None:
        response = as_dict(response)
        self._status = str(response.get("status") or status)
        if "failed" in (status, self._status):
            raise self._errors.reported(response)
        if self._status == "cancelled":
            raise self._errors.ended_early("the response was cancelled")
        self._why_incomplete = as_dict(response.get("incomplete_details")).get("reason")
        self._usage.update(response.get("usage"))
        for place, document in self._unstreamed_items(dicts_in(response.get("output"))):
            self._errors.check_parts(self._items)
            item = _Item(str(document.get("type")))
            # Texts and calls are appended, so that they keep the order in which they were emitted.
            at = place if item.kind not in (_CALL, "message") else len(self._items)
            self._items.insert(at, item)
            self._complete(item, document)

    def _unstreamed_items(self, output: Iterable[dict[str, Any]]) -> list[tuple[int, dict[str, Any]]]:
        """Return the items of the final response that were not streamed, each with its index in the response.

        An item counts as not streamed if the response has more items of its kind than were streamed. A call also counts
        as not streamed if its id is new."""
        # Some servers send items only in the final response, and some give streamed items different ids there.
        arrived = Counter(item.kind for item in self._items)
        ids = {call.given_id for call in self._calls.calls}
        missed = []
        for place, document in enumerate(output):
            kind, call_id = str(document.get("type")), document.get("call_id")
            is_known = arrived[kind] > 0
            if kind == _CALL:
                is_known = is_known and (not isinstance(call_id, str) or call_id in ids)
            elif kind not in _OWN:
                arrived[kind] -= 1
            if not is_known:
                missed.append((place, document))
        return missed

    def _text(self, item: _Item, text: object) -> None:
        if isinstance(text, str) and text and (text := self._pieces.next(text)):
            item.written.append(text)
            self._answers(item, self._answer.add(text))

    def _answers(self, item: _Item, events: list[TextEvent]) -> None:
        for event in events:
            if isinstance(event, TextDelta):
                item.pieces.append(event.text)
            elif isinstance(event, TextWasReasoning):
                for each in self._items:
                    each.pieces.clear()
            self.events.append(event)

    def _reasoning(self, item: _Item, text: object) -> None:
        if isinstance(text, str) and text:
            item.has_streamed_reasoning = True
            self.events.append(ReasoningDelta(self._round, text))

    def _parts(self) -> Iterator[Part]:
        # If a reasoning item cannot be sent back, the ids are left out. Otherwise the API would refuse the items that
        # follow it.
        lost = any(item.kind == "reasoning" and not item.document for item in self._items)
        for item in self._items:
            if (part := item.part(with_id=not lost)) is not None:
                yield part

    def _stop_reason(self) -> StopReason:
        if self._refused or self._why_incomplete == "content_filter":
            return "refused"
        if self._status == "incomplete":
            return "truncated"
        return "tool calls" if self._calls.calls else "answered"


_RENAMED = {"max_tokens": "max_output_tokens", "max_completion_tokens": "max_output_tokens"}
_LACKING = {
    "audio": "",
    "frequency_penalty": "",
    "function_call": "tool_choice",
    "functions": "",
    "logit_bias": "",
    "logprobs": "top_logprobs",
    "modalities": "",
    "n": "",
    "prediction": "",
    "presence_penalty": "",
    "reasoning_effort": "reasoning = { effort = … }",
    "response_format": "text = { format = … }",
    "seed": "",
    "stop": "",
    "stop_sequences": "",
    "thinking": "reasoning",
    "top_k": "",
    "verbosity": "text = { verbosity = … }",
    "web_search_options": "",
}
"""Parameters of Chat Completions and Messages that this API refuses, each with its replacement.

The text is empty if there is no replacement."""

_ABOUT_TOOLS = ("tool_choice", "parallel_tool_calls")
_ENCRYPTED_REASONING = "reasoning.encrypted_content"


class ResponsesWire:
    """The wire format of the Responses API for one model. Every request sends the whole conversation."""

    api: Api = "responses"
    path = "/responses"
    seed: int | None = None

    def __init__(self, spec: ModelSpec, secrets: Secrets) -> None:
        self._model = spec.model
        self._thoughts_apart = spec.thoughts == "reasoning"
        params, self.notices = sent_params(spec, "Responses", unsupported=_LACKING, renamed=_RENAMED)
        # The API stores responses by default. Requests turn that off unless the user asks for storage.
        self._params = {"store": False, **params, **_include(params)}
        self._stored = bool(self._params["store"])
        self._errors = AnswerErrors(spec.name, "Responses", spec.base_url, secrets)
        self._offers = ToolOfferCache(_tool, self.api)

    def body(self, request: ModelRequest) -> bytes:
        """Return the body of a request.

        Raises ModelError for a value that JSON cannot express."""
        offer = self._offers.of(request.tools)
        fields = params_for(request, self._params, _ABOUT_TOOLS) | {"model": self._model}
        if request.system:
            fields["instructions"] = request.system
        items: list[dict[str, Any]] = []
        for message in request.messages:
            items += _items(message, offer.names)
        fields |= {"input": items, "stream": True}
        return body_text(fields, offer)

    def reader(self, request: ModelRequest) -> ResponsesReader:
        offer = self._offers.of(request.tools)
        calls = CallAssembly(request, offer.names)
        of_provider = ProviderCalls(request.round, calls, offer, ids_of_blocks(request.messages, WIRE))
        return ResponsesReader(
            request.round, calls, self._errors, of_provider, stored=self._stored, thoughts_apart=self._thoughts_apart
        )

    def expect_llama_cpp(self) -> None:
        """Do nothing, because llama.cpp reports its progress only in Chat Completions."""

    def tool_at(self, request: ModelRequest, error_text: str) -> str | None:
        """Return the tool that an error is about; `None` if the error names no tool."""
        return self._offers.of(request.tools).tool_at(error_text)


def _include(params: dict[str, Any]) -> dict[str, Any]:
    requested: list[Any] = []
    if isinstance(include := params.get("include"), list):
        requested = list(include)
    # The API refuses a request for encrypted reasoning if the model does not reason. A user who sets the parameter
    # `reasoning` has a model that reasons, because the API would refuse this parameter too.
    if params.get("reasoning") and not params.get("store") and _ENCRYPTED_REASONING not in requested:
        requested.append(_ENCRYPTED_REASONING)
    if not requested:
        return {}
    return {"include": requested}


def _returned(item: dict[str, Any]) -> dict[str, Any]:
    left_out = _ONLY_IN_ANSWERS
    if item.get("type") == "reasoning":
        left_out = _ONLY_IN_REASONING
    return without_fields(item, *left_out)


def _tool(tool: ToolDefinition, name: str) -> dict[str, Any]:
    return {
        "type": "function",
        **name_and_description(tool, name),
        "parameters": object_schema(tool.parameters),
        "strict": False,
    }


def _content(message: Message) -> str | list[dict[str, Any]]:
    if not message.media:
        return message.content
    parts: list[dict[str, Any]] = []
    for part in text_and_media(message.content, message.media):
        if isinstance(part, Media):
            parts.append({"type": "input_image", "image_url": data_url(part), "detail": "auto"})
        else:
            parts.append({"type": "input_text", "text": part})
    return parts


def _items(message: Message, names: ToolNames) -> Iterator[dict[str, Any]]:
    if message.role == "tool":
        yield {"type": "function_call_output", "call_id": message.call_id or "", "output": _content(message)}
    elif message.role == "user":
        yield {"type": "message", "role": "user", "content": _content(message)}
    else:
        for part in parts_of(message, WIRE):
            match part:
                case Block(document):
                    yield document
                case TextPart(text, None):
                    yield {"type": "message", "role": "assistant", "content": text}
                case TextPart(text, phase):
                    yield {"type": "message", "role": "assistant", "content": text, "phase": phase}
                case PausePart():
                    pass  # this API never pauses an answer
                case CallPart(call, more):
                    yield {
                        **more,
                        "type": "function_call",
                        "call_id": call.id,
                        "name": names.accepted_name(call.tool),
                        "arguments": arguments_text(call),
                    }
