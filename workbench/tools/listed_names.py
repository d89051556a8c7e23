"""Tool names in a suite that none of its tools has, as far as its servers' tools are remembered."""

from __future__ import annotations

from workbench.suite.loading import SuiteFile, with_findings
from workbench.suite.tool_names import unknown_in_suite
from workbench.tools.listings import Listings


def with_listed_names(file: SuiteFile, listings: Listings) -> SuiteFile:
    """The file with a warning for each tool name that neither the suite nor its servers, as far as their tools are
    remembered, have."""
    suite = file.suite
    if suite is None or not suite.servers:
        return file
    listed = listings.of(suite, file.path)
    names = [tool.name for listing in listed.values() for tool in listing.tools]
    unseen = [server.prefix for server in suite.servers if server.name not in listed]
    return with_findings(file, unknown_in_suite(suite, range(len(suite.cases)), names, unseen))
