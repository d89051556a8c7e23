"""Lower limits for tests."""

from __future__ import annotations

from types import ModuleType

import pytest

from workbench.limits import Limit


def lower(monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str, number: int) -> None:
    """Change the number of a limit in a module. Its message stays."""
    limit: Limit = getattr(module, name)
    monkeypatch.setattr(module, name, Limit(number, limit.happened, limit.way_out))
