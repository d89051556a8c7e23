"""What takes a while, for as long as a test wants it to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.tui.apps import Opened
from tests.tui.settling import Gate


class Held:
    """Holds a function back until a test lets it go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self._gate = Gate()

    def hold(self, module: object, name: str) -> None:
        """Hold back what is called by this name."""
        held = getattr(module, name)

        def wait(*arguments: Any, **named: Any) -> Any:
            self._gate.wait()
            return held(*arguments, **named)

        self._monkeypatch.setattr(module, name, wait)

    async def begun(self, app: Opened) -> None:
        """Wait until it was called."""
        await until(app, self._gate.is_reached)

    def discard_stream(self) -> None:
        """Let it do what it does, now and from now on."""
        self._gate.open()


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    """Something that a test holds back; let go at its end, so that no thread stays behind."""
    it = Held(monkeypatch)
    yield it
    it.discard_stream()


async def until(app: Opened, condition: Callable[[], bool]) -> None:
    """Wait for something to hold while something else is held back, for which `app.until` would wait."""
    async with asyncio.timeout(20):
        while not condition():
            await app.pilot.pause()
