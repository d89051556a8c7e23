"""The decisions of a batch that stops early depend on its results alone, and keep their level if the cases are in
random order."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import pytest

from tests.analysis.cells import ran
from workbench.analysis.early_stop import EarlyStopping, PlannedRunPlace
from workbench.analysis.statistics import e_value
from workbench.grading.run_summary import NOT_NEEDED_PREFIX, RunSummary
from workbench.grading.status import Status
from workbench.history.records import Until
from workbench.show.views.gates import watched_text
from workbench.trajectory.events import JsonValue

TRIALS = 120
E = Until("e-value", 0)
LOOKS = Until("looks", 0, looks=4)
CASES = 60

Outcomes = Sequence[tuple[bool, ...]]
"""Of each case, whether it is good with each model."""


def planned(cases: int, models: int, clusters: int | None = None) -> dict[int, PlannedRunPlace]:
    """The places of each case with each model; with `clusters`, that many cases in a row are one observation."""
    return {
        case * models + model: PlannedRunPlace(
            "s", f"c{case}", f"m{model}", (clusters and f"k{case // clusters}") or None
        )
        for case in range(cases)
        for model in range(models)
    }


@cache
def run(place: PlannedRunPlace, good: bool) -> RunSummary:
    return ran(Status.PASSED if good else Status.FAILED, case=place.case_id, model=place.model)


def watch(outcomes: Outcomes, until: Until = E, clusters: int | None = None) -> EarlyStopping:
    """Return the state after all runs, in their order."""
    models = len(outcomes[0])
    places = planned(len(outcomes), models, clusters)
    watch = EarlyStopping(until, places)
    for number, place in places.items():
        watch.add(number, run(place, outcomes[number // models][number % models]))
    return watch


def test_a_decision_rests_on_the_order_of_the_plan_whatever_the_order_in_which_runs_end() -> None:
    drawn = random.Random(3)
    outcomes = [(drawn.random() < 0.9, drawn.random() < 0.5) for _ in range(CASES)]
    (at_once,) = watch(outcomes).pairs
    assert at_once.decided and at_once.cases < 40
    places = planned(CASES, 2)
    for seed in range(5):
        numbers = list(places)
        random.Random(seed).shuffle(numbers)
        other = EarlyStopping(E, places)
        for number in numbers:
            other.add(number, run(places[number], outcomes[number // 2][number % 2]))
        assert other.pairs == (at_once,)
        assert other.skip_reason(2 * CASES - 1) == f"{NOT_NEEDED_PREFIX}m1 against m0 is decided"


def test_a_run_that_was_stopped_decides_nothing_and_one_in_error_counts_for_neither() -> None:
    places = planned(20, 2)
    watch = EarlyStopping(E, places)
    for number, place in places.items():
        of = run(place, number % 2 == 0)
        watch.add(
            number, replace(of, status=Status.ERROR if number == 2 else Status.STOPPED if number == 9 else of.status)
        )
    (found,) = watch.pairs
    assert (found.cases, found.worse, found.decided) == (4, 3, False)
    watch.add(9, run(places[9], good=False))
    (found,) = watch.pairs
    assert found.decided and e_value(0, found.worse - 1) < 20 <= e_value(0, found.worse)


def test_only_a_contender_that_is_decided_is_spared_and_the_first_when_all_are() -> None:
    outcomes = [(True, False, case % 2 == 0) for case in range(40)]
    places = planned(40, 3)
    watch = EarlyStopping(E, places)
    spared = []
    for number, place in places.items():
        why = watch.skip_reason(number)
        spared += [place.model] if why is not None else []
        good = outcomes[number // 3][number % 3]
        watch.add(number, replace(run(place, good), status=Status.SKIPPED, reason=why) if why else run(place, good))
    one, other = watch.pairs
    assert one.decided and other.decided and one.cases < other.cases
    assert one.comparisons == 2 and e_value(0, one.worse - 1) < 40 <= e_value(0, one.worse)
    assert (spared.count("m1"), spared.count("m2"), spared.count("m0")) == (
        40 - one.cases,
        40 - other.cases,
        40 - other.cases,
    )
    assert (one.saved, other.saved) == (40 - one.cases, 40 - other.cases)


@pytest.mark.slow
@pytest.mark.parametrize("until", [E, LOOKS])
@pytest.mark.parametrize("models", [2, 4])
def test_equal_models_are_rarely_decided(until: Until, models: int) -> None:
    """Whatever decides, and however many are compared: of all batches, at most one in twenty decides anything."""
    wrong = 0
    for seed in range(TRIALS):
        drawn = random.Random(seed)
        outcomes = [tuple(drawn.random() < 0.7 for _ in range(models)) for _ in range(CASES)]
        wrong += any(pair.decided for pair in watch(outcomes, until).pairs)
    assert wrong / TRIALS <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / TRIALS)


def test_in_sorted_order_a_batch_decides_wrongly_and_in_random_order_it_does_not() -> None:
    """Two models are equally good, one on the first cases of the suite and one on the others."""
    outcomes = [(case < CASES // 2, case >= CASES // 2) for case in range(CASES)]
    assert watch(outcomes).pairs[0].decided
    wrong = 0
    for seed in range(TRIALS):
        shuffled = random.Random(seed).sample(outcomes, CASES)
        wrong += watch(shuffled).pairs[0].decided
    assert wrong / TRIALS <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / TRIALS)


def test_cases_of_one_cluster_are_one_observation() -> None:
    """Ten requests in six variations that come out alike: taken one by one, equal models seem to differ."""
    alone = together = 0
    for seed in range(TRIALS):
        drawn = random.Random(seed)
        outcomes = [
            (one, other)
            for one, other in ((drawn.random() < 0.5, drawn.random() < 0.5) for _ in range(10))
            for _ in range(6)
        ]
        alone += watch(outcomes).pairs[0].decided
        together += watch(outcomes, clusters=6).pairs[0].decided
    assert alone / TRIALS > 0.2
    assert together / TRIALS <= 0.05


def test_it_is_stored_as_it_was() -> None:
    for until in (E, LOOKS, Until("gate", 7, gate=0.95, worse=0.85)):
        assert Until.of({"until": until.settings}) == until
    damages: tuple[JsonValue, ...] = (
        None,
        3,
        {},
        {"rule": "luck", "seed": 1},
        {"rule": "looks", "seed": 1, "looks": 99},
    )
    for damaged in damages:
        assert Until.of({"until": damaged}) is None
    assert Until("gate", 0).worse_than(0.95) == pytest.approx(0.85)
    assert Until("gate", 0).worse_than(0.1) == pytest.approx(0.05)


GATE = Until("gate", 0, gate=0.95, worse=0.85)


def gated(shares: Sequence[int], repeats: int, clusters: int | None = None) -> EarlyStopping:
    """Return a gate on cases with the given numbers of good runs, in their order. With `clusters`, that many
    consecutive cases form one unit."""
    places = {
        case * repeats + nth: PlannedRunPlace("s", f"c{case}", "m", (clusters and f"k{case // clusters}") or None)
        for case in range(len(shares))
        for nth in range(repeats)
    }
    watch = EarlyStopping(GATE, places)
    for number, place in places.items():
        good = number % repeats < shares[number // repeats]
        why = watch.skip_reason(number)
        watch.add(number, replace(run(place, good), status=Status.SKIPPED, reason=why) if why else run(place, good))
    return watch


def test_a_gate_counts_a_case_with_all_of_its_repeats_once() -> None:
    """Twenty-one cases, not runs: of the repeats of one case, nothing is spared."""
    (found,) = gated([5] * 40, 5).gates
    assert (found.verdict, found.cases, found.runs, found.saved) == ("reached", 21, 105, 95)
    (missed,) = gated([0] * 40, 5).gates
    assert (missed.verdict, missed.cases, missed.runs) == ("missed", 2, 10)
    assert found.interval is None and missed.interval is None


def test_a_gate_that_stays_open_has_a_rate_with_its_interval() -> None:
    (found,) = gated([5] * 18 + [3] * 2, 5).gates
    assert (found.verdict, found.cases, found.saved) == (None, 20, 0)
    assert found.rate == pytest.approx(0.96)
    assert found.interval == pytest.approx((0.818, 0.993), abs=5e-4)
    said = watched_text(found)
    assert said.startswith("not decided against 85% after 20 cases, 100 runs: 96.0% (95%: 81.8% to 99.3%); ")


def test_a_cluster_is_one_unit_that_counts_by_its_cases() -> None:
    (found,) = gated([1] * 60, 1, clusters=6).gates
    assert (found.verdict, found.cases, found.clusters) == (None, 60, 10)
    (found,) = gated([1] * 150, 1, clusters=6).gates
    assert (found.verdict, found.cases, found.clusters) == ("reached", 21 * 6, 21)


def test_a_case_without_a_graded_run_is_left_out_of_a_gate() -> None:
    places = {number: PlannedRunPlace("s", f"c{number}", "m") for number in range(22)}
    watch = EarlyStopping(GATE, places)
    for number, place in places.items():
        watch.add(number, replace(run(place, True), status=Status.ERROR if number == 3 else Status.PASSED))
    (found,) = watch.gates
    assert (found.verdict, found.cases, found.of_cases) == ("reached", 21, 22)


def test_a_gate_that_so_few_cases_cannot_reach_is_known_before() -> None:
    (few,) = gated([5] * 20, 5).unreachable_gates
    assert few.sentence.startswith(
        "20 cases cannot reach a gate of 0.95 against 0.85 early: that takes at least 21 cases"
    )
    (clusters,) = gated([1] * 60, 1, clusters=6).unreachable_gates
    assert "10 clusters cannot reach a gate" in clusters.sentence
    assert gated([5] * 21, 5).unreachable_gates == ()
