"""Checks of the fields of objects."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, JsonValue
from pydantic_core import PydanticCustomError

from workbench.checks.argument_schema import (
    InnerSample,
    OtherValues,
    Refused,
    accept_any_value,
    field_schema,
    refusal_by,
)
from workbench.checks.check import (
    ANY_TEXT,
    CHECK_CLASSES,
    OPTION_NAMES,
    Advice,
    Check,
    CheckBase,
    CheckContext,
    CheckVerdict,
    EqualsRule,
    NeverHoldsError,
    ReplacedCheck,
    ValueWriter,
    Weakness,
    WrittenCheck,
    carried_values,
    check_names_in,
    evaluate,
    verdict_text,
    with_because,
)
from workbench.checks.fields import Editor
from workbench.checks.values import canonical_text
from workbench.startup import late_pattern
from workbench.trajectory.json_schema import Schema

_BARE_NAME = late_pattern(r"[A-Za-z0-9_-]+")


def _as_field(value: Any) -> Any:
    """Convert a value below `has_fields`: a plain table becomes a nested `has_fields`."""
    if not isinstance(value, dict):
        return value
    names = check_names_in(value)
    if not names:
        if (mixed := mixed_check(value)) is not None:
            name, others = mixed
            raise PydanticCustomError(
                "check_mixed",
                "a table that holds the check '{name}' together with {others}",
                {"name": name, "others": ", ".join(repr(key) for key in others)},
            )
        return WrittenCheck({"has_fields": value, "plain": True})
    name = names[0]
    return {**value, name: CHECK_CLASSES[name].with_written_parts(value[name], _as_field)}


def mixed_check(table: Mapping[str, object]) -> tuple[str, list[str]] | None:
    """Return the name of the check that a table resembles, and the keys that do not belong to that check.

    Returns `None` if the table is a check, or if it resembles no check."""
    if check_names_in(table):
        return None
    for name, cls in CHECK_CLASSES.items():
        # Only a table can resemble a check, because any other value may be expected as a field.
        if not cls.is_newer or name not in table or (cls.nests == "check" and not isinstance(table[name], dict)):
            continue
        if cls.has_shape(table[name]):
            return name, [key for key in table if key != name and key not in cls.model_fields]
    return None


FieldCheck = Annotated[Check, BeforeValidator(_as_field)]
"""The check of a field. Unlike `Check`, a plain table is checked field by field."""


class HasFields(CheckBase):
    """An object whose fields meet their checks. With `only_fields`, any other field is wrong, at any depth."""

    kind = "has_fields"
    written = "has_fields = { NAME = check }"
    meaning = "an object with these fields"
    remark = "see [fields of objects](#fields-of-objects)"
    typed = 'a table of checks: `{ city = { prefix = "O" }, size = 3 }`'
    options: ClassVar = {"only_fields": "whether any other field is wrong, at any depth"}
    types = frozenset({"object"})
    aliases = ("fields", "properties", "partial", "objectcontaining")
    nests = "table"
    shape = "a table of checks by the names of fields"
    is_newer = checks_parts = True

    has_fields: Annotated[dict[str, FieldCheck], Editor("fields")]
    only_fields: bool = False
    plain: bool = False
    """Whether the check is written without `has_fields`, as a plain table inside another check of fields."""

    @property
    def parts(self) -> tuple[CheckBase, ...]:
        return tuple(self.has_fields.values())

    def placed_parts(self) -> Iterator[tuple[tuple[str | int, ...], CheckBase]]:
        for name, part in self.has_fields.items():
            if self.plain:
                yield (name,), part
            else:
                yield (self.kind, name), part

    @property
    def compares_texts(self) -> bool:  # type: ignore[override]
        return any(part.compares_texts for part in self.parts)

    def canonical(self) -> CheckBase:
        fields = {canonical_text(name): part.canonical() for name, part in self.has_fields.items()}
        return self.model_copy(update={"has_fields": fields})

    def as_written(self) -> JsonValue:
        return self._expected_as_written() if self.plain else super().as_written()

    def _expected_as_written(self) -> JsonValue:
        return {name: part.as_written() for name, part in self.has_fields.items()}

    def describe(self, write_value: ValueWriter) -> str:
        texts = []
        for path, part in _leaves(self):
            texts.append(f"{path}: {part.describe(write_value)}")
        if not self.only_fields:
            texts.append("…")
        return f"{{{', '.join(texts)}}}"

    def verdict(self, value: JsonValue, equal: EqualsRule, context: CheckContext) -> CheckVerdict:
        return self.evaluate(value, context)

    def evaluate(self, value: JsonValue, context: CheckContext) -> CheckVerdict:
        """Return the mean of the verdicts on the fields, with the wrong fields in the note."""
        if not isinstance(value, dict):
            return CheckVerdict(0.0, False, "not an object")
        score, wrong = self._compared_fields(value, context)
        return CheckVerdict(score, not wrong, faults_text(wrong))

    def _compared_fields(self, value: dict[str, JsonValue], context: CheckContext) -> tuple[float, list[str]]:
        only = context.only_fields
        if "only_fields" in self.model_fields_set:
            only = self.only_fields
        if only is not context.only_fields:
            context = replace(context, only_fields=only)
        scores = []
        wrong = []
        for name, part in self.has_fields.items():
            inner = value.get(name)
            if isinstance(part, HasFields) and isinstance(inner, dict):
                score, inside = part._compared_fields(inner, context)
                scores.append(score)
                wrong += [f"{_shown(name)}.{each}" for each in inside]
                continue
            if name not in value and part.optional:
                continue
            found = evaluate(part, inner, name in value, context=context)
            scores.append(found.score)
            if name not in value and not found.holds:
                wrong.append(with_because(f"{_shown(name)}: not given", part.because))
            elif not found.holds:
                wrong.append(f"{_shown(name)}: {verdict_text(part, found, inner)}")
        if only:
            surplus = [name for name in value if name not in self.has_fields]
            scores += [0.0] * len(surplus)
            wrong += [f"{_shown(name)}: not expected" for name in surplus]
        if not scores:
            return 1.0, wrong
        return sum(scores) / len(scores), wrong

    def samples(self) -> tuple[JsonValue, ...]:
        whole = self.assembled({}, inner_sample)
        least = {name: value for name, value in whole.items() if not self.has_fields[name].optional}
        if least == whole:
            return (whole,)
        return whole, least

    def assembled(self, schema: Schema, sample: InnerSample) -> dict[str, JsonValue]:
        whole: dict[str, JsonValue] = {}
        for name, part in self.has_fields.items():
            if part.forbids:
                continue
            try:
                whole[name] = sample(part, field_schema(schema, name) or {})
            except NeverHoldsError as error:
                if not part.optional:
                    raise NeverHoldsError(f"{_shown(name)}: {error}") from None
        return whole

    def near_misses(self, value: JsonValue, schema: Schema, others: OtherValues) -> Iterator[JsonValue]:
        if not isinstance(value, dict):
            return
        for name, part in self.has_fields.items():
            for other in others(part, field_schema(schema, name) or {}):
                yield {**value, name: other}
            yield {key: field for key, field in value.items() if key != name}
        if self.only_fields:
            yield {**value, ANY_TEXT: ANY_TEXT}

    def weaknesses(self, schema: Schema | None) -> Iterator[Weakness]:
        for name, part in self.has_fields.items():
            inner = None
            if schema is not None:
                inner = field_schema(schema, name)
            for reason, hint, weight in part.weaknesses(inner):
                yield f"{_shown(name)}: {reason}", hint, weight

    def advice(self) -> Iterator[Advice]:
        if not self.has_fields and not self.only_fields and not self.plain:
            yield "has_fields", "without any field, every object passes", "name the fields that matter"

    def fits(self, schema: Schema, refusal_of: Refused = accept_any_value) -> str | None:
        if (reason := super().fits(schema, refusal_of)) is not None:
            return reason
        for name, part in self.has_fields.items():
            if part.optional:
                continue
            inner = field_schema(schema, name)
            if inner is None:
                return f"the schema has no field {_shown(name)}"
            if (reason := part.fits(inner, refusal_by(inner))) is not None:
                return f"{_shown(name)}: {reason}"
        return None

    @classmethod
    def matches_table(cls, table: Mapping[str, object]) -> bool:
        return isinstance(table, WrittenCheck) or super().matches_table(table)

    @classmethod
    def has_shape(cls, expected: object) -> bool:
        return isinstance(expected, dict)

    @classmethod
    def convertible_values(cls, expected: object) -> list[object]:
        if not isinstance(expected, dict):
            return [expected]
        value: dict[str, object] = {}
        for name, part in expected.items():
            if carried := carried_values(part):
                value[name] = carried[0]
        return [value]

    @classmethod
    def from_replaced(cls, start: ReplacedCheck) -> Mapping[str, object]:
        value = start.values[0]
        fields: object = {}
        if isinstance(value, dict):
            fields = value
        return {cls.kind: fields}


def _leaves(check: HasFields, above: str = "") -> Iterator[tuple[str, CheckBase]]:
    """Yield the fields with their checks. Fields of plain tables have dotted names."""
    for name, part in check.has_fields.items():
        path = above + _shown(name)
        if isinstance(part, HasFields) and part.plain and part.has_fields:
            yield from _leaves(part, f"{path}.")
        else:
            yield path, part


def _shown(name: str) -> str:
    if _BARE_NAME.fullmatch(name):
        return name
    return json.dumps(name, ensure_ascii=False)


def inner_sample(check: CheckBase, schema: Schema) -> JsonValue:
    if check.accepts_all:
        return ANY_TEXT
    return check.samples()[0]


def faults_text(wrong: Sequence[str]) -> str:
    """Join the faults inside a value on one line, up to a limit."""
    if len(wrong) > _MAX_NAMED:
        wrong = [*wrong[:_MAX_NAMED], f"{len(wrong) - _MAX_NAMED} more"]
    return "; ".join(wrong)


_MAX_NAMED = 4
"""The most wrong fields or elements that a verdict names."""


def as_plain_check(value: object) -> object:
    """Return the check that expects exactly this value.

    This is the value alone, or the value under `equals` if it would otherwise be read as a check."""
    if isinstance(value, dict) and (check_names_in(value) or (value and OPTION_NAMES.issuperset(value))):
        return {"equals": value}
    return value
