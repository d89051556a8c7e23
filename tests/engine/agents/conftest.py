"""Short timeouts for the end of agents."""

from __future__ import annotations

import pytest

from workbench.engine.agents import connection


@pytest.fixture
def soon_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit each step of an agent's shutdown to half a second, for agents that ignore all of them."""
    for limit in ("CANCEL_TIMEOUT_S", "EXIT_TIMEOUT_S"):
        monkeypatch.setattr(connection, limit, 0.5)
