"""Two columns in pairs: the text above the cases."""

from __future__ import annotations

from tests.analysis.cells import column
from workbench.analysis.paired import compare_pairs
from workbench.grading.status import Status
from workbench.show.spans import plain
from workbench.tui.comparison.paired import PairedState


def said(state: PairedState) -> list[str]:
    return [plain(line).strip() for line in state.result_lines(200)]


def test_cases_that_are_alike_are_so_in_pass_and_fail_and_those_with_another_score_are_counted() -> None:
    first = column("a", Status.FAILED, Status.PASSED, Status.FAILED, scores=[0.5, 1.0, 0.0])
    state = PairedState(
        compare_pairs(first, column("b", Status.FAILED, Status.PASSED, Status.PASSED, scores=[0.75, 1.0, 1.0])),
        "a",
        "b",
    )
    assert any(
        line.startswith("The models disagree on 1 case and agree on 2 (1 of these with different scores)")
        for line in said(state)
    )
    same = PairedState(compare_pairs(first, first), "a", "b")
    assert any(line.startswith("The models disagree on 0 cases and agree on 3 · ") for line in said(same))


def test_that_there_is_nothing_to_compare_is_said_once() -> None:
    state = PairedState(compare_pairs(column("a", Status.ERROR), column("b", Status.PASSED)), "a", "b")
    assert [line for line in said(state) if "no case" in line] == [
        "nothing to compare: no case was graded with both a and b"
    ]
