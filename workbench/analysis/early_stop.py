"""Stopping early: decides from finished runs, and tells which of the remaining ones are not needed.

Runs are looked at in the order of their plan, which is random, whatever the order in which they end: a decision depends
on their results alone, and is the same when a stored batch is read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property

from workbench.analysis.comparison import NO_GATES, cell_of
from workbench.analysis.statistics import (
    LEVEL,
    GateEvidence,
    Interval,
    anytime_p,
    bounded_interval,
    e_value,
    fewest_that_reach,
    level_of_look,
    looks_after,
    mcnemar,
)
from workbench.analysis.watched import GateWatched, PairWatched, TooFewUnits
from workbench.dataclasses import dataclass
from workbench.grading.run_summary import NOT_NEEDED, RunSummary, is_not_needed
from workbench.grading.scoring import mean
from workbench.grading.status import Status
from workbench.history.records import BatchRow, RunRow, Until
from workbench.suite.model import Gate


@dataclass(frozen=True, slots=True)
class Place:
    """A planned run as far as stopping is concerned.

    Cases of one `cluster` of a suite are one observation; a case without one is its own."""

    suite: str
    case_id: str
    model: str
    cluster: str | None = None

    @property
    def unit(self) -> tuple[str, str, bool]:
        """The key of its observation."""
        if self.cluster is None:
            return self.suite, self.case_id, False
        return self.suite, self.cluster, True


@dataclass
class _Pair:
    """Two contenders.

    Each unit holds how many runs are planned of it with both, by case and model."""

    first: str
    second: str
    units: list[dict[tuple[str, str, str], int]]
    seen: int = 0
    cases: int = 0
    better: int = 0
    worse: int = 0
    greatest: float = 1.0
    decided: bool = False
    look: int = 0
    p: float = 1.0

    @cached_property
    def of(self) -> int:
        """The number of cases with both."""
        return sum(len(unit) for unit in self.units) // 2


class _Pairs:
    """Watches each contender against the first one."""

    def __init__(self, until: Until, places: Mapping[int, Place]) -> None:
        self._until = until
        self._runs: dict[tuple[str, str, str], list[RunSummary]] = {}
        models = list(dict.fromkeys(place.model for place in places.values()))
        self._first = models[0]
        units: dict[tuple[str, str, bool], dict[tuple[str, str, str], int]] = {}
        for place in places.values():
            cells = units.setdefault(place.unit, {})
            key = place.suite, place.case_id, place.model
            cells[key] = cells.get(key, 0) + 1
        self.pairs = [
            _Pair(self._first, model, [*_with_both(units.values(), self._first, model)]) for model in models[1:]
        ]
        self._places = places

    def take(self, place: Place, run: RunSummary) -> None:
        self._runs.setdefault((place.suite, place.case_id, place.model), []).append(run)
        for pair in self.pairs:
            if not pair.decided and place.model in (pair.first, pair.second):
                self._look(pair)

    def _look(self, pair: _Pair) -> None:
        """Count all units that are complete by now, in their order."""
        while pair.seen < len(pair.units) and not pair.decided:
            unit = pair.units[pair.seen]
            if any(len(self._runs.get(key, ())) < planned for key, planned in unit.items()):
                return
            self._count(pair, unit)
            if self._until.rule == "e-value":
                pair.greatest = max(pair.greatest, e_value(pair.better, pair.worse))
                pair.p = min(1.0, anytime_p(pair.greatest) * len(self.pairs))
                pair.decided = pair.p <= LEVEL
            elif pair.seen in (after := looks_after(len(pair.units), self._until.looks or 1)):
                pair.look = after.index(pair.seen) + 1
                pair.p = min(1.0, mcnemar(pair.better, pair.worse) * len(self.pairs))
                pair.decided = pair.p <= self._level(pair.look, len(after))

    def _level(self, look: int, looks: int) -> float:
        """Return the level of a look, by O'Brien and Fleming (1979)."""
        level = level_of_look(look, looks)
        if len(self.pairs) > 1:
            # Their levels keep to 5% for one comparison only. Divided among several comparisons, the looks are no
            # longer covered by their joint distribution: the sum of the levels is kept to 5% in its place.
            level *= LEVEL / max(LEVEL, sum(level_of_look(each, looks) for each in range(1, looks + 1)))
        return level

    def _count(self, pair: _Pair, unit: Mapping[tuple[str, str, str], int]) -> None:
        """Count a unit, by the sign of the sum over its cases."""
        apart = 0
        for suite, case_id, model in unit:
            if model == pair.second:
                one = cell_of(self._runs[suite, case_id, pair.first])
                other = cell_of(self._runs[suite, case_id, pair.second])
                if one.is_graded and other.is_graded:
                    apart += other.is_good - one.is_good
        pair.better += apart > 0
        pair.worse += apart < 0
        pair.cases += len(unit) // 2
        pair.seen += 1

    def why_not(self, place: Place) -> str | None:
        of_it = []
        for pair in self.pairs:
            if place.model in (pair.first, pair.second):
                of_it.append(pair)
        if not of_it or not all(pair.decided for pair in of_it):
            return None
        if place.model == self._first:
            return f"{NOT_NEEDED}all comparisons with {self._first} are decided"
        return f"{NOT_NEEDED}{place.model} against {self._first} is decided"

    def found(self, saved: frozenset[int]) -> Iterator[PairWatched]:
        spared = [self._places[number].model for number in saved]
        for pair in self.pairs:
            looks = len(looks_after(len(pair.units), self._until.looks)) if self._until.looks else None
            yield PairWatched(
                first=pair.first,
                second=pair.second,
                rule=self._until.rule,
                decided=pair.decided,
                cases=pair.cases,
                of=pair.of,
                better=pair.better,
                worse=pair.worse,
                e_value=pair.greatest if self._until.rule == "e-value" else None,
                p=pair.p,
                level=self._level(max(pair.look, 1), looks) if looks else LEVEL,
                look=pair.look,
                looks=looks,
                comparisons=len(self.pairs),
                saved=sum(model == pair.second or len(self.pairs) == 1 for model in spared),
            )


class Watch:
    """Watches a batch: `places` are its runs by their numbers in the plan, in that order, `gates` those of its suites.

    `take` each run that is over; the order in which they come does not matter."""

    def __init__(self, until: Until, places: Mapping[int, Place], gates: Mapping[str, Gate] = NO_GATES) -> None:
        self._places = places
        self._spared: set[int] = set()
        self._pairs = _Pairs(until, places) if until.rule != "gate" else None
        self._gates = _Gates(until, places, gates) if until.rule == "gate" else None

    def take(self, number: int, run: RunSummary) -> None:
        """Take a finished run."""
        # A stopped run decides nothing: a resumed batch makes it again.
        if run.status == Status.STOPPED:
            return
        if is_not_needed(run):
            self._spared.add(number)
        if self._pairs is not None:
            self._pairs.take(self._places[number], run)
        if self._gates is not None:
            self._gates.take(number, run)

    def why_not(self, number: int) -> str | None:
        """Return why a run need not be made; `None` while it may decide something."""
        if self._pairs is not None:
            return self._pairs.why_not(self._places[number])
        if self._gates is not None:
            return self._gates.why_not(number)
        return None

    @property
    def pairs(self) -> tuple[PairWatched, ...]:
        """The state of each comparison with the first contender."""
        if self._pairs is None:
            return ()
        return tuple(self._pairs.found(frozenset(self._spared)))

    @property
    def gates(self) -> tuple[GateWatched, ...]:
        """The state of each pass rate."""
        if self._gates is None:
            return ()
        return tuple(self._gates.found(frozenset(self._spared)))

    @property
    def out_of_reach(self) -> tuple[TooFewUnits, ...]:
        """The gates that no result can reach early, because there are too few cases or clusters."""
        if self._gates is None:
            return ()
        return tuple(dict.fromkeys(self._gates.out_of_reach))


def stored_watch(batch: BatchRow, runs: Iterable[RunRow], gates: Mapping[str, Gate]) -> Watch | None:
    """Rebuild the watch of a stored batch that may stop early; `None` for any other.

    `runs` are all of its runs, and `gates` those of its suites by the paths of their files."""
    until = Until.of(batch.settings)
    if until is None:
        return None
    rows = [run for run in runs if not run.is_fork]
    if not rows:
        return None
    # A run that is missing has no figures, and the cluster of its case where another one has.
    clusters = {}
    for run in rows:
        if run.figures is not None:
            clusters[(run.suite, run.case_id)] = run.figures.grading.cluster
    places = {}
    for run in rows:
        places[run.place] = Place(str(run.suite.file), run.case_id, run.model, clusters.get((run.suite, run.case_id)))
    watch = Watch(until, places, gates)
    for run in rows:
        if run.figures is not None:
            watch.take(run.place, run.figures)
    return watch


def _with_both(
    units: Iterable[Mapping[tuple[str, str, str], int]], first: str, second: str
) -> Iterator[dict[tuple[str, str, str], int]]:
    for unit in units:
        cases = set()
        for suite, case, model in unit:
            if model == second and (suite, case, first) in unit:
                cases.add((suite, case))
        if cases:
            yield {key: planned for key, planned in unit.items() if key[:2] in cases and key[2] in (first, second)}


_Unit = Mapping[tuple[str, str], Sequence[int]]
"""The places of the runs of each case of a unit, by suite and case."""


@dataclass
class _Gate:
    """A pass rate, the units that it is about, and its evidence so far."""

    suite: str | None
    model: str | None
    gate: float
    worse: float
    units: Sequence[_Unit]
    evidence: GateEvidence
    seen: int = 0
    good: int = 0
    bad: int = 0
    shares: list[float] = field(default_factory=list)
    """Of each case so far, the share of its runs that are good."""
    units_of_shares: list[int] = field(default_factory=list)
    """Of each of these cases, which unit it is in."""

    @cached_property
    def places(self) -> tuple[int, ...]:
        return tuple(number for unit in self.units for numbers in unit.values() for number in numbers)

    @cached_property
    def most(self) -> int:
        """The cases of the largest unit."""
        return max(map(len, self.units))

    @property
    def has_clusters(self) -> bool:
        return self.most > 1

    def count(self, cases: Iterable[Iterable[RunSummary]]) -> None:
        """Count the next unit, of whose cases these are all runs.

        A case without a graded run is left out."""
        shares = []
        for runs in cases:
            good = []
            for run in runs:
                if run.status.graded and not run.grading.quarantined:
                    good.append(run.status.good)
            self.good += sum(good)
            self.bad += len(good) - sum(good)
            if good:
                shares.append(sum(good) / len(good))
        if shares:
            self.evidence.take(mean(shares), len(shares) / self.most)
        self.shares += shares
        self.units_of_shares += [self.seen] * len(shares)
        self.seen += 1

    @property
    def interval(self) -> Interval | None:
        """The interval of the rate over cases; `None` after an early decision, for which it would not be valid."""
        if self.evidence.verdict is not None:
            return None
        return bounded_interval(self.shares, self.units_of_shares if self.has_clusters else None)


class _Gates:
    """Watches pass rates, unit by unit."""

    def __init__(self, until: Until, places: Mapping[int, Place], gates: Mapping[str, Gate]) -> None:
        self._runs: dict[int, RunSummary] = {}
        self.gates: list[_Gate] = []
        demands: dict[str | None, Gate] = dict(gates.items())
        if until.gate:
            demands = {None: Gate(min_pass_rate=until.gate)}
        for suite, demand in demands.items():
            if (rate := demand.min_pass_rate) is None:
                continue
            worse = until.worse_than(rate)
            for model, units in _units_of(places, suite, demand).items():
                self.gates.append(_Gate(suite, model, rate, worse, units, GateEvidence(rate, worse)))
        self._of_place: dict[int, list[_Gate]] = {}
        for gate in self.gates:
            for number in gate.places:
                self._of_place.setdefault(number, []).append(gate)

    def take(self, number: int, run: RunSummary) -> None:
        self._runs[number] = run
        for gate in self._of_place.get(number, ()):
            while gate.evidence.verdict is None and gate.seen < len(gate.units):
                unit = gate.units[gate.seen].values()
                if not all(place in self._runs for numbers in unit for place in numbers):
                    break
                gate.count([self._runs[place] for place in numbers] for numbers in unit)

    def why_not(self, number: int) -> str | None:
        of_it = self._of_place.get(number)
        if not of_it or any(gate.evidence.verdict is None for gate in of_it):
            return None
        return f"{NOT_NEEDED}the pass rate is decided"

    def found(self, saved: frozenset[int]) -> Iterator[GateWatched]:
        for gate in self.gates:
            yield GateWatched(
                suite=gate.suite,
                model=gate.model,
                gate=gate.gate,
                worse=gate.worse,
                verdict=gate.evidence.verdict,
                good=gate.good,
                bad=gate.bad,
                of=len(gate.places),
                saved=len(saved.intersection(gate.places)),
                cases=len(gate.shares),
                of_cases=sum(map(len, gate.units)),
                clusters=len(set(gate.units_of_shares)) if gate.has_clusters else None,
                rate=mean(gate.shares) if gate.shares else None,
                interval=gate.interval,
            )

    @property
    def out_of_reach(self) -> Iterator[TooFewUnits]:
        for gate in self.gates:
            sizes = [len(unit) / gate.most for unit in gate.units]
            if fewest_that_reach(gate.gate, gate.worse, sizes) is None:
                yield TooFewUnits(gate.suite, gate.gate, gate.worse, len(gate.units), gate.has_clusters)


def _units_of(places: Mapping[int, Place], suite: str | None, gate: Gate) -> dict[str | None, list[_Unit]]:
    found: dict[str | None, dict[object, dict[tuple[str, str], list[int]]]] = {}
    for number, place in places.items():
        if suite in (None, place.suite):
            units = found.setdefault(place.model if gate.per == "model" else None, {})
            cases = units.setdefault(place.unit, {})
            cases.setdefault((place.suite, place.case_id), []).append(number)
    return {model: [*units.values()] for model, units in found.items()}
