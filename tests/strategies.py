"""Hypothesis strategies for JSON values, checks and calls."""

from __future__ import annotations

import json
import math
from typing import Any

from hypothesis import strategies as st
from pydantic import TypeAdapter

from workbench.checks.check import CHECK_CLASSES, Check
from workbench.checks.fields import JSON_TYPES
from workbench.trajectory.events import JsonValue

CHECK: TypeAdapter[Check] = TypeAdapter(Check)

scalars: st.SearchStrategy[JsonValue] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=-5, max_value=5),
    st.floats(),
    st.text(max_size=12),
    st.sampled_from(
        ["", " ", "None", "true", "5", "5.0", "-1e3", "1e999", "9" * 400, "2024-05-01", "12:30", "0:0+99:99"]
    ),
)
"""JSON values without parts, including texts that are hard to convert."""

json_values: st.SearchStrategy[JsonValue] = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text(max_size=4), inner, max_size=3),
    ),
    max_leaves=8,
)
"""Any JSON value, including infinities and NaN, which Python's parser accepts."""

json_objects: st.SearchStrategy[dict[str, JsonValue]] = st.dictionaries(st.text(max_size=6), json_values, max_size=4)


def is_json(value: JsonValue) -> bool:
    """Return whether a value has only numbers that JSON has."""
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return False
    return True


_finite = st.floats(allow_nan=False, allow_infinity=False)
_units = st.floats(min_value=0, max_value=1)
_durations = st.builds("{}{}".format, st.integers(0, 10_000), st.sampled_from(["ms", "s", "m", "h", "d"]))
_ranges = st.tuples(_finite, _finite).filter(lambda pair: pair[0] < pair[1]).map(list)
_moments = st.one_of(st.datetimes().map(lambda moment: moment.isoformat()), st.text(max_size=12))
_metrics = st.sampled_from(["cosine", "ratio", "partial_ratio", "token_sort_ratio", "token_set_ratio"])
_cases = {"ignore_case": st.booleans()}
_patterns = st.sampled_from(["", "a", "^x", r"\d+", "[a-z]{2}$", "(?i)seattle", r"\bword\b"])

_tables: list[st.SearchStrategy[dict[str, Any]]] = [
    st.fixed_dictionaries({"equals": json_values}, optional={"cast": st.booleans(), **_cases}),
    st.just({"equals_null": True}),
    st.fixed_dictionaries({"present": st.booleans()}),
    st.fixed_dictionaries({"one_of": st.lists(json_values, max_size=3)}, optional=_cases),
    st.fixed_dictionaries({"range": st.tuples(st.floats(), st.floats()).map(list)}),
    st.fixed_dictionaries({"near": st.floats(), "tolerance": st.floats(min_value=0) | st.just("5%")}),
    st.fixed_dictionaries({"near": st.floats(), "value_range": _ranges}, optional={"match_threshold": _units}),
    st.fixed_dictionaries({"similar": st.text(max_size=20)}, optional={"threshold": _units, "metric": _metrics}),
    st.fixed_dictionaries({"datetime": _moments}, optional={"tolerance": _durations, "max_difference": _durations}),
    st.fixed_dictionaries({"contains": st.text(max_size=3)}, optional=_cases),
    st.fixed_dictionaries({"prefix": st.text(max_size=3)}, optional=_cases),
    st.fixed_dictionaries({"suffix": st.text(max_size=3)}, optional=_cases),
    st.fixed_dictionaries({"pattern": _patterns}),
    st.fixed_dictionaries({"type": st.sampled_from(JSON_TYPES)}),
    st.fixed_dictionaries({"equals_text": json_values}),
]
_lists = st.lists(st.deferred(lambda: _parts), min_size=1, max_size=3)
_compound: list[st.SearchStrategy[dict[str, Any]]] = [
    *(st.fixed_dictionaries({name: _lists}) for name in ("all_of", "any_of", "none_of")),
    *(
        st.fixed_dictionaries({name: _lists}, optional={"in_order": st.booleans()})
        for name in ("same_elements", "has_elements")
    ),
    st.fixed_dictionaries({"each_element": st.deferred(lambda: _parts)}),
    st.fixed_dictionaries({"has_length": st.integers(0, 3) | st.just([1, math.inf])}),
]
_fields = st.dictionaries(
    st.sampled_from(["a", "b", "contains", "has_fields"]),
    st.deferred(
        lambda: st.one_of(_parts, st.integers(), st.dictionaries(st.sampled_from(["x", "y"]), _parts, max_size=2))
    ),
    max_size=3,
)
_compound.append(st.fixed_dictionaries({"has_fields": _fields}, optional={"only_fields": st.booleans()}))
_parts: st.SearchStrategy[dict[str, Any]] = st.one_of(*_tables, *_compound)

NEEDING_OTHERS = {"judged", "python"}
"""Checks that need a language model or a function. These strategies leave them out."""

assert len(_tables) + len(_compound) == len(CHECK_CLASSES) - len(NEEDING_OTHERS) + 1, "near is written in two ways"


@st.composite
def checks(draw: st.DrawFn, *, weights: st.SearchStrategy[Any] | None = None) -> Check:
    """Draw a check that needs no model and no function. Weights come from `weights` (default: no weight)."""
    # As a composite, it has a short name in Hypothesis's notes. The parts in full would take 30 kB.
    table: dict[str, Any] = {**draw(_parts), "optional": draw(st.booleans())}
    if weights is not None:
        table["weight"] = draw(weights)
    return CHECK.validate_python(table)


def is_finite(value: JsonValue) -> bool:
    """Return whether a value has neither infinities nor NaN."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, list):
        return all(map(is_finite, value))
    if isinstance(value, dict):
        return all(map(is_finite, value.values()))
    return True
