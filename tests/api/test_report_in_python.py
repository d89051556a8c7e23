"""A report in a program of its user: on one line, in a notebook, as rows, pickled and copied."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path

import pytest

import workbench

SECRET = "planted-report-0815"


@pytest.fixture
def report(folder: Path, monkeypatch: pytest.MonkeyPatch) -> workbench.Report:
    """One case passed, one failed; the agent repeats a secret and writes HTML."""
    monkeypatch.setenv("REPORT_TOKEN", SECRET)

    async def agent(request: workbench.AgentRequest) -> workbench.AgentReply:
        if request.round > 1 or "time" not in request.prompt:
            return f"<script>alert('{SECRET}')</script>"
        return workbench.call("get_time", timezone=f"<b>{SECRET}</b>")

    found = workbench.evaluate("clock.toml", model=workbench.Agent(agent, "<i>v2</i>"))
    assert SECRET in found.results[0].trajectory.final_answer
    return found


def test_a_report_and_its_parts_have_one_line_each(report: workbench.Report) -> None:
    assert repr(report) == "Report(✗ 1 of 2 cases failed · 2 runs: 1 passed, 1 failed · mean score 0.75)"
    assert repr(report.cases) == "CaseResults(2 cases: 1 passed, 1 failed)"
    assert repr(report.results[1]) == "RunResult('small-talk', model='<i>v2</i>', status='passed', score=1.0)"
    assert repr(report.cases[1]).startswith("CaseResult('small-talk', model='<i>v2</i>', 1 run, status='passed'")


def test_a_notebook_shows_the_verdict_and_the_runs_without_secrets_and_without_markup_of_the_model(
    report: workbench.Report,
) -> None:
    shown = report._repr_html_()
    for text in (
        "✗ 1 of 2 cases failed",
        "Clock › Time in Bergen",
        "&lt;i&gt;v2&lt;/i&gt;",
        "wrong argument",
        "2 runs",
    ):
        assert text in shown
    for text in (SECRET, "<script", "<b>", "<i>"):
        assert text not in shown
    assert len(shown) < 3_000
    many = workbench.evaluate("clock.toml", model="offline", repeats=26)
    assert "and 2 other runs, which report.rows() has" in many._repr_html_()


def test_rows_have_the_columns_of_csv_and_become_a_data_frame(
    report: workbench.Report, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = report.rows()
    assert [(row["case_id"], row["status"], row["score"]) for row in rows] == [
        ("time-in-bergen", "failed", 0.5),
        ("small-talk", "passed", 1.0),
    ]
    report.write("report.csv")
    assert ",".join(rows[0]) == (folder / "report.csv").read_text().splitlines()[0]
    assert SECRET not in json.dumps(rows)
    with pytest.raises(ImportError, match=r"install one of them, or use report\.rows\(\)"):
        report.to_dataframe()
    # A module with the constructor that both large libraries have takes their place.
    monkeypatch.syspath_prepend(str(folder))
    (folder / "polars.py").write_text("def DataFrame(rows, infer_schema_length): return ('polars', rows)\n")
    assert report.to_dataframe() == ("polars", rows)
    (folder / "pandas.py").write_text("def DataFrame(rows): return ('pandas', rows)\n")
    assert report.to_dataframe() == ("pandas", rows)


def test_a_copy_is_equal_and_a_pickle_has_all_but_the_secrets(report: workbench.Report) -> None:
    copied = copy.deepcopy(report)
    assert copied == report and copied.text() == report.text()
    assert copied.results[0] is not report.results[0]
    assert copy.copy(report) == report
    pickled = pickle.dumps(report)
    assert SECRET.encode() not in pickled
    again = pickle.loads(pickled)
    assert (again.text(), again.json()) == (report.text(), report.json())
    assert again.cases["small-talk"].passed
    assert pickle.loads(pickle.dumps(report.results[0])) == report.results[0]


def test_a_report_of_a_recorded_batch_is_pickled_as_well(folder: Path) -> None:
    report = workbench.evaluate("clock.toml", model="offline", history="batches.sqlite3", baseline=None)
    report = workbench.evaluate("clock.toml", model="offline", history="batches.sqlite3", baseline=1)
    assert pickle.loads(pickle.dumps(report)).text() == report.text() == copy.deepcopy(report).text()
