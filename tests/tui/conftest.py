"""Tests of the app wait for its event loop, not for a quiet processor."""

from __future__ import annotations

from tests.tui.settling import settle_by_the_loop

settle_by_the_loop()
