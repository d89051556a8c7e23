"""Reports on stored runs: the same as with all of them in memory, of which no more than a few are ever there."""

from __future__ import annotations

import csv
import gc
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import fields, replace
from itertools import zip_longest
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.example_counts import examples
from tests.grading.test_packed import ASKED_OF_ALL
from tests.history.batches import SUITE, run_kept
from tests.limits import lower
from tests.results import result
from tests.sampled_rows import first_of
from workbench.analysis.batch_diff import batch_diff
from workbench.cli.main import main
from workbench.config.secrets import Secrets
from workbench.evaluation.report import Report
from workbench.evaluation.stored_runs import (
    Columns,
    StoredResult,
    StoredRows,
    as_graded_by,
    figures_by,
    result_of_row,
    stored_report,
)
from workbench.grading.grade import RunResult
from workbench.grading.repeats import case_result, case_results, runs_by_case
from workbench.grading.run_summary import RunSummary
from workbench.grading.status import Status
from workbench.history.edits import add_grading
from workbench.history.history import History
from workbench.history.records import HistoryError
from workbench.history.run_table import RunTable
from workbench.show import forms
from workbench.show.csv import csv_rows
from workbench.show.forms import forms_of
from workbench.suite.grading_model import GRADERS, GraderName
from workbench.trajectory.events import Usage
from workbench.trajectory.trajectory import Round, Trajectory

FORMS = forms_of("history show", for_report=True)
REPEATS = 4


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history with two batches of repeats, in the second of which another case fails."""
    folder = tmp_path_factory.mktemp("kept")
    file = folder / "history.sqlite3"
    run_kept(folder, file, repeats=REPEATS)
    run_kept(folder, file, suite=SUITE.replace("Rome", "Berlin").replace('"Paris" }', '"Lyon" }'), repeats=REPEATS)
    return file


def report_of(file: Path, number: int = 1) -> Report:
    with History(file) as history:
        secrets = Secrets()
        secrets.add("KEY", "weather-of-a-secret-city")
        return stored_report(history, history.batch(str(number)), history.runs(number), None, secrets, pytest.fail)


@pytest.mark.parametrize("number", first_of([1, 2], 1))
def test_every_form_is_that_of_runs_in_memory(kept: Path, number: int) -> None:
    stored = report_of(kept, number)
    whole = [run.result.whole if isinstance(run.result, StoredResult) else run.result for run in stored.runs]
    assert {type(run) for run in whole} == {RunResult} and [*stored.results] == whole
    in_memory = replace(
        stored, runs=tuple(replace(run, result=one) for run, one in zip(stored.runs, whole, strict=True))
    )
    for form in FORMS:
        assert [*stored.pieces(form)] == [*in_memory.pieces(form)], form
    assert stored.text(amount="much") == in_memory.text(amount="much")
    assert stored.failure_text() == in_memory.failure_text()
    assert (stored.quality, stored.totals_per_model) == (in_memory.quality, in_memory.totals_per_model)
    assert [case for case in stored.cases if case.arguments] and stored.cases == in_memory.cases
    for one, other in zip(stored.results, whole, strict=True):
        for name in (*(field.name for field in fields(RunResult)), *ASKED_OF_ALL):
            assert getattr(one, name) == getattr(other, name), name


def test_rows_of_runs_that_are_read_once_are_those_of_runs_whose_figures_were_read_before(
    kept: Path, tmp_path: Path
) -> None:
    file = tmp_path / "history.sqlite3"
    file.write_bytes(kept.read_bytes())
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("DELETE FROM details WHERE run = 2")
    said: list[str] = []
    with History(file) as history:
        runs = history.runs(1)
        once = "".join(csv_rows(StoredRows(history, runs, None, Secrets(), said.append).records()))
        report = stored_report(history, history.batch("1"), runs, None, Secrets(), said.append)
        assert once == "".join(report.pieces("csv"))
    assert once.count("\r\n") == 2 * REPEATS
    assert len(said) == 2 and said[0] == said[1] and "run 2 of batch 1" in said[0]


@pytest.mark.parametrize("without", ["", "UPDATE suites SET blocks = NULL"])
def test_rows_name_the_lines_of_cases_whether_or_not_their_places_are_stored(tmp_path: Path, without: str) -> None:
    file = tmp_path / "history.sqlite3"
    run_kept(tmp_path, file, suite=f"# The suite of a city\n{SUITE}\n".replace("[[cases]]", "\n# A case.\n[[cases]]"))
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(without)
    with History(file) as history:
        rows = csv_rows(StoredRows(history, history.runs(1), None, Secrets(), pytest.fail).records())
        report = stored_report(history, history.batch("1"), history.runs(1), None, Secrets(), pytest.fail)
        found = "".join(rows)
        assert found == "".join(report.pieces("csv"))
        lines = [int(row["line"]) for row in csv.DictReader(found.splitlines())]
        text = history.suite_text(history.batch("1").suites[0]).splitlines()
    assert lines and {text[line - 1] for line in lines} == {"[[cases]]"}


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE details SET facts = NULL",
        "UPDATE details SET facts = 99999",
        "UPDATE details SET facts = 'x'",
        "UPDATE shared SET text = x'00' WHERE id IN (SELECT facts FROM details)",
        "UPDATE shared SET text = (SELECT text FROM shared WHERE id IN (SELECT tools FROM details))"
        " WHERE id IN (SELECT facts FROM details)",
    ],
)
def test_rows_are_the_same_with_facts_and_where_only_the_runs_themselves_have_them(
    kept: Path, tmp_path: Path, damage: str
) -> None:
    def rows(file: Path) -> tuple[str, set[bool]]:
        with History(file) as history:
            runs = history.runs(1)
            has_facts = {facts is not None for _, facts in history.facts(runs)}
            report = stored_report(history, history.batch("1"), runs, None, Secrets(), pytest.fail)
            shown = [*csv_rows(StoredRows(history, runs, None, Secrets(), pytest.fail).records())]
            return "".join([*shown, *report.pieces("markdown"), *report.pieces("junit")]), has_facts

    whole, has_facts = rows(kept)
    assert has_facts == {True}
    file = tmp_path / "history.sqlite3"
    file.write_bytes(kept.read_bytes())
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(damage)
    assert rows(file) == (whole, {False})


def test_a_secret_that_became_known_later_is_in_no_row(kept: Path) -> None:
    secrets = Secrets()
    with History(kept) as history:
        runs = history.runs(1)
        before = "".join(csv_rows(StoredRows(history, runs, None, secrets, pytest.fail).records()))
        secrets.add_text("CITY_KEY", "Berlin")
        after = "".join(csv_rows(StoredRows(history, runs, None, secrets, pytest.fail).records()))
    assert "Berlin" in before
    assert "Berlin" not in after and "$CITY_KEY" in after


def test_odd_ids_and_counts_come_out_of_columns_as_they_went_in(tmp_path: Path) -> None:
    ids = ["run-0", "run-07", "run-", "run--1", "run-1.3", "run-\u0663", "7", f"run-{'9' * 18}", f"run-{'9' * 5000}"]
    counts = [None, Usage(), Usage(-1, 2), Usage(5, 1 << 63, 3, -4), Usage(10**30), Usage((1 << 63) - 1, 1, 2, 3)]
    columns = Columns(tmp_path / "history.sqlite3")
    told = [Trajectory(id_, rounds=(Round(1, usage=usage),)) for id_, usage in zip_longest(ids, counts)]
    runs = [replace(result(Status.PASSED, 1.0, trajectory=each), run_id=each.run_id) for each in told]
    for run in runs:
        columns.add(run)
    assert [(run.run_id, run.usage) for run in columns.results] == [(run.run_id, run.usage) for run in runs]
    assert [run.usage for run in runs[: len(counts)]] == counts


@pytest.mark.slow
def test_of_stored_runs_a_few_are_in_memory(kept: Path) -> None:
    report = report_of(kept)

    def most_while(pieces: Iterator[str]) -> int:
        most = 0
        for _ in pieces:
            gc.collect()
            most = max(most, sum(isinstance(each, Trajectory) for each in gc.get_objects()))
        return most

    gc.collect()
    before = sum(isinstance(each, Trajectory) for each in gc.get_objects())
    assert len(report.runs) == 2 * REPEATS
    # Four recently read runs, one that is being read, and one that is being written.
    assert all(most_while(report.pieces(form)) <= before + 6 for form in ("records", "csv"))


@settings(max_examples=examples(120))
@given(st.lists(st.tuples(*(st.integers(0, 3) for _ in range(4))), max_size=12))
def test_cases_are_joined_in_the_order_of_their_first_runs(drawn: list[tuple[int, int, int, int]]) -> None:
    runs = [
        replace(
            result(Status.PASSED, 1.0) if good else result(Status.FAILED, 0.0),
            suite=f"s{suite}",
            case_id=f"c{case}",
            repeat=repeat,
        )
        for suite, case, repeat, good in drawn
    ]
    expected = [case_result(group) for group in runs_by_case(runs, lambda run: run.suite)]
    found = case_results(runs)
    assert [*found] == expected
    assert [*found.repeated] == [case for case in expected if len(case.runs) > 1]
    assert [*found.of(Status.FAILED, Status.PASSED)] == sorted(expected, key=lambda case: case.status != "failed")
    assert found.number(Status.FAILED) == sum(case.status == "failed" for case in expected)


def test_batches_are_compared_alike_from_columns_and_lists(kept: Path) -> None:
    with History(kept) as history:
        before, after = (history.runs(number) for number in (1, 2))
    columns = before.figures, after.figures
    lists = [run.figures for run in before if run.figures], [run.figures for run in after if run.figures]
    assert columns == lists
    found = batch_diff(*columns)
    kinds = {change.kind for change in found.changes} - {"slower", "faster"}
    assert found == batch_diff(*lists) and kinds == {"broke", "fixed"}
    assert [(each.count, each.pairs) for each in found.tests.values()] == [(2, ())]
    assert RunTable(before) == before and [*before[1:3]] == [*before][1:3]


def test_comparing_batches_makes_no_row_and_the_figures_of_each_run_twice(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with History(kept) as history:
        sides = [history.runs(number) for number in (1, 2)]
    made: list[int] = []
    figures_at = RunTable.figures_at

    def counted(runs: RunTable, index: int) -> RunSummary | None:
        made.append(index)
        return figures_at(runs, index)

    monkeypatch.setattr(RunTable, "at", None)
    monkeypatch.setattr(RunTable, "figures_at", counted)
    found = batch_diff(*(side.figures for side in sides), unfinished=(sides[0].unfinished, sides[1].unfinished))
    assert found.compared and len(made) == 2 * sum(len(side.figures) for side in sides)


def test_a_regrade_that_breaks_off_leaves_nothing(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.history.edits.MAX_RUNS_PER_STEP", 2)
    with History(kept) as history:
        rows = history.runs(1)
        results = [run.result for run in report_of(kept).runs]

        def graded(until: int, then: Callable[[], None]) -> Iterator[object]:
            for row, each in [*zip(rows, results, strict=True)][:until]:
                yield row.id, row.figures, each
            then()

        def fails() -> None:
            assert history.gradings(1) == []  # what is written already is no regrade yet
            raise HistoryError("broken")

        with pytest.raises(HistoryError, match="broken"):
            add_grading(kept, 1, "2030-01-01", "9", graded(5, fails), pytest.fail)  # type: ignore[arg-type]
        assert history._stored("SELECT count(*) FROM regrades", ()) == [(0,)]
        add_grading(kept, 1, "2030-01-01", "9", graded(len(rows), lambda: None), pytest.fail)  # type: ignore[arg-type]
        (grading,) = history.gradings(1)
        assert history.runs(1, grading) == rows
        assert history._stored("SELECT count(*) FROM regrades", ()) == [(len(rows),)]


def test_what_is_one_document_has_room_for_so_many_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    lower(monkeypatch, forms, "MAX_DOCUMENT_RUNS", 10)
    refused = [form for form in FORMS if forms.why_too_many(form, 11) is not None]
    assert refused == ["json", "html"] and forms.why_too_many("json", 10) is None


def test_a_report_without_room_is_refused_before_the_first_run(
    kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lower(monkeypatch, forms, "MAX_DOCUMENT_RUNS", 1)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    suite, made = tmp_path / "weather.toml", tmp_path / "made.sqlite3"
    suite.write_text(SUITE)
    for words in (
        ["history", "show", "1", "--history", str(kept)],
        ["run", str(suite), "--history", str(made)],
    ):
        assert main([*words, "--format", "json"]) == 2
        out, complaint = capsys.readouterr()
        assert out == "" and "has room for 1 runs" in complaint and "--format records" in complaint
    assert not made.exists()
    assert main(["history", "show", "1", "--history", str(kept), "--format", "records"]) == 0
    assert capsys.readouterr().out.count("\n") == 2 * REPEATS


@pytest.mark.parametrize("by", GRADERS)
def test_figures_by_another_grader_come_from_the_outcome_alone(kept: Path, by: GraderName) -> None:
    with History(kept) as history:
        for run in history.runs(1):
            if run.figures is None:
                continue
            decided = as_graded_by(result_of_row(run, history.recording(run)), by)
            figures = figures_by(run, history.outcome(run), by)
            assert (figures.status, figures.score, figures.reason) == (decided.status, decided.score, decided.reason)
            assert (figures.is_broken, figures.grading) == (decided.is_broken, decided.grading)
            assert figures.latency_ms == run.figures.latency_ms
