"""Exit codes of any batch: a batch without grades or with a failed case exits with 0 only if a setting allows it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.results import result
from workbench.evaluation.exit_codes import INFRASTRUCTURE, INTERRUPTED, NOTHING_GRADED, OK, QUALITY_MISSED, USAGE
from workbench.evaluation.plan import FinishedRun
from workbench.evaluation.report import Report
from workbench.grading.grade import RunResult
from workbench.grading.repeats import case_results
from workbench.grading.status import Status
from workbench.history.records import ShardRef
from workbench.show.junit import junit_pieces
from workbench.suite.grading_model import REPEAT_RULES
from workbench.suite.model import Suite
from workbench.suite.rules import replaces_statuses
from workbench.suite.settings import Grading
from workbench.suite.suite_file import parse_suite

STATUSES: tuple[Status, ...] = (
    Status.PASSED,
    Status.WARNED,
    Status.FAILED,
    Status.SKIPPED,
    Status.NOT_GRADED,
    Status.STOPPED,
    Status.ERROR,
)
_LIMITS = st.none() | st.sampled_from((0.0, 0.5, 1.0))


@st.composite
def batches(draw: st.DrawFn) -> tuple[RunResult, ...]:
    found = []
    for case in range(draw(st.integers(0, 4))):
        rule, apart = draw(st.sampled_from(REPEAT_RULES)), draw(st.booleans())
        for repeat, status in enumerate(draw(st.lists(st.sampled_from(STATUSES), min_size=1, max_size=3))):
            score = draw(st.sampled_from((0.0, 1.0))) if status.graded else None
            run = result(status, score, case=str(case), repeat=repeat, error="why" if status == "error" else None)
            found.append(replace(run, grading=Grading(repeat_rule=rule, quarantined=apart)))
    return tuple(found)


@st.composite
def suites(draw: st.DrawFn) -> Suite:
    gate = {
        "min_score": draw(_LIMITS),
        "min_pass_rate": draw(_LIMITS),
        "per": draw(st.sampled_from(("model", "batch"))),
    }
    aggregates = [
        {"name": of, "of": of, draw(st.sampled_from(("at_least", "above", "at_most"))): {"mean": draw(_LIMITS)}}
        for of in draw(
            st.lists(st.sampled_from(("score", "trajectory", "latency_ms", "tokens", "cost_usd")), max_size=2)
        )
    ]
    return Suite.model_validate({"format": 1, "name": "s", "gate": gate, "aggregates": aggregates, "cases": []})


def report_on(runs: tuple[RunResult, ...], suite: Suite, **options: object) -> Report:
    finished = tuple(FinishedRun(place, None, run) for place, run in enumerate(runs))
    return Report(runs=finished, suites={"suite.toml": suite}, started_at="", **options)  # type: ignore[arg-type]


@given(
    batches(),
    suites(),
    st.none() | st.sampled_from((0.0, 0.5, 1.0)),
    st.booleans(),
    st.booleans(),
)
def test_no_batch_succeeds_in_which_nothing_was_graded_or_a_case_failed_unless_a_setting_says_so(
    runs: tuple[RunResult, ...], suite: Suite, min_score: float | None, interrupted: bool, incomplete: bool
) -> None:
    report = report_on(runs, suite, min_score=min_score, interrupted=interrupted, incomplete=incomplete)
    counting = [run for run in runs if run.status.graded and not run.grading.quarantined]
    failed = [case for case in case_results(runs) if case.status == "failed" and not case.runs[0].grading.quarantined]
    code = report.exit_code
    assert (code == INTERRUPTED) == interrupted
    assert (code == USAGE) == (incomplete and not interrupted)
    assert (report.nothing_graded is None) == bool(counting)
    if interrupted or incomplete:
        return
    assert (code == INFRASTRUCTURE) == any(run.status == "error" for run in runs)
    if code == OK:
        assert counting
        assert not failed or min_score is not None or replaces_statuses(suite)
    if code == QUALITY_MISSED:
        # Jenkins decides by this report alone, see docs/ci.md.
        assert "<failure" in "".join(junit_pieces(report))
    if code == NOTHING_GRADED:
        assert not counting
        assert report.quality.met
    if failed and min_score is None and not replaces_statuses(suite):
        assert code in (QUALITY_MISSED, INFRASTRUCTURE)


@pytest.mark.parametrize("status", [Status.SKIPPED, Status.NOT_GRADED, Status.STOPPED])
def test_a_batch_without_a_verdict_says_so_in_one_sentence(status: Status) -> None:
    runs = (
        result(status, error="later"),
        replace(result(Status.FAILED, 0.0, case="b"), grading=Grading(quarantined=True)),
    )
    report = report_on(runs, Suite.model_validate({"format": 1, "name": "s", "cases": []}))
    assert report.exit_code == NOTHING_GRADED
    assert f"no run that counts was graded: 1 {status.counted}, 1 in quarantine\n" in report.text()
    assert not report.passed


def test_a_shard_that_has_no_run_leaves_the_verdict_to_the_others() -> None:
    suite = Suite.model_validate({"format": 1, "name": "s", "cases": []})
    shard = ShardRef(1, 2, 5, None)
    assert report_on((), suite, shard=shard).exit_code == OK
    assert report_on((result(Status.SKIPPED, error="later"),), suite, shard=shard).exit_code == NOTHING_GRADED


def test_a_gate_that_every_batch_meets_is_warned_of() -> None:
    text = (
        'format = 1\nname = "S"\n[gate]\nmin_pass_rate = 0.0\nmin_score = 0.5\n'
        '[[aggregates]]\nname = "a"\nat_least = { mean = 0.0 }\n'
        '[[aggregates]]\nname = "b"\nat_least = { mean = 0.1 }\nat_most = { p95 = 1 }\n'
        '[[aggregates]]\nname = "c"\nof = "tokens"\nat_most = { p95 = 1 }\n'
        '[[cases]]\nname = "A"\nuser = "x"\nexpect_no_calls = true\n'
    )
    warned = [str(each) for each in parse_suite(text, Path("s.toml")).warnings]
    assert [each.partition(": warning: ")[2].partition(" (")[0] for each in warned] == [
        "gate.min_pass_rate: every batch reaches 0, so that no failed case counts",
        "aggregates[0].at_least.mean: every batch meets at_least 0",
        "aggregates[1].at_most.p95: every batch meets at_most 1",
    ]
