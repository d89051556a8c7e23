"""Steppers, with which a person steps through runs. A stepper decides where its run is held, and passes on commands."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Literal

from workbench.checks.check import CheckContext, Checks, CheckVerdict
from workbench.checks.combined_kinds import Judged
from workbench.checks.patterns import CheckError
from workbench.engine.breakpoints import Breakpoint, ConditionError, break_reason
from workbench.engine.checkpoint import AddMessage, Command, Continue, EditArguments, EditResult, HoldPoint, refusal
from workbench.engine.events import BatchEvent, BatchListener, RequestHeld, RunDone, RunEvent
from workbench.engine.plan import PlannedRun
from workbench.engine.planned_run import GRADING_TIMEOUT_S, RunGrading
from workbench.grading.run import fault_of_call
from workbench.numerals import seconds_text
from workbench.providers.model import ModelError
from workbench.suite.trust import needs_trust
from workbench.tools.answer import ToolsError
from workbench.tools.mocks import condition_holds
from workbench.trajectory.events import JsonValue, RunFinished

StepTarget = Literal["stop", "round", "end"]
"""The point up to which a run continues: the next checkpoint, the next model request, or the run's end. A breakpoint
may hold it earlier."""

BreakReason = Callable[[HoldPoint], Awaitable[str | None]]
"""Returns why a breakpoint holds a run at a point; `None` when none does."""


OnHeld = Callable[[HoldPoint], Awaitable[object]]
"""Called when a run is held, and again after each change of the held run."""


async def ignore_hold(point: HoldPoint) -> None:
    pass


async def no_breakpoint(point: HoldPoint) -> str | None:
    return None


class Stepper:
    """Lets a person step through one run. Use a stepper on the engine's loop.

    `until` is the first point at which the run is held. `why_break` evaluates the breakpoints, and `on_held` is awaited
    at each hold."""

    def __init__(
        self, until: StepTarget = "end", why_break: BreakReason = no_breakpoint, on_held: OnHeld = ignore_hold
    ) -> None:
        self._until: StepTarget = until
        self._why_break = why_break
        self._on_held = on_held
        self.held: HoldPoint | None = None
        """The point where the run is held; `None` while it continues."""
        self._commands: asyncio.Queue[Command] = asyncio.Queue()

    async def hold_reason(self, point: HoldPoint) -> str | None:
        """Return why the run is held at a point: a breakpoint, or the end of a step. `None` lets the run continue."""
        why = await self._why_break(point)
        if why is None and (self._until == "stop" or (self._until == "round" and point.at == "request")):
            why = "step by step"
        if why is not None:
            self._until = "stop"
        return why

    async def next_command(self, point: HoldPoint) -> Command:
        self.held = point
        try:
            await self._on_held(point)
            return await self._commands.get()
        finally:
            self.held = None

    def continue_until(self, until: StepTarget, hold: int | None) -> str | None:
        """Let the run continue up to `until`, or return why it cannot.

        `hold` is the number of the hold that the caller has seen (`HoldPoint.hold`), or `None` for a run that was not
        held. If the run has moved on since, the command is refused."""
        now = self._hold
        if hold != now:
            if hold is None and until == "stop":
                return None
            return _elsewhere(now)
        self._until = until
        if now is not None:
            self.held = None  # so that a second command before the run continues is refused
            self._commands.put_nowait(Continue())
        return None

    def apply(self, command: Command, hold: int) -> str | None:
        """Apply a command to the held run, or return why it cannot be applied.

        `hold` is the number of the hold that the caller has seen. If the run has moved on since, the command is
        refused."""
        if self.held is None or self.held.hold != hold:
            return _elsewhere(self._hold)
        why_not = refusal(command, self.held)
        if why_not is not None:
            return why_not
        if not isinstance(command, EditArguments | EditResult | AddMessage):
            self.held = None  # as in `continue_until`: the run continues with this command
        self._commands.put_nowait(command)
        return None

    @property
    def _hold(self) -> int | None:
        return self.held.hold if self.held is not None else None


def _elsewhere(now: int | None) -> str:
    if now is None:
        return "the run has continued"
    return "the run has moved on to another stop"


_RUN_FINISHED = "the run has finished"


class Steppers:
    """The steppers and breakpoints of all runs that can be held.

    Use this object on the engine's loop. Only `breakpoints` may be set on any thread; they also apply to runs in
    progress."""

    def __init__(self, listener: BatchListener) -> None:
        self._listener = listener
        self.breakpoints: tuple[Breakpoint, ...] = ()
        self._waiting: dict[str, StepTarget] = {}
        """The `until` of each run that has not begun, because it waits for its turn or its servers."""
        self._of_runs: dict[str, Stepper] = {}

    def prepare(self, runs: Sequence[PlannedRun], until: StepTarget) -> None:
        """Register runs that will be stepped through. Each run continues up to `until` after it begins."""
        self._waiting.update((run.run_id, until) for run in runs)

    def begin(self, planned: PlannedRun, grading: RunGrading) -> Stepper:
        """Create the stepper of a run that begins now."""
        conditions = _BreakpointConditions(planned, grading)

        async def why(point: HoldPoint) -> str | None:
            return await break_reason(self.breakpoints, point, conditions.hold, conditions.failing)

        async def show_request(point: HoldPoint) -> None:
            # Render the request again after each change, because it includes the person's messages.
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

    def on_event(self, event: BatchEvent) -> None:
        """Remove the stepper of a run that has ended."""
        if isinstance(event, RunDone):
            self._end(event.result.run_id)
        elif isinstance(event, RunEvent) and isinstance(event.event.payload, RunFinished):
            self._end(event.event.run_id)  # only grading follows, which cannot be held

    def continue_until(self, run_id: str, until: StepTarget, hold: int | None) -> str | None:
        """Let a run continue up to `until`, as `Stepper.continue_until` does, or return why it cannot."""
        # The run has not begun yet. After its beginning, it will continue up to `until`.
        if run_id in self._waiting:
            self._waiting[run_id] = until
            return None
        stepper = self._of_runs.get(run_id)
        if stepper is None:
            return _RUN_FINISHED
        return stepper.continue_until(until, hold)

    def apply(self, run_id: str, command: Command, hold: int) -> str | None:
        """Apply a command to a held run, as `Stepper.apply` does, or return why it cannot be applied."""
        stepper = self._of_runs.get(run_id)
        if stepper is None:
            return _RUN_FINISHED
        return stepper.apply(command, hold)

    def _end(self, run_id: str) -> None:
        self._waiting.pop(run_id, None)
        self._of_runs.pop(run_id, None)


class _BreakpointConditions:
    """Evaluates the conditions of breakpoints for one run.

    The conditions use the same judge as the grading of the run, so that no value is judged twice."""

    def __init__(self, planned: PlannedRun, grading: RunGrading) -> None:
        self._planned = planned
        self._grading = grading

    async def hold(self, when: Checks, arguments: Mapping[str, JsonValue]) -> bool:
        """Return whether a call's arguments meet a condition.

        Raises ConditionError."""
        judge = self._grading.judge

        async def judged(check: Judged, value: JsonValue) -> CheckVerdict:
            assert judge is not None
            limit.reschedule(None)  # judges are asked last, and have their own time limit
            return await judge.judge(check, value)

        context = CheckContext(self._python, clock=self._grading.clock)
        try:
            async with asyncio.timeout(GRADING_TIMEOUT_S) as limit:
                return await condition_holds(when, arguments, context, judged if judge is not None else None)
        except TimeoutError as error:
            raise ConditionError(
                f"the checks of the condition did not end within {seconds_text(GRADING_TIMEOUT_S)}"
            ) from error
        except (CheckError, ToolsError) as error:
            raise ConditionError(str(error)) from error

    async def failing(self, point: HoldPoint) -> str | None:
        """Return a message if the call at `point` fails a check of the case, otherwise `None`.

        Raises ConditionError."""
        trajectory = point.current_trajectory()
        assert point.call is not None
        ids = [record.call.id for record in trajectory.calls]
        # Take the last call with this id, because a discarded answer may have used the same id.
        call = len(ids) - 1 - ids[::-1].index(point.call.call.id)
        planned = self._planned
        # The result is put into a tuple, because it may be a text, and `result_or_reason` returns its errors as texts
        # too.
        found = await self._grading.result_or_reason(
            lambda outside: (fault_of_call(planned.suite, planned.case, trajectory, call, outside),), trajectory
        )
        if isinstance(found, str):
            raise ConditionError(found)
        return found[0]

    def _python(self, reference: str, value: JsonValue) -> object:
        """Call a Python function for a check.

        Raises CheckError for a function that the suite does not name, because the user's trust covers only functions in
        the suite."""
        if reference not in needs_trust(self._planned.suite, self._planned.file.path).python:
            name = self._planned.file.path.name
            raise CheckError(f"{reference} was not called, because you trust only the functions that {name} names")
        return self._grading.call_python(reference, value)
