"""Compresses the texts of a history with zlib, and decompresses them."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from workbench.dataclasses import compact_json, dataclass, parsed_json
from workbench.grading.grade import RunResult
from workbench.grading.result_json import outcome_of, outcome_pieces
from workbench.grading.run_summary import RunSummary, summary_of
from workbench.grading.status import Status
from workbench.history.columns import stored
from workbench.history.records import CaseTexts, DoneRun
from workbench.limits import MAX_STORED_TEXT_BYTES
from workbench.suite.excerpts import Blocks
from workbench.suite.settings import Grading
from workbench.trajectory.events import Event, RunStarted, ToolDefinition
from workbench.trajectory.recording import event_from_json, event_to_line

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_LEVEL = 6
_BEGINNING = 1 << 12
# Only options that differ from these are stored, so these must not change when the defaults of suites do.
_ABSENT = Grading(repeat_rule="last", invalid_arguments="ignore")
"""The grading options of the first version: the values of options that a stored run lacks."""


class Packing:
    """The compression of a text that arrives in pieces and is never completely in memory.

    `sample` is zlib's preset dictionary, a text that resembles the one to compress; decompression needs the same."""

    def __init__(self, sample: bytes = b"") -> None:
        self._zlib = zlib.compressobj(_LEVEL, zdict=sample) if sample else zlib.compressobj(_LEVEL)
        self._length = 0
        self._done = bytearray()
        self.beginning = b""
        """The first bytes of the text, at most 4 KiB, which serve as the sample for later runs of the batch."""

    def add(self, piece: str) -> None:
        """Add a piece of the text, which may hold lone surrogates.

        Raises ValueError if the text exceeds MAX_STORED_TEXT_BYTES."""
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
    """Compress a text, which may hold lone surrogates.

    Raises ValueError if the text exceeds MAX_STORED_TEXT_BYTES."""
    packing = Packing()
    packing.add(text)
    return packing.end()


def unpacked(data: bytes, sample: bytes = b"") -> str:
    """Decompress a text; `sample` must be the one used for its compression.

    Raises ValueError for bytes that are not compressed text."""
    return unpacked_bytes(data, sample).decode("utf-8", "surrogatepass")


def unpacked_bytes(data: bytes, sample: bytes = b"") -> bytes:
    """Decompress bytes; `sample` must be the one used for their compression.

    Raises ValueError for bytes that are not compressed or exceed MAX_STORED_TEXT_BYTES."""
    unpacking = zlib.decompressobj(zdict=sample) if sample else zlib.decompressobj()
    try:
        # A file may come from anywhere: a few kilobytes of zlib can expand to gigabytes.
        content = unpacking.decompress(data, MAX_STORED_TEXT_BYTES + 1)
    except zlib.error as error:
        raise ValueError(f"cannot be unpacked: {error}") from error
    if not unpacking.eof or len(content) > MAX_STORED_TEXT_BYTES:
        raise ValueError(f"cannot be unpacked: it is incomplete, or longer than {MAX_STORED_TEXT_BYTES >> 20} MiB")
    return content


def packed_outcome(result: RunResult) -> bytes:
    """Compress the outcome of a run as JSON.

    Raises TypeError, ValueError or RecursionError for a value that JSON cannot express."""
    packing = Packing()
    for piece in outcome_pieces(outcome_of(result)):
        packing.add(piece)
    return packing.end()


def unpacked_outcome(data: bytes, sample: bytes = b"") -> dict[str, Any]:
    """Decompress the outcome of a run and return it as parsed JSON.

    Raises ValueError for damaged bytes and for JSON that is not an object."""
    outcome = parsed_json(unpacked(data, sample))
    if not isinstance(outcome, dict):
        raise ValueError("must be an object")
    return outcome


def unpacked_events(data: bytes, tools: str | None = None, sample: bytes = b"") -> list[Event]:
    """Decompress the events of a run.

    `tools` is the JSON of the tools in the first event if they are stored separately. Raises ValueError for damage."""
    text = unpacked(data, sample)
    lines = []
    if text:
        lines = list(map(parsed_json, text.split("\n")))
    if tools is not None:
        lines[0]["tools"] = parsed_json(tools)
    return list(map(event_from_json, lines))


def packed_blocks(blocks: Blocks) -> bytes:
    """Compress the positions of cases in the text of their suite."""
    return packed(compact_json(blocks))


def unpacked_blocks(data: bytes) -> Blocks:
    """Decompress the positions of cases in the text of their suite.

    Raises ValueError for damage."""
    blocks = []
    for case, first, end in parsed_json(unpacked(data)):
        blocks.append((case, first, end))
    return tuple(blocks)


def grading_text(grading: Grading) -> str | None:
    """Return the JSON of grading options that differ from those of the first version, `None` if none does."""
    if grading == _ABSENT:
        return None
    absent, differing = asdict(_ABSENT), {}
    for key, value in asdict(grading).items():
        if value != absent[key]:
            differing[key] = value
    return compact_json(differing)


# The runs of a batch differ in few options, and reading them takes two thirds of the time of a row.
@lru_cache(maxsize=256)
def grading_from(text: str | None) -> Grading:
    """Read grading options as `grading_text` writes them.

    Raises ValueError for unknown options and invalid values."""
    if text is None:
        return _ABSENT
    written = parsed_json(text)
    if not isinstance(written, dict):
        raise ValueError("the options of grading must be an object")
    return _gradings().validate_json(compact_json({**asdict(_ABSENT), **written}), strict=True, extra="forbid")


@cache
def _gradings() -> TypeAdapter[Grading]:
    # Imported on use: most runs are graded by the defaults, which need no pydantic.
    from pydantic import TypeAdapter

    return TypeAdapter(Grading)


# The runs of a batch resemble one another: they offer the same tools and begin with the same prompts. So the history
# stores the tools once for the batch, and the beginning of its first run as a sample: zlib replaces what a later run
# shares with the sample by references to it.

_CHUNK = 1 << 15
"""The number of characters searched and compressed at a time, so that a long run is never completely in memory."""

_LISTS_OF_TOOLS = 64
"""The number of compressed lists of tools that a packer keeps for later runs."""

_MAX_NUMBER = (1 << 63) - 1

# Redacting takes a copy of the whole run, and few runs hold a secret. So secrets are searched in the JSON text that is
# compressed anyway, and only a run with a finding is redacted and compressed again.

Search = Callable[[str], bool]
"""Returns whether a JSON text may hold a secret."""


class RunRedaction(Protocol):
    """The redaction of the runs of a batch before they are stored."""

    def search(self, run: DoneRun) -> Search | None:
        """Return a search for secrets in the JSON texts of a run; `None` if the run must be redacted in any case.

        A run in which the search finds nothing may be stored unchanged."""

    def redacted(self, run: DoneRun) -> DoneRun:
        """Return the run without secrets."""


class NoRedaction:
    """A redaction that leaves every run unchanged, for histories without secrets and runs redacted before."""

    def search(self, run: DoneRun) -> Search | None:
        return lambda _text: False

    def redacted(self, run: DoneRun) -> DoneRun:
        return run


@dataclass(frozen=True, slots=True)
class SharedText:
    """A compressed text that several runs of a batch have in common; `hash` is its SHA-256, hexadecimal."""

    hash: str
    packed: bytes


@dataclass(frozen=True, slots=True)
class PackedRun:
    """A finished run in its stored form: events and outcome compressed, figures by the names of their columns.

    `tools` are the tools of its first event, and `sample` the text with which events and outcome were compressed;
    both are shared with other runs of the batch."""

    run_id: str
    status: Status
    values: Mapping[str, object]
    events: bytes
    outcome: bytes
    tools: SharedText | None = None
    sample: SharedText | None = None

    def unpacked_events(self) -> tuple[Event, ...]:
        """Return the events as they would be read back from the history."""
        tools = None
        if self.tools:
            tools = unpacked(self.tools.packed)
        return tuple(unpacked_events(self.events, tools, self._sample_bytes()))

    def unpacked_texts(self) -> tuple[str, str]:
        """Return the JSON texts of its events, without tools, and of its outcome."""
        sample = self._sample_bytes()
        return unpacked(self.events, sample), unpacked(self.outcome, sample)

    def _sample_bytes(self) -> bytes:
        if self.sample is None:
            return b""
        return unpacked_bytes(self.sample.packed)


class _SecretFoundError(Exception):
    """A text may hold a secret, so the run must be redacted before it is stored."""


class RunPacker:
    """Redacts and compresses the runs of one batch.

    Use it on one thread."""

    def __init__(self, redaction: RunRedaction | None = None) -> None:
        self._redaction: RunRedaction = NoRedaction()
        if redaction is not None:
            self._redaction = redaction
        self._tools: dict[tuple[str, tuple[str, ...]], tuple[tuple[ToolDefinition, ...], SharedText]] = {}
        self._sample_text = b""
        self._sample: SharedText | None = None

    def packed(self, run: DoneRun) -> PackedRun | None:
        """Redact and compress a run.

        Returns `None` for a run that was stopped before its first event without a reason: it counts as never begun.

        Raises TypeError, ValueError or RecursionError for a value that cannot be stored."""
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
        packed_events, events_beginning = self._packed_text(_lines(events), search)
        outcome, outcome_beginning = self._packed_text(outcome_pieces(outcome_of(run.result)), search)
        # The first run is compressed without a sample, and becomes the sample for later ones.
        if self._sample is None:
            self._sample_text = events_beginning + outcome_beginning
        values = figure_values(summary_of(run.result, began_ms=run.began_ms, ended_ms=run.ended_ms))
        return PackedRun(run.run_id, run.result.status, values, packed_events, outcome, tools, self._sample)

    def _packed_text(self, pieces: Iterable[str], search: Search | None) -> tuple[bytes, bytes]:
        """Compress a text and return it with its beginning.

        Raises _SecretFoundError if `search` finds something in it."""
        packing = Packing()
        if self._sample is not None:
            packing = Packing(self._sample_text)
        for chunk in _chunks(pieces):
            if search is not None and search(chunk):
                raise _SecretFoundError
            packing.add(chunk)
            # Release this chunk now, because otherwise it lives until the next one is complete, and both may be large.
            del chunk
        return packing.end(), packing.beginning

    def _without_tools(self, events: tuple[Event, ...]) -> tuple[tuple[Event, ...], SharedText | None]:
        """Return the events without the tools of the first one, and these tools."""
        if not events:
            return events, None
        started = events[0].payload
        if not isinstance(started, RunStarted) or not started.tools:
            return events, None
        # Definitions of tools are not hashable, so a cheap key finds the candidate, which is then compared: runs from
        # another process have equal tools, but not the same objects.
        key = (started.suite_hash, tuple([tool.name for tool in started.tools]))
        known = self._tools.get(key)
        if known is None or known[0] != started.tools:
            if len(self._tools) == _LISTS_OF_TOOLS:
                self._tools.clear()
            known = self._tools[key] = started.tools, _shared(compact_json(started.tools).encode())
        return (replace(events[0], payload=replace(started, tools=())), *events[1:]), known[1]


def _lines(events: Iterable[Event]) -> Iterator[str]:
    separator = ""
    for event in events:
        yield f"{separator}{event_to_line(event)}"
        separator = "\n"


def figure_values(figures: RunSummary) -> Mapping[str, object]:
    """Return the figures of a run by the names of their columns in `runs`."""
    repaired = None
    if figures.repaired:
        repaired = compact_json(figures.repaired)
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
        "repaired": repaired,
    }


def case_texts_json(texts: CaseTexts) -> str:
    """Return texts of cases as JSON, read by `case_texts_of`."""
    return compact_json({"texts": {suite: dict(cases) for suite, cases in texts.items()}} if texts else {})


def case_texts_of(stored: object) -> CaseTexts:
    """Return the texts of cases that were stored with a regrade; empty for the different content of old files."""
    try:
        found = parsed_json(stored) if isinstance(stored, str) else None
    except ValueError:
        return {}
    suites = found.get("texts") if isinstance(found, dict) else None
    texts: dict[str, dict[str, str]] = {}
    if isinstance(suites, dict):
        for suite, cases in suites.items():
            if isinstance(cases, dict):
                texts[suite] = {case: text for case, text in cases.items() if isinstance(text, str)}
    return texts


def metrics_text(figures: RunSummary) -> str | None:
    """Return the JSON of the metrics of a run, `None` if it has none."""
    if figures.metrics:
        return compact_json(dict(figures.metrics))
    return None


def arguments_text(figures: RunSummary) -> str | None:
    """Return the JSON of the counts of calls with valid arguments, by tool, `None` if a run has none."""
    counts = {tool: numbers for tool, *numbers in figures.tool_arguments}
    if counts:
        return compact_json(counts)
    return None


def _whole(number: int | None) -> int | None:
    if number is None:
        return None
    # A count comes from a provider and may be absurd, but an SQLite integer has only 64 bits.
    return max(min(number, _MAX_NUMBER), -_MAX_NUMBER)


def _shared(content: bytes) -> SharedText:
    return SharedText(hashlib.sha256(content).hexdigest(), zlib.compress(content))


def _chunks(pieces: Iterable[str]) -> Iterator[str]:
    # Every `del` drops a reference that would keep a large piece alive while the next one is made.
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
