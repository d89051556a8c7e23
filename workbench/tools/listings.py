"""The definitions of tools: written in a suite, listed by its servers, or pinned in a file beside the suite.

The last listings are stored, so that a suite can be edited and run with mocks while its servers do not run."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from difflib import unified_diff
from pathlib import Path
from typing import Any, TypeVar

from workbench.dataclasses import cached_by_identity, dataclass, json_text
from workbench.suite.files import absolute, resolved, write_atomically
from workbench.suite.frozen import values_of
from workbench.suite.model import Case, ProviderTool, Suite, Tool, by_name, written_tools
from workbench.suite.server_model import Server
from workbench.suite.suite_file import SuiteFile, with_findings
from workbench.suite.tool_names import unknown_in_suite
from workbench.tools.answer import ToolsError
from workbench.trajectory.events import JsonValue, ToolDefinition

LISTING_FORMAT = 1

_Kind = TypeVar("_Kind")

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Listing:
    """What a server listed: its tools with prefixed names, its instructions, and the time of the listing."""

    tools: tuple[ToolDefinition, ...]
    listed_at: datetime
    instructions: str = ""


@dataclass(frozen=True, slots=True)
class ListingChange:
    """The names of the tools that differ between two listings of a server."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    altered: tuple[str, ...]

    @staticmethod
    def between(before: Sequence[ToolDefinition], now: Sequence[ToolDefinition]) -> ListingChange:
        """Return the differences between an earlier listing and a later one."""
        old = {tool.name: tool for tool in before}
        added, altered = [], []
        for tool in now:
            if tool.name not in old:
                added.append(tool.name)
            elif tool != old[tool.name]:
                altered.append(tool.name)
        remaining = {tool.name for tool in now}
        removed = tuple(name for name in old if name not in remaining)
        return ListingChange(tuple(added), removed, tuple(altered))

    def __str__(self) -> str:
        differences = []
        for word, names in (("added", self.added), ("removed", self.removed), ("changed", self.altered)):
            if names:
                differences.append(f"{word} {', '.join(names)}")
        return "; ".join(differences) or "in another order"


class DamagedListingError(Exception):
    """Raised if a stored listing cannot be read. The message names its file."""


class StoredListings:
    """The stored listings of servers. There is a file for each pair of a suite file and a server's definition.

    A server whose definition was changed counts as a new server. `now` returns the time with its zone."""

    def __init__(self, folder: Path, now: Callable[[], datetime] = lambda: datetime.now().astimezone()) -> None:
        self._folder = folder
        self._now = now

    def remember(
        self, suite_file: Path, server: Server, tools: tuple[ToolDefinition, ...], instructions: str = ""
    ) -> None:
        """Store the listing of a server. A failure is only logged."""
        document = {
            "format": LISTING_FORMAT,
            "suite": str(suite_file),
            "server": server.name,
            "listed_at": self._now().isoformat(timespec="seconds"),
            "instructions": instructions,
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
        """Return the stored listing of a server, `None` if there is none.

        Raises DamagedListingError if it cannot be read."""
        file = self._file(suite_file, server)
        try:
            return _listing_in(json.loads(file.read_text(encoding="utf-8")), server)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise DamagedListingError(f"{file} is damaged and was ignored") from error

    def has(self, suite_file: Path, server: Server) -> bool:
        """Return whether a listing of a server is stored, which means that the server has run before."""
        return self._file(suite_file, server).exists()

    def of(self, suite: Suite, suite_file: Path) -> Mapping[str, Listing]:
        """Return the stored listings of a suite's servers, by the servers' names.

        Damaged listings are left out."""
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
        # These settings do not change what a server lists, and neither do settings that have their default.
        others = {"start_timeout_s", "call_timeout_s", "state", "instructions"}
        settings = server.model_dump_json(exclude=others, exclude_defaults=True)
        known_as = digest(f"{folder / suite_file.name}\0{settings}")
        return self._folder / f"{readable_name(suite_file, server)}-{known_as}.json"


def readable_name(suite_file: Path, server: Server) -> str:
    """Return the beginning of a file name, from which people can see the suite and the server."""
    # File systems limit names to 255 bytes, and a character may take four bytes.
    return re.sub(r"[^\w.-]+", "-", f"{suite_file.stem}-{server.name}")[:50]


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _listing_in(document: Any, server: Server) -> Listing:
    """Return the listing in the parsed content of a file.

    Raises ValueError, KeyError or TypeError if the content is not a listing."""
    if document["format"] != LISTING_FORMAT:
        raise ValueError("the format of the listing is unknown")
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
    listed_at = datetime.fromisoformat(_a(str, document["listed_at"]))
    return Listing(tools, listed_at, _a(str, document.get("instructions", "")))


def _a(kind: type[_Kind], value: object) -> _Kind:
    if not isinstance(value, kind):
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value


def _definition(tool: Tool) -> ToolDefinition:
    return ToolDefinition(tool.name, tool.description, tool.parameters, values_of(tool.annotations))


definition_of: Callable[[Tool], ToolDefinition] = cached_by_identity(_definition)
"""Returns the definition of a tool that is written in a suite.

It is the same object each time, so runs need not convert it again."""


definition_of_provider: Callable[[ProviderTool], ToolDefinition] = cached_by_identity(
    lambda tool: ToolDefinition(tool.name, provider=tool.forms)
)
"""Returns the definition of a tool that providers run. It is the same object each time."""


def definitions_for(suite: Suite, case: Case) -> list[ToolDefinition]:
    """Return the definitions of a case's tools. Tools of model providers come last."""
    if not case.tools:
        return [*_definitions_in(suite)]
    return _definitions(suite, written_tools(suite, case))


def _definitions(suite: Suite, tools: Iterable[Tool]) -> list[ToolDefinition]:
    return [*map(definition_of, tools), *map(definition_of_provider, suite.provider_tools)]


_definitions_in: Callable[[Suite], list[ToolDefinition]] = cached_by_identity(
    lambda suite: _definitions(suite, by_name(suite.tools).values())
)


def with_listed_names(file: SuiteFile, listings: StoredListings) -> SuiteFile:
    """Add a warning to a suite file for each tool name that is neither defined in the suite nor in a stored listing."""
    suite = file.suite
    if suite is None or not suite.servers:
        return file
    listed = listings.of(suite, file.path)
    names = []
    for listing in listed.values():
        names += [tool.name for tool in listing.tools]
    unseen = [server.prefix for server in suite.servers if server.name not in listed]
    return with_findings(file, unknown_in_suite(suite, range(len(suite.cases)), names, unseen))


# A pin file beside a suite has the definitions that the suite's servers listed when it was written. Before every batch,
# the current definitions are compared with it. Otherwise, a server could steer the model unnoticed by changing its
# descriptions.

PINS_FORMAT = 1


def pin_file(suite_file: Path) -> Path:
    return suite_file.with_name(f"{suite_file.stem}.pinned.json")


@dataclass(frozen=True)
class Pins:
    """The pinned tools of a suite and the pinned instructions of its servers, both by the names of the servers.

    If the file was written before instructions were pinned, `instructions` is `None`."""

    servers: Mapping[str, Mapping[str, JsonValue]]
    instructions: Mapping[str, JsonValue] | None = None


def write_pins(
    suite_file: Path, listings: Mapping[str, Sequence[ToolDefinition]], instructions: Mapping[str, str]
) -> Path:
    """Write the tools and instructions of a suite's servers into its pin file. Return the path of the file.

    `listings` and `instructions` have the names of servers as keys, and must be redacted already. Raises OSError."""
    servers = {}
    for server, tools in listings.items():
        servers[server] = {tool.name: _pinned(tool) for tool in _sorted(tools)}
    file = pin_file(suite_file)
    document = {"format": PINS_FORMAT, "servers": servers, "instructions": dict(instructions)}
    write_atomically(file, (_text(document) + "\n").encode())
    # All users may read the file, because pins are shared together with the suite, for example in a repository.
    file.chmod(0o644)
    return file


def read_pins(suite_file: Path) -> Pins | None:
    """Return the pins of a suite, `None` if there are none.

    Raises ToolsError if the file is not a pin file of Workbench."""
    file = pin_file(suite_file)
    try:
        document = json.loads(file.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise ToolsError(f"{file} cannot be read: {error}; 'workbench tools {suite_file} --pin' writes it") from error
    servers = instructions = None
    if isinstance(document, dict) and document.get("format") == PINS_FORMAT:
        servers, instructions = document.get("servers"), document.get("instructions")
    if not isinstance(instructions, dict):
        instructions = None
    if not isinstance(servers, dict) or not all(isinstance(tools, dict) for tools in servers.values()):
        raise ToolsError(f"{file} is not a file of pinned tools; write it with 'workbench tools {suite_file} --pin'")
    return Pins(servers, instructions)


def instructions_difference(pins: Pins, server: str, now: str) -> Iterator[str]:
    """Yield a unified diff between the pinned and the current instructions of a server."""
    if pins.instructions is None:
        return
    then = pins.instructions.get(server)
    before = then if isinstance(then, str) else ""
    names = f"{server} instructions (pinned)", f"{server} instructions (now)"
    yield from unified_diff(before.splitlines(), now.splitlines(), *names, lineterm="", n=2)


def pin_difference(
    pinned: Mapping[str, JsonValue] | None, now: Sequence[ToolDefinition] | None, server: str
) -> Iterator[str]:
    """Yield a unified diff between the pinned and the current tools of a server.

    `pinned` is `None` if the server has no pin. `now` is `None` if the suite no longer has the server."""
    before = dict(pinned or {})
    after: dict[str, JsonValue] = {tool.name: _pinned(tool) for tool in _sorted(now or ())}
    for name in sorted({*before, *after}):
        then, today = _lines_of(before, name), _lines_of(after, name)
        if then != today:
            names = f"{server}/{name} (pinned)", f"{server}/{name} (now)"
            yield from unified_diff(then, today, *names, lineterm="", n=2)


def _sorted(tools: Sequence[ToolDefinition]) -> list[ToolDefinition]:
    return sorted(tools, key=lambda tool: tool.name)


def _lines_of(tools: Mapping[str, JsonValue], name: str) -> list[str]:
    if name not in tools:
        return []
    return _text(tools[name]).splitlines()


def _pinned(tool: ToolDefinition) -> dict[str, JsonValue]:
    pinned: dict[str, JsonValue] = {"description": tool.description, "parameters": dict(tool.parameters)}
    if tool.annotations:
        pinned["annotations"] = dict(tool.annotations)
    return pinned


def _text(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
