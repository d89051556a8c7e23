"""The tools of a suite as far as they are known without starting anything: written out, or listed before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import ValidationError

from workbench.suite.loading import SuiteFile
from workbench.suite.model import Server, Tool
from workbench.suite.problems import tables
from workbench.tools.listings import DamagedListingError, Listings, definition_of, with_listed_names
from workbench.trajectory.messages import ToolDefinition

_MOST_KEPT = 64


def tools_of_suite(header: Mapping[str, object], path: Path, listings: Listings) -> tuple[ToolDefinition, ...]:
    """The tools that a suite's header (`SuiteText.header`, sound or not) names: written out, then by server, each name
    once; `path` is the suite's file. Prefixes are part of the names."""
    found: dict[str, ToolDefinition] = {}
    for tool in (*written_out(header), *_listed(header, path, listings)):
        found.setdefault(tool.name, tool)
    return tuple(found.values())


class KnownTools:
    """Remembers the tools of suites by their headers, so that asking again costs nothing."""

    def __init__(self, listings: Listings) -> None:
        self.listings = listings
        self._known: dict[Path, tuple[Mapping[str, object], tuple[ToolDefinition, ...]]] = {}
        self._checked: dict[Path, tuple[SuiteFile, SuiteFile]] = {}

    def of(self, header: Mapping[str, object], path: Path) -> tuple[ToolDefinition, ...]:
        """The tools of a suite, read again only when its header is another object (edits of cases keep it)."""
        known = self._known.get(path)
        if known is None or known[0] is not header:
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            known = self._known[path] = (header, tools_of_suite(header, path, self.listings))
        return known[1]

    def checked(self, file: SuiteFile) -> SuiteFile:
        """The file with warnings of tool names that none of its known tools has."""
        suite = file.suite
        if suite is None or not suite.servers:
            return file
        known = self._checked.get(file.path)
        if known is None or known[0] is not file:
            if len(self._checked) >= _MOST_KEPT:
                self._checked.clear()
            known = self._checked[file.path] = (file, with_listed_names(file, self.listings))
        return known[1]

    def forget(self) -> None:
        """Servers have listed their tools: what was known may have changed."""
        self._known.clear()
        self._checked.clear()


def with_own_tools(known: tuple[ToolDefinition, ...], case: Mapping[str, object]) -> tuple[ToolDefinition, ...]:
    """The tools of a suite with those that a case writes out, which take the place of those of their names."""
    own = {tool.name: tool for tool in written_out(case)}
    return tuple(({tool.name: tool for tool in known} | own).values()) if own else known


def written_out(table: Mapping[str, object]) -> Iterator[ToolDefinition]:
    """The sound ones of the tools that a suite's header or a case writes out."""
    for _, tool in tables(table.get("tools")):
        try:
            yield definition_of(Tool.model_validate(tool))
        except ValidationError:
            continue  # the suite's problems tell of it


def _listed(header: Mapping[str, object], path: Path, listings: Listings) -> Iterator[ToolDefinition]:
    for _, table in tables(header.get("servers")):
        try:
            listing = listings.recall(path, Server.model_validate(table))
        except (ValidationError, DamagedListingError):
            continue
        if listing is not None:
            yield from listing.tools
