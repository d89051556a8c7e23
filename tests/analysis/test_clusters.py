"""Cases that are variations of one request count together: the levels of tests and intervals, by simulation, and their
formulas."""

from __future__ import annotations

import importlib
import math
import statistics
from dataclasses import replace
from functools import cache
from random import Random

import pytest

from tests.analysis.cells import columns, ran
from workbench.analysis.comparison import Cell, cell_of, model_totals
from workbench.analysis.measures import PASS_RATE, SCORE
from workbench.analysis.paired import PairedComparison, compare_pairs
from workbench.analysis.statistics import (
    SIGNIFICANCE_LEVEL,
    bounded_interval,
    design_effect,
    detectable_share,
    mcnemar,
    mean_difference_interval,
    paired_shares_interval,
    permutation,
    standard_error,
    student_quantile,
)
from workbench.grading.status import Status

REQUESTS, VARIATIONS, TRIALS = 10, 6, 400


def in_cluster(cell: Cell, cluster: str | None) -> Cell:
    """The cell, as the suite would write its cluster."""
    return cell_of([replace(run, grading=replace(run.grading, cluster=cluster)) for run in cell.runs])


@cache
def _cell(request: int, variation: int, good: int, of: int, clustered: bool) -> Cell:
    runs = [
        ran(Status.PASSED if nth < good else Status.FAILED, case=f"{request} {variation}", repeat=nth, rule="majority")
        for nth in range(of)
    ]
    return in_cluster(cell_of(runs), str(request) if clustered else None)


def _off(trials: int) -> float:
    return 3 * math.sqrt(SIGNIFICANCE_LEVEL * (1 - SIGNIFICANCE_LEVEL) / trials)


@cache
def _wrong(clustered: bool) -> tuple[float, float, float]:
    """Return how often equal models are called different by status and by score, and how often the interval excludes 0.

    All variations of a request share its difficulty for a model, and the first variation has more repeats."""
    random = Random("clusters")
    status = score = interval = 0
    for _ in range(TRIALS):
        sides: tuple[list[Cell], list[Cell]] = ([], [])
        for request in range(REQUESTS):
            for side in sides:
                share = random.choice((0.1, 0.9))
                for variation in range(VARIATIONS):
                    of = 1 if variation else 3
                    good = sum(random.random() < share for _ in range(of))
                    side.append(_cell(request, variation, good, of, clustered))
        found = compare_pairs(*sides)
        by_status, by_score = found.by(PASS_RATE), found.by(SCORE)
        assert by_status.p is not None and by_score.p is not None and by_status.interval is not None
        status += by_status.p <= SIGNIFICANCE_LEVEL
        score += by_score.p <= SIGNIFICANCE_LEVEL
        interval += not by_status.interval.low <= 0 <= by_status.interval.high
    return status / TRIALS, score / TRIALS, interval / TRIALS


@pytest.mark.slow
def test_variations_of_few_requests_tell_equal_models_apart_in_at_most_one_of_twenty_comparisons() -> None:
    assert max(_wrong(clustered=True)) <= SIGNIFICANCE_LEVEL + _off(TRIALS)


@pytest.mark.slow
def test_without_clusters_they_would_do_so_in_a_quarter() -> None:
    assert min(_wrong(clustered=False)) > 1 / 4


def test_clusters_of_one_case_each_change_nothing() -> None:
    first, second = columns(better=7, worse=2, both_good=30, both_bad=13)
    alone = [in_cluster(cell, cell.case_id) for cell in second]
    found, plain = compare_pairs(first, alone), compare_pairs(first, second)
    assert (found.clusters, plain.clusters) == (52, None)
    assert found.by(PASS_RATE).p == pytest.approx(plain.by(PASS_RATE).p)
    assert (found.by(SCORE).p, found.by(SCORE).interval) == (plain.by(SCORE).p, plain.by(SCORE).interval)
    said = "better on 7, worse on 2 of 52 in 52 clusters, p = 0.18: not enough to tell; this many cases can show about"
    assert said in found.sentence("A", "B")


def _in_five(first: list[Cell], second: list[Cell]) -> PairedComparison:
    return compare_pairs(first, [in_cluster(cell, str(int(cell.case_id) % 5)) for cell in second])


def test_a_cluster_changes_its_sign_as_a_whole() -> None:
    found = _in_five(*columns(better=20, both_bad=5))
    assert found.by(PASS_RATE).p == found.by(SCORE).p == 2 / 2**5
    assert "of 25 in 5 clusters, p = 0.063: not enough to tell" in found.sentence("A", "B")
    assert (found.by(PASS_RATE).detectable, found.by(SCORE).detectable) == (None, None)
    assert permutation([0.25, 0.5, -0.75, 1.0], clusters="aabb") == 0.5


def test_an_earlier_batch_without_clusters_takes_those_of_the_later_one() -> None:
    first, second = columns(better=20, both_bad=5)
    there = [in_cluster(cell, "x") for cell in second]
    assert (compare_pairs(first, there).clusters, compare_pairs(there, second).clusters) == (1, 1)
    assert compare_pairs(first, there).by(PASS_RATE).interval is None


def test_clusters_of_the_same_name_in_other_suites_are_others() -> None:
    first, second = columns(better=2)
    there = [replace(in_cluster(cell, "x"), suite=f"{cell.case_id}.toml") for cell in second]
    assert compare_pairs([replace(cell, suite=f"{cell.case_id}.toml") for cell in first], there).clusters == 2


def test_totals_are_wider_where_cases_depend_on_each_other() -> None:
    cells = columns(both_good=15, both_bad=15)[0]
    alone = model_totals("a", cells)
    together = model_totals("a", [in_cluster(cell, str(int(cell.case_id) // 6)) for cell in cells])
    assert alone.interval is not None and together.interval is not None
    assert alone.score_interval is not None and together.score_interval is not None
    assert together.interval.high - together.interval.low > 1.5 * (alone.interval.high - alone.interval.low)
    assert together.score_interval.low < alone.score_interval.low


@pytest.mark.parametrize("values", [[0.1, 0.5, 0.9, 0.2], [1.0, 0.0] * 20, [0.25, -0.5, 0.0, 0.75, 0.1, 0.1]])
def test_without_clusters_the_standard_error_is_the_usual_one(values: list[float]) -> None:
    assert standard_error(values) == pytest.approx(statistics.stdev(values) / math.sqrt(len(values)), abs=1e-15)


@pytest.mark.slow
def test_student_s_quantiles_are_those_of_scipy() -> None:
    stats = importlib.import_module("scipy.stats")
    for freedom in (1, 2, 3, 9, 10, 51, 300, 1_999):
        for level in (0.05, 0.05 / 3, 0.001):
            assert student_quantile(freedom, level) == pytest.approx(stats.t.ppf(1 - level / 2, freedom), rel=1e-9)


def test_copies_of_values_tell_no_more_than_the_values() -> None:
    values = [0.1, 0.4, 0.35, 0.8, 0.9]
    copies, clusters = values * 6, [*range(5)] * 6
    assert standard_error(copies, clusters) == pytest.approx(standard_error(values))
    alone, together = bounded_interval(values), bounded_interval(copies, clusters)
    assert alone is not None and together is not None and together.high - together.low > alone.high - alone.low
    assert mean_difference_interval(copies, [0] * 30) is None
    assert design_effect([1.0] * 30, clusters) == 6


@pytest.mark.slow
def test_an_interval_of_a_difference_holds_the_true_one_in_95_of_100() -> None:
    random, inside = Random("intervals"), 0
    for _ in range(2_000):
        drawn = [random.random() for _ in range(40)]
        better, worse = sum(one < 0.2 for one in drawn), sum(one > 0.95 for one in drawn)
        low, high = paired_shares_interval(better, worse, 40)
        inside += low <= 0.15 <= high
    assert inside / 2_000 >= 0.95 - _off(2_000)


@pytest.mark.slow
@pytest.mark.parametrize(("cases", "differ"), [(50, 0.1), (50, 0.4), (200, 0.2)])
def test_what_so_many_cases_can_show_they_show_in_about_four_of_five(cases: int, differ: float) -> None:
    least = detectable_share(round(cases * differ), 0, cases, SIGNIFICANCE_LEVEL)
    assert least is not None
    random, trials, shown = Random(f"{cases} {differ}"), 600, 0
    share = max(differ, least)
    for _ in range(trials):
        drawn = [random.random() for _ in range(cases)]
        better = sum(one < (share + least) / 2 for one in drawn)
        shown += mcnemar(better, sum(one < share for one in drawn) - better) <= SIGNIFICANCE_LEVEL
    assert 0.72 <= shown / trials <= 0.92


def test_the_question_that_decides_is_the_one_that_all_cases_name() -> None:
    first, second = columns(better=12, worse=1, both_good=20)
    by_score = [
        cell_of([replace(run, grading=replace(run.grading, compare_by="score")) for run in c.runs]) for c in second
    ]
    status, score = compare_pairs(first, second).sentences("A", "B")
    assert status.endswith("a real difference at the 5% level") and score.endswith("a hint, which does not decide")
    first_said, second_said = compare_pairs(first, by_score).sentences("A", "B")
    assert first_said.startswith("B scores") and first_said.endswith("a real difference at the 5% level")
    assert second_said.startswith("B +33.3 points") and second_said.endswith("a hint, which does not decide")
    assert list(compare_pairs(first, second).difference_sentences()) == [
        "pass rate +33.3 points (95%: +14.1 to +51.4)",
        "mean score +0.333 (95%: +0.134 to +0.522)",
    ]
