"""Pairing of actual calls with expected calls, and of rounds with the steps of a chain."""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Collection, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import repeat
from typing import NamedTuple, Protocol, TypeVar

from workbench.checks.check import Check, Checks
from workbench.checks.values import canonical_text, spelled_number
from workbench.suite.expected_calls import ANY_TOOL
from workbench.suite.model import Case
from workbench.trajectory.events import JsonValue
from workbench.trajectory.trajectory import CallRecord, Round, Trajectory

MAX_PAIRS = 10_000
"""The most pairs (a hundred expected calls by a hundred calls) for which the best pairing is computed. For more pairs,
each row takes its best column in turn."""

_MAX_VERIFIED = 20_000
"""The most pairs that are compared only to learn whether a large pairing is the best one."""

# Gains are sums of float shares. Their last digits depend on the order of the terms.
_SLACK = 1e-9

_Gain = TypeVar("_Gain")

_LOOKED_AT = 100
_LOOKED_AT_IN_ALL = 100_000
"""The most columns that `greedy_pairs` considers for all rows together."""


def greedy_pairs(
    rows: Sequence[int], columns: Sequence[int], gain: Callable[[int, int], float]
) -> list[tuple[int, int]]:
    """Pair each row in turn with the best of the first hundred remaining columns.

    The pairing is greedy and may not be the best. Returns the pairs in the order of the rows. Among columns with equal
    gains, the earliest is chosen."""
    left = list(columns)
    # With more than a thousand rows, each row considers fewer columns to keep the time linear in the number of rows.
    looked_at = max(min(_LOOKED_AT, _LOOKED_AT_IN_ALL // (len(rows) or 1)), 1)
    pairs = []
    for row in rows:
        if not left:
            break
        column = max(left[:looked_at], key=lambda each: gain(row, each))
        left.remove(column)
        pairs.append((row, column))
    return pairs


def unused_numbers(numbers: Iterable[int], used: Container[int]) -> list[int]:
    return [number for number in numbers if number not in used]


def broken_calls(calls: Sequence[CallRecord]) -> frozenset[int]:
    return frozenset([index for index, record in enumerate(calls) if record.is_broken])


def gain_table(rows: Sequence[int], columns: Sequence[int], gain: Callable[[int, int], _Gain]) -> list[list[_Gain]]:
    table = []
    for row in rows:
        table.append([gain(row, column) for column in columns])
    return table


def pairs_at(rows: Sequence[int], columns: Sequence[int], places: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Convert pairs of positions in `rows` and `columns` to a mapping from row to column."""
    return {rows[row]: columns[column] for row, column in places}


class LargePairing(NamedTuple):
    """Pairs of rows with columns. `is_optimal` says whether their total gain is known to be the largest."""

    pairs: dict[int, int]
    is_optimal: bool


def large_pairing(
    rows: Sequence[int],
    columns: Sequence[int],
    perfect: Mapping[int, int],
    best: Callable[[Sequence[int], Sequence[int]], Mapping[int, int]],
    in_turn: Callable[[Sequence[int], Sequence[int]], Mapping[int, int]],
    gain: Callable[[int, int], float],
    max_gain: Callable[[int], float],
) -> LargePairing:
    """Pair more rows and columns than can all be compared with each other. The result contains the `perfect` pairs.

    The remaining rows and columns are paired by `best` if they form at most `MAX_PAIRS` pairs, otherwise by `in_turn`.
    `gain(row, column)` is the value of a pair, and `most(row)` is an upper bound for the value of the row's pairs."""
    rows_left = unused_numbers(rows, perfect)
    columns_left = unused_numbers(columns, set(perfect.values()))
    pair_the_rest = in_turn
    if len(rows_left) * len(columns_left) <= MAX_PAIRS:
        pair_the_rest = best
    pairs = {**perfect, **pair_the_rest(rows_left, columns_left)}
    return LargePairing(pairs, _each_has_its_best(rows, columns, pairs, gain, max_gain))


def _each_has_its_best(
    rows: Sequence[int],
    columns: Sequence[int],
    pairs: Mapping[int, int],
    gain: Callable[[int, int], float],
    max_gain: Callable[[int], float],
) -> bool:
    """Return whether every line of the shorter side (rows or columns) has its largest gain. `False` if unknown."""
    # A pairing is best if every line of the shorter side has its maximum. If two rows want the same column, one of them
    # does not have it, and even a best pairing is reported as unknown.
    by_row = len(rows) <= len(columns)
    if len(pairs) < min(len(rows), len(columns)):
        return False
    limit = max(map(max_gain, rows), default=0.0)
    doubtful = []
    for row, column in pairs.items():
        bound = max_gain(row) if by_row else limit
        if gain(row, column) < bound - _SLACK:
            doubtful.append((row, column))
    if len(doubtful) * max(len(rows), len(columns)) > _MAX_VERIFIED:
        return False
    for row, column in doubtful:
        rivals = map(gain, repeat(row), columns) if by_row else map(gain, rows, repeat(column))
        if gain(row, column) < max(rivals) - _SLACK:
            return False
    return True


def best_pairing(gains: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Pair rows with columns so that the sum of the gains is as large as possible.

    Every row is paired, or every column if there are fewer columns. Gains are integers, so equal sums compare as equal.
    Gains may be negative. Returns the pairs in the order of their rows. Implements the Hungarian method with
    potentials, O(rows² · columns).

    >>> best_pairing([[3, 2], [3, 0]])
    [(0, 1), (1, 0)]"""
    if not gains or not gains[0]:
        return []
    # The method adds one row at a time and needs a column for each row, so a table with more rows than columns is
    # transposed.
    if len(gains) > len(gains[0]):
        turned = best_pairing(list(zip(*gains, strict=True)))
        return sorted(_turned_back(turned))
    at_once = _each_row_its_best(gains)
    if at_once is not None:
        return at_once
    return _hungarian(gains)


def _turned_back(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    return [(row, column) for column, row in pairs]


def clear_pairing(gains: Sequence[Sequence[float]], margin: float) -> list[tuple[int, int]] | None:
    """Return the best pairing if it is obvious, otherwise `None`.

    Two conditions make it obvious. Every line of the shorter side (rows or columns) gains more with its partner than
    with any other line, by more than `margin`. No two lines share a partner."""
    if not gains or not gains[0]:
        return []
    if len(gains) > len(gains[0]):
        turned = clear_pairing(list(zip(*gains, strict=True)), margin)
        if turned is None:
            return None
        return _turned_back(turned)
    columns = []
    for row in gains:
        most = max(row)
        if len(row) > 1 and sorted(row)[-2] >= most - margin:
            return None
        columns.append(row.index(most))
    if len(set(columns)) == len(columns):
        return list(enumerate(columns))
    return None


def certain_pairs(gains: Sequence[Sequence[float]], margin: float) -> dict[int, int]:
    """Return pairs that every best pairing contains, as a mapping from row to column.

    A row and its best column form such a pair under two conditions. The column is the row's best by more than `margin`,
    and the column gains nothing with any other row. Returns no pairs if a gain is negative."""
    if any(min(row) < 0 for row in gains):
        return {}
    gained_by = []
    for column in zip(*gains, strict=True):
        gained_by.append([number for number, gain in enumerate(column) if gain])
    sure = {}
    for number, row in enumerate(gains):
        best = row.index(max(row))
        clear = all(other == best or gain < row[best] - margin for other, gain in enumerate(row))
        if clear and gained_by[best] == [number]:
            sure[number] = best
    return sure


def _each_row_its_best(gains: Sequence[Sequence[int]]) -> list[tuple[int, int]] | None:
    """Return the pairing in which every row has its largest gain, or `None` if two rows want the same column."""
    pairs = [(number, row.index(max(row))) for number, row in enumerate(gains)]
    if len({column for _, column in pairs}) == len(pairs):
        return pairs
    return None


# The Hungarian method (Kuhn 1955, Munkres 1957), in the form that adds one row at a time along a shortest path (Jonker
# and Volgenant 1987). Costs are negative gains. Every row and every column has a potential. Two conditions hold. No
# cost is below the sum of the potentials of its row and column, and the cost of each chosen pair equals this sum. The
# chosen pairs are then the best for the rows so far (linear programming duality).
#
# A new row looks for a free column as Dijkstra's algorithm does. The distance is the reduced cost, which is the cost
# minus both potentials. The search visits the nearest column, continues from the row that holds this column, and stops
# at a free column. The potentials of the visited rows and columns then move by the distance, so both conditions still
# hold. Every row on the path hands its column to the previous row.
def _hungarian(gains: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    rows, columns = len(gains), len(gains[0])
    # This is larger than any reduced cost. `math.inf` does not fit, because the gains of `critics` may be too large for
    # a float.
    unreached = 1 + 4 * rows * (1 + max(max(map(abs, row)) for row in gains))
    # Index 0 means "none" on both sides: row 0 holds every free column, and column 0 holds the row that is being added.
    row_potential = [0] * (rows + 1)
    column_potential = [0] * (columns + 1)
    row_of = [0] * (columns + 1)
    for new_row in range(1, rows + 1):
        row_of[0] = new_row
        column = 0
        slack = [unreached] * (columns + 1)
        came_from = [0] * (columns + 1)
        visited = [False] * (columns + 1)
        while row_of[column]:
            visited[column] = True
            row = row_of[column]
            row_gains = gains[row - 1]
            step, nearest = unreached, 0
            for other in range(1, columns + 1):
                if visited[other]:
                    continue
                reduced = -row_gains[other - 1] - row_potential[row] - column_potential[other]
                if reduced < slack[other]:
                    slack[other], came_from[other] = reduced, column
                if slack[other] < step:
                    step, nearest = slack[other], other
            for other in range(columns + 1):
                if visited[other]:
                    row_potential[row_of[other]] += step
                    column_potential[other] -= step
                else:
                    slack[other] -= step
            column = nearest
        while column:
            row_of[column] = row_of[came_from[column]]
            column = came_from[column]
    return sorted((row_of[column] - 1, column - 1) for column in range(1, columns + 1) if row_of[column])


# The largest one-to-one pairing of members (expected calls) with calls. A call either fits a member or does not. A
# pairing is the largest if no augmenting path is left (Berge 1957). An augmenting path begins at a call without a
# member. It leads to a member that the call fits, to this member's call, to another member that the second call fits,
# and so on. It ends at a member without a call. Moving every call one member further along the path adds a pair, and
# paired members stay paired.
#
# Comparisons take most of the time because they evaluate checks. Three rules save most comparisons. First, a bucket is
# a tool with the plain values that a fitting call must have, and only members and calls in the same bucket are
# compared. Second, calls with equal tools and arguments are of one kind, and only one call of a kind is compared.
# Third, a search without a result settles the members that it reached, because no augmenting path will ever include
# them.

Bucket = tuple[Hashable, ...]
"""The key of a bucket: the values that a call and every member it may fit have in common."""


class BucketIndex(Protocol):
    """An index that saves comparisons of calls with expectations.

    A call can only fit an expectation (`expected`) whose bucket is among the call's buckets."""

    def bucket(self, expected: int) -> Bucket: ...
    def buckets(self, call: int) -> Sequence[Bucket]: ...
    def identity(self, call: int) -> Hashable: ...
    def may_compare(self, bucket: Bucket) -> bool: ...


def maximum_matching(
    members: Sequence[int],
    calls: Iterable[int],
    fits: Callable[[int, int], bool],
    bucket_index: BucketIndex | None = None,
) -> dict[int, int]:
    """Pair as many expectations with calls as possible, and return the call of each paired expectation.

    `members` are the expectations. Calls are tried in the given order. A call is taken if it adds a pair, and earlier
    calls may then move to other expectations. The search stops when every expectation has a call. `fits(member, call)`
    compares only the pairs that `bucket_index` allows, or any pair without `bucket_index`."""
    pairing = IncrementalMatching(members, fits, bucket_index or _All())
    for call in calls:
        if len(pairing.call_of) == len(members):
            break
        pairing.add(call)
    return pairing.call_of


class _All:
    def bucket(self, expected: int) -> Bucket:
        return ()

    def buckets(self, call: int) -> Sequence[Bucket]:
        return ((),)

    def identity(self, call: int) -> Hashable:
        return call

    def may_compare(self, bucket: Bucket) -> bool:
        return True


class IncrementalMatching:
    """A pairing of expectations (`members`) with calls that grows call by call.

    A paired expectation may get another call, but always keeps one. `paired` has the initial calls of expectations."""

    def __init__(
        self,
        members: Sequence[int],
        fits: Callable[[int, int], bool],
        bucket_index: BucketIndex,
        paired: Mapping[int, int] | None = None,
    ) -> None:
        self.call_of: dict[int, int] = dict(paired or {})
        self._fits = fits
        self._bucket_index = bucket_index
        self._free: dict[Bucket, list[int]] = {}
        # The members that a search may still reach, with or without a call.
        self._reachable: dict[Bucket, list[int]] = {}
        for member in members:
            bucket = bucket_index.bucket(member)
            self._reachable.setdefault(bucket, []).append(member)
            if member not in self.call_of:
                self._free.setdefault(bucket, []).append(member)
        self._settled: set[int] = set()
        # These are the kinds of calls for which no member is free. Another search for such a kind would fail too.
        self._closed: set[Hashable] = set()

    def add(self, call: int) -> None:
        """Add a call to the pairing if that increases the number of pairs."""
        if not any(self._reachable.get(bucket) for bucket in self._bucket_index.buckets(call)):
            return
        if self._closed and self._bucket_index.identity(call) in self._closed:
            return
        free = next(self._fitting(call, self._free), None)
        if free is not None:
            self._hand(free, call)
        else:
            self._enlarge(call)

    def _fitting(self, call: int, lists: dict[Bucket, list[int]], *, only_paired: bool = False) -> Iterator[int]:
        buckets = [bucket for bucket in self._bucket_index.buckets(call) if lists.get(bucket)]
        # Almost every call has members in only one bucket, whose list needs no merging.
        if len(buckets) == 1:
            (bucket,) = buckets
            for member in lists[bucket]:
                if only_paired and member not in self.call_of:
                    continue
                if not self._bucket_index.may_compare(bucket):
                    return
                if self._fits(member, call):
                    yield member
            return
        for member in heapq.merge(*(lists[bucket] for bucket in buckets)):
            if only_paired and member not in self.call_of:
                continue
            if self._bucket_index.may_compare(self._bucket_index.bucket(member)) and self._fits(member, call):
                yield member

    def _enlarge(self, call: int) -> None:
        """Assign the call to an expectation along a shortest augmenting path, if there is one."""
        offered: dict[int, int] = {}
        identities: set[Hashable] = set()
        # A breadth-first search: the list grows during the iteration.
        seeking = [call]
        for seeker in seeking:
            identity = self._bucket_index.identity(seeker)
            if identity in identities:
                continue
            identities.add(identity)
            # `add` has already found that no free member takes the first call.
            for member in self._fitting(seeker, self._reachable, only_paired=seeker == call):
                if member in offered:
                    continue
                offered[member] = seeker
                if member in self.call_of:
                    seeking.append(self.call_of[member])
                else:
                    self._pass_on(member, offered, call)
                    return
        self._closed |= identities
        self._settled.update(offered)
        for bucket in {self._bucket_index.bucket(member) for member in offered}:
            self._reachable[bucket] = unused_numbers(self._reachable[bucket], self._settled)

    def _pass_on(self, member: int, offered: dict[int, int], call: int) -> None:
        member_of = {taken: holder for holder, taken in self.call_of.items()}
        free = member
        while True:
            given = self.call_of[member] = offered[member]
            if given == call:
                break
            member = member_of[given]
        self._hand(free, self.call_of[free])

    def _hand(self, member: int, call: int) -> None:
        self.call_of[member] = call
        self._free[self._bucket_index.bucket(member)].remove(member)


# Candidates: the calls that may fit an expected call. They are found by plain values instead of by comparing all pairs.

FEW_PAIRS = 1_000
"""Up to this number of pairs, all pairs are compared: building buckets would take longer than it saves."""

MAX_COMPARED = 100_000
"""The most comparisons in one case between calls with nothing but the tool in common."""

MAX_SLOW_COMPARISONS = 20_000
"""The limit in place of `MAX_COMPARED` for a case with a slow check, such as a pattern or a similarity."""

MAX_BUCKET_COMPARISONS = 1_000_000
"""The most comparisons in one case between calls with the same plain values. Most of these calls fit."""

NOT_ALL_COMPARED = "too many calls to compare every pair, so a better pairing may exist"
"""Appended to the reason of a grade whose pairing reached a limit of comparisons."""

CallPattern = tuple[str, Checks | None]
"""An expected call: its tool and the checks of its arguments."""

ActualCall = tuple[str, Mapping[str, JsonValue]]
"""An actual call: its tool and its arguments."""

_MAX_SHAPES = 20
"""The most combinations of plain arguments under which calls of one tool are looked up."""


class Candidates:
    """The calls that may fit each expected call. All other pairs certainly do not fit.

    Calls in `expected` and `actual` are numbered from 0. A bucket is a tool with the names and values of
    plain arguments, or only a tool if no plain value is expected. An expected call may fit a call of its tool that has
    all its plain values.

    `distinct` are calls that need comparisons of their own, because something besides their tool and arguments decides
    what they fit. Without `ask_outside`, an expected call is not compared at all if it needs a judge or a function and
    has no plain value. For at most `FEW_PAIRS` pairs, `compares_all` is true, and every pair may fit. `exhausted`
    becomes true when a limit of comparisons is reached."""

    def __init__(
        self,
        expected: Sequence[CallPattern],
        actual: Sequence[ActualCall],
        *,
        distinct: Collection[int] = (),
        ask_outside: bool = True,
    ) -> None:
        self._actual = actual
        self._distinct = distinct
        self._ask_outside = ask_outside
        self.exhausted = False
        self.compares_all = len(expected) * len(actual) <= FEW_PAIRS
        # The numbers of comparisons that are left: for buckets that are only a tool (True), and for all others (False).
        self._left = {True: MAX_COMPARED, False: MAX_BUCKET_COMPARISONS}
        if not self.compares_all and any(_is_slow(checks) for _, checks in expected):
            self._left[True] = MAX_SLOW_COMPARISONS
        self._some_any = any(tool == ANY_TOOL for tool, _ in expected)
        self._shapes: dict[str, dict[tuple[str, ...], None]] = {}
        self._bucket_of = [self._bucket(tool, checks) for tool, checks in expected]
        self._calls_in: dict[Bucket, list[int]] | None = None
        self._buckets: dict[int, list[Bucket]] = {}
        self._identities: dict[int, Hashable] = {}

    def bucket(self, expected: int) -> Bucket:
        return self._bucket_of[expected]

    def buckets(self, call: int) -> list[Bucket]:
        known = self._buckets.get(call)
        if known is None:
            known = self._buckets[call] = list(self._buckets_for(*self._actual[call]))
        return known

    def calls(self, expected: int) -> Sequence[int]:
        """Return the calls that may fit an expected call, in order."""
        if self.compares_all:
            return range(len(self._actual))
        if self._calls_in is None:
            self._calls_in = {}
            for call in range(len(self._actual)):
                for bucket in self.buckets(call):
                    self._calls_in.setdefault(bucket, []).append(call)
        return self._calls_in.get(self._bucket_of[expected], ())

    def is_exhausted(self, bucket: Bucket) -> bool:
        is_exhausted = self._left[len(bucket) == 1] <= 0 and not self.compares_all
        self.exhausted = self.exhausted or is_exhausted
        return is_exhausted

    def identity(self, call: int) -> Hashable:
        """Return a key that is equal for calls with equal tools and arguments."""
        known = self._identities.get(call)
        if known is None:
            known = call
            tool, arguments = self._actual[call]
            if call not in self._distinct:
                with suppress(RecursionError, ValueError):
                    known = (tool, json.dumps(arguments, sort_keys=True))
            self._identities[call] = known
        return known

    def may_compare(self, bucket: Bucket) -> bool:
        """Count a comparison in a bucket. Return whether the count is still within the limit."""
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
        checks = checks or {}
        plain = {}
        for name, check in checks.items():
            if _is_plain(check):
                plain[name] = check.samples()[0]
        shapes = self._shapes.setdefault(tool, {})
        names = tuple(sorted(plain))
        try:
            values = tuple(_loosely(plain[name]) for name in names)
        except RecursionError:
            return (tool,)
        if not names and not self._ask_outside and any(check.uses_outside_service for check in checks.values()):
            return _NOWHERE
        # A shape is a set of argument names. A call is looked up once per shape, so the number of shapes is limited.
        # The tool alone is always a valid bucket.
        if not names or (names not in shapes and len(shapes) == _MAX_SHAPES):
            return (tool,)
        shapes[names] = None
        return (tool, names, values)

    def _buckets_for(self, tool: str, arguments: Mapping[str, JsonValue]) -> Sequence[Bucket]:
        if self.compares_all:
            return (_ALL,)
        found: list[Bucket] = []
        keys: dict[str, Hashable] = {}
        tools = (tool, ANY_TOOL) if self._some_any else (tool,)
        for named in tools:
            found.append((named,))
            for names in self._shapes.get(named, ()):
                if not all(name in arguments for name in names):
                    continue
                try:
                    for name in names:
                        if name not in keys:
                            keys[name] = _loosely(arguments[name])
                except RecursionError:
                    continue
                found.append((named, names, tuple(keys[name] for name in names)))
        return found


_ALL: Bucket = ("",)
"""The bucket of every call if all pairs are compared."""

_NOWHERE: Bucket = ()
"""The bucket of an expected call that is not compared."""

_BEGINS_NUMBER = frozenset("-0123456789 \t\r\n")


def _is_slow(checks: Checks | None) -> bool:
    return any(check.is_slow for check in (checks or {}).values())


def _is_plain(check: Check) -> bool:
    """Return whether a check of an argument accepts a single value, requires the argument, and counts in the score."""
    return check.is_exact and not check.expects_null and not check.optional and check.weight != 0


def _loosely(value: JsonValue) -> Hashable:
    """Return a key that is equal for values that some grader treats as equal.

    Raises RecursionError for deeply nested values."""
    # The graders compare differently. `critics` casts "5" to 5 and "true" to true. `decision` and `dimensions` treat 5
    # as 5.0, and 1 as true. `trajectory` compares texts in NFC. A key that is too coarse only costs comparisons, but a
    # key that is too fine would lose pairs.
    if isinstance(value, str):
        if value.lower() in ("true", "false"):
            return value.lower() == "true"
        if value[:1] in _BEGINS_NUMBER:
            number = spelled_number(value)
            if number is not None:
                return number
        return canonical_text(value)
    if isinstance(value, list):
        return ("[", *map(_loosely, value))
    if isinstance(value, dict):
        return ("{", frozenset((_loosely(name), _loosely(item)) for name, item in value.items()))
    return value


# The steps of a chain: their rounds in a run, and the calls of these rounds.


class StepRound(NamedTuple):
    """The round that belongs to a step of a chain, and the index of the round's first call in `Trajectory.calls`."""

    round: Round
    first_call: int


def rounds_of_steps(case: Case, trajectory: Trajectory) -> tuple[StepRound | None, ...]:
    """Return the round of each step of a chain, or `None` for a step that was never reached.

    A round usually names its step. If no round of the run names a step, the k-th round belongs to the k-th step. An
    agent may make several rounds for a step. Their calls are then joined in the first of these rounds."""
    rounds = trajectory.rounds
    some_name_steps = any(round_.step is not None for round_ in rounds)
    found: list[StepRound | None] = [None] * len(case.steps)
    first_call = 0
    for place, round_ in enumerate(rounds):
        step: int | None = place + 1
        if some_name_steps:
            step = round_.step_number
        if step is not None and 1 <= step <= len(found):
            found[step - 1] = _joined(found[step - 1], StepRound(round_, first_call))
        first_call += len(round_.calls)
    return tuple(found)


def _joined(earlier: StepRound | None, later: StepRound) -> StepRound:
    if earlier is None:
        return later
    calls = (*earlier.round.calls, *later.round.calls)
    return StepRound(replace(earlier.round, calls=calls), earlier.first_call)


NO_CALL_OF_STEP = "the step expects no call"
"""The reason of the issue of a call at a step without an expected call."""


def calls_of_steps_without_call(case: Case, trajectory: Trajectory) -> tuple[int, ...]:
    """Return the indices of the calls that the model made in those steps of a chain that expect no call."""
    silent: list[int] = []
    for step, reached in zip(case.steps, rounds_of_steps(case, trajectory), strict=True):
        if not step.expects_call and reached is not None:
            silent += range(reached.first_call, reached.first_call + len(reached.round.calls))
    return tuple(silent)
