"""What the app costs in a real terminal: `python -m benchmarks.tui`, from the root of the repository.

Prints start, idle, a key in the tree, the same over a slow link, streaming into runs of a thousand and ten thousand
steps, and the tree with ten thousand cases. What is the same every time is asserted in `tests/tui/test_terminal.py`;
processor time and memory are information.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from itertools import count
from pathlib import Path
from statistics import median

from benchmarks.sizes import sized
from tests.tui.in_terminal import WORKBENCH, Terminal
from workbench.config.folders import Folders, bundled
from workbench.config.program import create_program
from workbench.engine.breakpoints import Breakpoint
from workbench.engine.checkpoint import Command
from workbench.engine.events import BatchListener, BatchStarted, RunEvent
from workbench.engine.executor import PermissionAnswer
from workbench.engine.recordings import Recordings
from workbench.engine.server_calls import ServerControl
from workbench.engine.stepper import StepTarget
from workbench.evaluation.approval import Approval
from workbench.evaluation.plan import Plan
from workbench.trajectory.events import (
    CallFinished,
    CallStarted,
    Event,
    EventPayload,
    RequestStarted,
    ResultReceived,
    RunStarted,
    TextDelta,
)
from workbench.tui.terminal.environment import terminal_environment

CASES = 20
MANY_CASES = sized(10_000, 200)
CHUNKS_PER_S = 300
STREAM_S = sized(5.0, 0.3)
QUIET_S = sized(0.6, 0.1)
LINK_BYTES_PER_S = 50_000
DOWN = "\x1b[B"
BENCHMARK = (sys.executable, "-m", "benchmarks.tui")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        suite = Path(folder) / "suite.toml"
        suite.write_text(_suite())
        _beside_minimal_app(Path(folder))
        _start_and_keys(suite, Path(folder))
        _slow_link(suite, Path(folder))
        for steps in sized((1_000, 10_000), (20,)):
            _streaming(suite, Path(folder), steps)
        for suites in sized((1, 100), (2,)):
            _many_cases(Path(folder), suites)


def _suite(count: int = CASES) -> str:
    cases = "".join(
        f'\n[[cases]]\nname = "Case number {number}"\nuser = "Do thing {number}, please."\n' for number in range(count)
    )
    return f'format = 1\nname = "Benchmark"\n{cases}'


LEAST_APP = (sys.executable, "-m", "benchmarks.minimal_app")
START_ROUNDS = sized(7, 1)


def _beside_minimal_app(state: Path) -> None:
    """Measure the start on the sample suites and that of the minimal app in turn. Only their ratio is comparable
    between machines."""
    samples = str(bundled("sample_suites"))
    least, ours = [], []
    for _ in range(START_ROUNDS):
        least.append(_start_cpu_ms((), LEAST_APP, "Case number 19", state))
        ours.append(_start_cpu_ms((samples,), WORKBENCH, "Not run yet.", state))
    print(f"start, samples      {median(ours):6.0f} ms CPU, the least app {median(least):.0f}:", end=" ")
    print(f"{median(ours) / median(least):.2f} times as much (aim: 1.6)")


def _start_cpu_ms(arguments: Sequence[str], program: Sequence[str], shown: str, state: Path) -> float:
    with Terminal(arguments, state, program=program, starts=True) as terminal:
        terminal.wait_for(shown)
        terminal.quiet(QUIET_S)
        return terminal.cpu_s * 1000


AUDIT_S = 2.0
"""The time in seconds until the visible cases are audited and marked."""


def _start_and_keys(suite: Path, state: Path) -> None:
    began = time.monotonic()
    with Terminal([str(suite)], state, starts=True) as terminal:
        terminal.wait_for("Not run yet.")
        painted_ms = (time.monotonic() - began) * 1000
        terminal.quiet(QUIET_S)
        print(f"start, {CASES} cases    {painted_ms:6.0f} ms to the first screen, {terminal.cpu_s * 1000:.0f} ms CPU,")
        print(
            f"                    {len(terminal.output):,} bytes, {terminal.memory_mb:.0f} MB (gates: 480, 6,000, 60)"
        )
        terminal.quiet(AUDIT_S)
        before = terminal.cpu_s
        print(f"idle, 3 s           {terminal.quiet(3.0)} bytes, {(terminal.cpu_s - before) * 1000:.0f} ms CPU")
        before, written = terminal.cpu_s, len(terminal.output)
        for _ in range(CASES - 2):
            terminal.send(DOWN)
            terminal.quiet(0.2)
        keys = CASES - 2
        print(
            f"a key in the tree   {(terminal.cpu_s - before) * 1000 / keys:.1f} ms CPU, "
            f"{(len(terminal.output) - written) / keys:,.0f} bytes (gates: 10, 500)"
        )


def _slow_link(suite: Path, state: Path) -> None:
    """Measure the same over a link of 50 kB/s. The program writes into one terminal, and a relay passes on what
    fits."""
    began = time.monotonic()
    with Terminal([str(suite)], state, bytes_per_s=LINK_BYTES_PER_S, starts=True) as terminal:
        terminal.wait_for("Not run yet.")
        print(f"over 50 kB/s        {(time.monotonic() - began) * 1000:6.0f} ms to the first screen,", end=" ")
        terminal.quiet(QUIET_S)
        began = time.monotonic()
        terminal.send(DOWN)
        terminal.wait_for("Case  Case number 1 ")
        print(f"{(time.monotonic() - began) * 1000:.0f} ms from a key in the tree to all panes,", end=" ")
        began = time.monotonic()
        for _ in range(CASES - 3):
            terminal.send(DOWN)
        terminal.wait_for(f"Case  Case number {CASES - 2} ")
        print(f"{(time.monotonic() - began) * 1000:.0f} ms for {CASES - 3} at once")


def _many_cases(state: Path, suites: int) -> None:
    """Open, walk through, filter, fold and edit ten thousand cases."""
    with tempfile.TemporaryDirectory() as folder:
        for number in range(suites):
            Path(folder, f"suite-{number:03}.toml").write_text(_suite(MANY_CASES // suites))
        with Terminal([folder], state, starts=True) as terminal:
            terminal.wait_for(f"{MANY_CASES:,} cases")
            terminal.quiet(QUIET_S)
            print(
                f"{MANY_CASES:,} cases in {suites:>3}: opened with {terminal.cpu_s * 1000:,.0f} ms CPU, "
                f"{terminal.memory_mb:.0f} MB"
            )
            steps = (
                ("unfolding a suite", "\x1b[H" + DOWN + "\x1b[C", 1),
                ("a key in the tree", DOWN, 20),
                ("End", "\x1b[F", 1),
                ("a key there", "\x1b[A", 20),
                ("opening the filter", "/", 1),
                ("a letter of the filter", "c", 1),
                ("a letter more", "a", 1),
                ("a letter that is wrong", "x", 1),
                ("a wrong one more", "e", 1),
                ("leaving the filter", "\x1b", 1),
                ("a case moved", "K", 5),
                ("a case copied", "d", 3),
                ("undone", "\x1a", 8),
                ("folding", "\x1b[D\x1b[D", 1),
                ("a key on a folded suite", DOWN + "\x1b[A", 5),
                ("the suite copied", "d", 1),
            )
            for said, keys, times in steps:
                before, written = terminal.cpu_s, len(terminal.output)
                for _ in range(times):
                    terminal.send(keys)
                    terminal.quiet(0.25)
                cpu_ms = (terminal.cpu_s - before) * 1000 / times
                print(f"  {said:<24}{cpu_ms:7.1f} ms CPU, {(len(terminal.output) - written) / times:7,.0f} bytes")


def _streaming(suite: Path, state: Path, steps: int) -> None:
    with Terminal([str(suite), str(steps)], state, program=BENCHMARK) as terminal:
        terminal.wait_for("Not run yet.")
        terminal.send("r")
        terminal.wait_for("chunk")
        terminal.quiet(0.05)
        before, written, began = terminal.cpu_s, len(terminal.output), time.monotonic()
        while time.monotonic() - began < STREAM_S:
            terminal.read(0.05)
        share = (terminal.cpu_s - before) / STREAM_S
        print(
            f"{CHUNKS_PER_S} chunks a second into {steps:>6,} steps: {share:.0%} of a core, "
            f"{(len(terminal.output) - written) / STREAM_S / 1000:.0f} kB/s, {terminal.memory_mb:.0f} MB (gate: 20 %)"
        )


class EndlessRuntime:
    """A run with many steps that continues to send text."""

    def __init__(self, listener: BatchListener, steps: int) -> None:
        self._listener = listener
        self._steps = steps
        self._closed = threading.Event()

    def start(
        self, plan: Plan, approval: Approval, *, recordings: Recordings | None = None, until: StepTarget = "end"
    ) -> str:
        self._listener(BatchStarted("batch", plan.runs))
        threading.Thread(target=self._talk, args=(plan.runs[0].run_id,), daemon=True).start()
        return "batch"

    def stop(self, run_id: str) -> None: ...
    def stop_all(self) -> None: ...
    def allow(self, run_id: str, call_id: str, answer: PermissionAnswer) -> None: ...
    def raise_cost_limit(self, batch: str, usd: float | None) -> None: ...
    def batch_number(self, batch: str) -> int | None:
        return None

    def flush_history(self) -> None: ...

    def set_breakpoints(self, breakpoints: Sequence[Breakpoint]) -> None: ...

    def continue_run(self, run_id: str, until: StepTarget, hold: int | None) -> Future[str | None]:
        raise AssertionError("nothing is held here")

    def apply_command(self, run_id: str, command: Command, hold: int) -> Future[str | None]:
        raise AssertionError("nothing is held here")

    @property
    def serving(self) -> ServerControl:
        raise AssertionError("no server is started here")

    def close(self) -> None:
        self._closed.set()

    def _talk(self, run_id: str) -> None:
        numbers = count()

        def say(*happenings: EventPayload) -> None:
            for what in happenings:
                self._listener(RunEvent(Event(run_id, next(numbers), 0.0, what)))

        say(RunStarted("hash", "case", "Case", "offline", None, (), ()), RequestStarted(1))
        for number in range(self._steps):
            call = f"c{number}"
            say(
                CallStarted(1, call, "look_up"),
                CallFinished(call, {"word": f"word {number}", "page": number}),
                ResultReceived(call, '{"found": true}', False, "default", 1.0),
            )
        for number in count():
            say(TextDelta(1, f"chunk number {number:06}" + ("\n" if number % 40 == 39 else " ")))
            if self._closed.wait(1 / CHUNKS_PER_S):
                return


def _endless_app(suite: Path, steps: int) -> None:
    from workbench.tui.shell.workbench import Workbench

    folder = Path(tempfile.mkdtemp())
    Workbench(
        [suite],
        open_runtime=lambda listener: EndlessRuntime(listener, steps),
        program=create_program(Folders(folder, folder, folder, folder), {}),
        terminal=terminal_environment({"COLORTERM": "truecolor"}),
    ).run()


if __name__ == "__main__":
    if len(sys.argv) == 3:
        _endless_app(Path(sys.argv[1]), int(sys.argv[2]))
    else:
        main()
