"""What can be wrong with a history."""

from __future__ import annotations


class HistoryError(Exception):
    """A history that cannot be used for what was wanted; the message names the file and the way out."""


class DamagedError(HistoryError):
    """A history's file says what no program wrote."""
