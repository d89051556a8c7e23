"""The tools of suites, as listed by servers or defined in the suites."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from workbench.analysis.tool_lint import LintFinding, lint_listing, lint_suite
from workbench.dataclasses import dataclass
from workbench.evaluation.approval import Approval
from workbench.show.views.tools import SuiteTools, ToolSource
from workbench.suite.model import Suite
from workbench.suite.server_model import Server
from workbench.suite.suite_file import SuiteFile
from workbench.tools.answer import ServerError
from workbench.tools.listings import definition_of
from workbench.tools.server_pool import ServerPool
from workbench.trajectory.events import ServerOutput, ToolDefinition


async def tools_of(file: SuiteFile, only: str | None, pool: ServerPool, approval: Approval) -> SuiteTools:
    """Return the tools of a valid suite: those that its approved servers list, and those defined in the suite.

    With `only`, the result has only the tools of this server. If a server fails to start, the result has its error and
    the tools that it listed earlier."""
    suite = valid_suite(file)
    servers = [server for server in suite.servers if only in (None, server.name)]
    sources = await asyncio.gather(*(_listed(file, suite, server, pool, approval) for server in servers))
    if only is not None:
        return SuiteTools(str(file.path), suite.name, tuple(sources))
    if suite.tools:
        sources.insert(0, ToolSource(None, tuple(map(definition_of, suite.tools))))
    for case in suite.cases:
        if case.tools:
            sources.append(ToolSource(None, tuple(map(definition_of, case.tools)), case=case.id))
    return SuiteTools(str(file.path), suite.name, tuple(sources))


async def _listed(file: SuiteFile, suite: Suite, server: Server, pool: ServerPool, approval: Approval) -> ToolSource:
    try:
        started = await pool.running_server(file.path, server, approval.grants[file.path])
        notices = tuple(news.notice for news in started.pop_start_notices())
        return ToolSource(
            server.name,
            started.tools,
            task_tools=started.task_tools,
            issues=started.issues,
            instructions=started.instructions,
            instructions_are_sent=server.instructions == "system",
            notices=notices,
        )
    except ServerError as error:
        # While a server is down, the tools that it listed earlier are returned.
        remembered = pool.stored_listings(suite, file.path).get(server.name)
        if remembered is None:
            return ToolSource(server.name, error=str(error), output=error.output)
        return ToolSource(
            server.name,
            remembered.tools,
            str(error),
            remembered.listed_at,
            output=error.output,
            instructions=remembered.instructions,
            instructions_are_sent=server.instructions == "system",
        )


def tools_with_findings(file: SuiteFile, suite: SuiteTools) -> SuiteTools:
    """Return the tools of a valid suite with findings about tools that are hard or impossible for a model to use."""
    tools: list[ToolDefinition] = []
    of_servers: list[LintFinding] = []
    for source in suite.sources:
        if source.case is None:
            tools += source.tools
        if source.server is not None:
            of_servers += lint_listing(source.server, source.issues, source.task_tools, source.instructions)
    return replace(suite, findings=(*of_servers, *lint_suite(valid_suite(file), tools)))


def valid_suite(file: SuiteFile) -> Suite:
    assert file.suite is not None
    return file.suite


class NoSuchToolError(LookupError):
    """No tool, or more than one, has the requested name.

    `messages` are the reasons. `not_listed` means that a server could not list its tools, so it may have the tool.
    `outputs` has the standard error of such servers."""

    def __init__(
        self, messages: Sequence[str], *, not_listed: bool = False, outputs: Sequence[ServerOutput] = ()
    ) -> None:
        super().__init__("; ".join(messages))
        self.messages = tuple(messages)
        self.not_listed = not_listed
        self.outputs = tuple(outputs)


@dataclass(frozen=True)
class CallableTool:
    """A tool of a server, with the suite that names the server."""

    file: SuiteFile
    tool: ToolDefinition


def callable_tool(name: str, listed: Sequence[tuple[SuiteFile, SuiteTools]]) -> CallableTool:
    """Return the only listed tool with that name.

    Raises NoSuchToolError if no tool, or more than one tool, has this name."""
    live: list[CallableTool] = []
    errors: list[str] = []
    outputs: list[ServerOutput] = []
    names: set[str] = set()
    defined_in_suites: set[str] = set()
    for file, suite in listed:
        for source in suite.sources:
            of_source = {tool.name for tool in source.tools}
            if source.server is None:
                defined_in_suites |= of_source
                continue
            names |= of_source
            if source.output is not None:
                outputs.append(source.output)
            if source.error is None:
                for tool in source.tools:
                    if tool.name == name:
                        live.append(CallableTool(file, tool))
            else:
                errors.append(source.error)
    if len(live) == 1:
        return live[0]
    if live:
        places = ", ".join(f"server {found.tool.server!r} of {found.file.path}" for found in live)
        raise NoSuchToolError(
            [f"several servers have the tool {name!r}: {places}; name one suite, and one server with --server"]
        )
    # A server that could not list its tools may have this tool, so its error is more useful than "there is no tool".
    if errors:
        raise NoSuchToolError(errors, not_listed=True, outputs=outputs)
    if name in defined_in_suites:
        raise NoSuchToolError([f"{name} is defined in the suite, so it has no server to call"])
    raise NoSuchToolError([f"there is no tool {name!r}; there are {', '.join(sorted(names)) or 'none'}"])
