from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import CHECK, checks, json_values
from tests.tables import each_row
from workbench.checks.argument_schema import one_of_types
from workbench.checks.check import Check, describe
from workbench.checks.fields import JSON_TYPES, TYPE_WORDS
from workbench.checks.values import SHOWN_CELLS, cut_text, describe_value
from workbench.trajectory.events import JsonValue


@each_row(
    ("written", "shown"),
    [
        ("on", '"on"'),
        (5, "5"),
        (5.0, "5.0"),
        ({"equals": {"a": [1]}}, '{"a": [1]}'),
        ({"equals_null": True}, "null"),
        ({"present": True}, "any value"),
        ({"one_of": ["a", 2]}, 'one of "a", 2'),
        ({"one_of": []}, "one of nothing"),
        ({"range": [5, 40]}, "5..40"),
        ({"range": [0.5, float("inf")]}, "at least 0.5"),
        ({"range": [float("-inf"), 3]}, "at most 3"),
        ({"range": [float("-inf"), float("inf")]}, "any number"),
        ({"near": 21, "tolerance": 2}, "near 21 ± 2"),
        ({"near": 21.5, "value_range": [0, 100]}, "near 21.5 on 0..100"),
        ({"similar": "Good night"}, 'similar to "Good night"'),
        ({"datetime": "2026-06-10T15:00", "tolerance": "1h"}, '"2026-06-10T15:00" ± 1h'),
        ({"contains": "x"}, 'containing "x"'),
        ({"prefix": "x"}, 'starting with "x"'),
        ({"suffix": "x"}, 'ending with "x"'),
        ({"pattern": r"^\d+$"}, r"matching /^\d+$/"),
        ({"pattern": "a\n"}, r"matching /a\n/"),
        ({"judged": "polite,\n  and short"}, "judged: polite, and short"),
        ({"python": "checks:even"}, "python checks:even"),
    ],
)
def test_a_check_reads_as_a_few_words(written: Any, shown: str) -> None:
    assert describe(CHECK.validate_python(written)) == shown


def test_long_values_are_cut_to_terminal_cells() -> None:
    assert len(describe_value("x" * 200)) == SHOWN_CELLS
    assert describe_value("x" * 200).endswith("…")
    assert cut_text("東" * 40, cells=11) == "東東東東東…"
    assert cut_text("東" * 5, cells=10) == "東" * 5
    assert cut_text("e\u0301" * 10, cells=10) == "e\u0301" * 10


def test_a_value_too_deep_to_write_is_said_to_be_so() -> None:
    value: JsonValue = []
    for _ in range(100_000):
        value = [value]
    assert describe_value(value) == "a value nested too deeply or too long to show"


@given(checks() | json_values.map(lambda value: CHECK.validate_python({"equals": value})))
def test_no_description_is_long_or_broken_over_lines(check: Check) -> None:
    shown = describe(check)
    assert len(shown) <= SHOWN_CELLS + shown.count("\u0301")
    assert "\n" not in shown


@given(st.text())
def test_cutting_leaves_short_texts_alone(text: str) -> None:
    assert cut_text(text, cells=2 * len(text)) == text


def test_a_type_has_one_name_in_checks_and_schemas() -> None:
    for name, words in TYPE_WORDS.items():
        assert describe(CHECK.validate_python({"type": name})) == words
        assert one_of_types(frozenset({name})) == words
    assert set(TYPE_WORDS) == set(JSON_TYPES)
