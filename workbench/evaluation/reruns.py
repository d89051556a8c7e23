"""Cases that are made again until it is decided whether they broke: which runs are planned, and which are spared."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import field, replace

from workbench.analysis.confirmation import MAX_RERUNS, Evidence, fewest_reruns
from workbench.dataclasses import dataclass
from workbench.engine.events import BatchEvent, RunDone
from workbench.engine.plan import PlannedRun, next_run_id
from workbench.grading.grade import RunResult
from workbench.grading.run_summary import NOT_NEEDED, is_cost_limited
from workbench.grading.status import Status
from workbench.numerals import count_text
from workbench.trajectory.trajectory import CallRecord


@dataclass(frozen=True)
class Rerun:
    """A case with a model that is made again, after one of its runs.

    `typical` is the share of runs that it passes at least while it is as it was; `writes` is whether it may execute
    tools again that are not read-only."""

    run: PlannedRun
    typical: float
    writes: bool = False


@dataclass(frozen=True)
class Reruns:
    """The cases that are made again, and by how many runs together at most.

    `batch` is the one in which they failed, if it is recorded."""

    cases: tuple[Rerun, ...]
    among: int
    """How many cases broke, those that are not made again included."""
    most: int
    batch: int | None
    place_of: Mapping[str, int] = field(default_factory=dict)
    """Which of the cases each planned run is of, by its id."""

    @property
    def at_once(self) -> int:
        """How many cases are made again at the same time: no more than could all be confirmed by the runs there are."""
        return max(1, self.most // fewest_reruns(self.among))

    def planned(self) -> tuple[Reruns, tuple[PlannedRun, ...]]:
        """Return this with the runs that it may take: of the cases that are made again at the same time each once, then
        each a second time, and so on."""
        runs: list[PlannedRun] = []
        places: dict[str, int] = {}
        for first in range(0, len(self.cases), self.at_once):
            for repeat in range(min(MAX_RERUNS, self.most)):
                for place, case in list(enumerate(self.cases))[first : first + self.at_once]:
                    runs.append(replace(case.run, run_id=next_run_id(), repeat=repeat))
                    places[runs[-1].run_id] = place
        return replace(self, place_of=places), tuple(runs)

    def course(self) -> RerunCourse:
        """Return what follows these runs while they are made."""
        return RerunCourse(self)


class RerunCourse:
    """What the reruns have shown so far; a listener of their batch, which it spares runs.

    No run of a case begins that might come after the case is decided: so nothing depends on which of them is over
    first."""

    status: Status = Status.SKIPPED

    def __init__(self, reruns: Reruns) -> None:
        self._reruns = reruns
        self._left = reruns.most
        self.evidence = [Evidence(reruns.among, case.typical) for case in reruns.cases]
        self.over = Counter[int]()
        """How many reruns of each case are over, with or without a verdict."""
        self.writing: dict[int, str] = {}
        """Cases that executed a tool that may not be executed again."""
        self.cost_limit: str | None = None
        """Why no more reruns are made, where a limit on cost was reached."""
        self._news = asyncio.Event()

    def take(self, event: BatchEvent) -> None:
        """Take in what happened."""
        if isinstance(event, RunDone):
            self.take_result(event.result)
            self._news.set()
            self._news = asyncio.Event()

    def take_result(self, result: RunResult) -> None:
        """Take in a run that is over."""
        place = self._reruns.place_of[result.run_id]
        if is_cost_limited(result):
            self.cost_limit = result.reason
        if result.status in (Status.SKIPPED, Status.STOPPED):
            return
        self.over[place] += 1
        if result.status.graded:
            self.evidence[place].take(good=result.passed)
        if not self._reruns.cases[place].writes and (tool := executed_write(result)) is not None:
            self.writing.setdefault(place, tool)

    async def why_not(self, planned: PlannedRun) -> str | None:
        """Return why a rerun is skipped, or `None` to start it now.

        Wait while earlier reruns can still decide."""
        place = self._reruns.place_of[planned.run_id]
        evidence = self.evidence[place]
        while True:
            if evidence.decided is not None:
                return f"{NOT_NEEDED}it is decided whether the case broke"
            if place in self.writing:
                return f"{NOT_NEEDED}the case executed {self.writing[place]}, which is not read-only"
            if self.cost_limit is not None:
                return f"{NOT_NEEDED}a limit on cost was reached"
            if not self._left:
                return f"{NOT_NEEDED}{count_text(self._reruns.most)} runs are the most that are made again"
            if self._is_next(place) and planned.repeat < self.over[place] + evidence.needed:
                self._left -= 1
                return None
            await self._news.wait()

    def _is_next(self, place: int) -> bool:
        """Return whether all cases are settled that come before this one and those that are made again with it."""
        return all(map(self._is_settled, range(place - place % self._reruns.at_once)))

    def _is_settled(self, place: int) -> bool:
        if self.evidence[place].decided is not None or place in self.writing:
            return True
        return self.over[place] >= min(MAX_RERUNS, self._reruns.most)


def executed_write(result: RunResult) -> str | None:
    """Return a tool that a run really executed although it is not marked read-only, here or, as an agent reports,
    elsewhere; `None` without any."""
    start = result.trajectory.start
    harmless = (
        {tool.name for tool in start.tools if tool.annotations.get("readOnlyHint") is True} if start else set[str]()
    )
    return _first_write(result.trajectory.calls, harmless)


def _first_write(calls: Iterable[CallRecord], harmless: Container[str]) -> str | None:
    executed = (call for call in calls if call.server is not None or (call.result and call.result.source == "reported"))
    return next((call.tool for call in executed if call.tool not in harmless), None)
