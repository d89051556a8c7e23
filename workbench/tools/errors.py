"""What can go wrong with tools through no fault of the model."""


class ToolsError(Exception):
    """The tools of a run cannot be had, or cannot answer. The message names the thing and the way out."""


class ServerError(ToolsError):
    """A tool server could not be started, died, or did not answer in time."""


class UntrustedError(ToolsError):
    """A suite that is not trusted asked for a command or for Python code."""


class PythonReferenceError(ToolsError):
    """A `module:function` that could not be loaded."""


class UnknownToolError(ToolsError):
    """A case names a tool that does not exist."""
