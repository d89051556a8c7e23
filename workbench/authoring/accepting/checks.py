"""The checks that could be written for a value that a model gave. The value meets each of them in full."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from pydantic import TypeAdapter

from workbench.authoring.form.cells import as_argument
from workbench.checks.describe import CheckError, describe
from workbench.grading.critic_pairing import judge
from workbench.suite.checks import CHECK_CLASSES, OPTION_NAMES, Check, check_names_in
from workbench.suite.render import one_line
from workbench.suite.timestamps import read_timestamp
from workbench.trajectory.messages import JsonValue

KEPT: Final = "as written"
LEAVE_OUT: Final = "leave out"
_LARGEST = 1e15
"""Larger numbers lose digits in files."""


@dataclass(frozen=True, slots=True)
class CheckChoice:
    """One way to write an expectation: its name and the value as the suite writes it, `None` where nothing is
    written."""

    kind: str
    written: object = None

    @property
    def text(self) -> str:
        """Describe the check in a few words."""
        return "" if self.written is None else describe(_adapter().validate_python(self.written))


def choices_for(
    name: str, value: JsonValue, kept: object = None, options: Mapping[str, object] | None = None
) -> tuple[CheckChoice, ...]:
    """Return the checks for the argument `name` with this value, the preferred one first: the suite's own check
    (`kept`), otherwise the exact value where TOML can express it. New checks get `options`, such as a weight."""
    found = [CheckChoice(KEPT, kept)] if kept is not None else []
    for kind, written in _checks_for(value):
        with_options = {**_explicit(written), **options} if options else as_argument(name, written)
        if _can_be_written(with_options) and _is_met(with_options, value):
            found.append(CheckChoice(kind, with_options))
    return (*found, CheckChoice(LEAVE_OUT))


def kept_choices(kept: object) -> tuple[CheckChoice, ...]:
    """Return the choices for an argument that was not given and whose check allows that."""
    return CheckChoice(KEPT, kept), CheckChoice(LEAVE_OUT)


def _checks_for(value: JsonValue) -> Iterator[tuple[str, object]]:
    if value is None:
        yield "exact", {"equals_null": True}
    elif isinstance(value, dict) and any(key in CHECK_CLASSES or key in OPTION_NAMES for key in value):
        yield "exact", {"equals": value}
    else:
        yield "exact", value
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST:
        around = max(1, round(abs(value) / 10)) if isinstance(value, int) else float(f"{abs(value) / 10 or 0.1:.2g}")
        yield "near", {"near": value, "tolerance": around}
        yield "range", {"range": [_rounded(value - around), _rounded(value + around)]}
    if isinstance(value, str):
        yield "similar", {"similar": value}
        yield "contains", {"contains": value}
        if _is_moment(value):
            yield "datetime", {"datetime": value}
    yield "present", {"present": True}


def _explicit(written: object) -> dict[str, object]:
    is_check = isinstance(written, dict) and check_names_in(written)
    return dict(written) if isinstance(written, dict) and is_check else {"equals": written}


def _rounded(number: float) -> float:
    return number if isinstance(number, int) else float(f"{number:.10g}")


def _is_moment(text: str) -> bool:
    try:
        read_timestamp(text)
    except (ValueError, OverflowError):
        return False
    return any(char.isdigit() for char in text)


def _can_be_written(written: object) -> bool:
    try:
        one_line(written)
        json.dumps(written, allow_nan=False)  # raises for infinity and NaN, which cannot be expected
    except (ValueError, RecursionError):
        return False
    return True


def _is_met(written: object, value: JsonValue) -> bool:
    """Return whether the check, read as the suite would read it, holds for the value in full."""
    try:
        verdict = judge(_adapter().validate_python(written), value, True, arcade_compatible=False)
    except (ValueError, RecursionError, CheckError):
        return False
    return verdict.holds and math.isclose(verdict.score, 1.0)


@cache
def _adapter() -> TypeAdapter[Check]:
    return TypeAdapter(Check)
