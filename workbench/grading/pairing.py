"""Pair calls with expected calls and rounds with steps, and turn pairings into issues."""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from workbench.checks.check import Check, Checks, describe
from workbench.checks.values import canonical_text, cut, describe_value, spelled_number
from workbench.dataclasses import ByIdentity
from workbench.grading.grade import ArgumentVerdict, CallPairing, Issue, IssueKind
from workbench.grading.scoring import ROUNDING_SLACK, part_earned
from workbench.numerals import score_text
from workbench.suite.model import ANY_TOOL, Case, ExpectedCall
from workbench.trajectory.events import JsonValue
from workbench.trajectory.trajectory import CallRecord, Round, Trajectory

MAX_PAIRS = 10_000
"""Up to this many pairs, a hundred by a hundred, the best pairing is computed. With more, each row takes its best in
turn."""

_MAX_VERIFIED = 20_000
_SLACK = 1e-9
_LOOKED_AT = 100
_LOOKED_AT_IN_ALL = 100_000


def pairs_in_turn(
    rows: Sequence[int], columns: Sequence[int], gain: Callable[[int, int], float]
) -> list[tuple[int, int]]:
    """Pair each row with the column that gains most among the first hundred that are left.

    This is fast, but does not always find the best pairing.
    With more than a thousand rows each considers fewer columns, so that the time is linear in the rows. Returns the
    pairs in the order of the rows; among equal gains the earliest column wins."""
    left = list(columns)
    looked_at = max(min(_LOOKED_AT, _LOOKED_AT_IN_ALL // (len(rows) or 1)), 1)
    pairs = []
    for row in rows:
        if not left:
            break
        column = max(left[:looked_at], key=lambda each: gain(row, each))
        left.remove(column)
        pairs.append((row, column))
    return pairs


class LargePairing(NamedTuple):
    """Pairs of rows with columns, and whether they certainly have the largest total gain."""

    pairs: dict[int, int]
    surely_best: bool


def large_pairing(
    rows: Sequence[int],
    columns: Sequence[int],
    perfect: Mapping[int, int],
    best: Callable[[Sequence[int], Sequence[int]], Mapping[int, int]],
    in_turn: Callable[[Sequence[int], Sequence[int]], Mapping[int, int]],
    gain: Callable[[int, int], float],
    most: Callable[[int], float],
) -> LargePairing:
    """Pair more rows and columns than can be compared pair by pair: the `perfect` pairs first, then the rest.

    The rest is paired by `best` where it is small enough, otherwise by `in_turn`. `most(row)` is an upper bound for the
    gain of a row. The result is certain when each line of the shorter side has its best.
    """
    taken = set(perfect.values())
    rows_left = [row for row in rows if row not in perfect]
    columns_left = [column for column in columns if column not in taken]
    few = len(rows_left) * len(columns_left) <= MAX_PAIRS
    pairs = {**perfect, **(best if few else in_turn)(rows_left, columns_left)}
    return LargePairing(pairs, _each_has_its_best(rows, columns, pairs, gain, most))


def _each_has_its_best(
    rows: Sequence[int],
    columns: Sequence[int],
    pairs: Mapping[int, int],
    gain: Callable[[int, int], float],
    most: Callable[[int], float],
) -> bool:
    """Return whether each row, or each column if there are fewer, gains as much as it can; `False` if unknown."""
    by_row = len(rows) <= len(columns)
    if len(pairs) < min(len(rows), len(columns)):
        return False
    limit = max(map(most, rows), default=0.0)
    doubtful = []
    for row, column in pairs.items():
        if gain(row, column) < (most(row) if by_row else limit) - _SLACK:
            doubtful.append((row, column))
    if len(doubtful) * max(len(rows), len(columns)) > _MAX_VERIFIED:
        return False
    others = columns if by_row else rows
    return all(
        gain(row, column) >= max(gain(row, other) if by_row else gain(other, column) for other in others) - _SLACK
        for row, column in doubtful
    )


def best_pairing(gains: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Pair rows with columns so that the sum of the gains is as large as possible.

    All of the shorter side are paired.

    Gains are integers, so that equal sums are recognised as equal; they may be negative. Returns the pairs in the order
    of their rows. Implements the Hungarian method with potentials, O(rows² · columns).
    """
    if not gains or not gains[0]:
        return []
    if len(gains) > len(gains[0]):
        turned = best_pairing(list(zip(*gains, strict=True)))
        return sorted((row, column) for column, row in turned)
    at_once = _each_row_its_best(gains)
    return at_once if at_once is not None else _hungarian(gains)


def clear_pairing(gains: Sequence[Sequence[float]], margin: float) -> list[tuple[int, int]] | None:
    """Return the best pairing where it is obvious, else `None`.

    It is obvious when every line of the shorter side gains most with a partner of its own, by more than `margin` over
    any other."""
    if not gains or not gains[0]:
        return []
    if len(gains) > len(gains[0]):
        turned = clear_pairing(list(zip(*gains, strict=True)), margin)
        if turned is None:
            return None
        return [(row, column) for column, row in turned]
    columns = []
    for row in gains:
        most = max(row)
        if len(row) > 1 and sorted(row)[-2] >= most - margin:
            return None
        columns.append(row.index(most))
    if len(set(columns)) == len(columns):
        return list(enumerate(columns))
    return None


def sure_pairs(gains: Sequence[Sequence[float]], margin: float) -> dict[int, int]:
    """Return the pairs that every best pairing contains.

    Such a pair is a row with the only column in which it gains anything, if the column also gains most with that row,
    by more than `margin` over any other. Returns none if a gain is negative."""
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
    """Return the pairing in which every row has its largest gain, which is the best possible one, if it exists."""
    pairs = [(number, row.index(max(row))) for number, row in enumerate(gains)]
    if len({column for _, column in pairs}) == len(pairs):
        return pairs
    return None


# The Hungarian method (Kuhn 1955, Munkres 1957), in the form that adds row by row along shortest paths (Jonker and
# Volgenant 1987). Costs are negative gains. Every row and column has a potential, such that no cost is below the sum of
# its row's and its column's, and equals it for each pair so far: then the pairs so far are the best for their rows. A
# new row searches as Dijkstra's algorithm does: always the column next that is nearest by cost minus potentials, from
# which the search goes on with the row that holds it. The search ends at a free column; the potentials of all that was
# visited move by the distance, which keeps both conditions, and the rows on the path each take the next column.
def _hungarian(gains: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Add one row after another along a cheapest augmenting path.

    Index 0 stands for "none" on both sides."""
    rows, columns = len(gains), len(gains[0])
    unreached = 1 + 4 * rows * (1 + max(abs(gain) for row in gains for gain in row))
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


# The largest one-to-one pairing of members and calls, where a call either fits a member or does not. A pairing is the
# largest if no augmenting path is left (Berge 1957): a call without a member, a member that it fits, the call that this
# member has, another member that this call fits, and so on to a member without a call. All calls on the path move one
# member further, and there is one pair more. Members that were paired stay paired.
#
# Comparing is what costs, because checks are evaluated. Three things avoid it. Members and calls have buckets, of a
# tool and the plain values that a fitting call must have: only what shares a bucket is compared. Equal calls are of one
# kind, of which one is asked. And where a search finds no free member, none of the members that it reached can ever be
# part of an augmenting path again, because no path leads on from them: they are settled and searched no more.

Bucket = tuple[Hashable, ...]
"""The properties that a call shares with every member that it may fit."""


class Among(Protocol):
    """Tells which members a call may fit at all: those of its buckets (see `workbench.grading.pairing`)."""

    def bucket(self, expected: int) -> Bucket: ...
    def buckets(self, call: int) -> Sequence[Bucket]: ...
    def kind(self, call: int) -> Hashable: ...
    def may_compare(self, bucket: Bucket) -> bool: ...


def paired_in_turn(
    members: Sequence[int], calls: Iterable[int], fits: Callable[[int, int], bool], among: Among | None = None
) -> dict[int, int]:
    """Return the call of each paired member in a largest pairing, which prefers earlier calls.

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
    """The pairs so far.

    A member that has a call always keeps one, though not always the same."""

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
        """Return the members of some lists that a call fits, in order; with `taken` only those that have a call."""
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


# Finds which calls may fit which expected calls by the plain values that are expected, instead of comparing all
# pairs.

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
    """For each call the expected calls that may fit it, and vice versa; all other pairs certainly do not fit.

    Both are counted from 0.

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
        """Return the properties that a call needs to fit an expected call."""
        return self._bucket_of[expected]

    def buckets(self, call: int) -> list[Bucket]:
        """Return the buckets of all expected calls that the call may fit."""
        known = self._buckets.get(call)
        if known is None:
            known = self._buckets[call] = list(self._buckets_for(*self.made[call]))
        return known

    def calls(self, expected: int) -> Sequence[int]:
        """Return the calls that may fit an expected call, in order."""
        if self.compares_all:
            return range(len(self.made))
        if self._calls_in is None:
            self._calls_in = {}
            for call in range(len(self.made)):
                for bucket in self.buckets(call):
                    self._calls_in.setdefault(bucket, []).append(call)
        return self._calls_in.get(self._bucket_of[expected], ())

    def given_up(self, bucket: Bucket) -> bool:
        """Return whether no more calls are compared for a bucket."""
        given_up = self._left[len(bucket) == 1] <= 0 and not self.compares_all
        self.exhausted = self.exhausted or given_up
        return given_up

    def kind(self, call: int) -> Hashable:
        """Return a key that is equal for calls with equal tools and arguments."""
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
        """Return whether another comparison is within the limits."""
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
        plain = {}
        for name, check in (checks or {}).items():
            if _counts(check):
                plain[name] = check.samples()[0]
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
    """Return a key that is equal for values that some grader treats as equal.

    Raises RecursionError for deeply nested values."""
    if isinstance(value, str):
        if value.lower() in ("true", "false"):
            return value.lower() == "true"
        number = spelled_number(value) if value[:1] in _BEGINS_NUMBER else None
        if number is not None:
            return number
        return canonical_text(value)
    if isinstance(value, list):
        return ("[", *map(_loosely, value))
    if isinstance(value, dict):
        return ("{", frozenset((_loosely(name), _loosely(item)) for name, item in value.items()))
    return value


# Maps the steps of a chain to the rounds of a run and to their calls.


class StepRound(NamedTuple):
    """The round of a step; `first_call` is the index in `Trajectory.calls` of its first call, if it has one."""

    round: Round
    first_call: int


def rounds_of_steps(case: Case, trajectory: Trajectory) -> tuple[StepRound | None, ...]:
    """Return the round of each step of a chain, `None` for steps that were never reached.

    Rounds name their step; in a run where none does, the k-th round is that of the k-th step."""
    rounds = trajectory.rounds
    said = any(round_.step is not None for round_ in rounds)
    found: list[StepRound | None] = [None] * len(case.steps)
    first_call = 0
    for place, round_ in enumerate(rounds):
        step = (round_.step_number or 0) if said else place + 1
        if 1 <= step <= len(found):
            found[step - 1] = StepRound(round_, first_call)
        first_call += len(round_.calls)
    return tuple(found)


NO_CALL_OF_STEP = "the step expects no call"
"""Why a call is wrong that answers a step of a chain."""


def calls_of_silent_steps(case: Case, trajectory: Trajectory) -> tuple[int, ...]:
    """Return the calls, by index, in the answers to steps that expect none."""
    return tuple(
        reached.first_call + number
        for step, reached in zip(case.steps, rounds_of_steps(case, trajectory), strict=True)
        if step.tool is None and reached is not None
        for number in range(len(reached.round.calls))
    )


# Turns pairings into issues: wrong tools, missing and extra calls, wrong and missing arguments.


def findings(
    expected: Sequence[ExpectedCall],
    calls: Sequence[CallRecord],
    pairings: Sequence[CallPairing],
    *,
    extras_matter: bool = False,
    closed: bool = False,
) -> tuple[Issue, ...]:
    """Return the issues of a grade, each with the call, the expected call and the argument that it concerns.

    With `extras_matter`, every extra call is an issue. With `closed`, so is every argument that its expected call does
    not list and that has no verdict.
    """
    return tuple(_findings(expected, calls, pairings, extras_matter, closed))


def _findings(
    expected: Sequence[ExpectedCall],
    calls: Sequence[CallRecord],
    pairings: Sequence[CallPairing],
    extras: bool,
    closed: bool,
) -> Iterator[Issue]:
    expected_elsewhere, called_elsewhere = _out_of_place(expected, calls, pairings)
    for pairing in pairings:
        if pairing.expected_call is None:
            if pairing.call is not None and extras:
                yield extra_call(calls, pairing.call, "it matches no expected call")
        elif pairing.call is None:
            yield missing_call(expected[pairing.expected_call], pairing.expected_call)
        elif not pairing.same_tool:
            wanted, record = expected[pairing.expected_call], calls[pairing.call]
            misplaced = wanted.tool in called_elsewhere and record.tool in expected_elsewhere
            yield Issue(
                "wrong order" if misplaced else "wrong tool",
                f"{wanted.tool_text} was expected" + (f" here, and {record.tool} elsewhere" if misplaced else ""),
                tool=record.tool,
                call=pairing.call,
                expected_call=pairing.expected_call,
                expected=describe_expected(wanted),
                got=describe_call(record),
            )
        else:
            wanted, record = expected[pairing.expected_call], calls[pairing.call]
            for verdict in pairing.arguments:
                if verdict.holds is None or (verdict.holds and verdict.score >= verdict.weight - ROUNDING_SLACK):
                    continue
                # A forbidden argument is an issue under every grader, and so one of the requirements.
                if not verdict.given or not wanted.unwanted([verdict.argument]):
                    yield argument_issue(wanted, record, pairing, verdict)
            if closed and wanted.args is not None and not record.arguments.keys() <= wanted.args.keys():
                yield from _without_verdict(wanted, record, pairing)


def _out_of_place(
    expected: Sequence[ExpectedCall], calls: Sequence[CallRecord], pairings: Sequence[CallPairing]
) -> tuple[set[str], set[str]]:
    """Return the tools that were expected and those that were called, in lines that do not contain both."""
    lines = []
    for pairing in pairings:
        if not pairing.same_tool and pairing.prohibition is None:
            lines.append(pairing)
    if not lines:
        return set(), set()
    return (
        {expected[line.expected_call].tool for line in lines if line.expected_call is not None},
        {calls[line.call].tool for line in lines if line.call is not None},
    )


def argument_issue(expected: ExpectedCall, record: CallRecord, pairing: CallPairing, verdict: ArgumentVerdict) -> Issue:
    """Describe the fault of an argument that did not earn its full weight."""
    if not verdict.listed:
        return _unexpected(expected, record, pairing, verdict.argument)
    kind: IssueKind
    shown = bool(verdict.holds) or verdict.given or verdict.got is not None
    if verdict.holds:
        kind, why = "partial credit", f"holds, but earns {score_text(verdict.score)} of {score_text(verdict.weight)}"
    else:
        kind, why = "wrong argument" if shown else "missing argument", verdict.why
        if verdict.counted and (part := part_earned(verdict.score, verdict.weight)):
            why += f"; earns {part} of its weight"
    return Issue(
        kind,
        why,
        tool=record.tool,
        call=pairing.call,
        expected_call=pairing.expected_call,
        argument=verdict.argument,
        expected=verdict.expected,
        got=describe_value(verdict.got) if shown else None,
    )


def _without_verdict(expected: ExpectedCall, record: CallRecord, pairing: CallPairing) -> Iterator[Issue]:
    named = {
        *(expected.args or {}),
        *expected.unwanted(record.arguments),
        *(verdict.argument for verdict in pairing.arguments),
    }
    for name in record.arguments:
        if name not in named:
            yield _unexpected(expected, record, pairing, name)


def _unexpected(expected: ExpectedCall, record: CallRecord, pairing: CallPairing, argument: str) -> Issue:
    return Issue(
        "unexpected argument",
        "the expected call does not list it" if expected.args else "no arguments are expected",
        tool=record.tool,
        call=pairing.call,
        expected_call=pairing.expected_call,
        argument=argument,
        got=describe_value(record.arguments[argument]),
    )


def missing_call(expected: ExpectedCall, index: int) -> Issue:
    """Return the issue of an expected call, by its index, that was not made."""
    return Issue(
        "missing call",
        "no call matches it",
        tool=expected.tool_text,
        expected_call=index,
        expected=describe_expected(expected),
    )


def forbidden_call(prohibition: ExpectedCall, record: CallRecord, index: int) -> Issue:
    """Return the issue of a call, by its index, that violates a prohibition."""
    return Issue(
        "forbidden call",
        "this call must not be made",
        tool=record.tool,
        call=index,
        expected=f"no {describe_expected(prohibition)}",
        got=describe_call(record),
        decides=True,
    )


ALLOWED = "extra, allowed"
"""The outcome of a surplus call that costs nothing."""


def extra_call(calls: Sequence[CallRecord], index: int, why: str, *, decides: bool = False) -> Issue:
    """Return the issue of a call that no expectation accounts for."""
    record = calls[index]
    return Issue("extra call", why, tool=record.tool, call=index, got=describe_call(record), decides=decides)


def _expected_text(expected: ExpectedCall) -> str:
    if expected.args is None:
        return f"{expected.tool_text}(…)"
    arguments = []
    for name, check in expected.args.items():
        arguments.append(f"{name}={describe(check)}")
    arguments += ["nothing else"] * expected.only_args
    return cut(f"{expected.tool_text}({', '.join(arguments)})")


describe_expected: ByIdentity[ExpectedCall, str] = ByIdentity(_expected_text)
"""Returns an expected call in one line: `set_lights(room="bedroom", brightness=5..20)`, `(…)` where arguments are
free."""


def _call_text(record: CallRecord) -> str:
    arguments = ", ".join(f"{name}={describe_value(value)}" for name, value in record.arguments.items())
    return cut(f"{record.tool}({arguments})")


describe_call: ByIdentity[CallRecord, str] = ByIdentity(_call_text)
"""Returns an actual call in one line."""
