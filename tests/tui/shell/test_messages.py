"""Messages at the bottom of the screen are complete sentences with the cause."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sampled_rows import first_of, first_rows
from tests.tui.apps import BROKEN, NEEDY, SMART_HOME, opened, suites_in
from tests.tui.in_terminal import Terminal
from workbench.show.spans import Span, cells, plain
from workbench.tui.history import batches, timeline
from workbench.tui.history.batches import HistoryList
from workbench.tui.history.timeline import Timeline
from workbench.tui.kit.actions import PANES, MainSituation, key_for, why_no_run, why_unavailable
from workbench.tui.kit.bars import notice_rows
from workbench.tui.run_book.stored_batches import LoadedBatches
from workbench.tui.shell.actions import ALL_ACTIONS, MAIN_ACTIONS
from workbench.tui.tree.lines import tree_message

READ_AGAIN = "Reloaded from disk"
ROWS: tuple[Literal["folder", "suite", "case", "problem"] | None, ...] = (None, "folder", "suite", "case", "problem")


@pytest.mark.parametrize(
    ("editor", "said"),
    first_rows(
        [("/no/such/editor", "cannot be started: No such file or directory"), ("false", "▲ false ended with code 1")], 1
    ),
)
def test_an_editor_that_fails_is_not_followed_by_a_success(tmp_path: Path, editor: str, said: str) -> None:
    with Terminal([str(suites_in(tmp_path, smart_home=SMART_HOME))], tmp_path, environment={"EDITOR": editor}) as app:
        app.wait_for("Not run yet.")
        app.send("\x1bOS")
        app.wait_for(said)
        app.quiet(0.5)
        assert said in app.screen
        assert READ_AGAIN not in app.screen


async def test_a_failure_is_said_in_place_of_the_success_of_reading_again(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites) as app:
        (suites / "smart_home.toml").write_text(SMART_HOME.replace("Lights off", "Lights out"), encoding="utf-8")
        app.app.services.reader.read_soon("vi ended with code 1")
        await app.settle()
        assert "▲ vi ended with code 1" in app.screen
        assert READ_AGAIN not in app.screen
        assert "Lights out" in app.screen


@pytest.mark.parametrize("by_name", first_of([False, True], 1), ids=["in a folder", "named"])
async def test_a_file_that_is_gone_is_said_to_be(tmp_path: Path, by_name: bool) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    file = suites / "smart_home.toml"
    async with opened(suites, paths=[file] if by_name else None) as app:
        file.unlink()
        await app.press("f5")
        assert "! smart_home.toml no longer exists" in app.screen
        assert READ_AGAIN not in app.screen
        assert "; 1 cannot run" not in app.screen


async def test_of_many_that_are_gone_the_number_is_said(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, one=SMART_HOME, two=SMART_HOME, three=BROKEN)
    async with opened(suites) as app:
        (suites / "one.toml").unlink()
        (suites / "two.toml").unlink()
        await app.press("f5")
        assert "2 suites no longer exist; 1 cannot run" in app.screen


@pytest.mark.parametrize("by_name", first_of([False, True], 1), ids=["in a folder", "named"])
@pytest.mark.parametrize(
    ("now", "why"),
    [
        (None, "smart_home.toml no longer exists"),
        (BROKEN, "smart_home.toml, line 4: a case needs"),
        (SMART_HOME.replace("Movie night", "Film night"), "the cases to run are no longer in smart_home.toml"),
    ],
    ids=["gone", "broken", "without the case"],
)
async def test_nothing_was_run_says_why(tmp_path: Path, now: str | None, why: str, by_name: bool) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    file = suites / "smart_home.toml"
    async with opened(suites, paths=[file] if by_name else None) as app:
        if now is None:
            file.unlink()
        else:
            file.write_text(now, encoding="utf-8")
        await app.press("r")
        await app.until(lambda: "Nothing was run" in app.screen)
        assert f"! Nothing was run: {why}" in app.screen


async def test_a_file_that_is_no_suite_any_more_is_a_reason(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites) as app:
        (suites / "smart_home.toml").write_text('name = "other"\n', encoding="utf-8")
        await app.press("r")
        await app.until(lambda: "Nothing was run" in app.screen)
        assert "smart_home.toml is no longer a suite" in app.screen


async def test_a_long_message_takes_more_rows_while_it_stands(tmp_path: Path) -> None:
    path = "/".join(["a_long_folder"] * 9)
    async with opened(suites_in(tmp_path, needy=NEEDY), size=(80, 24)) as app:
        app.app.main.announce(f"trust cannot be stored in /{path}/trust.json: No space left", "warned", "!")
        await app.settle()
        assert "! trust cannot be stored in" in app.screen
        assert app.screen.endswith("No space left")
        await app.pilot.resize_terminal(40, 24)
        await app.settle()
        assert app.screen.endswith("No space left")
        await app.press("down")
        await app.press("slash", "escape")
        assert "No space left" not in app.screen
        assert "keys" in app.screen.splitlines()[-1]
        assert "Ask" in app.screen


@given(
    st.text(st.characters(codec="utf-8", exclude_categories=("C", "M", "Z")) | st.just(" "), min_size=1),
    st.integers(8, 60),
    st.integers(1, 3),
)
def test_a_message_never_takes_more_than_its_rows_and_keeps_its_end(text: str, width: int, most: int) -> None:
    said = f" {text}!"
    rows = notice_rows((Span(said, "error"),), width, most)
    assert 1 <= len(rows) <= most
    assert all(cells(row) <= width for row in rows)
    assert plain(rows[-1]).endswith("!")
    if len(said) <= width // 2:
        assert [plain(row) for row in rows] == [said]


@pytest.mark.slow
async def test_a_key_without_a_meaning_says_so_quietly_and_nothing_where_it_is_text(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        await app.press("comma")
        assert "No command on , here · ? keys · Ctrl+P commands" in app.screen.splitlines()[-1]
        await app.press("f9")
        assert "No command on F9 here" in app.screen.splitlines()[-1]
        await app.press("down")
        app.app.main.announce("This suite has errors", "warned")
        await app.press("comma")
        assert "No command" not in app.screen, "a warning stays"
        await app.press("slash", "comma", "f9")
        assert "No command" not in app.screen
        await app.press("escape", "t", "comma")
        assert "No command on , here" in app.screen.splitlines()[-1]
        await app.press("escape", "m", "comma", "escape", "2", "e", "f9", "ctrl+g")
        assert "No command" not in app.screen


def _no_batch() -> object:
    state = HistoryList()
    state.replace_all(LoadedBatches(()))
    return batches.list_message(state, "history.sqlite3")


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        (lambda: tree_message(""), "Enter  begins"),
        (lambda: why_no_run(MainSituation(row="case")), "runs it"),
        (_no_batch, "r runs a case"),
        (lambda: timeline.list_message(Timeline("Lights", (), {})), "r runs it"),
    ],
)
def test_no_hint_names_a_key_that_a_read_only_view_refuses(
    monkeypatch: pytest.MonkeyPatch, said: Callable[[], object], hint: str
) -> None:
    assert hint in str(said())
    monkeypatch.setattr("workbench.config.read_only._is_read_only", True)
    assert hint not in str(said())


def test_no_reason_against_looking_names_a_key_that_a_read_only_view_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.config.read_only._is_read_only", True)
    situations = [MainSituation(row=row, pane=pane, runs=runs) for row in ROWS for pane in PANES for runs in (0, 1)]
    looks = [action for action in MAIN_ACTIONS if not action.changes]
    reasons = [why for action in looks for now in situations if (why := why_unavailable(action, now)) is not None]
    named = [other for other in ALL_ACTIONS.values() if any(key_for(other.id) in why for why in reasons)]
    assert reasons and not [other.id for other in named if other.changes]
