"""Batches without a terminal (`--detach`, `workbench attach`, `workbench batches`) with real processes and
terminals."""

from __future__ import annotations

import json
import os
import re
import select
import shlex
import signal
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Program, read_until, wait_until
from tests.cli.suites import WEATHER, WRONG
from tests.providers.server import Answer, Call, Request, Server, Signal, said
from tests.remote.batches import ToldBatch
from tests.schemas import fits
from tests.tui.apps import conversation
from workbench.config.folders import APP_NAME, Folders
from workbench.engine.plan import PlannedRun
from workbench.remote.records import DetachedBatch, encode_message, is_running, record_file, records
from workbench.remote.viewer import Connection
from workbench.tools.watched_start import MARK, kill_marked_processes
from workbench.trajectory.events import EventPayload, ResultReceived

MODEL = """
[models.held]
provider = "openai"
model = "m"
base_url = "{url}/v1"
"""
WORDS = ("run", "weather.toml", "--trust", "--model", "held", "--concurrency", "1")
TIMES = ("_ms", "_at", "minute", "percentile")


def folders_of(program: Program) -> Folders:
    folder = program.folder
    return Folders(*(folder / name / APP_NAME for name in ("state", "log", "config", "data")))


def answering(gate: Signal) -> Any:
    """Answer the first request of a run with a call. The answer after its result waits for the gate."""

    def answer(request: Request) -> Answer:
        if len(request.json["messages"]) == 1:
            return said("openai", calls=[Call("get_weather", {"city": "Oslo"})])
        done = said("openai", text="It rains.")
        return Answer((gate, *done.pieces))

    return answer


def timeless(value: Any) -> Any:
    """A JSON report without times and numbers of batches."""
    if isinstance(value, dict):
        kept = {key: each for key, each in value.items() if not key.endswith(TIMES) and key not in ("batch", "timing")}
        return {key: timeless(each) for key, each in kept.items()}
    return [timeless(each) for each in value] if isinstance(value, list) else value


def both(planned: PlannedRun) -> Sequence[EventPayload]:
    """The events of both runs."""
    return conversation(planned, [("get_weather", {"city": "Oslo"})], "It rains.")


def only(program: Program) -> DetachedBatch:
    (known,) = records(folders_of(program))
    return known


@pytest.mark.slow
def test_nothing_is_lost_when_the_terminal_goes_and_whatever_viewers_do(program: Program) -> None:
    gate = Signal()
    program.write("weather.toml", WEATHER + WRONG)
    with Server(answering(gate)) as server:
        program.write("workbench.toml", MODEL.format(url=server.url))
        of_a_server = replace(program, variables={**program.variables, MARK: "of-a-server"})
        begun = of_a_server.ask(*WORDS, "--detach", "--report", "detached.json").end()
        assert "batch 1 runs without this terminal: 2 runs, process " in begun, begun
        known = only(program)
        process = os.pidfd_open(known.pid)
        assert not kill_marked_processes(b"of-a-server"), "it outlives a server that began it"
        assert os.getsid(known.pid) == known.pid, "it leads a session of its own"
        os.kill(known.pid, signal.SIGHUP)
        lost, hung_up, interrupted, staying = (program.ask("attach", "1") for _ in range(4))
        for viewer in (lost, hung_up, interrupted, staying):
            viewer.wait_for('→ get_weather(city="Oslo")')
        stuck = [Connection(known, "watch") for _ in range(20)]
        lost.kill()
        hung_up.send_signal(signal.SIGHUP)
        interrupted.send_signal(signal.SIGINT)
        told = interrupted.end()
        assert interrupted.wait() == 130 and "batch 1 is running: 'workbench attach 1' shows it again" in told
        assert is_running(folders_of(program), known)
        gate.set()
        seen = re.sub(r"\x1b\[[0-9;]*m", "", staying.end())
        assert staying.wait() == 1, seen
        for connection in stuck:
            connection.close()
        lost.end(), hung_up.end()
        plain = program.run(*WORDS, "--report", "plain.json")
    assert plain.returncode == 1
    both = [json.loads((program.folder / name).read_text(encoding="utf-8")) for name in ("detached.json", "plain.json")]
    assert timeless(both[0]) == timeless(both[1])
    # A terminal shows the output of `run` except for times, the progress and the number of the batch.
    for line in ("✓ passed 1.00", "2 runs: 1 passed, 1 failed", "wrong argument: call 1 get_weather.city"):
        assert line in seen and line in plain.stdout
    again = program.run("attach", "1", "--quiet")
    assert again.returncode == 1 and again.stdout.startswith("✗ 1 of 2 cases failed\n")
    assert select.select([process], [], [], 60)[0], "its process ends once nobody looks on"
    os.close(process)
    assert not Path(known.socket).exists()


def test_a_batch_is_listed_stopped_resumed_and_killed(program: Program) -> None:
    gate = Signal()
    program.write("weather.toml", WEATHER + WRONG)
    with Server(answering(gate)) as server:
        program.write("workbench.toml", MODEL.format(url="http://127.0.0.1:9"))
        models = ["--model", "held", "--base-url", f"{server.url}/v1", "--param", 'stop=["an end"]']
        assert program.run(*WORDS, *models[2:], "--detach", "--quiet").stdout == "1\n"
        listed = program.run("batches", "--format", "json")
        report = json.loads(listed.stdout)
        fits(report, "history")
        (batch,) = report["batches"]
        known = only(program)
        assert (batch["number"], batch["attachable"], batch["process"]) == (1, True, known.pid)
        assert f"process {known.pid}: workbench attach 1" in program.run("batches").stdout
        stopped = program.run("batches", "--stop", "1")
        assert stopped.stdout.splitlines() == [
            "batch #1 has stopped: 0 of 2 runs have ended",
            (go_on := f"to resume: workbench run --resume 1 {shlex.join(models)}"),
        ]
        assert f"{go_on.removeprefix('to resume: ')}' runs them" in program.run("history", "show", "1").stdout
        looked = program.run("attach", "1")
        assert looked.returncode == 130 and "stopping; finished runs are kept" in looked.stderr
        asked = len(server.requests)  # it may have been stopped before the second one
        resumed = program.run("run", "--resume", "1", *models, "--trust", "--detach")
        assert resumed.returncode == 0, resumed.stderr
        viewer = program.start("attach", "1")
        known = only(program)
        wait_until(lambda: len(server.requests) == asked + 2, viewer)
        os.kill(known.pid, signal.SIGKILL)
        _, complaints = viewer.communicate()
        assert viewer.wait() == 3
        assert "the process of batch #1 ended without a message" in complaints
        assert f"{go_on}\n" in complaints
        assert "no batch runs" in program.run("batches").stdout
        assert not Path(known.socket).exists()
        gate.set()
        finished = program.run("run", "--resume", "1", *models, "--trust")
        assert "2 runs: 1 passed, 1 failed" in finished.stdout, finished.stderr
    assert program.run("attach").stderr.startswith("no batch runs without a terminal; the last one was batch 1")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--no-history",), "needs a history: leave out --no-history"),
        (
            ("--format", "json"),
            "write the report to a file with -o FILE, or ask for it with 'workbench attach --format json'\n",
        ),
        (
            ("--format", "jsonl"),
            "--format jsonl writes to a terminal, which --detach leaves: write the report to a file with -o FILE\n",
        ),
        (("--break", "error"), "--detach cannot be used with --break, which opens the app"),
        (("--case", "none"), "there is no case 'none'"),
    ],
)
def test_what_cannot_go_on_without_a_terminal_is_said_before(
    program: Program, words: tuple[str, ...], why: str
) -> None:
    program.write("weather.toml", WEATHER)
    done = program.run("run", "weather.toml", "--detach", *words)
    assert done.returncode == 2 and why in done.stderr, done.stderr
    assert records(folders_of(program)) == []


@pytest.mark.slow
def test_a_viewer_that_was_let_go_attaches_again_and_shows_each_thing_once(program: Program) -> None:
    suite = program.write("weather.toml", WEATHER + WRONG)
    with closing(ToldBatch(folders_of(program), program.folder / "history.sqlite3", suite, both)) as batch:
        until = next(at for at, each in enumerate(batch.events[0]) if isinstance(each.payload, ResultReceived))
        batch.go(0, slice(0, until))
        viewer = program.start("attach", "1", "--history", "history.sqlite3", "--verbose")
        shown = read_until(viewer, '→ get_weather(city="Oslo")')
        (connection,) = batch.telling._server._viewers
        with batch.telling._server.lock:  # as if it had read nothing for long
            connection.unsent_lines.append(encode_message(said="late"))
            connection.max_backlog_bytes = 0
            batch.go(0, slice(until, None))
            batch.finish(0)
        wait_until(lambda: connection.is_gone and batch.telling._server.is_watched, viewer)
        batch.go(1, slice(None))
        batch.finish(1)
        batch.end()
        batch.telling.serve_reports(lambda wanted: (f"the report in {wanted['columns']} columns\n",))
        rest, complaints = viewer.communicate()
    assert viewer.wait() == 0
    assert "batch 1: the viewer read too slowly; attaching again\n" in complaints
    shown += rest
    assert shown.count('→ get_weather(city="Oslo")') == 2
    assert len(re.findall(r"^(Right|Wrong) +. (passed|failed) ", shown, re.MULTILINE)) == 2
    assert re.search(r"the report in \d+ columns\n$", shown), shown


def test_a_process_that_ends_before_the_batch_begins_is_told(program: Program) -> None:
    program.write("weather.toml", WEATHER)
    done = program.start("run", "weather.toml", "--detach", first="import sys; sys.executable = '/bin/false'")
    _, complaints = done.communicate()
    assert complaints == "nothing was run: the process of the batch ended before it began, exit code 1\n"
    assert done.wait() == 3


def test_a_batch_does_not_begin_when_the_command_is_interrupted_before(program: Program) -> None:
    program.write("weather.toml", WEATHER)
    interrupted = (
        "import atexit\nfrom workbench.cli import detach\ndef interrupted(_, process):\n"
        "    atexit.register(lambda: print('ended with', process.wait(30)))\n    raise KeyboardInterrupt\n"
        "detach._answer = interrupted"
    )
    done = program.start("run", "weather.toml", "--detach", first=interrupted)
    said, _ = done.communicate()
    assert done.wait() == 130 and said == f"ended with -{int(signal.SIGTERM)}\n", said


def test_a_batch_that_nobody_could_attach_to_is_given_up(program: Program) -> None:
    program.write("weather.toml", WEATHER)
    file = record_file(folders_of(program), program.folder / "history.sqlite3", 1)
    (file / "full").mkdir(parents=True)
    done = program.run("run", "weather.toml", "--detach", "--history", "history.sqlite3")
    assert done.returncode == 2 and "the batch was abandoned: " in done.stderr, done.stderr
    assert not [*file.parent.glob("*.sock")]


@pytest.mark.slow
def test_a_comparison_goes_on_and_is_reported_as_one(program: Program) -> None:
    program.write("weather.toml", WEATHER + WRONG)
    models = ("--model", "offline", "--model", "offline:careless")
    words = ("compare", "weather.toml", *models)
    begun = program.run(*words, "--detach", "-o", "detached.json")
    assert begun.returncode == 0, begun.stderr
    seen = program.run("attach", "1", "--format", "json")
    plain = program.run(*words, "-o", "plain.json")
    files = [(program.folder / name).read_text(encoding="utf-8") for name in ("detached.json", "plain.json")]
    assert timeless(json.loads(seen.stdout)) == timeless(json.loads(files[0])) == timeless(json.loads(files[1]))
    assert seen.returncode == plain.returncode == 0
