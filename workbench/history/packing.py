"""What a history keeps of suites and runs, packed small: texts and JSON under zlib."""

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
"""The longest text that is kept, and read: a thousand times what happens in a long run. A megabyte of zlib can say a
gigabyte."""
_DEFAULTS = Grading()


def packed(text: str) -> bytes:
    """A text, small; lone surrogates too. Raises ValueError when it is too long."""
    return packed_pieces((text,))


def packed_pieces(pieces: Iterable[str]) -> bytes:
    """A text that comes in pieces, which are never in memory all at once; as `packed`."""
    packing, length, done = zlib.compressobj(_LEVEL), 0, bytearray()
    for piece in pieces:
        data = piece.encode("utf-8", "surrogatepass")
        length += len(data)
        if length > LARGEST_BYTES:
            raise ValueError(f"a text is longer than {LARGEST_BYTES >> 20} MB")
        done += packing.compress(data)
    return bytes(done + packing.flush())


def unpacked(data: bytes) -> str:
    """The text that was packed; raises ValueError when it is none."""
    unpacking = zlib.decompressobj()
    try:
        text = unpacking.decompress(data, LARGEST_BYTES + 1)
    except zlib.error as error:
        raise ValueError(f"cannot be unpacked: {error}") from error
    if not unpacking.eof or len(text) > LARGEST_BYTES:
        raise ValueError(f"cannot be unpacked: it is cut off, or longer than {LARGEST_BYTES >> 20} MB")
    return text.decode("utf-8", "surrogatepass")


def packed_events(events: Iterable[Event]) -> bytes:
    """The events of a run; raises TypeError, ValueError or RecursionError when they hold what JSON cannot say."""
    lines = map(event_to_line, events)
    return packed_pieces(line if number == 0 else f"\n{line}" for number, line in enumerate(lines))


def unpacked_events(data: bytes) -> list[Event]:
    """The events of a run; raises ValueError."""
    text = unpacked(data)
    return [event_from_line(line) for line in text.split("\n")] if text else []


def packed_outcome(result: RunResult) -> bytes:
    """Status, grades and so on; raises as `packed_events`."""
    return packed_pieces(outcome_pieces(outcome_of(result)))


def unpacked_outcome(data: bytes) -> dict[str, Any]:
    """The JSON of an outcome; raises ValueError."""
    outcome = parsed_json(unpacked(data))
    if not isinstance(outcome, dict):
        raise ValueError("must be an object")
    return outcome


def packed_blocks(blocks: Blocks) -> bytes:
    """Where the cases of a suite stand."""
    return packed(compact_json(blocks))


def unpacked_blocks(data: bytes) -> Blocks:
    """Where the cases of a suite stand; raises ValueError."""
    return tuple((case, first, end) for case, first, end in parsed_json(unpacked(data)))


def grading_text(grading: Grading) -> str | None:
    """What a run was graded by as JSON, `None` for the defaults."""
    return None if grading == _DEFAULTS else grading.model_dump_json(exclude_defaults=True)


def grading_from(text: str | None) -> Grading:
    """What a run was graded by; raises ValueError."""
    return _DEFAULTS if text is None else Grading.model_validate_json(text)
