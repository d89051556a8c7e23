"""Patterns whose searches may double with each character are distinguished from common patterns."""

from __future__ import annotations

import pytest

from tests.tables import each_row
from workbench.checks.patterns import expanded_size, repeats_ambiguously

AMBIGUOUS = [
    r"(a+)+",
    r"^(\w+\s?)*$",
    r"(.*)*",
    r"(?:a?a?)*",
    r"(?:\s*\w+\s*)+:",
    r"^(([a-z])+.)+[A-Z]([a-z])+$",
    r"([a-zA-Z0-9]{2,4})+$",
    r'"([^"\\]+|\\.)*"',
    r"(a|aa)+$",
    r"(a|a)*b",
    r"(\w|\d)+",
    r"(foo|foo)*",
    r"((ab)*|a*b*)*",
    r"(\d+,?){10,}",
    r"(?=(a+)+)b",
    r"(?>(?:a+)+)b",
]
USUAL = [
    r"Oslo",
    r"^(?:\w+\s+)*\w+$",
    r"(\w+\s)*",
    r"(?:[a-z0-9-]+\.)+[a-z]{2,}",
    r"^[^@]+@[^@]+\.\w+$",
    r"(\d{1,3}\.){3}\d{1,3}",
    r"((25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(\.|$)){4}",
    r'"(?:[^"\\]|\\.)*"',
    r'"(?:[^"\\]++|\\.)*"',
    r"^[A-Z][a-z]+( [A-Z][a-z]+)*$",
    r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
    r"([0-9a-f]{2}:)+",
    r"(?:(?!foo).)*",
    r"(\b\w+\b\s*)*",
    r"(?m)(?:^\w+$\n?)*",
    r"(?:january|february|march|june|july)+",
    r"(?:yes|no|maybe)(?:,(?:yes|no|maybe))*",
    r"https?://[^\s/]+(/[^\s]*)?",
    r"^(\+\d{1,3})?\s?\(?\d{3}\)?[\s.-]?\d{3}[\s.-]?\d{4}$",
    r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?",
    r"(?:.|\n)*end",
    r"(?s).*foo.*bar",
    r"(\w+\s?){1,3}",
    r"(?>a+)*b",
    r"(?:[^,]*,)*[^,]*",
    r"(a)(?(1)b|c)*",
    "(",
]


@each_row("pattern", AMBIGUOUS)
def test_a_repetition_that_fits_in_several_ways_is_found(pattern: str) -> None:
    assert repeats_ambiguously(pattern)


@each_row("pattern", USUAL)
def test_usual_patterns_are_not_taken_for_one(pattern: str) -> None:
    assert not repeats_ambiguously(pattern)


@pytest.mark.parametrize(
    ("pattern", "size"), [("Oslo", 4), ("x{1000}", 1000), ("(?:(?:ab?){20}|c){30}", 1230), (".{0,5000}", 1), ("a+", 1)]
)
def test_fixed_repetitions_multiply(pattern: str, size: int) -> None:
    assert expanded_size(pattern) == size
