"""The summary of the last runs below a row: cached, and computed again after every relevant change."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.apps import SMART_HOME, Opened, opened, suites_in
from tests.tui.histories import Made, well, write_history
from workbench.authoring.document import Document
from workbench.tui.tree.last_runs import LastRuns
from workbench.tui.tree.suite_summary import last_runs, summary_message


def summary_of(app: Opened, at: int) -> LastRuns:
    """Return the last runs below a row. They must equal those computed without a cache."""
    selection = app.app.main.selection
    row = selection.tree.rows[at]
    found = last_runs(selection.tree, row, selection.book)
    selection.tree.last_runs.clear()
    again = last_runs(selection.tree, row, selection.book)
    assert found == again
    return again


def counted(found: LastRuns) -> dict[str | None, int]:
    return {status: count for status, count in found.statuses.items() if count}


async def test_movements_of_the_cursor_compute_no_summary_again(tmp_path: Path) -> None:
    suites, history = suites_in(tmp_path, home=SMART_HOME, office=SMART_HOME), tmp_path / "history.sqlite3"
    write_history(history, suites / "home.toml", Made(well("Movie night")))
    async with opened(suites, history=history) as app:
        await app.press("home")
        tree = app.app.main.selection.tree
        before = dict(tree.last_runs)
        assert before[tree.rows[0].key].found.before
        await app.press("down", "up", "down", "down", "end", "home")
        assert tree.last_runs[tree.rows[0].key] is before[tree.rows[0].key]
        assert {key: tree.last_runs[key] for key in before} == before
        assert all(tree.last_runs[key].found is each.found for key, each in before.items())


async def test_runs_edits_filters_and_readings_change_the_summary(tmp_path: Path) -> None:
    suites, history = suites_in(tmp_path, home=SMART_HOME, office=SMART_HOME), tmp_path / "history.sqlite3"
    write_history(history, suites / "home.toml", Made(well("Movie night")))
    async with opened(suites, live=True, history=history) as app:
        await app.press("home")
        first = summary_of(app, 0)
        assert counted(first) == {"failed": 1, "passed": 2, None: 3} and first.edited == 0
        assert counted(summary_of(app, 1)) == {"failed": 1, "passed": 2}
        await app.press("down", "down", "r")
        await app.until(lambda: app.app.main.book.progress().done == 1)
        run = summary_of(app, 0)
        assert len(run.before) == 2 and len(run.runs) == 3 and run.failed != first.failed
        home = app.app.main.open_suites.suites[0]
        edited = Document.of(home.document.text.replace("Switch the lights", "Turn them"))
        app.app.main.open_suites.change(home, edited, "Edited")
        await app.settle()
        assert summary_of(app, 0).edited == 1
        await app.press("ctrl+z")
        assert summary_of(app, 0).edited == 0
        await app.press("/", *"lights", "enter")
        assert counted(summary_of(app, 0)) == {"passed": 1, None: 1}
        await app.press("escape")
        write_history(history, suites / "home.toml", Made(well("Nothing to do")))
        await app.press("f5")
        await app.until(lambda: counted(summary_of(app, 0)).get("failed") == 2)


async def test_totals_of_many_runs_are_computed_in_a_thread_and_earlier_ones_shown_until_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.tui.tree.last_runs.MAX_RUNS_AT_ONCE", 2)
    suites, history = suites_in(tmp_path, home=SMART_HOME), tmp_path / "history.sqlite3"
    write_history(history, suites / "home.toml", Made(well("Movie night")))
    async with opened(suites, live=True, history=history) as app:
        await app.press("home", "down")
        await app.until(lambda: "latency p50" in app.screen)
        selection = app.app.main.selection
        row = selection.tree.rows[1]
        found = last_runs(selection.tree, row, selection.book)
        assert found.totals is not None and not found.needs_thread
        await app.press("down", "r")
        await app.until(lambda: selection.book.progress().done == 1)
        later = last_runs(selection.tree, row, selection.book)
        assert later is not found and later.needs_thread and later.totals is found.totals
        assert "latency p50" in "".join(text for text, _ in summary_message(selection.tree, later, selection.book))
        assert later.add_up() != found.totals and not later.needs_thread
        empty = LastRuns(runs=list(later.runs))
        assert empty.totals is None
        lines = [text for text, _ in summary_message(selection.tree, empty, selection.book)]
        assert "latency, tokens and cost …" in lines
