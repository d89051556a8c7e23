"""Judgements: their subjects, their reuse, and when grading needs one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.grading.cases import call, case_of
from tests.trajectories import trajectory_of
from workbench.checks.check import CheckContext, CheckVerdict
from workbench.checks.combined_kinds import Judged
from workbench.grading.grade import Judgement, JudgementNeededError, JudgeUsage, KnownJudgements, judged_value
from workbench.grading.run import GRADERS_BY_NAME, grade_run
from workbench.suite.model import Suite
from workbench.trajectory.events import JsonValue, Usage

POLITE = Judged(judged="polite")
POLITE_BY_B = Judged(judged="polite", model="b")


def judgement(model: str, holds: bool = True, value: JsonValue = "hello") -> Judgement:
    return Judgement(model, "polite", judged_value(value), holds, f"{model} says so.")


def test_a_check_takes_its_own_models_judgement_another_that_of_the_chosen_one_or_of_any() -> None:
    a, b = judgement("a", True), judgement("b", False)
    known = KnownJudgements((a, b))
    assert known.of(POLITE, '"hello"') == a
    assert known.of(POLITE_BY_B, '"hello"') == b
    assert known.of(POLITE, '"hello"', "b") == b
    assert known.of(POLITE_BY_B, '"hello"', "a") == b
    assert b.verdict == CheckVerdict(0.0, False, "b says so")


def test_a_rating_is_enough_or_not_by_the_check_that_takes_it() -> None:
    rated = Judgement("a", "polite", '"hi"', True, "Friendly.", (1, 5), 4)
    known = KnownJudgements([rated])
    enough, wanting = (Judged(judged="polite", scale=(1, 5), at_least=least) for least in (4, 4.5))
    assert known.of(enough, '"hi"') == rated
    found = known.of(wanting, '"hi"')
    assert found is not None
    assert found.verdict == CheckVerdict(0.75, False, "4 on 1..5: Friendly", number=4)
    assert known.of(POLITE, '"hi"') is known.of(Judged(judged="polite", scale=(1, 6), at_least=4), '"hi"') is None


@pytest.mark.parametrize(
    ("check", "value", "chosen"),
    [
        (POLITE, '"hullo"', None),
        (Judged(judged="rude"), '"hello"', None),
        (Judged(judged="polite", model="c"), '"hello"', None),
        (POLITE, '"hello"', "c"),
    ],
)
def test_what_was_not_judged_is_not_known(check: Judged, value: str, chosen: str | None) -> None:
    assert KnownJudgements([judgement("a")]).of(check, value, chosen) is None


def test_equal_values_are_one_value_and_5_is_not_the_text_5() -> None:
    assert judged_value({"b": 1, "a": ["é"]}) == judged_value({"a": ["e\u0301"], "b": 1})
    assert judged_value("5") != judged_value(5)
    assert judged_value("\ud800") == '"\\ud800"'


def test_what_asking_took_adds_up_and_one_unknown_cost_makes_the_sum_unknown() -> None:
    cheap, dear = JudgeUsage(1, Usage(10, 2), 0.5), JudgeUsage(2, Usage(1, 1), 0.25)
    assert cheap + dear + JudgeUsage() == JudgeUsage(3, Usage(11, 3), 0.75)
    assert (cheap + JudgeUsage(1, None, None)) == JudgeUsage(2, Usage(10, 2), None)


def needed(grader: str, *calls: tuple[str, dict[str, JsonValue]], **case: Any) -> list[JsonValue]:
    """Return the values that a judge is asked about, in order. The judge accepts all."""
    known: dict[str, CheckVerdict] = {}
    asked: list[JsonValue] = []

    def judge(check: Judged, value: JsonValue) -> CheckVerdict:
        if judged_value(value) not in known:
            raise JudgementNeededError(check, value)
        return known[judged_value(value)]

    suite = Suite.model_validate({"format": 1, "name": "s", "grading": {"by": grader}})
    while True:
        try:
            grade_run(suite, case_of(**case), trajectory_of(*calls, answer="Rain."), context=CheckContext(None, judge))
        except JudgementNeededError as error:
            asked.append(error.value)
            known[judged_value(error.value)] = CheckVerdict(1.0, True)
        else:
            return asked


@pytest.mark.parametrize("grader", GRADERS_BY_NAME)
def test_grading_wants_only_what_it_looks_at_judged_and_each_value_once(grader: str) -> None:
    checked = {"city": {"judged": "in Norway"}}
    expected = [call("weather", checked), call("forecast", checked)]
    assert needed(grader, ("weather", {"city": "Oslo"}), ordered=expected) == ["Oslo"]
    assert needed(grader, ("sea_level", {"city": "Oslo"}), ordered=expected) == []
    assert needed(grader, ("weather", {}), ordered=expected) == []
    assert needed(grader, response={"judged": "is short"}) == ["Rain."]
