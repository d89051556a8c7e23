"""Expected calls that are resolved against a run: alternatives, optional and repeated calls, results, groups."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.example_counts import examples
from tests.tables import each_row
from tests.trajectories import trajectory_of
from workbench.checks.check import EMPTY_CONTEXT, by_json
from workbench.grading.grade import Grade, GradingError
from workbench.grading.resolution import resolved_case
from workbench.grading.run import grade_by
from workbench.grading.status import Status
from workbench.suite.grading_model import GRADERS, GraderName
from workbench.suite.model import Suite
from workbench.suite.settings import settings_of
from workbench.trajectory.events import JsonValue, ResultReceived, ToolCall, ToolDefinition
from workbench.trajectory.trajectory import CallRecord, Round, Trajectory

Made = tuple[str, int]
"""A call: its tool, and its argument `x`."""

INFINITE = float("inf")


@dataclass(frozen=True)
class Want:
    """An expected call: alternatives of a tool with a value of `x` (`None`: any value), and the number of times."""

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
often = settings(max_examples=examples(120), suppress_health_check=list(HealthCheck), deadline=None)


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
    } | case
    return Suite.model_validate({"format": 1, "name": "s", "cases": [raw]})


def suite_as(ordered: object, **case: object) -> Suite:
    raw = {"name": "c", "user": "u", "ordered": ordered, **case}
    return Suite.model_validate({"format": 1, "name": "s", "cases": [raw]})


def graded(by: GraderName, suite: Suite, calls: list[Made]) -> Grade:
    (case,) = suite.cases
    run = trajectory_of(*[(tool, {"x": x}) for tool, x in calls], answer="done")
    return grade_by(by, case, settings_of(suite, case), run, EMPTY_CONTEXT)


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
        # With both lists, a call that fits both may be surplus. Only `trajectory` does not charge for it.
        for by in graders[: 1 if ordered and unordered else 3]:
            grade = graded(by, suite_of(ordered, unordered), calls)
            assert (grade.score, grade.status) == (1.0, Status.PASSED), (by, grade)


Answered = tuple[str, dict[str, JsonValue], str | None, bool]
"""A call with the content of its result, and whether it is an error."""


def answered(*calls: Answered | None) -> Trajectory:
    """Return a run with calls and their results. A true last value makes the result an error, and `None` begins a new
    answer."""
    rounds: list[list[CallRecord]] = [[]]
    for number, call in enumerate(calls):
        if call is None:
            rounds.append([])
            continue
        tool, arguments, content, is_error = call
        result = None if content is None else ResultReceived(f"c{number}", content, is_error, "suite mock", 1.0)
        rounds[-1].append(CallRecord(ToolCall(f"c{number}", tool, arguments), len(rounds), result=result))
    run = trajectory_of(answer="done")
    made = [Round(number, calls=tuple(records), stop_reason="tool calls") for number, records in enumerate(rounds, 1)]
    return replace(run, rounds=(*made, replace(run.rounds[-1], number=len(made) + 1)))


REFUND = {"tool": "refund", "args": {"id": 1}}
OK: Answered = ("refund", {"id": 1}, '{"status": "done"}', False)
FAILED: Answered = ("refund", {"id": 1}, "not found", True)
LOOK_UP: Answered = ("get", {"id": 1}, "{}", False)


@each_row(
    ("expected", "calls", "issues"),
    [
        ([{**REFUND, "is_error": False}], [OK], []),
        ([{**REFUND, "is_error": False}], [FAILED, None, OK], []),
        ([{**REFUND, "is_error": False}], [FAILED], [("wrong result", 0, "returned an error; expected a result")]),
        ([{**REFUND, "is_error": True}], [OK], [("wrong result", 0, "returned a result; expected an error")]),
        ([{**REFUND, "is_error": True}, {**REFUND, "is_error": False}], [FAILED, None, OK], []),
        (
            [{**REFUND, "is_error": True}, {**REFUND, "is_error": False}],
            [OK, None, FAILED],
            [("wrong order", 1, "came before it")],
        ),
        (
            [{**REFUND, "is_error": False}, {"tool": "get"}],
            [LOOK_UP, None, OK],
            [("wrong order", 1, "must come first")],
        ),
        ([{**REFUND, "result": {"has_fields": {"status": "done"}}}], [OK], []),
        (
            [{**REFUND, "result": {"contains": "open"}}],
            [OK],
            [("wrong result", 0, "returned another result: expected containing")],
        ),
        ([{**REFUND, "is_error": False}], [("refund", {"id": 1}, None, False)], [("wrong result", 0, "no result")]),
        ([{**REFUND, "times": [1, 2]}], [OK, OK, OK], [("too many calls", 0, "called 3 times, at most 2")]),
        ([{**REFUND, "times": 3}], [OK], [("missing call", 0, "called 1 time, at least 3")]),
        ([{"tool": "get", "optional": True}, REFUND], [OK], []),
        ([{"tool": "get", "optional": True, "args": {"id": 2}}, REFUND], [LOOK_UP, OK], [("wrong argument", 0, "")]),
        ([{"any_of": [{"tool": "get"}, REFUND], "because": "either"}], [], [("missing call", 0, "no call matches it")]),
        ([{"any_order": [{"tool": "get"}, REFUND], "parallel": True}], [LOOK_UP, OK], []),
        (
            [{"any_order": [{"tool": "get"}, REFUND], "parallel": True}],
            [LOOK_UP, None, OK],
            [("not parallel", 1, "not in one answer")],
        ),
    ],
)
def test_what_no_list_of_calls_can_say_fails_the_run_and_not_its_score(
    expected: list[dict[str, object]],
    calls: list[Answered | None],
    issues: list[tuple[str, int, str]],
) -> None:
    suite = suite_as(expected, extra_calls="allow")
    (case,) = suite.cases
    grade = grade_by("trajectory", case, settings_of(suite, case), answered(*calls), EMPTY_CONTEXT)
    found = [issue for issue in grade.issues if issue.kind != "tool error"]
    assert [(issue.kind, issue.expected_call) for issue in found] == [issue[:2] for issue in issues]
    for issue, (_, _, why) in zip(found, issues, strict=True):
        assert why in issue.why
    assert (grade.status == Status.PASSED) is not bool(issues)
    assert [issue.decides for issue in found] == [
        issue[0] in _BESIDE and issue[2] != "must come first" for issue in issues
    ]
    if any(issue.decides for issue in found):
        assert grade.score == 1.0 and grade.is_broken


_BESIDE = ("wrong result", "wrong order", "too many calls", "not parallel")
"""Issues that do not change the score. A wrong order is one of them only if results alone show it."""


def test_a_call_that_is_expected_to_fail_may_be_invalid() -> None:
    schema: dict[str, JsonValue] = {"type": "object", "properties": {"id": {"type": "string"}}}
    for is_error, status in ((True, Status.PASSED), (None, Status.FAILED)):
        call = dict(REFUND) if is_error is None else {**REFUND, "is_error": is_error}
        suite = suite_as([call])
        (case,) = suite.cases
        run = answered(FAILED)
        assert run.start is not None
        run = replace(run, start=replace(run.start, tools=(ToolDefinition("refund", "", schema),)))
        assert grade_by("trajectory", case, settings_of(suite, case), run, EMPTY_CONTEXT).status == status


def test_pairings_and_issues_name_the_call_as_it_is_written() -> None:
    expected = [
        {"tool": "get", "optional": True},
        {"any_of": [{"tool": "find"}, REFUND], "because": "money first"},
        {"tool": "ask", "times": [1, 2]},
    ]
    suite = suite_as(expected)
    (case,) = suite.cases
    asked: Answered = ("ask", {}, "{}", False)
    run = answered(("refund", {"id": 2}, "{}", False), asked, asked)
    for by in GRADERS:
        grade = grade_by(by, case, settings_of(suite, case), run, EMPTY_CONTEXT)
        assert [(line.expected_call, line.call) for line in grade.pairings] == [(1, 0), (2, 1), (2, 2)], by
        (issue,) = grade.issues
        assert (issue.expected_call, issue.argument, issue.because) == (1, "id", "money first"), by


def test_a_run_that_makes_none_of_the_optional_calls_has_the_full_score() -> None:
    for by in GRADERS:
        grade = graded(by, suite_of([(Want((("A", None),), 0),)]), [])
        assert (grade.score, grade.status) == (1.0, Status.PASSED), by


def test_arcade_has_none_of_these_expectations() -> None:
    suite = suite_of([(Want((("A", None),), 0),)], grading={"critics": {"arcade_compatible": True}})
    with pytest.raises(GradingError, match="Arcade has no `any_of`"):
        graded("critics", suite, [("A", 1)])


def test_calls_are_compared_within_their_tool_and_equal_ones_once() -> None:
    asked: list[object] = []
    ordered: list[Item] = [(Want(((tool, x), (tool, None)), 1, 3),) for tool in "AB" for x in (1, 2)]
    suite = suite_of(ordered * 5, [Want(((tool, 1),), 0) for tool in "AB"] * 10)
    (case,) = suite.cases
    calls = [("AB"[number % 2], number % 3) for number in range(1_000)]
    run = trajectory_of(*[(tool, {"x": x}) for tool, x in calls])

    def equal(check: object, value: JsonValue) -> bool:
        asked.append(check)
        return by_json(check, value)

    resolved_case("accuracy", case, settings_of(suite, case).grading, run, equal, EMPTY_CONTEXT)
    # 40 expected calls name one tool each, whose 500 calls have three values of `x`: each is compared once.
    assert len(asked) == 40 * 3
