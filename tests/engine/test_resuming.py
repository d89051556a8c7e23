"""A resumed batch makes exactly the missing runs, as they were planned."""

from __future__ import annotations

import queue
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from tests.programs import begin, folders_in, program_of
from workbench.config.model_book import ModelOptions
from workbench.config.program import Program, create_program
from workbench.engine.events import BatchDone, BatchEvent, RunDone
from workbench.engine.history_recorder import HistoryRecorder, settings_of_batch
from workbench.engine.missing_runs import Resumption, claim_and_read, resumable
from workbench.engine.model_specs import ModelSpecs
from workbench.engine.plan import DEFAULT_EXECUTION, ExecutionRules, PlannedRun, plan_runs
from workbench.evaluation.runtime import Runtime
from workbench.history.claims import is_claimed
from workbench.history.edits import add_grading
from workbench.history.history import History
from workbench.history.records import HistoryError
from workbench.history.writer import HistoryWriter
from workbench.suite.suite_file import load_suite

SUITE = """\
format = 1
name = "Words"
models = ["offline"]

[[tools]]
name = "look_up"
description = "Look up a word."
[tools.parameters]
type = "object"
required = ["word"]
[tools.parameters.properties]
word = { type = "string", description = "A word" }

[[cases]]
name = "Sun"
user = "Look up the word sun."
[[cases.ordered]]
tool = "look_up"
args = { word = "sun" }

[[cases]]
name = "Never"
user = "Look up the word never."
mocks = [{ tool = "look_up", result = "late", delay_ms = 60000 }]
[[cases.ordered]]
tool = "look_up"
args = { word = "never" }

[[cases]]
name = "Moon"
user = "Look up the word moon."
[[cases.ordered]]
tool = "look_up"
args = { word = "moon" }
"""
"""One after the other, the first case is done, the second one waits, and the third one has not begun."""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    file = tmp_path / "words.toml"
    file.write_text(SUITE, encoding="utf-8")
    return file


@pytest.fixture
def history(tmp_path: Path) -> Path:
    return tmp_path / "history.sqlite3"


def cut_off(
    runs: Sequence[PlannedRun], program: Program, history: Path, execution: ExecutionRules = DEFAULT_EXECUTION
) -> None:
    """Make some runs one at a time, and stop after the first that is over."""
    said: queue.SimpleQueue[BatchEvent] = queue.SimpleQueue()

    def listen(event: BatchEvent) -> None:
        if isinstance(event, RunDone):
            session.stop_all()  # on the engine's thread: before the next run can end
        said.put(event)

    with closing(Runtime(listen, program, history=history)) as session:
        begin(session, runs, execution=execution, concurrency=1)
        for _ in happening(said):
            pass


def happening(said: queue.SimpleQueue[BatchEvent]) -> Iterator[BatchEvent]:
    while not isinstance(event := said.get(timeout=20), BatchDone):
        yield event


def resumption(history: Path, program: Program, *named: str) -> Resumption:
    with History(history) as opened:
        return resumable(opened, opened.batch("1"), program, named_models=named)


def test_what_was_stopped_and_what_never_began_is_missing(suite: Path, history: Path, tmp_path: Path) -> None:
    program = program_of(tmp_path)
    cut_off(plan_runs([load_suite(suite)], by="decision"), program, history)
    going_on = resumption(history, program)
    assert [(run.case.id, run.by, going_on.places[run.run_id]) for run in going_on.runs] == [
        ("never", "decision", 1),
        ("moon", "decision", 2),
    ]
    assert all(run.case.grading.by == "decision" and run.model_of_suite for run in going_on.runs)


def test_the_runs_have_ids_that_no_other_run_of_the_batch_has(suite: Path, history: Path, tmp_path: Path) -> None:
    program = program_of(tmp_path)
    ids = iter(f"run-{number}" for number in range(1, 9))
    cut_off(plan_runs([load_suite(suite)], next_run_id=lambda: next(ids)), program, history)
    again = iter(f"run-{number}" for number in range(1, 9))
    with History(history) as opened:
        going_on = resumable(opened, opened.batch("1"), program, next_run_id=lambda: next(again))
    assert [run.run_id for run in going_on.runs] == ["run-4", "run-5"]


def test_a_suite_that_is_what_it_was_is_run_as_it_is(suite: Path, history: Path, tmp_path: Path) -> None:
    program = program_of(tmp_path)
    cut_off(plan_runs([load_suite(suite)]), program, history)
    going_on = resumption(history, program)
    assert going_on.stored_text_notices == ()
    assert [file.path for file in going_on.files] == [suite]


@pytest.mark.parametrize("changed", [SUITE.replace("the word moon", "the word mars"), None])
def test_a_suite_that_changed_or_is_gone_is_run_as_it_was(
    suite: Path, history: Path, tmp_path: Path, changed: str | None
) -> None:
    program = program_of(tmp_path)
    cut_off(plan_runs([load_suite(suite)]), program, history)
    if changed is None:
        suite.unlink()
    else:
        suite.write_text(changed, encoding="utf-8")
    going_on = resumption(history, program)
    assert [run.case.user for run in going_on.runs][-1] == "Look up the word moon."
    assert going_on.files[0].path == suite
    what = "was removed" if changed is None else "has changed"
    assert going_on.stored_text_notices == (f"{suite} {what} since batch 1: its old text is run",)


def test_a_suite_whose_text_held_a_secret_cannot_be_run_as_it_was(suite: Path, history: Path, tmp_path: Path) -> None:
    program = program_of(tmp_path, {"API_TOKEN": "k7Jq9Zt3Vw5Xb2Nc"})
    suite.write_text(SUITE.replace("word moon", "word k7Jq9Zt3Vw5Xb2Nc"), encoding="utf-8")
    cut_off(plan_runs([load_suite(suite)]), program, history)
    suite.write_text(SUITE, encoding="utf-8")
    with pytest.raises(HistoryError, match="secrets in its old text were not stored: restore the old file"):
        resumption(history, program)


def test_a_suite_in_which_nothing_is_missing_may_be_another_one_by_now(
    suite: Path, history: Path, tmp_path: Path
) -> None:
    program = program_of(tmp_path, {"API_TOKEN": "k7Jq9Zt3Vw5Xb2Nc"})
    whole = tmp_path / "whole.toml"
    whole.write_text(SUITE.replace("word sun", "word k7Jq9Zt3Vw5Xb2Nc"), encoding="utf-8")
    runs = plan_runs([load_suite(whole)], case_ids=["sun"]) + plan_runs([load_suite(suite)])
    cut_off(runs, program, history)
    whole.write_text(SUITE, encoding="utf-8")
    going_on = resumption(history, program)
    assert [(run.file.path, run.case.id) for run in going_on.runs] == [
        (suite, "sun"),
        (suite, "never"),
        (suite, "moon"),
    ]
    assert [file.path for file in going_on.files] == [suite]


def test_a_batch_that_lacks_nothing_cannot_go_on(suite: Path, history: Path, tmp_path: Path) -> None:
    program = program_of(tmp_path)
    cut_off(plan_runs([load_suite(suite)], case_ids=["sun"]), program, history)
    with pytest.raises(HistoryError, match="nothing to resume in batch 1"):
        resumption(history, program)


def test_execution_and_concurrency_are_those_of_the_batch(suite: Path, history: Path, tmp_path: Path) -> None:
    program = program_of(tmp_path)
    cut_off(plan_runs([load_suite(suite)]), program, history, ExecutionRules(wanted=True))
    going_on = resumption(history, program)
    assert (going_on.execute, going_on.execute_all, going_on.concurrency) == (True, False, 1)


def only_planned(runs: Sequence[PlannedRun], program: Program, history: Path) -> None:
    """Store the plan of a batch without any run, as if the program had been killed at once."""
    writer = HistoryWriter(history, pytest.fail)
    specs = ModelSpecs(program.models, program.environment)
    HistoryRecorder(writer, runs, settings_of_batch(runs, specs, ExecutionRules(), 4), program.secrets, home=None)
    assert writer.close()


def reached_at(folder: Path, base_url: str, judge: str | None = None) -> Program:
    said = ModelOptions(frozenset({"local"}), base_url, params={"temperature": 0}, judge=judge)
    return create_program(folders_in(folder), {}, said)


def test_a_model_that_is_reached_otherwise_today_is_a_difference(suite: Path, history: Path, tmp_path: Path) -> None:
    then = reached_at(tmp_path, "http://localhost:1/v1")
    only_planned(plan_runs([load_suite(suite)], models=["offline", "local"]), then, history)
    assert resumption(history, then, "local").differences == ()
    (difference,) = resumption(history, reached_at(tmp_path, "http://localhost:2/v1"), "local").differences
    assert difference == (
        "the model 'local' has different settings than in batch 1: "
        "base_url was http://localhost:1/v1 and is now http://localhost:2/v1"
    )


def test_a_model_that_nobody_knows_today_is_a_difference(suite: Path, history: Path, tmp_path: Path) -> None:
    then = reached_at(tmp_path, "http://localhost:1/v1")
    only_planned(plan_runs([load_suite(suite)], models=["local"]), then, history)
    (difference,) = resumption(history, program_of(tmp_path)).differences
    assert difference.startswith("the model 'local' of batch 1 can no longer be reached: there is no model 'local'")


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        (
            "openai:other@http://localhost:1/v1",
            "the judge 'openai:other@http://localhost:1/v1' was not asked in batch 1",
        ),
        (None, "batch 1 was judged, but not all of its checks can be judged now: no judge is chosen"),
    ],
)
def test_another_judge_is_a_difference(
    suite: Path, history: Path, tmp_path: Path, judge: str | None, said: str
) -> None:
    suite.write_text(SUITE.replace('{ word = "moon" }', '{ word = { judged = "a thing in the sky" } }'))
    then = reached_at(tmp_path, "http://localhost:1/v1", "openai:one@http://localhost:1/v1")
    only_planned(plan_runs([load_suite(suite)]), then, history)
    assert resumption(history, then).differences == ()
    (difference,) = resumption(history, reached_at(tmp_path, "http://localhost:1/v1", judge)).differences
    assert difference.startswith(said)


def test_who_named_a_model_is_believed_of_the_users_own_history_and_of_whoever_names_it_again(
    suite: Path, history: Path, tmp_path: Path
) -> None:
    program = reached_at(tmp_path, "http://localhost:1/v1")
    own = program.folders.history
    own.parent.mkdir()
    for file in (history, own):
        only_planned(plan_runs([load_suite(suite)], models=["local", "offline"], case_ids=["sun"]), program, file)
    for file, named, of_suite in ((history, (), True), (history, ("local",), False), (own, (), False)):
        going_on = resumption(file, program, *named)
        assert [(run.model, run.model_of_suite) for run in going_on.runs] == [("local", of_suite), ("offline", False)]


def test_a_batch_with_two_suites_at_one_path_cannot_go_on(suite: Path, history: Path, tmp_path: Path) -> None:
    program = program_of(tmp_path)
    other = tmp_path / "other.toml"
    other.write_text(SUITE, encoding="utf-8")
    only_planned(plan_runs([load_suite(suite), load_suite(other)]), program, history)
    with closing(sqlite3.connect(history)) as connection, connection:
        connection.execute("UPDATE suites SET path = 'words.toml', hash = 'x' WHERE path = 'other.toml'")
    with pytest.raises(HistoryError, match="batch 1 is damaged: it has two suites at"):
        resumption(history, program)


def test_that_what_is_made_now_is_graded_as_then_is_said_of_a_batch_that_was_graded_again(
    suite: Path, history: Path, tmp_path: Path
) -> None:
    program = program_of(tmp_path)
    cut_off(plan_runs([load_suite(suite)]), program, history)
    add_grading(history, 1, "2026-11-22T10:00:00.000+00:00", "1", [], pytest.fail)
    (said,) = resumption(history, program).stored_text_notices
    assert said.startswith("batch 1 was regraded after it ran: new runs are graded by what its suites expected then")


def test_a_batch_is_claimed_before_what_is_missing_is_read(suite: Path, history: Path, tmp_path: Path) -> None:
    program = program_of(tmp_path)
    cut_off(plan_runs([load_suite(suite)]), program, history)
    with History(history) as opened:
        going_on = claim_and_read(opened, 1, program, ())
        with pytest.raises(HistoryError, match="batch 1 is running in another program"):
            claim_and_read(opened, 1, program, ())
        going_on.handle.release()
        claim_and_read(opened, 1, program, ()).handle.release()


def test_a_batch_that_cannot_go_on_stays_free(suite: Path, history: Path, tmp_path: Path) -> None:
    program = program_of(tmp_path)
    cut_off(plan_runs([load_suite(suite)], case_ids=["sun"]), program, history)
    with History(history) as opened:
        with pytest.raises(HistoryError, match="nothing to resume"):
            claim_and_read(opened, 1, program, ())
        assert not is_claimed(history, 1)
