"""`workbench help [COMMAND]`: the same as `workbench COMMAND --help`."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", nargs="*", metavar="COMMAND", help="a command, such as run or 'history list'")


def execute(arguments: argparse.Namespace) -> int:
    # Lazy import: `main` imports this module.
    from workbench.cli.main import main

    return main([*arguments.words, "--help"])
