"""The reported progress of an execution, and its rate."""

from __future__ import annotations

import asyncio
import math

from tests.engine.making import Clock
from workbench.engine.executor import MIN_INTERVAL_SECONDS, ProgressReports
from workbench.engine.recorder import Recorder
from workbench.trajectory.events import CallStarted, Event, ExecutionProgress, RequestStarted, RunStarted


class Told:
    """The reported progress of one call on a real event loop."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.more = asyncio.Event()
        recorder = Recorder("run", Clock(), self._listen)
        for before in (
            RunStarted("hash", "case", "Case", "m", None, (), ()),
            RequestStarted(1),
            CallStarted(1, "c1", "t"),
        ):
            recorder.emit(before)
        self.events.clear()
        self.reports = ProgressReports("c1", recorder)

    def _listen(self, event: Event) -> None:
        self.events.append(event)
        self.more.set()

    @property
    def progress(self) -> list[float]:
        return [event.payload.progress for event in self.events if isinstance(event.payload, ExecutionProgress)]

    async def next(self) -> None:
        self.more.clear()
        await asyncio.wait_for(self.more.wait(), 10)


async def test_the_first_is_told_at_once_and_of_a_flood_only_the_last() -> None:
    told = Told()
    for number in range(1_000):
        told.reports(number, 1_000, None)
    assert told.progress == [0]
    began = asyncio.get_running_loop().time()
    await told.next()
    assert told.progress == [0, 999]
    assert asyncio.get_running_loop().time() - began > MIN_INTERVAL_SECONDS / 2
    told.reports.close()


async def test_the_last_one_is_told_at_the_end_and_nothing_after_it() -> None:
    told = Told()
    told.reports(1, 3, None)
    told.reports(2, 3, None)
    told.reports.close()
    told.reports(3, 3, None)
    assert told.progress == [1, 2]


async def test_what_is_told_is_told_once() -> None:
    told = Told()
    told.reports(1, 3, None)
    told.reports(2, 3, None)
    await told.next()
    told.reports.close()
    assert told.progress == [1, 2]


async def test_what_is_no_number_is_left_out() -> None:
    told = Told()
    told.reports(math.nan, 3, None)
    told.reports(1, math.inf, "so far")
    told.reports.close()
    assert [event.payload for event in told.events] == [ExecutionProgress("c1", 1, None, "so far")]
