"""Strategies for forms: values, checks and schemas as suites have them, valid and invalid ones."""

from __future__ import annotations

from datetime import date
from typing import Any

from hypothesis import strategies as st

TRICKY_TEXTS = [
    "",
    " ",
    "5",
    "1.5",
    "true",
    "null",
    "inf",
    "-nan",
    "2026-05-01",
    "12:30:00",
    "living room",
    " padded ",
    "it's",
    '"quoted"',
    "'single'",
    "red, blue",
    "5..40",
    "[draft] title",
    "[1, 2]",
    "{a = 1}",
    '{"a": 1}',
    "1] # x",
    "# comment",
    "a\nb",
    "tab\there",
    "back\\slash",
    "ends with \\",
    "\u202e",
    "5 # five",
    "9" * 400,
    "]",
    "'''",
]
texts = (
    st.text(st.sampled_from("ab 5.,'\"[]{}=#\\\n\té-"), max_size=8)
    | st.sampled_from(TRICKY_TEXTS)
    | st.text(max_size=8)
)
finite = st.floats(allow_nan=False, allow_infinity=False)
numbers = st.integers(-(2**63), 2**63 - 1) | finite
scalars = texts | numbers | st.booleans()
plain: st.SearchStrategy[Any] = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=5
)
"""Any value that can be expected of an argument."""

anything: st.SearchStrategy[Any] = st.recursive(
    scalars | st.just(date(2026, 5, 1)) | st.floats() | st.just(10**400),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["range", "one_of", "near", "present", "equals", "weight", "similar", "optional", "a", "cast"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)
"""Any value that TOML can express, including values that no suite accepts."""

SCHEMAS: list[dict[str, Any]] = [
    {},
    {"type": "string"},
    {"type": ["string", "null"]},
    {"type": "integer", "minimum": 0},
    {"type": "number"},
    {"type": "boolean"},
    {"type": "array", "items": {"type": "string"}},
    {"type": "array"},
    {"type": "object"},
    {"anyOf": [{"type": "string"}, {"type": "integer"}]},
    {"enum": ["on", "off", 5]},
]
schemas = st.none() | st.sampled_from(SCHEMAS)

_ends = st.tuples(numbers | st.just(float("-inf")), numbers | st.just(float("inf"))).map(list)
durations = st.builds("{}{}".format, st.integers(0, 999), st.sampled_from(["ms", "s", "m", "h", "d"]))

EXPECTED: dict[str, st.SearchStrategy[Any]] = {
    "equals": plain,
    "one_of": st.lists(plain, max_size=3),
    "range": _ends,
    "near": numbers,
    **dict.fromkeys(("similar", "datetime", "contains", "prefix", "suffix", "pattern", "judged", "python"), texts),
}
"""Strategies for the expected value, by the check that expects it."""
