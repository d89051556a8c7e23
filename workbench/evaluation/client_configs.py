"""The configurations of MCP clients: where they are on a machine, and the servers in them.

Claude Desktop and Claude Code, Cursor, VS Code, Codex. What a server becomes is in `evaluation.client_servers`.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from workbench.dataclasses import dataclass
from workbench.evaluation.client_servers import ClientConfigError, FoundServers, Reading, read_servers
from workbench.limits import MAX_CLIENT_FILE_BYTES
from workbench.suite.problems import did_you_mean

_PLACES = (("mcpServers",), ("servers",), ("mcp", "servers"), ("mcp", "mcpServers"), ("mcp_servers",))
"""Where clients keep their servers; the third and fourth are in settings of editors, the last is Codex's."""

_OF_PROJECTS = (
    ("Claude Code", ".mcp.json"),
    ("Cursor", ".cursor/mcp.json"),
    ("VS Code", ".vscode/mcp.json"),
    ("Codex", ".codex/config.toml"),
)
"""Clients and their files in a project."""

_OF_USERS = (
    ("Claude Code", ".claude.json"),
    ("Cursor", ".cursor/mcp.json"),
    ("Codex", ".codex/config.toml"),
    ("Claude Desktop", ".config/Claude/claude_desktop_config.json"),
    ("Claude Desktop", "Library/Application Support/Claude/claude_desktop_config.json"),
    ("Claude Desktop", "AppData/Roaming/Claude/claude_desktop_config.json"),
    ("VS Code", ".config/Code/User/mcp.json"),
    ("VS Code", "Library/Application Support/Code/User/mcp.json"),
    ("VS Code", "AppData/Roaming/Code/User/mcp.json"),
)
"""Clients and their files below the user's home, on Linux, macOS and Windows."""


@dataclass(frozen=True)
class ConfiguredServer:
    """A server that a client on this machine uses."""

    client: str
    file: Path
    name: str
    found: FoundServers


def servers_of_client(file: Path, folder: Path, wanted: Sequence[str] = ()) -> FoundServers:
    """Return the servers of a client's configuration for a suite in `folder`, only those `wanted` where some are.
    Raises ClientConfigError."""
    place, servers, root = _servers_in(_document(file), file, folder.absolute(), wanted)
    if unknown := [name for name in wanted if name not in servers]:
        hint = did_you_mean(unknown[0], servers) or f"there are {', '.join(servers)}"
        raise ClientConfigError(f"{file}: there is no server {unknown[0]!r}: {hint}")
    chosen = {name: entry for name, entry in servers.items() if not wanted or name in wanted}
    found = read_servers(chosen, Reading(f"{file}: {place}", root, folder))
    if not found.tables:
        raise ClientConfigError(f"{file}: has no server that is in use: each of {place} is disabled")
    return found


def servers_on_machine(folder: Path, home: Path | None) -> Iterator[ConfiguredServer]:
    """Yield the servers that clients use in a folder and everywhere, each once; the nearest first. Left out is what
    cannot be read or written into a suite: `servers_of_client` says why."""
    seen: list[object] = []
    for client, file in _files(folder.absolute(), home):
        try:
            if not file.is_file() or file.stat().st_size > MAX_CLIENT_FILE_BYTES:
                continue
            names = tuple(_servers_in(_document(file), file, folder.absolute(), ())[1])
        except (ClientConfigError, OSError):
            continue
        for name in names:
            try:
                found = servers_of_client(file, folder, [name])
            except ClientConfigError:
                continue
            if found.tables not in seen:
                seen.append(found.tables)
                yield ConfiguredServer(client, file, name, found)


def _files(folder: Path, home: Path | None) -> Iterator[tuple[str, Path]]:
    for place in (folder, *folder.parents):
        if place == home:
            break
        yield from ((client, place / name) for client, name in _OF_PROJECTS)
    if home is not None:
        yield from ((client, home / name) for client, name in _OF_USERS)


def _document(file: Path) -> object:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ClientConfigError(f"{file}: is not UTF-8: save it as UTF-8 text") from None
    except OSError as error:
        raise ClientConfigError(f"{file}: cannot be read: {error.strerror}") from None
    try:
        return tomllib.loads(text) if file.suffix == ".toml" else json.loads(_plain_json(text))
    except json.JSONDecodeError as error:
        raise ClientConfigError(f"{file}:{error.lineno}: is not JSON: {error.msg.lower()}") from None
    except tomllib.TOMLDecodeError as error:
        raise ClientConfigError(f"{file}: is not TOML: {error}") from None
    except RecursionError:
        raise ClientConfigError(f"{file}: is nested too deeply") from None


def _servers_in(
    document: object, file: Path, folder: Path, wanted: Sequence[str]
) -> tuple[str, dict[str, object], Path]:
    """Return the servers of a configuration, where in it they stand, and the folder that its client calls its
    workspace."""
    absolute = file.absolute()
    hidden = absolute.parent.name in (".vscode", ".cursor", ".codex")
    root = absolute.parent.parent if hidden else absolute.parent
    project, of_project = _of_project(document, file, folder, wanted)
    for place in _PLACES:
        inner: object = document
        for key in place:
            inner = inner.get(key) if isinstance(inner, dict) else None
        if inner is None or (inner == {} and of_project):
            continue
        where = ".".join(place)
        if not isinstance(inner, dict):
            raise ClientConfigError(f"{file}: {where} must be an object of servers by name")
        if not inner:
            raise ClientConfigError(f"{file}: {where} is empty: there is no server to ask")
        if place == ("mcp_servers",):
            inner = {name: _of_codex(entry) for name, entry in inner.items()}
        return where, {**inner, **of_project}, project or root  # as in Claude Code, those of the project count
    if of_project and project is not None:
        return f"projects.{project}.mcpServers", of_project, project
    raise ClientConfigError(
        f"{file}: is no configuration of an MCP client: it has no mcpServers (Claude, Cursor), servers (VS Code) or "
        "mcp_servers (Codex)"
    )


def _of_project(
    document: object, file: Path, folder: Path, wanted: Sequence[str]
) -> tuple[Path | None, dict[str, object]]:
    """Return the servers that Claude Code keeps for the project around a folder, and where that is; those of the only
    project that has all `wanted` ones where that one has not."""
    projects = document.get("projects") if isinstance(document, dict) else None
    tables: dict[Path, dict[str, object]] = {}
    for path, settings in (projects if isinstance(projects, dict) else {}).items():
        servers = settings.get("mcpServers") if isinstance(settings, dict) else None
        if isinstance(servers, dict) and servers:
            tables[Path(path)] = servers
    around = next((path for path in (folder, *folder.parents) if path in tables), None)
    here = tables[around] if around is not None else {}
    everywhere = document.get("mcpServers") if isinstance(document, dict) else None
    known = {**(everywhere if isinstance(everywhere, dict) else {}), **here}
    if wanted and not all(name in known for name in wanted):
        others = [path for path, servers in tables.items() if all(name in servers for name in wanted)]
        if len(others) > 1:
            raise ClientConfigError(
                f"{file}: several projects have {', '.join(wanted)}: write the suite in the folder of one of them "
                f"({', '.join(map(str, others))})"
            )
        if others:
            return others[0], tables[others[0]]
    if not known and tables:
        names = dict.fromkeys(name for servers in tables.values() for name in servers)
        raise ClientConfigError(
            f"{file}: its servers belong to other projects: choose some with --server ({', '.join(names)})"
        )
    return around, here


def _of_codex(entry: object) -> object:
    """Return a server of Codex as the other clients write it."""
    if not isinstance(entry, dict):
        return entry
    # Codex replaces nothing in its texts, and takes what it passes on by name.
    passed = [name for name in _items(entry.get("env_vars")) if isinstance(name, str)]
    env = {**{name: f"${{{name}}}" for name in passed}, **_table(entry.get("env"))}
    headers = {
        **_table(entry.get("http_headers")),
        **{key: f"${{{name}}}" for key, name in _table(entry.get("env_http_headers")).items()},
    }
    if isinstance(token := entry.get("bearer_token_env_var"), str):
        headers["Authorization"] = f"Bearer ${{{token}}}"
    kept = {key: entry[key] for key in ("command", "args", "cwd", "url", "enabled") if key in entry}
    return {**kept, **({"env": env} if env else {}), **({"headers": headers} if headers else {})}


def _items(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()


def _table(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _plain_json(text: str) -> str:
    """Return JSON with comments and trailing commas as plain JSON, every line where it was."""

    def blank(match: re.Match[str]) -> str:
        return match[1] or re.sub(r"[^\n]", " ", match[0])

    without_comments = re.sub(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', blank, text, flags=re.DOTALL)
    return re.sub(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', blank, without_comments, flags=re.DOTALL)
