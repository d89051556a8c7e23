"""Workbench: author, debug and compare LLM tool calling in a terminal, and from Python.

    import workbench

    suite = workbench.load("weather.toml")
    report = workbench.evaluate(suite, model="openai:gpt-6-luna", repeats=3)
    report.assert_passed()

`docs/python.md` is the guide. Each name is imported when it is first used, so that `import workbench` alone is fast."""

from __future__ import annotations

# Type checkers know this name from `typing`; importing `typing` itself would take ten times as long as the rest of this
# module.
TYPE_CHECKING = False

__all__ = [
    "ALL",
    "TRUSTED",
    "Agent",
    "AgentAnswer",
    "AgentCall",
    "AgentReply",
    "AgentRequest",
    "AgentRun",
    "ApprovalError",
    "Cell",
    "CellDone",
    "Graded",
    "Imported",
    "Issue",
    "LoadedSuite",
    "Message",
    "Model",
    "ModelError",
    "Report",
    "RunDone",
    "RunEvent",
    "RunOptions",
    "RunResult",
    "ServerError",
    "Status",
    "Suite",
    "SuiteCase",
    "SuiteError",
    "SuiteNeeds",
    "ToolCall",
    "Trajectory",
    "Usage",
    "UsageError",
    "WorkbenchError",
    "__version__",
    "agents",
    "call",
    "checks",
    "evaluate",
    "evaluate_async",
    "grade",
    "grade_calls",
    "import_file",
    "is_suite",
    "list_tools",
    "load",
]

if TYPE_CHECKING:
    from workbench import agents, checks
    from workbench.api.approval import ALL, TRUSTED
    from workbench.api.cells import CellDone
    from workbench.api.evaluate import evaluate, evaluate_async
    from workbench.api.grade import Graded, call, grade, grade_calls
    from workbench.api.import_file import Imported, import_file
    from workbench.api.options import RunOptions
    from workbench.api.servers import ServerError, list_tools
    from workbench.api.suite_builder import Suite
    from workbench.api.suites import (
        ApprovalError,
        Cell,
        LoadedSuite,
        SuiteCase,
        SuiteError,
        UsageError,
        WorkbenchError,
        is_suite,
        load,
    )
    from workbench.engine.events import RunDone, RunEvent
    from workbench.evaluation.report import Report
    from workbench.grading.grade import Issue, RunResult
    from workbench.grading.status import Status
    from workbench.providers.function import AgentAnswer, AgentCall, AgentReply, AgentRequest, AgentRun
    from workbench.providers.model import Model, ModelError
    from workbench.providers.own_agent import Agent
    from workbench.suite.trust import SuiteNeeds
    from workbench.trajectory.events import Message, ToolCall, Usage
    from workbench.trajectory.trajectory import Trajectory
    from workbench.version import __version__

_MODULES = {
    "workbench": ("agents", "checks"),
    "workbench.api.approval": ("ALL", "TRUSTED"),
    "workbench.api.cells": ("CellDone",),
    "workbench.api.evaluate": ("evaluate", "evaluate_async"),
    "workbench.api.grade": ("Graded", "call", "grade", "grade_calls"),
    "workbench.api.import_file": ("Imported", "import_file"),
    "workbench.api.options": ("RunOptions",),
    "workbench.api.servers": ("ServerError", "list_tools"),
    "workbench.api.suite_builder": ("Suite",),
    "workbench.api.suites": (
        "ApprovalError",
        "Cell",
        "LoadedSuite",
        "SuiteCase",
        "SuiteError",
        "UsageError",
        "WorkbenchError",
        "is_suite",
        "load",
    ),
    "workbench.engine.events": ("RunDone", "RunEvent"),
    "workbench.evaluation.report": ("Report",),
    "workbench.grading.grade": ("Issue", "RunResult"),
    "workbench.grading.status": ("Status",),
    "workbench.providers.function": ("AgentAnswer", "AgentCall", "AgentReply", "AgentRequest", "AgentRun"),
    "workbench.providers.model": ("Model", "ModelError"),
    "workbench.providers.own_agent": ("Agent",),
    "workbench.suite.trust": ("SuiteNeeds",),
    "workbench.trajectory.events": ("Message", "ToolCall", "Usage"),
    "workbench.trajectory.trajectory": ("Trajectory",),
    "workbench.version": ("__version__",),
}
"""The module of each public name; a name whose module is the package itself is a submodule."""

# Hidden from type checkers, which would otherwise accept any name.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        from importlib import import_module

        for module, names in _MODULES.items():
            if name in names:
                if module == __name__:
                    return import_module(f"{module}.{name}")
                value = globals()[name] = getattr(import_module(module), name)
                return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
