"""Quick add: requests typed in the line below the panes, run, and accepted as cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.apps import SMART_HOME, Call, Opened, conversation, opened, suites_in
from workbench.tui.quick_add import adder

DIM: Call = ("set_lights", {"room": "living room", "brightness": 20})


@pytest.fixture(autouse=True)
def _without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the time after a question in which Enter does not count be as short as a message."""
    monkeypatch.setattr(adder, "DOUBLE_S", 0.001)


async def answered(app: Opened, *calls: Call, index: int = -1) -> None:
    """Let a run make some calls and end."""
    app.session.finish(app.session.runs[index], conversation(app.session.runs[index], calls, "Done."))
    app.session.end_batch()
    await app.settle()


async def test_a_request_is_run_and_accepted_and_saved(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites, size=(80, 24)) as app:
        await app.run("n", *"Dim the living room", "enter")
        assert (suites / "smart_home.toml").read_text() == SMART_HOME
        await answered(app, DIM)
        assert "Expect this?" in app.screen
        await app.press("enter")
        await app.until(lambda: "Saved in smart_home.toml" in app.screen)
        assert "✓ Dim the li…room 1.00" in app.screen
    block = """
[[cases]]
name = "Dim the living room"
user = "Dim the living room"

[[cases.ordered]]
tool = "set_lights"
args = { room = "living room", brightness = 20 }
"""
    assert block in (suites / "smart_home.toml").read_text()
