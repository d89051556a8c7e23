"""Answers the tool calls of a run from mocks and servers. Real executions are allowed, asked about or refused, and each
is written to the audit log."""

from __future__ import annotations

from workbench.checks.check import CheckVerdict
from workbench.checks.combined_kinds import Judged
from workbench.dataclasses import dataclass
from workbench.engine.permission import ExecutionQuestion, ExecutionRefusedError, Permission
from workbench.engine.progress import ProgressReports
from workbench.engine.recorder import Recorder
from workbench.engine.time_limit import TimeLimit
from workbench.tools.answer import ToolAnswer, ToolsError
from workbench.tools.audit import Allowed, AuditError, AuditLog, Caller, Outcome
from workbench.tools.mocks import AskJudge, PlannedAnswer
from workbench.tools.toolbox import Toolbox
from workbench.trajectory.events import ExecutionStarted, Paused, ResultReceived, Resumed
from workbench.trajectory.messages import JsonValue, ToolCall, ToolDefinition
from workbench.trajectory.trajectory import CallRecord


@dataclass(frozen=True)
class Audit:
    """The audit log for a run's executions, and on whose behalf they are made."""

    log: AuditLog
    caller: Caller


class Executor:
    """Answers calls one after the other. A person is asked about a tool until all its calls in the run are allowed.
    Without an `audit`, nothing is executed."""

    def __init__(
        self,
        tools: Toolbox,
        recorder: Recorder,
        permission: Permission,
        limit: TimeLimit,
        audit: Audit | None,
        judge: AskJudge | None = None,
    ) -> None:
        self._tools = tools
        self._recorder = recorder
        self._permission = permission
        self._limit = limit
        self._audit = audit
        self._judge = judge
        self._allowed: set[str] = set()
        self.definitions = tools.definitions
        self._definitions = {definition.name: definition for definition in tools.definitions}

    def definition(self, tool: str) -> ToolDefinition | None:
        """Returns the definition of a tool; `None` when no tool of that name is offered."""
        return self._definitions.get(tool)

    async def answer(self, call: ToolCall, step_mock: JsonValue = None) -> ResultReceived:
        """Answer a call from its step's mock, another mock or its server, and emit the events for it.

        Raises ToolsError when its server cannot answer, ExecutionRefusedError when it may not be executed, and
        AuditError when the execution cannot be logged.
        """
        planned = await self._tools.plan(call, step_mock, judge=self._judged if self._judge is not None else None)
        if planned.source == "server" and planned.server is not None:
            answer, latency_ms = await self._execute(call, planned, planned.server)
        else:
            began = self._recorder.clock()
            answer = await planned.run()
            latency_ms = self._recorder.ms_since(began)
        result = ResultReceived(call.id, answer.content, answer.is_error, planned.source, latency_ms, answer.code)
        self._recorder.emit(result)
        return result

    def replay(self, record: CallRecord, step_mock: JsonValue = None) -> None:
        """Take account of a call that another run made and that is already answered: nothing is asked or executed.
        Raises ToolsError."""
        answer = record.unedited or record.result
        if answer is not None and answer.source == "replayed":
            self._tools.count(record.sent, ToolAnswer(answer.content, answer.is_error), step_mock)

    async def _judged(self, check: Judged, value: JsonValue) -> CheckVerdict:
        """Ask the judge about a mock's condition. The judge has a time limit of its own."""
        assert self._judge is not None
        async with self._limit.suspended():
            return await self._judge(check, value)

    async def _execute(self, call: ToolCall, planned: PlannedAnswer, server: str) -> tuple[ToolAnswer, float]:
        """Returns the server's answer and its latency in milliseconds."""
        allowed = await self._permit(call, self._definitions[call.tool])
        if self._audit is None:
            raise AuditError(f"{call.tool} was not executed: this run has no audit log")
        audited = self._audit.log.begin(self._audit.caller, call, server, allowed)
        self._recorder.emit(ExecutionStarted(call.id, server))
        began = self._recorder.clock()
        outcome: Outcome = "stopped"
        reports = ProgressReports(call.id, self._recorder)
        try:
            answer = await planned.run(reports)
            outcome = "tool error" if answer.is_error else "ok"
        except ToolsError:
            outcome = "server error"
            raise
        finally:
            reports.close()
            latency_ms = self._recorder.ms_since(began)
            audited.end(outcome, latency_ms)
        return answer, latency_ms

    async def _permit(self, call: ToolCall, tool: ToolDefinition) -> Allowed:
        unasked = self._permission.unasked(tool)
        if unasked is not None:
            return unasked
        if tool.name in self._allowed:
            return "asked"
        if self._permission.ask is None:
            raise ExecutionRefusedError(
                f"{tool.name} of server {tool.server!r} is not marked read-only, so it is not executed: "
                "mock it, or give --execute-all"
            )
        self._recorder.emit(Paused(f"may {tool.name} be executed on server {tool.server!r}?", call.id))
        began = self._recorder.clock()
        async with self._limit.suspended():
            leave = await self._permission.ask(ExecutionQuestion(self._recorder.run_id, call, tool))
        self._recorder.emit(Resumed(self._recorder.ms_since(began)))
        if leave == "no":
            raise ExecutionRefusedError(f"{tool.name} of server {tool.server!r} was not allowed to execute")
        if leave == "run":
            self._allowed.add(tool.name)
        return "asked"
