"""Checks of lists: of the elements with or without order, of each element, and of the length."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import JsonValue, Strict

from workbench.checks.argument_schema import (
    InnerSample,
    OtherValues,
    Refused,
    accept_any_value,
    items_schema,
    refusal_by,
)
from workbench.checks.check import (
    Check,
    CheckBase,
    CheckContext,
    CheckVerdict,
    ReplacedCheck,
    UnknownSampleError,
    ValueWriter,
    Weakness,
    carried_values,
    describe,
    evaluate,
    plain_verdict,
    verdict_text,
)
from workbench.checks.fields import Editor, Pair
from workbench.checks.structure_kinds import as_plain_check, faults_text, inner_sample
from workbench.checks.value_kinds import Equals
from workbench.checks.values import describe_value, hashable
from workbench.limits import MAX_COMPARED_PAIRS
from workbench.numerals import range_text
from workbench.trajectory.json_schema import Schema, is_number

_NOT_A_LIST = CheckVerdict(0.0, False, "not a list")


class _OfElements(CheckBase):
    """The base class of checks that have nested checks for the elements of a list."""

    types = frozenset({"array"})
    is_newer = checks_parts = True

    @property
    @abstractmethod
    def parts(self) -> tuple[CheckBase, ...]: ...

    @property
    def compares_texts(self) -> bool:  # type: ignore[override]
        return any(part.compares_texts for part in self.parts)

    @property
    def may_be_cached(self) -> bool:
        return not self.uses_outside_service

    def samples(self) -> tuple[JsonValue, ...]:
        return (self.assembled({}, inner_sample),)

    def assembled(self, schema: Schema, sample: InnerSample) -> JsonValue:
        items = items_schema(schema)
        return [sample(part, items) for part in self.parts]

    def near_misses(self, value: JsonValue, schema: Schema, others: OtherValues) -> Iterator[JsonValue]:
        if not isinstance(value, list):
            return
        items = items_schema(schema)
        for number, part in enumerate(self.parts[: len(value)]):
            for other in others(part, items):
                yield [*value[:number], other, *value[number + 1 :]]
        for number in range(len(value)):
            yield [*value[:number], *value[number + 1 :]]
        yield [*value, *value[:1]]
        yield value[::-1]

    def fits(self, schema: Schema, refusal_of: Refused = accept_any_value) -> str | None:
        if (reason := super().fits(schema, refusal_of)) is not None:
            return reason
        items = items_schema(schema)
        for part in self.parts:
            if (reason := part.fits(items, refusal_by(items))) is not None:
                return f"an element: {reason}"
        return None

    def weaknesses(self, schema: Schema | None) -> Iterator[Weakness]:
        for part in self.parts:
            for reason, hint, weight in part.weaknesses(items_schema(schema or {})):
                yield f"an element: {reason}", hint, weight


class _Elements(_OfElements):
    typed = 'a list of checks: `["red", { prefix = "b" }]`'
    options: ClassVar = {"in_order": "whether the order counts"}
    nests = "list"
    shape = "a list of checks"

    in_order: bool = False

    @property
    def parts(self) -> tuple[CheckBase, ...]:
        return tuple(self.expected)

    def canonical(self) -> CheckBase:
        return self.model_copy(update={self.kind: tuple(part.canonical() for part in self.parts)})

    def _described(self, write_value: ValueWriter) -> str:
        return ", ".join(part.describe(write_value) for part in self.parts)

    def evaluate(self, value: JsonValue, context: CheckContext) -> CheckVerdict:
        if not isinstance(value, list):
            return _NOT_A_LIST
        comparison = _Comparison(self.parts, value, context)
        try:
            return self._verdict(value, comparison)
        except _TooManyPairsError:
            return CheckVerdict(0.0, False, MAX_COMPARED_PAIRS.reached(), measured=False)

    @abstractmethod
    def _verdict(self, value: list[JsonValue], comparison: _Comparison) -> CheckVerdict: ...

    @classmethod
    def has_shape(cls, expected: object) -> bool:
        return isinstance(expected, list)

    @classmethod
    def convertible_values(cls, expected: object) -> list[object]:
        return [list(map(_carried, expected))] if isinstance(expected, list) else [expected]

    @classmethod
    def from_replaced(cls, start: ReplacedCheck) -> Mapping[str, object]:
        elements = start.values[0] if isinstance(start.values[0], list) else start.values
        return {cls.kind: list(map(as_plain_check, elements))}


class SameElements(_Elements):
    """A list of exactly these elements. Any order is right, unless `in_order` demands the order written."""

    kind = "same_elements"
    written = "same_elements = [check, …]"
    meaning = "a list of exactly these, in any order"
    remark = "see [elements of lists](#elements-of-lists)"
    aliases = ("unordered", "anyorder", "containsinanyorder", "items")

    same_elements: Annotated[tuple[Check, ...], Strict(False), Editor("checks", least=0)]

    def describe(self, write_value: ValueWriter) -> str:
        return f"[{self._described(write_value)}]" + " in any order" * (not self.in_order)

    def _verdict(self, value: list[JsonValue], comparison: _Comparison) -> CheckVerdict:
        wrong = []
        if self.in_order:
            found = {row: row for row in range(min(len(self.parts), len(value))) if comparison.fits(row, row)}
            for row in range(max(len(self.parts), len(value))):
                if row not in found:
                    wrong.append(comparison.difference(row))
        else:
            found = largest_matching(self.parts, value, comparison.fits)
            wrong = comparison.differences(found)
        most = max(len(self.parts), len(value))
        return CheckVerdict(len(found) / most if most else 1.0, not wrong, faults_text(wrong))


class HasElements(_Elements):
    """A list with these elements and possibly others.

    Any order is right, unless `in_order` demands the order written."""

    kind = "has_elements"
    written = "has_elements = [check, …]"
    meaning = "a list that has these among others, in any order"
    shape = "a list of at least one check"
    aliases = ("arraycontaining", "containsall", "hasitems")

    has_elements: Annotated[tuple[Check, ...], Strict(False), Editor("checks", least=1)]

    @classmethod
    def from_replaced(cls, start: ReplacedCheck) -> Mapping[str, object]:
        # Unlike `same_elements`, this check needs an element.
        return {cls.kind: super().from_replaced(start)[cls.kind] or [""]}

    def describe(self, write_value: ValueWriter) -> str:
        return f"[{self._described(write_value)}, …]" + " in any order" * (not self.in_order)

    def _verdict(self, value: list[JsonValue], comparison: _Comparison) -> CheckVerdict:
        if self.in_order:
            # If each check takes its earliest matching element, the most elements remain for later checks.
            found: dict[int, int] = {}
            for column in range(len(value)):
                if len(found) < len(self.parts) and comparison.fits(len(found), column):
                    found[len(found)] = column
        else:
            found = largest_matching(self.parts, value, comparison.fits)
        wrong = comparison.missing(found)
        return CheckVerdict(len(found) / len(self.parts), not wrong, faults_text(wrong))

    @classmethod
    def has_shape(cls, expected: object) -> bool:
        return isinstance(expected, list) and bool(expected)


class _TooManyPairsError(Exception):
    """A list has too many elements to be compared."""


class _Comparison:
    """The verdicts of checks on the elements of a list, each computed at most once and only when needed."""

    def __init__(self, checks: Sequence[CheckBase], elements: Sequence[JsonValue], context: CheckContext) -> None:
        self._checks, self._elements, self._context = checks, elements, context
        self._verdicts: dict[tuple[int, int], CheckVerdict] = {}
        self._asked = 0

    def fits(self, row: int, column: int) -> bool:
        self._asked += 1
        if self._asked > MAX_COMPARED_PAIRS:
            raise _TooManyPairsError
        return self._verdict(row, column).holds

    def _verdict(self, row: int, column: int) -> CheckVerdict:
        found = self._verdicts.get((row, column))
        if found is None:
            found = evaluate(self._checks[row], self._elements[column], context=self._context)
            self._verdicts[row, column] = found
        return found

    def difference(self, place: int) -> str:
        if place >= len(self._checks):
            return f"[{place}]: {describe_value(self._elements[place])} is not expected"
        if place >= len(self._elements):
            return f"missing {describe(self._checks[place])}"
        return f"[{place}]: {self._why(place, place)}"

    def differences(self, matches: Mapping[int, int]) -> list[str]:
        taken = set(matches.values())
        surplus = [column for column in range(len(self._elements)) if column not in taken]
        unmet = [row for row in range(len(self._checks)) if row not in matches]
        if len(unmet) == len(surplus) == 1 and not self._checks[unmet[0]].uses_outside_service:
            return [f"[{surplus[0]}]: {self._why(unmet[0], surplus[0])}"]
        return [
            *self.missing(matches),
            *(f"[{column}]: {describe_value(self._elements[column])} is not expected" for column in surplus),
        ]

    def missing(self, matches: Mapping[int, int]) -> list[str]:
        return [f"missing {describe(check)}" for row, check in enumerate(self._checks) if row not in matches]

    def _why(self, row: int, column: int) -> str:
        return verdict_text(self._checks[row], self._verdict(row, column), self._elements[column])


# The one-to-one matching of expected elements to a list's elements.

Fits = Callable[[int, int], bool]
"""A function that returns whether an element of the list meets an expected element. Both are given by index."""


def largest_matching(expected: Sequence[CheckBase], elements: Sequence[JsonValue], fits: Fits) -> dict[int, int]:
    """Return a largest matching: for each matched index in `expected`, the index of the element that meets it.

    Plain values are matched by hash first. Elements equal to the same plain value are interchangeable, so this choice
    does not affect the checks.

    Checks are then matched by augmenting paths (Kuhn, "The Hungarian method", 1955). If all elements that meet a check
    are taken, the checks that took them look for other elements, breadth first. A check first tries the neighbours of
    the element that the previous check took. Lists in the order of the checks, or in reverse order, then take one
    comparison for each check. Checks that ask a judge or a function come last, and only while all other checks are
    met."""
    places: defaultdict[object, deque[int]] = defaultdict(deque)
    for column, element in enumerate(elements):
        places[hashable(element)].append(column)
    found: dict[int, int] = {}
    checks: list[int] = []
    for row, check in enumerate(expected):
        if type(check) is not Equals or check.ignore_case:
            checks.append(row)
        elif same := places[hashable(check.equals)]:
            found[row] = same.popleft()
    all_met = len(found) == len(expected) - len(checks)
    taken = set(found.values())
    # `free` holds the columns (elements) that are not taken. `owners` maps each column that a check has taken to the
    # check's row.
    free = dict.fromkeys(column for column in range(len(elements)) if column not in taken)
    owners: dict[int, int] = {}
    latest = -1
    for row in sorted(checks, key=lambda row: expected[row].uses_outside_service):
        if expected[row].uses_outside_service and not all_met:
            break
        later = [column for column in free if column > latest]
        earlier = [column for column in free if column < latest]
        path = _path_from(row, [*later, *reversed(earlier), *owners], owners, fits)
        all_met = all_met and bool(path)
        for owner, column in path:
            free.pop(column, None)
            owners[column], found[owner] = owner, column
        latest = found.get(row, latest)
    return found


def _path_from(row: int, columns: Iterable[int], owners: Mapping[int, int], fits: Fits) -> list[tuple[int, int]]:
    """Search for a path from `row` to a free column. Return the new column of each row on the path.

    Rows are checks and columns are elements. The result is empty if there is no such path. `columns` are the free
    columns in search order, and then the columns in `owners`, which maps each taken column to its row."""
    reached_from: dict[int, int] = {}
    column_of: dict[int, int | None] = {row: None}
    waiting = deque([row])
    while waiting:
        current = waiting.popleft()
        for column in columns:
            if column in reached_from or not fits(current, column):
                continue
            reached_from[column] = current
            if column in owners:
                column_of[owners[column]] = column
                waiting.append(owners[column])
                continue
            path = []
            last: int | None = column
            while last is not None:
                path.append((reached_from[last], last))
                last = column_of[reached_from[last]]
            return path
    return []


class EachElement(_OfElements):
    """A list whose elements all meet the check. An empty list meets it, too."""

    kind = "each_element"
    written = "each_element = check"
    meaning = "a list whose elements all meet the check"
    typed = 'a check: `{ prefix = "b" }`, or a value'
    nests = "check"
    aliases = ("each", "every", "all", "foreach")

    each_element: Annotated[Check, Editor("check")]

    @property
    def parts(self) -> tuple[CheckBase, ...]:
        return (self.each_element,)

    def canonical(self) -> CheckBase:
        return self.model_copy(update={"each_element": self.each_element.canonical()})

    def describe(self, write_value: ValueWriter) -> str:
        return f"each element {self.each_element.describe(write_value)}"

    def evaluate(self, value: JsonValue, context: CheckContext) -> CheckVerdict:
        if not isinstance(value, list):
            return _NOT_A_LIST
        score, wrong = 0.0, []
        for number, element in enumerate(value):
            found = evaluate(self.each_element, element, context=context)
            score += found.score
            if not found.holds:
                wrong.append(f"[{number}]: {verdict_text(self.each_element, found, element)}")
        return CheckVerdict(score / len(value) if value else 1.0, not wrong, faults_text(wrong))

    def weaknesses(self, schema: Schema | None) -> Iterator[Weakness]:
        yield from super().weaknesses(schema)
        least = (schema or {}).get("minItems")
        if not isinstance(least, int) or least < 1:
            yield "an empty list passes", "write all_of with has_length = [1, inf] if it must not be empty", "note"

    @classmethod
    def convertible_values(cls, expected: object) -> list[object]:
        return [[_carried(expected)]]

    @classmethod
    def from_replaced(cls, start: ReplacedCheck) -> Mapping[str, object]:
        value = start.values[0]
        if isinstance(value, list):
            value = value[0] if value else ""
        return {cls.kind: as_plain_check(value)}


class HasLength(CheckBase):
    """A text, a list or an object of this length, in characters, elements or fields."""

    kind = "has_length"
    written = "has_length = 3"
    meaning = "a text, a list or an object of this length"
    remark = "`[1, 3]` is a range, `[1, inf]` an open one"
    typed = "`3`, or a range: `1..3`, `1..`"
    types = frozenset({"string", "array", "object"})
    aliases = ("length", "len", "size", "count", "tohavelength", "haslength")
    shape = "a whole number, or [low, high]"
    is_newer = is_approximate = may_be_infinite = True

    has_length: Annotated[int | Pair, Editor("length", least=0)]

    @property
    def bounds(self) -> tuple[float, float]:
        if isinstance(self.has_length, tuple):
            return self.has_length
        return self.has_length, self.has_length

    @property
    def least_text(self) -> str:
        return "…" * self._least

    @property
    def _least(self) -> int:
        low = self.bounds[0]
        # Longer values are not constructed, neither for a schema nor as a sample.
        return min(max(math.ceil(low), 0), _MAX_SAMPLE_LENGTH + 1) if math.isfinite(low) else 0

    def samples(self) -> tuple[JsonValue, ...]:
        if self._least > _MAX_SAMPLE_LENGTH:
            raise UnknownSampleError
        places: list[JsonValue] = list(range(self._least))
        texts: list[JsonValue] = [f"x{place}" for place in places]
        return "x" * self._least, places, texts, [{}] * self._least, {f"x{place}": place for place in places}

    def near_misses(self, value: JsonValue, schema: Schema, others: OtherValues) -> Iterator[JsonValue]:
        for length in {self._least - 1, *(int(end) + 1 for end in self.bounds[1:] if math.isfinite(end))}:
            if 0 <= length <= _MAX_SAMPLE_LENGTH:
                yield "x" * length
                elements: list[JsonValue] = [0]
                if isinstance(value, list) and value:
                    elements = value[:1]
                yield elements * length

    def fits(self, schema: Schema, refusal_of: Refused = accept_any_value) -> str | None:
        if (reason := super().fits(schema, refusal_of)) is not None:
            return reason
        low, high = self.bounds
        for kind, least, most, what in _LENGTHS:
            if schema.get("type") != kind:
                continue
            shortest, longest = schema.get(least), schema.get(most)
            if is_number(longest) and low > longest:
                return f"the schema allows at most {longest} {what}"
            if is_number(shortest) and high < shortest:
                return f"the schema requires at least {shortest} {what}"
        return None

    def describe(self, write_value: ValueWriter) -> str:
        if isinstance(self.has_length, tuple):
            return f"length {range_text(*self.bounds)}"
        return f"length {self.has_length}"

    def evaluate(self, value: JsonValue, context: CheckContext) -> CheckVerdict:
        if not isinstance(value, str | list | dict):
            return CheckVerdict(0.0, False, "has no length")
        low, high = self.bounds
        return plain_verdict(low <= len(value) <= high, f"length {len(value)}")

    @classmethod
    def has_shape(cls, expected: object) -> bool:
        if isinstance(expected, list | tuple):
            return len(expected) == 2 and all(is_number(end) or end in (math.inf, -math.inf) for end in expected)
        return isinstance(expected, int) and not isinstance(expected, bool)

    @classmethod
    def convertible_values(cls, expected: object) -> list[object]:
        return []

    @classmethod
    def from_replaced(cls, start: ReplacedCheck) -> Mapping[str, object]:
        value = start.values[0]
        return {cls.kind: len(value) if isinstance(value, str | list | dict) else 1}

    @classmethod
    def faults(cls, expected: object) -> Iterator[tuple[str, str]]:
        ends: Sequence[Any] = expected if isinstance(expected, list) else [expected, expected]
        if any(end < 0 or (end != math.inf and end % 1) for end in ends):
            yield "must be whole numbers of at least 0", "write has_length = 3 or has_length = [1, inf]"
        elif ends[0] > ends[1]:
            yield "must be [low, high] with low ≤ high", "swap the two numbers"


_MAX_SAMPLE_LENGTH = 1_000
"""The length limit of texts and lists constructed as samples."""

_LENGTHS = (
    ("string", "minLength", "maxLength", "characters"),
    ("array", "minItems", "maxItems", "elements"),
    ("object", "minProperties", "maxProperties", "fields"),
)


def _carried(written: object) -> object:
    return next(iter(carried_values(written)), "")
