"""A run that waits because its endpoint told another run to wait shows that, and the end of the wait."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from workbench.show.spans import plain
from workbench.show.views.run_view import RunView
from workbench.trajectory.events import (
    Event,
    Message,
    RequestFailed,
    RequestStarted,
    RetryScheduled,
    RunFinished,
    RunStarted,
)
from workbench.tui.trajectory.run_lines import RunLines


def test_a_run_says_that_it_waits_since_another_one_was_told_to_and_until_when() -> None:
    view = RunView()
    lines = RunLines(view, 80)
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

    def shown() -> str:
        lines.sync()
        return "\n".join(plain(lines.line(index)) for index in range(lines.count))

    view.add(Event("run", 0, 0.0, RunStarted("hash", "case", "Case", "m", None, (Message("user", "Hi"),), ())))
    before = shown()
    for seconds in (0, 5):
        until = at + timedelta(seconds=seconds)
        view.delay_until(until)
        said = f"↻ waits until {until.astimezone():%H:%M:%S} at least: the endpoint asked another run to wait"
        assert shown().split() == f"{before} {said}".split()
    view.add(Event("run", 1, 10.0, RequestStarted(1)))
    assert "waits" not in shown()
    assert "waiting for the model …" in shown()
    view.add(Event("run", 2, 11.0, RequestFailed(1, "busy")))
    view.add(Event("run", 3, 11.0, RetryScheduled(1, 2, 60_000.0, "busy")))
    view.delay_until(at)
    assert "↻ retry 2" in shown() and "↻ waits until" in shown()
    view.add(Event("run", 4, 12.0, RunFinished("stopped")))
    assert "waits" not in shown() and "no answer" in shown()
