"""A run in the JSON reports: the models that define its schema, and the conversion."""

from typing import Any

from pydantic import Field, JsonValue

from workbench.grading.grade import IssueKind, RunResult
from workbench.grading.status import Status, Verdict
from workbench.show.json.base import (
    Finite,
    JudgeUseReport,
    ReportModel,
    SuitePath,
    UsageReport,
)
from workbench.trajectory.events import (
    AgentNoteKind,
    AgentStarted,
    AskedKind,
    OwnCallStage,
    ReplyAction,
    ReplySource,
    ResultSource,
)
from workbench.trajectory.media import Media
from workbench.trajectory.trajectory import CallRecord, Round, UserTurn


class JudgementReport(ReportModel):
    """A judge's finding on one value."""

    model: str
    criteria: str
    value: str = Field(description="the value as JSON, as the judge saw it")
    holds: bool
    rationale: str
    scale: tuple[float, float] | None = Field(
        None, description="the judge's scale, as [low, high], if it rated the value"
    )
    number: float | None = Field(None, description="the judge's rating on the scale")


class MetricReport(ReportModel):
    """The value of one named check of the final answer."""

    name: str
    value: float = Field(description="0..1")
    holds: bool
    number: float | None = Field(description="the judge's rating, if the check has a scale")
    scale: tuple[float, float] | None = Field(description="the check's scale, as [low, high]")
    expected: str
    why: str
    about: str | None = Field(
        None, description="the imported run's score in its own system; null for a check of the case"
    )


class MediaReport(ReportModel):
    """An image or a sound in a tool result, without its content."""

    media_type: str
    size: int = Field(description="bytes")
    width: int | None = Field(description="pixels; null if unknown, or for a sound")
    height: int | None
    sha256: str = Field(description="hash of the content")


class CallReport(ReportModel):
    """A tool call as the model wrote it, and its result."""

    tool: str
    arguments: dict[str, JsonValue]
    problem: str | None = Field(description="why the model's text is not a JSON object; `arguments` is then empty")
    raw: str | None = Field(description="the model's text, if it is not a JSON object")
    result: str | None
    is_error: bool | None
    source: str | None
    server: str | None
    latency_ms: float | None
    edited: dict[str, JsonValue] | None = Field(
        description="the arguments by which a person replaced the model's, if any"
    )
    unedited: str | None = Field(description="the original result, if a person changed it")
    unedited_is_error: bool | None = Field(description="whether the original result was a tool error")
    media: tuple[MediaReport, ...] = Field((), description="images and sounds, for which `result` has placeholders")


class DeviationReport(ReportModel):
    """A deviation of the endpoint from its API that Workbench repaired."""

    kind: str
    detail: str
    tool: str | None = Field(description="the tool of the call that was repaired")


class AgentReport(ReportModel):
    """An agent that ran a case in place of a model, and the settings it was started with."""

    preset: str = Field(description="how it was set up, such as codex; empty without a preset")
    command: tuple[str, ...]
    name: str = Field(description="as it reports itself")
    version: str = Field(description="as it reports itself")
    mode: str
    builtin: str = Field(description="its own tools: off, forbid or allow")


class AgentNoteReport(ReportModel):
    """A note of an agent beside its answer and calls. It is never graded."""

    kind: AgentNoteKind
    text: str


class RoundReport(ReportModel):
    """One model request and its tool results."""

    number: int
    text: str
    stop_reason: str | None
    first_token_ms: float | None
    latency_ms: float | None
    waited_ms: float = Field(description="wait at the endpoint for other requests; not included in the other times")
    usage: UsageReport | None
    calls: tuple[CallReport, ...]
    calls_of_provider: tuple[CallReport, ...] = Field(
        description="calls of the provider's or agent's own tools that the suite does not offer"
    )
    errors: tuple[str, ...] = Field(description="why attempts of the request failed, in order")
    retries: int = Field(description="number of retries of the request")
    deviations: tuple[DeviationReport, ...] = Field(
        description="deviations of the endpoint that were repaired in the answer"
    )
    notes: tuple[AgentNoteReport, ...] = Field(
        (), description="what an agent told: plans, refused permissions, and calls that it reported and did not forward"
    )
    step: int | None = Field(description="the step of the chain to which the request belongs, from 1")
    turn: int | None = Field(None, description="the turn of the conversation to which the request belongs, from 1")
    replayed: bool = Field(description="whether the round was replayed from the run of which this one is a fork")
    added: tuple[str, ...] = Field(description="messages that a person added before the request")
    set_aside: "tuple[RoundReport, ...]" = Field(description="earlier answers that a person regenerated")


class RefusedReport(ReportModel):
    """A message that a model in the role of the user wrote, but that was not sent because it breaks a rule."""

    text: str
    fault: str
    detail: str = Field(description="the part at fault")


class UserTurnReport(ReportModel):
    """One turn of the simulated user: the message, or the end of the conversation."""

    turn: int = Field(description="from 1")
    text: str | None = Field(description="what the user said; null if it left without a word")
    by: str | None = Field(description="opening, script, otherwise, model, person")
    message: str | None = Field(description="the id of a scripted message")
    refused: tuple[RefusedReport, ...] = Field(description="in the order of the attempts")
    released: tuple[str, ...] = Field(description="the names of the facts that a played user could tell")
    end: str | None = Field(description="done or gave up, where the user left")
    why: str | None


class ForkReport(ReportModel):
    """The run that was forked, and the place in that run where the fork begins.

    A fork begins with the request of the round `round`. If `answered` is given, it begins after the round's answer and
    the results of the first `answered` calls."""

    run_id: str
    model: str
    round: int
    answered: int | None


class ArgumentReport(ReportModel):
    """The result of one grader's check of an argument."""

    argument: str
    holds: bool | None
    score: Finite
    weight: float
    expected: str
    got: JsonValue
    given: bool
    why: str
    listed: bool = Field(True, description="false for an argument that the expected call does not list")
    required: bool = Field(False, description="whether the run fails, whatever its score, if this check does not hold")


class PairingReport(ReportModel):
    """The pair of an expected call and an actual call, by their indices from 0."""

    expected_call: int | None
    call: int | None
    same_tool: bool
    arguments: tuple[ArgumentReport, ...]
    credit: Finite = Field(description="the line's part of the sum that makes the score")
    outcome: str = Field(description="the outcome of the line under the grader's rule")
    prohibition: int | None = Field(description="index of the disallowed call")
    parts: dict[str, Finite] = Field(description="the parts of the credit")


class IssueReport(ReportModel):
    """An issue of a run, with the call and the argument that it concerns."""

    kind: IssueKind
    why: str
    tool: str | None
    call: int | None
    expected_call: int | None
    argument: str | None
    expected: str | None
    got: str | None
    decides: bool
    because: str | None = Field(None, description="the suite's reason for the expectation, if any")


class GradeReport(ReportModel):
    """The result of one grader for the run. The first grader decides the status, and the others are only reported."""

    grader: str
    score: Finite | None
    verdict: Verdict
    reason: str
    pairings: tuple[PairingReport, ...]
    issues: tuple[IssueReport, ...]
    numbers: dict[str, Finite] = Field(description="the quantities in the grader's formula")
    status: Status | None = Field(description="the status of the run if this grader decides")


class StepReport(ReportModel):
    """A step of a chain, counted from 1, with its own grade by the deciding grader.

    Indices of calls count all calls of the run."""

    step: int
    status: Status | None = Field(description="null for a step that was never reached")
    score: Finite | None
    why: str
    call: int | None = Field(description="the graded call, the first of its answer")
    issues: tuple[IssueReport, ...]
    expected_call: int | None = Field(description="index from 0 of its expected call among the case's expected calls")


class ServerOutputReport(ReportModel):
    """The last lines that a server wrote to standard error before it failed."""

    server: str
    lines: tuple[str, ...]
    earlier: int = Field(description="number of earlier lines")
    log: str | None = Field(description="the file with all lines; null if there is none")
    is_agent: bool = Field(False, description="whether `server` names an agent that failed in place of a server")


class OwnCallReport(ReportModel):
    """A call that the suite made before the run (`setup`) or after it (`final`), with its result."""

    stage: OwnCallStage
    tool: str
    arguments: dict[str, JsonValue]
    content: str
    is_error: bool
    source: ResultSource
    server: str | None = Field(description="the server that executed the call; null for a mock")
    latency_ms: float


class AskedReport(ReportModel):
    """A request that an MCP server sent to the client during a call, such as a sampling request, with the reply."""

    tool: str
    server: str
    kind: AskedKind
    message: str
    request: dict[str, JsonValue] = Field(description="the other parameters, by their names in the protocol")
    action: ReplyAction
    source: ReplySource
    content: dict[str, JsonValue] | None
    text: str | None
    problem: str | None = Field(description="why the applicable answer was not sent")
    undeclared: bool = Field(description="whether this kind of request is missing in the server's `answers`")


class RunReport(ReportModel):
    """One run of a case with one model.

    `repeat` counts from 0."""

    suite: SuitePath
    line: int | None = Field(None, description="line of the case in the suite's file, from 1; null if unknown")
    case_id: str
    case_name: str
    model: str
    repeat: int
    status: Status
    score: Finite | None
    error: str | None = Field(
        description="the infrastructure error, why the case was skipped, or why the run is not graded"
    )
    finish: str | None = Field(description="why the run ended")
    agent: AgentReport | None = Field(None, description="the agent that ran the case; null for a model")
    notices: tuple[str, ...] = Field(description="notices on differences from the suite's settings")
    server_outputs: tuple[ServerOutputReport, ...] = Field(description="last output of failed servers")
    instructions: tuple[str, ...] = Field(
        (), description="the servers whose instructions were part of the system prompt"
    )
    clock: str | None = Field(
        None, description="the time in the system prompt: 2026-06-09T10:00+02:00 Europe/Berlin; null without a clock"
    )
    answer: str
    latency_ms: float = Field(description="sum of the latencies of all model answers; 0 if unknown")
    loop_ms: float = Field(
        description="the whole agent loop by the wall clock: model answers, tools, retries and their waits"
    )
    duration_ms: float = Field(description="from the start of the run to its end, without the time held")
    cost_usd: float | None = Field(
        description="US dollars; 0 if no model was asked over a network, null if price or tokens are unknown"
    )
    rounds: tuple[RoundReport, ...]
    grades: tuple[GradeReport, ...]
    judgements: tuple[JudgementReport, ...] = Field(description="the judgements that grading and mocks used")
    judging: JudgeUseReport
    steps: tuple[StepReport, ...] = Field(description="the steps of a graded chain")
    touched: bool = Field(
        description="whether a person changed a call or a result, added a message, or regenerated an answer"
    )
    held_ms: float = Field(description="the time for which the run was held")
    fork: ForkReport | None = Field(description="null for a run that is not a fork")
    metrics: tuple[MetricReport, ...] = Field((), description="the values of the named checks of the final answer")
    valid_arguments: tuple[bool | None, ...] = Field(
        (),
        description=(
            "for each call, whether its arguments are valid by the tool's own schema; null if no schema can tell; "
            "empty if the run was not graded; of an agent, the forwarded calls alone"
        ),
    )
    own_calls: tuple[OwnCallReport, ...] = Field((), description="the calls of `setup` and `final`, in order")
    asked_by_servers: tuple[AskedReport, ...] = Field((), description="the requests of servers during calls, in order")
    error_kind: str | None = Field(None, description="user: the simulated user is at fault; null for any other error")
    user_turns: tuple[UserTurnReport, ...] = Field((), description="of a conversation, in order")
    user_ms: float = Field(0, description="latencies of the model that plays the user; in no other time")
    user_requests: int = Field(0, description="number of requests to that model")
    user_tokens: UsageReport | None = Field(None, description="its tokens, in no other figure")
    user_cost_usd: float | None = Field(0, description="its cost in US dollars; null if unknown")


def run_fields(result: RunResult, line: int | None) -> dict[str, Any]:
    """Return the fields of a `RunReport` by name.

    The value of a nested report is any object with the same attributes."""
    trajectory = result.trajectory
    return {
        "suite": result.suite,
        "line": line,
        "case_id": result.case_id,
        "case_name": result.case_name,
        "model": result.model,
        "repeat": result.repeat,
        "status": result.status,
        "score": result.score,
        "error": result.error,
        "finish": trajectory.finish_reason,
        "agent": trajectory.agent and _agent(trajectory.agent),
        "notices": trajectory.notices,
        "server_outputs": trajectory.server_outputs,
        "instructions": trajectory.instructed_by,
        "clock": trajectory.clock,
        "answer": trajectory.final_answer,
        "latency_ms": trajectory.model_latency_ms,
        "loop_ms": trajectory.loop_ms,
        "duration_ms": trajectory.duration_ms,
        "cost_usd": result.cost_usd,
        "rounds": tuple(map(_round, trajectory.rounds)),
        "grades": result.grades,
        "judgements": result.judgements,
        "judging": result.judging,
        "steps": result.steps,
        "touched": trajectory.touched,
        "held_ms": trajectory.held_ms,
        "fork": trajectory.fork,
        "metrics": result.metrics,
        "valid_arguments": result.valid_arguments,
        "own_calls": trajectory.own_calls,
        "asked_by_servers": trajectory.asked_by_servers,
        "error_kind": "user" if result.is_user_error else None,
        "user_turns": tuple(map(_user_turn, trajectory.user_turns)),
        "user_ms": trajectory.user_latency_ms,
        "user_requests": trajectory.user_requests,
        "user_tokens": trajectory.user_usage,
        "user_cost_usd": result.user_cost_usd,
    }


def _agent(agent: AgentStarted) -> dict[str, Any]:
    return {name: getattr(agent, name) for name in AgentReport.model_fields}


def _user_turn(turn: UserTurn) -> dict[str, Any]:
    said, ended = turn.said, turn.ended
    released: tuple[str, ...] = ()
    if turn.requests:
        released = turn.requests[-1].released
    return {
        "turn": turn.number,
        "text": turn.text,
        "by": said and said.by,
        "message": said and said.message,
        "refused": tuple([{"text": each.text, "fault": each.fault, "detail": each.detail} for each in turn.refused]),
        "released": released,
        "end": ended and ended.end,
        "why": ended and ended.why,
    }


def _round(round_: Round) -> dict[str, Any]:
    return {
        "number": round_.number,
        "text": round_.text,
        "stop_reason": round_.stop_reason,
        "first_token_ms": round_.first_token_ms,
        "waited_ms": round_.waited_ms,
        "latency_ms": round_.latency_ms,
        "usage": round_.usage,
        "calls": tuple(map(_call, round_.calls)),
        "calls_of_provider": tuple(map(_call, round_.not_offered)),
        "errors": round_.errors,
        "retries": round_.retries,
        "deviations": _deviations(round_),
        "notes": tuple([{"kind": note.kind, "text": note.text} for note in round_.notes]),
        "step": round_.step and round_.step.step,
        "turn": round_.turn,
        "replayed": round_.replayed,
        "added": round_.added,
        # Answers of this round that were regenerated, each in the same form as a round.
        "set_aside": tuple(map(_round, round_.superseded)),
    }


def _deviations(round_: Round) -> tuple[dict[str, str | None], ...]:
    if not round_.deviations:
        return ()
    # A deviation has the id of a call, which is not in the report. The name of the tool replaces it.
    tools = {record.call.id: record.tool for record in round_.calls}
    found = []
    for each in round_.deviations:
        found.append({"kind": each.kind, "detail": each.detail, "tool": tools.get(each.call_id or "")})
    return tuple(found)


def _call(record: CallRecord) -> dict[str, Any]:
    result, unedited = record.result, record.unedited
    fields: dict[str, Any] = {
        "tool": record.tool,
        "arguments": dict(record.arguments),
        "problem": record.call.problem,
        "raw": record.call.raw,
        "server": record.server,
        # Keys without a value are null, so that all calls have the same keys.
        **dict.fromkeys(("edited", "result", "is_error", "source", "latency_ms", "unedited", "unedited_is_error")),
        "media": (),
    }
    if record.edited is not None:
        fields["edited"] = dict(record.edited)
    if result is not None:
        fields |= {
            "result": result.content,
            "media": tuple(map(_media_fields, result.media)),
            "is_error": result.is_error,
            "source": result.source,
            "latency_ms": result.latency_ms,
        }
    if unedited is not None:
        fields |= {"unedited": unedited.content, "unedited_is_error": unedited.is_error}
    return fields


def _media_fields(media: Media) -> dict[str, Any]:
    """Return the fields of an image or a sound, without its content."""
    return {
        "media_type": media.media_type,
        "size": media.size,
        "width": media.width,
        "height": media.height,
        "sha256": media.sha256,
    }
