"""The events of a run.

Every `Event` has the id of its run, a sequence number from 0, a time, and a payload. A trajectory is exactly the fold
of its events (`workbench.trajectory.trajectory`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Literal

from workbench.dataclasses import Milliseconds, Tokens, dataclass
from workbench.limits import MAX_JSON_LEVELS

_SPARSE: Mapping[str, bool] = {"sparse": True}
"""Marks a field of an event that lines leave out where it is empty: few runs have it, and lines of versions before it
stay as they were."""

# The parts of a conversation: messages, tool definitions, tool calls, results.

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]

Role = Literal["user", "assistant", "tool"]

ResultSource = Literal[
    "step mock", "case mock", "suite mock", "server", "default", "edited", "skipped", "replayed", "reported"
]
"""The source of a call's answer. `edited`: a person in place of the tool. `skipped`: a person skipped it.
`replayed`: the run from which this one was forked. `reported`: a tool elsewhere, according to the agent or the
file."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class ToolDefinition:
    """A tool as models see it.

    `server` names the MCP server it comes from, `None` for a tool written in the suite."""

    name: str
    description: str = ""
    parameters: Mapping[str, JsonValue] = field(default_factory=dict)
    annotations: Mapping[str, JsonValue] = field(default_factory=dict)
    server: str | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as the model emitted it.

    `arguments` is a JSON object. When the model wrote something else, `arguments` is empty, `raw` holds the text and
    `problem` says why it is not an object. Where a deviation was repaired, `raw` is the text from which the arguments
    were read."""

    id: str
    tool: str
    arguments: Mapping[str, JsonValue] = field(default_factory=dict)
    raw: str | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the conversation.

    `tool_calls` belong to an assistant's message, `call_id` and `is_error` to a tool's.

    `provider_state` must be sent back to the provider verbatim with its answer, such as signed reasoning. Only that
    provider understands it."""

    role: Role
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None
    is_error: bool = False
    provider_state: JsonValue = field(default=None, metadata={"stored": "carry"})


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one model request, as the provider counts them.

    `input_tokens` includes those read from a cache (`cached_input_tokens`), `output_tokens` those spent on reasoning
    (`reasoning_tokens`).
    """

    input_tokens: Tokens = 0
    output_tokens: Tokens = 0
    cached_input_tokens: Tokens = 0
    reasoning_tokens: Tokens = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_input_tokens + other.cached_input_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
        )


StopReason = Literal["answered", "tool calls", "truncated", "refused"]
"""Why a model ended an answer, in the same words for every provider."""

FinishReason = Literal[
    "answered",
    "decided",
    "rounds exhausted",
    "steps done",
    "step failed",
    "refused",
    "truncated",
    "sent too much",
    "stopped",
    "timed out",
    "error",
]
"""Why a run ended. `decided`: the only round of a case that looks at the first decision ended with calls. `step failed`
is for a chain that stops at its first failed step."""

HoldPlace = Literal["request", "call", "result", "permission"]
"""Where a run is held: before a model request, before a tool call, after a result, or while a person is asked whether a
call may be executed."""


@dataclass(frozen=True, slots=True)
class ServerOutput:
    """The end of a server's standard error before it failed, without secrets.

    `earlier` counts the lines before `lines`, `log` is the file that has all of them."""

    server: str
    lines: tuple[str, ...]
    earlier: int = 0
    log: str | None = None


@dataclass(frozen=True, slots=True)
class SourceScore:
    """The judgement of the system that made an imported run: its score, 0..1, and whether that is good enough there.

    `about` names the scored thing, such as a task of which this run is a part."""

    name: str
    value: float
    passed: bool
    about: str


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The conversation before the first request.

    `notices` name differences from the suite: a parameter that the API lacks, or a remembered listing of tools whose
    server cannot be reached. `server_outputs` are of such servers."""

    suite_hash: str
    case_id: str
    case_name: str
    model: str
    system: str | None
    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...]
    seed: int | None = None
    notices: tuple[str, ...] = ()
    server_outputs: tuple[ServerOutput, ...] = field(default=(), metadata=_SPARSE)
    source_scores: tuple[SourceScore, ...] = field(default=(), metadata=_SPARSE)


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A step of a chain begins; the next request belongs to it.

    Steps count from 1. `system` is the system prompt for it, `user` the message sent before its request, if there is
    one."""

    step: int
    system: str | None = None
    user: str | None = None


@dataclass(frozen=True, slots=True)
class RequestStarted:
    """A model request is sent.

    Rounds count from 1. A second request in the same round is a retry, which voids the answer to the first."""

    round: int


@dataclass(frozen=True, slots=True)
class RequestFailed:
    """A model request failed for reasons of infrastructure."""

    round: int
    error: str


@dataclass(frozen=True, slots=True)
class RetryScheduled:
    """The failed request will be retried after a wait, as attempt number `attempt` (the first retry is 2)."""

    round: int
    attempt: int
    wait_ms: Milliseconds
    reason: str


@dataclass(frozen=True, slots=True)
class PromptProgress:
    """The progress of the endpoint with the prompt: `processed` of `total` tokens in `took_ms`."""

    round: int
    processed: int
    total: int
    took_ms: Milliseconds


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the model's answer text."""

    round: int
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of the model's visible reasoning."""

    round: int
    text: str


@dataclass(frozen=True, slots=True)
class TextWasReasoning:
    """The text of the answer so far was reasoning.

    It turned out to end with a mark such as `</think>`, and its beginning was not marked."""

    round: int


@dataclass(frozen=True, slots=True)
class CallStarted:
    """The model begins a tool call.

    Call ids are unique within a run."""

    round: int
    call_id: str
    tool: str


@dataclass(frozen=True, slots=True)
class CallArgumentsDelta:
    """A piece of the JSON text of a call's arguments."""

    call_id: str
    fragment: str


@dataclass(frozen=True, slots=True)
class CallFinished:
    """A call is complete: its arguments, or the raw text and why that is not a JSON object.

    Where a deviation of the endpoint was repaired, the arguments as they were meant and the raw text."""

    call_id: str
    arguments: Mapping[str, JsonValue] = field(default_factory=dict)
    raw: str | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Deviation:
    """A deviation of the endpoint from its API that was repaired.

    `kind` names it, `detail` is a whole statement about it; `call_id` is the call that it concerns, if it concerns one.
    """

    kind: str
    detail: str
    call_id: str | None = None


@dataclass(frozen=True, slots=True)
class ResponseFinished:
    """A model's answer is complete.

    Times are milliseconds since the request was sent, without `waited_ms`: the wait at the endpoint for other requests
    to end, as far as that is known. `deviations` were repaired."""

    round: int
    stop_reason: StopReason
    usage: Usage | None
    first_token_ms: Milliseconds | None
    latency_ms: Milliseconds
    provider_state: JsonValue = field(default=None, metadata={"stored": "carry"})
    """See `Message.provider_state`."""
    deviations: tuple[Deviation, ...] = field(default=(), metadata=_SPARSE)
    waited_ms: Milliseconds = field(default=0.0, metadata=_SPARSE)


@dataclass(frozen=True, slots=True)
class Paused:
    """The run is held, and time does not count.

    `call_id` names the call before or after which it is held, `round` the round of the pending request or of that call.
    """

    why: str
    call_id: str | None = None
    at: HoldPlace = "permission"
    round: int | None = None


@dataclass(frozen=True, slots=True)
class Resumed:
    """The run continues after `held_ms` milliseconds."""

    held_ms: Milliseconds


@dataclass(frozen=True, slots=True)
class CallEdited:
    """A person changed the arguments of a call before it was answered.

    The model is graded by the `original` arguments; the tool is called with `arguments`, and the model reads these as
    its own."""

    call_id: str
    arguments: Mapping[str, JsonValue]
    original: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class ResultEdited:
    """A person changed a result before the model read it.

    `original_content` and `original_is_error` are the result before."""

    call_id: str
    content: str
    is_error: bool
    original_content: str
    original_is_error: bool


@dataclass(frozen=True, slots=True)
class MessageAdded:
    """A person adds a user message to the next request."""

    text: str


@dataclass(frozen=True, slots=True)
class Regenerated:
    """A person discards the last answer of a round with all its results; the same request is sent again."""

    round: int


@dataclass(frozen=True, slots=True)
class Forked:
    """The end of the part that a fork replays.

    Everything before was replayed without any model or tool, everything after it really happens. The fork continues
    before the request of `round` or, with `answered`, after its answer and the results of that many of its calls."""

    run_id: str
    model: str
    round: int
    answered: int | None = None


@dataclass(frozen=True, slots=True)
class ExecutionStarted:
    """A real execution of a tool begins on a server."""

    call_id: str
    server: str


@dataclass(frozen=True, slots=True)
class ExecutionProgress:
    """The progress that a server reports for an execution: `progress` of `total`, if known, in its own unit."""

    call_id: str
    progress: float
    total: float | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class ResultReceived:
    """The answer to a call, as the model will read it.

    `code` is that of JSON-RPC where the server refused the call."""

    call_id: str
    content: str
    is_error: bool
    source: ResultSource
    latency_ms: Milliseconds
    code: int | None = field(default=None, metadata=_SPARSE)


@dataclass(frozen=True, slots=True)
class RunFinished:
    """The end of a run.

    `error` is the failure of the infrastructure if the reason is `error` or `timed out`; `server_output` is of the
    server that failed, if one did."""

    reason: FinishReason
    error: str | None = None
    server_output: ServerOutput | None = field(default=None, metadata=_SPARSE)


ModelEvent = (
    PromptProgress | TextDelta | ReasoningDelta | TextWasReasoning | CallStarted | CallArgumentsDelta | CallFinished
)
"""The events of a provider while a model answers."""

EventPayload = (
    RunStarted
    | StepStarted
    | RequestStarted
    | RequestFailed
    | RetryScheduled
    | ModelEvent
    | ResponseFinished
    | Paused
    | Resumed
    | CallEdited
    | ResultEdited
    | MessageAdded
    | Regenerated
    | Forked
    | ExecutionStarted
    | ExecutionProgress
    | ResultReceived
    | RunFinished
)
"""Everything that can happen in a run."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a run: its number in the run (from 0) and its time.

    The time is in milliseconds since the run began, on a monotonic clock."""

    run_id: str
    sequence: int
    time_ms: Milliseconds
    payload: EventPayload


def usable(finished: CallFinished) -> CallFinished:
    """Return the call, marked as broken if its arguments are nested too deeply or hold values that JSON lacks."""
    problem = problem_of(finished.arguments)
    if problem is None:
        return finished
    return replace(finished, arguments={}, raw=finished.raw or _written(finished.arguments, problem), problem=problem)


def _written(arguments: Mapping[str, JsonValue], problem: str) -> str:
    """Return an approximate text of a call's arguments when the original text is not available."""
    try:
        return json.dumps(dict(arguments), ensure_ascii=False)
    except RecursionError:
        return f"({problem})"


def problem_of(arguments: Mapping[str, JsonValue]) -> str | None:
    """Return why arguments cannot be used; `None` when they can."""
    level: list[JsonValue] = [dict(arguments)]
    for _ in range(MAX_JSON_LEVELS):
        if any(isinstance(item, float) and not math.isfinite(item) for item in level):
            return "a number that is not finite"
        level = [inner for item in level for inner in _inside(item)]
        if not level:
            return None
    return MAX_JSON_LEVELS.exceeded()


def _inside(value: JsonValue) -> list[JsonValue]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
