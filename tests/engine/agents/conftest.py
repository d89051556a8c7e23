"""How long agents have to end."""

from __future__ import annotations

import pytest

from workbench.engine.agents import connection


@pytest.fixture
def soon_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give an agent half a second for each step of a polite end, for tests of agents that ignore them all."""
    for limit in ("CANCEL_TIMEOUT_S", "EXIT_TIMEOUT_S"):
        monkeypatch.setattr(connection, limit, 0.5)
