"""The JSON Schemas of what commands print, each read once.

`jsonschema.validate` checks the whole schema before every document, which takes longer than most commands."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any, Literal

from jsonschema import validators

DOCS = Path(__file__).parents[1] / "docs"
Kind = Literal["report", "grade-report", "compare", "history"]


@functools.cache
def _validator(kind: Kind) -> Any:
    schema = json.loads((DOCS / f"{kind}.schema.json").read_text(encoding="utf-8"))
    return validators.validator_for(schema)(schema)


def fits(document: object, kind: Kind) -> None:
    """Raise jsonschema.ValidationError unless a document fits the schema of its kind."""
    _validator(kind).validate(document)
