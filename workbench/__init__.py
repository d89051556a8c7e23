"""Workbench: author, debug and compare LLM tool calling in a terminal, and from Python.

    import workbench

    suite = workbench.load("weather.toml")
    report = workbench.evaluate(suite, model="openai:gpt-4o-mini", repeats=3)
    report.assert_passed()

`docs/python.md` is the guide. Everything is imported when it is first used: `import workbench` alone costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.version import __version__

__all__ = [
    "ALL",
    "AgentAnswer",
    "AgentRequest",
    "ApprovalError",
    "Graded",
    "LoadedSuite",
    "SuiteCase",
    "SuiteError",
    "ToolCall",
    "WorkbenchError",
    "__version__",
    "call",
    "grade",
    "load",
]

if TYPE_CHECKING:
    from workbench.api.approving import ALL
    from workbench.api.errors import ApprovalError, WorkbenchError
    from workbench.api.grading import Graded, call, grade
    from workbench.api.suites import LoadedSuite, SuiteCase, SuiteError, load
    from workbench.providers.function import AgentAnswer, AgentRequest
    from workbench.trajectory.messages import ToolCall

_MODULES = {
    "workbench.api.approving": ("ALL",),
    "workbench.api.errors": ("ApprovalError", "WorkbenchError"),
    "workbench.api.grading": ("Graded", "call", "grade"),
    "workbench.api.suites": ("LoadedSuite", "SuiteCase", "SuiteError", "load"),
    "workbench.providers.function": ("AgentAnswer", "AgentRequest"),
    "workbench.trajectory.messages": ("ToolCall",),
}
"""Where each public name is defined."""

if not TYPE_CHECKING:  # type checkers then know the names above and no others

    def __getattr__(name: str) -> object:
        from importlib import import_module

        for module, names in _MODULES.items():
            if name in names:
                value = globals()[name] = getattr(import_module(module), name)
                return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
