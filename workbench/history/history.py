"""Reads batches, runs and suites from a history."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from workbench.config.folders import history_option
from workbench.dataclasses import compact_json
from workbench.encoding import toml_of
from workbench.grading.result_json import Outcome, outcome_from_json
from workbench.grading.run_facts import RunFacts
from workbench.grading.status import FINAL, Status
from workbench.history import columns
from workbench.history.database import ReportProblem, as_history_errors
from workbench.history.packing import (
    RUNS_IN_BLOCK,
    case_texts_of,
    decompress_bytes,
    decompress_text,
    events_in,
    facts_in_block,
    outcome_in,
    unpacked_block,
    unpacked_blocks,
)
from workbench.history.records import (
    BatchPart,
    BatchRow,
    CaseName,
    CaseOutline,
    CaseTexts,
    DamagedError,
    DatedPart,
    HistoryError,
    ModelUse,
    NoSuchBatchError,
    Regrade,
    RunRow,
    SuiteRef,
    Tally,
)
from workbench.history.rows import COUNTED_OUTCOMES, DAMAGE, TEXTS, RowReader, values_in
from workbench.history.run_table import RunTable
from workbench.suite.excerpts import Blocks
from workbench.suite.grading_model import Gate
from workbench.trajectory.events import JsonValue
from workbench.trajectory.fold import fold
from workbench.trajectory.recording import Header, RecordedSuite, Recording
from workbench.trajectory.trajectory import Trajectory

_BATCH = "SELECT id, name, kind, started_at, ended_at, program, settings, planned FROM batches"
_BATCH_COUNTS = ", ".join(status.column for status in Status)
_SUMS = "valid_calls, checked_calls, user_errors, gave_up"
_OF_PART = f"batch, suite, model, parts.planned, cases, {_BATCH_COUNTS}, {_SUMS}"
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
_OUTCOMES_AGAIN = """
SELECT suite, model, iif(regrades.run, regrades.user_outcome, runs.user_outcome) AS of_user, count(*)
FROM runs LEFT JOIN regrades ON regrades.run = runs.id AND grading = ?
WHERE batch = ? AND of_user IS NOT NULL GROUP BY suite, model, of_user"""

_AMONG = "IN (SELECT value FROM json_each(?))"
_HAS_ONE = f"id IN (SELECT batch FROM parts WHERE suite {_AMONG})"
_ASIDE = "(kind IS 'fork' OR kind IS 'reruns')"
_LACKS = f"""
planned > (SELECT coalesce(sum({" + ".join(status.column for status in FINAL)}), 0)
    FROM parts WHERE parts.batch = batches.id)"""

_WEIGHT = """
SELECT count(*), coalesce(sum(coalesce(length(events) + length(outcome), 0)
    + coalesce((SELECT sum(length(regrades.outcome)) FROM regrades WHERE regrades.run = runs.id), 0)), 0)
FROM runs LEFT JOIN details ON details.run = runs.id WHERE runs.batch = ? AND place BETWEEN ? AND ?"""
# Reading the sizes of all runs would read the whole batch from the disk. So only a sample is read: runs in a few
# ranges, spread evenly over the plan.
_WEIGHED, _STRETCHES = 1_000, 20
"""The sample of a batch: the number of runs, and the number of ranges that contain them."""
_ROW_BYTES = 160
"""The size in bytes of a row in `runs`, including its index entries."""

_NUMBERS = 1 << 62
"""A number larger than every batch number."""

MAX_BATCHES_PER_STEP = 100
"""The number of batches that one step reads."""

_NAMED = {"id": columns.integer, "name": columns.text}


class StoredBatches(RowReader):
    """The methods of `History` that read batches, their results by suite and model, their regrades and their sizes."""

    def batches(self) -> list[BatchRow]:
        """Return all undamaged batches from the newest to the oldest."""
        return [batch for batch in self.each_batch() if batch.damage is None]

    def all_batches(self) -> list[BatchRow]:
        """Return all batches from the newest to the oldest, including damaged ones."""
        return list(self.each_batch())

    def each_batch(
        self,
        *,
        forks: bool | None = None,
        suites: Collection[int] | None = None,
        lacking: bool = False,
        unended: bool = False,
    ) -> Iterator[BatchRow]:
        """Yield batches from the newest to the oldest, including damaged ones, reading a page at a time.

        `forks=True` selects batches of forks and reruns, and `forks=False` selects all other batches. `suites` (row
        ids) selects batches with one of these suites. `lacking` selects batches with missing runs, and `unended`
        selects batches that have not ended."""
        wanted = ["id < ?"]
        if forks is True:
            wanted.append(_ASIDE)
        elif forks is False:
            wanted.append(f"NOT {_ASIDE}")
        if lacking:
            wanted.append(_LACKS)
        if unended:
            wanted.append("ended_at IS NULL")
        values: tuple[int | str, ...] = ()
        if suites is not None:
            wanted.append(_HAS_ONE)
            values = (compact_json(list(suites)),)
        # Each page begins after the last batch of the previous page. With OFFSET, a batch would be skipped if another
        # batch is removed between two pages.
        before = _NUMBERS
        page = None
        while page is None or len(page) == MAX_BATCHES_PER_STEP:
            which = f"WHERE {' AND '.join(wanted)} ORDER BY id DESC LIMIT {MAX_BATCHES_PER_STEP}"
            page = self._batches(which, (before, *values))
            yield from page
            before = page[-1].number if page else 0

    def count_batches(self, suites: Collection[int] | None = None) -> tuple[int, int]:
        """Return the number of all batches, and how many of them are forks or reruns.

        `suites` selects batches as in `each_batch`."""
        statement = f"SELECT count(*), coalesce(sum({_ASIDE}), 0) FROM batches"
        values: tuple[str, ...] = ()
        if suites is not None:
            statement, values = f"{statement} WHERE {_HAS_ONE}", (compact_json(list(suites)),)
        rows = self._stored(statement, values)
        if rows:
            return rows[0][0], rows[0][1]
        return 0, 0

    def batch(self, which: str, *, damaged: bool = False) -> BatchRow:
        """Return a batch by its name or its number (`#7` or `7`).

        Raises HistoryError if there is no such batch. Raises DamagedError for a damaged batch unless `damaged` is set.
        """
        number = which.removeprefix("#")
        found = self._batches("WHERE name = ?", (which,))
        # SQLite's integers have 64 bits. Every number of at most 18 digits fits.
        if not found and number.isdecimal() and len(number) < 19:
            found = self._batches("WHERE id = ?", (int(number),))
        if not found:
            names_all = f"'workbench history list{history_option(self.file)}' lists all"
            raise NoSuchBatchError(f"there is no batch {which!r} in {self.file}: {names_all}")
        batch = found[0]
        if batch.damage is not None and not damaged:
            removes_it = f"'workbench history prune --batch {batch.number}{history_option(self.file)}' removes it"
            raise DamagedError(f"batch {batch.number} in {self.file} is damaged: {batch.damage}; {removes_it}")
        return batch

    def batches_of(self, numbers: Collection[int]) -> dict[int, BatchRow]:
        """Return batches by number, including damaged ones."""
        batches = self._batches(f"WHERE id {_AMONG}", (compact_json(list(numbers)),))
        return {batch.number: batch for batch in batches}

    def names(self) -> dict[int, str]:
        """Return the names of batches, keyed by number. Unreadable names are left out."""
        names = {}
        for row in self._stored("SELECT id, name FROM batches WHERE name IS NOT NULL", ()):
            named = columns.readable(_NAMED, row)
            if len(named) == len(_NAMED):
                names[named["id"]] = named["name"]
        return names

    def counted_again(self, batch: BatchRow, grading: Regrade) -> tuple[BatchPart, ...]:
        """Return the results of a batch by suite and model, counted from the grades of a regrade."""
        wanted = {
            "suite": columns.integer,
            "model": columns.text,
            "status": columns.finished_status,
            "count": columns.count,
        }
        rows = self._rows(f"a run of batch {batch.number}", wanted, _COUNTED_AGAIN, (grading.id, batch.number))
        counts = {tuple(part_and_status): count for *part_and_status, count in rows}
        wanted = {"suite": columns.integer, "model": columns.text, "valid": columns.count, "checked": columns.count}
        rows = self._rows(f"a run of batch {batch.number}", wanted, _CHECKED_AGAIN, (grading.id, batch.number))
        calls = {(suite, model): numbers for suite, model, *numbers in rows}

        wanted = {"suite": columns.integer, "model": columns.text, "outcome": columns.text, "count": columns.count}
        rows = self._rows(f"a run of batch {batch.number}", wanted, _OUTCOMES_AGAIN, (grading.id, batch.number))
        outcomes = {tuple(part_and_outcome): count for *part_and_outcome, count in rows}

        def counted_again(part: BatchPart) -> BatchPart:
            key = part.suite.id, part.model
            valid, checked = calls.get(key, (0, 0))
            ended = {status: counts.get((*key, status), 0) for status in Status}
            of_users = {}
            for outcome, column in COUNTED_OUTCOMES.items():
                of_users[column] = outcomes.get((*key, outcome), 0)
            return replace(part, counts=ended, valid_calls=valid, checked_calls=checked, **of_users)

        return tuple(map(counted_again, batch.parts))

    def gradings(self, batch: int) -> list[Regrade]:
        """Return the regrades of a batch from the oldest to the newest."""
        rows = self._rows(
            f"batch {batch}",
            columns.GRADING,
            "SELECT id, graded_at, program FROM gradings WHERE batch = ? ORDER BY id",
            (batch,),
        )
        regrades = []
        for number, (id_, at, program) in enumerate(rows, 1):
            regrades.append(Regrade(id_, batch, number, at, program))
        return regrades

    def regraded(self) -> dict[int, int]:
        """Return the number of regrades of each regraded batch, keyed by batch number."""
        return dict(self._stored("SELECT batch, count(*) FROM gradings GROUP BY batch", ()))

    def parts_over_time(self, suite: str, model: str, up_to: int) -> Generator[DatedPart]:
        """Yield the results of a suite with a model in each batch, from batch number `up_to` back to the first.

        Forks, reruns, shards and damaged batches are left out. `suite` is a `SuiteRef.key`. Close the generator if you
        do not read it to its end."""
        with self._at_one_moment(), as_history_errors(self.file):
            # The ids are written into the statement and are not parameters. If there is only one id, SQLite then uses
            # the order of the index and need not sort.
            versions = ", ".join(map(str, self._versions(suite)))
            which = f"WHERE suite IN ({versions}) AND model = ? AND batch <= ? ORDER BY batch DESC"
            for kind, settings, *row in self._cursor(f"{_OVER_TIME} {which}", (model, up_to)):
                with suppress(*DAMAGE):
                    read: Mapping[str, Any] = {}
                    # Most settings contain neither key, so their JSON need not be parsed.
                    if '"until"' in settings or '"shard"' in settings:
                        read = columns.json_object(settings)
                    if kind == "runs" and "shard" not in read:
                        yield DatedPart(row[0], self._part(row), "until" in read)

    def bytes_of(self, batches: Iterable[BatchRow]) -> int:
        """Estimate the stored bytes of batches from a sample of each batch's runs."""
        if self._connection is not None:
            return sum(map(self._bytes_of, batches))
        return 0

    def _bytes_of(self, batch: BatchRow) -> int:
        of_batch = (batch.number,)
        count, end = self._stored("SELECT count(*), coalesce(max(place), 0) + 1 FROM runs WHERE batch = ?", of_batch)[0]
        stretches, length = 1, end
        if count > _WEIGHED:
            stretches, length = _STRETCHES, _WEIGHED * end // (_STRETCHES * count)
        runs, weight = 0, 0
        for stretch in range(stretches):
            first = end * stretch // stretches
            of_stretch = self._stored(_WEIGHT, (*of_batch, first, first + length - 1))[0]
            runs, weight = runs + of_stretch[0], weight + of_stretch[1]
        ((shared,),) = self._stored("SELECT coalesce(sum(length(text)), 0) FROM shared WHERE batch = ?", of_batch)
        return int(shared + count * (_ROW_BYTES + weight / max(runs, 1)))

    def _batches(self, which: str, values: tuple[Any, ...]) -> list[BatchRow]:
        with self._at_one_moment():
            rows = self._stored(f"{_BATCH} {which}", values)
            # One statement reads the parts of all batches. One statement per batch would be slow in a long history.
            numbers = compact_json([row[0] for row in rows])
            parts: defaultdict[Any, list[tuple[Any, ...]]] = defaultdict(list)
            for part in self._stored(f"{_PART} WHERE batch {_AMONG}", (numbers,)):
                parts[part[0]].append(part)
            return [self._batch(row, parts[row[0]]) for row in rows]

    def _batch(self, row: Sequence[Any], part_rows: Sequence[Sequence[Any]]) -> BatchRow:
        try:
            number, name, kind, started, ended, program, settings, planned = columns.read(columns.BATCH, row)
            parts = list(map(self._part, part_rows))
            if sum(part.planned for part in parts) != planned:
                raise ValueError("the number of planned runs is not the sum over its suites and models")
        except DAMAGE as error:
            return self._damaged_batch(row, error)
        # SQLite returns parts in the order of suite and model name. The settings have the models in the order of the
        # plan.
        in_order = _in_order(parts, settings.get("models"))
        return BatchRow(number, name, kind, started, ended, program, settings, planned, in_order)

    def _damaged_batch(self, row: Sequence[Any], error: Exception) -> BatchRow:
        known = columns.readable(columns.BATCH, row)
        if "id" not in known:
            raise self._damaged("the number of a batch", error) from error
        name, kind, program = known.get("name"), known.get("kind", "runs"), known.get("program", "")
        started, ended = known.get("started_at", ""), known.get("ended_at")
        return BatchRow(known["id"], name, kind, started, ended, program, {}, 0, (), str(error))

    def _part(self, row: Sequence[Any]) -> BatchPart:
        _, suite, model, planned, cases, *counts = columns.read(columns.PART, row)
        *counts, valid, checked, user_errors, gave_up = counts
        ended = dict(zip(Status, counts, strict=True))
        return BatchPart(self._suite(suite), model, planned, cases, ended, valid, checked, user_errors, gave_up)


def _in_order(parts: list[BatchPart], models: JsonValue) -> tuple[BatchPart, ...]:
    if not isinstance(models, dict):
        return tuple(parts)
    places = {name: place for place, name in enumerate(models)}
    return tuple(sorted(parts, key=lambda part: places.get(part.model, len(places))))


_RUN = """
SELECT id, batch, place, suite, case_id, case_name, model, model_of_suite, repeat, decided_by, is_fork,
    runs.status, runs.score, runs.reason, runs.broken, runs.options, began_ms, ended_ms, latency_ms, first_token_ms,
    input_tokens, output_tokens, cost_usd, asked, loop_ms, runs.metrics, runs.arguments, repaired, agent,
    player, runs.user_outcome
FROM runs"""
_REGRADED = (
    _RUN.replace(
        "runs.status, runs.score, runs.reason, runs.broken, runs.options",
        """
    coalesce(regrades.status, runs.status), iif(regrades.run, regrades.score, runs.score),
    iif(regrades.run, regrades.reason, runs.reason), coalesce(regrades.broken, runs.broken),
    iif(regrades.run, regrades.options, runs.options)""",
    )
    .replace(
        "runs.metrics, runs.arguments",
        """iif(regrades.run, regrades.metrics, runs.metrics), iif(regrades.run, regrades.arguments, runs.arguments)""",
    )
    .replace("runs.user_outcome", "iif(regrades.run, regrades.user_outcome, runs.user_outcome)")
)

# Runs of removed batches may still exist, because they are deleted in small steps.
_OF_A_BATCH = "EXISTS (SELECT 1 FROM batches WHERE batches.id = runs.batch)"
"""SQL that is true for runs whose batch was not removed."""

_COUNTED = ", ".join(f"'{status.value}'" for status in FINAL if status is not Status.SKIPPED)
_COUNTS = (
    f"status IN ({_COUNTED}) AND NOT is_fork "
    "AND EXISTS (SELECT 1 FROM batches WHERE batches.id = runs.batch AND kind IS NOT 'reruns')"
)

_FACTS_OF = (
    "SELECT run, run_id, facts, nth, block, details.sample FROM details JOIN runs ON runs.id = details.run"
    " WHERE run IN (SELECT value FROM json_each(?))"
)

_MAX_BLOCKS_OF_FACTS = 64
"""The number of blocks of facts in memory. Neighbours in the plan are mostly neighbours in a block too."""

# A case may have thousands of runs. The index of cases orders them by id, so one step finds the last run. No run of the
# same batch has a smaller id than the batch's first run. CROSS JOIN and INDEXED BY keep SQLite from choosing another
# order, in which it would read every run of the case.
_LAST = f"""
WITH asked AS (SELECT key AS suite, value FROM json_each(?)),
last AS MATERIALIZED (
    SELECT max((SELECT id FROM runs INDEXED BY runs_of_cases
        WHERE case_id = cases.value AND suite = versions.value AND {_COUNTS} ORDER BY id DESC LIMIT 1)) AS run
    FROM asked, json_each(asked.value, '$[0]') AS versions, json_each(asked.value, '$[1]') AS cases
    GROUP BY asked.suite, cases.value),
batch AS MATERIALIZED (
    SELECT case_id, suite, batch,
        (SELECT id FROM runs AS first WHERE first.batch = one.batch ORDER BY place LIMIT 1) AS first
    FROM last CROSS JOIN runs AS one ON one.id = last.run),
wanted AS MATERIALIZED (
    SELECT runs.id FROM batch CROSS JOIN runs INDEXED BY runs_of_cases ON runs.case_id = batch.case_id
        AND runs.suite = batch.suite AND runs.id >= first AND runs.batch = batch.batch AND {_COUNTS})
{_REGRADED} LEFT JOIN regrades ON regrades.run = runs.id
    AND grading = (SELECT max(gradings.id) FROM gradings WHERE gradings.batch = runs.batch)
WHERE runs.id IN (SELECT wanted.id FROM wanted) ORDER BY runs.id"""
"""SQL that selects the runs of each case in the last batch that has finished runs of the case."""


def _gate_in(text: str) -> Gate:
    try:
        if "gate" in text:
            return Gate.model_validate(toml_of(text).get("gate", {}))
        return Gate()
    except ValueError:
        return Gate()


def _of_batch(batch: int, grading: Regrade | None, rest: str, *values: int) -> tuple[str, tuple[int, ...]]:
    if grading is None:
        return f"{_RUN} WHERE batch = ? {rest}", (batch, *values)
    joined = f"{_REGRADED} LEFT JOIN regrades ON regrades.run = runs.id AND grading = ?"
    return f"{joined} WHERE batch = ? {rest}", (grading.id, batch, *values)


PAGE = 1_000
"""The number of runs that one step reads."""


class History(StoredBatches):
    """A history, opened for reading. It is empty if its file does not exist yet.

    Use it on one thread. Every method raises HistoryError, and DamagedError for damaged content."""

    def suites_called(self, name: str) -> list[int]:
        """Return the row ids of all stored versions of a suite.

        `name` is the suite's name, its path in the project, or its file."""
        with self._at_one_moment():
            found = self._stored("SELECT id FROM suites WHERE name = ? OR path = ?", (name, name))
            ids = {id_ for (id_,) in found}
            ids.update(self._versions(str(Path(name).resolve())))
            return list(ids)

    def suite_paths(self) -> list[str]:
        """Return the paths of all suites, relative to their projects."""
        rows = self._rows("a suite", {"path": columns.path}, values_in("suites", "path"), ())
        return [path for (path,) in rows]

    def runs(self, batch: int, grading: Regrade | None = None) -> RunTable:
        """Return all runs of a batch in the order of the plan.

        With `grading`, the runs have the grades of that regrade. Use `each_run` to read the runs page by page."""
        return RunTable(self._each_run(*_of_batch(batch, grading, "ORDER BY place")))

    def each_run(self, batch: int, grading: Regrade | None = None) -> Iterator[RunRow]:
        """Yield the runs of a batch in the order of its plan, reading a page at a time.

        Other programs may write between two pages, so later pages of a running batch may show a later state. Raises
        HistoryError if the batch is removed in the meantime."""
        rows = self.runs_from(batch, 0, PAGE, grading)
        yield from rows
        while len(rows) == PAGE:
            rows = self.runs_from(batch, rows[-1].place + 1, PAGE, grading)
            yield from rows
            # A short page is the end of the plan, unless another program is removing the batch.
            if len(rows) < PAGE and not self._stored("SELECT 1 FROM batches WHERE id = ?", (batch,)):
                raise HistoryError(f"batch {batch} was removed from {self.file} while it was being read")

    def readable_runs(self, batch: int, damaged: ReportProblem) -> Iterator[RunRow]:
        """Yield the readable runs of a finished or interrupted batch, in the order of its plan.

        Damaged runs are left out and reported to `damaged`."""
        return self._each_run(*_of_batch(batch, None, "ORDER BY place"), damaged)

    def runs_from(self, batch: int, place: int, limit: int, grading: Regrade | None = None) -> list[RunRow]:
        """Return up to `limit` runs of a batch in the order of its plan, from the run at position `place` on."""
        return self._runs(*_of_batch(batch, grading, "AND place >= ? ORDER BY place LIMIT ?", place, limit))

    def cases_of(self, batch: int, grading: Regrade | None = None) -> Generator[CaseOutline]:
        """Yield the cases of a batch in the order of its plan, without forks.

        This method is far faster than reading the runs. Close the generator if you do not read it to its end."""
        joined, status = "", "runs.status"
        values: tuple[int, ...] = (batch,)
        if grading is not None:
            joined = "LEFT JOIN regrades ON regrades.run = runs.id AND grading = ?"
            status, values = "coalesce(regrades.status, runs.status)", (grading.id, batch)
        statement = (
            f"SELECT place, suite, case_id, case_name, model, {status} FROM runs {joined} "
            "WHERE batch = ? AND NOT is_fork ORDER BY place"
        )
        with self._at_one_moment(), as_history_errors(self.file):
            rows = self._cursor(statement, values)
            for (suite, _), of_case in groupby(rows, itemgetter(1, 2)):
                with self._damage_of(f"a run of batch {batch}"):
                    read, ended = [], []
                    for row in of_case:
                        run = columns.read(columns.OUTLINE, row)
                        read.append(run)
                        ended.append((run[-2], run[-1]))
                    outline = CaseOutline(self._suite(suite), read[0][2], read[0][3], read[0][0], read[-1][0], ended)
                yield outline

    def runs_between(self, batch: int, first: int, last: int, grading: Regrade | None = None) -> list[RunRow]:
        """Return the runs of a batch from position `first` to position `last` in its plan, both included."""
        return self._runs(*_of_batch(batch, grading, "AND place BETWEEN ? AND ? ORDER BY place", first, last))

    def run_at(self, batch: int, place: int, grading: Regrade | None = None) -> RunRow | None:
        """Return the run at a position in a batch's plan; `None` if there is no such run."""
        return next(iter(self._runs(*_of_batch(batch, grading, "AND place = ?", place))), None)

    def missing_runs(self, batch: int) -> list[RunRow]:
        """Return the missing runs of a batch in the order of its plan, without forks."""
        missing = f"{_RUN} WHERE batch = ? AND (status IS NULL OR status = 'stopped') AND NOT is_fork ORDER BY place"
        return self._runs(missing, (batch,))

    def planned_in(self, batch: int) -> int:
        """Return how many planned runs of a batch are stored, with or without results.

        The number is below the batch's `planned` if a program was killed while it wrote the plan."""
        rows = self._stored("SELECT count(*) FROM runs WHERE batch = ?", (batch,))
        if rows:
            return int(rows[0][0])
        return 0

    def models_of(self, batch: int) -> list[ModelUse]:
        """Return the models that each suite of a batch uses, ordered by first use in the plan."""
        statement = (
            "SELECT suite, model, model_of_suite FROM runs WHERE batch = ? "
            "GROUP BY suite, model, model_of_suite ORDER BY min(place)"
        )
        wanted = {name: columns.RUN[name] for name in ("suite", "model", "model_of_suite")}
        with self._at_one_moment(), self._damage_of(f"batch {batch}"):
            found = self._rows(f"the models of batch {batch}", wanted, statement, (batch,))
            uses = []
            for suite, model, of_suite in found:
                uses.append(ModelUse(self._suite(suite), model, bool(of_suite)))
            return uses

    def agents_of(self, batch: int) -> dict[str, tuple[str, ...]]:
        """Return the names and versions of the agents in a batch, keyed by model, in the order of first use."""
        statement = (
            "SELECT model, agent FROM runs WHERE batch = ? AND agent IS NOT NULL "
            "GROUP BY model, agent ORDER BY min(place)"
        )
        wanted = {"model": columns.text, "agent": columns.text}
        found: dict[str, tuple[str, ...]] = {}
        for model, agent in self._rows(f"the agents of batch {batch}", wanted, statement, (batch,)):
            found[model] = (*found.get(model, ()), agent)
        return found

    def tallies(self, batch: int) -> list[Tally]:
        """Return the number and the total cost of a batch's finished runs for each model and status.

        Runs of unknown cost have a tally of their own."""
        statement = (
            "SELECT model, status, sum(cost_usd), count(*) FROM runs WHERE batch = ? AND status IS NOT NULL "
            "AND status != 'stopped' GROUP BY model, status, cost_usd IS NULL"
        )
        names = {"model": columns.text, "status": columns.finished_status, "cost_usd": columns.RUN["cost_usd"]}
        rows = self._rows(f"the runs of batch {batch}", {**names, "runs": columns.count}, statement, (batch,))
        return [Tally(*row) for row in rows]

    def run_ids(self, batch: int) -> frozenset[str]:
        """Return the ids that the runs of a batch have in their events.

        A run that is added to the batch needs a different id."""
        found = {"run_id": columns.text}
        rows = self._rows(f"batch {batch}", found, "SELECT run_id FROM runs WHERE batch = ?", (batch,))
        return frozenset(run_id for (run_id,) in rows)

    def suites_with(self, case_id: str, batch: int | None = None) -> list[SuiteRef]:
        """Return the stored suites with runs of a case with this id, the newest first.

        With `batch`, only runs of that batch count, and the oldest suite comes first."""
        statement = "SELECT DISTINCT suite FROM runs WHERE case_id = ?"
        values: tuple[str | int, ...] = (case_id,)
        if batch is not None:
            statement, values = f"{statement} AND batch = ? ORDER BY suite", (case_id, batch)
        else:
            statement += " ORDER BY suite DESC"
        found = []
        with self._at_one_moment():
            for (id_,) in self._stored(statement, values):
                with suppress(*DAMAGE):
                    found.append(self._suite(id_))
        return found

    def case_names(self, batch: int | None = None) -> list[CaseName]:
        """Return the ids of all cases, or of the cases of a batch, each with every name that the case had.

        Unreadable cases are left out."""
        if batch is not None:
            rows = self._stored("SELECT DISTINCT case_id, case_name FROM runs WHERE batch = ?", (batch,))
        else:
            rows = self._stored("SELECT DISTINCT case_id, case_name FROM runs", ())
        names = []
        for id_, name in rows:
            with suppress(ValueError):
                names.append(CaseName(columns.text(id_), columns.text(name)))
        return names

    def runs_of_case(self, suite: str, case_id: str, limit: int, damaged: ReportProblem) -> Sequence[RunRow]:
        """Return the latest runs of a case from the newest to the oldest; `suite` is a `SuiteRef.key`.

        Damaged runs are left out and reported to `damaged`."""
        with self._at_one_moment():
            ids = ", ".join(map(str, self._versions(suite)))
            statement = f"{_RUN} WHERE case_id = ? AND suite IN ({ids}) AND {_OF_A_BATCH} ORDER BY id DESC LIMIT ?"
            return self._runs(statement, (case_id, limit), damaged)

    def last_runs(self, cases: Mapping[str, Collection[str]], damaged: ReportProblem) -> Sequence[RunRow]:
        """Return the finished runs of each case in the latest batch that has any, from the oldest to the newest.

        The runs have their latest grades, which may come from a regrade. `cases` maps a `SuiteRef.key` to case ids.
        Forks, reruns and skipped runs are left out. Damaged runs are left out and reported to `damaged`."""
        with self._at_one_moment():
            asked = []
            for suite, ids in cases.items():
                if versions := self._versions(suite):
                    asked.append([versions, list(ids)])
            return self._runs(_LAST, (compact_json(asked),), damaged)

    def mean_latencies(self) -> dict[tuple[str, str, str], float]:
        """Return the mean latency in milliseconds of each case's finished runs with each model.

        A key is the suite's path in its project, the case and the model. Forks, reruns, shards, skipped runs and
        damaged batches do not count."""
        is_shard = "iif(json_valid(settings), json_extract(settings, '$.shard') IS NOT NULL, 1)"
        no_shards = f"batch NOT IN (SELECT batch FROM plans JOIN batches ON batches.id = batch WHERE {is_shard})"
        return self._means("latency_ms", f"{_COUNTS} AND {no_shards}")

    def mean_costs(self) -> dict[tuple[str, str, str], float]:
        """Return the mean cost in US dollars of each case's graded runs with each model.

        A key is the suite's path in its project, the case and the model. Forks, reruns and runs of unknown cost do not
        count."""
        return self._means("cost_usd", f"status IN ('passed', 'warned', 'failed') AND {_COUNTS}")

    def _means(self, column: str, condition: str) -> dict[tuple[str, str, str], float]:
        statement = f"""
            SELECT path, case_id, model, avg({column}) FROM runs JOIN suites ON suites.id = suite
            WHERE {condition} AND {column} >= 0
            GROUP BY path, case_id, model"""
        wanted = {"path": columns.text, "case_id": columns.text, "model": columns.text, "mean": columns.number}
        rows = self._rows(f"the {column} of runs", wanted, statement, ())
        return {(path, case_id, model): mean for path, case_id, model, mean in rows}

    def case_blocks(self, suite: SuiteRef) -> Blocks:
        """Return the positions of the cases in a suite's stored text; empty if the positions are unknown."""
        rows = self._stored("SELECT blocks FROM suites WHERE id = ?", (suite.id,))
        with self._damage_of(f"the suite {suite.path}"):
            return unpacked_blocks(rows[0][0]) if rows[0][0] else ()

    def case_texts(self, suite: SuiteRef) -> Mapping[str, str]:
        """Return the stored, redacted text of each case of a suite, keyed by case id.

        The result is empty if the positions of the cases in the suite's text are unknown."""
        whole = self.suite_text(suite)
        return {case: whole[first:end] for case, first, end in self.case_blocks(suite)}

    def regraded_texts(self, grading: Regrade) -> CaseTexts:
        """Return the texts of the cases that had changed when a regrade was made."""
        if grading.id not in self._regraded_texts:
            found = self._stored("SELECT hashes FROM gradings WHERE id = ?", (grading.id,))
            self._regraded_texts = {grading.id: case_texts_of(found[0][0]) if found else {}}
        return self._regraded_texts[grading.id]

    def recording(self, run: RunRow, grading: Regrade | None = None) -> Recording:
        """Return a run with its events in the form of a recording file.

        With `grading`, the recording has the result of that regrade, and the case text that was used for it. Raises
        HistoryError for a run that never finished."""
        return self.recording_and_outcome(run, grading)[0]

    def recording_and_outcome(self, run: RunRow, grading: Regrade | None = None) -> tuple[Recording, Outcome]:
        """Return what `recording` returns, together with the run's outcome."""
        which = f"run {run.place + 1} of batch {run.batch}"
        with self._at_one_moment():
            with self._reading(which):
                rows = self._stored(
                    f"SELECT run_id, program, suite, details.tools, {TEXTS} FROM runs "
                    "JOIN batches ON batches.id = runs.batch JOIN details ON details.run = runs.id WHERE runs.id = ?",
                    (run.id,),
                )
                again = grading and self._stored(
                    "SELECT outcome FROM regrades WHERE grading = ? AND run = ?", (grading.id, run.id)
                )
            if not rows and run.figures is None:
                raise HistoryError("the run never finished: none of it was stored")
            if not rows:
                raise self._damaged(which, "its events are missing")
            run_id, program, suite_id, tools_id, *texts_row = rows[0]
            with self._damage_of(which):
                texts: CaseTexts = self.regraded_texts(grading) if grading and again else {}
                suite = self._cut_text(suite_id).of(run.case_id, texts.get(run.suite.key, {}).get(run.case_id))
                tools = self._shared_text(tools_id)
                events_text, outcome_text = self._texts_of(texts_row)
        with self._damage_of(which):
            run_id, program = columns.text(run_id), columns.text(program)
            offered = None
            if tools is not None:
                offered = tools.decode()
            events = tuple(events_in(events_text, offered))
            trajectory = Trajectory(run_id)
            if events:
                trajectory = fold(events)
            if again:
                outcome_text = decompress_text(again[0][0])
            result = outcome_in(outcome_text)
            outcome = outcome_from_json(result)
            began_ms = 0.0
            if run.figures is not None:
                began_ms = run.figures.began_ms or 0
            started_at = datetime.fromtimestamp(began_ms / 1000, UTC).isoformat(timespec="milliseconds")
        header = Header(
            program=program,
            run=run_id,
            started_at=started_at,
            suite=RecordedSuite(Path(run.suite.path).name, run.suite.hash, suite),
            case=run.case_id,
            model=run.model,
            repeat=run.repeat,
            by=run.by,
        )
        return Recording(run.suite.file, header, events, trajectory, result), outcome

    def facts(self, runs: Sequence[RunRow], *, checks_runs: bool = False) -> Iterator[tuple[str, RunFacts | None]]:
        """Yield for each run its id in the events, and the facts that were stored when the run was first graded.

        The facts are `None` if they must be computed from the run. With `checks_runs`, a run that cannot be
        decompressed has an empty id and no facts."""
        sound: dict[int | None, bool] = {None: False}
        blocks: dict[int, list[RunFacts | None]] = {}
        for first in range(0, len(runs), RUNS_IN_BLOCK):
            ids = [run.id for run in runs[first : first + RUNS_IN_BLOCK]]
            with self._at_one_moment():
                found = {}
                for run, run_id, block, nth, texts, sample in self._stored(_FACTS_OF, (compact_json(ids),)):
                    if checks_runs and texts not in sound:
                        sound[texts] = self._can_unpack(texts, sample)
                    if checks_runs and not sound[texts]:
                        continue
                    found[run] = (run_id, block, nth)
                    if block is not None and block not in blocks:
                        blocks[block] = self._facts_in(block)
            for run in ids:
                run_id, block, nth = found.get(run, (None, None, None))
                facts = None
                # A damaged run may have values of any type. Without facts, the caller reads the run itself, which
                # reports the damage.
                if type(run_id) is str and block is not None and type(nth) is int and 0 <= nth < len(blocks[block]):
                    facts = blocks[block][nth]
                yield run_id or "", facts
            while len(blocks) > _MAX_BLOCKS_OF_FACTS:
                del blocks[next(iter(blocks))]

    def _can_unpack(self, block: int, sample: int | None) -> bool:
        try:
            unpacked_block(self._packed_text(block), self._shared_text(sample) or b"")
        except DAMAGE:
            return False
        return True

    def _facts_in(self, block: int) -> list[RunFacts | None]:
        # The facts repeat a part of the run. If they are damaged, the caller reads the run itself.
        try:
            return facts_in_block(decompress_bytes(self._packed_text(block)))
        except DAMAGE:
            return []

    def recordings(
        self, runs: Iterable[RunRow], grading: Regrade | None, damaged: ReportProblem
    ) -> Iterator[tuple[RunRow, Recording]]:
        """Yield finished runs with their recordings.

        Damaged runs are left out and reported to `damaged`."""
        for run in runs:
            try:
                recording = self.recording(run, grading)
            except DamagedError as error:
                damaged(str(error))
            else:
                yield run, recording

    def suite_text(self, suite: SuiteRef) -> str:
        """Return the redacted text of this version of a suite."""
        rows = self._stored("SELECT text FROM suites WHERE id = ?", (suite.id,))
        if not rows:
            raise HistoryError(f"the suite {suite.path} is no longer in {self.file}")
        with self._damage_of(f"the suite {suite.path}"):
            return decompress_text(rows[0][0])

    def gates(self, batch: BatchRow, damaged: ReportProblem) -> dict[str, Gate]:
        """Return the gate of each suite in a batch, as it was when the batch ran, keyed by `SuiteRef.key`.

        Suites with unreadable text are left out and reported to `damaged`."""
        found: dict[str, Gate] = {}
        for suite in batch.suites:
            try:
                with self._damage_of(f"the suite {suite.path}"):
                    found[suite.key] = _gate_in(self._cut_text(suite.id).without_cases)
            except DamagedError as error:
                damaged(str(error))
        return found
