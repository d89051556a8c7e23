"""Compares two batches case by case, and sorts the changed cases by kind.

The result of a case joins its repeats by the case's own rule. Cases correspond by suite, id and model. If each batch
was planned with one model, and the models differ, one model is compared with the other. Otherwise, runs with a model of
only one batch are left out, and their cases are neither new nor gone. The kinds of changes:

- `broke`: passed or warned before, and failed now
- `fixed`: failed before, and passed or warned now
- `moved`: graded both times without breaking or being fixed, but with a different status, or with a score (or counted
  score) that differs by more than 0.005 or exists only once
- `new`: only in the later batch
- `gone`: only in the earlier batch
- `missing`: graded before, and skipped now or without any expectation, so that its result is unknown
- `slower`: graded both times, and the mean model latency of its graded runs grew to at least 1.5 times, and by at least
  200 ms
- `errored`: graded before, and in error now, which is a fault of the infrastructure and not a regression

A case has at most one kind of change. Only `slower` may be added to another kind. A case that was not graded before has
no change. Neither has a case that was stopped now, or that an early decision made unnecessary. All these cases are
`left_out`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, fields, is_dataclass, replace
from operator import itemgetter
from types import MappingProxyType
from typing import Literal

from workbench.analysis.comparison import Cell, CellKey, cell_of, cells_with_positions, runs_of_models, scores_differ
from workbench.analysis.measures import SLOWER_GROWTH
from workbench.analysis.paired import PairedComparison, compare_pairs, corrected_for_count
from workbench.dataclasses import dataclass
from workbench.grading.run_summary import RunSummary, is_not_needed
from workbench.grading.scoring import counted_score, counts_zero
from workbench.grading.status import Status
from workbench.history.records import SameSuites
from workbench.numerals import duration_text, score_text, times_text
from workbench.suite.grading_model import GraderName
from workbench.suite.settings import Grading

# The deciding graders of cases. If another grader decides, statuses can change even with the same model.

DecidingGraders = tuple[GraderName, ...]
"""The deciding graders of one case, sorted by name. There are several if its runs were graded at different times."""


@dataclass(frozen=True, slots=True)
class GraderGroup:
    """Cases with the same deciding graders: `before` in the earlier batch, and `after` in the later batch.

    Each case is a suite and a case id."""

    before: DecidingGraders
    after: DecidingGraders
    cases: tuple[tuple[str, str], ...]


def deciding_grader(run: RunSummary) -> GraderName | None:
    """Return the deciding grader of a run, or `None` if the run was not graded."""
    return run.grading.by if run.status.graded else None


def deciding_graders(runs: Iterable[RunSummary]) -> DecidingGraders:
    return tuple(sorted(set(filter(None, map(deciding_grader, runs)))))


class CasesByGraders:
    """The cases that were graded both times, grouped by their deciding graders. Add cases one at a time."""

    def __init__(self) -> None:
        self._cases: dict[tuple[DecidingGraders, DecidingGraders], dict[tuple[str, str], int]] = {}

    def add(self, place: int, case: tuple[str, str], before: Cell, after: Cell) -> None:
        """Add a case (suite and id) with one model. `place` is its position in the batch."""
        places = self._cases.setdefault((deciding_graders(before.runs), deciding_graders(after.runs)), {})
        places[case] = min(place, places.get(case, place))

    def found(self) -> tuple[GraderGroup, ...]:
        """Return the groups in the order of the later batch. Cases within a group have the same order."""
        found: list[GraderGroup] = []
        for deciders, places in sorted(self._cases.items(), key=lambda group: min(group[1].values())):
            found.append(GraderGroup(*deciders, tuple(sorted(places, key=places.__getitem__))))
        return tuple(found)


ChangeKind = Literal["broke", "fixed", "moved", "new", "gone", "missing", "slower", "errored"]

CHANGE_KINDS: tuple[ChangeKind, ...] = ("broke", "fixed", "moved", "new", "gone", "missing", "slower", "errored")
"""The kinds of changes in the order of reports, the most important first."""


@dataclass(frozen=True, slots=True)
class CaseSide:
    """The result of a case in one of two batches: the figures of its `Cell`, without the runs.

    `reasons` are the reasons of the case's runs, each once."""

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
        """Return the figures of a cell, or `None` if the case is not in the batch."""
        if cell is None:
            return None
        reasons = tuple(dict.fromkeys(run.reason for run in cell.runs if run.reason))
        scores = cell.score, cell.counted_score, cell.spread
        came_to = cell.status, *scores, cell.good, cell.graded, cell.latency_ms, cell.reason
        return cls(cell.suite, cell.model, *came_to, reasons, cell.is_quarantined)


@dataclass(frozen=True, slots=True)
class CaseChange:
    """The change of a case with a model from one batch to another.

    `suite` is the suite's key. `suite` and `model` are those of the later batch, if they differ between the batches."""

    kind: ChangeKind
    suite: str
    case_id: str
    case_name: str
    model: str
    before: CaseSide | None
    after: CaseSide | None

    @property
    def sentence(self) -> str:
        """The change in words: `passed 1.00 → failed 0.50: missing_call: no call of get_weather`."""
        return _sentence(self.kind, self.before, self.after)

    @property
    def decides(self) -> bool:
        """Whether the case counts in exit codes. A case in quarantine does not count."""
        side = self.after or self.before
        return side is None or not side.quarantined


@dataclass(frozen=True, slots=True)
class BatchDiff:
    """The changes from one batch to another, sorted by kind, then by the order of the later batch's cases.

    `compared` counts the cases that were graded both times. `left_out` counts the other cases without a change. Both
    count a case once for each model, but `cases` counts each compared case once. `models` are the models planned in
    both batches. The models in `only_before` and `only_after` are left out. If one model was compared with another,
    `across` holds the earlier and the later model, and `models` holds only the later model. `decided` groups the
    compared cases by their deciding graders. `rules` counts the compared cases for each changed grading option, given
    as the option, its value before and its value after.

    `tests` holds a paired test for each of `models`, on the scores that count in gates. The tests omit their pairs
    (`PairedComparison.without_pairs`)."""

    changes: tuple[CaseChange, ...]
    compared: int
    left_out: int
    cases: int
    models: frozenset[str]
    only_before: tuple[str, ...] = ()
    only_after: tuple[str, ...] = ()
    across: tuple[str, str] | None = None
    decided: tuple[GraderGroup, ...] = ()
    tests: Mapping[str, PairedComparison] = field(default_factory=dict)
    rules: Mapping[tuple[str, str, str], int] = field(default_factory=dict)

    def of(self, kind: ChangeKind) -> tuple[CaseChange, ...]:
        return tuple(change for change in self.changes if change.kind == kind)

    @property
    def unchanged_cases(self) -> int:
        """The number of compared cases with the same status and score as before."""
        return self.compared - sum(change.kind in ("broke", "fixed", "moved") for change in self.changes)


def batch_diff(
    before: Sequence[RunSummary],
    after: Sequence[RunSummary],
    *,
    unfinished: tuple[Collection[CellKey], Collection[CellKey]] = ((), ()),
    same_suites: SameSuites = MappingProxyType({}),
    lost_cells: Container[tuple[str, str]] = (),
) -> BatchDiff:
    """Compare two batches by the summaries of their runs, without forks.

    `unfinished` holds the cases that the earlier and the later batch planned but never finished. They are left out and
    count neither as new nor as gone. `same_suites` maps the keys of the earlier batch's suites to those of the later
    batch, if they differ. `lost_cells` holds cases, by suite and id in the later batch, that have lost their
    expectations. They count as not graded. Only the runs of one model are in memory at a time."""
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
        return same_suites.get(suite, suite), case_id, renamed.get(model, model)

    as_later = {renamed.get(model, model): indices for model, indices in earlier.items()}
    planned = {*map(in_later, unfinished[0]), *unfinished[1]}
    changes: dict[ChangeKind, list[tuple[int, CaseChange]]] = {kind: [] for kind in CHANGE_KINDS}
    tests: dict[str, PairedComparison] = {}
    rules = Counter[tuple[str, str, str]]()
    decided, cases, compared, left_out = CasesByGraders(), set[tuple[str, str]](), 0, 0
    for model in dict.fromkeys((*later, *as_later, *renamed.values())):
        if model not in models:
            continue
        old = {}
        for key, placed in cells_with_positions(before, as_later.get(model, ())).items():
            old[in_later(key)] = placed
        new = cells_with_positions(after, later.get(model, ()))
        for key, (place, cell) in new.items():
            if key[:2] in lost_cells:
                new[key] = place, _ungraded(cell)
        for key in dict.fromkeys((*new, *old)):
            old_place, one = old.get(key, (0, None))
            # Cases that only the earlier batch has come after all other cases.
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
            tests[model] = compare_pairs(_counted(old), _counted(new)).without_pairs
        # The cells are freed before those of the next model are read, because a large batch does not fit in memory.
        del old, new
    in_order: list[CaseChange] = []
    for of_kind in changes.values():
        for _, change in sorted(of_kind, key=itemgetter(0)):
            in_order.append(change)
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
        dict(zip(tests, corrected_for_count(tests.values()), strict=True)),
        rules,
    )


def _ungraded(cell: Cell) -> Cell:
    come_to = replace(
        cell.joined_result, status=Status.NOT_GRADED, score=None, deviation=None, reason="expects nothing any more"
    )
    return replace(cell, joined_result=come_to)


_NO_RULES = ("by", "quarantined", "compare_by", "cluster")
"""The options of grading that are not compared: they do not affect a run's grade or are reported elsewhere."""


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
    if SLOWER_GROWTH.is_worse(before.latency_ms, after.latency_ms):
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
        return f"{joined_result_text(before)}, only in the earlier batch{_because(before)}"
    if before is None:
        return f"{joined_result_text(after)}, only in the later batch{_because(after)}"
    if kind == "slower":
        assert before.latency_ms is not None and after.latency_ms is not None
        times = after.latency_ms / before.latency_ms
        return f"{duration_text(before.latency_ms)} → {duration_text(after.latency_ms)}, {times_text(times)} as long"
    why = _because(after)
    if kind == "fixed" and before.reason:
        why = f", before{_because(before)}"
    then, now = joined_result_text(before), joined_result_text(after)
    if kind == "moved" and then == now:
        # Both scores look the same, but one run counts 0 because it failed for another reason as well.
        then += f", counts {score_text(before.counted_score, 'nothing')}"
        now += f", counts {score_text(after.counted_score, 'nothing')}"
    return f"{then} → {now}{why}"


def joined_result_text(cell: Cell | CaseSide) -> str:
    """Return status, score, and the number of good runs if there are several: `failed 0.50`, `passed 0.83 (2 of 3)`."""
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
