"""What the comparison costs in a real terminal: `python -m benchmarks.compare`, from the root of the repository.

2,000 cases on 8 models fill in, a hundred results a second; then keys, sorting, filtering and opening are measured with
all 16,000 there. Gates: 20 % of a core while it fills in, 10 ms and 1.2 kB for a key.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.sizes import sized
from benchmarks.tui import EndlessRuntime
from tests.tui.in_terminal import Terminal
from workbench.config.folders import Folders
from workbench.config.program import create_program
from workbench.engine.events import BatchDone, BatchListener, BatchStarted, RunDone, RunEvent, with_times
from workbench.engine.plan import PlannedRun
from workbench.evaluation.approval import Approval
from workbench.evaluation.plan import Plan
from workbench.grading.grade import Grade, RunResult
from workbench.grading.run import grade_run_and_steps
from workbench.grading.status import Status
from workbench.trajectory.events import (
    Event,
    EventPayload,
    RequestStarted,
    ResponseFinished,
    RunFinished,
    RunStarted,
    TextDelta,
    Usage,
)
from workbench.trajectory.fold import fold
from workbench.tui.terminal.environment import terminal_environment

CASES = sized(2_000, 60)
MODELS = 8
RESULTS_PER_S = 100
FILLING_S = sized(8.0, 0.3)
QUIET_S = sized(0.6, 0.1)
MANY_TIMES = sized(8, 1)
UP, DOWN, RIGHT, LEFT, END, PAGE_DOWN = "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D", "\x1b[F", "\x1b[6~"
BENCHMARK = (sys.executable, "-m", "benchmarks.compare")


def main() -> None:
    for columns, rows in ((160, 48), (80, 24)):
        with tempfile.TemporaryDirectory() as folder:
            suite = Path(folder) / "suite.toml"
            suite.write_text(_suite())
            print(f"{CASES:,} cases, {MODELS} models, {columns} x {rows}")
            go = Path(folder) / "go"
            with Terminal(
                [str(suite), str(go)], Path(folder), program=BENCHMARK, columns=columns, rows=rows
            ) as terminal:
                _measure(terminal, go)


def _suite() -> str:
    cases = "".join(
        f'\n[[cases]]\nname = "Case number {number}"\nuser = "Do thing {number}, please."\nexpect_no_calls = true\n'
        for number in range(CASES)
    )
    return f'format = 1\nname = "Benchmark"\n{cases}'


def _measure(terminal: Terminal, go: Path) -> None:
    terminal.wait_for(f"{CASES:,} cases")
    terminal.quiet(QUIET_S)
    _step(terminal, "opening it, nothing run", "v")
    terminal.send("R")
    terminal.wait_for(f"/{CASES * MODELS:,}")
    terminal.read(QUIET_S)
    before, written, began = terminal.cpu_s, len(terminal.output), time.monotonic()
    while time.monotonic() - began < FILLING_S:
        terminal.read(0.05)
    took = time.monotonic() - began
    print(
        f"  {'filling in at 100 a second':<28}{(terminal.cpu_s - before) / took:7.0%} of a core, "
        f"{(len(terminal.output) - written) / took / 1000:.1f} kB/s (gate: 20 %)"
    )
    go.touch()
    while f"/{CASES * MODELS:,}" in terminal.screen.splitlines()[0]:
        terminal.read(0.5)
    terminal.quiet(1.0)
    steps = (
        ("a key down", DOWN, MANY_TIMES),
        ("a key to the right", RIGHT, 2),
        ("a page", PAGE_DOWN, MANY_TIMES),
        ("End", END, 1),
        ("sorting", "o", 1),
        ("sorting the other way", "o", 1),
        ("only differences", "d", 1),
        ("all again", "d", 1),
        ("opening the filter", "/", 1),
        ("a letter", "9", 1),
        ("one more", "9", 1),
        ("leaving it", "\x1b", 1),
        ("totals away", "t", 1),
        ("totals back", "t", 1),
        ("a run", "\r", 1),
        ("back", "\x1b", 1),
        ("leaving", "\x1b", 1),
        ("opening it, all run", "v", 1),
    )
    for said, keys, times in steps:
        _step(terminal, said, keys, times)
    print(f"  {terminal.memory_mb:.0f} MB")


def _step(terminal: Terminal, said: str, keys: str, times: int = 1) -> None:
    before, written = terminal.cpu_s, len(terminal.output)
    for _ in range(times):
        terminal.send(keys)
        terminal.quiet(QUIET_S)
    cpu_ms = (terminal.cpu_s - before) * 1000 / times
    print(f"  {said:<28}{cpu_ms:7.1f} ms CPU, {(len(terminal.output) - written) / times:7,.0f} bytes")


class FillingRuntime(EndlessRuntime):
    """Runs of one short answer each, `RESULTS_PER_S` per second, and all remaining ones once a file exists."""

    def __init__(self, listener: BatchListener, go: Path) -> None:
        super().__init__(with_times(listener), 0)
        self._go = go
        self._grades: tuple[Grade, ...] = ()

    def start(self, plan: Plan, approval: Approval, **how: Any) -> str:
        self._listener(BatchStarted("batch", plan.runs))
        threading.Thread(target=self._fill, args=(plan.runs,), daemon=True).start()
        return "batch"

    def _fill(self, runs: Sequence[PlannedRun]) -> None:
        began = time.monotonic()
        for number, run in enumerate(runs):
            wait_s = began + number / RESULTS_PER_S - time.monotonic()
            if wait_s > 0 and not self._go.exists() and self._closed.wait(wait_s):
                return
            self._make(run, number)
        self._listener(BatchDone("batch"))

    def _make(self, run: PlannedRun, number: int) -> None:
        happenings: tuple[EventPayload, ...] = (
            RunStarted("hash", run.case.id, run.case.name, run.model, None, (), ()),
            RequestStarted(1),
            TextDelta(1, "Done."),
            ResponseFinished(1, "answered", Usage(120, 12), 80.0 + number % 50, 300.0 + number % 700),
            RunFinished("answered"),
        )
        events = [Event(run.run_id, at, float(at), what) for at, what in enumerate(happenings)]
        for event in events:
            self._listener(RunEvent(event))
        trajectory = fold(events)
        if not self._grades:
            self._grades = grade_run_and_steps(run.suite, run.case, trajectory)[0]
        status: Status = Status.PASSED if hash((run.case.id, run.model)) % 4 else Status.FAILED
        case = run.case
        names = (run.run_id, str(run.file.path), case.id, case.name, run.model, run.repeat)
        self._listener(RunDone(RunResult(*names, status, trajectory, self._grades)))


def _filling_app(suite: Path, go: Path) -> None:
    from workbench.tui.shell.workbench import Workbench

    folder = Path(tempfile.mkdtemp())
    Workbench(
        [suite],
        open_runtime=lambda listener: FillingRuntime(listener, go),
        program=create_program(Folders(folder, folder, folder, folder), {}),
        terminal=terminal_environment({"COLORTERM": "truecolor"}),
        models=[f"model-{number}" for number in range(MODELS)],
        trust=True,
    ).run()


if __name__ == "__main__":
    if len(sys.argv) == 3:
        _filling_app(Path(sys.argv[1]), Path(sys.argv[2]))
    else:
        main()
