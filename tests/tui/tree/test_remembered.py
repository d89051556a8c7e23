"""Results of earlier sessions in the tree, from a real history, until a run replaces them."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from tests.sampled_rows import first_of
from tests.tui.apps import SMART_HOME, Opened, opened, suites_in
from tests.tui.histories import BEGAN, Made, well, write_history
from tests.tui.storage.test_saving import answer
from workbench.authoring.document import Document
from workbench.authoring.open_suite import OpenSuite
from workbench.tui.grades.screen import GradesScreen
from workbench.tui.storage.dialogs import EarlierDraftScreen
from workbench.tui.trajectory.screen import TrajectoryScreen

BATCHES = (Made(well("Movie night", "Lights off")), Made(well("Movie night"), models=("offline", "silent")))
"""The batches of the history. The last is from the second day."""


@pytest.fixture(autouse=True)
def hours_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the second day, some hours after the last batch."""
    now = BEGAN + timedelta(days=1, hours=5, minutes=30)
    monkeypatch.setattr("workbench.tui.run_book.book.RunBook.now", lambda _: now)


def before(folder: Path, *batches: Made) -> tuple[Path, Path]:
    """A folder of suites, and its history."""
    suites, history = suites_in(folder, home=SMART_HOME), folder / "history.sqlite3"
    write_history(history, suites / "home.toml", *(batches or BATCHES))
    return suites, history


def rows(app: Opened) -> dict[str, str]:
    """Return the tree's text for each case after its name, with its sign."""
    found = {}
    tree = app.app.main.suite_tree
    for at, row in enumerate(tree.state.rows):
        text = "".join(span.text for span in tree.line_at(at)).split()
        found[row.label] = " ".join(text[:1] + text[len(row.label.split()) + 1 :])
    return found


@pytest.mark.parametrize("width", first_of([80, 160], 1))
async def test_the_tree_shows_results_of_before_with_their_age_until_a_run_replaces_them(
    tmp_path: Path, width: int
) -> None:
    suites, history = before(tmp_path)
    async with opened(suites, size=(width, 24), live=True, history=history) as app:
        assert rows(app)["Movie night"] == "✗ 0.00 5 h"
        assert rows(app)["Lights off"] == "✓ 1.00 5 h"
        assert rows(app)["home"] == "▾ ! 2/3"
        state = app.app.main.suite_tree
        sign = next(span for span in state.line_at(state.cursor) if "✗" in span.text)
        assert sign.role == "muted"
        await app.press("2", "3")
        assert "Last run: 5 h ago, batch #2" in app.screen and "✗ failed 0.00 · offline (baseline)" in app.screen
        await app.press("1", "r")
        await app.until(lambda: app.app.main.book.progress().done == 1)
        assert " h" not in rows(app)["Movie night"] and rows(app)["Lights off"] == "✓ 1.00 5 h"
        assert "Last run" not in app.screen


async def test_what_another_program_has_run_since_is_shown_when_everything_is_read_again(tmp_path: Path) -> None:
    suites, history = before(tmp_path, Made(well("Movie night"), cases=("movie-night",)))
    async with opened(suites, history=history) as app:
        assert "0.00" not in rows(app)["Lights off"]
        write_history(history, suites / "home.toml", BATCHES[0])
        await app.press("f5")
        await app.until(lambda: "0.00" in rows(app)["Lights off"])


@pytest.mark.slow
async def test_the_last_run_of_before_and_its_grades_are_opened_from_the_run_pane(tmp_path: Path) -> None:
    suites, history = before(tmp_path)
    async with opened(suites, size=(160, 24), live=True, history=history) as app:
        await app.press("3")
        assert "3 Enter  opens the worst of its runs" in app.screen
        assert re.search(r"Enter open   = grades", app.screen.splitlines()[-1])
        await app.press("Y")
        assert "This case has not been run in this session; r runs it" in app.screen
        await app.press("enter")
        await app.until(lambda: isinstance(app.app.screen, TrajectoryScreen))
        assert "batch #2" in app.screen and "Movie night" in app.screen and "failed" in app.screen
        await app.press("escape", "equals_sign")
        await app.until(lambda: isinstance(app.app.screen, GradesScreen))
        assert "Movie night" in app.screen
        await app.press("escape")
        app.app.main.selection.select(suites / "home.toml")
        await app.settle()
        assert "R run suite" in app.screen.splitlines()[-1]
        for key in ("enter", "equals_sign", "Y"):
            await app.press(key)
            assert "Put the cursor on a case that was run" in app.screen
        app.app.main.selection.select(suites / "home.toml", "lights-off")
        await app.settle()
        assert "3 Enter  opens the worst of its runs" in app.screen
        history.unlink()
        await app.press("enter")
        await app.until(lambda: "history" in app.screen.splitlines()[-1])
        assert app.app.screen is app.app.main


async def test_the_expectation_that_failed_in_an_earlier_session_is_edited(tmp_path: Path) -> None:
    suites, history = before(tmp_path)
    async with opened(suites, live=True, history=history) as app:
        await app.press("]", "e")
        main = app.app.main
        await app.until(lambda: main.pane == "case" and main.case_pane.form.page.current is not None)
        row = main.case_pane.form.page.current
        assert row is not None and row.place == ("ordered", 0, "args", "brightness")


async def test_the_comparison_before_the_first_run_is_the_last_one_of_the_history(tmp_path: Path) -> None:
    suites, history = before(tmp_path)
    async with opened(suites, size=(80, 24), history=history) as app:
        await app.press("v")
        await app.until(lambda: "silent" in app.screen)
        assert "batch #2" in app.screen and "3 cases · 2 models" in app.screen


async def test_a_case_that_is_edited_here_or_on_the_disk_says_so(tmp_path: Path) -> None:
    suites, history = before(tmp_path)
    home = suites / "home.toml"
    home.write_text(SMART_HOME.replace("brightness = 0 }", "brightness = 1 }"), encoding="utf-8")
    async with opened(suites, size=(160, 24), live=True, history=history) as app:
        assert rows(app)["Lights off"] == "✓ edited · 1.00 5 h"
        assert rows(app)["Movie night"] == "✗ 0.00 5 h"
        app.app.main.selection.select(home, "lights-off")
        await app.settle()
        assert "The case was edited since." in app.screen
        suite = app.app.main.selection.suite
        assert suite is not None and await app.app.services.batch_work.grade_added(2, suite.file) is None
        app.app.services.history_reader.read_again()
        await app.until(lambda: "edited" not in rows(app)["Lights off"])
        home.write_text(SMART_HOME, encoding="utf-8")
        await app.app.services.reader.catch_up()
        await app.settle()
        assert "edited" in rows(app)["Lights off"]  # since it was regraded


@pytest.mark.slow
async def test_results_of_a_suite_that_was_never_saved_are_there_again_with_its_draft(tmp_path: Path) -> None:
    suites, history = suites_in(tmp_path, other=SMART_HOME), tmp_path / "history.sqlite3"
    draft = suites / "draft.toml"
    async with opened(suites, live=True, history=history) as app:
        app.app.main.open_suites.add(OpenSuite.new(draft, SMART_HOME))
        app.app.main.selection.select(draft, "lights-off")
        await app.press("r")
        await app.until(lambda: app.app.main.book.progress().done == 1)
    async with opened(suites, size=(160, 40), live=True, history=history) as app:
        await answer(app, EarlierDraftScreen, "1")
        app.app.main.selection.select(draft, "lights-off")
        await app.until(lambda: "batch #1" in app.screen)
        assert "Not run yet" not in app.screen and "edited" not in app.screen
        suite = app.app.main.selection.suite
        assert suite is not None
        other = SMART_HOME.replace("brightness = 0 }", "brightness = 1 }")
        app.app.main.open_suites.change(suite, Document.of(other), "Other brightness")
        await app.until(lambda: "The case was edited since." in app.screen)


async def test_a_suite_sums_up_its_last_runs_of_this_session_and_before_it(tmp_path: Path) -> None:
    suites, history = before(tmp_path)
    home = suites / "home.toml"
    home.write_text(SMART_HOME.replace("brightness = 0 }", "brightness = 1 }"), encoding="utf-8")
    async with opened(suites, size=(160, 48), live=True, history=history) as app:
        app.app.main.selection.select(home)
        await app.until(lambda: "causes" in app.screen)
        lines = [line.rsplit("│", 1)[-1].rsplit("┃", 1)[-1].strip() for line in app.screen.splitlines()]
        shown = [line[line.find("  ") :].strip() if "  " in line else line for line in lines]
        text = "\n".join(shown)
        assert "2 passed, 1 failed" in text
        assert "3 cases from the history, 5 h old · 1 case edited since" in text
        assert "causes: missing call 2" in text and "latency p50" in text and "cost" in text
        await app.press("R")
        await app.until(lambda: app.app.main.book.progress().done == 3)
        assert "from the history" not in app.screen and "case here" not in app.screen


async def test_a_damaged_or_locked_history_leaves_the_tree_plain_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.history.database.BUSY_TIMEOUT_S", 0.0)
    suites, history = before(tmp_path)
    with closing(sqlite3.connect(history)) as other:
        other.execute("UPDATE runs SET latency_ms = 'long' WHERE case_id = 'lights-off'")
        other.commit()
    async with opened(suites, live=True, history=history) as app:
        assert "damaged: latency_ms must be a number" in " ".join(app.screen.split())
        assert rows(app)["Lights off"] == "·" and rows(app)["Movie night"] == "✗ 0.00 5 h"
    with closing(sqlite3.connect(history)) as other:
        other.execute("PRAGMA journal_mode = DELETE")
        other.execute("BEGIN EXCLUSIVE")
        async with opened(suites, live=True, history=history) as app:
            assert "locked by" in " ".join(app.screen.split()) and rows(app)["Movie night"] == "·"
        other.rollback()
    history.write_bytes(b"SQLite format 3\0" + b"no database" * 500)
    async with opened(suites, live=True, history=history) as app:
        assert "damaged" in app.screen and rows(app)["Movie night"] == "·"


@pytest.mark.slow
async def test_the_filter_and_rerunning_know_results_of_before_and_messages_and_tags(tmp_path: Path) -> None:
    suites, history = before(tmp_path)
    async with opened(suites, live=True, history=history, size=(120, 30)) as app:
        await app.press("slash")
        box = app.app.main.filter_box
        found = {
            "status:failed": {"Movie night"},
            "failed": {"Movie night"},
            "status:passed": {"Lights off", "Nothing to do"},
            "status:never": set(),
            "tag:even": {"Movie night"},
            "switch the": {"Lights off"},
            "good night": {"Nothing to do"},
            "tag:even status:passed": set(),
        }
        for text, names in found.items():
            box.value = text
            await app.settle()
            assert {row.label for row in app.app.main.suite_tree.state.rows if row.case is not None} == names, text
        box.value = "colour:red"
        await app.settle()
        message = app.app.main.suite_tree.message
        assert ("colour: is not a filter; the filters are status: and tag:.", "warned") in message
        box.value = "status:lost"
        await app.settle()
        assert any("status:lost is not known" in text for text, _ in app.app.main.suite_tree.message)
        box.value = "error"
        await app.settle()
        said = 'error filters by status; "error", in quotation marks, searches the texts of cases.'
        assert (said, "warned") in app.app.main.suite_tree.message
        await app.press("escape", "F")
        await app.until(lambda: app.app.main.book.progress().done == 1)
        assert " h" not in rows(app)["Movie night"] and rows(app)["Lights off"] == "✓ 1.00 5 h"
