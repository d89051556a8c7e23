"""A read-only app runs, edits and writes nothing, whatever the input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.cli.suites import SLOW, WEATHER, WRONG
from tests.remote.served import browser, enter, served, visit

ROOT = Path(__file__).parents[2]
SERVER = """
[[servers]]
name = "shop"
command = ["python", "shop.py"]
"""


def below(folder: Path) -> dict[str, bytes]:
    """Return all files except logs and SQLite's temporary files."""
    return {
        str(file): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and "log" not in file.parent.name and not file.name.endswith(("-shm", "-wal"))
    }


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    program = Program(
        tmp_path_factory.mktemp("shown"), {"OPENAI_API_KEY": "sk-planted-0123456789", "WORKBENCH_KEY": "sk-planted-too"}
    )
    program.write(".env", "ANTHROPIC_API_KEY=sk-planted-9876543210\n")
    program.write("weather.toml", WEATHER + WRONG)
    program.write("shop.toml", WEATHER + SERVER)
    program.write("shop.py", "import pathlib; pathlib.Path('started').touch()\n")
    program.run("run", "weather.toml", "--history", "runs.db")
    return program


@pytest.mark.slow
def test_no_action_of_the_app_executes_edits_or_writes(program: Program) -> None:
    history = program.folder / "walked.db"
    both = ("--model", "offline,offline:gullible", "--repeats", "2", "--history", str(history))
    assert program.run("compare", "weather.toml", *both).returncode == 0
    assert program.run("run", "weather.toml", *both).returncode == 1
    before = below(program.folder)
    walked = subprocess.run(
        [sys.executable, "-m", "tests.remote.read_only_walk", str(history), str(program.folder)],
        cwd=ROOT,
        env=program.environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert walked.returncode == 0, walked.stderr + walked.stdout
    came_by = json.loads(walked.stdout)
    assert came_by["done"] == [] and came_by["dirty"] == []
    opened = {"audit", "breakpoints", "compare", "grades", "history", "timeline", "tools", "trajectory"}
    assert opened <= set(came_by["screens"])
    logged = "".join(log.read_text() for log in program.folder.rglob("workbench.log"))
    assert "refused, since" not in logged, logged
    assert below(program.folder) == before and not (program.folder / "started").exists()


ATTEMPTS = (
    "open('made', 'w')",
    "open('weather.toml', 'a')",
    "import os; os.open('made', os.O_CREAT)",
    "open('log/../made', 'w')",
    "pathlib.Path('made').mkdir()",
    "import os; os.remove('weather.toml')",
    "import os; os.rename('weather.toml', 'made')",
    "import subprocess; subprocess.run(['true'])",
    "import os; os.fork()",
    "import os; os.system('true')",
    "import socket; socket.create_connection(('127.0.0.1', 9))",
    "import socket; socket.socket().bind(('127.0.0.1', 0))",
    "import sqlite3; sqlite3.connect('runs.db')",
    "from workbench.history.database import open_for_writing; open_for_writing(pathlib.Path('runs.db'), print)",
    "from workbench.evaluation.runtime import Runtime; Runtime(print, None)",
    "import ctypes; ctypes.CDLL(None)",
    "import ctypes; ctypes.pythonapi.system(b'touch made')",
)


def test_what_gets_past_the_app_fails_at_the_call(program: Program) -> None:
    script = f"""
import pathlib
from workbench.config.read_only import ReadOnlyError, become_read_only
from workbench.history.records import HistoryError
become_read_only(pathlib.Path("log"))
from dateutil import parser  # imports ctypes: moments are compared in audits and comparisons
assert parser.parse("2026-03-02").year == 2026
for attempt in {ATTEMPTS!r}:
    try:
        exec(attempt)
    except (ReadOnlyError, HistoryError) as error:
        assert "read-only view" in str(error), error
    else:
        raise SystemExit(f"it was done: {{attempt}}")
"""
    before = below(program.folder)
    done = subprocess.run([sys.executable, "-c", script], cwd=program.folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert below(program.folder) == before


@pytest.mark.slow
async def test_a_visitor_who_only_looks_has_no_keys_and_sees_what_others_run(program: Program) -> None:
    before = {name: text for name, text in below(program.folder).items() if not name.endswith(".db")}
    with served(program, "weather.toml", "--read-only", "--history", "runs.db") as server:
        async with browser() as session:
            page = await enter(session, server)
            async with session.get(page) as response:
                assert "(read-only)" in await response.text()
            async with visit(session, server, page) as visitor:
                await visitor.until("weather.toml", "Right")
                (app,) = server.apps()
                variables = Path(f"/proc/{app}/environ").read_bytes()
                assert b"sk-planted" not in variables and b"PATH=" in variables
                await visitor.type("r")
                await visitor.until("This is a read-only view: nothing is run, edited or written here")
                await visitor.type("h")
                await visitor.until("#1")
                assert "#2" not in visitor.text
                assert program.run("run", "weather.toml", "--history", "runs.db").returncode == 1
                await visitor.type("\x1b[15~")  # F5 reads again
                await visitor.until("#2")
    assert {name: text for name, text in below(program.folder).items() if not name.endswith(".db")} == before


@pytest.mark.slow
async def test_a_visitor_watches_a_batch_that_goes_on_and_cannot_stop_it(program: Program) -> None:
    program.write("slow.toml", WEATHER + SLOW)
    words = ("slow.toml", "--history", "watched.db")
    assert program.run("run", *words, "--detach").returncode == 0
    with served(program, *words, "--read-only", "--attach", "1") as server:
        async with browser() as session, visit(session, server, await enter(session, server)) as visitor:
            await visitor.until("Right", "Slow", "1.00")
            await visitor.type("X")
            await visitor.until("This is a read-only view")
            assert "running" in program.run("batches", "--history", "watched.db").stdout
            assert program.run("batches", "--stop", "1", "--history", "watched.db").returncode == 0
            await visitor.until("stopped")


def test_no_suite_with_a_secret_in_it_is_shown(tmp_path: Path) -> None:
    program = Program(tmp_path, {"CITY_TOKEN": "sk-planted-0123456789"})
    program.write(".env", "DB_PASSWORD=planted-horse-9\n")
    program.write("named.toml", WEATHER + "# $CITY_TOKEN\n")
    program.write("prompt.toml", WEATHER.replace("in Oslo?", "in Oslo? sk-planted-\\u0030123456789"))
    header = (
        '\n[[servers]]\nname = "far"\nurl = "http://a.example"\nheaders = { Authorization = "Bearer own-secret-1" }\n'
    )
    program.write("header.toml", WEATHER + header)
    assert program.run("run", "named.toml", "--record", "taken", "--history", "runs.db").returncode == 0
    program.write("comment.toml", f"# planted-horse-9\n{WEATHER}")
    (recording,) = (tmp_path / "taken").iterdir()
    recording.write_text(recording.read_text().replace("Rain", "planted-horse-9", 1))
    done = program.run("serve", "--read-only", ".", str(recording))
    assert done.returncode == 2 and "planted" not in done.stderr and "own-secret" not in done.stderr
    *said, last = done.stderr.splitlines()
    assert last == "visitors would see secrets in 4 places, so nothing is served", done.stderr
    assert [line.split("/")[-1].split(" holds a secret: ")[0] for line in said[:3]] == [
        "comment.toml:1",
        "header.toml:31 (servers[0].headers.Authorization)",
        "prompt.toml:22 (cases[0].user)",
    ]
    assert "write ${DB_PASSWORD} in its place" in said[0] and "write ${CITY_TOKEN} in its place" in said[2]
    assert recording.name in said[3]
    program.write("named.toml", (tmp_path / "prompt.toml").read_text())
    done = program.run("serve", "--read-only", "--attach", "1", "--history", "runs.db")
    assert done.returncode == 2 and "named.toml:22 (cases[0].user)" in done.stderr, done.stderr
    done = program.run("serve", "--attach", "7", "--history", "runs.db")
    assert done.returncode == 2 and "7" in done.stderr, done.stderr
