"""What every model of the JSON report is made of."""

from __future__ import annotations

import sys
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict


def _bounded(score: object) -> object:
    return max(min(score, sys.float_info.max), -sys.float_info.max) if isinstance(score, float) else score


Finite = Annotated[float, BeforeValidator(_bounded)]
"""A score; with `arcade_compatible` one can be infinitely bad, which JSON cannot say."""


class ReportModel(BaseModel):
    """Immutable, and exactly what the schema says; made from the program's own data classes where the names agree."""

    model_config = ConfigDict(frozen=True, extra="forbid", from_attributes=True)
