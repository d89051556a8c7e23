"""Sessions of pytest with the plugin, each in its own process."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple

from _pytest.config import default_plugins

from tests.cli.forking import ForkedProgram
from tests.cli.program import _nothing


@functools.cache
def _modules_of_pytest() -> list[str]:
    """Return the modules of pytest and its installed plugins, except the plugin under test."""
    installed = [each.module for each in entry_points(group="pytest11") if each.name != "workbench"]
    return ["pytest", "hypothesis", *(f"_pytest.{name}" for name in default_plugins), *installed]


class Session(NamedTuple):
    """The outcome of a session of pytest."""

    code: int
    output: str

    @property
    def outcomes(self) -> dict[str, int]:
        """Return the counts in the last line, by pytest's words."""
        return {
            word.rstrip("s"): int(count) for count, word in re.findall(r"(\d+) (\w+)", self.output.splitlines()[-1])
        }


def session(
    folder: Path, *arguments: str, environment: Mapping[str, str] | None = None, starts: bool = False
) -> Session:
    """Run pytest in a folder, in a process that has already imported it. With `starts`, run it in a new process."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    homes = {f"XDG_{kind}_HOME": str(folder / ".home") for kind in ("STATE", "CONFIG", "DATA", "CACHE")}
    words, variables = ["-W", "ignore", "--color=no", *arguments], {**own, **homes, **(environment or {})}
    with TemporaryFile("w+", encoding="utf-8") as output:
        streams = [_nothing(), output.fileno(), output.fileno()]
        if starts:
            command = [sys.executable, "-m", "pytest", *words]
            code = subprocess.run(
                command, cwd=folder, env=variables, stdout=output, stderr=subprocess.STDOUT, timeout=120
            ).returncode
        else:
            run = "pytest:console_main"
            code = ForkedProgram(words, streams, folder, variables, run=run, needs=_modules_of_pytest()).wait(120)
        output.seek(0)
        return Session(code, output.read())
