"""Launchers: programs such as `npx` and `uvx` that download a server before they start it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import PurePath

_ALWAYS = frozenset({"npx", "pnpx", "bunx", "uvx"})

_BY_SUBCOMMAND = {
    "npm": ("exec", "x"),
    "pnpm": ("dlx",),
    "yarn": ("dlx",),
    "bun": ("x",),
    "uv": ("run", "tool"),
    "pipx": ("run",),
    "deno": ("run",),
    "docker": ("run",),
    "podman": ("run",),
    "nerdctl": ("run",),
}

_SHELLS = frozenset({"sh", "bash", "dash", "zsh"})

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")

_FORWARDING = frozenset({"docker", "podman", "nerdctl", "kubectl", "ssh", "wsl"})


def launcher_of(command: Sequence[str]) -> str | None:
    """Return the name of the launcher in a command, `None` if there is none.

    >>> launcher_of(["npx", "-y", "@modelcontextprotocol/server-memory"])
    'npx'
    >>> launcher_of(["pipx", "run", "mcp-server-git"])
    'pipx run'
    >>> launcher_of(["python", "server.py"])"""
    words = _unwrapped(command)
    program = program_name(words[0])
    if program in _ALWAYS:
        return program
    for word in words[1:]:
        # Options may precede the subcommand, as in `docker --context remote run`.
        if word in _BY_SUBCOMMAND.get(program, ()):
            return f"{program} {word}"
    return None


def has_download_rollback(command: Sequence[str]) -> bool:
    """Return whether the program of a command rolls back a download when it gets SIGTERM.

    Only npm rolls back. If npm is killed instead, half of the package stays."""
    return (launcher_of(command) or "").partition(" ")[0] in ("npx", "npm")


def forwards_messages(command: Sequence[str]) -> bool:
    """Return whether the program of a command stands between Workbench and the server, and forwards the messages."""
    return program_name(_unwrapped(command)[0]) in _FORWARDING


def _unwrapped(command: Sequence[str]) -> Sequence[str]:
    """Return the words of a command. If the command starts a shell or `env`, return the words of the program in it."""
    if len(command) < 3:
        return command
    program, option, *words = command
    if program_name(program) == "cmd" and option.lower() == "/c":
        return _unwrapped(words)
    if program_name(program) in _SHELLS and option == "-c":
        try:
            words = shlex.split(words[0])
        except ValueError:
            return command
    elif program_name(program) == "env":
        words = [option, *words]
    else:
        return command
    for at, word in enumerate(words):
        if word != "exec" and not _ASSIGNMENT.match(word):
            return _unwrapped(words[at:])
    return command


def program_name(word: str) -> str:
    """Return the name of a program without its folder and its extension: `npx` for `C:\\nodejs\\npx.cmd`."""
    name = PurePath(word.replace("\\", "/")).name.lower()
    for ending in (".exe", ".cmd", ".bat"):
        name = name.removesuffix(ending)
    return name
