"""Tests of the app wait for its event loop, not for a quiet processor."""

from __future__ import annotations

from tests.tui.frames import spare_what_is_not_seen
from tests.tui.settling import settle_by_the_loop

settle_by_the_loop()
spare_what_is_not_seen()
