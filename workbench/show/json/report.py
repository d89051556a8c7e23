"""The JSON report of a batch, version 1: the models that define its schema, and the conversion.

The schema is committed as `docs/report.schema.json`, and a test compares both. Within a version, keys may be added, and
no key is changed or removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol

from pydantic import ConfigDict, Field, JsonValue

from workbench.analysis.causes import ADVICE, Cause, CauseNumbers, FailureNumbers
from workbench.analysis.gates import Quality
from workbench.analysis.published_reports import published_reports
from workbench.analysis.totals import that_count, totals_by_model
from workbench.dataclasses import dataclass, parsed_json
from workbench.grading.grade import IssueKind, RunResult
from workbench.grading.repeats import CaseResult
from workbench.grading.status import Status, Verdict
from workbench.show.json.base import (
    BROKEN_SUITES,
    AggregateReport,
    AgreementReport,
    BrokenSuiteReport,
    CountsReport,
    Finite,
    GateReport,
    JudgeUseReport,
    LatencyReport,
    ReportModel,
    SuitePath,
    UsageReport,
    ValidArgumentsReport,
    VerdictReport,
    broken_suites,
)
from workbench.show.json.batch_diff import BaselineReport, baseline_report
from workbench.show.json.records import Records, document_pieces, json_lines
from workbench.show.views.baseline import AgainstBaseline
from workbench.show.views.grade_moves import Regraded
from workbench.show.views.runs_report import BrokenSuite, Redactor, RunsReport
from workbench.show.views.timing import Timing
from workbench.suite.grading_model import RepeatRule
from workbench.suite.model import Case
from workbench.suite.suite_file import LineOf, no_line
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


class TotalsReport(CountsReport):
    """Counts by status and their totals.

    No mean or rate includes runs that ended in an error or were skipped, stopped or not graded."""

    runs: int
    mean_score: Finite | None = Field(description="0..1; null if nothing was scored")
    pass_rate: float | None = Field(description="passed and warned over graded runs, 0..1; null if none was graded")
    latency: LatencyReport | None
    usage: UsageReport | None
    retries: int = Field(description="number of model requests that were retried")
    executions: int = Field(description="number of calls executed on a server")
    cost_usd: float | None = Field(
        description=(
            "US dollars for the runs of known cost; 0 if no model was asked over a network; null without runs, or if "
            "only runs of unknown cost were paid for"
        )
    )
    runs_of_unknown_cost: int = Field(description="number of runs of unknown cost, not in `cost_usd`")
    user_cost_usd: float | None = Field(
        0, description="US dollars for the models that played users, not in `cost_usd`; null if some cost is unknown"
    )
    judging: JudgeUseReport
    endpoint_faults: int = Field(0, description="number of runs that failed through a fault of the endpoint")
    cost_limited: int = Field(0, description="number of runs stopped by the limit on cost")
    valid_arguments: ValidArgumentsReport | None = Field(
        None, description="validity of the graded runs' calls by the tools' own schemas"
    )
    agreement: tuple[AgreementReport, ...] = Field(
        (), description="for imported runs, the agreement of their own system's verdicts with those of the cases"
    )


class MediaReport(ReportModel):
    """An image or a sound in a tool result, without its content."""

    media_type: str
    size: int = Field(description="bytes")
    width: int | None = Field(description="pixels; null if unknown, or for a sound")
    height: int | None
    sha256: str = Field(description="hash of the content")


class CallReport(ReportModel):
    """A tool call as emitted, and its result."""

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
    """A repaired deviation of the endpoint from its API."""

    kind: str
    detail: str
    tool: str | None = Field(description="the tool of the call that was repaired")


class AgentReport(ReportModel):
    """An agent that ran a case in place of a model, with the settings of its start for this run."""

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
    set_aside: tuple[RoundReport, ...] = Field(description="earlier answers that a person regenerated")


class RefusedReport(ReportModel):
    """A message of a played user that was not sent because it breaks a rule."""

    text: str
    fault: str
    detail: str = Field(description="the part at fault")


class UserTurnReport(ReportModel):
    """What the user of a conversation did in one turn."""

    turn: int = Field(description="from 1")
    text: str | None = Field(description="what the user said; null if it left without a word")
    by: str | None = Field(description="opening, script, otherwise, model, person")
    message: str | None = Field(description="the id of a scripted message")
    refused: tuple[RefusedReport, ...] = Field(description="in the order of the attempts")
    released: tuple[str, ...] = Field(description="the names of the facts that a played user could tell")
    end: str | None = Field(description="done or gave up, where the user left")
    why: str | None


class ForkReport(ReportModel):
    """The run from which a fork was made, and the place in that run.

    The place is before the request of a round. With `answered`, it is after the round's answer and that many results of
    its calls.
    """

    run_id: str
    model: str
    round: int
    answered: int | None


class ArgumentReport(ReportModel):
    """The result of one check for one argument."""

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
    """An expected call and the actual call it was paired with, by index from 0."""

    expected_call: int | None
    call: int | None
    same_tool: bool
    arguments: tuple[ArgumentReport, ...]
    credit: Finite = Field(description="the line's part of the sum that makes the score")
    outcome: str = Field(description="the outcome of the line under the grader's rule")
    prohibition: int | None = Field(description="index of the disallowed call")
    parts: dict[str, Finite] = Field(description="the parts of the credit")


class IssueReport(ReportModel):
    """An issue of a run, and its place."""

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
    """The result of one grader for the run; the first grader decides the status, the others are only reported."""

    grader: str
    score: Finite | None
    verdict: Verdict
    reason: str
    pairings: tuple[PairingReport, ...]
    issues: tuple[IssueReport, ...]
    numbers: dict[str, Finite] = Field(description="the quantities in the grader's formula")
    status: Status | None = Field(description="the status of the run if this grader decides")


class StepReport(ReportModel):
    """A step of a chain, counted from 1, with a separate grade by the deciding grader.

    Indices of calls count all calls of the run.
    """

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
    """A request from a server during a call, with the reply."""

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
    """One run of a case with a model.

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


class ArgumentStatisticsReport(ReportModel):
    """Statistics of an argument's score in the graded runs of a case; deviations are of the population."""

    argument: str
    scores: tuple[Finite, ...] = Field(description="for each run, the mean score over its pairs; 0 without a pair")
    mean_score: Finite
    deviation: Finite
    normalised: tuple[Finite, ...] = Field(description="the scores divided by the weight")
    mean_normalised: Finite
    normalised_deviation: Finite
    weight: float


class CaseReport(ReportModel):
    """The result of a case with one model by the case's rule for repeats."""

    suite: SuitePath
    case_id: str
    model: str
    grader: str | None = Field(description="the grader that decided; null if no run was graded")
    rule: RepeatRule
    status: Status
    score: Finite | None = Field(description="mean score of the graded runs")
    deviation: Finite | None = Field(description="population standard deviation of the scores")
    reason: str | None = Field(description="why the case did not pass, if there is a single reason")
    statuses: tuple[Status, ...] = Field(description="the statuses of all runs, in the order of the repeats")
    arguments: tuple[ArgumentStatisticsReport, ...] = Field(description="empty for a single graded run")


class SubjectReport(ReportModel):
    """A tool, or one of its parameters, to which a cause applies."""

    tool: str
    argument: str | None
    instead: str | None = Field(description="the tool that was called instead of `tool`")
    count: int


class CauseReport(ReportModel):
    """The failed runs that have a cause. A run may have several causes, and one of them is the main cause."""

    cause: Cause
    runs: tuple[int, ...] = Field(description="indices in the report's `runs`, from 0")
    main: tuple[int, ...] = Field(description="number of these runs with this main cause")
    cases: int = Field(description="number of cases of these runs")
    advice: str = Field(description="what to do, in one sentence")
    meaning: str = Field("", description="what the cause means")
    subjects: tuple[SubjectReport, ...] = Field(description="the most frequent first")


class ConfusionReport(ReportModel):
    """How often a tool (or none) was called where a tool (or none) was expected."""

    expected: str | None = Field(description="null if no call was expected")
    called: str | None = Field(description="null if no call was made")
    count: int


class FailuresReport(ReportModel):
    """Why graded runs failed, and how often each tool was called where each tool was expected."""

    causes: tuple[CauseReport, ...]
    confusion: tuple[ConfusionReport, ...]


class PublishedSummary(ReportModel):
    """A suite as reported by the published system behind its deciding grader."""

    suite: SuitePath
    model: str | None = Field(description="null for the system's comparison of several models")
    grader: str
    system: str
    numbers: dict[str, JsonValue] = Field(description="the numbers, with the names and rounding of that system")


class TimingReport(ReportModel):
    """The duration of the batch, from its start to the end of its last run, and its pace."""

    took_ms: float
    start_up_ms: float = Field(description="the part in which servers or models were starting; not included in any run")
    cases_a_minute: float | None = Field(
        description="graded cases per minute in which at least one run was in progress; null without any"
    )


class ReportDocument(ReportModel):
    """A whole batch."""

    model_config = ConfigDict(title="Report")  # the name in the schema

    report: Literal["workbench"] = "workbench"
    version: Literal[1] = 1
    workbench: str = Field(description="version of the program")
    started_at: str = Field(description="original start of the batch, even if it was resumed; ISO 8601, UTC")
    interrupted: bool
    exit_code: int
    nothing_graded: bool = Field(False, description="whether no run that counts was graded, or nothing was compared")
    forks: int = Field(description="number of forks; they count nowhere else here, unless all runs are forks")
    totals: TotalsReport
    totals_per_model: dict[str, TotalsReport] = Field(default_factory=dict, description="the totals of each model")
    gates: tuple[GateReport, ...]
    aggregates: tuple[AggregateReport, ...]
    runs: tuple[RunReport, ...]
    cases: tuple[CaseReport, ...] = Field(description="the result of each case with each model")
    failures: FailuresReport
    published: tuple[PublishedSummary, ...] = Field(
        description="the report of each suite by the published system behind its deciding grader"
    )
    batch: int | None = Field(description="number of the batch in the history; null if it is not stored")
    baseline: BaselineReport | None = Field(description="the changes since the baseline; null without a baseline")
    timing: TimingReport | None = Field(description="the duration of the batch; null in a report on earlier runs")
    broken_suites: tuple[BrokenSuiteReport, ...] = Field((), description=BROKEN_SUITES)


class RegradedReport(ReportModel):
    """A recording with its original grade and its new grade."""

    recording: str
    before: VerdictReport | None
    after: VerdictReport
    moved: bool
    not_regraded: str | None
    """The reason why a run keeps its recorded verdict: a check needs a secret value that the recording lacks."""


class RegradeReport(ReportDocument):
    """The report of `workbench grade`: the report of a batch, and the recording of each of its runs."""

    model_config = ConfigDict(title="RegradeReport")

    regraded: tuple[RegradedReport, ...]


@dataclass(frozen=True, kw_only=True)
class BatchFacts:
    """Facts about a batch that do not follow from its runs.

    `batch` is the batch's number if the history has the batch. `cases` maps runs to the cases that graded them.
    """

    program_version: str
    started_at: str
    interrupted: bool
    exit_code: int
    nothing_graded: bool = False
    batch: int | None = None
    baseline: AgainstBaseline | None = None
    timing: Timing | None = None
    broken: Sequence[BrokenSuite] = ()
    cases: Mapping[str, Case] | None = None


class JsonReport(RunsReport, Protocol):
    """Runs of an evaluation that can be written as a `ReportDocument`."""

    def document_without_records(self) -> ReportDocument: ...
    def json_records(self) -> dict[str, Records[Any]]: ...


def lines_of_runs(report: JsonReport) -> Iterator[str]:
    """Yield a line of JSON for each of the `runs` of the report."""
    # The redacted text is parsed again, so that lines and documents lack exactly the same secrets.
    return json_lines(map(parsed_json, report.json_records()["runs"].texts(report.secrets)))


def report_of(
    results: Sequence[RunResult],
    quality: Quality,
    failures: FailureNumbers,
    facts: BatchFacts,
    line_of: LineOf = no_line,
) -> ReportDocument:
    """Return the runs of a batch as a report.

    `quality` and `failures` describe the runs that count.
    """
    records = report_records(results, quality.cases, line_of)
    document = report_without_records(results, quality, failures, facts)
    return document.model_copy(update={name: tuple(each) for name, each in records.items()})


def report_without_records(
    results: Sequence[RunResult], quality: Quality, failures: FailureNumbers, facts: BatchFacts
) -> ReportDocument:
    """Return the report without runs and cases. `report_records` provides these one at a time."""
    # Schemas that are built first become part of the document's schema and are not built twice.
    RunReport.model_rebuild()
    CaseReport.model_rebuild()
    counted = that_count(results)
    whole, of_models = totals_by_model(counted)
    per_model = {model: TotalsReport.model_validate(each) for model, each in of_models.items()}
    return ReportDocument(
        workbench=facts.program_version,
        started_at=facts.started_at,
        interrupted=facts.interrupted,
        exit_code=facts.exit_code,
        nothing_graded=facts.nothing_graded,
        forks=sum(result.is_fork for result in results),
        totals=TotalsReport.model_validate(whole),
        totals_per_model=per_model,
        gates=tuple(map(GateReport.model_validate, quality.gates)),
        aggregates=tuple(map(AggregateReport.model_validate, quality.aggregates)),
        runs=(),
        cases=(),
        failures=failures_report(failures),
        published=published_summaries(counted, facts.cases),
        batch=facts.batch,
        baseline=facts.baseline and baseline_report(facts.baseline),
        timing=facts.timing and TimingReport.model_validate(facts.timing),
        broken_suites=broken_suites(facts.broken),
    )


def report_records(
    results: Iterable[RunResult], cases: Iterable[CaseResult], line_of: LineOf = no_line
) -> dict[str, Records[Any]]:
    """Return the runs and the cases of a report, to be written one at a time."""
    runs = Records(RunReport, results, lambda result: run_fields(result, line_of(result.suite, result.case_id)))
    return {"runs": runs, "cases": Records(CaseReport, cases, case_fields)}


def run_fields(result: RunResult, line: int | None) -> dict[str, Any]:
    """Return the fields of a `RunReport`. Where attribute names agree, a value is the program's own object."""
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
        # An answer may contain superseded answers of the same form.
        "set_aside": tuple(map(_round, round_.superseded)),
    }


def _deviations(round_: Round) -> tuple[dict[str, str | None], ...]:
    # A deviation names a call by the endpoint's id, which the report lacks. The name of the call's tool replaces the
    # id.
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
    """Return the fields of an image or a sound. Its content stays with the run."""
    return {
        "media_type": media.media_type,
        "size": media.size,
        "width": media.width,
        "height": media.height,
        "sha256": media.sha256,
    }


def case_fields(case: CaseResult) -> dict[str, Any]:
    """Return the fields of a `CaseReport`. Where attribute names agree, a value is the program's own object."""
    first = case.runs[0]
    return {
        "suite": first.suite,
        "case_id": first.case_id,
        "model": first.model,
        "grader": case.grader,
        "rule": case.rule,
        "status": case.status,
        "score": case.score,
        "deviation": case.deviation,
        "reason": case.reason,
        "statuses": tuple(run.status for run in case.runs),
        "arguments": case.arguments,
    }


def failures_report(failures: FailureNumbers) -> FailuresReport:
    """Return the causes of failures as a report."""
    confusion = []
    for (expected, called), count in failures.confusion.counts.items():
        confusion.append(ConfusionReport(expected=expected, called=called, count=count))
    return FailuresReport(causes=tuple(map(_cause, failures.groups)), confusion=tuple(confusion))


def _cause(group: CauseNumbers) -> CauseReport:
    return CauseReport.made(
        group,
        runs=tuple(group.indices),
        main=tuple(group.main_indices),
        meaning=ADVICE[group.cause].meaning,
        subjects=tuple(SubjectReport.made(subject, count=count) for subject, count in group.subjects),
    )


def published_summaries(
    results: Sequence[RunResult], cases: Mapping[str, Case] | None = None
) -> tuple[PublishedSummary, ...]:
    """Return the summaries of published systems. `cases` maps each run to its case."""
    found = []
    for report in published_reports(results, cases or {}):
        found.append(PublishedSummary.made(report, numbers=dict(report.summary.numbers)))
    return tuple(found)


def regrade_pieces(
    document: ReportDocument, records: Mapping[str, Records[Any]], regraded: Iterable[Regraded], redactor: Redactor
) -> Iterator[str]:
    """Yield the report of regraded recordings as JSON text.

    `records` are the runs and cases that `document` lacks.
    """
    whole = RegradeReport.model_validate({**dict(document), "regraded": ()})
    return document_pieces(
        whole, {**records, "regraded": Records(RegradedReport, regraded, lambda each: each)}, redactor
    )
