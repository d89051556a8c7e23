"""`final` decides by the effects of a run and the later answers of tools. It does not change the score."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.grading.cases import call, case_of
from tests.tables import each_row
from tests.trajectories import CallSpec, trajectory_of
from workbench.analysis.audit.audit import audit_suite
from workbench.checks.patterns import CheckError
from workbench.checks.values import json_text
from workbench.engine.redaction import redacted_places, regrade_refusal
from workbench.grading.final import final_issues
from workbench.grading.grade import RunResult
from workbench.grading.run import GRADERS_BY_NAME, grade_run
from workbench.grading.status import Status
from workbench.suite.grading_model import GRADERS
from workbench.suite.model import Case, Suite
from workbench.suite.suite_file import parse_suite
from workbench.trajectory.events import Forked, JsonValue, OwnCallAnswered, ResultReceived, RunFinished, ToolDefinition
from workbench.trajectory.trajectory import Trajectory

READER = ToolDefinition("look.up", annotations={"readOnlyHint": True})
Made = tuple[str, dict[str, JsonValue], bool]
"""A call: the tool, its arguments, and whether it succeeded."""


def run_of(made: Sequence[Made], states: Sequence[OwnCallAnswered] = (), source: Any = "suite mock") -> Trajectory:
    """Return a run with calls and their results, and the answers of tools after it."""
    calls: list[CallSpec] = [(tool, arguments) for tool, arguments, _ in made]
    run = trajectory_of(*calls, tools=(READER,))
    records = []
    for record, (_, _, succeeded) in zip(run.rounds[0].calls, made, strict=True):
        result = ResultReceived(record.call.id, "", not succeeded, source, 0.0)
        records.append(replace(record, result=result))
    rounds = (replace(run.rounds[0], calls=tuple(records)), *run.rounds[1:])
    return replace(run, rounds=rounds, own_calls=tuple(states))


def said(content: str, **arguments: JsonValue) -> OwnCallAnswered:
    return OwnCallAnswered("final", "look.up", arguments, content, False, "suite mock", 0.0)


def of(**final: Any) -> Case:
    return case_of(final=final)


CALLS = st.tuples(
    st.sampled_from(["pay", "send"]), st.dictionaries(st.sampled_from("ab"), st.integers(0, 1), max_size=2)
)


@given(st.lists(CALLS, max_size=4), st.lists(st.tuples(CALLS, st.booleans()), max_size=5), st.integers(0, 2))
def test_changes_are_met_by_the_calls_that_succeeded_whatever_their_order(
    expected: list[Any], made: list[Any], reads: int
) -> None:
    case = of(changes=[call(tool, args) | {"only_args": True} for tool, args in expected])
    run = run_of([*((*each, done) for each, done in made), *[("look_up", {}, True)] * reads])
    issues = list(final_issues(case, run))

    def counted(calls: Any) -> Counter[str]:
        return Counter(json_text([tool, dict(sorted(args.items()))]) for tool, args in calls)

    assert (issues == []) is (counted(expected) == counted(each for each, done in made if done))
    assert all(issue.decides for issue in issues)


@each_row(
    ("made", "kinds"),
    [
        ([("pay", {"a": 2}, True)], ["wrong change"]),
        ([("pay", {"a": 2}, False)], ["missing change"]),
        ([("send", {}, True)], ["missing change", "unexpected change"]),
        ([("pay", {"a": 1}, True), ("pay", {"a": 2}, True)], ["unexpected change"]),
        ([("pay", {"a": 2}, True), ("pay", {"a": 1}, True)], ["unexpected change"]),
        ([("PAY", {"a": 1, "b": 2}, True)], []),
    ],
)
def test_each_difference_has_its_issue(made: list[Made], kinds: list[str]) -> None:
    issues = final_issues(of(changes=[call("pay", {"a": 1})]), run_of(made))
    assert [issue.kind for issue in issues] == kinds


@each_row(
    ("content", "result", "holds"),
    [
        ('{"status": "paid", "total": 3}', {"has_fields": {"status": "paid"}}, True),
        ('{"status": "paid", "total": 3}', {"status": "paid"}, False),
        ("paid", "paid", True),
        ('"paid"', "paid", True),
        ("3", 3, True),
        ("3", "3", False),
        ('{"status": "paid"}', {"contains": '"paid"'}, True),
        ("not JSON", {"has_fields": {}}, False),
    ],
)
def test_a_result_is_json_for_checks_of_values_and_text_for_those_of_texts(
    content: str, result: JsonValue, holds: bool
) -> None:
    case = of(state=[{"tool": "look.up", "args": {"id": 1}, "result": result}])
    issues = list(final_issues(case, run_of([], [said("other", id=2), said(content, id=1)])))
    assert (issues == []) is holds
    assert all(issue.kind == "final state" and issue.decides for issue in issues)


def test_a_run_that_was_not_asked_cannot_be_graded_and_one_under_way_is_not_yet() -> None:
    case = of(state=[{"tool": "look.up", "result": 1}])
    with pytest.raises(CheckError, match=r"after the run, look\.up \{\} was not called: run the case again"):
        list(final_issues(case, run_of([])))
    assert list(final_issues(case, replace(run_of([]), finish=None))) == []


def test_a_run_that_ends_with_too_large_an_answer_fails_and_is_no_error() -> None:
    case = of(state=[{"tool": "look.up", "result": 1}])
    suite = Suite.model_validate({"format": 1, "name": "suite", "cases": [case]})
    run = replace(run_of([]), finish=RunFinished("sent too much", "the model sent too much"))
    grades, status = grade_run(suite, suite.cases[0], run)
    assert status == Status.FAILED
    kinds = {issue.kind: issue.decides for issue in grades[0].issues}
    assert kinds["sent too much"] and not kinds["final state"]


@pytest.mark.parametrize(("tool", "asked"), [("pay", False), ("look_up", True)])
def test_a_fork_that_replays_changes_is_not_asked_for_its_state(tool: str, asked: bool) -> None:
    case = of(state=[{"tool": "look.up", "result": 1}])
    run = replace(run_of([(tool, {}, True)], source="replayed"), fork=Forked("first", "model", 2))
    if asked:
        with pytest.raises(CheckError, match="was not called"):
            list(final_issues(case, run))
        return
    (issue,) = final_issues(case, run)
    assert (issue.kind, issue.decides) == ("final state", False)
    assert issue.why.startswith("not asked")


@pytest.mark.parametrize("by", GRADERS)
@pytest.mark.parametrize(("content", "status"), [("1", "passed"), ("2", "failed")])
def test_final_decides_under_every_grader_and_changes_no_score(by: Any, content: str, status: str) -> None:
    scores = []
    for final in (None, {"state": [{"tool": "look.up", "result": 1}]}):
        case = case_of(call("pay", {"a": 1}), final=final, grading={"by": by})
        suite = Suite.model_validate({"format": 1, "name": "suite", "cases": [case]})
        grades, _ = grade_run(suite, suite.cases[0], run_of([("pay", {"a": 1}, True)], [said(content)]))
        scores.append({grade.grader: grade.score for grade in grades})
        assert grades[0].status == ("passed" if final is None else status)
    assert scores[0] == scores[1]
    assert scores[0].keys() == GRADERS_BY_NAME.keys()


def test_a_secret_in_what_a_tool_said_keeps_the_verdict() -> None:
    asking, other = of(state=[{"tool": "look.up", "result": "hunter2"}]), case_of(call("a"))
    raw, stored = run_of([], [said("hunter2")]), run_of([], [said("$KEY")])
    places = redacted_places(raw, stored, asking, None)
    assert [place.what for place in places] == ["state"]
    result = RunResult("r", "s", "c", "C", "m", 0, Status.PASSED, stored, redacted=tuple(places))
    assert "the answer of a tool after the run holds a secret" in (
        regrade_refusal(result, asking, as_stored=True) or ""
    )
    assert regrade_refusal(result, other, as_stored=True) is None


AUDITED = """format = 1
name = "Shop"
tools = [
  {{ name = "get", annotations = {{ readOnlyHint = true }} }},
  {{ name = "pay", parameters = {{ type = "object", properties = {{ id = {{ type = "string" }} }} }} }},
  {{ name = "send" }},
]
[[cases]]
name = "Pay"
user = "Pay it."
{more}
"""


@each_row(
    ("more", "kinds"),
    [
        ('[cases.final]\nchanges = [{ tool = "pay", args = { id = "A17" } }]', []),
        ("[cases.final]\nchanges = []", ["weak case"]),
        ('[[cases.final.state]]\ntool = "get"\nresult = { range = [1, 2] }', []),
        ('ordered = [{ tool = "pay", args = { id = "A17" } }]\nextra_calls = "allow"', ["unnoticed"]),
        (
            'ordered = [{ tool = "pay", args = { id = "A17" } }]\nextra_calls = "allow"\n'
            '[cases.final]\nchanges = [{ tool = "pay", args = { id = "A17" } }]',
            [],
        ),
        (
            'ordered = [{ tool = "get" }]\nextra_calls = "allow"\n[cases.final]\nchanges = [{ tool = "pay" }]',
            ["unnoticed"],
        ),
    ],
)
def test_the_audit_sees_what_final_notices(more: str, kinds: list[str]) -> None:
    file = parse_suite(AUDITED.format(more=more), Path("shop.toml"))
    assert file.suite is not None, file.problems
    assert [finding.kind for finding in audit_suite(file.suite, {}).findings] == kinds
