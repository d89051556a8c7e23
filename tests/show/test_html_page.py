"""The HTML report without a browser: its content, and that a model's text never becomes markup."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

import pytest

import workbench
from tests.show.html_page import HOSTILE, Page, elements_of, evaluated, page_of
from workbench.analysis.comparison import Cell, cells_of
from workbench.analysis.side_by_side import Comparison, compare_cells
from workbench.config.secrets import Secrets
from workbench.evaluation.plan import FinishedRun
from workbench.grading.explanation import explain, formula_in_numbers
from workbench.grading.run_summary import summary_of
from workbench.show.html.records import cases_of
from workbench.show.html.runs import page_of_runs
from workbench.show.views.verdict import verdict_of
from workbench.show.visible import ACTED_ON, visible

_PARTS = {
    part.name: part.read_text(encoding="utf-8")
    for part in files("workbench.show.html").iterdir()
    if part.name.endswith((".js", ".css"))
}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> workbench.Report:
    return evaluated(tmp_path_factory.mktemp("html"), repeats=2)


@pytest.fixture(scope="module")
def page(report: workbench.Report) -> Page:
    return page_of(report)


def test_its_runs_say_what_those_of_the_json_report_have(report: workbench.Report, page: Page) -> None:
    for run, said in zip(json.loads(report.json())["runs"], page.runs, strict=True):
        calls = [call for each in run["rounds"] for call in each["calls"]]
        texts = [run["answer"], *(call["tool"] for call in calls), *(call["result"] for call in calls)]
        texts += [json.dumps(value) for call in calls for value in call["arguments"].values()]
        texts += [grade["reason"] for grade in run["grades"]]
        assert [text for text in texts if visible(text) not in said] == []


def test_a_run_tells_what_was_asked_and_expected_and_how_it_was_graded(report: workbench.Report, page: Page) -> None:
    at, found = next((at, each) for at, each in enumerate(report.results) if each.case_id == "two-zones")
    run = page.records("runs")[at]["view"]
    assert elements_of(run, "system") == ["system promptUse the tools."]
    assert elements_of(run, "user") == ["userWhat time is it in Bergen and in Lima?"]
    assert elements_of(run, "expected")[1:] == [
        'get_timeordered 1timezone"Europe/Oslo"',
        'get_timeordered 2timezone"America/Lima"',
    ]
    explained = [explain(grade, report.results[0].grading) for grade in found.grades]
    formulas = elements_of(run, "formula")
    assert len(formulas) == len(explained) == 5
    for each, said in zip(explained, formulas, strict=True):
        assert said.startswith(each.rule) and said.endswith(f"as {each.system} grades")
        assert each.formula is None or formula_in_numbers(each.formula) in said
    assert elements_of(run, "reasoning") == ["reasoningso be it"]
    assert visible(HOSTILE) in elements_of(run, "model")[1]  # the lone surrogate too


def test_cases_and_facts_fit_the_runs(report: workbench.Report, page: Page) -> None:
    cases, facts, runs = page.records("cases"), page.records("facts"), page.records("runs")
    models = page.head["models"]
    assert models == ["careful", "hasty <i>"]
    assert len(runs) == len(facts)
    assert [
        (cases[fact["case"]]["case_id"], models[fact["model"]], fact["name"], fact["status"]) for fact in facts
    ] == [(run.case_id, run.model, f"#{run.repeat + 1}", run.status) for run in report.results]
    assert [case["tags"] for case in cases] == [["time"], ["time", "two"], []]
    seen = [[f"{cell['sign']} {cell['share']}" for cell in case["cells"]] for case in cases]
    assert seen == [["✓ 2/2", "✗ 0/2"]] * 3
    assert cases[0]["cells"][1]["label"] == "0/2 0.50, hasty <i>: failed, 0 of 2 runs, score 0.50, the graders disagree"
    assert all(fact["causes"] for fact in facts if fact["status"] == "failed")
    assert all(sentence in page.said for sentence in ("95% interval36.8% to 100.0%", "hasty <i> -100.0 points"))


def test_its_rows_do_not_look_at_all_cells_again(report: workbench.Report, monkeypatch: pytest.MonkeyPatch) -> None:
    """With twenty thousand cases, this would take minutes."""
    summaries = [*map(summary_of, report.results)]
    comparison = compare_cells(cells_of(summaries), [each.model for each in summaries], report.suite_names)
    looks: list[Comparison] = []
    cells = Comparison.cells.fget  # type: ignore[attr-defined]

    def looked_at(of: Comparison) -> Iterator[Cell]:
        looks.append(of)
        yield from cells(of)

    monkeypatch.setattr(Comparison, "cells", property(looked_at))
    assert len(list(cases_of(comparison, report.results, {}))) == len(comparison.rows) > 1
    assert len(looks) <= 1


def test_nothing_of_a_suite_or_a_model_is_markup(page: Page) -> None:
    names = [name for name, _ in page.elements]
    whole = {"html", "head", "meta", "title", "style", "body", "noscript", "main", "header", "footer", "script"}
    said = {"section", "div", "h1", "h2", "h3", "p", "span", "strong", "small", "a", "ul", "ol", "li", "dl", "dt", "dd"}
    tables = {"table", "thead", "tbody", "tr", "th", "td", "details", "summary"}
    drawn = {"figure", "figcaption", "svg", "line", "text", "path", "g", "circle", "rect"}
    assert set(names) == whole | said | tables | drawn
    assert all((each["href"] or "").startswith("#") for each, _ in page.of("a"))
    assert [attributes.get("name") for attributes, _ in page.of("meta")] == [
        *(None, None, "viewport", "color-scheme", "referrer", "generator")
    ]
    assert all(set(attributes) <= {"type", "data-kind", "data-first"} for attributes, _ in page.of("script"))
    assert "Clock </script><b>" in "".join(inside for _, inside in page.of("title"))
    outside = re.sub(r"<(script|style)\b.*?</\1>", "", page.text, flags=re.DOTALL)
    assert "&lt;img src=x onerror=alert(1)&gt;" in outside  # the name of a case that is told of
    assert "<img" not in outside and "<i>" not in outside
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
    # It precedes everything that it affects.
    assert page.text.index("Content-Security-Policy") < page.text.index("<style")


def test_its_script_makes_no_markup_of_text_and_asks_nobody() -> None:
    code = re.sub(r"^\s*//.*$", "", "".join(_PARTS.values()), flags=re.MULTILINE)
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|\bFunction\(|createContextualFragment"
    assert re.findall(forbidden, code) == []
    assert (
        re.findall(r"\bfetch\b|XMLHttpRequest|WebSocket|\bimport\b|@import|url\(|srcdoc|\bhref\b|localStorage", code)
        == []
    )
    assert re.findall(r"https?://[^\"]*", code) == []
    assert "</script" not in code
    assert "</style" not in code


def test_every_character_of_its_data_is_visible(page: Page) -> None:
    assert not ACTED_ON.search(json.dumps(page.data, ensure_ascii=False))


def test_secrets_are_in_no_part_of_it(report: workbench.Report) -> None:
    secrets = Secrets()
    secrets.add("ZONE_KEY", "America/Lima")  # in a check, in arguments, in results
    secrets.add("MARS_KEY", "Mars/</script>")  # in reasons too
    secrets.add("MODEL_KEY", "hasty <i>")  # in the overview too
    pages = page_of(report), page_of(replace(report, secrets=secrets))
    told, redacted = (json.dumps(page.data) + page.said for page in pages)
    for value, name in (("America/Lima", "$ZONE_KEY"), ("Mars/</script>", "$MARS_KEY"), ("hasty <i>", "$MODEL_KEY")):
        assert (value in told, value in redacted, name in redacted) == (True, False, True)


@pytest.mark.slow
def test_runs_are_written_one_after_the_other_in_blocks(
    report: workbench.Report, monkeypatch: pytest.MonkeyPatch
) -> None:
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

    shown = many.shown_runs()

    def counting() -> Iterator[object]:
        nonlocal taken
        for run in shown:
            taken += 1
            yield run

    monkeypatch.setattr(type(many), "shown_runs", lambda report: counting())
    for piece in page_of_runs(many):
        if f'data-kind="runs" data-first="{sizes[0]}"' in piece:
            break
    assert taken == sizes[0] + sizes[1] < len(runs), "no more than the block that is written"


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
    assert [fact["name"] == "↳ fork" for fact in page.records("facts")] == [True] + [False] * len(report.runs)
    assert page.records("cases") == page_of(report).records("cases")
    assert all(bool(fact["causes"]) is (fact["status"] == "failed") for fact in page.records("facts"))
    only = page_of(replace(report, runs=(forked,)))
    assert [cell["status"] for cell in only.records("cases")[0]["cells"]] == ["passed"]


def test_a_run_whose_case_is_no_longer_known_is_shown(report: workbench.Report) -> None:
    page = page_of(replace(report, runs=tuple(replace(run, case=None) for run in report.runs)))
    assert "Expects nothing" in page.runs[0]


def test_a_report_without_runs_is_a_page(report: workbench.Report) -> None:
    page = page_of(replace(report, runs=()))
    assert (page.records("runs"), page.records("cases")) == ([], [])
    assert "runs0pass rate–" in page.said


def test_the_verdict_says_first_what_is_wrong(report: workbench.Report) -> None:
    assert verdict_of(report).text == "3 of 6 cases failed"
    assert verdict_of(report).details == ("6 of 12 graded runs passed or warned",)
    assert verdict_of(replace(report, interrupted=True)).text == "Not all runs finished; 3 of 6 cases failed"
    assert verdict_of(replace(report, min_score=0.9)).text == "1 of 2 gates missed"
    good = replace(report, runs=tuple(run for run in report.runs if run.result.model == "careful"))
    assert verdict_of(good) == verdict_of(good)._replace(good=True, text="Everything passed")
    better = replace(report, min_score=0.0)
    assert (verdict_of(better).good, verdict_of(better).text) == (True, "Good enough")


def test_the_api_writes_it(report: workbench.Report, tmp_path: Path) -> None:
    report.write(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == "".join(page_of_runs(report))
    report.write(tmp_path / "page", form="html")
    assert (tmp_path / "page").read_bytes() == (tmp_path / "report.html").read_bytes()
