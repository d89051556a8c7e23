"""The progress of a batch, counted from its events."""

from __future__ import annotations

from collections.abc import Iterable

from workbench.engine.events import BatchEvent, RequestDelayed, RunDone, RunEvent, StartUp
from workbench.engine.plan import PlannedRun
from workbench.grading.run_summary import RunSummary
from workbench.show.views.progress import Progress
from workbench.show.views.values import AnswerProgress
from workbench.trajectory.events import (
    CallArgumentsDelta,
    Event,
    PromptProgress,
    ReasoningDelta,
    RequestFailed,
    RequestStarted,
    ResponseFinished,
    RetryScheduled,
    TextDelta,
)


class BatchProgress(Progress):
    """The progress of planned runs. `over` are runs that a resumed batch finished earlier."""

    def __init__(self, runs: Iterable[PlannedRun], finished_runs: Iterable[RunSummary] = ()) -> None:
        super().__init__()
        self._model_of = {run.run_id: run.model for run in runs}
        self.plan(self._model_of.values())
        for run in finished_runs:
            self.add_ended(run.model, run.status, run.cost_usd)

    def on_event(self, event: BatchEvent, now_s: float) -> bool:
        """Record an event at the time `now_s`. Returns true if the progress line must be redrawn."""
        match event:
            case RunEvent(happened):
                self.add_run(happened.run_id, self._model_of[happened.run_id], now_s)
                self.set_waiting(happened.run_id, waits=isinstance(happened.payload, RetryScheduled))
                return self._record(happened, now_s)
            case RequestDelayed(run_id):
                self.set_waiting(run_id, waits=True)
            case StartUp(number, took_ms=took_ms):
                self.set_starting(number, event.words, has_ended=took_ms is not None)
            case RunDone(result):
                # A run in another process may send no events before its end.
                if result.was_asked:
                    self.add_run(result.run_id, result.model, now_s)
                self.count_run(result.run_id, result.model, result.status, result.cost_usd, result.user_cost_usd)
            case _:
                return False
        return True

    def _record(self, event: Event, now_s: float) -> bool:
        """Record an event of a run. Returns true if the progress line must be redrawn at once.

        New text of an answer is not redrawn at once, because it arrives often. The next timed redraw shows it."""
        awaited = self.awaited.get(event.run_id)
        match event.payload:
            case RequestStarted():
                # A dictionary keeps requests in the order in which they were sent. A repeated request moves to the end.
                self.awaited.pop(event.run_id, None)
                self.awaited[event.run_id] = AnswerProgress(now_s)
            case PromptProgress() as reading if awaited is not None:
                awaited.reading = reading
            case TextDelta(text=piece) | ReasoningDelta(text=piece) | CallArgumentsDelta(fragment=piece):
                if awaited is not None:
                    awaited.add(piece, now_s)
                return False
            case RequestFailed() | ResponseFinished():
                self.awaited.pop(event.run_id, None)
            case _:
                pass
        return True
