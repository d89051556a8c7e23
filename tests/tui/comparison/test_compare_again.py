"""The comparison, opened again after runs went on without it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.tui.apps import SMART_HOME, opened, suites_in
from tests.tui.comparison.test_compare import added_up, comparing, finish, row
from tests.tui.run_book.test_book import done
from workbench.analysis.comparison import ModelTotals
from workbench.evaluation.options import AppStart, RunOptions
from workbench.grading.status import Status
from workbench.tui.comparison.screen import StartComparison
from workbench.tui.comparison.sources import CellState, ComparedCase, LiveRuns


async def test_it_shows_what_ended_meanwhile_and_looks_at_nothing_that_was_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: set[str] = set()
    standings = LiveRuns.cell_states

    def counted(source: LiveRuns, case: ComparedCase) -> dict[str, CellState]:
        looked.add(case.name)
        return dict(standings(source, case))

    monkeypatch.setattr(LiveRuns, "cell_states", counted)
    async with opened(suites_in(tmp_path, home=SMART_HOME), models=("one", "two")) as app:
        before = await comparing(app)
        runs = await app.run("R")
        for run in runs[:2]:
            finish(app, run)
        await app.settle()
        await app.press("escape")
        for run in runs[2:]:
            finish(app, run)
        app.session.end_batch()
        await app.settle()
        looked.clear()
        screen = await comparing(app)
        assert screen is not before
        assert screen.state is before.state
        assert looked == {run.case.name for run in runs} - {runs[0].case.name}
        assert [row(app, run.case.name) for run in runs[::2]] == [["✓", "1.00", "713", "ms"] * 2] * 2 + [
            ["✓", "1.00", "301", "ms"] * 2
        ]


@pytest.mark.slow
async def test_a_case_that_ran_again_meanwhile_is_looked_at(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), models=("one",)) as app:
        await comparing(app)
        for run in await app.run("R"):
            finish(app, run)
        app.session.end_batch()
        await app.settle()
        await app.press("escape")
        (again,) = await app.run("slash", *"movie", "enter", "r")
        finish(app, again, right=False)
        app.session.end_batch()
        await app.settle()
        await app.press("escape", "home")
        await comparing(app)
        assert row(app, "Movie night")[0] == "✗"


@pytest.mark.slow
async def test_what_is_run_again_and_stopped_is_what_it_was_on_both_screens_and_at_the_end(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), models=("one",), size=(160, 36)) as app:
        screen = await comparing(app)
        await app.press("T")
        for run in await app.run("2", "enter"):
            if run.repeat:
                app.session.listener(done(run, Status.STOPPED))
            else:
                finish(app, run)
        app.session.end_batch()
        await added_up(app, screen)
        before, totals = row(app, "Movie night"), screen.totals.rows
        assert before[:3] == ["✓", "1/1■", "1.00"]
        again = await app.run("R")
        assert row(app, "Movie night") == ["…", "0/2", "waiting"]
        for run in again:
            app.session.listener(done(run, Status.STOPPED))
        app.session.end_batch()
        await added_up(app, screen)
        assert len(again) == 6
        assert (row(app, "Movie night"), screen.totals.rows) == (before, totals)
        await app.press("escape")
        assert re.search(r"✓ Movie night +1\.00", app.screen)
        assert "  3 ✓  3 stopped  " in app.screen
        assert "#1  ■   #2  ■   #1 before  ✓ 1.00" in app.screen
        await app.press("down", "up")
        assert "✓ passed 1.00" in app.screen
        told: list[ModelTotals] = []
        compared = StartComparison(app.app, AppStart(RunOptions(suites=(".",)), opens="compare"))
        compared.report(lambda found, _: told.extend(found.totals))
        await app.run("v", "R")
        compared.report(lambda found, _: told.extend(found.totals))
        assert [(totals.passed, totals.runs) for totals in told] == [(3, 6)] * 2, "also while they run once more"
