"""How a server is, for whoever shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from workbench.trajectory.messages import ToolDefinition

ServerState = Literal["not started", "starting", "running", "down"]


@dataclass(frozen=True)
class ServerStatus:
    """With its tools when it runs, with the reason when it is down."""

    state: ServerState = "not started"
    tools: tuple[ToolDefinition, ...] = ()
    reason: str = ""
