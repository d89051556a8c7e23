"""Measured times in what the program writes, which are different in every run."""

from __future__ import annotations

DURATION = r"(?:<1 ms|\d[\d.]* m?s|[\d:]+ (?:min|h))\b"
"""A pattern of all forms of `workbench.numerals.duration_text`."""
