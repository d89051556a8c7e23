"""Reads a history: its batches, their runs, one run with its events, one case over time."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from workbench.dataclasses import compact_json
from workbench.grading.result_json import outcome_from_json
from workbench.grading.status import Status
from workbench.history import columns
from workbench.history.database import Say, as_history_errors
from workbench.history.packing import unpacked, unpacked_blocks, unpacked_events, unpacked_outcome
from workbench.history.records import (
    BatchRow,
    CaseOutline,
    DamagedError,
    HistoryError,
    ModelUse,
    Regrade,
    RunRow,
    SuiteRef,
    Tally,
)
from workbench.history.rows import DAMAGE, values_in
from workbench.history.run_table import RunTable
from workbench.history.stored_batches import StoredBatches
from workbench.suite.model import Gate
from workbench.trajectory.recording import Header, RecordedSuite, Recording
from workbench.trajectory.trajectory import Trajectory, fold

_RUN = """
SELECT id, batch, place, suite, case_id, case_name, model, model_of_suite, repeat, decided_by, is_fork,
    runs.status, runs.score, runs.reason, runs.broken, runs.options, began_ms, ended_ms, latency_ms, first_token_ms,
    input_tokens, output_tokens, cost_usd, asked, loop_ms, runs.metrics, runs.arguments, repaired
FROM runs"""
_REGRADED = _RUN.replace(
    "runs.status, runs.score, runs.reason, runs.broken, runs.options",
    """
    coalesce(regrades.status, runs.status), iif(regrades.run, regrades.score, runs.score),
    iif(regrades.run, regrades.reason, runs.reason), coalesce(regrades.broken, runs.broken),
    iif(regrades.run, regrades.options, runs.options)""",
).replace(
    "runs.metrics, runs.arguments",
    """iif(regrades.run, regrades.metrics, runs.metrics), iif(regrades.run, regrades.arguments, runs.arguments)""",
)

_OF_A_BATCH = "EXISTS (SELECT 1 FROM batches WHERE batches.id = runs.batch)"
"""Runs of a removed batch go little by little."""

_COUNTED = ", ".join(f"'{status.value}'" for status in Status if status.final and status is not Status.SKIPPED)
_COUNTS = (
    f"status IN ({_COUNTED}) AND NOT is_fork "
    "AND EXISTS (SELECT 1 FROM batches WHERE batches.id = runs.batch AND kind IS NOT 'reruns')"
)
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
"""A case has thousands of runs in the index of cases, in the order of their ids: the last one is found by one step, and
the others of its batch are behind the batch's first run."""


def _gate_in(text: str) -> Gate:
    """Returns the gate in a suite's text; none where redacting the text has changed it."""
    try:
        return Gate.model_validate(tomllib.loads(text).get("gate", {})) if "gate" in text else Gate()
    except ValueError:
        return Gate()


def _of_batch(batch: int, grading: Regrade | None, rest: str, *values: int) -> tuple[str, tuple[int, ...]]:
    """Returns a statement that reads runs of a batch, and its values."""
    if grading is None:
        return f"{_RUN} WHERE batch = ? {rest}", (batch, *values)
    joined = f"{_REGRADED} LEFT JOIN regrades ON regrades.run = runs.id AND grading = ?"
    return f"{joined} WHERE batch = ? {rest}", (grading.id, batch, *values)


PAGE = 1_000
"""So many runs are read at once."""


class History(StoredBatches):
    """An existing history. Use it on one thread; every method raises HistoryError. One that was never written is
    empty."""

    def suites_called(self, name: str) -> list[int]:
        """Returns the ids of a suite as it was at any time, by its name, its path in its project, or its file."""
        with self._at_one_moment():
            found = self._stored("SELECT id FROM suites WHERE name = ? OR path = ?", (name, name))
            return list({*(id_ for (id_,) in found), *self._versions(str(Path(name).resolve()))})

    def suite_paths(self) -> list[str]:
        """Returns the paths of all suites in their projects."""
        return [path for (path,) in self._rows("a suite", {"path": columns.path}, values_in("suites", "path"), ())]

    def runs(self, batch: int, grading: Regrade | None = None) -> RunTable:
        """Returns the runs of a batch in the order of its plan; with `grading`, as that regrade graded them. The
        figures of all of them are in memory: `each_run` yields rows without that."""
        return RunTable(self._each_run(*_of_batch(batch, grading, "ORDER BY place")))

    def each_run(self, batch: int, grading: Regrade | None = None) -> Iterator[RunRow]:
        """Yields the runs of a batch, as `runs`, of which a page at a time is read. Other programs may write meanwhile:
        of a batch that is going on, later pages are as of a later moment. Raises HistoryError when the batch is removed
        meanwhile."""
        rows = self.runs_from(batch, 0, PAGE, grading)
        yield from rows
        while len(rows) == PAGE:
            rows = self.runs_from(batch, rows[-1].place + 1, PAGE, grading)
            yield from rows
            if len(rows) < PAGE and not self._stored("SELECT 1 FROM batches WHERE id = ?", (batch,)):
                raise HistoryError(f"batch {batch} was removed from {self.file} while it was being read")

    def readable_runs(self, batch: int, damaged: Say) -> Iterator[RunRow]:
        """Yields the runs of a batch that is not going on, in the order of its plan. Damaged ones are left out and
        reported to `damaged`."""
        return self._each_run(*_of_batch(batch, None, "ORDER BY place"), damaged)

    def runs_from(self, batch: int, place: int, limit: int, grading: Regrade | None = None) -> list[RunRow]:
        """Returns so many runs of a batch, from a place in its plan on; fewer at the end of the plan."""
        return self._runs(*_of_batch(batch, grading, "AND place >= ? ORDER BY place LIMIT ?", place, limit))

    def cases_of(self, batch: int, grading: Regrade | None = None) -> Generator[CaseOutline]:
        """Yields the cases of a batch in the order of its plan, without its forks: far quicker than its runs. Close
        what is not read to the end."""
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
                    read = [columns.read(columns.OUTLINE, row) for row in of_case]
                    ended = [(model, status) for *_, model, status in read]
                    outline = CaseOutline(self._suite(suite), read[0][2], read[0][3], read[0][0], read[-1][0], ended)
                yield outline

    def runs_between(self, batch: int, first: int, last: int, grading: Regrade | None = None) -> list[RunRow]:
        """Returns the runs from one place of a batch's plan to another one, both included."""
        return self._runs(*_of_batch(batch, grading, "AND place BETWEEN ? AND ? ORDER BY place", first, last))

    def run_at(self, batch: int, place: int, grading: Regrade | None = None) -> RunRow | None:
        """Returns the run at a place of a batch's plan, `None` where it has none."""
        return next(iter(self._runs(*_of_batch(batch, grading, "AND place = ?", place))), None)

    def missing_runs(self, batch: int) -> list[RunRow]:
        """Returns the runs of a batch that resuming it makes, in the order of its plan, forks excepted."""
        missing = f"{_RUN} WHERE batch = ? AND (status IS NULL OR status = 'stopped') AND NOT is_fork ORDER BY place"
        return self._runs(missing, (batch,))

    def planned_in(self, batch: int) -> int:
        """Returns how many runs of the plan of a batch are written."""
        rows = self._stored("SELECT count(*) FROM runs WHERE batch = ?", (batch,))
        return int(rows[0][0]) if rows else 0

    def models_of(self, batch: int) -> list[ModelUse]:
        """Returns the models of the suites of a batch, in the order in which its plan first has them."""
        statement = (
            "SELECT suite, model, model_of_suite FROM runs WHERE batch = ? "
            "GROUP BY suite, model, model_of_suite ORDER BY min(place)"
        )
        wanted = {name: columns.RUN[name] for name in ("suite", "model", "model_of_suite")}
        with self._at_one_moment(), self._damage_of(f"batch {batch}"):
            found = self._rows(f"the models of batch {batch}", wanted, statement, (batch,))
            return [ModelUse(self._suite(suite), model, bool(of_suite)) for suite, model, of_suite in found]

    def tallies(self, batch: int) -> list[Tally]:
        """Returns how the runs of a batch ended that are over, by model and status, and what they cost together; those
        of unknown cost apart."""
        statement = (
            "SELECT model, status, sum(cost_usd), count(*) FROM runs WHERE batch = ? AND status IS NOT NULL "
            "AND status != 'stopped' GROUP BY model, status, cost_usd IS NULL"
        )
        names = {"model": columns.text, "status": columns.ended, "cost_usd": columns.RUN["cost_usd"]}
        rows = self._rows(f"the runs of batch {batch}", {**names, "runs": columns.count}, statement, (batch,))
        return [Tally(*row) for row in rows]

    def run_ids(self, batch: int) -> frozenset[str]:
        """Returns the ids of a batch's runs in their events: runs that are added need different ones."""
        found = {"run_id": columns.text}
        rows = self._rows(f"batch {batch}", found, "SELECT run_id FROM runs WHERE batch = ?", (batch,))
        return frozenset(run_id for (run_id,) in rows)

    def suites_with(self, case_id: str, batch: int | None = None) -> list[SuiteRef]:
        """Returns the suites that have had a case, the newest first, or those of a batch in which it has one."""
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

    def case_ids(self, batch: int | None = None) -> list[str]:
        """Returns the ids of all cases, or of those of a batch, that are not damaged."""
        if batch is not None:
            rows = self._stored("SELECT DISTINCT case_id FROM runs WHERE batch = ?", (batch,))
        else:
            rows = self._stored(values_in("runs", "case_id"), ())
        found = (columns.readable({"id": columns.text}, row) for row in rows)
        return [each["id"] for each in found if each]

    def runs_of_case(self, suite: str, case_id: str, limit: int, damaged: Say) -> Sequence[RunRow]:
        """Returns the latest runs of a case, the newest first; `suite` is a `SuiteRef.key`. Damaged ones are left out
        and reported to `damaged`."""
        with self._at_one_moment():
            ids = ", ".join(map(str, self._versions(suite)))
            statement = f"{_RUN} WHERE case_id = ? AND suite IN ({ids}) AND {_OF_A_BATCH} ORDER BY id DESC LIMIT ?"
            return self._runs(statement, (case_id, limit), damaged)

    def last_runs(self, cases: Mapping[str, Collection[str]], damaged: Say) -> Sequence[RunRow]:
        """Returns the finished runs of each case in the last batch in which it has any, with their latest grades, the
        oldest first; `cases` are ids by `SuiteRef.key`. Forks do not count. Damaged ones are left out and reported to
        `damaged`."""
        with self._at_one_moment():
            asked = [[versions, list(ids)] for suite, ids in cases.items() if (versions := self._versions(suite))]
            return self._runs(_LAST, (compact_json(asked),), damaged)

    def mean_latencies(self) -> dict[tuple[str, str, str], float]:
        """Returns the mean latency of the finished runs of each case with each model, in milliseconds, by path of the
        suite in its project, case and model. Shards do not count, damaged ones neither: others may be made now."""
        is_shard = "iif(json_valid(settings), json_extract(settings, '$.shard') IS NOT NULL, 1)"
        no_shards = f"batch NOT IN (SELECT batch FROM plans JOIN batches ON batches.id = batch WHERE {is_shard})"
        return self._means("latency_ms", f"{_COUNTS} AND {no_shards}")

    def mean_costs(self) -> dict[tuple[str, str, str], float]:
        """Returns the mean cost of the graded runs of each case with each model, in US dollars, as `mean_latencies`
        does. Runs of unknown cost do not count."""
        return self._means("cost_usd", f"status IN ('passed', 'warned', 'failed') AND {_COUNTS}")

    def _means(self, column: str, where: str) -> dict[tuple[str, str, str], float]:
        statement = f"""
            SELECT path, case_id, model, avg({column}) FROM runs JOIN suites ON suites.id = suite
            WHERE {where} AND {column} >= 0
            GROUP BY path, case_id, model"""
        wanted = {"path": columns.text, "case_id": columns.text, "model": columns.text, "mean": columns.number}
        rows = self._rows(f"the {column} of runs", wanted, statement, ())
        return {(path, case_id, model): mean for path, case_id, model, mean in rows}

    def case_texts(self, suite: SuiteRef) -> Mapping[str, str]:
        """Returns the text of each case of a suite as it was, redacted, by its id; none where cases do not stand in
        blocks of their own."""
        rows = self._stored("SELECT text, blocks FROM suites WHERE id = ?", (suite.id,))
        with self._damage_of(f"the suite {suite.path}"):
            text, blocks = rows[0]
            whole = unpacked(text)
            return {case: whole[first:end] for case, first, end in unpacked_blocks(blocks)} if blocks else {}

    def recording(self, run: RunRow, grading: Regrade | None = None) -> Recording:
        """Returns a run with its events, as if it had been recorded next to its suite; with `grading`, with the result
        of that regrade. Raises for a run that never finished."""
        which = f"run {run.place + 1} of batch {run.batch}"
        with self._at_one_moment():
            with self._told_of(which):
                rows = self._stored(
                    "SELECT run_id, program, suite, events, outcome, details.tools, details.sample FROM runs "
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
            run_id, program, suite_id, events_packed, outcome, tools_id, sample_id = rows[0]
            with self._damage_of(which):
                suite = self._cut_text(suite_id).of(run.case_id)
                tools, sample = self._shared_text(tools_id), self._shared_text(sample_id)
        with self._damage_of(which):
            run_id, program = columns.text(run_id), columns.text(program)
            events = tuple(unpacked_events(events_packed, tools.decode() if tools is not None else None, sample or b""))
            trajectory = fold(events) if events else Trajectory(run_id)
            result = unpacked_outcome(again[0][0]) if again else unpacked_outcome(outcome, sample or b"")
            outcome_from_json(result)
            began_ms = (run.figures.began_ms if run.figures is not None else None) or 0
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
        return Recording(run.suite.file, header, events, trajectory, result)

    def recordings(
        self, runs: Iterable[RunRow], grading: Regrade | None, damaged: Say
    ) -> Iterator[tuple[RunRow, Recording]]:
        """Yields the recordings of finished runs. Damaged ones are left out and reported to `damaged`."""
        for run in runs:
            try:
                recording = self.recording(run, grading)
            except DamagedError as error:
                damaged(str(error))
            else:
                yield run, recording

    def suite_text(self, suite: SuiteRef) -> str:
        """Returns the text of a suite as it was, redacted."""
        rows = self._stored("SELECT text FROM suites WHERE id = ?", (suite.id,))
        if not rows:
            raise HistoryError(f"the suite {suite.path} is no longer in {self.file}")
        with self._damage_of(f"the suite {suite.path}"):
            return unpacked(rows[0][0])

    def gates(self, batch: BatchRow, damaged: Say) -> dict[str, Gate]:
        """Returns the gate of each suite of a batch when it ran, by its key. Suites whose text cannot be read are left
        out and reported to `damaged`."""
        found: dict[str, Gate] = {}
        for suite in batch.suites:
            try:
                with self._damage_of(f"the suite {suite.path}"):
                    found[suite.key] = _gate_in(self._cut_text(suite.id).without_cases)
            except DamagedError as error:
                damaged(str(error))
        return found


# What runs of a case depend on: tells whether two stored runs were asked, and expected, the same.


class Contents:
    """The contents of cases of a history, each suite read once."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._of_suites: dict[SuiteRef, dict[str, str]] = {}

    def of(self, suite: SuiteRef, case_id: str) -> str:
        """Return the text of a case and that of its suite without cases; for a damaged suite, which file it was."""
        if suite not in self._of_suites:
            self._of_suites[suite] = {}
            with suppress(DamagedError):
                self._of_suites[suite] = self._read(suite)
        return self._of_suites[suite].get(case_id, suite.hash)

    def _read(self, suite: SuiteRef) -> dict[str, str]:
        cases, rest = self._history.case_texts(suite), self._history.suite_text(suite)
        for text in cases.values():
            rest = rest.replace(text, "", 1)
        return {case: f"{rest}\0{text}" for case, text in cases.items()}
