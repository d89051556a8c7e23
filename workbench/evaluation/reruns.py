"""Reruns of cases that broke, until the evidence decides whether they really broke or failed by chance."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import field, replace

from workbench.analysis.confirmation import MAX_RERUNS, RerunEvidence, fewest_reruns
from workbench.dataclasses import dataclass
from workbench.engine.events import BatchEvent, RunDone
from workbench.engine.plan import PlannedRun, next_run_id
from workbench.grading.grade import RunResult
from workbench.grading.run_summary import NOT_NEEDED_PREFIX, is_cost_limited
from workbench.grading.status import Status
from workbench.numerals import count_text


@dataclass(frozen=True)
class Rerun:
    """A case to rerun, with the model and the settings of the planned `run`.

    `typical` is a low estimate of the pass rate that the case had before it broke. With `may_write`, the case may
    execute tools again that are not read-only."""

    run: PlannedRun
    typical: float
    may_write: bool = False


@dataclass(frozen=True)
class Reruns:
    """The cases to rerun, with at most `max_runs` runs in total.

    `batch` is the number of the stored batch in which the cases failed, if any."""

    cases: tuple[Rerun, ...]
    broken_cases: int
    """The number of broken cases, including those without reruns."""
    max_runs: int
    batch: int | None
    place_of: Mapping[str, int] = field(default_factory=dict)
    """The index of each planned run's case, by run id."""

    @property
    def cases_at_once(self) -> int:
        """The number of cases that are rerun at the same time: as many as `max_runs` runs can confirm."""
        return max(1, self.max_runs // fewest_reruns(self.broken_cases))

    def planned(self) -> tuple[Reruns, tuple[PlannedRun, ...]]:
        """Plan the runs. Returns a copy of this object with the case of each run in `place_of`, and the planned runs.

        The cases that are rerun at the same time alternate: each case runs once, then each runs a second time, and so
        on."""
        runs: list[PlannedRun] = []
        places: dict[str, int] = {}
        # If all cases shared the runs at the same time, no case might get enough runs to be confirmed. So some cases
        # are confirmed before others begin.
        for first in range(0, len(self.cases), self.cases_at_once):
            for repeat in range(min(MAX_RERUNS, self.max_runs)):
                for place, case in list(enumerate(self.cases))[first : first + self.cases_at_once]:
                    runs.append(replace(case.run, run_id=next_run_id(), repeat=repeat))
                    places[runs[-1].run_id] = place
        return replace(self, place_of=places), tuple(runs)

    def evidence(self) -> RerunListener:
        """Return a listener that collects the evidence of these runs."""
        return RerunListener(self)


class RerunListener:
    """Collects the evidence from reruns, and skips reruns that are no longer needed.

    A rerun waits while an earlier rerun may still decide its case, so the outcome does not depend on the order in which
    runs end."""

    status: Status = Status.SKIPPED

    def __init__(self, reruns: Reruns) -> None:
        self._reruns = reruns
        self._left = reruns.max_runs
        self.evidence = [RerunEvidence(reruns.broken_cases, case.typical) for case in reruns.cases]
        self.over = Counter[int]()
        """Number of finished reruns of each case, with or without a verdict."""
        self.writing: dict[int, str] = {}
        """Cases that must not execute their tools again, each with the tool that changed something."""
        self.cost_limit: str | None = None
        """Why no more reruns begin; set when the cost limit is reached."""
        self._news = asyncio.Event()

    def on_event(self, event: BatchEvent) -> None:
        """Record a finished run, and wake the waiting reruns."""
        if isinstance(event, RunDone):
            self.add_result(event.result)
            self._news.set()
            self._news = asyncio.Event()

    def add_result(self, result: RunResult) -> None:
        place = self._reruns.place_of[result.run_id]
        if is_cost_limited(result):
            self.cost_limit = result.reason
        # A skipped or stopped run is not evidence about the case.
        if result.status in (Status.SKIPPED, Status.STOPPED):
            return
        self.over[place] += 1
        if result.status.graded:
            self.evidence[place].add(is_good=result.passed)
        if not self._reruns.cases[place].may_write and (tool := executed_write_tool(result)) is not None:
            self.writing.setdefault(place, tool)

    async def skip_reason(self, planned: PlannedRun) -> str | None:
        """Return the reason to skip a rerun, or `None` to start it now.

        The call waits while earlier reruns may decide the case."""
        place = self._reruns.place_of[planned.run_id]
        evidence = self.evidence[place]
        # Each finished rerun may decide the case, so all conditions are checked again.
        while True:
            if evidence.decided is not None:
                return f"{NOT_NEEDED_PREFIX}it is decided whether the case broke"
            if place in self.writing:
                return f"{NOT_NEEDED_PREFIX}the case executed {self.writing[place]}, which is not read-only"
            if self.cost_limit is not None:
                return f"{NOT_NEEDED_PREFIX}a limit on cost was reached"
            if not self._left:
                return f"{NOT_NEEDED_PREFIX}at most {count_text(self._reruns.max_runs)} reruns are made"
            if self._is_next(place) and planned.repeat < self.over[place] + evidence.needed:
                self._left -= 1
                return None
            await self._news.wait()

    def _is_next(self, place: int) -> bool:
        return all(map(self._is_settled, range(place - place % self._reruns.cases_at_once)))

    def _is_settled(self, place: int) -> bool:
        if self.evidence[place].decided is not None or place in self.writing:
            return True
        return self.over[place] >= min(MAX_RERUNS, self._reruns.max_runs)


def executed_write_tool(result: RunResult) -> str | None:
    """Return the name of an executed tool that is not marked read-only; `None` if there is none.

    Executions that an external agent reports count too."""
    tools = result.trajectory.offered
    read_only = set()
    for tool in tools:
        # In MCP, a tool without annotations may write, so only `true` counts.
        if tool.annotations.get("readOnlyHint") is True:
            read_only.add(tool.name)
    for call in result.trajectory.calls:
        executed = call.server is not None or (call.result and call.result.source == "reported")
        if executed and call.tool not in read_only:
            return call.tool
    return None
