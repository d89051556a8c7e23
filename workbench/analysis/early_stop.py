"""Early stopping: decides a batch from its finished runs, and names the remaining runs that are not needed.

Results are counted in the random order of the plan, and not in the order in which runs end. The runs that end first are
quick runs, which are no random sample. A decision depends only on the results, so it stays the same when a stored batch
is read again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property

from workbench.analysis.comparison import NO_GATES, cell_of
from workbench.analysis.early_stop_state import GateEarlyStop, PairEarlyStop, TooFewUnits
from workbench.analysis.statistics import (
    SIGNIFICANCE_LEVEL,
    GateEvidence,
    Interval,
    anytime_p,
    bounded_interval,
    e_value,
    fewest_units_to_reach,
    level_of_look,
    looks_after,
    mcnemar,
)
from workbench.dataclasses import dataclass
from workbench.grading.run_summary import NOT_NEEDED_PREFIX, RunSummary, is_not_needed
from workbench.grading.scoring import mean
from workbench.grading.status import Status
from workbench.history.records import BatchRow, RunRow, Until
from workbench.suite.grading_model import Gate


@dataclass(frozen=True, slots=True)
class PlannedRunPlace:
    """A planned run: its case, its model, and the case's cluster.

    The cases of one `cluster` of a suite are one observation. A case without a cluster is a separate observation."""

    suite: str
    case_id: str
    model: str
    cluster: str | None = None

    @property
    def unit(self) -> tuple[str, str, bool]:
        """The key of the independent observation that the run belongs to, which is a cluster or a case."""
        if self.cluster is None:
            return self.suite, self.case_id, False
        return self.suite, self.cluster, True


@dataclass
class _Pair:
    """The comparison of model `second` with model `first` while results come in.

    `units` are the planned units, of which `seen` are counted. A unit is a case or the cases of a cluster, without
    cases that were planned with only one of the models. It is stored as the number of planned runs for each suite, case
    and model."""

    first: str
    second: str
    units: list[_PlannedUnit]
    seen: int = 0
    cases: int = 0
    better: int = 0
    worse: int = 0
    greatest: float = 1.0
    """The greatest e-value (evidence against equal models) so far."""
    decided: bool = False
    look: int = 0
    p: float = 1.0

    @cached_property
    def of(self) -> int:
        return sum(map(len, self.units)) // 2

    def is_about(self, model: str) -> bool:
        return model in (self.first, self.second)


class _Pairs:
    """The comparisons of the batch's first model with every other model."""

    def __init__(self, until: Until, places: Mapping[int, PlannedRunPlace]) -> None:
        self._until = until
        self._runs: dict[tuple[str, str, str], list[RunSummary]] = {}
        models: dict[str, None] = {}
        units: dict[tuple[str, str, bool], _PlannedUnit] = {}
        for place in places.values():
            models[place.model] = None
            planned = units.setdefault(place.unit, {})
            key = place.suite, place.case_id, place.model
            planned[key] = planned.get(key, 0) + 1
        self._first, *others = models
        self.pairs: list[_Pair] = []
        for model in others:
            with_both = list(_with_both(units.values(), self._first, model))
            self.pairs.append(_Pair(self._first, model, with_both))
        self._places = places

    def add(self, place: PlannedRunPlace, run: RunSummary) -> None:
        self._runs.setdefault((place.suite, place.case_id, place.model), []).append(run)
        for pair in self.pairs:
            if not pair.decided and pair.is_about(place.model):
                self._count_complete_units(pair)

    def _count_complete_units(self, pair: _Pair) -> None:
        """Count the units whose runs are complete, in the order of the plan. Decide the pair as soon as possible."""
        while pair.seen < len(pair.units) and not pair.decided:
            unit = pair.units[pair.seen]
            if any(len(self._runs.get(key, ())) < planned for key, planned in unit.items()):
                return
            self._count(pair, unit)
            if self._until.rule == "e-value":
                pair.greatest = max(pair.greatest, e_value(pair.better, pair.worse))
                pair.p = min(1.0, anytime_p(pair.greatest) * len(self.pairs))
                pair.decided = pair.p <= SIGNIFICANCE_LEVEL
            elif pair.seen in (after := looks_after(len(pair.units), self._until.looks or 1)):
                pair.look = after.index(pair.seen) + 1
                pair.p = min(1.0, mcnemar(pair.better, pair.worse) * len(self.pairs))
                pair.decided = pair.p <= self._level(pair.look, len(after))

    def _level(self, look: int, looks: int) -> float:
        """Return the significance level at one of several looks at the results, by O'Brien and Fleming (1979)."""
        level = level_of_look(look, looks)
        if len(self.pairs) > 1:
            # O'Brien and Fleming's levels keep the error at 5% only for one comparison. Their joint distribution does
            # not apply to several comparisons, so the sum of all levels is limited to 5% instead.
            level *= SIGNIFICANCE_LEVEL / max(
                SIGNIFICANCE_LEVEL, sum(level_of_look(each, looks) for each in range(1, looks + 1))
            )
        return level

    def _count(self, pair: _Pair, unit: _PlannedUnit) -> None:
        """Count the next unit as better or worse with the second model. The sum of its cases' differences decides."""
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

    def skip_reason(self, place: PlannedRunPlace) -> str | None:
        pairs = [pair for pair in self.pairs if pair.is_about(place.model)]
        if not pairs or not all(pair.decided for pair in pairs):
            return None
        if place.model == self._first:
            return f"{NOT_NEEDED_PREFIX}all comparisons with {self._first} are decided"
        return f"{NOT_NEEDED_PREFIX}{place.model} against {self._first} is decided"

    def found(self, saved: frozenset[int]) -> Iterator[PairEarlyStop]:
        spared = Counter(self._places[number].model for number in saved)
        for pair in self.pairs:
            looks, level, e_value_now = None, SIGNIFICANCE_LEVEL, None
            if self._until.looks:
                looks = len(looks_after(len(pair.units), self._until.looks))
                # If no unit was planned, there are no looks, and the level is that of a single test.
                level = self._level(max(pair.look, 1), looks) if looks else SIGNIFICANCE_LEVEL
            if self._until.rule == "e-value":
                e_value_now = pair.greatest
            # Every comparison needs the runs with the first model. They count as saved only if there is a single
            # comparison.
            spared_runs = spared[pair.second]
            if len(self.pairs) == 1:
                spared_runs = spared.total()
            yield PairEarlyStop(
                first=pair.first,
                second=pair.second,
                rule=self._until.rule,
                decided=pair.decided,
                cases=pair.cases,
                of=pair.of,
                better=pair.better,
                worse=pair.worse,
                e_value=e_value_now,
                p=pair.p,
                level=level,
                look=pair.look,
                looks=looks,
                comparisons=len(self.pairs),
                saved=spared_runs,
            )


class EarlyStopping:
    """The state of early stopping for one batch: what the finished runs show about its comparisons or its pass rates.

    `places` holds the planned runs by number, in the order of the plan. `gates` holds the gates of the suites. Pass
    each finished run to `add`, in any order. Call `skip_reason` before starting a run."""

    def __init__(
        self, until: Until, places: Mapping[int, PlannedRunPlace], gates: Mapping[str, Gate] = NO_GATES
    ) -> None:
        self._places = places
        self._spared: set[int] = set()
        self._pairs = _Pairs(until, places) if until.rule != "gate" else None
        self._gates = _Gates(until, places, gates) if until.rule == "gate" else None

    def add(self, number: int, run: RunSummary) -> None:
        # A stopped run decides nothing because a resumed batch repeats it.
        if run.status == Status.STOPPED:
            return
        if is_not_needed(run):
            self._spared.add(number)
        if self._pairs is not None:
            self._pairs.add(self._places[number], run)
        if self._gates is not None:
            self._gates.add(number, run)

    def skip_reason(self, number: int) -> str | None:
        """Return why a run is not needed, or `None` while it may still decide something."""
        if self._pairs is not None:
            return self._pairs.skip_reason(self._places[number])
        if self._gates is not None:
            return self._gates.skip_reason(number)
        return None

    @property
    def pairs(self) -> tuple[PairEarlyStop, ...]:
        """The state of each comparison with the first model."""
        if self._pairs is None:
            return ()
        return tuple(self._pairs.found(frozenset(self._spared)))

    @property
    def gates(self) -> tuple[GateEarlyStop, ...]:
        if self._gates is None:
            return ()
        return tuple(self._gates.found(frozenset(self._spared)))

    @property
    def unreachable_gates(self) -> tuple[TooFewUnits, ...]:
        """The gates with too few cases or clusters for an early decision, each once."""
        if self._gates is None:
            return ()
        return tuple(dict.fromkeys(self._gates.unreachable_gates))


def stored_early_stopping(batch: BatchRow, runs: Iterable[RunRow], gates: Mapping[str, Gate]) -> EarlyStopping | None:
    """Rebuild the early stopping of a stored batch from its runs.

    Return `None` for a batch that runs every case, and for a batch without runs.

    `gates` holds the gate of each suite, by the path of its file."""
    until = Until.of(batch.settings)
    if until is None:
        return None
    rows = [run for run in runs if not run.is_fork]
    if not rows:
        return None
    # A run that was not made has no figures. Its cluster comes from another run of its case.
    clusters = {}
    for run in rows:
        if run.figures is not None:
            clusters[(run.suite, run.case_id)] = run.figures.grading.cluster
    places = {}
    for run in rows:
        places[run.place] = PlannedRunPlace(
            str(run.suite.file), run.case_id, run.model, clusters.get((run.suite, run.case_id))
        )
    watch = EarlyStopping(until, places, gates)
    for run in rows:
        if run.figures is not None:
            watch.add(run.place, run.figures)
    return watch


_PlannedUnit = dict[tuple[str, str, str], int]
"""The number of planned runs of a unit, by suite, case and model."""


def _with_both(units: Iterable[_PlannedUnit], first: str, second: str) -> Iterator[_PlannedUnit]:
    """Yield each unit with only the cases planned with both models. Empty units are skipped."""
    for unit in units:
        found: _PlannedUnit = {}
        for (suite, case, model), planned in unit.items():
            if model in (first, second) and (suite, case, first) in unit and (suite, case, second) in unit:
                found[suite, case, model] = planned
        if found:
            yield found


_Unit = Mapping[tuple[str, str], Sequence[int]]
"""The run numbers of a unit, by suite and case."""


@dataclass
class _Gate:
    """A required pass rate, its planned units (cases or clusters), and the evidence so far.

    `suite` and `model` are `None` for a rate over all suites or all models."""

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
    """The share of good runs of each counted case."""
    units_of_shares: list[int] = field(default_factory=list)
    """For each entry in `shares`, the number of the case's unit."""

    @cached_property
    def places(self) -> tuple[int, ...]:
        found: list[int] = []
        for unit in self.units:
            for numbers in unit.values():
                found += numbers
        return tuple(found)

    @cached_property
    def most(self) -> int:
        return max(map(len, self.units))

    @property
    def has_clusters(self) -> bool:
        return self.most > 1

    def count(self, cases: Iterable[Iterable[RunSummary]]) -> None:
        """Count the next unit. `cases` holds all runs of each of its cases.

        A case without a graded run is left out."""
        shares = []
        for runs in cases:
            good = graded = 0
            for run in runs:
                if run.status.graded and not run.grading.quarantined:
                    graded += 1
                    good += run.status.good
            self.good += good
            self.bad += graded - good
            if graded:
                shares.append(good / graded)
        if shares:
            self.evidence.add(mean(shares), len(shares) / self.most)
        self.shares += shares
        self.units_of_shares += [self.seen] * len(shares)
        self.seen += 1

    @property
    def interval(self) -> Interval | None:
        """The 95% interval of the rate over cases, or `None` after an early decision, which makes it invalid."""
        if self.evidence.verdict is not None:
            return None
        return bounded_interval(self.shares, self.units_of_shares if self.has_clusters else None)


class _Gates:
    def __init__(self, until: Until, places: Mapping[int, PlannedRunPlace], gates: Mapping[str, Gate]) -> None:
        self._runs: dict[int, RunSummary] = {}
        self.gates: list[_Gate] = []
        demands: dict[str | None, Gate] = dict(gates.items())
        # A rate that the command line requires replaces the gates of suites, as in `quality_of`.
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

    def add(self, number: int, run: RunSummary) -> None:
        self._runs[number] = run
        for gate in self._of_place.get(number, ()):
            while gate.evidence.verdict is None and gate.seen < len(gate.units):
                unit = gate.units[gate.seen]
                if not self._is_complete(unit):
                    break
                gate.count(map(self._runs.__getitem__, numbers) for numbers in unit.values())

    def _is_complete(self, unit: _Unit) -> bool:
        return all(self._runs.keys() >= set(numbers) for numbers in unit.values())

    def skip_reason(self, number: int) -> str | None:
        gates = self._of_place.get(number)
        if not gates or any(gate.evidence.verdict is None for gate in gates):
            return None
        return f"{NOT_NEEDED_PREFIX}the pass rate is decided"

    def found(self, saved: frozenset[int]) -> Iterator[GateEarlyStop]:
        for gate in self.gates:
            clusters = rate = None
            if gate.has_clusters:
                clusters = len(set(gate.units_of_shares))
            if gate.shares:
                rate = mean(gate.shares)
            yield GateEarlyStop(
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
                clusters=clusters,
                rate=rate,
                interval=gate.interval,
            )

    @property
    def unreachable_gates(self) -> Iterator[TooFewUnits]:
        for gate in self.gates:
            sizes = [len(unit) / gate.most for unit in gate.units]
            if fewest_units_to_reach(gate.gate, gate.worse, sizes) is None:
                yield TooFewUnits(gate.suite, gate.gate, gate.worse, len(gate.units), gate.has_clusters)


def _units_of(places: Mapping[int, PlannedRunPlace], suite: str | None, gate: Gate) -> dict[str | None, list[_Unit]]:
    """Return the units of a suite, or of all suites, by model. The key `None` stands for all models together."""
    found: dict[str | None, dict[object, dict[tuple[str, str], list[int]]]] = {}
    for number, place in places.items():
        if suite in (None, place.suite):
            units = found.setdefault(place.model if gate.per == "model" else None, {})
            cases = units.setdefault(place.unit, {})
            cases.setdefault((place.suite, place.case_id), []).append(number)
    return {model: list(units.values()) for model, units in found.items()}
