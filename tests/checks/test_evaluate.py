from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import CHECK, checks, json_values
from tests.tables import each_row
from workbench.checks.check import (
    Check,
    CheckContext,
    CheckVerdict,
    EqualsRule,
    all_hold,
    by_json,
    by_python,
    evaluate,
    verdict_text,
)
from workbench.checks.combined_kinds import AllOf, AnyOf, PythonCheck
from workbench.checks.fields import JSON_TYPES
from workbench.checks.patterns import CheckError
from workbench.checks.value_kinds import Equals
from workbench.checks.values import json_equal
from workbench.grading.critics import equals_by_arcade_casting, equals_by_casting
from workbench.trajectory.events import JsonValue

integers = st.builds(
    lambda middle, away: middle + away,
    st.sampled_from([0, 2**53, -(2**53), 2**63, 10**30]),
    st.integers(min_value=-3, max_value=3),
)
"""Whole numbers around the limits of floating point precision."""


def verdict_of(written: Any, value: JsonValue) -> CheckVerdict:
    return evaluate(CHECK.validate_python(written), value)


@each_row(
    ("written", "value"),
    [
        (5, 5.0),
        ({"equals": {"a": 1}}, {"a": 1.0}),
        ({"equals_null": True}, None),
        ({"present": True}, None),
        ({"one_of": [1, "x"]}, "x"),
        ({"range": [5, 40]}, 5),
        ({"range": [5, 40]}, 40.0),
        ({"range": [0, math.inf]}, 10**400),
        ({"range": [2**53 + 1, math.inf]}, 2**53 + 1),
        ({"near": 21, "tolerance": 2}, 23),
        ({"near": 0.3, "tolerance": 0.1}, 0.4),
        ({"near": 50, "value_range": [0, 100]}, "60"),
        ({"near": 7, "tolerance": 0}, 7),
        ({"similar": "hello world"}, "World, hello!"),
        ({"similar": "red green"}, ["green", "red"]),
        ({"datetime": "2026-06-10T15:00"}, "10 June 2026, 3:05 pm"),
        ({"contains": "oo"}, "door"),
        ({"contains": ""}, ""),
        ({"prefix": "do"}, "door"),
        ({"suffix": "or"}, "door"),
        ({"pattern": "o{2}"}, "door"),
    ],
)
def test_a_check_holds(written: Any, value: JsonValue) -> None:
    verdict = verdict_of(written, value)
    assert verdict.holds
    assert verdict.score >= 0.8


@each_row(
    ("written", "value", "note"),
    [
        (1, True, "not equal"),
        ("5", 5, "not equal"),
        ("Z\u00fcrich", "Zu\u0308rich", "not equal: the same letters in a different Unicode form"),
        ({"equals_null": True}, False, "not null"),
        ({"one_of": [1]}, True, "none of them"),
        ({"range": [5, 40]}, 41, "outside"),
        ({"range": [0, 1]}, True, "not a number"),
        ({"range": [0, 1]}, "1", "not a number"),
        ({"range": [0, 1]}, math.nan, "outside"),
        ({"near": 21, "tolerance": 2}, 26, "closeness 0.00"),
        ({"range": [2**53 + 1, math.inf]}, 2**53, "outside"),
        ({"range": [-math.inf, 2**53]}, 2**53 + 1, "outside"),
        ({"near": 2**53 + 1, "tolerance": 0}, 2**53, "closeness 0.00"),
        ({"near": 2**53 + 1, "tolerance": 0}, 2.0**53, "closeness 0.00"),
        ({"near": 1, "tolerance": 1}, True, "not a number"),
        ({"near": 1000, "tolerance": 1}, "1_000", "not a number"),
        ({"near": 5, "value_range": [0, 10]}, "\uff15", "not a number"),
        ({"near": 21, "tolerance": 2}, None, "not a number"),
        ({"near": 21, "tolerance": 2}, "warm", "not a number"),
        ({"near": 21, "tolerance": 2}, 10**400, "too large to compare"),
        ({"near": 21, "tolerance": 2}, math.nan, "not a number"),
        ({"datetime": "2026-06-10"}, 20260610, "not a string with a date and time"),
        ({"datetime": "2026-06-10"}, "soon", "not a valid date and time"),
        ({"datetime": "soon"}, "2026-06-10", "the expected date and time is invalid"),
        ({"datetime": "2026-06-10"}, "9" * 60, "too large to compare"),
        ({"datetime": "1:00+99:99"}, "1:00Z", "an offset of a day or more"),
        ({"contains": "5"}, 5, "not a string"),
        ({"contains": "Door"}, "door", "does not contain it"),
        ({"prefix": "x"}, "door", "starts differently"),
        ({"suffix": "x"}, "door", "ends differently"),
        ({"suffix": "e\u0301"}, "caf\u00e9", "ends differently"),
        ({"pattern": "^o"}, "door", "not found in it"),
        ({"pattern": "5"}, 5, "not a string"),
    ],
)
def test_a_check_fails_and_says_why(written: Any, value: JsonValue, note: str) -> None:
    verdict = verdict_of(written, value)
    assert not verdict.holds
    assert verdict.score == 0
    assert verdict.note == note


def test_graded_checks_give_credit_below_their_threshold() -> None:
    assert verdict_of({"near": 21, "tolerance": 2}, 24) == CheckVerdict(0.5, False, "closeness 0.50")
    similar = verdict_of({"similar": "deploy the service"}, "deploy the thing")
    assert not similar.holds
    assert similar.score == pytest.approx(0.503, abs=1e-3)
    late = verdict_of({"datetime": "2026-06-10T15:00"}, "2026-06-10T16:00")
    assert late == CheckVerdict(0.5, False, "3600 s apart")


@given(integers, integers, integers.map(abs))
def test_whole_numbers_are_compared_exactly_however_large(bound: int, value: int, tolerance: int) -> None:
    assert verdict_of({"range": [bound, math.inf]}, value).holds is (value >= bound)
    assert verdict_of({"range": [-math.inf, bound]}, value).holds is (value <= bound)
    assert verdict_of({"range": [bound, bound]}, float(value)).holds is (int(float(value)) == bound)
    for actual in (value, str(value)):
        verdict = verdict_of({"near": bound, "tolerance": tolerance}, actual)
        assert verdict.holds is (abs(bound - value) <= tolerance)
        assert (verdict.score == 1) is verdict.holds


def test_the_score_of_near_stays_within_its_bounds_outside_of_the_range() -> None:
    assert verdict_of({"near": 0, "value_range": [0, 10]}, 50).score == 0.0


def test_an_argument_that_is_left_out_is_only_fine_where_it_is_optional() -> None:
    for written in ("on", {"present": True}, {"equals_null": True}):
        assert not evaluate(CHECK.validate_python(written), None, given=False).holds
    assert evaluate(CHECK.validate_python({"equals": "on", "optional": True}), None, given=False).holds
    assert not evaluate(CHECK.validate_python({"equals": "on", "optional": True}), None, given=True).holds


def test_the_reason_names_what_was_expected_and_what_came() -> None:
    check = CHECK.validate_python({"range": [5, 40]})
    assert verdict_text(check, evaluate(check, 55), 55) == "expected 5..40, got 55 (outside)"
    assert verdict_text(check, evaluate(check, None, False), None, False) == "expected 5..40, got nothing (not given)"


def test_a_judge_is_not_made_up() -> None:
    with pytest.raises(CheckError, match=r"polite.*needs a judge"):
        verdict_of({"judged": "polite"}, "x")


def test_a_python_check_asks_its_function() -> None:
    check = CHECK.validate_python({"python": "checks:even"})
    asked: list[tuple[str, JsonValue]] = []

    def even(reference: str, value: JsonValue) -> bool:
        asked.append((reference, value))
        return isinstance(value, int) and value % 2 == 0

    assert evaluate(check, 4, context=CheckContext(even)).holds
    assert not evaluate(check, 5, context=CheckContext(even)).holds
    assert asked == [("checks:even", 4), ("checks:even", 5)]


def test_a_python_check_that_cannot_be_asked_is_no_verdict() -> None:
    def broken(reference: str, value: JsonValue) -> bool:
        raise OverflowError("bad day")

    check = CHECK.validate_python({"python": "checks:even"})
    with pytest.raises(CheckError, match=r"checks:even.*OverflowError: bad day"):
        evaluate(check, 4, context=CheckContext(broken))
    with pytest.raises(CheckError, match="checks:even"):
        evaluate(check, 4)


def test_conditions_look_only_at_the_arguments_they_name() -> None:
    when = {
        "city": CHECK.validate_python("Seattle"),
        "days": CHECK.validate_python({"range": [1, 3], "optional": True}),
    }
    assert all_hold(when, {"city": "Seattle", "units": "metric"})
    assert all_hold(when, {"city": "Seattle", "days": 2})
    assert not all_hold(when, {"city": "Seattle", "days": 9})
    assert not all_hold(when, {"days": 2})
    assert all_hold({}, {"city": "Oslo"})


def test_conditions_compare_as_json_does() -> None:
    when = {"n": CHECK.validate_python(1)}
    assert all_hold(when, {"n": 1.0})
    assert not all_hold(when, {"n": True})
    assert not all_hold(when, {"n": "1"})


@given(checks(), json_values)
def test_no_check_stumbles_over_a_value(check: Check, value: JsonValue) -> None:
    verdict = evaluate(check, value)
    assert 0.0 <= verdict.score <= 1.0
    assert verdict.measured or not verdict.holds
    assert verdict_text(check, verdict, value)


@given(json_values)
def test_a_plain_value_holds_for_what_json_calls_equal(value: JsonValue) -> None:
    assert verdict_of({"equals": value}, value).holds == json_equal(value, value)


def test_a_value_too_deep_to_compare_fails_its_check() -> None:
    value: JsonValue = []
    for _ in range(100_000):
        value = [value]
    verdict = verdict_of({"similar": "x"}, value)
    assert not verdict.holds
    assert not verdict.measured


@pytest.mark.parametrize("answer", ["yes", 1, None])
def test_a_python_check_must_answer_true_or_false(answer: object) -> None:
    with pytest.raises(CheckError, match="must return True or False"):
        evaluate(PythonCheck(python="m:f"), 1, context=CheckContext(lambda _reference, _value: answer))


def test_what_a_check_said_of_a_value_is_asked_once_where_it_is_kept() -> None:
    asked: list[JsonValue] = []

    def even(_reference: str, value: JsonValue) -> bool:
        asked.append(value)
        return value == 4

    check, other = PythonCheck(python="m:f"), PythonCheck(python="m:f")
    context = CheckContext(even, verdicts={})
    assert [evaluate(check, value, context=context).holds for value in (4, 5, 4)] == [True, False, True]
    assert asked == [4, 5]
    assert evaluate(other, 4, context=context).holds
    assert asked == [4, 5, 4]


def test_plain_values_are_compared_by_each_rule_also_where_verdicts_are_kept() -> None:
    check, context = Equals(equals=1), CheckContext(verdicts={})
    assert evaluate(check, True, equal=by_python, context=context).holds
    assert not evaluate(check, True, equal=by_json, context=context).holds


JSON_TYPE_OF = {str: "string", bool: "boolean", type(None): "null", list: "array", dict: "object", int: "integer"}


@given(json_values)
def test_a_value_is_of_its_type_and_of_no_other(value: JsonValue) -> None:
    held = {name for name in JSON_TYPES if verdict_of({"type": name}, value).holds}
    if isinstance(value, float):
        assert held == ({"number", "integer"} if value.is_integer() else {"number"})
    else:
        own = JSON_TYPE_OF[type(value)]
        assert held == {own} | ({"number"} if own == "integer" else set())


@each_row(
    ("wanted", "value", "holds"),
    [
        ("New York, NY", "new york ny", True),
        ("a/b-c_d*e^f.g", "ABCDEFG", True),
        ("it's", 'IT"S', True),
        ("Z\u00fcrich", "zu\u0308rich", True),
        ("Stra\u00dfe", "STRASSE", False),
        ("a\tb", "ab", False),
        ("5", 5, False),
        (["New York", {"City": "Los Angeles"}], ["new-york", {"City": "LOS ANGELES"}], True),
        ({"City": "x"}, {"city": "x"}, False),
    ],
)
def test_texts_are_equal_but_for_case_and_punctuation(wanted: JsonValue, value: JsonValue, holds: bool) -> None:
    assert verdict_of({"equals_text": wanted}, value).holds is holds


@given(st.lists(checks(), min_size=1, max_size=3), json_values)
def test_several_checks_hold_all_or_one(parts: list[Check], value: JsonValue) -> None:
    alone = [evaluate(part, value) for part in parts]
    together = evaluate(AllOf(all_of=tuple(parts)), value)
    assert together.holds is all(verdict.holds for verdict in alone)
    either = evaluate(AnyOf(any_of=tuple(parts)), value)
    assert either.holds is any(verdict.holds for verdict in alone)
    assert min(verdict.score for verdict in alone) <= together.score <= either.score


def test_several_checks_say_which_of_them_failed_and_ask_a_judge_last() -> None:
    asked: list[JsonValue] = []

    def judge(_: Check, value: JsonValue) -> CheckVerdict:
        asked.append(value)
        return CheckVerdict(0.0, False, "rude")

    check = CHECK.validate_python({"all_of": [{"judged": "polite"}, {"prefix": "x"}, {"any_of": [1, "xy"]}]})
    context = CheckContext(judge=judge)
    verdict = evaluate(check, "a", context=context)
    assert verdict_text(check, verdict, "a") == (
        'expected judged: polite and starting with "x" and (1 or "xy"), got "a" (starting with "x": starts differently)'
    )
    assert asked == []
    assert evaluate(check, "xy", context=context).note == "judged: polite: rude"
    assert asked == ["xy"]


@pytest.mark.parametrize("equal", [by_json, by_python, equals_by_casting, equals_by_arcade_casting])
@pytest.mark.parametrize(("value", "holds"), [(5, True), (5.0, True), ("5", False), (True, False), ("b", True)])
def test_one_of_any_of_and_all_of_accept_the_same_values_under_every_rule(
    equal: EqualsRule, value: JsonValue, holds: bool
) -> None:
    for written in ({"one_of": [5, "b", 1]}, {"any_of": [5, "b", 1]}, {"all_of": [{"any_of": [5, "b", 1]}]}):
        assert evaluate(CHECK.validate_python(written), value, equal=equal).holds is holds


@each_row(
    ("returned", "verdict"),
    [
        (True, (1.0, True, "")),
        (0.5, (0.5, True, "the function returned 0.50, at least 0.5 needed")),
        (0.25, (0.25, False, "the function returned 0.25, at least 0.5 needed")),
        ({"score": 1, "reason": " all  of\nit "}, (1.0, True, "all of it")),
        ({"score": 0.75, "holds": False, "reason": "rude"}, (0.75, False, "rude")),
        ({"holds": False}, (0.0, False, "the function returned 0.00, at least 0.5 needed")),
    ],
)
def test_a_function_returns_a_score_or_a_verdict_with_its_reason(returned: object, verdict: tuple[object, ...]) -> None:
    check = PythonCheck(python="m:f", at_least=0.5)
    found = evaluate(check, "x", context=CheckContext(lambda _reference, _value: returned))
    assert (found.score, found.holds, found.note) == verdict


@each_row(
    ("returned", "why"),
    [
        (0.5, "to judge a score, write `at_least`"),
        (1.5, "must return True or False"),
        (math.nan, "must return True or False"),
        ({}, "a dict with"),
        ({"score": 0.5, "why": "x"}, "a dict with"),
        ({"reason": "x"}, "`holds`"),
        ({"holds": "no"}, "`holds`"),
        ({"holds": True, "reason": 5}, "`holds`"),
        ({"holds": True, "score": 7}, "must return"),
    ],
)
def test_what_a_function_must_not_return_is_no_verdict(returned: object, why: str) -> None:
    with pytest.raises(CheckError, match=why):
        evaluate(PythonCheck(python="m:f"), "x", context=CheckContext(lambda _reference, _value: returned))
