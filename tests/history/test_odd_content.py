"""A history may come from another user: each value in its rows is either valid for its column or reported as
damaged."""

from __future__ import annotations

import copy
import json
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Program
from tests.history.batches import SUITE, run_kept
from tests.history.unpacking import store_alone
from tests.limits import lower
from tests.malformed_values import recording_lines, with_junk
from workbench.engine.recordings import result_of_recording
from workbench.grading.result_json import outcome_from_json
from workbench.history import packing
from workbench.history.edits import add_grading
from workbench.history.history import History
from workbench.history.records import HistoryError
from workbench.trajectory.fold import TrajectoryError, fold
from workbench.trajectory.recording import event_from_line

ESCAPE = "\x1b]0;taken over\x07\x1b[31m\x9b31m"
TABLES = ("suites", "batches", "parts", "runs", "details", "gradings", "regrades")


def nothing_said(said: str) -> None:
    raise AssertionError(said)


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """A history with one batch that was regraded once."""
    file = tmp_path / "history.sqlite3"
    run_kept(tmp_path, file)
    with History(file) as kept:
        run, *_ = kept.runs(1)
        assert run.figures is not None
        result = result_of_recording(kept.recording(run))
    add_grading(file, 1, "2030-01-01", "9", [(run.id, run.figures, result)], nothing_said)
    return file


def columns(file: Path) -> Iterator[tuple[str, str, str]]:
    with closing(sqlite3.connect(file)) as connection:
        for table in TABLES:
            for _, name, kind, *_ in connection.execute(f"PRAGMA table_info({table})"):
                yield table, name, kind


def written(file: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute(statement, values)
        connection.commit()


def all_read(file: Path) -> None:
    with History(file) as history:
        history.names()
        for number in [batch.number for batch in history.all_batches()]:
            batch = history.batch(f"#{number}")
            assert batch.pass_rate is None or 0 <= batch.pass_rate <= 1
            for grading in (None, *history.gradings(batch.number)):
                for run in history.runs(batch.number, grading):
                    if run.figures is not None:
                        history.recording(run, grading)
            for suite in batch.suites:
                history.suite_text(suite)


@pytest.mark.slow
def test_what_no_column_can_hold_is_damage_and_nothing_else(history: Path, tmp_path: Path) -> None:
    sound = history.read_bytes()
    deep = "[" * 100_000 + "]" * 100_000
    odd = [
        None,
        "x",
        "[]",
        "3",
        deep,
        "a\0b",
        b"\xff",
        b"\0",
        -1,
        1 << 62,
        1e300,
        float("inf"),
        zlib.compress(b"[[1]]"),
    ]
    said = set()
    for table, name, _ in columns(history):
        for value in odd:
            changed = tmp_path / "copy.sqlite3"
            changed.write_bytes(sound)
            try:
                written(changed, f"UPDATE {table} SET {name} = ?", value)
            except sqlite3.Error:
                continue  # the schema does not take it
            try:
                all_read(changed)
            except HistoryError as error:
                said.add((table, name))
                assert str(changed) in str(error) or "never finished" in str(error)
    assert {("batches", "settings"), ("runs", "score"), ("runs", "latency_ms"), ("suites", "path")} <= said


@pytest.mark.slow
@pytest.mark.parametrize("column", ["events", "outcome", "settings", "regrade"])
def test_what_no_packed_value_can_be_is_damage_and_nothing_else(history: Path, tmp_path: Path, column: str) -> None:
    _, *events, last = recording_lines()
    sound, outcome = history.read_bytes(), last["result"]
    of_all = {"events": events, "settings": SETTINGS}.get(column, outcome)
    statement = {
        "events": "UPDATE details SET events = ?, outcome = ?, tools = NULL, sample = NULL, block = NULL",
        "outcome": "UPDATE details SET events = ?, outcome = ?, tools = NULL, sample = NULL, block = NULL",
        "settings": "UPDATE batches SET settings = ?",
        "regrade": "UPDATE regrades SET outcome = ?",
    }[column]
    read = 0
    for number, (_, value) in enumerate(islice(with_junk(copy.deepcopy(of_all)), 0, None, 47)):
        of_events, of_outcome = (value, outcome) if column == "events" else (events, value)
        packed = [
            zlib.compress("\n".join(map(json.dumps, of_events)).encode()),
            zlib.compress(json.dumps(of_outcome).encode()),
        ]
        of_column: dict[str, list[object]] = {"settings": [json.dumps(value)], "regrade": [packed[1]]}
        values = of_column.get(column, [*packed])
        changed = tmp_path / f"{number}.sqlite3"
        changed.write_bytes(sound)
        written(changed, statement, *values)
        try:
            all_read(changed)
            read += 1
        except HistoryError as error:
            assert str(changed) in str(error)
    assert read


@pytest.mark.parametrize("column", ["events", "outcome"])
def test_what_would_fill_the_memory_is_not_unpacked(
    history: Path, column: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lower(monkeypatch, packing, "MAX_STORED_TEXT_BYTES", 1 << 20)
    written(history, f"UPDATE details SET {column} = ?, block = NULL", zlib.compress(b" " * ((1 << 20) + 1)))
    with History(history) as kept, pytest.raises(HistoryError, match="longer than 1 MiB"):
        kept.recording(kept.runs(1)[0])


def test_texts_up_to_the_longest_are_packed_and_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    lower(monkeypatch, packing, "MAX_STORED_TEXT_BYTES", 1 << 20)
    longest = "x" * (1 << 20)
    assert packing.decompress_text(packing.compress_text(longest)) == longest
    with pytest.raises(ValueError, match="longer than 1 MiB"):
        packing.compress_text(f"{longest}x")
    with pytest.raises(ValueError, match="incomplete"):
        packing.decompress_text(packing.compress_text("some text")[:-2])


@pytest.mark.parametrize(
    "kind", ["TRIGGER t AFTER UPDATE ON runs BEGIN DELETE FROM batches; END", "VIEW v AS SELECT 1"]
)
def test_a_history_that_does_things_by_itself_is_none(history: Path, kind: str) -> None:
    written(history, f"CREATE {kind}")
    with pytest.raises(HistoryError, match="has triggers or views, which a history cannot have"):
        History(history)


@pytest.mark.parametrize("link", [".workbench", ".workbench/history.sqlite3", ".workbench/history.sqlite3-claims"])
def test_what_comes_with_a_project_leads_nowhere_else(tmp_path: Path, link: str) -> None:
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    (project / ".git").mkdir(parents=True)
    target = elsewhere if link == ".workbench" else elsewhere / "file"
    elsewhere.mkdir()
    (project / link).parent.mkdir(exist_ok=True)
    (project / link).symlink_to(target)
    _, said = run_kept(project, project / ".workbench" / "history.sqlite3")
    assert list(elsewhere.iterdir()) == []
    assert any("link" in text for text in said)


def test_a_history_that_came_with_a_project_is_for_its_owner_only_once_it_is_written(history: Path) -> None:
    beside = history.parent / ".workbench" / "history.sqlite3"
    beside.parent.mkdir()
    beside.write_bytes(history.read_bytes())
    beside.chmod(0o644)
    run_kept(history.parent, beside)
    assert beside.stat().st_mode & 0o777 == 0o600


def test_a_batch_that_goes_on_shows_what_it_has_already_without_acting_on_it(program: Program, history: Path) -> None:
    store_alone(history)
    with closing(sqlite3.connect(history)) as connection, connection:
        _escapes_in_runs(connection)
        connection.execute("UPDATE runs SET reason = ?", (ESCAPE,))
        connection.execute("UPDATE runs SET status = NULL WHERE place = 1")
        connection.execute("DELETE FROM details WHERE run = (SELECT id FROM runs WHERE place = 1)")
        connection.execute("UPDATE parts SET failed = 0")
    for form in ("--verbose", "--quiet"):
        copy = history.with_name(f"{form}.sqlite3")
        copy.write_bytes(history.read_bytes())
        done = program.run("run", "--resume", "1", "--history", str(copy), form)
        shown = done.stdout + done.stderr
        assert "1 of 2 runs are missing" in shown or form == "--quiet"
        assert ("1 of 2 cases failed" if form == "--quiet" else "2 runs") in done.stdout and "Traceback" not in shown
        assert "\x1b" not in shown and "\x07" not in shown
        assert "␛" in shown or form == "--quiet"


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


def escaped(value: Any, is_sound: Callable[[Any], bool]) -> Any:
    """Return a JSON value with an escape sequence in place of each part, or after it, if the value stays valid."""
    holder = [copy.deepcopy(value)]

    def put_in(where: Any, key: Any) -> None:
        inner = where[key]
        if isinstance(inner, dict | list):
            for place in list(inner) if isinstance(inner, dict) else range(len(inner)):
                put_in(inner, place)
            return
        where[key] = f"{inner}{ESCAPE}" if isinstance(inner, str) else ESCAPE
        if not is_sound(holder[0]):
            where[key] = inner

    put_in(holder, 0)
    return holder[0]


def _is_read(read: Callable[[Any], object]) -> Callable[[Any], bool]:
    def is_sound(value: Any) -> bool:
        try:
            read(value)
        except (ValueError, LookupError, TypeError, TrajectoryError):
            return False
        return True

    return is_sound


def _escapes_in_runs(connection: sqlite3.Connection) -> None:
    """Put escape sequences into the events and results of runs, as far as they can then be read."""
    events_read = _is_read(lambda lines: fold([event_from_line(json.dumps(line)) for line in lines]))
    put = 0
    shared = {id_: zlib.decompress(text) for id_, text in connection.execute("SELECT id, text FROM shared")}
    for run, *parts, tools, sample in connection.execute(
        "SELECT run, events, outcome, tools, sample FROM details"
    ).fetchall():
        events, outcome = (zlib.decompressobj(zdict=shared.get(sample, b"")).decompress(part) for part in parts)
        lines = [json.loads(line) for line in events.splitlines()]
        lines[0]["tools"] = json.loads(shared[tools])
        lines = escaped(lines, events_read)
        came_to = escaped(json.loads(outcome), _is_read(outcome_from_json))
        texts = "\n".join(map(json.dumps, lines)), json.dumps(came_to)
        put += sum(text.count(json.dumps(ESCAPE)[1:-1]) for text in texts)
        packed = (zlib.compress(text.encode()) for text in texts)
        connection.execute(
            "UPDATE details SET events = ?, outcome = ?, tools = NULL, sample = NULL WHERE run = ?", (*packed, run)
        )
    assert put > 100
    for grading, run, outcome in connection.execute("SELECT grading, run, outcome FROM regrades").fetchall():
        came_to = escaped(json.loads(zlib.decompress(outcome)), _is_read(outcome_from_json))
        connection.execute(
            "UPDATE regrades SET outcome = ? WHERE grading = ? AND run = ?",
            (zlib.compress(json.dumps(came_to).encode()), grading, run),
        )


_REACHED = {
    "provider": "openai",
    "model": "m",
    "base_url": "http://localhost:1/v1",
    "params": {"temperature": 0.5, "stop": ["a"]},
    "price": {"input": 1.0, "output": 2.0},
    "origin": "workbench.toml",
    "problem": "no key",
}
SETTINGS = {
    "concurrency": 8,
    "execute": True,
    "execute_all": False,
    "models": {"offline": {"provider": "built in"}, "m": _REACHED},
    "judges": {"m": _REACHED},
    "compares": True,
}
"""With each setting that a batch can have."""


@pytest.mark.slow
def test_no_text_of_a_history_is_acted_on_by_a_terminal(program: Program, history: Path) -> None:
    program.write("weather.toml", SUITE)
    store_alone(history)
    with closing(sqlite3.connect(history)) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        _escapes_in_runs(connection)
        texts = [(table, name) for table, name, kind in columns(history) if kind == "TEXT"]
        for table, name in texts:
            if name in ("kind", "status", "settings", "options", "decided_by", "arguments"):
                continue  # our own words and JSON: others are damage
            connection.execute(f"UPDATE {table} SET {name} = {name} || ? WHERE {name} IS NOT NULL", (ESCAPE,))
        connection.execute("UPDATE batches SET name = ?", (ESCAPE,))
        connection.execute("UPDATE runs SET reason = ?", (ESCAPE,))
        settings = escaped(SETTINGS, lambda _: True)
        settings["models"][f"of another kind {ESCAPE}"] = ESCAPE
        connection.execute("UPDATE batches SET settings = ?", (json.dumps(settings),))
        (text,) = connection.execute("SELECT text FROM suites").fetchone()
        named = zlib.decompress(text).decode().replace("Paris", json.dumps(f"Paris{ESCAPE}")[1:-1])
        connection.execute("UPDATE suites SET text = ?, blocks = NULL", (zlib.compress(named.encode()),))
        connection.commit()
    commands = [
        ("list",),
        *(("show", "1", *more) for more in ((), ("--verbose",), ("--grading", "1"))),
        *(("show", "1", "--run", run, *more) for run in "12" for more in ((), ("--verbose",))),
        ("show", "1", "--case", f"paris{ESCAPE}"),
        *(("diff", "1", "1", *more) for more in ((), ("--format", "markdown"), ("--grading", "latest"))),
        ("regrade", "1"),
        ("regrade", "1", "--suite", "weather.toml"),
        ("prune", "--keep", "0", "--named"),
    ]
    for words in commands:
        done = program.run("history", *words, "--history", str(history))
        shown = done.stdout + done.stderr
        assert shown and "Traceback" not in shown, words
        assert "\x1b" not in shown and "\x07" not in shown, words
        assert "␛" in shown, words
