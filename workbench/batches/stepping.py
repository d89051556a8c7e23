"""The runs of a runtime that can be held: one stepper for each, and the breakpoints of all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from workbench.batches.events import BatchEvent, BatchListener, RequestHeld, RunDone, RunEvent
from workbench.batches.plan import PlannedRun
from workbench.batches.single import GRADING_TIMEOUT_S, RunGrading
from workbench.checks.check import Checks, CheckVerdict
from workbench.checks.combined_kinds import Judged
from workbench.checks.patterns import CheckError
from workbench.engine.breakpoint_match import ConditionError, why_break
from workbench.engine.breakpoints import Breakpoint
from workbench.engine.checkpoint import Command, HoldPoint
from workbench.engine.stepping import Stepper, Until
from workbench.grading.so_far import fault_of_call
from workbench.providers.model import ModelError
from workbench.suite.trust import needs_trust
from workbench.tools.answer import ToolsError
from workbench.tools.mocks import condition_holds
from workbench.trajectory.events import RunFinished
from workbench.trajectory.messages import JsonValue

_OVER = "the run is over"


class Steppers:
    """The steppers of all runs. Use it on the engine's loop; only `breakpoints` may be set from any thread, and they
    count for runs under way too."""

    def __init__(self, listener: BatchListener) -> None:
        self._listener = listener
        self.breakpoints: tuple[Breakpoint, ...] = ()
        self._waiting: dict[str, Until] = {}
        """How far each run goes that has not begun: it waits for its turn or for its servers."""
        self._of_runs: dict[str, Stepper] = {}

    def expect(self, runs: Sequence[PlannedRun], until: Until) -> None:
        """Expect runs to begin, and to go as far as `until` at first."""
        self._waiting.update((run.run_id, until) for run in runs)

    def begin(self, planned: PlannedRun, grading: RunGrading) -> Stepper:
        """Return the stepper of a run that begins."""
        conditions = _Conditions(planned, grading)

        async def why(point: HoldPoint) -> str | None:
            return await why_break(self.breakpoints, point, conditions.hold, conditions.failing)

        async def show_request(point: HoldPoint) -> None:
            if point.request is None:
                return
            try:
                request = await point.request()
            except ModelError as error:
                self._listener(RequestHeld(planned.run_id, str(error)))
            else:
                if request is not None:
                    self._listener(RequestHeld(planned.run_id, request))

        until = self._waiting.pop(planned.run_id)
        stepper = self._of_runs[planned.run_id] = Stepper(until, why, show_request)
        return stepper

    def take(self, event: BatchEvent) -> None:
        """Forget a run as soon as it is over; a listener of the batch."""
        if isinstance(event, RunDone):
            self._end(event.result.run_id)
        elif isinstance(event, RunEvent) and isinstance(event.event.payload, RunFinished):
            self._end(event.event.run_id)  # it is graded from now on, which may take its time

    def go_on(self, run_id: str, until: Until, hold: int | None) -> str | None:
        """Let a run continue from a hold, or a run that is not held only `until` a stop. Returns why it cannot, if
        so."""
        if run_id in self._waiting:
            self._waiting[run_id] = until
            return None
        stepper = self._of_runs.get(run_id)
        return stepper.go_on(until, hold) if stepper is not None else _OVER

    def do(self, run_id: str, command: Command, hold: int) -> str | None:
        """Apply a command to a run at a hold. Returns why that is impossible, if it is."""
        stepper = self._of_runs.get(run_id)
        return stepper.do(command, hold) if stepper is not None else _OVER

    def _end(self, run_id: str) -> None:
        self._waiting.pop(run_id, None)
        self._of_runs.pop(run_id, None)


class _Conditions:
    """Evaluates the conditions of breakpoints for one run, in the same way and with the same judge as the checks of its
    mocks and its case, so that nothing is judged twice."""

    def __init__(self, planned: PlannedRun, grading: RunGrading) -> None:
        self._planned = planned
        self._grading = grading

    async def hold(self, when: Checks, arguments: Mapping[str, JsonValue]) -> bool:
        """Return whether a condition holds for a call's arguments. Raises ConditionError."""
        judge = self._grading.judge

        async def judged(check: Judged, value: JsonValue) -> CheckVerdict:
            assert judge is not None
            limit.reschedule(None)  # judges, who are asked last, have a time limit of their own
            return await judge.judge(check, value)

        try:
            async with asyncio.timeout(GRADING_TIMEOUT_S) as limit:
                return await condition_holds(when, arguments, self._python, judged if judge is not None else None)
        except TimeoutError as error:
            raise ConditionError(f"its checks did not end within {GRADING_TIMEOUT_S:g} s") from error
        except (CheckError, ToolsError) as error:
            raise ConditionError(str(error)) from error

    async def failing(self, point: HoldPoint) -> str | None:
        """Return what is wrong with the call at a point, `None` if nothing is. Raises ConditionError."""
        trajectory = point.so_far()
        assert point.call is not None
        ids = [record.call.id for record in trajectory.calls]
        call = len(ids) - 1 - ids[::-1].index(point.call.call.id)
        planned = self._planned
        found = await self._grading.attempted(
            lambda outside: (fault_of_call(planned.suite, planned.case, trajectory, call, outside),), trajectory
        )
        if isinstance(found, str):
            raise ConditionError(found)
        return found[0]

    def _python(self, reference: str, value: JsonValue) -> object:
        """Call a function that the suite names, and no other: trust covers only those. Raises CheckError."""
        if reference not in needs_trust(self._planned.suite, self._planned.file.path).python:
            name = self._planned.file.path.name
            raise CheckError(f"{reference} is not called: trust covers only the functions that {name} names")
        return self._grading.call_python(reference, value)
