"""The real program, run as a user runs it, with folders of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.cli.forking import run_forked

COMMAND = [sys.executable, "-m", "workbench"]
_FOLDERS = {"XDG_STATE_HOME": "state", "XDG_CONFIG_HOME": "config", "XDG_DATA_HOME": "data"}


@dataclass(frozen=True)
class Program:
    """The program in a folder; its state, logs and settings stay below it. `variables` complete its environment."""

    folder: Path
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "SYSTEMROOT") if name in os.environ}
        own = {name: str(self.folder / folder) for name, folder in _FOLDERS.items()}
        return kept | own | {"TERM": "xterm-256color", "PYTHONUTF8": "1"} | dict(self.variables)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run to the end, without a terminal."""
        return run_forked(words, self.folder, self.environment, timeout_s=60)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start and return at once."""
        return subprocess.Popen(
            [*COMMAND, *words],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )

    def write(self, name: str, text: str) -> Path:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file


def read_until(running: subprocess.Popen[str], text: str) -> str:
    """What a program prints up to the line with `text`; raises AssertionError when it ends before that."""
    assert running.stdout is not None
    said = ""
    while text not in said:
        line = running.stdout.readline()
        assert line, f"the program ended before it said {text!r}: {said}"
        said += line
    return said
