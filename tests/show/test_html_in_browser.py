"""The HTML report in a real browser, opened from a file."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import workbench
from tests.show.browser import CHROMIUM, Browser
from tests.show.html_page import evaluated
from workbench.evaluation.plan import FinishedRun
from workbench.grading.status import Status

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine to open the report in")

CELLS = "[...document.querySelectorAll('button.cell')]"
TITLES = "[...document.querySelectorAll('.matrix .title')].map((each) => each.textContent)"
OPENS_WITHIN_S = 1.0


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> workbench.Report:
    return evaluated(tmp_path_factory.mktemp("suite"), repeats=2)


@pytest.fixture(scope="module")
def address(report: workbench.Report, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "report.html"
    report.write(path)
    return path.as_uri()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


def unfold(browser: Browser, number: int) -> str:
    """Unfold a cell, and return the text of its run."""
    browser.run(f"{CELLS}[{number}].click()")
    return str(browser.until("document.querySelector('.unfold .run')?.textContent"))


def change(browser: Browser, control: str, event: str, assignment: str) -> None:
    """Change a control as a person would."""
    browser.run(f"document.querySelector('{control}').{assignment}")
    browser.run(f"document.querySelector('{control}').dispatchEvent(new Event('{event}'))")


def test_it_asks_nobody_and_breaks_no_rule_of_its_own(browser: Browser, address: str) -> None:
    browser.open(address)
    for number in range(6):
        unfold(browser, number)
    asked = [each["request"]["url"] for each in browser.told("Network.requestWillBeSent")]
    assert asked == [address]
    assert browser.told("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled") == []


def test_the_verdict_comes_first_and_every_model_has_its_totals(browser: Browser, address: str) -> None:
    browser.open(address)
    assert browser.run("document.querySelector('h1').textContent") == "✗3 of 6 cases failed"
    assert browser.run("[...document.querySelectorAll('.totals thead th')].map((each) => each.textContent)") == [
        *("totals", "careful", "hasty <i>")
    ]
    browser.until("document.querySelectorAll('.chart svg[role=img]').length === 3")
    labels = browser.run("[...document.querySelectorAll('.chart svg')].map((each) => each.getAttribute('aria-label'))")
    assert labels[0] == "Pass rates: careful 100.0%, hasty <i> 0.0%"


def test_the_matrix_is_filtered_and_the_address_knows_it(browser: Browser, address: str) -> None:
    browser.open(address)
    assert browser.run(TITLES) == ["Time in Bergen", "Two zones", "Small talk <img src=x onerror=alert(1)>"]
    change(browser, "#filter-text", "input", "value = 'zones'")
    browser.until(f"{TITLES}.length === 1")
    assert browser.run("location.hash") == "#text=zones"
    assert browser.run("document.querySelector('.count').textContent") == "1 of 3 cases show all"
    browser.run("document.querySelector('.count button').click()")
    assert len(browser.run(TITLES)) == 3
    browser.run("document.querySelector('.cause').click()")
    assert browser.run("location.hash").startswith("#cause=")
    browser.until(f"{TITLES}.length < 3")
    browser.open(f"{address}#text=zones&status=failed")
    assert browser.run(TITLES) == ["Two zones"]
    assert browser.run("document.querySelector('.toggle.failed').getAttribute('aria-pressed')") == "true"
    browser.open(f"{address}#status=warned")
    assert browser.run(TITLES) == []


def test_a_run_unfolds_with_a_verdict_at_each_argument(browser: Browser, address: str) -> None:
    browser.open(address)
    text = unfold(browser, 3)  # two zones, the hasty one
    assert "What time is it in Bergen and in Lima?" in text
    assert 'timezone required"Mars/</script>""Europe/Oslo"not equal · 0 of 1' in text
    assert "expected and not called" in text
    assert [name in text for name in ("critics", "decision", "accuracy", "trajectory", "dimensions")] == [True] * 5
    assert browser.run("location.hash").startswith("#run=")
    # Another grader's verdicts.
    before = browser.run("document.querySelector('.graded').innerText")
    browser.run("[...document.querySelectorAll('.tab')].at(-1).click()")
    assert browser.run("document.querySelector('.graded').innerText") != before
    # Numbers are written as the report writes them.
    text = unfold(browser, 2)
    assert "12345678901234567890" in text
    assert "half1.0" in text


def test_two_runs_stand_side_by_side_from_where_they_part(browser: Browser, address: str) -> None:
    browser.open(address)
    unfold(browser, 0)
    change(browser, ".chosen select", "change", "selectedIndex = 2")
    text = browser.until("document.querySelector('.pair')?.textContent")
    assert "They differ from the first step on." in text
    beside = browser.run("location.href")
    browser.open(beside)
    assert browser.until("document.querySelector('.pair')?.textContent") == text


def test_errors_say_why_and_lead_to_their_cases(browser: Browser, report: workbench.Report, tmp_path: Path) -> None:
    def broken(run: FinishedRun) -> FinishedRun:
        return replace(run, result=replace(run.result, status=Status.ERROR, grades=(), error="no <b>connection</b>"))

    runs = tuple(broken(run) if run.result.model == "careful" else run for run in report.runs)
    replace(report, runs=runs).write(tmp_path / "errors.html")
    browser.open((tmp_path / "errors.html").as_uri())
    assert browser.run("document.querySelector('h1').textContent").startswith("✗6 runs ended in an error")
    said = browser.run("[...document.querySelectorAll('#errors li')].map((each) => each.textContent)")
    assert said == ["▲ careful, 6 runs: no <b>connection</b>"]
    browser.run("document.querySelector('#errors a').click()")
    assert browser.run("location.hash") == "#status=error"
    browser.until(f"{TITLES}.length === 3")
    assert "▲ whyno <b>connection</b>" in unfold(browser, 0)


def test_what_a_model_says_is_text(browser: Browser, address: str) -> None:
    browser.open(address)
    title = browser.run("document.title")
    text = unfold(browser, 0)
    assert "</script><script>document.title = 'taken'</script><img src=x" in text
    assert "<U+202E>abc<U+2028><U+2029>␀␇␛[31m <U+D800>" in text
    assert browser.run("document.title") == title == "Clock </script><b> – Workbench"
    others = "img, iframe, link, a:not([href^='#']), object, embed, form[action]"
    assert browser.run(f'document.querySelectorAll("{others}").length') == 0
    assert browser.run("document.querySelectorAll('script:not([data-kind])').length") == 1


def test_where_no_script_may_run_the_verdict_is_there_as_text(browser: Browser, address: str) -> None:
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.events.clear()
        browser.call("Page.navigate", url=f"{address}?plain")
        browser.until_told("Page.loadEventFired")
        root = browser.call("DOM.getDocument")["root"]["nodeId"]
        found = browser.call("DOM.querySelector", nodeId=root, selector="main")["nodeId"]
        said = browser.call("DOM.getOuterHTML", nodeId=found)["outerHTML"]
        assert "3 of 6 cases failed" in said and "Why runs failed" in said
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)


def test_it_is_used_without_a_mouse(browser: Browser, address: str) -> None:
    def press(key: str) -> None:
        for kind in ("rawKeyDown", "keyUp"):
            browser.call(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode={"Enter": 13}.get(key, 0)
            )
        if key == "Enter":
            browser.call("Input.dispatchKeyEvent", type="char", key=key, text="\r")

    browser.open(address)
    browser.run(f"{CELLS}[0].focus()")
    assert browser.run(f"{CELLS}.filter((each) => each.tabIndex === 0).length") == 1
    press("ArrowRight")
    press("ArrowDown")
    assert browser.run(f"{CELLS}.indexOf(document.activeElement)") == 3
    press("Enter")
    browser.until("document.querySelector('.unfold .run') !== null")
    assert browser.run("document.activeElement.getAttribute('aria-expanded')") == "true"
    press("Escape")
    assert browser.run("document.querySelector('.unfold')") is None
    assert browser.run(f"{CELLS}.indexOf(document.activeElement)") == 3
    press("/")
    assert browser.run("document.activeElement.id") == "filter-text"
    controls = "[...document.querySelectorAll('button, input, select')]"
    assert (
        browser.run(f"{controls}.filter((each) => !each.textContent && !each.ariaLabel && !each.labels.length)") == []
    )


def test_it_is_light_or_dark_as_the_system_is_or_as_chosen(browser: Browser, address: str) -> None:
    def paper() -> str:
        return str(browser.run("getComputedStyle(document.body).backgroundColor"))

    def system(scheme: str) -> None:
        browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    system("light")
    browser.open(address)
    light = paper()
    system("dark")
    dark = paper()
    assert light != dark
    browser.run("document.querySelector('.theme').click()")
    assert paper() == light
    browser.run("document.querySelector('.theme').click()")
    assert paper() == dark


@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_is_wider_than_the_window(browser: Browser, address: str, width: int) -> None:
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
    browser.open(address)
    unfold(browser, 3)
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run("document.querySelector('.unfold').getBoundingClientRect().width") <= width
    assert browser.run("document.querySelector('.arguments tbody th').getBoundingClientRect().height") < 40  # one line


@pytest.mark.slow
def test_a_thousand_runs_open_within_a_second(browser: Browser, report: workbench.Report, tmp_path: Path) -> None:
    runs = [
        FinishedRun(at, run.case, replace(run.result, case_id=f"{run.result.case_id}-{at // 12}", run_id=str(at)))
        for at, run in ((at, report.runs[at % len(report.runs)]) for at in range(1000))
    ]
    replace(report, runs=tuple(runs)).write(tmp_path / "thousand.html")
    took = []
    for _ in range(3):  # the best of three: other tests are busy too
        began = time.perf_counter()
        browser.open((tmp_path / "thousand.html").as_uri())
        took.append(time.perf_counter() - began)
    assert min(took) < OPENS_WITHIN_S
    cases = {run.result.case_id for run in runs}
    browser.until(f"{TITLES}.length === {len(cases)}")
