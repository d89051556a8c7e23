"""Any sequence of edits of a suite: nothing is lost, and it is always read as its text is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from tests.example_counts import examples
from tests.tables import each_row
from workbench.authoring.document import HEAD, Document
from workbench.authoring.open_suite import OpenSuite
from workbench.suite.suite_file import SuiteFile, parse_suite, reparse
from workbench.suite.suite_text import SpliceError, SuiteText

PATH = Path("suites/a.toml")

HEADS = (
    'format = 1\nname = "S"\n',
    'format = 1\nname = "S"\nmodels = ["offline"]\n\n[[tools]]\nname = "say"\n',
    '# A suite.\nformat = 1\nname = "S" # here\n\n[limits]\nmax_tool_calls = 0\n',
    'format = 1\nname = "S"\nunknown = 3\n',
    'format = 1\nname = "S"\n\n[grading]\nrepeat_rule = "majority"\n',
    'format = 1\nname = "S"\n\n[grading]\nby = "critics"\nfail_threshold = 0.9\nwarn_threshold = 0.5\n',
    'format = 1\nname = "S"\n\n[[aggregates]]\nname = "Kind ones"\ntags = ["kind", "other"]\n',
    'format = 1\nname = "S"\n\n[[mocks]]\ntool = "say"\nresult = "{row.n}"\nwhen = { to = "{row.n}" }\n',
    'format = 1\nname = """\nS"""\nsystem = "x"\nunknown = 3\n\n[gate]\nquarantine = ["kinds"]\n',
    'format = 1\nname = "S"\nsystem = "x"\n\n[[aggregates]]\nname = "Named"\nof = "response.kind"\n',
    'format = 1\nname = "S"\nsystem = ""\n\n[[servers]]\nname = "one"\ncommand = ["one"]\n\n[[mocks]]\ntool = "own"\n'
    "result = 1\n",
    'format = 1\nname = "S"\n\n[subject]\ncommand = ["agent"]\n',
)
BLOCKS = (
    '[[cases]]\nname = "One"\nuser = "x"\n',
    '# above\n[[cases]]\nname = "Two" # beside\nrepeats = 2\nuser = """x\n\n# y"""\n\n'
    '[[cases.ordered]]\ntool = "say"\n',
    '[[cases]]\nname = "Three"\n',
    '[[cases]]\nid = "one"\nname = "Four"\nuser = "x"\nusr = "typo"\n',
    '[[cases]]\nname = "Five"\n[[cases.steps]]\nuser = "x"\ntool = "say"\nargs = { to = 1 }\n[[cases.steps]]\n',
    '[[cases]]\nname = "Six"\nuser = "x"\ntags = ["kind"]\nresponse = { judged = "is kind" }\n',
    '[[cases]]\nname = "Row {n}"\nuser = "x"\ntags = ["{n}"]\neach = [{ n = "a" }, { n = "b", m = 1 }]\n',
    '[[cases]]\nname = "Row {n}"\nuser = "x"\neach = [{ id = "c", n = "c" }]\n',
    '[[cases]]\nid = "one"\nname = "Row"\nuser = "x {k}"\neach = [{ n = "a" }]\n',
    '[[cases]]\nname = "Seven"\nuser = "x"\nsetup = [{ tool = "say" }]\nresponse = { kind = { contains = "x" } }\n',
    '[[cases]]\nname = "Eight"\nuser = "x"\ntags = ["kinds"]\ntools = [{ name = "own" }]\n',
    '[[cases]]\nname = "Nine"\nuser = "x"\nsetup = [{ tool = "say" }]\nordered = [{ tool = "say" }]\n',
)
GAPS = ("\n", "\n\n", "\n\n# alone\n\n")
NOT_BLOCKS = (
    '[[cases]]\nname = "One',
    "",
    "a = 1",
    "[[cases]]\n[[cases]]",
    '[[cases]]\nuser = """',
    "[limits]\n",
    "= 1\n\n",
)
AFTER = ("", '\n[[mocks]]\ntool = "say"\nresult = 1\n', "\n[gate]\nmin_score = 2\n")


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Suites in blocks, and some that are not."""
    blocks = draw(st.lists(st.sampled_from(BLOCKS), max_size=4))
    text = draw(st.sampled_from(HEADS)) + draw(st.sampled_from(GAPS))
    for block in blocks:
        text += block + draw(st.sampled_from(GAPS))
        text += draw(st.sampled_from(AFTER[:1] * 5 + AFTER[1:2]))
    text += draw(st.sampled_from(AFTER))
    if draw(st.booleans()):
        text = text.rstrip("\n") + draw(st.sampled_from(("", "\n")))
    return draw(st.sampled_from((text, text, text, text.replace("\n", "\r\n"), 'format = 1\nname = "S"\ncases = []\n')))


Edit = Callable[[Document], Document]


OF_CASES = ("block", "case", "moved", "new block", "new case", "without")
OF_HEAD = ("header", "system", "comment")


@st.composite
def edits(draw: st.DrawFn, kinds: tuple[str, ...] = (*OF_CASES, *OF_HEAD, "head", "no header", "text")) -> Edit:
    """Draw an edit. Its places are chosen when it is applied."""
    at, to = draw(st.integers(0, 5)), draw(st.integers(0, 5))
    name = draw(st.sampled_from(("One", "Two", "Other", "")))
    table: dict[str, Any] = {"name": name, "user": draw(st.sampled_from(("x", "a\n\nb\n")))}
    block = draw(st.sampled_from(BLOCKS + NOT_BLOCKS))
    system = draw(st.sampled_from(("x", "a\n\nb\n", 3)))
    head = draw(st.sampled_from((*HEADS, *NOT_BLOCKS, "format = ")))
    made: dict[str, Edit] = {
        "case": lambda document: document.with_case(at % len(document.cases), table),
        "block": lambda document: document.with_block(at % len(document.cases), block),
        "head": lambda document: document.with_block(HEAD, head),
        "new case": lambda document: document.with_new_case(at % (len(document.cases) + 1), table),
        "new block": lambda document: document.with_new_block(at % (len(document.cases) + 1), block),
        "without": lambda document: document.without_case(at % len(document.cases)),
        "moved": lambda document: document.with_case_moved(at % len(document.cases), to % len(document.cases)),
        "header": lambda document: document.with_header("name", name),
        "no header": lambda document: document.with_header("models", None),
        "system": lambda document: document.with_header("system", system),
        "comment": lambda document: document.with_block(HEAD, "# new\n" + document.block(HEAD)),
        "text": lambda document: Document.of(document.text + block),
    }
    return made[draw(st.sampled_from(kinds))]


def after(document: Document, edit: Edit) -> Document:
    """Return the document after an edit. It is the same object if the edit changes nothing."""
    try:
        return edit(document)
    except (SpliceError, ZeroDivisionError, IndexError):
        return document


def said(file: SuiteFile) -> tuple[object, ...]:
    return file.suite, file.problems, file.hash, file.text, file.templates, file.row_files


@settings(max_examples=examples(80))
@given(texts(), st.lists(st.tuples(edits(), st.integers(0, 9)), max_size=7))
def test_whatever_is_edited_the_suite_is_read_as_its_text_and_undo_leads_back(
    text: str, steps: list[tuple[Edit, int]]
) -> None:
    suite = OpenSuite(parse_suite(text, PATH))
    for edit, number in steps:
        if number == 0:
            suite.undo()
        elif number == 1:
            suite.redo()
        else:
            suite.change(after(suite.document, edit), "Edited", group="typed" if number == 2 else None)
        document = suite.document
        renamed = after(document, lambda document: document.with_header("name", "Copy"))
        copy = suite.copied(PATH.with_name("b.toml"), renamed)
        if not document.unparsed:
            assert said(copy.file) == said(parse_suite(renamed.text, copy.path))
            assert said(suite.file) == said(parse_suite(document.text, PATH))
            again = Document.of(document.text)
            if document.in_blocks or document.parts is None or document.parts.cases:
                assert again.text == document.text
            assert suite.cases == again.cases
            assert (again.parts and again.parts.document) == (document.parts and document.parts.document)
        else:
            assert suite.file.suite is None
            assert suite.file.errors
            assert suite.file.text == document.text
    while suite.undo() is not None:
        pass
    assert suite.document.text == text
    assert not suite.dirty
    while suite.redo() is not None:
        pass
    assert suite.redoable is None


@settings(max_examples=examples(60))
@given(
    st.sampled_from(HEADS),
    st.lists(st.sampled_from(BLOCKS), min_size=1, unique=True),
    st.sampled_from(GAPS),
    st.lists(edits((*OF_CASES, *OF_HEAD)), min_size=1, max_size=3),
)
def test_what_is_read_again_is_what_is_read_at_first(head: str, blocks: list[str], gap: str, steps: list[Edit]) -> None:
    text = head + gap + gap.join(blocks)
    document = edited = Document.of(text)
    for step in steps:
        edited = after(edited, step)
    assert document.parts is not None
    assert edited.parts is not None
    again = reparse(parse_suite(text, PATH), document.parts, edited.parts)
    event(f"read again: {again is not None}")
    if again is not None:
        assert said(again) == said(parse_suite(edited.parts.text, PATH))


@settings(max_examples=examples(60))
@given(st.lists(st.sampled_from(BLOCKS), min_size=2, max_size=4), st.sampled_from(NOT_BLOCKS), st.data())
def test_a_text_that_is_not_toml_survives_what_is_done_to_other_cases(
    blocks: list[str], unparsed: str, data: st.DataObject
) -> None:
    document = Document.of(HEADS[0] + "\n".join(("", *blocks)))
    at = data.draw(st.integers(0, len(blocks) - 1))
    document = document.with_block(at, unparsed)
    assert document.block(at) == unparsed
    other = data.draw(st.integers(0, len(blocks) - 1).filter(lambda index: index != at))
    match data.draw(st.sampled_from(("move", "delete", "insert", "change"))):
        case "move":
            document = document.with_case_moved(other, at)
            at += 1 if other > at else -1
        case "delete":
            document = document.without_case(other)
            at -= other < at
        case "insert":
            document = document.with_new_case(other, {"name": "New", "user": "x"})
            at += other <= at
        case "change":
            document = document.with_case(other, {"name": "New", "user": "x"})
    assert document.unparsed == {at: unparsed}
    assert unparsed in document.text
    assert not document.is_sound


@pytest.mark.parametrize(("key", "value"), [("name", "Other"), ("system", "a\n\nb"), ("description", "x")])
def test_a_text_of_the_head_changes_and_no_case_is_read(key: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = 'format = 1\nname = "S"\nsystem = "x"\ndescription = "y"\n\n' + "\n".join((*BLOCKS[:2], BLOCKS[4]))
    suite = OpenSuite(parse_suite(text, PATH))
    suite.change(suite.document.with_header(key, value), "Typed")
    expected = parse_suite(suite.text, PATH)
    monkeypatch.setattr("workbench.suite.suite_file.parse_suite", None)
    monkeypatch.setattr("workbench.authoring.open_suite.parse_suite", None)
    assert said(suite.file) == said(expected)


@each_row("block", NOT_BLOCKS)
def test_the_problem_of_a_text_that_is_not_toml_stands_in_it_and_those_below_move_with_it(block: str) -> None:
    suite = OpenSuite(parse_suite(HEADS[0] + "\n" + BLOCKS[0] + "\n" + BLOCKS[3] + AFTER[2], PATH))
    before = {problem.message: problem.line for problem in suite.file.problems if problem.where != "cases[0]"}
    suite.change(suite.document.with_block(0, block + "\n# more\n# and more"), "Typed")
    first, *others = suite.file.problems
    assert first.where == "cases[0]"
    assert first.line is not None
    assert 4 <= first.line <= 4 + block.count("\n") + 2
    grown = suite.document.text.count("\n") - suite.disk.text.count("\n")
    assert {problem.message: problem.line for problem in others} == {
        message: line + grown for message, line in before.items() if line is not None
    }


@pytest.mark.parametrize("rows", ["", BLOCKS[6]])
def test_reading_again_reads_only_the_case_that_changed(rows: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = HEADS[1] + rows + "".join(f'\n[[cases]]\nname = "Case {number}"\nuser = "x"\n' for number in range(200))
    before = SuiteText.of(text)
    now = before.with_case(100, {"name": "Other", "user": "y"}).with_case_moved(3, 7).without_case(1)
    file = parse_suite(text, PATH)
    read: list[int] = []

    def counting(text: str, path: Path) -> SuiteFile:
        read.append(len(text))
        return parse_suite(text, path)

    monkeypatch.setattr("workbench.suite.suite_file.parse_suite", counting)
    again = reparse(file, before, now)
    assert again is not None
    assert said(again) == said(parse_suite(now.text, PATH))
    assert len(read) == 1
    assert read[0] < len(text) / 20


def test_a_copy_of_a_suite_reads_no_case_again(monkeypatch: pytest.MonkeyPatch) -> None:
    text = HEADS[1] + "".join(f'\n[[cases]]\nname = "Case {number}"\nuser = "x"\n' for number in range(20))
    suite = OpenSuite(parse_suite(text, PATH))
    copy = suite.copied(PATH.with_name("b.toml"), suite.document.with_header("name", "Copy"))
    expected = parse_suite(copy.text, copy.path)
    read: list[str] = []
    for module in ("suite.suite_file", "authoring.open_suite"):
        monkeypatch.setattr(f"workbench.{module}.parse_suite", lambda text, path: read.append(text))
    assert said(copy.file) == said(expected)
    assert copy.file.suite is not None
    assert copy.file.suite.name == "Copy"
    assert not read
    assert copy.is_new and copy.dirty and copy.undoable is None


def test_a_copy_in_another_folder_reads_the_rows_of_its_own_folder(tmp_path: Path) -> None:
    for folder, rows in (("a", "n\n1\n"), ("b", "n\n1\n2\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "rows.csv").write_text(rows)
    text = HEADS[0] + '\n[[cases]]\nname = "Row {n}"\nuser = "x"\neach = "rows.csv"\n'
    suite = OpenSuite(parse_suite(text, tmp_path / "a" / "suite.toml"))
    copy = suite.copied(tmp_path / "b" / "suite.toml", suite.document)
    assert [len(each.file.suite.cases) for each in (suite, copy) if each.file.suite is not None] == [1, 2]


def test_outlines_of_other_cases_are_reused_also_by_undo_and_redo() -> None:
    names = [f"Case {number}" for number in range(4)]
    suite = OpenSuite(
        parse_suite(HEADS[1] + "".join(f'\n[[cases]]\nname = "{name}"\nuser = "x"\n' for name in names), PATH)
    )
    before = suite.cases
    suite.change(suite.document.with_new_block(2, BLOCKS[0]), "Added")
    after_it = suite.cases
    assert [outline.name for outline in after_it] == [*names[:2], "One", *names[2:]]
    assert [outline.index for outline in after_it] == list(range(5))
    for move, outlines in ((suite.undo, before), (suite.redo, after_it)):
        move()
        assert suite.cases == outlines
        assert all(now is then for now, then in zip(suite.cases[:2], before, strict=False))


SUBJECT, SHARED, QUARANTINE, NAMED = HEADS[11], HEADS[10], HEADS[8], HEADS[9]


@each_row(
    ("head", "block"),
    [(SUBJECT, BLOCKS[1]), (SHARED, BLOCKS[9]), (SHARED, BLOCKS[10]), (QUARANTINE, BLOCKS[10]), (NAMED, BLOCKS[9])],
)
def test_findings_elsewhere_follow_the_case_that_they_depend_on(head: str, block: str) -> None:
    document = Document.of(f"{head}\n{block}\n{BLOCKS[0]}\n{BLOCKS[4]}\n{BLOCKS[11]}")
    edits: tuple[Edit, ...] = (
        lambda document: document.without_case(0),
        lambda document: document.with_case_moved(0, 2),
        lambda document: document.with_case(0, {"name": "Other", "user": "y"}),
    )
    for edit in edits:
        suite = OpenSuite(parse_suite(document.text, PATH))
        suite.change(edit(suite.document), "Edited")
        assert said(suite.file) == said(parse_suite(suite.text, PATH))
        suite.undo()
        assert said(suite.file) == said(parse_suite(document.text, PATH))


@pytest.mark.parametrize(("name", "is_reread"), [("Two", False), ("Three", True)])
def test_a_changed_name_is_compared_with_those_of_all_cases(name: str, is_reread: bool) -> None:
    before = SuiteText.of(HEADS[1] + "".join(f'\n[[cases]]\nname = "{name}"\nuser = "x"\n' for name in ("One", "Two")))
    now = before.with_case(0, {"id": "one", "name": name, "user": "x"})
    again = reparse(parse_suite(before.text, PATH), before, now)
    assert (again is not None) == is_reread


def test_a_history_holds_no_texts() -> None:
    suite = OpenSuite(parse_suite(HEADS[0] + "\n" + BLOCKS[0], PATH))
    for number in range(3):
        suite.change(suite.document.with_case(0, {"name": f"N{number}", "user": "x"}), "Renamed")
    held = [change.document for change in suite._history[:-1]]
    assert all(
        "text" not in document.__dict__ and "text" not in document.parts.__dict__ for document in held if document.parts
    )


def test_a_case_differs_from_the_disk_until_it_says_the_same_again() -> None:
    suite = OpenSuite(parse_suite(HEADS[0] + "\n" + BLOCKS[0] + "\n" + BLOCKS[2], PATH))
    suite.change(suite.document.with_case(0, {"name": "One", "user": "y"}), "Edited")
    assert [suite.is_changed(index) for index in range(2)] == [True, False]
    suite.change(suite.document.with_case_moved(0, 1), "Moved")
    assert [suite.is_changed(index) for index in range(2)] == [False, True]
    suite.change(suite.document.with_case(1, {"name": "One", "user": "x"}), "Edited")
    assert [suite.is_changed(index) for index in range(2)] == [False, False]


def test_typing_a_letter_and_taking_it_away_again_is_no_step() -> None:
    suite = OpenSuite(parse_suite(HEADS[0] + BLOCKS[0], PATH))
    before = suite.document
    suite.change(before.with_case(0, {"name": "Uno", "user": "x"}), "name changed", "first")
    middle = suite.document.text
    suite.change(suite.document.with_case(0, {"name": "Unos", "user": "x"}), "name changed", "second")
    suite.change(suite.document.with_case(0, {"name": "Uno", "user": "x"}), "name changed", "second")
    assert suite.document.text == middle
    suite.undo()
    assert suite.document.text == before.text
    assert suite.undoable is None


def test_an_undo_ends_what_is_typed_in_one_go() -> None:
    suite = OpenSuite(parse_suite(HEADS[0] + BLOCKS[0], PATH))
    said = []
    for name in ("A", "B", "C"):
        group = "other" if name == "A" else "typing"
        suite.change(suite.document.with_case(0, {"name": name, "user": "x"}), name, group)
        said.append(suite.document.text)
        if name == "B":
            suite.undo()
    assert suite.undo() is not None
    assert suite.document.text == said[0]


def test_a_head_that_is_not_toml_is_not_replaced() -> None:
    document = Document.of(HEADS[0] + BLOCKS[0])
    typed = document.with_block(HEAD, document.block(HEAD) + 'system = "half')
    with pytest.raises(SpliceError, match="head"):
        typed.with_header("name", "Other")
    assert 'system = "half' in typed.text
