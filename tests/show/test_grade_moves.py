"""Changed grades in words, the same in the app and in `workbench grade`."""

from __future__ import annotations

from dataclasses import replace

from tests.results import result
from tests.tables import each_row
from workbench.grading.grade import RunResult
from workbench.grading.status import Status
from workbench.show.views.grade_moves import Move, graded_text, moves_text

PASSED, HALF, NONE = result(Status.PASSED, 1.0), result(Status.FAILED, 0.5), result(Status.FAILED, 0.0)
ALMOST = result(Status.FAILED, 0.5001)
OTHER = replace(HALF, case_id="other")
ERROR = result(Status.ERROR, error="gone")


@each_row(
    ("moves", "said"),
    [
        ([], ""),
        ([(PASSED, PASSED)], ""),
        ([(PASSED, HALF)], "1 run: passed → failed"),
        ([(PASSED, HALF)] * 12 + [(HALF, PASSED)], "13 runs of 1 case: 12 passed → failed, 1 failed → passed"),
        ([(PASSED, HALF), (PASSED, OTHER)], "2 runs: passed → failed"),
        ([(PASSED, HALF), (PASSED, OTHER)] * 2, "4 runs of 2 cases: passed → failed"),
        ([(HALF, NONE)], "score 0.50 → 0.00"),
        ([(HALF, ALMOST)], "1 run: score higher"),
        ([(HALF, NONE), (HALF, NONE), (NONE, HALF)], "3 runs of 1 case: 2 scores lower, 1 score higher"),
        (
            [(None, PASSED), (ERROR, PASSED)],
            "2 runs of 1 case: 1 not graded → passed, 1 error → passed",
        ),
    ],
)
def test_moves_are_counted_by_kind(moves: list[tuple[RunResult | None, RunResult]], said: str) -> None:
    assert moves_text(Move(before, after) for before, after in moves) == said


def test_a_grade_is_its_status_and_score() -> None:
    assert [graded_text(each) for each in (HALF, ERROR, None)] == ["failed 0.50", "error", "not graded"]
