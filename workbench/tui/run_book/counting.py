"""What runs used: tokens, and their cost as far as it is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Generic, TypeVar

from workbench.dataclasses import dataclass
from workbench.grading.grade import RunResult


@dataclass(frozen=True, slots=True)
class Spend:
    """Tokens in and out, and their known cost in US dollars. `unknown` is true if some prices are not known."""

    tokens: int = 0
    cost_usd: float = 0.0
    unknown: bool = False


def spend_of(result: RunResult) -> Spend:
    """Return the usage of a run."""
    usage = result.trajectory.usage
    tokens = usage.input_tokens + usage.output_tokens if usage is not None else 0
    return Spend(tokens, result.cost_usd or 0.0, unknown=result.cost_usd is None)


def total(spends: Iterable[Spend]) -> Spend:
    """Add up the usage of several runs."""
    tokens, cost_usd, unknown = 0, 0.0, False
    for spend in spends:
        tokens, cost_usd, unknown = tokens + spend.tokens, cost_usd + spend.cost_usd, unknown or spend.unknown
    return Spend(tokens, cost_usd, unknown)


class Stopwatch:
    """Counts the seconds of a clock, except while it is stopped."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._stood_s = 0.0
        self._stands_since: float | None = None

    def __call__(self) -> float:
        return (self._clock() if self._stands_since is None else self._stands_since) - self._stood_s

    def stand(self, stands: bool) -> None:
        """Stop or restart the clock."""
        if stands and self._stands_since is None:
            self._stands_since = self._clock()
        elif not stands and self._stands_since is not None:
            self._stood_s += self._clock() - self._stands_since
            self._stands_since = None


_Key = TypeVar("_Key", bound=Hashable)


class Tally(Generic[_Key]):
    """Counts names. Each key has any number of names."""

    def __init__(self) -> None:
        self._names: dict[_Key, tuple[str, ...]] = {}
        self._totals: Counter[str] = Counter()

    def put(self, key: _Key, names: tuple[str, ...]) -> None:
        """Replace the names of a key."""
        self._totals.subtract(self._names.get(key, ()))
        self._totals.update(names)
        self._names[key] = names

    @property
    def totals(self) -> Mapping[str, int]:
        """The count of each name."""
        return +self._totals
