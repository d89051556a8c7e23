"""Checks of texts: similarity, times, parts of texts, patterns, types, loose equality."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated, ClassVar, Literal, Self

from pydantic import JsonValue, model_validator
from pydantic_core import PydanticCustomError

from workbench.checks.check import (
    ANY_TEXT,
    HOLDS,
    NOT_TEXT,
    Advice,
    CheckBase,
    CheckContext,
    CheckVerdict,
    ReplacedCheck,
    UnknownSampleError,
    ValueWriter,
    Weakness,
    describe,
    plain_verdict,
    with_texts,
    zero_threshold_advice,
)
from workbench.checks.clock import NOMINAL_CLOCK, RelativeTime, date_or_time_text, relative_time
from workbench.checks.fields import (
    ANY_TYPE,
    JSON_TYPES,
    NUMBERS,
    TEXT,
    TYPE_WORDS,
    Duration,
    Editor,
    JsonType,
    Regex,
    Unit,
)
from workbench.checks.patterns import CheckError, matching_text, repeats_ambiguously, search_pattern
from workbench.checks.value_kinds import IGNORE_CASE, ignoring_case
from workbench.checks.values import (
    SimilarityMetric,
    as_text,
    bfcl_text,
    canonical_text,
    describe_value,
    duration_seconds,
    has_offset,
    is_timestamp,
    json_equal,
    keyword_text,
    read_timestamp,
    seconds_between,
    similarity,
    timestamp_credit,
)
from workbench.numerals import figure, score_text, setting_text
from workbench.trajectory.json_schema import Schema, type_of


class _TextCheck(CheckBase):
    typed = "a text"

    def samples(self) -> tuple[JsonValue, ...]:
        return (self.expected,)

    @classmethod
    def from_replaced(cls, start: ReplacedCheck) -> Mapping[str, object]:
        return {cls.kind: start.text}


class Similar(_TextCheck):
    """A text whose similarity to the expected text is at least `threshold`."""

    kind = "similar"
    written = 'similar = "text"'
    meaning = "a text similar to this one"
    options: ClassVar = {
        "threshold": "how similar it must be, 0 to 1",
        "metric": "how similarity is [measured](#similar-texts)",
    }
    types = ANY_TYPE
    offered = frozenset({"string", "array"})
    aliases = ("like", "fuzzy")
    cost = "unbounded"
    is_approximate = is_critic = True

    similar: str
    threshold: Unit = 0.8
    metric: SimilarityMetric = "cosine"

    def bound_to(self, value: JsonValue) -> CheckBase:
        return self.model_copy(update={"similar": as_text(value)})

    def weaknesses(self, schema: Schema | None) -> Iterator[Weakness]:
        return _number_blind_weakness(
            self, self.similar, "use `equals`, or `pattern` for the part that must match exactly"
        )

    def advice(self) -> Iterator[Advice]:
        yield from zero_threshold_advice("threshold", self.threshold)

    def describe(self, write_value: ValueWriter) -> str:
        return f"similar to {write_value(self.similar)}"

    def evaluate(self, value: JsonValue, context: CheckContext) -> CheckVerdict:
        score = min(similarity(self.similar, as_text(value), self.metric), 1.0)
        if score == 1.0:
            return HOLDS
        note = f"similarity {score_text(score)}, {setting_text(self.threshold)} needed"
        return CheckVerdict(score, score >= self.threshold, note)


class DateTime(_TextCheck):
    """A time within `tolerance` of the expected time. The credit falls to 0 at `max_difference`.

    The expected time may be relative to the `clock` of the case: `today+1d 15:00`. With `offset = "required"`, a time
    without an offset from UTC does not hold."""

    kind = "datetime"
    written = 'datetime = "2026-05-27T19:00"'
    meaning = "a date and time close to this one"
    typed = "a date and time as text: `2026-05-27T07:30`; with a `clock` also `today+1d 15:00` or `now+2h`"
    options: ClassVar = {
        "tolerance": "how far off it may be",
        "max_difference": "the distance at which it earns nothing",
        "offset": "whether a time without an [offset](#dates-and-times) from UTC may hold",
    }
    types = TEXT
    aliases = ("date", "time")
    cost = "slow"
    is_approximate = is_critic = True

    datetime: Annotated[str, Editor("time", words=("today", "today+1d 15:00", "now+2h"))]
    tolerance: Duration = "500s"
    max_difference: Duration = "2h"
    offset: Literal["any", "required"] = "any"

    @model_validator(mode="after")
    def _can_be_compared(self) -> Self:
        if self._relative is not None:
            try:
                self._relative.moments(NOMINAL_CLOCK)
            except OverflowError:
                raise PydanticCustomError("check", f"{self.datetime} is beyond the calendar") from None
        elif self.offset == "required" and not has_offset(self.datetime):
            message = 'offset = "required" needs a time with an offset, such as 2026-05-27T19:00+02:00'
            raise PydanticCustomError("check", message)
        return self

    @property
    def _relative(self) -> RelativeTime | None:
        return relative_time(self.datetime)

    @property
    def needs_clock(self) -> str | None:
        return None if self._relative is None else self._relative.base

    def samples(self) -> tuple[JsonValue, ...]:
        if self._relative is None:
            return (self.datetime,)
        return (date_or_time_text(self._relative, NOMINAL_CLOCK, with_offset=self.offset == "required"),)

    def bound_to(self, value: JsonValue) -> CheckBase:
        return self.model_copy(update={"datetime": value if isinstance(value, str) else ""})

    def weaknesses(self, schema: Schema | None) -> Iterator[Weakness]:
        # A time relative to the clock has the offset of the clock's zone. Models usually leave this offset out.
        if self.offset != "any" or self._relative is not None:
            return
        text = self.datetime
        # Abbreviations of time zones are ambiguous (IST has three meanings), so only UTC and GMT are read.
        named = re.sub(r"(?<=\d) ?(?!UTC|GMT)[A-Z]{3,4}\Z", " PST", text)
        if named != text and self.holds(re.sub("PST", "JST", named)):
            hint = 'write its offset, such as +02:00, and offset = "required"'
            yield "names of time zones are ignored", hint, "warning"
            return
        bare = re.sub(r"\s*(?:Z|[+-]\d\d:?\d\d)\Z", "", text)
        if bare != text and self.holds(bare):
            hint = 'write offset = "required"'
            yield f"a time without an offset passes too: {describe_value(bare)}", hint, "warning"
        elif bare == text and ":" in text and self.holds(f"{text}+09:00"):
            hint = 'write the time with its offset, and offset = "required"'
            yield f"{describe_value(text + '+09:00')} passes too", hint, "note"

    def advice(self) -> Iterator[Advice]:
        if self._relative is None and not is_timestamp(self.datetime):
            message = f"{describe_value(self.datetime)} is not a date and time: the check never holds"
            yield "datetime", message, "write it as 2026-05-27T07:30:00, or relative to a clock: today+1d 15:00, now+2h"

    def describe(self, write_value: ValueWriter) -> str:
        with_offset = ", with an offset" if self.offset == "required" else ""
        expected = write_value(self.datetime) if self._relative is None else str(self._relative)
        return f"{expected} ± {self.tolerance.strip()}{with_offset}"

    def evaluate(self, value: JsonValue, context: CheckContext) -> CheckVerdict:
        if not isinstance(value, str):
            return CheckVerdict(0.0, False, "not a string with a date and time")
        try:
            expected = _moments(self.datetime, context)
        except ValueError:
            return CheckVerdict(0.0, False, "the expected date and time is invalid")
        try:
            actual = read_timestamp(value)
        except ValueError:
            return CheckVerdict(0.0, False, "not a valid date and time")
        if self.offset == "required" and actual.tzinfo is None:
            return CheckVerdict(0.0, False, "no offset from UTC")
        try:
            distance = min(seconds_between(each, actual) for each in expected)
        except ValueError:
            return CheckVerdict(0.0, False, "an offset of a day or more", measured=False)
        # Beyond the tolerance, the time still earns partial credit, but the check does not hold.
        tolerance = duration_seconds(self.tolerance)
        credit = timestamp_credit(distance, tolerance, duration_seconds(self.max_difference))
        if distance == 0:
            return HOLDS
        apart = f"{figure(distance)} s apart"
        if self._relative is not None:
            apart = f"{figure(distance)} s from {expected[0].isoformat(timespec='minutes')}"
        return CheckVerdict(credit, distance <= tolerance, apart)


def _moments(expected: str, context: CheckContext) -> Sequence[datetime]:
    """Return the time that a text spells, or two times if it occurs twice because clocks are put back.

    Raises ValueError for a text that cannot be read, and CheckError if the time of the run is missing."""
    relative = relative_time(expected)
    if relative is None:
        return (read_timestamp(expected),)
    if context.clock is None:
        raise CheckError(f"`{relative.base}` needs the time of the run, which is unknown: write it in `clock`")
    return relative.moments(context.clock)


class _PartOfText(_TextCheck):
    options: ClassVar = {"ignore_case": IGNORE_CASE}
    types = TEXT
    compares_texts = True

    ignore_case: bool = False

    def _cased(self, value: str) -> tuple[str, str]:
        if self.ignore_case:
            return keyword_text(value), keyword_text(self.expected)
        return value, self.expected

    @property
    def least_text(self) -> str:
        return str(self.expected)

    def canonical(self) -> CheckBase:
        return with_texts(self, self.kind, self.least_text, canonical_text(self.least_text))


class Contains(_PartOfText):
    kind = "contains"
    written = 'contains = "text"'
    meaning = "a text that contains this one"
    aliases = ("includes", "contain")

    contains: str

    def weaknesses(self, schema: Schema | None) -> Iterator[Weakness]:
        # A single digit or sign may be significant, but a single letter hardly ever is.
        if len(self.contains.strip()) == 1 and self.contains.strip().isalpha():
            yield f"almost every text contains {describe_value(self.contains)}", "write a word", "warning"

    def describe(self, write_value: ValueWriter) -> str:
        return f"containing {write_value(self.contains)}" + ignoring_case(self)

    def evaluate(self, value: JsonValue, context: CheckContext) -> CheckVerdict:
        if not isinstance(value, str):
            return NOT_TEXT
        text, part = self._cased(value)
        return plain_verdict(part in text, "does not contain it")


class Prefix(_PartOfText):
    kind = "prefix"
    written = 'prefix = "text"'
    meaning = "a text that starts with this one"
    aliases = ("startswith",)

    prefix: str

    def describe(self, write_value: ValueWriter) -> str:
        return f"starting with {write_value(self.prefix)}" + ignoring_case(self)

    def evaluate(self, value: JsonValue, context: CheckContext) -> CheckVerdict:
        if not isinstance(value, str):
            return NOT_TEXT
        text, part = self._cased(value)
        return plain_verdict(text.startswith(part), "starts differently")


class Suffix(_PartOfText):
    kind = "suffix"
    written = 'suffix = "text"'
    meaning = "a text that ends with this one"
    aliases = ("endswith",)

    suffix: str

    def with_words(self, text: str, words: Sequence[str]) -> str:
        # The words come first, because a text with words at its end would lack the suffix.
        return " ".join([*words, text])

    def describe(self, write_value: ValueWriter) -> str:
        return f"ending with {write_value(self.suffix)}" + ignoring_case(self)

    def evaluate(self, value: JsonValue, context: CheckContext) -> CheckVerdict:
        if not isinstance(value, str):
            return NOT_TEXT
        text, part = self._cased(value)
        return plain_verdict(text.endswith(part), "ends differently")


class Pattern(CheckBase):
    """A text in which a regular expression of Python's `re` is found, at any place."""

    kind = "pattern"
    written = 'pattern = "regex"'
    meaning = "a text in which the regular expression is found"
    remark = "see [patterns](#patterns)"
    typed = "a regular expression, without slashes"
    types = TEXT
    aliases = ("regex", "regexp", "match", "matches")
    cost = "unbounded"
    compares_texts = True

    pattern: Regex

    @property
    def _matching_text(self) -> str | None:
        return matching_text(self.pattern)

    def samples(self) -> tuple[JsonValue, ...]:
        if self._matching_text is None:
            raise UnknownSampleError
        return (self._matching_text,)

    def canonical(self) -> CheckBase:
        return with_texts(self, "pattern", self.pattern, canonical_text(self.pattern))

    def weaknesses(self, schema: Schema | None) -> Iterator[Weakness]:
        """Yield a weakness of a pattern that is not anchored at both ends of the text."""
        text = self._matching_text
        # If the schema allows no text longer than `text`, the pattern needs no anchors.
        if text is None or (schema or {}).get("maxLength") == len(text):
            return
        if not re.fullmatch(_PLAIN_WORDS, self.pattern, re.VERBOSE):
            if all(map(self.holds, ("7", "any text", "-1.5"))):
                yield f"{describe(self)} accepts every usual text", "narrow the check", "warning"
                return
            longer = (f"7{text}", f"x{text}", f"not {text}", f"{text}7x", f"{text} not")
            found_too = next(filter(self.holds, longer), None)
            if found_too is not None:
                yield f"it is found in {describe_value(found_too)} too", r"anchor it at both ends: ^…\Z", "warning"
                return
        if self.pattern.endswith("$") and self.holds(text + "\n"):
            yield "`$` accepts a line break at the end", r"write \Z in place of $", "note"

    def advice(self) -> Iterator[Advice]:
        if repeats_ambiguously(self.pattern):
            message = f"{describe_value(self.pattern)} can match the same text in many ways: a search may take too long"
            hint = "begin each repetition with something that it cannot end with: (\\w+\\s)* instead of (\\w+\\s?)*"
            yield "pattern", message, hint

    def describe(self, write_value: ValueWriter) -> str:
        return f"matching /{self.pattern}/".replace("\n", "\\n")

    def evaluate(self, value: JsonValue, context: CheckContext) -> CheckVerdict:
        if not isinstance(value, str):
            return NOT_TEXT
        return plain_verdict(search_pattern(self.pattern, value, context.search_time), "not found in it")

    @classmethod
    def from_replaced(cls, start: ReplacedCheck) -> Mapping[str, object]:
        return {"pattern": re.escape(start.text).replace("\\ ", " ")}


class OfType(CheckBase):
    """A value of a JSON type: as in JSON Schema, 5.0 is an integer, and a boolean is not a number."""

    kind = "type"
    written = 'type = "integer"'
    meaning = "a value of this type"
    remark = "one of `string`, `integer`, `number`, `boolean`, `null`, `array` and `object`"
    typed = "one of `string`, `integer`, `number`, `boolean`, `null`, `array`, `object`"
    types = ANY_TYPE

    type: JsonType

    @property
    def value_types(self) -> frozenset[str]:
        if self.type == "number":
            return NUMBERS
        return frozenset({self.type})

    def samples(self) -> tuple[JsonValue, ...]:
        return (_OF_TYPE[self.type],)

    def describe(self, write_value: ValueWriter) -> str:
        return TYPE_WORDS[self.type]

    def evaluate(self, value: JsonValue, context: CheckContext) -> CheckVerdict:
        actual = type_of(value)
        return plain_verdict(self.type == actual or (self.type == "number" and actual == "integer"), "wrong type")

    @classmethod
    def matches_table(cls, table: Mapping[str, object]) -> bool:
        return table["type"] in JSON_TYPES and cls.model_fields.keys() >= table.keys()

    @classmethod
    def convertible_values(cls, expected: object) -> list[object]:
        if expected in ("string", "null"):
            return [""]
        return [_OF_TYPE.get(str(expected), expected)]

    @classmethod
    def from_replaced(cls, start: ReplacedCheck) -> Mapping[str, object]:
        return {"type": type_of(start.values[0])}


class EqualsText(CheckBase):
    """A value equal to the expected value, if case, spaces and punctuation of its texts are ignored."""

    kind = "equals_text"
    written = "equals_text = v"
    meaning = "a value equal to this one, ignoring case, spaces and punctuation in texts"
    typed = "as a plain value"
    types = ANY_TYPE
    offered = frozenset({"string", "array", "object"})

    equals_text: Annotated[JsonValue, Editor("value")]

    def samples(self) -> tuple[JsonValue, ...]:
        return (self.equals_text,)

    def weaknesses(self, schema: Schema | None) -> Iterator[Weakness]:
        if isinstance(self.equals_text, str):
            yield from _number_blind_weakness(
                self, self.equals_text, "compare amounts and codes with a plain value, or `near`"
            )

    def describe(self, write_value: ValueWriter) -> str:
        return f"{write_value(self.equals_text)}, ignoring case and punctuation"

    def evaluate(self, value: JsonValue, context: CheckContext) -> CheckVerdict:
        return plain_verdict(json_equal(bfcl_text(self.equals_text), bfcl_text(value)), "different text")

    @classmethod
    def from_replaced(cls, start: ReplacedCheck) -> Mapping[str, object]:
        return {"equals_text": start.values[0]}


_OF_TYPE: dict[str, JsonValue] = {
    "string": ANY_TEXT,
    "integer": 0,
    "number": 0,
    "boolean": True,
    "null": None,
    "array": [],
    "object": {},
}


_PLAIN_WORDS = r"(?:\(\?[a-z]+\))? (?:\\b|\.\*|\^|\()* [^\W\d_]+ (?:[ |'-]+[^\W\d_]+)* (?:\)|\\b|\.\*|\$)*"
"""Matches a pattern of plain words. Such a pattern is meant to match anywhere, like `contains`."""


def _number_blind_weakness(check: CheckBase, text: str, hint: str) -> Iterator[Weakness]:
    """Yield a weakness if a check of a text accepts the text with other numbers, and so with another meaning."""
    for twin in _with_other_numbers(text):
        if check.holds(twin):
            yield f"{describe_value(twin)} passes too", hint, "warning"
            return


def _with_other_numbers(text: str) -> Iterator[str]:
    """Yield two changed copies of a text: one with another digit, and one with another sign and decimal point."""
    digits = [index for index, character in enumerate(text) if character.isdigit()]
    for index in digits:
        yield text[:index] + ("2" if text[index] == "1" else "1") + text[index + 1 :]
    if digits and (text[0].isdigit() or text[0] in "-+"):
        yield text[1:] if text[0] == "-" else f"-{text}"
        if "." in text:
            yield text.replace(".", "", 1)
        if text.isdigit() and len(text) > 1:
            yield f"{text[:-1]}.{text[-1]}"
