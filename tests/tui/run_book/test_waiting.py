"""While a model is waited for: the time, then the speed, and the endpoint's progress; a second costs few bytes."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.providers.server import HANG, Answer, Server
from tests.providers.server.formats import blocks_of, sse
from tests.tui.in_terminal import Terminal
from workbench.show.spans import plain
from workbench.show.views.run_view import RunView
from workbench.trajectory.events import (
    CallArgumentsDelta,
    CallStarted,
    Event,
    EventPayload,
    PromptProgress,
    ReasoningDelta,
    RequestFailed,
    RequestStarted,
    ResponseFinished,
    RetryScheduled,
    TextDelta,
)
from workbench.tui.trajectory.run_lines import RunLines

BEGAN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SUITE = """format = 1
name = "Rain"
[[cases]]
name = "Drizzle"
user = "Say rain."
response_contains = ["rain"]
"""


class Shown:
    """A run on the screen, whose events come at seconds of its clock."""

    def __init__(self) -> None:
        self.view = RunView()
        self.view.began = BEGAN
        self.lines = RunLines(self.view, 100)
        self._next = 0

    def add(self, at_s: float, what: EventPayload) -> None:
        self.view.add(Event("run", self._next, at_s * 1000, what))
        self._next += 1

    def at(self, seconds: float) -> str:
        """The line of the answer at a second."""
        self.view.pass_time(BEGAN + timedelta(seconds=seconds))
        self.lines.sync()
        return plain(self.lines.line(0)).strip()


def test_the_time_the_progress_and_the_speed_are_shown_as_they_become_known() -> None:
    run = Shown()
    run.add(2.0, RequestStarted(1))
    assert run.at(2.5).endswith("waiting for the model …")
    assert run.at(14.0).endswith("waiting for the model … · 12 s")
    run.add(14.5, PromptProgress(1, 512, 2048, 500.0))
    assert run.at(15.0).endswith("reading the prompt … · 13 s · 512 of 2,048 tokens")
    run.add(16.0, PromptProgress(1, 2048, 2048, 2000.0))
    assert run.at(17.0).endswith("waiting for the model … · 15 s")
    run.add(18.0, ReasoningDelta(1, "x" * 40))
    run.add(19.0, TextDelta(1, "x" * 40))
    run.add(20.0, CallStarted(1, "c1", "send"))
    run.add(20.0, CallArgumentsDelta("c1", "x" * 76))
    assert run.at(22.0).endswith("answering … · 20 s · about 10 tokens/s")
    run.add(23.0, ResponseFinished(1, "tool calls", None, 16_000.0, 21_000.0, waited_ms=12_000.0))
    assert run.at(24.0).endswith("waited 12.0 s for a free slot")
    assert "answering" not in run.at(25.0)


def test_a_retry_counts_anew_and_stands_still_until_it_is_sent() -> None:
    run = Shown()
    run.add(0.0, RequestStarted(1))
    run.add(9.0, RequestFailed(1, "busy"))
    run.add(9.0, RetryScheduled(1, 2, 5_000.0, "busy"))
    assert run.at(10.0) == run.at(12.0)
    run.add(14.0, RequestStarted(1))
    assert run.at(17.0).endswith("waiting for the model … · 3 s")


@pytest.mark.slow
def test_a_second_of_waiting_costs_few_bytes_and_the_end_of_the_wait_none(tmp_path: Path) -> None:
    (tmp_path / "rain.toml").write_text(SUITE, encoding="utf-8")
    reading = {"total": 2048, "cache": 0, "processed": 512, "time_ms": 9}
    progress = sse({"choices": [{"index": 0, "delta": {"content": None}}], "prompt_progress": reading})
    head, *_ = blocks_of("openai", "Rain")
    with Server([Answer((progress, head, HANG))], slots=1) as server:
        words = [str(tmp_path / "rain.toml"), "--model", f"openai:m@{server.url}/v1"]
        with Terminal(words, tmp_path / "state") as terminal:
            terminal.wait_for("Drizzle")
            terminal.send("r")
            terminal.wait_for("reading the prompt … · 2 s")
            before, until = len(terminal.output), time.monotonic() + 3.0
            while time.monotonic() < until:
                terminal.read(0.1)
            assert 0 < len(terminal.output) - before < 3 * 1_000
            terminal.send("x")
            terminal.wait_for("stopped")
            assert terminal.falls_silent(1.5)
