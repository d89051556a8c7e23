"""The findings of an audit in a suite that loads without an error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal

from workbench.checks.check import (
    CHECK_CLASSES,
    RESERVED_NAMES,
    Check,
    Checks,
    NeverHoldsError,
    UnknownSampleError,
    check_names_in,
    describe,
)
from workbench.checks.patterns import CheckError, SearchError
from workbench.checks.schemas import ArgumentSchema, BrokenSchemaError, plainly_accepts, validator_of
from workbench.checks.values import cut, describe_value
from workbench.dataclasses import ByIdentity, dataclass
from workbench.suite.model import ANY_TOOL, Case, ExpectedCall, Mock, Step, Suite, comparable_name
from workbench.suite.problems import Finding, Place, did_you_mean, quoted, warning
from workbench.suite.settings import settings_of
from workbench.suite.suite_file import SuiteFile, with_findings
from workbench.tools.listings import Listing, Listings, definition_of
from workbench.trajectory.events import JsonValue, ToolDefinition
from workbench.trajectory.json_schema import (
    UNIONS,
    Schema,
    alternatives_of,
    listed_values,
    properties_of,
    required_names,
    resolved,
    type_names,
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
"""A warning is nearly always a mistake of the suite; a note is worth a look, but may be intended."""


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """One thing that is wrong with the expectations of a suite that can be run.

    `place` starts at the top of the file; `case` is the case's id, `None` for the whole suite."""

    kind: AuditKind
    weight: Weight
    place: Place
    message: str
    hint: str = ""
    case: str | None = None


class ToolTable:
    """Tools by name.

    `unlisted` names the servers whose tools are not known: then any name may be one of theirs."""

    def __init__(self, tools: Iterable[ToolDefinition], unlisted: Sequence[str] = ()) -> None:
        self.tools = tuple(tools)
        self.unlisted = tuple(unlisted)
        self._by_name = {comparable_name(tool.name): tool for tool in reversed(self.tools)}
        self._schemas: ByIdentity[ToolDefinition, ArgumentSchema] = ByIdentity(
            lambda tool: ArgumentSchema(tool.parameters)
        )
        self._validators: dict[str, Draft202012Validator | None] = {}

    @classmethod
    def of(cls, suite: Suite, listings: Mapping[str, Listing]) -> ToolTable:
        """Return the tools written in a suite, and those that its servers last listed."""
        written = [definition_of(tool) for tool in suite.tools]
        listed = [tool for listing in listings.values() for tool in listing.tools]
        return cls([*written, *listed], [server.name for server in suite.servers if server.name not in listings])

    def of_cases(self, cases: Iterable[Case]) -> ToolTable:
        """Return the table with the tools of some cases, which replace those of the same name."""
        own = {}
        for case in cases:
            for tool in case.tools:
                own[tool.name] = definition_of(tool)
        if not own:
            return self
        return ToolTable(({tool.name: tool for tool in self.tools} | own).values(), self.unlisted)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(tool.name for tool in self.tools)

    def find(self, name: str) -> ToolDefinition | None:
        """Return the tool that a name means, by the graders' rule."""
        return self._by_name.get(comparable_name(name))

    def offered(self, offer: Sequence[str] | None) -> tuple[ToolDefinition, ...]:
        """Return the tools that a model is offered: all tools, or those that a case offers."""
        if offer is None:
            return self.tools
        return tuple(tool for tool in self.tools if tool.name in offer)

    def refusal(self, tool: ToolDefinition, argument: str, value: JsonValue) -> str | None:
        """Return why the tool's schema refuses a value for an argument; `None` if it is accepted or unknown."""
        given = {argument: value}
        if plainly_accepts({**tool.parameters, "required": []}, given):
            return None
        validator = self._validator(tool)
        if validator is None:
            return None
        from referencing.exceptions import Unresolvable

        try:
            problem = next(
                (each for each in validator.iter_errors(given) if list(each.absolute_path)[:1] == [argument]),
                None,
            )
        except (Unresolvable, RecursionError, SearchError):
            return None  # the linter of tools reports that the schema is broken
        if problem is not None:
            return _problem_text(problem)
        return None

    def allows(self, tool: ToolDefinition, arguments: Mapping[str, JsonValue]) -> bool:
        """Return whether the tool's schema accepts these arguments; true where it is broken and cannot tell."""
        try:
            return not self._schemas(tool).violations(arguments)
        except BrokenSchemaError:
            return True

    def _validator(self, tool: ToolDefinition) -> Draft202012Validator | None:
        if tool.name not in self._validators:
            from jsonschema.exceptions import SchemaError

            try:
                self._validators[tool.name] = validator_of(tool.parameters, of_its_dialect=True)
            except (SchemaError, RecursionError):
                self._validators[tool.name] = None
        return self._validators[tool.name]


def _problem_text(problem: ValidationError) -> str:
    """Return a problem in words, with values as JSON."""
    instance: Any = problem.instance
    allowed: Any = problem.validator_value
    value = describe_value(instance)
    if problem.validator == "enum":
        return f"{value} is none of {', '.join(map(describe_value, allowed))}"
    return str(problem.message).replace(repr(instance), value, 1)


def parameter_schema(tool: ToolDefinition, argument: str) -> Schema | None:
    """Return the schema of a parameter, references followed; `None` when the tool lists no parameter of that name."""
    properties = properties_of(tool.parameters)
    if argument in properties:
        return resolved(properties[argument], tool.parameters)
    return None


def closed(tool: ToolDefinition) -> bool:
    """Return whether a tool's parameters are all listed, so that no other can be meant."""
    schema = tool.parameters
    open_ended = ("patternProperties", "$ref", "anyOf", "oneOf", "allOf", "if")
    listed = "properties" in schema and "additionalProperties" not in schema
    return not any(key in schema for key in open_ended) and (listed or schema.get("additionalProperties") is False)


def required(tool: ToolDefinition) -> tuple[str, ...]:
    """Return the parameters without which the tool cannot be called."""
    return required_names(tool.parameters)


# Compares expected and forbidden calls with the tools: names, arguments and values that can never occur.


def audit_calls(case: Case, place: Place, table: ToolTable) -> Iterator[AuditFinding]:
    """Return findings on every call that a case describes; `place` is the case's."""
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
    """Find checks that no value meets, for a tool whose schema is not known."""
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
    for value in check.listed or ():
        yield (where, value)


def _parameter(case: Case, tool: ToolDefinition, name: str, where: Place) -> Iterator[AuditFinding]:
    """Find an argument that the tool does not list."""
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


# Finds tables that name no check, and so are compared as values, where a check was probably meant.

_NEAR = 0.85
"""How near a key must be to the name of a check: `patern` is, `orange` is not `range`."""

_AS_VALUE = "to compare the table as a value, write { equals = { … } }"


def literal_tables(check: Check, argument: str, tool: ToolDefinition | None, place: Place) -> Iterator[Finding]:
    """Yield a finding for each table in a check that names no check, unless the tool's schema takes an object there.

    It is an error where the schema takes no object. Where the schema is unknown, only tables that look like a check are
    found, those inside a value included.
    """
    for number, part in enumerate(check.parts):
        yield from literal_tables(part, argument, tool, (*place, check.kind, number))
    if check.bare_value is None:
        return
    root: Schema = tool.parameters if tool is not None else {}
    schema = _property(root, argument, root)
    value = check.bare_value
    if isinstance(value, dict) and (takes := _takes_object(schema, root)) is not True:
        meant = _meant(value)
        hint = f"did you mean `{meant}`?" if meant else ""
        if takes is False and tool is not None:
            message = f"names no check, and the schema of {quoted(tool.name)} takes no object here"
            yield Finding(place, message, hint or "write a value, or a table with the name of one check")
            return
        if meant and _looks_like_check(value):
            message = "names no check, so the table is compared as a value"
            yield warning(place, message, f"{hint} {_AS_VALUE}".strip())
            return
    yield from _nested(value, schema, root, place)


def _nested(value: JsonValue, schema: Schema | None, root: Schema, place: Place) -> Iterator[Finding]:
    """Yield a warning for each table inside a value that would be a check if it stood for the whole argument."""
    inner: list[tuple[str | int, JsonValue, Schema | None]]
    if isinstance(value, dict):
        inner = [(key, each, _property(schema, key, root)) for key, each in value.items()]
    elif isinstance(value, list):
        items = resolved(schema["items"], root) if schema is not None and "items" in schema else None
        inner = [(number, each, items) for number, each in enumerate(value)]
    else:
        return
    for key, each, of_key in inner:
        at = (*place, key)
        if isinstance(each, dict) and _is_check(each) and _takes_object(of_key, root) is not True:
            message = f"`{check_names_in(each)[0]}` inside a value is no check: the table is compared as a value"
            yield warning(at, message, "check the argument as a whole, with `python` for instance; " + _AS_VALUE)
        else:
            yield from _nested(each, of_key, root, at)


def _is_check(value: Mapping[str, JsonValue]) -> bool:
    names = check_names_in(value)
    return len(names) == 1 and names != ["type"] and value.keys() <= RESERVED_NAMES


def _looks_like_check(value: Mapping[str, JsonValue]) -> bool:
    """Return whether a table would be a check if one key had another name."""
    others = [key for key in value if key not in RESERVED_NAMES]
    if len(others) != 1:
        return False
    # Arguments of tools may well have the names that others give to checks, so those count beside an option only.
    return len(value) > 1 or _near_check(others[0]) is not None


def _near_check(key: str) -> str | None:
    squeezed = key.replace("_", "").replace("-", "").lower()
    known = {name.replace("_", ""): name for name in CHECK_CLASSES}
    nearest = get_close_matches(squeezed, known, n=1, cutoff=_NEAR)
    if nearest and nearest[0][0] == squeezed[0]:
        return known[nearest[0]]
    return None


def _meant(value: Mapping[str, JsonValue]) -> str:
    """Return the check that a table was probably meant to be, as a suite writes it; empty where nothing tells."""
    for key, inner in value.items():
        known = key.replace("_", "").replace("-", "").lower()
        called = (kind for kind, cls in CHECK_CLASSES.items() if known in cls.aliases)
        if key not in RESERVED_NAMES and (name := _near_check(key) or next(called, None)):
            return f"{name} = {describe_value(inner)}"
    takers = (kind for key in value for kind, cls in CHECK_CLASSES.items() if cls.is_approximate and key in cls.options)
    return next((f"{kind} = …" for kind in takers), "")


def _property(schema: Schema | None, name: str, root: Schema) -> Schema | None:
    """Return the schema of a property; `None` where it is not known."""
    if schema is None:
        return None
    properties = properties_of(schema)
    if name in properties:
        return resolved(properties[name], root)
    others = schema.get("additionalProperties")
    if isinstance(others, dict):
        return resolved(others, root)
    return None


def _takes_object(schema: Schema | None, root: Schema, depth: int = 0) -> bool | None:
    """Return whether a schema accepts some object; `None` where it does not say."""
    if schema is None or depth > 8:
        return None
    if (values := listed_values(schema)) is not None:
        return any(isinstance(value, dict) for value in values)
    if (types := type_names(schema)) is not None:
        return "object" in types
    for options in alternatives_of(schema, *UNIONS):
        found = []
        for option in options:
            found.append(_takes_object(resolved(option, root), root, depth + 1))
        if True in found:
            return True
        return None if None in found or not found else False
    for options in alternatives_of(schema, "allOf"):
        found = []
        for option in options:
            found.append(_takes_object(resolved(option, root), root, depth + 1))
        if False in found:
            return False
        return True if True in found else None
    return True if "properties" in schema else None


NEVER_MET: frozenset[AuditKind] = frozenset({"never holds", "refused value", "unknown argument"})
"""Findings of an audit that say by themselves why no run can pass."""


def with_unmeetable(file: SuiteFile, listings: Listings) -> SuiteFile:
    """Return a file with the problems that the schemas of known tools show.

    A problem is an expectation that a schema rules out, a table that was probably meant as a check, or a case that
    expects nothing. `listings` are the tools that servers listed last."""
    suite = file.suite
    if suite is None:
        return file
    file = with_findings(file, unmeetable(suite, ToolTable.of(suite, listings.of(suite, file.path))))
    return replace(file, suite=None) if file.errors else file


def unmeetable(suite: Suite, table: ToolTable) -> Iterator[Finding]:
    """Yield the findings that `with_unmeetable` adds."""
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
    # Where invalid arguments fail no run, a value that the schema refuses can still meet the expectation.
    can_be_met = settings_of(suite, case).grading.invalid_arguments != "fail"
    yield from map(_as_warning, tables) if can_be_met else tables
    yield from _of_mocks(case.mocks, (*place, "mocks"), table)
    for found in audit_calls(case, place, table):
        is_explained = any(each.place[: len(found.place)] == found.place for each in tables)
        if found.kind in NEVER_MET and not is_explained:
            yield warning(found.place, found.message, found.hint)


def _of_mocks(mocks: Sequence[Mock], place: Place, table: ToolTable) -> Iterator[Finding]:
    """Yield the problems in the conditions of mocks: warnings, because other calls than valid ones may meet them."""
    for number, mock in enumerate(mocks):
        yield from map(_as_warning, _of_checks(mock.when, mock.tool, (*place, number, "when"), table))


def _of_checks(checks: Checks | None, tool: str | None, place: Place, table: ToolTable) -> Iterator[Finding]:
    definition = table.find(tool) if tool is not None else None
    for name, check in (checks or {}).items():
        yield from literal_tables(check, name, definition, (*place, name))


def _as_warning(found: Finding) -> Finding:
    return replace(found, severity="warning")


# Finds mocks that never answer: for no tool, behind one that answers first, or for arguments that are not expected.

Placed = tuple[Place, Mock]


def audit_suite_mocks(suite: Suite, table: ToolTable) -> Iterator[AuditFinding]:
    """Return findings on the mocks that all cases of a suite share."""
    placed: list[Placed] = []
    for number, mock in enumerate(suite.mocks):
        placed.append((("mocks", number), mock))
    return _audit(placed, suite.cases, table, None)


def audit_case_mocks(case: Case, place: Place, table: ToolTable) -> Iterator[AuditFinding]:
    """Return findings on a case's own mocks; `place` is the case's."""
    placed: list[Placed] = []
    for number, mock in enumerate(case.mocks):
        placed.append(((*place, "mocks", number), mock))
    return _audit(placed, [case], table, case.id)


def _audit(
    mocks: Sequence[Placed], cases: Sequence[Case], table: ToolTable, case_id: str | None
) -> Iterator[AuditFinding]:
    first: dict[str, Place] = {}
    for place, mock in mocks:
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
                if tool is not None and closed(tool) and parameter_schema(tool, name) is None:
                    message = f"{quoted(mock.tool)} has no parameter {quoted(name)}: this mock never answers"
                    yield AuditFinding("idle mock", "warning", (*place, "when", name), message, "", case_id)
            if mock.when and not _expected_somewhere(mock, mock.when, cases):
                message = f"no call of {quoted(mock.tool)} that is expected matches its `when`"
                hint = "it answers only calls that no case expects"
                yield AuditFinding("idle mock", "note", (*place, "when"), message, hint, case_id)
        if not mock.when:
            first.setdefault(mock.tool, place)


def _expected_somewhere(mock: Mock, when: Checks, cases: Sequence[Case]) -> bool:
    """Return whether an expected call may meet the condition of a mock, or no call of its tool is expected at all."""
    calls = []
    for case in cases:
        for call in case.expected_calls():
            if call.is_any or call.tool == mock.tool:
                calls.append(call)
    return not calls or any(
        call.args is None or all(_may_meet(check, call.args.get(name)) for name, check in when.items())
        for call in calls
    )


def _may_meet(condition: Check, expected: Check | None) -> bool:
    if expected is None or expected.accepts_all or expected.is_approximate:
        return True
    try:
        return any(map(condition.holds, expected.samples()))
    except (CheckError, UnknownSampleError):
        return True
    except NeverHoldsError:
        return False
