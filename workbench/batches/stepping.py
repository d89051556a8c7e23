"""The runs of a session that can be held: one stepper each, and the breakpoints of them all."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.batches.plan import PlannedRun
from workbench.engine.breakpoints import Breakpoint
from workbench.engine.checkpoint import Command
from workbench.engine.stepping import Stepper, Until


class Steppers:
    """To be used on the engine's loop, but for `breakpoints`, which may be set from any thread and hold from then on,
    for runs under way too."""

    def __init__(self) -> None:
        self.breakpoints: tuple[Breakpoint, ...] = ()
        self._of_runs: dict[str, Stepper] = {}

    def begin(self, planned: PlannedRun, until: Until) -> Stepper:
        """The stepper of a run that begins."""
        stepper = self._of_runs[planned.run_id] = Stepper(until)
        return stepper

    def end(self, runs: Sequence[PlannedRun]) -> None:
        """Forget runs that are over."""
        for run in runs:
            self._of_runs.pop(run.run_id, None)

    def go_on(self, run_id: str, until: Until) -> str | None:
        """Let a run go on, or only so far from now on; says why not where that is impossible."""
        stepper = self._of_runs.get(run_id)
        if stepper is None:
            return "the run is not under way"
        stepper.go_on(until)
        return None

    def do(self, run_id: str, command: Command) -> str | None:
        """Have something done to a run that is held; says why not where that is impossible."""
        stepper = self._of_runs.get(run_id)
        return stepper.do(command) if stepper is not None else "the run is not under way"
