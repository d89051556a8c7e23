"""Tests of the app wait for its event loop, not for an idle CPU, and ignore local servers on this machine."""

from __future__ import annotations

import pytest

from tests.tui.calm import settle_by_the_loop
from tests.tui.frames import spare_what_is_not_seen
from workbench.config import models

settle_by_the_loop()
spare_what_is_not_seen()


@pytest.fixture(autouse=True)
def no_servers_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ignore servers that may run at the usual ports of local model servers."""
    remote = tuple(preset for preset in models.PRESETS if not preset.is_local)
    monkeypatch.setattr(models, "PRESETS", remote)
