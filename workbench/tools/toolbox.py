"""The tools of one run: their definitions for the model, and what answers the model's calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from workbench.checks.check import CallPython, CheckContext
from workbench.checks.schemas import BrokenSchemaError, argument_problems
from workbench.suite.model import Case, Suite, ToolChange
from workbench.suite.tool_names import KnownNames, names_for_all, unknown_answers, unknown_mocks, unknown_names
from workbench.tools.answer import OnProgress, ToolAnswer, ToolsError, UnknownToolError
from workbench.tools.case_answers import Answers
from workbench.tools.client_requests import answer_nothing
from workbench.tools.mocks import AskJudge, Mocks, PlannedAnswer, default_answer, mock_answer
from workbench.tools.questions import AskRun
from workbench.trajectory.events import (
    JsonValue,
    ResultSource,
    ServerInstructions,
    ServerOutput,
    ToolCall,
    ToolDefinition,
    tools_by_name,
)

if TYPE_CHECKING:
    from workbench.tools.mcp_server import RunServer


def changed_definitions(definitions: Iterable[ToolDefinition], changes: Sequence[ToolChange]) -> list[ToolDefinition]:
    """Apply the changes of a variant to definitions of tools.

    Raises ToolsError for a change of a tool or an argument that does not exist."""
    # A change of a missing tool must be an error. If the change had no effect, the variant would be the same as the
    # suite.
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
    parameters, description = definition.parameters, definition.description
    if change.parameters is not None:
        parameters = change.parameters
    if change.description is not None:
        description = change.description
    if change.arguments:
        parameters = _renamed(parameters, change)
    return replace(definition, name=change.name or definition.name, description=description, parameters=parameters)


def _renamed(parameters: Mapping[str, JsonValue], change: ToolChange) -> dict[str, JsonValue]:
    properties = cast("dict[str, JsonValue]", parameters.get("properties") or {})
    names = change.arguments
    for name in names:
        if name not in properties:
            raise ToolsError(
                f"the variant renames the argument {name!r} of {change.tool!r}, which has no such argument"
            )
    schema = {**parameters, "properties": {names.get(name, name): value for name, value in properties.items()}}
    required = parameters.get("required")
    if isinstance(required, list):
        # The schema comes from a server, so `required` may contain anything.
        renamed = list(required)
        for place, required_name in enumerate(required):
            if isinstance(required_name, str):
                renamed[place] = names.get(required_name, required_name)
        schema["required"] = renamed
    return schema


def call_as_defined(call: ToolCall, changes: Iterable[ToolChange]) -> ToolCall:
    """Return a call with the tool's and arguments' names that the server defines.

    A variant may have offered the tool to the model under other names."""
    for change in changes:
        if call.tool == (change.name or change.tool):
            names = {new: old for old, new in change.arguments.items()}
            arguments = {names.get(name, name): value for name, value in call.arguments.items()}
            return replace(call, tool=change.tool, arguments=arguments)
    return call


_MAX_NAMED = 3
"""The maximum number of problems that an error names."""

_MAX_OFFERED = 40
"""The maximum number of tools named in the answer to a call of an unknown tool."""


class Toolbox:
    """The tools offered to the model in one run, and what answers its calls.

    `servers` are the servers that execute tools, by the names of the tools. It is empty if nothing is executed for
    real. `call_python` calls the functions of the suite's `python` checks. `notices` report servers whose tools come
    from a stored listing, and `server_outputs` have the outputs of these servers. `changes` are the differences between
    a variant's tools and the servers' tools. `known` are all tools, offered or not."""

    def __init__(
        self,
        definitions: Sequence[ToolDefinition],
        mocks: Mocks,
        servers: Mapping[str, RunServer],
        call_python: CallPython,
        notices: tuple[str, ...] = (),
        server_outputs: tuple[ServerOutput, ...] = (),
        changes: Sequence[ToolChange] = (),
        close: Callable[[], object] = lambda: None,
        known: Sequence[ToolDefinition] = (),
        instructions: tuple[ServerInstructions, ...] = (),
        owns_state: bool = False,
        withheld: Sequence[str] = (),
        answers: Answers | None = None,
    ) -> None:
        self.owns_state = owns_state
        """Whether the run has its own servers or its own modules of mocks. They start with the run."""
        self.withheld = frozenset(withheld)
        """Provider tools that may not run, because the suite is not trusted with them."""
        self.answers = answers or Answers((), (), CheckContext(call_python))
        """The replies of the run to requests of its servers."""
        self.instructions = instructions
        """The servers' instructions that are sent in the run."""
        self.close = close
        """Releases the run's own servers and modules. Call it after grading."""
        self.definitions = tuple(definitions)
        self.notices = notices
        self.server_outputs = server_outputs
        self.call_python = call_python
        self._offered = tools_by_name(definitions)
        self._known = tools_by_name(known) | self._offered
        self._mocks = mocks
        self._servers = servers
        self._changes = changes

    async def plan(
        self, call: ToolCall, step_mock: JsonValue = None, *, judge: AskJudge | None = None
    ) -> PlannedAnswer:
        """Choose what will answer a call. Use this method once for each call.

        In this order, the sources are: the step's mock, the case's mocks, the suite's mocks, the server, and the
        default answer. Arguments that are not a JSON object always get a tool error. So does a call of a tool of the
        model's provider, because the provider should have executed the call. A call of a tool that is not offered gets
        a tool error unless the step's mock answers. The default answer is a tool error if the tool's schema refuses the
        arguments. `judge` evaluates the judged conditions of mocks."""
        if call.problem is not None:
            return _ready("default", ToolAnswer(f"The arguments are not a JSON object: {call.problem}", is_error=True))
        tool = self._offered.get(call.tool)
        if tool is not None and tool.provider is not None:
            return _not_run_by_provider(call.tool)
        if step_mock is not None:
            return _ready("step mock", mock_answer(step_mock, call.arguments, self._mocks.row))
        if call.tool not in self._offered:
            return _ready("default", self._no_such_tool(call.tool))
        return await self._planned(call, judge)

    async def plan_own(self, call: ToolCall, *, judge: AskJudge | None) -> PlannedAnswer:
        """Choose what will answer a call that the suite itself makes, such as in `setup`. The tool need not be offered.

        Raises ToolsError if there is no such tool."""
        if call.tool not in self._known:
            raise ToolsError(f"there is no tool named {call.tool}")
        return await self._planned(call, judge)

    async def _planned(self, call: ToolCall, judge: AskJudge | None) -> PlannedAnswer:
        if self._known[call.tool].provider is not None:
            return _not_run_by_provider(call.tool)
        mocked = await self._mocks.plan(call, judge)
        if mocked is not None:
            return mocked
        defined, tool = call_as_defined(call, self._changes), self._known[call.tool]
        if defined.tool in self._servers:
            return _executed(defined, self._servers[defined.tool], tool)
        return _ready("default", _refusal_of(tool, call) or default_answer(call))

    def _no_such_tool(self, name: str) -> ToolAnswer:
        # The model may have extended the name of a tool, so tools whose names are part of the unknown name come first.
        names = sorted(self._offered, key=lambda known: (known not in name, known))
        known = "There are no tools."
        if names:
            known = f"The tools are: {_listed(names, _MAX_OFFERED, ', ', ' and ')}."
        return ToolAnswer(f"There is no tool named {name}. {known}", is_error=True)

    def count_replayed(self, call: ToolCall, answer: ToolAnswer, step_mock: JsonValue = None) -> None:
        """Count a call whose recorded answer was replayed. A mock with several results continues with the next result.

        No judge is asked and no function is called. Raises ToolsError if a mock's condition cannot be evaluated."""
        if step_mock is None and call.tool in self._offered and call.problem is None:
            self._mocks.count_replayed(call, answer)


def _not_run_by_provider(tool: str) -> PlannedAnswer:
    unanswered = f"{tool} is a tool of the provider, which did not run it."
    return _ready("default", ToolAnswer(unanswered, is_error=True))


def _refusal_of(tool: ToolDefinition, call: ToolCall) -> ToolAnswer | None:
    """Return the tool error with which a real server would refuse invalid arguments.

    Returns `None` if the arguments are valid, or if the tool's schema is invalid."""
    try:
        found = argument_problems(call.arguments, tool.parameters)
    except BrokenSchemaError:
        return None
    if not found:
        return None
    return ToolAnswer(f"Input validation error: {_listed(found, _MAX_NAMED, '; ', '; and ')}", is_error=True)


def _listed(texts: Sequence[str], maximum: int, separator: str, last_separator: str) -> str:
    listed = separator.join(texts[:maximum])
    if len(texts) > maximum:
        return f"{listed}{last_separator}{len(texts) - maximum} more"
    return listed


def _ready(source: ResultSource, answer: ToolAnswer) -> PlannedAnswer:
    async def run(on_progress: OnProgress | None = None, ask: AskRun | None = None) -> ToolAnswer:
        return answer

    return PlannedAnswer(source, run)


def _executed(call: ToolCall, server: RunServer, tool: ToolDefinition) -> PlannedAnswer:
    async def run(on_progress: OnProgress | None = None, ask: AskRun | None = None) -> ToolAnswer:
        return await server.call(call.tool, call.arguments, on_progress, ask or answer_nothing)

    return PlannedAnswer("server", run, tool.server, server.turn)


def offered_tools(
    definitions: Sequence[ToolDefinition], suite: Suite, case: Case, *, of_subject: bool = False
) -> list[ToolDefinition]:
    """Return the tools that a case offers to the model.

    Raises ToolsError if two tools have the same name. Raises UnknownToolError if the case offers, expects, forbids or
    mocks an unknown tool, or if a mock or an answer of the suite names an unknown tool. With `of_subject`, an unknown
    tool may be a tool of the subject."""
    by_name: dict[str, ToolDefinition] = {}
    for definition in definitions:
        other = by_name.setdefault(definition.name, definition)
        if other is not definition:
            raise ToolsError(
                f"there are two tools named {definition.name!r}, {_origin(other)} and {_origin(definition)}: "
                "give a server a prefix, or rename one"
            )
    known = KnownNames(tuple(by_name))
    for_all = names_for_all(suite, by_name)
    unknown = [
        *unknown_names(suite, case, known),
        *unknown_mocks(suite.mocks, for_all),
        *unknown_answers(suite.answers, for_all),
    ]
    if unknown and not of_subject:
        messages = [f"{found.message} ({found.hint})" for found in unknown]
        raise UnknownToolError(_listed(messages, _MAX_NAMED, "; ", "; and "))
    if case.offer is None:
        return list(definitions)
    return [definition for definition in definitions if definition.name in case.offer]


def _origin(definition: ToolDefinition) -> str:
    if definition.server is not None:
        return f"one of server {definition.server!r}"
    return "one in the suite"
