"""Lists the tools of suites, from their servers and from the suites themselves."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from workbench.analysis.tool_lint import lint_suite
from workbench.evaluation.approval import Approval
from workbench.reports.tools import SuiteTools, ToolSource
from workbench.suite.loading import SuiteFile
from workbench.suite.model import Server, Suite
from workbench.tools.answer import ServerError
from workbench.tools.listings import definition_of
from workbench.tools.pool import ServerPool


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
        return ToolSource(server.name, (await pool.started(file.path, server, approval.grants[file.path])).tools)
    except ServerError as error:
        remembered = pool.remembered(suite, file.path).get(server.name)
        if remembered is None:
            return ToolSource(server.name, error=str(error))
        return ToolSource(server.name, remembered.tools, str(error), remembered.listed_at)


def linted(file: SuiteFile, suite: SuiteTools) -> SuiteTools:
    """Return the tools of a valid suite with what makes them hard to use, or unusable."""
    tools = [tool for source in suite.sources if source.case is None for tool in source.tools]
    return replace(suite, findings=lint_suite(valid_suite(file), tools))


def valid_suite(file: SuiteFile) -> Suite:
    """Return the suite of a file that has no errors."""
    assert file.suite is not None
    return file.suite
