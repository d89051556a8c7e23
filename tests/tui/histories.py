"""Histories for tests: batches with scripted runs at fixed times, stored as the engine stores them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.tui.apps import Call, Opened, conversation
from workbench.config.secrets import Secrets
from workbench.engine.events import BatchDone, BatchListener, RunDone, RunEvent, with_times
from workbench.engine.history_recorder import HistoryRecorder
from workbench.engine.plan import PlannedRun, plan_runs
from workbench.grading.grade import RunResult
from workbench.grading.run import grade_run_and_steps
from workbench.grading.status import Status
from workbench.history.writer import HistoryWriter
from workbench.suite.grading_model import GraderName
from workbench.suite.suite_file import load_suite
from workbench.trajectory.events import Event, EventPayload, JsonValue, RunFinished
from workbench.trajectory.fold import fold
from workbench.tui.history.batches_screen import HistoryScreen

BEGAN = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
GOOD: Mapping[str, Sequence[Call]] = {
    "Movie night": (("set_lights", {"room": "living room", "brightness": 20}), ("set_tv", {"power": "on"})),
    "Lights off": (("set_lights", {"brightness": 0}),),
    "Nothing to do": (),
}
"""The calls that the cases of `SMART_HOME` expect."""

BAD: Mapping[str, Sequence[Call]] = {
    "Movie night": (("set_lights", {"room": "living room", "brightness": 60}),),
    "Lights off": (("set_tv", {"power": "off"}),),
    "Nothing to do": (("set_tv", {"power": "on"}),),
}

Does = Callable[[PlannedRun], Sequence[EventPayload]]
"""Returns the events of a run."""


def well(*but: str) -> Does:
    """Return runs that do what their cases expect, except for the cases in `but`."""

    def does(planned: PlannedRun) -> Sequence[EventPayload]:
        name = planned.case.name
        return conversation(planned, (BAD if name in but else GOOD)[name], "Done.")

    return does


@dataclass(frozen=True)
class Made:
    """A batch to store: the events of its runs, the models, the cases (all if empty) and the grader. The program may be
    killed after some runs."""

    does: Does
    models: Sequence[str] = ("offline",)
    cases: Sequence[str] = ()
    repeats: int | None = None
    by: GraderName | None = None
    cut_after: int | None = None


def write_history(file: Path, suite: Path, *batches: Made) -> None:
    """Store batches of a suite, one per day."""
    now = [BEGAN]
    with closing(HistoryWriter(file, _no_word)) as writer:
        for day, made in enumerate(batches):
            now[0] = BEGAN + timedelta(days=day)
            runs = plan_runs(
                [load_suite(suite)], models=made.models, case_ids=made.cases, repeats=made.repeats, by=made.by
            )
            keep = keeping(writer, runs, now)
            for planned in runs[: made.cut_after]:
                keep_run(keep, planned, made.does, now)
            if made.cut_after is None:
                keep(BatchDone("batch"))


def keeping(writer: HistoryWriter, runs: Sequence[PlannedRun], now: Sequence[datetime]) -> BatchListener:
    """Begin a batch of these runs, and return the listener that stores its events. The first of `now` is the time of
    day."""
    recorder = HistoryRecorder(writer, runs, _SETTINGS, Secrets(), home=None, now_ms=lambda: now[0].timestamp() * 1000)
    return with_times(recorder.on_event, lambda: now[0].timestamp() * 1000)


def keep_run(keep: BatchListener, planned: PlannedRun, does: Does, now: list[datetime]) -> None:
    """Send the events of a whole run, which lasts two seconds."""
    events = [Event(planned.run_id, at, float(at), what) for at, what in enumerate(does(planned))]
    for event in events:
        keep(RunEvent(event))
    now[0] += timedelta(seconds=2)
    keep(RunDone(_graded(planned, events)))


def _graded(planned: PlannedRun, events: Sequence[Event]) -> RunResult:
    trajectory = fold(events)
    finish = trajectory.finish
    broke = isinstance(finish, RunFinished) and finish.reason == "error"
    grades, status, steps = (
        ((), Status.ERROR, ()) if broke else grade_run_and_steps(planned.suite, planned.case, trajectory)
    )
    case = planned.case
    return RunResult(
        planned.run_id,
        str(planned.file.path),
        case.id,
        case.name,
        planned.model,
        planned.repeat,
        status,
        trajectory,
        grades,
        error=finish.error if broke and finish is not None else None,
        grading=planned.settings.grading,
        steps=steps,
    )


def _no_word(said: str) -> None:
    raise AssertionError(said)


_SETTINGS: dict[str, JsonValue] = {
    "concurrency": 4,
    "execute": None,
    "execute_all": False,
    "models": {"offline": {"provider": "built in"}},
}


@pytest.fixture
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Show times in UTC."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


async def shown(app: Opened, *keys: str) -> HistoryScreen:
    """Open the history, press keys, and return the screen."""
    await app.press("h")
    screen = app.app.screen
    assert isinstance(screen, HistoryScreen)
    await app.press(*keys)
    return screen
