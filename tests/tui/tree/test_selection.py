"""The selection as data, without a screen."""

from __future__ import annotations

from pathlib import Path

from workbench.authoring.open_suite import OpenSuite
from workbench.authoring.workspace import OpenSuites, Workspace, undo
from workbench.suite.suite_file import parse_suite
from workbench.tui.run_book.book import RunBook
from workbench.tui.tree.selection import Selection

TEXT = 'format = 1\nname = "{}"\n\n[[cases]]\nid = "one"\nname = "One"\nuser = "Hello"\n'
ROOT = Path("suites")


def selection_of(*names: str) -> tuple[Selection, list[OpenSuite], list[str]]:
    """Return a selection in suites with these names, the suites, and the notifications of its follower."""
    open_suites = OpenSuites()
    selection = Selection(open_suites, RunBook(lambda: 0.0))
    open_suites.follow(selection.tree.follow)
    news: list[str] = []
    selection.follow(news.append)
    files = tuple(parse_suite(TEXT.format(name), ROOT / f"{name}.toml") for name in names)
    open_suites.read(Workspace((ROOT,), files))
    return selection, list(open_suites.suites), news


def test_the_tree_follows_the_suites() -> None:
    selection, (a, b), _ = selection_of("a", "b")
    open_suites, tree = selection.open_suites, selection.tree
    assert [row.label for row in tree.rows] == ["suites", "a", "One", "b", "One"]
    selection.select(b.path)
    open_suites.change(a, a.document.with_case(0, {**a.document.table(0), "name": "Other"}), "Renamed", case="one")
    assert tree.other_rows
    assert [row.label for row in tree.rows] == ["suites", "a", "Other", "b", "One"]
    assert selection.suite is b
    undo(a, open_suites)
    assert (selection.suite, selection.title) == (a, "One")
    open_suites.change(a, a.document.with_case(0, {**a.document.table(0), "user": "Bye"}), "Changed", case="one")
    assert not tree.other_rows
    open_suites.close(a)
    assert [row.label for row in tree.rows] == ["suites", "b", "One"]


def test_what_is_under_the_cursor() -> None:
    selection, (a, b), news = selection_of("a", "b")
    selection.select(b.path, "one")
    assert (selection.suite, selection.case, selection.title) == (b, (b.path, "one"), "One")
    assert selection.suites_below() == ([b], "b.toml")
    assert selection.runnable_below(selection.row) == [(b, ("one",))]
    selection.tree.move_to(0)
    assert (selection.suite, selection.case, selection.run) == (None, None, None)
    assert selection.suites_below() == ([a, b], "suites")
    selection.choose_run(3)
    assert selection.run is None
    assert news == ["row", "run"]


def test_a_suite_opened_from_elsewhere_leaves_folds_filter_and_cursor_alone() -> None:
    selection, _, _ = selection_of("home", "other")
    tree = selection.tree
    tree.fold(next(row for row in tree.rows if row.label == "other"), True)
    tree.set_filter("One")
    before = tree.selected
    selection.open_suites.add(OpenSuite.new(Path("elsewhere.toml"), TEXT.format("elsewhere")))
    assert (tree.selected, tree.filter) == (before, "One")
    assert [key.path.name for key in tree.folded] == ["other.toml"]
    assert tree.rows[-2].label == "elsewhere"
