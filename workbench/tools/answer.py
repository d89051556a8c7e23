"""The outcome of a tool call: an answer for the model, or an error that is not the model's."""

from __future__ import annotations

from collections.abc import Callable

from workbench.dataclasses import dataclass
from workbench.trajectory.events import ServerOutput

OnProgress = Callable[[float, float | None, str | None], None]
"""Called with each progress notice of a tool call: the progress, its total and a message. Must not block; may be called
after the answer."""


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The text that goes back to the model.

    `is_error` marks a tool error, which the model has to handle; `code` is that of JSON-RPC where the server refused
    the call.
    """

    content: str
    is_error: bool = False
    code: int | None = None


class ToolsError(Exception):
    """The tools of a run are not available or cannot answer. The message names the cause and the way out."""


class ServerError(ToolsError):
    """A tool server could not be started, died, or did not answer in time. `output` is the end of what it wrote to
    standard error, of a server that a command started."""

    def __init__(self, message: str, output: ServerOutput | None = None) -> None:
        super().__init__(message)
        self.output = output


class UntrustedError(ToolsError):
    """A suite that is not trusted asked for a command or for Python code."""


class PythonReferenceError(ToolsError):
    """A `module:function` that could not be loaded."""


class UnknownToolError(ToolsError):
    """A case names a tool that does not exist."""
