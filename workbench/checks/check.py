"""The base class of checks. It defines how a kind of check is written, evaluated, audited, edited and documented.

The modules `*_kinds` have one class for each kind. Defining a class registers it, and all other code asks the
registered classes. A new kind therefore needs only a new class."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from pydantic_core import CoreSchema, PydanticCustomError
from pydantic_core.core_schema import no_info_plain_validator_function

from workbench.checks.argument_schema import (
    InnerSample,
    OtherValues,
    Refused,
    accept_any_value,
    one_of_types,
    out_of_bounds_reason,
)
from workbench.checks.clock import NOMINAL_CLOCK, Clock
from workbench.checks.fields import Editor, Weight, editor_among, editor_of
from workbench.checks.patterns import CheckError, SearchError, SpentTime
from workbench.checks.values import cut_text, describe_value, json_equal, json_text
from workbench.dataclasses import cached_by_identity, dataclass
from workbench.trajectory.json_schema import Schema, is_number, type_names, type_text


class FunctionRaisedError(CheckError):
    """The function of a `python` check raised an error, or returned neither True nor False."""


class NeverHoldsError(Exception):
    """No value meets the check. The message is the reason."""


class UnknownSampleError(Exception):
    """No value that meets the check can be constructed, although one may exist.

    The check asks a judge or a Python function, or its pattern looks ahead."""


@dataclass(frozen=True, slots=True)
class CheckVerdict:
    """The verdict of one check on one value.

    `score` is in 0..1. Only approximate checks give a score between 0 and 1. `note` is the reason, without the expected
    and the actual value. `measured` is false if the value could not be measured, such as a text for `near` or a time
    beyond the calendar. The check then does not hold."""

    score: float
    holds: bool
    note: str = ""
    measured: bool = True
    number: float | None = None
    """The judge's rating on its scale."""


ValueWriter = Callable[[JsonValue], str]
"""A function that writes a value as text."""

EqualsRule = Callable[[Any, JsonValue], bool]
"""A rule that compares an `equals` check (or a plain value) with a value.

The rule may raise OverflowError, RecursionError or ValueError."""

CallPython = Callable[[str, JsonValue], object]
"""A function that calls a Python function with a value and returns the result.

The Python function is given as a reference such as `"checks:is_even"`."""

Judge = Callable[[Any, JsonValue], CheckVerdict]
"""A function that returns a language model's verdict on a value. It raises CheckError if there is no verdict."""

VerdictCache = dict[tuple[int, int], "tuple[CheckBase, JsonValue, CheckVerdict]"]
"""Verdicts by the ids of check and value. An entry keeps check and value alive, so their ids are never reused."""


@dataclass(frozen=True, slots=True)
class CheckContext:
    """What some checks need besides the value: services and settings. A missing service is `None`.

    `verdicts` is a cache that the graders of a run share. It holds no verdicts on plain values, because each grader
    compares plain values by its own rule. It holds no judgements either, because the judge has its own cache.
    `search_time` limits the time of each pattern over all its searches. `run` is the whole run, for functions that need
    it. With `only_fields`, a field of an object is wrong if the object's check does not name it. `clock` is the time of
    the run, for checks with relative dates."""

    call_python: CallPython | None = None
    judge: Judge | None = None
    verdicts: VerdictCache | None = None
    search_time: SpentTime | None = None
    run: JsonValue = None
    only_fields: bool = False
    clock: Clock | None = None


EMPTY_CONTEXT = CheckContext()
AUDIT_CONTEXT = CheckContext(clock=NOMINAL_CLOCK)
"""The context for samples. It computes relative dates for a nominal time."""

ANY_TEXT = "…"
"""The sample for checks that any text meets."""

HOLDS = CheckVerdict(1.0, True)
NOT_TEXT = CheckVerdict(0.0, False, "not a string")
_LEFT_OUT_ALLOWED = CheckVerdict(1.0, True, "not given, which is allowed")
_NOT_GIVEN = CheckVerdict(0.0, False, "not given")


def plain_verdict(holds: bool, note: str) -> CheckVerdict:
    """Return a verdict without partial credit. If the check does not hold, `note` is the reason."""
    return HOLDS if holds else CheckVerdict(0.0, False, note)


def not_comparable(error: Exception) -> CheckVerdict:
    """Return the verdict on a value that could not be compared because of an error."""
    what = "too large" if isinstance(error, OverflowError) else "too deep or too long"
    return CheckVerdict(0.0, False, f"{what} to compare", measured=False)


class ReplacedCheck(NamedTuple):
    """The parts of a check that the form keeps when the user changes the check to another kind.

    `values` are the values that the old check expects (at least one), and `text` is the first value as text. `ends` are
    the least and the greatest number that the old check accepts, or the bounds in the argument's schema. `parts` are
    the checks that the old check combines, or the old check itself."""

    values: list[object]
    text: str
    ends: list[object]
    parts: object


Advice = tuple[str, str, str]
"""A warning about a check as written: the key concerned, the message and a hint."""

Weakness = tuple[str, str, Literal["warning", "note"]]
"""A reason why a check accepts values that are likely wrong, a hint, and the severity of the finding."""


class CheckBase(BaseModel):
    """The base class of checks, with the fields that every check has.

    `weight` is the check's share of the call's score. An `optional` argument may be left out. If a `required` check
    does not hold, the run fails. With `None`, the grader decides whether it fails. `because` is the reason for the
    check, shown with its issue."""

    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid", strict=True)

    kind: ClassVar[str]
    """The check's name in suites, and the name of the field with the expected value."""
    form_name: ClassVar[str] = ""
    """The check's name in the form. The default is `kind`."""
    written: ClassVar[str]
    """The check in the notation of the documentation: `range = [low, high]`."""
    meaning: ClassVar[str]
    """The accepted values, in a few words for the form and the documentation."""
    remark: ClassVar[str] = ""
    """A remark for the documentation, in Markdown."""
    typed: ClassVar[str]
    """The input of the expected value in the form, in Markdown."""
    options: ClassVar[Mapping[str, str]] = {}
    """The meaning of each of the check's own options."""
    exclusive: ClassVar[tuple[str, ...]] = ()
    """Options that cannot be combined."""
    types: ClassVar[frozenset[str]]
    """The JSON types whose values may meet the check."""
    offered: ClassVar[frozenset[str] | None] = None
    """The types of arguments for which the form offers the check. The default is `types`."""
    aliases: ClassVar[tuple[str, ...]] = ()
    """The check's names in other programs, which people may write in a suite by mistake."""
    cost: ClassVar[Literal["quick", "slow", "unbounded"]] = "quick"
    """The duration of an evaluation, or `unbounded` if it is unknown beforehand."""
    outside: ClassVar[Literal["judge", "python"] | None] = None
    """Whether the check calls a judge or a Python function, or `None` if it calls neither."""
    accepts_all: ClassVar[bool] = False
    """Whether every value meets the check."""
    is_exact: ClassVar[bool] = False
    """Whether exactly one value meets the check."""
    is_approximate: ClassVar[bool] = False
    """Whether values close to a sample may meet the check. Then no list of samples is complete."""
    is_critic: ClassVar[bool] = False
    """Whether Arcade has the check as a critic. Critics read a missing argument as null."""
    compares_texts: ClassVar[bool] = False
    """Whether the check compares texts character by character."""
    may_be_infinite: ClassVar[bool] = False
    """Whether the check's numbers may be infinite."""
    nests: ClassVar[Literal["", "list", "table", "check"]] = ""
    """The form of nested checks in the expected value: a list, a table by field name, or one check. Empty without."""
    checks_parts: ClassVar[bool] = False
    """Whether the nested checks concern fields or elements of the value instead of the value itself."""
    is_newer: ClassVar[bool] = False
    """Whether the check was added after the first version of the format.

    Existing suites may have tables with the new name as a key, as values or as named checks of answers. Therefore, the
    name alone does not make a table a check."""
    shape: ClassVar[str] = ""
    """The shape, in words, that the expected value must have. Otherwise, a table with the new name is no check."""
    only_in_answers: ClassVar[Mapping[str, str]] = {}
    """The options that are valid only in checks of the answer, with their values in words."""
    failure_verb: ClassVar[str] = "fails"
    """The verb between a refused value and the expected value."""

    weight: Weight | None = None
    optional: bool = False
    required: bool | None = None
    because: Annotated[str, Field(min_length=1)] | None = None

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: object) -> None:
        """Register a kind of check.

        Raises TypeError if the class lacks a required part."""
        if "kind" in vars(cls):
            lacking = [name for name in ("written", "meaning", "typed", "types") if not hasattr(cls, name)]
            lacking += sorted(cls.__abstractmethods__)
            own_fields = cls.model_fields.keys() - CheckBase.model_fields.keys() - {cls.kind, "plain"}
            lacking += (f"options[{name!r}]" for name in own_fields - cls.options.keys())
            if lacking:
                raise TypeError(f"the check {cls.kind} lacks {', '.join(lacking)}")
            cls.form_name = cls.form_name or cls.kind
            # The JSON Schema of suites takes the check's description from here.
            cls.__doc__ = cls.__doc__ or f"{cls.meaning[:1].upper()}{cls.meaning[1:]}."
            CHECK_CLASSES[cls.kind] = cls
            CHECK_WORDS.update((cls.kind, *cls.model_fields))
            if not cls.is_newer:
                RESERVED_NAMES.update({cls.kind, *cls.model_fields} - _NEWER_OPTIONS)
            OPTION_NAMES.update({*cls.model_fields} - {cls.kind} - _NEVER_ALONE)

    @property
    def parts(self) -> tuple[CheckBase, ...]:
        """The checks nested directly in this check."""
        return ()

    def placed_parts(self) -> Iterator[tuple[tuple[str | int, ...], CheckBase]]:
        """Yield each nested check with the keys and indices that lead to it in the text of this check."""
        for number, part in enumerate(self.parts):
            yield (self.kind, number) if self.nests == "list" else (self.kind,), part

    @property
    def own_parts(self) -> tuple[CheckBase, ...]:
        """The nested checks that judge the value itself, not its fields or elements."""
        return () if self.checks_parts else self.parts

    @property
    def if_missing(self) -> CheckVerdict:
        return _LEFT_OUT_ALLOWED if self.optional else _NOT_GIVEN

    @property
    def forbids(self) -> bool:
        """Whether the check demands that no value is given."""
        return False

    @property
    def expected(self) -> Any:
        return getattr(self, self.kind)

    @property
    def bare_value(self) -> JsonValue:
        """The expected value of a check that a suite writes as a plain value, without a check's name, or `None`."""
        return None

    @property
    def function(self) -> str | None:
        """The reference of the Python function that the check calls, or `None` if it calls none."""
        return None

    @property
    def needs_run(self) -> bool:
        """Whether the check judges the whole run instead of the value."""
        return False

    @property
    def needs_clock(self) -> str | None:
        """The word in the expected value that refers to the time of the run, or `None` if there is no such word."""
        return None

    @property
    def expects_null(self) -> bool:
        return False

    @property
    def critic_key(self) -> tuple[object, ...]:
        """The key by which `arcade_compatible` merges checks into one critic: kind, weight and options.

        A case has one critic for each key and argument name. The expected value, `optional` and `required` are not part
        of the key."""
        return (self.kind, *self.model_dump(exclude={self.kind, "plain", "optional", "required", "because"}).items())

    def bound_to(self, value: JsonValue) -> CheckBase:
        """Return the check with another expected value, even of a type that a suite cannot write."""
        return self.model_copy(update={self.kind: value})

    def canonical(self) -> CheckBase:
        """Return the check with its expected texts in Unicode's form NFC."""
        return self

    def as_written(self) -> JsonValue:
        options = self.model_dump(mode="json", exclude={self.kind, "plain"}, exclude_unset=True)
        return {self.kind: self._expected_as_written(), **options}

    def _expected_as_written(self) -> JsonValue:
        if self.nests == "list":
            return [part.as_written() for part in self.parts]
        if self.nests == "check":
            return self.parts[0].as_written()
        written: JsonValue = self.model_dump(mode="json", include={self.kind})[self.kind]
        return written

    @abstractmethod
    def describe(self, write_value: ValueWriter) -> str:
        """Return the check in a few words. `write_value` returns a value as text."""

    @abstractmethod
    def evaluate(self, value: JsonValue, context: CheckContext) -> CheckVerdict:
        """Return the verdict on a value.

        Raises CheckError if the check cannot be evaluated, and OverflowError, RecursionError or ValueError for a value
        that cannot be compared."""

    def verdict(self, value: JsonValue, equal: EqualsRule, context: CheckContext) -> CheckVerdict:
        """Return the verdict on the value of an argument, from the cache if possible.

        Raises CheckError."""
        known = context.verdicts
        if known is None or not self.may_be_cached:
            return self._compared(value, context)
        # Values such as dicts cannot be hashed, so the cache uses the identity of each value.
        place = (id(self), id(value))
        if (entry := known.get(place)) is None:
            entry = known[place] = (self, value, self._compared(value, context))
        return entry[2]

    def arcade_verdict(self, value: JsonValue, equal: EqualsRule, context: CheckContext) -> CheckVerdict:
        """Return the verdict of Arcade's critic of this kind, which may convert values differently.

        Raises CheckError."""
        return self.verdict(value, equal, context)

    @property
    def may_be_cached(self) -> bool:
        """Whether the verdict may be cached, because it depends on the value alone."""
        return True

    def _compared(self, value: JsonValue, context: CheckContext) -> CheckVerdict:
        try:
            return self.evaluate(value, context)
        except (OverflowError, RecursionError, ValueError) as error:
            return not_comparable(error)

    def holds(self, value: JsonValue) -> bool:
        """Return whether a value meets the check, compared as JSON.

        Relative dates use the fixed time of the samples. Raises UnknownSampleError if a search takes too long, and
        CheckError for checks that need a judge or Python."""
        try:
            return evaluate(self, value, context=AUDIT_CONTEXT).holds
        except SearchError:
            raise UnknownSampleError from None

    @property
    def is_slow(self) -> bool:
        return self.cost != "quick" or any(part.is_slow for part in self.parts)

    @property
    def uses_outside_service(self) -> bool:
        """Whether the check or a nested check asks a judge or a Python function."""
        return self.outside is not None or any(part.uses_outside_service for part in self.parts)

    @property
    def listed(self) -> tuple[JsonValue, ...] | None:
        """All values that meet the check, or `None` if there are too many to list."""
        return None

    @abstractmethod
    def samples(self) -> tuple[JsonValue, ...]:
        """Return values that meet the check: all values if they are listed, otherwise one or two typical values.

        Raises NeverHoldsError and UnknownSampleError."""

    def known_samples(self) -> tuple[JsonValue, ...]:
        """Return the samples of the check, or an empty tuple if no sample can be constructed.

        Raises NeverHoldsError."""
        try:
            return self.samples()
        except UnknownSampleError:
            return ()

    def assembled(self, schema: Schema, sample: InnerSample) -> JsonValue:
        """Build a value that meets a check of fields or elements, from samples of the nested checks.

        Raises NeverHoldsError and UnknownSampleError."""
        raise UnknownSampleError

    def near_misses(self, value: JsonValue, schema: Schema, others: OtherValues) -> Iterator[JsonValue]:
        """Yield values that probably fail the check. Each is a changed copy of `value`, which meets the check."""
        yield from ()

    def weaknesses(self, schema: Schema | None) -> Iterator[Weakness]:
        """Yield the reasons why the check accepts values that are likely wrong."""
        yield from ()

    def advice(self) -> Iterator[Advice]:
        """Yield the warnings about the check that do not depend on a tool's schema."""
        yield from ()

    @property
    def value_types(self) -> frozenset[str]:
        """The JSON types whose values may meet this check.

        These are the types of the check's kind, except for types that the expected value excludes."""
        return self.types

    @property
    def reach(self) -> tuple[float, float] | None:
        """The least and the greatest number that meet the check, or `None` if the check is not about numbers."""
        return None

    @property
    def numbers(self) -> tuple[float, ...]:
        return ()

    @property
    def least_text(self) -> str:
        """The shortest text that meets the check, or an empty text if it is unknown."""
        return ""

    def fits(self, schema: Schema, refusal_of: Refused = accept_any_value) -> str | None:
        """Return why a schema allows no value that meets the check, or `None` if it may allow such a value.

        `refusal_of` is called with the values that the check lists. It returns why the schema refuses a value."""
        if self.listed is not None:
            reasons = [refusal_of(value) for value in self.listed]
            if not reasons or None in reasons:
                return None
            return reasons[0]
        if (why := self._fits_listed(schema)) is not None:
            return why
        types = set(type_names(schema) or ())
        if not types:
            return None
        allowed = set(types)
        # Every integer is a number.
        if "number" in types:
            allowed.add("integer")
        if self.value_types.isdisjoint(allowed):
            return f"it needs {one_of_types(self.value_types)}, and the schema requires {type_text(schema)}"
        if self.reach is not None:
            if (why := out_of_bounds_reason(*self.reach, schema)) is not None:
                return why
            if types & self.value_types == {"integer"} and not self._has_whole_number():
                return "the schema requires a whole number, and the check allows none"
        longest = schema.get("maxLength")
        if isinstance(longest, int) and len(self.least_text) > longest:
            return f"the schema allows at most {longest} characters, but the text has {len(self.least_text)}"
        return None

    def _fits_listed(self, schema: Schema) -> str | None:
        choices = schema.get("enum")
        if not isinstance(choices, list) or not choices:
            return None
        if any(part.listed is not None or part.outside is not None for part in with_parts(self)):
            return None
        try:
            held = any(self.holds(choice) for choice in choices)
        except (CheckError, UnknownSampleError):
            return None
        if held:
            return None
        return f"the schema allows only {cut_text(type_text(schema))}"

    def _has_whole_number(self) -> bool:
        low, high = self.reach or (0, 0)
        return not (math.isfinite(low) and math.isfinite(high)) or math.ceil(low) <= high

    def with_words(self, text: str, words: Sequence[str]) -> str:
        """Return a text with words added, or the text itself if the added words would break the check."""
        if self.is_approximate or self.listed is not None:
            return text
        return " ".join([text, *words])

    # The following methods serve the form, the rules of suites and the documentation. They take a check as a table of
    # TOML, before the check is built.

    @classmethod
    def matches_table(cls, table: Mapping[str, object]) -> bool:
        """Return whether a table with the check's name as a key is this check, and not a plain value."""
        if not cls.is_newer:
            return True
        return cls.has_shape(table[cls.kind]) and cls.model_fields.keys() - {"plain"} >= table.keys()

    @classmethod
    def has_shape(cls, expected: object) -> bool:
        """Return whether an expected value has the shape that this kind of check expects.

        If the kind was added to the format later, a table without this shape is still read as a plain value."""
        return True

    @classmethod
    def with_written_parts(cls, expected: object, convert: Callable[[object], object]) -> object:
        """Return an expected value in its TOML form, with `convert` applied to each nested check.

        The nested checks of fields stay unchanged."""
        if cls.nests == "list" and isinstance(expected, list):
            return list(map(convert, expected))
        return convert(expected) if cls.nests == "check" else expected

    @classmethod
    def editor(cls, option: str = "") -> Editor:
        """Return the editor that the form shows for an option, or for the expected value if `option` is empty."""
        field = cls.model_fields[option or cls.kind]
        return editor_among(field.metadata) or editor_of(field.annotation)

    @classmethod
    def convertible_values(cls, expected: object) -> list[object]:
        """Return the parts of an expected value that the form keeps when the user changes the kind of check."""
        return [expected]

    @classmethod
    def ends(cls, table: Mapping[str, object]) -> list[object]:
        """Return the ends of the range of numbers that a written check accepts."""
        return [number for number in cls.convertible_values(table[cls.kind]) if is_number(number)]

    @classmethod
    @abstractmethod
    def from_replaced(cls, start: ReplacedCheck) -> Mapping[str, object]:
        """Return a check of this kind, in its TOML form, that replaces a check of another kind in the form."""

    @classmethod
    def faults(cls, expected: object) -> Iterator[tuple[str, str]]:
        """Yield the problems of an expected value that already has the right type, as message and hint."""
        yield from ()

    @classmethod
    def row(cls) -> str:
        """Return the check's row in the documentation of the suite format."""
        options = []
        for name, meaning in cls.options.items():
            default, editor = cls.model_fields[name].default, cls.editor(name)
            option = f"`{name}`"
            if default is not None:
                option += f" (`{json_text(default)}`)"
            option += f": {meaning}"
            if editor.input_kind == "choice":
                only = cls.only_in_answers.get(name)
                words = (f'`"{word}"`' + " (only in `response`)" * (word == only) for word in editor.words)
                option += "; one of " + ", ".join(words)
            options.append(option)
        what = "; ".join(filter(None, (cls.meaning, cls.remark)))
        return f"| `{cls.written}` | {what} | {'<br>'.join(options)} |".replace("|  |", "| |")


# Pydantic evaluates the annotations of all bases again for each class. Class variables are already known, so their
# annotations are removed: evaluating them for thirty classes would take a tenth of a short command's time.
for _name in CheckBase.__class_vars__:
    del CheckBase.__annotations__[_name]

CHECK_CLASSES: dict[str, type[CheckBase]] = {}
"""The classes of checks by their names in suites, in the order of the documentation."""

_NEWER_OPTIONS = {"because", "ignore_case", "in_order"}
"""Options that are newer than `RESERVED_NAMES`. A named check of the answer may therefore have such a name."""

_NEVER_ALONE = {"plain", "required", "scale", "at_least", "sees", "offset", "only_fields"} | _NEWER_OPTIONS

OPTION_NAMES: set[str] = set()
"""The options of all checks, with `weight` and `optional`. A table with no other keys is refused.

Options in `_NEVER_ALONE` are left out. They are newer than this rule, and existing suites may expect such tables as
values."""

RESERVED_NAMES: set[str] = set()
"""The names of checks and options. A named check of the answer cannot have such a name.

Therefore, a table is either one check or several named checks."""

CHECK_WORDS: set[str] = set()
"""The names of all checks and of their options."""

AMBIGUOUS_ARGUMENTS = ("args", "forbidden_args", "mock_result")
"""The arguments that need an explicit check.

A plain value under such a name looks like a key of the call that was written below a table header by mistake."""


class WrittenCheck(dict[str, object]):
    """A table that is known to be a check."""


def check_names_in(table: Mapping[str, Any]) -> list[str]:
    """Return the keys of a table that name its checks, in the order written.

    A key such as `type` may also belong to a plain value: `{ type = "circle", radius = 3 }` names no check."""
    return [name for name in table if name in CHECK_CLASSES and CHECK_CLASSES[name].matches_table(table)]


def check_name(written: object) -> str | None:
    """Return the name of the check in an argument's TOML form, or `None` for a plain value."""
    if isinstance(written, dict):
        return next(iter(check_names_in(written)), None)
    return None


def read_check(written: object) -> CheckBase:
    """Parse a check as a suite writes it. A plain value becomes `equals`.

    In a check's table, exactly one key names a check, and all other keys are its options. Raises ValueError. For a
    wrong option, this is pydantic's ValidationError."""
    if isinstance(written, CheckBase):
        return written
    kind, table = _kind_and_table(written)
    return kind.model_validate(table)


def _kind_and_table(value: Any) -> tuple[type[CheckBase], Any]:
    names = check_names_in(value) if isinstance(value, dict) else ()
    if not names:
        # A table that has only options is a check without its name.
        if isinstance(value, dict) and value and OPTION_NAMES.issuperset(value):
            raise PydanticCustomError("check_without_name", "check options without a check")
        return CHECK_CLASSES["equals"], {"equals": value, "plain": True}
    name = names[0]
    kind = CHECK_CLASSES[name]
    # `plain` marks a value without a check's name. Suites never contain this key.
    known = kind.model_fields.keys() - {"plain"}
    others = [key for key in value if key not in known]
    if others and not isinstance(value, WrittenCheck):
        raise PydanticCustomError(
            "check_mixed",
            "a table that holds the check '{name}' together with {others}",
            {"name": name, "others": ", ".join(repr(key) for key in others)},
        )
    return kind, value


class _AnyKind:
    """The pydantic schema of a field that takes any kind of check."""

    # Each kind builds its own validator when a suite first has such a check. A union would build all of them.

    def __get_pydantic_core_schema__(self, source: object, handler: object) -> CoreSchema:
        return no_info_plain_validator_function(read_check)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: object) -> dict[str, Any]:
        return {"$ref": CHECK_REFERENCE}


CHECK_REFERENCE = "https://json-schema.org/#check"
"""The reference to the schema of a check in the JSON Schemas of models. Pydantic resolves no reference to a website."""

Check = Annotated[CheckBase, _AnyKind()]
"""One check as a suite writes it: a plain value, or a table with exactly one check's name."""

Checks = dict[str, Check]
"""Checks by the names of their arguments."""


def with_parts(check: CheckBase) -> Iterator[CheckBase]:
    yield check
    for part in check.parts:
        yield from with_parts(part)


def has_kind(check: CheckBase, *kinds: type[CheckBase]) -> bool:
    """Return whether the check or a nested check is of one of these kinds."""
    if isinstance(check, kinds):
        return True
    # A fast path: most checks have no parts, and every comparison of a call runs through here.
    parts = check.parts
    return bool(parts) and any(has_kind(part, *kinds) for part in parts)


def evaluate(
    check: CheckBase,
    value: JsonValue,
    given: bool = True,
    *,
    equal: EqualsRule | None = None,
    context: CheckContext = EMPTY_CONTEXT,
) -> CheckVerdict:
    """Return the verdict of a check on the value of an argument.

    `given` is false if the argument was left out. Then only an `optional` check or `present = false` holds. `equal` is
    the rule for plain values and `equals`, by default JSON's rule. Inside `any_of` and `all_of`, plain values and
    `equals` are compared as in `one_of`.

    Raises only CheckError. Possible reasons are `judged` without a judge in `context`, `python` without `call_python`,
    a Python function that raises, and a search for `pattern` that takes too long."""
    if not given:
        return check.if_missing
    return check.verdict(value, equal or by_json, context)


def all_hold(
    checks: Mapping[str, CheckBase],
    arguments: Mapping[str, JsonValue],
    *,
    equal: EqualsRule | None = None,
    context: CheckContext = EMPTY_CONTEXT,
) -> bool:
    """Return whether all checks hold for the arguments of a call.

    Mocks use this for their conditions, and prohibitions for their arguments. Arguments without a check are ignored.
    Raises CheckError as `evaluate` does."""
    for name, check in checks.items():
        found = evaluate(check, arguments.get(name), name in arguments, equal=equal, context=context)
        if not found.holds:
            return False
    return True


def by_json(check: Any, value: JsonValue) -> bool:
    """Return whether a value equals the expected value as JSON. Mocks, breakpoints and answers use this rule."""
    return json_equal(check.equals, value)


def by_python(check: Any, value: JsonValue) -> bool:
    """Return whether a value equals the expected value by Python's `==` at every depth: 5 = 5.0, and true = 1."""
    return bool(check.equals == value)


def verdict_text(check: CheckBase, verdict: CheckVerdict, value: JsonValue, given: bool = True) -> str:
    """Return the verdict in one line with the expected and the actual value: `expected "on", got "off"`.

    Without `given`, the actual value is shown as "nothing"."""
    got = describe_value(value) if given else "nothing"
    line = f"expected {describe(check)}, got {got}"
    if note := with_because(verdict.note, check.because):
        line += f" ({note})"
    return line


def with_because(text: str, because: str | None) -> str:
    """Return a text with the suite's reason for the expectation, if any."""
    if because is None:
        return text
    reason = f"because: {because}"
    return f"{text}; {reason}" if text else reason


describe: Callable[[CheckBase], str] = cached_by_identity(lambda check: cut_text(check.describe(describe_value)))
"""Describes a check in a few words: `"on"`, `5..40`, `near 21 ± 2`, `one of "a", "b"`."""


def describe_whole(check: CheckBase) -> str:
    """Return a check in words on one line, uncut."""
    return check.describe(json_text)


def carried_values(value: object) -> list[object]:
    """Return the parts of a check or plain value that the form keeps when the user changes the kind of check."""
    if not isinstance(value, dict) or (name := check_name(value)) is None:
        return [value]
    return CHECK_CLASSES[name].convertible_values(value[name])


def asks_for_run(check: CheckBase) -> bool:
    """Return whether the check, or a nested check, calls a Python function with the whole run."""
    return check.needs_run or any(map(asks_for_run, check.parts))


def with_texts(check: CheckBase, key: str, before: object, after: object) -> CheckBase:
    """Return a check with the field `key` set to `after`. If `before` equals `after`, return the check itself."""
    if before is after or before == after:
        return check
    return check.model_copy(update={key: after})


def zero_threshold_advice(option: str, threshold: float) -> Iterator[Advice]:
    """Warn about a threshold of 0, which every value reaches."""
    if threshold == 0:
        message = f"with {option} = 0, every comparable value passes"
        yield option, message, "write the lowest similarity that is good enough"
