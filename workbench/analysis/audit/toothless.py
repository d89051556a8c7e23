"""Finds checks and rules that nothing can fail: no value that the tool's schema allows, no batch of runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from workbench.analysis.audit.finding import AuditFinding, Weight
from workbench.analysis.audit.sample_values import TEXTS, candidates_of, other_values
from workbench.analysis.audit.tool_table import ToolTable, parameter_schema, required
from workbench.analysis.measures import measure_of
from workbench.checks.check import Check, UnknownSampleError, describe, with_parts
from workbench.checks.patterns import CheckError
from workbench.suite.model import ANY_TOOL, Case, ExpectedCall, Step, Suite
from workbench.suite.problems import Place, quoted
from workbench.trajectory.events import JsonValue, ToolDefinition
from workbench.trajectory.json_schema import Schema, is_number, listed_values, type_names

_MAX_TRIED = 60

_ANSWERS = ("", "no", "something else", "zz 7", "I cannot help with that.")

_LARGE = 1_000_000
"""Numbers beyond it are not tried: a check that accepts all smaller ones tells nothing apart."""


def toothless_checks(case: Case, place: Place, table: ToolTable) -> Iterator[AuditFinding]:
    """Yield a finding for each check of a case that no value fails, and for each expected call that checks nothing."""
    for at, call in case.written_calls():
        if call.tool is None:
            continue
        where = (*place, *at)
        if at[0] == "disallowed":
            yield from _idle_prohibition(case, call.tool, where, table)
            continue
        if call.tool == ANY_TOOL:
            message = "every call meets it, of whatever tool"
            yield AuditFinding("cannot fail", "warning", (*where, "tool"), message, "name the tool", case.id)
        tool = table.find(call.tool)
        yield from _unchecked_call(case, call, tool, where)
        for name, check in (call.args or {}).items():
            schema = parameter_schema(tool, name) if tool is not None else None
            if not check.accepts_all:
                yield from _of_check(case, check, schema, tool, name, (*where, "args", name), table)
    for named, check in case.answer_checks:
        at_answer = (*place, "response") if named is None else (*place, "response", named)
        yield from _of_answer(case, check, at_answer)


def idle_gates(suite: Suite) -> Iterator[AuditFinding]:
    """Yield a finding for each demand on scores and pass rates that no batch misses."""
    for key in ("min_score", "min_pass_rate"):
        if getattr(suite.gate, key) == 0:
            yield _never_missed(("gate", key), "every batch reaches 0")
    running = [case for case in suite.cases if case.skip is None]
    apart = set(suite.gate.quarantine)
    if running and apart and all(apart & {*suite.tags, *case.tags} for case in running):
        yield _never_missed(("gate", "quarantine"), "every case is in quarantine, so no gate decides about any run")
    for index, aggregate in enumerate(suite.aggregates):
        is_share = measure_of(aggregate.of).unit == "share"
        for key in ("at_least", "at_most", "above", "below"):
            for name, limit in getattr(aggregate, key, None) or _NOTHING:
                if limit is not None and _always(key, name, limit, is_share):
                    yield _never_missed(("aggregates", index, key, name), f"{key} {limit:g} is met by every batch")


_NOTHING: tuple[tuple[str, float | None], ...] = ()


def _always(key: str, statistic: str, limit: float, is_share: bool) -> bool:
    if key == "at_least":
        return limit <= 0
    if key == "above":
        return limit < 0
    most = 1.0 if statistic not in ("spread", "variance") else 0.5
    return is_share and (limit >= most if key == "at_most" else limit > most)


def _never_missed(place: Place, why: str) -> AuditFinding:
    return AuditFinding("cannot fail", "warning", place, why, "write the lowest result that is good enough")


def _idle_prohibition(case: Case, name: str, where: Place, table: ToolTable) -> Iterator[AuditFinding]:
    tool = table.find(name)
    if tool is not None and case.offer is not None and tool not in table.offered(case.offer):
        message = f"{quoted(name)} is not offered in this case: nothing can break this prohibition"
        yield AuditFinding("cannot fail", "warning", (*where, "tool"), message, "add it to `offer`", case.id)


def _unchecked_call(
    case: Case, call: ExpectedCall | Step, tool: ToolDefinition | None, where: Place
) -> Iterator[AuditFinding]:
    needed = required(tool) if tool is not None else ()
    if not needed or tool is None or call.args == {}:
        return
    checks = call.args or {}
    checked = [name for name, check in checks.items() if not check.accepts_all and check.weight != 0]
    if not checked:
        message = f"no argument is checked, and {quoted(tool.name)} requires {', '.join(map(quoted, needed))}"
        hint = "check the arguments that matter"
        yield AuditFinding("cannot fail", "warning", where, message, hint, case.id)
    elif all(checks[name].optional for name in checked):
        message = (
            f"every checked argument is optional, and {quoted(tool.name)} requires {', '.join(map(quoted, needed))}"
        )
        hint = "check one that is required"
        yield AuditFinding("cannot fail", "warning", where, message, hint, case.id)


def _of_check(
    case: Case,
    check: Check,
    schema: Schema | None,
    tool: ToolDefinition | None,
    name: str,
    place: Place,
    table: ToolTable,
) -> Iterator[AuditFinding]:
    def finding(message: str, hint: str, weight: Weight = "warning") -> AuditFinding:
        return AuditFinding("cannot fail", weight, place, message, hint, case.id)

    if check.asks_outside:
        return
    try:
        if _refuses_nothing(check, schema, tool, name, table):
            message = f"{describe(check)}: no value that the schema allows fails it"
            yield finding(
                message if schema is not None else f"{describe(check)}: every value meets it", "narrow the check"
            )
            return
        for part in with_parts(check):
            yield from (finding(*found) for found in part.weaknesses(schema))
    except (CheckError, UnknownSampleError):
        return


def _refuses_nothing(
    check: Check, schema: Schema | None, tool: ToolDefinition | None, name: str, table: ToolTable
) -> bool:
    """Return whether all of many different values that the schema allows meet a check."""
    listed = listed_values(schema) if schema is not None else None
    if listed is not None and len(listed) < 2:
        return False  # the schema leaves no choice
    tried = 0
    for value in _values(check, schema, tool):
        if tool is not None and table.refusal(tool, name, value) is not None:
            continue
        if not check.holds(value):
            return False
        tried += 1
    return tried > 1


def _values(check: Check, schema: Schema | None, tool: ToolDefinition | None) -> Iterator[JsonValue]:
    known: Schema = schema or {}
    root: Schema = tool.parameters if tool is not None else {}
    if (listed := listed_values(known)) is not None:
        yield from listed
        return
    yield from other_values(check, known)
    yield from islice(candidates_of(known, root), _MAX_TRIED)
    types = type_names(known)
    for kind, values in _OF_TYPE.items():
        if types is None or kind in types:
            yield from values
    if is_number(low := known.get("minimum")) and is_number(high := known.get("maximum")):
        yield from (low, high)


_OF_TYPE: Mapping[str, tuple[JsonValue, ...]] = {
    "string": ("", "a", "0", "Zürich", "no", "yes\nno", *TEXTS),
    "integer": (-_LARGE, -1, 0, 1, 7, 1000, _LARGE),
    "number": (-_LARGE, -1, -0.5, 0, 0.25, 1, 1000, _LARGE),
    "array": ([], ["a"], [1, 2]),
    "object": ({}, {"a": 1}),
    "boolean": (True, False),
    "null": (None,),
}


def _of_answer(case: Case, check: Check, place: Place) -> Iterator[AuditFinding]:
    if check.asks_outside:
        return
    try:
        if all(check.holds(text) for text in (*_ANSWERS[1:], case.user or "zz")):
            message = f"{describe(check)}: every answer meets it"
            yield AuditFinding("cannot fail", "warning", place, message, "check something that may be wrong", case.id)
    except (CheckError, UnknownSampleError):
        return
