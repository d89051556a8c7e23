"""`workbench version`: the same as `workbench --version`."""

from __future__ import annotations

import argparse

from workbench.evaluation.exit_codes import OK
from workbench.version import __version__


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add nothing: the command takes no options."""


def execute(arguments: argparse.Namespace) -> int:
    """Print the version."""
    from workbench.cli.redaction import write  # on use: the parsers are read where nothing else is installed

    write(f"workbench {__version__}\n")
    return OK
