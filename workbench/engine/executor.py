"""Answers the tool calls of one run from mocks, or from servers if the execution is permitted."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Literal

from workbench.checks.check import CheckVerdict
from workbench.checks.combined_kinds import Judged
from workbench.dataclasses import dataclass
from workbench.engine.media_store import MediaStore
from workbench.engine.recorder import Recorder, TimeLimit
from workbench.engine.server_questions import CallQuestions, Review, keep_reply
from workbench.tools.answer import ToolAnswer, ToolsError
from workbench.tools.audit import Allowed, Audit, AuditError, Outcome
from workbench.tools.mocks import AskJudge, PlannedAnswer
from workbench.tools.toolbox import Toolbox
from workbench.trajectory.events import (
    ExecutionProgress,
    ExecutionStarted,
    JsonValue,
    Paused,
    ResultReceived,
    Resumed,
    ToolCall,
    ToolDefinition,
)
from workbench.trajectory.trajectory import CallRecord

MIN_INTERVAL_SECONDS = 0.1
"""The minimum number of seconds between two progress notices of one call."""


class ProgressReports:
    """Emits the progress notices of one call, at most one every `MIN_INTERVAL_SECONDS`.

    If several notices arrive within an interval, only the latest is emitted. Use this object on the engine's loop.
    Close it before you emit the result of the call."""

    def __init__(self, call_id: str, recorder: Recorder) -> None:
        self._call_id = call_id
        self._recorder = recorder
        self._waiting: ExecutionProgress | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        # JSON has no NaN and no infinity, so a recording could not store them.
        if self._closed or not math.isfinite(progress):
            return
        if total is not None and not math.isfinite(total):
            total = None
        self._waiting = ExecutionProgress(self._call_id, progress, total, message)
        if self._timer is None:
            self._emit()

    def close(self) -> None:
        """Emit the pending notice, if there is one. Later notices are dropped."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._waiting is not None:
            self._recorder.emit(self._waiting)

    def _emit(self) -> None:
        self._timer = None
        if self._waiting is not None:
            progress, self._waiting = self._waiting, None
            self._timer = asyncio.get_running_loop().call_later(MIN_INTERVAL_SECONDS, self._emit)
            self._recorder.emit(progress)


@dataclass(frozen=True, slots=True)
class PermissionQuestion:
    """A question to a person: may this call be executed on its server?

    The call's arguments and the tool's texts are untrusted data."""

    run_id: str
    call: ToolCall
    tool: ToolDefinition


PermissionAnswer = Literal["no", "call", "run"]
"""A person's permission: none, this call only, or all further calls of this tool in the run."""

AskPermission = Callable[[PermissionQuestion], Awaitable[PermissionAnswer]]


class ExecutionRefusedError(ToolsError):
    """A call was not permitted to execute.

    The message names the tool and tells the user how to permit the call."""


@dataclass(frozen=True, slots=True)
class Permission:
    """Decides which tools of a run may be executed on their servers.

    Read-only tools are always allowed. All tools are allowed if `all_tools` or `exempt` is set. For every other tool,
    `ask` asks a person. Without `ask`, the tool is refused."""

    all_tools: bool = False
    ask: AskPermission | None = None
    exempt: bool = False

    def reason_without_asking(self, tool: ToolDefinition) -> Allowed | None:
        """Return why a tool may be executed without asking; `None` if a person must be asked."""
        if tool.annotations.get("readOnlyHint") is True:
            return "read-only"
        if self.exempt:
            return "exempt"
        if self.all_tools:
            return "all"
        return None


READ_ONLY = Permission()
"""Allows only tools that are marked read-only."""


class Executor:
    """Answers the tool calls of a run from mocks and servers, one call after another.

    `permission` decides which tools are executed on servers. Each execution is written to the audit log first, so
    nothing is executed without an `audit`. `judge` evaluates the mock conditions that need a judge. `definitions` are
    the tools offered to the model, by default all tools. `media` has the content of the run's images and sounds."""

    def __init__(
        self,
        tools: Toolbox,
        recorder: Recorder,
        permission: Permission,
        limit: TimeLimit,
        audit: Audit | None,
        judge: AskJudge | None = None,
        definitions: tuple[ToolDefinition, ...] | None = None,
        media: MediaStore | None = None,
    ) -> None:
        self._tools = tools
        self._recorder = recorder
        self._permission = permission
        self._limit = limit
        self._audit = audit
        self._judge = judge
        self.media = media or MediaStore()
        self._allowed: set[str] = set()
        """Tools whose further calls in this run a person has allowed."""
        self.definitions = tools.definitions if definitions is None else definitions
        self._definitions = {definition.name: definition for definition in self.definitions}

    def definition(self, tool: str) -> ToolDefinition | None:
        """Return the definition of a tool; `None` when no tool of that name is offered."""
        return self._definitions.get(tool)

    async def answer(self, call: ToolCall, step_mock: JsonValue = None, review: Review = keep_reply) -> ResultReceived:
        """Let the step's mock, another mock or a server answer a call, and emit the events of the call.

        `review` may change the replies to the server's own requests during the call. Raises ToolsError when the server
        cannot answer, ExecutionRefusedError when the call may not be executed, and AuditError when the execution cannot
        be logged."""
        judge = None if self._judge is None else self._judged
        planned = await self._tools.plan(call, step_mock, judge=judge)
        if planned.source == "server" and planned.server is not None:
            questions = CallQuestions(call, self._tools.answers, self._recorder, judge, review)
            answer, latency_ms = await self._execute(call, planned, planned.server, questions)
            questions.check()
        else:
            began = self._recorder.clock()
            answer = await planned.run()
            latency_ms = self._recorder.ms_since(began)
        answer = self.media.stored_answer(answer)
        result = ResultReceived(
            *(call.id, answer.content, answer.is_error, planned.source, latency_ms, answer.code), media=answer.media
        )
        self._recorder.emit(result)
        return result

    def count_replayed(self, record: CallRecord, step_mock: JsonValue = None) -> None:
        """Count a replayed call of the original run, because some mocks answer by the number of earlier calls.

        No judge is asked and no tool is executed. Raises ToolsError."""
        # Count the answer that the mock gave, not the answer as a person edited it.
        answer = record.unedited or record.result
        if answer is not None and answer.source == "replayed":
            self._tools.count_replayed(record.sent, ToolAnswer(answer.content, answer.is_error), step_mock)

    async def _judged(self, check: Judged, value: JsonValue) -> CheckVerdict:
        assert self._judge is not None
        # The judge has its own time limit.
        async with self._limit.suspended():
            return await self._judge(check, value)

    async def _execute(
        self, call: ToolCall, planned: PlannedAnswer, server: str, ask: CallQuestions
    ) -> tuple[ToolAnswer, float]:
        """Execute a call on its server. Returns the answer and its latency in milliseconds."""
        allowed = await self._permit(call, self._definitions[call.tool])
        async with self._limit.before(planned.turn()):
            return await self._execute_in_turn(call, planned, server, allowed, ask)

    async def _execute_in_turn(
        self, call: ToolCall, planned: PlannedAnswer, server: str, allowed: Allowed, ask: CallQuestions
    ) -> tuple[ToolAnswer, float]:
        if self._audit is None:
            raise AuditError(f"{call.tool} was not executed: this run has no audit log")
        # The log entry is written before the call is sent, so that the log has the call even if the program is killed.
        audited = self._audit.log.begin(self._audit.caller, call, server, allowed)
        self._recorder.emit(ExecutionStarted(call.id, server))
        began = self._recorder.clock()
        # If the task is cancelled, no ToolsError is raised and the outcome stays unknown.
        outcome: Outcome = "stopped"
        reports = ProgressReports(call.id, self._recorder)
        try:
            answer = await planned.run(reports, ask)
            outcome = answer.outcome
        except ToolsError:
            outcome = "server error"
            raise
        finally:
            reports.close()
            latency_ms = self._recorder.ms_since(began)
            audited.end(outcome, latency_ms)
        return answer, latency_ms

    async def _permit(self, call: ToolCall, tool: ToolDefinition) -> Allowed:
        unasked = self._permission.reason_without_asking(tool)
        if unasked is not None:
            return unasked
        if tool.name in self._allowed:
            return "asked"
        if self._permission.ask is None:
            raise ExecutionRefusedError(
                f"{tool.name} of server {tool.server!r} is not marked read-only, so it is not executed: "
                "mock it, or allow it with --execute-all"
            )
        self._recorder.emit(Paused(f"may {tool.name} be executed on server {tool.server!r}?", call.id))
        began = self._recorder.clock()
        async with self._limit.suspended():
            leave = await self._permission.ask(PermissionQuestion(self._recorder.run_id, call, tool))
        self._recorder.emit(Resumed(self._recorder.ms_since(began)))
        if leave == "no":
            raise ExecutionRefusedError(f"{tool.name} of server {tool.server!r} was not allowed to execute")
        if leave == "run":
            self._allowed.add(tool.name)
        return "asked"
