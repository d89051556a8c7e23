"""What the program and its worker processes tell each other: pickled messages over a socket pair, each behind its
length. Both ends are the same program, and nobody else holds an end."""

from __future__ import annotations

import copyreg
import pickle
import struct
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from workbench.batches.events import BatchEvent, RunDone, RunEvent
from workbench.dataclasses import dataclass
from workbench.engine.retries import RetryPolicy
from workbench.evaluation.approval import Approval
from workbench.evaluation.plan import Plan

LENGTH = struct.Struct("!Q")


@dataclass(frozen=True)
class Setup:
    """The first message to a worker: the plan, what was approved, and how many workers share the endpoints' limits."""

    plan: Plan
    approval: Approval
    share: int
    retries: RetryPolicy


@dataclass(frozen=True)
class Make:
    """To a worker: make this run of the plan."""

    run_id: str


@dataclass(frozen=True)
class Stop:
    """To a worker: stop this run."""

    run_id: str


@dataclass(frozen=True)
class Hold:
    """An endpoint accepts no request for so many seconds: from the worker that was told, then to all others."""

    base_url: str
    model: str
    seconds: float


@dataclass(frozen=True)
class Happened:
    """From a worker: an event that is not one of a run's own, such as the start of a server."""

    event: BatchEvent


@dataclass(frozen=True)
class Learned:
    """From a worker: values to redact, with their replacements. Comes before the run that may contain them."""

    secrets: Mapping[str, str]


@dataclass(frozen=True)
class Made:
    """From a worker: a run is over. All of its events at once, so that nothing is left of a run whose worker died."""

    events: tuple[RunEvent, ...]
    done: RunDone


Message = Setup | Make | Stop | Hold | Happened | Learned | Made


def _read_only(content: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(content)


copyreg.pickle(MappingProxyType, lambda proxy: (_read_only, (dict(proxy),)))


def packed(message: Message) -> bytes:
    """The bytes of a message."""
    content = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return LENGTH.pack(len(content)) + content
