"""Compresses the texts of a history with zlib, and decompresses them."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pydantic_core import from_json

from workbench.dataclasses import (
    cached_by_identity,
    compact_json,
    dataclass,
    parsed_json,
    reader_of,
)
from workbench.grading.grade import RunResult
from workbench.grading.packed import LazyResult
from workbench.grading.result_json import outcome_of, outcome_pieces
from workbench.grading.run_facts import RunFacts, facts_from_text, facts_text
from workbench.grading.run_summary import RunSummary, summary_of
from workbench.grading.status import Status
from workbench.history.columns import stored
from workbench.history.records import CaseTexts, RunWithEvents
from workbench.limits import MAX_STORED_TEXT_BYTES
from workbench.startup import late_pattern
from workbench.suite.excerpts import Blocks
from workbench.suite.settings import Grading
from workbench.trajectory.events import Event, RunStarted, ToolDefinition
from workbench.trajectory.recording import event_from_json, unescaped_line

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_LEVEL = 6
_NEW_LINE = "\n"
_BEGINNING = 1 << 12
# Only options that differ from these values are stored. So these values must never change, even if the defaults of
# suites change.
_ABSENT = Grading(repeat_rule="last", invalid_arguments="ignore")
"""The grading options of the first version, which apply where a stored run has no value."""


class TextCompressor:
    """Compresses a text that arrives in pieces. The text is never completely in memory.

    `sample` is zlib's preset dictionary, a text that resembles the compressed text. Decompression needs the same
    sample."""

    def __init__(self, sample: bytes = b"") -> None:
        self._zlib = zlib.compressobj(_LEVEL, zdict=sample) if sample else zlib.compressobj(_LEVEL)
        self._length = 0
        self._done = bytearray()

    def add(self, piece: str) -> None:
        """Add a piece of the text, which may hold lone surrogates.

        Raises ValueError if the text exceeds MAX_STORED_TEXT_BYTES."""
        self.add_bytes(piece.encode("utf-8", "surrogatepass"))

    def add_json(self, piece: str) -> None:
        """Add a piece of JSON, with lone surrogates escaped. Raises ValueError as `add` does."""
        self.add_bytes(_json_bytes(piece))

    def add_bytes(self, data: bytes) -> None:
        """Add a piece of the text as bytes.

        Raises ValueError if the text exceeds MAX_STORED_TEXT_BYTES."""
        self._length += len(data)
        if self._length > MAX_STORED_TEXT_BYTES:
            raise ValueError(MAX_STORED_TEXT_BYTES.reached())
        self._done += self._zlib.compress(data)

    def end(self) -> bytes:
        """Return the compressed text."""
        return bytes(self._done + self._zlib.flush())


def _json_bytes(text: str) -> bytes:
    """Return a JSON text as bytes, with lone surrogates escaped."""
    return text.encode("utf-8", "backslashreplace")


def compress_text(text: str) -> bytes:
    """Compress a text, which may hold lone surrogates.

    Raises ValueError if the text exceeds MAX_STORED_TEXT_BYTES."""
    packing = TextCompressor()
    packing.add(text)
    return packing.end()


def decompress_text(data: bytes, sample: bytes = b"") -> str:
    """Decompress a text. `sample` must be the zlib dictionary of the compression.

    Raises ValueError for bytes that are not compressed text."""
    return decompress_bytes(data, sample).decode("utf-8", "surrogatepass")


def decompress_bytes(data: bytes, sample: bytes = b"", more: int = 0) -> bytes:
    """Decompress bytes. `sample` must be the zlib dictionary of the compression.

    Raises ValueError for bytes that are not compressed, and for a result of more than MAX_STORED_TEXT_BYTES plus `more`
    bytes."""
    most = MAX_STORED_TEXT_BYTES + more
    unpacking = zlib.decompressobj(zdict=sample) if sample else zlib.decompressobj()
    try:
        # A history may come from anywhere, and a few kilobytes of zlib data can expand to gigabytes.
        content = unpacking.decompress(data, most + 1)
    except zlib.error as error:
        raise ValueError(f"cannot be unpacked: {error}") from error
    if not unpacking.eof or len(content) > most:
        raise ValueError(f"cannot be unpacked: it is incomplete, or longer than {most >> 20} MiB")
    return content


def packed_outcome(result: RunResult) -> bytes:
    """Compress the outcome of a run as JSON.

    Raises TypeError, ValueError or RecursionError for a value that JSON cannot express."""
    packing = TextCompressor()
    for piece in outcome_pieces(outcome_of(result)):
        packing.add_json(piece)
    return packing.end()


# Pydantic's parser takes a third of the time of `parsed_json`. But it reads numbers such as 1e999 as infinite, and
# refuses lone surrogates and deep nesting. To find such numbers quickly, every digit is replaced by 0, so that simple
# searches for zeros suffice.
_DIGITS = bytes.maketrans(b"123456789E+", b"000000000e0")
_EXPONENT, _MANY_DIGITS = b"e000", b"0" * 300
_LARGE = late_pattern(r"[:,\[]\s*-?\d+(\.\d+)?[eE]\+?\d{3}|\d{300}")


def _parsed(text: str) -> Any:
    """Parse JSON text like `parsed_json`.

    Raises ValueError for damage."""
    data = text.encode("utf-8", "surrogatepass")
    digits = data.translate(_DIGITS)
    if not ((_EXPONENT in digits or _MANY_DIGITS in digits) and _LARGE.search(text)):
        with suppress(ValueError):
            return from_json(data, allow_inf_nan=False)
    return parsed_json(text)


def outcome_in(text: str) -> dict[str, Any]:
    """Return the outcome of a run as parsed JSON.

    Raises ValueError for damage, and for JSON that is not an object."""
    outcome = _parsed(text)
    if not isinstance(outcome, dict):
        raise ValueError("must be an object")
    return outcome


def events_in(text: str, tools: str | None = None) -> list[Event]:
    """Return the events of a run from a text with one event per line.

    `tools` is the JSON of the tools in the first event if they are stored separately. Raises ValueError for damage."""
    lines = []
    if text:
        # JSON escapes line breaks within strings, so every line break separates two events.
        lines = _parsed(f"[{text.replace(_NEW_LINE, ',')}]")
        if len(lines) != text.count(_NEW_LINE) + 1:
            raise ValueError("a line of its events does not hold exactly one event")
    events = list(map(event_from_json, lines))
    if tools is not None:
        started = events[0].payload
        if not isinstance(started, RunStarted):
            raise ValueError("its tools lack the event of its start")
        events[0] = replace(events[0], payload=replace(started, tools=_tools_in(tools)))
    return events


# The runs of a batch have the same tools, so a small cache suffices.
@lru_cache(maxsize=4)
def _tools_in(text: str) -> tuple[ToolDefinition, ...]:
    tools: tuple[ToolDefinition, ...] = reader_of(tuple[ToolDefinition, ...])(_parsed(text))
    return tools


def packed_blocks(blocks: Blocks) -> bytes:
    return compress_text(compact_json(blocks))


def unpacked_blocks(data: bytes) -> Blocks:
    blocks = []
    for case, first, end in parsed_json(decompress_text(data)):
        blocks.append((case, first, end))
    return tuple(blocks)


def _text_of_grading(grading: Grading) -> str | None:
    if grading == _ABSENT:
        return None
    absent, differing = asdict(_ABSENT), {}
    for key, value in asdict(grading).items():
        if value != absent[key]:
            differing[key] = value
    return compact_json(differing)


# The result is cached, because the runs of a batch have few different options, and comparing options takes as long as
# writing a run's events.
grading_text: Callable[[Grading], str | None] = cached_by_identity(lru_cache(maxsize=256)(_text_of_grading))
"""Returns the grading options that differ from the first version's options, as JSON; `None` if all are equal."""


# The result is cached, because the runs of a batch have few different options. Parsing them would take two thirds of
# the time for reading a row.
@lru_cache(maxsize=256)
def grading_from(text: str | None) -> Grading:
    """Read grading options that `grading_text` has written.

    Raises ValueError for unknown options and invalid values."""
    if text is None:
        return _ABSENT
    written = parsed_json(text)
    if not isinstance(written, dict):
        raise ValueError("the options of grading must be an object")
    return _gradings().validate_json(compact_json({**asdict(_ABSENT), **written}), strict=True, extra="forbid")


@cache
def _gradings() -> TypeAdapter[Grading]:
    # Imported here, because most runs have the default options, which need no pydantic.
    from pydantic import TypeAdapter

    return TypeAdapter(Grading)


# The runs of a batch resemble one another: they offer the same tools and begin with the same prompts. So the history
# stores the tools once per batch. Runs that end at nearly the same time are compressed together, in blocks. The
# beginning of the first run is the sample (zlib dictionary) of all later blocks. zlib stores only references to text
# that also occurs in the sample.

RUNS_IN_BLOCK = 64
"""The maximum number of runs in a block."""

_BLOCK_BYTES = 1 << 19
"""The size in bytes of uncompressed text at which a block is complete. The limit keeps reading one run fast."""

# These separators cannot occur in the JSON texts, because JSON escapes both characters.
_BETWEEN_RUNS = "\x1e"
_BEFORE_OUTCOME = "\x1f"

_CHUNK = 1 << 15
"""The number of characters that are searched and compressed at a time. So a long run is never completely in memory. A
longer run gets a block of its own."""

_LISTS_OF_TOOLS = 64
"""The number of compressed tool lists that a packer keeps for later runs."""

_MAX_NUMBER = (1 << 63) - 1

# Redaction copies the whole run, but few runs hold a secret. So the packer searches the JSON text while compressing it.
# Only a run with a finding is redacted and compressed again.

Search = Callable[[str], bool]
"""Returns whether a JSON text may hold a secret."""


class RunRedaction(Protocol):
    """The redaction of the runs of a batch before they are stored."""

    def search(self, run: RunWithEvents) -> Search | None:
        """Return a function that searches a run's JSON for secrets; `None` if the run must be redacted in any case.

        A run in which the function finds nothing may be stored unchanged."""

    def redacted(self, run: RunWithEvents) -> RunWithEvents: ...


class NoRedaction:
    """Leaves every run unchanged, for histories without secrets and for runs that are already redacted."""

    def search(self, run: RunWithEvents) -> Search | None:
        return lambda _text: False

    def redacted(self, run: RunWithEvents) -> RunWithEvents:
        return run


@dataclass(frozen=True, slots=True)
class SharedText:
    """A compressed text that several runs of a batch share.

    `hash` is a hexadecimal SHA-256 hash. For a block, it is the hash of the compressed bytes; for other texts, it is
    the hash of the content."""

    hash: str
    packed: bytes


@dataclass(frozen=True, slots=True)
class PackedRun:
    """A finished run in its stored form.

    `values` are the values of its row by column name. `block` has the texts of several runs, and `nth` is the run's
    index in it. `tools` are the tools of the run's first event. `sample` is the zlib dictionary of the block. `facts`
    are the facts of all runs in the block. Runs of a batch share blocks, tools, samples and facts."""

    run_id: str
    status: Status
    values: Mapping[str, object]
    block: SharedText
    nth: int = 0
    tools: SharedText | None = None
    sample: SharedText | None = None
    facts: SharedText | None = None

    @property
    def shared(self) -> tuple[SharedText | None, ...]:
        """The shared texts in the order of the table's columns: tools, sample, block, facts."""
        return self.tools, self.sample, self.block, self.facts

    def unpacked_events(self) -> tuple[Event, ...]:
        tools = None
        if self.tools:
            tools = decompress_text(self.tools.packed)
        return tuple(events_in(self.unpacked_texts()[0], tools))

    def unpacked_texts(self) -> tuple[str, str]:
        """Return the run's JSON texts: its events without tools, and its outcome."""
        sample = b""
        if self.sample is not None:
            sample = decompress_bytes(self.sample.packed)
        return texts_of_run(texts_in_block(self.block.packed, sample)[self.nth])


def texts_in_block(data: bytes, sample: bytes = b"") -> list[str]:
    """Decompress a block into the texts of its runs. `sample` must be the zlib dictionary of the compression.

    Raises ValueError for damage."""
    return unpacked_block(data, sample).decode("utf-8", "surrogatepass").split(_BETWEEN_RUNS)


def unpacked_block(data: bytes, sample: bytes = b"") -> bytes:
    """Decompress a block. Raises ValueError for damage."""
    return decompress_bytes(data, sample, _BLOCK_BYTES)


def facts_in_block(data: bytes) -> list[RunFacts | None]:
    """Return the facts of a block's runs from decompressed text; `None` for a run without stored facts.

    Raises ValueError for damage."""
    return list(map(facts_from_text, data.decode().split(_BETWEEN_RUNS)))


def texts_of_run(text: str) -> tuple[str, str]:
    """Split a run's text in a block into the texts of its events and its outcome.

    Raises ValueError for damage."""
    events, outcome = text.split(_BEFORE_OUTCOME)
    return events, outcome


class _SecretFoundError(Exception):
    """A run's text may contain a secret, so the run must be redacted before it is stored."""


class _RunInBlock(NamedTuple):
    run_id: str
    status: Status
    values: Mapping[str, object]
    tools: SharedText | None
    facts: str


class RunPacker:
    """Redacts and compresses the runs of one batch.

    Use a packer on one thread."""

    def __init__(self, redaction: RunRedaction | None = None) -> None:
        self._redaction: RunRedaction = NoRedaction()
        if redaction is not None:
            self._redaction = redaction
        self._tools: dict[tuple[str, tuple[str, ...]], tuple[tuple[ToolDefinition, ...], SharedText]] = {}
        self._next_sample = b""
        self._sample_text = b""
        self._sample: SharedText | None = None
        self._packed: list[PackedRun] = []
        self._open: list[_RunInBlock] = []
        """The runs of the open block, which is compressed once it is full."""
        self._texts: list[bytes] = []
        """The texts of the runs in the open block."""
        self._size = 0
        """The size of the texts in the open block, in bytes."""

    def packed(self, run: RunWithEvents) -> PackedRun | None:
        """Redact and compress a single run.

        Returns `None` if `add` returns False for the run. Use `add` and `all_packed` for many runs."""
        if not self.add(run):
            return None
        (packed,) = self.all_packed()
        return packed

    def add(self, run: RunWithEvents) -> bool:
        """Redact a run and put it into the current block.

        Returns False, without adding the run, if it was stopped before its first event and has no error. Such a run
        counts as never begun.

        Raises TypeError, ValueError or RecursionError for a value that cannot be stored."""
        if run.result.status == Status.STOPPED and run.result.error is None and not run.events:
            return False
        if isinstance(run.result, LazyResult):  # its fields take several times as long to read as plain fields
            run = RunWithEvents(run.run_id, run.result.whole, run.events, run.began_ms, run.ended_ms)
        search = self._redaction.search(run)
        if search is not None:
            try:
                self._add(run, search)
            except _SecretFoundError:
                pass
            else:
                return True
        self._add(self._redaction.redacted(run), NoRedaction().search(run))
        return True

    def add_packed(self, run: PackedRun) -> None:
        self._close_block()
        self._packed.append(run)

    def all_packed(self) -> list[PackedRun]:
        """Compress the current block, and return the runs added since the last call, in order."""
        self._close_block()
        packed, self._packed = self._packed, []
        return packed

    def _add(self, run: RunWithEvents, search: Search | None) -> None:
        """Put a run into a block. Raises _SecretFoundError if `search` finds something in the run's text."""
        tools = self._tools_of(run.events)
        values = figure_values(summary_of(run.result, began_ms=run.began_ms, ended_ms=run.ended_ms))
        in_block = _RunInBlock(run.run_id, run.result.status, values, tools, facts_text(run.result))
        chunks = _searched(_chunks(_pieces(run.events, run.result)), search)
        first = next(chunks)
        second = next(chunks, None)
        if second is None:
            self._open.append(in_block)
            self._texts.append(_json_bytes(first))
            self._size += len(self._texts[-1])
            if len(self._open) == RUNS_IN_BLOCK or self._size >= _BLOCK_BYTES:
                self._close_block()
        else:
            self._close_block()
            packing = TextCompressor(self._sample_text)
            packing.add_json(first)
            packing.add_json(second)
            # Release each chunk at once. Otherwise two chunks exist at a time, and both may be large.
            del second
            for chunk in chunks:
                packing.add_json(chunk)
                del chunk
            self._append(packing.end(), [in_block])
        self._next_sample = self._next_sample or _beginnings(first)

    def _close_block(self) -> None:
        if self._open:
            packing = TextCompressor(self._sample_text)
            packing.add_bytes(_BETWEEN_RUNS.encode().join(self._texts))
            self._append(packing.end(), self._open)
            self._open, self._texts, self._size = [], [], 0

    def _append(self, data: bytes, runs: Sequence[_RunInBlock]) -> None:
        """Add runs with their compressed block to the result of `all_packed`."""
        block = SharedText(hashlib.sha256(data).hexdigest(), data)
        facts = _shared(_BETWEEN_RUNS.join(run.facts for run in runs).encode())
        for nth, run in enumerate(runs):
            of_run = (run.run_id, run.status, run.values, block, nth, run.tools)
            self._packed.append(PackedRun(*of_run, self._sample, facts))
        # The first block is compressed without a sample. The beginning of its first run becomes the sample of later
        # blocks.
        if self._sample is None and self._next_sample:
            self._sample_text = self._next_sample
            self._sample = _shared(self._sample_text)

    def _tools_of(self, events: tuple[Event, ...]) -> SharedText | None:
        """Return the tools in the first event of a run, which are stored apart; `None` if it has none."""
        if not events:
            return None
        started = events[0].payload
        if not isinstance(started, RunStarted) or not started.tools:
            return None
        # Tool definitions are not hashable, so a short key finds a candidate, which is then compared by value. Runs
        # from another process have equal tools, but not the same objects.
        key = (started.suite_hash, tuple([tool.name for tool in started.tools]))
        known = self._tools.get(key)
        if known is None or known[0] != started.tools:
            if len(self._tools) == _LISTS_OF_TOOLS:
                self._tools.clear()
            known = self._tools[key] = started.tools, _shared(compact_json(started.tools).encode())
        return known[1]


def _pieces(events: Iterable[Event], result: RunResult) -> Iterator[str]:
    """Yield the text of a run without its tools. Lone surrogates may be unescaped."""
    separator = ""
    size = 0
    for event in events:
        line = f"{separator}{unescaped_line(event, without_tools=not separator)}"
        size += len(line)
        yield line
        separator = "\n"
    yield _BEFORE_OUTCOME
    yield from outcome_pieces(outcome_of(result), size)


def _searched(chunks: Iterable[str], search: Search | None) -> Iterator[str]:
    """Yield chunks of a text. Raises _SecretFoundError if `search` finds something in a chunk."""
    for chunk in chunks:
        if search is not None and search(chunk):
            raise _SecretFoundError
        yield chunk
        del chunk


def _beginnings(text: str) -> bytes:
    """Return the beginnings of a run's events and of its outcome, as the zlib dictionary for later blocks."""
    events, _, outcome = text.partition(_BEFORE_OUTCOME)
    return _json_bytes(events[:_BEGINNING] + outcome[:_BEGINNING])


def figure_values(figures: RunSummary) -> Mapping[str, object]:
    """Return the figures of a run, such as its score, keyed by their columns in the table `runs`."""
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
        "agent": stored(figures.agent),
        "player": None if figures.user is None else compact_json(figures.user._asdict()),
        "user_outcome": figures.user_outcome,
    }


def case_texts_json(texts: CaseTexts) -> str:
    return compact_json({"texts": {suite: dict(cases) for suite, cases in texts.items()}} if texts else {})


def case_texts_of(stored: object) -> CaseTexts:
    """Return the case texts in a column of a regrade.

    The result is empty for histories of old versions, whose column has other content."""
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
    """Return the metrics of a run as JSON; `None` if it has none."""
    if figures.metrics:
        return compact_json(dict(figures.metrics))
    return None


def arguments_text(figures: RunSummary) -> str | None:
    """Return the counts of a run's calls with valid arguments, by tool, as JSON; `None` if the run has no counts."""
    counts = {tool: numbers for tool, *numbers in figures.tool_arguments}
    if counts:
        return compact_json(counts)
    return None


def _whole(number: int | None) -> int | None:
    if number is None:
        return None
    # A provider may report any number, but an SQLite integer has only 64 bits.
    return max(min(number, _MAX_NUMBER), -_MAX_NUMBER)


def _shared(content: bytes) -> SharedText:
    return SharedText(hashlib.sha256(content).hexdigest(), zlib.compress(content))


def _chunks(pieces: Iterable[str]) -> Iterator[str]:
    # Each `del` frees a large piece before the next piece is made.
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
