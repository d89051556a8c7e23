"""Compares two batches case by case: what broke, was fixed, moved, is new, gone, slower or in error.

A case counts with the joined result of its repeats, by its own rule. Cases correspond by suite, id and model; where
each batch was planned with one model alone, and these differ, the one model is compared with the other. Otherwise runs
planned with a model that the other batch lacks are left out: none of their cases is new or gone. The kinds of changes:

- `broke`: passed or warned before, failed now;
- `fixed`: failed before, passed or warned now;
- `moved`: graded both times and on the same side of failing, but with a different status, or a score (or counted score)
  that differs by more than 0.005 or exists only once;
- `new`: only in the later batch; `gone`: only in the earlier one;
- `missing`: graded before, and skipped now or without anything that is expected: nothing is known of it any more;
- `slower`: graded both times, and the mean model latency of its graded runs is at least 1.5 times that of before and at
  least 200 ms more. A case can be slower and have one other kind; of the others it has at most one;
- `errored`: graded before, and in error now. That is a fault of the infrastructure, and no regression.

A case that was not graded before cannot have changed, whatever its status is now. Neither can a case that was stopped
now, or that an early decision made unnecessary. Such cases are `left_out`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, fields, is_dataclass, replace
from operator import itemgetter
from types import MappingProxyType
from typing import Literal

from workbench.analysis.comparison import Cell, CellKey, cell_of, placed_cells, runs_of_models, scores_differ
from workbench.analysis.measures import SLOWER
from workbench.analysis.paired import Paired, paired, together
from workbench.dataclasses import dataclass
from workbench.grading.run_summary import RunSummary, is_not_needed
from workbench.grading.scoring import counted_score, counts_zero
from workbench.grading.status import Status
from workbench.history.records import SameSuites
from workbench.numerals import duration_text, score_text, times_text
from workbench.suite.model import GraderName
from workbench.suite.settings import Grading

# The deciding graders: a change of grader explains changes of status that no model made.

Deciders = tuple[GraderName, ...]
"""Graders in the order of their names: several where the runs of one case were graded at different times."""


@dataclass(frozen=True, slots=True)
class DecidedBy:
    """The cases, by suite and id, that these graders decided in the earlier and in the later batch."""

    before: Deciders
    after: Deciders
    cases: tuple[tuple[str, str], ...]


def decider_of(run: RunSummary) -> GraderName | None:
    """Return the grader that decided a run; `None` where it was not graded."""
    return run.grading.by if run.status.graded else None


def deciders_of(runs: Iterable[RunSummary]) -> Deciders:
    """Return all graders that decided some of these runs."""
    return tuple(sorted({by for run in runs if (by := decider_of(run)) is not None}))


class CasesByDeciders:
    """The cases that were graded both times, grouped by the deciding graders, as they are added."""

    def __init__(self) -> None:
        self._cases: dict[tuple[Deciders, Deciders], dict[tuple[str, str], int]] = {}

    def add(self, place: int, case: tuple[str, str], before: Cell, after: Cell) -> None:
        """Add a case, by suite and id, with one model; `place` is its position in the batch."""
        places = self._cases.setdefault((deciders_of(before.runs), deciders_of(after.runs)), {})
        places[case] = min(place, places.get(case, place))

    def found(self) -> tuple[DecidedBy, ...]:
        """Return the groups and the cases of each, in the order of the batch."""
        found: list[DecidedBy] = []
        for deciders, places in sorted(self._cases.items(), key=lambda group: min(group[1].values())):
            found.append(DecidedBy(*deciders, tuple(sorted(places, key=places.__getitem__))))
        return tuple(found)


ChangeKind = Literal["broke", "fixed", "moved", "new", "gone", "missing", "slower", "errored"]

KINDS: tuple[ChangeKind, ...] = ("broke", "fixed", "moved", "new", "gone", "missing", "slower", "errored")
"""The kinds in the order of their importance to a person."""


@dataclass(frozen=True, slots=True)
class CaseSide:
    """A case in one of two batches: the figures of its `Cell` without the runs.

    `reasons` are those of its runs, each once."""

    suite: str
    model: str
    status: Status
    score: float | None
    counted_score: float | None
    spread: float | None
    good: int
    graded: int
    latency_ms: float | None
    reason: str | None
    reasons: tuple[str, ...]
    quarantined: bool = False

    @classmethod
    def of(cls, cell: Cell | None) -> CaseSide | None:
        """Return the figures of a cell; `None` for a case that is not in the batch."""
        if cell is None:
            return None
        reasons = tuple(dict.fromkeys(run.reason for run in cell.runs if run.reason))
        scores = cell.score, cell.counted_score, cell.spread
        came_to = cell.status, *scores, cell.good, cell.graded, cell.latency_ms, cell.reason
        return cls(cell.suite, cell.model, *came_to, reasons, cell.is_quarantined)


@dataclass(frozen=True, slots=True)
class CaseChange:
    """The change of a case with a model.

    `suite` is its key; suite and model are those of the later batch where they differ. `sentence` describes it: `passed
    1.00 → failed 0.50: missing_call: no call of get_weather`."""

    kind: ChangeKind
    suite: str
    case_id: str
    case_name: str
    model: str
    before: CaseSide | None
    after: CaseSide | None

    @property
    def sentence(self) -> str:
        return _sentence(self.kind, self.before, self.after)

    @property
    def decides(self) -> bool:
        """Whether the case counts in exit codes: it is not in quarantine."""
        side = self.after or self.before
        return side is None or not side.quarantined


@dataclass(frozen=True, slots=True)
class BatchDiff:
    """The changes from one batch to another, by kind, each kind in the order of the later batch's cases.

    `compared` counts the cases that were graded both times, `left_out` those in both batches that were not and did not
    change to an error; both count a case with each of its models, `cases` counts each compared one once. `models` are
    those that both batches were planned with, `only_before` and `only_after` the ones that are left out. `across` are
    the two models where one was compared with the other; of these `models` has the later one. `decided` names the
    graders that decided the compared cases, `rules` the options of grading that differ, each with its values before and
    after and the number of the compared cases.

    `tests` has the paired test of each model that both batches have; of those that are compared `across`, by the later
    one. Their scores are those that count in gates, and they are in numbers.
    """

    changes: tuple[CaseChange, ...]
    compared: int
    left_out: int
    cases: int
    models: frozenset[str]
    only_before: tuple[str, ...] = ()
    only_after: tuple[str, ...] = ()
    across: tuple[str, str] | None = None
    decided: tuple[DecidedBy, ...] = ()
    tests: Mapping[str, Paired] = field(default_factory=dict)
    rules: Mapping[tuple[str, str, str], int] = field(default_factory=dict)

    def of(self, kind: ChangeKind) -> tuple[CaseChange, ...]:
        """Return the changes of one kind."""
        return tuple(change for change in self.changes if change.kind == kind)

    @property
    def as_before(self) -> int:
        """How many cases have the same status and score as before."""
        return self.compared - sum(change.kind in ("broke", "fixed", "moved") for change in self.changes)


def batch_diff(
    before: Sequence[RunSummary],
    after: Sequence[RunSummary],
    *,
    unfinished: tuple[Collection[CellKey], Collection[CellKey]] = ((), ()),
    same: SameSuites = MappingProxyType({}),
    lost: Container[tuple[str, str]] = (),
) -> BatchDiff:
    """Compare two batches by the summaries of their runs; forks are left out.

    `unfinished` are the cases that the earlier and the later batch planned but never finished: they are neither new nor
    gone, but left out. `same` maps suites of the earlier batch to those of the later one where their keys differ. Cases
    that are `lost`, by suite and id in the later batch, expect nothing any more and count as not graded. The runs of
    one model are in memory at a time.
    """
    earlier, later = runs_of_models(before), runs_of_models(after)
    then, now = _models(earlier, unfinished[0]), _models(later, unfinished[1])
    across: tuple[str, str] | None = None
    renamed: dict[str, str] = {}
    models = then & now
    only_before, only_after = tuple(sorted(then - now)), tuple(sorted(now - then))
    if len(then) == len(now) == 1 and then != now:
        across = (min(then), min(now))
        renamed, models = dict([across]), now
        only_before = only_after = ()

    def in_later(key: CellKey) -> CellKey:
        suite, case_id, model = key
        return same.get(suite, suite), case_id, renamed.get(model, model)

    as_later = {renamed.get(model, model): indices for model, indices in earlier.items()}
    planned = {*map(in_later, unfinished[0]), *unfinished[1]}
    changes: dict[ChangeKind, list[tuple[int, CaseChange]]] = {}
    for kind in KINDS:
        changes[kind] = []
    tests: dict[str, Paired] = {}
    rules = Counter[tuple[str, str, str]]()
    decided, cases, compared, left_out = CasesByDeciders(), set[tuple[str, str]](), 0, 0
    for model in dict.fromkeys((*later, *as_later, *renamed.values())):
        if model not in models:
            continue
        old = {in_later(key): placed for key, placed in placed_cells(before, as_later.get(model, ())).items()}
        new = placed_cells(after, later.get(model, ()))
        new |= {key: (place, _ungraded(cell)) for key, (place, cell) in new.items() if key[:2] in lost}
        for key in dict.fromkeys((*new, *old)):
            old_place, one = old.get(key, (0, None))
            # Cases of the earlier batch alone come behind all others.
            place, other = new.get(key, (len(after) + old_place, None))
            if (one is None or other is None) and key in planned:
                left_out += 1
                continue
            kinds = tuple(_kinds(one, other))
            for kind in kinds:
                changes[kind].append((place, _change(kind, key, one, other)))
            if one is None or other is None:
                continue
            if one.is_graded and other.is_graded:
                compared += 1
                cases.add(key[:2])
                decided.add(place, key[:2], one, other)
                rules.update(_rules_that_differ(one.runs[-1].grading, other.runs[-1].grading))
            elif not kinds:
                left_out += 1
        if model in renamed.values() or (model in later and model in as_later):
            tests[model] = paired(_counted(old), _counted(new)).in_numbers
        # Freed before the next model's cells are made: a large batch has one model's runs in memory at a time.
        del old, new
    in_order: list[CaseChange] = []
    for of_kind in changes.values():
        in_order += (change for _, change in sorted(of_kind, key=itemgetter(0)))
    return BatchDiff(
        tuple(in_order),
        compared,
        left_out,
        len(cases),
        models,
        only_before,
        only_after,
        across,
        decided.found(),
        dict(zip(tests, together(tests.values()), strict=True)),
        rules,
    )


def _ungraded(cell: Cell) -> Cell:
    come_to = replace(
        cell.come_to, status=Status.NOT_GRADED, score=None, deviation=None, reason="expects nothing any more"
    )
    return replace(cell, come_to=come_to)


_NO_RULES = ("by", "quarantined", "compare_by", "cluster")
"""Options of grading that do not change a run's grade, or that other notes report."""


def _rules_that_differ(before: Grading, after: Grading) -> Iterator[tuple[str, str, str]]:
    if before == after:
        return
    for each in fields(Grading):
        then, now = getattr(before, each.name), getattr(after, each.name)
        if then != now and each.name not in _NO_RULES:
            yield from _options_that_differ(each.name, then, now)


def _options_that_differ(name: str, before: object, after: object) -> Iterator[tuple[str, str, str]]:
    if not is_dataclass(before):
        yield name, str(before), str(after)
        return
    for each in fields(before):
        then, now = getattr(before, each.name), getattr(after, each.name)
        if then != now:
            yield f"{name}.{each.name}", str(then), str(now)


def _models(runs: Iterable[str], unfinished: Iterable[CellKey]) -> frozenset[str]:
    return frozenset((*runs, *(model for _, _, model in unfinished)))


def _counted(cells: Mapping[CellKey, tuple[int, Cell]]) -> Iterator[Cell]:
    """Yield cells with the scores that count in gates, under the suites of the later batch."""
    for (suite, *_), (_, cell) in cells.items():
        if any(map(counts_zero, cell.runs)):
            cell = cell_of([replace(run, score=counted_score(run)) for run in cell.runs])
        if cell.suite != suite:
            cell = replace(cell, suite=suite)
        yield cell


def _kinds(before: Cell | None, after: Cell | None) -> Iterable[ChangeKind]:
    if before is None:
        yield "new"
        return
    if after is None:
        yield "gone"
        return
    if not before.is_graded:
        return
    if after.status == Status.ERROR:
        yield "errored"
    if not after.status.owed and not any(map(is_not_needed, after.runs)):
        yield "missing"
    if not after.is_graded:
        return
    if before.is_good != after.is_good:
        yield "broke" if before.is_good else "fixed"
    elif before.status != after.status or _score_moved(before, after):
        yield "moved"
    if SLOWER.is_worse(before.latency_ms, after.latency_ms):
        yield "slower"


def _score_moved(before: Cell, after: Cell) -> bool:
    for then, now in (before.score, after.score), (before.counted_score, after.counted_score):
        if then is None or now is None:
            if then is not now:
                return True
        elif scores_differ(then, now):
            return True
    return False


def _change(kind: ChangeKind, key: CellKey, before: Cell | None, after: Cell | None) -> CaseChange:
    named = after or before
    assert named is not None
    suite, case_id, model = key
    return CaseChange(kind, suite, case_id, named.case_name, model, CaseSide.of(before), CaseSide.of(after))


def _sentence(kind: ChangeKind, before: CaseSide | None, after: CaseSide | None) -> str:
    if after is None:
        assert before is not None
        return f"{came_to(before)}, only in the earlier batch{_because(before)}"
    if before is None:
        return f"{came_to(after)}, only in the later batch{_because(after)}"
    if kind == "slower":
        assert before.latency_ms is not None and after.latency_ms is not None
        times = after.latency_ms / before.latency_ms
        return f"{duration_text(before.latency_ms)} → {duration_text(after.latency_ms)}, {times_text(times)} as long"
    why = _because(after)
    if kind == "fixed" and before.reason:
        why = f", before{_because(before)}"
    then, now = came_to(before), came_to(after)
    if kind == "moved" and then == now:
        # They look the same, but only one of them failed for a reason besides the score.
        then += f", counts {score_text(before.counted_score, 'nothing')}"
        now += f", counts {score_text(after.counted_score, 'nothing')}"
    return f"{then} → {now}{why}"


def came_to(cell: Cell | CaseSide) -> str:
    """Return status and score, and the good ones of several graded runs: `failed 0.50`, `passed 0.83 (2 of 3)`."""
    text = str(cell.status)
    if cell.score is not None:
        text += f" {score_text(cell.score)}"
    if cell.graded > 1:
        text += f" ({cell.good} of {cell.graded})"
    return text


def _because(cell: CaseSide) -> str:
    if not cell.reason or cell.status == Status.PASSED:
        return ""
    return f": {cell.reason}"
