"""How much work a search can become: never told too small, and small for what people write."""

from __future__ import annotations

import pytest

from workbench.checks.search_cost import TOO_MANY, most_steps


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+$",
        "(a|aa)*b",
        "((a{1,30}){1,30})x",
        "(?:a+){2,}",
        "(a+)\\1",
        "(?P<x>a+)(?P=x)",
        "(?x)(a+) + b",
        "(?xi: (a+)\n*)",
        "(a)(?(1)b+|c+)",
    ],
)
def test_what_repeats_a_group_or_what_was_found_has_no_bound(pattern: str) -> None:
    assert most_steps(pattern, 30) == TOO_MANY


@pytest.mark.parametrize(
    ("pattern", "length", "most"),
    [
        ("Oslo", 1000, 1001),
        ("^u-[0-9]+$", 20, 21),
        ("(?i)(kitchen|bedroom)", 20, 42),
        (r"^[^@]+@[^@]+\.\w+$", 20, 21**3),
        (r"\d+ degrees", 99, 100**2),
        (r"\(a\)+[)]*", 9, 10**3),
        ("(?:ab)?c", 9, 20),
    ],
)
def test_common_patterns_have_a_small_one(pattern: str, length: int, most: int) -> None:
    assert most_steps(pattern, length) == most


def test_many_choices_multiply() -> None:
    assert most_steps("a?" * 30 + "a" * 30, 30) > 10**9
    assert most_steps(".*.*.*.*x", 1000) == TOO_MANY
