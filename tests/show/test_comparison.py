"""A comparison as text, Markdown and JSON: its content and its width, with hostile names."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.analysis.cells import ran
from tests.sampled_rows import first_of
from tests.schemas import fits
from tests.show.markdown import tables
from workbench.analysis.comparison import cells_of
from workbench.analysis.side_by_side import CaseRow, Comparison, compare_cells
from workbench.dataclasses import json_text
from workbench.grading.run_summary import RunSummary
from workbench.grading.status import Status
from workbench.show.doc import Block
from workbench.show.json.comparison import ComparisonReport, comparison_report
from workbench.show.markdown import document
from workbench.show.text import Paint, block_lines
from workbench.show.views.comparison import comparison_view, summary_view
from workbench.show.visible import one_line
from workbench.suite.grading_model import RepeatRule

SCHEMA_FILE = Path(__file__).parents[2] / "docs" / "compare.schema.json"
NAMES = {"weather.toml": "Weather", "home.toml": "Home"}


def side_by_side(*runs: RunSummary) -> Comparison:
    return compare_cells(cells_of(runs), tuple(dict.fromkeys(run.model for run in runs)), NAMES)


def text(*runs: RunSummary, width: int = 100, only_differences: bool = False) -> list[str]:
    return lines_of(comparison_view(side_by_side(*runs), only_differences=only_differences), width)


def lines_of(blocks: Iterable[Block], width: int = 100) -> list[str]:
    return list(block_lines(blocks, width, Paint(False)))


def markdown_of(comparison: Comparison, *, only_differences: bool = False) -> str:
    return document(comparison_view(comparison, only_differences=only_differences))


def row(lines: Sequence[str], title: str) -> list[str]:
    """Return the words after a title, from the first line that begins with it."""
    return next(line for line in lines if line.startswith(title)).removeprefix(title).split()


OSLO = ran(Status.PASSED, model="a"), ran(Status.FAILED, 0.5, model="b")
ROME = ran(Status.PASSED, case="rome", model="a"), ran(Status.PASSED, case="rome", model="b")


def test_each_case_has_a_line_with_sign_score_and_latency_for_each_model() -> None:
    lines = text(*OSLO, *ROME)
    assert row(lines, "case") == ["a", "b"]
    assert row(lines, "oslo") == ["✓", "1.00", "100", "ms", "✗", "0.50", "100", "ms"]


def test_a_case_names_its_suite_where_there_are_several() -> None:
    assert row(text(*OSLO, *(replace(run, suite="home.toml") for run in ROME)), "Home › rome")


def test_where_room_is_short_the_suite_is_cut_and_not_the_case() -> None:
    long = [replace(run, suite="customer-support-assistant-of-tickets.toml") for run in ROME]
    assert row(text(*OSLO, *long, width=40), "customer-support-… › rome") == ["✓", "1.00", "100", "ms"]


def test_repeats_put_the_share_of_good_runs_and_the_spread_into_a_cell() -> None:
    again = ran(Status.FAILED, model="a", repeat=1), ran(Status.FAILED, 0.5, model="b", repeat=1)
    lines = text(*OSLO, *again)
    assert row(lines, "oslo") == ["✗", "1/2", "0.50±0.50", "100", "ms", "✗", "0/2", "0.50", "100", "ms"]
    assert row(lines, "pass@2") == ["100.0%", "0.0%"]
    assert row(lines, "pass^2") == ["0.0%", "0.0%"]


@pytest.mark.parametrize(("rule", "said"), [("last", "last run"), ("majority", "majority")])
def test_the_rule_that_decides_repeats_is_named_everywhere(rule: RepeatRule, said: str) -> None:
    runs = [ran(model=model, repeat=repeat, rule=rule) for model in "ab" for repeat in range(2)]
    compare = side_by_side(*runs)
    assert row(text(*runs), "rule for repeats") == [*said.split(), *said.split()]
    assert [line.startswith(f"rule for repeats: {said}") for line in text(*runs)].count(True) == 1
    assert f"rule for repeats: {said}" in markdown_of(compare)
    report = written(compare)
    assert report["cases"][0]["cells"][0]["repeat_rule"] == rule
    assert report["totals"][0]["repeat_rules"] == [rule]


def test_that_the_last_run_alone_counts_is_said_of_the_cases_that_go_by_it() -> None:
    runs = [
        ran(model=model, case=rule, repeat=repeat, rule=rule)
        for model in "ab"
        for rule in ("last", "majority")
        for repeat in range(2)
    ]
    said = "rule for repeats: last run, majority; of a case by the last run, only the last graded run counts in"
    assert said in " ".join(text(*runs, width=200))
    assert said in markdown_of(side_by_side(*runs))
    assert "; of each case, only the last graded run" in " ".join(text(*runs[:2], *runs[4:6], width=200))
    assert "only the last" not in " ".join(text(*runs[2:4], *runs[6:], width=200))


def test_tries_of_fewer_cases_than_were_graded_say_of_how_many() -> None:
    runs = [ran(Status.FAILED, model=model, repeat=repeat) for model in "ab" for repeat in range(2)]
    more = [ran(model=model, case="rome", repeat=repeat) for model in "ab" for repeat in range(2)]
    lines = text(*runs, *more[:3], replace(more[3], status=Status.ERROR, score=None))
    assert row(lines, "pass@1 = pass^1") == ["50.0%", "50.0%"]
    assert row(lines, "pass@2") == ["50.0%", "0.0%", "of", "1"]
    assert row(lines, "pass^2") == ["50.0%", "0.0%", "of", "1"]
    _, totals = tables(markdown_of(side_by_side(*runs, *more[:3], ran(Status.ERROR, model="b", case="rome", repeat=1))))
    assert ["pass@2", "50.0%", "0.0% of 1"] in totals


@pytest.mark.parametrize(
    ("others", "sign"),
    [
        ((Status.ERROR, Status.STOPPED), "▲"),
        ((Status.STOPPED, Status.SKIPPED), "■"),
        ((Status.SKIPPED,), "-"),
        ((), ""),
    ],
)
def test_a_sign_behind_the_share_of_good_runs_says_what_broke_off_others(others: tuple[Status, ...], sign: str) -> None:
    statuses: tuple[Status, ...] = (Status.PASSED, Status.PASSED, *others)
    runs = [ran(status, repeat=at) for at, status in enumerate(statuses)]
    other = [ran(model="b", repeat=at) for at in range(2)]
    lines = text(*runs, *other)
    assert row(lines, "oslo")[:3] == ["✓", f"2/2{sign}", "1.00"]
    matrix, *_ = tables(markdown_of(side_by_side(*runs, *other)))
    assert matrix[1] == ["oslo", f"✓ 2/2{sign} 1.00 100 ms", "✓ 2/2 1.00 100 ms"]


def test_cells_with_and_without_a_sign_behind_their_share_line_up() -> None:
    runs = [ran(model=model, case=case, repeat=at) for case in ("oslo", "rome") for model in "ab" for at in range(2)]
    lines = text(*runs, ran(Status.STOPPED, repeat=2), ran(Status.ERROR, case="rome", model="b", repeat=2))
    cells = [line for line in lines if line.startswith(("oslo", "rome"))]
    assert len({tuple(at for at, sign in enumerate(line) if sign in "✓±") for line in cells}) == 1


def test_without_repeats_there_are_no_tries() -> None:
    assert not [line for line in text(*OSLO) if "repeats" in line]
    assert not [line for line in text(*OSLO) if line.startswith("pass@")]


def test_a_case_that_did_not_run_with_a_model_leaves_a_gap() -> None:
    lines = text(*OSLO, ROME[1])
    assert row(lines, "rome") == ["✓", "1.00", "100", "ms"]
    assert row(lines, "graded cases") == ["1", "of", "2", "2", "of", "2"]


def test_what_was_not_graded_says_so_and_its_error_is_told_once_for_all_alike() -> None:
    broken = [
        replace(ran(Status.ERROR, case=case, model="b"), reason="no\nroute", asked=False) for case in ("oslo", "rome")
    ]
    lines = text(OSLO[0], ROME[0], *broken)
    assert row(lines, "oslo")[-2:] == ["▲", "error"]
    assert row(lines, "case") == ["a", "b"]
    assert len(lines[0]) == lines[1].index("▲") + 1, "errors take no room for what they have not"
    assert row(lines, "in error") == ["0", "2"]
    assert row(lines, "pass rate") == ["100.0%", "–"]
    assert "  ▲ b, 2 runs: no⏎route" in lines


def test_a_cost_that_is_unknown_is_not_0() -> None:
    unknown = [replace(run, cost_usd=None) for run in (OSLO[1], ROME[1])]
    assert row(text(OSLO[0], ROME[0], *unknown), "cost") == ["$0.5000", "unknown"]
    assert row(text(OSLO[0], ROME[0], OSLO[1], unknown[1]), "cost") == ["$0.5000", "$0.2500", "+", "1", "unknown"]


def test_a_model_that_costs_nothing_says_so() -> None:
    free = [replace(run, cost_usd=0.0) for run in (OSLO[1], ROME[1])]
    assert row(text(OSLO[0], ROME[0], *free), "cost") == ["$0.5000", "$0"]
    assert row(text(OSLO[0], ROME[0], free[0], replace(free[1], cost_usd=None)), "cost") == ["$0.5000", "unknown"]


def test_models_that_do_not_fit_stand_in_further_blocks_with_all_cases() -> None:
    runs = [ran(Status.PASSED, case=case, model=f"model-{number}") for case in ("oslo", "rome") for number in range(5)]
    lines = text(*runs, width=60)
    headings = [line.split() for line in lines if line.startswith("case ")]
    assert headings == [["case", "model-0", "model-1", "model-2"], ["case", "model-3", "model-4"]]
    assert sum(line.startswith("rome") for line in lines) == 2


def test_names_of_cases_are_shortened_until_two_models_stand_in_a_block_and_all_blocks_line_up() -> None:
    cases = ["a" * 84, *(f"case {number}" for number in range(3))]
    runs = [ran(case=case, model=f"m{number}", repeat=at) for case in cases for number in range(3) for at in range(4)]
    for width in (64, 80, 120):
        lines = text(*runs, width=width)
        headings = [line for line in lines if line.startswith("case ") and "✓" not in line]
        assert len(headings[0].split()) >= 3
        assert len({line.index(" m") for line in headings}) == 1


@given(st.integers(40, 160), st.lists(st.text(min_size=1, max_size=40), min_size=2, max_size=4, unique=True))
def test_no_table_is_wider_than_the_terminal(width: int, names: list[str]) -> None:
    runs = [ran(case=case, model=name) for name in names for case in names]
    lines = text(*runs, width=width)
    end = next(place for place, line in enumerate(lines) if line.startswith("cases a minute"))
    assert max(map(cell_len, lines[:end])) <= width


def test_of_a_long_model_name_its_beginning_and_its_end_are_shown() -> None:
    name = "openai:gpt-of-many-words-and-letters-2026-11-01"
    heading = text(ran(model="a"), ran(model=name), width=50)[0]
    assert heading.split()[-1] == "openai:gpt-of-…-11-01"


def test_only_differences_leaves_out_what_came_to_the_same_and_says_how_much() -> None:
    lines = text(*OSLO, *ROME, only_differences=True)
    assert not [line for line in lines if line.startswith("rome")]
    assert "left out: 1 case on which the models agree" in lines
    assert "every case differs" in text(*OSLO, only_differences=True)
    assert row(lines, "graded cases") == ["2", "of", "2", "2", "of", "2"]


def test_the_sentence_stands_over_the_cases_on_which_two_models_differ() -> None:
    lines = text(*OSLO, *ROME)
    place = lines.index("b against a")
    assert lines[place + 1].startswith(
        "  b -50.0 points (95%: -90.5 to +48.6), better on 0, worse on 1 of 2, p = 1: not"
    )
    assert lines[place + 3].startswith("  b scores -0.250 (95%: -1.000 to +1.000) on the mean of 2 cases, p = 1: not")
    assert lines[place + 4 :] == ["  ✓ 1.00 → ✗ 0.50  oslo"]


def test_of_many_discordant_cases_the_first_are_listed_and_the_others_counted() -> None:
    cases = [f"case {number}" for number in range(13)]
    runs = [ran(Status.FAILED, case=case) for case in cases] + [ran(case=case, model="b") for case in cases]
    lines = text(*runs)
    assert sum(" → ✓ " in line for line in lines) == 10
    assert "  … and 3 other cases" in lines


def test_where_nothing_is_over_there_is_nothing_to_compare() -> None:
    lines = lines_of(comparison_view(compare_cells({}, ("a", "b"), {})))
    assert "  nothing to compare: no case was graded with both a and b" in lines


def test_that_there_is_nothing_to_compare_is_said_once() -> None:
    broken = side_by_side(OSLO[0], ran(Status.ERROR, model="b"))
    lines = lines_of(summary_view(broken))
    assert lines[lines.index("b against a") + 1 :] == ["  nothing to compare: no case was graded with both a and b"]
    said = "**b against a**\n\nnothing to compare: no case was graded with both a and b\n"
    assert markdown_of(broken).endswith(said)


def test_an_interrupted_batch_says_how_many_runs_that_stopped_and_which_it_is() -> None:
    runs = [*OSLO, *(ran(Status.STOPPED, case="rome", model=model) for model in "ab")]
    for view in (comparison_view, summary_view):
        assert "interrupted: 2 runs stopped" in lines_of(view(side_by_side(*runs), interrupted=True))
    markdown = document(comparison_view(side_by_side(*runs), interrupted=True))
    assert "\n\ninterrupted: 2 runs stopped\n\n" in markdown
    assert "nterrupted" not in markdown_of(side_by_side(*runs)) + "".join(text(*runs))


class LookedAt(tuple[CaseRow, ...]):
    """Rows that count how many of them were looked at, each time."""

    looked = 0

    def __iter__(self) -> Iterator[CaseRow]:
        for each in super().__iter__():
            self.looked += 1
            yield each


def looked_at(write: Callable[[Comparison], object], cases: int) -> int:
    """Return how many rows a report of `cases` cases on three models reads, in two suites."""
    models, suites = ("a", "b", "c"), tuple(NAMES)
    comparison = side_by_side(
        *(
            replace(
                ran(Status.PASSED if (case + at) % 3 else Status.FAILED, case=str(case), model=model),
                suite=suites[case % 2],
            )
            for case in range(cases)
            for at, model in enumerate(models)
        )
    )
    rows = LookedAt(comparison.rows)
    write(replace(comparison, rows=rows))
    return rows.looked


@pytest.mark.parametrize(
    "write",
    first_of(
        [
            markdown_of,
            lambda comparison: markdown_of(comparison, only_differences=True),
            lambda comparison: lines_of(comparison_view(comparison)),
        ],
        1,
    ),
    ids=["markdown", "markdown of differences", "text"],
)
def test_twice_as_many_cases_are_looked_at_twice_as_often(write: Callable[[Comparison], object]) -> None:
    once = looked_at(write, 40)
    assert 0 < once == looked_at(write, 80) / 2


def test_the_summary_has_no_matrix() -> None:
    lines = lines_of(summary_view(side_by_side(*OSLO)))
    assert not [line for line in lines if line.startswith(("case ", "oslo"))]
    assert row(lines, "pass rate") == ["100.0%", "0.0%"]


# Markdown


def test_markdown_has_the_matrix_the_totals_and_the_sentences() -> None:
    markdown = markdown_of(side_by_side(*OSLO, *ROME))
    matrix, totals = tables(markdown)
    assert matrix == [
        ["case", "a", "b"],
        ["oslo", "✓ 1.00 100 ms", "✗ 0.50 100 ms"],
        ["rome", "✓ 1.00 100 ms", "✓ 1.00 100 ms"],
    ]
    assert ["pass rate", "100.0%", "50.0%"] in totals
    assert "**b against a**\n\nb -50.0 points (95%: " in markdown
    assert "- ✓ 1.00 → ✗ 0.50  oslo" in markdown


@given(name=st.text(st.characters() | st.sampled_from("|`\\*_[](){}<>#~&$!@:/.-+ \n"), min_size=1))
@pytest.mark.parametrize("where", ["case_name", "model"])
def test_whatever_a_name_holds_markdown_shows_it_and_nothing_else(where: str, name: str) -> None:
    run = replace(ran(model="b"), **{where: name})  # type: ignore[arg-type]
    matrix, _ = tables(
        markdown_of(side_by_side(ran(), run)) if where == "model" else markdown_of(side_by_side(run, ran(case="rome")))
    )
    shown = matrix[0][-1] if where == "model" else matrix[1][0]
    assert [len(line) for line in matrix] == [len(matrix[0])] * len(matrix)
    assert shown == one_line(name).strip()


def test_what_github_would_make_a_link_of_in_a_name_is_code() -> None:
    markdown = markdown_of(side_by_side(replace(OSLO[0], case_name="ask @alice"), OSLO[1]))
    assert "| ask `@alice` |" in markdown


# JSON


def written(comparison: Comparison, *, only_differences: bool = False) -> dict[str, Any]:
    report = comparison_report(
        comparison,
        only_differences=only_differences,
        program_version="1.2.3",
        started_at="2026-01-01T00:00:00+00:00",
        interrupted=False,
        exit_code=0,
        batch=None,
    )
    loaded: dict[str, Any] = json.loads(json_text(report.model_dump(mode="json"), indent=2))
    return loaded


def test_the_committed_schema_is_true() -> None:
    schema = json_text(ComparisonReport.model_json_schema(mode="serialization"), indent=2) + "\n"
    if os.environ.get("UPDATE_GOLDENS"):
        SCHEMA_FILE.write_text(schema, encoding="utf-8")
    assert SCHEMA_FILE.read_text(encoding="utf-8") == schema, "run the tests once with UPDATE_GOLDENS=1"


def test_json_says_what_became_of_cases_models_and_pairs() -> None:
    report = written(side_by_side(*OSLO, *ROME))
    fits(report, "compare")
    assert (report["report"], report["version"], report["models"]) == ("workbench compare", 1, ["a", "b"])
    oslo, rome = report["cases"]
    assert (oslo["suite_name"], oslo["differs"], rome["differs"]) == ("Weather", True, False)
    assert [(cell["model"], cell["status"], cell["score"]) for cell in oslo["cells"]] == [
        ("a", "passed", 1.0),
        ("b", "failed", 0.5),
    ]
    assert [total["pass_rate"] for total in report["totals"]] == [1.0, 0.5]
    assert report["totals"][1]["passing"] == [{"k": 1, "cases": 2, "at_least_one": 0.5, "all_of_them": 0.5}]
    (pair,) = report["pairs"]
    assert (pair["first"], pair["second"], pair["better"], pair["worse"]) == ("a", "b", 0, 1)
    assert pair["discordant"] == [
        {"suite": "weather.toml", "case_id": "oslo", "case_name": "oslo", "first": "passed", "second": "failed"}
    ]


def test_json_of_only_differences_leaves_out_cases_and_no_number() -> None:
    report = written(side_by_side(*OSLO, *ROME), only_differences=True)
    assert [case["case_id"] for case in report["cases"]] == ["oslo"]
    assert (report["only_differences"], report["totals"][0]["cases"]) == (True, 2)


@given(st.text(st.characters()), st.sampled_from([float("-inf"), -1e308, None]))
def test_any_name_and_any_score_can_be_written(name: str, score: float | None) -> None:
    report = written(side_by_side(replace(OSLO[0], case_name=name, score=score), OSLO[1]))
    assert report["cases"][0]["case_name"] == name


def test_a_value_that_does_not_rest_on_all_cases_says_on_how_many() -> None:
    """A variant may have run on one case only. Being cheaper for fewer cases puts it on no front."""
    runs = [ran(case="oslo"), ran(Status.FAILED, case="rome"), ran(Status.FAILED, case="bergen")]
    runs = [replace(run, latency_ms=900.0, cost_usd=0.5) for run in runs]
    lines = text(*runs, ran(case="oslo", model="b"), width=200)
    values = {name: found for name, *found in (re.split(r"\s{2,}", line.strip()) for line in lines)}
    assert values["graded cases"] == ["3 of 3", "1 of 3"]
    assert values["pass rate"] == ["33.3%", "100.0% of 1"]
    assert values["mean score"] == ["0.33", "1.00 (1 case)"]
    assert values["latency p50"] == ["900 ms", "100 ms (1 case)"]
    assert values["input tokens"] == ["30", "10 (1 case)"]
    assert values["cost"] == ["$1.50", "$0.2500 (1 case)"]
