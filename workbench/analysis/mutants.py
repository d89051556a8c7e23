"""Mutation testing of tool definitions: the mutants of a suite's tools, and the cases that noticed each mutant.

A mutant spoils a description or a schema. A suite that still passes does not test this part of the definition."""

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
    """A change that makes tool definitions worse. `table` is the variant of the suite with this change.

    `tools` are the changed tools. The cases that expect a changed tool should notice the mutant. `decoys` is the number
    of added tools that no case needs."""

    name: str
    kind: MutantKind
    tools: tuple[str, ...]
    table: Mapping[str, object]
    decoys: int = 0


@dataclass(frozen=True)
class MutantResult:
    """The result of a mutant with one model.

    `run` are the cases that pass without the mutant and were run with it. `noticed` are the cases in `run` that do not
    pass with the mutant. Once some case has noticed the mutant, other cases need not be run."""

    mutant: Mutant
    suite: str
    """The name of the suite."""
    model: str
    run: tuple[str, ...]
    noticed: tuple[str, ...]
    expecting_cases: tuple[str, ...]
    """The cases that expect one of the mutant's tools."""
    unclear: tuple[str, ...] = ()
    """The cases whose run with the mutant ended in an error."""

    @property
    def survives(self) -> bool:
        """Whether the mutant was run and no case noticed it. Always false for decoys."""
        # A model rightly ignores decoys, so only their pass rate matters.
        return bool(self.run) and not self.noticed and self.mutant.kind != "decoys"

    @property
    def pass_rate(self) -> float | None:
        """The share of the cases that still pass with the mutant, 0..1, or `None` if no case was run."""
        if self.run:
            return 1 - len(self.noticed) / len(self.run)
        return None


@dataclass(frozen=True)
class MutationReport:
    """The results of all mutants with all models."""

    results: tuple[MutantResult, ...]
    left_out: Mapping[str, str]
    """The reasons why cases were left out, by model and title. These cases fail even without a mutant."""
    saved_runs: int = 0
    """The number of runs that were not needed."""

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(result.model for result in self.results))

    @property
    def survivors(self) -> tuple[MutantResult, ...]:
        return tuple(result for result in self.results if result.survives)

    def curve(self, model: str) -> tuple[tuple[int, float], ...]:
        """Return the pass rate, 0..1, for each number of decoys that a model was run with, fewest decoys first."""
        found = []
        for result in self.results:
            if result.model == model and result.mutant.kind == "decoys" and result.pass_rate is not None:
                found.append((result.mutant.decoys, result.pass_rate))
        return tuple(sorted(found))

    def unnoticing_cases(self, model: str) -> tuple[str, ...]:
        """Return the cases that noticed no mutant, although mutants of their expected tools were run with them."""
        should: dict[str, None] = {}
        noticed: set[str] = set()
        for result in self.results:
            if result.model == model and result.mutant.kind != "decoys":
                should.update(dict.fromkeys(filter(result.run.__contains__, result.expecting_cases)))
                noticed.update(result.noticed)
        return tuple(case for case in should if case not in noticed)
