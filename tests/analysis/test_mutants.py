"""The report on mutants of tool definitions."""

from __future__ import annotations

from workbench.analysis.mutants import Mutant, MutantResult, MutationReport


def decoys(count: int, noticed: tuple[str, ...]) -> MutantResult:
    mutant = Mutant(f"decoys: {count}", "decoys", (), {}, count)
    return MutantResult(mutant, "Lights", "offline", ("Kitchen", "Bedroom"), noticed, ())


def test_the_curve_of_decoys_begins_with_the_fewest() -> None:
    report = MutationReport((decoys(2, ("Kitchen",)), decoys(8, ("Kitchen", "Bedroom")), decoys(1, ())), {})
    assert report.curve("offline") == ((1, 1.0), (2, 0.5), (8, 0.0))
