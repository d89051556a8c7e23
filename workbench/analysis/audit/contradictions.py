"""Finds expectations and mocks that contradict the tools: unknown names, refused values, checks that never hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from workbench.analysis.audit.literal_tables import literal_tables
from workbench.checks.check import (
    Check,
    Checks,
    NeverHoldsError,
    UnknownSampleError,
    describe,
)
from workbench.checks.patterns import CheckError, SearchError
from workbench.checks.schemas import ArgumentSchema, BrokenSchemaError, accepts, plain_schema, validator_of
from workbench.checks.values import cut_text, describe_value
from workbench.dataclasses import cached_by_identity, dataclass
from workbench.suite.expected_calls import ANY_TOOL, ExpectedCall, comparable_name
from workbench.suite.model import CALLS_IN_VARIANTS, Case, FinalState, Mock, Step, Suite
from workbench.suite.problems import Finding, Place, did_you_mean, quoted, warning
from workbench.suite.settings import settings_of
from workbench.suite.suite_file import SuiteFile, with_findings
from workbench.tools.listings import Listing, StoredListings, definition_of, definition_of_provider
from workbench.trajectory.events import JsonValue, ToolDefinition, names_of_tools, tools_by_name
from workbench.trajectory.json_schema import (
    Schema,
    properties_of,
    required_names,
    resolved,
)

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError


AuditKind = Literal[
    "weak case",
    "cannot fail",
    "unnoticed",
    "out of reach",
    "never holds",
    "unknown tool",
    "unknown argument",
    "refused value",
    "idle mock",
    "not looked at",
]

Weight = Literal["warning", "note"]
"""The severity of a finding. A warning is nearly always a mistake in the suite. A note may be intended."""


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """A finding of an audit.

    `place` starts at the top of the file. `case` is the case's id, or `None` for the whole suite."""

    kind: AuditKind
    weight: Weight
    place: Place
    message: str
    hint: str = ""
    case: str | None = None


class ToolTable:
    """The known tools of a suite by name, with their schemas.

    `unlisted` names the servers whose tools are unknown. An unknown tool name may belong to such a server."""

    def __init__(self, tools: Iterable[ToolDefinition], unlisted: Sequence[str] = ()) -> None:
        self.tools = tuple(tools)
        self.unlisted = tuple(unlisted)
        self._by_name = {comparable_name(tool.name): tool for tool in reversed(self.tools)}
        self._schemas: Callable[[ToolDefinition], ArgumentSchema] = cached_by_identity(
            lambda tool: ArgumentSchema(tool.parameters)
        )
        self._plain: dict[str, Schema | None] = {}
        self._validators: dict[str, Draft202012Validator | None] = {}

    @classmethod
    def of(cls, suite: Suite, listings: Mapping[str, Listing]) -> ToolTable:
        """Return the table of a suite's own tools, its provider tools, and the last known tools of its servers."""
        tools = [*map(definition_of, suite.tools), *map(definition_of_provider, suite.provider_tools)]
        for listing in listings.values():
            tools += listing.tools
        return cls(tools, [server.name for server in suite.servers if server.name not in listings])

    def of_cases(self, cases: Iterable[Case]) -> ToolTable:
        """Return the table with the cases' own tools added. They replace tools of the same name."""
        own = {}
        for case in cases:
            for tool in case.tools:
                own[tool.name] = definition_of(tool)
        # Nearly every case has no tools of its own and shares the table with its parsed schemas.
        if not own:
            return self
        return ToolTable((tools_by_name(self.tools) | own).values(), self.unlisted)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(names_of_tools(self.tools))

    def find(self, name: str) -> ToolDefinition | None:
        """Return the tool with a name, or `None`. Spelling variants that the graders tolerate are found, too."""
        return self._by_name.get(comparable_name(name))

    def offered(self, offer: Sequence[str] | None) -> tuple[ToolDefinition, ...]:
        """Return the tools offered to a model: all tools, or the tools in a case's `offer`."""
        if offer is None:
            return self.tools
        return tuple(tool for tool in self.tools if tool.name in offer)

    def refusal(self, tool: ToolDefinition, argument: str, value: JsonValue) -> str | None:
        """Return why a tool's schema refuses a value of an argument.

        Returns `None` if the schema accepts the value or is broken."""
        given = {argument: value}
        # Most values need no validator. Importing and building a validator takes milliseconds.
        if tool.name not in self._plain:
            self._plain[tool.name] = plain_schema({**tool.parameters, "required": []})
        plain = self._plain[tool.name]
        if plain is not None and accepts(plain, given):
            return None
        validator = self._validator(tool)
        if validator is None:
            return None
        from referencing.exceptions import Unresolvable

        try:
            for problem in validator.iter_errors(given):
                # Other problems are about arguments missing in this call.
                if list(problem.absolute_path)[:1] == [argument]:
                    return _problem_text(problem)
        except (Unresolvable, RecursionError, SearchError):
            # A broken schema is reported by the linter of tools.
            return None
        return None

    def allows(self, tool: ToolDefinition, arguments: Mapping[str, JsonValue]) -> bool:
        """Return whether a tool's schema accepts the arguments. A broken schema counts as accepting them."""
        try:
            return not self._schemas(tool).violations(arguments)
        except BrokenSchemaError:
            return True

    def _validator(self, tool: ToolDefinition) -> Draft202012Validator | None:
        if tool.name not in self._validators:
            from jsonschema.exceptions import SchemaError

            try:
                self._validators[tool.name] = validator_of(tool.parameters)
            except (SchemaError, RecursionError):
                self._validators[tool.name] = None
        return self._validators[tool.name]


def _problem_text(problem: ValidationError) -> str:
    instance: Any = problem.instance
    allowed: Any = problem.validator_value
    value = describe_value(instance)
    if problem.validator == "enum":
        return f"{value} is not one of {', '.join(map(describe_value, allowed))}"
    return str(problem.message).replace(repr(instance), value, 1)


def parameter_schema(tool: ToolDefinition, argument: str) -> Schema | None:
    """Return the schema of a parameter with references followed, or `None` if the tool lists no such parameter."""
    properties = properties_of(tool.parameters)
    if argument in properties:
        return resolved(properties[argument], tool.parameters)
    return None


def has_closed_schema(tool: ToolDefinition) -> bool:
    """Return whether a tool lists all of its parameters, so that any other argument name is a mistake."""
    schema = tool.parameters
    if not _OPEN_ENDED.isdisjoint(schema):
        return False
    # JSON Schema allows other properties by default, but hardly any tool intends this.
    if "additionalProperties" not in schema:
        return "properties" in schema
    return schema["additionalProperties"] is False


_OPEN_ENDED = frozenset(("patternProperties", "$ref", "anyOf", "oneOf", "allOf", "if"))
"""The keywords that may allow properties outside `properties`."""


def required_parameters(tool: ToolDefinition) -> tuple[str, ...]:
    return required_names(tool.parameters)


# Expected and disallowed calls that contradict the tools: they name tools, arguments or values that can never occur.


def audit_calls(case: Case, place: Place, table: ToolTable) -> Iterator[AuditFinding]:
    """Yield the findings on the calls in a case. `place` is the case's place in the file."""
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
        if call.args == {} and at[0] != "disallowed" and (needed := required_parameters(tool)):
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


def _unknown(case: Case, name: str, place: Place, table: ToolTable) -> AuditFinding:
    consequence = "no model can make this call"
    if "before" in place:
        consequence = "the call stays forbidden"
    elif "disallowed" in place:
        consequence = "nothing can break this prohibition"
    message = f"no tool is called {quoted(name)}: {consequence}"
    return AuditFinding("unknown tool", "warning", (*place, "tool"), message, did_you_mean(name, table.names), case.id)


def _checks_alone(case: Case, call: ExpectedCall | Step, place: Place) -> Iterator[AuditFinding]:
    for name, check in (call.args or {}).items():
        if check.forbids:
            continue
        try:
            check.samples()
        except NeverHoldsError as error:
            yield _never(case, (*place, "args", name), check, str(error))
        except UnknownSampleError:
            continue


def _argument(
    case: Case, tool: ToolDefinition, name: str, check: Check, place: Place, table: ToolTable
) -> Iterator[AuditFinding]:
    schema = parameter_schema(tool, name)
    if schema is None:
        yield from _parameter(case, tool, name, place)
        schema = {}
    if check.forbids:
        return
    try:
        check.samples()
    except NeverHoldsError as error:
        yield _never(case, place, check, str(error))
        return
    except UnknownSampleError:
        pass
    if (why := check.fits(schema)) is not None:
        yield _never(case, place, check, why)
        return
    for at, value in _values_in(check, place):
        if (refusal := table.refusal(tool, name, value)) is not None:
            message = f"the schema of {quoted(tool.name)} refuses it: {cut_text(refusal)}"
            hint = "a model that follows the schema never sends it"
            yield AuditFinding("refused value", "warning", at, message, hint, case.id)


def _values_in(check: Check, place: Place) -> Iterator[tuple[Place, JsonValue]]:
    # Values of fields and elements are not values of the argument. The method `fits` of a check of fields or elements
    # compares these values with the schema.
    if not check.checks_parts:
        for at, part in check.placed_parts():
            yield from _values_in(part, (*place, *at))
    for value in check.listed or ():
        yield (place, value)


def _parameter(case: Case, tool: ToolDefinition, name: str, place: Place) -> Iterator[AuditFinding]:
    if parameter_schema(tool, name) is not None or not has_closed_schema(tool):
        return
    known = list(properties_of(tool.parameters))
    hint = did_you_mean(name, known)
    if not hint:
        hint = f"it has {', '.join(known)}" if known else "it takes no arguments"
    message = f"{quoted(tool.name)} has no parameter {quoted(name)}"
    yield AuditFinding("unknown argument", "warning", place, message, hint, case.id)


def _never(case: Case, place: Place, check: Check, reason: str) -> AuditFinding:
    return AuditFinding("never holds", "warning", place, f"{describe(check)} never holds: {reason}", "", case.id)


CONTRADICTION_KINDS: frozenset[AuditKind] = frozenset({"never holds", "refused value", "unknown argument"})
"""The findings that already explain why no run can pass."""


def with_contradictions(file: SuiteFile, listings: StoredListings) -> SuiteFile:
    """Return the suite file with the problems that its tools' schemas reveal.

    A problem is an expectation that a schema rules out, a table that was probably meant as a check, or a case that
    expects nothing. `listings` holds the last known tools of servers."""
    suite = file.suite
    if suite is None:
        return file
    file = with_findings(file, contradiction_findings(suite, ToolTable.of(suite, listings.of(suite, file.path))))
    return replace(file, suite=None) if file.errors else file


def contradiction_findings(suite: Suite, table: ToolTable) -> Iterator[Finding]:
    """Yield the expectations of a suite that its tools' schemas rule out, and tables that were meant as checks.

    Also yields warnings about cases that expect nothing, about shared state, and about the conditions of mocks.

    `with_contradictions` adds these findings to a file."""
    yield from _shared_by_changes(suite, table)
    yield from _of_mocks(suite.mocks, ("mocks",), table.of_cases(suite.cases))
    for index, case in enumerate(suite.cases):
        yield from _of_case(suite, case, ("cases", index), table.of_cases([case]))


def _of_case(suite: Suite, case: Case, place: Place, table: ToolTable) -> Iterator[Finding]:
    if case.expects_nothing:
        hint = "write `ordered`, `expect_no_calls = true` or `response`; `expect_nothing_yet = true` marks a draft"
        yield warning(place, "expects nothing: no run of this case can show a mistake", hint)
    tables: list[Finding] = []
    for at, call in case.written_calls():
        tables += _of_checks(call.args, call.tool, (*place, *at, "args"), table)
    for number, state in enumerate(case.final_states):
        at = ("final", "state", number, "result")
        if state.result is not None:
            yield from literal_tables(state.result, "result", None, (*place, *at))
    for at, result in case.checked_results():
        yield from literal_tables(result, "result", None, (*place, *at))
    yield from _of_variants(case, place, table)
    yield from _of_own_calls(case, place, table)
    # If invalid arguments do not fail a run, a value that the schema refuses can still meet the expectation.
    can_be_met = settings_of(suite, case).grading.invalid_arguments != "fail"
    yield from map(_as_warning, tables) if can_be_met else tables
    if case.mocks:
        yield from _of_mocks(case.mocks, (*place, "mocks"), table)
    for found in audit_calls(case, place, table):
        is_explained = any(each.place[: len(found.place)] == found.place for each in tables)
        if found.kind in CONTRADICTION_KINDS and not is_explained:
            yield warning(found.place, found.message, found.hint)


def _of_variants(case: Case, place: Place, table: ToolTable) -> Iterator[Finding]:
    """Yield warnings about the checks of a case's variants, which may change the schemas of tools."""
    for number, own in enumerate(case.variants):
        version, where = case.in_variant(own.name), (*place, "variants", number)
        for at, call in version.written_calls():
            if at[0] in CALLS_IN_VARIANTS:
                yield from map(_as_warning, _of_checks(call.args, call.tool, (*where, *at, "args"), table))
        for at, result in version.checked_results():
            if at[0] in CALLS_IN_VARIANTS:
                yield from literal_tables(result, "result", None, (*where, *at))


def _of_own_calls(case: Case, place: Place, table: ToolTable) -> Iterator[Finding]:
    """Yield warnings about arguments of the suite's own calls, such as a check, that the tools' schemas refuse."""
    for at, call in case.own_calls():
        tool = table.find(call.tool)
        if tool is None or (isinstance(call, FinalState) and call.is_error):
            continue
        for name, value in call.args.items():
            if (refusal := table.refusal(tool, name, value)) is not None:
                message = f"the schema of {quoted(tool.name)} refuses it: {cut_text(refusal)}"
                hint = "the suite sends these arguments as they are written"
                yield warning((*place, *at, "args", name), message, hint)


def _shared_by_changes(suite: Suite, table: ToolTable) -> Iterator[Finding]:
    """Warn about each server whose state all runs share by default, although cases expect changes of this state."""
    changing: dict[str, set[str]] = {}
    named: set[str] = set()
    runs = 0
    for case in suite.cases:
        if not settings_of(suite, case).execute:
            continue
        runs += case.repeats
        mocked = {mock.tool for mock in (*case.mocks, *suite.mocks) if mock.answers_all}
        for call in case.alternatives:
            tool = table.find(call.tool)
            if tool is None or tool.server is None or tool.name in mocked:
                continue
            if tool.annotations.get("readOnlyHint") is not True:
                changing.setdefault(tool.server, set()).add(tool.name)
        # If `setup` or `final` calls a tool of a server, another rule warns about this server.
        for _, own in case.own_calls():
            if (tool := table.find(own.tool)) is not None and tool.server is not None:
                named.add(tool.server)
    for number, server in enumerate(suite.servers):
        if server.name in changing.keys() - named and runs > 1 and "state" not in server.model_fields_set:
            tools = ", ".join(sorted(changing[server.name])[:_MAX_NAMED_TOOLS])
            message = f"its {runs} runs share one process, and see what others changed by {tools}"
            hint = 'write state = "run", which gives each run its own, or state = "batch" if that is meant'
            yield warning(("servers", number), message, hint)


_MAX_NAMED_TOOLS = 3
"""The most tools named in a warning about shared state."""


def _of_mocks(mocks: Sequence[Mock], place: Place, table: ToolTable) -> Iterator[Finding]:
    """Yield warnings about the conditions of mocks.

    The warnings are not errors, because an invalid call may meet a condition."""
    for number, mock in enumerate(mocks):
        yield from map(_as_warning, _of_checks(mock.when, mock.tool, (*place, number, "when"), table))


def _of_checks(checks: Checks | None, tool: str | None, place: Place, table: ToolTable) -> Iterator[Finding]:
    definition = table.find(tool) if tool is not None else None
    for name, check in (checks or {}).items():
        yield from literal_tables(check, name, definition, (*place, name))


def _as_warning(finding: Finding) -> Finding:
    return replace(finding, severity="warning")


# Mocks that never answer, because their tool is unknown, an earlier mock answers, or no case expects their calls.


def audit_suite_mocks(suite: Suite, table: ToolTable) -> Iterator[AuditFinding]:
    """Yield the findings on the suite's mocks, which apply to all cases."""
    return _audit(suite.mocks, ("mocks",), suite.cases, table, None)


def audit_case_mocks(case: Case, place: Place, table: ToolTable) -> Iterator[AuditFinding]:
    """Yield the findings on a case's own mocks. `place` is the case's place in the file."""
    return _audit(case.mocks, (*place, "mocks"), [case], table, case.id)


def _audit(
    mocks: Sequence[Mock], of_mocks: Place, cases: Sequence[Case], table: ToolTable, case_id: str | None
) -> Iterator[AuditFinding]:
    # For each tool, the first mock that has no condition. This mock answers every remaining call.
    first: dict[str, Place] = {}
    for number, mock in enumerate(mocks):
        place = (*of_mocks, number)
        tool = table.find(mock.tool)
        if tool is None and not table.unlisted and not mock.unlisted:
            message = f"no tool is called {quoted(mock.tool)}: this mock never answers"
            hint = did_you_mean(mock.tool, table.names)
            yield AuditFinding("unknown tool", "warning", (*place, "tool"), message, hint, case_id)
        elif mock.tool in first:
            message = (
                f"never reached: mocks[{first[mock.tool][-1]}] answers every call of {quoted(mock.tool)} before it"
            )
            yield AuditFinding("idle mock", "warning", place, message, "put the one without `when` last", case_id)
        else:
            for name in mock.when or {}:
                if tool is not None and has_closed_schema(tool) and parameter_schema(tool, name) is None:
                    message = f"{quoted(mock.tool)} has no parameter {quoted(name)}: this mock never answers"
                    yield AuditFinding("idle mock", "warning", (*place, "when", name), message, "", case_id)
            if mock.when and not _expected_somewhere(mock, mock.when, cases):
                message = f"no call of {quoted(mock.tool)} that is expected matches its `when`"
                hint = "it answers only calls that no case expects"
                yield AuditFinding("idle mock", "note", (*place, "when"), message, hint, case_id)
        if not mock.when:
            first.setdefault(mock.tool, place)


def _expected_somewhere(mock: Mock, when: Checks, cases: Sequence[Case]) -> bool:
    """Return whether an expected call may meet the condition of a mock.

    Also returns True if no call of the tool is expected, as in a case that checks only the answer."""
    is_tool_expected = False
    for case in cases:
        for call in case.alternatives:
            if not call.is_any and call.tool != mock.tool:
                continue
            is_tool_expected = True
            if call.args is None or all(_may_meet(check, call.args.get(name)) for name, check in when.items()):
                return True
    return not is_tool_expected


def _may_meet(condition: Check, expected: Check | None) -> bool:
    if expected is None or expected.accepts_all or expected.is_approximate:
        return True
    try:
        return any(map(condition.holds, expected.samples()))
    except (CheckError, UnknownSampleError):
        return True
    except NeverHoldsError:
        return False
