"""The most that one answer of a model may hold: generous for any model, and more than any suite can mean."""

from __future__ import annotations

MOST_CHARACTERS = 2 * 1024 * 1024
"""Text, reasoning and arguments together: some 500,000 tokens."""

MOST_CALLS = 1_000

MOST_ARGUMENTS = 1_000
"""Named arguments of one call."""

MOST_VALUES = 100_000
"""Values in the arguments of all calls, at any depth."""

MOST_STREAM_BYTES = 256 * 1024 * 1024
"""What an endpoint sends for one answer, with all that surrounds it."""
