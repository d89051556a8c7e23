"""Checks that delegate to several other checks, a judge, or a Python function."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, JsonValue, Strict, model_validator
from pydantic_core import PydanticCustomError

from workbench.checks.argument_schema import OtherValues, Refused, accept_any_value
from workbench.checks.check import (
    ANY_TEXT,
    HOLDS,
    Advice,
    Check,
    CheckBase,
    CheckContext,
    CheckVerdict,
    EqualsRule,
    FunctionRaisedError,
    NeverHoldsError,
    ReplacedCheck,
    UnknownSampleError,
    ValueWriter,
    carried_values,
    describe,
    evaluate,
    has_kind,
    with_because,
)
from workbench.checks.fields import ANY_TYPE, Editor, Number, Pair, PythonReference, Unit
from workbench.checks.patterns import CheckError
from workbench.checks.values import describe_value, file_name_fault, is_function_reference
from workbench.numerals import number_text, range_text, score_text, setting_text
from workbench.trajectory.json_schema import Schema


class _Combined(CheckBase):
    types = ANY_TYPE
    typed = 'a list of checks: `[{ prefix = "u-" }, { suffix = "42" }]`'
    nests = "list"

    @property
    def parts(self) -> tuple[CheckBase, ...]:
        return tuple(self.expected)

    @property
    def compares_texts(self) -> bool:  # type: ignore[override]
        return any(part.compares_texts for part in self.parts)

    def canonical(self) -> CheckBase:
        return self.model_copy(update={self.kind: tuple(part.canonical() for part in self.parts)})

    def _words(self, conjunction: str, write_value: ValueWriter) -> str:
        texts = []
        for part in self.parts:
            text = part.describe(write_value)
            texts.append(f"({text})" if len(part.parts) > 1 else text)
        return conjunction.join(texts)

    def verdict(self, value: JsonValue, equal: EqualsRule, context: CheckContext) -> CheckVerdict:
        return self.evaluate(value, context)

    def _found(
        self, value: JsonValue, context: CheckContext, deciding_verdict: bool
    ) -> list[tuple[CheckVerdict, CheckBase]]:
        """Return the verdicts of the nested checks. If one of them decides the result, judges are not asked.

        `deciding_verdict` is the verdict that decides: False for `all_of`, and True for `any_of` and `none_of`."""
        found: list[tuple[CheckVerdict, CheckBase]] = []
        # Judges come last because they cost money and seconds.
        for part in sorted(self.parts, key=lambda part: has_kind(part, Judged)):
            if has_kind(part, Judged) and any(verdict.holds is deciding_verdict for verdict, _ in found):
                break
            found.append((evaluate(part, value, context=context), part))
        return found

    @classmethod
    def convertible_values(cls, expected: object) -> list[object]:
        if isinstance(expected, list) and expected:
            return carried_values(expected[0])
        return []

    @classmethod
    def from_replaced(cls, start: ReplacedCheck) -> Mapping[str, object]:
        return {cls.kind: start.parts}


class AllOf(_Combined):
    kind = "all_of"
    written = "all_of = [check, …]"
    meaning = "a value that meets all of these checks"

    all_of: Annotated[tuple[Check, ...], Strict(False), Field(min_length=1), Editor("checks")]

    def samples(self) -> tuple[JsonValue, ...]:
        if self.uses_outside_service:
            raise UnknownSampleError
        meeting: list[JsonValue] = []
        for part in self.parts:
            meeting += filter(self.holds, part.known_samples())
        # A value that meets all nested checks may exist, even if no sample of a nested check meets all of them.
        if not meeting:
            raise UnknownSampleError
        return tuple(meeting)

    def fits(self, schema: Schema, refusal_of: Refused = accept_any_value) -> str | None:
        if (why := self._fits_listed(schema)) is not None:
            return why
        for part in self.parts:
            if (why := part.fits(schema, refusal_of)) is not None:
                return why
        return None

    def describe(self, write_value: ValueWriter) -> str:
        return self._words(" and ", write_value)

    def evaluate(self, value: JsonValue, context: CheckContext) -> CheckVerdict:
        """Return the verdict of the nested check with the worst result."""
        found = self._found(value, context, deciding_verdict=False)
        verdict, part = min(found, key=lambda each: (each[0].holds, each[0].score))
        if verdict.holds:
            return verdict
        return replace(verdict, note=with_because(f"{describe(part)}: {verdict.note}", part.because))


class AnyOf(_Combined):
    kind = "any_of"
    written = "any_of = [check, …]"
    meaning = "a value that meets one of these checks"

    any_of: Annotated[tuple[Check, ...], Strict(False), Field(min_length=1), Editor("checks")]

    def samples(self) -> tuple[JsonValue, ...]:
        reasons: list[str] = []
        found: list[JsonValue] = []
        for part in self.parts:
            try:
                found += part.known_samples()
            except NeverHoldsError as error:
                reasons.append(str(error))
        if len(reasons) == len(self.parts):
            raise NeverHoldsError("; ".join(reasons))
        if not found:
            raise UnknownSampleError
        return tuple(found)

    def fits(self, schema: Schema, refusal_of: Refused = accept_any_value) -> str | None:
        if (why := self._fits_listed(schema)) is not None:
            return why
        reasons = [part.fits(schema, refusal_of) for part in self.parts]
        # It is enough if the schema allows values that meet one nested check.
        if None in reasons:
            return None
        return reasons[0]

    def describe(self, write_value: ValueWriter) -> str:
        return self._words(" or ", write_value)

    def evaluate(self, value: JsonValue, context: CheckContext) -> CheckVerdict:
        """Return the verdict of the nested check with the best result."""
        found = self._found(value, context, deciding_verdict=True)
        verdict, _ = max(found, key=lambda each: (each[0].holds, each[0].score))
        if verdict.holds:
            return verdict
        return replace(verdict, note="none of them")


class NoneOf(_Combined):
    kind = "none_of"
    written = "none_of = [check, …]"
    meaning = "a value that meets none of these checks"
    aliases = ("not", "isnot", "notequals", "ne", "nor")
    shape = "a list of at least one check"
    is_newer = True

    none_of: Annotated[tuple[Check, ...], Strict(False), Field(min_length=1), Editor("checks", least=1)]

    def samples(self) -> tuple[JsonValue, ...]:
        if self.uses_outside_service:
            raise UnknownSampleError
        if not (meeting := tuple(filter(self.holds, _COMMON))):
            raise UnknownSampleError
        return meeting

    def near_misses(self, value: JsonValue, schema: Schema, others: OtherValues) -> Iterator[JsonValue]:
        for part in self.parts:
            try:
                yield from part.known_samples()
            except NeverHoldsError:
                continue

    def fits(self, schema: Schema, refusal_of: Refused = accept_any_value) -> str | None:
        choices = schema.get("enum")
        if not isinstance(choices, list) or not choices or self.uses_outside_service:
            return None
        try:
            if any(map(self.holds, choices)):
                return None
        except UnknownSampleError:
            return None
        return "the schema allows only values that the check excludes"

    def describe(self, write_value: ValueWriter) -> str:
        return f"not {self._words(' nor ', write_value)}"

    def evaluate(self, value: JsonValue, context: CheckContext) -> CheckVerdict:
        """Return a verdict that holds if the value meets none of the nested checks.

        Otherwise, the verdict names the first check that the value meets."""
        for verdict, part in self._found(value, context, deciding_verdict=True):
            if verdict.holds:
                return CheckVerdict(0.0, False, with_because(f"excluded: {describe(part)}", part.because))
        return HOLDS

    @classmethod
    def has_shape(cls, expected: object) -> bool:
        return isinstance(expected, list) and bool(expected)


_COMMON: tuple[JsonValue, ...] = (ANY_TEXT, 0, "", 1, True, False, None, [], {})
"""Values of each type. Most checks exclude only a few of these values."""


class Judged(CheckBase):
    """A value that meets written criteria in the judgement of a language model.

    With a `scale` of two finite numbers, the judge gives a number on the scale. The check holds if that number reaches
    `at_least`."""

    kind = "judged"
    written = 'judged = "criteria"'
    meaning = "a value that meets the criteria in the judgement of a language model"
    remark = "see [judged](#judged)"
    typed = "criteria in words"
    options: ClassVar = {
        "model": "the model that judges",
        "scale": "low..high, of the numbers the judge [rates by](#judged-on-a-scale)",
        "at_least": "the lowest number that is enough",
    }
    types = ANY_TYPE
    aliases = ("llm", "judge")
    cost = "unbounded"
    outside = "judge"

    judged: str
    model: Annotated[str, Editor("model")] | None = None
    scale: Pair | None = None
    at_least: Number | None = None

    @model_validator(mode="after")
    def _whole_scale(self) -> Self:
        if (self.scale is None) != (self.at_least is None):
            raise PydanticCustomError("check", "`scale` and `at_least` need each other: write both, or neither")
        if self.scale is not None and self.at_least is not None:
            low, high = self.scale
            if not -math.inf < low < high < math.inf:
                raise PydanticCustomError("check", "`scale` must be [low, high] with low < high")
            if not low <= self.at_least <= high:
                raise PydanticCustomError("check", "`at_least` must be a number on the scale")
        return self

    @property
    def may_be_cached(self) -> bool:
        # The judge caches its answers itself.
        return False

    def samples(self) -> tuple[JsonValue, ...]:
        raise UnknownSampleError

    def advice(self) -> Iterator[Advice]:
        if self.model and (self.model == "offline" or self.model.startswith(("offline:", "replay:"))):
            message = f"{describe_value(self.model)} cannot judge: it is not a language model"
            yield "model", message, "name a language model, or leave `model` out and choose a judge"

    def describe(self, write_value: ValueWriter) -> str:
        words = " ".join(self.judged.split())
        if self.scale is None or self.at_least is None:
            return f"judged: {words}"
        return f"judged at least {number_text(self.at_least)} on {range_text(*self.scale)}: {words}"

    def evaluate(self, value: JsonValue, context: CheckContext) -> CheckVerdict:
        if context.judge is None:
            raise CheckError(f"the check {describe(self)!r} needs a judge, but none may be asked here")
        try:
            return context.judge(self, value)
        except (OverflowError, RecursionError, ValueError) as error:
            raise CheckError(f"the check {describe(self)!r} cannot be judged: {error}") from error

    @classmethod
    def from_replaced(cls, start: ReplacedCheck) -> Mapping[str, object]:
        return {"judged": start.text}


class PythonCheck(CheckBase):
    """A value for which a Python function in the suite's folder returns True. The suite must be trusted.

    With `at_least`, the function may return a score, and the check holds from that score on. With `sees = "run"`, the
    function is called with the whole run instead of the value. Only checks of the answer may have this option."""

    kind = "python"
    written = 'python = "module:function"'
    meaning = "a value for which the function returns True, or a score; needs trust"
    remark = "see [functions](#functions)"
    typed = "`module:function`"
    options: ClassVar = {
        "sees": "what the function is called with",
        "at_least": "the lowest score that is enough",
    }
    only_in_answers: ClassVar = {"sees": "run"}
    types = ANY_TYPE
    cost = "unbounded"
    outside = "python"

    python: PythonReference
    sees: Literal["value", "run"] = "value"
    at_least: Unit | None = None

    @property
    def needs_run(self) -> bool:
        return self.sees == "run"

    @property
    def may_be_cached(self) -> bool:
        # The cache is keyed by the value, but this verdict depends on the whole run.
        return not self.needs_run

    @property
    def function(self) -> str | None:
        return self.python

    def samples(self) -> tuple[JsonValue, ...]:
        raise UnknownSampleError

    def describe(self, write_value: ValueWriter) -> str:
        return f"python {self.python}"

    def evaluate(self, value: JsonValue, context: CheckContext) -> CheckVerdict:
        if context.call_python is None:
            raise CheckError(f"the check {describe(self)!r} needs a Python function, but none may be called here")
        try:
            returned = context.call_python(self.python, context.run if self.needs_run else value)
        except CheckError as error:
            raise CheckError(f"the check {describe(self)!r} cannot be called: {error}") from error
        except Exception as error:
            problem = f"the check {describe(self)!r} raised {type(error).__name__}: {error}"
            raise FunctionRaisedError(problem) from error
        try:
            return self._returned(returned)
        except ValueError as error:
            raise FunctionRaisedError(f"the check {describe(self)!r} {error}") from None

    def _returned(self, returned: object) -> CheckVerdict:
        """Return the verdict for a function's result: a bool, a score, or a dict of either with a reason.

        Raises ValueError for any other result."""
        # Python's truthiness would turn mistakes into wrong verdicts: the text "no" is true.
        if isinstance(returned, bool):
            if returned:
                return HOLDS
            return CheckVerdict(0.0, False, "the function returned False")
        reason: object = ""
        score, holds = returned, None
        if isinstance(returned, dict):
            if not returned or returned.keys() - {"score", "holds", "reason"}:
                raise ValueError(
                    f"must return a dict with `score`, `holds` or both, and optionally `reason`, not {returned!r}"
                )
            score, holds, reason = returned.get("score"), returned.get("holds"), returned.get("reason")
            if not isinstance(reason, str | None) or not isinstance(holds, bool | None) or score is holds is None:
                raise ValueError(f"must return `holds` (a bool), `score` (0..1) or both, not {returned!r}")
            if score is None:
                score = holds
        if not isinstance(score, int | float) or not 0 <= score <= 1:
            allowed = "True or False" if self.at_least is None else "True, False or a number from 0 to 1"
            raise ValueError(f"must return {allowed}, not {returned!r}")
        if holds is None and not isinstance(score, bool):
            if self.at_least is None:
                raise ValueError(
                    f"must return True or False, not {returned!r}; to judge a score, write `at_least` next to `python`"
                )
            holds = score >= self.at_least
        if holds is None:
            holds = bool(score)
        if isinstance(reason, str) and reason.strip():
            return CheckVerdict(float(score), holds, " ".join(reason.split()))
        note = f"the function returned {score_text(float(score))}"
        if self.at_least is not None:
            note += f", at least {setting_text(self.at_least)} needed"
        return CheckVerdict(float(score), holds, note)

    @classmethod
    def from_replaced(cls, start: ReplacedCheck) -> Mapping[str, object]:
        return {"python": start.text if is_function_reference(start.text) else ""}

    @classmethod
    def faults(cls, expected: object) -> Iterator[tuple[str, str]]:
        yield from file_name_fault(expected)
