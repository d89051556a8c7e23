"""Cases that broke are distinguished from cases that failed by chance."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analysis.regressions import regression, told
from tests.tables import each_row
from workbench.analysis.confirmation import (
    MAX_RERUNS,
    Confirmation,
    ConfirmedCase,
    RerunEvidence,
    repeats_confirm,
    typical_pass_rate,
)


def after(reruns: str, among: int, typical: float = 0.8) -> Confirmation | None:
    evidence = RerunEvidence(among, typical)
    for rerun in reruns:
        assert evidence.decided is None
        evidence.add(is_good=rerun == "g")
    return evidence.decided


@each_row(
    ("reruns", "among", "outcome"),
    [
        ("fff", 1, "confirmed"),
        ("fff", 2, None),
        ("ffff", 2, "confirmed"),
        ("ffff", 6, "confirmed"),
        ("ffff", 7, None),
        ("fffff", 7, "confirmed"),
        ("fffff", 25, "confirmed"),
        ("fffff", 26, None),
        ("gffff", 1, "confirmed"),
        ("gg", 1, "recovered"),
        ("gfgg", 1, "recovered"),
        ("g", 1, None),
        ("fg" * 7, 1, None),
        ("fg" * 7 + "f", 1, "perhaps by chance"),
    ],
)
def test_reruns_decide_as_soon_as_they_can(reruns: str, among: int, outcome: Confirmation | None) -> None:
    assert after(reruns, among) == outcome


def test_a_case_that_failed_often_before_needs_more() -> None:
    assert typical_pass_rate(4, 4) == typical_pass_rate(50, 50) == 0.8
    assert typical_pass_rate(5, 10) == 0.5
    assert (after("f" * 6, 1, 0.5), after("f" * 7, 1, 0.5)) == (None, "confirmed")


@given(st.lists(st.booleans(), max_size=MAX_RERUNS), st.integers(1, 300), st.floats(0.05, 0.8))
def test_no_rerun_is_made_that_a_decision_would_make_needless(reruns: list[bool], among: int, typical: float) -> None:
    evidence = RerunEvidence(among, typical)
    for place, good in enumerate(reruns):
        if evidence.decided is not None:
            assert evidence.needed == 0
            return
        ahead = evidence.needed
        assert 1 <= ahead <= MAX_RERUNS - place
        for all_good in (True, False):
            further = RerunEvidence(among, typical, evidence.good, evidence.failed)
            for _ in range(ahead - 1):
                further.add(is_good=all_good)
                assert further.decided is None
        evidence.add(is_good=good)


@each_row(
    ("failed", "graded", "among", "confirms"),
    [(3, 3, 3, True), (3, 3, 4, False), (5, 5, 30, True), (4, 4, 30, False), (5, 6, 15, True), (5, 6, 16, False)],
)
def test_enough_repeats_confirm_by_themselves(failed: int, graded: int, among: int, confirms: bool) -> None:
    assert repeats_confirm(failed, graded, among) is confirms


def test_a_sentence_says_what_the_outcome_rests_on() -> None:
    def said(outcome: Confirmation, failed: int, good: int, why: str | None = None) -> str:
        return ConfirmedCase("s", "c", "C", "m", outcome, failed, good, why).sentence

    assert said("confirmed", 4, 0) == "broke: failed 4 of 4 reruns"
    assert said("recovered", 1, 3) == "not confirmed: passed 3 of 4 reruns"
    assert said("perhaps by chance", 1, 0, "stopped") == "perhaps by chance: failed 1 of 1 rerun; stopped"
    assert (
        said("confirmed", 0, 0, "offline always gives the same answer") == "broke: offline always gives the same answer"
    )


@pytest.mark.parametrize("repeats", [1, 3])
def test_chance_alone_is_seldom_a_regression(repeats: int) -> None:
    red, extra = told(100, f"chance {repeats}", repeats, lambda random: ([0.95] * 30, [0.95] * 30))
    assert red <= 0.03
    assert extra < 12


def test_what_is_worse_everywhere_needs_no_rerun() -> None:
    assert regression(Random(0), [1.0] * 30, [0.5] * 30, 1) == (True, 0)


def test_a_single_case_that_broke_is_found() -> None:
    red, _ = told(20, "one", 3, lambda random: ([1.0] * 30, [0.0, *[1.0] * 29]))
    assert red == 1.0
