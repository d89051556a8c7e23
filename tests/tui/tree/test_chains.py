"""Chains without a screen: their steps in the tree and in the grades, and the effect of edits on their runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chains import chain_happenings, chain_run, step_happenings
from tests.trajectories import CallSpec
from workbench.authoring.document import Document
from workbench.authoring.open_suite import OpenSuite
from workbench.checks.check import EMPTY_CONTEXT
from workbench.engine.events import BatchStarted, RunDone, RunEvent
from workbench.engine.plan import PlannedRun, plan_runs
from workbench.engine.planned_run import result_of
from workbench.evaluation.regrade import regrade_result
from workbench.grading.grade import RunResult
from workbench.grading.run import grade_run_and_steps
from workbench.show.spans import cells, plain
from workbench.suite.model import Case, Suite
from workbench.suite.suite_file import parse_suite
from workbench.trajectory.events import Event, EventPayload, Paused, Resumed, RunFinished
from workbench.trajectory.trajectory import Trajectory
from workbench.tui.case.excerpt_view import case_excerpt, step_line
from workbench.tui.grades.lines import ROWS, copied_grade, grade_page, list_line
from workbench.tui.grades.state import GradesState
from workbench.tui.run_book.book import RunBook
from workbench.tui.run_book.record import RunRecord
from workbench.tui.run_book.regrades import Regrading
from workbench.tui.tree.lines import tree_line
from workbench.tui.tree.state import TreeState

PATH = Path("s.toml")
CASE = (PATH, "sum")
TEXT = """
format = 1
name = "S"

[[tools]]
name = "calculate"

[[cases]]
name = "First"
user = "x"

[[cases]]
name = "Sum"

[[cases.steps]]
user = "Add 2 and 3, then halve it."
tool = "calculate"
args = { operation = "add", a = 2, b = 3 }
mock_result = "5"

[[cases.steps]]
tool = "calculate"
args = { operation = "halve", a = 5 }

[[cases.steps]]
user = "Thank you."
""".lstrip()

ADD: CallSpec = ("calculate", {"operation": "add", "a": 2, "b": 3})
HALVE: CallSpec = ("calculate", {"operation": "halve", "a": 5})
Answers = Sequence[Sequence[CallSpec]]
RIGHT: Answers = ([ADD], [HALVE], [])
WRONG: Answers = ([ADD], [("calculate", {"operation": "halve", "a": 4})], [])
STOPPED = RunFinished("step failed")


def graded(run: PlannedRun, trajectory: Trajectory) -> RunResult:
    grades, status, steps = grade_run_and_steps(run.suite, run.case, trajectory)
    return replace(result_of(run, status, trajectory, grades), steps=steps)


class Bench:
    """A suite with a chain, its tree, and the runs of the chain."""

    def __init__(self, text: str = TEXT, *, models: Sequence[str] = ()) -> None:
        self.suite = OpenSuite(parse_suite(text, PATH))
        self.book = RunBook(lambda: 0.0)
        self.tree = TreeState([PATH], [self.suite])
        self.regrading = Regrading(self.book)
        self.regrading.follow(self.suite)
        self._models = models

    def start(self) -> tuple[PlannedRun, ...]:
        runs = plan_runs([self.suite.file], case_ids=["sum"], models=self._models)
        self.book.apply(BatchStarted("b", runs))
        return runs

    def say(self, run: PlannedRun, happenings: Sequence[EventPayload]) -> None:
        for number, what in enumerate(happenings):
            self.book.apply(RunEvent(Event(run.run_id, number, float(number), what)))

    def end(self, run: PlannedRun, answers: Answers, ending: RunFinished | None = None) -> RunRecord:
        self.say(run, chain_happenings(*answers, ending=ending))
        self.book.apply(RunDone(graded(run, chain_run(*answers, ending=ending))))
        self.regrading.finish(self.suite, CASE)
        return self.book.runs_of(CASE)[0]

    def make(self, answers: Answers = RIGHT, ending: RunFinished | None = None) -> RunRecord:
        (run,) = self.start()
        return self.end(run, answers, ending)

    def steps(self) -> list[str]:
        """Return the tree's rows of the steps: sign, number, tool and result."""
        shown = [plain(tree_line(self.tree, row, self.book, 60)) for row in self.tree.rows if row.key.kind == "step"]
        return [" ".join(line.split()) for line in shown]

    def edit(self, old: str, new: str) -> list[RunRecord]:
        """Change the text. Return the runs that are regraded."""
        assert old in self.suite.document.text
        self.suite.change(Document.of(self.suite.document.text.replace(old, new)), "Changed")
        self.regrading.follow(self.suite)
        due = self.regrading.due(10)
        results = {id(each.run): regrade_result(each.result, each.now, EMPTY_CONTEXT) for c in due for each in c.runs}
        self.regrading.done(due, results)
        return [each.run for case in due for each in case.runs]


# The tree


def test_a_step_has_a_sign_and_a_score_of_its_own() -> None:
    bench = Bench()
    assert bench.steps() == ["1 calculate", "2 calculate", "3 no call"]
    bench.make(WRONG)
    assert bench.steps() == ["✓ 1 calculate 1.00", "✗ 2 calculate 0.75", "✓ 3 no call 1.00"]


def test_while_a_chain_runs_its_steps_are_done_running_and_waiting() -> None:
    bench = Bench()
    (run,) = bench.start()
    assert bench.steps()[0] == "… 1 calculate waiting"
    happenings = [*chain_happenings([ADD])[:-1], *step_happenings(2, [HALVE])]
    bench.say(run, happenings)
    assert bench.steps() == ["· 1 calculate done", "… 2 calculate running", "… 3 no call waiting"]
    bench.say(run, [Paused("before the call", None, "request", 2)])
    assert bench.steps()[1] == "‖ 2 calculate held"
    bench.say(run, [Resumed(1.0), Paused("may it?", "c2-0")])
    assert bench.steps()[1] == "? 2 calculate asks"


def test_a_step_that_was_never_reached_says_so() -> None:
    bench = Bench()
    bench.make([[HALVE]], STOPPED)
    assert bench.steps() == ["✗ 1 calculate 0.50", "- 2 calculate not reached", "- 3 no call not reached"]


def test_among_models_the_worst_status_and_the_lowest_score_count() -> None:
    bench = Bench(models=["m", "n"])
    one, other = bench.start()
    bench.end(one, RIGHT)
    assert bench.steps()[1] == "… 2 calculate waiting"
    bench.end(other, WRONG)
    assert bench.steps()[1] == "✗ 2 calculate 0.75"
    assert bench.steps()[0] == "✓ 1 calculate 1.00"


def test_among_repeats_the_run_to_look_at_first_counts() -> None:
    repeated = TEXT.replace('name = "Sum"', 'name = "Sum"\nrepeats = 3\ngrading = { repeat_rule = "majority" }')
    bench = Bench(repeated)
    for run, answers in zip(bench.start(), (RIGHT, RIGHT, WRONG), strict=True):
        bench.end(run, answers)
    assert bench.steps()[1] == "✓ 2 calculate 1.00"


def test_steps_are_no_cases_for_counts_and_filters() -> None:
    bench = Bench()
    bench.make([[], [], [ADD]])
    (suite_row,) = (row for row in bench.tree.rows if row.key.kind == "suite")
    assert plain(tree_line(bench.tree, suite_row, bench.book, 40)).split()[-1] == "0/1"
    assert bench.tree.cases_below(suite_row) == [(bench.suite, ("first", "sum"))]
    bench.tree.set_filter("status:failed", bench.book)
    assert [row.label for row in bench.tree.rows[1:]] == ["Sum", "1 calculate", "2 calculate", "3 no call"]


def test_a_tree_of_ordinary_cases_looks_up_no_steps() -> None:
    bench = Bench()
    bench.make()
    asked: list[str] = []

    def note(frame: Any, event: str, argument: object) -> None:
        if event == "call" and "step" in frame.f_code.co_name:
            asked.append(frame.f_code.co_name)

    rows = [row for row in bench.tree.rows if row.key.kind != "step"]
    sys.setprofile(note)
    try:
        for row in rows:
            tree_line(bench.tree, row, bench.book, 40)
    finally:
        sys.setprofile(None)
    assert asked == []


def test_what_a_step_comes_to_is_found_out_once() -> None:
    bench = Bench()
    bench.make()
    assert bench.book.step(CASE, 1) is bench.book.step(CASE, 1)
    assert bench.book.step(CASE, 4) is None
    assert bench.book.step((PATH, "first"), 1) is None


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (TEXT, ["[[cases.steps]]"] * 3),
        (
            'format = 1\nname = "S"\ncases = [{ name = "First", user = "x" }, { name = "Sum", '
            'steps = [\n{ user = "x" },\n{ tool = "a" },\n] }]\n',
            ['{ user = "x" },', '{ tool = "a" },'],
        ),
    ],
)
def test_where_a_step_begins_in_the_toml(text: str, lines: list[str]) -> None:
    suite = OpenSuite(parse_suite(text, PATH))
    shown = case_excerpt(suite, 1).lines
    found = [step_line(suite, 1, number + 1) for number in range(len(lines))]
    assert len(set(found)) == len(lines)
    assert [shown[line] for line in found if line is not None] == lines
    if text == TEXT:
        assert suite.change(suite.document.with_block(1, "[[cases"), "Typed")
        assert step_line(suite, 1, 1) is None


# The grades


def state_of(case: dict[str, Any], answers: Answers, **grading: Any) -> GradesState:
    suite = Suite.model_validate({"format": 1, "name": "suite", "grading": grading})
    read = Case.model_validate({"name": "Sum", **case})
    trajectory = chain_run(*answers)
    grades, status, steps = grade_run_and_steps(suite, read, trajectory)
    return GradesState(read, RunResult("r", "s", "sum", "Sum", "m", 0, status, trajectory, grades, steps=steps))


STEPS: dict[str, Any] = {
    "steps": [
        {"user": "Go.", "tool": "add", "args": {"a": 2, "b": 3}},
        {"user": "Hm."},
        {"tool": "halve", "args": {"a": 5}},
    ]
}
MIXED: Answers = ([("add", {"a": 2, "b": 3}), ("log", {})], [], [("halve", {"a": 4})])
GRADERS = ["critics", "decision", "accuracy", "trajectory", "dimensions"]


def said(state: GradesState, grader: str, width: int = 100, *, more: bool = False) -> str:
    state.move_to([grade.grader for grade in state.grades].index(grader))
    state.more = more
    return "\n".join(plain(line).rstrip() for line in grade_page(state, width).lines)


@pytest.mark.parametrize("width", [100, 50])
@pytest.mark.parametrize("grader", GRADERS)
def test_every_grader_names_the_steps(grader: str, width: int) -> None:
    state = state_of(STEPS, MIXED)
    shown = said(state, grader, width)
    calls = shown.partition("Expected" if width == 100 else " Calls")[2]
    lines = [line for line in calls.split("\n") if line.startswith(" step")]
    first, last = lines[0], lines[-1]
    assert first.startswith(" step 1  ")
    assert last.startswith(" step 3  ")
    assert ("Steps, each on its own" in shown) == state.decides(state.selected)


def test_the_grader_that_decides_shows_the_score_of_each_step() -> None:
    shown = said(state_of(STEPS, MIXED, by="decision"), "decision").partition("Steps, each on its own")[2]
    steps = [line.rstrip() for line in shown.split("\n") if line.strip()[2:7] == "step "]
    assert steps[:3] == [
        " ✓ step 1  1.00",
        " ✓ step 2  1.00",
        " ✗ step 3  0.50  right tool, wrong arguments: arguments 0.00, tool 1.00",
    ]


def test_decision_has_a_line_for_every_step_and_they_add_up() -> None:
    shown = said(state_of(STEPS, MIXED), "decision")
    assert "score = mean of (tool name + arguments) ÷ 2 over all steps" in " ".join(shown.split())
    assert " step 2  no call expected\n    right not to call · adds 0.333 of 0.333\n step 3  halve" in shown
    assert shown.count("adds 0.333 of 0.333") == 2
    assert "adds 0.167 of 0.333" in shown


def test_decision_says_which_step_without_a_call_was_never_reached() -> None:
    state = state_of({"steps": [STEPS["steps"][0], {}, {}]}, ([("add", {"a": 2, "b": 3})], []))
    shown = said(state, "decision")
    assert " step 2  no call expected\n    right not to call · adds 0.333 of 0.333" in shown
    assert " step 3  no call expected\n    never reached · adds 0 of 0.333" in shown
    assert [plain(grade_page(state, 80).lines[at]).strip() for at in grade_page(state, 80).bad] == [
        "step 3  no call expected"
    ]


def test_a_chain_in_which_nothing_is_called_is_explained_as_one() -> None:
    shown = said(state_of({"steps": [{"user": "Hm."}, {}]}, ([], [])), "decision")
    assert "over all steps" in shown
    assert shown.count("right not to call · adds 0.5 of 0.5") == 2


def test_an_issue_and_an_extra_call_say_in_which_step_they_are() -> None:
    shown = said(state_of(STEPS, ([("add", {"a": 2, "b": 3})], [("log", {"x": 1})], [])), "decision", 100)
    assert "called where nothing should be" in shown
    extra = next(line for line in shown.split("\n") if "call 2 log(" in line)
    assert extra.startswith(" step 2  ")
    assert "! step 3: missing call: halve" in shown.partition("Issues")[2]


def test_a_long_chain_shows_the_first_steps_and_copying_is_whole() -> None:
    steps = [{"user": "Go.", "tool": "add"}] * 250
    state = state_of({"steps": steps}, [[("add", {})]] * 250, by="trajectory")
    assert "… 50 more steps" in said(state, "trajectory")
    assert copied_grade(state)[0].startswith("Sum · m\n trajectory")


HOSTILE = "\x1b[31m[/nope]\u202e list[int]\r\n\0 漢字"


@given(st.sampled_from(GRADERS), st.sampled_from(GRADERS), st.integers(12, 200), st.booleans())
def test_lines_about_chains_are_safe_and_never_wider_than_asked(grader: str, by: str, width: int, more: bool) -> None:
    steps = [{"user": "Go.", "tool": HOSTILE, "args": {HOSTILE: HOSTILE}}, {}, {"tool": "gone", "args": {"x": 1}}, {}]
    state = state_of({"steps": steps}, ([(HOSTILE, {HOSTILE: [HOSTILE]}), ("more" + HOSTILE, {})], []), by=by)
    shown = said(state, grader, width, more=more)
    assert all(cells(line) <= width for line in grade_page(state, width).lines)
    assert all(cells(list_line(state, row, width)) <= width for row in range(len(state.grades) * ROWS))
    assert not set(shown) & set("\x1b\r\0\u202e")


# Regrading


@pytest.mark.parametrize(
    ("old", "new", "sign"),
    [
        ('args = { operation = "halve", a = 5 }', 'args = { operation = "halve", a = 4 }', "✓ 2 calculate 1.00"),
        ('args = { operation = "halve", a = 5 }', 'forbidden_args = ["a"]', "✗ 2 calculate 1.00"),
        ('tool = "calculate"\nargs = { operation = "halve", a = 5 }', 'tool = "divide"', "✗ 2 divide 0.00"),
    ],
)
def test_what_a_step_expects_grades_the_run_anew(old: str, new: str, sign: str) -> None:
    bench = Bench()
    run = bench.make(WRONG)
    assert bench.edit(old, new) == [run]
    bench.tree.changed(bench.suite)
    assert bench.steps()[1] == sign
    assert run.matches_case(bench.suite, bench.suite.cases[1])
    bench.edit(new, old)
    bench.tree.changed(bench.suite)
    assert bench.steps()[1] == "✗ 2 calculate 0.75"
    assert run.original is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('user = "Thank you."', 'user = "Thanks."'),
        ('user = "Thank you."', 'user = "Thank you."\nsystem = ""'),
        ('mock_result = "5"', "mock_result = 5"),
        ('name = "Sum"', 'name = "Sum"\nstop_on_failure = true'),
    ],
)
def test_what_a_step_asks_makes_it_another_question_and_moves_no_grade(old: str, new: str) -> None:
    bench = Bench()
    run = bench.make(WRONG)
    assert bench.edit(old, new) == []
    assert not run.matches_case(bench.suite, bench.suite.cases[1])
    assert bench.steps()[1] == "✗ 2 calculate 0.75"


def test_a_step_more_or_less_is_both() -> None:
    bench = Bench()
    run = bench.make()
    assert bench.edit('[[cases.steps]]\nuser = "Thank you."', "") == [run]
    bench.tree.changed(bench.suite)
    assert bench.steps() == ["✓ 1 calculate 1.00", "✓ 2 calculate 1.00"]
    assert not run.matches_case(bench.suite, bench.suite.cases[1])


STOPPING = TEXT.replace('name = "Sum"', 'name = "Sum"\nstop_on_failure = true')


@pytest.mark.parametrize(
    ("answers", "ending", "old", "new", "alike"),
    [
        (([ADD], [("calculate", {})]), STOPPED, "a = 5", "a = 6", True),
        (([ADD], [("calculate", {"operation": "halve", "a": 6})]), STOPPED, "a = 5", "a = 6", False),
        (([ADD], [HALVE], []), None, "a = 5", "a = 6", False),
        (([ADD], [HALVE], []), None, "a = 5", "a = 5.0", True),
        (([ADD], [("calculate", {})]), STOPPED, "a = 2, b = 3", "a = 0, b = 0", False),
    ],
)
def test_a_chain_that_stops_at_failures_is_of_another_case_where_it_would_stop_elsewhere(
    answers: Answers, ending: RunFinished | None, old: str, new: str, alike: bool
) -> None:
    bench = Bench(STOPPING)
    run = bench.make(answers, ending)
    assert run.matches_case(bench.suite, bench.suite.cases[1])
    assert bench.edit(old, new) == [run]
    assert run.matches_case(bench.suite, bench.suite.cases[1]) == alike


@given(st.lists(st.lists(st.sampled_from([ADD, HALVE, ("log", {})]), max_size=2), max_size=3))
def test_an_edit_shows_of_the_steps_what_a_run_under_the_edited_case_would_have(answers: Answers) -> None:
    bench, edited = Bench(), Bench(TEXT.replace("a = 5", "a = 4"))
    here, there = bench.make(answers), edited.make(answers)
    bench.edit("a = 5", "a = 4")
    assert here.result is not None
    assert there.result is not None
    assert (here.result.status, here.result.grades) == (there.result.status, there.result.grades)
    assert here.result.steps == there.result.steps
