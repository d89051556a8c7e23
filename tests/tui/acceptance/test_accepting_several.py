"""Accepting the shared calls of several runs, for all cases that the filter shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.apps import Call, Opened, conversation, opened, suites_in
from workbench.tui.acceptance.accept_several import AcceptSeveralScreen
from workbench.tui.kit.dialogs import PreviewScreen

LIGHTS = """
format = 1
name = "Lights"

[[tools]]
name = "dim"
[tools.parameters]
type = "object"
properties = { room = { type = "string" }, level = { type = "number" } }

[[tools]]
name = "off"

# What people ask most.
[[cases]]
name = "Dim"
user = "Dim the hall."   # at night
expect_nothing_yet = true

[[cases]]
name = "Off"
user = "All off."
expect_nothing_yet = true

[[cases]]
name = "Later"
user = "…"
skip = "write the request"
expect_nothing_yet = true
""".lstrip()
ACCEPTED = """
user = "Dim the hall."   # at night

[[cases.ordered]]
tool = "dim"
args = { room = "hall", level = { range = [1, 3] } }
"""


def text_of(app: Opened) -> str:
    return app.app.open_suites.suites[0].document.text


async def asked(app: Opened) -> None:
    app.app.perform("accept.several")
    await app.until(lambda: isinstance(app.app.screen, AcceptSeveralScreen))


@pytest.mark.slow
async def test_runs_are_made_shown_and_taken_in_one_step(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, lights=LIGHTS), size=(120, 50)) as app:
        await asked(app)
        assert "3 cases shown, 1 of them skipped; there is no current run" in app.screen
        assert "6 runs, 3 of each" in app.screen
        runs = await app.run("1")
        assert len(runs) == 6
        for number, run in enumerate(runs):
            level = [1, 3, 2][run.repeat]
            dims = run.case.name == "Dim" or number == 5
            call: Call = ("dim", {"room": "hall", "level": level}) if dims else ("off", {})
            app.session.finish(run, conversation(run, [call], "Done."))
        app.session.end_batch()
        await app.until(lambda: isinstance(app.app.screen, PreviewScreen))
        assert "+ Dim: proposed from 3 runs" in app.screen
        assert "the runs do not call the same tools (2 runs: off; 1 run: dim)" in app.screen
        assert "Later: skipped: write the request" in app.screen
        assert "Enter take 1 case" in app.screen
        await app.press("enter")
        assert ACCEPTED in text_of(app)
        assert text_of(app).count("expect_nothing_yet") == 2 and "# What people ask most." in text_of(app)
        assert "Accepted 1 case; Ctrl+Z undoes it" in app.screen
        await app.press("ctrl+z")
        assert text_of(app) == LIGHTS

        # Runs count as long as the case still sends the same request. The filter chooses the cases.
        await app.press("slash", *"dim", "enter")
        await asked(app)
        assert "1 case shown; 1 of them with 3 current runs." in app.screen
        await app.press("1")
        await app.until(lambda: isinstance(app.app.screen, PreviewScreen))
        await app.press("escape")
        assert text_of(app) == LIGHTS
