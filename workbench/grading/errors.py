"""The one way in which grading fails that says nothing about the model."""

from __future__ import annotations


class GradingError(Exception):
    """A case cannot be graded as its suite asks. The message names the key and what to write instead."""
