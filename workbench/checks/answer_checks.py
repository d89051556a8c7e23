"""The checks of a final answer: one check, or several named checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import Discriminator, Tag

from workbench.checks.check import CHECK_CLASSES, Check, CheckBase, Checks, check_names_in


def answer_check_names(table: Mapping[str, Any]) -> list[str]:
    """Return the keys of a `response` table that name a check. With such a key, the whole table is one check."""
    return [name for name in check_names_in(table) if not CHECK_CLASSES[name].is_newer]


def are_named_checks(value: object) -> bool:
    """Return whether the value of `response` is a table of named checks.

    All values of the table must be tables. If a key is also the name of a kind of check, all values must be checks."""
    if not isinstance(value, dict) or not value:
        return False
    tables = all(isinstance(inner, dict | CheckBase) for inner in value.values())
    return tables and (not answer_check_names(value) or all(map(_is_check, value.values())))


def _is_check(value: object) -> bool:
    return isinstance(value, CheckBase) or (isinstance(value, dict) and bool(check_names_in(value)))


def _one_or_named(value: Any) -> str:
    if are_named_checks(value):
        return NAMED_CHECKS
    return ONE_CHECK


ONE_CHECK: Final = "one check"
NAMED_CHECKS: Final = "named checks"

AnswerChecks = Annotated[
    Annotated[Check, Tag(ONE_CHECK)] | Annotated[Checks, Tag(NAMED_CHECKS)], Discriminator(_one_or_named)
]
"""What a suite expects of the final answer: one check, or several named checks."""
