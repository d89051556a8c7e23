"""A batch too large to be read as a whole shows its first cases, says so, and can be searched."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.history.batches import HEAD, run_kept
from tests.tui.apps import SMART_HOME, opened, suites_in
from tests.tui.comparison.test_compared_batch import batch_screen, title
from workbench.tui.comparison.sources import batch_source
from workbench.tui.comparison.state import CompareState
from workbench.tui.run_book.stored_batches import read_cases

CITIES = ("Oslo", "Rome", "Paris", "Lima", "Quito")
SUITE = HEAD + "".join(
    f'\n[[cases]]\nname = "{city}"\nuser = "What is the weather in {city}? Call get_weather."\n'
    f'[[cases.ordered]]\ntool = "get_weather"\nargs = {{ city = "{"Bonn" if city == "Lima" else city}" }}\n'
    for city in CITIES
)


@pytest.mark.slow
async def test_of_a_large_batch_the_first_cases_are_shown_and_all_are_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SEARCH_S", "RELOAD_INTERVAL_S"):
        monkeypatch.setattr(f"workbench.tui.comparison.batch_screen.{name}", 0.0)
    for name, runs in (("MAX_RUNS_READ", 3), ("RUNS_UNTIL_SEARCHED", 2)):
        monkeypatch.setattr(f"workbench.tui.run_book.stored_batches.{name}", runs)
    history, project = tmp_path / "history.sqlite3", tmp_path / "project"
    project.mkdir()
    run_kept(project, history, suite=SUITE)
    async with opened(suites_in(tmp_path, home=SMART_HOME), size=(120, 24), live=True, history=history) as app:
        await app.press("h", "enter")
        screen = batch_screen(app)

        def cases() -> list[str]:
            return [case.name for case in screen.state.cases]

        assert cases() == ["Oslo", "Rome"]
        assert "the first 2 of 5 runs, also in the totals; / searches all" in title(app)
        await app.press("y")
        assert "Only some cases of this batch are here" in app.screen
        await app.press("slash", *"failed")
        await app.until(lambda: cases() == ["Lima"])
        assert "1 of 5 runs fit" in title(app)
        await app.press("enter", "enter")
        await app.until(lambda: "Bonn" in app.screen)
        await app.press("escape", "escape")
        await app.until(lambda: cases() == ["Oslo", "Rome"])
        await app.press("slash", *"passed")
        await app.until(lambda: "the first 3 that fit, of 5 runs" in title(app))
        assert cases() == ["Oslo", "Rome", "Paris"]
        await app.press(*"xyz")
        await app.until(lambda: cases() == [])
        assert "0 of 5 runs fit" in title(app)


async def test_a_batch_opens_with_its_first_runs_and_reads_the_others_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.tui.run_book.stored_batches.FIRST_RUNS", 2)
    history, project = tmp_path / "history.sqlite3", tmp_path / "project"
    project.mkdir()
    run_kept(project, history, suite=SUITE)
    assert read_cases(history, 1, first=True).is_whole, "a small batch is read at once"
    monkeypatch.setattr("workbench.tui.run_book.stored_batches.MAX_RUNS_AT_ONCE", 4)
    first = read_cases(history, 1, first=True)
    assert [run.case_name for run in first.runs] == ["Oslo", "Rome"]
    assert first.is_first and not first.is_whole

    state = CompareState(batch_source(history, first))
    state.move_to(1, 0)
    state.mark()
    state.adopt(CompareState(batch_source(history, read_cases(history, 1))))
    assert [case.name for case in state.cases] == [*CITIES]
    assert state.case is not None and state.case.name == "Rome" and state.marked == state.key
    assert all(state.version(case) for case in state.cases) and state.changed == {"offline"}
    state.set_filter("failed")
    state.adopt(CompareState(batch_source(history, first)))
    assert state.cases_shown == []
    state.adopt(CompareState(batch_source(history, read_cases(history, 1))))
    assert [case.name for case in state.cases_shown] == ["Lima"]

    async with opened(suites_in(tmp_path, home=SMART_HOME), size=(120, 24), live=True, history=history) as app:
        await app.press("h", "enter")
        await app.until(lambda: len(batch_screen(app).state.cases) == len(CITIES))
        assert "runs" not in title(app)
        assert all(city in app.screen for city in CITIES)
