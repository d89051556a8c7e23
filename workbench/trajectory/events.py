"""The events of a run.

Every `Event` has the id of its run, a sequence number from 0, a time, and a payload. `workbench.trajectory.fold`
builds the trajectory of a run from its events."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import Literal

from workbench.dataclasses import Milliseconds, Tokens, dataclass
from workbench.limits import MAX_JSON_LEVELS
from workbench.trajectory.media import Media

# Fields that later versions added are written only if they have a value, so most lines look as in earlier versions.
_SPARSE: Mapping[str, bool] = {"sparse": True}
"""Marks a field of an event that is left out of the event's line if it is empty."""

# The parts of a conversation: messages, tool definitions, tool calls, results.

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]

Role = Literal["user", "assistant", "tool"]

ResultSource = Literal[
    "step mock",
    "case mock",
    "suite mock",
    "server",
    "provider",
    "default",
    "edited",
    "skipped",
    "replayed",
    "reported",
]
"""The source of a call's result.

`provider`: the model's provider ran its own tool. `edited`: a person answered in place of the tool. `skipped`: a person
skipped the call. `replayed`: the result of the original run of a fork. `reported`: a tool outside Workbench answered,
according to the agent or the imported file."""

ProviderTool = Literal["offered", "other"]
"""A tool that the model's provider runs itself: `offered` by the suite, or an `other` tool, which is only shown."""


# `weakref_slot` is for `cached_by_identity`, which caches a tool's compiled schema until the definition is deleted.
@dataclass(frozen=True, slots=True, weakref_slot=True)
class ToolDefinition:
    """A tool as models see it. `parameters` is its JSON Schema.

    `server` names the MCP server that offers the tool, or `None` for a tool written in the suite. `provider` is set
    for a tool that model providers run themselves. It maps the name of an API to the tool's form in requests."""

    name: str
    description: str = ""
    parameters: Mapping[str, JsonValue] = field(default_factory=dict)
    annotations: Mapping[str, JsonValue] = field(default_factory=dict)
    server: str | None = None
    provider: Mapping[str, JsonValue] | None = field(default=None, metadata=_SPARSE)


def names_of_tools(tools: Iterable[ToolDefinition]) -> list[str]:
    return [tool.name for tool in tools]


def tools_by_name(tools: Iterable[ToolDefinition]) -> dict[str, ToolDefinition]:
    """Return tools by name. If several tools have the same name, the last one is returned."""
    return {tool.name: tool for tool in tools}


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call as the model emitted it.

    `arguments` is a JSON object. If the model wrote something else, `arguments` is empty, `raw` holds the text, and
    `problem` says why the text is not an object. If the arguments had to be repaired, `raw` holds the original text."""

    id: str
    tool: str
    arguments: Mapping[str, JsonValue] = field(default_factory=dict)
    raw: str | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """A message of the conversation.

    Only an assistant's message has `tool_calls`. Only a tool's message has `call_id` and `is_error`. `provider_state`
    is data of the provider, such as signed reasoning, which must be sent back unchanged. `media` are the images and
    sounds of a user's or a tool's message, in the order of their placeholders in `content`."""

    role: Role
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None
    is_error: bool = False
    provider_state: JsonValue = field(default=None, metadata={"stored": "carry"})
    media: tuple[Media, ...] = field(default=(), metadata=_SPARSE)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one model request, as the provider counts them.

    `input_tokens` includes `cached_input_tokens`, and `output_tokens` includes `reasoning_tokens`."""

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
"""The reason why a model ended an answer, in the same words for every provider."""

FinishReason = Literal[
    "answered",
    "decided",
    "rounds exhausted",
    "steps done",
    "step failed",
    "user done",
    "user gave up",
    "stopped by rule",
    "turns exhausted",
    "user error",
    "refused",
    "truncated",
    "sent too much",
    "stopped",
    "timed out",
    "error",
]
"""The reason why a run ended.

`decided`: the case has only one round, and the round ended with calls. `step failed`: the chain stops at its first
failed step. A conversation ends when the user leaves (`user done`, `user gave up`), when its condition `stop` holds
(`stopped by rule`), or after `max_turns` (`turns exhausted`). `user error`: the simulated user breaks its rules or
cannot be asked."""

UserEnd = Literal["done", "gave up"]
"""How a user leaves a conversation: with the goal reached, or without."""

UserSource = Literal["opening", "script", "otherwise", "model", "person"]
"""The source of a user's message.

`opening`: the opening of a simulated user. `script` and `otherwise`: the messages of a script. `model`: the model that
plays the user. `person`: the person who steps through the run."""

UserFault = Literal[
    "invented",
    "told early",
    "empty",
    "spoke as the assistant",
    "twice word for word",
    "unknown end",
    "no message",
    "asked again",
]
"""The reason why a message of the simulated user is not sent. `asked again` means that a person wanted another
message."""

HoldPlace = Literal["user", "request", "call", "question", "result", "permission"]
"""The place where a run is held.

`user`: before a message of a conversation's user. `request`: before a model request. `call`: before a tool call.
`question`: before the reply to a server's request. `result`: after a result. `permission`: while a person is asked
whether a call may be executed."""


@dataclass(frozen=True, slots=True)
class ServerOutput:
    """The last lines of a server's standard error before the server failed, without secrets.

    `earlier` is the number of lines before `lines`. `log` is the path of the file with all lines. `is_agent` is true if
    `server` names an agent, not a server."""

    server: str
    lines: tuple[str, ...]
    earlier: int = 0
    log: str | None = None
    is_agent: bool = field(default=False, metadata=_SPARSE)


@dataclass(frozen=True, slots=True)
class SourceScore:
    """The score, from 0 to 1, of an imported run in its original system, and whether the run passed there.

    `about` names the subject of the score, such as the task that contains the run."""

    name: str
    value: float
    passed: bool
    about: str


@dataclass(frozen=True, slots=True)
class ServerInstructions:
    """The instructions that an MCP server adds to the system prompt, cut at the size limit."""

    server: str
    text: str


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The first event of a run, with the conversation before the first request.

    `system` is the system prompt in the suite. In requests, the servers' instructions and the time in `clock` follow
    it. `clock` looks like "2026-06-09T10:00+02:00 Europe/Berlin". `notices` are sentences on differences from the
    suite, such as a parameter that the API lacks. `server_outputs` has the standard error of servers that did not
    start."""

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
    instructions: tuple[ServerInstructions, ...] = field(default=(), metadata=_SPARSE)
    clock: str | None = field(default=None, metadata=_SPARSE)


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A step of a chain begins. The next request belongs to this step.

    A chain is a case in several steps. `step` counts from 1. `system` is the system prompt of the step, and `user` is
    its user message, or `None` if it has none."""

    step: int
    system: str | None = None
    user: str | None = None


@dataclass(frozen=True, slots=True)
class RequestStarted:
    """A request is sent to the model.

    `round` counts from 1. A second request in the same round is a retry, and the answer to the first request is void.
    """

    round: int


@dataclass(frozen=True, slots=True)
class RequestFailed:
    """A request to the model failed because of the endpoint or the network."""

    round: int
    error: str


@dataclass(frozen=True, slots=True)
class RetryScheduled:
    """A failed request will be retried after a wait. The first retry is `attempt` 2."""

    round: int
    attempt: int
    wait_ms: Milliseconds
    reason: str


@dataclass(frozen=True, slots=True)
class PromptProgress:
    """The endpoint reports how many tokens of the prompt it has processed so far, and in what time."""

    round: int
    processed: int
    total: int
    took_ms: Milliseconds


@dataclass(frozen=True, slots=True)
class AgentStarted:
    """An agent was started through the Agent Client Protocol.

    `preset` is the name of a known agent. It is empty for any other agent. `command` is the command that was started.
    The agent reports `name` and `version`. `mode` is the mode of its session. `builtin` says whether it may use its
    built-in tools."""

    round: int
    preset: str
    command: tuple[str, ...]
    name: str
    version: str
    mode: str
    builtin: str

    @property
    def title(self) -> str:
        """The name and version of the agent."""
        return f"{self.name} {self.version}".strip()


AgentNoteKind = Literal["plan", "permission", "not forwarded", "message"]
"""The kind of an agent's note.

`plan`: the agent's plan. `permission`: a refused permission. `not forwarded`: a call of an offered tool that the agent
reports but that never reached Workbench. `message`: any other unusual event."""


@dataclass(frozen=True, slots=True)
class AgentNoted:
    """Output of an agent other than its answer and its calls. It is shown but never graded."""

    round: int
    kind: AgentNoteKind
    text: str


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
    """The text before this event turned out to be reasoning, because a closing tag such as `</think>` arrived.

    Some chat templates put the opening tag into the prompt, so the answer contains only the closing tag."""

    round: int


@dataclass(frozen=True, slots=True)
class AnswerPaused:
    """The provider paused a long answer. A further request sends the answer back, so that the model continues it.

    `times` counts from 1."""

    round: int
    times: int


@dataclass(frozen=True, slots=True)
class CallStarted:
    """The model begins a tool call.

    The call's id is unique within the run. With `by_provider`, the provider runs the call itself, and the result
    follows in this answer or a later answer."""

    round: int
    call_id: str
    tool: str
    by_provider: ProviderTool | None = field(default=None, metadata=_SPARSE)


@dataclass(frozen=True, slots=True)
class CallArgumentsDelta:
    """A piece of the JSON text of a call's arguments."""

    call_id: str
    fragment: str


@dataclass(frozen=True, slots=True)
class CallFinished:
    """A tool call is complete. The fields are those of `ToolCall`."""

    call_id: str
    arguments: Mapping[str, JsonValue] = field(default_factory=dict)
    raw: str | None = None
    problem: str | None = None


REPEATED_KEY = "repeated key"
"""The kind of the deviation that an object in a call's arguments has a key twice."""


@dataclass(frozen=True, slots=True)
class Deviation:
    """A deviation of the endpoint from its API, which was repaired.

    `kind` is a short name, and `detail` a sentence. `call_id` is the id of the affected call, or `None` if no call is
    affected."""

    kind: str
    detail: str
    call_id: str | None = None


@dataclass(frozen=True, slots=True)
class ResponseFinished:
    """A model's answer is complete.

    `first_token_ms` and `latency_ms` are milliseconds since the request was sent. Both exclude `waited_ms`, the known
    time that the request waited at the endpoint behind other requests."""

    round: int
    stop_reason: StopReason
    usage: Usage | None
    first_token_ms: Milliseconds | None
    latency_ms: Milliseconds
    provider_state: JsonValue = field(default=None, metadata={"stored": "carry"})
    """See `Message.provider_state`."""
    deviations: tuple[Deviation, ...] = field(default=(), metadata=_SPARSE)
    waited_ms: Milliseconds = field(default=0.0, metadata=_SPARSE)
    cost_usd: float | None = field(default=None, metadata=_SPARSE)
    """The cost in US dollars, as the agent reports it."""


@dataclass(frozen=True, slots=True)
class Paused:
    """The run is paused until a person resumes it. Run times do not include the pause.

    `call_id` is the call before or after which the run is paused. `round` is the round of this call or of the next
    request. `asked` is a server's request with the reply that will be sent. `said` is a message of the simulated user
    that will be sent."""

    why: str
    call_id: str | None = None
    at: HoldPlace = "permission"
    round: int | None = None
    asked: ServerAsked | None = field(default=None, metadata=_SPARSE)
    said: UserSaid | None = field(default=None, metadata=_SPARSE)


@dataclass(frozen=True, slots=True)
class Resumed:
    """The run continues after a pause of `held_ms` milliseconds."""

    held_ms: Milliseconds


@dataclass(frozen=True, slots=True)
class CallEdited:
    """A person changed the arguments of a call before it was answered.

    Grades use the `original` arguments. The tool is called with `arguments`, and later requests show `arguments` to the
    model."""

    call_id: str
    arguments: Mapping[str, JsonValue]
    original: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class ResultEdited:
    """A person changed a result before the model read it. The `original_` fields hold the result before the change."""

    call_id: str
    content: str
    is_error: bool
    original_content: str
    original_is_error: bool


@dataclass(frozen=True, slots=True)
class MessageAdded:
    """A person added a user message to the next request."""

    text: str


@dataclass(frozen=True, slots=True)
class Regenerated:
    """A person discarded the last answer of a round with all its results. The same request is sent again."""

    round: int


@dataclass(frozen=True, slots=True)
class Forked:
    """The events that a fork copied from its original run end here. The fork's own events follow.

    `run_id` and `model` are those of the original run. The fork begins before the request of the round `round`. If
    `answered` is not `None`, it begins after the round's answer and the results of its first `answered` calls."""

    run_id: str
    model: str
    round: int
    answered: int | None = None


@dataclass(frozen=True, slots=True)
class UserRequestStarted:
    """The model that simulates the user is asked for its next message.

    `turn` counts from 1. `released` has the names of the facts that the user may disclose. `cached` is true if the
    answer is reused from an earlier run."""

    turn: int
    model: str
    cached: bool = False
    released: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UserRefused:
    """A message of the simulated user was not sent because it breaks a rule. `detail` is the offending part.

    `attempt` counts from 1. Tokens, latency and the cost in US dollars are those of this attempt."""

    turn: int
    attempt: int
    text: str
    fault: UserFault
    detail: str = ""
    usage: Usage | None = None
    latency_ms: Milliseconds = field(default=0.0, metadata=_SPARSE)
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class UserSaid:
    """The simulated user sends a message. The next request belongs to this turn.

    `turn` counts from 1. `message` is the id of a scripted message. With `end`, the user leaves after the answer.
    `original` is the message that a person replaced by `text`, or `None` if `text` replaces no message."""

    turn: int
    text: str
    by: UserSource
    message: str | None = None
    end: UserEnd | None = None
    usage: Usage | None = field(default=None, metadata=_SPARSE)
    latency_ms: Milliseconds = field(default=0.0, metadata=_SPARSE)
    cost_usd: float | None = None
    original: str | None = field(default=None, metadata=_SPARSE)


@dataclass(frozen=True, slots=True)
class UserEnded:
    """The simulated user leaves the conversation.

    `turn` is the turn of the user's last message, or a new turn if the user leaves without a message."""

    turn: int
    end: UserEnd
    why: str | None = None
    usage: Usage | None = field(default=None, metadata=_SPARSE)
    latency_ms: Milliseconds = field(default=0.0, metadata=_SPARSE)
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class ExecutionStarted:
    """A server begins to execute a call."""

    call_id: str
    server: str


@dataclass(frozen=True, slots=True)
class ExecutionProgress:
    """A server reports the progress of an execution: `progress` of `total`, if known, in the server's own unit."""

    call_id: str
    progress: float
    total: float | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class ResultReceived:
    """The result of a call, as the model will read it.

    `code` is the error code of JSON-RPC if the server refused the call. `media` are the images and sounds of the
    result. If the same image or sound appears in several results of a run, only its first appearance holds data."""

    call_id: str
    content: str
    is_error: bool
    source: ResultSource
    latency_ms: Milliseconds
    code: int | None = field(default=None, metadata=_SPARSE)
    media: tuple[Media, ...] = field(default=(), metadata=_SPARSE)


AskedKind = Literal["elicitation", "sampling"]
"""A request of a server to its client: `elicitation` asks the user for a form or consent, `sampling` asks a model for a
text."""

ReplyAction = Literal["accept", "decline", "cancel"]

ReplySource = Literal["case", "suite", "person", "nobody"]
"""The source of the reply to a server's request: an answer in the case or the suite, or the person who steps through
the run. `nobody`: the request was declined because no answer applied."""


@dataclass(frozen=True, slots=True)
class ServerAsked:
    """An MCP server sent an elicitation or a sampling request while it executed a call, and got a reply.

    `message` is the text of the request. `request` holds its other parameters under their protocol names, such as
    `requestedSchema` and `url`. `content` is the reply to an elicitation, and `text` the reply to a sampling request.
    `problem` says why the prepared reply was not sent. `undeclared` is true if the suite declares no replies of this
    kind under the server's key `answers`."""

    call_id: str
    tool: str
    server: str
    kind: AskedKind
    message: str
    request: Mapping[str, JsonValue]
    action: ReplyAction
    source: ReplySource
    content: Mapping[str, JsonValue] | None = None
    text: str | None = None
    problem: str | None = None
    undeclared: bool = field(default=False, metadata=_SPARSE)

    @property
    def notice(self) -> str | None:
        """Why the request was not answered, and what to do about it, or `None` if it was answered."""
        message = " ".join(self.message.split())
        if len(message) > _MAX_ASKED:
            message = f"{message[:_MAX_ASKED]} …"
        happened = f"server {self.server!r} asked in a call of {self.tool}: {message!r}"
        if self.problem is not None:
            return f"{happened}; the answer was not sent: {self.problem}"
        if self.source != "nobody":
            return None
        if self.undeclared:
            return f'{happened}, which was refused; answers = ["{self.kind}"] in its [[servers]] lets cases answer'
        answer = f'to = "{self.kind}", tool = "{self.tool}", {self._open_reply}'
        return f"{happened}, and no answer applies, so it was declined; write [[cases.answers]] with {answer}"

    @property
    def _open_reply(self) -> str:
        if self.kind == "sampling":
            return 'text = "…"'
        schema = self.request.get("requestedSchema")
        properties = schema.get("properties") if isinstance(schema, Mapping) else None
        if not isinstance(properties, Mapping) or not properties:
            return 'action = "accept"'
        fields = [f"{name} = …" for name in properties]
        return f"content = {{ {', '.join(fields)} }}"


_MAX_ASKED = 200
"""The most characters of a server's request that a notice quotes."""


OwnCallStage = Literal["setup", "final"]
"""The time of a suite's own call: before the run (`setup`) or after it (`final`)."""


@dataclass(frozen=True, slots=True)
class OwnCallAnswered:
    """A call that the suite itself makes before the run (`setup`) or after it (`final`) was answered.

    The model sees neither the call nor the result. `server` is the server that executed the call, or `None` for a
    mock."""

    stage: OwnCallStage
    tool: str
    arguments: Mapping[str, JsonValue]
    content: str
    is_error: bool
    source: ResultSource
    latency_ms: Milliseconds
    server: str | None = field(default=None, metadata=_SPARSE)


@dataclass(frozen=True, slots=True)
class RunFinished:
    """The run ends.

    If the reason is "error" or "timed out", `error` says what failed. `server_output` is the last output of a failed
    server."""

    reason: FinishReason
    error: str | None = None
    server_output: ServerOutput | None = field(default=None, metadata=_SPARSE)


ModelEvent = (
    PromptProgress
    | AgentStarted
    | AgentNoted
    | TextDelta
    | ReasoningDelta
    | TextWasReasoning
    | AnswerPaused
    | CallStarted
    | CallArgumentsDelta
    | CallFinished
    | ResultReceived
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
    | UserRequestStarted
    | UserRefused
    | UserSaid
    | UserEnded
    | ExecutionStarted
    | ExecutionProgress
    | ServerAsked
    | OwnCallAnswered
    | RunFinished
)
"""Everything that can happen in a run."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a run.

    `sequence` counts the events of the run from 0. `time_ms` is the time since the run began, on a monotonic clock."""

    run_id: str
    sequence: int
    time_ms: Milliseconds
    payload: EventPayload


def checked_call(finished: CallFinished) -> CallFinished:
    """Return the call unchanged, or without arguments and with a `problem` if its arguments cannot be stored as JSON.

    The arguments may nest too deeply, or hold values such as NaN."""
    problem = problem_of(finished.arguments)
    if problem is None:
        return finished
    # Python's parser accepts `NaN` and any depth, but neither can be written to a recording and read again.
    return replace(finished, arguments={}, raw=finished.raw or _written(finished.arguments, problem), problem=problem)


def _written(arguments: Mapping[str, JsonValue], problem: str) -> str:
    try:
        return json.dumps(dict(arguments), ensure_ascii=False)
    except RecursionError:
        return f"({problem})"


def problem_of(arguments: Mapping[str, JsonValue]) -> str | None:
    """Return why the arguments of a call cannot be used, or `None` if they can."""
    # Values are checked level by level, because recursion into deeply nested values would overflow.
    level: list[JsonValue] = [dict(arguments)]
    for _ in range(MAX_JSON_LEVELS):
        inner: list[JsonValue] = []
        for item in level:
            if isinstance(item, float) and not math.isfinite(item):
                return "a number that is not finite"
            if isinstance(item, dict):
                inner += item.values()
            elif isinstance(item, list):
                inner += item
        if not inner:
            return None
        level = inner
    return MAX_JSON_LEVELS.exceeded()
