"""Nothing fails for being slow: how fast something is, is measured in `benchmarks/`. What properties are tested with is
drawn anew every time, but in CI, where the same tree always gets the same answer."""

from __future__ import annotations

import gc
import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "untimed", derandomize="CI" in os.environ, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("untimed")


def pytest_collection_finish() -> None:
    """Thousands of tests stay in memory to the end. Looking through them for garbage again and again, as a program of
    that size does while an app draws, took a third of the processor time: they are left aside, and the rest is looked
    through less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
