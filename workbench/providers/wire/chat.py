"""The wire format of OpenAI's Chat Completions API, and of the many servers that imitate it.

https://platform.openai.com/docs/api-reference/chat
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import Any

from workbench.config.clouds import Api
from workbench.config.models import ModelSpec
from workbench.config.secrets import Secrets
from workbench.providers.model import AnswerFinished, ModelRequest
from workbench.providers.wire.errors import AnswerErrors, reports_error
from workbench.providers.wire.repairs import AnswerText, WrittenText
from workbench.providers.wire.tool_calls import (
    CallAssembly,
    OpenCall,
    TextPieces,
    ToolNames,
    ToolOfferCache,
    arguments_text,
    body_text,
    integer_seed,
    name_and_description,
    object_schema,
    params_for,
    sent_params,
)
from workbench.providers.wire.wire import SseEvent, UsageCount, as_dict, data_url, dicts_in, state_of, without_fields
from workbench.trajectory.events import (
    JsonValue,
    Message,
    PromptProgress,
    ReasoningDelta,
    StopReason,
    ToolDefinition,
)
from workbench.trajectory.media import Media, text_and_media

WIRE = "openai"

_MAX_NUMBER = 1e12
"""The largest number of tokens or milliseconds that is plausible; larger numbers are ignored."""

_END = "[DONE]"
# Finish reasons, also of servers and gateways that pass on the words of other APIs, such as
# `function_call_filter: MALFORMED_FUNCTION_CALL`.
_TRUNCATED = {"length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"}
_REFUSED = {
    *("content_filter", "content_filtered", "refusal", "guardrail_intervened"),
    *("blocklist", "prohibited_content", "recitation", "safety", "sensitive", "spii"),
}
_FAILED = {"abort", "error", "insufficient_system_resource", "network_error"}
_ANNOUNCING_CALLS = {
    *("function_call", "tool_calls", "tool_use"),
    # Gemini drops a call that its model wrote wrongly.
    *("malformed_function_call", "unexpected_tool_call"),
}
_TEXTS_OF_DETAILS = ("text", "summary")
_CALL_EXTRAS = ("extra_content", "provider_specific_fields")
"""Fields of a call that must be sent back with it, such as Gemini's signatures, direct or through LiteLLM."""

_SIGNING_FIELDS = {*_CALL_EXTRAS, "type"}

_REASONING_FIELDS = {"reasoning_content", "reasoning", "reasoning_details", "thinking_blocks", "extra_content"}
"""The fields of a delta that `_add_reasoning` reads; most deltas have none of them."""

_JOINED_DETAILS = {"reasoning.text", "reasoning.summary"}


class ChatReader:
    """Reads one answer of the API, of which only the first choice is used.

    With `thoughts_apart`, the model's thoughts at the beginning of the text become reasoning."""

    def __init__(
        self, round_number: int, calls: CallAssembly, errors: AnswerErrors, *, thoughts_apart: bool = True
    ) -> None:
        self._round = round_number
        self._calls = calls
        self.events = calls.events
        self._errors = errors
        self._usage = UsageCount()
        self._pieces = TextPieces()
        self._text = AnswerText(round_number, apart=thoughts_apart)
        self._written = WrittenText()
        self._by_index: dict[int, OpenCall] = {}
        self._reasoning: dict[str, list[str]] = {}
        self._details: list[dict[str, Any]] = []
        self._signed: dict[str, dict[str, Any]] = {}
        self._more: dict[str, Any] = {}
        self._parts: list[dict[str, Any]] = []
        self._before_chunk = 0
        """The number of calls that began in earlier chunks."""
        self._began = self._refused = False
        self.ended = False
        self._reason: str | None = None
        self._prompt_ms: float | None = None

    def feed(self, event: SseEvent) -> None:
        """Read a chunk.

        Raises ModelError for an error that the chunk reports, and for data that is not JSON."""
        if event.data.strip() == _END:
            self.ended = True
            return
        chunk = self._errors.document(event)
        if chunk is not None:
            self._read(chunk)

    def feed_document(self, document: JsonValue) -> None:
        """Read an answer that arrived as one document.

        Raises ModelError for a document that reports an error or is not an answer."""
        if reports_error(document):
            raise self._errors.reported(document)
        if not isinstance(document, dict) or not document.get("choices"):
            raise self._errors.no_answer(document)
        self._read(document)
        self.ended = True

    def finish(self) -> None:
        """Add the events that end the answer.

        Raises ModelError if the stream stopped before the answer was complete."""
        if not self._began:
            raise self._errors.empty_stream()
        if self._ended_by(_FAILED):
            raise self._errors.ended_early(f"finish_reason {self._reason}")
        if self._reason is None and not self.ended:
            raise self._errors.incomplete_stream("neither finish_reason nor [DONE]")
        if rest := self._written.flush():
            self.events += self._text.add(rest)
        self.events += self._text.flush()
        self._calls.finish_all()
        state = self._errors.storable_state(self._provider_state())
        deviations = (*self._text.deviations, *self._written.deviations, *self._calls.deviations)
        end = AnswerFinished(self._stop_reason(), self._usage.chat(), state, deviations, self._prompt_ms)
        self.events.append(end)

    def _read(self, chunk: dict[str, Any]) -> None:
        if usage := chunk.get("usage"):
            self._usage.update(usage)
        if timings := chunk.get("timings"):
            self._prompt_ms = _number_in(timings, "prompt_ms")
        if progress := chunk.get("prompt_progress"):
            self._progress(progress)
        for choice in dicts_in(chunk.get("choices")):
            if not choice.get("index"):
                self._choice(choice)
                return

    def _progress(self, progress: object) -> None:
        processed, total = _number_in(progress, "processed"), _number_in(progress, "total")
        took_ms = _number_in(progress, "time_ms")
        if processed is not None and total is not None:
            self.events.append(PromptProgress(self._round, int(processed), int(total), took_ms or 0.0))

    def _choice(self, choice: dict[str, Any]) -> None:
        self._began = True
        if choice.get("error"):
            raise self._errors.reported(choice)
        if reason := choice.get("finish_reason"):
            self._reason = str(reason)
        delta = choice.get("delta", choice.get("message"))
        if not isinstance(delta, dict):
            return
        if not _REASONING_FIELDS.isdisjoint(delta):
            self._add_reasoning(delta)
        content = delta.get("content")
        if content:
            if isinstance(content, str):
                self._add_text(content)
            elif isinstance(content, list):
                self._content_parts(content)
        if (refusal := delta.get("refusal")) and isinstance(refusal, str):
            self._refused = True
            self._add_text(refusal)
        self._before_chunk = len(self._calls.calls)
        if fragments := delta.get("tool_calls"):
            for position, entry in enumerate(dicts_in(fragments)):
                self._call_fragment(entry, position)
        elif isinstance(function := delta.get("function_call"), dict):
            # Older servers answer so, with at most one call.
            self._call_fragment({"function": function}, 0)

    def _add_text(self, piece: str) -> None:
        text = self._pieces.next(piece)
        if text and (new := self._written.add(text)):
            self.events += self._text.add(new)

    def _add_reasoning(self, delta: dict[str, Any]) -> None:
        seen: set[str] = set()
        for field in ("reasoning_content", "reasoning"):
            text = delta.get(field)
            if isinstance(text, str):
                self._reasoning.setdefault(field, []).append(text)
                if text and text not in seen:
                    seen.add(text)
                    self.events.append(ReasoningDelta(self._round, text))
        # OpenRouter sends the same reasoning twice: as plain text, and in details that must be sent back with the
        # answer.
        for detail in dicts_in(delta.get("reasoning_details")):
            text = next((detail[key] for key in _TEXTS_OF_DETAILS if isinstance(detail.get(key), str)), "")
            if text and not seen:
                self.events.append(ReasoningDelta(self._round, text))
            self._add_detail(detail)
        for thought in dicts_in(delta.get("thinking_blocks")):
            self._add_thought(thought)
        if extra := delta.get("extra_content"):
            self._more["extra_content"] = extra

    def _content_parts(self, parts: list[Any]) -> None:
        for part in dicts_in(parts):
            if isinstance(text := part.get("text"), str) and text:
                self._add_text(text)
            thoughts = list(dicts_in(part.get("thinking")))
            if thoughts:
                self._add_part(part, thoughts)
            for thought in thoughts:
                if isinstance(text := thought.get("text"), str) and text:
                    self.events.append(ReasoningDelta(self._round, text))

    def _add_part(self, part: dict[str, Any], thoughts: list[dict[str, Any]]) -> None:
        """Add a fragment of the content part with the model's thoughts (`thinking`).

        All thoughts of the answer are sent back as one part before the text."""
        self._errors.check_parts(self._parts)
        if not self._parts:
            self._parts.append({**part, "thinking": []})
        joined = self._parts[-1]["thinking"]
        for thought in thoughts:
            if joined and joined[-1].get("type") == thought.get("type") == "text" and "text" in thought:
                joined[-1]["text"] = f"{joined[-1].get('text', '')}{thought['text']}"
            else:
                self._errors.check_parts(joined)
                joined.append(dict(thought))

    def _call_fragment(self, entry: dict[str, Any], position: int) -> None:
        function = as_dict(entry.get("function"))
        name, arguments = function.get("name"), function.get("arguments")
        index, given_id = entry.get("index"), entry.get("id")
        if not isinstance(given_id, str) or not given_id:
            given_id = None
        call = self._open_call(index, given_id, follows=bool(name) and position > 0)
        if call is None or ((name or given_id) and self._begins_another(call, given_id, name, arguments)):
            call = self._calls.begin(given_id)
            if isinstance(index, int):
                self._by_index[index] = call
        if not _SIGNING_FIELDS.isdisjoint(entry):
            self._keep_call_extras(call, entry)
        if name:
            self._calls.name(call, name)
        self._calls.add(call, arguments)

    def _begins_another(self, call: OpenCall, given_id: str | None, name: object, arguments: object) -> bool:
        may_repeat = call in self._calls.calls[: self._before_chunk]
        return _begins_another(call, given_id, name, arguments, may_repeat=may_repeat)

    def _keep_call_extras(self, call: OpenCall, entry: dict[str, Any]) -> None:
        for name in _CALL_EXTRAS:
            if entry.get(name):
                self._signed.setdefault(call.id, {})[name] = entry[name]
        if isinstance(kind := entry.get("type"), str) and kind not in ("", "function"):
            self._signed.setdefault(call.id, {})["type"] = kind

    def _open_call(self, index: object, given_id: str | None, *, follows: bool) -> OpenCall | None:
        """Return the call that a fragment continues; `None` if the fragment begins a new call.

        The call is found by its index, or else by its id. A fragment without index and id continues the latest call,
        unless `follows` says that it follows other fragments in the same chunk."""
        if isinstance(index, int):
            return self._by_index.get(index)
        calls = reversed(self._calls.calls)
        if given_id is not None:
            return next((call for call in calls if call.given_id == given_id), None)
        if follows:
            return None
        return next(calls, None)

    def _add_thought(self, thought: dict[str, Any]) -> None:
        """Add a fragment to the latest thinking block, or begin a new block if the latest block has its signature."""
        blocks = self._more.setdefault("thinking_blocks", [])
        last = blocks[-1] if blocks else {}
        if thought.get("type") != "thinking" or last.get("type") != "thinking" or last.get("signature"):
            self._errors.check_parts(blocks)
            blocks.append(dict(thought))
            return
        text = f"{last.get('thinking') or ''}{thought.get('thinking') or ''}"
        last.update(without_fields(thought), thinking=text)

    def _add_detail(self, detail: dict[str, Any]) -> None:
        # Details arrive in fragments, but OpenRouter requires complete details in the next request.
        last = self._details[-1] if self._details else {}
        text_key = next((key for key in _TEXTS_OF_DETAILS if key in detail or key in last), None)
        same = all(last.get(key) == detail.get(key) for key in ("type", "index"))
        if text_key is None or not last or not same or str(detail.get("type")) not in _JOINED_DETAILS:
            self._errors.check_parts(self._details)
            self._details.append(dict(detail))
            return
        text = "".join(piece for piece in (last.get(text_key), detail.get(text_key)) if isinstance(piece, str))
        for key, value in detail.items():
            if value is not None:
                last[key] = value
        last[text_key] = text

    def _provider_state(self) -> JsonValue:
        # Endpoints require different data back. OpenRouter requires its details, DeepSeek requires the reasoning before
        # a call, and Gemini requires the signature of each call. LiteLLM requires blocks of thinking, and Mistral
        # requires its thoughts as a part of the content.
        fields: dict[str, Any] = dict(self._more)
        if self._details:
            fields["reasoning_details"] = self._details
        if self._text.deviations:  # a text with thoughts is sent back unchanged
            fields["content"] = self._written.whole
        if self._parts:
            fields["content"] = [*self._parts]
            if self._written.whole:
                fields["content"].append({"type": "text", "text": self._written.whole})
        state: dict[str, Any] = {"wire": WIRE, "fields": fields}
        # Reasoning is sent back in the field in which it arrived.
        if "reasoning_content" in self._reasoning:
            state["thoughts"] = {"reasoning_content": "".join(self._reasoning["reasoning_content"])}
        elif "reasoning" in self._reasoning and not self._details:
            state["thoughts"] = {"reasoning": "".join(self._reasoning["reasoning"])}
        if self._signed:
            state["calls"] = self._signed
        if not fields and len(state) == 2:
            return None
        return state

    def _stop_reason(self) -> StopReason:
        if self._refused or self._ended_by(_REFUSED):
            return "refused"
        if self._ended_by(_TRUNCATED):
            return "truncated"
        # Some servers send the reason "stop" for an answer with calls. An answer without its announced calls is graded
        # as a fault of the endpoint.
        return "tool calls" if self._calls.calls or self._ended_by(_ANNOUNCING_CALLS) else "answered"

    def _ended_by(self, reasons: Set[str]) -> bool:
        return self._reason is not None and not reasons.isdisjoint(self._reason.lower().replace(":", " ").split())


def _number_in(statistics: object, name: str) -> float | None:
    """Return a number in llama.cpp's statistics.

    Returns `None` if the number is missing, negative or implausibly large."""
    value = as_dict(statistics).get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _MAX_NUMBER:
        return None
    return float(value)


def _begins_another(call: OpenCall, given_id: str | None, name: object, arguments: object, *, may_repeat: bool) -> bool:
    """Return whether a fragment with the index or the id of `call` begins a new call.

    `may_repeat` means that `call` began in an earlier chunk, so the fragment may only repeat it."""
    # Some servers give every call the index 0. A fragment then begins a new call if its id or name differs from `call`,
    # or if the arguments of `call` are already complete. Other servers repeat a whole call at the end, with the same
    # arguments and the same id.
    if given_id is not None and call.given_id is not None and given_id != call.given_id:
        return True
    if not name or not call.started:
        return False
    if name != call.name:
        return True
    if not arguments or not call.is_complete:
        return False
    return not (may_repeat and call.is_repeated_by(given_id, arguments))


_ABOUT_TOOLS = ("tool_choice", "parallel_tool_calls")
"""Parameters that the API refuses in a request without tools."""


class ChatWire:
    api: Api = "chat"
    path = "/chat/completions"

    def __init__(self, spec: ModelSpec, secrets: Secrets) -> None:
        self._model = spec.model
        self._thoughts_apart = spec.thoughts == "reasoning"
        self._params, self.notices = sent_params(spec, "Chat Completions")
        self._errors = AnswerErrors(spec.name, "Chat Completions", spec.base_url, secrets)
        self._offers = ToolOfferCache(_tool, self.api)
        self._more: dict[str, bool] = {}
        self.seed = integer_seed(self._params)

    def body(self, request: ModelRequest) -> bytes:
        """Return the body of a request.

        Raises ModelError for a value that JSON cannot express."""
        offer = self._offers.of(request.tools)
        messages = list(_messages(request.messages, offer.names))
        if request.system:
            messages.insert(0, {"role": "system", "content": request.system})
        fields = {
            **self._more,
            **params_for(request, self._params, _ABOUT_TOOLS),
            "model": self._model,
            "messages": messages,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        return body_text(fields, offer)

    def reader(self, request: ModelRequest) -> ChatReader:
        calls = CallAssembly(request, self._offers.of(request.tools).names)
        return ChatReader(request.round, calls, self._errors, thoughts_apart=self._thoughts_apart)

    def expect_llama_cpp(self) -> None:
        """Ask for progress reports on the prompt in all later requests, because the server is llama.cpp."""
        self._more = {"return_progress": True}

    def tool_at(self, request: ModelRequest, error_text: str) -> str | None:
        """Return the tool that an error is about; `None` if the error names no tool."""
        return self._offers.of(request.tools).tool_at(error_text)


def _tool(tool: ToolDefinition, name: str) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {**name_and_description(tool, name), "parameters": object_schema(tool.parameters)},
    }


def _messages(messages: Iterable[Message], names: ToolNames) -> Iterator[dict[str, Any]]:
    # If a conversation has calls, some endpoints require the reasoning of every answer. If it has no calls, some
    # endpoints refuse reasoning.
    has_calls = False
    tools: dict[str | None, str] = {}
    shown: list[dict[str, Any]] = []
    for message in messages:
        if message.role != "tool" and shown:
            yield {"role": "user", "content": shown}
            shown = []
        has_calls = has_calls or bool(message.tool_calls)
        for call in message.tool_calls:
            tools[call.id] = names.accepted_name(call.tool)
        yield _message(message, names, with_thoughts=has_calls)
        if message.role == "tool":
            shown += _media_parts(message, tools.get(message.call_id, "a tool"))
    if shown:
        yield {"role": "user", "content": shown}


def _media_parts(message: Message, tool: str) -> Iterator[dict[str, Any]]:
    """Yield the parts of a user message with the images and sounds of a tool result.

    The API does not accept them in the tool message itself."""
    for part in text_and_media(message.content, message.media):
        if isinstance(part, Media):
            text = f"{part.placeholder} in the result of the call {message.call_id} of {tool}:"
            yield {"type": "text", "text": text}
            yield _part(part)


def _part(part: str | Media) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if part.is_image:
        return {"type": "image_url", "image_url": {"url": data_url(part)}}
    return {"type": "input_audio", "input_audio": {"data": part.data, "format": _AUDIO_FORMATS[part.media_type]}}


_AUDIO_FORMATS = {"audio/wav": "wav", "audio/mpeg": "mp3"}


def _message(message: Message, names: ToolNames, *, with_thoughts: bool) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.call_id or "", "content": message.content}
    if message.role == "user" and message.media:
        return {"role": "user", "content": [_part(each) for each in text_and_media(message.content, message.media)]}
    if message.role == "user" or not (message.tool_calls or message.provider_state):
        return {"role": message.role, "content": message.content}
    state = state_of(message, WIRE)
    signed = state.get("calls", {})
    calls = []
    for call in message.tool_calls:
        calls.append(
            {
                "type": "function",
                **signed.get(call.id, {}),
                "id": call.id,
                "function": {"name": names.accepted_name(call.tool), "arguments": arguments_text(call)},
            }
        )
    answer: dict[str, Any] = {"role": "assistant", "content": message.content}
    if calls:
        # In an answer with calls, the API itself writes `null` instead of an empty text.
        answer |= {"content": message.content or None, "tool_calls": calls}
    answer |= state.get("fields", {})
    if with_thoughts:
        answer |= state.get("thoughts", {})
    return answer
