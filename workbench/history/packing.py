"""Compresses what a history stores of suites and runs: texts and JSON with zlib."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

from workbench.grading.grade import RunResult
from workbench.grading.result_json import outcome_of, outcome_pieces
from workbench.suite.excerpt import Blocks
from workbench.suite.settings import Grading
from workbench.trajectory.event_lines import event_from_line, event_to_line
from workbench.trajectory.events import Event
from workbench.trajectory.typed_json import compact_json, parsed_json

_LEVEL = 6
LARGEST_BYTES = 64 << 20
"""The longest text that is stored and read: a thousand times the events of a long run. A megabyte of zlib can expand to
a gigabyte."""
_DEFAULTS = Grading()


def packed(text: str) -> bytes:
    """Returns a compressed text; lone surrogates are allowed. Raises ValueError when it is too long."""
    return packed_pieces((text,))


def packed_pieces(pieces: Iterable[str]) -> bytes:
    """Compress a text that comes in pieces, which are never in memory all at once; as `packed`."""
    packing, length, done = zlib.compressobj(_LEVEL), 0, bytearray()
    for piece in pieces:
        data = piece.encode("utf-8", "surrogatepass")
        length += len(data)
        if length > LARGEST_BYTES:
            raise ValueError(f"a text is longer than {LARGEST_BYTES >> 20} MB")
        done += packing.compress(data)
    return bytes(done + packing.flush())


def unpacked(data: bytes) -> str:
    """Returns the text that was packed. Raises ValueError when the bytes are not one."""
    unpacking = zlib.decompressobj()
    try:
        text = unpacking.decompress(data, LARGEST_BYTES + 1)
    except zlib.error as error:
        raise ValueError(f"cannot be unpacked: {error}") from error
    if not unpacking.eof or len(text) > LARGEST_BYTES:
        raise ValueError(f"cannot be unpacked: it is incomplete, or longer than {LARGEST_BYTES >> 20} MB")
    return text.decode("utf-8", "surrogatepass")


def packed_events(events: Iterable[Event]) -> bytes:
    """Returns the compressed events of a run. Raises TypeError, ValueError or RecursionError when they hold what JSON
    cannot express."""
    lines = map(event_to_line, events)
    return packed_pieces(line if number == 0 else f"\n{line}" for number, line in enumerate(lines))


def unpacked_events(data: bytes) -> list[Event]:
    """Returns the events of a run. Raises ValueError."""
    text = unpacked(data)
    return [event_from_line(line) for line in text.split("\n")] if text else []


def packed_outcome(result: RunResult) -> bytes:
    """Returns a compressed outcome. Raises as `packed_events`."""
    return packed_pieces(outcome_pieces(outcome_of(result)))


def unpacked_outcome(data: bytes) -> dict[str, Any]:
    """Returns the JSON of an outcome. Raises ValueError."""
    outcome = parsed_json(unpacked(data))
    if not isinstance(outcome, dict):
        raise ValueError("must be an object")
    return outcome


def packed_blocks(blocks: Blocks) -> bytes:
    """Returns the compressed places of a suite's cases."""
    return packed(compact_json(blocks))


def unpacked_blocks(data: bytes) -> Blocks:
    """Returns the places of a suite's cases. Raises ValueError."""
    return tuple((case, first, end) for case, first, end in parsed_json(unpacked(data)))


def grading_text(grading: Grading) -> str | None:
    """Returns the options of a run's grading as JSON, `None` for the defaults."""
    return None if grading == _DEFAULTS else grading.model_dump_json(exclude_defaults=True)


def grading_from(text: str | None) -> Grading:
    """Returns the options of a run's grading. Raises ValueError."""
    return _DEFAULTS if text is None else Grading.model_validate_json(text)
