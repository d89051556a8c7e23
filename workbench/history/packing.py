"""Compresses the texts of a history with zlib, and reads them again."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from workbench.dataclasses import compact_json, dataclass, parsed_json
from workbench.grading.grade import RunResult
from workbench.grading.result_json import outcome_of, outcome_pieces
from workbench.grading.run_summary import RunSummary, summary_of
from workbench.grading.status import Status
from workbench.history.columns import stored
from workbench.history.records import DoneRun
from workbench.limits import MAX_STORED_TEXT_BYTES
from workbench.suite.settings import Grading
from workbench.suite.suite_file import Blocks
from workbench.trajectory.events import Event, RunStarted, ToolDefinition
from workbench.trajectory.recording import event_from_json, event_to_line

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_LEVEL = 6
_BEGINNING = 1 << 12
_ABSENT = Grading(repeat_rule="last", invalid_arguments="ignore")
"""The rules by which the first version graded: the meaning of keys that a stored run lacks."""


class Packing:
    """Compresses a text that comes in pieces, which are never in memory all at once.

    `sample` is a text that resembles it; reading needs the same sample."""

    def __init__(self, sample: bytes = b"") -> None:
        self._zlib = zlib.compressobj(_LEVEL, zdict=sample) if sample else zlib.compressobj(_LEVEL)
        self._length = 0
        self._done = bytearray()
        self.beginning = b""
        """The first bytes of the text."""

    def add(self, piece: str) -> None:
        """Add a piece, which may hold lone surrogates.

        Raises ValueError when the text gets too long."""
        data = piece.encode("utf-8", "surrogatepass")
        self._length += len(data)
        if self._length > MAX_STORED_TEXT_BYTES:
            raise ValueError(MAX_STORED_TEXT_BYTES.reached())
        self._done += self._zlib.compress(data)
        self.beginning = self.beginning or data[:_BEGINNING]

    def end(self) -> bytes:
        """Return the compressed text."""
        return bytes(self._done + self._zlib.flush())


def packed(text: str) -> bytes:
    """Return a compressed text; lone surrogates are allowed.

    Raises ValueError when it is too long."""
    packing = Packing()
    packing.add(text)
    return packing.end()


def unpacked(data: bytes, sample: bytes = b"") -> str:
    """Return the text that was packed, with `sample` where it was packed with one.

    Raises ValueError when the bytes are not one."""
    return unpacked_bytes(data, sample).decode("utf-8", "surrogatepass")


def unpacked_bytes(data: bytes, sample: bytes = b"") -> bytes:
    """Return the bytes that were packed.

    Raises ValueError as `unpacked`."""
    unpacking = zlib.decompressobj(zdict=sample) if sample else zlib.decompressobj()
    try:
        content = unpacking.decompress(data, MAX_STORED_TEXT_BYTES + 1)
    except zlib.error as error:
        raise ValueError(f"cannot be unpacked: {error}") from error
    if not unpacking.eof or len(content) > MAX_STORED_TEXT_BYTES:
        raise ValueError(f"cannot be unpacked: it is incomplete, or longer than {MAX_STORED_TEXT_BYTES >> 20} MiB")
    return content


def packed_outcome(result: RunResult) -> bytes:
    """Return a compressed outcome.

    Raises TypeError, ValueError or RecursionError for a value that JSON cannot express."""
    packing = Packing()
    for piece in outcome_pieces(outcome_of(result)):
        packing.add(piece)
    return packing.end()


def unpacked_outcome(data: bytes, sample: bytes = b"") -> dict[str, Any]:
    """Return the JSON of an outcome.

    Raises ValueError."""
    outcome = parsed_json(unpacked(data, sample))
    if not isinstance(outcome, dict):
        raise ValueError("must be an object")
    return outcome


def unpacked_events(data: bytes, tools: str | None = None, sample: bytes = b"") -> list[Event]:
    """Return the events of a run; `tools` are those of its first event, as JSON, where they are stored apart.

    Raises ValueError."""
    text = unpacked(data, sample)
    lines = list(map(parsed_json, text.split("\n"))) if text else []
    if tools is not None:
        lines[0]["tools"] = parsed_json(tools)
    return list(map(event_from_json, lines))


def packed_blocks(blocks: Blocks) -> bytes:
    """Return the compressed places of a suite's cases."""
    return packed(compact_json(blocks))


def unpacked_blocks(data: bytes) -> Blocks:
    """Return the places of a suite's cases.

    Raises ValueError."""
    return tuple((case, first, end) for case, first, end in parsed_json(unpacked(data)))


def grading_text(grading: Grading) -> str | None:
    """Return the options of a run's grading as JSON, `None` for those of the first version."""
    if grading == _ABSENT:
        return None
    absent, options = _plain(_ABSENT), _plain(grading)
    return compact_json({key: value for key, value in options.items() if value != absent[key]})


def grading_from(text: str | None) -> Grading:
    """Return the options of a run's grading.

    Raises ValueError."""
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


# Packs finished runs for a history. What the runs of a batch have in common is stored once: the tools that they
# were offered, and a sample of their text, by which zlib makes the others small.

_CHUNK = 1 << 15
"""Texts are searched and compressed in chunks of about so many characters: a long run is never in memory as a whole."""

_LISTS_OF_TOOLS = 64
"""How many lists of tools are remembered."""

_MAX_NUMBER = (1 << 63) - 1

Search = Callable[[str], bool]
"""Returns whether a JSON text may hold a secret."""


class RunRedaction(Protocol):
    """The redaction and packing that runs of a batch pass before they are stored."""

    def search(self, run: DoneRun) -> Search | None:
        """Return a search for secrets in the JSON texts of a run, `None` if the run has to be redacted in any case.

        A run in which it finds nothing may be stored unchanged."""

    def redacted(self, run: DoneRun) -> DoneRun:
        """Return the run as it may be stored."""


class NoRedaction:
    """Lets every run pass as it is."""

    def search(self, run: DoneRun) -> Search | None:
        """Return a search that finds nothing."""
        return lambda _text: False

    def redacted(self, run: DoneRun) -> DoneRun:
        """Return the run."""
        return run


@dataclass(frozen=True, slots=True)
class SharedText:
    """A text that several runs of a batch have in common: its SHA-256, hexadecimal, and the text, compressed."""

    hash: str
    packed: bytes


@dataclass(frozen=True, slots=True)
class PackedRun:
    """A finished run, compressed as it will be in the file.

    `values` are its figures by the names of their columns, `tools` the tools that its first event offers, `sample`
    the text with which its events and its outcome were compressed."""

    run_id: str
    status: Status
    values: Mapping[str, object]
    events: bytes
    outcome: bytes
    tools: SharedText | None = None
    sample: SharedText | None = None

    def unpacked_events(self) -> tuple[Event, ...]:
        """Return the events as they would be read from the file."""
        sample = unpacked_bytes(self.sample.packed) if self.sample is not None else b""
        return tuple(unpacked_events(self.events, unpacked(self.tools.packed) if self.tools else None, sample))

    def unpacked_texts(self) -> tuple[str, str]:
        """Return the JSON texts of its events, without tools, and of its outcome."""
        sample = unpacked_bytes(self.sample.packed) if self.sample is not None else b""
        return unpacked(self.events, sample), unpacked(self.outcome, sample)


class _SecretFoundError(Exception):
    """Raised for a text with a possible secret."""


class RunPacker:
    """Packs the runs of one batch.

    To be used on one thread."""

    def __init__(self, redaction: RunRedaction | None = None) -> None:
        self._redaction = redaction if redaction is not None else NoRedaction()
        self._tools: dict[tuple[str, tuple[str, ...]], tuple[tuple[ToolDefinition, ...], SharedText]] = {}
        self._sample_text = b""
        self._sample: SharedText | None = None

    def packed(self, run: DoneRun) -> PackedRun | None:
        """Compress a run for the file.

        Returns `None` for one that was stopped before its first event without a reason, which counts as never begun.

        Raises TypeError, ValueError or RecursionError for a value that cannot be written."""
        if run.result.status == Status.STOPPED and run.result.error is None and not run.events:
            return None
        search = self._redaction.search(run)
        if search is not None:
            try:
                return self._packed(run, search)
            except _SecretFoundError:
                pass
        return self._packed(self._redaction.redacted(run), NoRedaction().search(run))

    def _packed(self, run: DoneRun, search: Search | None) -> PackedRun:
        events, tools = self._without_tools(run.events)
        if self._sample_text and self._sample is None:
            self._sample = _shared(self._sample_text)
        lines = map(event_to_line, events)
        texts = [
            self._packed_text((line if number == 0 else f"\n{line}" for number, line in enumerate(lines)), search),
            self._packed_text(outcome_pieces(outcome_of(run.result)), search),
        ]
        if self._sample is None:
            self._sample_text = b"".join(beginning for _, beginning in texts)
        values = figure_values(summary_of(run.result, began_ms=run.began_ms, ended_ms=run.ended_ms))
        return PackedRun(run.run_id, run.result.status, values, texts[0][0], texts[1][0], tools, self._sample)

    def _packed_text(self, pieces: Iterable[str], search: Search | None) -> tuple[bytes, bytes]:
        """Return a compressed text, and its beginning."""
        packing = Packing(self._sample_text if self._sample is not None else b"")
        for chunk in _chunks(pieces):
            if search is not None and search(chunk):
                raise _SecretFoundError
            packing.add(chunk)
            del chunk  # it may be large, and so may be the next one
        return packing.end(), packing.beginning

    def _without_tools(self, events: tuple[Event, ...]) -> tuple[tuple[Event, ...], SharedText | None]:
        """Return events without the tools of the first one, and these."""
        started = events[0].payload if events else None
        if not isinstance(started, RunStarted) or not started.tools:
            return events, None
        # Runs that come from another process have equal tools, not the same ones.
        key = (started.suite_hash, tuple([tool.name for tool in started.tools]))
        known = self._tools.get(key)
        if known is None or known[0] != started.tools:
            if len(self._tools) == _LISTS_OF_TOOLS:
                self._tools.clear()
            known = self._tools[key] = started.tools, _shared(compact_json(started.tools).encode())
        return (replace(events[0], payload=replace(started, tools=())), *events[1:]), known[1]


def figure_values(figures: RunSummary) -> Mapping[str, object]:
    """Return the figures of a run by the names of their columns."""
    return {
        "status": figures.status,
        "score": figures.score,
        "reason": stored(figures.reason),
        "broken": figures.is_broken,
        "options": grading_text(figures.grading),
        "began_ms": figures.began_ms,
        "ended_ms": figures.ended_ms,
        "latency_ms": figures.latency_ms,
        "loop_ms": figures.loop_ms,
        "first_token_ms": figures.first_token_ms,
        "input_tokens": _whole(figures.input_tokens),
        "output_tokens": _whole(figures.output_tokens),
        "cost_usd": figures.cost_usd,
        "asked": figures.asked,
        "metrics": metrics_text(figures),
        "arguments": arguments_text(figures),
        "repaired": compact_json(figures.repaired) if figures.repaired else None,
    }


def metrics_text(figures: RunSummary) -> str | None:
    """Return the metrics of a run as they are stored."""
    if figures.metrics:
        return compact_json(dict(figures.metrics))
    return None


def arguments_text(figures: RunSummary) -> str | None:
    """Return the counts of calls with valid arguments as they are stored."""
    counts = {tool: numbers for tool, *numbers in figures.tool_arguments}
    return compact_json(counts) if counts else None


def _whole(number: int | None) -> int | None:
    """Return a count that SQLite can hold; a provider's counts may be nonsense."""
    if number is None:
        return None
    return max(min(number, _MAX_NUMBER), -_MAX_NUMBER)


def _shared(content: bytes) -> SharedText:
    return SharedText(hashlib.sha256(content).hexdigest(), zlib.compress(content))


def _chunks(pieces: Iterable[str]) -> Iterator[str]:
    held: list[str] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        del piece
        if size >= _CHUNK:
            chunk, size = "".join(held), 0
            held.clear()
            yield chunk
            del chunk
    yield "".join(held)
