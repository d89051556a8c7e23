"""Facts of a run that tables show besides its summary.

The history stores them apart from the run, so that tables need not read the whole run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from workbench.dataclasses import compact_json, parsed_json, reader_of
from workbench.grading.grade import AgentFacts, Issue, Metric, RunResult, reason_of
from workbench.grading.status import Status, Verdict
from workbench.trajectory.events import JsonValue, Usage

_MAX_CHARACTERS = 8_000
"""The maximum length of stored facts. The facts of a longer run are read from the run."""


class MadeCall(NamedTuple):
    """The tool and the arguments of a call of the model."""

    tool: str
    arguments: Mapping[str, JsonValue]


class UserFacts(NamedTuple):
    """The requests, latency, tokens and cost in US dollars of the model that played a user. `None` means unknown."""

    requests: int
    latency_ms: float
    usage: Usage | None
    cost_usd: float | None


NO_USER = UserFacts(0, 0, None, 0.0)


class ReportFacts(NamedTuple):
    """What a report needs of a run besides its summary, its calls and its issues.

    Fields that `RunResult` also has mean the same there. `rounds` counts the model's answers, and `has_text` is true if
    some answer has text. `why` is the reason of the deciding grade of a failed run. `is_plain` is true for a run
    without steps and without broken arguments. The causes of any other failed run can only be found in the whole
    run."""

    case_name: str
    verdict: Verdict | None = None
    error: str | None = None
    metrics: tuple[Metric, ...] = ()
    valid_arguments: tuple[bool | None, ...] = ()
    graders_disagree: bool = False
    has_free_calls: bool = False
    executions: int = 0
    retries: int = 0
    has_notices: bool = False
    agent: AgentFacts | None = None
    usage: Usage | None = None
    user: UserFacts | None = None
    rounds: int = 0
    has_text: bool = False
    why: str = ""
    is_plain: bool = True


class RunFacts(NamedTuple):
    """Facts of a finished run, for a row of a table. `grader` is the deciding grader, and `issues` are its issues.

    `finish` is the reason why the run ended. `duration_ms` excludes the time in which the run was paused. `touched` is
    true if a person changed something during the run. `report` is `None` in histories of earlier versions."""

    grader: str | None
    finish: str | None
    duration_ms: float
    touched: bool
    issues: tuple[Issue, ...]
    calls: tuple[MadeCall, ...]
    answer: str
    report: ReportFacts | None = None


def facts_text(result: RunResult) -> str:
    """Return the facts of a run as JSON, or an empty text if they are too long.

    Raises TypeError, ValueError or RecursionError for a value that JSON cannot express."""
    trajectory = result.trajectory
    issues = []
    for issue in result.issues:
        issues.append({name: value for name, value in issue._asdict().items() if value is not None})
    of_report = _report_facts(result)
    report: dict[str, object] = {"case_name": of_report.case_name}
    # The name of the case is the only field without a default.
    for (name, default), value in zip(ReportFacts._field_defaults.items(), of_report[1:], strict=True):
        if value != default:
            report[name] = value
    # In JSON, a named tuple would be a list.
    if of_report.metrics:
        report["metrics"] = [metric._asdict() for metric in of_report.metrics]
    if of_report.user is not None:
        report["user"] = of_report.user._asdict()
    # The keys are the fields of `RunFacts` and `MadeCall`.
    facts = {
        "grader": result.grader,
        "finish": trajectory.finish_reason,
        "duration_ms": trajectory.duration_ms,
        "touched": trajectory.touched,
        "issues": issues,
        "calls": [{"tool": call.tool, "arguments": call.arguments} for call in trajectory.calls],
        "answer": trajectory.final_answer,
        "report": report,
    }
    text = compact_json(facts)
    if len(text) > _MAX_CHARACTERS:
        return ""
    return text


def _report_facts(result: RunResult) -> ReportFacts:
    trajectory, user = result.trajectory, None
    if trajectory.user_turns:
        spent = (trajectory.user_requests, trajectory.user_latency_ms, result.user_usage, result.user_cost_usd)
        user = UserFacts(*spent)
    why = ""
    if result.status == Status.FAILED and result.grade is not None:
        why = reason_of(result.grade)
    broken = any(issue.kind == "broken arguments" for issue in result.issues)
    return ReportFacts(
        # The events of a run that never started do not contain the name of its case.
        case_name=result.case_id if trajectory.start is None else trajectory.start.case_name,
        verdict=result.verdict,
        error=result.error,
        metrics=result.metrics,
        valid_arguments=result.valid_arguments,
        graders_disagree=result.graders_disagree,
        has_free_calls=result.has_free_calls,
        executions=result.executions,
        retries=result.retries,
        has_notices=result.has_notices,
        agent=result.agent,
        usage=result.usage,
        user=user,
        rounds=len(trajectory.rounds),
        has_text=any(round_.text for round_ in trajectory.rounds),
        why=why,
        is_plain=not (result.steps or broken),
    )


def facts_from_text(text: str) -> RunFacts | None:
    """Return the facts that `facts_text` wrote, or `None` for an empty text. Raise ValueError for any other text."""
    if not text:
        return None
    facts: RunFacts = reader_of(RunFacts)(parsed_json(text))
    return facts
