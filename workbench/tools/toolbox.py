"""A variant's changes to tools: their definitions for the model, and its calls for the servers behind them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from workbench.checks.check import CallPython
from workbench.checks.schemas import BrokenSchemaError, argument_problems
from workbench.suite.model import Case, Suite, ToolChange
from workbench.suite.tool_names import KnownNames, names_for_all, unknown_mocks, unknown_names
from workbench.tools.answer import OnProgress, ToolAnswer, ToolsError, UnknownToolError
from workbench.tools.mocks import AskJudge, Mocks, PlannedAnswer, default_answer, mock_answer
from workbench.trajectory.events import JsonValue, ResultSource, ServerOutput, ToolCall, ToolDefinition

if TYPE_CHECKING:
    from workbench.tools.servers import McpServer


def changed_definitions(definitions: Iterable[ToolDefinition], changes: Sequence[ToolChange]) -> list[ToolDefinition]:
    """Return the definitions as a variant has them.

    Raises ToolsError for a change of a tool or an argument that is not there: such a variant would be compared with
    itself."""
    by_tool = {change.tool: change for change in changes}
    found, there = [], set()
    for definition in definitions:
        there.add(definition.name)
        change = by_tool.get(definition.name)
        if change is None:
            found.append(definition)
        elif not change.hidden:
            found.append(_changed(definition, change))
    unknown = [tool for tool in by_tool if tool not in there]
    if unknown:
        raise ToolsError(f"the variant changes {unknown[0]!r}, but there is no such tool: correct its `changes`")
    return found


def _changed(definition: ToolDefinition, change: ToolChange) -> ToolDefinition:
    parameters = change.parameters if change.parameters is not None else definition.parameters
    if change.arguments:
        parameters = _renamed(parameters, change)
    return replace(
        definition,
        name=change.name or definition.name,
        description=definition.description if change.description is None else change.description,
        parameters=parameters,
    )


def _renamed(parameters: Mapping[str, JsonValue], change: ToolChange) -> dict[str, JsonValue]:
    """Return a schema with renamed parameters, in their order."""
    properties = cast("dict[str, JsonValue]", parameters.get("properties") or {})
    missing = [name for name in change.arguments if name not in properties]
    if missing:
        raise ToolsError(
            f"the variant renames the argument {missing[0]!r} of {change.tool!r}, which has no such argument"
        )
    names = change.arguments
    schema = {**parameters, "properties": {names.get(name, name): value for name, value in properties.items()}}
    required = parameters.get("required")
    if isinstance(required, list):
        schema["required"] = [names.get(name, name) if isinstance(name, str) else name for name in required]
    return schema


def as_defined(call: ToolCall, changes: Iterable[ToolChange]) -> ToolCall:
    """Return a call of a changed tool under the names that its server knows."""
    for change in changes:
        if call.tool == (change.name or change.tool):
            names = {new: old for old, new in change.arguments.items()}
            arguments = {}
            for name, value in call.arguments.items():
                arguments[names.get(name, name)] = value
            return replace(call, tool=change.tool, arguments=arguments)
    return call


_MAX_NAMED = 3
"""Unknown tools that an error names."""

_MAX_OFFERED = 40
"""Names that the answer to a call of an unknown tool lists."""


class Toolbox:
    """The tools offered to the model in one run, and the sources of answers to its calls.

    `servers` holds, by tool name, the servers on which tools really run; empty without real execution. `call_python`
    calls the functions of the suite's `python` checks. `notices` report listings that are only remembered, and
    `server_outputs` are of servers that therefore do not run. `changes` map a variant's tools to those of the
    servers."""

    def __init__(
        self,
        definitions: Sequence[ToolDefinition],
        mocks: Mocks,
        servers: Mapping[str, McpServer],
        call_python: CallPython,
        notices: tuple[str, ...] = (),
        server_outputs: tuple[ServerOutput, ...] = (),
        changes: Sequence[ToolChange] = (),
    ) -> None:
        self.definitions = tuple(definitions)
        self.notices = notices
        self.server_outputs = server_outputs
        self.call_python = call_python
        self._offered = {definition.name: definition for definition in definitions}
        self._mocks = mocks
        self._servers = servers
        self._changes = changes

    async def plan(
        self, call: ToolCall, step_mock: JsonValue = None, *, judge: AskJudge | None = None
    ) -> PlannedAnswer:
        """Return the source that will answer a call; called once per call.

        Sources are tried in this order: the step's mock, the case's mocks, the suite's, the server, the default answer.
        Broken arguments are always answered by a tool error, and so is a tool that is not offered unless the step's
        mock answers. `judge` is asked where a mock's condition is judged."""
        if call.problem is not None:
            return _ready("default", ToolAnswer(f"The arguments are not a JSON object: {call.problem}", is_error=True))
        if step_mock is not None:
            return _ready("step mock", mock_answer(step_mock, call.arguments))
        if call.tool not in self._offered:
            return _ready("default", self._no_such_tool(call.tool))
        mocked = await self._mocks.plan(call, judge)
        if mocked is not None:
            return mocked
        defined = as_defined(call, self._changes)
        if defined.tool in self._servers:
            return _executed(defined, self._servers[defined.tool], self._offered[call.tool])
        return _ready("default", _refusal_of(self._offered[call.tool], call) or default_answer(call))

    def _no_such_tool(self, name: str) -> ToolAnswer:
        names = sorted(self._offered, key=lambda known: (known not in name, known))
        more = f" and {len(names) - _MAX_OFFERED} more" if len(names) > _MAX_OFFERED else ""
        known = f"The tools are: {', '.join(names[:_MAX_OFFERED])}{more}." if names else "There are no tools."
        return ToolAnswer(f"There is no tool named {name}. {known}", is_error=True)

    def count(self, call: ToolCall, answer: ToolAnswer, step_mock: JsonValue = None) -> None:
        """Count a replayed call that was already answered, so that a mock with several results continues after it.

        Nothing is asked or run. Raises ToolsError."""
        if step_mock is None and call.tool in self._offered and call.problem is None:
            self._mocks.count(call, answer)


def _refusal_of(tool: ToolDefinition, call: ToolCall) -> ToolAnswer | None:
    """Return the tool error by which a real server would refuse the arguments of a call.

    It is `None` for valid ones, and if the tool's schema is invalid."""
    try:
        found = argument_problems(call.arguments, tool.parameters)
    except BrokenSchemaError:
        return None
    if not found:
        return None
    more = f"; and {len(found) - _MAX_NAMED} more" if len(found) > _MAX_NAMED else ""
    return ToolAnswer(f"Input validation error: {'; '.join(found[:_MAX_NAMED])}{more}", is_error=True)


def _ready(source: ResultSource, answer: ToolAnswer) -> PlannedAnswer:
    async def run(on_progress: OnProgress | None = None) -> ToolAnswer:
        return answer

    return PlannedAnswer(source, run)


def _executed(call: ToolCall, server: McpServer, tool: ToolDefinition) -> PlannedAnswer:
    async def run(on_progress: OnProgress | None = None) -> ToolAnswer:
        return await server.call(call.tool, call.arguments, on_progress)

    return PlannedAnswer("server", run, tool.server)


def offered(definitions: Sequence[ToolDefinition], suite: Suite, case: Case) -> list[ToolDefinition]:
    """Return the definitions that the case offers.

    Raises ToolsError for two tools of one name, and UnknownToolError when the case offers, expects, forbids or mocks,
    or the suite mocks, a tool that does not exist."""
    by_name: dict[str, ToolDefinition] = {}
    for definition in definitions:
        other = by_name.setdefault(definition.name, definition)
        if other is not definition:
            raise ToolsError(
                f"there are two tools named {definition.name!r}, {_origin(other)} and {_origin(definition)}: "
                "give a server a prefix, or rename one"
            )
    known = KnownNames(tuple(by_name))
    unknown = [*unknown_names(suite, case, known), *unknown_mocks(suite.mocks, names_for_all(suite, by_name))]
    if unknown:
        more = f"; and {len(unknown) - _MAX_NAMED} more" if len(unknown) > _MAX_NAMED else ""
        raise UnknownToolError("; ".join(f"{found.message} ({found.hint})" for found in unknown[:_MAX_NAMED]) + more)
    return [definition for definition in definitions if case.offer is None or definition.name in case.offer]


def _origin(definition: ToolDefinition) -> str:
    if definition.server is not None:
        return f"one of server {definition.server!r}"
    return "one in the suite"
