"""The table for plugin directories: the kinds of prompts, and that no text in it is active."""

from __future__ import annotations

import csv
import json

import pytest
from hypothesis import given
from markdown_it import MarkdownIt

from tests.grading.cases import call, case_of
from tests.show.hostile_texts import HOSTILE, hostile_run, report_on, texts
from tests.show.markdown import tables
from tests.show.test_runs_markdown import LIVE, OURS, Reader
from tests.tables import each_row
from workbench.config.secrets import Secrets
from workbench.evaluation.report import Report
from workbench.grading.status import Status
from workbench.show.views.submission import (
    json_of_submission,
    kind_of,
    markdown_of_submission,
    rows_of_submission,
    what_is_missing,
)
from workbench.suite.model import Case

CALLS = case_of(call("look"))
NONE = case_of(expect_no_calls=True)


def hostile_report(text: str) -> Report:
    case = Case.model_validate({"name": text or "case", "user": text, "ordered": [{"tool": text or "tool"}]})
    runs = [hostile_run(text), hostile_run(text, Status.ERROR)]
    return report_on(*runs, cases={run.case_id: case for run in runs}, names=[text or "Suite"])


def read(text: str) -> list[list[str]]:
    """The rows of the table on a hostile report, of which nothing is live."""
    written = "".join(markdown_of_submission(hostile_report(text)))
    reader = Reader()
    reader.feed(MarkdownIt("commonmark").enable("table").render(written))
    reader.close()
    assert reader.tags <= {*OURS, "h1"}
    assert not [each for each in reader.looked_at if LIVE.search(each)]
    assert "\x1b" not in written and "\u202e" not in written
    return [row for table in tables(written) for row in table[1:]]


@given(texts)
def test_no_text_has_an_effect(text: str) -> None:
    rows = read(text.encode(errors="replace").decode())
    assert {len(row) for row in rows} == {6}
    assert {row[2] for row in rows} == {"must call"}


@each_row("text", HOSTILE)
def test_no_text_that_we_know_of_has_an_effect(text: str) -> None:
    text = text.encode(errors="replace").decode()
    assert read(text)
    rows = list(csv.DictReader("".join(rows_of_submission(hostile_report(text))).splitlines()))
    assert not [cell for row in rows for cell in row.values() if cell.startswith(("=", "+", "-", "@"))]
    prompts = json.loads("".join(json_of_submission(hostile_report(text))))["prompts"]
    assert {prompt["prompt"] for prompt in prompts} == {text}


def test_no_form_holds_a_secret() -> None:
    secrets = Secrets()
    secrets.add("PLANTED_KEY", "sk-planted-4711")
    run = hostile_run("sk-planted-4711")
    case = case_of(call("look"), user="with sk-planted-4711")
    report = report_on(run, cases={run.case_id: case}, names=["sk-planted-4711"], secrets=secrets)
    for write in (markdown_of_submission, json_of_submission, rows_of_submission):
        written = "".join(write(report))
        assert "sk-planted" not in written
        assert "$PLANTED_KEY" in written.replace("\\", "")


@each_row(
    ("case", "kind"),
    [
        (CALLS, "must call"),
        (case_of(unordered=[call("look")]), "must call"),
        (case_of(user=None, steps=[{"user": "a"}, {"user": "b", "tool": "look"}]), "must call"),
        (NONE, "must not call"),
        (case_of(user=None, steps=[{"user": "a"}, {"user": "b"}]), "must not call"),
        (case_of(disallowed=[call("look")]), "other"),
        (case_of(response_contains=["x"]), "other"),
        (case_of(call("look"), skip="later"), "other"),
        (case_of(expect_nothing_yet=True), "other"),
        (case_of(user=None, steps=[{"user": "a"}], expect_nothing_yet=True), "other"),
    ],
)
def test_a_case_is_of_one_kind(case: Case, kind: str) -> None:
    assert kind_of(case) == kind


@pytest.mark.parametrize(("calls", "none", "is_missing"), [(5, 3, False), (9, 3, False), (4, 9, True), (9, 2, True)])
def test_five_and_three_are_enough(calls: int, none: int, is_missing: bool) -> None:
    assert (what_is_missing([*[CALLS] * calls, *[NONE] * none]) is not None) == is_missing
