"""A program whose folders lie in a test's own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from workbench.config.folders import Folders
from workbench.config.program import Program, program_in


def folders_in(folder: Path) -> Folders:
    return Folders(state=folder / "state", log=folder / "log", config=folder / "config", data=folder / "data")


def program_of(folder: Path, environment: Mapping[str, str] | None = None) -> Program:
    return program_in(folders_in(folder), environment or {})
