"""The JSON Schemas of the documentation, each read once.

`jsonschema.validate` checks the whole schema before every document, which takes longer than most commands."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any, Literal

from jsonschema import validators

DOCS = Path(__file__).parents[1] / "docs"
Kind = Literal["report", "grade-report", "lean-report", "compare", "history", "suite", "workbench", "calls"]


def schema_of(kind: Kind) -> Any:
    """Return the schema of the documentation."""
    return json.loads((DOCS / f"{kind}.schema.json").read_text(encoding="utf-8"))


@functools.cache
def validator_of(kind: Kind) -> Any:
    """Return the validator of the schema, which is not checked itself."""
    schema = schema_of(kind)
    return validators.validator_for(schema)(schema)


def fits(document: object, kind: Kind) -> None:
    """Raise jsonschema.ValidationError unless a document fits the schema of its kind."""
    validator_of(kind).validate(document)
