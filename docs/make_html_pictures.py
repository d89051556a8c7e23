"""Draws the pictures of pages in a browser with Chromium, in the light theme: `python docs/make_html_pictures.py
[FOLDER]`.

Three scripted models run the sample suite `smart_home.toml` for the HTML report. `workbench serve` shows the
samples."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from base64 import b64decode
from pathlib import Path

from scripted_models import scripted_models

import workbench
from workbench.config.folders import bundled

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.cli.program import Program
from tests.remote.served import served
from tests.remote.test_in_browser import Page
from tests.show.browser import Browser

_PRICES = {"careful": (2.5, 10), "quick": (0.4, 1.6), "small": (0.05, 0.2)}
"""US dollars per million input and output tokens."""
_REPEATS = 3
_RUN = ("dim-a-little", "quick")


def draw(browser: Browser, address: str, ready: str, width: int, height: int) -> bytes:
    """Return a PNG of a window of this size, once the expression `ready` is true."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.call("Emulation.setDeviceMetricsOverride", **size)
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
    browser.open(address)
    browser.until(ready)
    return b64decode(browser.call("Page.captureScreenshot", format="png")["data"])


def draw_served(browser: Browser, place: Path) -> bytes:
    """Return a picture of a read-only view."""
    shutil.copytree(bundled("sample_suites"), place)
    program = Program(place)
    program.run("run", "library.toml", "weather.toml", "--history", "runs.db")
    words = ("library.toml", "weather.toml", "--read-only", "--theme", "paper", "--history", "runs.db")
    with served(program, *words) as server:
        page = Page(browser, server)
        page.resize(1080, 504)
        page.until("Search, t…ails", "0.50 now")
        page.type("j", "j", "3")
        page.until("failed 0.50")
        page.type("r")
        page.until("This is a read-only view")
        browser.run("new Promise((drawn) => setTimeout(drawn, 500))")  # a canvas does not say what it shows
        return b64decode(browser.call("Page.captureScreenshot", format="png")["data"])


def main(folder: Path) -> None:
    """Draw all pictures into a folder."""
    folder = folder.resolve()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name, scripted_models() as settings:
        place = Path(name)
        os.chdir(place)
        shutil.copy(bundled("sample_suites") / "smart_home.toml", place)
        priced = re.sub(r"^price = .*\n", "", settings, flags=re.MULTILINE)
        for model, (taken, given) in _PRICES.items():
            line = f'model = "{model}"\n'
            priced = priced.replace(line, f"{line}price = {{ input = {taken}, output = {given} }}\n")
        (place / "workbench.toml").write_text(priced, encoding="utf-8")
        report = workbench.evaluate("smart_home.toml", models=[*_PRICES], repeats=_REPEATS, approve=workbench.ALL)
        report.write("report.html")
        address = (place / "report.html").as_uri()
        run = next(at for at, each in enumerate(report.results, 1) if (each.case_id, each.model) == _RUN)
        with Browser(place / "profile") as browser:
            drawn = {
                "html-report.png": draw(browser, address, "document.querySelector('.chart svg') !== null", 1240, 1160),
                "serve.png": draw_served(browser, place / "served"),
                "html-run.png": draw(browser, f"{address}#run={run}", "scrollY > 0", 1100, 770),
            }
        for file, png in drawn.items():
            (folder / file).write_bytes(png)
            sys.stdout.write(f"{file}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "pictures")
