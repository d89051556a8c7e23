"""The grades of a run as lines: the pairs of calls, their credit, and the reasons of disagreements."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.grading.cases import call
from tests.trajectories import CallSpec, trajectory_of
from workbench.grading.grade import Grade, RunResult
from workbench.grading.run import grade_run
from workbench.grading.status import Status
from workbench.show.spans import cells, plain
from workbench.show.views.grades import why_not_graded
from workbench.suite.model import Case, Suite
from workbench.suite.settings import settings_of
from workbench.trajectory.events import JsonValue, RunFinished, ToolDefinition
from workbench.tui.grades.lines import ROWS, copied_grade, disagreement_text, grade_page, list_line
from workbench.tui.grades.pairing import SIDE_BY_SIDE_CELLS
from workbench.tui.grades.state import GradesState

HOSTILE = "\x1b[31m[/nope]\u202e list[int]\r\n\0 漢字"

MOVIE: dict[str, Any] = {
    "ordered": [
        call("set_lights", {"room": "living room", "brightness": {"range": [5, 40]}}),
        call("set_tv", {"power": "on"}),
    ],
    "disallowed": [call("unlock")],
}
DIMMED: CallSpec = ("set_lights", {"room": "living room", "brightness": 60})


def state_of(
    case: dict[str, Any], *calls: CallSpec, tools: Sequence[ToolDefinition] = (), **grading: Any
) -> GradesState:
    """The grades of a run of a case with these calls."""
    suite = Suite.model_validate({"format": 1, "name": "suite", "grading": grading})
    read = Case.model_validate({"name": "Movie night", "user": "go", **case})
    trajectory = trajectory_of(*calls, answer="Done.", tools=tools)
    grades, status = grade_run(suite, read, trajectory)
    settings = settings_of(suite, read).grading
    result = RunResult("run", "s", read.id, read.name, "m", 0, status, trajectory, grades, grading=settings)
    return GradesState(read, result)


def said(state: GradesState, grader: str, width: int = 100, *, more: bool = False) -> str:
    """Return the whole text on one grade."""
    state.move_to([grade.grader for grade in state.grades].index(grader))
    state.more = more
    return "\n".join(map(plain, grade_page(state, width).lines))


def test_the_cursor_begins_on_the_grader_that_decides_and_the_order_stays() -> None:
    state = state_of(MOVIE, DIMMED, by="trajectory")
    assert [grade.grader for grade in state.grades] == ["critics", "decision", "accuracy", "trajectory", "dimensions"]
    assert state.selected.grader == "trajectory"
    state.step(2)
    assert state.selected.grader == "critics"
    assert plain(list_line(state, 3 * ROWS, 40)) == " ✗ trajectory  decides              0.33"
    assert plain(list_line(state, 3 * ROWS + 1, 40)) == "   failed  1 of 3 met"


def test_every_grader_shows_its_formula_with_the_numbers_of_the_run() -> None:
    free = {"fail_on_tool_call_quantity": False}
    state = state_of(MOVIE, DIMMED, critics=free, accuracy={"mode": "flexible"})
    assert "earned ÷ possible, kept within 0..1\n       = 1.5 ÷ 4 = 0.375" in said(state, "critics")
    assert "mean of (should call + tool name + arguments) ÷ 3 over all calls\n       = 1.167 ÷ 2 = 0.583" in said(
        state, "decision"
    )
    assert "= (0 + 0.5 × 1 − 0.25 × 0) ÷ 2 = 0.25" in said(state, "accuracy")
    assert "expectations met ÷ expectations\n       = 1 ÷ 3 = 0.333" in said(state, "trajectory")
    assert "= 0.3 × 1 + 0.3 × 0.5 + 0.3 × 0.375 + 0.1 × 1 = 0.662" in said(state, "dimensions", 120)


def test_a_rule_that_decided_at_once_is_named_instead() -> None:
    shown = said(state_of(MOVIE, DIMMED), "critics")
    assert "Decided before that: fail_on_tool_call_quantity: 2 expected, 1 made, so the score is 0." in shown
    assert "The thresholds are not used." in shown
    assert "adds" not in shown


def test_arguments_stand_beside_what_was_expected_or_above_it() -> None:
    state = state_of(MOVIE, DIMMED)
    wide, narrow = said(state, "decision", SIDE_BY_SIDE_CELLS), said(state, "decision", SIDE_BY_SIDE_CELLS - 1)
    (row,) = (line.split() for line in wide.split("\n") if line.startswith("    brightness"))
    assert row == ["brightness", "5..40", "60", "✗", "0", "of", "0.5"]
    assert "Expected" in wide
    assert "Actual" in wide
    after = narrow.partition("brightness")[2].split("\n")
    assert after[0].split() == ["60", "✗", "0", "of", "0.5"]
    assert after[1].strip() == "expected 5..40"


def test_what_every_line_adds_or_takes_is_said() -> None:
    state = state_of(
        MOVIE, DIMMED, ("set_tv", {"power": "on"}), ("unlock", {}), critics={"fail_on_tool_call_quantity": False}
    )
    critics = said(state, "critics")
    assert "1 + 0.5 + 0 = 1.5 · adds 0.375 of 0.5" in critics
    assert "→ call 3 unlock()" in critics
    assert "costs nothing" in critics
    assert "(1 + 1 + 0.5) ÷ 3 = 0.833 · adds 0.278 of 0.333" in said(state, "decision")
    assert "extra, counts twice · takes 0.25 from the score" in said(state, "accuracy")
    trajectory = said(state, "trajectory")
    assert "✗  no unlock(…)  broken by call 3\n    adds 0 of 0.333" in trajectory
    assert "Fails the run, whatever the score" in trajectory
    assert "○ never called" in said(state_of(MOVIE, DIMMED), "decision")


def test_a_call_that_was_never_made_names_the_arguments_that_it_lacks_under_every_grader() -> None:
    state = state_of({"ordered": [call("weather", {"city": "Oslo"})]})
    for grade in state.grades:
        assert re.search(r'city +(expected )?"Oslo"', said(state, grade.grader)), grade.grader


def test_a_value_that_the_schema_fills_in_is_told_from_one_that_was_given() -> None:
    schema: dict[str, JsonValue] = {"type": "object", "properties": {"units": {"type": "string", "default": "celsius"}}}
    case = {"ordered": [call("weather", {"units": "celsius"})]}
    state = state_of(case, ("weather", {}), tools=[ToolDefinition("weather", "", schema)])
    assert '"celsius" by default' in said(state, "critics")
    assert "not given" in said(state, "decision")


def test_more_words_say_how_the_system_scores_and_show_values_whole() -> None:
    long = "x" * 300
    state = state_of({"ordered": [call("say", {"text": long[:-1]})]}, ("say", {"text": long}))
    assert "How Evalite toolCallAccuracy scores" not in said(state, "accuracy")
    assert said(state, "accuracy", 80).count("x") < 200
    unfolded = said(state, "accuracy", 80, more=True)
    assert "How Evalite toolCallAccuracy scores" in unfolded
    assert unfolded.count("x") > 300
    assert "not equal" in unfolded or "not the same" in unfolded


def test_graders_that_disagree_are_named_with_why() -> None:
    twice: CallSpec = ("set_tv", {"power": "on"})
    state = state_of({"ordered": [call("set_tv", {"power": "on"})]}, twice, twice)
    text = disagreement_text(state.grades)
    assert text == "trajectory and dimensions would pass it; critics, decision and accuracy would fail it"
    assert f"≠ {text}" in said(state, "trajectory", 400)
    unfolded = said(state, "trajectory", more=True).partition("The graders disagree")[2]
    assert "✗ accuracy: 1 expected: 1 × extra, counts twice; 1 × exact" in unfolded
    assert "✓ trajectory: 1 of 1 met" in unfolded
    assert disagreement_text(state_of(MOVIE, DIMMED).grades) == ""


def test_a_grader_that_does_not_apply_or_cannot_grade_has_a_reason_and_no_formula() -> None:
    state = state_of({"response_contains": ["done"]})
    shown = said(state, "decision")
    assert "- not applicable" in shown
    assert "the case expects no calls; decided by response_contains" in shown
    assert "score =" not in shown
    failed = replace(state.result, grades=(Grade("critics", None, Status.ERROR, "no judge"),))
    assert "▲ error" in said(GradesState(state.case, failed), "critics")


def test_copying_takes_everything_unbroken() -> None:
    state = state_of(MOVIE, DIMMED)
    text, what = copied_grade(state)
    assert text.startswith("Movie night · m\n critics  Arcade evals")
    assert "How Arcade evals scores" in text
    assert not state.more
    assert what == "the grade of critics"


def test_a_run_of_many_calls_shows_the_first_of_them() -> None:
    state = state_of({"ordered": [call("a", {})]}, *[("a", {})] * 400)
    for grader in ("critics", "decision", "accuracy", "trajectory", "dimensions"):
        shown = said(state, grader)
        assert "… 100 more calls and expectations" in shown


@given(
    st.sampled_from(["critics", "decision", "accuracy", "trajectory", "dimensions"]),
    st.integers(12, 200),
    st.booleans(),
)
def test_lines_are_safe_and_never_wider_than_asked(grader: str, width: int, more: bool) -> None:
    value: JsonValue = {HOSTILE: [HOSTILE * 20]}
    case = {
        "ordered": [call(HOSTILE, {HOSTILE: HOSTILE, "n": {"near": 1, "tolerance": 1}}), call("gone", {"x": 1})],
        "disallowed": [call(HOSTILE, {HOSTILE: {"present": True}})],
    }
    state = state_of(case, (HOSTILE, {HOSTILE: value, "n": 2}), ("extra" + HOSTILE, {"y": value}))
    shown = said(state, grader, width, more=more)
    assert all(cells(line) <= width for line in grade_page(state, width).lines)
    assert all(cells(list_line(state, row, width)) <= width for row in range(len(state.grades) * ROWS))
    assert not set(shown) & set("\x1b\r\0\u202e")


@pytest.mark.parametrize("by", ["critics", "trajectory"])
def test_what_fails_the_run_beside_the_score_is_said(by: str) -> None:
    case = {"ordered": [call("set_tv", {"power": "on"})], "response": {"contains": "film"}}
    shown = said(state_of(case, ("set_tv", {"power": "on"}), by=by), by)
    assert "✗ failed 1.00" in shown
    assert '✗ failed 1.00  response: expected containing "film"' in shown
    assert "✗ response: expected containing" in shown


def test_arguments_that_nobody_expects_have_a_row_and_the_arithmetic() -> None:
    case = {"ordered": [call("set_lights", {"room": "a"})]}
    state = state_of(case, ("set_lights", {"room": "a", "brightness": 3, "note": "x"}))
    shown = said(state, "decision")
    (row,) = (line.split() for line in shown.split("\n") if line.startswith("    brightness"))
    assert row == ["brightness", "not", "expected", "3", "✗", "−0.5"]
    assert "arguments (1 − 0.5 × 2) ÷ 1 = 0 · (1 + 1 + 0) ÷ 3 = 0.667" in shown
    assert "note        not expected" in said(state, "accuracy")
    assert "expected not expected" not in said(state, "accuracy", 50)


def test_of_a_trajectory_it_is_said_what_is_in_order_and_which_call_is_only_the_nearest() -> None:
    case = {
        "ordered": [call("a", {}), {"any_order": [call("b", {}), call("c", {})]}],
        "unordered": [call("d", {"x": 1})],
    }
    shown = said(state_of(case, ("a", {}), ("c", {}), ("b", {}), ("d", {"x": 2})), "trajectory", more=True)
    assert [line.split()[1:4] for line in shown.split("\n") if line[:4].strip().isdigit()] == [
        ["in", "order", "a"],
        ["any", "order", "b"],
        ["any", "order", "c"],
        ["whenever", "d", "→"],
    ]
    assert "→ nearest is call 4 d" in shown
    assert shown.count("nearest") == 1


def test_each_dimension_has_its_fraction() -> None:
    case = {"ordered": [call("a", {"x": 1, "y": 1}), call("b", {"z": 5})], "response_contains": ["done", "sorry"]}
    shown = said(state_of(case, ("a", {"x": 1, "y": 2}), ("c", {})), "dimensions")
    assert "precision   1 ÷ 2 = 0.5 · calls of an expected tool" in shown
    assert "recall      1 ÷ 2 = 0.5 · expected calls made" in shown
    assert "parameters  (0.75 + 0) ÷ 2 = 0.375" in shown
    assert "content     1 ÷ 2 = 0.5 · keywords" in shown
    assert "latency     10 ms, within its limit; adds 0" in shown
    assert "(1 + 0.5) ÷ 2 = 0.75" in shown
    assert "adds 0 of" not in shown
    assert "    z  5" in shown  # what was expected of the call that is missing


def test_more_words_and_copies_have_what_was_expected_in_full() -> None:
    long = "x " * 100 + "the end"
    state = state_of({"ordered": [call("say", {"text": long})]}, ("say", {"text": long[:-1]}))
    assert "the end" not in said(state, "decision")
    assert "the end" in said(state, "decision", more=True)
    state.more = False
    assert "the end" in copied_grade(state)[0]


def test_among_many_calls_the_right_ones_have_one_line_and_the_others_can_be_gone_to() -> None:
    case = {"ordered": [call("a", {"x": number}) for number in range(6)]}
    calls: list[CallSpec] = [("a", {"x": 9 if number == 3 else number}) for number in range(6)]
    state = state_of(case, *calls, by="decision")
    page = grade_page(state, 100)
    (bad,) = page.bad
    assert plain(page.lines[bad]).startswith("  4 a")
    folded = [plain(line) for line in page.lines if plain(line).endswith("✓ adds 0.167")]
    assert len(folded) == 5
    assert folded[0].split()[:2] == ["1", "a(x=0)"]
    state.more = True
    assert len(grade_page(state, 100).lines) > len(page.lines) + 10


@pytest.mark.parametrize(
    ("status", "reason", "error", "said"),
    [
        (Status.SKIPPED, None, "not now", "this case is skipped, so there is nothing to grade: not now"),
        (Status.STOPPED, "stopped", None, "you stopped this run, so it is not graded"),
        (Status.ERROR, "error", "no route", "this run did not finish, so it is not graded: no route"),
        (Status.ERROR, "answered", "no judge", "this run finished, but could not be graded: no judge"),
    ],
)
def test_a_run_without_grades_says_truly_why(status: Status, reason: Any, error: str | None, said: str) -> None:
    result = state_of(MOVIE, DIMMED).result
    finish = RunFinished(reason) if reason else None
    ended = replace(result, status=status, grades=(), error=error, trajectory=replace(result.trajectory, finish=finish))
    assert why_not_graded(ended) == said


@pytest.mark.parametrize("grader", ["critics", "decision", "accuracy", "trajectory", "dimensions"])
def test_a_run_that_was_graded_by_more_calls_than_its_case_has_is_explained(grader: str) -> None:
    graded = state_of(MOVIE, DIMMED)
    earlier = graded.case.model_copy(update={"ordered": graded.case.ordered[:1]})
    assert "brightness" in said(GradesState(earlier, graded.result), grader)
