"""Example texts that a pattern accepts."""

from __future__ import annotations

import re

import pytest

from tests.tables import each_row
from workbench.checks.patterns import matching_text


@each_row(
    "pattern",
    [
        "^acc-[0-9]{3}$",
        r"(?i)dune|ubik",
        r"^(\d{4})-(\d\d)\Z",
        r"^[^a-z\d]+\w\s?\S$",
        r"(a|b)\1",
        r"^(?P<year>\d+)/(?P=year)$",
        r"\bword\b",
        r"^$",
        r"[^\x00]",
        r"x*?y{2,}+",
    ],
)
def test_a_pattern_is_found_in_its_text(pattern: str) -> None:
    text = matching_text(pattern)
    assert text is not None and re.search(pattern, text)


@pytest.mark.parametrize("pattern", [r"(?!)", r"a(?=b)c", "(a{9999}){9999}", "^(a{99}){9999}b{99999}$"])
def test_where_no_text_is_found_there_is_none(pattern: str) -> None:
    assert matching_text(pattern) is None
