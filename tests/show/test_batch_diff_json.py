"""What the paired tests found, as JSON: the same wherever two columns are compared, no p without its verdict."""

from __future__ import annotations

from tests.analysis.cells import columns
from workbench.analysis.paired import compare_pairs, corrected_for_count
from workbench.analysis.statistics import SIGNIFICANCE_LEVEL
from workbench.show.json.batch_diff import BaselineReport, BatchTestReport, PairedReport
from workbench.show.json.batch_diff import test_reports as reports_of_tests
from workbench.show.json.comparison import PairReport

TWO = dict(
    zip(
        "ab",
        corrected_for_count(
            [compare_pairs(*columns(better=6, both_good=10)), compare_pairs(*columns(better=2, worse=2, both_good=10))]
        ),
        strict=True,
    )
)


def test_a_program_comes_to_the_verdict_of_the_sentence() -> None:
    found, _ = reports_of_tests(TWO, "#1", "#2")
    assert (found.p_status, found.holm_status) == (0.03125, 0.0625)
    assert found.p_score is not None and found.holm_score is not None
    assert found.p_score <= SIGNIFICANCE_LEVEL < found.holm_score
    assert "better on 6, worse on 0 of 16, p = 0.031 (p = 0.063 for 2 comparisons): not enough" in found.sentence
    assert "not enough to tell among this many comparisons" in found.score_sentence


def test_what_was_left_out_is_counted() -> None:
    first, second = columns(better=3)
    (found,) = reports_of_tests({"a": compare_pairs(first, second[1:])}, "#1", "#2")
    assert (found.pairs, found.left_out) == (2, 1)


def test_all_reports_say_the_same_of_a_test() -> None:
    (found, _), own = reports_of_tests(TWO, "#1", "#2"), PairedReport.model_fields.keys()
    assert list(found.model_dump()) == ["model", *own]
    assert list(PairReport.model_fields) == ["first", "second", *own, "discordant"]
    assert BaselineReport.model_fields["tests"].annotation == tuple[BatchTestReport, ...]
