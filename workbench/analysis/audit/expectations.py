"""Compares expected and forbidden calls with the tools: names, arguments and values that can never occur."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeGuard

from workbench.analysis.audit.finding import AuditFinding
from workbench.analysis.audit.samples import NeverHoldsError, UnknownSampleError, holds, samples_of
from workbench.analysis.audit.tool_table import ToolTable, closed, parameter_schema, required
from workbench.analysis.schemas import type_text
from workbench.checks.describe import CheckError, cut, describe
from workbench.checks.kinds import (
    AllOf,
    AnyOf,
    Check,
    Contains,
    DateTime,
    Equals,
    Judged,
    Near,
    OfType,
    OneOf,
    Pattern,
    Prefix,
    PythonCheck,
    Range,
    Suffix,
    asks,
)
from workbench.suite.model import ANY_TOOL, Case, ExpectedCall, Step
from workbench.suite.problems import Place, did_you_mean, quoted
from workbench.trajectory.json_schema import properties_of
from workbench.trajectory.messages import JsonValue, ToolDefinition

_NOT_TRIED = (Equals, OneOf, PythonCheck, Judged)
_ONLY_TEXT = (Contains, DateTime, Pattern, Prefix, Suffix)


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
            samples_of(check)
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
        samples_of(check)
    except NeverHoldsError as error:
        yield _never(case, where, check, str(error))
        return
    except UnknownSampleError:
        pass
    if (why := _against_schema(check, schema)) is not None:
        yield _never(case, where, check, why)
        return
    for at, value in _values_in(check, where):
        if (refusal := table.refusal(tool, name, value)) is not None:
            message = f"the schema of {quoted(tool.name)} refuses it: {cut(refusal)}"
            hint = "a model that follows the schema never sends it"
            yield AuditFinding("refused value", "warning", at, message, hint, case.id)


def _values_in(check: Check, where: Place) -> Iterator[tuple[Place, JsonValue]]:
    """Yield the values that a check or its parts name, each with its place."""
    if isinstance(check, AllOf | AnyOf):
        for number, part in enumerate(check.parts):
            yield from _values_in(part, (*where, check.kind, number))
    elif check.kind in ("equals", "one_of", "equals_null"):
        yield from ((where, value) for value in samples_of(check))


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


def _against_schema(check: Check, schema: Mapping[str, JsonValue]) -> str | None:
    """Returns why no value that the schema allows meets a check; `None` when one may."""
    choices = schema.get("enum")
    if isinstance(choices, list) and choices and not asks(check, *_NOT_TRIED):
        try:
            if not any(holds(check, choice) for choice in choices):
                return f"the schema allows only {cut(type_text(schema))}"
        except (CheckError, UnknownSampleError):
            return None
    if isinstance(check, AllOf):
        return next((why for part in check.parts if (why := _against_schema(part, schema)) is not None), None)
    if isinstance(check, AnyOf):
        reasons = [_against_schema(part, schema) for part in check.parts]
        return None if None in reasons else reasons[0]
    types = _types(schema)
    if not types:
        return None
    if isinstance(check, OfType) and check.type not in types and {check.type, *types} < {"integer", "number"}:
        return None
    if isinstance(check, OfType) and check.type not in types:
        return f"the schema requires {type_text(schema)}"
    if isinstance(check, _ONLY_TEXT) and "string" not in types:
        return f"it needs a text, and the schema requires {type_text(schema)}"
    if isinstance(check, Range):
        return _range_against(check, schema, types)
    if isinstance(check, Near):
        return _bounds_against(*_reach(check), schema)
    longest = schema.get("maxLength")
    least = _least_text(check)
    if isinstance(longest, int) and len(least) > longest:
        return f"the schema allows at most {longest} characters, and this has {len(least)}"
    return None


def _range_against(check: Range, schema: Mapping[str, JsonValue], types: set[str]) -> str | None:
    if not types & {"number", "integer"}:
        return f"it needs a number, and the schema requires {type_text(schema)}"
    if (why := _bounds_against(*check.range, schema)) is not None:
        return why
    if "number" not in types and not any(isinstance(value, int) for value in samples_of(check)):
        return "the schema requires a whole number, and it contains none"
    return None


def _bounds_against(low: float, high: float, schema: Mapping[str, JsonValue]) -> str | None:
    least, most = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if isinstance(least, int | float) and high < least:
        return f"the schema allows nothing below {least:g}"
    if isinstance(most, int | float) and low > most:
        return f"the schema allows nothing above {most:g}"
    if _is_number(above) and high <= above:
        return f"the schema allows only what is above {above:g}"
    if _is_number(below) and low >= below:
        return f"the schema allows only what is below {below:g}"
    return None


def _is_number(bound: JsonValue) -> TypeGuard[int | float]:
    """Return whether a keyword is a bound: in draft 4 the exclusive ones are true or false."""
    return isinstance(bound, int | float) and not isinstance(bound, bool)


def _reach(check: Near) -> tuple[float, float]:
    """Returns the least and the greatest number that are near enough."""
    if check.tolerance is not None:
        return check.near - check.tolerance, check.near + check.tolerance
    low, high = check.value_range or (check.near, check.near)
    far = (high - low) * (1 - check.match_threshold)
    return check.near - far, check.near + far


def _least_text(check: Check) -> str:
    """Returns the shortest text that can meet a check on texts, as far as it is known."""
    match check:
        case Contains():
            return check.contains
        case Prefix():
            return check.prefix
        case Suffix():
            return check.suffix
        case _:
            return ""


def _types(schema: Mapping[str, JsonValue]) -> set[str]:
    named = schema.get("type")
    if isinstance(named, str):
        return {named}
    return {each for each in named if isinstance(each, str)} if isinstance(named, list) else set()
