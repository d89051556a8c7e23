"""Compares expected and forbidden calls with the tools: names, arguments and values that can never occur."""

from __future__ import annotations

from collections.abc import Iterator

from workbench.analysis.audit.finding import AuditFinding
from workbench.analysis.audit.tool_table import ToolTable, closed, parameter_schema, required
from workbench.checks.check import Check, NeverHoldsError, UnknownSampleError, describe
from workbench.checks.values import cut
from workbench.suite.model import ANY_TOOL, Case, ExpectedCall, Step
from workbench.suite.problems import Place, did_you_mean, quoted
from workbench.trajectory.json_schema import properties_of
from workbench.trajectory.messages import JsonValue, ToolDefinition


def audit_calls(case: Case, place: Place, table: ToolTable) -> Iterator[AuditFinding]:
    """Returns findings on every call that a case describes; `place` is the case's."""
    for at, call in case.written_calls():
        if call.tool is None:
            continue
        tool = table.find(call.tool)
        where = (*place, *at)
        if tool is None:
            yield from _checks_alone(case, call, where)
            if not table.unlisted and not call.unlisted and call.tool != ANY_TOOL:
                yield _unknown(case, call.tool, where, table)
            continue
        if call.args == {} and at[0] != "disallowed" and (needed := required(tool)):
            yield AuditFinding(
                "refused value",
                "warning",
                (*where, "args"),
                f"no arguments are expected, and {quoted(tool.name)} cannot be called without {quoted(needed[0])}",
                "leave `args` out where arguments do not matter",
                case.id,
            )
        for name, check in (call.args or {}).items():
            yield from _argument(case, tool, name, check, (*where, "args", name), table)
        for number, name in enumerate(call.forbidden_args):
            yield from _parameter(case, tool, name, (*where, "forbidden_args", number))


def _unknown(case: Case, name: str, where: Place, table: ToolTable) -> AuditFinding:
    forbidden = "disallowed" in where
    message = f"no tool is called {quoted(name)}: " + (
        "nothing can break this prohibition" if forbidden else "no model can make this call"
    )
    return AuditFinding("unknown tool", "warning", (*where, "tool"), message, did_you_mean(name, table.names), case.id)


def _checks_alone(case: Case, call: ExpectedCall | Step, where: Place) -> Iterator[AuditFinding]:
    """Finds checks that no value meets, for a tool whose schema is not known."""
    for name, check in (call.args or {}).items():
        try:
            check.samples()
        except NeverHoldsError as error:
            yield _never(case, (*where, "args", name), check, str(error))
        except UnknownSampleError:
            continue


def _argument(
    case: Case, tool: ToolDefinition, name: str, check: Check, where: Place, table: ToolTable
) -> Iterator[AuditFinding]:
    schema = parameter_schema(tool, name)
    if schema is None:
        yield from _parameter(case, tool, name, where)
        schema = {}
    try:
        check.samples()
    except NeverHoldsError as error:
        yield _never(case, where, check, str(error))
        return
    except UnknownSampleError:
        pass
    if (why := check.fits(schema)) is not None:
        yield _never(case, where, check, why)
        return
    for at, value in _values_in(check, where):
        if (refusal := table.refusal(tool, name, value)) is not None:
            message = f"the schema of {quoted(tool.name)} refuses it: {cut(refusal)}"
            hint = "a model that follows the schema never sends it"
            yield AuditFinding("refused value", "warning", at, message, hint, case.id)


def _values_in(check: Check, where: Place) -> Iterator[tuple[Place, JsonValue]]:
    """Yield the values that a check or its parts name, each with its place."""
    for number, part in enumerate(check.parts):
        yield from _values_in(part, (*where, check.kind, number))
    yield from ((where, value) for value in check.listed or ())


def _parameter(case: Case, tool: ToolDefinition, name: str, where: Place) -> Iterator[AuditFinding]:
    """Finds an argument that the tool does not list."""
    if parameter_schema(tool, name) is not None or not closed(tool):
        return
    known = list(properties_of(tool.parameters))
    yield AuditFinding(
        "unknown argument",
        "warning",
        where,
        f"{quoted(tool.name)} has no parameter {quoted(name)}",
        did_you_mean(name, known) or (f"it has {', '.join(known)}" if known else "it takes no arguments"),
        case.id,
    )


def _never(case: Case, where: Place, check: Check, why: str) -> AuditFinding:
    return AuditFinding("never holds", "warning", where, f"{describe(check)} never holds: {why}", "", case.id)
