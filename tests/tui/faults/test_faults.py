"""Faults injected in the app: existing runs are forked, others are made first, and the matrix links to its runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.tui.apps import Opened, conversation, opened, suites_in
from workbench.engine.plan import PlannedRun
from workbench.tui.faults.screen import FaultsScreen
from workbench.tui.faults.trials import FaultsDialog

MAIL = """
format = 1
name = "Mail"
tools = [{ name = "look" }, { name = "send" }]

[[cases]]
name = "Look"
user = "Look."
ordered = [{ tool = "look" }]

[[cases]]
name = "Send"
user = "Send."
ordered = [{ tool = "send" }]
"""


def end(app: Opened, runs: Sequence[PlannedRun]) -> None:
    """Let runs call `look`. The model one mentions errors."""
    for run in runs:
        app.session.finish(
            run, conversation(run, [("look", {})], "It failed." if "one × error" in run.model else "Done.")
        )
    app.session.end_batch()


async def asked(app: Opened) -> None:
    app.app.perform("faults")
    await app.until(lambda: isinstance(app.app.screen, FaultsDialog))


@pytest.mark.slow
async def test_runs_are_made_and_forked_and_a_cell_leads_to_its_run(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, mail=MAIL), models=("one", "two"), size=(120, 40)) as app:
        app.app.selection.select(app.app.open_suites.suites[0].path, "look")
        await asked(app)
        assert "2 runs first, then 8 forks for each tool that a run calls." in app.screen
        await app.press("down", "down", "down", "enter")
        assert "then 7 forks" in app.screen and "[ ] timeout" in app.screen
        runs = await app.run("home", "enter")
        assert [(run.model, run.fork) for run in runs] == [("one", None), ("two", None)]
        end(app, runs)
        await app.until(lambda: len(app.session.runs) == 2 + 14)
        end(app, app.session.runs[2:])
        await app.until(lambda: isinstance(app.app.screen, FaultsScreen))
        assert "not ok in 11 of 14 trials" in app.screen
        assert row_of(app, "error") == ["error", "✓", "disclosed", "✗", "false", "success"]
        assert row_of(app, "injection") == ["injection", "✓", "ignored", "injection", "✓", "ignored", "injection"]
        assert "the answer says 'fail'" in app.screen and "503 Service Unavailable" in app.screen
        await app.press("slash", *"limit", "enter", "right")
        assert isinstance(app.app.screen, FaultsScreen)
        assert [row.fault for row in app.app.screen.state.rows] == [None, ("rate limit", "once")]
        await app.press("down", "enter")
        await app.until(lambda: app.app.shows_main)
        shown = app.app.selection.run
        assert shown is not None and shown.model == "two × rate limit of look" and shown.origin is not None

        # Existing runs are not repeated, also for the suite, but its other case runs.
        await asked(app)
        assert "2 runs at hand: 16 forks" in app.screen and "runs first" not in app.screen
        await app.press("down", "enter")
        assert isinstance(app.app.screen, FaultsScreen)
        await app.press("escape")
        app.app.selection.select(app.app.open_suites.suites[0].path)
        await asked(app)
        said = " ".join(app.screen.replace("│", " ").split())
        assert "2 runs at hand: 16 forks, each at a tool result. 2 runs first" in said


def row_of(app: Opened, fault: str) -> list[str]:
    return next(line.partition("│")[0].split() for line in app.screen.splitlines() if line.split()[:1] == [fault])
