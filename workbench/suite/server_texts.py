"""Servers from what a person types: a command as in a shell, or an address."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from urllib.parse import urlsplit

from workbench.suite.render import Table

_STARTER = re.compile(r"uvx?|pipx|npx|npm|pnpm|bunx?|deno|node|python[\d.]*|docker|podman|tool|run|exec|dlx|env|sudo")
_SAYS_NOTHING = re.compile(
    r"\.{0,2}|index|main|__main__|server|app|cli|start|dist|build|out|src|lib|bin", re.IGNORECASE
)
"""Names of files and folders that any server may have."""
_OF_SERVERS = re.compile(r"^(mcp[-_])?(server[-_])?|[-_](mcp|server)(?=$|[-_])")


def server_at(url: str) -> Table:
    """Return the MCP server at an address. Raises ValueError."""
    try:
        host = urlsplit(url).hostname
    except ValueError:
        host = None
    if not re.match(r"https?:", url):
        raise ValueError("a URL of an MCP server begins with http:// or https://")
    if not host:
        raise ValueError("the URL names no host")
    return {"name": host, "url": url}


def words_of(command: str) -> list[str]:
    """Return the words of a command as in a shell, at least one. Raises ValueError."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ValueError(f"this is no command: {str(error).lower()}") from None
    if not words:
        raise ValueError("a command or a URL is needed")
    return words


def server_name(command: Sequence[str]) -> str:
    """Return a name for the server that a command starts: `git` for `uvx mcp-server-git --repository .`, `shop` for
    `node shop/dist/index.js`."""
    words = [re.split(r"[/\\]", word) for word in command if not word.startswith("-")]
    program = next((word for word in words if not _STARTER.fullmatch(word[-1])), words[0] if words else [command[0]])
    names = [re.sub(r"\.(py|js|mjs|ts|exe)$|@[\w.^~]+$", "", part) for part in program]
    name = next((name for name in reversed(names) if not _SAYS_NOTHING.fullmatch(name)), names[-1])
    return _OF_SERVERS.sub("", name) or name
