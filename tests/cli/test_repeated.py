"""Programs of tests share a process only as long as none of them leaves anything in it."""

from __future__ import annotations

import pytest

from tests.cli import repeated
from tests.cli.program import Program
from tests.cli.suites import WEATHER

LEAVES_NOTHING = "def answers(arguments):\n    return 'rain'\n"
RUN = ("run", "weather.toml", "--trust", "--quiet")


def process_after(program: Program, python: str) -> repeated._Process | None:
    """The process that a program leaves to the next one, of a suite whose tool is answered by Python."""
    program.write("mine.py", python)
    program.write("weather.toml", WEATHER.replace('result = "Rain in {city}"', 'python = "mine:answers"'))
    done = program.run(*RUN)
    assert done.returncode == 0, done.stderr
    idle = repeated._idle()
    return idle[-1] if idle else None


def test_a_program_that_leaves_nothing_is_followed_by_the_next_in_its_process(program: Program) -> None:
    first = process_after(program, LEAVES_NOTHING)
    assert first is not None and process_after(program, LEAVES_NOTHING) is first


@pytest.mark.parametrize(
    "leaves",
    [
        "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n",
        "import os\nopened = os.open('mine.py', os.O_RDONLY)\n",
        "import subprocess\nprogram = subprocess.Popen(['sleep', '0.2'])\n",
        "import sys, types\nsys.modules['left'] = types.ModuleType('left')\nsys.modules['left'].__file__ = 'left.py'\n",
    ],
    ids=["a thread", "a file", "a child", "a module"],
)
def test_a_program_that_leaves_something_takes_its_process_with_it(program: Program, leaves: str) -> None:
    before = process_after(program, LEAVES_NOTHING)
    after = process_after(program, leaves + LEAVES_NOTHING)
    assert before is not None and after is not before


def test_neither_folder_nor_variables_nor_streams_are_those_of_the_program_before(
    program: Program, tmp_path_factory: pytest.TempPathFactory
) -> None:
    program.write("weather.toml", WEATHER)
    assert program.run("validate", "weather.toml").returncode == 0
    other = Program(tmp_path_factory.mktemp("other"), {"NO_COLOR": "1"})
    lacking = other.run("validate", "weather.toml")
    assert lacking.returncode == 2 and "no such file" in lacking.stderr
    assert program.run("validate", "weather.toml").returncode == 0
