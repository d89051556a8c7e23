"""Finds the largest one-to-one pairing of members and calls, where a call either fits a member or does not."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Protocol

Bucket = tuple[Hashable, ...]
"""What a call and the members that it may fit have in common."""


class Among(Protocol):
    """Tells which members a call may fit at all: those of its buckets (see `workbench.grading.candidates`)."""

    def bucket(self, expected: int) -> Bucket: ...
    def buckets(self, call: int) -> Sequence[Bucket]: ...
    def kind(self, call: int) -> Hashable: ...
    def may_compare(self, bucket: Bucket) -> bool: ...


def paired_in_turn(
    members: Sequence[int], calls: Iterable[int], fits: Callable[[int, int], bool], among: Among | None = None
) -> dict[int, int]:
    """Returns the call of each paired member in a largest pairing, which prefers earlier calls.

    The calls are tried in the order given. Each is taken if the pairing can be enlarged by it, for which earlier calls
    may move to other members. The search stops when every member has a call. `fits(member, call)` is asked only as far
    as needed, and only for members that the call may fit `among` all; calls of one kind fit the same members.
    """
    pairing = _Pairing(members, fits, among or _All())
    for call in calls:
        if len(pairing.call_of) == len(members):
            break
        pairing.take(call)
    return pairing.call_of


class _All:
    """Every call may fit every member."""

    def bucket(self, expected: int) -> Bucket:
        return ()

    def buckets(self, call: int) -> Sequence[Bucket]:
        return ((),)

    def kind(self, call: int) -> Hashable:
        return call

    def may_compare(self, bucket: Bucket) -> bool:
        return True


class _Pairing:
    """The pairs so far. A member that has a call always keeps one, though not always the same."""

    def __init__(self, members: Sequence[int], fits: Callable[[int, int], bool], among: Among) -> None:
        self.call_of: dict[int, int] = {}
        self._fits = fits
        self._among = among
        self._free: dict[Bucket, list[int]] = {}
        for member in members:
            self._free.setdefault(among.bucket(member), []).append(member)
        self._reachable = {bucket: list(members) for bucket, members in self._free.items()}
        self._settled: set[int] = set()
        self._closed: set[Hashable] = set()

    def take(self, call: int) -> None:
        """Add a call if the pairing can be enlarged by it."""
        if not any(self._reachable.get(bucket) for bucket in self._among.buckets(call)):
            return
        if self._closed and self._among.kind(call) in self._closed:
            return
        free = next(self._fitting(call, self._free), None)
        if free is not None:
            self._hand(free, call)
        else:
            self._enlarge(call)

    def _fitting(self, call: int, lists: dict[Bucket, list[int]], *, taken: bool = False) -> Iterator[int]:
        """Returns the members of some lists that a call fits, in order; with `taken` only those that have a call."""
        buckets = [bucket for bucket in self._among.buckets(call) if lists.get(bucket)]
        if len(buckets) == 1:
            (bucket,) = buckets
            for member in lists[bucket]:
                if taken and member not in self.call_of:
                    continue
                if not self._among.may_compare(bucket):
                    return
                if self._fits(member, call):
                    yield member
            return
        for member in heapq.merge(*(lists[bucket] for bucket in buckets)):
            if taken and member not in self.call_of:
                continue
            if self._among.may_compare(self._among.bucket(member)) and self._fits(member, call):
                yield member

    def _enlarge(self, call: int) -> None:
        """Assign the call to a member along a shortest augmenting path, if there is one.

        Where there is none, no path will ever lead on from any member that was reached: these members are settled, and
        calls of the same kinds need not be tried again.
        """
        offered: dict[int, int] = {}
        kinds: set[Hashable] = set()
        seeking = [call]
        for seeker in seeking:
            kind = self._among.kind(seeker)
            if kind in kinds:
                continue
            kinds.add(kind)
            # No free member takes the first one, as was already found.
            for member in self._fitting(seeker, self._reachable, taken=seeker == call):
                if member in offered:
                    continue
                offered[member] = seeker
                if member in self.call_of:
                    seeking.append(self.call_of[member])
                else:
                    self._pass_on(member, offered, call)
                    return
        self._closed |= kinds
        self._settled.update(offered)
        for bucket in {self._among.bucket(member) for member in offered}:
            self._reachable[bucket] = [each for each in self._reachable[bucket] if each not in self._settled]

    def _pass_on(self, member: int, offered: dict[int, int], call: int) -> None:
        """Walk the path back from a free member: every call on it moves to the member that it was offered to."""
        member_of = {taken: holder for holder, taken in self.call_of.items()}
        free = member
        while True:
            given = self.call_of[member] = offered[member]
            if given == call:
                break
            member = member_of[given]
        self._hand(free, self.call_of[free])

    def _hand(self, member: int, call: int) -> None:
        """Assign a call to a free member."""
        self.call_of[member] = call
        self._free[self._among.bucket(member)].remove(member)
