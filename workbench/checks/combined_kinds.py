"""Checks that leave the verdict to others: to several checks, to a judge, to a Python function."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

from pydantic import Field, JsonValue, Strict, model_validator
from pydantic_core import PydanticCustomError

from workbench.checks.check import (
    ANY_TYPE,
    HOLDS,
    Advice,
    Check,
    CheckBase,
    CheckContext,
    CheckVerdict,
    Editor,
    EqualsRule,
    FunctionRaisedError,
    NeverHoldsError,
    Number,
    Pair,
    PythonReference,
    Refused,
    Say,
    Start,
    Unit,
    UnknownSampleError,
    asks,
    carried_values,
    describe,
    evaluate,
    refuses_nothing,
)
from workbench.checks.patterns import CheckError
from workbench.checks.values import describe_value, file_name_fault, is_function_reference
from workbench.numerals import number_text, range_text, score_text, setting_text
from workbench.trajectory.json_schema import Schema


class _Combined(CheckBase):
    """Several checks on one value."""

    types = ANY_TYPE
    typed = 'a list of checks: `[{ prefix = "u-" }, { suffix = "42" }]`'
    combines = True

    @property
    def parts(self) -> tuple[CheckBase, ...]:
        return tuple(self.expected)

    @property
    def compares_texts(self) -> bool:  # type: ignore[override]
        return any(part.compares_texts for part in self.parts)

    def canonical(self) -> CheckBase:
        return self.model_copy(update={self.kind: tuple(part.canonical() for part in self.parts)})

    def _words(self, joined: str, say: Say) -> str:
        texts = (f"({part.describe(say)})" if len(part.parts) > 1 else part.describe(say) for part in self.parts)
        return joined.join(texts)

    def verdict(self, value: JsonValue, equal: EqualsRule, context: CheckContext) -> CheckVerdict:
        return self.evaluate(value, context)

    def _found(self, value: JsonValue, context: CheckContext, decides: bool) -> list[tuple[CheckVerdict, CheckBase]]:
        """Return the verdicts of the parts.

        A judge is asked last, and only where no other part decides by its verdict."""
        found: list[tuple[CheckVerdict, CheckBase]] = []
        for part in sorted(self.parts, key=lambda part: asks(part, Judged)):
            if asks(part, Judged) and any(verdict.holds is decides for verdict, _ in found):
                break
            found.append((evaluate(part, value, context=context), part))
        return found

    @classmethod
    def carried(cls, expected: object) -> list[object]:
        if isinstance(expected, list) and expected:
            return carried_values(expected[0])
        return []

    @classmethod
    def started(cls, start: Start) -> Mapping[str, object]:
        return {cls.kind: start.parts}


class AllOf(_Combined):
    kind = "all_of"
    written = "all_of = [check, …]"
    meaning = "a value that meets all of these checks"

    all_of: Annotated[tuple[Check, ...], Strict(False), Field(min_length=1), Editor("checks")]

    def samples(self) -> tuple[JsonValue, ...]:
        if self.asks_outside:
            raise UnknownSampleError
        meeting = tuple(value for part in self.parts for value in part.known_samples() if self.holds(value))
        if not meeting:
            raise UnknownSampleError
        return meeting

    def fits(self, schema: Schema, refused: Refused = refuses_nothing) -> str | None:
        reasons = (self._fits_listed(schema), *(part.fits(schema, refused) for part in self.parts))
        return next(filter(None, reasons), None)

    def describe(self, say: Say) -> str:
        return self._words(" and ", say)

    def evaluate(self, value: JsonValue, context: CheckContext) -> CheckVerdict:
        """Return the verdict of the worst part."""
        found = self._found(value, context, decides=False)
        verdict, part = min(found, key=lambda each: (each[0].holds, each[0].score))
        if verdict.holds:
            return verdict
        return replace(verdict, note=f"{describe(part)}: {verdict.note}")


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

    def fits(self, schema: Schema, refused: Refused = refuses_nothing) -> str | None:
        reasons = [part.fits(schema, refused) for part in self.parts]
        return self._fits_listed(schema) or (None if None in reasons else reasons[0])

    def describe(self, say: Say) -> str:
        return self._words(" or ", say)

    def evaluate(self, value: JsonValue, context: CheckContext) -> CheckVerdict:
        """Return the verdict of the best part."""
        found = self._found(value, context, decides=True)
        verdict, _ = max(found, key=lambda each: (each[0].holds, each[0].score))
        if verdict.holds:
            return verdict
        return replace(verdict, note="none of them")


class Judged(CheckBase):
    """A value that meets written criteria in the judgement of a language model.

    With a `scale` of two finite numbers the judge rates the value on it, and the check holds from `at_least` on."""

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
    def _whole_scale(self) -> Judged:
        if (self.scale is None) != (self.at_least is None):
            raise PydanticCustomError("check", "scale and at_least need each other: write both, or neither")
        if self.scale is not None and self.at_least is not None:
            low, high = self.scale
            if not -math.inf < low < high < math.inf:
                raise PydanticCustomError("check", "scale must be [low, high] with low < high")
            if not low <= self.at_least <= high:
                raise PydanticCustomError("check", "at_least must be a number on the scale")
        return self

    @property
    def may_be_cached(self) -> bool:
        return False

    def samples(self) -> tuple[JsonValue, ...]:
        raise UnknownSampleError

    def advice(self) -> Iterator[Advice]:
        if self.model and (self.model == "offline" or self.model.startswith(("offline:", "replay:"))):
            message = f"{describe_value(self.model)} cannot judge: it is not a language model"
            yield "model", message, "name a language model, or leave `model` out and choose a judge"

    def describe(self, say: Say) -> str:
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
    def started(cls, start: Start) -> Mapping[str, object]:
        return {"judged": start.text}


class PythonCheck(CheckBase):
    """A check by a Python function in the suite's folder; needs trust.

    The function returns true, or a number from `at_least` on. With `sees = "run"`, only in the checks of an answer, it
    is called with the whole run."""

    kind = "python"
    written = 'python = "module:function"'
    meaning = "a value for which the function returns True, or a score; needs trust"
    remark = "see [functions](#functions)"
    typed = "`module:function`"
    options: ClassVar = {
        "sees": 'what the function is called with, in `response` also `"run"`',
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
        return not self.needs_run

    @property
    def function(self) -> str | None:
        return self.python

    def samples(self) -> tuple[JsonValue, ...]:
        raise UnknownSampleError

    def describe(self, say: Say) -> str:
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
        """Return the verdict of a function's result: true or false, a score, or a table of either with a reason.

        Raises ValueError for anything else: "no" is true in Python, and guessing would turn a mistake into a wrong
        verdict."""
        if isinstance(returned, bool):
            if returned:
                return HOLDS
            return CheckVerdict(0.0, False, "the function returned False")
        reason: object = ""
        score, holds = returned, None
        if isinstance(returned, dict):
            if not returned or returned.keys() - {"score", "holds", "reason"}:
                raise ValueError(f"must return a table of `score`, `holds` and `reason`, not {returned!r}")
            score, holds, reason = (returned.get(key) for key in ("score", "holds", "reason"))
            if not isinstance(reason, str | None) or not isinstance(holds, bool | None) or score is holds is None:
                raise ValueError(f"must return `holds` (a bool), `score` (0..1) or both, not {returned!r}")
            score = holds if score is None else score
        if not isinstance(score, int | float) or not 0 <= score <= 1:
            allowed = "True or False" if self.at_least is None else "True, False or a number from 0 to 1"
            raise ValueError(f"must return {allowed}, not {returned!r}")
        if holds is None and not isinstance(score, bool):
            if self.at_least is None:
                raise ValueError(
                    f"must return True or False, not {returned!r}: for a score, write `at_least` next to it"
                )
            holds = score >= self.at_least
        holds = bool(score) if holds is None else holds
        needed = "" if self.at_least is None else f", at least {setting_text(self.at_least)} needed"
        words = " ".join(reason.split()) if isinstance(reason, str) else ""
        return CheckVerdict(float(score), holds, words or f"the function returned {score_text(float(score))}{needed}")

    @classmethod
    def started(cls, start: Start) -> Mapping[str, object]:
        return {"python": start.text if is_function_reference(start.text) else ""}

    @classmethod
    def faults(cls, expected: object) -> Iterator[tuple[str, str]]:
        yield from file_name_fault(expected)
