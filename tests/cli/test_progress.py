"""The progress on the last line of a terminal: drawn seldom, taken away before anything else is written, gone in the
end."""

from __future__ import annotations

import io
import re
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.providers.server import Answer, Server, Signal, said
from tests.tui.in_terminal import Terminal
from workbench.cli.live import PROGRESS_POLL_S, REDRAW_INTERVAL_S, ProgressBar
from workbench.engine.events import RequestDelayed, RunEvent, StartUp
from workbench.engine.plan import plan_runs
from workbench.evaluation.progress import BatchProgress
from workbench.grading.status import Status
from workbench.show.spans import plain
from workbench.show.views.progress import Progress, progress_line, starting_text
from workbench.suite.suite_file import parse_suite
from workbench.trajectory.events import (
    Event,
    EventPayload,
    PromptProgress,
    RequestFailed,
    RequestStarted,
    ResponseFinished,
    RetryScheduled,
    TextDelta,
)

GREETINGS = 'format = 1\nname = "Greetings"\n' + "".join(
    f'[[cases]]\nname = "Greeting {number}"\nuser = "Say hello."\nexpect_no_calls = true\n' for number in range(7)
)
MODEL = '[models.gated]\nprovider = "openai"\nmodel = "m"\nbase_url = "{url}/v1"\n'
STEPS = 2
"""The lines that tell a run of one of them."""

CLEAR = "\r\x1b[2K"


class FakeTerminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


class Drawn:
    """A progress bar of four runs on a terminal, with its own clock."""

    def __init__(self, **environment: str) -> None:
        self.now_s = 100.0
        self.progress = Progress()
        self.progress.plan(["m"] * 4)
        self.terminal = FakeTerminal()
        variables = {"NO_COLOR": "1", **environment}
        self.bar = ProgressBar(self.progress, self.terminal, variables, lambda: self.now_s)

    def written(self) -> str:
        """Return the output since the last call."""
        text = self.terminal.getvalue()
        self.terminal.seek(0)
        self.terminal.truncate()
        return text

    def one_more(self) -> None:
        self.progress.count_run(f"run-{self.progress.done}", "m", Status.PASSED, None)
        self.bar.changed()


def test_it_is_drawn_at_most_ten_times_a_second() -> None:
    drawn = Drawn()
    drawn.bar.draw()
    assert "0/4" in drawn.written()
    drawn.one_more()
    drawn.bar.draw()
    assert drawn.written() == ""
    assert drawn.bar.wait_s() == pytest.approx(REDRAW_INTERVAL_S)
    drawn.now_s += REDRAW_INTERVAL_S
    drawn.bar.draw()
    assert drawn.written() == f"{CLEAR}███░░░░░░░░░ · 1/4 · ✓ 1 · 3 left"


def test_nothing_is_written_when_nothing_has_changed() -> None:
    drawn = Drawn()
    drawn.bar.draw()
    drawn.written()
    drawn.now_s += PROGRESS_POLL_S
    assert drawn.bar.wait_s() == 0.0
    drawn.bar.draw()
    assert drawn.written() == ""
    assert drawn.bar.wait_s() == pytest.approx(PROGRESS_POLL_S)


def test_what_else_is_written_stands_above_it() -> None:
    drawn = Drawn()
    drawn.bar.draw()
    drawn.written()
    above = drawn.bar.stream_above(drawn.terminal)
    above.write("a step\n")
    assert drawn.written() == f"{CLEAR}a step\n"
    drawn.now_s += REDRAW_INTERVAL_S
    drawn.bar.draw()
    assert "0/4" in drawn.written()


def test_it_waits_for_the_end_of_a_line_that_was_begun() -> None:
    drawn = Drawn()
    above = drawn.bar.stream_above(drawn.terminal)
    above.write("half a ")
    drawn.bar.draw()
    assert drawn.written() == "half a "
    above.write("line\n")
    drawn.now_s += REDRAW_INTERVAL_S
    drawn.bar.draw()
    assert "0/4" in drawn.written()


def test_it_is_gone_in_the_end_and_stays_so() -> None:
    drawn = Drawn()
    drawn.bar.draw()
    drawn.written()
    drawn.bar.close()
    drawn.now_s += PROGRESS_POLL_S
    drawn.bar.draw()
    assert drawn.written() == CLEAR
    assert drawn.bar.wait_s() is None


def test_runs_that_wait_to_ask_again_are_said() -> None:
    terminal = FakeTerminal()
    runs = plan_runs([parse_suite(GREETINGS, Path("greetings.toml"))], models=["m"])[:3]
    progress = BatchProgress(runs)
    for run in runs:
        progress.on_event(RunEvent(Event(run.run_id, 0, 0.0, RequestStarted(1))), 0.0)
    progress.on_event(RunEvent(Event(runs[0].run_id, 1, 0.0, RetryScheduled(1, 2, 8_000.0, "429"))), 0.0)
    progress.on_event(RequestDelayed(runs[1].run_id, 8.0), 0.0)
    progress.on_event(RequestDelayed(runs[2].run_id, 8.0), 0.0)
    progress.on_event(RunEvent(Event(runs[2].run_id, 1, 0.0, RequestStarted(1))), 0.0)
    ProgressBar(progress, terminal, {"NO_COLOR": "1"}).draw()
    assert "3 running, 2 of them waiting · " in terminal.getvalue()


def test_what_starts_up_is_named_until_it_has_started() -> None:
    terminal = FakeTerminal()
    progress = BatchProgress(())
    bar = ProgressBar(progress, terminal, {"NO_COLOR": "1"})
    progress.on_event(StartUp(1, "server weather", downloads=True), 0.0)
    assert starting_text(progress.starting.values()) == "downloading server weather"
    progress.on_event(StartUp(1, "server weather"), 0.0)
    bar.draw()
    assert " · starting server weather" in terminal.getvalue()
    progress.on_event(StartUp(2, "model llama"), 0.0)
    assert starting_text(progress.starting.values()) == "starting server weather and 1 other"
    progress.on_event(StartUp(1, "server weather", 5.0), 0.0)
    progress.on_event(StartUp(2, "model llama", 5.0), 0.0)
    bar.close()
    ProgressBar(progress, terminal, {}).draw()
    assert terminal.getvalue().count("starting") == 1


def test_where_there_is_no_terminal_nothing_is_drawn() -> None:
    stream = io.StringIO()
    bar = ProgressBar(Progress(), stream, {})
    bar.draw()
    assert stream.getvalue() == ""
    assert bar.wait_s() is None
    assert bar.stream_above(stream) is stream


def test_a_terminal_that_cannot_move_its_cursor_is_spared() -> None:
    drawn = Drawn(TERM="dumb")
    drawn.bar.draw()
    assert drawn.written() == ""


def test_room_is_left_for_what_a_terminal_shows_of_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = Drawn()
    drawn.bar.draw()
    whole = len(drawn.written())
    for free, is_whole in ((3, True), (2, False)):
        drawn = Drawn()
        monkeypatch.setattr(drawn.bar, "_columns", lambda free=free: whole + free)
        drawn.bar.draw()
        assert (len(drawn.written()) == whole) == is_whole


def test_a_person_who_wants_ascii_gets_it() -> None:
    drawn = Drawn(WORKBENCH_ASCII="1")
    drawn.bar.draw()
    assert drawn.written() == "............ | 0/4 | 4 left"


def test_in_a_real_terminal_it_stands_below_the_steps_and_leaves_nothing_behind(tmp_path: Path) -> None:
    gate, hello = Signal(), said("openai", "Hello.")
    answers = iter([hello] * 3 + [Answer((gate, *hello.pieces))] * 4)
    with Server(lambda _: next(answers)) as server, ExitStack() as stack:
        stack.callback(gate.set)
        (tmp_path / "greetings.toml").write_text(GREETINGS, encoding="utf-8")
        (tmp_path / "workbench.toml").write_text(MODEL.format(url=server.url), encoding="utf-8")
        words = ["run", "greetings.toml", "--trust", "--model", "gated", "--concurrency", "1"]
        with Terminal(words, tmp_path / "state", columns=60, rows=40, folder=tmp_path) as terminal:
            terminal.wait_for(lambda: re.search(r"[█░]+ · 3/7 · ✓ 3 · 1 running", terminal.screen) is not None)
            terminal.resize(30, 40)
            terminal.wait_for(lambda: re.search(r"^3/7 · ✓ 3( · 1 running)?$", terminal.screen, re.M) is not None)
            terminal.resize(100, 60)
            gate.set()
            assert terminal.end() == 0
    lines = terminal.screen.splitlines()
    assert "7 runs: 7 passed, 0 failed" in lines
    assert not [line for line in lines if "running" in line]
    assert len([line for line in lines if line.startswith("Greeting")]) == 7 * STEPS


def test_the_oldest_answer_that_is_waited_for_is_said_with_its_time_progress_and_speed() -> None:
    runs = plan_runs([parse_suite(GREETINGS, Path("greetings.toml"))], models=["m"])[:2]
    progress = BatchProgress(runs)

    def take(run: int, what: EventPayload, at_s: float) -> bool:
        return progress.on_event(RunEvent(Event(runs[run].run_id, 0, 0.0, what)), at_s)

    def line(at_s: float) -> str:
        return plain(progress_line(progress, at_s, width=160))

    take(0, RequestStarted(1), 10.0)
    take(1, RequestStarted(1), 11.0)
    assert "waiting" not in line(11.0)
    assert " · waiting for the model: 12 s" in line(22.0)
    take(0, PromptProgress(1, 512, 2048, 9.0), 22.0)
    assert " · reading the prompt: 13 s, 512 of 2,048 tokens" in line(23.0)
    assert not take(0, TextDelta(1, "x" * 80), 24.0)  # shown as time goes by
    assert " · answering: 16 s, about 10 tokens/s" in line(26.0)
    take(0, ResponseFinished(1, "answered", None, 1.0, 2.0), 27.0)
    assert " · waiting for the model: 17 s" in line(28.0)
    take(1, RequestFailed(1, "busy"), 29.0)
    assert "the model" not in line(40.0)
