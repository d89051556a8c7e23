"""The JSON of `workbench history` matches its schema."""

from __future__ import annotations

import json
import os
from pathlib import Path

from pydantic import TypeAdapter

from workbench.dataclasses import json_text
from workbench.show.json.history import HistoryReport

SCHEMA_FILE = Path(__file__).parents[2] / "docs" / "history.schema.json"


def test_the_committed_schema_is_true() -> None:
    schema = json_text(TypeAdapter(HistoryReport).json_schema(mode="serialization"), indent=2) + "\n"
    if os.environ.get("UPDATE_GOLDENS"):
        SCHEMA_FILE.write_text(schema, encoding="utf-8")
    assert SCHEMA_FILE.read_text(encoding="utf-8") == schema, "run the tests once with UPDATE_GOLDENS=1"


def test_each_kind_is_defined_by_itself() -> None:
    schema = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    kinds = {choice["$ref"].rsplit("/", 1)[1] for choice in schema["anyOf"]}
    shown = {"ShownBatch", "ShownRun", "ShownCase"}
    assert kinds == shown | {"ListReport", "DiffReport", "RegradedReport", "FlakyReport", "RunningReport"}
    assert kinds <= schema["$defs"].keys()
