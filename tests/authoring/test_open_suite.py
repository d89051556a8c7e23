"""A suite and its file: saving, reading again, and new suites before they are saved."""

from __future__ import annotations

from pathlib import Path

from workbench.authoring.document import HEAD, Document
from workbench.authoring.form.field_text import CellKey, InvalidText
from workbench.authoring.known_tools import KnownTools
from workbench.authoring.open_suite import OpenSuite
from workbench.authoring.workspace import OpenSuites, Workspace
from workbench.suite.files import FileState
from workbench.suite.problems import message_with_line
from workbench.suite.suite_file import SuiteFile, load_suite, parse_suite
from workbench.tools.listings import StoredListings
from workbench.trajectory.events import ToolDefinition
from workbench.tui.case.form.page import form_source

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
    open_suites = OpenSuites()
    open_suites.add(suite)
    open_suites.read(Workspace((), ()))
    assert open_suites.suites == (suite,)
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


def test_a_suite_whose_file_is_gone_says_so_and_what_it_said_can_be_brought_back(tmp_path: Path) -> None:
    missing = load_suite(tmp_path / "a.toml")
    for touched in (False, True):
        suite = OpenSuite(read(TEXT))
        if touched:
            typed(suite, TEXT + "# a")
            suite.saved(FileState("1"))
        said = suite.document.text
        for _ in range(2):  # it is read again and again
            suite.reloaded(missing, None)
            assert suite.is_gone
            assert [problem.message for problem in suite.file.problems] == ["the file no longer exists"]
        suite.undo()
        assert suite.dirty
        assert not suite.is_gone
        assert suite.document.text == said
        suite.redo()
        assert suite.file.problems[0].message == "the file no longer exists"


def test_a_case_that_came_to_a_suite_never_saved_is_not_on_the_disk() -> None:
    suite = OpenSuite.new(PATH, TEXT + '\n[[cases]]\nname = "One"\nuser = "Go."\n')
    assert suite.is_changed(0)


def test_the_line_of_a_problem_makes_a_sentence_with_it() -> None:
    assert message_with_line(parse_suite("\n[x", PATH).problems[0], "line").startswith("line 2 is not TOML")
    assert message_with_line(read("").problems[0], "Line") == "Line 1: the file is empty"


def test_a_form_of_a_suite_without_cases_names_the_key_that_makes_one() -> None:
    source = form_source(OpenSuite(read(TEXT)), HEAD)
    assert source is not None
    assert [problem.hint for problem in source.problems] == ["n makes the first one"]


def test_a_name_that_no_listed_tool_has_is_a_problem_of_its_case(tmp_path: Path) -> None:
    case = '[[cases]]\nname = "A"\nuser = "Go."\nunordered = [{ tool = "calculat" }]\n'
    text = f'format = 1\nname = "S"\n[[servers]]\nname = "office"\ncommand = ["office"]\n{case}'
    file = parse_suite(text, tmp_path / "suite.toml")
    assert file.suite is not None
    known = KnownTools(StoredListings(tmp_path))
    open_suites = OpenSuites(known.checked)
    open_suites.read(Workspace((), (file,)))
    (suite,) = open_suites.suites
    assert suite.problems_of(0) == ()
    known.listings.remember(file.path, file.suite.servers[0], (ToolDefinition("calculate"),))
    known.forget()
    (problem,) = suite.problems_of(0)
    assert (problem.message, problem.hint, problem.line, problem.severity) == (
        "expects 'calculat', but no such tool is offered",
        "did you mean 'calculate'?",
        9,
        "warning",
    )


def test_an_invalid_text_follows_its_cell_and_is_forgotten_with_it() -> None:
    cases = [
        '[[cases]]\nname = "A"\nuser = "a"\n',
        '[[cases]]\nname = "B"\nuser = "b"\n',
        '[[cases.ordered]]\ntool = "one"\n[cases.ordered.args]\nlevel = 1\n',
        '[[cases.ordered]]\ntool = "two"\n[cases.ordered.args]\nlevel = 2\n',
    ]
    suite = OpenSuite(read("\n".join([TEXT, *cases])))

    def texts(*parts: str) -> dict[CellKey, str]:
        suite.change(Document.of("\n".join([TEXT, *parts])), "Changed")
        return {cell: one.text for cell, one in suite.invalid_texts.items()}

    def level(case: str, call: int, name: str = "level") -> CellKey:
        return case, ("expected", ("ordered", call, "args", name), "")

    key_of_b = suite.cases[1].key
    suite.invalid_texts = {
        level(key_of_b, 0): InvalidText("first", "level", "?"),
        level(key_of_b, 1): InvalidText("second", "level", "?"),
        (suite.cases[0].key, ("number", ("timeout",), "")): InvalidText("absent", "timeout", "?"),
    }
    absent = {("a", ("number", ("timeout",), "")): "absent"}
    assert texts(*cases, "# a remark") == {level("b", 0): "first", level("b", 1): "second"} | absent
    assert texts(cases[0], cases[1], cases[3], cases[2]) == {level("b", 1): "first", level("b", 0): "second"} | absent
    suite.undo()
    assert texts(cases[0], "[[cases") == {level("b", 0): "first", level("b", 1): "second"} | absent, "not TOML"
    assert texts(*cases[:2], cases[3]) == {level("b", 0): "second"} | absent, "the first call is gone"
    assert texts(*cases[1:2], cases[3]) == {level("b", 0): "second"}, "the first case is gone"
    renamed = [cases[1].replace('"B"', '"C"'), cases[3]]
    assert texts(*renamed) == {level("c", 0): "second"}
    renamed[1] = renamed[1].replace("level", "rank")
    assert texts(*renamed) == {level("c", 0, "rank"): "second"}
    assert texts(renamed[0], '[[cases.ordered]]\ntool = "two"\n') == {}
