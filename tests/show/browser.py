"""Headless Chromium, driven over its own protocol. Neither installing nor running Workbench needs it."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import time
from collections.abc import Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import aiohttp

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
LONGEST_WAIT_S = 60.0

_Value = TypeVar("_Value")


class Browser:
    """A browser with one page. `profile` is an empty folder for its data, and `events` are the events it sent, in
    order."""

    def __init__(self, profile: Path) -> None:
        assert CHROMIUM is not None
        self.events: list[dict[str, Any]] = []
        self._profile = profile
        self._runner = asyncio.Runner()
        options = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-port=0")
        self._process = subprocess.Popen(
            [CHROMIUM, *options, f"--user-data-dir={profile}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._last = 0

    def __enter__(self) -> Browser:
        try:
            self._wait(self._connect())
            for domain in ("Page", "Network", "Runtime", "Log"):
                self.call(f"{domain}.enable")
        except BaseException:
            self._process.kill()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._wait(self._session.close())
        self._process.terminate()
        self._process.wait(LONGEST_WAIT_S)
        self._runner.close()

    def call(self, method: str, **parameters: Any) -> Any:
        """Call a method of the protocol and return its result."""
        return self._wait(self._call(method, parameters))

    def run(self, script: str) -> Any:
        """Evaluate an expression in the page and await its promise, if it is one."""
        done = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def until(self, script: str) -> Any:
        """Wait until an expression is true, and return its value."""
        until = time.monotonic() + LONGEST_WAIT_S
        while not (value := self.run(script)):
            assert time.monotonic() < until, f"never true: {script}"
            self.run("new Promise(requestAnimationFrame)")
        return value

    def until_told(self, method: str) -> None:
        """Wait for an event of the browser."""
        until = time.monotonic() + LONGEST_WAIT_S
        while not self.told(method):
            assert time.monotonic() < until, f"never told: {method}"
            self.call("Page.getFrameTree")  # what it tells comes with its answers

    def open(self, address: str) -> None:
        """Open a report and wait until it is shown."""
        self.call("Page.navigate", url="about:blank")
        self.events.clear()
        self.call("Page.navigate", url=address)
        self.until("document.documentElement?.dataset.ready === 'yes'")

    def told(self, *methods: str) -> list[dict[str, Any]]:
        """Return the events of some kinds since the page was opened."""
        return [event["params"] for event in self.events if event["method"] in methods]

    def _wait(self, work: Coroutine[Any, Any, _Value]) -> _Value:
        return self._runner.run(asyncio.wait_for(work, LONGEST_WAIT_S))

    async def _connect(self) -> None:
        told = self._profile / "DevToolsActivePort"
        while not (told.exists() and "\n" in told.read_text()):
            assert self._process.poll() is None, "the browser ended"
            await asyncio.sleep(0.02)
        port = told.read_text().split("\n")[0]
        self._session = aiohttp.ClientSession()
        async with self._session.get(f"http://127.0.0.1:{port}/json") as response:
            page = next(each for each in await response.json() if each["type"] == "page")
        self._socket = await self._session.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0)

    async def _call(self, method: str, parameters: dict[str, Any]) -> Any:
        self._last += 1
        await self._socket.send_json({"id": self._last, "method": method, "params": parameters})
        while True:
            message = await self._socket.receive_json()
            if message.get("id") == self._last:
                assert "error" not in message, message["error"]
                return message["result"]
            self.events.append(message)
