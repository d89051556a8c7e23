"""Ctrl+C during the start of a command ends it with exit code 130 and without a message."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.sampled_rows import first_of
from tests.samples import SAMPLES

ROOT = Path(__file__).parents[2]
SCRIPT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]["workbench"]
MODULE, _, FUNCTION = SCRIPT.partition(":")

ENTRIES = {
    "workbench": f"from {MODULE} import {FUNCTION}; sys.exit({FUNCTION}())",
    "python -m workbench": "import runpy; runpy.run_module('workbench', run_name='__main__', alter_sys=True)",
}

INTERRUPTED = """
import os, signal, sys
at = sys.argv[1]
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == at:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
sys.argv[:] = ["workbench", *sys.argv[2:]]
"""
"""Sends the process SIGINT when it imports a module."""


def ran(program: Program, code: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python code to its end in its own process."""
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=program.folder,
        env=program.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize(
    "at",
    first_of(
        [
            "workbench.cli",  # the first of what takes long
            "argparse",
            "workbench.cli.parser",
            "workbench.cli.models",  # the command is known
            "datetime",  # imported by the core of pydantic, which panics when that fails
            "workbench.cli.redaction",  # the command has begun
            "workbench.evaluation.model_list",
            "workbench.config.model_book",
        ],
        3,
    ),
)
def test_an_interrupted_start_is_silent(program: Program, entry: str, at: str) -> None:
    done = ran(program, INTERRUPTED + ENTRIES[entry], at, "models")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.slow
def test_an_interrupt_at_the_very_end_is_silent(program: Program) -> None:
    at_exit = "import atexit, os, signal; atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT)); import sys\n"
    done = ran(program, f"{at_exit}sys.argv[:] = ['workbench', 'models']\n{ENTRIES['workbench']}")
    assert (done.returncode, done.stderr) == (130, "")
    assert "offline" in done.stdout


@pytest.mark.slow
def test_an_interrupt_that_the_caller_ignores_stays_ignored(program: Program) -> None:
    sample = SAMPLES / "generic_tool.toml"
    ignoring = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n{INTERRUPTED}"
    done = ran(program, ignoring + ENTRIES["workbench"], "workbench.cli.redaction", "validate", str(sample))
    assert (done.returncode, done.stderr) == (0, "")
