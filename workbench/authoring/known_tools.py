"""The tools of a suite that are known although no server runs: defined in the suite, or listed by a server before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import ValidationError

from workbench.suite.model import ProviderTool, Suite
from workbench.suite.problems import tables
from workbench.suite.server_model import Server
from workbench.suite.suite_file import SuiteFile
from workbench.tools.listings import (
    DamagedListingError,
    StoredListings,
    definition_of,
    definition_of_provider,
    with_listed_names,
)
from workbench.trajectory.events import ToolDefinition

_MAX_KEPT = 64  # the number of suites whose tools are kept


def tools_of_suite(header: Mapping[str, object], path: Path, listings: StoredListings) -> tuple[ToolDefinition, ...]:
    """Return the tools that a suite's settings name: tools of the suite, of model providers and of servers.

    Each name occurs once, with its prefix. `header` are the settings (`SuiteText.header`), which need not be valid.
    `path` is the suite's file."""
    found: dict[str, ToolDefinition] = {}
    for tool in (*written_out(header), *_of_providers(header), *_listed(header, path, listings)):
        found.setdefault(tool.name, tool)
    return tuple(found.values())


class KnownTools:
    """A cache of the tools of suites. The tools of a suite stay in the cache until its settings change."""

    def __init__(self, listings: StoredListings) -> None:
        self.listings = listings
        self._known: dict[Path, tuple[Mapping[str, object], tuple[ToolDefinition, ...]]] = {}
        self._checked: dict[Path, tuple[SuiteFile, SuiteFile]] = {}

    def of(self, header: Mapping[str, object], path: Path) -> tuple[ToolDefinition, ...]:
        """Return the tools of a suite.

        The tools are read again only if `header` is a new object. An edit of a case does not make a new `header`."""
        # Settings are compared by identity, because every edit of them makes a new object.
        known = self._known.get(path)
        if known is None or known[0] is not header:
            if len(self._known) >= _MAX_KEPT:
                self._known.clear()
            known = self._known[path] = (header, tools_of_suite(header, path, self.listings))
        return known[1]

    def checked(self, file: SuiteFile) -> SuiteFile:
        """Return a suite file with warnings about tool names that its servers do not list."""
        suite = file.suite
        if suite is None or not suite.servers:
            return file
        known = self._checked.get(file.path)
        if known is None or known[0] is not file:
            if len(self._checked) >= _MAX_KEPT:
                self._checked.clear()
            known = self._checked[file.path] = (file, with_listed_names(file, self.listings))
        return known[1]

    def forget(self) -> None:
        """Clear the cache. Call this method after servers have listed their tools."""
        self._known.clear()
        self._checked.clear()


def with_own_tools(known: tuple[ToolDefinition, ...], case: Mapping[str, object]) -> tuple[ToolDefinition, ...]:
    """Return the tools of a suite and the tools of a case.

    The case's tools replace the suite's tools of the same name."""
    own = list(written_out(case))
    if not own:
        return known
    # A dict keeps the position of a tool that the case defines again.
    return tuple({tool.name: tool for tool in (*known, *own)}.values())


def written_out(table: Mapping[str, object]) -> Iterator[ToolDefinition]:
    """Yield the valid tools that are defined in a suite's settings or in a case."""
    for _, tool in tables(table.get("tools")):
        try:
            # The tool is validated within a suite, because the validator for suites exists already.
            read = Suite.model_validate({"format": 1, "name": "of this tool", "tools": [tool]})
        except ValidationError:
            continue  # reported with the suite's problems
        yield definition_of(read.tools[0])


def _of_providers(header: Mapping[str, object]) -> Iterator[ToolDefinition]:
    for _, table in tables(header.get("provider_tools")):
        try:
            yield definition_of_provider(ProviderTool.model_validate(table))
        except ValidationError:
            continue  # reported with the suite's problems


def _listed(header: Mapping[str, object], path: Path, listings: StoredListings) -> Iterator[ToolDefinition]:
    for _, table in tables(header.get("servers")):
        try:
            listing = listings.recall(path, Server.model_validate(table))
        except (ValidationError, DamagedListingError):
            continue
        if listing is not None:
            yield from listing.tools
