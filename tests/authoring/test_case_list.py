"""New, copied, renamed, moved and deleted cases, and the resulting text of the suite."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.authoring.case_list import (
    CaseListChange,
    free_id,
    free_name,
    free_path,
    moved_to_suite,
    suite_name,
    tools_used,
    with_copy,
    with_moved,
    with_name,
    with_new_case,
    without,
)
from workbench.authoring.document import HEAD, Document
from workbench.authoring.open_suite import OpenSuite
from workbench.suite.suite_file import parse_suite
from workbench.suite.suite_text import SpliceError

TEXT = """
format = 1
name = "Home" # ours

# Dim them.
[[cases]]
name = "Movie night"
user = "x" # as said

[[cases]]
id = "off"
name = "Lights off"
user = "x"
""".lstrip()
INLINE = 'format = 1\nname = "In brackets"\ncases = [{ name = "One", user = "x" }]\n'


def opened(text: str = TEXT, path: str = "home.toml") -> OpenSuite:
    return OpenSuite(parse_suite(text, Path(path)))


def taken(suite: OpenSuite, change: CaseListChange) -> list[tuple[str, str]]:
    """Return the ids and names after a change. The result can be run, and the cursor is on an existing case."""
    suite.change(change.document, change.summary, case=change.case)
    assert suite.file.errors == ()
    assert change.case in {case.key for case in suite.cases} | {None}
    return [(case.id, case.name) for case in suite.cases]


def test_a_new_case_stands_where_it_was_made() -> None:
    suite = opened()
    change = with_new_case(suite, 1, {"name": "New", "user": "x"})
    assert taken(suite, change) == [("movie-night", "Movie night"), ("new", "New"), ("off", "Lights off")]
    assert change.case == "new"


def test_a_new_case_whose_name_is_taken_gets_an_id_of_its_own() -> None:
    suite = opened()
    change = with_new_case(suite, 2, {"name": "Movie night", "user": "x"})
    assert taken(suite, change)[2] == ("movie-night-2", "Movie night")
    assert suite.document.block(2).splitlines()[1] == 'id = "movie-night-2"'


def test_a_copy_stands_behind_the_case_with_its_comments_and_a_name_and_id_of_its_own() -> None:
    suite = opened()
    assert taken(suite, with_copy(suite, 0))[:2] == [("movie-night", "Movie night"), ("movie-night-2", "Movie night 2")]
    assert suite.document.block(1) == '# Dim them.\n[[cases]]\nname = "Movie night 2"\nuser = "x" # as said'
    assert taken(suite, with_copy(suite, 1))[2] == ("movie-night-3", "Movie night 3")
    assert taken(suite, with_copy(suite, 3))[4] == ("off-2", "Lights off 2")


def test_a_saved_case_keeps_its_id_when_it_is_renamed_and_a_new_one_does_not() -> None:
    suite = opened()
    assert taken(suite, with_name(suite, 0, "Film"))[0] == ("movie-night", "Film")
    assert suite.document.block(0) == '# Dim them.\n[[cases]]\nid = "movie-night"\nname = "Film"\nuser = "x" # as said'
    taken(suite, with_new_case(suite, 2, {"name": "New", "user": "x"}))
    assert taken(suite, with_name(suite, 2, "Newer"))[2] == ("newer", "Newer")
    assert taken(suite, with_name(suite, 2, "Off"))[2] == ("off-2", "Off")


def test_a_suite_is_renamed_in_its_head_alone() -> None:
    suite = opened()
    taken(suite, with_name(suite, HEAD, "House"))
    assert suite.document.text == TEXT.replace('"Home"', '"House"')


def test_a_case_moves_with_its_comments_and_back() -> None:
    suite = opened()
    assert [case for case, _ in taken(suite, with_moved(suite, 0, 1))] == ["off", "movie-night"]
    assert [case for case, _ in taken(suite, with_moved(suite, 1, 0))] == ["movie-night", "off"]
    assert suite.document.text == TEXT
    assert not suite.dirty


def test_after_a_deletion_the_cursor_is_on_the_next_case_or_the_one_before_or_the_suite() -> None:
    suite = opened()
    change = without(suite, 0)
    assert taken(suite, change) == [("off", "Lights off")]
    assert change.case == "off"
    assert "Dim them" not in suite.document.text
    suite.undo()
    assert without(suite, 1).case == "movie-night"
    suite.change(without(suite, 0).document, "Deleted")
    assert without(suite, 0).case is None


def test_a_case_goes_to_another_suite_with_its_comments_and_a_free_id() -> None:
    source, target = opened(), opened('format = 1\nname = "Other"\n\n[[cases]]\nname = "Movie night"\nuser = "y"\n')
    left, arrived = moved_to_suite(source, 0, target)
    assert taken(source, left) == [("off", "Lights off")]
    assert taken(target, arrived) == [("movie-night", "Movie night"), ("movie-night-2", "Movie night")]
    assert "# Dim them.\n[[cases]]" in target.document.text
    assert arrived.case == "movie-night-2"


def test_the_tools_of_a_case_are_those_it_names_anywhere() -> None:
    case = {
        "ordered": [{"tool": "a"}, {"any_order": [{"tool": "b"}, {"tool": "a"}]}],
        "disallowed": [{"tool": "c"}],
        "mocks": [{"tool": "d"}, {"result": 1}],
        "offer": ["e", 3],
        "steps": "none",
    }
    assert tools_used(case) == ("a", "b", "c", "d", "e")


def test_cases_in_brackets_are_changed_too() -> None:
    suite = opened(INLINE)
    taken(suite, with_copy(suite, 0))
    taken(suite, with_name(suite, 1, "Two"))
    assert taken(suite, with_moved(suite, 1, 0)) == [("two", "Two"), ("one", "One")]
    assert taken(suite, without(suite, 0)) == [("one", "One")]
    target = opened(path="other.toml")
    _, arrived = moved_to_suite(suite, 0, target)
    assert taken(target, arrived)[2] == ("one", "One")


def test_what_is_not_toml_is_refused_with_the_way_out() -> None:
    suite = opened()
    suite.change(suite.document.with_block(0, '[[cases]]\nname = "x'), "Typed")
    for change in (with_copy, lambda suite, index: with_name(suite, index, "y")):
        with pytest.raises(SpliceError, match="correct it first"):
            change(suite, 0)
    assert without(suite, 1).document.unparsed == suite.document.unparsed
    with pytest.raises(SpliceError, match="correct"):
        with_new_case(opened("a = "), 0, {"name": "x"})


def test_names_ids_and_paths_that_are_free(tmp_path: Path) -> None:
    assert free_id("a", {"b"}) == "a"
    assert free_id("a", {"a", "a-2"}) == "a-3"
    assert free_name("Case 2", ["Case 2", "Case", "case-3"]) == "Case 4"
    (tmp_path / "a.toml").touch()
    assert free_path(tmp_path / "a.toml", [tmp_path / "a-2.toml"]) == tmp_path / "a-3.toml"
    assert (suite_name(Path("smart_home.toml")), suite_name(Path("-.toml"))) == ("Smart home", "Suite")


def test_a_new_suite_takes_cases_before_it_was_ever_saved() -> None:
    suite = OpenSuite.new(Path("new.toml"), 'format = 1\nname = "New"\n')
    assert taken(suite, with_new_case(suite, 0, {"name": "One", "user": "x"})) == [("one", "One")]
    assert taken(suite, with_name(suite, 0, "Two")) == [("two", "Two")]
    assert suite.document.text.startswith(Document.of('format = 1\nname = "New"\n').text)
