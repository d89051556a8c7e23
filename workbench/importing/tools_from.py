"""Definitions of tools for a file that has none: those of a suite, or a list of them as servers answer it."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import cast

from workbench.importing.bounds import RefusedError
from workbench.importing.conversations import tool_of
from workbench.importing.imported import NO_TOOLS, Imported, Note
from workbench.importing.reading import read_source
from workbench.suite.loading import SuiteFile, load_suite
from workbench.suite.render import Table


def with_tools_from(imported: Imported, path: Path, output: Path) -> Imported:
    """Returns what was imported with the `tools` and `servers` of a suite, or with the tools of a JSON file, as a
    server answers tools/list or as a list. A tool that the imported file defines itself stays as it is there. Raises
    RefusedError."""
    tools, servers = _tools_of_suite(path) if path.suffix.lower() == ".toml" else (_tools_of_list(path), [])
    if not tools and not servers:
        raise RefusedError(f"{path} defines no tools: it has neither [[tools]] nor [[servers]]")
    own = {str(tool["name"]) for case in imported.cases for tool in cast("list[Table]", case.table.get("tools", []))}
    notes = list(imported.notes)
    if doubled := sorted(own & {str(tool.get("name")) for tool in tools}):
        notes.append(Note("", f"{', '.join(doubled)}: as the file itself defines it, not as {path} does"))
    if servers and path.resolve().parent != output.resolve().parent:
        notes.append(Note("", f"the servers of {path} start in the folder of the suite: check paths in their commands"))
    kept = [tool for tool in tools if tool.get("name") not in own]
    suite = imported.suite | ({"tools": kept} if kept else {}) | ({"servers": servers} if servers else {})
    cases = tuple(
        replace(case, notes=tuple(note for note in case.notes if note.why != NO_TOOLS)) for case in imported.cases
    )
    return Imported(cases, suite, tuple(notes))


def undefined_tools(file: SuiteFile, path: Path) -> list[Note]:
    """Returns a note of the tools that cases ask for and that are not defined."""
    suite = file.suite
    assert suite is not None
    known = {tool.name for tool in suite.tools}
    missing = {
        call.tool
        for case in suite.cases
        for call in case.expected_calls()
        if call.tool not in known and call.tool not in {tool.name for tool in case.tools}
    }
    if not missing:
        return []
    where = (
        f"not among the [[tools]] of {path}: its servers must have it" if suite.servers else f"not defined in {path}"
    )
    return [Note("", f"{', '.join(sorted(missing))}: {where}")]


def _tools_of_suite(path: Path) -> tuple[list[Table], list[Table]]:
    file = load_suite(path)
    if file.suite is None:
        raise RefusedError(f"{path}: {file.errors[0].message}")
    document = tomllib.loads(file.text)
    return document.get("tools", []), document.get("servers", [])


def _tools_of_list(path: Path) -> list[Table]:
    root = read_source(path).root
    listed = (root.get("result") or root).get("tools") or root
    try:
        tools = {str(tool["name"]): tool for tool in map(tool_of, listed.items())}
    except RefusedError as error:
        raise RefusedError(f"{path}: {error}") from error
    return [*tools.values()]
