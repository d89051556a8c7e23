"""One case cut out of a suite leaves the same suite with that case alone, and all that was written around it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.suite.examples import WHOLE
from workbench.suite.excerpts import Excerpts
from workbench.suite.model import Suite
from workbench.suite.suite_file import SuiteFile, parse_suite

SUITE = """\
# Our house.
format = 1
name = "Home"  # ours

# The morning.
[[cases]]
name = "Morning"
user = '''
[[cases]]
'''
[[cases.unordered]] # any
tool = "blinds"

[[tools]]
name = "blinds"  # of the house

# The evening.
[[cases]]
name = "Evening"
user = "Close them."
[cases.limits]
max_rounds = 2


[[tools]]
name = "lights"

[[cases]]
name = "Night"
user = "Off."\
"""


def parsed(text: str) -> SuiteFile:
    file = parse_suite(text, Path("home.toml"))
    assert file.suite is not None, file.problems
    return file


def alone(file: SuiteFile, index: int) -> Suite:
    assert file.suite is not None
    return file.suite.model_copy(update={"cases": (file.suite.cases[index],)})


def test_the_rest_of_the_suite_stays_with_its_comments() -> None:
    file = parsed(SUITE)
    text = Excerpts().of(file, "evening")
    assert (
        text
        == """\
# Our house.
format = 1
name = "Home"  # ours

[[tools]]
name = "blinds"  # of the house

# The evening.
[[cases]]
name = "Evening"
user = "Close them."
[cases.limits]
max_rounds = 2


[[tools]]
name = "lights"

"""
    )
    assert parsed(text).suite == alone(file, 1)


@pytest.mark.parametrize("text", [SUITE, WHOLE, SUITE.replace("\n", "\r\n")], ids=["home", "whole", "home with CRLF"])
def test_every_case_stands_alone(text: str) -> None:
    file, excerpts = parsed(text), Excerpts()
    assert file.suite is not None
    for index, case in enumerate(file.suite.cases):
        assert parsed(excerpts.of(file, case.id)).suite == alone(file, index)


@pytest.mark.parametrize(
    "text",
    [
        'format = 1\nname = "A"\ncases = [{ name = "B", user = "b" }, { name = "C", user = "c" }]\n',
        'format = 1\nname = "A"\ncases = [\n  { name = "B", user = "b" },\n  { name = "C", user = "c" },\n]\n',
    ],
)
def test_cases_in_brackets_keep_the_whole_text(text: str) -> None:
    assert Excerpts().of(parsed(text), "c") == text


def test_the_only_case_may_stand_in_brackets() -> None:
    text = 'format = 1\nname = "A"\ncases = [{ name = "B", user = "b" }]\n'
    assert Excerpts().of(parsed(text), "b") == text


def test_a_suite_that_does_not_parse_and_a_case_that_is_not_there_keep_the_whole_text() -> None:
    broken = parse_suite("format = ", Path("home.toml"))
    assert Excerpts().of(broken, "b") == "format = "
    assert Excerpts().of(parsed(SUITE), "noon") == SUITE


@given(st.data())
def test_blocks_in_any_order_come_apart_cleanly(data: st.DataObject) -> None:
    blocks = [
        '[[tools]]\nname = "t{}"\n',
        "# about\n[[cases]]\nname = 'c{}'\nuser = 'x'\n[[cases.ordered]]\ntool = 't'\n[cases.ordered.args]\na = 1\n",
        "[[cases]]\nname = 'd{}'\nuser = '''\n[[cases]]\nb\u2028\x85\n'''\n\n",
        '[[mocks]]\ntool = "t{}"\nresult = "r"\n# last words\n\n',
    ]
    drawn = data.draw(st.lists(st.sampled_from(blocks), max_size=8))
    text = 'format = 1\nname = "A"\n' + "".join(block.replace("{}", str(n)) for n, block in enumerate(drawn))
    file, excerpts = parsed(text + "[[cases]]\nname = 'e'\nuser = 'x'\n"), Excerpts()
    assert file.suite is not None
    for index, case in enumerate(file.suite.cases):
        cut = excerpts.of(file, case.id)
        assert parsed(cut).suite == alone(file, index)
        assert cut.count("[[tools]]") == text.count("[[tools]]")
