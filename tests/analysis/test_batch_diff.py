"""The reported changes between two batches are exactly the real ones."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import each_row
from workbench.analysis.batch_diff import CHANGE_KINDS, batch_diff
from workbench.analysis.measures import SCORE
from workbench.grading.run_summary import RunSummary
from workbench.grading.status import Status
from workbench.history.records import SuiteRef, same_suites
from workbench.show.views.batch_diff import notes_of
from workbench.suite.grading_model import GraderName
from workbench.suite.settings import CriticsOptions, Grading


def ran(
    case: str = "paris",
    status: Status = Status.PASSED,
    score: float | None = 1.0,
    *,
    model: str = "m",
    repeat: int = 0,
    latency_ms: float = 100.0,
    reason: str | None = None,
    is_fork: bool = False,
    grading: Grading | None = None,
) -> RunSummary:
    return RunSummary(
        suite="weather.toml",
        case_id=case,
        case_name=case.title(),
        model=model,
        repeat=repeat,
        status=status,
        score=score,
        reason=reason,
        latency_ms=latency_ms,
        first_token_ms=None,
        input_tokens=None,
        output_tokens=None,
        cost_usd=None,
        asked=True,
        is_fork=is_fork,
        grading=grading or Grading(),
    )


RUNS = st.lists(
    st.builds(
        ran,
        case=st.sampled_from(["paris", "rome", "oslo"]),
        status=st.sampled_from(
            [Status.PASSED, Status.WARNED, Status.FAILED, Status.ERROR, Status.SKIPPED, Status.STOPPED]
        ),
        score=st.none() | st.floats(0, 1) | st.just(math.inf),
        model=st.sampled_from(["m", "n"]),
        repeat=st.integers(0, 2),
        latency_ms=st.floats(0, 5000),
        is_fork=st.booleans(),
        grading=st.sampled_from([Grading(repeat_rule=rule) for rule in ("every", "last", "mean", "majority")]),
    ),
    max_size=12,
)


@given(RUNS)
def test_nothing_changed_from_a_batch_to_itself(runs: list[RunSummary]) -> None:
    diff = batch_diff(runs, runs)
    assert diff.changes == ()
    assert diff.across is None
    assert diff.unchanged_cases == diff.compared


@given(RUNS, RUNS)
def test_the_other_way_round_broke_is_fixed_and_new_is_gone(before: list[RunSummary], after: list[RunSummary]) -> None:
    there, back = batch_diff(before, after), batch_diff(after, before)
    for kind, opposite in (("broke", "fixed"), ("fixed", "broke"), ("moved", "moved"), ("new", "gone")):
        cases = {(change.suite, change.case_id) for change in there.changes if change.kind == kind}
        assert cases == {(change.suite, change.case_id) for change in back.changes if change.kind == opposite}
    assert there.compared == back.compared


@given(RUNS, RUNS)
def test_every_case_of_either_batch_is_accounted_for_once(before: list[RunSummary], after: list[RunSummary]) -> None:
    diff = batch_diff(before, after)
    cases = {
        (run.case_id, run.model if diff.across is None else "")
        for run in (*before, *after)
        if not run.is_fork and run.model not in (*diff.only_before, *diff.only_after)
    }
    lone = [change for change in diff.changes if change.kind in ("new", "gone", "missing", "errored")]
    assert len(cases) == diff.compared + diff.left_out + len(lone)
    but_slower = [(change.case_id, change.model) for change in diff.changes if change.kind != "slower"]
    assert len(but_slower) == len(set(but_slower))
    assert [CHANGE_KINDS.index(change.kind) for change in diff.changes] == sorted(
        CHANGE_KINDS.index(change.kind) for change in diff.changes
    )


@each_row(
    ("before", "after", "kind", "sentence"),
    [
        (
            ran(),
            ran(status=Status.FAILED, score=0.5, reason="missing call: get_weather"),
            "broke",
            "passed 1.00 → failed 0.50: missing call: get_weather",
        ),
        (
            ran(status=Status.FAILED, score=0.5, reason="wrong city"),
            ran(status=Status.WARNED, score=0.8, reason="slow"),
            "fixed",
            "failed 0.50 → warned 0.80, before: wrong city",
        ),
        (ran(), ran(score=0.9), "moved", "passed 1.00 → passed 0.90"),
        (ran(score=0.8), ran(status=Status.WARNED, score=0.8), "moved", "passed 0.80 → warned 0.80"),
        (ran(score=None), ran(), "moved", "passed → passed 1.00"),
        (
            ran(),
            ran(status=Status.ERROR, score=None, reason="no connection"),
            "errored",
            "passed 1.00 → error: no connection",
        ),
        (ran(latency_ms=400), ran(latency_ms=600), "slower", "400 ms → 600 ms, 1.5 times as long"),
    ],
)
def test_a_change_has_a_kind_and_a_sentence(before: RunSummary, after: RunSummary, kind: str, sentence: str) -> None:
    (change,) = batch_diff([before], [after]).changes
    assert (change.kind, change.sentence) == (kind, sentence)


def test_nothing_is_slower_than_what_nobody_timed() -> None:
    assert not batch_diff([ran(latency_ms=0)], [ran(latency_ms=1200)]).changes


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (ran(score=0.805), ran(score=0.8)),
        (ran(latency_ms=300), ran(latency_ms=499)),
        (ran(latency_ms=1000), ran(latency_ms=1400)),
    ],
    ids=["a score hardly another one", "less than 200 ms more", "less than 1.5 times"],
)
def test_what_is_hardly_another_is_no_change(before: RunSummary, after: RunSummary) -> None:
    assert batch_diff([before], [after]).changes == ()


def test_cases_of_one_batch_only_are_new_or_gone() -> None:
    diff = batch_diff([ran("old", Status.FAILED, 0.25, reason="wrong city")], [ran("young")])
    assert [(change.kind, change.case_id, change.sentence) for change in diff.changes] == [
        ("new", "young", "passed 1.00, only in the later batch"),
        ("gone", "old", "failed 0.25, only in the earlier batch: wrong city"),
    ]


def test_a_case_that_a_batch_never_came_to_is_neither_new_nor_gone() -> None:
    diff = batch_diff([ran("a"), ran("b")], [ran("a")], unfinished=((), [("weather.toml", "b", "m")]))
    assert (diff.changes, diff.compared, diff.left_out) == ((), 1, 1)


def test_what_was_in_error_or_was_stopped_broke_nothing() -> None:
    before = [ran("a", Status.ERROR, None), ran("b"), ran("c")]
    not_needed = ran("c", Status.SKIPPED, None, reason="not needed: the pass rate is reached")
    after = [ran("a", Status.FAILED, 0.0), ran("b", Status.STOPPED, None), not_needed]
    diff = batch_diff(before, after)
    assert (diff.changes, diff.compared, diff.left_out) == ((), 0, 3)


def test_a_case_that_is_skipped_or_expects_nothing_any_more_is_missing() -> None:
    before = [ran("a"), ran("b", Status.FAILED, 0.0), ran("c", Status.SKIPPED, None)]
    after = [
        ran("a", Status.SKIPPED, None, reason="later"),
        ran("b", Status.NOT_GRADED, None),
        ran("c", Status.SKIPPED, None),
    ]
    diff = batch_diff(before, after)
    assert [(change.case_id, change.sentence) for change in diff.of("missing")] == [
        ("a", "passed 1.00 → skipped: later"),
        ("b", "failed 0.00 → not graded"),
    ]
    assert (len(diff.changes), diff.compared, diff.left_out) == (2, 0, 1)


def test_repeats_count_by_the_rule_of_their_case() -> None:
    majority = Grading(repeat_rule="majority")
    before = [ran(repeat=repeat, grading=majority) for repeat in range(3)]
    one_failed = [*before[:2], ran("paris", Status.FAILED, 0.0, repeat=2, grading=majority)]
    (change,) = batch_diff(before, one_failed).changes
    assert (change.kind, change.sentence) == ("moved", "passed 1.00 (3 of 3) → passed 0.67 (2 of 3)")


def test_the_only_model_is_compared_with_the_only_model() -> None:
    diff = batch_diff([ran(model="small")], [ran(model="large", status=Status.FAILED, score=0.0)])
    assert diff.across == ("small", "large")
    assert [(change.kind, change.model) for change in diff.changes] == [("broke", "large")]


def test_a_model_that_was_planned_counts_also_where_it_never_ran() -> None:
    never = [("weather.toml", "paris", "large")]
    diff = batch_diff(
        [ran(model="small")], [ran(model="large", status=Status.FAILED, score=0.0)], unfinished=(never, ())
    )
    assert diff.across is None
    assert (diff.changes, diff.left_out, diff.only_before) == ((), 1, ("small",))
    only_planned = batch_diff([], [ran(model="large")], unfinished=([("weather.toml", "paris", "small")], ()))
    assert (only_planned.across, only_planned.changes, only_planned.left_out) == (("small", "large"), (), 1)


def test_the_same_case_of_another_checkout_is_compared_with_it() -> None:
    here, there = (SuiteRef(1, project, "weather.toml", "x", "Weather", 1) for project in ("/ci", "/moved"))
    same = same_suites([here], [there])
    before = [replace(ran(), suite=here.key)]
    after = [replace(ran(status=Status.FAILED, score=0.0), suite=there.key)]
    diff = batch_diff(before, after, unfinished=([(here.key, "b", "m")], [(there.key, "b", "m")]), same_suites=same)
    assert [(change.kind, change.suite) for change in diff.changes] == [("broke", there.key)]
    assert diff.tests["m"].worse == 1


def test_of_several_models_each_is_compared_with_itself() -> None:
    before = [ran(model="small"), ran(model="large")]
    diff = batch_diff(before, [ran(model="small"), ran(model="large", status=Status.FAILED, score=0.0)])
    assert diff.across is None
    assert [(change.kind, change.model) for change in diff.changes] == [("broke", "large")]
    assert (diff.compared, diff.cases, diff.models) == (2, 1, frozenset({"small", "large"}))


def test_models_that_one_batch_was_never_planned_with_are_left_out_and_named() -> None:
    before = [ran(case, model=model) for case in ("a", "b") for model in ("one", "two", "three")]
    after = [ran("a", model="one"), ran("c", model="one"), ran("a", model="four")]
    diff = batch_diff(before, after)
    assert [(change.kind, change.case_id, change.model) for change in diff.changes] == [
        ("new", "c", "one"),
        ("gone", "b", "one"),
    ]
    assert (diff.only_before, diff.only_after, diff.models) == (("three", "two"), ("four",), frozenset({"one"}))
    assert (diff.compared, diff.left_out) == (1, 0)
    assert list(notes_of(diff, "#1", "#2", {})) == ["only #1 has three, two; only #2 has four: only one is compared"]


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (("two", "three"), "only #1 has one: not compared"),
        (("four", "five"), "only #1 has one, three, two; only #2 has five, four: the batches have no model in common"),
    ],
)
def test_what_is_compared_is_said_where_models_are_left_out(after: tuple[str, ...], said: str) -> None:
    diff = batch_diff([ran(model=model) for model in ("one", "two", "three")], [ran(model=model) for model in after])
    assert diff.changes == ()
    assert list(notes_of(diff, "#1", "#2", {})) == [said]


def test_a_model_that_a_batch_never_came_to_is_not_one_that_it_was_not_planned_with() -> None:
    before = [ran(model="one"), ran(model="two")]
    diff = batch_diff(before, [ran(model="one")], unfinished=((), [("weather.toml", "paris", "two")]))
    assert (diff.only_before, diff.left_out, diff.models) == ((), 1, frozenset({"one", "two"}))


def test_of_two_models_that_are_compared_with_each_other_the_later_one_is_named() -> None:
    diff = batch_diff([ran(model="one")], [ran(model="two")])
    assert (diff.models, diff.only_before, diff.only_after) == (frozenset({"two"}), (), ())


def test_forks_speak_for_no_case() -> None:
    assert batch_diff([ran()], [ran(), ran(status=Status.FAILED, score=0.0, repeat=1, is_fork=True)]).changes == ()


def test_a_case_can_break_and_be_slower() -> None:
    diff = batch_diff([ran()], [ran(status=Status.FAILED, score=0.0, latency_ms=900)])
    assert [change.kind for change in diff.changes] == ["broke", "slower"]
    assert all(change.after.status.graded for change in diff.changes if change.after)


def graded_by(by: GraderName, case: str, suite: str = "weather.toml", **but: Any) -> RunSummary:
    return replace(ran(case, grading=Grading(by=by), **but), suite=suite)


SUITES = {path: SuiteRef(1, "/there", path, "0" * 64, path, 1) for path in ("weather.toml", "home.toml")}


def test_other_graders_are_named_with_the_cases_that_they_decided() -> None:
    before = [graded_by("decision", case) for case in ("a", "b")]
    assert list(notes_of(batch_diff(before, before), "#1", "#2", SUITES)) == []
    before += [graded_by("decision", "c", "home.toml"), graded_by("decision", "d", "home.toml")]
    after = [
        *(graded_by("critics", case) for case in ("a", "b")),
        graded_by("critics", "c", "home.toml"),
        graded_by("accuracy", "d", "home.toml"),
    ]
    assert list(notes_of(batch_diff(before, after), "#1", "#2", SUITES)) == [
        "graded by decision before, by critics now: weather.toml, 1 of 2 cases of home.toml",
        "graded by decision before, by accuracy now: 1 of 2 cases of home.toml",
    ]


def test_graders_are_those_of_graded_runs_of_cases_in_both() -> None:
    before = [graded_by("decision", "a"), graded_by("decision", "b"), graded_by("decision", "gone")]
    after = [
        graded_by("decision", "a"),
        graded_by("critics", "a", repeat=1),
        graded_by("accuracy", "a", status=Status.ERROR, score=None, repeat=2),
        graded_by("critics", "b", status=Status.ERROR, score=None),
        graded_by("critics", "new"),
    ]
    diff = batch_diff(before, after)
    assert list(notes_of(diff, "#1", "#2", SUITES)) == ["graded by decision before, by critics and decision now"]


def test_a_run_that_fails_beside_its_score_counts_0_in_both_batches() -> None:
    forbidden = replace(ran(status=Status.FAILED, score=1.0, reason="forbidden call: remove"), is_broken=True)
    diff = batch_diff([ran()], [forbidden])
    assert [(change.kind, change.sentence) for change in diff.changes] == [
        ("broke", "passed 1.00 → failed 1.00: forbidden call: remove")
    ]
    [test] = diff.tests.values()
    assert test.by(SCORE).difference == -1
    [moved] = batch_diff([forbidden], [ran(status=Status.FAILED, score=1.0)]).changes
    assert (moved.kind, moved.sentence) == ("moved", "failed 1.00, counts 0.00 → failed 1.00, counts 1.00")
    assert batch_diff([forbidden], [replace(forbidden, score=0.999)]).changes == ()


def test_the_rules_by_which_the_batches_were_graded_are_told_apart_once() -> None:
    then = Grading(repeat_rule="last", invalid_arguments="ignore")
    before = [ran(case="paris", grading=then), ran(case="rome", grading=Grading(invalid_arguments="ignore"))]
    after = [ran(case="paris"), ran(case="rome"), ran(case="oslo")]
    diff = batch_diff(before, after)
    assert [*notes_of(diff, "#1", "#2", {})] == [
        "graded by other rules: repeat_rule was last, and is every (1 of 2 cases); "
        "invalid_arguments was ignore, and is fail"
    ]
    stricter = Grading(critics=CriticsOptions(fail_on_tool_selection=False))
    assert dict(batch_diff([ran(grading=stricter)], [ran()]).rules) == {
        ("critics.fail_on_tool_selection", "False", "True"): 1
    }
    assert not batch_diff([ran(grading=Grading(quarantined=True, cluster="a"))], [ran()]).rules
