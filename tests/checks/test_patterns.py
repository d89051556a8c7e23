"""Searches end within a time limit and find what Python's `re` finds, except where docs/checks.md says so."""

from __future__ import annotations

import asyncio
import re
import warnings
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.strategies import CHECK
from workbench.checks import patterns
from workbench.checks.check import CheckContext, evaluate
from workbench.checks.patterns import CheckError, SearchError, search_pattern

ENDLESS = "^(a|aa)+$"
LONG = "a" * 60 + "!"


def test_a_search_that_takes_too_long_is_an_error_that_names_pattern_and_length() -> None:
    assert not search_pattern(r"^(\w+\s?)*$", "a" * 41 + "!")
    with pytest.raises(CheckError) as raised:
        evaluate(CHECK.validate_python({"pattern": ENDLESS}), LONG)
    assert str(raised.value) == (
        "the search for the pattern '^(a|aa)+$' in a text of 61 characters did not end within 0.5 s; "
        "simplify the pattern"
    )


def test_all_searches_of_a_check_have_one_limit() -> None:
    check, context = CHECK.validate_python({"pattern": ENDLESS}), CheckContext(search_time={ENDLESS: 0.6})
    with pytest.raises(SearchError):
        evaluate(check, "a", context=context)
    assert evaluate(check, "a", context=CheckContext(search_time={})).holds


class Searches:
    """Stands for a pattern whose timeouts run out on a clock that is not the search's own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, own_s: list[float]) -> None:
        self.made: list[tuple[float, bool]] = []
        self._own_s = own_s
        self._clock_s = 0.0
        monkeypatch.setattr(patterns, "_prepared", lambda _pattern, _is_of_schema: self)
        monkeypatch.setattr("workbench.checks.patterns.time.thread_time", lambda: self._clock_s)

    def search(self, text: str, *, timeout: float, concurrent: bool) -> object:
        self.made.append((round(timeout, 3), concurrent))
        if len(self.made) > len(self._own_s):
            return text
        self._clock_s += self._own_s[len(self.made) - 1]
        raise TimeoutError


def test_what_other_threads_use_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    searches = Searches(monkeypatch, [0.001, 0.01, 0.1])
    assert search_pattern("x", "text")
    # Most searches end within the first limit. The second lets other threads run, which disturb the others less.
    assert searches.made == [(0.02, False), (0.5, True), (1.0, False), (2.0, False)]
    searches = Searches(monkeypatch, [0.5])
    with pytest.raises(SearchError, match="100,001 characters"):
        search_pattern("x", "a" * 100_001)
    assert searches.made == [(0.5, True)]


@pytest.mark.slow
async def test_other_threads_go_on_meanwhile() -> None:
    search = asyncio.create_task(asyncio.to_thread(search_pattern, ENDLESS, LONG))
    ticks = 0
    while not search.done():
        await asyncio.sleep(0.005)
        ticks += 1
    with pytest.raises(SearchError):
        await search
    assert ticks > 10


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("x{4294967294}", "repeats its parts more than 100,000 times"),
        ("(((a?){200}){200}){200}", "repeats its parts more than 100,000 times"),
        ("(", "missing )"),
    ],
)
def test_a_pattern_that_cannot_be_searched_for_says_why(pattern: str, why: str) -> None:
    with pytest.raises(SearchError, match=re.escape(why)):
        search_pattern(pattern, "a")


literals = st.text("abe1_ é<=,:-&|~#", min_size=1, max_size=3).map(re.escape)
atoms = st.one_of(
    literals,
    st.sampled_from(
        [".", r"\w", r"\d", r"\s", r"\W", r"\S", r"\b", r"\B", "^", "$", r"\Z", r"\x61", r"\t", r"\N{DIGIT ONE}"]
    ),
    st.text("ab-e1é[:^|&~", min_size=1, max_size=5).map(lambda inside: f"[{inside}]"),
    st.sampled_from(
        ["{e}", "{e<=1}", "{i}", "{a", "{1,b}", "[[:alpha:]]", "[^[:digit:]]", "[]a]", "(?#[{)", r"[\]\[]"]
    ),
)
groups = [
    "({})",
    "(?:{})",
    "(?={})",
    "(?!{})",
    "(?P<name>{})(?P=name)",
    "(?>{})",
    "(?i:{})",
    "(?s:{})",
    "(?x: {} # [\n)",
]
written = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map("|".join),
        st.tuples(st.sampled_from(groups), inner).map(lambda pair: pair[0].replace("{}", pair[1])),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "*?", "{2}", "{1,2}", "{,2}", "{2,}", "*+"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
    ),
    max_leaves=6,
)


@given(st.sampled_from(["", "(?i)", "(?m)", "(?s)", "(?a)", "(?x)"]), written, st.text("aAbeé1_ \n{}[]<=:", max_size=8))
def test_a_pattern_means_what_python_takes_it_for(flags: str, pattern: str, text: str) -> None:
    assume(text or r"\B" not in pattern)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        try:
            expected = re.search(flags + pattern, text) is not None
        except re.error:
            assume(False)
    assert search_pattern(flags + pattern, text) is expected


DIFFERENCES: dict[str, tuple[str, str, Any]] = {
    "combining marks are letters": (r"^\w+$", "Zu\u0308rich", True),
    "numbers that are no digits are none": (r"^\w$", "²", False),
    r"\B holds in an empty text": (r"\B", "", True),
    "separators of information are no blanks": (r"^\s$", "\x1c", False),
}


@pytest.mark.parametrize(("pattern", "text", "holds"), DIFFERENCES.values(), ids=DIFFERENCES)
def test_the_differences_to_python_are_those_of_the_page(pattern: str, text: str, holds: bool) -> None:
    assert search_pattern(pattern, text) is holds
    assert (re.search(pattern, text) is not None) is not holds
