"""A secret in a case's id or a name of a suite or model is not stored in the history, and the stored data can still be
found."""

from __future__ import annotations

import queue
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from tests.history.batches import SUITE
from tests.history.unpacking import texts_in
from tests.programs import begin, program_of
from tests.sampled_rows import first_of
from workbench.config.program import Program
from workbench.engine.events import BatchDone, BatchEvent
from workbench.engine.missing_runs import resumable
from workbench.engine.plan import PlannedRun, plan_runs
from workbench.engine.recordings import suite_of_recording
from workbench.evaluation.regrade import plan_regrading
from workbench.evaluation.runtime import Runtime
from workbench.history.history import History
from workbench.suite.suite_file import load_suite

SECRET = "sk-abc-123456789"
NAMED = SUITE.replace('"Weather"', f'"Weather {SECRET}"').replace('"Paris"\nuser', f'"Paris {SECRET}"\nuser')
CALLED = NAMED.replace('name = "Nowhere"', f'id = "{SECRET}"\nname = "Nowhere"')


def run_all(runs: Sequence[PlannedRun], program: Program, history: Path) -> None:
    """Make runs of suites that are not trusted, as the app and the command line do, and keep them."""
    said: queue.SimpleQueue[BatchEvent] = queue.SimpleQueue()
    with closing(Runtime(said.put, program, history=history)) as session:
        begin(session, runs, trusted=False)
        while not isinstance(said.get(timeout=20), BatchDone):
            pass


@pytest.mark.parametrize("text", [NAMED, CALLED], ids=["in a name", "in an id"])
def test_a_secret_in_a_name_is_in_no_history_and_its_case_is_found_again(tmp_path: Path, text: str) -> None:
    suite, file = tmp_path / "weather.toml", tmp_path / "history.sqlite3"
    suite.write_text(text, encoding="utf-8")
    program = program_of(tmp_path)
    program.secrets.add("API_KEY", SECRET)
    runs = plan_runs([load_suite(suite)], models=["offline", f"no-{SECRET}"])
    run_all(runs, program, file)
    kept = texts_in(file)
    assert any("$API_KEY" in text and "get_weather" in text for text in kept), "the suite is among them"
    assert any("run_started" in text for text in kept), "and so are the events"
    assert not [text for text in kept if SECRET in text]
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("UPDATE runs SET status = NULL WHERE place = 0")
        connection.execute("UPDATE parts SET passed = 0")
        connection.commit()
    ids = [case.id for case in runs[0].suite.cases]
    with History(file) as history:
        (batch,) = history.batches()
        rows = history.runs(1)
        for row in rows[1:]:
            opened = suite_of_recording(history.recording(row)).suite
            assert opened is not None and [case.id for case in opened.cases] == [row.case_id]
        plan = plan_regrading(history, batch, program)
        assert (plan.missing, len(plan.runs)) == ((), len(rows) - 1)
        assert [run.case.id for run in resumable(history, batch, program).runs] == ids[:1]


KEY = "zz-471"
"""A key too short to be recognised by its variable's name. It becomes known when a model needs it."""

JUDGED = SUITE.replace('{ city = "Rome" }', '{ city = { judged = "Rome", model = "openai:judge" } }')
ASKED = SUITE.replace('models = ["offline"]', 'models = ["offline", "openai:gpt"]')


@pytest.mark.parametrize("text", first_of([JUDGED, ASKED], 1), ids=["a judge", "a model"])
@pytest.mark.parametrize("dotenv", ["", "OTHER=1\n", "no line of a .env"])
def test_the_keys_of_models_that_are_never_asked_are_in_no_history(tmp_path: Path, text: str, dotenv: str) -> None:
    suite, file = tmp_path / "weather.toml", tmp_path / "history.sqlite3"
    (tmp_path / ".env").write_text(dotenv, encoding="utf-8")
    suite.write_text(text.replace("city of Paris?", f"city of Paris {KEY}?"), encoding="utf-8")
    program = program_of(tmp_path, {"OPENAI_API_KEY": KEY})
    run_all(plan_runs([load_suite(suite)]), program, file)
    kept = texts_in(file)
    assert any("city of Paris $OPENAI_API_KEY?" in text for text in kept)
    assert not [text for text in kept if KEY in text]
