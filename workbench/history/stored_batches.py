"""Reads the batches of a history: which there are, how their runs ended, how often they were regraded, how large they
are."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from workbench.config.folders import history_option
from workbench.dataclasses import compact_json
from workbench.grading.status import Status
from workbench.history import columns
from workbench.history.database import as_history_errors
from workbench.history.records import (
    BatchPart,
    BatchRow,
    DamagedError,
    DatedPart,
    HistoryError,
    Regrade,
)
from workbench.history.rows import DAMAGE, StoredRows
from workbench.trajectory.events import JsonValue

_BATCH = "SELECT id, name, kind, started_at, ended_at, program, settings, planned FROM batches"
_COUNTS = ", ".join(status.column for status in Status)
_OF_PART = f"batch, suite, model, parts.planned, cases, {_COUNTS}, valid_calls, checked_calls"
_PART = f"SELECT {_OF_PART} FROM parts"
_OVER_TIME = f"SELECT kind, settings, {_OF_PART} FROM parts JOIN batches ON batches.id = batch"

_COUNTED_AGAIN = """
SELECT suite, model, coalesce(regrades.status, runs.status) AS ended, count(*)
FROM runs LEFT JOIN regrades ON regrades.run = runs.id AND grading = ?
WHERE batch = ? AND runs.status IS NOT NULL GROUP BY suite, model, ended"""
_CHECKED_AGAIN = """
SELECT suite, model, sum(json_extract(tools.value, '$[0]')), sum(json_extract(tools.value, '$[1]'))
FROM runs LEFT JOIN regrades ON regrades.run = runs.id AND grading = ?,
    json_each(iif(regrades.run, regrades.arguments, runs.arguments)) AS tools
WHERE batch = ? GROUP BY suite, model"""

_AMONG = "IN (SELECT value FROM json_each(?))"
_HAS_ONE = f"id IN (SELECT batch FROM parts WHERE suite {_AMONG})"
_ASIDE = "(kind IS 'fork' OR kind IS 'reruns')"
_LACKS = f"""
planned > (SELECT coalesce(sum({" + ".join(status.column for status in Status if status.final)}), 0)
    FROM parts WHERE parts.batch = batches.id)"""

_WEIGHT = """
SELECT count(*), coalesce(sum(coalesce(length(events) + length(outcome), 0)
    + coalesce((SELECT sum(length(regrades.outcome)) FROM regrades WHERE regrades.run = runs.id), 0)), 0)
FROM runs LEFT JOIN details ON details.run = runs.id WHERE runs.batch = ? AND place BETWEEN ? AND ?"""
_WEIGHED, _STRETCHES = 1_000, 20
"""So many runs of a batch are weighed, in so many stretches of its plan."""
_ROW_BYTES = 160
"""What a run takes beside its events and grades, with its places in indexes."""

_NUMBERS = 1 << 62
"""Beyond all numbers of batches."""

BATCHES_AT_ONCE = 100
"""So many batches are read at once."""

_NAMED = {"id": columns.whole, "name": columns.text}


class StoredBatches(StoredRows):
    """What a `History` tells of its batches."""

    def batches(self) -> list[BatchRow]:
        """All batches that are not damaged, the newest first."""
        return [batch for batch in self.each_batch() if batch.damage is None]

    def all_batches(self) -> list[BatchRow]:
        """All batches, damaged ones included, the newest first."""
        return list(self.each_batch())

    def each_batch(
        self,
        *,
        forks: bool | None = None,
        suites: Collection[int] | None = None,
        lacking: bool = False,
        unended: bool = False,
    ) -> Iterator[BatchRow]:
        """Yields batches, damaged ones included, the newest first, of which a page at a time is read; with `forks`,
        only forks and reruns, which count for no case, or only others; with `suites`, only those that have one with
        such an id; with `lacking`, only those with runs that never finished; with `unended`, only those that have not
        ended."""
        wanted = ["id < ?"]
        if forks is not None:
            wanted.append(_ASIDE if forks else f"NOT {_ASIDE}")
        wanted += [_LACKS] if lacking else []
        wanted += ["ended_at IS NULL"] if unended else []
        values: tuple[int | str, ...] = ()
        if suites is not None:
            wanted.append(_HAS_ONE)
            values = (compact_json(list(suites)),)
        before = _NUMBERS
        page = None
        while page is None or len(page) == BATCHES_AT_ONCE:
            which = f"WHERE {' AND '.join(wanted)} ORDER BY id DESC LIMIT {BATCHES_AT_ONCE}"
            page = self._batches(which, (before, *values))
            yield from page
            before = page[-1].number if page else 0

    def count_batches(self, suites: Collection[int] | None = None) -> tuple[int, int]:
        """Returns how many batches there are, and how many of them are forks or reruns; with `suites`, as
        `each_batch`."""
        statement = f"SELECT count(*), coalesce(sum({_ASIDE}), 0) FROM batches"
        values: tuple[str, ...] = ()
        if suites is not None:
            statement, values = f"{statement} WHERE {_HAS_ONE}", (compact_json(list(suites)),)
        rows = self._stored(statement, values)
        return (rows[0][0], rows[0][1]) if rows else (0, 0)

    def batch(self, which: str, *, damaged: bool = False) -> BatchRow:
        """Returns a batch by its name or its number, with or without a # before it; a damaged one only with
        `damaged`."""
        number = which.removeprefix("#")
        found = self._batches("WHERE name = ?", (which,))
        if not found and number.isdecimal() and len(number) < 19:
            found = self._batches("WHERE id = ?", (int(number),))
        if not found:
            names_all = f"'workbench history list{history_option(self.file)}' lists all"
            raise HistoryError(f"there is no batch {which!r} in {self.file}: {names_all}")
        batch = found[0]
        if batch.damage is not None and not damaged:
            removes_it = f"'workbench history prune --batch {batch.number}{history_option(self.file)}' removes it"
            raise DamagedError(f"batch {batch.number} in {self.file} is damaged: {batch.damage}; {removes_it}")
        return batch

    def batches_of(self, numbers: Collection[int]) -> dict[int, BatchRow]:
        """Returns batches, damaged ones included, by their numbers."""
        return {batch.number: batch for batch in self._batches(f"WHERE id {_AMONG}", (compact_json(list(numbers)),))}

    def names(self) -> dict[int, str]:
        """Returns the names of batches, by their numbers, without those that have none or an unreadable one."""
        rows = self._stored("SELECT id, name FROM batches WHERE name IS NOT NULL", ())
        found = (columns.readable(_NAMED, row) for row in rows)
        return {named["id"]: named["name"] for named in found if len(named) == len(_NAMED)}

    def counted_again(self, batch: BatchRow, grading: Regrade) -> tuple[BatchPart, ...]:
        """Returns the parts of a batch, counted by a regrade."""
        wanted = {"suite": columns.whole, "model": columns.text, "status": columns.ended, "count": columns.count}
        rows = self._rows(f"a run of batch {batch.number}", wanted, _COUNTED_AGAIN, (grading.id, batch.number))
        counts = {(suite, model, status): count for suite, model, status, count in rows}
        wanted = {"suite": columns.whole, "model": columns.text, "valid": columns.count, "checked": columns.count}
        rows = self._rows(f"a run of batch {batch.number}", wanted, _CHECKED_AGAIN, (grading.id, batch.number))
        calls = {(suite, model): numbers for suite, model, *numbers in rows}

        def counted_again(part: BatchPart) -> BatchPart:
            valid, checked = calls.get((part.suite.id, part.model), (0, 0))
            ended = {status: counts.get((part.suite.id, part.model, status), 0) for status in Status}
            return replace(part, counts=ended, valid_calls=valid, checked_calls=checked)

        return tuple(map(counted_again, batch.parts))

    def gradings(self, batch: int) -> list[Regrade]:
        """Returns the regrades of a batch, the oldest first."""
        rows = self._rows(
            f"batch {batch}",
            columns.GRADING,
            "SELECT id, graded_at, program FROM gradings WHERE batch = ? ORDER BY id",
            (batch,),
        )
        return [Regrade(id_, batch, number, at, program) for number, (id_, at, program) in enumerate(rows, 1)]

    def regraded(self) -> dict[int, int]:
        """Returns how often batches were regraded, by their numbers, without those that never were."""
        return dict(self._stored("SELECT batch, count(*) FROM gradings GROUP BY batch", ()))

    def parts_over_time(self, suite: str, model: str, up_to: int) -> Generator[DatedPart]:
        """Yields how the runs of a suite with a model ended in each batch up to one, the newest first, without forks
        and shards; `suite` is a `SuiteRef.key`. What is damaged is left out. Close what is not read to the end."""
        with self._at_one_moment(), as_history_errors(self.file):
            # Written into the statement, so that SQLite reads those of a single one in the order of the index.
            versions = ", ".join(map(str, self._versions(suite)))
            which = f"WHERE suite IN ({versions}) AND model = ? AND batch <= ? ORDER BY batch DESC"
            for kind, settings, *row in self._cursor(f"{_OVER_TIME} {which}", (model, up_to)):
                with suppress(*DAMAGE):
                    is_special = '"until"' in settings or '"shard"' in settings
                    read = columns.json_object(settings) if is_special else {}
                    if kind == "runs" and "shard" not in read:
                        yield DatedPart(row[0], self._part(row), "until" in read)

    def bytes_of(self, batches: Iterable[BatchRow]) -> int:
        """Returns about how many bytes batches take: their runs, of which a few hundred of each are looked at."""
        return sum(map(self._bytes_of, batches)) if self._connection is not None else 0

    def _bytes_of(self, batch: BatchRow) -> int:
        of_batch = (batch.number,)
        count, end = self._stored("SELECT count(*), coalesce(max(place), 0) + 1 FROM runs WHERE batch = ?", of_batch)[0]
        stretches = _STRETCHES if count > _WEIGHED else 1
        length = end if stretches == 1 else _WEIGHED * end // (_STRETCHES * count)
        firsts = [end * at // stretches for at in range(stretches)]
        weighed = [self._stored(_WEIGHT, (*of_batch, first, first + length - 1))[0] for first in firsts]
        runs, weight = (sum(each) for each in zip(*weighed, strict=True))
        ((shared,),) = self._stored("SELECT coalesce(sum(length(text)), 0) FROM shared WHERE batch = ?", of_batch)
        return int(shared + count * (_ROW_BYTES + weight / max(runs, 1)))

    def _batches(self, which: str, values: tuple[Any, ...]) -> list[BatchRow]:
        with self._at_one_moment():
            rows = self._stored(f"{_BATCH} {which}", values)
            parts: dict[Any, list[tuple[Any, ...]]] = {row[0]: [] for row in rows}
            numbers = compact_json([row[0] for row in rows])
            for part in self._stored(f"{_PART} WHERE batch {_AMONG}", (numbers,)):
                parts[part[0]].append(part)
            return [self._batch(row, parts[row[0]]) for row in rows]

    def _batch(self, row: Sequence[Any], part_rows: Sequence[Sequence[Any]]) -> BatchRow:
        try:
            number, name, kind, started, ended, program, settings, planned = columns.read(columns.BATCH, row)
            parts = [self._part(part) for part in part_rows]
            if sum(part.planned for part in parts) != planned:
                raise ValueError("planned does not match its suites and models")
        except DAMAGE as error:
            return self._damaged_batch(row, error)
        # In the settings of a batch, models are in the order of its plan, and parts in the order of their names.
        in_order = _in_order(parts, settings.get("models"))
        return BatchRow(number, name, kind, started, ended, program, settings, planned, in_order)

    def _damaged_batch(self, row: Sequence[Any], error: Exception) -> BatchRow:
        """Returns a damaged batch with what can be read of its row."""
        known = columns.readable(columns.BATCH, row)
        if "id" not in known:
            raise self._damaged("the number of a batch", error) from error
        name, kind, program = known.get("name"), known.get("kind", "runs"), known.get("program", "")
        started, ended = known.get("started_at", ""), known.get("ended_at")
        return BatchRow(known["id"], name, kind, started, ended, program, {}, 0, (), str(error))

    def _part(self, row: Sequence[Any]) -> BatchPart:
        _, suite, model, planned, cases, *counts = columns.read(columns.PART, row)
        *counts, valid, checked = counts
        ended = dict(zip(Status, counts, strict=True))
        return BatchPart(self._suite(suite), model, planned, cases, ended, valid, checked)


def _in_order(parts: list[BatchPart], models: JsonValue) -> tuple[BatchPart, ...]:
    places = {name: place for place, name in enumerate(models)} if isinstance(models, dict) else {}
    return tuple(sorted(parts, key=lambda part: places.get(part.model, len(places))))
