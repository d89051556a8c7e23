"""New cases look handwritten, and every written value reads back the same."""

from __future__ import annotations

import tomllib
from datetime import date, datetime, time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.example_counts import examples
from workbench.suite.render import block_text, one_line, pair_text
from workbench.suite.toml_equality import matching_elements, toml_equal

CASE: dict[str, Any] = {
    "user": "Run my bedtime routine.\nThen lock up.",
    "id": "bedtime",
    "name": 'The "bedtime" routine',
    "unordered": [{"args": {}, "tool": "close_blinds", "forbidden_args": ["speed"]}],
    "messages": [{"role": "assistant", "tool_calls": [{"id": "c1", "tool": "get_thermostat", "args": {}}]}],
    "ordered": [
        {"tool": "lock_door", "args": {"door": {"one_of": ["front", "back"], "weight": 0.5}}},
        {"any_order": [{"tool": "set_lights", "args": {"brightness": {"range": [5, 20]}}}, {"tool": "set_tv"}]},
        {"tool": "send", "args": {"to": "a@example.test", "text": "x" * 80, "subject": {"pattern": r"^\d+$"}}},
    ],
    "limits": {"max_rounds": 3},
}

WRITTEN = """\
[[cases]]
id = "bedtime"
name = 'The "bedtime" routine'
user = \"\"\"
Run my bedtime routine.
Then lock up.\"\"\"
limits = { max_rounds = 3 }

[[cases.messages]]
role = "assistant"
tool_calls = [{ id = "c1", tool = "get_thermostat", args = {} }]

[[cases.ordered]]
tool = "lock_door"
args = { door = { one_of = ["front", "back"], weight = 0.5 } }

[[cases.ordered]]
any_order = [
  { tool = "set_lights", args = { brightness = { range = [5, 20] } } },
  { tool = "set_tv" },
]

[[cases.ordered]]
tool = "send"
[cases.ordered.args]
to = "a@example.test"
text = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
subject = { pattern = '^\\d+$' }

[[cases.unordered]]
tool = "close_blinds"
args = {}
forbidden_args = ["speed"]"""


def test_a_case_is_written_as_a_person_would() -> None:
    assert block_text(("cases",), CASE, of_array=True) == WRITTEN


def test_a_list_that_is_too_long_has_a_line_for_each_element() -> None:
    assert pair_text(("models",), ["m" * 60, "n" * 60]) == f'models = [\n  "{"m" * 60}",\n  "{"n" * 60}",\n]'


@settings(max_examples=examples(300))
@given(st.text() | st.text(st.sampled_from("\"'\\\n\r\t ab\x00\x7f\u202e\u2028😀"), max_size=12))
def test_any_text_reads_back_and_shows_what_cannot_be_seen(text: str) -> None:
    for written in (f"a = {one_line(text)}", pair_text(("a",), text)):
        assert tomllib.loads(written) == {"a": text}
        assert tomllib.loads(written.replace("\n", "\r\n")) == {"a": text}
        assert all(character.isprintable() or character in "\n\t" for character in written)


@given(st.integers() | st.floats(allow_nan=False) | st.booleans() | st.dates() | st.times() | st.datetimes())
def test_any_value_without_parts_reads_back(value: int | float | bool | date | time | datetime) -> None:
    assert toml_equal(tomllib.loads(f"a = {one_line(value)}"), {"a": value})


def test_what_toml_has_not_is_refused() -> None:
    for value, message in ((None, "no null"), ([{"a": None}], "no null"), ({1}, "type set"), ("\udc00", "surrogate")):
        with pytest.raises(ValueError, match=message):
            one_line(value)


def test_elements_are_known_again_when_they_move_or_change() -> None:
    a, b, c = {"tool": "a"}, {"tool": "b"}, {"tool": "c"}
    assert matching_elements([a, b, c], [c, a, b]) == [2, 0, 1]
    assert matching_elements([a, b, c], [a, {"tool": "x"}, b, c]) == [0, None, 1, 2]
    assert matching_elements([a, b, c], [{"tool": "c", "args": {}}, a]) == [2, 0]
    assert matching_elements([a, b], [{"tool": "x"}, b]) == [0, 1]
    assert matching_elements([1, 1], [True, 1]) == [0, 1]
