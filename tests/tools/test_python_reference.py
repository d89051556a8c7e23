"""Functions in a suite's folder: which are loaded, when they are reloaded, and which are refused."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import py_compile
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.programs import functions_in
from workbench.tools.answer import PythonReferenceError, UntrustedError
from workbench.tools.python_code import PythonFunctions, in_thread

MODULES = ("mocks", "parts.mocks", "rules", "os.path", "absent_module", "broken", "leaves", "beside", "fine")


def functions_of(folder: Path) -> PythonFunctions:
    """The functions of all modules that these tests name, approved as they are now."""
    return functions_in(folder, *MODULES)


def suite_folder(parent: Path, name: str, **files: str) -> Path:
    folder = parent / name
    folder.mkdir()
    for module, source in files.items():
        (folder / f"{module}.py").write_text(source)
    return folder


def test_two_suites_may_each_have_a_module_of_one_name(tmp_path: Path) -> None:
    first = functions_of(suite_folder(tmp_path, "first", mocks="def name(): return 'first'"))
    second = functions_of(suite_folder(tmp_path, "second", mocks="def name(): return 'second'"))
    assert [first.function("mocks:name")(), second.function("mocks:name")()] == ["first", "second"]
    assert "mocks" not in sys.modules


def test_a_module_keeps_its_state_and_is_what_was_approved_whatever_becomes_of_its_file(tmp_path: Path) -> None:
    counting = "seen = []\ndef count():\n    seen.append(1)\n    return len(seen)\n"
    folder = suite_folder(tmp_path, "suite", mocks=counting)
    functions = functions_of(folder)
    assert functions.function("mocks:count")() == 1
    (folder / "mocks.py").write_text(counting.replace("len(seen)", "len(seen) * 100"))
    assert functions.function("mocks:count")() == 2
    assert functions_of(folder).function("mocks:count")() == 100


ANSWER = "def answer(): return 'approved'"
OTHER = "import pathlib\npathlib.Path(__file__).with_name('ran').touch()\nNAME = 'other'\ndef answer(): return NAME"


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "mocks.py").write_text(OTHER),
        lambda folder: (folder / "helper.py").write_text(OTHER),
        lambda folder: (folder / "parts" / "__init__.py").write_text(OTHER),
        lambda folder: (folder / "parts" / "deep.py").write_text(OTHER),
        lambda folder: (folder / "parts" / "deep.py").unlink(),
        lambda folder: suite_folder(folder, "helper", __init__=OTHER),  # a package goes before a module
        lambda folder: suite_folder(folder, "mocks", __init__=OTHER),
        lambda folder: (folder / "maybe.py").write_text(OTHER),
    ],
)
def test_code_that_changed_after_it_was_approved_is_not_imported(
    tmp_path: Path, change: Callable[[Path], object]
) -> None:
    source = (
        "from .helper import NAME\nfrom .parts.deep import NAME as DEEP\n"
        "try:\n    from . import maybe\nexcept ImportError:\n    pass\n"
        "def answer(): return NAME + DEEP\n"
    )
    folder = suite_folder(tmp_path, "suite", mocks=source, helper="NAME = 'a'")
    suite_folder(folder, "parts", __init__="", deep="NAME = 'b'")
    functions = functions_of(folder)
    change(folder)
    with pytest.raises(PythonReferenceError, match=r"^mocks:answer cannot be loaded: the module .* has changed since"):
        functions.function("mocks:answer")
    assert not [*folder.rglob("ran")]


def test_neither_a_compiled_file_nor_a_file_of_that_name_stands_in_for_what_was_approved(tmp_path: Path) -> None:
    folder = suite_folder(tmp_path, "suite", mocks=ANSWER)
    functions = functions_of(folder)
    cached = Path(importlib.util.cache_from_source(str(folder / "mocks.py")))
    (tmp_path / "other.py").write_text(OTHER)
    cached.parent.mkdir()
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(tmp_path / "other.py"), str(cached), invalidation_mode=unchecked)
    (folder / "os").mkdir()
    (folder / "os" / "path.py").write_text(OTHER)
    assert functions.function("mocks:answer")() == "approved"
    assert functions.function("os.path:basename")("a/b") == "b"


def test_an_installed_module_is_the_one_that_was_approved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = suite_folder(tmp_path, "suite")
    installed = suite_folder(tmp_path, "installed", approved_elsewhere=ANSWER)
    monkeypatch.syspath_prepend(installed)
    functions = functions_in(folder, "approved_elsewhere")
    (installed / "approved_elsewhere.py").write_text(OTHER)
    with pytest.raises(PythonReferenceError, match="has changed since it was approved"):
        functions.function("approved_elsewhere:answer")
    assert functions_in(folder, "approved_elsewhere").function("approved_elsewhere:answer")() == "other"


def test_a_module_may_lie_in_a_package_and_import_its_neighbours(tmp_path: Path) -> None:
    folder = suite_folder(tmp_path, "suite", helper="NAME = 'neighbour'")
    suite_folder(folder, "parts", __init__="", mocks="from ..helper import NAME\ndef name(): return NAME")
    assert functions_of(folder).function("parts.mocks:name")() == "neighbour"


def test_dataclasses_with_written_annotations_work_in_a_suites_module(tmp_path: Path) -> None:
    source = (
        "from __future__ import annotations\nfrom dataclasses import asdict, dataclass\n"
        "@dataclass\nclass City:\n    name: str\ndef city(): return asdict(City('Oslo'))\n"
    )
    folder = suite_folder(tmp_path, "suite", mocks=source)
    assert functions_of(folder).function("mocks:city")() == {"name": "Oslo"}


def test_a_module_that_is_not_in_the_folder_is_imported_as_usual(tmp_path: Path) -> None:
    assert functions_of(tmp_path).function("os.path:basename")("a/b") == "b"


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("absent_module:run", "ModuleNotFoundError: No module named 'absent_module'"),
        ("broken:run", "SyntaxError: "),
        ("leaves:run", "SystemExit: 2"),
        ("beside:run", "No module named 'fine'; write `from . import fine` for the file beside it"),
        ("fine:absent", "fine has no function 'absent'"),
        ("fine:NUMBER", "fine has no function 'NUMBER'"),
        ("fine:later", "must be a plain function, not an async one"),
    ],
)
def test_what_cannot_be_loaded_is_named_with_its_reason(tmp_path: Path, reference: str, reason: str) -> None:
    folder = suite_folder(
        tmp_path,
        "suite",
        broken="def run(:",
        leaves="raise SystemExit(2)",
        beside="import fine",
        fine="NUMBER = 5\nasync def later(value): return True",
    )
    with pytest.raises(PythonReferenceError) as caught:
        functions_of(folder).function(reference)
    assert str(caught.value).startswith(reference)
    assert reason in str(caught.value)


def test_nothing_is_imported_without_trust(tmp_path: Path) -> None:
    folder = suite_folder(tmp_path, "suite", mocks="import pathlib\npathlib.Path(__file__).with_name('ran').touch()")
    with pytest.raises(UntrustedError, match="mocks:run is not run: it is Python code of an untrusted suite"):
        PythonFunctions(None).function("mocks:run")
    assert not (folder / "ran").exists()


def test_a_check_function_says_yes_or_no(tmp_path: Path) -> None:
    source = "import sys\ndef is_even(value): return value % 2 == 0\ndef leave(value): sys.exit(1)"
    functions = functions_of(suite_folder(tmp_path, "suite", rules=source))
    assert functions.answer("rules:is_even", 4) is True
    assert functions.answer("rules:is_even", 5) is False
    with pytest.raises(PythonReferenceError, match="rules:leave tried to end the program"):
        functions.answer("rules:leave", 1)


async def test_a_function_runs_beside_the_event_loop() -> None:
    assert await in_thread(threading.get_ident) != threading.get_ident()
    with pytest.raises(ZeroDivisionError):
        await in_thread(lambda: 1 // 0)


async def test_a_function_that_blocks_can_be_given_up() -> None:
    running, release = threading.Event(), threading.Event()

    def block() -> None:
        running.set()
        release.wait()

    waiting = asyncio.create_task(in_thread(block))
    await asyncio.to_thread(running.wait)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    release.set()


async def test_a_run_that_gives_up_while_its_module_loads_waits_for_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    folder = suite_folder(tmp_path, "suite", mocks=f"open({str(gate)!r}).read()\ndef answer(): return 1")
    before = {name for name in sys.modules if name.startswith("_workbench_suite")}
    functions = functions_of(folder).for_run(["mocks"])
    loading = asyncio.create_task(asyncio.to_thread(functions.function, "mocks:answer"))
    # Opened for writing as soon as the module, which is still loading, reads.
    with await asyncio.to_thread(gate.open, "w"):
        functions.forget()
    await loading
    assert {name for name in sys.modules if name.startswith("_workbench_suite")} == before


def test_a_module_that_cannot_be_loaded_leaves_nothing(tmp_path: Path) -> None:
    before = {name for name in sys.modules if name.startswith("_workbench_suite")}
    functions = functions_of(suite_folder(tmp_path, "suite", broken="1 / 0"))
    with pytest.raises(PythonReferenceError, match="division by zero"):
        functions.function("broken:answer")
    assert {name for name in sys.modules if name.startswith("_workbench_suite")} == before


@pytest.mark.slow
def test_a_function_that_never_returns_does_not_keep_the_program_alive(tmp_path: Path) -> None:
    program = """
import asyncio, threading
from workbench.tools.python_code import in_thread
async def main():
    try:
        await asyncio.wait_for(in_thread(threading.Event().wait), 0.05)
    except TimeoutError:
        print("given up")
asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
        cwd=tmp_path,
    )
    assert (done.stdout, done.stderr) == ("given up\n", "")
