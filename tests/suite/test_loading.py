"""A suite file becomes a suite; files that cannot be read become problems, never exceptions."""

from __future__ import annotations

import hashlib
import os
import re
import warnings
from pathlib import Path

import pytest

from tests.suite.examples import CASE, HEAD, WHOLE, parsed, suite_of
from workbench.checks.text_kinds import Contains, Similar
from workbench.checks.value_kinds import Equals, Near, Range
from workbench.suite.expected_calls import AnyOrder, ExpectedCall
from workbench.suite.problems import place_text
from workbench.suite.settings import settings_of
from workbench.suite.suite_file import load_suite, parse_suite


def test_a_suite_that_uses_everything_has_no_errors() -> None:
    assert parsed(WHOLE).errors == ()


def test_what_is_written_arrives_in_the_suite() -> None:
    suite = suite_of(WHOLE)
    bedtime, checks, *_ = suite.cases
    assert suite.limits.timeout_s == float("inf")
    assert suite.servers[0].command == ("python", "home.py", "--port", "0")
    assert suite.tools[1].parameters["properties"] == {"x": {"enum": [None, 1]}}
    assert suite.tools[2].parameters == {"type": "object", "properties": {}}
    assert [case.id for case in suite.cases] == [
        "bedtime", "every-check", "says-nothing-about-calls", "no-calls", "multiply-then-divide",
    ]  # fmt: skip
    assert isinstance(bedtime.ordered[1], AnyOrder)
    assert bedtime.ordered[1].any_order[0].args == {
        "room": Equals(equals="bedroom", plain=True),
        "brightness": Range(range=(5, 20)),
    }
    assert bedtime.response == Similar(similar="Good night.", threshold=0.5)
    assert checks.response == Equals(equals="Done.", plain=True)
    assert isinstance(checks.ordered[0], ExpectedCall)
    assert checks.ordered[0].args is not None
    assert checks.ordered[0].args["a"] == Equals(equals={"range": [1, 2]}, cast=False, weight="low")
    assert checks.ordered[0].args["f"] == Near(near=5, tolerance=1, weight=1)
    assert checks.ordered[0].args["args"] == Equals(equals=[1], weight=1)


@pytest.mark.parametrize(
    "how",
    ["args = { x = { contains = 'a' } }", "args.x.contains = 'a'", "[cases.ordered.args.x]\ncontains = 'a'"],
)
def test_how_a_check_is_written_makes_no_difference(how: str) -> None:
    [case] = suite_of(f"{HEAD}{CASE}[[cases.ordered]]\ntool = 't'\n{how}").cases
    assert case.ordered == (ExpectedCall(tool="t", args={"x": Contains(contains="a")}),)


def test_a_table_without_a_checks_name_is_a_literal_value() -> None:
    [case] = suite_of(
        f"{HEAD}{CASE}ordered = [{{ tool = 't', args = {{ x = {{ y = 1, weight = 2 }}, z = {{}} }} }}]"
    ).cases
    assert isinstance(case.ordered[0], ExpectedCall)
    assert case.ordered[0].args == {
        "x": Equals(equals={"y": 1, "weight": 2}, plain=True),
        "z": Equals(equals={}, plain=True),
    }


def test_a_cases_settings_are_merged_into_the_suites_key_by_key() -> None:
    suite = suite_of(WHOLE)
    settings = settings_of(suite, suite.cases[0])
    assert (settings.limits.max_rounds, settings.limits.max_tool_calls) == (2, 9)
    assert settings.grading.critics.tool_selection_weight == 0.5
    assert settings.grading.critics.fail_on_tool_selection is False
    assert settings.system == ""


def test_every_call_that_a_case_writes_comes_with_its_place() -> None:
    suite = suite_of(WHOLE)
    written_calls = [(place_text(place), call.tool) for case in suite.cases for place, call in case.written_calls()]
    assert written_calls == [
        ("ordered[0]", "lock_door"),
        ("ordered[1].any_order[0]", "set_lights"),
        ("ordered[1].any_order[1]", "set_thermostat"),
        ("unordered[0]", "close_blinds"),
        ("disallowed[0]", "unlock_door"),
        ("disallowed[1]", "*"),
        ("ordered[0]", "t"),
        ("ordered[1]", "t"),
        ("steps[0]", "calculate"),
        ("steps[1]", "calculate"),
        ("steps[2]", None),
    ]
    assert [call.tool for call in suite.cases[0].expected_calls()] == [tool for _, tool in written_calls[:4]]


def test_one_text_always_makes_equal_suites() -> None:
    assert suite_of(WHOLE) == suite_of(WHOLE)
    assert suite_of(WHOLE) == suite_of("# a comment\n" + WHOLE)
    assert suite_of(WHOLE) != suite_of(
        WHOLE.replace("brightness = { range = [5, 20] }", "brightness = { range = [5, 21] }")
    )


def test_a_file_is_known_by_the_hash_of_its_bytes(tmp_path: Path) -> None:
    content = (HEAD + CASE).replace("\n", "\r\n").encode()
    path = tmp_path / "s.toml"
    path.write_bytes(content)
    file = load_suite(path)
    assert file.suite is not None
    assert file.hash == hashlib.sha256(content).hexdigest()
    assert file.text.encode() == content
    assert parse_suite(file.text, path) == file


@pytest.mark.parametrize(
    "text",
    [
        CASE + "response = { pattern = '[[loading]' }",
        CASE + "response = { pattern = '[loading||x]' }",
        CASE + "response = { datetime = '2026-05-27 10:00 XYZT' }",
        "[[tools]]\nname = 't'\nparameters = { type = 'object', properties.x.pattern = '[[schema]' }\n" + CASE,
    ],
)
def test_loading_prints_no_warnings_of_pythons_own(text: str) -> None:
    re.purge()  # a regular expression is remarked on only when it is compiled
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert parsed(HEAD + text).problems == ()


def test_a_missing_file_a_folder_and_a_pipe_are_problems(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.toml"
    os.mkfifo(pipe)
    below_a_file = tmp_path / "s.toml" / "t.toml"
    (tmp_path / "s.toml").write_text(HEAD)
    expected = {
        tmp_path / "none.toml": "no such file",
        tmp_path: "a folder",
        pipe: "not a regular file",
        below_a_file: "",
    }
    for path, says in expected.items():
        file = load_suite(path)
        [problem] = file.errors
        assert says in problem.message
        assert (file.suite, file.hash, problem.line) == (None, "", None)


def test_a_path_that_cannot_exist_is_a_problem() -> None:
    assert load_suite(Path("a\0b.toml")).suite is None
    assert len(load_suite(Path("x" * 5000)).errors) == 1


def test_a_file_that_is_not_utf8_says_where(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_bytes(b'format = 1\nname = "caf\xe9"\n')
    [problem] = load_suite(path).errors
    assert (problem.line, "0xe9" in problem.message, "UTF-8" in problem.hint) == (2, True, True)


def test_a_problem_reads_as_one_line_with_file_line_path_and_way_out() -> None:
    [problem] = parsed(HEAD + CASE + "repeat = 2").errors
    expected = 'a.toml:6: error: cases[0].repeat of "A case": unknown key `repeat` in a case (did you mean `repeats`?)'
    assert str(problem) == expected


BLOCKS = '''\
format = 1
name = "Blocks"

# about the first
  # still about the first
[[cases]]
name = "One"
user = """
[[cases]]
# not a comment
"""
[cases.limits]
max_rounds = 2
[[cases.ordered]]
tool = "t"
args = { list = [
[1],
# inside a list
] }

# a remark of its own

# about the second
[["cases"]]
name = "Two"
user = "x" # after a value
# about the gate

# directly above the gate
[gate]
min_score = 0.5
[[cases]]
name = "Three"
user = "x"


'''


def test_a_cases_block_has_the_comments_above_it_and_ends_before_the_next_table() -> None:
    file = parsed(BLOCKS)
    assert file.errors == ()
    assert [file.case_lines(index) for index in range(3)] == [(4, 21), (23, 27), (32, 34)]
    with pytest.raises(IndexError, match="no case 3"):
        file.case_lines(3)


def test_blocks_are_known_in_a_broken_suite_but_not_in_a_broken_text() -> None:
    assert parsed(BLOCKS.replace("max_rounds", "rounds")).case_lines(1) == (23, 27)
    with pytest.raises(IndexError):
        parsed(BLOCKS + "= 1").case_lines(0)


def test_cases_in_a_list_have_the_lines_of_their_values() -> None:
    file = parsed(
        HEAD + 'cases = [\n  { name = "a", user = "x" },\n  { name = "b", user = """\nx""", tags = [\n  ] },\n]\n'
    )
    assert file.errors == ()
    assert [file.case_lines(index) for index in range(2)] == [(4, 4), (5, 7)]


def test_carriage_returns_change_neither_lines_nor_blocks() -> None:
    file = parsed(BLOCKS.replace("\n", "\r\n"))
    assert file.case_lines(0) == (4, 21)
