"""The tree as rows: order, folding, filters, and reading again."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from workbench.authoring.document import HEAD
from workbench.authoring.open_suite import OpenSuite
from workbench.show.spans import cells, plain
from workbench.suite.suite_file import parse_suite
from workbench.tui.run_book.book import RunBook
from workbench.tui.tree.lines import fold_cell, tree_line
from workbench.tui.tree.state import Row, TreeState

ROOT = Path("suites")


def suite(path: str, *names: str, more: str = "") -> OpenSuite:
    cases = "".join(f'[[cases]]\nname = "{name}"\nuser = "x"\n' for name in names)
    return opened(f'format = 1\nname = "S"\n{more}\n{cases}', path)


def opened(text: str, path: str) -> OpenSuite:
    return OpenSuite(parse_suite(text, ROOT / path))


def tree(*suites: OpenSuite) -> TreeState:
    return TreeState([ROOT], suites)


def picture(state: TreeState) -> list[str]:
    return ["  " * row.depth + row.label for row in state.rows]


def row(state: TreeState, label: str) -> Row:
    return next(row for row in state.rows if row.label == label)


def test_folders_hold_folders_then_suites_which_hold_cases() -> None:
    state = tree(suite("a.toml", "One", "Two"), suite("deep/down/b.toml", "Three"))
    assert picture(state) == ["suites", "  deep", "    down", "      b", "        Three", "  a", "    One", "    Two"]


def test_a_single_file_needs_no_folder() -> None:
    file = suite("a.toml", "One")
    assert picture(TreeState([file.path], [file])) == ["a", "  One"]


def test_the_cursor_begins_on_the_first_case() -> None:
    selected = tree(suite("a.toml", "One")).selected
    assert selected is not None
    assert selected.label == "One"


def test_a_suite_that_is_not_toml_shows_its_problems_and_their_hints() -> None:
    labels = picture(tree(opened('format = 1\nname = "S"\nexecute = True\n', "b.toml")))
    assert labels[1] == "  b.toml"
    assert labels[2].startswith("    line 3 is not TOML: ")
    assert labels[3] == "      write true"


def test_errors_in_cases_stand_at_the_cases_and_those_outside_of_them_above() -> None:
    cases = '[[cases]]\nname = "One"\nuser = "x"\nusr = "y"\n[[cases]]\nname = "Two"\nuser = "x"\n'
    state = tree(opened(f'format = 1\nname = "S"\nexecut = true\n{cases}', "b.toml"))
    assert [line.strip() for line in picture(state)[1:]] == [
        "b",
        "line 3: unknown key `execut` in the suite",
        "did you mean `execute`?",
        "One",
        "Two",
    ]
    book = RunBook(lambda: 0.0)
    assert plain(tree_line(state, row(state, "One"), book, 40)).split() == ["▲", "One", "problem"]
    assert plain(tree_line(state, row(state, "Two"), book, 40)).split() == ["·", "Two"]


def test_folding_hides_what_is_below_and_keeps_the_cursor() -> None:
    state = tree(suite("a.toml", "One"), suite("b.toml", "Two"))
    state.move_to(3)
    state.fold(row(state, "b"), True)
    assert picture(state) == ["suites", "  a", "    One", "  b"]
    assert state.selected == row(state, "b")
    state.fold(row(state, "b"), False)
    assert picture(state)[-1] == "    Two"


def test_the_filter_wants_every_word_somewhere_in_the_case_or_its_suite() -> None:
    state = tree(suite("home.toml", "Lights on", "Lights off"), suite("work.toml", "Lights off"))
    state.set_filter("OFF hom")
    assert picture(state) == ["suites", "  home", "    Lights off"]
    selected = state.selected
    assert selected is not None
    assert selected.label == "Lights off"
    state.set_filter("")
    assert len(state.rows) == 6


def test_the_cursor_stays_on_its_case_when_a_filter_goes_that_nothing_fitted() -> None:
    state = tree(suite("home.toml", "Lights on", "Lights off"), suite("work.toml", "Lamps off"))
    state.move_to(len(state.rows) - 1)
    before = state.selected
    for typed in ("q", "quux", ""):
        state.set_filter(typed)
    assert state.selected == before
    for typed in ("l", "lights on", ""):
        state.set_filter(typed)
    assert state.selected == row(state, "Lights on")


def test_a_filter_finds_what_is_folded() -> None:
    state = tree(suite("home.toml", "Lights on"))
    state.fold(row(state, "home"), True)
    state.set_filter("light")
    assert picture(state)[-1] == "    Lights on"


def test_what_is_below_a_row_is_what_is_shown_there() -> None:
    home, work = suite("home.toml", "A", "B"), suite("sub/work.toml", "A", "C")
    state = tree(home, work)
    assert state.cases_below(row(state, "suites")) == [(work, ("a", "c")), (home, ("a", "b"))]
    assert state.cases_below(row(state, "home")) == [(home, ("a", "b"))]
    assert state.cases_below(row(state, "B")) == [(home, ("b",))]
    state.set_filter("a home")
    assert state.cases_below(row(state, "suites")) == [(home, ("a",))]


def test_reading_again_keeps_the_cursor_on_its_case() -> None:
    state = tree(suite("a.toml", "One", "Two"))
    state.move_to(3)
    state.reload([suite("a.toml", "Zero", "One", "Two")])
    selected = state.selected
    assert selected is not None
    assert selected.label == "Two"
    state.reload([suite("a.toml", "Zero")])
    assert state.selected is not None


def test_many_cases_start_folded() -> None:
    state = tree(suite("a.toml", *(f"Case {number}" for number in range(2_000))))
    assert picture(state) == ["suites", "  a"]


def test_left_goes_to_what_holds_the_row() -> None:
    state = tree(suite("a.toml", "One", "Two"))
    assert [state.parent(index) for index in range(4)] == [0, 0, 1, 1]


def test_rows_fit_and_end_with_their_result() -> None:
    state = tree(suite("a.toml", "A very long name that does not fit", more='tags = ["x"]'))
    book = RunBook(lambda: 0.0)
    for width in range(1, 60):
        assert all(cells(tree_line(state, shown, book, width)) <= width for shown in state.rows)
        assert plain(tree_line(state, state.rows[2], book, 20)) == "     · A very lo…fit"


def test_a_skipped_case_is_told_apart_before_anything_ran() -> None:
    state = tree(opened('format = 1\nname = "S"\n[[cases]]\nname = "One"\nuser = "x"\nskip = "no hub"\n', "a.toml"))
    assert plain(tree_line(state, state.rows[2], RunBook(lambda: 0.0), 20)).split()[0] == "-"


CHAIN = 'steps = [{ user = "x", tool = "add" }, {}]'


def chained(path: str, *, others: int = 0) -> OpenSuite:
    more = "".join(f'[[cases]]\nname = "Other {number}"\nuser = "x"\n' for number in range(others))
    return opened(f'format = 1\nname = "S"\n[[cases]]\nname = "Sum"\n{CHAIN}\n{more}', path)


def test_steps_of_chains_stand_below_their_case_with_number_and_tool() -> None:
    state = tree(chained("a.toml"))
    assert picture(state)[2:] == ["    Sum", "      1 add", "      2 no call"]
    book = RunBook(lambda: 0.0)
    lines = [plain(tree_line(state, shown, book, 40)).rstrip() for shown in state.rows[2:]]
    assert lines == ["     · ▾ Sum", "         1 add", "         2 no call"]
    assert fold_cell(state.rows[2]) == lines[0].index("▾")


def test_a_step_shows_its_case_and_left_leads_up_to_it() -> None:
    state = tree(chained("a.toml"))
    state.move_to(4)
    assert state.selected is not None
    assert state.selected.case == state.rows[2].case
    assert state.parent(4) == 2
    assert state.suite_or_folder == state.rows[1]
    state.fold(state.rows[2], True)
    assert picture(state)[2:] == ["    Sum"]
    assert state.selected.key.kind == "case"


def test_with_many_cases_chains_start_folded() -> None:
    state = tree(chained("a.toml", others=60))
    assert picture(state)[2:4] == ["    Sum", "    Other 0"]
    state.fold(state.rows[2], False)
    assert picture(state)[3] == "      1 add"
    assert state.folded == frozenset()


@pytest.mark.parametrize("typed", ["ligths", "kitchn", "kichen of"])
def test_the_filter_finds_what_is_mistyped(typed: str) -> None:
    state = tree(suite("home.toml", "Kitchen lights off", "Movie night"), suite("work.toml", "Lock up"))
    state.set_filter(typed)
    assert picture(state) == ["suites", "  home", "    Kitchen lights off"]


def test_what_is_spelt_as_typed_keeps_out_what_is_only_like_it() -> None:
    state = tree(suite("a.toml", "Move it", "Movie night", "Moved on"))
    state.set_filter("move")
    assert picture(state)[2:] == ["    Move it", "    Moved on"]
    state.set_filter("movies")
    assert picture(state)[2:] == ["    Movie night"]
    state.set_filter("moviez night")
    assert picture(state)[2:] == ["    Movie night"]
    state.set_filter("zzzz")
    assert picture(state) == []


def test_a_word_that_stands_elsewhere_is_not_guessed() -> None:
    state = tree(suite("home.toml", "Lights"), suite("work.toml", "Light"))
    state.set_filter("home light")
    assert picture(state)[2:] == ["    Lights"]
    state.set_filter("work lights")
    assert picture(state) == []


def test_the_filter_follows_what_is_edited() -> None:
    home = suite("home.toml", "One", "Two")
    state = tree(home)
    state.set_filter("two")
    home.change(home.document.with_case(0, {"name": "Two more", "user": "x"}), "Renamed")
    assert state.changed(home)
    assert picture(state)[2:] == ["    Two more", "    Two"]


def test_the_filter_asks_for_how_cases_are() -> None:
    home = opened(
        'format = 1\nname = "S"\n[[cases]]\nname = "One"\nuser = "x"\nskip = "no"\n'
        '[[cases]]\nname = "Two"\nuser = "say what was skipped"\n',
        "a.toml",
    )
    state, book = tree(home), RunBook(lambda: 0.0)
    for typed, found in (
        ("status:skip", ["One"]),
        ("skipped", ["One"]),
        ('"skipped"', ["Two"]),
        ("status:never", ["Two"]),
        ("status:failed", []),
        ("status:", "all"),
    ):
        state.set_filter(typed, book)
        assert [shown.label for shown in state.rows[2:]] == (["One", "Two"] if found == "all" else found), typed
    home.change(home.document.with_case(1, {"name": "Two", "user": "y"}), "Edited")
    state.set_filter("status:unsaved two", book)
    assert [shown.label for shown in state.rows[2:]] == ["Two"]


def test_a_dot_tells_what_is_not_saved_however_narrow_the_tree_is() -> None:
    home = suite("a.toml", "A name that is rather long", "Two")
    state, book = tree(home), RunBook(lambda: 0.0)
    home.change(home.document.with_case(0, {"name": "A name that is rather long", "user": "y"}), "Edited")
    shown = [plain(tree_line(state, shown, book, 18)) for shown in state.rows[1:]]
    assert [line.rstrip().endswith("●") for line in shown] == [True, True, False]


def test_the_neighbour_of_a_case_is_the_next_one_that_is_shown() -> None:
    state = tree(suite("a.toml", "Light 1", "Other", "Light 2"), suite("b.toml", "Light 3"))
    state.set_filter("light")
    state.select(ROOT / "a.toml", "light-1")
    assert (state.neighbour(-1), state.neighbour(1)) == (None, 2)
    state.select(ROOT / "a.toml", "light-2")
    assert (state.neighbour(-1), state.neighbour(1)) == (0, None)


def test_an_edit_makes_only_the_rows_of_what_it_changed() -> None:
    home = suite("a.toml", *(f"Case {number}" for number in range(1_000)))
    state = tree(home)
    state.fold(row(state, "a"), False)
    rows = state._of_suites[home.path]
    before = rows.rows_made
    home.change(home.document.with_case(500, {"name": "Other", "user": "x"}), "Renamed")
    assert state.changed(home)
    assert rows.rows_made == before + 1
    home.change(home.document.with_case(500, {"name": "Other", "user": "y"}), "Edited")
    assert not state.changed(home)
    home.change(home.document.with_case_moved(500, 501), "Moved")
    assert state.changed(home)
    assert rows.rows_made == before + 3


def test_what_is_wrong_in_many_cases_costs_no_more_for_each_of_them() -> None:
    def work(count: int) -> int:
        cases = "".join(f'[[cases]]\nname = "Case {number}"\nusr = "x"\n' for number in range(count))
        home = opened(f'format = 1\nname = "S"\n{cases}', "a.toml")
        assert len(home.file.errors) >= count
        state = tree(home)
        calls = 0

        def count_call(frame: object, event: str, argument: object) -> None:
            nonlocal calls
            calls += event in ("call", "c_call")

        home.change(home.document.with_case(1, {"name": "Other", "usr": "x"}), "Renamed")
        assert home.file.suite is None
        sys.setprofile(count_call)
        try:
            state.changed(home)
        finally:
            sys.setprofile(None)
        return calls

    assert work(400) < 3 * work(200)


@pytest.mark.parametrize("text", ["evening", "status:never", "one"])
def test_a_case_that_is_edited_in_place_stays_shown_and_selected_whatever_it_says(text: str) -> None:
    home = opened(
        'format = 1\nname = "S"\n[[cases]]\nname = "Nil"\nuser = "x"\nskip = "no"\n'
        '[[cases]]\nname = "One"\nuser = "x"\ntags = ["evening"]\n[[cases]]\nname = "Two"\nuser = "x"\n',
        "a.toml",
    )
    other = suite("b.toml", "Two")
    state = tree(home, other)
    state.set_filter(text, RunBook(lambda: 0.0))
    state.select(home.path, home.cases[1].key)
    for name in ("T", "Two", "Four"):
        home.change(home.document.with_case(1, {"name": name, "user": "x"}), "Typed")
        state.changed(home, 1)
        assert state.filter == text
        selected = state.selected
        assert selected is not None and selected.open is home and selected.case is home.cases[1]
    state.set_filter("nil")
    assert [row.label for row in state.rows if row.case is not None] == ["Nil"]


def test_a_suite_whose_settings_are_edited_stays_shown_and_selected() -> None:
    home = opened('format = 1\nname = "Home"\n[[cases]]\nname = "One"\nuser = "x"\n', "a.toml")
    other = opened('format = 1\nname = "Homely"\n[[cases]]\nname = "One"\nuser = "x"\n', "b.toml")
    state = tree(home, other)
    state.set_filter("home")
    state.select(home.path)
    home.change(home.document.with_header("name", "Ho"), "Typed")
    state.changed(home, HEAD)
    assert state.selected is not None and state.selected.open is home
