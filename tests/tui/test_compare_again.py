"""The comparison, opened again after runs went on without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.apps import SMART_HOME, opened, suites_in
from tests.tui.test_compare import comparing, finish, row
from workbench.tui.state.compared_sources import ComparedCase, LiveRuns, Standing


async def test_it_shows_what_ended_meanwhile_and_looks_at_nothing_that_was_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: set[str] = set()
    standings = LiveRuns.standings

    def counted(source: LiveRuns, case: ComparedCase) -> dict[str, Standing]:
        looked.add(case.name)
        return dict(standings(source, case))

    monkeypatch.setattr(LiveRuns, "standings", counted)
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
