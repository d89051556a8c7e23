"""Nothing fails for being slow: how fast something is, is measured in `benchmarks/`. What properties are tested with is
drawn anew every time, but in CI, where the same tree always gets the same answer; `--hypothesis-profile=thorough` tries
ten times as much, and also the constants of the sources."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

settings.register_profile(
    "thorough", derandomize="CI" in os.environ, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("ordinary", settings.get_profile("thorough"), max_examples=10)
settings.load_profile("ordinary")

# A shell starts what is behind `&` with these ignored, which every program that a test starts would inherit.
for number in (signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)

# By default nothing is drawn from the constants of the sources: each worker would parse the whole program for them.
_constants_of_sources = providers._get_local_constants


def _constants() -> Constants:
    thorough = settings.get_current_profile_name() == "thorough"
    return _constants_of_sources() if thorough else providers._local_constants


providers._get_local_constants = _constants

# Without bytecode, each worker would rewrite the asserts of every test file in every run: most of a collection.
sys.dont_write_bytecode = False

# Almost everything that is made while tests are collected stays: looking for garbage among it finds none.
gc.disable()


def pytest_configure(config: pytest.Config) -> None:
    """In a tree whose tests never ran, has each test file compiled once, before several workers all compile all."""
    here = Path(__file__).parent
    if not config.getoption("numprocesses", None) or hasattr(config, "workerinput") or any(here.rglob("test_*.pyc")):
        return
    files = sorted(here.rglob("test_*.py"), key=lambda file: file.stat().st_size)
    collect = [sys.executable, "-m", "pytest", "-n", "0", "--collect-only", "-q", "-p", "no:cacheprovider"]
    shares = [files[first :: os.cpu_count()] for first in range(os.cpu_count() or 1)]
    # The table of characters is kept on the disk: each process would make it otherwise, which takes a second.
    characters = [sys.executable, "-c", "from hypothesis.strategies import text; text().validate()"]
    commands = [characters, *([*collect, *map(str, share)] for share in shares)]
    compiling = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for command in commands]
    for process in compiling:
        process.wait()  # what cannot be collected, the workers say


def pytest_collection_finish() -> None:
    """Thousands of tests stay in memory to the end. Looking through them for garbage again and again, as a program of
    that size does while an app draws, took a third of the processor time: they are left aside, and the rest is looked
    through less often."""
    gc.freeze()
    gc.enable()
    gc.set_threshold(200_000, 10, 10)
