"""A path for the user's history."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.config.folders import APP_NAME, HISTORY_NAME


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / APP_NAME / HISTORY_NAME
