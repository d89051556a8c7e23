"""The report for a pull request: its content, its length, and that no text in it is active."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from markdown_it import MarkdownIt

from tests.grading.cases import call, case_of
from tests.results import result
from tests.show.hostile_texts import HOSTILE, hostile_run, report_on, texts
from tests.show.markdown import tables
from tests.tables import each_row
from workbench.config.secrets import Secrets
from workbench.evaluation.report import Report
from workbench.grading.status import Status
from workbench.show.views.batch_markdown import COMMENT_MAX, SUMMARY_MAX, markdown_pieces

OURS = {
    *("h2", "h3", "p", "ul", "li", "table", "thead", "tbody", "tr", "th", "td", "strong"),
    *("code", "pre", "details", "summary"),
}
LIVE = re.compile(r"@\w|://|www\.|#\d|\bGH-\d|:[\w+-]+:")


class Reader(HTMLParser):
    """The elements of a rendered report, and the texts that GitHub searches for mentions and links."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.looked_at: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        assert not attrs
        self.tags.add(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"code", "pre"} & set(self.open):
            self.looked_at.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)


def read(report: Report, most: int = COMMENT_MAX) -> str:
    """The report, of which nothing is live."""
    text = "".join(markdown_pieces(report, most))
    assert len(text.encode()) <= most
    reader = Reader()
    reader.feed(MarkdownIt("commonmark").enable("table").render(text))
    reader.close()
    assert reader.open == []
    assert reader.tags <= OURS
    assert not [each for each in reader.looked_at if LIVE.search(each)]
    assert "\x1b" not in text and "\u202e" not in text
    return text


@given(texts)
def test_no_text_has_an_effect(text: str) -> None:
    read(report_on(hostile_run(text), hostile_run(text, Status.ERROR), names=[text or "Suite"]))


@each_row("text", HOSTILE)
def test_no_text_that_we_know_of_has_an_effect(text: str) -> None:
    read(report_on(hostile_run(text), hostile_run(text, Status.PASSED), names=[text or "Suite"]))


def test_the_verdict_is_first_and_a_failure_says_what_was_expected_and_made() -> None:
    case = case_of(call("get_weather", {"city": "Rome"}))
    failed = hostile_run("Oslo", case="wrong")
    report = report_on(result(Status.PASSED, 1.0), failed, cases={"wrong": case}, lines={"wrong": 7})
    text = read(report)
    assert text.startswith("## ✗ Not everything passed\n\n1 of 2 cases passed")
    (models, causes, cases) = tables(text)
    assert causes[1][0] == "wrong argument"
    assert models[1][:4] == ["offline", "1", "0", "100.0%"]
    assert [row[0] for row in cases[1:]] == ["✓", "✗"]
    assert "<details><summary>✗ 0.25 <code>Wrong</code>" in text
    assert "`suite.toml:7`" in text
    assert 'Expected:\n\n```\nget_weather(city: "Rome")\n```' in text
    assert 'Actual:\n\n```\nOslo(Oslo=["Oslo"])\n```' in text


def test_what_passed_is_told_in_one_word() -> None:
    text = read(report_on(result(Status.PASSED, 1.0)))
    assert text.startswith("## ✓ Everything passed")
    assert "did not pass" not in text


@pytest.mark.slow
def test_a_report_is_cut_where_github_cuts_it_and_says_so() -> None:
    runs = [hostile_run("no \u00fc " * 40, case=f"case-{number}") for number in range(2_000)]
    report = report_on(*runs)
    for most in (COMMENT_MAX, SUMMARY_MAX):
        text = read(report, most)
        assert len(text.encode()) > most * 0.9
        assert re.search(r"\*\*[\d,]+ of them are left out\*\*: the report is cut at", text)
    passed = [replace(result(Status.PASSED, 1.0, case=f"case-{number}"), case_name="x" * 90) for number in range(2_000)]
    assert re.search(r"[\d,]+ more cases are left out", read(report_on(*passed)))


def test_nothing_secret_is_in_it() -> None:
    secrets = Secrets()
    secrets.add("API_KEY", "sk-secret-0815-4711")
    report = report_on(hostile_run("say sk-secret-0815-4711 now"), names=["sk-secret-0815-4711"], secrets=secrets)
    assert "sk-secret" not in read(report)
