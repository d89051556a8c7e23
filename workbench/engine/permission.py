"""Whether a tool may really be executed: a read-only one may, any other has to be allowed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from workbench.tools.answer import ToolsError
from workbench.tools.audit import Allowed
from workbench.trajectory.messages import ToolCall, ToolDefinition


@dataclass(frozen=True, slots=True)
class ExecutionQuestion:
    """May this call be executed on its server? The call's arguments and the tool's texts are data."""

    run_id: str
    call: ToolCall
    tool: ToolDefinition


AskExecution = Callable[[ExecutionQuestion], Awaitable[bool]]


class ExecutionRefusedError(ToolsError):
    """A call was not allowed to be executed; the message names the tool and the way out."""


@dataclass(frozen=True)
class Permission:
    """What tools of a run may do without being asked about: with `all_tools`, or on `exempt` servers, everything, else
    what is marked read-only. `ask` asks a person about the others; without it they are refused."""

    all_tools: bool = False
    ask: AskExecution | None = None
    exempt: bool = False

    def unasked(self, tool: ToolDefinition) -> Allowed | None:
        """Why the tool may be executed without asking; `None` when it may not."""
        if tool.annotations.get("readOnlyHint") is True:
            return "read-only"
        return "exempt" if self.exempt else "all" if self.all_tools else None


READ_ONLY = Permission()
"""Nothing but what is marked read-only."""
