"""The documented JSON Schemas, each read once.

`jsonschema.validate` checks the whole schema before every document, which takes longer than most commands."""

from __future__ import annotations

import functools
import json
from copy import deepcopy
from pathlib import Path
from typing import Any, Literal

from jsonschema import validators

DOCS = Path(__file__).parents[1] / "docs"
Kind = Literal["report", "grade-report", "lean-report", "compare", "history", "suite", "workbench", "calls"]


def schema_of(kind: Kind) -> Any:
    return json.loads((DOCS / f"{kind}.schema.json").read_text(encoding="utf-8"))


@functools.cache
def validator_of(kind: Kind) -> Any:
    """Return the validator of a schema. The schema itself is not checked."""
    schema = schema_of(kind)
    return validators.validator_for(schema)(schema)


def fits(document: object, kind: Kind) -> None:
    """Raise jsonschema.ValidationError unless a document matches the schema of its kind."""
    validator_of(kind).validate(document)


def with_defaults(value: Any, definition: str) -> None:
    """Add the omitted keys to the objects of a lean report, as its schema documents."""
    definitions = schema_of("lean-report")["$defs"]

    def fill(value: Any, schema: dict[str, Any]) -> None:
        for each in schema.get("anyOf", ()):
            fill(value, each)
        if isinstance(value, list) and "items" in schema:
            for item in value:
                fill(item, schema["items"])
        elif isinstance(value, dict):
            found = definitions.get(schema.get("$ref", "").rpartition("/")[2], schema)
            for name, of_key in found.get("properties", {}).items():
                assert name in value or "default" in of_key, name
                fill(value.setdefault(name, deepcopy(of_key.get("default"))), of_key)
            for item in value.values():
                fill(item, found.get("additionalProperties", {}))

    fill(value, definitions[definition])
