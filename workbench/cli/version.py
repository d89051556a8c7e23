"""`workbench version`: the same as `workbench --version`."""

from __future__ import annotations

import argparse

from workbench.evaluation.exit_codes import OK
from workbench.version import __version__


def add_arguments(parser: argparse.ArgumentParser) -> None: ...


def execute(arguments: argparse.Namespace) -> int:
    # Lazy import: the parsers are also built where no dependency is installed.
    from workbench.cli.redaction import write

    write(f"workbench {__version__}\n")
    return OK
