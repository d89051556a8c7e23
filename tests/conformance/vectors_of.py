"""Where the grading vectors lie, and how they are read."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

VECTORS = Path(os.environ.get("WORKBENCH_VECTORS") or Path(__file__).parent / "vectors")
"""The folder of the vector files; the environment variable names another one."""


def vectors_of(grader: str) -> list[dict[str, Any]]:
    """All vectors of one grader: a list of `{id, kind, tags, note, input, expect}`."""
    vectors: list[dict[str, Any]] = json.loads((VECTORS / f"{grader}.json").read_text(encoding="utf-8"))
    return vectors
