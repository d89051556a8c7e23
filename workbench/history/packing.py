"""Compresses the texts of a history with zlib, and reads them again."""

from __future__ import annotations

import zlib
from dataclasses import asdict
from functools import cache
from typing import TYPE_CHECKING, Any

from workbench.grading.grade import RunResult
from workbench.grading.result_json import outcome_of, outcome_pieces
from workbench.limits import MAX_STORED_TEXT_BYTES
from workbench.suite.excerpt import Blocks
from workbench.suite.settings import Grading
from workbench.trajectory.event_lines import event_from_json
from workbench.trajectory.events import Event
from workbench.trajectory.typed_json import compact_json, parsed_json

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_LEVEL = 6
_BEGINNING = 1 << 12
_ABSENT = Grading(repeat_rule="last", invalid_arguments="ignore")
"""What keys mean that a stored run does not have: the rules by which the first version graded."""


class Packing:
    """Compresses a text that comes in pieces, which are never in memory all at once. `sample` is what such texts have
    in common; to read the text again, it is needed too."""

    def __init__(self, sample: bytes = b"") -> None:
        self._zlib = zlib.compressobj(_LEVEL, zdict=sample) if sample else zlib.compressobj(_LEVEL)
        self._length = 0
        self._done = bytearray()
        self.beginning = b""
        """The first bytes of the text."""

    def add(self, piece: str) -> None:
        """Add a piece, which may hold lone surrogates. Raises ValueError when the text gets too long."""
        data = piece.encode("utf-8", "surrogatepass")
        self._length += len(data)
        if self._length > MAX_STORED_TEXT_BYTES:
            raise ValueError(MAX_STORED_TEXT_BYTES.reached())
        self._done += self._zlib.compress(data)
        self.beginning = self.beginning or data[:_BEGINNING]

    def end(self) -> bytes:
        """Returns the compressed text."""
        return bytes(self._done + self._zlib.flush())


def packed(text: str) -> bytes:
    """Returns a compressed text; lone surrogates are allowed. Raises ValueError when it is too long."""
    packing = Packing()
    packing.add(text)
    return packing.end()


def unpacked(data: bytes, sample: bytes = b"") -> str:
    """Returns the text that was packed, with `sample` where it was packed with one. Raises ValueError when the bytes
    are not one."""
    return unpacked_bytes(data, sample).decode("utf-8", "surrogatepass")


def unpacked_bytes(data: bytes, sample: bytes = b"") -> bytes:
    """Returns the bytes that were packed. Raises ValueError as `unpacked`."""
    unpacking = zlib.decompressobj(zdict=sample) if sample else zlib.decompressobj()
    try:
        content = unpacking.decompress(data, MAX_STORED_TEXT_BYTES + 1)
    except zlib.error as error:
        raise ValueError(f"cannot be unpacked: {error}") from error
    if not unpacking.eof or len(content) > MAX_STORED_TEXT_BYTES:
        raise ValueError(f"cannot be unpacked: it is incomplete, or longer than {MAX_STORED_TEXT_BYTES >> 20} MiB")
    return content


def packed_outcome(result: RunResult) -> bytes:
    """Returns a compressed outcome. Raises TypeError, ValueError or RecursionError when it holds what JSON cannot
    express."""
    packing = Packing()
    for piece in outcome_pieces(outcome_of(result)):
        packing.add(piece)
    return packing.end()


def unpacked_outcome(data: bytes, sample: bytes = b"") -> dict[str, Any]:
    """Returns the JSON of an outcome. Raises ValueError."""
    outcome = parsed_json(unpacked(data, sample))
    if not isinstance(outcome, dict):
        raise ValueError("must be an object")
    return outcome


def unpacked_events(data: bytes, tools: str | None = None, sample: bytes = b"") -> list[Event]:
    """Returns the events of a run; `tools` are those of its first event, as JSON, where they are stored apart. Raises
    ValueError."""
    text = unpacked(data, sample)
    lines = list(map(parsed_json, text.split("\n"))) if text else []
    if tools is not None:
        lines[0]["tools"] = parsed_json(tools)
    return list(map(event_from_json, lines))


def packed_blocks(blocks: Blocks) -> bytes:
    """Returns the compressed places of a suite's cases."""
    return packed(compact_json(blocks))


def unpacked_blocks(data: bytes) -> Blocks:
    """Returns the places of a suite's cases. Raises ValueError."""
    return tuple((case, first, end) for case, first, end in parsed_json(unpacked(data)))


def grading_text(grading: Grading) -> str | None:
    """Return the options of a run's grading as JSON, `None` for those of the first version."""
    if grading == _ABSENT:
        return None
    absent, options = _plain(_ABSENT), _plain(grading)
    return compact_json({key: value for key, value in options.items() if value != absent[key]})


def grading_from(text: str | None) -> Grading:
    """Return the options of a run's grading. Raises ValueError."""
    if text is None:
        return _ABSENT
    written = parsed_json(text)
    if not isinstance(written, dict):
        raise ValueError("the options of grading must be an object")
    return _gradings().validate_json(compact_json({**_plain(_ABSENT), **written}), strict=True, extra="forbid")


def _plain(grading: Grading) -> dict[str, Any]:
    return asdict(grading)


@cache
def _gradings() -> TypeAdapter[Grading]:
    from pydantic import TypeAdapter  # on use: most runs are graded by the defaults

    return TypeAdapter(Grading)
