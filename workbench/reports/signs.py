"""The signs of a status: one cell wide, different in shape, so that colour is never alone; and the mark of a fork."""

from __future__ import annotations

from workbench.grading.grade import Status

STATUS_SIGNS: dict[Status, str] = {
    "passed": "✓",
    "warned": "!",
    "failed": "✗",
    "error": "⚠",
    "skipped": "–",
    "stopped": "■",
}

FORK = "↳ fork"
"""Stands before a run that was forked from another one."""
