"""Results that the graders which do not decide grade later: they tell the same, and ask as late and as seldom."""

from __future__ import annotations

import pickle
from dataclasses import fields, replace

from tests.results import result
from workbench.grading.deferred_result import DeferredResult, replace_fields
from workbench.grading.grade import Grade, RunResult
from workbench.grading.packed import STORED_PROPERTIES, SharedParts
from workbench.grading.status import Status

OTHER = Grade("decision", 0.0, Status.FAILED, "by hand", status=Status.FAILED)


class Others:
    """The grades of the other graders, and how often they were asked for."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self) -> tuple[Grade, ...]:
        self.asked += 1
        return (OTHER,)


def late_and_whole() -> tuple[Others, RunResult, RunResult]:
    first = result(Status.PASSED, 1.0)
    others = Others()
    return others, DeferredResult.of(first, others), replace(first, grades=(*first.grades, OTHER))


def test_only_what_the_other_graders_say_asks_them_and_once() -> None:
    others, late, whole = late_and_whole()
    of_others = {"graders_disagree"}
    for name in (
        {*STORED_PROPERTIES, *[field.name for field in fields(RunResult)], "grade", "issues", "passed", "limited_ms"}
        - {"grades"}
        - of_others
    ):
        assert getattr(late, name) == getattr(whole, name), name
    assert others.asked == 0
    assert late.graders_disagree == whole.graders_disagree
    assert late.grades == whole.grades == late.grades
    assert others.asked == 1


def test_it_equals_its_whole_wherever_it_goes() -> None:
    _, late, whole = late_and_whole()
    assert late == whole and late.small == whole.small
    _, late, whole = late_and_whole()
    assert pickle.loads(pickle.dumps(late)) == whole
    _, late, whole = late_and_whole()
    assert SharedParts().packed(late).grades == whole.grades
    _, late, whole = late_and_whole()
    assert repr(late) == repr(whole)


def test_a_change_leaves_it_late() -> None:
    others, late, whole = late_and_whole()
    dearer = replace_fields(late, cost_usd=2.0)
    assert (dearer.cost_usd, others.asked) == (2.0, 0)
    assert dearer.grades == whole.grades
    assert dearer == replace_fields(whole, cost_usd=2.0)
    assert replace_fields(dearer, cost_usd=0.5).grades == whole.grades
