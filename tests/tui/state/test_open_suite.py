"""A suite and its file: what is saved, what is read again, and what a new suite is until then."""

from __future__ import annotations

from pathlib import Path

from workbench.suite.loading import SuiteFile, parse_suite
from workbench.suite.saving import FileState
from workbench.tui.state.desk import Desk
from workbench.tui.state.document import Document
from workbench.tui.state.open_suite import OpenSuite

PATH = Path("suites/a.toml")
TEXT = 'format = 1\nname = "S"\n'
THEIRS = "# theirs\n" + TEXT


def read(text: str) -> SuiteFile:
    return parse_suite(text, PATH)


def typed(suite: OpenSuite, text: str) -> None:
    suite.change(Document.of(text), "Typed", group="a field")


def test_what_is_typed_after_saving_is_a_step_of_its_own() -> None:
    suite = OpenSuite(read(TEXT))
    typed(suite, TEXT + "# a")
    suite.saved(FileState("1"))
    typed(suite, TEXT + "# ab")
    suite.undo()
    assert suite.document.text == TEXT + "# a"
    assert not suite.dirty


def test_a_new_suite_is_not_saved_whatever_it_says_and_stays_open() -> None:
    suite = OpenSuite.new(PATH, TEXT)
    assert suite.undoable is None
    typed(suite, "")
    assert suite.dirty
    desk = Desk()
    desk.add(suite)
    desk.take([], frozenset())
    assert desk.suites == (suite,)
    suite.saved(FileState("1"))
    assert not suite.dirty


def test_an_undo_behind_what_was_read_again_does_not_know_of_it_until_somebody_was_asked() -> None:
    suite = OpenSuite(read(TEXT))
    typed(suite, TEXT + "# a")
    suite.undo()
    suite.reloaded(read(THEIRS), None)
    assert not suite.is_behind
    suite.undo()
    assert suite.is_behind
    suite.end_group()
    typed(suite, TEXT + "# b")
    assert suite.is_behind
    suite.saved(FileState("1"))
    assert not suite.is_behind
    suite.reloaded(read(THEIRS), None)
    suite.undo()
    assert suite.is_behind
    suite.redo()
    assert not suite.is_behind
    typed(suite, THEIRS + "# c")
    suite.saved(FileState("1"))
    assert not suite.is_behind
    suite.undo()
    suite.undo()
    assert suite.is_behind


def test_who_took_the_text_of_the_disk_knowingly_may_go_back() -> None:
    suite = OpenSuite(read(TEXT))
    typed(suite, TEXT + "# a")
    suite.reloaded(read(THEIRS), None)
    suite.change(Document.of(THEIRS), "Took what is on the disk")
    suite.undo()
    assert suite.dirty
    assert not suite.is_behind
