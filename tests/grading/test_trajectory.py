"""The `trajectory` grader besides its score: lines, issues and requests to judges. The vectors have the rules."""

from __future__ import annotations

from typing import Any

import pytest

from tests.grading.cases import call
from tests.trajectories import CallSpec, trajectory_of
from workbench.checks.check import EMPTY_CONTEXT, CheckContext, CheckVerdict
from workbench.checks.patterns import CheckError
from workbench.grading.grade import CallPairing, Grade, JudgementNeededError
from workbench.grading.requirements import extra_call_rule_of
from workbench.grading.run import grade_by
from workbench.grading.trajectory import grade_trajectory
from workbench.suite.model import Case, Suite
from workbench.suite.settings import Grading, settings_of
from workbench.trajectory.events import ToolCall


def case_of(**table: Any) -> Case:
    return Case.model_validate({"name": "case", "user": "go", **table})


def grade(case: Case, *calls: CallSpec | ToolCall, context: CheckContext = EMPTY_CONTEXT) -> Grade:
    run = trajectory_of(*calls)
    return grade_trajectory(case, extra_call_rule_of(case, Grading(), run), run, context=context)


def in_a_run(case: Case, *calls: CallSpec, answer: str = "") -> Grade:
    """The grade with everything that a run adds to it."""
    suite = Suite.model_validate({"format": 1, "name": "suite", "cases": [case]})
    run = trajectory_of(*calls, answer=answer)
    return grade_by("trajectory", case, settings_of(suite, case), run, EMPTY_CONTEXT)


def lines(found: Grade) -> list[tuple[int | None, int | None, str]]:
    return [(line.expected_call, line.call, line.outcome) for line in found.pairings]


def kinds(found: Grade) -> list[str]:
    return [issue.kind for issue in found.issues]


def line_of(found: Grade, outcome: str) -> CallPairing:
    [line] = [line for line in found.pairings if line.outcome == outcome]
    return line


MOVIE_NIGHT = {"ordered": [call("lights", {"level": {"range": [5, 40]}}), call("tv", {"power": "on"})]}


def test_a_step_that_came_too_early_is_said_to_be_out_of_order() -> None:
    found = grade(case_of(**MOVIE_NIGHT), ("tv", {"power": "on"}), ("lights", {"level": 20}))
    assert lines(found) == [(0, 1, "matched"), (1, 0, "wrong order")]
    assert [(issue.kind, issue.call, issue.expected_call) for issue in found.issues] == [("wrong order", 0, 1)]
    assert (found.issues[0].expected or "").endswith(" later")
    assert (found.issues[0].got or "").endswith(" too early")
    assert found.reason == "1 of 2 met, 1 in the wrong order"


def test_an_unmet_expectation_shows_the_call_that_came_nearest_and_what_was_wrong_with_it() -> None:
    case = case_of(unordered=[call("lights", {"room": "den", "level": 1})])
    found = grade(case, ("lights", {"room": "hall", "level": 2}), ("lights", {"room": "den", "level": 2}))
    line = line_of(found, "unmet")
    assert line.call == 1
    assert [(verdict.argument, verdict.holds) for verdict in line.arguments] == [("room", True), ("level", False)]
    assert [(issue.kind, issue.argument, issue.got) for issue in found.issues] == [("wrong argument", "level", "2")]


def test_a_call_that_met_something_is_nobody_elses_nearest() -> None:
    case = case_of(unordered=[call("lights", {"room": "den"}), call("lights", {"room": "hall"})])
    found = grade(case, ("lights", {"room": "den"}))
    assert lines(found) == [(0, 0, "matched"), (1, None, "unmet")]
    assert kinds(found) == ["missing call"]


def test_calls_that_are_free_to_be_made_are_shown_without_an_issue() -> None:
    found = grade(case_of(unordered=[call("a")]), ("b", {}), ("a", {}))
    assert lines(found) == [(0, 1, "matched"), (None, 0, "extra, allowed")]
    assert found.issues == ()


def test_what_prohibitions_earn_and_who_broke_them_stands_in_lines_of_their_own() -> None:
    case = case_of(ordered=[call("a")], disallowed=[call("x"), call("y")])
    found = grade(case, ("a", {}), ("x", {}), ("x", {}))
    of_prohibitions = [(line.prohibition, line.call, line.outcome, line.credit) for line in found.pairings[1:]]
    assert of_prohibitions == [(0, 1, "broken", 0.0), (0, 2, "broken", 0.0), (1, None, "kept", 1.0)]
    assert found.reason == "2 of 3 met, 1 prohibition broken"


def test_an_unexpected_call_may_also_be_the_nearest_to_an_expectation() -> None:
    found = grade(case_of(ordered=[call("a", {"n": 1})], extra_calls="forbid"), ("a", {"n": 2}))
    assert lines(found) == [(0, 0, "unmet"), (None, 0, "unexpected")]
    assert kinds(found) == ["wrong argument", "extra call"]
    assert found.numbers == {"matched": 0.0, "total": 2.0, "unexpected": 1.0, "all_pass": 0.0}


def test_the_credits_of_all_lines_are_what_was_matched() -> None:
    case = case_of(**MOVIE_NIGHT, unordered=[call("lock")], disallowed=[call("unlock")])
    found = grade(case, ("lights", {"level": 20}), ("tv", {"power": "off"}))
    assert sum(line.credit for line in found.pairings) == found.numbers["matched"] == 2


def test_empty_args_want_a_call_without_arguments() -> None:
    case = case_of(ordered=[call("a", {})])
    assert grade(case, ("a", {})).score == 1
    found = grade(case, ("a", {"n": 1}))
    assert found.score == 0
    assert kinds(found) == ["unexpected argument"]


def test_empty_args_of_a_prohibition_mean_calls_without_arguments() -> None:
    case = case_of(disallowed=[call("a", {})])
    assert grade(case, ("a", {"n": 1})).score == 1
    assert grade(case, ("a", {})).score == 0


def test_a_call_with_a_forbidden_argument_does_not_fit() -> None:
    case = case_of(ordered=[call("a", forbidden_args=["fade"])])
    found = in_a_run(case, ("a", {"fade": 1}))
    assert (found.score, found.status) == (0, "failed")
    assert kinds(found) == ["forbidden argument"]
    assert line_of(found, "unmet").arguments[0].why == "this argument must not be given"


def test_one_without_it_still_can() -> None:
    case = case_of(ordered=[call("a", forbidden_args=["fade"])])
    found = in_a_run(case, ("a", {"fade": 1}), ("a", {}))
    assert (found.score, found.status, found.issues) == (1, "passed", ())


def test_names_differ_by_case_and_by_dashes() -> None:
    case = case_of(ordered=[call("set_lights")], disallowed=[call("get-lights")])
    found = in_a_run(case, ("Set_Lights", {}), ("get_lights", {}))
    assert found.score == 0.5
    assert kinds(found) == ["missing call"], "what others take for a forbidden call is none here"


def test_texts_are_the_same_however_their_accents_are_put_together() -> None:
    composed, apart = "caf\u00e9", "cafe\u0301"
    for check in (composed, {"one_of": [composed]}, {"contains": composed}, {"pattern": f"^{composed}$"}):
        assert grade(case_of(ordered=[call("a", {"place": check})]), ("a", {"place": apart})).score == 1
        assert grade(case_of(disallowed=[call("a", {"place": check})]), ("a", {"place": apart})).score == 0


def test_an_optional_argument_that_was_left_out_is_not_looked_at() -> None:
    case = case_of(ordered=[call("a", {"n": {"range": [1, 2], "optional": True}})])
    assert grade(case, ("a", {})).pairings[0].arguments == ()
    assert grade(case, ("a", {"n": 3})).score == 0


def test_graded_checks_hold_or_do_not() -> None:
    found = grade(case_of(ordered=[call("a", {"n": {"near": 10, "tolerance": 2}})]), ("a", {"n": 13}))
    assert found.score == 0
    [verdict] = found.pairings[0].arguments
    assert (verdict.holds, verdict.score, verdict.weight) == (False, 0.0, 1.0)


@pytest.mark.parametrize("args", [None, {}, {"n": 1}])
def test_arguments_that_are_no_object_meet_no_expectation(args: dict[str, object] | None) -> None:
    broken = ToolCall("c", "a", raw="[1]", problem="not an object")
    assert grade(case_of(ordered=[call("a", args)]), broken).score == 0


def test_the_steps_of_a_chain_are_an_ordered_list() -> None:
    case = Case.model_validate(
        {"name": "chain", "steps": [{"user": "go", "tool": "a"}, {"user": "say so"}, {"tool": "b", "args": {"n": 1}}]}
    )
    assert grade(case, ("a", {}), ("b", {"n": 1})).score == 1
    assert lines(grade(case, ("b", {"n": 1}), ("a", {}))) == [(0, 1, "matched"), (1, 0, "wrong order")]


def test_no_call_is_allowed_where_none_is_expected() -> None:
    case = case_of(expect_no_calls=True)
    assert grade(case).score == 1
    found = in_a_run(case, ("a", {}))
    assert (found.score, found.status) == (0, "failed")
    assert [(issue.kind, issue.why) for issue in found.issues] == [("extra call", "no calls are expected")]


def test_a_case_of_prohibitions_alone_is_graded_and_one_without_a_word_on_calls_is_not() -> None:
    assert grade(case_of(disallowed=[call("x")])).score == 1
    assert grade(case_of(response_contains=["yes"])).verdict == "not applicable"


def test_a_failed_answer_check_fails_the_run_and_leaves_the_score() -> None:
    case = case_of(ordered=[call("a")], response_contains=["yes"])
    found = in_a_run(case, ("a", {}), answer="no")
    assert (found.score, found.verdict, found.status) == (1, "passed", "failed")


def test_what_the_grader_calls_wrong_is_not_said_twice() -> None:
    case = case_of(ordered=[call("a")], disallowed=[call("x")], extra_calls="forbid")
    assert kinds(in_a_run(case, ("a", {}), ("x", {}), ("b", {}))) == ["forbidden call", "extra call"]


class Asked:
    """A judge that accepts everything, and records its questions."""

    def __init__(self) -> None:
        self.values: list[object] = []

    def __call__(self, check: object, value: object) -> CheckVerdict:
        self.values.append(value)
        return CheckVerdict(1.0, True, "it does")


JUDGED = {"mood": {"judged": "is cheerful"}, "limit": 3}


def test_a_judge_is_asked_last_and_only_of_calls_that_are_right_otherwise() -> None:
    judge = Asked()
    case = case_of(unordered=[call("search", JUDGED)])
    found = grade(
        case,
        ("search", {"mood": "grim", "limit": 4}),
        ("search", {"limit": 3}),
        ("search", {"mood": "sunny", "limit": 3}),
        context=CheckContext(judge=judge),
    )
    assert judge.values == ["sunny"]
    assert found.pairings[0].arguments[0].why == "it does"


def test_nobody_is_asked_for_the_sake_of_what_is_shown() -> None:
    judge = Asked()
    case = case_of(ordered=[call("open"), call("search", JUDGED)])
    found = grade(case, ("search", {"mood": "sunny", "limit": 3}), ("open", {}), context=CheckContext(judge=judge))
    assert judge.values == []
    assert found.score == 0.5
    assert [verdict.holds for verdict in line_of(found, "wrong order").arguments] == [None, True]


def test_without_a_judge_the_error_names_the_argument() -> None:
    with pytest.raises(CheckError, match=r"search\.mood: .*is cheerful"):
        grade(case_of(disallowed=[call("search", JUDGED)]), ("search", {"mood": "sunny", "limit": 3}))


def test_a_judgement_that_is_still_to_come_is_asked_for() -> None:
    def not_yet(check: Any, value: Any) -> CheckVerdict:
        raise JudgementNeededError(check, value)

    with pytest.raises(JudgementNeededError):
        grade(
            case_of(ordered=[call("search", JUDGED)]),
            ("search", {"mood": "sunny", "limit": 3}),
            context=CheckContext(judge=not_yet),
        )
