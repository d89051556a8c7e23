"""Follows the instructions of pages in `docs/` to the letter: commands in a real shell, keys in a real terminal.

The kinds of boxes: `sh` is a command, `keys` are keys to press in turn, `toml` is text to paste, and `screen` are
visible lines."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tests.tui.in_terminal import Terminal
from workbench.config.folders import bundled

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
KEYS = {
    "Enter": "\r",
    "Esc": "\x1b",
    "Up": "\x1b[A",
    "Down": "\x1b[B",
    "Left": "\x1b[D",
    "Right": "\x1b[C",
    "Home": "\x1b[H",
    "End": "\x1b[F",
    "Ctrl+End": "\x1b[1;5F",
    "Ctrl+K": "\x0b",
    "Ctrl+S": "\x13",
    "Ctrl+Z": "\x1a",
}
AFTER_ESC_S = 0.25
"""A silence after Esc, in seconds. A character that follows sooner could form one key with it."""


class Block(NamedTuple):
    """A box of the page and its kind."""

    kind: str
    text: str


def page(name: str) -> str:
    """Return the text of a page."""
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def blocks_of(text: str) -> list[Block]:
    """Return the boxes of a page or of a part of one."""
    return [Block(kind, content.strip("\n")) for kind, content in FENCE.findall(text)]


def pressed(box: str) -> list[str]:
    """Return the characters that a box of keys sends."""
    return [KEYS.get(part, part) for part in re.split(r" {2,}|\n", box)]


def clone_in(folder: Path) -> Path:
    """Make a clone of the repository as it is after the installation. Its only files are samples and TOML."""
    shutil.copytree(ROOT, folder, ignore=_all_but_toml, dirs_exist_ok=True)
    shutil.copytree(bundled("sample_suites"), folder / "sample_suites", dirs_exist_ok=True)
    program = folder / ".venv" / "bin" / "workbench"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m workbench "$@"\n')
    program.chmod(0o755)
    return folder


def _all_but_toml(folder: str, names: list[str]) -> list[str]:
    whole = [name for name in names if name.endswith(".toml") or Path(folder, name).is_dir()]
    return [name for name in names if name not in whole or name.startswith((".", "__"))]


def shell_in(clone: Path, *, columns: int = 80, rows: int = 24) -> Terminal:
    """Start a shell in that clone. It finds `workbench` as after `. .venv/bin/activate`."""
    path = f"{clone / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    shell = {"PS1": "$ ", "XDG_CONFIG_HOME": str(clone / ".config"), "PATH": path}
    return Terminal([], clone, columns=columns, rows=rows, folder=clone, environment=shell, program=("sh",))


def follow(blocks: Iterable[Block], terminal: Terminal) -> None:
    """Do in a shell what the boxes say. Raises AssertionError if the screen lacks a line that they show."""
    read = 0
    for kind, text in blocks:
        match kind:
            case "sh":
                terminal.wait_for_more(than=read)
                terminal.wait_for(lambda: terminal.output.endswith(b"$ "))
                terminal.wipe()
                read = len(terminal.output)
                terminal.send(text + "\n")
            case "keys":
                for keys in pressed(text):
                    before = len(terminal.output)
                    terminal.send(keys)
                    if keys == KEYS["Esc"]:  # what comes before it was seen to do something would be one key with it
                        terminal.wait_for_more(than=before)
                    terminal.quiet(AFTER_ESC_S if keys == KEYS["Esc"] else 0)
            case "toml":
                terminal.send(f"\x1b[200~{text}\x1b[201~")
                terminal.wait_for(text.splitlines()[-1].split()[0])
            case "screen":
                for line in text.splitlines():
                    terminal.wait_for(lambda line=line: _is_seen(line, terminal))  # type: ignore[misc]
            case _:
                raise AssertionError(f"no such box: {kind}")


def _is_seen(line: str, terminal: Terminal) -> bool:
    """Return whether a line of the page is on the screen, with gaps of any width."""
    return any(_plain(line) in _plain(shown) for shown in terminal.screen.splitlines())


def _plain(text: str) -> str:
    return " ".join(text.split())
