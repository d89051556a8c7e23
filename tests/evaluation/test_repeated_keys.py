"""Repeated keys in one object of a JSON text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.evaluation.calls_file import read_calls, repeated_keys
from workbench.trajectory.recording import RecordingError


def test_an_id_or_an_argument_that_stands_twice_is_an_error_with_both_places(tmp_path: Path) -> None:
    calls = tmp_path / "calls.json"
    calls.write_text('{"cases": {\n  "oslo": [],\n  "\\u006fslo": [{"tool": "f", "arguments": {"a": 1, "a": 2}}]}}')
    with pytest.raises(RecordingError) as refused:
        read_calls(calls)
    assert '"oslo" occurs twice in one object, at line 2, column 3 and line 3, column 3' in str(refused.value)
    assert '"a" occurs twice in one object, at line 3, column 45 and line 3, column 53' in str(refused.value)


def test_two_lines_of_one_case_are_two_runs_and_a_key_twice_in_a_line_is_an_error(tmp_path: Path) -> None:
    calls = tmp_path / "calls.jsonl"
    calls.write_text('{"case": "oslo", "calls": []}\n{"case": "oslo", "calls": []}\n')
    assert len(read_calls(calls).runs["oslo"]) == 2
    calls.write_text('{"case": "oslo", "calls": []}\n{"case": "oslo", "case": "b", "calls": []}\n')
    with pytest.raises(RecordingError, match="line 2, column 2 and line 2, column 18"):
        read_calls(calls)


_VALUES = st.recursive(
    st.none() | st.text(max_size=4), lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner)
)


@given(_VALUES, st.booleans())
def test_no_text_of_a_value_has_a_key_twice(value: object, is_ascii: bool) -> None:
    assert [*repeated_keys(json.dumps(value, ensure_ascii=is_ascii))] == []
