"""CSV and JSON lines are read back unchanged, and no cell is a formula."""

from __future__ import annotations

import csv
import json
from io import StringIO
from typing import Any

from hypothesis import given

from tests.show.hostile_texts import HOSTILE, hostile_run, report_on, texts
from tests.tables import each_row
from workbench.config.secrets import Secrets
from workbench.evaluation.report import Report
from workbench.grading.status import Status
from workbench.show.csv_rows import rows_of_runs
from workbench.show.json.report import lines_of_runs
from workbench.show.visible import visible


def rows(report: Report) -> list[dict[str, Any]]:
    return list(csv.DictReader(StringIO("".join(rows_of_runs(report)), newline="")))


@given(texts)
def test_any_text_is_read_back_from_a_table(text: str) -> None:
    run = hostile_run(text)
    (row,) = rows(report_on(run))
    answer = row["answer"]
    assert not answer.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
    shown = visible(run.trajectory.final_answer)
    assert answer in (shown, f"'{shown}")
    assert row["model"] in (visible(run.model), f"'{visible(run.model)}")
    assert (row["status"], row["score"], row["repeat"]) == ("failed", "0.25", "0")


@each_row("text", HOSTILE)
def test_json_lines_are_the_runs_of_the_json_report(text: str) -> None:
    report = report_on(hostile_run(text), hostile_run(text, Status.ERROR))
    pieces = list(lines_of_runs(report))
    assert all(piece.endswith("\n") and piece.count("\n") == 1 for piece in pieces)
    lines = "".join(pieces).encode().splitlines()
    assert [json.loads(line) for line in lines] == json.loads(report.json())["runs"]


def test_a_long_cell_is_cut_where_spreadsheets_cut_it() -> None:
    (row,) = rows(report_on(hostile_run(HOSTILE[-1])))
    assert len(row["answer"]) == 32_767
    assert row["answer"].endswith(" … (cut)")


def test_nothing_secret_is_in_a_table_or_a_line() -> None:
    secrets = Secrets()
    secrets.add("API_KEY", "sk-secret-0815-4711")
    report = report_on(hostile_run("say sk-secret-0815-4711 now"), secrets=secrets)
    for form in ("csv", "records", "junit"):
        written = "".join(report.pieces(form))
        assert "sk-secret" not in written
        assert "$API_KEY" in written
