"""Keeps the answers of models that play users in a file, so that an identical rerun need not pay for them again."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from workbench.config.models import ModelSpec
from workbench.config.secrets import Secrets
from workbench.dataclasses import json_text, parsed_json, reader_of
from workbench.engine.line_file import append_line

_logger = logging.getLogger(__name__)

StoredAnswer = Mapping[str, str | None]
"""The stored fields of an answer."""


class PlayerCache:
    """Stores the answers of players, which are found by model, parameters, prompt, facts, conversation and repeat.

    Each line of the file is a JSON object with a digest of these values. The file may be deleted at any time. Answers
    to questions that contain a secret are kept only in memory."""

    def __init__(self, file: Path, secrets: Secrets) -> None:
        self._file = file
        self._secrets = secrets
        self._known: dict[str, StoredAnswer] | None = None
        self._lock = threading.Lock()

    def key(self, spec: ModelSpec, version: int, system: str, question: str, repeat: int | None) -> str:
        """Return a digest of everything that determines an answer.

        `repeat` is `None` if all repeats of a case share the user's answers."""
        # The user may give another model the same name, so the key includes the address and the parameters.
        model = [spec.provider, spec.model, spec.endpoint, dict(sorted(spec.params.items()))]
        asked = json_text([model, version, system, question, repeat])
        return hashlib.sha256(asked.encode(errors="surrogatepass")).hexdigest()

    def find(self, key: str) -> StoredAnswer | None:
        """Return a stored answer; `None` if there is none."""
        with self._lock:
            if self._known is None:
                self._known = self._read()
            return self._known.get(key)

    def store(self, key: str, answer: StoredAnswer, question: str) -> None:
        """Store an answer. `question` is the prompt that the player received."""
        with self._lock:
            assert self._known is not None, "an answer is looked up before it is asked for"
            self._known[key] = answer
            written = [question, *filter(None, answer.values())]
            if any(self._secrets.redact(text) is not text for text in written):
                return
            try:
                append_line(self._file, json_text({"key": key, "answer": dict(answer)}).encode() + b"\n")
            except (OSError, ValueError) as error:
                _logger.warning("an answer of the user's model is not kept in %s: %s", self._file, error)

    def _read(self) -> dict[str, StoredAnswer]:
        known: dict[str, StoredAnswer] = {}
        try:
            lines = self._file.read_bytes().split(b"\n")
        except FileNotFoundError:
            return known
        except OSError as error:
            _logger.warning("no answers of users are kept: %s cannot be read: %s", self._file, error.strerror)
            return known
        for line in lines:
            try:
                read = reader_of(_Line)(parsed_json(line.decode("utf-8")))
            except ValueError:
                continue  # empty, or still being written by another program
            known[read.key] = read.answer
        return known


class _Line(NamedTuple):
    key: str
    answer: Mapping[str, str | None]
