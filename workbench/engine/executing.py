"""What answers the tool calls of a run, and whether it may: real executions are allowed, asked about, or refused."""

from __future__ import annotations

from workbench.engine.permission import ExecutionQuestion, ExecutionRefusedError, Permission
from workbench.engine.recorder import Recorder
from workbench.engine.time_limit import TimeLimit
from workbench.tools.toolbox import Toolbox
from workbench.trajectory.events import ExecutionStarted, Paused, ResultReceived, Resumed
from workbench.trajectory.messages import ToolCall, ToolDefinition


class Executor:
    """Answers calls one after the other. A tool is asked about once in a run."""

    def __init__(self, tools: Toolbox, recorder: Recorder, permission: Permission, limit: TimeLimit) -> None:
        self._tools = tools
        self._recorder = recorder
        self._permission = permission
        self._limit = limit
        self._allowed: set[str] = set()
        self.definitions = tools.definitions
        self._definitions = {definition.name: definition for definition in tools.definitions}

    async def answer(self, call: ToolCall) -> None:
        """Answer a call from a mock or its server, and say so.

        Raises ToolsError when its server cannot answer, ExecutionRefusedError when it must not be executed.
        """
        planned = await self._tools.plan(call)
        if planned.source == "server" and planned.server is not None:
            await self._permit(call, self._definitions[call.tool])
            self._recorder.emit(ExecutionStarted(call.id, planned.server))
        began = self._recorder.clock()
        answer = await planned.run()
        self._recorder.emit(
            ResultReceived(call.id, answer.content, answer.is_error, planned.source, self._recorder.ms_since(began))
        )

    async def _permit(self, call: ToolCall, tool: ToolDefinition) -> None:
        if self._permission.covers(tool) or tool.name in self._allowed:
            return
        if self._permission.ask is None:
            raise ExecutionRefusedError(
                f"{tool.name} of server {tool.server!r} is not marked read-only, so it is not executed: "
                "mock it, or give --execute-all"
            )
        self._recorder.emit(Paused(f"may {tool.name} be executed on server {tool.server!r}?", call.id))
        began = self._recorder.clock()
        async with self._limit.suspended():
            allowed = await self._permission.ask(ExecutionQuestion(self._recorder.run_id, call, tool))
        self._recorder.emit(Resumed(self._recorder.ms_since(began)))
        if not allowed:
            raise ExecutionRefusedError(f"{tool.name} of server {tool.server!r} was not allowed to be executed")
        self._allowed.add(tool.name)
