"""The servers that the user typed into a suite's form in this session.

They are started without asking whether to trust them. Text that comes from a file, a paste, a completion or another
program does not count as typed. If a server contains text of this kind, it needs trust even after the user has typed
into it. `original` is then the server before the typing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pydantic import ValidationError

from workbench.authoring.document import HEAD, Document
from workbench.dataclasses import dataclass
from workbench.suite.problems import tables
from workbench.suite.render import Table
from workbench.suite.server_model import Server
from workbench.suite.toml_equality import toml_equal

if TYPE_CHECKING:
    from workbench.suite.trust import TypedServer

NEW_COMMAND = ("python", "server.py")
"""The command of a new server in the form, for the user to replace."""


@dataclass(frozen=True)
class TypedTable:
    """A typed server: its `current` table, and its `original` table, which is `None` if the user added the server."""

    current: Table
    original: Table | None


TypedTables = tuple[TypedTable, ...]


def typed_tables_after(typed: TypedTables, before: Document, after: Document, *, by_keys: bool) -> TypedTables:
    """Return the servers that still count as typed after a change.

    `by_keys` is whether the user made the change by single keys. Such a change edits one server, or adds a server with
    the default command. After any other change, only unchanged servers count as typed."""
    # While the text is not TOML, no server starts. The next valid version is compared with `typed`.
    if after.parts is None:
        return typed
    old, new = _servers(before), _servers(after)
    # Equal servers cannot be distinguished, so they do not count as typed.
    kept = tuple(each for each in typed if _count(each.current, new) == 1)
    fresh = [server for server in new if not _count(server, old)]
    gone = [server for server in old if not _count(server, new)]
    if not by_keys or len(fresh) != 1:
        return kept
    now = fresh[0]
    if not gone and toml_equal(now, {"name": now.get("name"), "command": [*NEW_COMMAND]}):
        return (*kept, TypedTable(now, None))
    if len(gone) != 1 or len(new) != len(old):
        return kept
    of_gone = [each.original for each in typed if toml_equal(each.current, gone[0])]
    return (*kept, TypedTable(now, of_gone[0] if of_gone else gone[0]))


def typed_servers(typed: TypedTables) -> Iterator[TypedServer]:
    """Yield the valid typed servers. A server that still has the default command of a new server is left out."""
    from workbench.suite.trust import TypedServer  # lazy import: the first screen has no typed servers

    for each in typed:
        if each.original is None and each.current.get("command") == [*NEW_COMMAND]:
            continue
        try:
            before = None
            if each.original is not None:
                before = Server.model_validate(each.original)
            yield TypedServer(Server.model_validate(each.current), before)
        except ValidationError:
            continue


def _servers(document: Document) -> list[Table]:
    if document.parts is None:
        return []
    return [server for _, server in tables(document.table(HEAD).get("servers"))]


def _count(server: Table, servers: Sequence[Table]) -> int:
    return sum(toml_equal(server, other) for other in servers)
