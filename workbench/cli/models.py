"""`workbench models`: its options. What it does is in `workbench.cli.model_list`, imported when it is done."""

from __future__ import annotations

import argparse

from workbench.cli.model_options import add_model_options, model_options
from workbench.evaluation.exit_codes import USAGE


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_list_arguments(parser)
    parser.add_argument(
        "--check", action="store_true", help="ask each endpoint whether it answers, accepts the key and has the model"
    )


def add_list_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of listing and of checking."""
    parser.add_argument(
        "--tools",
        action="store_true",
        help="check too how each endpoint handles tools: send one small request of each kind, which costs tokens",
    )
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help="suite files, or folders that hold them (default: the current folder)"
    )
    add_model_options(
        parser,
        "list and check only this model: a name of workbench.toml, or PROVIDER:MODEL; several with commas "
        "between them, or by repeating the option",
    )
    parser.add_argument(
        "--trust", action="store_true", help="let a check ask the endpoints named by suites and their workbench.toml"
    )
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="format of the list (default %(default)s)"
    )


def execute(arguments: argparse.Namespace) -> int:
    """List, and check if that is wanted; returns an exit code."""
    from workbench.cli.door import begin_program
    from workbench.cli.model_list import ModelList, list_models

    models = model_options(arguments)
    if models is None:
        return USAGE
    check = arguments.check or arguments.tools
    wanted = ModelList(arguments.paths, arguments.model, check, arguments.tools, arguments.trust, arguments.format)
    return list_models(wanted, begin_program(models))
