"""Regrading after an edit: which runs, how, and the message, without a screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tui.apps import Call, conversation
from workbench.authoring.document import Document
from workbench.authoring.open_suite import OpenSuite
from workbench.checks.check import EMPTY_CONTEXT
from workbench.engine.events import BatchDone, BatchStarted, RunDone, RunEvent
from workbench.engine.plan import PlannedRun, plan_runs
from workbench.engine.planned_run import result_of
from workbench.evaluation.regrade import regrade_result
from workbench.grading.grade import RunResult
from workbench.grading.run import graded_run
from workbench.grading.status import Status
from workbench.show.views.run_items import OutcomeItem
from workbench.show.views.run_lines import lines_of
from workbench.suite.suite_file import parse_suite
from workbench.trajectory.events import Event, EventPayload, RunFinished
from workbench.trajectory.fold import fold
from workbench.trajectory.trajectory import Trajectory
from workbench.tui.run_book.book import RunBook
from workbench.tui.run_book.record import MAX_UNPACKED_RUNS, RunRecord
from workbench.tui.run_book.regrades import Regrading

PATH = Path("s.toml")
TEXT = """
format = 1
name = "S"
system = "You serve."
limits = { max_tool_calls = 9 }

[[tools]]
name = "go"

[[cases]]
name = "One"
id = "one"
user = "Go to Oslo."
[[cases.ordered]]
tool = "go"
args = { to = "Oslo", fast = true }

[[cases]]
name = "Two"
id = "two"
user = "Go to Bergen."
[[cases.ordered]]
tool = "go"
args = { to = "Bergen" }
""".lstrip()
OSLO: Sequence[Call] = (("go", {"to": "Oslo", "fast": True}),)
BERGEN: Sequence[Call] = (("go", {"to": "Bergen"}),)


def trajectory_of(run: PlannedRun, happenings: Sequence[EventPayload]) -> Trajectory:
    return fold([Event(run.run_id, number, float(number), what) for number, what in enumerate(happenings)])


def graded(run: PlannedRun, trajectory: Trajectory) -> RunResult:
    found = graded_run(run.suite, run.case, trajectory)
    result = result_of(run, found.status, trajectory, found.grades)
    return replace(result, valid_arguments=found.valid_arguments)


class Bench:
    """A suite that is edited while it has runs."""

    def __init__(self, text: str = TEXT) -> None:
        self.suite = OpenSuite(parse_suite(text, PATH))
        self.book = RunBook(lambda: 0.0)
        self.regrading = Regrading(self.book)
        self.regrading.follow(self.suite)
        self._batches = 0

    def start(self, case: str) -> PlannedRun:
        self._batches += 1
        file = self.suite.runnable((case,)) or self.suite.file
        (run,) = plan_runs([file], case_ids=[case])
        self.book.apply(BatchStarted(f"b{self._batches}", (run,)))
        return run

    def end(self, run: PlannedRun, calls: Sequence[Call], *, ending: Sequence[EventPayload] = ()) -> RunRecord:
        happenings = [*conversation(run, calls, "Done.")[: -1 if ending else None], *ending]
        for number, what in enumerate(happenings):
            self.book.apply(RunEvent(Event(run.run_id, number, float(number), what)))
        done = trajectory_of(run, happenings)
        self.book.apply(RunDone(result_of(run, Status.ERROR, done, error="gone") if ending else graded(run, done)))
        self.book.apply(BatchDone(f"b{self._batches}"))
        self.regrading.finish(self.suite, (PATH, run.case.id))
        return self.run(run.case.id)

    def make(self, case: str, calls: Sequence[Call]) -> RunRecord:
        return self.end(self.start(case), calls)

    def run(self, case: str) -> RunRecord:
        (run,) = self.book.runs_of((PATH, case))
        return run

    def edit(self, old: str, new: str) -> list[str]:
        """Change the text. Return the ids of the cases whose runs are regraded."""
        assert old in self.suite.document.text
        self.suite.change(Document.of(self.suite.document.text.replace(old, new)), "Changed")
        return self.follow()

    def follow(self, selected: str | None = None) -> list[str]:
        outline = next((case for case in self.suite.cases if case.key == selected), None)
        self.regrading.follow(self.suite, outline)
        return self.grade()

    def grade(self) -> list[str]:
        cases = self.regrading.due(10_000)
        due = [each for case in cases for each in case.runs]
        results = {id(each.run): each.known or regrade_result(each.result, each.now, EMPTY_CONTEXT) for each in due}
        self.regrading.done(cases, results)
        return [each.run.case_id for each in due]

    def status(self, case: str) -> str | None:
        return self.book.summary((PATH, case)).status

    def is_current(self, case: str) -> bool:
        outline = next(outline for outline in self.suite.cases if outline.id == case)
        return self.run(case).matches_case(self.suite, outline)


@pytest.fixture
def bench() -> Bench:
    bench = Bench()
    bench.make("one", OSLO)
    bench.make("two", BERGEN)
    return bench


def test_an_expectation_regrades_its_case_and_no_other(bench: Bench) -> None:
    assert bench.edit('to = "Oslo"', 'to = "Rome"') == ["one"]
    assert (bench.status("one"), bench.status("two")) == ("failed", "passed")
    assert bench.is_current("one")
    assert bench.regrading.take_summary() == "1 run: passed → failed, no model call"
    assert bench.regrading.take_summary() == "", "it is told once"


def test_undo_brings_the_former_grade_back_without_grading(bench: Bench) -> None:
    before = bench.run("one").result
    bench.edit('to = "Oslo"', 'to = "Rome"')
    assert bench.run("one").original is not None
    bench.suite.undo()
    assert bench.follow() == ["one"]
    assert bench.run("one").result is before
    assert bench.run("one").original is None
    assert bench.regrading.take_summary() == "", "what was not told moved there and back"


def test_a_weight_moves_the_score(bench: Bench) -> None:
    bench.make("one", [("go", {"to": "Oslo", "fast": False})])
    weights = "to = { equals = 'Oslo', weight = 0.5 }, fast = { equals = true, weight = 0.5 }"
    bench.edit('to = "Oslo", fast = true', weights)
    assert bench.regrading.take_summary() == "", "that is how they shared it before"
    bench.edit("'Oslo', weight = 0.5", "'Oslo', weight = 0.4")
    assert bench.regrading.take_summary() == "score 0.75 → 0.74, no model call"


def test_thresholds_of_the_suite_regrade_all_its_cases(bench: Bench) -> None:
    bench.make("one", [("go", {"to": "Oslo", "fast": False})])
    bench.make("two", [("go", {"to": "Bergen", "fast": False})])
    bench.edit("fast = true", "fast = { equals = true, required = false }")
    assert bench.status("one") == "failed"
    assert bench.edit("limits =", "grading = { fail_threshold = 0.5, warn_threshold = 0.5 }\nlimits =") == [
        "one",
        "two",
    ]
    assert bench.status("one") == "passed"
    assert bench.is_current("one")


def test_what_the_suite_says_of_endpoints_regrades_all_its_cases(bench: Bench) -> None:
    bench.make("one", [("functions.go", {"to": "Oslo", "fast": True})])
    assert bench.status("one") == "failed"
    gate = 'name = "S"\ngate = { endpoint_faults = "error" }'
    assert bench.edit('name = "S"', gate) == ["one", "two"]
    assert (bench.status("one"), bench.status("two")) == ("error", "passed")
    assert bench.edit(gate, 'name = "S"') == ["one", "two"]
    assert bench.status("one") == "failed"


def test_the_number_of_allowed_calls_is_an_expectation(bench: Bench) -> None:
    bench.edit("max_tool_calls = 9", "max_tool_calls = 0")
    result = bench.run("one").result
    assert result is not None
    assert result.grade is not None
    assert any(issue.kind == "over calling" for issue in result.grade.issues)
    assert bench.is_current("one")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('name = "One"', 'name = "First"'),
        ('id = "one"\n', 'id = "one"\ntags = ["x"]\n'),
        ('name = "S"', 'name = "Suite"\ndescription = "All."'),
        ('name = "S"', 'name = "S"\ngate = { min_score = 0.5 }'),
        ('name = "S"', 'name = "S"\nmodels = ["offline"]'),
        ('id = "one"\n', 'id = "one"\nrepeats = 3\n'),
        ("# Oslo", "# Oslo"),
    ],
)
def test_names_tags_and_the_like_regrade_nothing(bench: Bench, old: str, new: str) -> None:
    bench.edit('user = "Go to Oslo."', 'user = "Go to Oslo." # Oslo')
    assert bench.edit(old, new) == []
    assert bench.is_current("one")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('user = "Go to Oslo."', 'user = "To Oslo."'),
        ('system = "You serve."', 'system = "You obey."'),
        ('name = "go"\n', 'name = "go"\ndescription = "Goes."\n'),
        ("max_tool_calls = 9", "max_tool_calls = 9, max_rounds = 2"),
        ('user = "Go to Oslo."', 'user = "Go to Oslo."\noffer = []'),
        ('user = "Go to Oslo."', 'user = "Go to Oslo."\nskip = "later"'),
        ('user = "Go to Oslo."', 'user = "Go to Oslo."\nmocks = [{ tool = "go", result = 1 }]'),
        ('name = "S"', 'name = "S"\nmodels = ["other"]'),
    ],
)
def test_a_run_of_another_question_is_graded_and_keeps_its_mark(bench: Bench, old: str, new: str) -> None:
    bench.edit(old, new)
    assert not bench.is_current("one")
    bench.edit('to = "Oslo"', 'to = "Rome"')
    assert bench.status("one") == "failed"
    assert not bench.is_current("one")
    run = bench.run("one")
    assert run.plan_to_save == run.original, "what is saved is one run, and no mixture of two"


def test_what_is_saved_is_what_it_comes_to_now(bench: Bench) -> None:
    bench.edit('to = "Oslo"', 'to = "Rome"')
    run = bench.run("one")
    assert run.plan_to_save == (run.planned, run.result)
    assert run.planned.case.placed_expected_calls is not None
    assert 'to = "Rome"' in run.planned.file.text


def test_one_true_and_1_are_three_expectations() -> None:
    bench = Bench(TEXT.replace("fast = true", "fast = { equals = 1, cast = false }"))
    bench.make("one", OSLO)
    assert bench.edit("equals = 1,", "equals = true,") == ["one"]
    assert bench.edit("equals = true,", "equals = 1.0,") == ["one"]


def test_while_a_case_has_errors_its_run_keeps_grade_and_mark(bench: Bench) -> None:
    assert bench.edit('to = "Oslo"', 'to = { range = "Rome" }') == []
    assert bench.follow("one") == []
    assert bench.status("one") == "passed"
    assert not bench.is_current("one")
    assert bench.edit('range = "Rome"', "range = [1, 2]") == ["one"]
    assert bench.status("one") == "failed"


def test_while_another_case_has_errors_the_selected_one_is_graded(bench: Bench) -> None:
    bench.edit('to = "Bergen" }', 'to = { range = "Bergen" } }')
    bench.suite.change(Document.of(bench.suite.document.text.replace('to = "Oslo"', 'to = "Rome"')), "Changed")
    assert bench.follow("one") == ["one"]
    assert bench.status("one") == "failed"
    assert bench.is_current("one")
    assert bench.edit('range = "Bergen"', "range = [1, 2]") == ["two"], "the other one was graded already"
    assert bench.is_current("one")


def test_a_text_that_is_not_toml_grades_nothing(bench: Bench) -> None:
    assert bench.edit('to = "Oslo"', 'to = "Oslo') == []
    assert bench.edit('to = "Oslo', 'to = "Rome"') == ["one"]


def test_a_run_that_was_under_way_is_graded_by_what_its_case_says_when_it_ends(bench: Bench) -> None:
    run = bench.start("one")
    bench.edit('to = "Oslo"', 'to = "Rome"')
    bench.end(run, OSLO)
    assert bench.grade() == ["one"]
    assert bench.status("one") == "failed"
    assert bench.is_current("one")


def test_a_run_that_ended_while_its_suite_had_errors_is_graded_when_they_are_mended(bench: Bench) -> None:
    run = bench.start("one")
    bench.edit('to = "Oslo"', 'to = "Rome"')
    bench.edit('to = "Bergen" }', 'to = { range = "Bergen" } }')
    bench.end(run, OSLO)
    assert bench.status("one") == "passed"
    assert "one" in bench.edit('range = "Bergen"', "range = [1, 2]")
    assert bench.status("one") == "failed"


def test_a_run_that_broke_off_keeps_its_error_and_is_current(bench: Bench) -> None:
    bench.end(bench.start("one"), (), ending=[RunFinished("error", "gone")])
    bench.edit('to = "Oslo"', 'to = "Rome"')
    result = bench.run("one").result
    assert result is not None
    assert (result.status, result.error) == ("error", "gone")
    assert bench.is_current("one")
    assert bench.regrading.take_summary() == ""


def test_a_case_that_was_run_again_meanwhile_keeps_what_that_run_came_to(bench: Bench) -> None:
    bench.suite.change(Document.of(bench.suite.document.text.replace('to = "Oslo"', 'to = "Rome"')), "Changed")
    bench.regrading.follow(bench.suite)
    cases = bench.regrading.due(100)
    again = bench.make("one", [("go", {"to": "Rome", "fast": True})])
    (due,) = (each for case in cases for each in case.runs)
    bench.regrading.done(cases, {id(due.run): regrade_result(due.result, due.now, EMPTY_CONTEXT)})
    assert (again.result is not None and again.result.status) == "passed"
    assert bench.regrading.take_summary() == ""


@pytest.mark.slow
def test_more_runs_of_one_case_than_stay_whole_are_all_graded_anew(bench: Bench) -> None:
    (run,) = plan_runs([bench.suite.file], case_ids=["one"])
    runs = [replace(run, run_id=f"r{number}", repeat=number) for number in range(MAX_UNPACKED_RUNS + 2)]
    bench.book.apply(BatchStarted("b", tuple(runs)))
    done = trajectory_of(run, conversation(run, OSLO, "Done."))
    for each in runs:
        bench.book.apply(RunDone(graded(each, replace(done, run_id=each.run_id))))
    assert len(bench.edit('to = "Oslo"', 'to = "Rome"')) == len(runs)
    assert {record.status for record in bench.book.finished((PATH, "one"))} == {"failed"}


def test_runs_that_keep_their_grades_are_not_unpacked(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.make("one", OSLO)
    monkeypatch.setattr(RunRecord, "result", property(lambda run: pytest.fail("it was looked at")))
    assert bench.edit('id = "one"\nuser', 'id = "one"\ntags = ["new"]\nuser') == []


def test_pieces_that_were_called_off_are_still_due(bench: Bench) -> None:
    bench.suite.change(Document.of(bench.suite.document.text.replace("go", "fly")), "Changed")
    bench.regrading.follow(bench.suite)
    first = bench.regrading.due(1)[0]
    assert bench.regrading.waiting == 2
    bench.regrading.done([first], {})
    assert bench.regrading.waiting == 1
    assert bench.grade() == ["two"]


@pytest.mark.slow
def test_of_a_thousand_cases_only_the_one_that_was_edited_is_looked_at() -> None:
    case = '\n[[cases]]\nname = "Case {0}"\nuser = "Go."\n[[cases.ordered]]\ntool = "go"\nargs = {{ to = {0} }}\n'
    text = TEXT.partition("\n[[cases]]")[0] + "\n" + "".join(case.format(number) for number in range(1_000))
    bench = Bench(text)
    runs = plan_runs([bench.suite.file])
    bench.book.apply(BatchStarted("all", runs))
    for run in runs:
        bench.book.apply(RunDone(graded(run, trajectory_of(run, conversation(run, [("go", {"to": 7})], "Done.")))))
    document = bench.suite.document
    for typed in (70, 700, 7000):
        table = {**bench.suite.document.table(7), "ordered": [{"tool": "go", "args": {"to": typed}}]}
        bench.suite.change(document.with_case(7, table), "Typed", group="typing")
        bench.regrading.follow(bench.suite)
        assert bench.regrading.waiting == 1
        assert bench.grade() == ["case-7"]


PACES = {
    "to = 1": "at once",
    'to = { pattern = "^O[a-z]+$" }': "in background",
    'to = { similar = "Oslo", threshold = 0.5 }': "in background",
    'to = { judged = "a city" }': "in background",
    'to = { python = "checks:is_city" }': "with Python",
}


@pytest.mark.parametrize(("written", "mode"), PACES.items())
def test_how_a_run_is_graded_follows_what_its_checks_may_take(bench: Bench, written: str, mode: str) -> None:
    bench.make("one", [("go", {"to": "O" * 100})])
    bench.suite.change(Document.of(bench.suite.document.text.replace('to = "Oslo"', written)), "Changed")
    bench.regrading.follow(bench.suite)
    assert [due.mode for case in bench.regrading.due(100) for due in case.runs] == [mode]


arguments = st.fixed_dictionaries(
    {}, optional={"to": st.sampled_from(["Oslo", "Bergen", "", 7]), "fast": st.booleans(), "more": st.none()}
)


@given(st.lists(st.tuples(st.sampled_from(["go", "stop"]), arguments), max_size=4), st.sampled_from(["one", "two"]))
def test_grading_anew_by_the_same_case_changes_nothing(calls: list[Call], case: str) -> None:
    bench = Bench()
    run = bench.make(case, calls)
    assert run.result is not None
    assert regrade_result(run.result, run.planned, EMPTY_CONTEXT) == run.result
    bench.suite.change(Document.of(TEXT + "\n# The end.\n"), "Changed")
    assert bench.follow() == []


@given(st.lists(st.tuples(st.sampled_from(["go", "stop"]), arguments), max_size=4))
def test_an_edit_shows_what_a_run_under_the_edited_case_would_have(calls: list[Call]) -> None:
    bench, edited = Bench(), Bench(TEXT.replace('to = "Oslo"', 'to = "Bergen"'))
    bench.make("one", calls)
    bench.edit('to = "Oslo"', 'to = "Bergen"')
    there, here = edited.make("one", calls), bench.run("one")
    assert there.result is not None
    assert here.result is not None
    assert (here.result.status, here.result.grades) == (there.result.status, there.result.grades)
    *lines, outcome = here.view.items
    *lines_there, outcome_there = there.view.items
    assert [list(lines_of(item, 80)) for item in lines] == [list(lines_of(item, 80)) for item in lines_there]
    assert isinstance(outcome, OutcomeItem)
    assert isinstance(outcome_there, OutcomeItem)
    assert outcome.issues == outcome_there.issues
