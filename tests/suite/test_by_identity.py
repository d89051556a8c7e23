"""Cached answers about frozen objects are computed once for each object, and never returned for another object."""

from __future__ import annotations

import gc
import weakref
from dataclasses import dataclass

from tests.suite.examples import CASE, HEAD, suite_of
from workbench.dataclasses import MAX_CACHED, cached_by_identity
from workbench.grading.pairing_issues import describe_call
from workbench.suite.settings import settings_of
from workbench.trajectory.events import ToolCall
from workbench.trajectory.trajectory import CallRecord

EXPECTING = CASE + 'ordered = [{ tool = "set" }]\n'


@dataclass
class Counted:
    numbers: list[int]

    def total(self) -> int:
        return sum(self.numbers)


def test_the_same_object_is_asked_about_once_and_an_equal_one_anew() -> None:
    asked: list[Counted] = []

    def total(counted: Counted) -> int:
        asked.append(counted)
        return counted.total()

    known = cached_by_identity(total)
    one, equal = Counted([1, 2]), Counted([1, 2])
    assert [known(one), known(one), known(equal)] == [3, 3, 3]
    assert asked == [one, equal]


def test_objects_that_come_and_go_never_get_the_answer_of_another() -> None:
    known = cached_by_identity(Counted.total)
    assert [known(Counted([number])) for number in range(100)] == list(range(100))


def test_it_remembers_no_more_than_some_answers() -> None:
    known = cached_by_identity(Counted.total)
    all_of_them = [Counted([number]) for number in range(3 * MAX_CACHED)]
    assert [known(one) for one in all_of_them] == [known(one) for one in all_of_them]
    assert sum(map(weakref.getweakrefcount, all_of_them)) <= MAX_CACHED


def test_nothing_is_kept_alive_because_it_was_asked_about() -> None:
    suite = suite_of(HEAD + CASE)
    record = CallRecord(ToolCall("1", "set", {"x": 1}), 1)
    settings_of(suite, suite.cases[0])
    suite.cases[0].expected_calls()
    describe_call(record)
    kept = [weakref.ref(held) for held in (suite, suite.cases[0], record)]
    del suite, record
    gc.collect()
    assert [held() for held in kept] == [None, None, None]


def test_the_settings_of_a_case_are_those_of_its_suite() -> None:
    suite = suite_of(HEAD + CASE)
    (case,) = suite.cases
    stricter = suite.model_copy(update={"grading": suite.grading.model_copy(update={"fail_threshold": 0.5})})
    assert settings_of(suite, case) is settings_of(suite, case)
    assert settings_of(stricter, case).grading.fail_threshold == 0.5
    assert settings_of(suite, case).grading.fail_threshold == 0.8


def test_a_copy_of_a_case_keeps_nothing_of_what_was_asked_about_the_case() -> None:
    case, equal = suite_of(HEAD + EXPECTING).cases[0], suite_of(HEAD + EXPECTING).cases[0]
    calls = case.expected_calls()
    assert [call.tool for call in calls] == ["set"]
    assert case.expected_calls() is calls
    emptied = case.model_copy(update={"ordered": ()})
    assert emptied.expected_calls() == ()
    assert dict(case.model_copy()).keys() == type(case).model_fields.keys()
    assert (case, case.model_dump()) == (equal, equal.model_dump())
