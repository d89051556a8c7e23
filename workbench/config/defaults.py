"""Settings that hold where nobody says otherwise."""

DEFAULT_CONCURRENCY = 8
"""Runs at the same time."""
