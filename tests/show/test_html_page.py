"""The report as one HTML file, without a browser: what is in it, and that nothing of a model can be more than text."""

from __future__ import annotations

import json
import re
import sys
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

import pytest

import workbench
from tests.show.html_page import HOSTILE, Page, evaluated, page_of
from workbench.config.secrets import Secrets
from workbench.evaluation.plan import FinishedRun
from workbench.grading.explanation import explain, in_numbers
from workbench.show.html.page import page_pieces
from workbench.show.html.records import PageHead, PageRun
from workbench.show.html.runs import page_of_runs, verdict_of
from workbench.show.json.report import RunReport
from workbench.show.visible import ACTED_ON

_PARTS = {
    part.name: part.read_text(encoding="utf-8")
    for part in files("workbench.show.html").iterdir()
    if part.name.endswith((".js", ".css"))
}
_MORE = set(PageRun.model_fields) - set(RunReport.model_fields)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> workbench.Report:
    return evaluated(tmp_path_factory.mktemp("html"), repeats=2)


@pytest.fixture(scope="module")
def page(report: workbench.Report) -> Page:
    return page_of(report)


def test_its_runs_are_those_of_the_json_report_and_more(report: workbench.Report, page: Page) -> None:
    runs = json.loads(report.json())["runs"]
    assert [{key: value for key, value in run.items() if key not in _MORE} for run in page.records("runs")] == runs
    whole = page.head["report"]
    told = json.loads(report.json())
    assert {**whole, "runs": told["runs"], "cases": told["cases"]} == told


def test_a_run_tells_what_was_asked_and_expected_and_how_it_was_graded(report: workbench.Report, page: Page) -> None:
    run = next(each for each in page.records("runs") if each["case_id"] == "two-zones")
    found = next(each for each in report.results if each.case_id == "two-zones")
    assert run["system"] == "Use the tools."
    assert run["messages"] == [
        {"role": "user", "content": "What time is it in Bergen and in Lima?", "calls": [], "is_error": False}
    ]
    assert run["tools"] == ["get_time"]
    assert [(call["place"], call["tool"], call["arguments"]) for call in run["expectations"]["calls"]] == [
        ("ordered 1", "get_time", [{"argument": "timezone", "check": '"Europe/Oslo"'}]),
        ("ordered 2", "get_time", [{"argument": "timezone", "check": '"America/Lima"'}]),
    ]
    explained = [explain(grade, report.results[0].grading) for grade in found.grades]
    assert [each["formula"] for each in run["explanations"]] == [
        in_numbers(each.formula) if each.formula is not None else None for each in explained
    ]
    assert run["explanations"][0]["system"] == "Arcade evals"
    assert len(run["asked"]) == len(run["rounds"]) == 2
    assert run["asked"][1]["reasoning"] == "so be it"
    assert [run["rounds"][1]["text"], run["answer"]] == [HOSTILE, HOSTILE]  # the lone surrogate too


def test_cases_and_facts_fit_the_runs(page: Page) -> None:
    cases, facts, runs = page.records("cases"), page.records("facts"), page.records("runs")
    models = page.head["models"]
    assert models == ["careful", "hasty <i>"]
    assert [
        (cases[fact["case"]]["case_id"], models[fact["model"]], fact["repeat"], fact["status"], fact["score"])
        for fact in facts
    ] == [(run["case_id"], run["model"], run["repeat"], run["status"], run["score"]) for run in runs]
    assert [case["tags"] for case in cases] == [["time"], ["time", "two"], []]
    assert [[(cell["good"], cell["graded"]) for cell in case["cells"]] for case in cases] == [[(2, 2), (0, 2)]] * 3
    assert all(fact["causes"] for fact in facts if fact["status"] == "failed")
    assert [total["interval"] is not None for total in page.head["totals"]] == [True, True]
    assert page.head["pairs"][0]["sentence"]


def test_nothing_of_a_suite_or_a_model_is_markup(page: Page) -> None:
    names = [name for name, _ in page.elements]
    page_of_script = {"html", "head", "meta", "title", "style", "body", "noscript", "main", "h1", "p", "script"}
    drawn = {"section", "figure", "figcaption", "strong", "small", "svg", "line", "text", "path", "g", "circle"}
    assert set(names) == page_of_script | drawn
    assert [attributes.get("name") for attributes, _ in page.of("meta")] == [
        *(None, None, "viewport", "color-scheme", "referrer", "generator")
    ]
    assert all(set(attributes) <= {"type", "data-kind", "data-first"} for attributes, _ in page.of("script"))
    assert "Clock </script><b>" in "".join(inside for _, inside in page.of("title"))
    outside = re.sub(r"<(script|style)\b.*?</\1>", "", page.text, flags=re.DOTALL)
    assert "alert(1)" not in outside
    assert not ACTED_ON.search(outside)
    for attributes, inside in page.of("script"):
        assert attributes.get("data-kind") is None or re.fullmatch(r"[A-Za-z0-9+/]+={0,2}", inside)


def test_its_policy_lets_only_its_own_script_and_style_work(page: Page) -> None:
    def hashed(text: str) -> str:
        return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"

    (policy,) = (each["content"] for each, _ in page.of("meta") if each.get("http-equiv"))
    (style,) = (inside for _, inside in page.of("style"))
    (script,) = (inside for attributes, inside in page.of("script") if "data-kind" not in attributes)
    assert policy == (
        f"default-src 'none'; script-src {hashed(script)}; style-src {hashed(style)}; img-src data:;"
        " base-uri 'none'; form-action 'none'"
    )
    # It stands before everything that it is about.
    assert page.text.index("Content-Security-Policy") < page.text.index("<style")


def test_its_script_makes_no_markup_of_text_and_asks_nobody() -> None:
    code = re.sub(r"^\s*//.*$", "", "".join(_PARTS.values()), flags=re.MULTILINE)
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|\bFunction\(|createContextualFragment"
    assert re.findall(forbidden, code) == []
    assert (
        re.findall(r"\bfetch\b|XMLHttpRequest|WebSocket|\bimport\b|@import|url\(|srcdoc|\bhref\b|localStorage", code)
        == []
    )
    assert re.findall(r"https?://[^\"]*", code) == ["http://www.w3.org/2000/svg"]
    assert "</script" not in code
    assert "</style" not in code


def test_the_script_shows_the_same_characters_as_everything_else() -> None:
    (pattern,) = re.findall(r"const ACTED_ON =\s*/(\[.*\])/gu;", _PARTS["base.js"])
    theirs = re.compile(re.sub(r"\\u\{(\w+)\}", lambda match: f"\\U{match[1]:0>8}", pattern))
    for code in range(sys.maxunicode + 1):
        assert bool(theirs.match(chr(code))) == bool(ACTED_ON.match(chr(code))), hex(code)


def test_secrets_are_in_no_part_of_it(report: workbench.Report) -> None:
    told = json.dumps(page_of(report).data)
    secrets = Secrets()
    secrets.add("ZONE_KEY", "America/Lima")  # in a check, in arguments, in results
    secrets.add("MARS_KEY", "Mars/</script>")  # in reasons too
    redacted = json.dumps(page_of(replace(report, secrets=secrets)).data)
    for value, name in (("America/Lima", "$ZONE_KEY"), ("Mars/</script>", "$MARS_KEY")):
        assert (value in told, value in redacted, name in redacted) == (True, False, True)


def test_runs_are_written_one_after_the_other_in_blocks(report: workbench.Report) -> None:
    runs = [
        replace(run, result=replace(run.result, run_id=f"{at}-{run.result.run_id}"))
        for at in range(30)
        for run in report.runs
    ]
    many = replace(report, runs=tuple(runs))
    blocks = page_of(many).data["runs"]
    sizes = [len(block) for _, block in blocks]
    assert [first for first, _ in blocks] == [sum(sizes[:at]) for at in range(len(sizes))]
    assert sum(sizes) == len(runs) == 360
    assert len(sizes) >= 4

    taken = 0

    def counting() -> Iterator[object]:
        nonlocal taken
        for run in many.shown_runs():
            taken += 1
            yield run

    head = PageHead.model_validate(page_of(report).head)
    pieces = page_pieces(head, (), (), counting(), many.secrets)  # type: ignore[arg-type]
    for piece in pieces:
        if f'data-kind="runs" data-first="{sizes[0]}"' in piece:
            break
    assert sizes[0] <= taken <= sizes[0] + 2 < len(runs)


def test_a_long_run_ends_its_block(report: workbench.Report) -> None:
    first, *rest = report.runs
    long = replace(first.result, error="x" * (1 << 20))
    blocks = page_of(replace(report, runs=(replace(first, result=long), *rest))).data["runs"]
    assert [(first, len(block)) for first, block in blocks] == [(0, 1), (1, len(rest))]


def test_forks_count_for_nothing_and_are_there(report: workbench.Report) -> None:
    from workbench.trajectory.events import Forked

    first = report.runs[0]
    fork = replace(first.result.trajectory, fork=Forked(first.result.run_id, "careful", 1, None))
    forked = FinishedRun(len(report.runs), first.case, replace(first.result, run_id="fork", trajectory=fork))
    page = page_of(replace(report, runs=(forked, *report.runs)))
    assert [fact["fork"] for fact in page.records("facts")] == [True] + [False] * len(report.runs)
    assert page.records("cases") == page_of(report).records("cases")
    failed = {number for number, fact in enumerate(page.records("facts")) if fact["status"] == "failed"}
    assert {number for cause in page.head["report"]["failures"]["causes"] for number in cause["runs"]} == failed
    only = page_of(replace(report, runs=(forked,)))
    assert [cell["statuses"] for cell in only.records("cases")[0]["cells"]] == [["passed"]]


def test_a_run_whose_case_is_no_longer_known_is_shown(report: workbench.Report) -> None:
    page = page_of(replace(report, runs=tuple(replace(run, case=None) for run in report.runs)))
    assert page.records("runs")[0]["expectations"] == {
        "calls": [],
        "disallowed": [],
        "no_calls": False,
        "others": "",
        "answer": [],
    }


def test_a_report_without_runs_is_a_page(report: workbench.Report) -> None:
    page = page_of(replace(report, runs=()))
    assert (page.records("runs"), page.records("cases")) == ([], [])
    assert page.head["report"]["totals"]["runs"] == 0


def test_the_verdict_says_first_what_is_wrong(report: workbench.Report) -> None:
    assert verdict_of(report).text == "3 of 6 cases failed"
    assert verdict_of(report).details == ("6 of 12 graded runs passed or were warned",)
    assert verdict_of(replace(report, interrupted=True)).text == "Not all runs finished; 3 of 6 cases failed"
    assert verdict_of(replace(report, min_score=0.9)).text == "1 of 2 gates missed"
    good = replace(report, runs=tuple(run for run in report.runs if run.result.model == "careful"))
    assert verdict_of(good) == verdict_of(good).model_copy(update={"good": True, "text": "Everything passed"})
    better = replace(report, min_score=0.0)
    assert (verdict_of(better).good, verdict_of(better).text) == (True, "Good enough")


def test_the_api_writes_it(report: workbench.Report, tmp_path: Path) -> None:
    report.write(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == "".join(page_of_runs(report))
    report.write(tmp_path / "page", form="html")
    assert (tmp_path / "page").read_bytes() == (tmp_path / "report.html").read_bytes()
