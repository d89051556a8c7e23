"""Where a report of the command line goes, and how wide and how long it is there."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path
from typing import TextIO

from workbench.cli.suites import complain
from workbench.reports.text import Amount

PLAIN_WIDTH = 120
"""Columns of a report that does not go to a terminal."""


def report_width(stream: TextIO) -> int:
    """Columns for a report on a stream."""
    return shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns if stream.isatty() else PLAIN_WIDTH


def report_amount(options: argparse.Namespace) -> Amount:
    """What `--quiet` and `--verbose` ask for."""
    return "little" if options.quiet else "much" if options.verbose else "normal"


def can_write(output: Path | None) -> bool:
    """Whether the report can be written later: found out before any run is paid for."""
    if output is None:
        return True
    if output.is_dir():
        obstacle = "it is a folder"
    elif not output.parent.is_dir():
        obstacle = f"there is no folder {output.parent}"
    elif not os.access(output if output.exists() else output.parent, os.W_OK):
        obstacle = "permission denied"
    else:
        return True
    complain(f"cannot write {output}: {obstacle}")
    return False


def write_report(text: str, output: Path | None) -> bool:
    """Write a report to its file, or to standard output; there too when the file cannot be written: that is `False`."""
    if output is None:
        sys.stdout.write(text)
        sys.stdout.flush()
        return True
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        complain(f"cannot write {output}: {error.strerror}; the report follows on standard output")
        sys.stdout.write(text)
        return False
    return True
