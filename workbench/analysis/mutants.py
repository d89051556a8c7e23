"""The result of running a suite with mutants of its tools: which were noticed, by which cases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

from workbench.dataclasses import dataclass

MutantKind = Literal[
    "no description",
    "no parameter descriptions",
    "parameter renamed",
    "no enum",
    "nothing required",
    "descriptions swapped",
    "decoys",
]
MUTANT_KINDS: Final[tuple[MutantKind, ...]] = get_args(MutantKind)


@dataclass(frozen=True)
class Mutant:
    """A change of tools as a variant of the suite.

    `tools` are those it is about; cases that expect one of them should notice it. Decoys are about all tools."""

    name: str
    kind: MutantKind
    tools: tuple[str, ...]
    table: Mapping[str, object]
    decoys: int = 0


@dataclass(frozen=True)
class MutantResult:
    """The result of a mutant with one model.

    `good` are the cases that pass without it, `noticed` those of them that do not pass with it. Cases that were not
    run, because others had noticed it already, are in neither."""

    mutant: Mutant
    suite: str
    """The name of the suite."""
    model: str
    run: tuple[str, ...]
    noticed: tuple[str, ...]
    should: tuple[str, ...]
    """The cases that expect one of its tools."""
    unclear: tuple[str, ...] = ()
    """The cases whose run ended in an error."""

    @property
    def survives(self) -> bool:
        """Whether it was run, and no case noticed it.

        Decoys only have a pass rate."""
        return bool(self.run) and not self.noticed and self.mutant.kind != "decoys"

    @property
    def pass_rate(self) -> float | None:
        """The share of the cases that still pass, 0..1."""
        if self.run:
            return 1 - len(self.noticed) / len(self.run)
        return None


@dataclass(frozen=True)
class MutationReport:
    """All mutants with all models, and the cases that noticed none."""

    results: tuple[MutantResult, ...]
    left_out: Mapping[str, str]
    """Cases that say nothing, with the reason, by model and title."""
    spared: int = 0
    """Runs that were not needed."""

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(result.model for result in self.results))

    @property
    def survivors(self) -> tuple[MutantResult, ...]:
        return tuple(result for result in self.results if result.survives)

    def curve(self, model: str) -> tuple[tuple[int, float], ...]:
        """Return the pass rate over the number of decoys, of the cases that pass without any."""
        return tuple(
            (result.mutant.decoys, result.pass_rate)
            for result in self.results
            if result.model == model and result.mutant.kind == "decoys" and result.pass_rate is not None
        )

    def blind(self, model: str) -> tuple[str, ...]:
        """Return the cases that were run with mutants of tools they expect, and noticed none of these."""
        mine = []
        for result in self.results:
            if result.model == model and result.mutant.kind != "decoys":
                mine.append(result)
        should = dict.fromkeys(case for result in mine for case in result.should if case in result.run)
        noticed = {case for result in mine for case in result.noticed}
        return tuple(case for case in should if case not in noticed)
