"""Keeps conversations on the disk while they go on, so that nothing is lost with the program: a file of JSON lines, one
for each request that was answered, without secrets. It is removed when suite and recordings are written; one that was
left behind is read back.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from workbench.config.models import Provider
from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass
from workbench.importing.bounds import RefusedError
from workbench.importing.conversations import Conversation
from workbench.importing.imported import Note
from workbench.importing.importing import learn_keys
from workbench.importing.messages import conversation_of
from workbench.importing.reading import Node
from workbench.observing.conversations import ObservedConversation, Step
from workbench.observing.wires import Answer, AnswerReading
from workbench.trajectory.messages import JsonValue
from workbench.trajectory.typed_json import compact_json, parsed_json, reader_of

SUFFIX = ".kept.jsonl"
"""What the name of the suite, or of the folder of recordings, is followed by."""


@dataclass(frozen=True)
class _Kept:
    """A request with its answer. The first `same` messages are those of the conversation's request before, and `head`
    is `None` where it is that of the request before. Times in seconds since 1970."""

    conversation: int
    wire: Provider
    started_at: str
    same: int
    messages: tuple[JsonValue, ...]
    head: Mapping[str, JsonValue] | None
    answer: Answer
    began_s: float
    ended_s: float
    notes: tuple[str, ...] = ()


_READ = reader_of(_Kept)


class Keeper:
    """Writes each step down when it has ended. What goes wrong with the file is told once, and written down with the
    next step that can be. To be used on one thread."""

    def __init__(self, path: Path, secrets: Secrets, complain: Callable[[str], object]) -> None:
        self.path = path
        self._secrets = secrets
        self._complain = complain
        self._file: int | None = None
        self._good = 0
        """How many bytes of the file are whole lines."""
        self._waiting: list[bytes] = []
        self._before: dict[int, Step] = {}
        self._is_broken = False

    def check(self) -> None:
        """Raises RefusedError where an earlier recording left its file."""
        if self.path.exists():
            raise RefusedError(
                f"{self.path} holds what a recording that was broken off has kept: make a suite of it with"
                f" `workbench record --kept {self.path} --suite NEW.toml`, or remove it"
            )

    def ended(self, conversation: ObservedConversation, step: Step) -> None:
        """A step has its answer."""
        assert step.answer is not None
        before = self._before.get(conversation.number)
        self._before[conversation.number] = step
        earlier = before.messages if before is not None else []
        pairs = zip(step.messages, earlier, strict=False)
        same = next(
            (at for at, (one, other) in enumerate(pairs) if one != other), min(len(step.messages), len(earlier))
        )
        kept = _Kept(
            conversation.number,
            conversation.wire,
            conversation.started_at,
            same,
            tuple(step.messages[same:]),
            None if before is not None and before.head == step.head else step.head,
            step.answer,
            step.began_s,
            step.ended_s,
            tuple(note.why for note in step.notes),
        )
        try:
            learn_keys([list(kept.messages), step.head, step.answer.message], "RECORDED_KEY", self._secrets)
            self._waiting.append(compact_json(self._secrets.redacted(kept)).encode() + b"\n")
            self._write()
        except (OSError, ValueError, TypeError, RecursionError) as error:
            if not self._is_broken:
                why = error.strerror if isinstance(error, OSError) else error
                self._complain(f"{self.path} cannot be written, so what is recorded is in memory only: {why}")
            self._is_broken = True
        else:
            self._is_broken = False

    def remove(self) -> None:
        """All is written elsewhere."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
            self.path.unlink(missing_ok=True)

    def rest(self) -> str:
        """What to do after the end, if something is kept; else empty."""
        if self._file is None or not self._good:
            return ""
        return f"; what was recorded is kept in {self.path}: workbench record --kept {self.path} --suite NEW.toml"

    def _write(self) -> None:
        if self._file is None:
            self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        text = b"".join(self._waiting)
        os.ftruncate(self._file, self._good)  # a line that was broken off begins anew
        written = 0
        while written < len(text):
            written += os.pwrite(self._file, text[written:], self._good + written)
        self._good += len(text)
        self._waiting.clear()


def read_kept(path: Path, secrets: Secrets) -> list[ObservedConversation]:
    """Returns the conversations that a recording has kept; a last line that was broken off is left out. Raises
    RefusedError."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise RefusedError(f"{path} cannot be read: {error.strerror}") from error
    found: dict[int, ObservedConversation] = {}
    for number, line in enumerate(lines[:-1], 1):
        try:
            kept: _Kept = _READ(parsed_json(line.decode("utf-8")))
            conversation = found.setdefault(
                kept.conversation, ObservedConversation(len(found) + 1, kept.wire, kept.started_at)
            )
            conversation.steps.append(_step(kept, conversation, secrets))
        except (ValueError, IndexError, RefusedError) as error:
            raise RefusedError(f"{path}, line {number}: this was not kept by `workbench record`: {error}") from error
    return list(found.values())


def _step(kept: _Kept, conversation: ObservedConversation, secrets: Secrets) -> Step:
    before = conversation.steps[-1] if conversation.steps else None
    messages = [*(before.messages[: kept.same] if before is not None else []), *kept.messages]
    head = dict(kept.head) if kept.head is not None else conversation.steps[-1].head
    read: Conversation = conversation_of(Node({**head, "messages": messages}, conversation.place))
    return Step(
        messages,
        head,
        read,
        [],
        AnswerReading(kept.wire, read.model, "", (), secrets),
        kept.began_s,
        tuple(Note(conversation.place, why) for why in kept.notes),
        kept.answer,
        ended_s=kept.ended_s,
    )
