"""Runs made by a subject or another tool, converted to the events of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Discriminator, Field, JsonValue, Tag, ValidationError
from pydantic_core import ErrorDetails

from workbench.checks.clock import fixed_clock
from workbench.dataclasses import json_text
from workbench.engine.ai_sdk import native_run
from workbench.engine.turns import opening_messages
from workbench.limits import MAX_MILLISECONDS, MAX_TOKENS
from workbench.providers.function import call_events, tool_call, with_ids
from workbench.suite.frozen import Frozen, Items, NonEmpty
from workbench.suite.model import Case, Suite
from workbench.suite.problems import did_you_mean, in_backticks
from workbench.suite.settings import settings_of
from workbench.trajectory.events import (
    CallFinished,
    EventPayload,
    ReasoningDelta,
    RequestStarted,
    ResponseFinished,
    ResultReceived,
    RunStarted,
    SourceScore,
    StopReason,
    TextDelta,
    ToolCall,
    ToolDefinition,
    Usage,
    checked_call,
)
from workbench.trajectory.external_run import ExternalResult, ExternalRound, ExternalRun


def external_run(
    calls: Sequence[Sequence[ToolCall]],
    answer: str | None,
    *,
    results: Mapping[str, ExternalResult] | None = None,
    usage: Usage | None = None,
    latency_ms: float | None = None,
    cost_usd: float | None = None,
    error: str | None = None,
) -> ExternalRun:
    """Return a run that another program made, from its calls and its answer.

    Each inner list holds the calls of one model answer."""
    # Usage, latency and cost are known only for the whole run. They are stored in its last round.
    last = ExternalRound(answer or "", usage=usage, latency_ms=latency_ms or 0.0, cost_usd=cost_usd)
    rounds = []
    for made in calls:
        rounds.append(ExternalRound(calls=tuple(made), results=results or {}))
    # Without an answer, the run ends with its last calls.
    if rounds and (answer is None or error is not None):
        last = replace(last, calls=rounds.pop().calls, results=results or {})
    return ExternalRun((*rounds, last), error, latency_ms)


def external_run_started(
    suite: Suite,
    case: Case,
    model: str,
    suite_hash: str,
    tools: Iterable[ToolDefinition],
    notices: tuple[str, ...] = (),
    scores: tuple[SourceScore, ...] = (),
) -> RunStarted:
    """Return the first event of a case's run that another program executed."""
    settings = settings_of(suite, case)
    clock = None if settings.clock is None else fixed_clock(settings.clock)
    return RunStarted(
        suite_hash=suite_hash,
        case_id=case.id,
        case_name=case.name,
        model=model,
        system=settings.system,
        messages=opening_messages(case),
        tools=tuple(tools),
        notices=notices,
        source_scores=scores,
        clock=None if clock is None else str(clock),
    )


def external_payloads(
    rounds: Iterable[ExternalRound], first: int = 1, used_ids: Iterable[str] = (), calls_before: int = 0
) -> Iterator[EventPayload]:
    """Yield the events of rounds that another program made, with call ids that are unique in the run.

    `first` is the number of the first round. `used_ids` holds the ids of earlier calls, and `calls_before` is their
    number."""
    rounds = tuple(rounds)
    calls: list[ToolCall] = []
    for each in rounds:
        calls.extend(each.calls)
    # Make ids unique over the whole run, because many agents restart the numbering of calls in each answer.
    ids = (call_id for call_id, _ in with_ids(calls, used_ids, calls_before + 1))
    for number, each in enumerate(rounds, start=first):
        yield RequestStarted(number)
        if each.reasoning:
            yield ReasoningDelta(number, each.reasoning)
        if each.text:
            yield TextDelta(number, each.text)
        made = [(next(ids), call) for call in each.calls]
        for call_id, call in made:
            for event in call_events(call_id, call, number):
                if isinstance(event, CallFinished):
                    event = checked_call(event)
                yield event
        reason: StopReason = each.stop_reason or ("tool calls" if made else "answered")
        renamed = {call.id: call_id for call_id, call in made}
        deviations = tuple(replace(one, call_id=renamed.get(one.call_id or "")) for one in each.deviations)
        yield ResponseFinished(
            *(number, reason, each.usage, each.first_token_ms, each.latency_ms),
            deviations=deviations,
            cost_usd=each.cost_usd,
        )
        for call_id, call in made:
            if (result := each.results.get(call.id)) is not None:
                yield ResultReceived(call_id, result.content, result.is_error, "reported", 0.0)


# The JSON documents of external runs: the answer of a subject, and files of calls.

_Document = TypeVar("_Document", bound=BaseModel)


class RunDocumentError(ValueError):
    """A document of a run is invalid.

    The message names the place, such as `$.calls[0].tool`, and the correction."""


def _object_or_text(value: Any) -> str:
    return "(text)" if isinstance(value, str) else "(object)"


# Without the discriminator, Pydantic would try both kinds and report the mistakes of both.
Arguments = Annotated[
    Annotated[dict[str, JsonValue], Tag("(object)")] | Annotated[str, Tag("(text)")], Discriminator(_object_or_text)
]


class CallDocument(Frozen):
    """A tool call; `arguments` is an object, or the model's text.

    `result` is the tool's answer, and `is_error` is whether the answer is an error."""

    tool: NonEmpty
    arguments: Arguments = Field(default_factory=dict)
    id: str = ""
    result: JsonValue = None
    is_error: bool = False


class UsageDocument(Frozen):
    """The tokens of a run.

    `input_tokens` includes cached tokens, and `output_tokens` includes reasoning tokens."""

    input_tokens: Annotated[int, Field(ge=0, le=MAX_TOKENS)] = 0
    output_tokens: Annotated[int, Field(ge=0, le=MAX_TOKENS)] = 0
    cached_input_tokens: Annotated[int, Field(ge=0, le=MAX_TOKENS)] = 0
    reasoning_tokens: Annotated[int, Field(ge=0, le=MAX_TOKENS)] = 0


_CALL, _CALLS = "(call)", "(calls)"


def _call_or_calls(value: Any) -> str:
    return _CALLS if isinstance(value, list | tuple) else _CALL


CallOrCalls = Annotated[
    Annotated[CallDocument, Tag(_CALL)] | Annotated[Items[CallDocument], Tag(_CALLS)], Discriminator(_call_or_calls)
]
"""A call, or several calls of one answer."""


class RunDocument(Frozen):
    """An agent's actions in one run: its calls in order, and its answer.

    `error` is the reason if the run broke off."""

    calls: Items[CallOrCalls] = ()
    answer: str | None = None
    error: NonEmpty | None = None
    usage: UsageDocument | None = None
    latency_ms: Annotated[float, Field(ge=0, le=MAX_MILLISECONDS)] | None = None
    cost_usd: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None

    @property
    def external_run(self) -> ExternalRun:
        """The run that this document describes."""
        return external_run_of(self.calls, self)


def external_run_of(calls: Sequence[CallDocument | tuple[CallDocument, ...]], run: RunDocument) -> ExternalRun:
    """Return a run with these calls. The answer, error, usage and latency come from `run`."""
    lists = []
    named = []
    for each in calls:
        made = (each,) if isinstance(each, CallDocument) else each
        lists.append(made)
        for one in made:
            named.append(ToolCall(one.id, one.tool))
    ids = (call_id for call_id, _ in with_ids(named))
    results: dict[str, ExternalResult] = {}
    rounds: list[list[ToolCall]] = []
    for made in lists:
        rounds.append([])
        for one in made:
            call = tool_call(next(ids), one.tool, one.arguments)
            rounds[-1].append(call)
            if one.result is not None or one.is_error:
                results[call.id] = ExternalResult(_text_of(one.result), one.is_error)
    usage: Usage | None = None
    if run.usage is not None:
        usage = Usage(**run.usage.model_dump())
    return external_run(
        rounds,
        run.answer,
        results=results,
        usage=usage,
        latency_ms=run.latency_ms,
        cost_usd=run.cost_usd,
        error=run.error,
    )


def _text_of(result: JsonValue) -> str:
    return result if isinstance(result, str) else json_text(result)


def parse_run_document(value: object) -> RunDocument:
    """Read a run document from a JSON value, which may also be a run of the AI SDK.

    Raises RunDocumentError for an invalid or an empty document."""
    run = document(RunDocument, native_run(value))
    if not run.model_fields_set & {"calls", "answer", "error"}:
        raise RunDocumentError(
            '$: has neither calls nor an answer: write {"calls": […], "answer": "…"}, with "calls": [] for no calls'
        )
    return run


def document(model: type[_Document], value: object) -> _Document:
    """Convert a JSON value to an instance of a Pydantic model.

    Raises RunDocumentError with a list of all mistakes."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        mistakes = [_message_of(model, detail) for detail in error.errors(include_url=False)]
        raise RunDocumentError("; ".join(mistakes)) from None


def _message_of(model: type[BaseModel], detail: ErrorDetails) -> str:
    parts = []
    # Pydantic's path to a mistake includes the tags of discriminators, which are in parentheses. The tags are left out.
    for part in detail["loc"]:
        if not (isinstance(part, str) and part[:1] + part[-1:] == "()"):
            parts.append(part)
    place, value = json_path(parts), detail["input"]
    match detail["type"]:
        case "missing":
            return f"{place} is missing"
        case "extra_forbidden":
            known = _keys_at(model, parts)
            hint = did_you_mean(str(parts[-1]), known) or f"known keys: {in_backticks(known)}"
            return f"{place} is an unknown key ({hint})"
        case "string_type" | "dict_type" if parts[-1:] == ["arguments"]:
            return f"{place} must be an object, or the JSON text of one, not {_kind(value)}"
        case "string_type":
            return f"{place} must be a text, not {_kind(value)}"
        case "string_too_short" | "too_short":
            return f"{place} must not be empty"
        case "int_type" | "int_from_float":
            return f"{place} must be a whole number, not {_kind(value)}"
        case "float_type":
            return f"{place} must be a number, not {_kind(value)}"
        case "bool_type":
            return f"{place} must be true or false, not {_kind(value)}"
        case "tuple_type":
            return f"{place} must be a list, not {_kind(value)}"
        case "model_type" | "dict_type" | "model_attributes_type":
            return f"{place} must be an object, not {_kind(value)}"
        case "greater_than_equal" if detail["ctx"]["ge"] == 0:
            return f"{place} must not be negative"
        case "value_error":
            return f"{place} {detail['ctx']['error']}"
        case _:
            return f"{place}: {detail['msg']}"


def _keys_at(model: type[BaseModel], parts: Sequence[int | str]) -> list[str]:
    *above, _ = parts
    if "usage" in above:
        return list(UsageDocument.model_fields)
    if not above:
        return [field.alias or name for name, field in model.model_fields.items()]
    return list(CallDocument.model_fields if isinstance(above[-1], int) else RunDocument.model_fields)


def json_path(parts: Sequence[int | str]) -> str:
    """Return a place in a document as a path, such as `$.cases["x"][2].tool`."""
    text, before = "$", None
    for part in parts:
        # Ids of cases are always written in brackets, even if they look like keys.
        if isinstance(part, str) and part.isidentifier() and before != "cases":
            text += f".{part}"
        else:
            text += f"[{json_text(part)}]"
        before = part
    return text


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return "a text"
        case int() | float():
            return "a number"
        case list() | tuple():
            return "a list"
        case _:
            return "an object"
