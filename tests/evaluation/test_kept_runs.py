"""Results of a large running batch: for stored runs only figures stay in memory, which no report shows."""

from __future__ import annotations

import queue
from contextlib import closing
from pathlib import Path

import pytest

from tests.history.batches import SUITE
from tests.programs import approval_of, program_of
from workbench.engine.events import BatchDone, BatchEvent, RunDone
from workbench.engine.plan import plan_runs
from workbench.evaluation import run
from workbench.evaluation.plan import Plan
from workbench.evaluation.report import Report
from workbench.evaluation.run import Outcome
from workbench.evaluation.runtime import Runtime
from workbench.grading.packed import PackedResult
from workbench.history.records import HistoryError
from workbench.history.writer import BatchHandle
from workbench.show.forms import forms_of
from workbench.suite.suite_file import load_suite

FORMS = forms_of("run", for_report=True)
REPEATS = 4
KEPT = 2


@pytest.mark.slow
def test_a_report_read_from_the_history_is_that_of_runs_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite, file = tmp_path / "weather.toml", tmp_path / "history.sqlite3"
    suite.write_text(SUITE, encoding="utf-8")
    program = program_of(tmp_path)
    program.secrets.add("KEY", "Berlin")
    runs = plan_runs([load_suite(suite)], repeats=REPEATS)
    plan = Plan.of(runs, program)
    said: queue.SimpleQueue[BatchEvent] = queue.SimpleQueue()
    with closing(Runtime(said.put, program, history=file)) as runtime:
        name = runtime.start(plan, approval_of(runs, program))
        events = [said.get(timeout=20)]
        while not isinstance(events[-1], BatchDone):
            events.append(said.get(timeout=20))
    handle = runtime.handle_of(name)
    assert handle is not None and runtime.missing_in_history(name) == 0
    done = [event for event in events if isinstance(event, RunDone)][::-1]

    def outcome_of(recorded: BatchHandle | None) -> Outcome:
        outcome = Outcome(started_at="2030-01-01T00:00:00.000", took_s=1.0)
        if recorded is not None:
            outcome.results.read_from(file, recorded)
        for event in done:
            outcome.on_event(event)
        outcome.end(runtime, name)
        return outcome

    def written(report: Report) -> list[str]:
        texts = [report.text(amount=amount) for amount in ("little", "normal", "much")]
        return ["".join(report.pieces(form)) for form in FORMS if form != "text"] + texts + [report.failure_text()]

    in_memory = outcome_of(None)
    monkeypatch.setattr(run, "MAX_UNPACKED_RUNS", 1)
    monkeypatch.setattr(run, "MAX_PACKED_RUNS", KEPT)
    packed, read = outcome_of(None), outcome_of(handle)
    assert packed.results.are_in_memory and isinstance(packed.results[-1], PackedResult)
    let_go = read.results._let_go
    assert let_go is not None and len(let_go) == len(done) - KEPT and let_go.count_in_memory == 0
    expected = written(in_memory.report(plan))
    assert "$KEY" in expected[0] and "Berlin" not in "".join(expected)
    for one, other, third in zip(expected, written(packed.report(plan)), written(read.report(plan)), strict=True):
        assert one == other == third
    assert [*read.figures_by_run] == [*in_memory.figures_by_run] and read.timing == in_memory.timing

    # Runs written to a history that was then removed are reported as missing, never silently omitted.
    file.rename(tmp_path / "elsewhere")
    with pytest.raises(HistoryError, match="no longer has run"):
        written(outcome_of(handle).report(plan))
    # Runs that a history has lost, or never had, are still in memory.
    handle.mark_all_lost()
    lacking = outcome_of(handle)
    assert not lacking.results.are_in_memory and written(lacking.report(plan)) == expected
