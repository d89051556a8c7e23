"""Functions that a test holds back, to keep an operation in progress."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.tui.apps import Opened
from tests.tui.calm import Gate


class Held:
    """Holds a function back until a test releases it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self._gate = Gate()

    def hold(self, module: object, name: str) -> None:
        """Hold a function back."""
        held = getattr(module, name)

        def wait(*arguments: Any, **named: Any) -> Any:
            self._gate.wait()
            return held(*arguments, **named)

        self._monkeypatch.setattr(module, name, wait)

    async def begun(self, app: Opened) -> None:
        """Wait until the function was called."""
        await until(app, self._gate.is_reached)

    def discard_stream(self) -> None:
        """Release the function, now and for later calls."""
        self._gate.open()


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    """Yield an object that holds functions back. At the end they are released, so that no thread remains."""
    it = Held(monkeypatch)
    yield it
    it.discard_stream()


async def until(app: Opened, condition: Callable[[], bool]) -> None:
    """Wait for a condition while a function is held back. `app.until` would wait for that function."""
    async with asyncio.timeout(20):
        while not condition():
            await app.pilot.pause()
