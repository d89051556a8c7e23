"""Stopping a batch early: the random order of its runs, and which of them are spared while it goes on."""

from __future__ import annotations

import asyncio
import random
import zlib
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter

from workbench.analysis.early_stop import Place, Watch
from workbench.analysis.watched import PairWatched
from workbench.engine.events import BatchEvent, RunDone
from workbench.engine.plan import PlannedRun
from workbench.evaluation.options import Stop
from workbench.evaluation.plan import Plan
from workbench.grading.run_summary import RunSummary, summary_of
from workbench.grading.status import Status
from workbench.history.records import Until
from workbench.numerals import setting_text
from workbench.suite.model import Gate
from workbench.suite.suite_file import SuiteFile
from workbench.trajectory.events import JsonValue


class StopError(ValueError):
    """A batch cannot stop early as asked.

    The message says why, and what to do."""


def until_of(stop: Stop, runs: Sequence[PlannedRun], files: Iterable[SuiteFile], *, compares: bool) -> Until:
    """Return when a batch of these runs stops.

    Without a seed, one is made from the plan: the same runs have the same order again. Raises StopError."""
    seed = stop.seed if stop.seed is not None else _seed_of(runs)
    if compares:
        return Until("e-value" if stop.looks is None else "looks", seed, looks=stop.looks)
    until = Until("gate", seed, gate=stop.gate, worse=stop.worse)
    gates = {str(file.path): file.suite.gate for file in files if file.suite is not None}
    rates = {None: stop.gate} if stop.gate is not None else {suite: gate.min_pass_rate for suite, gate in gates.items()}
    if not any(rate is not None for rate in rates.values()):
        raise StopError(
            "--until decided needs a pass rate to hold runs against: give --gate, or min_pass_rate in [gate]"
        )
    for suite, gate in gates.items() if stop.gate is None else ():
        if gate.min_score is not None:
            raise StopError(
                f"{suite} demands a mean score, too, which needs all runs: leave --until out, or give --gate"
            )
    for rate in rates.values():
        if rate is not None and not 0 < (worse := until.worse_than(rate)) < rate < 1:
            raise StopError(
                f"a gate of {setting_text(rate)} cannot be told apart from {setting_text(worse)}: the gate and --worse "
                "lie between 0 and 1, and --worse is less"
            )
    return until


def _seed_of(runs: Iterable[PlannedRun]) -> int:
    return zlib.crc32("\n".join(f"{run.written.id} {run.model} {run.repeat}" for run in runs).encode())


def out_of_reach(until: Until, runs: Iterable[PlannedRun], files: Iterable[SuiteFile]) -> list[str]:
    """Return which gates these runs cannot reach early, whatever comes out, each in a sentence."""
    gates = {str(file.path): file.suite.gate for file in files if file.suite is not None}
    found = Watch(until, dict(enumerate(map(place_of, runs))), gates).out_of_reach
    return [f"{each.suite}: {each.sentence}" if each.suite is not None else each.sentence for each in found]


def in_random_order(runs: Iterable[PlannedRun], seed: int) -> tuple[PlannedRun, ...]:
    """Return runs in random order: case by case or, where cases have one, cluster by cluster, and in each case the
    repeats one after the other with all models."""
    of_unit: dict[object, list[PlannedRun]] = {}
    for run in runs:
        of_unit.setdefault(place_of(run).unit, []).append(run)
    units = list(of_unit.values())
    random.Random(seed).shuffle(units)
    return tuple(run for unit in units for run in _case_by_case(unit))


def _case_by_case(runs: Iterable[PlannedRun]) -> list[PlannedRun]:
    cases: dict[str, list[PlannedRun]] = {}
    for run in runs:
        cases.setdefault(run.written.id, []).append(run)
    return [run for case in cases.values() for run in sorted(case, key=lambda each: each.repeat)]


def place_of(run: PlannedRun) -> Place:
    """Return a planned run as far as stopping is concerned."""
    return Place(str(run.file.path), run.written.id, run.model, run.settings.grading.cluster)


def watch_of(plan: Plan) -> Watch | None:
    """Return what watches the batch of a plan, after the runs that are over already; `None` where all are made."""
    if plan.until is None:
        return None
    over = plan.resumed.over if plan.resumed is not None else {}
    places = {number: _place_of_figures(run) for number, run in over.items()}
    numbers = plan.places
    places |= {numbers[run.run_id]: place_of(run) for run in plan.runs}
    gates = {str(file.path): file.suite.gate for file in plan.files if file.suite is not None}
    return watched(plan.until, places, over, gates)


def watched(
    until: Until, places: Mapping[int, Place], over: Mapping[int, RunSummary], gates: Mapping[str, Gate]
) -> Watch:
    """Return what watched a batch, after these runs of it."""
    watch = Watch(until, dict(sorted(places.items(), key=itemgetter(0))), gates)
    for number, run in over.items():
        watch.take(number, run)
    return watch


def pairs_of_batch(settings: Mapping[str, JsonValue], figures: Mapping[int, RunSummary]) -> tuple[PairWatched, ...]:
    """Return what was known of the contenders of a stored batch that stopped early, from all of its runs that are
    over; nothing for any other batch."""
    until = Until.of(settings)
    if until is None or until.rule == "gate":
        return ()
    return watched(until, {number: _place_of_figures(run) for number, run in figures.items()}, figures, {}).pairs


def _place_of_figures(run: RunSummary) -> Place:
    return Place(run.suite, run.case_id, run.model, run.grading.cluster)


class Sparing:
    """Spares runs of a batch that goes on; a listener of it.

    No run begins that is more than `ahead` places beyond the first one that is not over: a fast model would otherwise
    be through before anything is decided."""

    status: Status = Status.SKIPPED

    def __init__(self, plan: Plan, watch: Watch, ahead: int) -> None:
        self._watch = watch
        self._numbers = plan.places
        self._open = iter(sorted(self._numbers[run.run_id] for run in plan.runs))
        self._over: set[int] = set()
        self._first: int | None = next(self._open, None)
        self._ahead = ahead
        self._news = asyncio.Event()

    def take(self, event: BatchEvent) -> None:
        """Take in what happened."""
        if not isinstance(event, RunDone):
            return
        number = self._numbers[event.result.run_id]
        self._over.add(number)
        self._watch.take(number, summary_of(event.result))
        while self._first in self._over:
            self._first = next(self._open, None)
        self._news.set()
        self._news = asyncio.Event()

    async def why_not(self, planned: PlannedRun) -> str | None:
        """Return why a run need not be made, once that can be said; `None` when it is to be made now."""
        number = self._numbers[planned.run_id]
        while (why := self._watch.why_not(number)) is None and number > (self._first or 0) + self._ahead:
            await self._news.wait()
        return why
