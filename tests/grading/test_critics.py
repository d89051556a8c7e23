from __future__ import annotations

import math
from itertools import permutations
from typing import Any

import pytest

from tests.grading.cases import COMPATIBLE, QUANTITY_FREE, call, case_of, critics
from tests.trajectories import CallSpec, trajectory_of
from workbench.checks.check import CheckContext
from workbench.checks.patterns import CheckError
from workbench.grading.critics import grade_critics
from workbench.grading.grade import Grade, GradingError
from workbench.grading.run import grade_run
from workbench.grading.status import Status
from workbench.suite.model import Case, Suite
from workbench.suite.settings import Grading
from workbench.trajectory.events import JsonValue, ToolDefinition

DEFAULT = Grading()


def grade(case: Case, *calls: CallSpec, grading: Grading = DEFAULT) -> Grade:
    return grade_critics(case, grading, trajectory_of(*calls))


def score(case: Case, *calls: CallSpec, grading: Grading = DEFAULT) -> float:
    result = grade(case, *calls, grading=grading).score
    assert result is not None
    return result


def test_a_tolerance_counts_the_same_with_arcade_compatible() -> None:
    case = case_of(call("f", {"n": {"near": 10, "tolerance": 2}, "m": 1}))
    for grading in (DEFAULT, COMPATIBLE):
        assert score(case, ("f", {"n": 12, "m": 1}), grading=grading) == 1.0
        assert score(case, ("f", {"n": 13, "m": 1}), grading=grading) == pytest.approx(0.875)
    # A value that is not a number keeps its weight, or loses it as in the published critic.
    assert score(case, ("f", {"m": 1})) == 0.75
    assert score(case, ("f", {"m": 1}), grading=COMPATIBLE) == 1.0


class TestRules:
    def test_the_tool_counts_as_much_as_all_arguments(self) -> None:
        assert score(case_of(call("f", {"a": 1, "b": 2})), ("f", {"a": 1, "b": 3})) == 0.75

    def test_a_score_between_the_thresholds_warns(self) -> None:
        case = case_of(call("f", {"a": {"equals": 1, "weight": 0.7}, "b": {"equals": 2, "weight": 0.3}}))
        assert grade(case, ("f", {"a": 1, "b": 0})).verdict == Status.WARNED
        assert grade(case, ("f", {"a": 0, "b": 2})).verdict == Status.FAILED
        assert grade(case, ("f", {"a": 1, "b": 2})).verdict == Status.PASSED

    def test_a_score_that_binary_fractions_push_below_a_threshold_has_reached_it(self) -> None:
        weights = {"a": 0.05, "b": 0.15, "c": 0.3}
        case = case_of(call("f", {name: {"equals": 1, "weight": weight} for name, weight in weights.items()}))
        right: CallSpec = ("f", {"a": 1, "b": 1, "c": 0})
        assert score(case, right) < 0.8
        assert grade(case, right, grading=critics(fail=0.8, warn=0.9)).verdict == Status.WARNED
        assert grade(case, right, grading=critics(fail=0.5, warn=0.8)).verdict == Status.PASSED

    def test_another_number_of_calls_fails_and_still_shows_what_was_right(self) -> None:
        result = grade(case_of(call("f", {"a": 1}), call("g", {"b": 2})), ("g", {"b": 2}))
        assert (result.score, result.verdict) == (0.0, "failed")
        assert result.reason == "quantity: 2 calls expected, 1 made"
        missing, paired = result.pairings
        assert (missing.expected_call, missing.call) == (0, None)
        assert (paired.expected_call, paired.call) == (1, 0)
        assert paired.arguments[0].holds

    def test_a_wrong_tool_fails_and_still_shows_its_pair(self) -> None:
        result = grade(case_of(call("f", {"a": 1})), ("g", {"a": 1}))
        assert (result.score, result.verdict) == (0.0, "failed")
        assert result.reason == "selection: 'g' called where 'f' was expected"
        assert result.pairings[0].same_tool is False

    def test_no_call_expected_and_none_made_passes(self) -> None:
        assert grade(case_of(expect_no_calls=True)).score == 1.0

    def test_a_case_that_expects_nothing_in_particular_is_not_graded(self) -> None:
        result = grade(case_of(disallowed=[call("f")]), ("g", {}))
        assert (result.score, result.verdict) == (None, "not applicable")

    def test_calls_whose_arguments_do_not_matter_pass_by_their_tools(self) -> None:
        assert score(case_of(call("f"), call("g", {})), ("g", {"x": 1}), ("f", {"y": 2})) == 1.0

    def test_groups_and_the_unordered_list_are_taken_in_place(self) -> None:
        case = case_of({"any_order": [call("a", {"n": 1}), call("b", {"n": 2})]}, unordered=[call("c", {"n": 3})])
        assert score(case, ("c", {"n": 3}), ("b", {"n": 2}), ("a", {"n": 1})) == 1.0

    def test_thresholds_the_wrong_way_round_are_read_the_right_way_round(self) -> None:
        case = case_of(call("f", {"a": 1}))
        assert grade(case, ("f", {"a": 0}), grading=critics(fail=0.9, warn=0.5)).verdict == Status.WARNED

    def test_a_chain_is_read_as_the_calls_of_its_steps(self) -> None:
        chain = Case.model_validate({"name": "chain", "steps": [{"user": "go", "tool": "f"}, {"tool": "g"}, {}]})
        assert grade(chain, ("f", {}), ("g", {})).verdict == Status.PASSED
        assert grade(chain, ("f", {})).verdict == Status.FAILED


class TestPairing:
    def pairs(self, case: Case, *calls: CallSpec, grading: Grading = DEFAULT) -> list[int | None]:
        return [line.call for line in grade(case, *calls, grading=grading).pairings]

    def test_equal_calls_are_paired_in_their_order(self) -> None:
        case = case_of(*[call("f", {"a": 1})] * 4)
        assert self.pairs(case, *[("f", {"a": 1})] * 4) == [0, 1, 2, 3]
        assert self.pairs(case, *[("f", {"a": 1})] * 6) == [0, 1, 2, 3, 4, 5]
        assert self.pairs(case, *[("f", {"a": 1})] * 2) == [0, 1, None, None]
        assert self.pairs(case, ("f", {"a": 9}), *[("f", {"a": 1})] * 3) == [0, 1, 2, 3]

    def test_the_right_tool_is_preferred_even_where_it_earns_nothing(self) -> None:
        case = case_of(call("f", {"a": 1}), call("g", {"a": 1}))
        assert self.pairs(case, ("g", {"a": 1}), ("f", {"a": 1}), grading=critics(tool_selection_weight=0)) == [1, 0]

    @pytest.mark.parametrize("grading", [DEFAULT, COMPATIBLE])
    def test_null_does_not_speak_in_the_pairing(self, grading: Grading) -> None:
        null, five = {"equals_null": True, "weight": 3}, {"equals": 5, "weight": 3}
        case = case_of(
            call("f", {"x": null, "y": {"equals": 1, "weight": 1}}),
            call("f", {"x": five, "y": {"equals": 2, "weight": 1}}),
        )
        assert self.pairs(case, ("f", {"y": 2}), ("f", {"x": 7, "y": 1}), grading=grading) == [1, 0]

    def test_among_equal_pairings_the_one_with_the_higher_score_is_taken(self) -> None:
        one = {"equals": 1, "weight": 1}
        case = case_of(call("f", {"a": one, "b": {"equals": 2, "weight": 1, "optional": True}}), call("f", {"a": one}))
        calls: list[CallSpec] = [("f", {"a": 1, "b": 9}), ("f", {"a": 1})]
        assert score(case, *calls) == score(case, *reversed(calls)) == 1.0

    def test_a_call_goes_where_the_calls_that_stay_missing_cost_least(self) -> None:
        one = {"equals": 1, "weight": 1}
        case = case_of(call("f", {"a": one, "b": {**one, "optional": True}}), call("f", {"a": one, "c": one}))
        given: CallSpec = ("f", {"a": 1, "b": 9})
        assert score(case, given, grading=critics(fail_on_tool_call_quantity=False)) == 2 / 5


class TestWeights:
    def test_a_weight_of_zero_records_without_judging(self) -> None:
        case = case_of(call("f", {"a": 1, "note": {"equals": "x", "weight": 0}}))
        result = grade(case, ("f", {"a": 1, "note": "y"}))
        assert result.score == 1.0
        note = result.pairings[0].arguments[1]
        assert (note.holds, note.got, note.weight) == (None, "y", 0.0)
        assert result.issues == ()

    def test_each_expected_call_normalises_its_own_weights(self) -> None:
        case = case_of(
            call("f", {"a": {"equals": 1, "weight": "critical"}}),
            call("g", {"b": {"equals": 1, "weight": "minimal"}, "c": {"equals": 1, "weight": "minimal"}}),
        )
        pairings = grade(case, ("f", {"a": 1}), ("g", {"b": 1, "c": 1})).pairings
        assert [[verdict.weight for verdict in line.arguments] for line in pairings] == [[1.0], [0.5, 0.5]]

    def test_arcade_normalises_over_the_names_of_the_case(self) -> None:
        case = case_of(call("f", {"a": 1}), call("g", {"b": 1}))
        pairings = grade(case, ("f", {"a": 1}), ("g", {"b": 1}), grading=COMPATIBLE).pairings
        assert [[verdict.weight for verdict in line.arguments] for line in pairings] == [[0.5, 0.5], [0.5, 0.5]]

    def test_an_optional_argument_that_is_left_out_leaves_its_share_to_the_others(self) -> None:
        case = case_of(call("f", {"a": 1, "b": {"equals": 2, "optional": True}}))
        assert score(case, ("f", {"a": 1})) == 1.0
        assert score(case, ("f", {"a": 0})) == 0.5
        assert score(case, ("f", {"a": 1, "b": 3})) == 0.75

    def test_weights_that_cannot_be_added_up_are_refused(self) -> None:
        huge = {"equals": 1, "weight": 1e308}
        with pytest.raises(GradingError, match="too large"):
            grade(case_of(call("f", {"a": huge, "b": huge})), ("f", {}))


class TestChecks:
    def test_graded_checks_earn_their_share_below_the_threshold(self) -> None:
        case = case_of(call("f", {"t": {"near": 20, "tolerance": 2}}))
        assert score(case, ("f", {"t": 23})) == 0.75

    def test_present_is_the_wildcard(self) -> None:
        case = case_of(call("f", {"a": {"present": True}}))
        assert score(case, ("f", {"a": None})) == 1.0
        assert score(case, ("f", {})) == 0.5

    def test_null_is_matched_by_null_and_by_leaving_the_argument_out(self) -> None:
        case = case_of(call("f", {"a": {"equals_null": True}}))
        assert score(case, ("f", {"a": None})) == score(case, ("f", {})) == 1.0
        assert score(case, ("f", {"a": "None"})) == 0.5

    def test_texts_and_numbers_are_cast_unless_that_is_switched_off(self) -> None:
        assert score(case_of(call("f", {"n": 5})), ("f", {"n": "5"})) == 1.0
        assert score(case_of(call("f", {"n": {"equals": 5, "cast": False}})), ("f", {"n": "5"})) == 0.5

    def test_a_check_that_cannot_be_evaluated_names_the_argument(self) -> None:
        case = case_of(call("f", {"text": {"judged": "polite"}}))
        with pytest.raises(CheckError, match=r"f\.text.*polite"):
            grade(case, ("f", {"text": "hello"}))

    def test_a_python_check_is_asked_once_for_each_pair(self) -> None:
        asked: list[JsonValue] = []

        def even(reference: str, value: JsonValue) -> bool:
            asked.append(value)
            return value == 4

        case = case_of(call("f", {"n": {"python": "checks:even"}}))
        result = grade_critics(case, DEFAULT, trajectory_of(("f", {"n": 4})), context=CheckContext(even))
        assert result.score == 1.0
        assert asked == [4]


class TestDefaults:
    TOOL = ToolDefinition("get", parameters={"properties": {"units": {"default": "celsius"}, "city": {}}})

    def graded(self, args: dict[str, Any], given: dict[str, JsonValue], grading: Grading = DEFAULT) -> Grade:
        return grade_critics(case_of(call("get", args)), grading, trajectory_of(("get", given), tools=[self.TOOL]))

    def test_a_default_that_is_expected_need_not_be_written_by_the_model(self) -> None:
        result = self.graded({"units": "celsius"}, {})
        assert result.score == 1.0
        verdict = result.pairings[0].arguments[0]
        assert (verdict.given, verdict.got, verdict.why) == (False, "celsius", "not given, so its default is used")

    def test_a_default_that_is_wrong_is_a_wrong_argument(self) -> None:
        result = self.graded({"units": "kelvin"}, {"units": None})
        assert result.score == 0.5
        assert [(issue.kind, issue.got) for issue in result.issues] == [("wrong argument", '"celsius"')]

    def test_expecting_null_means_expecting_the_default(self) -> None:
        assert self.graded({"units": {"equals_null": True}}, {}).score == 1.0
        assert self.graded({"units": {"equals_null": True}}, {"units": "kelvin"}).score == 0.5

    def test_defaults_of_other_arguments_are_recorded_without_judging(self) -> None:
        for grading in (DEFAULT, COMPATIBLE):
            result = self.graded({"city": "Oslo"}, {"city": "Oslo", "units": "kelvin"}, grading)
            assert result.score == 1.0
            assert [verdict.holds for verdict in result.pairings[0].arguments] == [True, None]


class TestDeviations:
    """The points in which the grader deviates from the published system, and how the option restores it."""

    def both(self, case: Case, *calls: CallSpec, **options: Any) -> tuple[float, float]:
        compatible = critics(arcade_compatible=True, **options)
        return score(case, *calls, grading=critics(**options)), score(case, *calls, grading=compatible)

    @pytest.mark.parametrize("given", [{}, {"t": "warm"}, {"t": 10**400}, {"t": math.nan}])
    def test_1_a_number_that_is_none_costs_its_weight(self, given: dict[str, JsonValue]) -> None:
        case = case_of(call("f", {"t": {"near": 20, "value_range": [0, 100]}}))
        assert self.both(case, ("f", given)) == (0.5, 1.0)

    def test_1_a_moment_of_absurd_digits_costs_its_weight(self) -> None:
        case = case_of(call("f", {"w": {"datetime": "2024-05-01"}}))
        assert self.both(case, ("f", {"w": "9" * 60})) == (0.5, 1.0)
        assert self.both(case, ("f", {"w": "soon"})) == (0.5, 0.5)

    def test_2_casting_has_no_surprises(self) -> None:
        assert self.both(case_of(call("f", {"on": True})), ("f", {"on": "false"})) == (0.5, 1.0)
        assert self.both(case_of(call("f", {"n": 5})), ("f", {"n": 5.9})) == (0.5, 1.0)

    def test_3_only_the_arguments_of_the_expected_call_are_judged(self) -> None:
        case = case_of(call("f", {"a": 1}), call("g", {"b": 1}))
        ours, arcade = self.both(case, ("f", {"a": 1}), ("g", {"b": 2}))
        assert ours == 0.75
        assert arcade == (2 + 1 / 2 + 1 / 2 + 1 / 2) / 4

    def test_4_a_missing_call_costs_its_full_weight(self) -> None:
        case = case_of(call("f", {"a": 1}), call("g", {"b": 1}))
        assert self.both(case, ("f", {"a": 1}), fail_on_tool_call_quantity=False) == (0.5, 1.0)

    def test_4_a_missing_call_without_arguments_costs_its_tool(self) -> None:
        case = case_of(call("f"), call("g"))
        assert self.both(case, ("f", {}), fail_on_tool_call_quantity=False) == (0.5, 1.0)

    def test_5_names_are_compared_in_their_normal_form(self) -> None:
        case = case_of(call("a-x", {"n": 1}), call("a_b", {"n": 2}))
        assert self.both(case, ("a_x", {"n": 1}), ("a_b", {"n": 2})) == (1.0, 0.0)

    def test_6_scores_stay_between_0_and_1(self) -> None:
        case = case_of(call("f", {"t": {"near": 0, "value_range": [0, 10]}}))
        assert self.both(case, ("f", {"t": 50})) == (0.5, -1.5)

    def test_calls_where_none_is_expected_earn_nothing(self) -> None:
        case = case_of(expect_no_calls=True)
        assert self.both(case, ("f", {}), fail_on_tool_call_quantity=False) == (0.0, 1.0)

    def test_a_value_absurdly_far_away_does_not_upset_the_pairing(self) -> None:
        near = {"near": 0, "value_range": [0, 1e-300], "weight": 1000}
        case = case_of(call("f", {"t": near}), call("f", {"t": near}))
        ours, arcade = self.both(case, ("f", {"t": 1e7}), ("f", {"t": 0}))
        assert ours == pytest.approx(0.5005, abs=1e-4)
        assert arcade < -1e300

    def test_7_near_with_a_tolerance_is_ours(self) -> None:
        case = case_of(call("f", {"t": {"near": 20, "tolerance": 2}}))
        assert self.both(case, ("f", {"t": 23})) == (0.75, 0.75)


class TestArcadeCompatible:
    def test_different_checks_of_one_name_are_refused(self) -> None:
        case = case_of(call("f", {"a": 1}), call("f", {"a": {"similar": "x"}}))
        with pytest.raises(GradingError, match="'a' has different checks or weights"):
            grade(case, ("f", {"a": 1}), ("f", {"a": 1}), grading=COMPATIBLE)

    def test_different_weights_of_one_name_are_refused(self) -> None:
        case = case_of(call("f", {"a": {"equals": 1, "weight": 1}}), call("f", {"a": {"equals": 1, "weight": 2}}))
        with pytest.raises(GradingError, match="arcade_compatible"):
            grade(case, grading=COMPATIBLE)

    def test_one_critic_may_expect_different_values(self) -> None:
        case = case_of(call("f", {"a": 1}), call("f", {"a": {"equals_null": True}}), call("f", {"a": {"equals": "x"}}))
        assert score(case, ("f", {"a": 1}), ("f", {}), ("f", {"a": "x"}), grading=COMPATIBLE) == 1.0

    def test_a_critic_meets_null_where_a_call_does_not_write_its_argument(self) -> None:
        rules: dict[str, Any] = {
            "range": {"range": [1, 2]},
            "similar": {"similar": "x y"},
            "datetime": {"datetime": "2024-05-01"},
            "near": {"near": 1, "value_range": [0, 2]},
            "plain": 1,
        }
        case = case_of(call("f", rules), call("g", {"plain": 2}))
        given: dict[str, JsonValue] = {"range": 1, "similar": "x y", "datetime": "2024-05-01", "near": 1, "plain": 1}
        line = grade(case, ("f", given), ("g", {"plain": 2}), grading=COMPATIBLE).pairings[1]
        verdicts = {verdict.argument: (verdict.holds, verdict.counted) for verdict in line.arguments}
        assert verdicts == {
            "range": (True, True),
            "similar": (True, True),
            "datetime": (False, True),
            "near": (False, False),
            "plain": (True, True),
        }

    def test_calls_whose_arguments_do_not_matter_have_no_critics(self) -> None:
        case = case_of(call("f", {"a": 1}), call("g"))
        assert score(case, ("f", {"a": 1}), ("g", {"a": 5}), grading=COMPATIBLE) == 1.0


class TestIssues:
    def kinds(self, result: Grade) -> list[tuple[str, int | None, int | None, str | None]]:
        return [(issue.kind, issue.call, issue.expected_call, issue.argument) for issue in result.issues]

    def test_a_perfect_run_has_none(self) -> None:
        assert grade(case_of(call("f", {"a": 1})), ("f", {"a": 1})).issues == ()

    def test_wrong_and_missing_arguments_are_told_apart(self) -> None:
        result = grade(case_of(call("f", {"a": {"range": [5, 40]}, "b": "on"})), ("f", {"a": 55}))
        assert self.kinds(result) == [("wrong argument", 0, 0, "a"), ("missing argument", 0, 0, "b")]
        wrong, missing = result.issues
        assert (wrong.tool, wrong.expected, wrong.got, wrong.why) == ("f", "5..40", "55", "outside")
        assert (missing.expected, missing.got, missing.why) == ('"on"', None, "not given")

    def test_a_missing_call_says_which(self) -> None:
        result = grade(case_of(call("f", {"a": 1}), call("g", {"door": "front"})), ("f", {"a": 1}))
        assert self.kinds(result) == [("missing call", None, 1, None)]
        assert result.issues[0].expected == 'g(door="front")'

    def test_an_extra_call_is_an_issue_only_where_the_number_matters(self) -> None:
        case = case_of(call("f", {"a": 1}))
        calls: list[CallSpec] = [("f", {"a": 1}), ("g", {"x": 2})]
        assert self.kinds(grade(case, *calls)) == [("extra call", 1, None, None)]
        assert grade(case, *calls, grading=critics(**QUANTITY_FREE)).issues == ()

    def test_a_wrong_tool_names_both_calls_and_is_silent_about_arguments(self) -> None:
        result = grade(case_of(call("f", {"a": 1})), ("g", {"b": 2}))
        assert self.kinds(result) == [("wrong tool", 0, 0, None)]
        assert (result.issues[0].expected, result.issues[0].got) == ("f(a=1)", "g(b=2)")

    def test_arguments_where_none_are_expected_are_shown(self) -> None:
        result = grade(case_of(call("f", {})), ("f", {"x": 1}))
        assert result.score == 1.0
        assert self.kinds(result) == [("unexpected argument", 0, 0, "x")]

    def test_an_argument_beside_those_listed_is_named_and_costs_nothing(self) -> None:
        result = grade(case_of(call("a", {"x": 1})), ("a", {"x": 1, "z": 2}))
        assert self.kinds(result) == [("unexpected argument", 0, 0, "z")]
        assert (result.score, result.verdict, result.issues[0].decides) == (1.0, "passed", False)


def test_the_compatible_score_is_independent_of_the_order_where_a_name_is_optional_in_some_calls() -> None:
    expected = [call("t", {"y": 1}), call("t", {}), call("s", {"y": {"equals": 1, "optional": True}})]
    made: list[CallSpec] = [("t", {}), ("s", {"y": "b"}), ("t", {"x": 0})]
    assert len({score(case_of(*turn), *made, grading=COMPATIBLE) for turn in permutations(expected)}) == 1


def test_a_case_in_which_nothing_has_a_weight_says_so() -> None:
    case = case_of(call("f", {"a": {"equals": 1, "weight": 0}}))
    result = grade(case, ("f", {"a": 1}), grading=critics(tool_selection_weight=0))
    assert (result.score, result.reason) == (0.0, "nothing has a weight, so nothing counts")


def test_one_list_of_weights_is_for_all_calls_of_a_case_and_a_check_may_have_its_own() -> None:
    pair = {"any_order": [call("f", {"a": 1, "b": 2}), call("f", {"a": 5, "b": 6})]}
    other = call("f", {"a": {"equals": 7, "weight": 0.5}, "b": {"near": 8, "tolerance": 1}})
    suite = Suite.model_validate(
        {
            "format": 1,
            "name": "Weights",
            "grading": {"fail_threshold": 0.5, "critics": {"weights": {"a": 3, "b": 9}}},
            "cases": [
                {
                    "name": "One list",
                    "user": "Go.",
                    "ordered": [pair, other],
                    "grading": {"critics": {"weights": {"b": 1}}},
                }
            ],
        }
    )
    calls = [("f", {"a": 1, "b": 2}), ("f", {"a": 0, "b": 6}), ("f", {"a": 7, "b": 0})]
    (graded, *_), status = grade_run(suite, suite.cases[0], trajectory_of(*calls))
    # The tools earn 3 of 3, the arguments 4 of 4, 1 of 4 and 0.5 of 1.5. An argument with a weight need not hold.
    assert graded.score == pytest.approx((3 + 4 + 1 + 0.5) / (3 + 4 + 4 + 1.5))
    assert status == Status.WARNED
