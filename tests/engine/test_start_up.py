"""Servers and models start up before the runs that need them, in no run's duration, and hold up no other run."""

from __future__ import annotations

import os
import queue
import sys
from pathlib import Path

import pytest

from tests.programs import begin, program_of
from tests.providers.server import said, serve
from tests.tools.conftest import SERVERS
from workbench.engine.events import BatchDone, BatchEvent, RunDone, RunEvent, StartUp
from workbench.engine.plan import plan_runs
from workbench.evaluation.runtime import Runtime
from workbench.grading.grade import RunResult
from workbench.suite.suite_file import load_suite


def suite(server: str = "", *, model: str = "offline", program: str = "", more: str = "", case: str = "") -> str:
    """A suite with one case, and with a server of that name if one is given."""
    command = f'[[servers]]\nname = "{server}"\ncommand = ["{sys.executable}", "-c", "{program}"]\n' if server else ""
    head = f'format = 1\nname = "Hello"\nmodels = ["{model}"]\n{more}\n{command}'
    return f'{head}\n[[cases]]\nname = "Hello"\nuser = "Say hello."\nexpect_no_calls = true\n{case}'


HELD_BACK = "open('go').read(); import runpy; runpy.run_path('{server}', run_name='__main__')"


class Watched:
    """A session whose events are read one by one."""

    def __init__(self, folder: Path) -> None:
        self._events: queue.SimpleQueue[BatchEvent] = queue.SimpleQueue()
        self.session = Runtime(self._events.put, program_of(folder))
        self.events: list[BatchEvent] = []

    def start(self, folder: Path, **suites: str) -> None:
        files = []
        for name, text in suites.items():
            (folder / f"{name}.toml").write_text(text, encoding="utf-8")
            files.append(load_suite(folder / f"{name}.toml"))
            assert not files[-1].errors, files[-1].errors
        begin(self.session, plan_runs(files))

    def until(self, kind: type[BatchEvent]) -> None:
        while True:
            self.events.append(self._events.get(timeout=30))
            if isinstance(self.events[-1], kind):
                return

    @property
    def started(self) -> list[tuple[str, bool]]:
        return [(event.what, event.took_ms is not None) for event in self.events if isinstance(event, StartUp)]

    @property
    def results(self) -> list[RunResult]:
        done = [event.result for event in self.events if isinstance(event, RunDone)]
        return [result for result in done if result.status != "skipped"]


def test_no_run_has_the_start_of_its_server_and_its_model_in_its_duration(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    with serve(said("openai", "Hello.")) as server:
        watched, held_back = Watched(tmp_path), HELD_BACK.format(server=SERVERS / "antique.py")
        try:
            watched.start(
                tmp_path,
                a=suite("weather", model=f"openai:m@{server.url}/v1", program=held_back),
                b=suite(),
                c=suite("unused", case='skip = "not now"\n'),
            )
            watched.until(RunDone)
            while not watched.results:
                watched.until(RunDone)
            (other,) = watched.results
            assert Path(other.suite).name == "b.toml", "which needs no server, and waits for none"
            (tmp_path / "go").write_text("now")
            watched.until(BatchDone)
        finally:
            watched.session.close()
    model = f"model openai:m@{server.url}/v1"
    assert sorted(watched.started) == [
        (model, False),
        (model, True),
        ("server weather", False),
        ("server weather", True),
    ]
    made = watched.results[1]
    assert made.status == "passed" and Path(made.suite).name == "a.toml"
    of_run = [
        event.event for event in watched.events if isinstance(event, RunEvent) and event.event.run_id == made.run_id
    ]
    ends = [event for event in watched.events if isinstance(event, StartUp) and event.took_ms is not None]
    begins = watched.events.index(RunEvent(of_run[0]))
    assert all(watched.events.index(end) < begins for end in ends)
    took_ms = max(end.took_ms or 0.0 for end in ends)
    assert of_run[0].time_ms < took_ms
    assert made.trajectory.model_latency_ms <= made.trajectory.loop_ms <= made.trajectory.duration_ms


@pytest.mark.parametrize("executes", [True, False])
def test_a_server_that_does_not_start_is_an_error_of_the_runs_that_need_it(tmp_path: Path, executes: bool) -> None:
    watched = Watched(tmp_path)
    try:
        watched.start(
            tmp_path, a=suite("weather", program="raise SystemExit(3)", more=f"execute = {str(executes).lower()}")
        )
        watched.until(BatchDone)
    finally:
        watched.session.close()
    assert watched.started == [("server weather", False), ("server weather", True)]
    (made,) = watched.results
    assert made.status == "error"
    assert "server 'weather'" in (made.error or "") and "exit code 3" in (made.error or "")
