"""The single entry for changes of suites, and the order in which its followers are notified."""

from __future__ import annotations

from pathlib import Path

from workbench.authoring.document import HEAD, Document
from workbench.authoring.open_suite import OpenSuite
from workbench.authoring.workspace import OpenSuites, SuitesChanged, Workspace, link_move, redo, undo
from workbench.suite.files import FileState
from workbench.suite.suite_file import SuiteFile, parse_suite

NAMES = ("journal", "tree", "grades", "screen")
TEXT = 'format = 1\nname = "{}"\n\n[[cases]]\nid = "one"\nname = "One"\nuser = "Hello"\n'


def file(name: str, text: str | None = None) -> SuiteFile:
    return parse_suite(text or TEXT.format(name), Path(f"suites/{name}.toml"))


class Followed:
    """Open suites with followers that record their notifications."""

    def __init__(self) -> None:
        self.told: list[tuple[str, SuitesChanged]] = []
        self.open_suites = OpenSuites()
        for name in NAMES:
            self.follow(name)
        self.open_suites.read(Workspace((Path("suites"),), (file("a"), file("b"))))
        self.a, self.b = self.open_suites.suites

    def follow(self, name: str) -> None:
        self.open_suites.follow(lambda change: self.told.append((name, change)))

    def news(self) -> list[SuitesChanged]:
        """Return the notifications since the last call. Every follower gets all of them, one follower after the
        other."""
        told, self.told = self.told, []
        assert [name for name, _ in told] == [*NAMES] * (len(told) // len(NAMES))
        changes = [change for _, change in told[:: len(NAMES)]]
        assert all(change is changes[at // len(NAMES)] for at, (_, change) in enumerate(told))
        return changes


def typed(suite: OpenSuite) -> Document:
    return suite.document.with_header("name", f"{suite.path.stem}, typed")


def test_every_change_goes_to_the_followers_in_their_order() -> None:
    followed = Followed()
    open_suites, a, b = followed.open_suites, followed.a, followed.b
    [first] = followed.news()
    assert (first.how, first.first, first.suites, first.open) == ("read", True, (a, b), (a, b))

    assert open_suites.change(a, typed(a), "Renamed", group="name", case="one", index=HEAD)
    assert not open_suites.change(a, typed(a), "Renamed")  # it says that already, so nobody is told
    [edited] = followed.news()
    assert (edited.how, edited.suites, edited.index, edited.first) == ("edited", (a,), HEAD, False)

    went = undo(a, open_suites)
    assert not isinstance(went, str)
    assert [change.summary for _, change in went] == ["Renamed"]
    assert undo(a, open_suites) == []
    redo(a, open_suites)
    taken_back, done_again = followed.news()
    assert (taken_back.how, taken_back.case) == (done_again.how, done_again.case) == ("undone", "one")

    a.saved(FileState(a.file.hash))
    open_suites.disk_changed(a)
    [saved] = followed.news()
    assert saved.how == "edited"
    assert open_suites.workspace.files[0] is a.disk

    elsewhere = OpenSuite.new(Path("elsewhere/c.toml"), TEXT.format("c"))
    open_suites.add(elsewhere)
    [added] = followed.news()
    assert (added.how, added.suites, added.open) == ("added", (elsewhere,), (a, b, elsewhere))
    assert added.workspace.roots == (Path("suites"), elsewhere.path)

    open_suites.close(b)
    open_suites.read_one(file("d"))
    closed, opened = followed.news()
    assert closed.how == opened.how == "read"
    assert closed.open == (a, elsewhere)
    assert [suite.path.stem for suite in opened.open] == ["a", "d", "c"]


def test_a_case_moved_from_suite_to_suite_comes_back_in_both_before_anything_is_said_of_it() -> None:
    followed = Followed()
    open_suites, a, b = followed.open_suites, followed.a, followed.b
    for suite in (a, b):
        open_suites.change(suite, typed(suite), "Moved", case="one")
    link_move(a, b)
    followed.news()
    undo(b, open_suites)
    assert [change.suites for change in followed.news()] == [(b,), (a,)]
    assert not open_suites.dirty


def test_what_grades_moved_is_told_of_the_last_change_only() -> None:
    followed = Followed()
    open_suites = followed.open_suites
    seen: list[str] = []
    open_suites.follow(lambda change: setattr(open_suites, "moved", "a case passes") if change.index == 0 else None)
    open_suites.follow(lambda change: seen.append(open_suites.moved_grades_text))
    table = {**followed.a.document.table(0), "user": "Goodbye"}
    open_suites.change(followed.a, followed.a.document.with_case(0, table), "Changed", index=0)
    open_suites.change(followed.b, typed(followed.b), "Renamed")
    assert seen == ["; a case passes", ""]


def test_reading_again_keeps_what_was_edited_and_returns_what_is_in_conflict() -> None:
    followed = Followed()
    open_suites, a, b = followed.open_suites, followed.a, followed.b
    open_suites.change(a, typed(a), "Renamed")
    theirs = TEXT.format("theirs")
    assert open_suites.read(Workspace((Path("suites"),), (file("a", theirs), file("b", theirs)))) == (a,)
    assert open_suites.suites == (a, b)
    assert 'name = "a, typed"' in a.document.text
    assert b.file.suite is not None
    assert b.file.suite.name == "theirs"


def test_a_follower_that_fails_stops_no_other() -> None:
    followed = Followed()
    followed.news()
    failed: list[Exception] = []
    followed.open_suites.on_error = failed.append

    def fails(_change: SuitesChanged) -> None:
        raise LookupError("of the journal")

    followed.open_suites.follow(fails)
    followed.follow("last")
    followed.open_suites.change(followed.a, typed(followed.a), "Renamed")
    assert [name for name, _ in followed.told] == [*NAMES, "last"]
    assert [str(error) for error in failed] == ["of the journal"]
