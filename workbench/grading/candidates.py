"""Finds which calls may fit which expected calls by the plain values that are expected, instead of comparing all
pairs."""

from __future__ import annotations

import json
from collections.abc import Collection, Hashable, Mapping, Sequence

from workbench.checks.check import Check, Checks
from workbench.checks.values import canonical_text, spelled_number
from workbench.grading.matching import Bucket
from workbench.suite.model import ANY_TOOL
from workbench.trajectory.messages import JsonValue

FEW_PAIRS = 1_000
"""Up to this many pairs, comparing all is faster than looking for common values."""

MAX_COMPARED = 100_000
"""After this many comparisons with only the tool in common, no more are made."""

MAX_COMPARED_SLOWLY = 20_000
"""The same limit where a check is slow, such as a pattern or a similarity."""

MAX_COMPARED_IN_BUCKETS = 1_000_000
"""The same limit for calls that have all the plain values, few of which should not fit."""

NOT_ALL_COMPARED = "too many calls to compare every pair, so a better pairing may exist"
"""Added to the reason of a grade where a limit was reached."""

Wanted = tuple[str, Checks | None]
"""A tool and the checks on its arguments."""

Made = tuple[str, Mapping[str, JsonValue]]
"""A tool and arguments."""

_MAX_SHAPES = 20
"""The most combinations of plain arguments by which calls of one tool are looked up."""


class Candidates:
    """For each call the expected calls that may fit it, and vice versa; all other pairs certainly do not fit. Both are
    counted from 0.

    A bucket is a tool with the names and values of plain arguments, or a tool alone where no plain value is expected.
    An expected call may fit a call of its tool that has all its plain values. Values are compared loosely here (5, 5.0
    and "5" are equal), so that the result is valid under every grader's rule. `apart` are calls that may fit different
    expected calls than other calls with equal arguments. Without `ask_outside`, an expected call that needs a judge or
    a function, and has no plain value, is not compared at all. `exhausted` says that a limit of comparisons was
    reached; `compares_all` that there are few pairs, each of which may fit.
    """

    def __init__(
        self,
        wanted: Sequence[Wanted],
        made: Sequence[Made],
        *,
        apart: Collection[int] = (),
        ask_outside: bool = True,
    ) -> None:
        self.made = made
        self._apart = apart
        self._ask_outside = ask_outside
        self.exhausted = False
        self.compares_all = len(wanted) * len(made) <= FEW_PAIRS
        slow = not self.compares_all and any(check.is_slow for _, checks in wanted for check in (checks or {}).values())
        self._left = {True: MAX_COMPARED_SLOWLY if slow else MAX_COMPARED, False: MAX_COMPARED_IN_BUCKETS}
        self._some_any = any(tool == ANY_TOOL for tool, _ in wanted)
        self._shapes: dict[str, dict[tuple[str, ...], None]] = {}
        self._bucket_of = [self._bucket(tool, checks) for tool, checks in wanted]
        self._calls_in: dict[Bucket, list[int]] | None = None
        self._buckets: dict[int, list[Bucket]] = {}
        self._kinds: dict[int, Hashable] = {}

    def bucket(self, expected: int) -> Bucket:
        """Returns what calls must have in common to fit an expected call."""
        return self._bucket_of[expected]

    def buckets(self, call: int) -> list[Bucket]:
        """Returns the buckets of all expected calls that the call may fit."""
        known = self._buckets.get(call)
        if known is None:
            known = self._buckets[call] = list(self._buckets_for(*self.made[call]))
        return known

    def calls(self, expected: int) -> Sequence[int]:
        """Returns the calls that may fit an expected call, in order."""
        if self.compares_all:
            return range(len(self.made))
        if self._calls_in is None:
            self._calls_in = {}
            for call in range(len(self.made)):
                for bucket in self.buckets(call):
                    self._calls_in.setdefault(bucket, []).append(call)
        return self._calls_in.get(self._bucket_of[expected], ())

    def given_up(self, bucket: Bucket) -> bool:
        """Returns whether no more calls are compared for a bucket."""
        given_up = self._left[len(bucket) == 1] <= 0 and not self.compares_all
        self.exhausted = self.exhausted or given_up
        return given_up

    def kind(self, call: int) -> Hashable:
        """Returns a key that is equal for calls with equal tools and arguments."""
        known = self._kinds.get(call)
        if known is None:
            tool, arguments = self.made[call]
            try:
                known = call if call in self._apart else (tool, json.dumps(arguments, sort_keys=True))
            except (RecursionError, ValueError):
                known = call
            self._kinds[call] = known
        return known

    def may_compare(self, bucket: Bucket) -> bool:
        """Returns whether another comparison is within the limits."""
        if self.compares_all:
            return True
        alone = len(bucket) == 1
        if self._left[alone] <= 0:
            self.exhausted = True
            return False
        self._left[alone] -= 1
        return True

    def _bucket(self, tool: str, checks: Checks | None) -> Bucket:
        if self.compares_all:
            return _ALL
        plain = {name: check.samples()[0] for name, check in (checks or {}).items() if _counts(check)}
        shapes = self._shapes.setdefault(tool, {})
        names = tuple(sorted(plain))
        try:
            values = tuple(_loosely(plain[name]) for name in names)
        except RecursionError:
            return (tool,)
        if not names and not self._ask_outside and any(each.asks_outside for each in (checks or {}).values()):
            return _NOWHERE
        if not names or (names not in shapes and len(shapes) == _MAX_SHAPES):
            return (tool,)
        shapes[names] = None
        return (tool, names, values)

    def _buckets_for(self, tool: str, arguments: Mapping[str, JsonValue]) -> Sequence[Bucket]:
        if self.compares_all:
            return (_ALL,)
        found: list[Bucket] = []
        keys: dict[str, Hashable] = {}
        for named in (tool, ANY_TOOL) if self._some_any else (tool,):
            found.append((named,))
            for names in self._shapes.get(named, ()):
                if not all(name in arguments for name in names):
                    continue
                try:
                    keys |= {name: _loosely(arguments[name]) for name in names if name not in keys}
                except RecursionError:
                    continue
                found.append((named, names, tuple(keys[name] for name in names)))
        return found


_ALL: Bucket = ("",)
_NOWHERE: Bucket = ()
_BEGINS_NUMBER = frozenset("-0123456789 \t\r\n")


def _counts(check: Check) -> bool:
    return check.is_exact and not check.expects_null and not check.optional and check.weight != 0


def _loosely(value: JsonValue) -> Hashable:
    """Returns a key that is equal for values that some grader treats as equal. Raises RecursionError for deeply nested
    values."""
    if isinstance(value, str):
        if value.lower() in ("true", "false"):
            return value.lower() == "true"
        number = spelled_number(value) if value[:1] in _BEGINS_NUMBER else None
        return number if number is not None else canonical_text(value)
    if isinstance(value, list):
        return ("[", *map(_loosely, value))
    if isinstance(value, dict):
        return ("{", frozenset((_loosely(name), _loosely(item)) for name, item in value.items()))
    return value
