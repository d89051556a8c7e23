"""The base of every model of the JSON reports."""

from __future__ import annotations

import sys
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from workbench.suite.files import from_here


def bounded(score: object) -> object:
    """Returns a number that JSON can express; anything else unchanged."""
    return max(min(score, sys.float_info.max), -sys.float_info.max) if isinstance(score, float) else score


Finite = Annotated[float, BeforeValidator(bounded)]
"""A score; with `arcade_compatible` it can be negative infinity, which JSON cannot express."""

SuitePath = Annotated[
    str,
    AfterValidator(from_here),
    Field(
        description="path of the suite's file relative to the folder in which the command ran, with links resolved; the"
        " recording's path if recordings are graded by their own suites"
    ),
]
"""The description of the keys of suites, the same for running batches and for a history."""


def _open(schema: dict[str, JsonValue]) -> None:
    schema.pop("additionalProperties", None)


class ReportModel(BaseModel):
    """Immutable; made from the program's own data classes where the names agree. Its schema allows further keys,
    because later reports may have them."""

    model_config = ConfigDict(
        defer_build=True, frozen=True, extra="forbid", from_attributes=True, json_schema_extra=_open
    )


class EndedReport(ReportModel):
    """How many ended in each way, except errors, whose key differs."""

    passed: int
    warned: int
    failed: int
    skipped: int
    stopped: int
    not_graded: int = Field(description="number of those whose case expects nothing yet")


class CountsReport(EndedReport):
    """How many ended in each way: the numbers of `StatusCounts`, called as their `Status.total`."""

    errors: int


class IntervalReport(ReportModel):
    """The bounds of a share, each 0..1, of a mean or of a difference."""

    low: Finite
    high: Finite
