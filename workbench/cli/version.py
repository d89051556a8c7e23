"""`workbench version`: the same as `workbench --version`."""

from __future__ import annotations

import argparse

from workbench.evaluation.exit_codes import OK
from workbench.version import __version__


def add_arguments(parser: argparse.ArgumentParser) -> None: ...


def execute(arguments: argparse.Namespace) -> int:
    # Lazy import: all parsers must also work without any dependency, for example during a build.
    from workbench.cli.redaction import write

    write(f"workbench {__version__}\n")
    return OK
