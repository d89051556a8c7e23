"""A list of batches fits its terminal, and has every important fact of each batch."""

from __future__ import annotations

import csv
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.tables import each_row
from workbench.analysis.trends import is_whole, trends_of
from workbench.grading.status import Status
from workbench.history.records import BatchPart, BatchRow, Kind, MergedShards, SuiteRef
from workbench.show.csv import table_rows
from workbench.show.markdown import document_table
from workbench.show.signs import sparkline
from workbench.show.text import Paint, table_lines
from workbench.show.views.batch_list import batch_table, facts_of, trend_table
from workbench.show.when import ago, local_time, took_s

NOW = datetime(2030, 1, 31, 12, tzinfo=UTC)
PLAIN = Paint(False)


def batch(
    number: int = 1,
    *,
    suite: str = "Weather",
    model: str = "offline",
    passed: int = 3,
    failed: int = 1,
    error: int = 0,
    planned: int = 4,
    cases: int = 4,
    name: str | None = None,
    kind: Kind = "runs",
    ended: bool = True,
    project: str = "/project",
) -> BatchRow:
    counts = dict.fromkeys(Status, 0) | {Status.PASSED: passed, Status.FAILED: failed, Status.ERROR: error}
    ref = SuiteRef(1, project, f"{suite.lower()}.toml", "hash", suite, 4)
    part = BatchPart(ref, model, planned, cases, counts)
    started = (NOW - timedelta(hours=3)).isoformat()
    ended_at = NOW.isoformat() if ended else None
    return BatchRow(number, name, kind, started, ended_at, "1.0", {}, planned, (part,))


def merged_from(*shards: tuple[int, int]) -> BatchRow:
    settings = {"merged": MergedShards("monday", shards).settings}
    return replace(batch(failed=0, ended=False), settings=settings)


TEXTS = st.text(st.sampled_from("aé木🐍\n\x1b "), min_size=1, max_size=60)


@given(
    st.lists(
        st.builds(
            batch,
            number=st.integers(1, 99_999),
            suite=TEXTS,
            model=TEXTS,
            passed=st.integers(0, 99_999),
            error=st.integers(0, 9_999),
            name=st.none() | TEXTS,
            ended=st.booleans(),
            planned=st.integers(4, 200_000),
        ),
        min_size=1,
        max_size=4,
    ),
    st.integers(80, 200),
)
def test_no_line_is_wider_than_the_terminal(batches: list[BatchRow], width: int) -> None:
    lines = [*table_lines(batch_table(facts_of(batches, {1: 2}, {2}), NOW), width, PLAIN)]
    suites = [suite for each in batches for suite in each.suites]
    lines += table_lines(trend_table(suites, trends_of(batches)), width, PLAIN)
    assert [line for line in lines if cell_len(line) > width or not line.isprintable()] == []


@pytest.mark.parametrize(
    ("of", "going", "note"),
    [
        (batch(failed=0), False, "1 of 4 runs missing: stopped"),
        (batch(failed=0, ended=False), False, "1 of 4 runs missing: interrupted"),
        (batch(failed=0, ended=False), True, "running: 3 of 4 runs finished"),
        (
            merged_from((1, 20), (3, 20)),
            False,
            "1 of 4 runs missing: merged from 2 of 20 shards; merge the other shards too",
        ),
        (
            merged_from((1, 1)),
            False,
            "1 of 4 runs missing: merged from 1 of 1 shard; merge its shards again when they are whole",
        ),
    ],
)
def test_what_a_batch_is_beside_its_numbers_has_a_line_of_its_own(of: BatchRow, going: bool, note: str) -> None:
    _, line = table_lines(batch_table(facts_of([of], active_batches={1} if going else ()), NOW), 100, PLAIN)
    assert line.strip() == note


def test_only_whole_batches_of_all_cases_are_a_trend() -> None:
    batches = [
        batch(1),
        batch(2, passed=4, failed=0),
        batch(3, failed=0),
        batch(4, error=1, passed=2),
        batch(5, cases=2, planned=2, passed=1),
        batch(6, kind="fork"),
    ]
    assert trends_of(batches) == {("/project/weather.toml", "offline"): [(1, 0.75), (2, 1.0)]}
    assert not is_whole(batch(passed=0, failed=0, planned=0, cases=4).parts[0])


def test_suites_of_two_projects_at_the_same_path_have_a_trend_each() -> None:
    batches = [batch(1, project="/of/me"), batch(2, project="/of/you", passed=0, failed=4)]
    suites = [suite for each in batches for suite in each.suites]
    lines = table_lines(trend_table(suites, trends_of(batches)), 100, PLAIN)
    assert [line.split()[:3] for line in lines] == [
        ["Weather", "(me/weather.toml)", "offline"],
        ["Weather", "(you/weather.toml)", "offline"],
    ]


def test_only_all_is_as_high_as_it_can_be() -> None:
    assert sparkline([0.0, 0.5, 0.999, 1.0, -1.0]) == "▁▄▇█▁"


@each_row(
    ("before", "said"),
    [
        (timedelta(seconds=-5), "now"),
        (timedelta(seconds=59), "now"),
        (timedelta(minutes=4), "4 min ago"),
        (timedelta(hours=23), "23 h ago"),
        (timedelta(days=1), "1 day ago"),
        (timedelta(days=13), "13 days ago"),
        (timedelta(days=14), ""),
    ],
)
def test_how_long_ago_is_said_where_it_is_short(before: timedelta, said: str) -> None:
    assert ago((NOW - before).isoformat(), NOW) == said


def test_a_time_that_is_none_is_left_as_it_is() -> None:
    assert (local_time("yesterday"), ago("yesterday", NOW), took_s("yesterday", "today")) == ("yesterday", "", None)


def test_the_same_columns_are_in_text_markdown_and_csv() -> None:
    facts = facts_of([batch(12, name="good", failed=0, error=1), batch(2, kind="reruns")], {12: 1}, {2})
    table, began = batch_table(facts, NOW), local_time(facts[0].batch.started_at)
    assert [" ".join(line.split()) for line in table_lines(table, 120, PLAIN)] == [
        f"#12 good {began} 3 h Weather offline (baseline) as it ran ✓3 ▲1 100.0%",
        "regraded 1 time",
        f"#2 {began} 3 h Weather offline (baseline) … 4 of 4 ↻ reruns of #None ✓3 ✗1 75.0%",
        "running: 4 of 4 runs finished",
    ]
    head, _, first, _ = document_table(table).splitlines()
    assert head == "| batch | started | suite | model | state | results | pass rate | note |"
    assert first.split(" | ")[3:] == ["offline (baseline)", "as it ran", "✓3 ▲1", "100.0%", "regraded 1 time |"]
    titles, *rows = csv.reader("".join(table_rows(table)).splitlines())
    named = dict(zip(titles, rows[1], strict=True))
    assert (named["batch"], named["name"], named["pass_rate"], named["failed"]) == ("2", "", "0.75", "1")


@pytest.mark.parametrize(("width", "has"), [(100, "3 h"), (99, "✓3 ✗1"), (63, "75.0%")])
def test_a_column_gives_way_where_there_is_no_room(width: int, has: str) -> None:
    (line,), (narrow,) = (table_lines(batch_table(facts_of([batch()]), NOW), cells, PLAIN) for cells in (width, 63))
    assert has in line and (width == 63) == (has in narrow)
