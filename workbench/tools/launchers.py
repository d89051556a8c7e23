"""Programs that download a server before they start it, such as `npx` and `uvx`."""

from __future__ import annotations

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

_FORWARDING = frozenset({"docker", "podman", "nerdctl", "kubectl", "ssh", "wsl"})


def launcher_of(command: Sequence[str]) -> str | None:
    """Return the name of the program in a command that may download the server first, `None` if there is none.

    >>> launcher_of(["npx", "-y", "@modelcontextprotocol/server-memory"])
    'npx'
    >>> launcher_of(["pipx", "run", "mcp-server-git"])
    'pipx run'
    >>> launcher_of(["python", "server.py"])
    """
    words = list(command)
    if len(words) > 2 and program_name(words[0]) == "cmd" and words[1].lower() == "/c":
        del words[:2]
    program = program_name(words[0])
    if program in _ALWAYS:
        return program
    for word in words[1:]:
        # The first words may be options: `docker --context remote run`.
        if word in _BY_SUBCOMMAND.get(program, ()):
            return f"{program} {word}"
    return None


def rolls_back(command: Sequence[str]) -> bool:
    """Return whether a command is npm's, which takes back a download that is ended, and leaves half of it if killed."""
    return (launcher_of(command) or "").partition(" ")[0] in ("npx", "npm")


def forwards(command: Sequence[str]) -> bool:
    """Return whether a command reads what is meant for the server, and passes it on later."""
    return program_name(command[0]) in _FORWARDING


def program_name(word: str) -> str:
    """Return the name of a program without its folder and its ending: `npx` for `C:\\nodejs\\npx.cmd`."""
    name = PurePath(word.replace("\\", "/")).name.lower()
    for ending in (".exe", ".cmd", ".bat"):
        name = name.removesuffix(ending)
    return name
