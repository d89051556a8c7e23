"""Where runs are recorded to, made sure of before any of them is paid for."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from workbench.batches.recordings import RecordingLines, Recordings
from workbench.cli.suites import complain


def recordings_of(options: argparse.Namespace, lines: RecordingLines) -> Recordings | None:
    """What `--record` or `--record-failed` asks for, if either is given."""
    folder = _folder(options)
    return Recordings(folder, lines, only_failed=options.record is None) if folder is not None else None


def can_record(options: argparse.Namespace) -> bool:
    """Whether the folder can be written to; it is made if need be. Says what is wrong."""
    folder = _folder(options)
    return folder is None or can_record_in(folder)


def _folder(options: argparse.Namespace) -> Path | None:
    folder: Path | None = options.record or getattr(options, "record_failed", None)
    return folder


def can_record_in(folder: Path) -> bool:
    """Whether a folder can be written to; it is made if need be. Says what is wrong."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        obstacle = "it is a file" if folder.is_file() else error.strerror
    else:
        if os.access(folder, os.W_OK | os.X_OK):
            return True
        obstacle = "permission denied"
    complain(f"cannot record in {folder}: {obstacle}")
    return False
