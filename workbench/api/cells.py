"""Cells: the runs of one case with one model, reported as soon as the last run ends."""

from __future__ import annotations

from collections import Counter
from dataclasses import field
from pathlib import Path

from workbench.dataclasses import dataclass
from workbench.engine.events import BatchEvent, RunDone
from workbench.engine.plan import CellKey
from workbench.evaluation.plan import FinishedRun, Plan
from workbench.evaluation.report import Report
from workbench.suite.files import absolute
from workbench.suite.grading_model import Gate


@dataclass(frozen=True)
class CellDone:
    """Reports that all runs of a case with a model have ended.

    `report` covers these runs alone. It ignores the suite's gates and aggregates, so it passes if the case passes."""

    suite: Path
    """The absolute path of the suite file."""
    case: str
    """The id of the case."""
    model: str
    """The name of the model."""
    report: Report = field(repr=False)


class Cells:
    """Collects the finished runs of each cell until its last run ends. A cell is one case with one model."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._runs = plan.runs_by_id
        self._key_of: dict[str, CellKey] = {}
        for run in plan.runs:
            self._key_of[run.run_id] = (absolute(run.file.path), run.case.id, run.model)
        self._missing = Counter(self._key_of.values())
        self._ended_runs: dict[CellKey, list[FinishedRun]] = {}

    def on_event(self, event: BatchEvent) -> CellDone | None:
        """Record an event. Return the finished cell if the event ends its last run, otherwise `None`."""
        if not isinstance(event, RunDone):
            return None
        run = self._runs[event.result.run_id]
        key = self._key_of[run.run_id]
        self._ended_runs.setdefault(key, []).append(FinishedRun(run.repeat, run.case, event.result))
        self._missing[key] -= 1
        if self._missing[key]:
            return None
        # Runs end in any order, but the report lists them by repeat.
        runs = sorted(self._ended_runs.pop(key), key=lambda finished: finished.place)
        # Gates and aggregates are about the whole suite, so they are left out of the report on a single case.
        alone = run.suite.model_copy(update={"gate": Gate(), "aggregates": ()})
        report = Report(
            runs=tuple(runs),
            suites={str(run.file.path): alone},
            started_at="",
            secrets=self._plan.program.secrets,
        )
        return CellDone(*key, report)
