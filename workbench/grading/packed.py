"""Packed results: the grades and trajectories of finished runs are compressed, and unpacked on access.

A batch has thousands of runs, and for most of them only the numbers are read again. A small run takes ten kilobytes as
objects and one kilobyte packed. The values that are read for every run (score, reason, latency …) stay unpacked."""

from __future__ import annotations

import copyreg
import io
import pickle
import zlib
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from operator import attrgetter
from secrets import token_hex
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from workbench.grading.grade import NO_JUDGE_USAGE, AgentFacts, JudgeUsage, Metric, RunResult, UserOutcome
from workbench.grading.run_facts import RunFacts
from workbench.grading.status import Status, Verdict
from workbench.trajectory.events import ToolDefinition, Usage

_MAX_SHARED = 1024
"""The most definitions of tools that the runs of a batch share."""

_SAMPLE_BYTES = 1 << 15
"""The size of the sample in bytes. The window of zlib holds no more."""


class _Facts(NamedTuple):
    user_cost_usd: float | None
    user_usage: Usage | None
    user_outcome: UserOutcome | None
    score: float | None
    reason: str | None
    is_broken: bool
    grader: str | None
    verdict: Verdict | None
    graders_disagree: bool
    has_free_calls: bool
    called: tuple[str, ...]
    executions: int
    retries: int
    is_fork: bool
    has_notices: bool
    repaired: tuple[str, ...]
    agent: AgentFacts | None
    was_asked: bool
    usage: Usage | None
    latency_ms: float
    loop_ms: float
    first_token_ms: float | None


PACKED_FIELDS = ("trajectory", "grades", "judgements", "steps", "redacted")
"""The fields of a result that are packed."""

UNPACKED_FIELDS = tuple(field.name for field in fields(RunResult) if field.name not in PACKED_FIELDS)
"""The fields of a result that are not packed."""

STORED_PROPERTIES = _Facts._fields
"""The properties of a result that are computed from packed fields, and stored unpacked."""

_facts_of = attrgetter(*_Facts._fields)
_content_of = attrgetter(*PACKED_FIELDS)
_kept_of = attrgetter(*UNPACKED_FIELDS)


class LazyResult(RunResult):
    """A `RunResult` that reads its fields in `PACKED_FIELDS` on access. It equals the result `whole`."""

    __slots__ = ()

    # `dataclasses.replace` calls the class with all fields, so the new result has all fields in memory.
    def __new__(cls, *values: Any, **named: Any) -> RunResult:  # type: ignore[misc]
        return RunResult(*values, **named)

    @property
    def whole(self) -> RunResult:
        """The result with all fields in memory."""
        raise NotImplementedError

    @property
    def facts(self) -> RunFacts | None:
        """The facts that the history stores apart from the run, or `None` if there are none."""
        return None

    @property
    def small(self) -> RunResult:
        return self

    def __eq__(self, other: object) -> bool:
        return self.whole == (other.whole if isinstance(other, LazyResult) else other)

    def __hash__(self) -> int:
        return hash(self.whole)

    def __repr__(self) -> str:
        return repr(self.whole)

    def __reduce__(self) -> Any:
        return RunResult, _values_of(RunResult)(self.whole)


class PackedResult(LazyResult):
    """A result whose fields in `PACKED_FIELDS` are compressed."""

    __slots__ = ("_data", "_facts", "_in_common")

    _data: bytes
    _facts: _Facts
    _in_common: SharedParts

    @property
    def whole(self) -> RunResult:
        """The result as it was before packing."""
        # A view reads many fields of one result, so the last few unpacked results are cached.
        for packed, whole in tuple(_LOOKED_AT):
            if packed is self:
                return whole
        content = dict(zip(PACKED_FIELDS, self._in_common.unpacked(self._data), strict=True))
        whole = RunResult(**dict(zip(UNPACKED_FIELDS, _kept_of(self), strict=True)), **content)
        _LOOKED_AT.append((self, whole))
        return whole

    @property
    def size(self) -> int:
        return len(self._data)

    def with_status(self, status: Status) -> RunResult:
        """Return the result with another status, still packed."""
        changed = replace(self.whole, status=status)
        return _made(changed, _Facts(*_facts_of(changed)), self._data, self._in_common)

    @property
    def for_transfer(self) -> TransferredResult:
        """The result for another process. It lacks the fields that the process already has in its plan of the run."""
        judging = self.judging if self.judging is not NO_JUDGE_USAGE else None
        of_grading = self.metrics, self.valid_arguments
        return TransferredResult(
            self.status, self.error, self.cost_usd, judging, *of_grading, tuple(self._facts), self._data
        )


_LOOKED_AT: deque[tuple[PackedResult, RunResult]] = deque(maxlen=4)
"""The most recently unpacked results, each with its unpacked form."""


def _of_whole(name: str) -> property:
    return property(lambda self: getattr(self.whole, name))


def _known(index: int) -> property:
    return property(lambda self: self._facts[index])


# The properties replace the data class's slots and properties of the same names.
for _name in PACKED_FIELDS:
    setattr(LazyResult, _name, _of_whole(_name))
for _index, _name in enumerate(_Facts._fields):
    setattr(PackedResult, _name, _known(_index))


class TransferredResult(NamedTuple):
    """A packed result for another process. It lacks the fields that this process already has in its plan of the run."""

    status: Status
    error: str | None
    cost_usd: float | None
    judging: JudgeUsage | None
    metrics: tuple[Metric, ...]
    valid_arguments: tuple[bool | None, ...]
    facts: tuple[Any, ...]
    data: bytes


class SharedPartsUpdate(NamedTuple):
    """Parts that packed results share. Another process needs them before it can unpack later results."""

    key: str
    sample: bytes
    tools: tuple[ToolDefinition, ...]


def _made(result: RunResult, facts: _Facts, data: bytes, in_common: SharedParts) -> PackedResult:
    packed: PackedResult = object.__new__(PackedResult)
    for name, value in zip(UNPACKED_FIELDS, _kept_of(result), strict=True):
        object.__setattr__(packed, name, value)
    object.__setattr__(packed, "_data", data)
    object.__setattr__(packed, "_facts", facts)
    object.__setattr__(packed, "_in_common", in_common)
    return packed


class SharedParts:
    """The parts that packed results share: the offered tools, and a sample text that helps zlib compress.

    `key` identifies the shared parts across processes. A copy in another process has the same key."""

    def __init__(self, key: str | None = None) -> None:
        # The key is random, so results from an earlier process are never read with the parts of a later process.
        self.key = key or token_hex(8)
        self.sample = b""
        self.tools: list[ToolDefinition] = []
        self._numbers: dict[int, int] = {}
        self._sent = 0
        self._reducers = _Reducers({ToolDefinition: self._reduced_tool})
        _ALL_IN_COMMON[self.key] = self

    def packed(self, result: RunResult) -> RunResult:
        """Return a result in packed form, or the result itself if it cannot be pickled."""
        # A model may be a Python object of the caller and may put values into a run that pickle rejects.
        if isinstance(result, PackedResult):
            return result
        try:
            content = _pickled(_content_of(result), self._reducers)
        except (pickle.PicklingError, TypeError, ValueError, AttributeError, RecursionError):
            return result
        # The runs of a batch resemble each other. zlib uses the first run as the dictionary for the others.
        self.sample = self.sample or content[:_SAMPLE_BYTES]
        packing = zlib.compressobj(1, zdict=self.sample)
        facts = _Facts(*_facts_of(result))
        return _made(result, facts, packing.compress(content) + packing.flush(), self)

    def new_parts(self) -> SharedPartsUpdate | None:
        """Return the shared parts that were added since the last call, or `None` if there are none."""
        if not self.sample or self._sent == len(self.tools) + 1:
            return None
        tools, sample = tuple(self.tools[max(self._sent - 1, 0) :]), b"" if self._sent else self.sample
        self._sent = len(self.tools) + 1
        return SharedPartsUpdate(self.key, sample, tools)

    def add_parts(self, update: SharedPartsUpdate) -> None:
        self.sample = self.sample or update.sample
        self.tools += update.tools

    def received(self, transferred: TransferredResult, planned: RunResult) -> RunResult:
        """Return a result that another process packed. `planned` is a result of the same run without its outcome."""
        status, error, cost_usd, judging, metrics, valid_arguments, facts, data = transferred
        result = replace(
            planned,
            status=status,
            error=error,
            cost_usd=cost_usd,
            judging=NO_JUDGE_USAGE if judging is None else judging,
            metrics=metrics,
            valid_arguments=valid_arguments,
        )
        return _made(result, _Facts(*facts), data, self)

    def unpacked(self, data: bytes) -> tuple[Any, ...]:
        """Return the values of the packed fields."""
        # Pickle is safe here because this program packed the values.
        content: tuple[Any, ...] = pickle.loads(zlib.decompressobj(zdict=self.sample).decompress(data))
        return content

    def _reduced_tool(self, tool: ToolDefinition) -> Any:
        # `self.tools` keeps the definitions alive, so their ids are never reused.
        number = self._numbers.get(id(tool))
        if number is None:
            if len(self.tools) == _MAX_SHARED:
                return ToolDefinition, _values_of(ToolDefinition)(tool)
            number = self._numbers[id(tool)] = len(self.tools)
            self.tools.append(tool)
        return _tool, (self.key, number)


_ALL_IN_COMMON: WeakValueDictionary[str, SharedParts] = WeakValueDictionary()
"""The shared parts by key. Each packed result keeps its own shared parts alive."""


def fast_pickle(value: object) -> bytes:
    """Pickle a value for `pickle.loads`, in half the time of `pickle.dumps` for records."""
    return _pickled(value, _REDUCERS)


def _pickled(value: object, reducers: Mapping[type, Callable[[Any], Any]]) -> bytes:
    file = io.BytesIO()
    pickler = pickle.Pickler(file, pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = reducers
    pickler.dump(value)
    return file.getvalue()


def _tool(key: str, number: int) -> ToolDefinition:
    return _ALL_IN_COMMON[key].tools[number]


class _Reducers(dict[type, Callable[[Any], Any]]):
    """A dispatch table for `pickle` that creates a reducer for each new type.

    Records are recreated by a call with the values of their fields, which takes half as long as setting each field."""

    def __missing__(self, kind: type) -> Callable[[Any], Any]:
        reducer: Callable[[Any], Any]
        if is_dataclass(kind) and kind.__reduce__ is object.__reduce__ and _takes_its_fields(kind):
            values = _values_of(kind)
            reducer = lambda item: (kind, values(item))  # noqa: E731
        elif issubclass(kind, tuple) and hasattr(kind, "_fields"):
            reducer = lambda item: (kind, tuple(item))  # noqa: E731
        else:
            # A KeyError makes `pickle` use its default reduction for the type.
            reducer = copyreg.dispatch_table[kind]
        self[kind] = reducer
        return reducer


_REDUCERS = _Reducers()


def _takes_its_fields(kind: Any) -> bool:
    return all(field.init and not field.kw_only for field in fields(kind))


@cache
def _values_of(kind: Any) -> Callable[[Any], tuple[Any, ...]]:
    names = [field.name for field in fields(kind)]
    if len(names) > 1:
        return attrgetter(*names)
    return lambda item: tuple(getattr(item, name) for name in names)
