"""Templates for new cases, expected calls, mocks and suites, as raw TOML values."""

from __future__ import annotations

from typing import Literal

from workbench.authoring.form.argument_schemas import arguments_of
from workbench.suite.render import Table, suite_text
from workbench.suite.tables import NEW_SUITES_FREE
from workbench.trajectory.messages import ToolDefinition

CaseKind = Literal["positive", "negative", "chain"]


def expected_call(tool: ToolDefinition | str) -> Table:
    """Return an expected call with the tool's required arguments, each as `first_value`. Without required arguments, or
    if only the tool's name is known, arguments do not matter."""
    if isinstance(tool, str):
        return {"tool": tool}
    from workbench.analysis.prefilled import first_value  # on use: the first screen adds nothing

    required = [argument for argument in arguments_of(tool) if argument.required]
    args = {argument.name: first_value(argument.name, argument.schema) for argument in required}
    return {"tool": tool.name, "args": args} if args else {"tool": tool.name}


def new_case(kind: CaseKind, name: str) -> Table:
    """Return a new case: a `negative` one expects no call, the others expect nothing yet; a `chain` has two steps."""
    match kind:
        case "positive":
            return {"name": name, "user": "", "expect_nothing_yet": True}
        case "negative":
            return {"name": name, "user": "", "expect_no_calls": True}
        case "chain":
            return {"name": name, "expect_nothing_yet": True, "steps": [{"user": ""}, {}]}


def new_message(role: Literal["user", "assistant", "tool"] = "user") -> Table:
    """Return a message before the request. The answer of a tool names the call that it answers."""
    return {"role": role, "call": "", "content": ""} if role == "tool" else {"role": role, "content": ""}


def new_mock(tool: ToolDefinition | str) -> Table:
    """Return a mock of a tool that reports success."""
    return {"tool": tool if isinstance(tool, str) else tool.name, "result": {"ok": True}}


def new_step(tool: ToolDefinition | str | None = None, user: str | None = None) -> Table:
    """Return a step of a chain, with or without a message and an expected call."""
    return {**({} if user is None else {"user": user}), **({} if tool is None else expected_call(tool))}


def new_suite(name: str) -> str:
    """Return the text of a suite without cases on the offline model."""
    grading = {"extra_calls": NEW_SUITES_FREE}
    return suite_text({"format": 1, "name": name, "models": ["offline"], "grading": grading})
