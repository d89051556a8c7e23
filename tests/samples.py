"""Where the suites are that come with the program."""

from pathlib import Path

SAMPLES = Path(__file__).parents[1] / "sample_suites"
