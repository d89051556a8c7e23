"""`workbench models check`: the same as `workbench models --check`."""

from __future__ import annotations

import argparse

from workbench.cli.model_options import add_list_arguments
from workbench.startup import executes

if executes(__name__):
    from workbench.cli.models import execute as execute


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_list_arguments(parser)
    parser.set_defaults(check=True)
