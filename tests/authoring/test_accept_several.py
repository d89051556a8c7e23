"""Accepting several runs: the expectation is the loosest that each of them meets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from tests.authoring.edited_suite import EditedCase
from tests.authoring.test_accept import CASE, HEAD, ran
from tests.example_counts import examples
from tests.strategies import json_values
from tests.tables import each_row
from tests.trajectories import CallSpec
from workbench.authoring.accept import RunToAccept, accept_run, accept_runs, proposal_for_all
from workbench.authoring.document import Document
from workbench.authoring.proposal import AcceptError
from workbench.config.secrets import Secrets
from workbench.grading.run import grade_run
from workbench.suite.grading_model import GRADERS
from workbench.suite.suite_file import parse_suite
from workbench.suite.suite_text import SpliceError
from workbench.trajectory.events import ToolDefinition
from workbench.trajectory.trajectory import Trajectory

BY = '[grading]\nby = "{}"\n\n'


class Several(EditedCase):
    """A suite of one case, whose expectations become those of some runs."""

    def __init__(self, *runs: Trajectory, case: str = CASE, by: str = "critics") -> None:
        super().__init__(HEAD + BY.format(by) + case)
        self.runs = [RunToAccept(run, self.pairings(run)) for run in runs]
        self.before = self.table

    def pairings(self, run: Trajectory) -> Sequence[Any]:
        grades, _ = grade_run(self.suite, self.case, run)
        return grades[0].pairings if grades else ()

    def take(self) -> dict[str, Any]:
        proposal = proposal_for_all(self.suite, self.case, self.table, self.runs)
        changed = proposal.expectations_in(self.table)
        text = Document.of(self.text.text).with_case(0, changed).text
        file = parse_suite(text, Path("s.toml"))
        assert file.suite is not None and not file.errors, file.problems
        for run in self.runs:
            grades, status = grade_run(file.suite, file.suite.cases[0], run.trajectory)
            assert status in ("passed", "warned"), grades[0]
        return dict(changed)


def args_of(*calls: dict[str, Any], by: str = "critics") -> Any:
    """The arguments that are expected of a call that each of some runs makes in another way."""
    (call,) = Several(*(ran([("t", args)]) for args in calls), by=by).take()["ordered"]
    return call.get("args")


@each_row(
    ("values", "check"),
    [
        (["Oslo", "Oslo", "Oslo"], "Oslo"),
        ([5, 5.0, 5], 5),
        ([None, None], {"equals_null": True}),
        ([20, 25, 22], {"range": [20, 25]}),
        ([0.5, 2], {"range": [0.5, 2]}),
        (["C", "F", "C"], {"one_of": ["C", "F"]}),
        ([True, False, True], {"one_of": [True, False]}),
        ([True, 1, 1], {"one_of": [True, 1]}),
        (["a few words", "some words", "words"], {"present": True}),
        ([[1], [2], [3]], {"present": True}),
        (["5", 5], {"present": True}),
        ([10**16, 2], {"present": True}),
        ([None, "a", "a"], {"present": True}),
    ],
)
def test_the_loosest_check_that_the_values_share(values: list[Any], check: object) -> None:
    assert args_of(*({"x": value} for value in values)) == {"x": check}


def test_values_that_the_schema_lists_are_listed() -> None:
    tool = ToolDefinition("t", parameters={"properties": {"x": {"enum": [1, 2, 3]}}})
    runs = []
    for value in (1, 3):
        run = ran([("t", {"x": value})])
        assert run.start is not None
        runs.append(replace(run, start=replace(run.start, tools=(tool,))))
    assert Several(*runs).take()["ordered"] == [{"tool": "t", "args": {"x": {"one_of": [1, 3]}}}]


def test_an_argument_that_is_not_always_given_is_left_out_or_optional_where_the_grader_counts_it() -> None:
    calls = ({"x": 1, "y": 2}, {"x": 1})
    assert args_of(*calls) == {"x": 1}
    assert args_of(*calls, by="trajectory") == {"x": 1}
    assert args_of(*calls, by="accuracy") == {"x": 1, "y": {"equals": 2, "optional": True}}
    assert args_of(*calls, by="decision") == {"x": 1, "y": {"equals": 2, "optional": True}}
    assert args_of({"y": 2}, {}) is None
    assert args_of({}, {}) == {}


A: CallSpec = ("a", {})
B: CallSpec = ("b", {})
C: CallSpec = ("c", {})


def tools_of(case: dict[str, Any], key: str) -> list[Any]:
    return [[each["tool"] for each in item["any_order"]] if "any_order" in item else item["tool"] for item in case[key]]


@each_row(
    ("runs", "key", "tools"),
    [
        ([ran([A], [B]), ran([A], [B])], "ordered", ["a", "b"]),
        ([ran([A, B]), ran([B, A])], "ordered", [["a", "b"]]),
        ([ran([A], [B]), ran([B], [A])], "unordered", ["a", "b"]),
        ([ran([A], [B]), ran([A, B])], "unordered", ["a", "b"]),
        ([ran([A], [B], [C]), ran([A], [C], [B])], "ordered", ["a", ["b", "c"]]),
        ([ran([A, B], [C]), ran([A], [B], [C])], "ordered", [["a", "b"], "c"]),
        ([ran([A], [B]), ran([A], [B], [A])], "ordered", ["a", "b"]),
    ],
)
def test_only_an_order_that_was_always_the_same_is_expected(runs: list[Trajectory], key: str, tools: object) -> None:
    case = Several(*runs, by="trajectory").take()
    assert tools_of(case, key) == tools
    assert {"ordered", "unordered"} & case.keys() == {key}


def test_calls_of_one_tool_are_recognised_by_their_arguments() -> None:
    near: CallSpec = ("t", {"x": 1, "note": "near"})
    far: CallSpec = ("t", {"x": 900, "note": "far"})
    case = Several(ran([near], [far]), ran([far], [near])).take()
    assert [call["args"]["x"] for call in case["unordered"]] == [1, 900]


def test_runs_that_never_call_expect_no_calls() -> None:
    case = Several(ran(), ran(), case=CASE + "expect_nothing_yet = true\n").take()
    assert case["expect_no_calls"] is True


def test_runs_that_call_different_tools_do_not_agree() -> None:
    with pytest.raises(AcceptError, match=r"not call the same tools \(2 runs: a, b; 1 run: nothing\)"):
        Several(ran([A, B]), ran([B], [A]), ran()).take()


def test_what_no_expectation_lets_pass_is_not_proposed() -> None:
    with pytest.raises(AcceptError, match="run 2 of 2 would be failed by accuracy"):
        Several(ran([A]), ran([A], [A]), by="accuracy").take()
    with pytest.raises(AcceptError, match="run 1 of 2 would be failed by critics"):
        Several(ran([A]), ran([A]), case=CASE + 'response_contains = ["never said"]\n').take()


def test_checks_that_hold_in_every_run_stay_where_they_are() -> None:
    text = CASE + (
        '[[cases.unordered]]\ntool = "t"\nargs = { x = { one_of = [1, 2, 3], weight = 2 }, '
        'y = { equals = "a", weight = 1 } }\nforbidden_args = ["q", "z"]\n'
    )
    case = Several(ran([("t", {"x": 1, "y": "b"})]), ran([("t", {"x": 2, "y": "b", "z": 1})]), case=text).take()
    (call,) = case["unordered"]
    assert call == {
        "tool": "t",
        "args": {"x": {"one_of": [1, 2, 3], "weight": 2}, "y": {"equals": "b", "weight": 1}},
        "forbidden_args": ["q"],
    }


def test_each_step_of_a_chain_expects_what_its_calls_share() -> None:
    text = '[[cases]]\nname = "One"\nsteps = [{ user = "u", tool = "t" }, { user = "v" }, { user = "w" }]\n'
    runs = [ran([("t", {"x": x})], [("u", {"y": y})]) for x, y in ((1, "a"), (3, "a"))]
    steps = Several(*runs, case=text).take()["steps"]
    assert steps == [
        {"user": "u", "tool": "t", "args": {"x": {"range": [1, 3]}}},
        {"user": "v", "tool": "u", "args": {"y": "a"}},
        {"user": "w"},
    ]
    with pytest.raises(AcceptError, match=r"step 2: the runs do not call the same tools"):
        Several(ran([A], [B]), ran([A], [C]), case=text).take()


def test_a_secret_is_not_expected() -> None:
    several = Several(*(ran([("t", {"x": "planted-secret-4711", "y": 1})]) for _ in range(2)))
    secrets = Secrets()
    secrets.add_from_file("KEY_PASSWORD", "planted-secret-4711")
    proposal = proposal_for_all(several.suite, several.case, several.table, several.runs, secrets)
    assert proposal.expectations_in(several.table)["ordered"] == [
        {"tool": "t", "args": {"x": {"present": True}, "y": 1}}
    ]


_values = st.one_of(st.sampled_from(["Oslo", "Rome", 1, 2.5, True, None]), st.integers(), json_values)
_arguments = st.dictionaries(st.sampled_from(["x", "y", "present", "weight"]), _values, max_size=3)
_calls = st.tuples(st.sampled_from(["set_lights", "set.tv", "x"]), _arguments)
_shapes = st.lists(_calls, max_size=6)


@st.composite
def _similar_runs(draw: st.DrawFn) -> list[Trajectory]:
    """Runs that differ in values, in order, in answers and in how often they call a tool."""
    shape = draw(_shapes)
    runs = []
    for _ in range(draw(st.integers(1, 4))):
        calls = [(tool, {**args, **draw(_arguments)} if draw(st.booleans()) else args) for tool, args in shape]
        calls += draw(st.lists(st.sampled_from(calls), max_size=1)) if calls else []
        calls = draw(st.permutations(calls)) if draw(st.booleans()) else calls
        answers: list[list[Any]] = []
        for call in calls:
            joins = draw(st.booleans())
            if joins and answers:
                answers[-1].append(call)
            else:
                answers.append([call])
        runs.append(ran(*answers))
    return runs


@given(_similar_runs(), st.sampled_from(GRADERS), st.one_of(st.none(), _similar_runs()))
@settings(max_examples=examples(120), deadline=None)
def test_every_run_meets_what_they_share(runs: list[Trajectory], by: str, before: list[Trajectory] | None) -> None:
    """Whatever is proposed is in the format, and each run passes with it by the grader of the case (`take` grades). It
    is refused only by graders that count calls, or before values that a suite cannot have."""
    case = CASE
    if before is not None:
        try:
            first = Several(before[0])
            case = Document.of(HEAD + CASE).with_case(0, first.take()).block(0)
        except (AcceptError, SpliceError):
            assume(False)
    several = Several(*runs, case=case, by=by)
    assert accept_runs(several.case, several.table, several.runs[:1]) == accept_run(
        several.case, several.table, runs[0], several.runs[0].pairings
    )
    try:
        several.take()
    except SpliceError:
        assume(False)
    except AcceptError as error:
        event(f"{by}: {str(error)[:24]}")
        assert "run" in str(error)
        counts = {tuple(sorted(call.tool for call in run.calls)) for run in runs}
        assert by in ("accuracy", "decision", "dimensions") or (by == "critics" and len(counts) > 1), error
