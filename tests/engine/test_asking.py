"""Runs on a real server that ask for permission: they are held until the user answers or they are stopped."""

from __future__ import annotations

import json
import queue
import shutil
import sys
from pathlib import Path

import pytest

from tests.cli.forking import write_forked_python
from tests.programs import begin, folders_in, program_of
from workbench.config.folders import bundled
from workbench.engine.events import BatchDone, BatchEvent, PermissionRequested, RunDone
from workbench.engine.plan import PlannedRun, plan_runs
from workbench.evaluation.runtime import Runtime
from workbench.grading.grade import RunResult
from workbench.suite.suite_file import load_suite

SENDING = ["e-mail-with-given-words", "e-mail-only-the-subject-matters", "high-priority-task"]


def sending_runs(folder: Path) -> tuple[PlannedRun, ...]:
    for name in ("office.toml", "office_server.py"):
        shutil.copy(bundled("sample_suites") / name, folder / name)
    runs = plan_runs([load_suite(folder / "office.toml")], case_ids=SENDING)
    assert len(runs) == 3
    return runs


def test_a_yes_a_no_and_a_stop_each_end_their_own_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(write_forked_python(tmp_path / "python")))
    said: queue.SimpleQueue[BatchEvent] = queue.SimpleQueue()
    session = Runtime(said.put, program_of(tmp_path), asks=True)
    runs = sending_runs(tmp_path)
    results: dict[str, RunResult] = {}
    asked: dict[str, str] = {}
    try:
        begin(session, runs)
        while not isinstance(event := said.get(timeout=30), BatchDone):
            if isinstance(event, RunDone):
                results[event.result.run_id] = event.result
            if isinstance(event, PermissionRequested):
                asked[event.question.run_id] = event.question.call.id
                if len(asked) == 3:
                    allowed, refused, stopped = (run.run_id for run in runs)
                    session.allow(allowed, asked[allowed], "run")
                    session.allow(refused, asked[refused], "no")
                    session.stop(stopped)
                    session.allow(stopped, asked[stopped], "run")
    finally:
        session.close()
    assert [results[run.run_id].status for run in runs] == ["passed", "error", "stopped"]
    assert results[runs[1].run_id].error == "send_email of server 'office' was not allowed to execute"
    lines = [json.loads(line) for line in folders_in(tmp_path).audit_log.read_text().splitlines()]
    assert [(line["event"], line["run"], line["allowed"]) for line in lines] == [
        ("started", runs[0].run_id, "asked"),
        ("ended", runs[0].run_id, "asked"),
    ]
