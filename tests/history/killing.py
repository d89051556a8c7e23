"""Forks programs that run a batch, and kills them: `python -m tests.history.killing FOLDER KILLS IN_THE_MIDST SEED`.

Continues until there were KILLS kills, IN_THE_MIDST of them in a half-stored batch, and prints its findings as JSON. It
imports everything before it forks, so that a hundred kills cost little more than the runs themselves."""

from __future__ import annotations

import json
import os
import queue
import random
import select
import shutil
import signal
import sqlite3
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.history.batches import HEAD
from tests.programs import program_of
from workbench.dataclasses import compact_json
from workbench.engine.events import BatchDone, BatchEvent, HistoryProblem
from workbench.engine.missing_runs import resumable
from workbench.engine.plan import plan_runs
from workbench.evaluation.approval import needs_of_plan
from workbench.evaluation.plan import Plan
from workbench.evaluation.resume import plan_of
from workbench.evaluation.runtime import Runtime
from workbench.history import writer
from workbench.history.claims import is_claimed
from workbench.history.history import History
from workbench.suite.suite_file import load_suite
from workbench.trajectory.recording import Recording

MOCKS = """\
[[mocks]]
tool = "get_weather"
result = "Rain in {city}"
delay_ms = 40
"""
GATHER_TIME_S = 0.05
"""The time in seconds in which runs are gathered for one commit, a tenth of the program's own. The batch takes several
times as long, so most kills find it half stored."""
CASES = "".join(
    f"""
[[cases]]
name = "{city}"
user = "What is the weather in the city of {city}? Call get_weather."
ordered = [{{ tool = "get_weather", args = {{ city = "{wanted}" }} }}]
"""
    for city, wanted in [
        ("Paris", "Paris"),
        ("Rome", "Rome"),
        ("Berlin", "Oslo"),
        ("Oslo", "Oslo"),
        ("Madrid", "Madrid"),
        ("Lima", "Quito"),
    ]
)
REPEATS = 3


class Program:
    """A batch of the suite in a folder, which the caller starts or resumes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.suite = folder / "weather.toml"
        self.suite.write_text(f"{HEAD}\n{MOCKS}{CASES}", encoding="utf-8")

    def go_on(self, file: Path) -> None:
        """Start or resume the batch. Raises AssertionError if the history is damaged."""
        program = program_of(self.folder)
        plan = Plan.of(plan_runs([load_suite(self.suite)], repeats=REPEATS), program, concurrency=2)
        with History(file) as history:
            for batch in history.batches():
                if not batch.missing:
                    return
                resumed = plan_of(resumable(history, batch, program), program, lambda _file: False)
                plan = replace(resumed, concurrency=2)
        said: queue.SimpleQueue[BatchEvent] = queue.SimpleQueue()
        with closing(Runtime(said.put, program, history=file)) as session:
            session.start(plan, needs_of_plan(plan).approved())
            while not isinstance(event := said.get(timeout=20), BatchDone):
                assert not isinstance(event, HistoryProblem), event
        while not said.empty():
            assert not isinstance(event := said.get(), HistoryProblem), event


def forked(program: Program, file: Path, killed_after_s: float | None) -> bool:
    """Continue the batch in a forked program, and kill the program after a while. Return whether it was killed before
    the end."""
    ended, lives = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            program.go_on(file)
            code = 0
        finally:
            sys.stderr.flush()
            if code:
                sys.excepthook(*sys.exc_info())
            os._exit(code)
    os.close(lives)
    if killed_after_s is not None:
        select.select([ended], [], [], killed_after_s)  # until it is done, or its time is over
        os.kill(pid, signal.SIGKILL)
    os.close(ended)
    _, status = os.waitpid(pid, 0)
    was_killed = os.WIFSIGNALED(status)
    assert was_killed or os.WEXITSTATUS(status) == 0, "a program failed"
    return was_killed


def content_of(file: Path) -> list[Any]:
    """Return the content of a history's batches without times and row numbers."""
    with History(file) as history:
        return [
            [
                *(batch.kind, batch.planned, batch.models, batch.settings, batch.missing),
                [
                    (part.suite.path, part.suite.hash, part.model, part.planned, part.cases, dict(part.counts))
                    for part in batch.parts
                ],
                [
                    (
                        *(run.place, run.case_id, run.case_name, run.model, run.model_of_suite, run.repeat, run.by),
                        run.figures
                        and replace(run.figures, latency_ms=0, loop_ms=0, first_token_ms=0, began_ms=0, ended_ms=0),
                        _without_times(history.recording(run)) if run.figures else None,
                    )
                    for run in history.runs(batch.number)
                ],
            ]
            for batch in history.batches()
        ]


def _without_times(recording: Recording) -> Any:
    """Return the answers, calls, results and grades of a recording."""
    times = {"run_id", "first_token_ms", "latency_ms", "loop_ms", "duration_ms"}

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: plain(item) for name, item in value.items() if name not in times}
        return [plain(item) for item in value] if isinstance(value, list) else value

    return plain([recording.result, json.loads(compact_json(recording.trajectory))])


def is_whole(file: Path, copies: Path) -> bool:
    """Return whether SQLite finds no damage in a copy. The copy leaves recovery to the program."""
    shutil.rmtree(copies, ignore_errors=True)
    copies.mkdir()
    for name in (file.name, f"{file.name}-wal"):
        if (file.parent / name).exists():
            shutil.copy(file.parent / name, copies)
    if not (copies / file.name).exists():
        return True
    with closing(sqlite3.connect(copies / file.name)) as connection:
        return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def main() -> None:
    writer.GATHER_TIME_S = GATHER_TIME_S
    folder = Path(sys.argv[1])
    kills, in_the_midst, seed = map(int, sys.argv[2:])
    chance = random.Random(seed)
    program = Program(folder)
    undisturbed = folder / "undisturbed.sqlite3"
    program.go_on(undisturbed)  # everything is imported
    began = time.monotonic()
    program.go_on(folder / "timed.sqlite3")
    duration_s = time.monotonic() - began
    wanted = content_of(undisturbed)
    found = {"kills": 0, "histories": 0, "in the midst": 0, "differing": 0, "not whole": 0, "still claimed": 0}
    while found["kills"] < kills or found["in the midst"] < in_the_midst:
        file = folder / f"history-{found['histories']}.sqlite3"
        for _ in range(chance.randint(1, 4)):
            if not forked(program, file, chance.uniform(0, duration_s)):
                continue
            found["kills"] += 1
            found["not whole"] += not is_whole(file, folder / "copies")
            found["still claimed"] += is_claimed(file, 1)
            with History(file) as history:
                found["in the midst"] += any(0 < batch.missing < batch.planned for batch in history.batches())
        forked(program, file, None)
        found["histories"] += 1
        found["differing"] += content_of(file) != wanted
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
