"""The slots of an endpoint: how many requests it computes at a time, as it tells or as waiting shows.

More requests than slots make no answer come earlier. They wait at the endpoint, and that time looks like the model's.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import field
from itertools import combinations
from statistics import median
from urllib.parse import urlsplit

from workbench.config.models import PRESETS, ModelSpec
from workbench.dataclasses import dataclass
from workbench.providers.http.clients import Client
from workbench.providers.http.errors import shown_url

MIN_WAIT_MS = 100.0
"""Shorter waits cannot be told from the network's delays."""

MIN_GROWTH_SECONDS = 0.3
"""By how much the first tokens of late requests have to come later than those of early ones, beside twice the time."""
_KEPT = 32
_MIN_PAIRS = 10
_IN_ORDER = 0.8
"""The least surplus of pairs in which the request with more before it waited longer, among those that differ."""
_DIFFER = 0.8
"""Two times differ if the shorter is below this share of the longer."""
_AT_ONCE = 1.5
"""Requests that waited up to this multiple of the shortest time were computed at once."""


class ToldSlots:
    """The slots that one endpoint tells of itself, found once. `share` is the number of processes that use it."""

    def __init__(self, share: int, tell: Callable[[str], object]) -> None:
        self.total: int | None = None
        self._share = share
        self._tell = tell
        self._gate: asyncio.Semaphore | None = None
        self._finding = asyncio.Lock()
        self._is_found = False

    @property
    def is_llama_cpp(self) -> bool:
        """Whether the endpoint is a server of llama.cpp, as only these tell their slots so."""
        return self.total is not None

    async def find(self, spec: ModelSpec, client: Client, allowed: int) -> None:
        """Ask the endpoint, unless that was done or it is far away. Tell where it has fewer slots than requests are
        `allowed` at a time. Raises nothing that an endpoint can cause."""
        async with self._finding:
            if self._is_found:
                return
            self._is_found = True
            self.total = await _told_slots(client) if _may_tell(spec, client) else None
            if self.total is None:
                return
            own = max(1, self.total // self._share)
            self._gate = asyncio.Semaphore(own)
            if own < allowed:
                slots = "1 slot" if self.total == 1 else f"{self.total:,} slots"
                self._tell(f"{shown_url(spec.base_url)} has {slots}: no more requests are sent to it at a time")

    @asynccontextmanager
    async def held(self) -> AsyncGenerator[None]:
        """Hold a slot, if they are known."""
        if self._gate is None:
            yield
            return
        async with self._gate:
            yield


_HOSTED = frozenset(urlsplit(preset.base_url).hostname for preset in PRESETS if not preset.is_local)


def _may_tell(spec: ModelSpec, client: Client) -> bool:
    return client.proxy is None and urlsplit(spec.base_url).hostname not in _HOSTED


async def _told_slots(client: Client) -> int | None:
    """Return `total_slots` of llama.cpp's properties, which are beside its API; `None` where there are none."""
    try:
        properties = json.loads(await client.get_apart(f"{str(client.base_url).removesuffix('/v1')}/props"))
    except client.errors:
        return None
    except (ValueError, RecursionError, TimeoutError):
        return None
    slots = properties.get("total_slots") if isinstance(properties, dict) else None
    return slots if isinstance(slots, int) and not isinstance(slots, bool) and slots > 0 else None


@dataclass(slots=True, eq=False)
class Flight:
    """A request in flight. `ahead` is how many were when it was sent, `ends_s` when these ended, in order. `first_s` is
    when the first token came, `computing_s` when the endpoint says that it began."""

    sent_s: float
    ahead: int
    first_s: float | None = None
    computing_s: float | None = None
    ends_s: list[float] = field(default_factory=list)


class Flights:
    """The requests in flight to one model at an endpoint. Where first tokens come later the more requests are in
    flight, finds out how many are computed at a time, and calls `lower` with that number, which is lower each time.
    `clock` returns monotonic seconds."""

    def __init__(self, lower: Callable[[int], object], clock: Callable[[], float] = time.monotonic) -> None:
        self._lower = lower
        self._clock = clock
        self._under_way: list[Flight] = []
        self._streaming = self._most_streaming = 0
        self._seen: deque[tuple[int, float]] = deque(maxlen=_KEPT)
        self._slots: int | None = None

    def begin(self) -> Flight:
        """Note that a request is sent."""
        flight = Flight(self._clock(), len(self._under_way))
        self._under_way.append(flight)
        return flight

    def first_token(self, flight: Flight) -> None:
        """Note that the first token of an answer came."""
        if flight.first_s is None:
            flight.first_s = self._clock()
            self._streaming += 1
            self._most_streaming = max(self._most_streaming, self._streaming)

    def computing(self, flight: Flight, took_ms: float) -> None:
        """Note that the endpoint has computed on a request for so long."""
        if flight.computing_s is None:
            flight.computing_s = self._clock() - took_ms / 1000

    def end(self, flight: Flight) -> None:
        """Note that a request is over."""
        now_s = self._clock()
        at = self._under_way.index(flight)
        for later in self._under_way[at + 1 :]:
            later.ends_s.append(now_s)
        del self._under_way[at]
        if flight.first_s is not None:
            self._streaming -= 1
            self._seen.append((flight.ahead, flight.first_s - flight.sent_s))
            self._look()

    def waited_ms(self, flight: Flight, prompt_ms: float | None) -> float:
        """Return how long a request waited at the endpoint, as far as that is known: until the endpoint began, by its
        progress or by the time that it says it took for the prompt, or until enough of those ahead had ended, where it
        is known how many are computed at a time."""
        if flight.first_s is None:
            return 0.0
        if flight.computing_s is not None:
            until_s = flight.computing_s
        elif prompt_ms is not None:
            until_s = flight.first_s - prompt_ms / 1000
        elif self._slots is not None and self._slots <= flight.ahead < self._slots + len(flight.ends_s):
            until_s = flight.ends_s[flight.ahead - self._slots]
        else:
            return 0.0
        waited_ms = (min(until_s, flight.first_s) - flight.sent_s) * 1000
        return round(waited_ms, 3) if waited_ms >= MIN_WAIT_MS else 0.0

    def _look(self) -> None:
        found = slots_shown_by(self._seen)
        if found is None:
            return
        slots = max(found, self._most_streaming)
        if slots < max(ahead for ahead, _ in self._seen) + 1 and (self._slots is None or slots < self._slots):
            self._slots = slots
            self._seen.clear()
            self._lower(slots)


def slots_shown_by(seen: deque[tuple[int, float]]) -> int | None:
    """Return how many requests were computed at a time, by how many were ahead of each and the seconds to its first
    token; `None` where the first tokens do not come later the more were ahead."""
    pairs = [
        (one[1] - other[1]) * (one[0] - other[0])
        for one, other in combinations(seen, 2)
        if one[0] != other[0] and min(one[1], other[1]) < _DIFFER * max(one[1], other[1])
    ]
    if len(pairs) < _MIN_PAIRS:
        return None
    surplus = sum(pair > 0 for pair in pairs) - sum(pair < 0 for pair in pairs)
    if surplus < _IN_ORDER * len(pairs):
        return None
    middle = median(ahead for ahead, _ in seen)
    early = [first_s for ahead, first_s in seen if ahead < middle]
    late = [first_s for ahead, first_s in seen if ahead >= middle]
    if not early or median(late) < max(2 * median(early), median(early) + MIN_GROWTH_SECONDS):
        return None
    shortest = min(first_s for _, first_s in seen)
    return max(ahead + 1 for ahead, first_s in seen if first_s <= _AT_ONCE * shortest)
