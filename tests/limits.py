"""Limits that a test lowers."""

from __future__ import annotations

from types import ModuleType

import pytest

from workbench.limits import Limit


def lower(monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str, number: int) -> None:
    """Give a limit another number in a module, and leave it its words."""
    limit: Limit = getattr(module, name)
    monkeypatch.setattr(module, name, Limit(number, limit.happened, limit.way_out))
