"""Durations come from monotonic clocks: a run during changes of the time of day, and a search of the sources."""

from __future__ import annotations

import ast
import datetime as standard
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

import workbench
from tests.api.conftest import CLOCK
from workbench.engine.events import BatchEvent, RunDone, steady_clock_ms
from workbench.history.history import History
from workbench.show.when import took_s

ROOT = Path(__file__).parents[1] / "workbench"

TIMESTAMPS = {
    "remote/batch_server.py": 1,
    "engine/recordings.py": 1,
    "cli/history_regrade.py": 1,
    "engine/events.py": 1,
    "engine/planned_run.py": 1,
    "evaluation/regrade.py": 1,
    "evaluation/run.py": 1,
    "history/database.py": 1,
    "exchange/importers/import_files.py": 1,
    "exchange/observed/conversations.py": 1,
    "exchange/observed/tee.py": 2,
    "tools/audit.py": 1,
    "tools/listings.py": 1,
    "tools/server_pool.py": 1,
    "tools/server_process.py": 1,
    "tui/comparison/batch_screen.py": 2,
    "tui/history/batch_work.py": 1,
    "tui/run_book/book.py": 1,
    "tui/tools/screen.py": 1,
}
"""The modules that read the time of day as a timestamp, with the number of places."""

OF_THE_TIME_OF_DAY = {
    "remote/records.py": 1,  # files that are older than a month
    "authoring/file_watch.py": 1,  # folders that changed so recently that a further change may not show
    "cli/history_list.py": 1,  # how long ago a batch began
    "cli/history_prune.py": 1,  # batches that are older than somebody says
    "cli/batches.py": 1,  # how long ago a batch began
    "evaluation/resume.py": 1,  # the same
    "providers/clouds/credentials.py": 1,  # when a token expires, as its cloud says
    "exchange/exporters/otlp.py": 1,  # dates in headers, where an answer has none of its own
    "providers/http/errors.py": 1,  # the same
    "providers/wire/messages.py": 1,  # when a container expires, as the API says
    "tools/oauth.py": 2,  # when tokens expire, which are kept between programs
    "tui/comparison/watched_batch.py": 2,  # at which time of day something began, or goes on
}
"""Where it is compared or computed with, because the other side is a time of day too, perhaps of another program."""


MAY_TAKE_IT = re.compile(r"\btime\.time|\.(now|utcnow|today)\b|from time import")
"""A filter by text, because parsing all modules takes seconds."""


def uses_of_wall_clocks(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield the places where a module reads the time of day, by `time`, `datetime` or names imported from `time`."""
    bare = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "time"
        for alias in node.names
        if alias.name in ("time", "time_ns")
    }
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="time"), attr="time" | "time_ns"):
                yield node
            case ast.Attribute(value=ast.Name(id="datetime" | "date"), attr="now" | "utcnow" | "today"):
                yield node
            case ast.Attribute(value=ast.Attribute(attr="datetime" | "date"), attr="now" | "utcnow" | "today"):
                yield node
            case ast.Call(func=ast.Name(id=name)) if name in bare:
                yield node


def test_the_time_of_day_is_taken_only_where_it_is_meant() -> None:
    found: Counter[str] = Counter()
    for file in sorted(ROOT.rglob("*.py")):
        source = file.read_text(encoding="utf-8")
        if not MAY_TAKE_IT.search(source):
            continue
        tree = ast.parse(source)
        uses = list(uses_of_wall_clocks(tree))
        name = file.relative_to(ROOT).as_posix()
        found[name] += len(uses)
        within = {
            id(each)
            for node in ast.walk(tree)
            if isinstance(node, ast.Compare) or (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub))
            for each in ast.walk(node)
        }
        computed = [use.lineno for use in uses if id(use) in within]
        assert not computed or name in (*OF_THE_TIME_OF_DAY, "engine/events.py"), (
            f"{name}:{computed}: durations and limits are measured by time.monotonic, which nobody sets"
        )
    assert +found == Counter(TIMESTAMPS) + Counter(OF_THE_TIME_OF_DAY), (
        "say in this test why the time of day is meant; durations and limits are measured by time.monotonic"
    )


@pytest.mark.parametrize("source", ["time.time() - began", "datetime.now(UTC)", "x.datetime.utcnow()", "time() - a"])
def test_the_look_finds_what_it_looks_for(source: str) -> None:
    assert len(list(uses_of_wall_clocks(ast.parse(f"from time import time\n{source}")))) == 1


HOUR_S = 3600.0


@pytest.fixture
def jumping(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the time of day jump by hours at each reading."""
    real, offsets = time.time, cycle((0.0, 5 * HOUR_S, -7 * HOUR_S))

    class Jumping(standard.datetime):
        @classmethod
        def now(cls, tz: standard.tzinfo | None = None) -> Any:
            return standard.datetime.fromtimestamp(time.time(), tz)

    monkeypatch.setattr(time, "time", lambda: real() + next(offsets))
    for name, module in list(sys.modules.items()):
        if name.startswith("workbench.") and vars(module).get("datetime") is standard.datetime:
            monkeypatch.setattr(module, "datetime", Jumping)


def test_durations_of_a_batch_are_sane_while_the_clock_jumps(tmp_path: Path, jumping: None) -> None:
    (tmp_path / "clock.toml").write_text(CLOCK)
    file = tmp_path / "history.sqlite"
    began_s = time.monotonic()
    events: list[BatchEvent] = []
    report = workbench.evaluate(
        tmp_path / "clock.toml", model="offline", repeats=3, history=file, on_event=events.append
    )
    longest_s = time.monotonic() - began_s
    assert len(report.runs) == 6
    for result in report.results:
        assert 0 <= result.trajectory.duration_ms / 1000 <= longest_s
    with History(file) as history:
        [batch] = history.each_batch()
        took = took_s(batch.started_at, batch.ended_at)
        assert took is not None and batch.ended_at is not None and batch.ended_at >= batch.started_at
        assert took <= longest_s
    done = [event for event in events if isinstance(event, RunDone)]
    assert len(done) == 6
    for each in done:
        assert each.began_ms is not None and each.ended_ms is not None
        assert 0 <= each.ended_ms - each.began_ms <= longest_s * 1000


def test_a_steady_clock_begins_with_the_time_of_day_and_does_not_jump(jumping: None) -> None:
    clock = steady_clock_ms()
    first = clock()
    assert abs(first / 1000 - standard.datetime.now(standard.UTC).timestamp()) < 8 * HOUR_S
    assert 0 <= clock() - first < 60_000
