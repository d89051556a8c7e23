"""The history in the app: batches, changes between two of them, and one case over time."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.history.foreign import HEAD, ONE_CASE, foreign_history, starting
from tests.sampled_rows import first_of
from tests.tui.apps import SMART_HOME, assert_golden, opened, suites_in
from tests.tui.histories import Made, shown, utc, well, write_history
from workbench.authoring.document import Document
from workbench.config.folders import bundled
from workbench.grading.status import Status
from workbench.history.claims import claim, is_claimed
from workbench.history.edits import name_batch
from workbench.tui.comparison.screen import CompareScreen
from workbench.tui.history.batches_screen import HistoryScreen
from workbench.tui.history.changes import BatchDiffScreen
from workbench.tui.history.questions import ResumeScreen
from workbench.tui.history.timeline import TimelineScreen
from workbench.tui.kit.rows import Head
from workbench.tui.run_pair.screen import PairScreen
from workbench.tui.runs.dialogs import TrustScreen
from workbench.tui.trajectory.screen import TrajectoryScreen

__all__ = ["utc"]

CASES = ("movie-night", "lights-off", "nothing-to-do")
SIZES = [(80, 24), (160, 48)]
BATCHES = (
    Made(well("Movie night", "Lights off")),
    Made(well("Movie night")),
    Made(well("Nothing to do"), models=("offline", "other")),
    Made(well(), cases=("lights-off",)),
    Made(well(), cut_after=1),
)


def history_of(folder: Path, *batches: Made) -> tuple[Path, Path]:
    """A folder of suites, and a history of them."""
    suites = suites_in(folder, home=SMART_HOME)
    write_history(folder / "history.sqlite3", suites / "home.toml", *(batches or BATCHES))
    return suites, folder / "history.sqlite3"


AS_IT_WAS_CALLED = SMART_HOME.replace('tool = "set_lights"\nargs = { brightness = 0 }', 'tool = "set_tv"')
"""The suite with the model's wrong calls as expectation."""


@pytest.mark.usefixtures("utc")
@pytest.mark.parametrize("size", first_of(SIZES, 1), ids=lambda size: f"{size[0]}x{size[1]}")
async def test_batches_stand_with_their_pass_rates_and_their_trend(tmp_path: Path, size: tuple[int, int]) -> None:
    suites, history = history_of(tmp_path)
    async with opened(suites, size=size, live=True, history=history) as app:
        await shown(app, "down", "down")
        assert_golden(app.screen, f"history-{size[0]}x{size[1]}")


@pytest.mark.slow
@pytest.mark.usefixtures("utc")
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_two_marked_batches_show_what_changed_and_enter_puts_both_runs_side_by_side(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    suites, history = history_of(tmp_path, Made(well("Movie night")), Made(well("Lights off")))
    async with opened(suites, size=size, live=True, history=history) as app:
        await shown(app, "space", "down", "space", "down")
        assert isinstance(app.app.screen, BatchDiffScreen)
        assert_golden(app.screen, f"diff-{size[0]}x{size[1]}")
        await app.press("enter")
        assert isinstance(app.app.screen, PairScreen)
        assert [run.figures.status for run in app.app.screen.state.runs if run.figures] == ["passed", "failed"]
        assert "1 #1 offline" in app.screen and "2 #2 offline" in app.screen


@pytest.mark.slow
@pytest.mark.usefixtures("utc")
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_a_case_is_seen_over_time_from_the_tree_and_two_of_its_runs_stand_side_by_side(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    suites, history = history_of(tmp_path)
    async with opened(suites, size=size, live=True, history=history) as app:
        app.app.main.action_do("timeline")
        await app.settle()
        assert isinstance(app.app.screen, TimelineScreen)
        assert_golden(app.screen, f"timeline-{size[0]}x{size[1]}")
        await app.press("down", "enter")
        assert isinstance(app.app.screen, TrajectoryScreen)
        await app.press("escape", "space", "down", "space")
        assert isinstance(app.app.screen, PairScreen)


async def test_enter_shows_a_batch_case_by_case_and_its_runs_and_cases_over_time(tmp_path: Path) -> None:
    suites, history = history_of(tmp_path)
    async with opened(suites, live=True, history=history) as app:
        await shown(app, "down", "down", "enter")
        compared = app.app.screen
        assert isinstance(compared, CompareScreen)
        assert compared.state.models == ("offline", "other")
        keys = app.screen.splitlines()[-1]
        assert "* base" in keys
        assert not [key for key in ("r run", "R run all", "m models", "N repeats", "x stop") if key in keys]
        await app.press("enter")
        assert isinstance(app.app.screen, TrajectoryScreen)
        assert "Movie night" in app.screen
        await app.press("escape", "h")
        assert isinstance(app.app.screen, TimelineScreen)
        assert "Movie night" in app.screen


@pytest.mark.slow
async def test_a_batch_is_named_named_otherwise_and_loses_its_name(tmp_path: Path) -> None:
    suites, history = history_of(tmp_path)
    async with opened(suites, live=True, history=history) as app:
        screen = await shown(app, "f2", *"best", "enter")
        assert "#5 best" in app.screen
        await app.press("down", "f2", *"best", "enter")
        assert [batch.name for batch in screen.state.batches[:2]] == [None, "best"]
        assert "#4 is now named best; #5 no longer is" in app.screen
        await app.press("f2", "ctrl+u", "enter")
        assert {batch.name for batch in screen.state.batches} == {None}


@pytest.mark.slow
async def test_a_number_is_no_name(tmp_path: Path) -> None:
    suites, history = history_of(tmp_path)
    async with opened(suites, live=True, history=history) as app:
        await shown(app, "f2", "7", "enter")
        assert "every batch already has a number" in app.screen


@pytest.mark.slow
async def test_a_batch_is_removed_only_after_somebody_said_so(tmp_path: Path) -> None:
    suites, history = history_of(tmp_path)
    async with opened(suites, live=True, history=history) as app:
        screen = await shown(app, "down", "delete", "enter")
        assert len(screen.state.batches) == len(BATCHES)
        await app.press("delete", "1")
        assert [batch.number for batch in screen.state.batches] == [5, 3, 2, 1]


async def test_a_batch_that_was_cut_off_is_saved_and_goes_on_with_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    suites, history = history_of(tmp_path)
    async with opened(suites, live=True, history=history) as app:
        screen = await shown(app, "w")
        assert len(list((tmp_path / "recordings" / "batch-5").glob("*.run.jsonl"))) == 1
        assert "2 missing" in app.screen
        await app.press("c")
        await app.until(lambda: screen.state.batches[0].missing == 0 and not screen.state.active)
        assert "○" not in app.screen
        made = [bool(app.app.main.book.finished((suites / "home.toml", case))) for case in CASES]
        assert made == [False, True, True]
        await app.press("down", "c")
        assert "This batch is complete; nothing to resume" in app.screen


@pytest.mark.slow
async def test_before_a_batch_goes_on_with_a_suite_of_then_that_is_asked(tmp_path: Path) -> None:
    suites, history = history_of(tmp_path)
    (suites / "home.toml").write_text(SMART_HOME.replace("Good night.", "Sleep well."), encoding="utf-8")
    async with opened(suites, live=True, history=history) as app:
        screen = await shown(app, "c")
        await app.until(lambda: isinstance(app.app.screen, ResumeScreen))
        assert "Something has changed" in app.screen and "2 runs of #5 would run now" in app.screen
        assert "run what is missing" in app.screen
        assert "today" not in app.screen
        assert is_claimed(history, 5), "nobody else may make the same runs meanwhile"
        await app.press("escape")
        assert "Nothing was run" in app.screen
        assert not is_claimed(history, 5)
        await app.press("c")
        await app.until(lambda: isinstance(app.app.screen, ResumeScreen))
        await app.press("1")
        await app.until(lambda: screen.state.batches[0].missing == 0 and not screen.state.active)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["offline", "openai:gpt@http://127.0.0.1:9/v1"])
async def test_what_a_history_says_of_a_bundled_suite_is_asked_about(tmp_path: Path, model: str) -> None:
    samples, history = bundled("sample_suites"), tmp_path / "theirs" / "history.sqlite3"
    text = starting("touch started") if model == "offline" else HEAD + ONE_CASE
    foreign_history(history, samples / "zz.toml", text, model)
    async with opened(suites_in(tmp_path, home=SMART_HOME), live=True, history=history) as app:
        await shown(app, "c")
        await app.until(lambda: isinstance(app.app.screen, ResumeScreen))
        assert ("with today's models and judges" in app.screen) == (model != "offline")
        await app.press("1")
        await app.until(lambda: isinstance(app.app.screen, TrustScreen))
        assert ("touch started" if model == "offline" else "ask the model gpt at http://127.0.0.1:9/v1") in app.screen
        await app.press("escape")
        await app.until(lambda: "zz.toml is not trusted" in app.screen)
        assert not app.app.main.book.active_runs()
        assert not is_claimed(history, 1)
    assert not (samples / "started").exists()


async def test_a_batch_that_another_program_goes_on_with_is_left_alone(tmp_path: Path) -> None:
    suites, history = history_of(tmp_path)
    async with opened(suites, live=True, history=history) as app:
        await shown(app)
        other = claim(history, 5)
        await app.press("c")
        await app.until(lambda: "is running in another program" in app.screen)
        assert not app.app.main.book.active_runs()
    other.release()


async def test_a_batch_is_graded_again_beside_its_old_grades(tmp_path: Path) -> None:
    suites, history = history_of(tmp_path, Made(well("Lights off")))
    (suites / "home.toml").write_text(AS_IT_WAS_CALLED, encoding="utf-8")
    async with opened(suites, live=True, history=history) as app:
        screen = await shown(app)
        assert "66.7%" in app.screen
        await app.press("equals_sign")
        await app.until(lambda: bool(screen.state.regraded))
        assert "failed → passed" in app.screen
        assert "100.0% passed" in app.screen
        assert "↻ grading 1  ✓3  100.0%" in app.screen
        await app.press("o")
        assert "66.7% passed" in app.screen
        await app.press("o", "enter")
        assert "regraded (1)" in app.screen
        await app.press("h")
        assert "1 batch was regraded since" in app.screen


@pytest.mark.slow
async def test_a_batch_that_was_graded_again_is_shown_first_as_it_was_graded_when_it_ran(tmp_path: Path) -> None:
    suites, history = history_of(tmp_path, Made(well()), Made(well("Lights off")))
    (suites / "home.toml").write_text(AS_IT_WAS_CALLED, encoding="utf-8")
    async with opened(suites, live=True, history=history) as app:
        screen = await shown(app, "equals_sign")
        await app.until(lambda: bool(screen.state.regraded))
    async with opened(suites, live=True, history=history) as app:
        screen = await shown(app)
        await app.until(lambda: bool(screen.state.gradings(screen.state.batches[0])))
        assert "as it ran  ✓2 ✗1   66.7%" in app.screen and "↻" not in app.screen
        assert "as graded when it ran; there are later grades" in " ".join(app.screen.split())
        await app.press("enter")
        assert "batch #2, as graded when it ran" in app.screen
        await app.press("escape", "o", "space", "down", "space")
        assert isinstance(app.app.screen, BatchDiffScreen)
        assert "#1 → #2, grading 1" in app.screen


async def test_what_is_edited_and_not_saved_counts_when_a_batch_is_graded_again(tmp_path: Path) -> None:
    suites, history = history_of(tmp_path, Made(well("Lights off")))
    async with opened(suites, live=True, history=history) as app:
        main = app.app.main
        (suite,) = main.open_suites.suites
        main.open_suites.change(suite, Document.of(AS_IT_WAS_CALLED), "Changed it")
        await app.settle()
        assert main.open_suites.dirty
        screen = await shown(app, "equals_sign")
        await app.until(lambda: bool(screen.state.gradings(screen.state.batches[0])))
        ((_, again),) = screen.state.gradings(screen.state.batches[0])
        before = screen.state.batches[0].parts
        assert [sum(part.counts[Status.FAILED] for part in parts) for parts in (before, again)] == [1, 0]


async def test_one_damaged_run_costs_no_other_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    suites, history = history_of(tmp_path, Made(well("Lights off")))
    with closing(sqlite3.connect(history)) as connection:
        connection.execute("UPDATE details SET events = x'00', block = NULL WHERE run = 1")
        connection.commit()
    async with opened(suites, live=True, history=history) as app:
        screen = await shown(app, "w")
        await app.until(lambda: "Saved 2 recordings" in app.screen)
        await app.press("equals_sign")
        await app.until(lambda: bool(screen.state.gradings(screen.state.batches[0])))
        assert sum(sum(part.counts.values()) for part in screen.state.parts(screen.state.batches[0])) == 3
        await app.until(lambda: "left out: run 1 of batch 1" in app.screen)


async def test_damage_that_enter_finds_is_said_and_the_file_stays(tmp_path: Path) -> None:
    suites, history = history_of(tmp_path)
    async with opened(suites, live=True, history=history) as app:
        screen = await shown(app)
        content = bytearray(history.read_bytes())
        for at in range(4096, len(content), 4096):
            content[at : at + 64] = b"x" * 64
        history.write_bytes(content)
        await app.press("enter")
        await app.until(lambda: "is damaged" in " ".join(app.screen.split()))
        await app.press("f5")
        await app.until(lambda: screen.state.problem is not None)
    assert history.read_bytes() == content


@pytest.mark.parametrize("size", first_of([*SIZES, (40, 10)], 1))
async def test_what_is_said_of_two_batches_has_the_rows_it_needs_where_there_are_some(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    suites, history = history_of(tmp_path, Made(well("Movie night")), Made(well("Lights off")))
    async with opened(suites, size=size, live=True, history=history) as app:
        await shown(app, "space", "down", "space", "down")
        head = app.app.screen.query_one(Head)
        needed = len(app.app.screen._head_lines(size[0]))  # type: ignore[attr-defined]
        assert head.size.height == min(needed, max(4, size[1] // 4))


@pytest.mark.slow
async def test_whoever_leaves_while_a_batch_is_graded_is_told_on_the_main_screen(tmp_path: Path) -> None:
    suites, history = history_of(tmp_path, Made(well("Lights off")))
    async with opened(suites, live=True, history=history) as app:
        screen = await shown(app)
        await app.press("escape")
        app.app.run_worker(app.app.services.batch_work.regrade(screen, screen.state.batches[0]), group="ask")
        await app.until(lambda: "Regraded: no grade changed" in app.screen)
        assert app.app.screen is app.app.main


@pytest.mark.slow
async def test_runs_of_a_batch_are_saved_in_another_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    suites, history = history_of(tmp_path)
    async with opened(suites, live=True, history=history) as app:
        await shown(app, "W")
        await app.until(lambda: "messages in OpenAI's form" in app.screen)
        await app.press("1")
        await app.until(lambda: "Saved" in app.screen)
        assert (tmp_path / "exports" / "batch-5.messages.jsonl").read_text(encoding="utf-8").count("\n") == 1
        await app.press("W", "1")
        await app.until(lambda: "already exists" in " ".join(app.screen.split()))


@pytest.mark.slow
async def test_the_filter_takes_suite_model_name_and_date(tmp_path: Path) -> None:
    suites, history = history_of(tmp_path)
    async with opened(suites, live=True, history=history) as app:
        screen = await shown(app, "slash", *"other home", "enter")
        assert [batch.number for batch in screen.state.rows] == [3]
        await app.press("escape")
        assert len(screen.state.rows) == len(BATCHES)


@pytest.mark.slow
async def test_a_batch_that_runs_is_seen_growing(tmp_path: Path) -> None:
    suites, history = history_of(tmp_path)
    async with opened(suites, live=True, history=history) as app:
        await app.press("home", "R", "h")
        screen = app.app.screen
        assert isinstance(screen, HistoryScreen)
        await app.until(lambda: len(screen.state.batches) == len(BATCHES) + 1 and not screen.state.active)
        assert screen.state.batches[0].graded == 3


async def test_a_batch_that_goes_on_is_read_again_when_something_happens_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.tui.history.batches_screen.RELOAD_INTERVAL_S", 0.0)
    suites, history = history_of(tmp_path)
    async with opened(suites, live=True, history=history) as app:
        await app.press("s")
        await app.until(lambda: bool(app.app.main.book.held_runs))
        screen = await shown(app)
        assert screen.state.active == {6}
        assert "… 0 of 1" in app.screen
        await app.press("c")
        assert "Its runs are under way" in app.screen
        before = screen.state.batches[0]
        screen.update_runs(set(), False)
        await app.settle()
        assert screen.state.batches[0] is not before
        app.app.action_stop_all()
        await app.until(lambda: not screen.state.active)
        assert "○ 1 missing" in app.screen


@pytest.mark.slow
async def test_without_a_history_the_screen_says_how_one_comes_about(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, home=SMART_HOME)
    async with opened(suites, live=True) as app:
        await app.press("h")
        assert "This session keeps no history" in app.screen
        app.app.pop_screen()
        app.app.main.action_do("timeline")
        await app.settle()
        assert "--no-history" in app.screen
    async with opened(suites, live=True, history=tmp_path / "none.sqlite3") as app:
        await app.press("h")
        assert "There is no batch yet" in app.screen
        await app.press("enter")
        assert "There is no batch here" in app.screen


@pytest.mark.slow
async def test_a_history_that_cannot_be_read_is_no_reason_to_break(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, home=SMART_HOME)
    newer = tmp_path / "newer.sqlite3"
    with closing(sqlite3.connect(newer)) as connection:
        connection.execute("CREATE TABLE anything (id INTEGER)")
    async with opened(suites, live=True, history=newer) as app:
        await app.press("h")
        assert "is a different database" in " ".join(app.screen.split())
    damaged = tmp_path / "damaged.sqlite3"
    damaged.write_bytes(b"nothing that SQLite knows" * 100)
    async with opened(suites, live=True, history=damaged) as app:
        await app.press("h")
        assert "is not a history: name another" in " ".join(app.screen.split())


@pytest.mark.slow
async def test_everything_can_be_reached_on_a_low_and_narrow_terminal(tmp_path: Path) -> None:
    suites, history = history_of(tmp_path)
    async with opened(suites, size=(40, 10), live=True, history=history) as app:
        screen = await shown(app)
        assert "#5" in app.screen
        assert "Run with" not in app.screen
        await app.press("tab", "end")
        assert screen.column == "detail"
        assert "offline (baseline)" in app.screen
        await app.press("escape", "down", "space", "down", "space")
        assert isinstance(app.app.screen, BatchDiffScreen)
        await app.press("escape", "escape")
        assert app.app.screen_stack == [app.app.main]


@pytest.mark.slow
async def test_of_many_batches_older_ones_are_read_as_they_are_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.tui.history.batches_screen.FIRST_BATCHES", 2)
    monkeypatch.setattr("workbench.tui.history.batches.OLDER_ROWS", 1)
    suites, history = history_of(tmp_path, *(Made(well(*CASES[: number % 2])) for number in range(7)))
    name_batch(history, 1, "first", pytest.fail)
    async with opened(suites, size=(120, 24), live=True, history=history) as app:
        screen = await shown(app)

        def bars() -> str:
            return next((line for line in app.screen.splitlines() if "▁" in line or "█" in line), "")

        assert "2 of 7 batches" in app.screen and len(screen.state.rows) == 2
        await app.until(lambda: bars() != "")
        newest = bars()
        await app.press("down")
        await app.until(lambda: "4 of 7 batches" in app.screen)
        assert screen.state.selected is not None and screen.state.selected.number == 6
        await app.press("slash", *"first")
        await app.until(lambda: [batch.number for batch in screen.state.rows] == [1])
        assert "7 batches" in app.screen and "of 7" not in app.screen
        await app.press("escape", "home")
        assert bars() == newest
