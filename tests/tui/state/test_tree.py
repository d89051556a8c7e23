"""The tree as rows: what is where, folded, filtered, read again."""

from __future__ import annotations

from pathlib import Path

from workbench.suite.loading import SuiteFile, parse_suite
from workbench.tui.state.runs import RunBook
from workbench.tui.state.spans import cells, plain
from workbench.tui.state.tree import Row, TreeState
from workbench.tui.state.tree_lines import tree_line

ROOT = Path("suites")


def suite(path: str, *names: str, more: str = "") -> SuiteFile:
    cases = "".join(f'[[cases]]\nname = "{name}"\nuser = "x"\n' for name in names)
    return parse_suite(f'format = 1\nname = "S"\n{more}\n{cases}', ROOT / path)


def tree(*files: SuiteFile) -> TreeState:
    return TreeState([ROOT], files)


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


def test_a_broken_suite_shows_its_problems_and_their_hints() -> None:
    broken = parse_suite('format = 1\nname = "S"\n[[cases]]\nname = "One"\nuser = "x"\nusr = "y"\n', ROOT / "b.toml")
    labels = picture(tree(broken))
    assert labels[1] == "  b.toml"
    assert labels[2].startswith("    line 6: ")
    assert "did you mean" in labels[3]


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
    assert plain(tree_line(state, state.rows[2], book, 20)).endswith("…")


def test_a_skipped_case_is_told_apart_before_anything_ran() -> None:
    file = parse_suite(
        'format = 1\nname = "S"\n[[cases]]\nname = "One"\nuser = "x"\nskip = "no hub"\n', ROOT / "a.toml"
    )
    assert plain(tree_line(tree(file), tree(file).rows[2], RunBook(lambda: 0.0), 20)).split()[0] == "-"
