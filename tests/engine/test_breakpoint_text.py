"""Breakpoints as lines of text: reading and writing agree, and messages about mistakes name a remedy."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.strategies import CHECK, checks
from tests.tables import each_row
from workbench.checks.check import Checks
from workbench.checks.value_kinds import Range
from workbench.engine.breakpoints import KINDS, BreakOn, Breakpoint, BreakpointError, breakpoint_line, breakpoint_of
from workbench.suite.model import Mock
from workbench.suite.render import suite_text, to_toml_data
from workbench.suite.suite_file import parse_suite

BRIGHT = {"brightness": CHECK.validate_python({"range": [50, 100]})}

LINES = {
    "tool send_email": Breakpoint("tool", "send_email"),
    "tool set_lights when { brightness = { range = [50, 100] } }": Breakpoint("tool", "set_lights", BRIGHT),
    "tool when": Breakpoint("tool", "when"),
    "error": Breakpoint("error"),
    "error send_email": Breakpoint("error", "send_email"),
    "failed-check": Breakpoint("failed-check"),
    'failed-check "a name with blanks"': Breakpoint("failed-check", "a name with blanks"),
    "round 3": Breakpoint("round", round=3),
    "not-read-only": Breakpoint("not-read-only"),
}


@each_row("line", LINES)
def test_a_line_is_read_and_written_again_as_it_was(line: str) -> None:
    assert breakpoint_of(line) == LINES[line]
    assert breakpoint_line(LINES[line]) == line


def test_blanks_around_the_parts_do_not_matter() -> None:
    assert breakpoint_of("  tool   x  when{brightness={range=[50,100]}}  ") == Breakpoint("tool", "x", BRIGHT)
    assert breakpoint_of("tool x when {}") == Breakpoint("tool", "x")


def test_every_kind_is_explained() -> None:
    assert set(KINDS) == set(get_args(BreakOn))


writable = st.characters(exclude_categories=["Cs"])
names = st.one_of(st.text(writable, min_size=1, max_size=8), st.sampled_from(["when", "a b", "'", '"', "\\", "x\n"]))
conditions = st.one_of(st.none(), st.dictionaries(st.text(writable, max_size=6), checks(), min_size=1, max_size=3))
breakpoints = st.one_of(
    st.builds(Breakpoint, st.just("tool"), names, conditions),
    st.builds(Breakpoint, st.sampled_from(["error", "failed-check"]), st.one_of(st.none(), names)),
    st.builds(Breakpoint, st.just("round"), round=st.integers(1, 999)),
    st.just(Breakpoint("not-read-only")),
)


def is_fine_in_a_mock(when: Checks | None) -> bool:
    """Return whether a suite can have the condition: TOML has no null, and suites refuse infinities."""
    case = {"name": "none", "user": "none"}
    try:
        mock = to_toml_data(Mock(tool="none", when=when, result=""))
        text = suite_text({"format": 1, "name": "none", "cases": [case], "mocks": [mock]})
    except ValueError:
        return False
    return not parse_suite(text, Path()).errors


@given(breakpoints)
def test_what_is_written_is_read_back_as_the_same_breakpoint(point: Breakpoint) -> None:
    assume(is_fine_in_a_mock(point.when))
    line = breakpoint_line(point)
    assert len(line.splitlines()) == 1
    assert breakpoint_of(line) == point
    assert breakpoint_line(breakpoint_of(line)) == line


@given(st.text(max_size=30))
def test_any_other_text_is_refused_in_words(text: str) -> None:
    for line in (text, f"tool x when {text}", f"tool {text}", f"round {text}"):
        try:
            read = breakpoint_of(line)
        except BreakpointError as error:
            assert str(error)
        else:
            assert breakpoint_of(breakpoint_line(read)) == read


@each_row(
    ("line", "said"),
    [
        ("", "column 1: there is no breakpoint here (write one of tool, error, failed-check, round, not-read-only)"),
        ("tol send", 'column 1: "tol" is not a kind of breakpoint (did you mean `tool`?)'),
        ("tool", "column 5: the name of the tool is missing (write tool NAME)"),
        ("tool 'x", "column 6: the name of the tool has no end (close it with ')"),
        ("tool x wen { a = 1 }", "did you mean `when`?"),
        ("tool x when", "column 12: the condition is missing (write when { argument = check }, as in a mock)"),
        ("tool x when { a = nope }", "column 19: the condition is not TOML: Invalid value (put text in quotes)"),
        ("tool x when { a = { range = [3, 2] } }", "when.a.range: must be [low, high] with low ≤ high (swap the"),
        ("tool x when { a = { near = 3, tolerence = 2 } }", "(did you mean `tolerance`?)"),
        ("error a b", 'column 9: "b" is not expected here'),
        ("round two", 'column 7: "two" is not a round (write round N, from 1 to 999999999)'),
        ("round 0", "(write round N, from 1 to 999999999)"),
        ("not-read-only send_email", "not-read-only takes no name: tool NAME holds runs at one tool"),
        ("tool a\ntool b", "a breakpoint is one line"),
    ],
)
def test_a_mistake_is_told_with_its_place_and_the_way_out(line: str, said: str) -> None:
    with pytest.raises(BreakpointError) as error:
        breakpoint_of(line)
    assert said in str(error.value)


def test_a_condition_makes_the_checks_that_a_mock_would_have() -> None:
    when = breakpoint_of("tool x when { n = { range = [1, inf], optional = true } }").when
    assert when is not None
    assert isinstance(when["n"], Range)
    assert (when["n"].range[1], when["n"].optional) == (float("inf"), True)


def test_what_the_page_shows_are_breakpoints() -> None:
    page = (Path(__file__).parents[2] / "docs" / "debugging.md").read_text(encoding="utf-8")
    shown = page.partition("```breakpoints\n")[2].partition("\n```")[0].splitlines()
    assert [breakpoint_line(breakpoint_of(line)) for line in shown] == shown
    assert all(f"`{kind}" in page for kind in KINDS)
