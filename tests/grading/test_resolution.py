"""Expected calls that are resolved against a run: alternatives, optional and repeated calls, results, groups."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.trajectories import trajectory_of
from workbench.checks.check import EMPTY_CONTEXT
from workbench.grading.grade import Grade
from workbench.grading.run import graded_by
from workbench.grading.status import Status
from workbench.suite.model import GRADERS, GraderName, Suite
from workbench.suite.settings import settings_of

Made = tuple[str, int]
"""A call: its tool, and its argument `x`."""

INFINITE = float("inf")


@dataclass(frozen=True)
class Want:
    """An expected call: alternatives of a tool and the value of `x` (`None`: any), and how often it is made."""

    any_of: tuple[tuple[str, int | None], ...]
    fewest: int = 1
    most: float | None = None

    @property
    def written(self) -> dict[str, object]:
        alternatives: list[dict[str, object]] = []
        for tool, x in self.any_of:
            alternatives.append({"tool": tool} if x is None else {"tool": tool, "args": {"x": x}})
        call: dict[str, object] = {"any_of": alternatives} if len(alternatives) > 1 else alternatives[0]
        if self.most is None:
            return {**call, "optional": True} if self.fewest == 0 else call
        return {**call, "times": [self.fewest, self.most]}

    def fits(self, made: Made) -> bool:
        return any(tool == made[0] and x in (None, made[1]) for tool, x in self.any_of)


Item = tuple[Want, ...]
"""A position of the ordered list: an expected call, or a group of them."""

wants = st.builds(
    lambda alternatives, times: Want(tuple(alternatives), *times),
    st.lists(st.tuples(st.sampled_from("AB"), st.sampled_from([None, 1, 2])), min_size=1, max_size=2),
    st.sampled_from([(1, None), (1, None), (0, None), (1, 2), (2, 2), (0, INFINITE), (1, INFINITE)]),
)
single = st.tuples(wants)
items = single | st.tuples(wants, wants)
made = st.lists(st.tuples(st.sampled_from("AB"), st.sampled_from([1, 2])), max_size=5)
often = settings(max_examples=400, suppress_health_check=list(HealthCheck), deadline=None)


def suite_of(ordered: list[Item], unordered: list[Want] | None = None, **case: object) -> Suite:
    written = [
        item[0].written if len(item) == 1 else {"any_order": [want.written for want in item]} for item in ordered
    ]
    raw = {
        "name": "c",
        "user": "u",
        "ordered": written,
        "unordered": [want.written for want in unordered or ()],
        "limits": {"max_tool_calls": 100},
        **case,
    }
    return Suite.model_validate({"format": 1, "name": "s", "cases": [raw]})


def graded(by: GraderName, suite: Suite, calls: list[Made]) -> Grade:
    (case,) = suite.cases
    run = trajectory_of(*[(tool, {"x": x}) for tool, x in calls], answer="done")
    return graded_by(by, case, settings_of(suite, case), run, EMPTY_CONTEXT)


def counts(ordered: list[Item], unordered: list[Want], calls: list[Made], *, each: bool) -> Iterator[list[int]]:
    """Yield for every way to hand calls to expectations how many each of them gets, by trying all ways.

    With `each`, every call is handed out."""
    places: list[tuple[int, Want]] = []
    for position, item in enumerate(ordered):
        places += [(position, want) for want in item]
    places += [(-1, want) for want in unordered]
    choices = [[None, *range(len(places))][each:] for _ in calls]
    for way in itertools.product(*choices):
        reached = 0
        got = [0] * len(places)
        for call, place in zip(calls, way, strict=True):
            if place is None:
                continue
            position, want = places[place]
            if not want.fits(call) or 0 <= position < reached or got[place] >= (want.most or 1):
                break
            reached = max(reached, position)
            got[place] += 1
        else:
            yield got


def can_be_met(ordered: list[Item], unordered: list[Want], calls: list[Made], *, each: bool = False) -> bool:
    all_wants = [*itertools.chain(*ordered), *unordered]
    for got in counts(ordered, unordered, calls, each=each):
        if all(count >= want.fewest for count, want in zip(got, all_wants, strict=True)):
            return True
    return False


@often
@given(st.lists(items, max_size=3), made)
def test_a_run_passes_only_if_some_way_meets_the_case(ordered: list[Item], calls: list[Made]) -> None:
    grade = graded("trajectory", suite_of(ordered), calls)
    if not can_be_met(ordered, [], calls):
        assert grade.status == Status.FAILED


@often
@given(st.lists(single, min_size=1, max_size=3), made)
def test_a_run_of_exactly_what_a_sequence_allows_has_the_full_score_under_every_grader(
    ordered: list[Item], calls: list[Made]
) -> None:
    if can_be_met(ordered, [], calls, each=True):
        for by in GRADERS:
            grade = graded(by, suite_of(ordered), calls)
            assert (grade.score, grade.status) == (1.0, Status.PASSED), (by, grade)


@often
@given(st.lists(items, max_size=2), st.lists(wants, max_size=2), made)
def test_a_run_of_exactly_what_lists_allow_has_the_full_score(
    ordered: list[Item], unordered: list[Want], calls: list[Made]
) -> None:
    if (ordered or unordered) and can_be_met(ordered, unordered, calls, each=True):
        graders: tuple[GraderName, ...] = ("trajectory", "critics", "dimensions")
        # With both lists, a call that both could take may be surplus, which costs nothing under `trajectory` alone.
        for by in graders[: 1 if ordered and unordered else 3]:
            grade = graded(by, suite_of(ordered, unordered), calls)
            assert (grade.score, grade.status) == (1.0, Status.PASSED), (by, grade)
