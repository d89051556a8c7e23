"""The folder of the grading vectors, and how to read them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

VECTORS = Path(os.environ.get("WORKBENCH_VECTORS") or Path(__file__).parent / "vectors")
"""The folder of the vector files. The environment variable selects another one."""


def vectors_of(grader: str) -> list[dict[str, Any]]:
    """Return all vectors of a grader as a list of `{id, kind, tags, note, input, expect}`."""
    vectors: list[dict[str, Any]] = json.loads((VECTORS / f"{grader}.json").read_text(encoding="utf-8"))
    return vectors
