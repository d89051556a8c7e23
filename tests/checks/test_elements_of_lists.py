"""Checks of elements, lengths, absence and exclusion, and how a written table becomes one of them."""

from __future__ import annotations

import time
import tomllib
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import PydanticCustomError

from tests.grading.cases import call, case_of
from tests.strategies import checks, json_values
from tests.tables import each_row
from tests.trajectories import trajectory_of
from workbench.checks import element_kinds
from workbench.checks.check import CHECK_CLASSES, OPTION_NAMES, CheckBase, describe, evaluate, read_check
from workbench.checks.element_kinds import largest_matching
from workbench.grading.run import graded_run
from workbench.limits import MAX_COMPARED_PAIRS, Limit
from workbench.suite.model import Suite
from workbench.trajectory.events import JsonValue

NEWER = [name for name, cls in CHECK_CLASSES.items() if cls.is_newer]


def check(text: str) -> CheckBase:
    return read_check(tomllib.loads(f"check = {text}")["check"])


@each_row(
    ("text", "value", "score", "note"),
    [
        ('{ same_elements = ["a", "b"] }', ["b", "a"], 1, None),
        ('{ same_elements = ["a", "b"], in_order = true }', ["b", "a"], 0, '[0]: expected "a", got "b"'),
        ('{ same_elements = ["a", "a"] }', ["a", "b"], 0.5, '[1]: expected "a", got "b" (not equal)'),
        ('{ same_elements = ["a"] }', ["a", "b", "c"], 1 / 3, '[1]: "b" is not expected; [2]: "c" is not expected'),
        ('{ same_elements = ["a", "b"] }', ["a"], 0.5, 'missing "b"'),
        ("{ same_elements = [] }", [], 1, None),
        ("{ same_elements = [1, true] }", [True, 1.0], 1, None),
        # The second check takes the only element that fits it from the first check.
        ('{ same_elements = [{ contains = "a" }, { contains = "b" }] }', ["ab", "xa"], 1, None),
        ('{ same_elements = [{ contains = "a" }, "ab"] }', ["ab", "xa"], 1, None),
        ("{ has_elements = [3, 1], in_order = true }", [3, 2, 1], 1, None),
        ("{ has_elements = [1, 3], in_order = true }", [3, 2, 1], 0.5, "missing 3"),
        ("{ has_elements = [{ range = [1, 3] }, 3] }", [3, 9, 2], 1, None),
        # A plain table is compared whole, except below `has_fields`.
        ('{ has_elements = [{ sku = "A1" }] }', [{"sku": "A1", "qty": 2}], 0, 'missing {"sku": "A1"}'),
        (
            '{ has_fields = { items = { has_elements = [{ sku = "A1" }] } } }',
            {"items": [{"sku": "A1", "n": 2}]},
            1,
            None,
        ),
        ("{ has_fields = { a = { each_element = { b.c = 1 } } } }", {"a": [{"b": {"c": 1, "d": 2}}]}, 1, None),
        (
            "{ has_fields = { a = { each_element = { b = 1 } } }, only_fields = true }",
            {"a": [{"b": 1, "c": 2}]},
            0.5,
            "[0]: ",
        ),
        ("{ each_element = { range = [1, 5] } }", [1, 9], 0.5, "[1]: expected 1..5, got 9 (outside)"),
        ("{ each_element = 5 }", [], 1, None),
        ("{ each_element = 5 }", 5, 0, "not a list"),
        ("{ has_length = [1, 3] }", "äöü", 1, None),
        ("{ has_length = 2 }", {"a": 1}, 0, "length 1"),
        ("{ has_length = [1, inf] }", 5, 0, "has no length"),
        ('{ none_of = [{ contains = "DROP" }, ""] }', "SELECT", 1, None),
        ('{ none_of = [{ contains = "DROP", because = "no changes" }] }', "DROP x", 0, "because: no changes"),
        ("{ has_fields = { dry_run = { present = false }, n = { equals = 1, optional = true } } }", {}, 1, None),
        ("{ has_fields = { dry_run = { present = false } } }", {"dry_run": False}, 0, "dry_run: expected not given"),
        ('{ near = 3, tolerance = "10%" }', 3.3, 1, None),
        ('{ near = -200, tolerance = "5%" }', -211, 0.9, "closeness 0.90"),
        ('{ equals = { name = ["\\u00c9"] }, ignore_case = true }', {"name": ["E\u0301".lower()]}, 1, None),
        ('{ one_of = ["Ja"], ignore_case = true }', "JA", 1, None),
        ('{ prefix = "HAUPT", ignore_case = true }', "Hauptstraße", 1, None),
        ('{ suffix = "SS", ignore_case = true }', "Fuß", 0, "ends differently"),
    ],
)
def test_a_check_that_looks_inside_holds_and_explains(
    text: str, value: JsonValue, score: float, note: str | None
) -> None:
    found = evaluate(check(text), value)
    assert found.holds is (note is None)
    assert found.score == pytest.approx(score)
    assert (note or "") in found.note


_VALUES = st.one_of(st.integers(-3, 3), st.booleans(), st.just("x"), st.lists(st.integers(), max_size=3))
_OPTIONS = {"in_order": st.booleans(), "ignore_case": st.booleans(), "because": st.just("x"), "city": _VALUES}
TABLES = st.fixed_dictionaries({}, optional={**dict.fromkeys(NEWER, _VALUES), **_OPTIONS}).filter(bool)


@given(TABLES)
def test_a_value_of_a_file_before_these_checks_stays_one_unless_it_is_exactly_a_check(table: dict[str, Any]) -> None:
    found = read_check(table)
    names = [name for name in table if name in NEWER]
    others = [name for name in table if name not in NEWER]
    is_check = len(names) == 1 and CHECK_CLASSES[names[0]].has_shape(table[names[0]])
    is_check = is_check and all(name in CHECK_CLASSES[names[0]].model_fields for name in others)
    if is_check:
        assert found.kind == names[0]
    else:
        assert found.bare_value == table


@given(json_values)
def test_plain_values_below_a_newer_option_are_what_they_were(value: JsonValue) -> None:
    """A newer option neither turns tables into checks nor refuses any."""
    for option in ("because", "ignore_case", "in_order"):
        assert option not in OPTION_NAMES
        if isinstance(value, dict) and "because" not in value:
            try:
                before = read_check({**value, "city": 1}).bare_value
            except PydanticCustomError:
                continue
            assert before == {**value, "city": 1}


@given(checks())
def test_the_written_form_of_a_check_is_read_back_equal(made: CheckBase) -> None:
    assert read_check(made.as_written()) == made


@pytest.mark.parametrize("grader", ["critics", "decision", "accuracy", "trajectory", "dimensions"])
@pytest.mark.parametrize(
    ("written", "value"),
    [
        ({"same_elements": ["b", {"prefix": "a"}]}, ["ab", "b"]),
        ({"has_elements": [{"has_fields": {"a": 1}}]}, [0, {"a": 1, "b": 2}]),
        ({"each_element": {"near": 5, "tolerance": "20%"}}, [4, 6]),
        ({"has_length": [1, 2]}, "é"),
        ({"none_of": [5, {"contains": "x"}]}, "y"),
        ({"equals": "ÄB", "ignore_case": True}, "äb"),
        ({"has_fields": {"a": {"present": False}}}, {"b": 1}),
    ],
)
def test_an_exact_value_scores_1_and_a_wrong_one_less(grader: str, written: dict[str, Any], value: JsonValue) -> None:
    case = case_of(call("t", {"v": written, "none": {"present": False}}), grading={"by": grader})
    suite = Suite.model_validate({"format": 1, "name": "s", "cases": [case]})

    def score(**arguments: JsonValue) -> float:
        found = graded_run(suite, case, trajectory_of(("t", arguments), answer="done"))
        assert found.grades[0].grader == grader
        return found.grades[0].score if found.status == "passed" else -1.0  # type: ignore[return-value]

    assert score(v=value) == 1
    assert score(v=5) < 1
    assert score(v=value, none=None) < 1


def test_absence_in_args_is_a_forbidden_argument_with_its_reason() -> None:
    absent = {"present": False, "because": "nobody asked for it"}
    for grader in ("critics", "decision", "accuracy", "trajectory", "dimensions"):
        cases = [
            case_of(call("t", {"a": 1, "dry_run": absent}), grading={"by": grader}),
            case_of(call("t", {"a": 1}, forbidden_args=["dry_run"]), grading={"by": grader}),
        ]
        found = []
        for case in cases:
            suite = Suite.model_validate({"format": 1, "name": "s", "cases": [case]})
            found.append(graded_run(suite, case, trajectory_of(("t", {"a": 1, "dry_run": True}), answer="done")))
        one, other = found
        assert (one.status, one.grades[0].score) == (other.status, other.grades[0].score)
        assert [issue.kind for issue in one.grades[0].issues] == [issue.kind for issue in other.grades[0].issues]
        assert [issue.because for issue in one.grades[0].issues] == ["nobody asked for it"]


@given(st.lists(st.sets(st.integers(0, 4)), max_size=5))
def test_a_matching_is_as_large_as_the_largest_of_all(fits: list[set[int]]) -> None:
    expected = [read_check({"type": "null"})] * len(fits)
    found = largest_matching(expected, list(range(5)), lambda row, column: column in fits[row])
    assert all(column in fits[row] for row, column in found.items())
    assert len(set(found.values())) == len(found)
    most = max(
        sum(column in fits[row] for row, column in enumerate(order[: len(fits)])) for order in permutations(range(5))
    )
    assert len(found) == most


def test_long_lists_are_compared_quickly_in_either_order() -> None:
    begin = time.process_time()
    numbers: list[JsonValue] = list(range(1_000))
    assert evaluate(read_check({"same_elements": numbers}), numbers[::-1]).holds
    assert evaluate(read_check({"has_elements": [{"range": [n, n]} for n in range(700)]}), numbers).holds
    deep: Any = 1
    for _ in range(60):
        deep = {"has_fields": {"a": {"same_elements": [deep]}}}
    assert not evaluate(read_check(deep), {"a": []}).holds
    apart = read_check({"same_elements": [{"range": [n, n]} for n in range(1_000)]})
    assert evaluate(apart, numbers).holds and evaluate(apart, numbers[::-1]).holds
    assert time.process_time() - begin < 3


def test_a_list_that_needs_too_many_comparisons_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(element_kinds, "MAX_COMPARED_PAIRS", limit := Limit(9, MAX_COMPARED_PAIRS.happened))
    for length, measured in ((3, True), (4, False)):
        found = evaluate(read_check({"same_elements": [{"range": [0, 0]}] * 3}), [1] * length)
        assert (found.holds, found.measured) == (False, measured)
    assert found.note == limit.reached()


def test_they_are_described() -> None:
    assert describe(check('{ same_elements = [1, { prefix = "a" }] }')) == '[1, starting with "a"] in any order'
    assert describe(check("{ has_elements = [1], in_order = true }")) == "[1, …]"
    assert describe(check("{ each_element = { range = [1, 2] } }")) == "each element 1..2"
    assert describe(check("{ has_length = [1, inf] }")) == "length at least 1"
    assert describe(check('{ none_of = ["a", { contains = "b" }] }')) == 'not "a" nor containing "b"'
    assert describe(check('{ contains = "b", ignore_case = true }')) == 'containing "b", ignoring case'
    assert describe(check('{ near = 5, tolerance = "5%" }')) == "near 5 ± 5%"
