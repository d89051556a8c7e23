"""`workbench schema`: print the JSON Schema of a file that people write, so editors can complete and check it."""

from __future__ import annotations

import argparse

from workbench.evaluation.exit_codes import OK


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "kind",
        nargs="?",
        choices=("suite", "settings", "calls"),
        default="suite",
        help="the file: 'suite' (default), 'settings' (workbench.toml) or 'calls' (for `workbench grade --calls`)",
    )


def execute(arguments: argparse.Namespace) -> int:
    from workbench.cli.redaction import write_json
    from workbench.evaluation.file_schemas import file_schema

    write_json(file_schema(arguments.kind))
    return OK
