"""Definitions of tools: those written in a suite, and those that servers last listed.

The latter are remembered so that a suite can be used while its servers do not run."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from difflib import unified_diff
from pathlib import Path
from typing import Any, TypeVar

from workbench.dataclasses import ByIdentity, dataclass, json_text
from workbench.suite.files import absolute, resolved
from workbench.suite.model import Case, Server, Suite, Tool, values_of, written_tools
from workbench.suite.suite_file import SuiteFile, with_findings
from workbench.suite.tool_names import unknown_in_suite
from workbench.suite.trust import write_atomically
from workbench.tools.answer import ToolsError
from workbench.trajectory.events import JsonValue, ToolDefinition

LISTING_FORMAT = 1

_Kind = TypeVar("_Kind")

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Listing:
    """A server's tools, names prefixed, and when it listed them."""

    tools: tuple[ToolDefinition, ...]
    listed_at: datetime


@dataclass(frozen=True, slots=True)
class ListingChange:
    """The differences between two listings of a server, by the names of tools."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    altered: tuple[str, ...]

    @staticmethod
    def between(before: Sequence[ToolDefinition], now: Sequence[ToolDefinition]) -> ListingChange:
        """Return the change from one listing to another."""
        old, new = ({tool.name: tool for tool in tools} for tools in (before, now))
        return ListingChange(
            added=tuple(name for name in new if name not in old),
            removed=tuple(name for name in old if name not in new),
            altered=tuple(name for name in new if name in old and new[name] != old[name]),
        )

    def __str__(self) -> str:
        parts = (("added", self.added), ("removed", self.removed), ("changed", self.altered))
        return "; ".join(f"{word} {', '.join(names)}" for word, names in parts if names) or "in another order"


class DamagedListingError(Exception):
    """A remembered listing cannot be read.

    The message names its file."""


class Listings:
    """Listings in a folder, one file for each suite file and server definition.

    `now` returns the time of day with its zone. A changed definition counts as a new server, whose tools are not known.
    """

    def __init__(self, folder: Path, now: Callable[[], datetime] = lambda: datetime.now().astimezone()) -> None:
        self._folder = folder
        self._now = now

    def remember(self, suite_file: Path, server: Server, tools: tuple[ToolDefinition, ...]) -> None:
        """Store a server's new listing.

        A failure goes to the program's log."""
        document = {
            "format": LISTING_FORMAT,
            "suite": str(suite_file),
            "server": server.name,
            "listed_at": self._now().isoformat(timespec="seconds"),
            "tools": [
                {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                    "annotations": tool.annotations,
                }
                for tool in tools
            ],
        }
        try:
            content = json_text(document, indent=1).encode()
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomically(self._file(suite_file, server), content)
        except (OSError, ValueError) as error:
            _logger.warning("the tools of server %r cannot be remembered: %s", server.name, error)

    def recall(self, suite_file: Path, server: Server) -> Listing | None:
        """Return the last listing of a server, `None` when there never was one.

        Raises DamagedListingError."""
        file = self._file(suite_file, server)
        try:
            return _listing_in(json.loads(file.read_text(encoding="utf-8")), server)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise DamagedListingError(f"{file} is damaged and was ignored") from error

    def of(self, suite: Suite, suite_file: Path) -> Mapping[str, Listing]:
        """Return the remembered listings of a suite's servers by name, without damaged ones."""
        found: dict[str, Listing] = {}
        for server in suite.servers:
            try:
                listing = self.recall(suite_file, server)
            except DamagedListingError:
                continue
            if listing is not None:
                found[server.name] = listing
        return found

    def _file(self, suite_file: Path, server: Server) -> Path:
        folder = resolved(absolute(suite_file).parent)
        known_as = digest(f"{folder / suite_file.name}\0{server.model_dump_json()}")
        return self._folder / f"{readable_name(suite_file, server)}-{known_as}.json"


def readable_name(suite_file: Path, server: Server) -> str:
    """Return the beginning of a file name for a server, short enough for every file system in any script."""
    return re.sub(r"[^\w.-]+", "-", f"{suite_file.stem}-{server.name}")[:50]


def digest(text: str) -> str:
    """Return a digest that distinguishes file names with the same beginning."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _listing_in(document: Any, server: Server) -> Listing:
    """Return the listing in a document.

    Raises ValueError, KeyError or TypeError when it is none."""
    if document["format"] != LISTING_FORMAT:
        raise ValueError("a listing of another format")
    tools = tuple(
        ToolDefinition(
            name=_a(str, tool["name"]),
            description=_a(str, tool["description"]),
            parameters=_a(dict, tool["parameters"]),
            annotations=_a(dict, tool["annotations"]),
            server=server.name,
        )
        for tool in _a(list, document["tools"])
    )
    return Listing(tools, datetime.fromisoformat(_a(str, document["listed_at"])))


def _a(kind: type[_Kind], value: object) -> _Kind:
    if not isinstance(value, kind):
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value


def _definition(tool: Tool) -> ToolDefinition:
    return ToolDefinition(tool.name, tool.description, tool.parameters, values_of(tool.annotations))


definition_of: ByIdentity[Tool, ToolDefinition] = ByIdentity(_definition)
"""Returns the definition of a tool written in a suite: the same object each time, so that runs need not compare or
convert it anew."""


def definitions_for(suite: Suite, case: Case) -> list[ToolDefinition]:
    """Return the definitions of the tools that are written in the suite for a case."""
    return [definition_of(tool) for tool in written_tools(suite, case)]


def with_listed_names(file: SuiteFile, listings: Listings) -> SuiteFile:
    """Return the file with a warning for each tool name that neither the suite nor remembered listings have."""
    suite = file.suite
    if suite is None or not suite.servers:
        return file
    listed = listings.of(suite, file.path)
    names = []
    for listing in listed.values():
        for tool in listing.tools:
            names.append(tool.name)
    unseen = []
    for server in suite.servers:
        if server.name not in listed:
            unseen.append(server.prefix)
    return with_findings(file, unknown_in_suite(suite, range(len(suite.cases)), names, unseen))


# Pinned definitions of tools: what the servers of a suite listed once, in a file beside the suite. The file is the
# pin: a suite beside which there is one is checked against it before its runs.

PINS_FORMAT = 1


def pin_file(suite_file: Path) -> Path:
    """Return where the pins of a suite are: `weather.pinned.json` beside `weather.toml`."""
    return suite_file.with_name(f"{suite_file.stem}.pinned.json")


def write_pins(suite_file: Path, listed: Mapping[str, Sequence[ToolDefinition]]) -> Path:
    """Pin the listed tools of a suite's servers, by the servers' names, and return the file.

    Secrets must be taken out before. Raises OSError."""
    servers = {}
    for server, tools in listed.items():
        servers[server] = {tool.name: _pinned(tool) for tool in _sorted(tools)}
    file = pin_file(suite_file)
    write_atomically(file, (_text({"format": PINS_FORMAT, "servers": servers}) + "\n").encode())
    file.chmod(0o644)  # it is to be shared like the suite
    return file


def read_pins(suite_file: Path) -> Mapping[str, Mapping[str, JsonValue]] | None:
    """Return the pinned definitions by server and tool, `None` where nothing is pinned.

    Raises ToolsError for a file that is no pin of this program."""
    file = pin_file(suite_file)
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise ToolsError(f"{file} cannot be read: {error}; 'workbench tools {suite_file} --pin' writes it") from error
    servers = document.get("servers") if isinstance(document, dict) else None
    whole = isinstance(servers, dict) and all(isinstance(tools, dict) for tools in servers.values())
    if not whole or document.get("format") != PINS_FORMAT:
        raise ToolsError(f"{file} holds no pins of this program; 'workbench tools {suite_file} --pin' writes it")
    return servers


def pin_difference(
    pinned: Mapping[str, JsonValue] | None, now: Sequence[ToolDefinition] | None, server: str
) -> Iterator[str]:
    """Yield how the tools of a server differ from their pin, as the lines of a unified diff; nothing where they do not.

    `None` stands for a server that has no pin, or that the suite no longer has."""
    before = dict(pinned or {})
    after: dict[str, JsonValue] = {}
    for tool in _sorted(now or ()):
        after[tool.name] = _pinned(tool)
    for name in sorted({*before, *after}):
        then, today = (_text(each[name]).splitlines() if name in each else [] for each in (before, after))
        if then != today:
            names = f"{server}/{name} (pinned)", f"{server}/{name} (now)"
            yield from unified_diff(then, today, *names, lineterm="", n=2)


def _sorted(tools: Sequence[ToolDefinition]) -> list[ToolDefinition]:
    return sorted(tools, key=lambda tool: tool.name)


def _pinned(tool: ToolDefinition) -> dict[str, JsonValue]:
    annotations: dict[str, JsonValue] = {"annotations": dict(tool.annotations)} if tool.annotations else {}
    return {"description": tool.description, "parameters": dict(tool.parameters), **annotations}


def _text(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
