"""The runtime: batches on the engine's thread, observed from another thread, and closed without remains."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.suites import SLOW, WEATHER
from tests.programs import begin, program_of
from workbench.engine.events import BatchDone, BatchEvent, BatchStarted, RunDone, RunEvent
from workbench.engine.plan import plan_runs
from workbench.evaluation.runtime import Runtime
from workbench.suite.suite_file import parse_suite
from workbench.trajectory.events import ResponseFinished

SLOW_SUITE = WEATHER[: WEATHER.index("[[cases]]")] + SLOW


class Watched:
    """A session whose events arrive in this thread."""

    def __init__(self, folder: Path) -> None:
        self.events: queue.SimpleQueue[BatchEvent] = queue.SimpleQueue()
        self.threads: set[str] = set()
        self.session = Runtime(self._listen, program_of(folder))

    def _listen(self, event: BatchEvent) -> None:
        self.threads.add(threading.current_thread().name)
        self.events.put(event)

    def start(self, text: str) -> str:
        file = parse_suite(text, Path("weather.toml"))
        assert file.suite is not None, file.problems
        return begin(self.session, plan_runs([file]), trusted=False)

    def until(self, kind: type[BatchEvent]) -> list[BatchEvent]:
        said: list[BatchEvent] = []
        while not said or not isinstance(said[-1], kind):
            said.append(self.events.get(timeout=20))
        return said


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    watching = Watched(tmp_path)
    yield watching
    watching.session.close()
    assert "engine" not in {thread.name for thread in threading.enumerate()}


def test_a_batch_is_told_from_start_to_end_on_the_engines_thread(watched: Watched) -> None:
    name = watched.start(WEATHER)
    said = watched.until(BatchDone)
    assert isinstance(said[0], BatchStarted)
    assert said[0].batch == name
    (done,) = [event.result for event in said if isinstance(event, RunDone)]
    assert (done.status, done.score) == ("passed", 1.0)
    assert watched.threads == {"engine"}


def test_two_batches_run_side_by_side_and_one_run_can_be_stopped(watched: Watched) -> None:
    watched.start(WEATHER + SLOW)
    watched.start(WEATHER)
    finished = 0
    while finished < 3:
        event = watched.events.get(timeout=20)
        finished += isinstance(event, RunEvent) and isinstance(event.event.payload, ResponseFinished)
        if isinstance(event, BatchStarted) and len(event.runs) == 2:
            slow = event.runs[1].run_id
    watched.session.stop(slow)
    statuses = {}
    done = 0
    while done < 2:
        event = watched.events.get(timeout=20)
        done += isinstance(event, BatchDone)
        if isinstance(event, RunDone):
            statuses[event.result.run_id] = event.result.status
    assert statuses[slow] == "stopped"
    assert sorted(statuses.values()) == ["passed", "passed", "stopped"]


def test_closing_stops_what_runs_and_every_run_still_has_its_end(watched: Watched) -> None:
    watched.start(SLOW_SUITE)
    answered = False
    while not answered:
        event = watched.events.get(timeout=20)
        answered = isinstance(event, RunEvent) and isinstance(event.event.payload, ResponseFinished)
    watched.session.close()
    said = watched.until(BatchDone)
    assert [event.result.status for event in said if isinstance(event, RunDone)] == ["stopped"]


def test_a_batch_that_is_stopped_at_once_still_begins_before_it_ends(watched: Watched) -> None:
    watched.start(SLOW_SUITE)
    watched.session.stop_all()
    said = watched.until(BatchDone)
    assert isinstance(said[0], BatchStarted)
    assert {event.result.status for event in said if isinstance(event, RunDone)} == {"stopped"}


def test_a_listener_that_raises_does_not_keep_a_session_from_closing(tmp_path: Path) -> None:
    answered = threading.Event()

    def listen(event: BatchEvent) -> None:
        if isinstance(event, RunEvent) and isinstance(event.event.payload, ResponseFinished):
            answered.set()
        if isinstance(event, RunDone):
            raise RuntimeError("the screen broke")

    session = Runtime(listen, program_of(tmp_path))
    begin(session, plan_runs([parse_suite(SLOW_SUITE, Path("weather.toml"))]), trusted=False)
    assert answered.wait(20)
    session.close()
    assert "engine" not in {thread.name for thread in threading.enumerate()}


def test_closing_twice_and_stopping_afterwards_are_harmless(watched: Watched) -> None:
    watched.session.close()
    watched.session.close()
    watched.session.stop_all()
    watched.session.stop("run-1")
