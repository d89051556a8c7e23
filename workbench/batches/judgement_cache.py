"""What judges said of which values, remembered from run to run in one file of the user's, so that nobody pays twice.

Each line is a JSON object; the file may be deleted at any time.
"""

from __future__ import annotations

import logging
import os
import threading
from pathlib import Path

from workbench.config.models import ModelSpec
from workbench.config.secrets import Secrets
from workbench.engine.judging import PROMPT
from workbench.trajectory.json_text import json_text
from workbench.trajectory.typed_json import parsed_json

_logger = logging.getLogger(__name__)

_Key = tuple[str, str, str]


class JudgementCache:
    """Judgements by model, criteria and value. A model is known by where and how it is asked, not by the name that
    somebody gave it.

    With `anew`, nothing that was remembered before is used. What cannot be read or written is logged and does no harm.
    To be used from any thread and from several programs at once: each line is written by one system call.
    """

    def __init__(self, file: Path, secrets: Secrets, *, anew: bool = False) -> None:
        self._file = file
        self._secrets = secrets
        self._reads = not anew
        self._read_bytes = 0
        self._known: dict[_Key, tuple[bool, str]] = {}
        self._lock = threading.Lock()

    def find(self, judge: ModelSpec, criteria: str, value: str) -> tuple[bool, str] | None:
        """Whether the value meets the criteria, and the rationale; `None` where that is not known."""
        key = self._key(judge, criteria, value)
        with self._lock:
            if key not in self._known and self._reads:
                self._read_on()
            return self._known.get(key)

    def keep(self, judge: ModelSpec, criteria: str, value: str, holds: bool, rationale: str) -> None:
        """Remember a judgement."""
        key = self._key(judge, criteria, value)
        rationale = self._secrets.redact(rationale)
        line = {**dict(zip(_KEY_NAMES, key, strict=True)), "holds": holds, "rationale": rationale, "prompt": PROMPT}
        with self._lock:
            self._known[key] = (holds, rationale)
            try:
                self._append(json_text(line).encode() + b"\n")
            except (OSError, ValueError) as error:
                _logger.warning("a judgement is not remembered in %s: %s", self._file, error)

    def _key(self, judge: ModelSpec, criteria: str, value: str) -> _Key:
        params = f" with {json_text(dict(sorted(judge.params.items())))}" if judge.params else ""
        asked = f"{judge.provider}:{judge.model}@{judge.base_url}{params}"
        redact = self._secrets.redact
        return redact(asked), redact(criteria), redact(value)

    def _append(self, line: bytes) -> None:
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, mode=0o600)
        try:
            if os.write(descriptor, line) < len(line):
                raise OSError(f"only a part of a line of {len(line)} bytes was written")
        finally:
            os.close(descriptor)

    def _read_on(self) -> None:
        """Take in the whole lines that came since the file was last read."""
        try:
            size = self._file.stat().st_size
            if size == self._read_bytes:
                return
            if size < self._read_bytes:  # deleted meanwhile, and begun anew
                self._read_bytes = 0
            with self._file.open("rb") as file:
                file.seek(self._read_bytes)
                lines = file.read().splitlines(keepends=True)
        except FileNotFoundError:
            return
        except OSError as error:
            _logger.warning("no judgements are remembered: %s cannot be read: %s", self._file, error.strerror)
            return
        if lines and not lines[-1].endswith(b"\n"):
            del lines[-1]
        self._read_bytes += sum(map(len, lines))
        unreadable = sum(not self._take(line) for line in lines)
        if unreadable:
            _logger.warning("%d lines of %s are no judgements and were passed over", unreadable, self._file)

    def _take(self, line: bytes) -> bool:
        """Whether the line is a judgement; one of another prompt is, and is not used."""
        try:
            match parsed_json(line.decode("utf-8")):
                case {
                    "judge": str(judge),
                    "criteria": str(criteria),
                    "value": str(value),
                    "holds": bool(holds),
                    "rationale": str(rationale),
                    "prompt": int(prompt),
                }:
                    if prompt == PROMPT:
                        self._known[judge, criteria, value] = (holds, rationale)
                    return True
                case _:
                    return False
        except ValueError:
            return False


_KEY_NAMES = ("judge", "criteria", "value")
