"""The data of the HTML report: that of the JSON reports, and what a person wants to see of a run beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import Field, JsonValue

from workbench.analysis.expectations import Expectations, expectations_of
from workbench.analysis.side_by_side import Row
from workbench.grading.explanation import explain, in_numbers
from workbench.grading.grade import Grade, RunResult
from workbench.grading.run_summary import RunSummary
from workbench.grading.status import Status
from workbench.show.json.base import Finite, ReportModel
from workbench.show.json.comparison import ComparedCaseReport, ModelReport, PairReport, compared_case
from workbench.show.json.report import ReportDocument, RunReport, run_fields
from workbench.show.views.runs_report import ShownRun
from workbench.suite.settings import Grading
from workbench.trajectory.events import Message
from workbench.trajectory.trajectory import Round


class PageVerdict(ReportModel):
    """Whether all is well, in one line, and what that rests on. `good` is null where nothing is judged."""

    good: bool | None
    text: str
    details: tuple[str, ...] = ()


class PageHead(ReportModel):
    """Everything that is shown before a case is looked at."""

    kind: Literal["runs", "comparison", "changes"]
    title: str
    only_differences: bool = Field(description="whether the matrix begins with the cases that differ")
    verdict: PageVerdict
    models: tuple[str, ...] = Field(description="the columns")
    totals: tuple[ModelReport, ...]
    pairs: tuple[PairReport, ...]
    suites: dict[str, str] = Field(description="names of the suites, by the keys of `gates` and `aggregates`")
    report: ReportDocument = Field(description="without runs and cases")


class PageCase(ComparedCaseReport):
    """A row of the matrix."""

    tags: tuple[str, ...]


class PageFacts(ReportModel):
    """What the page knows of a run before it is unfolded. `case` and `model` are indices."""

    case: int | None = Field(description="null for a fork of a case that has no other run")
    model: int
    repeat: int
    status: Status
    score: Finite | None
    reason: str | None
    latency_ms: float
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    fork: bool
    disagree: bool = Field(description="whether one grader would let it pass and another would not")
    causes: tuple[str, ...] = Field(description="of a failed run, the main one first")


class PriorCallReport(ReportModel):
    """A call in the conversation before the first request."""

    tool: str
    arguments: dict[str, JsonValue]


class MessageReport(ReportModel):
    """A message before the first request."""

    role: Literal["user", "assistant", "tool"]
    content: str
    calls: tuple[PriorCallReport, ...]
    is_error: bool


class AskedReport(ReportModel):
    """What a round of the JSON report lacks: the prompts of the step of a chain, and the model's visible reasoning."""

    reasoning: str
    system: str | None
    user: str | None


class ExpectedArgumentReport(ReportModel):
    argument: str
    check: str


class ExpectationReport(ReportModel):
    """An expected or disallowed call; `arguments` are null where they do not matter."""

    tool: str
    place: str
    arguments: tuple[ExpectedArgumentReport, ...] | None
    forbidden: tuple[str, ...]
    only_args: bool


class ExpectationsReport(ReportModel):
    """What the case expects."""

    calls: tuple[ExpectationReport, ...]
    disallowed: tuple[ExpectationReport, ...]
    no_calls: bool
    others: str
    answer: tuple[str, ...]


class ExplanationReport(ReportModel):
    """How a grader came to its score. `formula` has the run's numbers; it is null without a score and where a rule
    decided before, which `shortcut` tells."""

    system: str
    rule: str
    formula: str | None
    shortcut: str
    verdict: str


class PageRun(RunReport):
    """A run as it is unfolded: that of the JSON report, what was asked, and what was expected."""

    limited_ms: float = Field(description="the time that max_latency_ms limits")
    system: str | None
    messages: tuple[MessageReport, ...]
    tools: tuple[str, ...] = Field(description="names of the tools that were offered")
    asked: tuple[AskedReport, ...] = Field(description="one for each of `rounds`")
    expectations: ExpectationsReport
    explanations: tuple[ExplanationReport, ...] = Field(description="one for each of `grades`")


_NOTHING_EXPECTED = Expectations()


def page_run(run: ShownRun) -> dict[str, Any]:
    """Returns the fields of a `PageRun`, as `run_fields` does."""
    result, case = run.result, run.case
    start = result.trajectory.start
    return {
        **run_fields(result, run.line),
        "limited_ms": result.limited_ms,
        "system": start.system if start is not None else None,
        "messages": tuple(map(_message, start.messages)) if start is not None else (),
        "tools": tuple(tool.name for tool in start.tools) if start is not None else (),
        "asked": tuple(map(_asked, result.trajectory.rounds)),
        "expectations": expectations_of(case, result.grading) if case is not None else _NOTHING_EXPECTED,
        "explanations": tuple(_explanation(grade, result.grading) for grade in result.grades),
    }


def page_case(row: Row, tags: Sequence[str]) -> PageCase:
    """Returns a row of the matrix, with the tags of its case."""
    case = compared_case(row)
    return PageCase(**dict(case), tags=tuple(tags))


def facts_of(
    runs: Iterable[tuple[RunSummary, RunResult]],
    cases: Mapping[tuple[str, str], int],
    models: Mapping[str, int],
    causes: Mapping[int, Sequence[str]],
) -> Iterator[dict[str, Any]]:
    """Yields the fields of a `PageFacts` for each run. `causes` are by the number of the run, from 0."""
    for number, (run, result) in enumerate(runs):
        yield {
            "case": cases.get((run.suite, run.case_id)),
            "model": models[run.model],
            "repeat": run.repeat,
            "status": run.status,
            "score": run.score,
            "reason": run.reason,
            "latency_ms": run.latency_ms,
            "input_tokens": run.input_tokens,
            "output_tokens": run.output_tokens,
            "cost_usd": run.cost_usd,
            "fork": run.is_fork,
            "disagree": result.graders_disagree,
            "causes": tuple(causes.get(number, ())),
        }


def _explanation(grade: Grade, grading: Grading) -> dict[str, Any]:
    found = explain(grade, grading)
    return {
        "system": found.system,
        "rule": found.rule,
        "formula": in_numbers(found.formula) if found.formula is not None else None,
        "shortcut": found.shortcut,
        "verdict": found.verdict,
    }


def _message(message: Message) -> dict[str, Any]:
    return {
        "role": message.role,
        "content": message.content,
        "calls": tuple({"tool": call.tool, "arguments": dict(call.arguments)} for call in message.tool_calls),
        "is_error": message.is_error,
    }


def _asked(round_: Round) -> dict[str, Any]:
    step = round_.step
    return {
        "reasoning": round_.reasoning,
        "system": step.system if step is not None else None,
        "user": step.user if step is not None else None,
    }
