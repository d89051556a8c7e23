"""The tools of a suite for an audit: which one a name means, and what its schema refuses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.checks.patterns import SearchError
from workbench.checks.schemas import ArgumentSchema, BrokenSchemaError, plainly_accepts, validator_of
from workbench.checks.values import describe_value
from workbench.dataclasses import ByIdentity
from workbench.suite.model import Case, Suite
from workbench.suite.tool_names import normalised_name
from workbench.tools.listings import Listing, definition_of
from workbench.trajectory.events import JsonValue, ToolDefinition
from workbench.trajectory.json_schema import Schema, properties_of, required_names, resolved

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError


class ToolTable:
    """Tools by name. `unlisted` names the servers whose tools are not known: then any name may be one of theirs."""

    def __init__(self, tools: Iterable[ToolDefinition], unlisted: Sequence[str] = ()) -> None:
        self.tools = tuple(tools)
        self.unlisted = tuple(unlisted)
        self._by_name = {normalised_name(tool.name): tool for tool in reversed(self.tools)}
        self._schemas: ByIdentity[ToolDefinition, ArgumentSchema] = ByIdentity(
            lambda tool: ArgumentSchema(tool.parameters)
        )
        self._validators: dict[str, Draft202012Validator | None] = {}

    @classmethod
    def of(cls, suite: Suite, listings: Mapping[str, Listing]) -> ToolTable:
        """Returns the tools written in a suite, and those that its servers last listed."""
        written = [definition_of(tool) for tool in suite.tools]
        listed = [tool for listing in listings.values() for tool in listing.tools]
        return cls([*written, *listed], [server.name for server in suite.servers if server.name not in listings])

    def of_cases(self, cases: Iterable[Case]) -> ToolTable:
        """Returns the table with the tools of some cases, which replace those of the same name."""
        own = {tool.name: definition_of(tool) for case in cases for tool in case.tools}
        if not own:
            return self
        return ToolTable(({tool.name: tool for tool in self.tools} | own).values(), self.unlisted)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(tool.name for tool in self.tools)

    def find(self, name: str) -> ToolDefinition | None:
        """Returns the tool that a name means, by the graders' rule."""
        return self._by_name.get(normalised_name(name))

    def offered(self, offer: Sequence[str] | None) -> tuple[ToolDefinition, ...]:
        """Returns the tools that a model is offered: all tools, or those that a case offers."""
        if offer is None:
            return self.tools
        return tuple(tool for tool in self.tools if tool.name in offer)

    def refusal(self, tool: ToolDefinition, argument: str, value: JsonValue) -> str | None:
        """Returns why the tool's schema refuses a value for an argument; `None` where it does not, or where that is not
        known."""
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
        return _problem_text(problem) if problem is not None else None

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
    """Returns a problem in words, with values as JSON."""
    instance: Any = problem.instance
    allowed: Any = problem.validator_value
    value = describe_value(instance)
    if problem.validator == "enum":
        return f"{value} is none of {', '.join(map(describe_value, allowed))}"
    return str(problem.message).replace(repr(instance), value, 1)


def parameter_schema(tool: ToolDefinition, argument: str) -> Schema | None:
    """Returns the schema of a parameter, references followed; `None` when the tool lists no parameter of that name."""
    properties = properties_of(tool.parameters)
    return resolved(properties[argument], tool.parameters) if argument in properties else None


def closed(tool: ToolDefinition) -> bool:
    """Returns whether a tool's parameters are all listed, so that no other can be meant."""
    schema = tool.parameters
    open_ended = ("patternProperties", "$ref", "anyOf", "oneOf", "allOf", "if")
    listed = "properties" in schema and "additionalProperties" not in schema
    return not any(key in schema for key in open_ended) and (listed or schema.get("additionalProperties") is False)


def required(tool: ToolDefinition) -> tuple[str, ...]:
    """Returns the parameters without which the tool cannot be called."""
    return required_names(tool.parameters)
