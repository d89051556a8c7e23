"""Every HTML report against all rules of axe-core but those of level AAA: wide and narrow, light and dark."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.cli.suites import CHAIN, TOO_LATE, WEATHER, WRONG
from tests.show.browser import CHROMIUM, Browser
from tests.show.html_page import evaluated

_BUNDLING = find_spec("axe_playwright_python")
"""The package that bundles axe-core: only its file is used."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine to open the reports in"),
    pytest.mark.skipif(_BUNDLING is None, reason="axe-playwright-python, which bundles axe-core, is not installed"),
]

ALL_RULES = "axe.getRules().filter((rule) => !rule.tags.includes('wcag2aaa')).map((rule) => rule.ruleId)"
RULES = {"light": ALL_RULES, "dark": "['color-contrast']"}
"""The rules by colour scheme. The second scheme checks only the rules about colours."""
VIOLATIONS = """axe.run({ runOnly: RULES, resultTypes: ["violations"] }).then((found) =>
    found.violations.flatMap((each) => each.nodes.map((node) => `${each.id}: ${node.html}`)))"""
UNFILLED = """[...document.querySelectorAll(".figures dl")].map((tiles) => {
    const last = tiles.lastElementChild.getBoundingClientRect();
    return tiles.getBoundingClientRect().right - last.right;
}).filter((gap) => gap > 2)"""

CELLS = "document.querySelectorAll('button.cell')"
SIDE_BY_SIDE = """(() => {
    const others = document.querySelector(".chosen select");
    others.selectedIndex = others.options.length - 1;
    others.dispatchEvent(new Event("change"));
})()"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a report of each kind."""
    program = Program(tmp_path_factory.mktemp("pages"))
    evaluated(program.folder, repeats=3).write(program.folder / "runs.html")
    program.write("weather.toml", WEATHER + WRONG + CHAIN + TOO_LATE)
    models = ("--quiet", "--model", "offline,offline:gullible", "--report")
    compared = program.run("compare", "weather.toml", "--repeats", "3", *models, "comparison.html")
    again = program.run("run", "weather.toml", "--repeats", "2", *models, "again.html")
    assert [compared.returncode, again.returncode] == [3, 3], compared.stderr + again.stderr
    assert program.run("history", "show", "2", "--report", "batch.html").returncode == 0
    assert program.run("history", "diff", "1", "2", "--report", "changes.html").returncode == 0
    assert program.run("faults", "weather.toml", *models, "faults.html").returncode == 3
    return program.folder


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture(scope="module")
def axe() -> str:
    assert _BUNDLING is not None and _BUNDLING.origin is not None
    return (Path(_BUNDLING.origin).parent / "axe.min.js").read_text(encoding="utf-8")


def check(browser: Browser, axe: str) -> None:
    """Check the page against the rules in both colour schemes."""
    browser.run(f"{axe};null")
    for scheme, rules in RULES.items():
        browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        assert browser.run(VIOLATIONS.replace("RULES", rules)) == [], scheme
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", ["runs", "comparison", "batch", "changes"])
def test_no_rule_of_accessibility_is_broken(browser: Browser, axe: str, pages: Path, name: str, width: int) -> None:
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
    browser.open((pages / f"{name}.html").as_uri())
    check(browser, axe)
    assert browser.run(UNFILLED) == [], "tiles fill their rows"
    browser.run("document.querySelector('.cell.failed').click()")
    browser.until("document.querySelector('.unfold .run') !== null")
    check(browser, axe)
    browser.run(SIDE_BY_SIDE)
    browser.until("document.querySelector('.pair') !== null")
    check(browser, axe)


@pytest.mark.parametrize("width", [390, 1280])
def test_nor_in_the_matrix_of_faults(browser: Browser, axe: str, pages: Path, width: int) -> None:
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
    browser.events.clear()
    browser.call("Page.navigate", url=(pages / "faults.html").as_uri())
    browser.until("document.querySelector('a.cell') !== null")
    check(browser, axe)
    browser.run("document.querySelector('a.cell.failed').click()")
    browser.until("document.querySelector('.of-cell:target') !== null")
    check(browser, axe)


def test_the_rules_find_what_breaks_them(browser: Browser, axe: str, pages: Path) -> None:
    browser.open((pages / "runs.html").as_uri())
    browser.run(f"{CELLS}[0].setAttribute('aria-label', 'something else')")
    with pytest.raises(AssertionError, match="label-content-name-mismatch"):
        check(browser, axe)
