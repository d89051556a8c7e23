"""What every model of the JSON report is made of."""

from __future__ import annotations

import sys
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, JsonValue


def _bounded(score: object) -> object:
    return max(min(score, sys.float_info.max), -sys.float_info.max) if isinstance(score, float) else score


Finite = Annotated[float, BeforeValidator(_bounded)]
"""A score; with `arcade_compatible` one can be infinitely bad, which JSON cannot say."""


def _open(schema: dict[str, JsonValue]) -> None:
    schema.pop("additionalProperties", None)


class ReportModel(BaseModel):
    """Immutable; made from the program's own data classes where the names agree. Its schema allows further keys, for
    later reports may have them."""

    model_config = ConfigDict(frozen=True, extra="forbid", from_attributes=True, json_schema_extra=_open)
