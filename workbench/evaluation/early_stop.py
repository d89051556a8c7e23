"""Early stopping of a batch: runs have a random order, and once the result is decided, the other runs are skipped."""

from __future__ import annotations

import asyncio
import random
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import itemgetter

from workbench.analysis.early_stop import EarlyStopping, PlannedRunPlace
from workbench.analysis.early_stop_state import PairEarlyStop
from workbench.engine.events import BatchEvent, RunDone
from workbench.engine.plan import PlannedRun
from workbench.evaluation.options import Stop
from workbench.evaluation.plan import Plan, gates_of
from workbench.grading.run_summary import RunSummary, summary_of
from workbench.grading.status import Status
from workbench.history.records import Until
from workbench.numerals import setting_text
from workbench.suite.grading_model import Gate
from workbench.suite.suite_file import SuiteFile
from workbench.trajectory.events import JsonValue


class StopError(ValueError):
    """The user's rule for stopping early cannot be applied. The message says why, and what to do."""


def stopping_rule(stop: Stop, runs: Sequence[PlannedRun], files: Iterable[SuiteFile], *, compares: bool) -> Until:
    """Return the stopping rule for a batch of these runs.

    If the user gave no seed, it is derived from the runs, so the same runs always have the same order. Raises
    StopError."""
    seed = stop.seed
    if seed is None:
        seed = _seed_of(runs)
    if compares and stop.looks is not None:
        return Until("looks", seed, looks=stop.looks)
    if compares:
        return Until("e-value", seed, looks=None)
    until = Until("gate", seed, gate=stop.gate, worse=stop.worse)
    rates = _rates_to_decide(stop, files)
    if not rates:
        raise StopError("--until decided needs a pass rate: write --until decided,gate=X, or min_pass_rate into [gate]")
    for rate in rates:
        if not 0 < (worse := until.worse_than(rate)) < rate < 1:
            raise StopError(
                f"a gate of {setting_text(rate)} cannot be tested against worse={setting_text(worse)}: both must lie "
                "between 0 and 1, and worse=X must be less than the gate"
            )
    return until


def _rates_to_decide(stop: Stop, files: Iterable[SuiteFile]) -> list[float]:
    if stop.gate is not None:
        return [stop.gate]
    gates = gates_of(files)
    rates = []
    for gate in gates.values():
        if gate.min_pass_rate is not None:
            rates.append(gate.min_pass_rate)
    for path, gate in gates.items():
        if rates and gate.min_score is not None:
            raise StopError(f"the gate of {path} has min_score, which needs all runs: omit --until, or add gate=X")
    return rates


def _seed_of(runs: Iterable[PlannedRun]) -> int:
    # Python's `hash` of a text differs in each process, so it could not reproduce the order.
    return zlib.crc32("\n".join(f"{run.written.id} {run.model} {run.repeat}" for run in runs).encode())


def undecidable_gates(until: Until, runs: Iterable[PlannedRun], files: Iterable[SuiteFile]) -> list[str]:
    """Return a sentence for each gate for which these runs have too few cases or clusters to stop early."""
    found = EarlyStopping(until, dict(enumerate(map(place_of, runs))), gates_of(files)).unreachable_gates
    return [": ".join(filter(None, (each.suite, each.sentence))) for each in found]


def in_random_order(runs: Iterable[PlannedRun], seed: int) -> tuple[PlannedRun, ...]:
    """Return the runs with their cases, or clusters of cases, in random order.

    Within a case, all models run the first repeat before any model runs the second."""
    # Cases of one cluster tend to fail together. The statistical test therefore requires whole clusters in random
    # order.
    of_unit: dict[object, list[PlannedRun]] = {}
    for run in runs:
        of_unit.setdefault(place_of(run).unit, []).append(run)
    units = list(of_unit.values())
    random.Random(seed).shuffle(units)
    return tuple(chain.from_iterable(map(_case_by_case, units)))


def _case_by_case(runs: Iterable[PlannedRun]) -> Iterator[PlannedRun]:
    cases: dict[str, list[PlannedRun]] = {}
    for run in runs:
        cases.setdefault(run.written.id, []).append(run)
    for case in cases.values():
        yield from sorted(case, key=lambda run: run.repeat)


def place_of(run: PlannedRun) -> PlannedRunPlace:
    """Return the suite, case, model and cluster of a planned run."""
    return PlannedRunPlace(str(run.file.path), run.written.id, run.model, run.settings.grading.cluster)


def early_stopping_of_plan(plan: Plan) -> EarlyStopping | None:
    """Return the early-stopping state of a plan's batch; `None` if the batch runs every case.

    In a resumed batch, the state includes the runs that finished earlier."""
    if plan.until is None:
        return None
    over, numbers = plan.finished_figures, plan.places
    places = {number: _place_of_figures(run) for number, run in over.items()}
    for run in plan.runs:
        places[numbers[run.run_id]] = place_of(run)
    return early_stopping_of(plan.until, places, over, plan.gates)


def early_stopping_of(
    until: Until,
    places: Mapping[int, PlannedRunPlace],
    finished_runs: Mapping[int, RunSummary],
    gates: Mapping[str, Gate],
) -> EarlyStopping:
    """Return the early-stopping state of a batch, including `finished_runs`, by place in the plan."""
    watch = EarlyStopping(until, dict(sorted(places.items(), key=itemgetter(0))), gates)
    for number, run in finished_runs.items():
        watch.add(number, run)
    return watch


def pairs_of_batch(settings: Mapping[str, JsonValue], figures: Mapping[int, RunSummary]) -> tuple[PairEarlyStop, ...]:
    """Return the evidence about each pair of models in a stored batch; empty unless the batch could stop early."""
    until = Until.of(settings)
    if until is None or until.rule == "gate":
        return ()
    places = {number: _place_of_figures(run) for number, run in figures.items()}
    return early_stopping_of(until, places, figures, {}).pairs


def _place_of_figures(run: RunSummary) -> PlannedRunPlace:
    return PlannedRunPlace(run.suite, run.case_id, run.model, run.grading.cluster)


class EarlyStopper:
    """Listens to the events of a batch, and skips runs that can no longer change the decision.

    No run begins more than `ahead` places after the first unfinished run. Otherwise, a fast model would finish all its
    runs before anything is decided."""

    status: Status = Status.SKIPPED

    def __init__(self, plan: Plan, watch: EarlyStopping, ahead: int) -> None:
        self._watch = watch
        self._numbers = plan.places
        self._open = iter(sorted(self._numbers[run.run_id] for run in plan.runs))
        self._finished: set[int] = set()
        self._first: int | None = next(self._open, None)
        self._ahead = ahead
        self._news = asyncio.Event()

    def on_event(self, event: BatchEvent) -> None:
        """Record a finished run, and wake the waiting runs."""
        if not isinstance(event, RunDone):
            return
        number = self._numbers[event.result.run_id]
        self._finished.add(number)
        self._watch.add(number, summary_of(event.result))
        while self._first in self._finished:
            self._first = next(self._open, None)
        self._news.set()
        self._news = asyncio.Event()

    async def skip_reason(self, planned: PlannedRun) -> str | None:
        """Return the reason to skip a run, or `None` to start it now.

        The call waits while the run is more than `ahead` places after the first unfinished run."""
        number = self._numbers[planned.run_id]
        # After each finished run, the first unfinished run may be a later one, or the batch may be decided.
        while (why := self._watch.skip_reason(number)) is None and number > (self._first or 0) + self._ahead:
            await self._news.wait()
        return why
