"""OpenAI's Chat Completions API, and the many servers that approximate it: requests and answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from workbench.config.models import ModelSpec
from workbench.config.secrets import Secrets
from workbench.providers.model import AnswerFinished, ModelRequest
from workbench.providers.wire.errors import AnswerErrors, reports_error
from workbench.providers.wire.repairs import AnswerText
from workbench.providers.wire.tool_calls import (
    CallAssembly,
    Offers,
    OpenCall,
    TextPieces,
    ToolNames,
    arguments_text,
    body_text,
    object_schema,
    sent_params,
    whole_seed,
)
from workbench.providers.wire.wire import SseEvent, UsageCount
from workbench.trajectory.events import (
    JsonValue,
    Message,
    ModelEvent,
    PromptProgress,
    ReasoningDelta,
    StopReason,
    ToolDefinition,
)

# OpenAI's Chat Completions API, and the many servers that approximate it: the answers.

WIRE = "openai"

_MAX_NUMBER = 1e12
"""Larger numbers of tokens or milliseconds are none."""

_END = "[DONE]"
_TRUNCATED = {"length", "max_tokens", "model_length"}
_REFUSED = {"content_filter", "refusal"}
_FAILED = {"error", "insufficient_system_resource"}
_TEXTS_OF_DETAILS = ("text", "summary")
_JOINED_DETAILS = {"reasoning.text", "reasoning.summary"}


class ChatReader:
    """Reads one answer.

    Only its first choice counts. `thoughts_apart`: thoughts in the text are reasoning."""

    def __init__(
        self, round_number: int, calls: CallAssembly, errors: AnswerErrors, *, thoughts_apart: bool = True
    ) -> None:
        self._round = round_number
        self._calls = calls
        self._errors = errors
        self._usage = UsageCount()
        self._pieces = TextPieces()
        self._text = AnswerText(round_number, apart=thoughts_apart)
        self._written: list[str] = []
        self._by_index: dict[int, OpenCall] = {}
        self._reasoning: dict[str, list[str]] = {}
        self._details: list[dict[str, Any]] = []
        self._signed: dict[str, dict[str, Any]] = {}
        self._before_chunk = 0
        """The calls that began in earlier chunks."""
        self._began = self._refused = False
        self.ended = False
        self._reason: str | None = None
        self._prompt_ms: float | None = None

    def feed(self, event: SseEvent) -> Iterator[ModelEvent]:
        """Yield the events of a chunk.

        Raises ModelError for an error and for data that is not JSON."""
        if event.data.strip() == _END:
            self.ended = True
            return
        chunk = self._errors.document(event)
        if chunk is not None:
            yield from self._read(chunk)

    def feed_whole(self, document: JsonValue) -> Iterator[ModelEvent]:
        """Yield the events of an answer that came as one document.

        Raises ModelError when it is an error or no answer."""
        if reports_error(document):
            raise self._errors.reported(document)
        if not isinstance(document, dict) or not document.get("choices"):
            raise self._errors.no_answer(document)
        yield from self._read(document)
        self.ended = True

    def finish(self) -> Iterator[ModelEvent | AnswerFinished]:
        """Yield the finished calls and the end.

        Raises ModelError when the end did not come."""
        if not self._began:
            raise self._errors.nothing()
        if self._reason in _FAILED:
            raise self._errors.gave_up(f"finish_reason {self._reason}")
        if self._reason is None and not self.ended:
            raise self._errors.broke_off("neither finish_reason nor [DONE]")
        yield from self._text.flush()
        yield from self._calls.finish_all()
        yield AnswerFinished(
            self._stop_reason(),
            self._usage.chat(),
            self._errors.storable_state(self._provider_state()),
            (*self._text.deviations, *self._calls.deviations),
            self._prompt_ms,
        )

    def _read(self, chunk: dict[str, Any]) -> Iterator[ModelEvent]:
        if usage := chunk.get("usage"):
            self._usage.update(usage)
        if timings := chunk.get("timings"):
            self._prompt_ms = _number_in(timings, "prompt_ms")
        if progress := chunk.get("prompt_progress"):
            yield from self._progress(progress)
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict) and not choice.get("index"):
                yield from self._choice(choice)
                return

    def _progress(self, progress: object) -> Iterator[ModelEvent]:
        """Read llama.cpp's progress with the prompt."""
        processed, total, took_ms = (_number_in(progress, name) for name in ("processed", "total", "time_ms"))
        if processed is not None and total is not None:
            yield PromptProgress(self._round, int(processed), int(total), took_ms or 0.0)

    def _choice(self, choice: dict[str, Any]) -> Iterator[ModelEvent]:
        self._began = True
        if choice.get("error"):
            raise self._errors.reported(choice)
        if reason := choice.get("finish_reason"):
            self._reason = str(reason)
        delta = choice["delta"] if "delta" in choice else choice.get("message")
        if not isinstance(delta, dict):
            return
        yield from self._reasons(delta)
        content = delta.get("content")
        if content:
            if isinstance(content, str):
                yield from self._say(content)
            elif isinstance(content, list):
                yield from self._content_parts(content)
        if (refusal := delta.get("refusal")) and isinstance(refusal, str):
            self._refused = True
            yield from self._say(refusal)
        entries = delta.get("tool_calls")
        self._before_chunk = len(self._calls.calls)
        for position, entry in enumerate(entries if isinstance(entries, list) else ()):
            if isinstance(entry, dict):
                yield from self._call_fragment(entry, position)

    def _say(self, piece: str) -> Iterator[ModelEvent]:
        if text := self._pieces.next(piece):
            self._written.append(text)
            yield from self._text.next(text)

    def _reasons(self, delta: dict[str, Any]) -> Iterator[ModelEvent]:
        said: set[str] = set()
        for field in ("reasoning_content", "reasoning"):
            text = delta.get(field)
            if isinstance(text, str):
                self._reasoning.setdefault(field, []).append(text)
                if text and text not in said:
                    said.add(text)
                    yield ReasoningDelta(self._round, text)
        details = delta.get("reasoning_details")
        for detail in details if isinstance(details, list) else ():
            if not isinstance(detail, dict):
                continue
            text = next((detail[key] for key in _TEXTS_OF_DETAILS if isinstance(detail.get(key), str)), "")
            if text and not said:
                yield ReasoningDelta(self._round, text)
            self._add_detail(detail)

    def _content_parts(self, parts: list[Any]) -> Iterator[ModelEvent]:
        """Read content that is a list of parts, as Mistral sends it when a model reasons."""
        for part in parts:
            if not isinstance(part, dict):
                continue
            if isinstance(text := part.get("text"), str) and text:
                yield from self._say(text)
            thinking = part.get("thinking")
            for thought in thinking if isinstance(thinking, list) else ():
                if isinstance(thought, dict) and isinstance(text := thought.get("text"), str) and text:
                    yield ReasoningDelta(self._round, text)

    def _call_fragment(self, entry: dict[str, Any], position: int) -> Iterator[ModelEvent]:
        function = entry.get("function")
        function = function if isinstance(function, dict) else {}
        name, arguments = function.get("name"), function.get("arguments")
        index, given_id = entry.get("index"), entry.get("id")
        given_id = given_id if isinstance(given_id, str) and given_id else None
        call = self._open_call(index, given_id, position if name else 0)
        may_repeat = call in self._calls.calls[: self._before_chunk]
        if call is None or _begins_another(call, given_id, name, arguments, may_repeat=may_repeat):
            call = self._calls.begin(given_id)
            if isinstance(index, int):
                self._by_index[index] = call
        if entry.get("extra_content"):
            self._signed[call.id] = {"extra_content": entry["extra_content"]}
        yield from self._calls.name(call, name)
        yield from self._calls.add(call, arguments)

    def _open_call(self, index: object, given_id: str | None, position: int) -> OpenCall | None:
        """Return the call that a fragment may continue: that of its index, else of its id, else the latest, unless it
        follows another one in its chunk."""
        if isinstance(index, int):
            return self._by_index.get(index)
        calls = reversed(self._calls.calls)
        if given_id is not None:
            return next((call for call in calls if call.given_id == given_id), None)
        return next(calls, None) if position == 0 else None

    def _add_detail(self, detail: dict[str, Any]) -> None:
        """Details come in fragments, but go back whole: texts of one type and index are joined."""
        last = self._details[-1] if self._details else {}
        text_key = next((key for key in _TEXTS_OF_DETAILS if key in detail or key in last), None)
        same = all(last.get(key) == detail.get(key) for key in ("type", "index"))
        if text_key is None or not last or not same or str(detail.get("type")) not in _JOINED_DETAILS:
            self._errors.must_fit(self._details)
            self._details.append(dict(detail))
            return
        text = "".join(piece for piece in (last.get(text_key), detail.get(text_key)) if isinstance(piece, str))
        last.update({key: value for key, value in detail.items() if value is not None}, **{text_key: text})

    def _provider_state(self) -> JsonValue:
        """OpenRouter expects its details back, DeepSeek the reasoning before a call, and Gemini the signature at each
        call. A text with thoughts goes back as it was written. Reasoning goes back under the name under which it came,
        and only with calls, because without them some endpoints refuse it."""
        fields: dict[str, Any] = {"reasoning_details": self._details} if self._details else {}
        if self._text.deviations:
            fields["content"] = "".join(self._written)
        if self._calls.calls:
            if "reasoning_content" in self._reasoning:
                fields["reasoning_content"] = "".join(self._reasoning["reasoning_content"])
            elif "reasoning" in self._reasoning and not self._details:
                fields["reasoning"] = "".join(self._reasoning["reasoning"])
        signed: dict[str, Any] = {"calls": self._signed} if self._signed else {}
        return {"wire": WIRE, "fields": fields, **signed} if fields or signed else None

    def _stop_reason(self) -> StopReason:
        if self._refused or self._reason in _REFUSED:
            return "refused"
        if self._reason in _TRUNCATED:
            return "truncated"
        return "tool calls" if self._calls.calls else "answered"


def _number_in(told: object, name: str) -> float | None:
    """Return a number that llama.cpp's server tells, `None` where it is no finite one of at least 0."""
    value = told.get(name) if isinstance(told, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _MAX_NUMBER:
        return None
    return float(value)


def _begins_another(call: OpenCall, given_id: str | None, name: object, arguments: object, *, may_repeat: bool) -> bool:
    """Return whether a fragment for the index or the id of a call begins a new one: with a different id or name, or
    with the name repeated and arguments when those of the call are complete. The same ones for its id are a
    repetition if one may come (`may_repeat`: the call began in an earlier chunk)."""
    if given_id is not None and call.given_id is not None and given_id != call.given_id:
        return True
    if not name or not call.started:
        return False
    if name != call.name:
        return True
    if not arguments or not call.is_complete:
        return False
    return not (may_repeat and call.is_repeated_by(given_id, arguments))


# OpenAI's Chat Completions API, and the many servers that approximate it: the requests.

_ABOUT_TOOLS = ("tool_choice", "parallel_tool_calls")
"""Parameters that the API refuses in a request without tools."""


class ChatWire:
    """Chat Completions for one model."""

    path = "/chat/completions"

    def __init__(self, spec: ModelSpec, secrets: Secrets) -> None:
        self._model = spec.model
        self._thoughts_apart = spec.thoughts == "reasoning"
        self._params, self.notices = sent_params(spec, "Chat Completions")
        self._errors = AnswerErrors(spec.name, "Chat Completions", spec.base_url, secrets)
        self._offers = Offers(_tool)
        self._more: dict[str, bool] = {}
        self.seed = whole_seed(self._params)

    def body(self, request: ModelRequest) -> bytes:
        """Return the request as JSON.

        Raises ModelError when something in it cannot be written as JSON."""
        offer = self._offers.of(request.tools)
        system = [{"role": "system", "content": request.system}] if request.system else []
        fields = {
            **self._more,
            **{name: value for name, value in self._params.items() if request.tools or name not in _ABOUT_TOOLS},
            "model": self._model,
            "messages": [*system, *(_message(message, offer.names) for message in request.messages)],
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        return body_text(fields, offer)

    def reader(self, request: ModelRequest) -> ChatReader:
        """Return a reader for one answer."""
        calls = CallAssembly(request, self._offers.of(request.tools).names)
        return ChatReader(request.round, calls, self._errors, thoughts_apart=self._thoughts_apart)

    def expect_llama_cpp(self) -> None:
        """Have the progress with the prompt be part of the stream."""
        self._more = {"return_progress": True}

    def tool_at(self, request: ModelRequest, error_text: str) -> str | None:
        """Return the tool that an error complains about."""
        return self._offers.of(request.tools).tool_at(error_text)


def _tool(tool: ToolDefinition, name: str) -> dict[str, Any]:
    described = {"description": tool.description} if tool.description else {}
    return {"type": "function", "function": {"name": name, **described, "parameters": object_schema(tool.parameters)}}


def _message(message: Message, names: ToolNames) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.call_id or "", "content": message.content}
    if message.role == "user" or not (message.tool_calls or message.provider_state):
        return {"role": message.role, "content": message.content}
    state: Any = (
        message.provider_state
        if isinstance(message.provider_state, dict) and message.provider_state.get("wire") == WIRE
        else {}
    )
    signed = state.get("calls", {})
    calls = [
        {
            **signed.get(call.id, {}),
            "id": call.id,
            "type": "function",
            "function": {"name": names.accepted(call.tool), "arguments": arguments_text(call)},
        }
        for call in message.tool_calls
    ]
    content = message.content or (None if calls else "")
    return {
        "role": "assistant",
        "content": content,
        **({"tool_calls": calls} if calls else {}),
        **state.get("fields", {}),
    }
