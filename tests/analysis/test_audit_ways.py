"""The audit of keys with several ways to do as expected, of calls around others, and of changes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.analysis.test_audit import found, unnoticed
from tests.tables import each_row

DUNE: dict[str, Any] = {"tool": "search", "args": {"query": "dune"}, "only_args": True}
DELETE: dict[str, Any] = {"tool": "delete", "args": {"id": "1"}, "only_args": True}
LOOSE: dict[str, Any] = {**DUNE, "args": {"query": "dune", "limit": {"equals": 5, "weight": 0.05}}}
FIRST: dict[str, Any] = {"tool": "delete", "before": {"tool": "search"}}
LAST: dict[str, Any] = {"tool": "delete", "after": {"tool": "search"}}
STRICT: dict[str, Any] = {"extra_calls": "forbid", "duplicate_calls": "forbid"}

STRONG: dict[str, dict[str, Any]] = {
    "two alternatives": {"ordered": [{"any_of": [DUNE, DELETE]}]},
    "an optional call": {"ordered": [DUNE, {**DELETE, "optional": True}]},
    "a number of calls": {"ordered": [{**DUNE, "times": [1, 3]}], "duplicate_calls": None},
    "calls in one answer": {"ordered": [{"any_order": [DUNE, DELETE], "parallel": True}]},
    "unordered calls in one answer": {"unordered": [{"any_order": [DUNE, DELETE], "parallel": True}]},
    "a call first, written last": {"unordered": [DELETE, DUNE], "disallowed": [FIRST]},
    "a call last, written first": {"unordered": [DUNE, DELETE], "disallowed": [LAST]},
    "a call first that is not expected": {"ordered": [DELETE], "disallowed": [FIRST], "extra_calls": ["search"]},
    "free calls of one tool": {"ordered": [DUNE], "extra_calls": ["search"], "duplicate_calls": None},
    "changes": {"final": {"changes": [DELETE], "readers": ["search"]}, "extra_calls": None},
}


@each_row("case", list(STRONG.values()))
def test_a_case_that_no_nearly_exact_agent_passes_is_left_alone(case: dict[str, Any]) -> None:
    written = {key: value for key, value in {**STRICT, **case}.items() if value is not None}
    grading = {"by": "trajectory"}
    assert found(written, grading=grading) == []
    assert [line for line in unnoticed(written, grading=grading) if line.startswith("warning")] == []


WEAK: dict[str, tuple[dict[str, Any], str]] = {
    "the second alternative": ({"ordered": [{"any_of": [DELETE, LOOSE]}]}, "[0].any_of[1]"),
    "an optional call": ({"ordered": [DELETE, {**LOOSE, "optional": True}]}, "ordered[1]"),
    "a number of calls": ({"ordered": [{**LOOSE, "times": [1, 2]}]}, "ordered[0]"),
    "calls in one answer": ({"ordered": [{"any_order": [DELETE, LOOSE], "parallel": True}]}, "[0].any_order[1]"),
}


@pytest.mark.parametrize(("case", "place"), list(WEAK.values()), ids=list(WEAK))
def test_a_case_that_a_nearly_exact_agent_passes_is_named_with_what_was_wrong(case: dict[str, Any], place: str) -> None:
    lines = unnoticed({**STRICT, **case}, grading={"by": "critics"})
    assert any(f'{place} passes with "limit" left out; with "limit" wrong' in line for line in lines), lines


def test_a_harmful_call_that_counts_as_reading_is_a_change_that_nothing_notices() -> None:
    [line] = unnoticed({"ordered": [DUNE], "final": {"changes": [DUNE], "readers": ["del*"]}, "extra_calls": "allow"})
    assert 'passes with a call of "delete" added' in line


OUT_OF_REACH: dict[str, tuple[dict[str, Any], str]] = {
    "an alternative that is forbidden": (
        {"ordered": [{"any_of": [DUNE, DELETE]}], "disallowed": [{"tool": "delete"}]},
        "a run that calls alternative 2 of `any_of` fails",
    ),
    "equal calls": (
        {"ordered": [{**DUNE, "times": [1, 2]}], "at_most": {"calls": 1}},
        "one that makes as many calls as `times` allows makes 2 calls",
    ),
    "positions against an order": ({"unordered": [DELETE, DUNE], "disallowed": [FIRST]}, "no run can pass"),
}


@pytest.mark.parametrize(("case", "said"), list(OUT_OF_REACH.values()), ids=list(OUT_OF_REACH))
def test_a_way_that_is_expected_and_fails_is_out_of_reach(case: dict[str, Any], said: str) -> None:
    by = "accuracy" if "unordered" in case else "trajectory"
    messages = [finding.message for finding in found(case, grading={"by": by}) if finding.kind == "out of reach"]
    assert any(said in message for message in messages), messages
