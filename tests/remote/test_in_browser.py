"""The app in a real browser: it runs, steps, compares, copies and is resized there, and nothing is asked of others."""

from __future__ import annotations

import base64
import json
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyte
import pytest

from tests.cli.program import Program
from tests.cli.suites import WEATHER, WRONG
from tests.remote.served import Served, served
from tests.show.browser import CHROMIUM, LONGEST_WAIT_S, Browser

THEME = Path(__file__).parents[2] / "themes" / "paper.toml"
PAPER = tomllib.loads(THEME.read_text(encoding="utf-8"))["colours"]["background"].removeprefix("#")

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine to show the app in")


class Page:
    """The app's page in a browser, and the text of its terminal."""

    def __init__(self, browser: Browser, server: Served) -> None:
        self.browser = browser
        self._seen = 0
        self.screen = pyte.Screen(80, 24)
        self._stream = pyte.ByteStream(self.screen)
        self.resize(1280, 800)
        browser.events.clear()
        browser.call("Page.navigate", url=server.entry)

    def resize(self, width: int, height: int) -> None:
        """Give the window another size, in pixels."""
        self.browser.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )

    def type(self, *keys: str) -> None:
        for key in keys:
            self.browser.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=key)
            self.browser.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def until(self, *texts: str) -> str:
        """Wait until the terminal shows all of these."""
        until = time.monotonic() + LONGEST_WAIT_S
        while not all(text in (shown := "\n".join(self.screen.display)) for text in texts):
            assert time.monotonic() < until, f"never showed {texts}:\n{shown}"
            self.browser.call("Page.getFrameTree")  # what the browser tells comes with its answers
            for event in self.browser.events[self._seen :]:
                self._take(event["method"], event["params"])
            self._seen = len(self.browser.events)
        return shown

    def _take(self, method: str, told: dict[str, Any]) -> None:
        if method == "Network.webSocketFrameReceived" and told["response"]["opcode"] == 2:
            self._stream.feed(base64.b64decode(told["response"]["payloadData"]))
        elif method == "Network.webSocketFrameSent" and '"resize"' in told["response"]["payloadData"]:
            size = json.loads(told["response"]["payloadData"])[1]
            self.screen.resize(size["height"], size["width"])


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    program = Program(tmp_path_factory.mktemp("served"))
    program.write("weather.toml", WEATHER + WRONG)
    with served(program, "weather.toml", "--theme", "paper") as server:
        yield server


def test_the_app_is_used_in_a_browser(server: Served, tmp_path: Path) -> None:
    with Browser(tmp_path) as browser:
        page = Page(browser, server)
        page.until("weather.toml", "Right", "r run")
        wide = page.screen.columns
        page.type("r")
        page.until("get_weather", "passed")
        page.type("s")
        page.until("held")
        page.type("c")
        page.until("passed")
        browser.call("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
        page.type("y")
        page.until("to the browser's clipboard")
        assert browser.until("navigator.clipboard.readText()")
        page.resize(640, 480)
        page.until("1 Suites  2 Case ")
        assert page.screen.columns < wide
        ground = browser.run("getComputedStyle(document.querySelector('.xterm-viewport')).backgroundColor")
        paper = bytes.fromhex(PAPER)
        assert ground == f"rgb({paper[0]}, {paper[1]}, {paper[2]})"  # at the edges too
        page.resize(1280, 800)
        page.type("v")
        page.until("Compare", "Right", "Wrong")
        page.type("/")
        browser.run("navigator.clipboard.writeText('pasted words')")
        control_v = {"key": "v", "code": "KeyV", "windowsVirtualKeyCode": 86, "modifiers": 2}
        browser.call("Input.dispatchKeyEvent", type="rawKeyDown", **control_v, commands=["paste"])
        page.until("pasted words")  # the browser's, not what was copied in the app

        assert browser.run("location.href").startswith(f"{server.address}/")
        assert "token" not in browser.run("location.href + document.referrer")
        asked = [told["request"]["url"] for told in browser.told("Network.requestWillBeSent")]
        assert asked and all(url.startswith(f"{server.address}/") for url in asked), asked
        assert browser.run("document.fonts.check('16px Roboto Mono') && document.fonts.size")
        refused = [told for told in browser.told("Log.entryAdded") if "Content Security Policy" in str(told)]
        assert not refused and not browser.told("Runtime.exceptionThrown"), refused
        server.process.terminate()
        assert "Its server was ended" in browser.until("document.querySelector('.-closed #why')?.innerText")
        assert browser.run("document.title") == "Workbench (ended)"
        server.process.wait(LONGEST_WAIT_S)
