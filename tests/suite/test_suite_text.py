"""Cases are changed, added, moved and removed in their own lines, and comments stay with their subject."""

from __future__ import annotations

from typing import Any

import pytest

from tests.suite.examples import parsed
from workbench.suite.suite_text import SpliceError, SuiteText

SUITE = """\
# Our house.
format = 1
name = "Home"  # ours

# The morning.
[[cases]]
name = "Morning"
user = "Open them."  # politely
[[cases.ordered]] # any
tool = "blinds"

# From here on it is dark.

# The evening.
[[cases]]
name = "Evening"
user = "Close them."

# Where they are.
[[tools]]
name = "blinds"  # of the house

# The night.
[[cases]]
name = "Night"
user = "Off."
"""
MORNING = SUITE[SUITE.index("# The morning") : SUITE.index("\n\n# From here")]
EVENING = SUITE[SUITE.index("# The evening") : SUITE.index("\n\n# Where")]
NIGHT = SUITE[SUITE.index("# The night") :].rstrip("\n")
NOON: dict[str, Any] = {"user": "Half.", "name": "Noon"}
NOON_BLOCK = '[[cases]]\nname = "Noon"\nuser = "Half."'


def test_comments_directly_above_a_case_belong_to_it_and_lone_ones_to_none() -> None:
    assert SuiteText.of(SUITE).blocks == (MORNING, EVENING, NIGHT)


def test_a_changed_value_changes_one_line() -> None:
    suite = SuiteText.of(SUITE)
    changed = suite.with_case(0, {**suite.cases[0], "user": "Open."})
    assert changed.text == SUITE.replace('"Open them."', '"Open."')
    assert changed.kept_formatting


def test_a_new_key_stands_where_the_format_has_it() -> None:
    suite = SuiteText.of(SUITE)
    changed = suite.with_case(0, {**suite.cases[0], "id": "morning", "repeats": 2})
    assert changed.text == SUITE.replace(
        'name = "Morning"\nuser = "Open them."  # politely\n',
        'id = "morning"\nname = "Morning"\nuser = "Open them."  # politely\nrepeats = 2\n',
    )


def test_a_whole_number_a_fraction_and_true_are_three_values() -> None:
    suite = SuiteText.of("[[cases]]\nargs = 1\n")
    assert suite.with_case(0, {"args": 1.0}).text == "[[cases]]\nargs = 1.0\n"
    assert suite.with_case(0, {"args": True}).text == "[[cases]]\nargs = true\n"
    assert suite.with_case(0, {"args": 1}) is suite


def test_expected_calls_move_and_go_with_their_comments() -> None:
    text = (
        "[[cases]]\nname = 'A'\n\n# one\n[[cases.ordered]]\ntool = 'a'\n\n# two\n[[cases.ordered]]\n"
        "tool = 'b'\n[cases.ordered.args]\nx = 1 # x\n\n[[cases]]\nname = 'B'"
    )
    suite = SuiteText.of(text)
    first, second = {"tool": "a"}, {"tool": "b", "args": {"x": 1}}
    swapped = suite.with_case(0, {"name": "A", "ordered": [second, first]})
    assert swapped.text == (
        "[[cases]]\nname = 'A'\n\n# two\n[[cases.ordered]]\ntool = 'b'\n[cases.ordered.args]\nx = 1 # x\n\n"
        "# one\n[[cases.ordered]]\ntool = 'a'\n\n[[cases]]\nname = 'B'"
    )
    assert suite.with_case(0, {"name": "A", "ordered": [first]}).text == (
        "[[cases]]\nname = 'A'\n\n# one\n[[cases.ordered]]\ntool = 'a'\n\n[[cases]]\nname = 'B'"
    )


def test_arguments_that_no_longer_fit_a_line_get_a_header() -> None:
    suite = SuiteText.of('[[cases]]\nname = "A"\n[[cases.ordered]]\ntool = "t"\nargs = { a = 1 }\n')
    args = {"a": 1, "text": "one\ntwo"}
    changed = suite.with_case(0, {"name": "A", "ordered": [{"tool": "t", "args": args}]})
    assert changed.text == (
        '[[cases]]\nname = "A"\n[[cases.ordered]]\ntool = "t"\n[cases.ordered.args]\na = 1\ntext = """\none\ntwo"""\n'
    )


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (0, SUITE.replace(MORNING, f"{NOON_BLOCK}\n\n{MORNING}")),
        (1, SUITE.replace(MORNING, f"{MORNING}\n\n{NOON_BLOCK}")),
        (2, SUITE.replace(EVENING, f"{EVENING}\n\n{NOON_BLOCK}")),
        (3, f"{SUITE}\n{NOON_BLOCK}\n"),
    ],
)
def test_a_new_case_stands_behind_the_one_before_it(index: int, expected: str) -> None:
    changed = SuiteText.of(SUITE).with_new_case(index, NOON)
    assert changed.text == expected
    assert [case["name"] for case in changed.cases].index("Noon") == index


def test_the_first_case_of_all_stands_at_the_end() -> None:
    assert SuiteText.of("format = 1\nname = 'x'").with_new_case(0, NOON).text == (
        f"format = 1\nname = 'x'\n\n{NOON_BLOCK}\n"
    )
    assert SuiteText.of("").with_new_case(0, NOON).text == NOON_BLOCK + "\n"
    assert SuiteText.of("cases = []\n").with_new_case(0, NOON).text.strip() == NOON_BLOCK


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (0, SUITE.replace(MORNING + "\n\n", "")),
        (1, SUITE.replace(EVENING + "\n\n", "")),
        (2, SUITE.replace("\n" + NIGHT + "\n", "")),
    ],
)
def test_a_deleted_case_takes_its_comments_and_one_blank_line_along(index: int, expected: str) -> None:
    assert SuiteText.of(SUITE).without_case(index).text == expected


def test_a_moved_case_takes_its_comments_along_and_leaves_everything_else_in_place() -> None:
    suite = SuiteText.of(SUITE)
    moved = suite.with_case_moved(2, 0)
    assert moved.blocks == (NIGHT, MORNING, EVENING)
    assert moved.between == suite.between
    assert moved.with_case_moved(0, 2).text == SUITE


def test_a_case_is_copied_with_its_comments_from_a_suite_with_other_line_ends() -> None:
    other = SuiteText.of(SUITE.replace("\n", "\r\n"))
    copied = SuiteText.of("format = 1\nname = 'x'\n").with_new_case_text(0, other.block(0))
    assert copied.text == f"format = 1\nname = 'x'\n\n{MORNING}\n"


def test_line_ends_and_a_byte_order_mark_are_kept() -> None:
    text = "\ufeff" + SUITE.replace("\n", "\r\n")
    suite = SuiteText.of(text)
    changed = suite.with_case(0, {**suite.cases[0], "system": "one\ntwo"}).with_new_case(3, NOON)
    changed = changed.with_header("limits", {"max_rounds": 2}).checked()
    assert changed.kept_formatting
    assert changed.text.count("\r\n") == changed.text.count("\n")
    assert changed.without_case(3).with_header("limits", None).with_case(0, suite.cases[0]).text == text


def test_a_file_that_begins_with_a_blank_line_keeps_its_line_ends() -> None:
    suite = SuiteText.of("\n" + SUITE)
    assert "\r" not in suite.with_case(0, {**suite.cases[0], "ordered": [{"tool": "lock"}]}).text


def test_a_block_written_by_hand_replaces_a_case() -> None:
    block = "# Now later.\n[[cases]]\nname='Morning'\nuser = 'x'"
    assert SuiteText.of(SUITE).with_case_text(0, block + "\n\n").text == SUITE.replace(MORNING, block)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[cases]\n", "the case's text is not valid TOML"),
        ("", "one [[cases]] block"),
        ("cases = [{ name = 'x' }]", "one [[cases]] block"),
        ("[[cases]]\nname = 'a'\n[[cases]]\nname = 'b'", "one [[cases]] block"),
        ("[[cases]]\nname = 'a'\n[limits]\nmax_rounds = 1", "one [[cases]] block"),
    ],
)
def test_a_text_that_is_no_block_of_a_case_is_refused(text: str, message: str) -> None:
    with pytest.raises(SpliceError, match=message.replace("[", r"\[")):
        SuiteText.of(SUITE).with_case_text(0, text)


def test_what_toml_cannot_say_is_refused() -> None:
    suite = SuiteText.of(SUITE)
    with pytest.raises(SpliceError, match="TOML has no null"):
        suite.with_case(0, {"name": None})
    with pytest.raises(SpliceError, match="lone surrogate"):
        suite.with_header("name", "\ud800")
    with pytest.raises(SpliceError, match="not valid TOML; correct the text first"):
        SuiteText.of("format = ")
    with pytest.raises(SpliceError, match=r"write \[\[cases\]\]"):
        SuiteText.of("[cases]\nname = 'x'\n").with_new_case(0, NOON)
    for index in (-1, 3):
        with pytest.raises(IndexError):
            suite.with_case(index, NOON)


def test_an_option_written_with_dots_leaves_the_table_empty_that_it_was_alone_in() -> None:
    option = "grading.critics.tool_selection_weight = 1"
    text = f'format = 1\nname = "s"\n\n[[cases]]\nname = "a"  # first\nuser = "u"\n{option}\n'
    suite = SuiteText.of(text)
    changed = suite.with_case(0, {**suite.cases[0], "grading": {}})
    assert changed.kept_formatting
    assert changed.text == text.replace(option, "grading = {}")


def test_the_header_is_changed_without_touching_cases() -> None:
    changed = (
        SuiteText.of(SUITE)
        .with_header("name", "House")
        .with_header("tags", ["a"])
        .with_header("limits", {"max_rounds": 2})
        .with_header("tools", [{"name": "new"}, {"name": "blinds", "description": "Up and down."}])
    )
    expected = SUITE.replace('"Home"  # ours\n', '"House"  # ours\ntags = ["a"]\n\n[limits]\nmax_rounds = 2\n')
    expected = expected.replace("# Where they", '[[tools]]\nname = "new"\n\n# Where they')
    assert changed.text == expected.replace("# of the house\n", '# of the house\ndescription = "Up and down."\n')
    assert changed.checked() is changed


def test_tables_between_cases_are_changed_where_they_are() -> None:
    text = 'name = "s"\n' + "\n[[cases]]\nname = 'A'\n" * 3 + "\n[limits]\nmax_rounds = 1\n\n\n[[cases]]\nname = 'B'\n"
    changed = SuiteText.of(text).with_header("limits", {"max_rounds": 2}).with_header("tools", [{"name": "t"}])
    assert changed.checked() is changed
    assert changed.text.replace('[[tools]]\nname = "t"\n\n', "") == text.replace("= 1", "= 2")


def test_cases_in_brackets_are_changed_there() -> None:
    text = "format = 1\ncases = [\n  { name = 'A' }, # first\n  { name = 'B' }, # second\n]\n"
    suite = SuiteText.of(text)
    assert not suite.in_blocks
    changed = suite.with_case(1, {"name": "C"})
    assert changed.text == text.replace("'B'", '"C"')
    assert changed.kept_formatting
    assert suite.with_new_case(1, NOON).cases == ({"name": "A"}, NOON, {"name": "B"})
    assert not suite.with_case_moved(0, 1).kept_formatting


def test_a_case_that_is_torn_apart_is_written_anew_and_that_is_said() -> None:
    text = "# lost\n[[cases]]\nname = 'A'\n[limits]\nmax_rounds = 1\n[[cases.ordered]]\ntool = 't'\n"
    suite = SuiteText.of(text)
    assert suite.text == text
    changed = suite.with_case(0, {**suite.cases[0], "name": "B"})
    assert not changed.kept_formatting
    assert changed.text == ('[limits]\nmax_rounds = 1\n\n[[cases]]\nname = "B"\n\n[[cases.ordered]]\ntool = "t"\n')
    assert not changed.with_case(0, NOON).kept_formatting


def test_a_block_that_cannot_be_edited_is_written_anew_below_its_comments_and_the_others_stay() -> None:
    text = (
        "# first\n[[cases]]\nname = 'A'\n[[cases.ordered]]\ntool = 't' # lost\n[cases.limits]\nmax_rounds = 1\n"
        "[cases.ordered.args]\na = 1\n\n# second\n[[cases]]\nname = 'B'\n"
    )
    suite = SuiteText.of(text)
    changed = suite.with_case(0, {"name": "C", "ordered": [{"tool": "t"}]})
    assert not changed.kept_formatting
    assert changed.text == (
        '# first\n[[cases]]\nname = "C"\n\n[[cases.ordered]]\ntool = "t"\n\n# second\n[[cases]]\nname = \'B\'\n'
    )


def test_the_last_check_writes_a_wrong_text_anew() -> None:
    suite = SuiteText.of("name = 'x'\n\n[[cases]]\nname = 'A'\n")
    wrong = SuiteText(suite.between, ("[[cases]]\nname = 'Z'",), suite.header, suite.cases, in_blocks=True)
    assert wrong.checked().text == 'name = "x"\n\n[[cases]]\nname = "A"\n'
    assert not wrong.checked().kept_formatting


def test_what_is_written_is_a_suite_that_loads() -> None:
    text = SuiteText.of("").with_header("format", 1).with_header("name", "New").with_new_case(0, NOON).checked().text
    file = parsed(text)
    assert not file.problems
    assert text == f'format = 1\nname = "New"\n\n{NOON_BLOCK}\n'
