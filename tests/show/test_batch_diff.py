"""What changed between two batches as lines: which case it is can be read on any terminal."""

from __future__ import annotations

from rich.cells import cell_len

from workbench.analysis.batch_diff import CaseChange, CaseSide
from workbench.grading.status import Status
from workbench.history.records import SuiteRef
from workbench.show.text import Paint, block_lines
from workbench.show.views.batch_diff import changes_blocks

SUITE = SuiteRef(1, "/there", "support.toml", "0" * 64, "Customer support assistant: routing of requests", 2)
BROKE = "passed 1.00 → failed 0.50"


def side(status: Status, score: float, reason: str | None = None) -> CaseSide:
    reasons = (reason,) if reason is not None else ()
    return CaseSide(SUITE.key, "offline", status, score, score, 0.0, 1, 1, 500.0, reason, reasons)


def lines_of(width: int | None, reason: str | None = None) -> list[str]:
    names = "Refund of a late order", "Refund of a broken order"
    sides = side(Status.PASSED, 1.0), side(Status.FAILED, 0.5, reason)
    changes = [CaseChange("broke", SUITE.key, name, name, "offline", *sides) for name in names]
    return list(block_lines(changes_blocks(changes, {SUITE.key: SUITE}, with_model=False), width, Paint(False)))


def test_on_a_terminal_the_case_is_told_in_full_before_the_suite() -> None:
    for width in (70, 80, 90):
        late, broken = lines_of(width)
        assert "… › Refund of a late order " in late and "… › Refund of a broken order " in broken
        assert late.endswith(BROKE) and broken.endswith(BROKE)
        assert max(cell_len(late), cell_len(broken)) <= width
    late, broken = lines_of(80, "why " * 40)
    assert late.startswith("broke  Customer … › Refund of a late order  passed") and late.endswith("…")
    assert broken.startswith("broke  Custome… › Refund of a broken order  passed") and cell_len(broken) <= 80


def test_without_a_terminal_nothing_is_cut() -> None:
    why = ("why " * 40).strip()
    assert lines_of(None, why)[0] == f"broke  {SUITE.name} › Refund of a late order    {BROKE}: {why}"
