"""Constructs values that miss a check, as a careless agent would send them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from workbench.analysis.audit.schema_values import TEXTS
from workbench.checks.check import Check, NeverHoldsError, UnknownSampleError
from workbench.trajectory.json_schema import UNIONS, alternatives_of
from workbench.trajectory.messages import JsonValue


def other_values(check: Check, schema: Mapping[str, JsonValue]) -> Iterator[JsonValue]:
    """Yields values that a schema may allow and that the check refuses, the most different ones first. Python functions
    and judges are not asked. Raises CheckError for a check that needs them."""
    try:
        met = check.samples()[0]
    except (NeverHoldsError, UnknownSampleError):
        met = None
    for value in _different(met, schema):
        if not check.holds(value):
            yield value


def _different(met: JsonValue, schema: Mapping[str, JsonValue]) -> Iterator[JsonValue]:
    choices = schema.get("enum")
    if isinstance(choices, list) or "const" in schema:
        yield from choices if isinstance(choices, list) else ()
        return
    for option in (schema, *_alternatives(schema)):
        named = option.get("type") or _TYPE_OF.get(type(met), "string")
        for kind in named if isinstance(named, list) else [named]:
            match kind:
                case "boolean":
                    yield from (True, False)
                case "integer" | "number":
                    number = met if isinstance(met, int | float) and math.isfinite(met) else 0
                    bounds = (option.get("minimum"), option.get("maximum"))
                    yield from (number + 1000, number - 1000, number + 1, number - 1)
                    yield from (bound for bound in bounds if isinstance(bound, int | float))
                case "string":
                    yield from TEXTS
                case "array":
                    yield []
                    yield [*met, *met] if isinstance(met, list) else ["something else"]
                case "object":
                    yield {}
                case _:
                    pass


def _alternatives(schema: Mapping[str, JsonValue]) -> Iterator[Mapping[str, JsonValue]]:
    for options in alternatives_of(schema, *UNIONS):
        yield from (option for option in options if isinstance(option, Mapping))


_TYPE_OF: dict[type, str] = {bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}
