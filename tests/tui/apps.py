"""The app under test, on the suites of a folder, with a scripted runtime in place of the engine."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

from textual._context import visible_screen_stack
from textual.app import App
from textual.pilot import Pilot

from workbench.config.folders import Folders
from workbench.config.program import Program, create_program
from workbench.engine.breakpoints import Breakpoint
from workbench.engine.checkpoint import Command
from workbench.engine.engine_thread import EngineThread
from workbench.engine.events import (
    BatchDone,
    BatchListener,
    BatchStarted,
    PermissionRequested,
    RunDone,
    RunEvent,
    with_times,
)
from workbench.engine.executor import PermissionAnswer, PermissionQuestion
from workbench.engine.model_specs import FREE, cost_of
from workbench.engine.plan import PlannedRun
from workbench.engine.recordings import Recordings
from workbench.engine.server_calls import ServerControl
from workbench.engine.stepper import StepTarget
from workbench.evaluation.approval import Approval
from workbench.evaluation.options import AppStart
from workbench.evaluation.plan import Plan
from workbench.evaluation.runtime import Runtime
from workbench.grading.grade import RunResult
from workbench.grading.run import grade_run_and_steps
from workbench.providers.built_in import is_built_in
from workbench.tools.server_pool import ServerPool
from workbench.trajectory.events import (
    CallFinished,
    CallStarted,
    Event,
    EventPayload,
    JsonValue,
    Message,
    Paused,
    RequestStarted,
    ResponseFinished,
    ResultReceived,
    Resumed,
    RunFinished,
    RunStarted,
    TextDelta,
    ToolCall,
    ToolDefinition,
    Usage,
)
from workbench.trajectory.fold import fold
from workbench.trajectory.trajectory import Trajectory
from workbench.tui.kit.questions import QuestionScreen
from workbench.tui.runs.runner import AppRuntime
from workbench.tui.shell.workbench import Workbench
from workbench.tui.storage import watch
from workbench.tui.terminal.environment import terminal_environment
from workbench.tui.terminal.output_stage import compose
from workbench.tui.tree import background_audit

GOLDENS = Path(__file__).parent / "goldens"
REGENERATE = "UPDATE_GOLDENS"
"""Set this environment variable to rewrite the golden screens."""

SMART_HOME = """
format = 1
name = "Smart home"
system = "You are a smart home assistant."

[[tools]]
name = "set_lights"
description = "Sets the lights of a room."

[[tools]]
name = "set_tv"
description = "Turns the TV on or off."

# A film, so the lights go down.
[[cases]]
name = "Movie night"
tags = ["evening"]
user = "Start movie night."

[[cases.ordered]]
tool = "set_lights"
[cases.ordered.args]
room = "living room"
brightness = { range = [5, 40] }

[[cases.ordered]]
tool = "set_tv"
args = { power = "on" }

[[cases]]
name = "Lights off"
user = "Switch the lights off."

[[cases.ordered]]
tool = "set_lights"
args = { brightness = 0 }

[[cases]]
name = "Nothing to do"
user = "Good night."
expect_no_calls = true
""".lstrip()

BROKEN = """
format = 1
name = "Broken"

[[cases]]
name = "One"
usr = "typo"
""".lstrip()

NEEDY = """
format = 1
name = "Needy"

[[servers]]
name = "home"
command = ["python", "server.py"]

[[cases]]
name = "Ask"
user = "Ask the server."
""".lstrip()


class ScriptedRuntime:
    """Takes the place of the engine. Nothing happens until the test makes it happen, but servers are real once the app
    asks for them."""

    def __init__(self, listener: BatchListener, program: Program) -> None:
        self._program = program
        self._engine: EngineThread | None = None
        self.listener = with_times(listener)
        self.runs: list[PlannedRun] = []
        self.stopped: list[str] = []
        self.trusted: list[bool] = []
        self.approvals: list[Approval] = []
        self.exempt: list[bool] = []
        self.allowed: list[tuple[str, str, PermissionAnswer]] = []
        self.until: list[StepTarget] = []
        """The step target with which each run was started."""
        self.gone_on: list[tuple[str, StepTarget]] = []
        self.done: list[tuple[str, Command]] = []
        self.refused: str | None = None
        """Why commands for a run are refused, or `None` to accept them."""
        self.held: dict[str, int] = {}
        """The engine's hold by run. It is the announced hold unless a test changes it."""
        self.slow = False
        """Whether the test answers commands itself, through `answers`."""
        self.answers: list[Future[str | None]] = []
        self.breakpoints: tuple[Breakpoint, ...] = ()
        self.closed = False
        self._batches = 0

    def start(
        self,
        plan: Plan,
        approval: Approval,
        *,
        recordings: Recordings | None = None,
        until: StepTarget = "end",
    ) -> str:
        runs = plan.runs
        self._batches += 1
        self.runs += runs
        self.until += [until for _ in runs]
        self.exempt += [plan.execution.exempt(run.file) for run in runs]
        self.approvals.append(approval)
        self.trusted += [approval.grant(run.file.path) is not None for run in runs]
        self.listener(BatchStarted(f"batch-{self._batches}", runs))
        return f"batch-{self._batches}"

    def batch_number(self, batch: str) -> int | None:
        return None

    def flush_history(self) -> None:
        pass

    def stop(self, run_id: str) -> None:
        self.stopped.append(run_id)

    def stop_all(self) -> None:
        self.stopped += [run.run_id for run in self.runs]

    def allow(self, run_id: str, call_id: str, answer: PermissionAnswer) -> None:
        self.allowed.append((run_id, call_id, answer))

    def raise_cost_limit(self, batch: str, usd: float | None) -> None:
        raise AssertionError("no batch of a scripted session has a limit on cost")

    def continue_run(self, run_id: str, until: StepTarget, hold: int | None) -> Future[str | None]:
        if (elsewhere := self._elsewhere(run_id, hold)) is None:
            self.gone_on.append((run_id, until))
        return self._answered(elsewhere)

    def apply_command(self, run_id: str, command: Command, hold: int) -> Future[str | None]:
        if (elsewhere := self._elsewhere(run_id, hold)) is None:
            self.done.append((run_id, command))
        return self._answered(elsewhere)

    def _elsewhere(self, run_id: str, hold: int | None) -> str | None:
        return None if self.held.get(run_id) == hold else "the run has moved on to another stop"

    def _answered(self, why_not: str | None) -> Future[str | None]:
        answered: Future[str | None] = Future()
        if self.slow:
            self.answers.append(answered)
        else:
            answered.set_result(why_not or self.refused)
        return answered

    def set_breakpoints(self, breakpoints: Sequence[Breakpoint]) -> None:
        self.breakpoints = tuple(breakpoints)

    @property
    def serving(self) -> ServerControl:
        if self._engine is None:
            self._engine = EngineThread()
            self._pool = ServerPool(self._program)
            self._serving = ServerControl(self._pool, self._engine, self._program)
        return self._serving

    def close(self) -> None:
        self.closed = True
        if self._engine is not None:
            self._engine.submit(self._pool.close()).result(10)
            self._engine.close(timeout_s=1)

    def say(self, planned: PlannedRun, *happenings: EventPayload, first: int = 0) -> None:
        """Send events of a run, numbered from `first`."""
        for number, what in enumerate(happenings, first):
            if isinstance(what, Paused) and what.at != "permission":
                self.held[planned.run_id] = number
            elif isinstance(what, Resumed | RunFinished):
                self.held.pop(planned.run_id, None)
            self.listener(RunEvent(Event(planned.run_id, number, float(number), what)))

    def ask(self, planned: PlannedRun, tool: ToolDefinition, arguments: Mapping[str, JsonValue] = {}) -> None:
        """Send a call of a tool, and hold the run until the user decides whether it may be executed."""
        call = ToolCall("c0", tool.name, arguments)
        self.say(
            planned,
            opening(planned),
            RequestStarted(1),
            CallStarted(1, call.id, tool.name),
            CallFinished(call.id, arguments),
            Paused(f"may {tool.name} be executed on server {tool.server!r}?", call.id),
        )
        self.listener(PermissionRequested(PermissionQuestion(planned.run_id, call, tool)))

    def finish(self, planned: PlannedRun, happenings: Sequence[EventPayload]) -> RunResult:
        """Send all events of a run, and grade it as the engine does."""
        self.say(planned, *happenings)
        events = [Event(planned.run_id, number, float(number), what) for number, what in enumerate(happenings)]
        return self.grade(planned, fold(events))

    def grade(self, planned: PlannedRun, trajectory: Trajectory) -> RunResult:
        grades, status, steps = grade_run_and_steps(planned.suite, planned.case, trajectory)
        path, case = str(planned.file.path), planned.case
        done = RunResult(
            planned.run_id,
            path,
            case.id,
            case.name,
            planned.model,
            planned.repeat,
            status,
            trajectory,
            grades,
            cost_usd=cost_of(trajectory, FREE if is_built_in(planned.model) else None),
            grading=planned.settings.grading,
            steps=steps,
        )
        self.listener(RunDone(done))
        return done

    def end_batch(self) -> None:
        self.listener(BatchDone(f"batch-{self._batches}"))


Call = tuple[str, dict[str, JsonValue]]


def opening(planned: PlannedRun) -> RunStarted:
    """Return the first event of a run."""
    tools = tuple(ToolDefinition(tool.name, tool.description) for tool in planned.suite.tools)
    system, user = planned.settings.system, planned.case.request or ""
    return RunStarted(
        planned.file.hash, planned.case.id, planned.case.name, planned.model, system, (Message("user", user),), tools
    )


def conversation(planned: PlannedRun, calls: Sequence[Call], answer: str) -> list[EventPayload]:
    """Return the events of a run that makes some calls, gets an answer to each, and then answers. All times are
    fixed."""
    happenings: list[EventPayload] = [opening(planned), RequestStarted(1)]
    for number, (tool, arguments) in enumerate(calls):
        happenings += [CallStarted(1, f"c{number}", tool), CallFinished(f"c{number}", arguments)]
    if calls:
        happenings.append(ResponseFinished(1, "tool calls", Usage(120, 38), 96.0, 412.0))
        for number in range(len(calls)):
            happenings.append(ResultReceived(f"c{number}", '{"ok": true}', False, "case mock", 12.0))
        happenings.append(RequestStarted(2))
    last = 2 if calls else 1
    happenings += [TextDelta(last, answer), ResponseFinished(last, "answered", Usage(171, 12), 80.0, 301.0)]
    return [*happenings, RunFinished("answered")]


MOVIE_NIGHT: Sequence[Call] = (("set_lights", {"room": "living room", "brightness": 60}),)
"""The calls of a model that dimmed too little and forgot the TV."""


class Opened:
    """The running app and the runtime it opened."""

    def __init__(self, app: Workbench, pilot: Pilot[int], sessions: list[ScriptedRuntime]) -> None:
        self.app = app
        self.pilot = pilot
        self._sessions = sessions
        self._seen: str | None = None

    @property
    def session(self) -> ScriptedRuntime:
        return self._sessions[-1]

    @property
    def screen(self) -> str:
        """The text of the screen. It is drawn once for all questions of a test until the app continues."""
        if self._seen is None:
            self._seen = screen_text(self.app)
            asyncio.get_running_loop().call_soon(self._look_again)
        return self._seen

    def _look_again(self) -> None:
        self._seen = None

    async def press(self, *keys: str) -> None:
        """Press keys and wait until the app settles."""
        await self.pilot.press(*keys)
        await self.settle()

    async def settle(self) -> None:
        """Wait until nothing is in progress in the app: workers, deliveries of events, moves of the cursor."""
        async with asyncio.timeout(20):
            while True:
                await self.pilot.pause()
                busy = any(worker.group not in ("start", "ask", "watch") for worker in self.app.workers)
                opening = not self.app.starting.has_ended or busy
                if not opening and not self.app.main.is_catching_up and not self.app.services.runner.is_delivering:
                    break
                await asyncio.sleep(0)
        await self.pilot.pause()

    async def run(self, *keys: str) -> list[PlannedRun]:
        """Press keys that start runs, wait until the runs were started, and return them."""
        before = len(self._sessions[-1].runs) if self._sessions else 0
        await self.pilot.press(*keys)
        await self.until(lambda: bool(self._sessions) and len(self._sessions[-1].runs) > before)
        await self.settle()
        return self.session.runs[before:]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition. Raises AssertionError with the screen if it stays false."""
        try:
            async with asyncio.timeout(20):
                while not condition():
                    await self.pilot.pause()
        except TimeoutError:
            raise AssertionError(f"what was waited for did not come; the screen:\n{self.screen}") from None
        await self.settle()


@asynccontextmanager
async def opened(
    folder: Path,
    *,
    size: tuple[int, int] = (120, 36),
    environment: dict[str, str] | None = None,
    models: Sequence[str] = (),
    paths: Sequence[Path] | None = None,
    trust: bool = False,
    variables: dict[str, str] | None = None,
    audits: bool = False,
    live: bool = False,
    record: Path | None = None,
    history: Path | None = None,
    begin: AppStart | None = None,
    errs: bool = False,
    watches: bool = False,
) -> AsyncIterator[Opened]:
    """Run the app on a folder, without a terminal and with a stopped clock. An error in the app fails the test unless
    it `errs`.

    `environment` is the terminal's, and `variables` are those that models and suites refer to. With `audits`, cases are
    audited at once. With `live`, the real engine runs cases. `record` is the folder of recordings, `history` the file
    of the history. `begin` selects the first runs. With `watches`, files are checked all the time instead of at key
    presses only."""
    sessions: list[ScriptedRuntime] = []

    def open_runtime(listener: BatchListener) -> AppRuntime:
        if live:
            return Runtime(listener, program, asks=True, history=history)
        sessions.append(ScriptedRuntime(listener, program))
        return sessions[-1]

    state = folder.parent / "state"
    program = create_program(Folders(state, state / "log", state / "config", state / "data"), variables or {})
    app = Workbench(
        [folder] if paths is None else paths,
        open_runtime=open_runtime,
        program=program,
        terminal=terminal_environment({"COLORTERM": "truecolor", "EDITOR": "vi"} | (environment or {})),
        models=models,
        trust=trust,
        clock=lambda: 0.0,
        record=record,
        history=history,
        start=begin,
    )
    # An audit marks cases a second after everything else. Tests of other features must not wait for that.
    background_audit.REST_S = 0.01 if audits else 3600.0
    # A question of the app accepts keys at once, unless its own class says otherwise.
    QuestionScreen.ANSWER_DELAY_S = 0.0
    # Tests of other features must not meet effects of their own changes to files.
    watch.CHECK_INTERVAL_S = 0.1 if watches else 3600.0
    async with app.run_test(size=size) as pilot:
        open_app = Opened(app, pilot, sessions)
        await open_app.settle()
        try:
            yield open_app
            if not errs:
                assert not app.containment.recent, app.containment.recent[0]
        finally:
            await asyncio.to_thread(app.services.runner.close)


def screen_text(app: App[Any]) -> str:
    """Return the screen as plain text, as a whole frame would draw it, without trailing blanks."""
    compositor = app.screen._compositor
    visible_screen_stack.set(app._background_screens)
    pieces = sorted(compose(compositor, [compositor.size.region]), key=lambda piece: (piece.y, piece.x))
    rows = groupby(pieces, lambda piece: piece.y)
    return "\n".join("".join(piece.strip.text for piece in row).rstrip() for _, row in rows)


def suites_in(folder: Path, **texts: str) -> Path:
    """Write suite files into the folder `suites`, and return the folder."""
    suites = folder / "suites"
    suites.mkdir()
    for name, text in texts.items():
        (suites / f"{name}.toml").write_text(text, encoding="utf-8")
    return suites


def assert_golden(text: str, name: str) -> None:
    """Compare a screen with its golden file. With `UPDATE_GOLDENS=1`, write the file."""
    if os.environ.get(REGENERATE):
        GOLDENS.mkdir(exist_ok=True)
        (GOLDENS / f"{name}.txt").write_text(text + "\n", encoding="utf-8")
    assert is_golden(text, name), f"{name}.txt shows something else:\n{text}"


def is_golden(text: str, name: str) -> bool:
    """Return whether a screen equals its golden file."""
    return text == (GOLDENS / f"{name}.txt").read_text(encoding="utf-8").removesuffix("\n")
