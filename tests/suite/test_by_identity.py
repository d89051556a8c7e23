"""Answers about frozen objects are found out once for each object, and never given for another one."""

from __future__ import annotations

from tests.suite.examples import CASE, HEAD, suite_of
from workbench.suite.by_identity import ByIdentity
from workbench.suite.settings import settings_of


def test_the_same_object_is_asked_about_once_and_an_equal_one_anew() -> None:
    asked: list[list[int]] = []

    def total(numbers: list[int]) -> int:
        asked.append(numbers)
        return sum(numbers)

    known = ByIdentity(total)
    one, equal = [1, 2], [1, 2]
    assert [known(one), known(one), known(equal)] == [3, 3, 3]
    assert asked == [one, equal]


def test_objects_that_come_and_go_never_get_the_answer_of_another() -> None:
    known: ByIdentity[list[int], int] = ByIdentity(sum, most=3)
    assert [known([number]) for number in range(100)] == list(range(100))


def test_the_settings_of_a_case_are_those_of_its_suite() -> None:
    suite = suite_of(HEAD + CASE)
    (case,) = suite.cases
    stricter = suite.model_copy(update={"grading": suite.grading.model_copy(update={"fail_threshold": 0.5})})
    assert settings_of(suite, case) is settings_of(suite, case)
    assert settings_of(stricter, case).grading.fail_threshold == 0.5
    assert settings_of(suite, case).grading.fail_threshold == 0.8
