"""docs/first-steps.md, followed to the letter: its commands in a real shell, its keys in a real terminal."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.tui.terminal import Terminal
from workbench.config.resources import bundled

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "first-steps.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
KEYS = {"Enter": "\r", "Esc": "\x1b", "Ctrl+End": "\x1b[1;5F", "Ctrl+S": "\x13", "Ctrl+Z": "\x1a"}
INSTALLS = "python3 -m venv .venv && .venv/bin/pip install -e . && "

AFTER_ESC_S = 0.25
"""Silence after Esc: what comes sooner would be one key with it."""

MINUTES = 5
WORDS_A_MINUTE = 220
"""What a calm reader reads."""
CHARACTERS_A_MINUTE = 150
"""What a slow typist types; a pasted block is one."""


class Block(NamedTuple):
    """A box of the page: `kind` says what it is."""

    kind: str
    text: str


BLOCKS = [Block(kind, text.strip("\n")) for kind, text in FENCE.findall(PAGE)][1:]
"""All but the first, which shows what such a box looks like."""


def pressed(box: str) -> list[str]:
    """What a box of keys sends."""
    return [KEYS.get(part, part) for part in re.split(r" {2,}|\n", box)]


def plain(text: str) -> str:
    return " ".join(text.split())


def is_seen(line: str, terminal: Terminal) -> bool:
    """Whether a line of the page stands on the screen, however wide its gaps are."""
    return any(plain(line) in plain(shown) for shown in terminal.screen.splitlines())


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone as it is after the installation."""
    shutil.copytree(bundled("sample_suites"), tmp_path / "sample_suites")
    program = tmp_path / ".venv" / "bin" / "workbench"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m workbench "$@"\n')
    program.chmod(0o755)
    return tmp_path


def test_what_the_page_says_is_what_one_sees(clone: Path) -> None:
    shell = {"PS1": "$ ", "XDG_CONFIG_HOME": str(clone / ".config")}
    with Terminal([], clone, columns=80, rows=24, folder=clone, environment=shell, program=("sh",)) as terminal:
        for kind, text in BLOCKS:
            match kind:
                case "sh":
                    terminal.wait_for(lambda: terminal.output.endswith(b"$ "))
                    terminal.wipe()
                    terminal.send(text.removeprefix(INSTALLS) + "\n")
                case "keys":
                    for keys in pressed(text):
                        terminal.send(keys)
                        terminal.quiet(AFTER_ESC_S if keys == KEYS["Esc"] else 0)
                case "toml":
                    terminal.send(f"\x1b[200~{text}\x1b[201~")
                    terminal.wait_for(text.splitlines()[-1].split()[0])
                case "screen":
                    for line in text.splitlines():
                        terminal.wait_for(lambda line=line: is_seen(line, terminal))  # type: ignore[misc]
                case _:
                    raise AssertionError(f"no such box: {kind}")
    assert 'args = { room = "kitchen", state = "on" }' in (clone / "lights" / "lights.toml").read_text()


def test_the_page_starts_as_the_readme_does() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"<!-- start command -->\n```sh\n{BLOCKS[0].text}\n```" in readme
    assert BLOCKS[0].text.startswith(INSTALLS)
    assert "(docs/first-steps.md)" in readme


def test_five_minutes_are_enough() -> None:
    words = len(FENCE.sub("", PAGE).split())
    typed = sum(len(keys) for kind, text in BLOCKS if kind in ("keys", "sh") for keys in pressed(text))
    assert words / WORDS_A_MINUTE + typed / CHARACTERS_A_MINUTE < MINUTES
