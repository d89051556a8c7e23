"""The audit log. It records each real execution of a tool, before its start and after its end.

The first record is written before the tool is called, so that a crash cannot hide the call. If writing it fails, the
tool is not called."""

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

Allowed = Literal["read-only", "all", "asked", "exempt", "suite", "by hand"]
"""The reason why a tool may be executed. `suite` stands for an approved call of `setup` or `final`."""

Outcome = Literal["ok", "tool error", "server error", "stopped"]
"""The end of an execution. `stopped` means that the run ended before the answer came."""

MAX_ARGUMENTS_CHARS = 4_000
"""The maximum number of characters of arguments as JSON. Of longer arguments, only the beginning is logged, as text."""

MAX_TEXT_CHARS = 400
"""The maximum number of characters of other texts. Longer texts are cut."""

_logger = logging.getLogger(__name__)


class AuditError(ToolsError):
    """Raised if the audit log cannot be written. Nothing is executed then. The message names the file."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a tool: the suite's file and, for a call of a run, the run's case, model and id."""

    suite: str
    case: str | None = None
    model: str | None = None
    run: str | None = None


class AuditLog:
    """The audit log: a file of JSON lines that only its owner may read.

    `now` returns the time with its zone, and `new_id` returns an id for an execution. Several threads may use the
    object at once, and several programs may write the file at once."""

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
        """Log that a tool is about to be executed. Return the execution, so that the caller can log its end.

        Raises AuditError if the log cannot be written."""
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

    def end(self, details: dict[str, JsonValue], outcome: Outcome, duration_ms: float) -> None:
        # The tool has been executed and its start is logged. If its end cannot be logged, the run goes on.
        try:
            self._append({**details, "event": "ended", "outcome": outcome, "duration_ms": round(duration_ms, 3)})
        except OSError:
            _logger.exception("the end of execution %s is not in the audit log", details["execution"])

    def _append(self, record: dict[str, JsonValue]) -> None:
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, mode=0o600)
        try:
            # Each line is appended by one write, so that lines of several programs do not mix.
            line = json_text(record).encode() + b"\n"
            if os.write(descriptor, line) < len(line):
                raise OSError(f"only a part of a line of {len(line)} bytes was written")
        finally:
            os.close(descriptor)

    def _arguments(self, call: ToolCall) -> dict[str, JsonValue]:
        # Redaction comes before cutting, because half of a secret would not be recognised.
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
    """An execution of a tool whose start is in the audit log."""

    _log: AuditLog
    _about: dict[str, JsonValue]

    def end(self, outcome: Outcome, duration_ms: float) -> None:
        """Log the end of the execution and its duration in milliseconds."""
        self._log.end(self._about, outcome, duration_ms)


@dataclass(frozen=True)
class Audit:
    """The audit log for one run, with the caller that its lines name."""

    log: AuditLog
    caller: Caller
