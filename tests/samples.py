"""The paths of the bundled sample suites."""

from pathlib import Path

SAMPLES = Path(__file__).parents[1] / "sample_suites"
