"""Lists the tools of suites, from their servers and from the suites themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from workbench.analysis.tool_lint import ToolName, lint_suite, lint_task_tools
from workbench.dataclasses import dataclass
from workbench.evaluation.approval import Approval
from workbench.show.views.tools import SuiteTools, ToolSource
from workbench.suite.model import Server, Suite
from workbench.suite.suite_file import SuiteFile
from workbench.tools.answer import ServerError
from workbench.tools.listings import definition_of
from workbench.tools.pool import ServerPool
from workbench.trajectory.events import ServerOutput, ToolDefinition


async def tools_of(file: SuiteFile, only: str | None, pool: ServerPool, approval: Approval) -> SuiteTools:
    """Return the tools of a valid suite: those of its servers, which are started as the approval allows, and those that
    it describes itself. With `only`, those of the server of that name. A server that cannot be started gives the tools
    that it listed last, and the error."""
    suite = valid_suite(file)
    servers = [server for server in suite.servers if only in (None, server.name)]
    sources = await asyncio.gather(*(_listed(file, suite, server, pool, approval) for server in servers))
    if only is not None:
        return SuiteTools(str(file.path), suite.name, tuple(sources))
    of_suite = [ToolSource(None, tuple(map(definition_of, suite.tools)))] if suite.tools else []
    of_cases = [
        ToolSource(None, tuple(map(definition_of, case.tools)), case=case.id) for case in suite.cases if case.tools
    ]
    return SuiteTools(str(file.path), suite.name, (*of_suite, *sources, *of_cases))


async def _listed(file: SuiteFile, suite: Suite, server: Server, pool: ServerPool, approval: Approval) -> ToolSource:
    try:
        started = await pool.started(file.path, server, approval.grants[file.path])
        return ToolSource(server.name, started.tools, task_tools=started.task_tools)
    except ServerError as error:
        remembered = pool.remembered(suite, file.path).get(server.name)
        if remembered is None:
            return ToolSource(server.name, error=str(error), output=error.output)
        return ToolSource(server.name, remembered.tools, str(error), remembered.listed_at, output=error.output)


def linted(file: SuiteFile, suite: SuiteTools) -> SuiteTools:
    """Return the tools of a valid suite with what makes them hard to use, or unusable."""
    tools = [tool for source in suite.sources if source.case is None for tool in source.tools]
    task_tools = [ToolName(name, source.server) for source in suite.sources for name in source.task_tools]
    return replace(suite, findings=(*lint_task_tools(task_tools), *lint_suite(valid_suite(file), tools)))


def valid_suite(file: SuiteFile) -> Suite:
    """Return the suite of a file that has no errors."""
    assert file.suite is not None
    return file.suite


class NoSuchToolError(LookupError):
    """No single tool of a server has the name.

    `messages` say why; `not_listed` is whether a server could not list its tools, `outputs` are of such servers."""

    def __init__(
        self, messages: Sequence[str], *, not_listed: bool = False, outputs: Sequence[ServerOutput] = ()
    ) -> None:
        super().__init__("; ".join(messages))
        self.messages = tuple(messages)
        self.not_listed = not_listed
        self.outputs = tuple(outputs)


@dataclass(frozen=True)
class CallableTool:
    """A tool of a server, and the suite that has the server."""

    file: SuiteFile
    tool: ToolDefinition


def callable_tool(name: str, listed: Sequence[tuple[SuiteFile, SuiteTools]]) -> CallableTool:
    """Return the tool of that name among the listed ones.

    Raises NoSuchToolError when there is none, or several."""
    live = [
        CallableTool(file, definition)
        for file, suite in listed
        for source in suite.sources
        if source.server is not None and source.error is None
        for definition in source.tools
        if definition.name == name
    ]
    if len(live) == 1:
        return live[0]
    if live:
        places = ", ".join(f"server {found.tool.server!r} of {found.file.path}" for found in live)
        raise NoSuchToolError([f"{name} is ambiguous: {places}; name one suite, and its server with --server"])
    sources = [source for _, suite in listed for source in suite.sources]
    if errors := [source.error for source in sources if source.error is not None]:
        outputs = [source.output for source in sources if source.output is not None]
        raise NoSuchToolError(errors, not_listed=True, outputs=outputs)
    if any(definition.name == name for source in sources if source.server is None for definition in source.tools):
        raise NoSuchToolError([f"{name} is defined in the suite, so it has no server to call"])
    names = sorted({definition.name for source in sources if source.server for definition in source.tools})
    raise NoSuchToolError([f"there is no tool {name!r}; there are {', '.join(names) or 'none'}"])
