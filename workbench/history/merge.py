"""Merges shards into one batch. A shard is a batch with some of the runs of a plan, usually in another history.

Each shard is merged completely or not at all. The order of the shards does not matter, and merging a shard again
changes nothing. If a run has two results, the result merged first stays."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from workbench.config.folders import folder_of_stored, stored_folder
from workbench.dataclasses import compact_json, dataclass, parsed_json
from workbench.grading.status import Status
from workbench.history import columns
from workbench.history.claims import claim, claim_if_free, is_claimed
from workbench.history.database import ReportProblem, as_history_errors, open_for_reading, open_for_writing, transaction
from workbench.history.packing import decompress_text
from workbench.history.records import NAMED_AFTER, HistoryError, MergedShards, Outline, ShardRef, settings_of_answers
from workbench.history.rows import DAMAGE, count_calls, count_user_outcome, insert_suite, write_plan
from workbench.numerals import count_text, counted, score_text
from workbench.trajectory.events import JsonValue

PLANNED = "FROM batches JOIN plans ON batch = id WHERE uid IS NOT NULL"
"""SQL of the batches that are shards or merged batches. Only these store a plan."""

_SHARDS = f"SELECT id, uid, settings, ended_at {PLANNED} AND (? IS NULL OR id = ?) ORDER BY id"


@dataclass(frozen=True)
class StoredShard:
    """A stored batch with some runs of a plan: one shard, or several merged shards.

    `ref` identifies the shard; it is `None` for a batch of merged shards. All shards of a plan have the same `uid`.
    `shards` are pairs of a shard's index, from 1, and the number of shards in the plan. `is_running` means that a
    program is still adding runs to the batch."""

    file: Path
    number: int
    uid: str
    ref: ShardRef | None
    plan_id: str | None
    shards: tuple[tuple[int, int], ...]
    is_running: bool

    def __str__(self) -> str:
        batch = f"batch {self.number} of {self.file}"
        if self.ref is None:
            return batch
        return f"{self.ref}, {batch}"


def shards_in(file: Path, batch_number: int | None = None) -> list[StoredShard]:
    """Return the shards and merged batches of a history from the oldest to the newest.

    `batch_number` is the number of the single batch to return. Raises HistoryError for a missing history and a damaged
    batch.
    """
    with as_history_errors(file):
        if not file.exists():
            raise HistoryError(f"there is no history {file}")
        connection = open_for_reading(file)
        if connection is None:
            raise HistoryError(f"{file} has no batch: copy its file {file.name}-wal as well")
        with closing(connection):
            rows = connection.execute(_SHARDS, (batch_number, batch_number)).fetchall()
    found = []
    for number, uid, settings, ended_at in rows:
        try:
            read = columns.json_object(settings)
            ref, merged = ShardRef.of_batch(read), MergedShards.of_batch(read)
            if ref is not None:
                merged = MergedShards(ref.plan_id, ((ref.index, ref.of),))
            if merged is None:
                raise ValueError("its place in the plan cannot be read")
            # A batch without an end may have been interrupted. Only a claim proves that a program still writes to it.
            goes_on = ended_at is None and is_claimed(file, number)
            found.append(StoredShard(file, number, columns.text(uid), ref, merged.plan_id, merged.shards, goes_on))
        except DAMAGE as error:
            raise HistoryError(f"batch {number} of {file} is damaged: {error}") from error
    return found


def plan_differences(shard: StoredShard, other_shard: StoredShard) -> list[str]:
    """Return the differences between the plans of two shards; empty if the plans are equal.

    Raises HistoryError."""
    (settings, outline), (others, another) = _plan_of(shard), _plan_of(other_shard)
    found = []
    if shard.plan_id != other_shard.plan_id:
        found.append(f"ids {shard.plan_id} and {other_shard.plan_id}")
    paths = sorted({path for path, _ in {*outline.suites} ^ {*another.suites}})
    for path in paths:
        found.append(f"suite {path}")
    for kind in ("models", "judges"):
        here, there = settings.get(kind), others.get(kind)
        if isinstance(here, dict) and isinstance(there, dict):
            for name in {**here, **there}:
                if here.get(name) != there.get(name):
                    found.append(f"{kind[:-1]} {name}")
    # Changed suites usually have changed cases, so reporting both would report one difference twice.
    if not paths and (outline.shapes, outline.blocks) != (another.shapes, another.blocks):
        found.append("cases, repeats, variants or graders")
    if any(settings.get(key) != others.get(key) for key in ("execute", "execute_all")):
        found.append("what is executed")
    return found


def _plan_of(shard: StoredShard) -> tuple[dict[str, JsonValue], Outline]:
    with open_history(shard.file) as source:
        try:
            row = source.execute(f"SELECT settings, outline {PLANNED} AND id = ?", (shard.number,)).fetchone()
            return settings_of_answers(columns.json_object(row[0])), Outline.read(decompress_text(row[1]))
        except DAMAGE as error:
            raise HistoryError(f"{shard} is damaged: {error}") from error


@contextmanager
def open_history(file: Path) -> Iterator[sqlite3.Connection]:
    """Open a history for reading.

    All statements within the context see the same state of the history. Raises HistoryError."""
    with as_history_errors(file):
        connection = open_for_reading(file)
    if connection is None:
        raise HistoryError(f"{file} no longer has any batch")
    with closing(connection):
        # Without a transaction, each statement would see what other programs have written since the previous statement.
        connection.execute("BEGIN")
        yield connection


MAX_NAMED = 20
"""The maximum number of runs with a second result that a merge lists. Further runs are only counted."""

_VERDICT = ("status", "score", "reason", "broken", "options", "metrics", "arguments", "user_outcome")
_MADE = ("run_id", "began_ms", "ended_ms")
_FIGURES = (
    *(*_MADE, *_VERDICT),
    *("latency_ms", "loop_ms", "first_token_ms", "input_tokens", "output_tokens", "cost_usd"),
    *("asked", "repaired", "agent", "player"),
)
_ASKED = ("suite", "case_id", "model", "repeat")
_DETAILS = ("events", "outcome", "nth", "tools", "sample", "block", "facts")
_FOUND = ("place", *_ASKED, *_FIGURES)
_ASSIGNMENTS = ", ".join(f"{name} = ?" for name in _FIGURES)
# `case_id` and `model` need no validation, because they are compared with the plan.
_READERS: Mapping[str, columns.Reader] = {
    name: columns.RUN.get(name, columns.text) for name in _FOUND if name not in ("case_id", "model")
}
_TO_MAKE = "CREATE TEMP TABLE to_make (place INTEGER PRIMARY KEY, shard TEXT NOT NULL, is_of_several INTEGER DEFAULT 0)"
"""The places of the plan that the merged shards cover, and whether several shards cover a place."""
_ALSO_TO_MAKE = """INSERT INTO to_make (place, shard) VALUES (?, ?)
    ON CONFLICT DO UPDATE SET is_of_several = is_of_several OR shard <> excluded.shard"""
_UNEVEN = """SELECT (SELECT count(*) FROM to_make WHERE is_of_several),
    count(*) FILTER (WHERE place NOT IN (SELECT place FROM to_make)) FROM runs WHERE batch = ?"""
_LACKS = "count(*) FILTER (WHERE status IS NULL OR status = 'stopped')"


@dataclass
class MergeResult:
    """The result of a merge.

    `number` is the number of the merged batch, and `new_results` counts the results that this merge added.
    `second_results` counts the runs that already had a different result, and `named` lists some of them. `unfinished`
    lists the shards with missing runs. `kept` lists the shards that stay in the history beside the merged batch.
    `damaged` lists the parts that were left out. `programs` are the versions of Workbench that made the shards.
    `is_running` means that a program is still running a shard. If all shards were merged at once, `covered_by_several`
    counts the runs planned in several shards, and `covered_by_none` counts the runs planned in no shard."""

    number: int = 0
    new_results: int = 0
    second_results: int = 0
    named: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)
    programs: set[str] = field(default_factory=set)
    is_running: bool = False
    covered_by_several: int = 0
    covered_by_none: int = 0

    def add(self, other: MergeResult) -> None:
        """Add the result of merging another shard into the same batch."""
        self.number = other.number
        self.new_results += other.new_results
        self.second_results += other.second_results
        self.named = [*self.named, *other.named][:MAX_NAMED]
        self.unfinished += other.unfinished
        self.kept += other.kept
        self.damaged += other.damaged
        self.programs |= other.programs
        self.is_running |= other.is_running


def merge(target: Path, shards: Sequence[StoredShard], here: Path, report: ReportProblem) -> MergeResult:
    """Merge shards of one plan into one batch of the history `target`.

    A shard in `target` itself is removed once all of its runs are in the batch. If a suite's file is missing at its
    recorded path, the project `here` is searched for it. Damaged parts are left out and reported.

    Raises HistoryError."""
    merged = MergeResult()
    with as_history_errors(target), closing(open_for_writing(target, report)) as connection:
        connection.execute(_TO_MAKE)
        for shard in shards:
            if shard.ref is None and shard.file.resolve() == target.resolve():
                continue  # the merged batch itself
            with open_history(shard.file) as source:
                try:
                    merged.add(_ShardMerge(connection, target, source, shard, here).merge())
                except DAMAGE as error:
                    merged.damaged.append(f"{shard} is damaged: {error}")
        refs = set()
        for shard in shards:
            if shard.ref is not None:
                refs.add((shard.ref.index, shard.ref.of))
        given = MergedShards(None, tuple(refs))
        # The runs that no shard covers are known only if all shards of the plan are here.
        if given.shards and not given.missing and not merged.damaged:
            merged.covered_by_several, merged.covered_by_none = connection.execute(_UNEVEN, (merged.number,)).fetchone()
    return merged


# How merging works: each shard stores the outline of its whole plan. The outline lists the suites by hash, and the
# cases, models and repeats in order. The `uid` of a shard is a hash of the outline, the plan's id, and the settings
# that influence runs. All shards of one plan have the same `uid` on every machine. The first shard creates the merged
# batch with every planned run and no results. Then the results of each shard are copied. A run is found by its position
# in the plan, and its suite, case, model and repeat must match the outline at that position. So the order of shards
# does not matter, and merging a shard twice changes nothing. A result fills a run without a result or a stopped run. A
# finished run keeps its result, and a different second result is reported. Figures and compressed events are copied
# without decompression. Each shard is merged in one transaction. A claim on the merged batch keeps other programs from
# resuming it in the meantime.
class _ShardMerge:
    def __init__(
        self,
        target: sqlite3.Connection,
        file: Path,
        source: sqlite3.Connection,
        shard: StoredShard,
        here: Path,
    ) -> None:
        self._target, self._file = target, file
        self._source, self._shard = source, shard
        self._here = here
        self._merged = MergeResult()
        self._shared: dict[int, int] = {}

    def merge(self) -> MergeResult:
        """Merge the whole shard.

        Raises HistoryError and the errors in `DAMAGE`. After an error, nothing of the shard is merged."""
        wanted = "started_at, program, settings, name, suites, outline"
        shard = self._shard
        row = next(self._read(f"SELECT {wanted} {PLANNED} AND id = ?", shard.number), None)
        if row is None:
            raise ValueError("the batch no longer exists")
        started_at, program, settings, name = map(columns.text, (*row[:3], row[3] or ""))
        outline = decompress_text(row[5])
        of_source = _ids(row[4])
        planned, lacks = next(self._read(f"SELECT count(*), {_LACKS} FROM runs WHERE batch = ?", shard.number))
        merged = self._merged
        # The number of the batch is known only within the transaction, so the claim cannot come first.
        with self._claimed_own() as own, transaction(self._target), ExitStack() as claims:
            number, of_target = self._batch(started_at, program, parsed_json(settings), outline, of_source)
            taken = claim_if_free(self._file, number)
            if taken is None:
                raise HistoryError(f"batch {number} is running in another program: stop it there, or wait")
            claims.callback(taken.release)
            if shard.ref is not None:
                wanted = "place FROM runs WHERE batch = ? AND typeof(place) = 'integer'"
                places = self._read(f"SELECT {wanted}", shard.number)
                self._target.executemany(_ALSO_TO_MAKE, ((place, str(shard.ref)) for (place,) in places))
            self._runs(number, dict(zip(of_source, of_target, strict=True)))
            self._gradings(number)
            self._end(number, started_at)
            if own and not (name or merged.second_results or merged.damaged):
                self._target.execute("DELETE FROM batches WHERE id = ?", (shard.number,))
            elif own:
                # A shard stays in the history if the user named it or some of its results were not merged.
                why = "some of its content could not be merged"
                if name:
                    why = f"it is called {name!r}"
                merged.kept.append(f"{shard} stays beside it: {why}")
        merged.number = number
        merged.programs.add(program)
        some = f"{count_text(lacks)} of its {counted(planned, 'run')}"
        if lacks and shard.is_running:
            merged.is_running = True
            merged.unfinished.append(f"{shard} is still running, with {some} to make")
        elif lacks and shard.ref is not None:
            merged.unfinished.append(f"{shard} lacks {some}")
        return merged

    def _read(self, statement: str, *values: int) -> Iterator[tuple[Any, ...]]:
        """Yield rows of the shard's history.

        Raises ValueError instead of HistoryError, so that the merge leaves out a damaged part and continues."""
        try:
            with as_history_errors(self._shard.file):
                yield from self._source.execute(statement, values)
        except HistoryError as error:
            raise ValueError(str(error)) from error

    @contextmanager
    def _claimed_own(self) -> Iterator[bool]:
        """Claim a shard that is in the target history itself, and yield whether it may be removed.

        It may not be removed while a program adds runs to it."""
        if self._shard.file.resolve() != self._file.resolve():
            yield False
            return
        try:
            own = claim(self._file, self._shard.number)
        except HistoryError:
            yield False
            return
        try:
            yield True
        finally:
            own.release()

    def _batch(
        self, started_at: str, program: str, settings: dict[str, Any], outline: str, of_source: Sequence[int]
    ) -> tuple[int, list[int]]:
        """Return the number of the merged batch and the row ids of its suites.

        If there is no merged batch yet, create it."""
        shards = self._shard.shards
        for number, has_settings, suites, has_outline in self._target.execute(
            f"SELECT id, settings, suites, outline {PLANNED} AND uid = ?", (self._shard.uid,)
        ).fetchall():
            there = parsed_json(has_settings)
            merged = MergedShards.of_batch(there)
            if merged is None:
                continue  # a shard of the same plan in the target, not the merged batch
            # The `uid` comes from a file that may be damaged or forged, so an equal `uid` does not prove an equal plan.
            if decompress_text(has_outline) != outline:
                raise ValueError(f"its plan differs from that of batch {number}")
            there["merged"] = MergedShards(merged.plan_id, tuple(sorted({*merged.shards, *shards}))).settings
            self._target.execute("UPDATE batches SET settings = ? WHERE id = ?", (compact_json(there), number))
            return number, _ids(suites)
        for of_shard in ("shard", NAMED_AFTER):
            settings.pop(of_shard, None)
        settings["merged"] = MergedShards(self._shard.plan_id, shards).settings
        return self._begin(started_at, program, settings, Outline.read(outline), of_source)

    def _begin(
        self, started_at: str, program: str, settings: dict[str, Any], outline: Outline, of_source: Sequence[int]
    ) -> tuple[int, list[int]]:
        suites = []
        for id_, of_plan in zip(of_source, outline.suites, strict=True):
            suites.append(self._suite(id_, *of_plan))
        number = self._target.execute(
            "INSERT INTO batches (kind, started_at, program, settings, planned, uid) VALUES ('runs', ?, ?, ?, ?, ?)",
            (started_at, program, compact_json(settings), outline.planned, self._shard.uid),
        ).lastrowid
        assert number is not None
        cases = outline.cases
        for (suite, model), planned in outline.parts.items():
            self._target.execute(
                "INSERT INTO parts (batch, suite, model, planned, cases) VALUES (?, ?, ?, ?, ?)",
                (number, suites[suite], columns.stored(model), planned, cases[suite, model]),
            )
        # The run id is a placeholder that is unique in the batch. The id that the run has in its events replaces it
        # later.
        self._target.executemany(
            "INSERT INTO runs (batch, place, suite, case_id, case_name, model, model_of_suite, repeat, decided_by,"
            " is_fork, run_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?)",
            _planned_rows(number, suites, outline),
        )
        write_plan(self._target, number, suites, outline)
        return number, suites

    def _suite(self, id_: int, path: str, hash_: str) -> int:
        wanted = "id, project, path, hash, name, cases, text, blocks"
        row = next(self._read(f"SELECT {wanted} FROM suites WHERE id = ?", id_), None)
        if row is None:
            raise ValueError(f"its suite {path} is missing")
        project = folder_of_stored(self._shard.file, columns.read(columns.SUITE, row[:6])[1])
        if (columns.text(row[2]), row[3]) != (path, hash_) or not isinstance(row[6], bytes):
            raise ValueError(f"its suite {path} differs from the one in its plan")
        if not Path(project, path).exists() and (self._here / path).is_file():
            project = str(self._here)  # the shard ran in another checkout of the same project
        return insert_suite(self._target, stored_folder(self._file, Path(project)), row[2:])

    def _runs(self, number: int, suites: Mapping[int, int]) -> None:
        figures = ", ".join(f"runs.{name}" for name in _FOUND)
        rows = self._read(
            f"SELECT {figures}, details.run, {', '.join(_DETAILS)} FROM runs LEFT JOIN details ON details.run = runs.id"
            " WHERE batch = ? AND status IS NOT NULL ORDER BY place",
            self._shard.number,
        )
        ended: Counter[tuple[int, Any, str]] = Counter()
        for row in rows:
            try:
                self._run(number, row, suites, ended)
            except (ValueError, TypeError) as error:
                which = f"run {row[0] + 1}" if type(row[0]) is int else "a run"
                self._merged.damaged.append(f"{which} of {self._shard}: {error}")
        for (suite, model, status), count in ended.items():
            name = Status(status).column
            self._target.execute(
                f"UPDATE parts SET {name} = {name} + ? WHERE batch = ? AND suite = ? AND model = ?",
                (count, number, suite, model),
            )

    def _run(
        self, number: int, row: tuple[Any, ...], suites: Mapping[int, int], ended: Counter[tuple[int, Any, str]]
    ) -> None:
        found = dict(zip(_FOUND, row, strict=False))
        has_details, *details = row[len(_FOUND) :]
        columns.read(_READERS, [found[name] for name in _READERS])
        known = self._target.execute(
            f"SELECT id, {', '.join((*_ASKED, *_MADE, *_VERDICT))} FROM runs WHERE batch = ? AND place = ?",
            (number, found["place"]),
        ).fetchone()
        if known is None or known[1:5] != (suites.get(found["suite"]), *(found[name] for name in _ASKED[1:])):
            raise ValueError("it differs from the run in its plan")
        if has_details is None or not all(isinstance(each, bytes) for each in details[:2]):
            raise ValueError("its events are missing")
        there = dict(zip((*_MADE, *_VERDICT), known[5:], strict=True))
        if there["status"] not in (None, Status.STOPPED):
            # A result with the same run id and times was merged before. Any other result is a second result of the run.
            if found["status"] != Status.STOPPED and any(there[name] != found[name] for name in _MADE):
                self._record_second_result(found, there)
            return
        if there["status"] == found["status"]:
            return
        *texts, tools, sample, block, facts = details
        # Read the shared texts before the first write. If one is missing, the run is damaged and must be left out
        # completely.
        shared = [self._shared_id(number, id_) for id_ in (tools, sample, block, facts)]
        figures = [found[name] for name in _FIGURES]
        self._target.execute(f"UPDATE runs SET {_ASSIGNMENTS} WHERE id = ?", (*figures, known[0]))
        self._target.execute(
            f"INSERT OR REPLACE INTO details (run, {', '.join(_DETAILS)}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (known[0], *texts, *shared),
        )
        part = (number, known[1], known[3])
        count_calls(self._target, part, found["arguments"])
        count_user_outcome(self._target, part, found["user_outcome"])
        ended[known[1], known[3], found["status"]] += 1
        if there["status"] is not None:
            ended[known[1], known[3], there["status"]] -= 1
        self._merged.new_results += 1

    def _record_second_result(self, second: Mapping[str, Any], first: Mapping[str, Any]) -> None:
        """Record that a run has a second result if its verdict differs from the verdict of the first result.

        `first` is the first result, which stays. `second` is the second result."""
        if all(second[name] == first[name] for name in _VERDICT):
            return
        self._merged.second_results += 1
        if len(self._merged.named) < MAX_NAMED:
            which = f"run {second['place'] + 1}, {columns.text(second['case_id'])} with {columns.text(second['model'])}"
            self._merged.named.append(
                f"{which}: {_verdict(first)} stays, {_verdict(second)} of {self._shard} is left out"
            )

    def _shared_id(self, number: int, id_: int | None) -> int | None:
        if id_ is None:
            return None
        if id_ not in self._shared:
            wanted = "SELECT hash, text FROM shared WHERE id = ? AND batch = ?"
            row = next(self._read(wanted, id_, self._shard.number), None)
            if row is None or not isinstance(row[1], bytes):
                raise ValueError("a text that the run shares with other runs is missing from the history")
            self._target.execute("INSERT OR IGNORE INTO shared (batch, hash, text) VALUES (?, ?, ?)", (number, *row))
            known = "SELECT id FROM shared WHERE batch = ? AND hash = ?"
            (self._shared[id_],) = self._target.execute(known, (number, row[0])).fetchone()
        return self._shared[id_]

    def _gradings(self, number: int) -> None:
        """Copy the shard's regrades. The first regrade of every shard becomes the batch's first regrade, and so on.

        Regrades are matched by their order, because they have no id that is the same in all shards."""
        statement = "SELECT id, graded_at, program FROM gradings WHERE batch = ? ORDER BY id"
        theirs = list(self._read(statement, self._shard.number))
        ours = [row[0] for row in self._target.execute(statement, (number,))]
        for id_, graded_at, program in theirs:
            columns.read(columns.GRADING, (id_, graded_at, program))
        verdicts = ", ".join((*_VERDICT, "outcome"))
        regraded = ", ".join(f"regrades.{name}" for name in (*_VERDICT, "outcome"))
        for position, (id_, graded_at, program) in enumerate(theirs):
            if position == len(ours):
                added = self._target.execute(
                    "INSERT INTO gradings (batch, graded_at, program, hashes) VALUES (?, ?, ?, '{}')",
                    (number, graded_at, program),
                ).lastrowid
                ours.append(added)
            rows = self._read(
                f"SELECT place, run_id, began_ms, {regraded} FROM regrades JOIN runs ON runs.id = run"
                " WHERE grading = ?",
                id_,
            )
            # A grade belongs to one result. It is left out if the merged batch has a different result of the run.
            self._target.executemany(
                f"INSERT OR IGNORE INTO regrades (grading, run, {verdicts})"
                f" SELECT ?, id, {', '.join('?' * len((*_VERDICT, 'outcome')))} FROM runs"
                " WHERE batch = ? AND place = ? AND run_id IS ? AND began_ms IS ?",
                ((ours[position], *row[3:], number, *row[:3]) for row in rows),
            )

    def _end(self, number: int, started_at: str) -> None:
        """Mark the batch as ended if no run is missing. Set its start to the start of its earliest shard."""
        missing, last_ms = self._target.execute(
            f"SELECT {_LACKS}, max(ended_ms) FROM runs WHERE batch = ?",
            (number,),
        ).fetchone()
        ended_at = None
        if not missing:
            ended_at = datetime.fromtimestamp((last_ms or 0) / 1000, UTC).isoformat(timespec="milliseconds")
        self._target.execute(
            "UPDATE batches SET started_at = min(started_at, ?), ended_at = ? WHERE id = ?",
            (started_at, ended_at, number),
        )


def _planned_rows(number: int, suites: Sequence[int], outline: Outline) -> Iterator[tuple[object, ...]]:
    for place, run in enumerate(outline.runs()):
        case_id, case_name, model = map(columns.stored, (run.case_id, run.case_name, run.model))
        of_case = (number, place, suites[run.suite], case_id, case_name)
        yield (*of_case, model, run.model_of_suite, run.repeat, run.by, f"run-{place + 1}")


def _ids(text: str) -> list[int]:
    found = parsed_json(columns.text(text))
    if not isinstance(found, list) or not all(type(each) is int for each in found):
        raise ValueError("its suites cannot be read")
    return found


def _verdict(figures: Mapping[str, Any]) -> str:
    if isinstance(figures["score"], float):
        return f"{figures['status']} {score_text(figures['score'])}"
    return f"{figures['status']}"
