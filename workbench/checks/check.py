"""A kind of check: its written form, its verdict on a value, and its answers to audit, form and documentation.

`value_kinds`, `text_kinds` and `combined_kinds` have one class for each kind. A class is registered when it is
defined, and everything else asks the registered classes, so a new kind is one class."""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    JsonValue,
    Strict,
    Tag,
)
from pydantic_core import CoreSchema, PydanticCustomError

from workbench.checks.patterns import CheckError, SearchError, SpentTime
from workbench.checks.values import cut, describe_value, duration_seconds, is_function_reference, json_equal, json_text
from workbench.dataclasses import ByIdentity, dataclass
from workbench.numerals import setting_text
from workbench.trajectory.json_schema import Schema, is_number, type_names, type_text

NAMED_WEIGHTS: dict[str, int] = {
    "minimal": 1,
    "very_low": 2,
    "low": 3,
    "medium": 4,
    "high": 5,
    "very_high": 6,
    "critical": 7,
}
"""Named weights and their raw values, as in Arcade evals; they are normalised before use."""

WeightName = Literal["minimal", "very_low", "low", "medium", "high", "very_high", "critical"]
Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)] | WeightName

JsonType = Literal["string", "integer", "number", "boolean", "null", "array", "object"]
JSON_TYPES: tuple[str, ...] = get_args(JsonType)
"""The types of JSON by their names in JSON Schema."""

ANY_TYPE = frozenset(JSON_TYPES)
NUMBERS = frozenset({"number", "integer"})
TEXT = frozenset({"string"})


@dataclass(frozen=True, slots=True)
class Editor:
    """How the form reads and shows the value of a field: a number from `least` to `most`, one of `words`, and so on."""

    reads: Literal[
        "nothing", "value", "values", "checks", "text", "number", "range", "duration", "choice", "yes or no", "model"
    ]
    least: float = -math.inf
    most: float = math.inf
    words: tuple[str, ...] = ()
    """The allowed values, or examples."""


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise PydanticCustomError("float_type", "must be a number")
    try:
        float(value)
    except OverflowError as error:
        raise PydanticCustomError("number_too_large", "must be a number below 1.8e308") from error
    return value


def _duration(text: str) -> str:
    duration_seconds(text)
    return text


def _regular_expression(text: str) -> str:
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{text!r} is not a regular expression: {error}") from error
    return text


def _python_reference(text: str) -> str:
    if not is_function_reference(text):
        raise ValueError(f"{text!r} is not a Python reference: write 'module:function'")
    return text


Number = Annotated[int | float, BeforeValidator(_number), Editor("number")]
"""A number as it was written: a whole number stays whole, so that it is compared exactly, however large."""

Pair = Annotated[tuple[Number, Number], Strict(False), Editor("range")]
"""Two numbers written as a TOML array."""

Unit = Annotated[float, Field(ge=0, le=1), Editor("number", 0, 1)]
"""A score or a threshold, 0..1."""

Duration = Annotated[str, AfterValidator(_duration), Editor("duration", words=("30s", "500s", "15m", "2h", "1d"))]
Regex = Annotated[str, AfterValidator(_regular_expression)]
PythonReference = Annotated[str, AfterValidator(_python_reference)]


class FunctionRaisedError(CheckError):
    """The function of a `python` check raised, or returned neither True nor False."""


class NeverHoldsError(Exception):
    """No value meets the check.

    The message says why."""


class UnknownSampleError(Exception):
    """No value that meets the check can be constructed, though there may be one.

    Such checks are a judge, a Python function, or a pattern that looks ahead."""


@dataclass(frozen=True, slots=True)
class CheckVerdict:
    """The result of one check for one value.

    `score` is in 0..1, with values in between for the graded checks.

    `note` is the reason alone. `measured` is false when there was nothing to measure: no number for `near`, a time
    beyond the calendar, a value nested too deeply. The check then does not hold.
    """

    score: float
    holds: bool
    note: str = ""
    measured: bool = True
    number: float | None = None
    """The judge's rating on its scale."""


Say = Callable[[JsonValue], str]
"""Words a value."""

EqualsRule = Callable[[Any, JsonValue], bool]
"""Compares an `equals` check (or a plain value) with a value. May raise the comparison's errors."""

CallPython = Callable[[str, JsonValue], object]
"""Calls the function behind a reference such as `"checks:is_even"` with a value. It should return a bool."""

Judge = Callable[[Any, JsonValue], CheckVerdict]
"""Returns the judgement of a language model on a value. Raises CheckError where there is none."""

VerdictCache = dict[tuple[int, int], "tuple[CheckBase, JsonValue, CheckVerdict]"]
"""Verdicts by the ids of check and value. An entry holds on to both, so that no other object can get their ids."""


@dataclass(frozen=True, slots=True)
class CheckContext:
    """The needs of some checks beyond the value; `None` where one is not available.

    `verdicts` is shared by evaluations of the same values, so that each is computed once. Plain values are not
    cached, because each grader compares them by its own rule, and judgements are not, because the judge remembers
    them. `search_time` gives each pattern one time limit for all its searches. `run` is the run for functions that
    see it."""

    call_python: CallPython | None = None
    judge: Judge | None = None
    verdicts: VerdictCache | None = None
    search_time: SpentTime | None = None
    run: JsonValue = None


EMPTY_CONTEXT = CheckContext()

HOLDS = CheckVerdict(1.0, True)
NOT_TEXT = CheckVerdict(0.0, False, "not text")
_LEFT_OUT_ALLOWED = CheckVerdict(1.0, True, "not given, which is allowed")
_NOT_GIVEN = CheckVerdict(0.0, False, "not given")


def plain_verdict(holds: bool, note: str) -> CheckVerdict:
    """Return a verdict without partial credit; `note` says why the check does not hold."""
    return HOLDS if holds else CheckVerdict(0.0, False, note)


def not_comparable(error: Exception) -> CheckVerdict:
    """Return the verdict on a value whose comparison ended with an error."""
    what = "too large" if isinstance(error, OverflowError) else "too deep or too long"
    return CheckVerdict(0.0, False, f"{what} to compare", measured=False)


class Start(NamedTuple):
    """The form's data for an argument that gets another check.

    It has the values that the old check expects (at least one), the first of them as text, its numbers with their
    tolerance or the bounds of the argument's schema, and the checks that it combines, else itself."""

    values: list[object]
    text: str
    ends: list[object]
    parts: object


Refused = Callable[[JsonValue], str | None]
"""Returns why a value is refused, `None` when it is not."""


def refuses_nothing(value: JsonValue) -> None:
    """Refuse no value."""


Advice = tuple[str, str, str]
"""The key of a check that deserves a warning, the message and a hint."""

Weakness = tuple[str, str, Literal["warning", "note"]]
"""Why a check accepts values that are likely to be wrong, a hint and how much it matters."""


class CheckBase(BaseModel):
    """The fields of every check.

    They are its share of the call's score, whether the argument may be left out, and whether the run fails if the check
    does not hold (`required`; `None` leaves that to the grader)."""

    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid", strict=True)

    kind: ClassVar[str]
    """The name under which a suite writes it, which is the field with the expected value too."""
    form_name: ClassVar[str] = ""
    """Its name in the form, `kind` unless it says another."""
    written: ClassVar[str]
    """How the documentation writes it: `range = [low, high]`."""
    meaning: ClassVar[str]
    """The accepted values, in a few words for the form and the documentation."""
    remark: ClassVar[str] = ""
    """Further words of the documentation, in Markdown."""
    typed: ClassVar[str]
    """How its value is typed into the form, in Markdown."""
    options: ClassVar[Mapping[str, str]] = {}
    """The meaning of each of its own options."""
    exclusive: ClassVar[tuple[str, ...]] = ()
    """Options of which only one is written."""
    types: ClassVar[frozenset[str]]
    """The types of JSON whose values may meet it."""
    offered: ClassVar[frozenset[str] | None] = None
    """The types of arguments for which the form offers it, where these are not `types`."""
    aliases: ClassVar[tuple[str, ...]] = ()
    """Its names in other programs, which a suite may have by mistake."""
    cost: ClassVar[Literal["quick", "slow", "unbounded"]] = "quick"
    """How long an evaluation takes; `unbounded` where nobody can tell beforehand."""
    outside: ClassVar[Literal["judge", "python"] | None] = None
    """Whom it asks outside the program."""
    accepts_all: ClassVar[bool] = False
    """Whether every value meets it."""
    is_exact: ClassVar[bool] = False
    """Whether exactly one value meets it."""
    is_approximate: ClassVar[bool] = False
    """Whether values around its samples meet it too, so that samples tell nothing about other values."""
    is_critic: ClassVar[bool] = False
    """Whether Arcade has it as a critic, which reads a missing argument as null."""
    compares_texts: ClassVar[bool] = False
    """Whether it compares texts character by character."""
    may_be_infinite: ClassVar[bool] = False
    """Whether its numbers may be infinite."""
    combines: ClassVar[bool] = False
    """Whether its expected value is a list of checks."""
    only_in_answers: ClassVar[Mapping[str, str]] = {}
    """Words of options that only checks of the answer may have."""
    failing: ClassVar[str] = "fails"
    """The verb between a refused value and the expected one."""

    weight: Weight | None = None
    optional: bool = False
    required: bool | None = None

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: object) -> None:
        """Register a kind.

        Raises TypeError for one without one of its parts."""
        if "kind" in vars(cls):
            lacking = []
            for name in ("written", "meaning", "typed", "types"):
                if not hasattr(cls, name):
                    lacking.append(name)
            own_fields = cls.model_fields.keys() - CheckBase.model_fields.keys() - {cls.kind, "plain"}
            lacking += sorted(cls.__abstractmethods__) + [f"options[{name!r}]" for name in own_fields - {*cls.options}]
            if lacking:
                raise TypeError(f"the check {cls.kind} lacks {', '.join(lacking)}")
            cls.form_name = cls.form_name or cls.kind
            # The JSON Schema of suites takes its description from here.
            cls.__doc__ = cls.__doc__ or f"{cls.meaning[:1].upper()}{cls.meaning[1:]}."
            CHECK_CLASSES[cls.kind] = cls
            RESERVED_NAMES.update((cls.kind, *cls.model_fields))
            OPTION_NAMES.update({*cls.model_fields} - {cls.kind} - _NEVER_ALONE)

    # What it is

    @property
    def parts(self) -> tuple[CheckBase, ...]:
        """The checks nested directly in it."""
        return ()

    @property
    def expected(self) -> Any:
        """The expected value."""
        return getattr(self, self.kind)

    @property
    def bare_value(self) -> JsonValue:
        """The expected value, where it is written without the name of a check."""
        return None

    @property
    def function(self) -> str | None:
        """The reference of the Python function that it calls."""
        return None

    @property
    def needs_run(self) -> bool:
        """Whether it sees the whole run in place of the value."""
        return False

    @property
    def expects_null(self) -> bool:
        """Whether null alone meets it."""
        return False

    @property
    def critic_key(self) -> tuple[object, ...]:
        """Return a key that is equal for checks that are one critic.

        `arcade_compatible` has one critic for each argument name of a case: name, weight and options, whatever is
        expected, optional or required."""
        return (self.kind, *self.model_dump(exclude={self.kind, "plain", "optional", "required"}).items())

    def bound_to(self, value: JsonValue) -> CheckBase:
        """Return the same critic for another expected value, which may be one that a suite cannot write there."""
        return self.model_copy(update={self.kind: value})

    def canonical(self) -> CheckBase:
        """Return the check with the texts that it compares in Unicode's form NFC."""
        return self

    def as_written(self) -> JsonValue:
        """Return the check as a suite has it."""
        written: JsonValue = self.model_dump(mode="json", exclude_unset=True)
        return written

    @abstractmethod
    def describe(self, say: Say) -> str:
        """Return it in a few words, with values as `say` words them."""

    # What it says of a value

    @abstractmethod
    def evaluate(self, value: JsonValue, context: CheckContext) -> CheckVerdict:
        """Return the verdict on a value.

        May raise CheckError, and OverflowError, RecursionError or ValueError for a value that cannot be compared."""

    def verdict(self, value: JsonValue, equal: EqualsRule, context: CheckContext) -> CheckVerdict:
        """Return the verdict on a value that was given, from the cache where it is known.

        Raises CheckError."""
        known = context.verdicts
        if known is None or not self.may_be_cached:
            return self._compared(value, context)
        place = (id(self), id(value))
        if (entry := known.get(place)) is None:
            entry = known[place] = (self, value, self._compared(value, context))
        return entry[2]

    def arcade_verdict(self, value: JsonValue, equal: EqualsRule, context: CheckContext) -> CheckVerdict:
        """Return the verdict as Arcade's critic of this kind reads the value.

        Raises CheckError."""
        return self.verdict(value, equal, context)

    @property
    def may_be_cached(self) -> bool:
        """Whether its verdict depends on the value alone."""
        return True

    def _compared(self, value: JsonValue, context: CheckContext) -> CheckVerdict:
        try:
            return self.evaluate(value, context)
        except (OverflowError, RecursionError, ValueError) as error:
            return not_comparable(error)

    def holds(self, value: JsonValue) -> bool:
        """Return whether a value meets it, compared as JSON.

        Raises UnknownSampleError where a search takes too long, and CheckError for checks that need a judge or Python.
        """
        try:
            return evaluate(self, value).holds
        except SearchError:
            raise UnknownSampleError from None

    @property
    def is_slow(self) -> bool:
        """Whether it, or a check nested in it, takes long."""
        return self.cost != "quick" or any(part.is_slow for part in self.parts)

    # What the audit asks

    @property
    def asks_outside(self) -> bool:
        """Whether it, or a check nested in it, asks a judge or a Python function."""
        return self.outside is not None or any(part.asks_outside for part in self.parts)

    @property
    def listed(self) -> tuple[JsonValue, ...] | None:
        """All values that meet it, `None` where they are too many to be listed."""
        return None

    @abstractmethod
    def samples(self) -> tuple[JsonValue, ...]:
        """Return values that meet it: all of them where they are listed, else one or two typical ones.

        Raises NeverHoldsError and UnknownSampleError."""

    def known_samples(self) -> tuple[JsonValue, ...]:
        """Return its samples, none where none can be constructed.

        Raises NeverHoldsError."""
        try:
            return self.samples()
        except UnknownSampleError:
            return ()

    def weaknesses(self, schema: Schema | None) -> Iterator[Weakness]:
        """Yield why it accepts values that are likely to be wrong."""
        yield from ()

    def advice(self) -> Iterator[Advice]:
        """Yield the warnings about it, for any tool."""
        yield from ()

    @property
    def value_types(self) -> frozenset[str]:
        """The types of JSON whose values may meet it."""
        return self.types

    @property
    def reach(self) -> tuple[float, float] | None:
        """The least and the greatest number that meet it, `None` where it is not about numbers."""
        return None

    @property
    def numbers(self) -> tuple[float, ...]:
        """The numbers that it names."""
        return ()

    @property
    def least_text(self) -> str:
        """The shortest text that meets it, as far as it is known."""
        return ""

    def fits(self, schema: Schema, refused: Refused = refuses_nothing) -> str | None:
        """Return why no value that an argument's schema allows meets it, `None` when one may.

        `refused` says why the schema refuses a value of a check that lists its values.
        """
        if self.listed is not None:
            reasons = [refused(value) for value in self.listed]
            if not reasons or None in reasons:
                return None
            return reasons[0]
        if (why := self._fits_listed(schema)) is not None:
            return why
        types = {*(type_names(schema) or ())}
        if not types:
            return None
        if not self.value_types & (types | {"integer"} if "number" in types else types):
            return f"it needs {_one_of_types(self.value_types)}, and the schema requires {type_text(schema)}"
        if self.reach is not None and (why := _beyond(*self.reach, schema)) is not None:
            return why
        if self.reach is not None and types & self.value_types == {"integer"} and not self._has_whole_number():
            return "the schema requires a whole number, and it contains none"
        longest = schema.get("maxLength")
        if isinstance(longest, int) and len(self.least_text) > longest:
            return f"the schema allows at most {longest} characters, and this has {len(self.least_text)}"
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
        return f"the schema allows only {cut(type_text(schema))}"

    def _has_whole_number(self) -> bool:
        low, high = self.reach or (0, 0)
        return not (math.isfinite(low) and math.isfinite(high)) or math.ceil(low) <= high

    def with_words(self, text: str, words: Sequence[str]) -> str:
        """Return an answer that meets it, with words added where they do least harm."""
        if self.is_approximate or self.listed is not None:
            return text
        return " ".join([text, *words])

    # What the form and the rules of suites ask, of a check as it is written

    @classmethod
    def editor(cls, option: str = "") -> Editor:
        """Return how the form edits an option, or the expected value."""
        field = cls.model_fields[option or cls.kind]
        return next((each for each in field.metadata if isinstance(each, Editor)), None) or _editor(field.annotation)

    @classmethod
    def carried(cls, expected: object) -> list[object]:
        """Return the values that another check can start with."""
        return [expected]

    @classmethod
    def ends(cls, table: Mapping[str, object]) -> list[object]:
        """Return the ends of a range of all numbers that a check as it is written accepts."""
        return [number for number in cls.carried(table[cls.kind]) if is_number(number)]

    @classmethod
    @abstractmethod
    def started(cls, start: Start) -> Mapping[str, object]:
        """Return the check as the form writes it at first, in place of another one."""

    @classmethod
    def faults(cls, expected: object) -> Iterator[tuple[str, str]]:
        """Yield the problems of an expected value of the right type: message and hint."""
        yield from ()

    @classmethod
    def row(cls) -> str:
        """Return its row in the table of the format."""
        options = []
        for name, meaning in cls.options.items():
            default, editor = cls.model_fields[name].default, cls.editor(name)
            shown = "" if default is None else f" (`{json_text(default)}`)"
            words = ", ".join(f'`"{word}"`' for word in editor.words) if editor.reads == "choice" else ""
            options.append(f"`{name}`{shown}: {meaning}" + (f"; one of {words}" if words else ""))
        what = "; ".join(filter(None, (cls.meaning, cls.remark)))
        return f"| `{cls.written}` | {what} | {'<br>'.join(options)} |".replace("|  |", "| |")

    @classmethod
    def form_row(cls) -> str:
        """Return its row in the table of the form's input."""
        return f"| `{cls.form_name}` | {cls.typed} |"


# Pydantic evaluates the annotations of all bases anew for each class. It knows by now what is no field, and would take
# a tenth of a short command for these.
for _name in CheckBase.__class_vars__:
    del CheckBase.__annotations__[_name]

CHECK_CLASSES: dict[str, type[CheckBase]] = {}
"""Every check by the name it is written with, in the order of the format's table."""

_NEVER_ALONE = {"plain", "required", "scale", "at_least", "sees", "offset"}

OPTION_NAMES: set[str] = set()
"""Every option that some check takes, `weight` and `optional` included. `required`, `scale`, `at_least`, `sees` and
`offset` are left out: they are newer than the rule that a table of options alone is refused, and existing files may
expect such a value."""

RESERVED_NAMES: set[str] = set()
"""Names that a named check cannot have: those of checks and of options, so that one check is never taken for names."""

SWALLOWED = ("args", "forbidden_args", "mock_result")
"""Arguments with these names need an explicit check, because a table header could swallow the key."""

_OPTIONS_OF_TYPE = {*CheckBase.model_fields, "type"}


def _editor(annotation: Any) -> Editor:
    """Return how a value of a Python type is edited."""
    if get_origin(annotation) is Annotated:
        own = next((each for each in get_args(annotation)[1:] if isinstance(each, Editor)), None)
        return own or _editor(get_args(annotation)[0])
    if get_origin(annotation) is Literal:
        words = get_args(annotation)
        if words == (True,):
            return Editor("nothing")
        return Editor("choice", words=words)
    if annotation is bool:
        return Editor("yes or no", words=("true", "false"))
    for inner in get_args(annotation):
        if inner is not type(None):
            return _editor(inner)
    return Editor("text")


_IN_WORDS = {
    "string": "a text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


def _one_of_types(types: frozenset[str]) -> str:
    given = types - {"integer"} if "number" in types else types
    return " or ".join(words for name, words in _IN_WORDS.items() if name in given)


def _beyond(low: float, high: float, schema: Schema) -> str | None:
    """Return why none of the numbers from low to high is within the bounds of a schema."""
    least, most = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if is_number(least) and high < least:
        return f"the schema allows nothing below {setting_text(least)}"
    if is_number(most) and low > most:
        return f"the schema allows nothing above {setting_text(most)}"
    if is_number(above) and high <= above:
        return f"the schema allows only what is above {setting_text(above)}"
    if is_number(below) and low >= below:
        return f"the schema allows only what is below {setting_text(below)}"
    return None


def check_names_in(table: Mapping[str, Any]) -> list[str]:
    """Return the names of checks among a table's keys, in the order written.

    `type` is one only together with the name of a JSON type and options: `{ type = "circle", radius = 3 }` is a value.
    """
    names = [name for name in table if name in CHECK_CLASSES]
    if "type" in names and not (table["type"] in JSON_TYPES and table.keys() <= _OPTIONS_OF_TYPE):
        names.remove("type")
    return names


def _as_table(value: Any) -> Any:
    """Convert a written value into the table of one check; a bare value becomes `equals`.

    A table is a check if and only if exactly one key names a check and all others are options of it."""
    if isinstance(value, CheckBase):
        return value
    if not isinstance(value, dict):
        return {"equals": value, "plain": True}
    names = check_names_in(value)
    if not names:
        if value and all(key in OPTION_NAMES for key in value):
            raise PydanticCustomError("check_without_name", "check options without a check")
        return {"equals": value, "plain": True}
    name = names[0]
    others = []
    for key in value:
        if key != name and key not in CHECK_CLASSES[name].model_fields.keys() - {"plain"}:
            others.append(key)
    if others:
        raise PydanticCustomError(
            "check_mixed",
            "a table that holds the check '{name}' together with {others}",
            {"name": name, "others": ", ".join(repr(key) for key in others)},
        )
    return value


def check_name(written: object) -> str | None:
    """Return the name of the check in an argument as written, `None` for a plain value."""
    if isinstance(written, dict):
        return next(iter(check_names_in(written)), None)
    return None


def _kind_of(value: Any) -> str | None:
    if isinstance(value, CheckBase):
        return value.kind
    return check_name(value)


class _AnyKind:
    """Lets a field hold a check of any kind that is registered when the model is built."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        kinds: Any = tuple(Annotated[cls, Tag(kind)] for kind, cls in CHECK_CLASSES.items())
        any_kind: Any = Annotated[Union[kinds], Discriminator(_kind_of), BeforeValidator(_as_table)]  # noqa: UP007
        return handler.generate_schema(any_kind)


Check = Annotated[CheckBase, _AnyKind()]
"""One check as a suite writes it: a bare value, or a table with exactly one check's name."""

Checks = dict[str, Check]
"""Argument name to check."""


def read_check(written: object) -> CheckBase:
    """Return a check that is written as in a suite.

    Raises ValueError, pydantic's own where an option is wrong."""
    table = _as_table(written)
    if isinstance(table, CheckBase):
        return table
    return CHECK_CLASSES[check_names_in(table)[0]].model_validate(table)


def are_named_checks(value: object) -> bool:
    """Return whether `response` is written as checks by name.

    So is a table without the name of a check in which every value is a table."""
    if not isinstance(value, dict) or not value or check_names_in(value):
        return False
    return all(isinstance(inner, dict | CheckBase) for inner in value.values())


def _one_or_named(value: Any) -> str:
    if are_named_checks(value):
        return NAMED_CHECKS
    return ONE_CHECK


ONE_CHECK: Final = "one check"
NAMED_CHECKS: Final = "named checks"

AnswerChecks = Annotated[
    Annotated[Check, Tag(ONE_CHECK)] | Annotated[Checks, Tag(NAMED_CHECKS)], Discriminator(_one_or_named)
]
"""A suite's demand on the final answer: one check, or several by their names."""


def with_parts(check: CheckBase) -> Iterator[CheckBase]:
    """Yield the check and all checks nested in it."""
    yield check
    for part in check.parts:
        yield from with_parts(part)


def asks(check: CheckBase, *kinds: type[CheckBase]) -> bool:
    """Return whether the check, or one nested in it, is of one of these kinds."""
    if isinstance(check, kinds):
        return True
    parts = check.parts  # most checks have none, and this is asked for every comparison of a call
    return bool(parts) and any(asks(part, *kinds) for part in parts)


def evaluate(
    check: CheckBase,
    value: JsonValue,
    given: bool = True,
    *,
    equal: EqualsRule | None = None,
    context: CheckContext = EMPTY_CONTEXT,
) -> CheckVerdict:
    """Evaluate a check against a value.

    `given` is false when the argument was left out; only an `optional` check holds then. `equal` is the rule for plain
    values and `equals`, by default that of JSON; inside `any_of` and `all_of` these are compared as in `one_of`.

    Raises CheckError for `judged` without a judge in `context`, for `python` without `call_python` or when the function
    raises, and for `pattern` when its search takes too long. Raises nothing else.
    """
    if not given:
        if check.optional:
            return _LEFT_OUT_ALLOWED
        return _NOT_GIVEN
    return check.verdict(value, equal or by_json, context)


def all_hold(
    checks: Mapping[str, CheckBase],
    arguments: Mapping[str, JsonValue],
    *,
    equal: EqualsRule | None = None,
    context: CheckContext = EMPTY_CONTEXT,
) -> bool:
    """Return whether the checks of all named arguments hold.

    Arguments without a check are ignored.

    This evaluates a mock's `when` and a prohibition's `args`. Raises CheckError as `evaluate` does.
    """
    return all(
        evaluate(check, arguments.get(name), name in arguments, equal=equal, context=context).holds
        for name, check in checks.items()
    )


def by_json(check: Any, value: JsonValue) -> bool:
    """Compare as mocks, breakpoints and answers do."""
    return json_equal(check.equals, value)


def by_python(check: Any, value: JsonValue) -> bool:
    """Compare by Python's `==`, deep: 5 = 5.0, and true = 1."""
    return bool(check.equals == value)


def why(check: CheckBase, found: CheckVerdict, value: JsonValue, given: bool = True) -> str:
    """Return the verdict as one line for a person, with the expected and the actual value."""
    got = describe_value(value) if given else "nothing"
    note = f" ({found.note})" if found.note else ""
    return f"expected {describe(check)}, got {got}{note}"


describe: ByIdentity[CheckBase, str] = ByIdentity(lambda check: cut(check.describe(describe_value)))
"""Return a check in a few words: `"on"`, `5..40`, `near 21 ± 2`, `one of "a", "b"`."""


def describe_whole(check: CheckBase) -> str:
    """Return a check on one line of any length."""
    return check.describe(json_text)


def carried_values(value: object) -> list[object]:
    """Return the values that another check can start with in place of an expected value or check, as it is written."""
    if not isinstance(value, dict) or (name := check_name(value)) is None:
        return [value]
    return CHECK_CLASSES[name].carried(value[name])


def asks_for_run(check: CheckBase) -> bool:
    """Return whether the check, or one nested in it, is a function that sees the whole run."""
    return check.needs_run or any(map(asks_for_run, check.parts))


def with_texts(check: CheckBase, key: str, before: object, after: object) -> CheckBase:
    if before is after or before == after:
        return check
    return check.model_copy(update={key: after})


def idle_threshold(option: str, threshold: float) -> Iterator[Advice]:
    if threshold == 0:
        message = f"with {option} = 0, every value that can be compared passes"
        yield option, message, "write the lowest similarity that is good enough"
