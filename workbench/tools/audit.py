"""The audit log: every real execution of a tool, logged before it happens and again when it is over.

The first line of an execution is given to the system before the tool is called, so that a crash cannot hide the call.
Where it cannot be written, the tool is not called.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from uuid import uuid4

from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass, json_text
from workbench.tools.answer import ToolsError
from workbench.trajectory.events import JsonValue, ToolCall

Allowed = Literal["read-only", "all", "asked", "exempt", "by hand"]
"""Why a tool may be executed."""

Outcome = Literal["ok", "tool error", "server error", "stopped"]
"""How an execution ended; `stopped`: its answer was no longer awaited."""

MAX_ARGUMENTS_CHARS = 4_000
"""Arguments whose JSON is longer are logged as the beginning of that text."""

MAX_TEXT_CHARS = 400
"""Every other text is cut to this length."""

_logger = logging.getLogger(__name__)


class AuditError(ToolsError):
    """The audit log cannot be written, so nothing is executed.

    The message names the file."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The origin of an execution: the suite's file and, unless it is done by hand, the case, the model and the run."""

    suite: str
    case: str | None = None
    model: str | None = None
    run: str | None = None


class AuditLog:
    """Appends to one file of JSON lines that only its owner may read.

    `now` returns the time of day with its zone, `new_id` an id for an execution. Usable from any thread and from
    several programs at once: each line is written by one system call.
    """

    def __init__(
        self,
        file: Path,
        secrets: Secrets,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        new_id: Callable[[], str] = lambda: uuid4().hex[:16],
    ) -> None:
        self._file = file
        self._secrets = secrets
        self._now = now
        self._new_id = new_id

    def begin(self, caller: Caller, call: ToolCall, server: str, allowed: Allowed) -> AuditedExecution:
        """Log that a tool is about to be executed.

        Raises AuditError when that cannot be written."""
        about: dict[str, JsonValue] = {
            "event": "started",
            "execution": self._new_id(),
            "time": self._now().isoformat(timespec="milliseconds"),
            **{name: self._cut(value) for name, value in asdict(caller).items()},
            "server": self._cut(server),
            "tool": self._cut(call.tool),
            **self._arguments(call),
            "allowed": allowed,
        }
        try:
            self._append(about)
        except OSError as error:
            raise AuditError(
                f"{call.tool} was not executed: the audit log {self._file} cannot be written"
                f" ({error.strerror or error}); make it writable, or mock the tool"
            ) from error
        return AuditedExecution(self, about)

    def end(self, about: dict[str, JsonValue], outcome: Outcome, duration_ms: float) -> None:
        """Log how an execution ended.

        Since it has happened and its start is logged, a failure to write only goes to the program's log."""
        try:
            self._append({**about, "event": "ended", "outcome": outcome, "duration_ms": round(duration_ms, 3)})
        except OSError:
            _logger.exception("the end of execution %s is not in the audit log", about["execution"])

    def _append(self, record: dict[str, JsonValue]) -> None:
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, mode=0o600)
        try:
            line = json_text(record).encode() + b"\n"
            if os.write(descriptor, line) < len(line):
                raise OSError(f"only a part of a line of {len(line)} bytes was written")
        finally:
            os.close(descriptor)

    def _arguments(self, call: ToolCall) -> dict[str, JsonValue]:
        arguments = self._secrets.redacted(dict(call.arguments))
        text = json.dumps(arguments, ensure_ascii=False)
        if len(text) <= MAX_ARGUMENTS_CHARS:
            return {"arguments": arguments}
        return {"arguments": None, "arguments_text": text[:MAX_ARGUMENTS_CHARS]}

    def _cut(self, text: str | None) -> str | None:
        if text is None:
            return None
        return self._secrets.redact(text)[:MAX_TEXT_CHARS]


@dataclass(frozen=True, slots=True)
class AuditedExecution:
    """An execution whose start is logged."""

    _log: AuditLog
    _about: dict[str, JsonValue]

    def end(self, outcome: Outcome, duration_ms: float) -> None:
        """Log how it ended and its duration in milliseconds."""
        self._log.end(self._about, outcome, duration_ms)
