"""Packed runs equal the original ones, and stay small in any number."""

from __future__ import annotations

import copy
import gc
import pickle
import tracemalloc
from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.example_counts import examples
from tests.results import result
from tests.show.test_json_report import runs_made_up
from tests.trajectory.scripts import scripts
from workbench.analysis.failures import failures_of
from workbench.analysis.gates import quality_of
from workbench.analysis.totals import totals_of
from workbench.engine.events import RunDone
from workbench.evaluation import run as run_module
from workbench.evaluation.run import Outcome
from workbench.grading.grade import CallPairing, Grade, Issue, RunResult
from workbench.grading.packed import PackedResult, SharedParts
from workbench.grading.run_summary import summary_of
from workbench.grading.status import Status
from workbench.show.json.report import report_records
from workbench.show.text import Paint
from workbench.show.views.batch_text import text_report
from workbench.suite.expected_calls import ExpectedCall
from workbench.suite.model import Case
from workbench.trajectory.events import Event, ToolDefinition
from workbench.trajectory.fold import fold

MOST_BYTES = 1600
"""The maximum size of a small packed run. Unpacked, it takes five times as much."""

ASKED_OF_ALL = [name for name, value in vars(RunResult).items() if isinstance(value, property) and name != "small"]


@settings(max_examples=examples(45))
@given(st.lists(runs_made_up, min_size=1, max_size=3), scripts())
def test_a_packed_result_is_the_one_that_was_packed(runs: list[RunResult], others: list[Event]) -> None:
    in_common = SharedParts()
    in_common.packed(result(Status.PASSED, 1.0, trajectory=fold(others)))  # what the sample is made of
    for run in runs:
        packed = in_common.packed(run)
        assert isinstance(packed, PackedResult) and isinstance(packed, RunResult)
        assert packed == run and run == packed and packed == in_common.packed(run)
        assert repr(packed) == repr(run)
        for name in (*(field.name for field in fields(RunResult)), *ASKED_OF_ALL):
            assert getattr(packed, name) == getattr(run, name), name
        assert summary_of(packed) == summary_of(run)
        for other in (pickle.loads(pickle.dumps(packed)), copy.copy(packed), replace(packed)):
            assert type(other) is RunResult and other == run
        assert replace(packed, error="other") == replace(run, error="other") != packed
        assert packed.with_status(Status.SKIPPED) == run.with_status(Status.SKIPPED)
        assert packed.with_status(Status.SKIPPED).reason == run.with_status(Status.SKIPPED).reason
        assert in_common.packed(packed) is packed


def test_tools_are_the_same_objects_in_all_runs() -> None:
    tools = tuple(ToolDefinition(f"tool-{number}", "x" * 1000, {"type": "object"}) for number in range(20))
    run = result(Status.PASSED, 1.0)
    assert run.trajectory.start is not None
    start = replace(run.trajectory.start, tools=tools)
    run = replace(run, trajectory=replace(run.trajectory, start=start))
    packed = [SharedParts().packed(run) for _ in range(10)]
    assert all(isinstance(each, PackedResult) and each.size < MOST_BYTES / 2 for each in packed)
    for each in packed:
        assert each.trajectory.start is not None
        assert [*map(id, each.trajectory.start.tools)] == [*map(id, tools)]


def test_reports_say_the_same_of_packed_runs() -> None:
    whole = mixed(40)
    in_common = SharedParts()
    packed = [in_common.packed(run) for run in whole]
    said = []
    for runs in (whole, packed):
        quality = quality_of(runs, {}, 0.5)
        case = Case(id="case", name="Case", ordered=(ExpectedCall(tool="search"),))
        failures = failures_of((run, case) for run in runs)
        names, paint = {"suite.toml": "Suite"}, Paint(False)
        lines = [*text_report(runs, quality, suite_names=names, width=100, paint=paint, amount="much")]
        records = [*report_records(runs, quality.cases)["runs"]]
        groups = [(group.cause, group.main, group.cases, group.subjects) for group in failures.groups]
        said.append((totals_of(runs), quality.gates, quality.cases, groups, failures.confusion, lines, records))
    assert said[0] == said[1]


@pytest.mark.slow
def test_the_bytes_of_a_run_stay_few_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "MAX_UNPACKED_RUNS", whole := 50)
    outcome = Outcome()
    for run in mixed(whole + 50):
        outcome.on_event(RunDone(run, 0.0, 1.0))
    more = 1000
    gc.collect()
    tracemalloc.start()
    try:
        for run in mixed(more, "later"):
            outcome.on_event(RunDone(run, 0.0, 1.0))
        del run
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(outcome.results) == whole + 50 + more
    assert held / more < MOST_BYTES


def test_runs_with_long_texts_are_packed_earlier(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = mixed(12)
    monkeypatch.setattr(run_module, "MAX_UNPACKED_CHARACTERS", 100)
    outcome = Outcome()
    for run in runs:
        outcome.on_event(RunDone(run, 0.0, 1.0))
    packed = [isinstance(result, PackedResult) for result in outcome.results]
    assert not packed[0] and packed[-1] and packed == sorted(packed)
    assert list(outcome.results) == runs


def mixed(number: int, name: str = "case") -> list[RunResult]:
    """Runs of many cases: passed, failed with an issue, in error."""
    return [_mixed(index, f"{name}-{index}") for index in range(number)]


def _mixed(index: int, case: str) -> RunResult:
    score = index % 7 / 7
    if index % 10 == 9:
        return result(Status.ERROR, case=case, error="the endpoint is down")
    if index % 3:
        return result(Status.PASSED, 1.0, case=case, rounds=1 + index % 3, repeat=0)
    issues = (Issue("wrong argument", f"not {index}", "search", 0, 0, "query", '"a"', '"b"', True),)
    pairings = (CallPairing(0, 0, True, 1.0, 1.0),)
    grade = Grade("critics", score, Status.FAILED, f"{index} is too little", pairings, issues)
    return result(Status.FAILED, score, case=case, rounds=2, grade=grade)
