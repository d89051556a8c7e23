"""Set-up of all tests.

No test fails for being slow: speed is measured in `benchmarks/`. The examples of property tests are new in each run,
except in CI, where the same tree always gets the same result. `--hypothesis-profile=thorough` tries a hundred examples
instead of six, and constants from the sources."""

from __future__ import annotations

import gc
import itertools
import os
import re
import shlex
import signal
import struct
import sys
import warnings
from collections.abc import Callable, Iterable
from compileall import compile_file
from contextlib import suppress
from functools import partial
from importlib.util import cache_from_source, source_hash
from pathlib import Path

import pytest
from _pytest.assertion import rewrite
from _pytest.runner import runtestprotocol
from execnet import XSpec
from hypothesis import HealthCheck, settings
from hypothesis.internal import charmap
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

from tests.cli.forking import WORKER, forked_command

settings.register_profile(
    "thorough", derandomize="CI" in os.environ, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("ordinary", settings.get_profile("thorough"), max_examples=6)
settings.load_profile("ordinary")

# A shell starts commands before `&` with these signals ignored, and every program of a test would inherit that.
for number in (signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)

# By default, no examples use constants of the sources, because each worker would parse the whole program for them.
_constants_of_sources = providers._get_local_constants


def _constants() -> Constants:
    thorough = settings.get_current_profile_name() == "thorough"
    return _constants_of_sources() if thorough else providers._local_constants


providers._get_local_constants = _constants

# Without bytecode, each worker would rewrite the asserts of every test file, which is most of a collection.
sys.dont_write_bytecode = False

_numbers = itertools.count()

# Almost all objects made during collection stay, so the garbage collector would find nothing.
gc.disable()


def pytest_configure(config: pytest.Config) -> None:
    """Compile new and changed files once, before several workers compile each of them."""
    here = Path(__file__).parent
    if not config.getoption("numprocesses", None) or hasattr(config, "workerinput"):
        return
    sources = [*here.rglob("*.py"), *(here.parent / "workbench").rglob("*.py")]
    files = sorted(filter(_is_to_be_compiled, sources), key=lambda file: file.stat().st_size)
    if not files:
        return
    shares = [files[first :: os.cpu_count()] for first in range(os.cpu_count() or 1)]
    # Tables of characters are stored on disk. Otherwise each process would compute them, which takes two seconds.
    works: list[Callable[[], object]] = [_make_characters, *(partial(_compile, share, config) for share in shares)]
    for process in [_forked(work) for work in works]:
        os.waitpid(process, 0)  # what cannot be compiled, the workers say


def pytest_xdist_setupnodes(specs: list[XSpec]) -> None:
    """Fork the workers from a process that has imported the program. The import was a third of their collection."""
    for spec in specs:
        spec.python = shlex.join(forked_command(WORKER))


def _is_to_be_compiled(file: Path) -> bool:
    is_test = file.name.startswith("test_")
    compiled = _bytecode_of_test(file) if is_test else Path(cache_from_source(str(file)))
    try:
        with compiled.open("rb") as opened:
            header = opened.read(16)
    except OSError:
        return True
    if is_test:
        return header[8:] != source_hash(file.read_bytes())[:8]
    now = file.stat()
    return header[8:] != struct.pack("<LL", int(now.st_mtime) & 0xFFFFFFFF, now.st_size & 0xFFFFFFFF)


def _bytecode_of_test(file: Path) -> Path:
    return rewrite.get_cache_dir(file) / f"{file.stem}{rewrite.PYC_TAIL}"


def _compile(files: Iterable[Path], config: pytest.Config) -> None:
    """Write the bytecode of each file. The asserts of tests are rewritten as pytest does."""
    state = config.stash[rewrite.assertstate_key]
    for file in files:
        with suppress(SyntaxError):
            if not file.name.startswith("test_") or state.hook is None:
                compile_file(file, quiet=2)
                continue
            compiled = _bytecode_of_test(file)
            compiled.parent.mkdir(exist_ok=True)
            digest, code = rewrite._rewrite_test(file, config)
            rewrite._write_pyc(state, code, digest, compiled)


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Module | pytest.Class, name: str, obj: object) -> list[object] | None:
    """Skip what is not a test, and slow tests if the command line deselects them all."""
    if not name.startswith(("test", "Test")):
        return []
    is_slow = collector.config.option.markexpr == "not slow" and any(
        mark.name == "slow" for mark in getattr(obj, "pytestmark", ())
    )
    return [] if is_slow else None


def _make_characters() -> None:
    with warnings.catch_warnings(action="ignore"):  # that it is slow while plugins are configured
        charmap.charmap()
        charmap.intervals_from_codec("utf-8")


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for the test. pytest's own fixture searches the folders of all earlier tests for a free
    number."""
    name = re.sub(r"\W", "_", request.node.name)[:30]
    path = tmp_path_factory.getbasetemp() / f"{name}_{next(_numbers)}"
    path.mkdir(0o700)
    return path


def _forked(work: Callable[[], object]) -> int:
    process = os.fork()
    if process == 0:
        try:
            work()
        finally:
            os._exit(0)
    return process


def pytest_collection_finish() -> None:
    """Exclude the collected tests from garbage collection.

    Thousands of tests stay in memory to the end. Searching them for garbage took a third of the CPU time."""
    gc.freeze()
    gc.enable()
    gc.set_threshold(200_000, 10, 10)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """In a worker, send only the reports that the controller shows.

    Each test sends five messages. With thousands of tests of a few milliseconds, they took a tenth of the CPU time."""
    if not hasattr(item.config, "workerinput"):
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True
