"""Workbench as an MCP server, with which coding agents test whether models still call an edited tool correctly.

The server executes tools and asks models only as the user permitted at its start. It never changes a suite."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field

import workbench
from workbench.api.approval import standing_approval
from workbench.dataclasses import dataclass
from workbench.suite.case_selectors import matching_ids
from workbench.suite.project import find_suites
from workbench.suite.settings import judged_checks
from workbench.suite.suite_file import load_suite

if TYPE_CHECKING:
    from workbench import CellDone, Issue, LoadedSuite, Report

MAX_FAILURES = 20
"""The most failures in an answer of `run`, because a coding agent reads all of it. The report has all failures."""

MAX_REPORTS = 50
"""The most reports that are readable as resources. A further report replaces the oldest."""

INSTRUCTIONS = """Checks whether language models call tools correctly, by suites of cases in TOML files.
After a change to a tool, its description or its schema: `run`, then `failures` for what to do about what failed.
Without another model, `offline` is used: a deterministic baseline that is not a language model."""

_READ_ONLY = ToolAnnotations(read_only_hint=True, open_world_hint=False)


@dataclass(frozen=True)
class ServerPermissions:
    """The user's permissions for the server, given at its start."""

    paths: tuple[Path, ...]
    """The suite files, or folders with suite files, that the server may read."""
    models: tuple[str, ...] = ()
    """The models that runs may use in addition to `offline`."""
    judge: str | None = None
    """The model that may judge. Without a judge, cases with judged checks are refused."""
    trust: bool = False
    """Whether the suites may start programs and import code at the start of the server without earlier trust."""
    execute: bool = False
    """Whether tools that are marked read-only may be executed."""
    history: bool = True
    """Whether runs are recorded in the project's history."""


class CaseLine(BaseModel):
    """A case of a suite."""

    id: str
    name: str
    line: int
    tags: list[str]


class SuiteLine(BaseModel):
    """A suite and its cases. If the suite has errors, the list of cases is empty."""

    path: str
    name: str | None
    errors: int
    cases: list[CaseLine]


class ProblemLine(BaseModel):
    """A problem in a suite file, with a hint for its correction."""

    file: str
    line: int | None
    severity: str
    where: str
    message: str
    hint: str


class ModelLine(BaseModel):
    """The numbers of a model's runs by status, and their mean score from 0 to 1."""

    model: str
    passed: int
    failed: int
    errors: int
    other: int = Field(description="skipped, stopped, or not graded")
    mean_score: float | None


class FailureLine(BaseModel):
    """A run that did not pass."""

    suite: str
    line: int | None
    case: str
    model: str
    status: str
    reason: str | None
    issues: list[str]


class RunAnswer(BaseModel):
    """The result of a run of suites."""

    passed: bool = Field(description="true if every run ended and all gates of the suites were met")
    models: list[ModelLine]
    failures: list[FailureLine]
    more_failures: int
    report: str = Field(description="the resource with the full report, in Markdown")
    text: str = Field(description="the gates, the failures, and the comparison with the baseline")


_Suites = Annotated[
    Sequence[str], Field(description="paths of suites, as `list_suites` returns them (default: all suites)")
]


class _Tool(Tool):
    # The SDK ignores unknown arguments, so a misspelt `cases` would silently run all cases.
    async def run(self, arguments: dict[str, Any], context: Context[Any, Any], convert_result: bool = False) -> Any:
        known = self.parameters.get("properties", {})
        if unknown := [name for name in arguments if name not in known]:
            there_are = f"its arguments are {', '.join(known)}" if known else "it takes none"
            raise ToolError(f"{self.name} has no argument {', '.join(unknown)}: {there_are}")
        return await super().run(arguments, context, convert_result)


class NotStartedError(Exception):
    """Raised if the server cannot start. The message is the reason."""


def server_for(allowed: ServerPermissions) -> MCPServer:
    """Return a server with the permissions `allowed`, which cover the suites and the models only as they are now.

    Raises NotStartedError for an unknown model."""
    try:
        server_tools = _ServerTools(allowed)
    except workbench.UsageError as error:
        raise NotStartedError(f"the server was not started: {error}") from None
    models = ", ".join(("offline", *allowed.models))
    run_description = f"{getdoc(server_tools.run)}\n\nModels that may be asked: {models}."
    run_hints = ToolAnnotations(
        read_only_hint=not (allowed.execute or allowed.models), open_world_hint=bool(allowed.models)
    )
    tools = [
        _Tool.from_function(server_tools.list_suites, annotations=_READ_ONLY),
        _Tool.from_function(server_tools.validate, annotations=_READ_ONLY),
        _Tool.from_function(server_tools.run, description=run_description, annotations=run_hints),
        _Tool.from_function(server_tools.failures, annotations=_READ_ONLY),
    ]
    for tool in tools:
        tool.parameters["additionalProperties"] = False
    server = MCPServer("workbench", instructions=INSTRUCTIONS, version=workbench.__version__, tools=tools)
    server.resource("workbench://reports/{number}", name="report", mime_type="text/markdown")(server_tools.report)
    return server


class _ServerTools:
    """The tools of the server, and the reports of its runs."""

    def __init__(self, allowed: ServerPermissions) -> None:
        self._allowed = allowed
        self._approval = standing_approval(
            allowed.paths, models=allowed.models, judge=allowed.judge, trust=allowed.trust
        )
        self._reports: dict[int, Report] = {}
        self._report_count = 0

    def list_suites(self) -> list[SuiteLine]:
        """List the suites and their cases."""
        lines = []
        for path in find_suites(self._allowed.paths):
            file = load_suite(path)
            name, cases = None, []
            if file.suite is not None:
                name = file.suite.name
                for case in workbench.load(path).cases:
                    cases.append(CaseLine(id=case.id, name=case.name, line=case.line, tags=[*case.tags]))
            lines.append(SuiteLine(path=str(path), name=name, errors=len(file.errors), cases=cases))
        return lines

    def validate(self, suites: _Suites = ()) -> list[ProblemLine]:
        """List the problems in suite files, each with its line and a hint; by default, in all suites."""
        lines = []
        for path in self._chosen(suites):
            for problem in load_suite(path).problems:
                lines.append(
                    ProblemLine(
                        file=str(problem.file),
                        line=problem.line,
                        severity=problem.severity,
                        where=problem.where,
                        message=problem.message,
                        hint=problem.hint,
                    )
                )
        return lines

    async def run(
        self,
        context: Context,
        suites: _Suites = (),
        cases: Annotated[
            Sequence[str], Field(description="ids, names or patterns (refund*) of cases (default: all)")
        ] = (),
        tags: Annotated[Sequence[str], Field(description="run only cases with one of these tags")] = (),
        model: Annotated[str, Field(description="the model to run on; it must be allowed by --model")] = "offline",
        repeats: Annotated[
            int | None, Field(description="the number of runs of each case (default: that of the suites)")
        ] = None,
        baseline: Annotated[
            str | None,
            Field(
                description=(
                    "number or name of an earlier batch in the project's history: `text` then lists the cases that "
                    "broke or were fixed since"
                )
            ),
        ] = None,
    ) -> RunAnswer:
        """Run cases and grade the tool calls.

        The suites' mocks answer the tool calls."""
        if model not in ("offline", *self._allowed.models):
            may = ", ".join(("offline", *self._allowed.models))
            raise ToolError(f"{model} may not be asked, only {may}: start the server with --model {model} to allow it")
        try:
            chosen = [workbench.load(path) for path in self._chosen(suites)]
            self._refuse_judged(chosen, cases, tags)
            report = await workbench.evaluate_async(
                chosen,
                model=model,
                cases=cases,
                tags=tags,
                repeats=repeats,
                judge=self._allowed.judge,
                execute=True if self._allowed.execute else None,
                history=self._allowed.history,
                baseline=baseline,
                approve=self._approval,
                on_cell=_Progress(context).notify,
            )
        except workbench.ApprovalError as error:
            raise ToolError(
                f"{error.refused}\nOnly the user can allow that: restart the server with --trust, or trust the"
                " suites in the app"
            ) from None
        except workbench.WorkbenchError as error:
            raise ToolError(str(error)) from None
        return self._answer(report)

    def failures(self) -> str:
        """Explain what did not pass in the latest run: each issue, the causes, and what to do first."""
        if not self._reports:
            raise ToolError("nothing has been run yet: call `run` first")
        report = self._reports[self._report_count]
        if report.exit_code:
            return report.failure_text()
        return "Everything passed."

    def report(self, number: int) -> str:
        """Return a report of this session as Markdown."""
        if number not in self._reports:
            raise ToolError(f"there is no report {number} in this session")
        return "".join(self._reports[number].pieces("markdown"))

    def _chosen(self, suites: Sequence[str]) -> tuple[Path, ...]:
        """Return the suite files at the given paths, or all suite files if no path is given.

        Raises ToolError for a path that is not allowed."""
        known = {}
        for path in find_suites(self._allowed.paths):
            known[path.resolve()] = path
        if not known:
            raise ToolError(f"there is no suite in {', '.join(map(str, self._allowed.paths))}")
        if unknown := [suite for suite in suites if Path(suite).resolve() not in known]:
            raise ToolError(f"there is no suite {', '.join(unknown)}: `list_suites` names the existing ones")
        if not suites:
            return tuple(known.values())
        return tuple(known[Path(suite).resolve()] for suite in suites)

    def _refuse_judged(self, suites: Sequence[LoadedSuite], cases: Sequence[str], tags: Sequence[str]) -> None:
        """Raise ToolError if a chosen case needs a judge, but the user permitted none."""
        if self._allowed.judge is not None:
            return
        # As in `evaluate`, a pattern may match cases of any suite.
        known = [case for suite in suites for case in suite.cases]
        ids: set[str] = set()
        for word in cases:
            ids.update(matching_ids(word, known))
        for suite in suites:
            for case in suite.cases:
                chosen = (not cases or case.id in ids) and (not tags or {*tags} & {*case.tags})
                if chosen and any(judged_checks(suite.definition, case.definition)):
                    raise ToolError(
                        f"{case.id} in {suite.path} is judged by a model: start the server with --judge MODEL to allow"
                        " that, or choose other cases"
                    )

    def _answer(self, report: Report) -> RunAnswer:
        self._report_count += 1
        self._reports[self._report_count] = report
        self._reports.pop(self._report_count - MAX_REPORTS, None)
        models = []
        for model, totals in report.totals_per_model.items():
            models.append(
                ModelLine(
                    model=model,
                    passed=totals.good,
                    failed=totals.failed,
                    errors=totals.errors,
                    other=totals.runs - totals.graded - totals.errors,
                    mean_score=totals.mean_score,
                )
            )
        failed = [run for run in report.shown if run.status in (workbench.Status.FAILED, workbench.Status.ERROR)]
        failures = []
        for run in failed[:MAX_FAILURES]:
            failures.append(
                FailureLine(
                    suite=run.suite,
                    line=report.line_of(run.suite, run.case_id),
                    case=run.case_id,
                    model=run.model,
                    status=run.status,
                    reason=run.reason,
                    issues=[*map(_issue_text, run.issues)],
                )
            )
        return RunAnswer(
            passed=report.passed,
            models=models,
            failures=failures,
            more_failures=max(0, len(failed) - MAX_FAILURES),
            report=f"workbench://reports/{self._report_count}",
            text=report.text(amount="little"),
        )


def _issue_text(issue: Issue) -> str:
    text: str = issue.kind
    if place := ".".join(name for name in (issue.tool, issue.argument) if name is not None):
        text += f": {place}"
    if issue.expected is not None:
        text += f", expected {issue.expected}"
    return f"{text}: {issue.reason}"


class _Progress:
    """Progress notifications to the client, one for each finished case."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._ended_cases = 0
        # The event loop has only weak references to tasks. Without these references, a task could be deleted before it
        # sends its notification.
        self._notifying: set[asyncio.Task[None]] = set()

    def notify(self, event: CellDone) -> None:
        """Notify the client that a case is finished. Return at once."""
        self._ended_cases += 1
        message = f"{event.case}: {event.report.cases[0].status}"
        task = asyncio.ensure_future(self._context.report_progress(self._ended_cases, message=message))
        self._notifying.add(task)
        task.add_done_callback(self._notifying.discard)
