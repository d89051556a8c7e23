"""Two models compared case by case: the pairs, the conclusions, and the number of cases needed."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analysis.cells import column, columns, ran
from tests.example_counts import examples
from tests.tables import each_row
from workbench.analysis.comparison import Cell, cell_of
from workbench.analysis.measures import PAIRED_MEASURES, PASS_RATE, SCORE, VALID_ARGUMENTS
from workbench.analysis.paired import MAX_MORE_CASES, PairedComparison, compare_pairs, compare_with_first
from workbench.analysis.statistics import SIGNIFICANCE_LEVEL, mcnemar
from workbench.grading.argument_counts import ToolArguments
from workbench.grading.status import Status
from workbench.numerals import p_text
from workbench.suite.grading_model import ComparedBy
from workbench.suite.settings import Grading

STATUSES: tuple[Status, ...] = (
    Status.PASSED,
    Status.WARNED,
    Status.FAILED,
    Status.ERROR,
    Status.SKIPPED,
    Status.STOPPED,
)
COLUMNS = st.lists(st.tuples(*[st.sampled_from(STATUSES)] * 2), max_size=20)
FEW = st.integers(0, 6)


def compared(better: int, worse: int, both_good: int = 0, both_bad: int = 0) -> PairedComparison:
    return compare_pairs(*columns(better=better, worse=worse, both_good=both_good, both_bad=both_bad))


@given(COLUMNS)
def test_every_case_is_a_pair_of_one_kind_or_left_out(statuses: list[tuple[Status, Status]]) -> None:
    first, second = (column(model, *(both[side] for both in statuses)) for side, model in enumerate("ab"))
    found = compare_pairs(first, second)
    assert found.left_out == sum(not all(status.graded for status in both) for both in statuses)
    assert found.better + found.worse + found.both_good + found.both_bad == len(statuses) - found.left_out


@given(COLUMNS)
def test_the_other_way_round_better_is_worse(statuses: list[tuple[Status, Status]]) -> None:
    first, second = (column(model, *(both[side] for both in statuses)) for side, model in enumerate("ab"))
    there, back = compare_pairs(first, second), compare_pairs(second, first)
    assert (there.better, there.worse) == (back.worse, back.better)
    assert [there.by(measure).p for measure in PAIRED_MEASURES] == [back.by(measure).p for measure in PAIRED_MEASURES]
    assert there.more_cases == back.more_cases


def test_a_case_that_only_one_of_them_has_is_left_out() -> None:
    found = compare_pairs(column("a", Status.PASSED), column("b", Status.FAILED, Status.PASSED, Status.PASSED))
    assert (len(found.pairs), found.left_out) == (1, 2)


def test_cases_of_the_same_id_in_other_suites_are_no_pair() -> None:
    elsewhere = [replace(cell, suite="other.toml") for cell in column("b", Status.PASSED)]
    assert compare_pairs(column("a", Status.PASSED), elsewhere).left_out == 2


def test_a_warned_case_is_as_good_as_a_passed_one() -> None:
    found = compare_pairs(column("a", Status.WARNED, Status.FAILED), column("b", Status.PASSED, Status.WARNED))
    assert (found.better, found.worse, found.both_good) == (1, 0, 1)


def test_repeats_are_one_case() -> None:
    first = [cell_of([ran(Status.FAILED, repeat=nth) for nth in range(20)])]
    second = [cell_of([ran(Status.PASSED, repeat=nth, model="b") for nth in range(20)])]
    assert compare_pairs(first, second).by(PASS_RATE).p == 1.0


def test_discordant_cases_come_first_and_the_strongest_difference_before_all() -> None:
    first = column("a", Status.PASSED, Status.PASSED, Status.FAILED, Status.FAILED, scores=[0.9, 0.9, 0.5, 0.1])
    second = column("b", Status.PASSED, Status.FAILED, Status.FAILED, Status.WARNED, scores=[1.0, 0.6, 0.0, 0.85])
    found = compare_pairs(first, second)
    assert [pair[0].case_id for pair in found.pairs] == ["3", "1", "2", "0"]
    assert found.discordant == list(found.pairs[:2])


def test_scores_are_compared_where_both_have_one() -> None:
    first, second = (
        column("a", Status.FAILED, Status.FAILED, Status.PASSED),
        column("b", Status.PASSED, Status.PASSED, Status.PASSED),
    )
    without = replace(first[0].runs[0], score=None)
    infinite = replace(second[1].runs[0], score=math.inf)
    found = compare_pairs([cell_of([without]), *first[1:]], [second[0], cell_of([infinite]), second[2]])
    assert (tuple(found.by(SCORE).found.values), found.by(SCORE).difference, found.better) == ((0.0,), 0.0, 2)


def test_nothing_to_compare_has_no_p() -> None:
    found = compare_pairs(column("a", Status.ERROR), column("b", Status.PASSED))
    assert {(found.by(measure).p, found.by(measure).difference) for measure in PAIRED_MEASURES} == {(None, None)}
    assert found.more_cases is None
    assert found.sentence("A", "B") == "nothing to compare: no case was graded with both A and B"
    assert found.score_sentence("A", "B") == "no case has a score from both A and B"
    assert found.sentences("A", "B") == (found.sentence("A", "B"),)


def test_cases_alike_in_pass_and_fail_may_have_another_score() -> None:
    first = column("a", Status.FAILED, Status.FAILED, Status.PASSED, Status.PASSED, scores=[0.5, 0.5, 1.0, None])
    second = column("b", Status.FAILED, Status.PASSED, Status.WARNED, Status.PASSED, scores=[0.75, 1.0, 0.996, 1.0])
    assert compare_pairs(first, second).other_scores == 1
    assert compare_pairs(second, first).other_scores == 1


@each_row(
    ("found", "sentence"),
    [
        (
            compared(7, 2, both_good=30, both_bad=13),
            "B +9.6 points (95%: -2.0 to +22.3), better on 7, worse on 2 of 52, p = 0.18: not enough to tell; "
            "needs about 34 more cases like these",
        ),
        (
            compared(12, 1, 20, 19),
            "B +21.2 points (95%: +9.1 to +34.7), better on 12, worse on 1 of 52, p = 0.0034: "
            "a real difference at the 5% level",
        ),
        (
            compared(0, 9),
            "B -100.0 points (95%: -100.0 to -40.2), better on 0, worse on 9 of 9, p = 0.0039: "
            "a real difference at the 5% level",
        ),
        (
            compared(3, 3, 10),
            "B +0.0 points (95%: -31.0 to +31.0), better on 3, worse on 3 of 16, p = 1: not enough to tell; "
            "this many cases can show about 49 points",
        ),
        (
            compared(5, 0),
            "B +100.0 points (95%: +0.0 to +100.0), better on 5, worse on 0 of 5, p = 0.063: not enough to tell; "
            "needs about one more case like these",
        ),
        (
            compared(501, 500),
            "B +0.1 points (95%: -6.1 to +6.3), better on 501, worse on 500 of 1,001, p = 1: not enough to tell; "
            "even 10,000 more cases like these would not be enough",
        ),
        (
            compared(0, 0, 10, 3),
            "A and B agree on 13 cases, +0.0 points (95%: -22.8 to +22.8): nothing tells them apart",
        ),
    ],
)
def test_one_plain_sentence_says_what_the_test_on_pass_and_fail_found(found: PairedComparison, sentence: str) -> None:
    assert found.sentence("A", "B") == sentence


def test_the_sentence_says_how_many_cases_were_left_out() -> None:
    first, second = (
        column("a", Status.ERROR, Status.SKIPPED, Status.FAILED),
        column("b", Status.PASSED, Status.PASSED, Status.PASSED),
    )
    told = "better on 1, worse on 0 of 1, p = 1: not enough to tell; needs about 5 more cases like these"
    assert compare_pairs(first, second).sentence("A", "B").endswith(f"{told} (2 cases not graded with both left out)")


def test_another_says_what_the_test_on_scores_found() -> None:
    alike, apart = (
        column("a", Status.PASSED, Status.PASSED),
        column("b", Status.PASSED, Status.PASSED, scores=[0.9, 0.95]),
    )
    assert compare_pairs(alike, alike).score_sentence("A", "B").startswith("A and B score the same on 2 cases (95%: ")
    told = "B scores -0.075 (95%: -1.000 to +1.000) on the mean of 2 cases, p = 0.5: not enough to tell"
    assert compare_pairs(alike, apart).score_sentence("A", "B") == told


@settings(max_examples=examples(100))
@given(FEW, FEW, FEW, FEW)
def test_more_cases_are_the_fewest_with_which_the_scaled_counts_would_tell(
    better: int, worse: int, both_good: int, both_bad: int
) -> None:
    found = compared(better, worse, both_good, both_bad)
    if better == worse:
        assert found.more_cases is None
        return
    pairs = len(found.pairs)

    def tells(more: int) -> bool:
        return mcnemar(*(math.floor(n * (pairs + more) / pairs + 0.5) for n in (better, worse))) <= SIGNIFICANCE_LEVEL

    assert found.more_cases == next((more for more in count() if tells(more) or more > MAX_MORE_CASES), None)


def test_where_there_are_enough_cases_no_more_are_needed() -> None:
    assert compared(12, 1).more_cases == 0


def against_a_model_that_always_fails(**good: int) -> dict[str, PairedComparison]:
    """Models compared with one that fails on all of 8 cases, by how many each one passes."""
    first, _ = columns(both_bad=8)
    return compare_with_first(
        first, {model: columns(better=count, both_bad=8 - count)[1] for model, count in good.items()}
    )


def test_several_comparisons_are_adjusted_for() -> None:
    found = against_a_model_that_always_fails(b=8, c=6, d=0)
    assert [pair.by(PASS_RATE).p for pair in found.values()] == [2 / 256, 2 / 64, 1.0]
    assert [pair.by(PASS_RATE).adjusted for pair in found.values()] == [6 / 256, 6 / 64, 1.0]
    assert [pair.by(SCORE).adjusted for pair in found.values()] == [6 / 256, 6 / 64, 1.0]


def test_what_only_a_single_comparison_would_tell_is_said_to_be_not_enough() -> None:
    found = against_a_model_that_always_fails(b=8, c=6, d=0)
    assert found["b"].sentence("A", "B") == (
        "B +100.0 points (95% for all 3: +16.5 to +100.0), better on 8, worse on 0 of 8, p = 0.0078 (p = 0.023 for 3 "
        "comparisons): a real difference at the 5% level"
    )
    assert found["c"].sentence("A", "C") == (
        "C +75.0 points (95% for all 3: +0.0 to +94.4), better on 6, worse on 0 of 8, p = 0.031 (p = 0.094 for 3 "
        "comparisons): not enough to tell among this many comparisons; needs about one more case like these"
    )


def test_a_single_comparison_is_adjusted_for_nothing() -> None:
    alone = compare_pairs(*columns(better=8))
    (found,) = against_a_model_that_always_fails(b=8).values()
    assert (found.by(PASS_RATE).adjusted, found.by(SCORE).adjusted) == (alone.by(PASS_RATE).p, alone.by(SCORE).p)
    assert found.sentence("A", "B") == alone.sentence("A", "B")


def test_a_model_without_a_verdict_does_not_count_among_the_comparisons() -> None:
    first, second = columns(better=8)
    found = compare_with_first(first, {"b": second, "c": column("c", Status.ERROR)})
    assert found["b"].sentence("A", "B") == compare_pairs(first, second).sentence("A", "B")


def test_an_adjusted_p_that_is_the_same_is_not_said_twice() -> None:
    found = against_a_model_that_always_fails(b=1, c=1)
    assert found["b"].sentence("A", "B").startswith("B +12.5 points (95% for all 2: ")
    assert "worse on 0 of 8, p = 1: not enough to tell" in found["b"].sentence("A", "B")


def test_a_difference_that_rounds_to_nothing_has_no_sign() -> None:
    apart = compare_pairs(column("a", Status.FAILED, scores=(0.5,)), column("b", Status.FAILED, scores=(0.5004,)))
    assert (
        apart.score_sentence("A", "B") == "B scores about the same on the mean of one case, p = 1: not enough to tell"
    )


@pytest.mark.parametrize(
    ("p", "said"), [(0.125, "0.13"), (0.0625, "0.063"), (0.051, "0.051"), (0.0504, "0.0504"), (1, "1")]
)
def test_a_p_is_rounded_as_scores_are(p: float, said: str) -> None:
    assert p_text(p, SIGNIFICANCE_LEVEL) == f"p = {said}"


PASSED: Status = Status.PASSED


def calling(model: str, *valid_of_two: int | None) -> list[Cell]:
    """Return a column of passed cases, each with two calls, `valid` of which are valid. `None` stands for a case
    without calls."""
    counts = [() if valid is None else (ToolArguments("t", valid, 2, 0),) for valid in valid_of_two]
    cells = column(model, *[PASSED] * len(counts))
    return [cell_of([replace(cell.runs[0], tool_arguments=each)]) for cell, each in zip(cells, counts, strict=True)]


def test_valid_arguments_are_compared_by_case_as_scores_are() -> None:
    found = compare_pairs(calling("a", *[1] * 8, None, 2), calling("b", *[2] * 8, 2, 2))
    by_arguments = found.by(VALID_ARGUMENTS)
    assert by_arguments.difference == pytest.approx(8 * 0.5 / 9), "a case without calls of both is not in it"
    assert by_arguments.p == pytest.approx(2 / 2**8)
    sentence = found.arguments_sentence("a", "b")
    assert sentence == (
        "valid arguments of b against a: +44.4 points on the mean of 9 cases, p = 0.0078: a hint, which does not decide"
    )
    assert found.sentences("a", "b")[-1] == sentence
    assert found.without_pairs.arguments_sentence("a", "b") == sentence
    several = compare_with_first(calling("a", *[1] * 8), {"b": calling("b", *[2] * 8), "c": calling("c", *[2] * 8)})
    assert several["b"].by(VALID_ARGUMENTS).adjusted == pytest.approx(2 * 2 / 2**8)


def test_nothing_is_said_of_valid_arguments_that_do_not_differ() -> None:
    assert compare_pairs(calling("a", 2, 1), calling("b", 2, 1)).arguments_sentence("a", "b") is None
    without = compare_pairs(calling("a", None), calling("b", 2))
    assert (without.by(VALID_ARGUMENTS).difference, without.by(VALID_ARGUMENTS).p) == (None, None)


Outcomes = tuple[tuple[bool, float], ...]
"""Whether a case is good with each model, and its score."""

OUTCOMES = st.tuples(st.booleans(), st.sampled_from((0.0, 0.3, 1.0)))
CASES = st.lists(st.tuples(st.tuples(OUTCOMES, OUTCOMES, OUTCOMES), st.integers(0, 9)), min_size=1, max_size=30)
LEADS = st.sampled_from([(0, 0, 0), (9, 0, 4), (3, 12, 0)])
BOUNDS = re.compile(r"\(95%[^:]*: (.+?) to (.+?)\)")


def _columns_of(cases: list[tuple[Outcomes, int]], clustered: bool, by: ComparedBy) -> list[list[Cell]]:
    columns: list[list[Cell]] = [[], [], []]
    for case, (outcomes, cluster) in enumerate(cases):
        grading = Grading(compare_by=by, cluster=str(cluster) if clustered else None)
        for cells, model, (good, score) in zip(columns, "abc", outcomes, strict=True):
            run = ran(Status.PASSED if good else Status.FAILED, score, case=str(case), model=model)
            cells.append(cell_of([replace(run, grading=grading)]))
    return columns


@settings(max_examples=examples(300))
@given(CASES, st.booleans(), st.sampled_from(["status", "score"]), LEADS)
def test_no_sentence_contradicts_itself(
    drawn: list[tuple[Outcomes, int]], clustered: bool, by: ComparedBy, led: tuple[int, int, int]
) -> None:
    """A real difference, 0 outside and no more cases come together or not at all; `led` more cases are good with one
    model alone."""
    for model, times in enumerate(led):
        lead = tuple((at == model, float(at == model)) for at in range(3))
        drawn = drawn + [(lead, 100 + place) for place in range(times)]
    first, *others = _columns_of(drawn, clustered, by)
    for found in compare_with_first(first, dict(zip("bc", others, strict=True))).values():
        said = found.sentences("A", "B")
        assert sum("more case" in sentence or "can show" in sentence for sentence in said) <= 1
        for sentence in said:
            is_real = "a real difference" in sentence or "a hint" in sentence
            for low, high in BOUNDS.findall(sentence):
                outside = "above 0" in low or "below 0" in high or float(low) > 0 or float(high) < 0
                assert outside == is_real, sentence
            assert not (is_real and ("more case" in sentence or "can show" in sentence)), sentence
        decides = said[0]
        assert ("a real difference" in decides) == any("a real difference" in each for each in said)
