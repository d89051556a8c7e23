"""The audit log: a JSON line before and after each execution, readable by its owner only, without secrets."""

from __future__ import annotations

import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trajectory.scripts import json_values
from workbench.config.secrets import Secrets
from workbench.tools.audit import MAX_ARGUMENTS_CHARS, AuditError, AuditLog, Caller
from workbench.trajectory.events import JsonValue, ToolCall

CALLER = Caller("/suites/mail.toml", "mail", "offline", "run-7")


def secrets(**values: str) -> Secrets:
    kept = Secrets()
    for name, value in values.items():
        kept.add(name, value)
    return kept


def log_in(folder: Path, known: Secrets | None = None) -> AuditLog:
    return AuditLog(
        folder / "state" / "executions.jsonl",
        known or Secrets(),
        now=lambda: datetime(2026, 1, 2, 3, 4, 5, 678_000, UTC),
        new_id=lambda: "id-1",
    )


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "state" / "executions.jsonl").read_text().rstrip("\n").split("\n")]


def call(**arguments: JsonValue) -> ToolCall:
    return ToolCall("c1", "send_email", arguments)


def test_an_execution_is_two_lines_that_tell_everything(tmp_path: Path) -> None:
    log_in(tmp_path).begin(CALLER, call(to="Ann"), "office", "asked").end("tool error", 12.34567)
    about = {
        "execution": "id-1",
        "time": "2026-01-02T03:04:05.678+00:00",
        "suite": "/suites/mail.toml",
        "case": "mail",
        "model": "offline",
        "run": "run-7",
        "server": "office",
        "tool": "send_email",
        "arguments": {"to": "Ann"},
        "allowed": "asked",
    }
    assert lines(tmp_path) == [
        {"event": "started"} | about,
        {"event": "ended"} | about | {"outcome": "tool error", "duration_ms": 12.346},
    ]


def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    log_in(tmp_path).begin(CALLER, call(), "office", "all")
    file = tmp_path / "state" / "executions.jsonl"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_secrets_are_hidden_wherever_they_stand(tmp_path: Path) -> None:
    known = secrets(TOKEN='q"uo\\ted', PIN="90210777")
    arguments: dict[str, JsonValue] = {"a": ['x q"uo\\ted y'], 'q"uo\\ted': 90210777, "n": {"m": "90210777!"}}
    log_in(tmp_path, known).begin(CALLER, call(**arguments), 'on q"uo\\ted', "all").end("ok", 1)
    for line in lines(tmp_path):
        assert line["arguments"] == {"a": ["x $TOKEN y"], "$TOKEN": "$PIN", "n": {"m": "$PIN!"}}
        assert line["server"] == "on $TOKEN"


def test_a_line_is_of_bounded_length(tmp_path: Path) -> None:
    long = "x" * 1_000_000
    caller = Caller(long, long, long, long)
    log_in(tmp_path).begin(caller, ToolCall("c", long, {"body": long}), long, "all")
    (line,) = lines(tmp_path)
    assert line["arguments"] is None
    assert line["arguments_text"].startswith('{"body": "xxx')
    assert len(line["arguments_text"]) == MAX_ARGUMENTS_CHARS
    assert len(json.dumps(line)) < 10_000


@given(st.dictionaries(st.text(st.characters(), max_size=6), json_values, max_size=3))
def test_any_arguments_are_kept_as_they_are(tmp_path_factory: pytest.TempPathFactory, arguments: Any) -> None:
    folder = tmp_path_factory.mktemp("audit")
    log_in(folder).begin(CALLER, ToolCall("c", "t", arguments), "s", "all")
    assert lines(folder)[0]["arguments"] == arguments


def test_many_at_once_never_share_a_line(tmp_path: Path) -> None:
    logs = [log_in(tmp_path) for _ in range(8)]

    def write(number: int) -> None:
        logs[number % 8].begin(CALLER, call(number=number, body="x" * 3_000), "office", "all")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(200)))
    assert sorted(line["arguments"]["number"] for line in lines(tmp_path)) == list(range(200))


def test_a_log_that_cannot_be_written_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "state" / "executions.jsonl").mkdir(parents=True)
    with pytest.raises(AuditError, match=r"send_email was not executed: the audit log .*executions\.jsonl cannot be"):
        log_in(tmp_path).begin(CALLER, call(), "office", "all")


def test_an_end_that_cannot_be_written_is_no_error_because_the_beginning_is_there(tmp_path: Path) -> None:
    begun = log_in(tmp_path).begin(CALLER, call(), "office", "all")
    file = tmp_path / "state" / "executions.jsonl"
    os.rename(file, tmp_path / "kept")  # noqa: PTH104
    file.mkdir()
    begun.end("ok", 1)
    assert json.loads((tmp_path / "kept").read_text())["event"] == "started"
