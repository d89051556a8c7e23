"""Lets a person step through a run: decides where it is held next and passes on commands.

Use it on the engine's loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Literal

from workbench.checks.check import Checks, CheckVerdict
from workbench.checks.combined_kinds import Judged
from workbench.checks.patterns import CheckError
from workbench.engine.breakpoints import Breakpoint, ConditionError, why_break
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

Until = Literal["stop", "round", "end"]
"""How far a run continues: to the next place where it can be held, to the next model request, or to its end unless a
breakpoint holds it earlier."""

WhyBreak = Callable[[HoldPoint], Awaitable[str | None]]
"""Returns why a breakpoint holds a run at a point; `None` when none does."""


OnHeld = Callable[[HoldPoint], Awaitable[object]]
"""Is called when a run is held, and again after each change of it."""


async def not_told(point: HoldPoint) -> None:
    """Do nothing: the default callback of `Stepper`."""


async def no_breakpoint(point: HoldPoint) -> str | None:
    """Return the default of `Stepper`: no breakpoint holds a run."""
    return None


class Stepper:
    """Controls one run.

    `until` is how far it runs at first; every breakpoint on the way holds it too."""

    def __init__(self, until: Until = "end", why_break: WhyBreak = no_breakpoint, on_held: OnHeld = not_told) -> None:
        self._until: Until = until
        self._why_break = why_break
        self._on_held = on_held
        self.held: HoldPoint | None = None
        """Where the run is held; `None` while it is not."""
        self._commands: asyncio.Queue[Command] = asyncio.Queue()

    async def why_hold(self, point: HoldPoint) -> str | None:
        """Return the breakpoint that holds the run, or that it is being stepped through; `None` to let it pass."""
        why = await self._why_break(point)
        if why is None and (self._until == "stop" or (self._until == "round" and point.at == "request")):
            why = "step by step"
        if why is not None:
            self._until = "stop"
        return why

    async def next_command(self, point: HoldPoint) -> Command:
        """Wait for the next command.

        A held run is stepped through from then on, until it is told to continue."""
        self.held = point
        try:
            await self._on_held(point)
            return await self._commands.get()
        finally:
            self.held = None

    def go_on(self, until: Until, hold: int | None) -> str | None:
        """Let the run continue to the next stop, round, or its end, and return why not, if that is impossible.

        `hold` is the stop (`HoldPoint.hold`) that the caller saw; `None` if it saw none, which only says how far the
        run may continue."""
        now = self.held.hold if self.held is not None else None
        if hold != now:
            if hold is None and until == "stop":
                return None
            return _elsewhere(now)
        self._until = until
        if now is not None:
            self.held = None  # a second command before the run has continued must not apply to the next place
            self._commands.put_nowait(Continue())
        return None

    def do(self, command: Command, hold: int) -> str | None:
        """Carry out a command on the run where it is held, if that is the `hold` that is meant.

        Returns why not, when that is impossible."""
        if self.held is None or self.held.hold != hold:
            return _elsewhere(self.held.hold if self.held is not None else None)
        why_not = refusal(command, self.held.at)
        if why_not is None:
            if not isinstance(command, EditArguments | EditResult | AddMessage):
                self.held = None  # as above: the run continues with this command
            self._commands.put_nowait(command)
        return why_not


def _elsewhere(now: int | None) -> str:
    """Return why a command does not apply: the run is not held at the expected place."""
    if now is None:
        return "the run has continued"
    return "the run has moved on to another stop"


# The runs of a runtime that can be held: one stepper for each, and the breakpoints of all of them.

_OVER = "the run is over"


class Steppers:
    """The steppers of all runs.

    Use it on the engine's loop; only `breakpoints` may be set from any thread, and they count for runs under way too.
    """

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
        """Let a run continue from a hold, or a run that is not held only `until` a stop.

        Returns why it cannot, if so."""
        if run_id in self._waiting:
            self._waiting[run_id] = until
            return None
        stepper = self._of_runs.get(run_id)
        return stepper.go_on(until, hold) if stepper is not None else _OVER

    def do(self, run_id: str, command: Command, hold: int) -> str | None:
        """Apply a command to a run at a hold.

        Returns why that is impossible, if it is."""
        stepper = self._of_runs.get(run_id)
        return stepper.do(command, hold) if stepper is not None else _OVER

    def _end(self, run_id: str) -> None:
        self._waiting.pop(run_id, None)
        self._of_runs.pop(run_id, None)


class _Conditions:
    """The conditions of breakpoints for one run.

    They share the judge of the run's mocks and its case, so that nothing is judged twice."""

    def __init__(self, planned: PlannedRun, grading: RunGrading) -> None:
        self._planned = planned
        self._grading = grading

    async def hold(self, when: Checks, arguments: Mapping[str, JsonValue]) -> bool:
        """Return whether a condition holds for a call's arguments.

        Raises ConditionError."""
        judge = self._grading.judge

        async def judged(check: Judged, value: JsonValue) -> CheckVerdict:
            assert judge is not None
            limit.reschedule(None)  # judges, who are asked last, have a time limit of their own
            return await judge.judge(check, value)

        try:
            async with asyncio.timeout(GRADING_TIMEOUT_S) as limit:
                return await condition_holds(when, arguments, self._python, judged if judge is not None else None)
        except TimeoutError as error:
            raise ConditionError(f"its checks did not end within {seconds_text(GRADING_TIMEOUT_S)}") from error
        except (CheckError, ToolsError) as error:
            raise ConditionError(str(error)) from error

    async def failing(self, point: HoldPoint) -> str | None:
        """Return the problem of the call at a point, `None` if there is none.

        Raises ConditionError."""
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
        """Call a function that the suite names, and no other: trust covers only those.

        Raises CheckError."""
        if reference not in needs_trust(self._planned.suite, self._planned.file.path).python:
            name = self._planned.file.path.name
            raise CheckError(f"{reference} is not called: trust covers only the functions that {name} names")
        return self._grading.call_python(reference, value)
