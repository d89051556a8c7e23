"""`workbench compare`: its options. What it does is in `workbench.cli.comparing`, imported when it is done."""

from __future__ import annotations

import argparse
from pathlib import Path

from workbench.cli.model_options import add_model_options
from workbench.cli.parser import add_history_options, add_report_option, add_summary_option, history_to_read
from workbench.cli.run import add_by_option, add_detach_option, add_repeat_rule_option, add_resume_options
from workbench.cli.run_options import (
    add_case_options,
    add_cluster_option,
    add_max_cost_option,
    add_paths,
    add_until_options,
    add_variant_options,
    add_way_options,
    folder,
    run_options,
)
from workbench.evaluation.exit_codes import USAGE
from workbench.reports.forms import endings_of, forms_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_paths(parser)
    add_model_options(
        parser,
        "model to compare, of two or more, instead of those the suites name: offline, a name of workbench.toml, or "
        "PROVIDER:MODEL; with commas between them, or by repeating the option",
    )
    add_variant_options(parser, compares=True)
    add_case_options(parser)
    add_cluster_option(parser)
    add_until_options(parser, compares=True)
    add_max_cost_option(parser)
    add_by_option(parser)
    add_repeat_rule_option(parser)
    add_way_options(parser)
    parser.add_argument(
        "--format",
        choices=forms_of("compare"),
        help="print a report in this format instead of opening the app (default: by the ending of --output, else text)",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help=f"write the report to a file, without the app, in the format of its ending: {endings_of('compare')}",
    )
    parser.add_argument(
        "--against",
        metavar="BATCH",
        help="compare with this batch of the history too, a number or a name: a report without the app, also on a "
        "single model",
    )
    add_report_option(parser, "compare")
    add_summary_option(parser)
    parser.add_argument(
        "--only-differences", action="store_true", help="report only the cases that differ between the models"
    )
    add_history_options(parser)
    add_resume_options(parser)
    add_detach_option(parser)
    parser.add_argument("--record", type=folder, metavar="DIR", help="record every run into a file of its own")
    parser.add_argument(
        "-q", "--quiet", action="store_true", help="no warnings, and no message about where the report is"
    )


def execute(arguments: argparse.Namespace) -> int:
    """Compare in the app, or without it; returns an exit code."""
    from workbench.cli.app import app_options
    from workbench.cli.comparing import compare
    from workbench.cli.door import warn
    from workbench.cli.making import BaselineOptions, Record
    from workbench.cli.report_output import output_of

    for attribute, why in _NOT_AGAINST:
        if arguments.against is not None and getattr(arguments, attribute) is not None:
            warn(why)
            return USAGE
    output = output_of(arguments, "compare")
    options = run_options(arguments, compares=True) if output is not None else None
    if output is None or options is None:
        return USAGE
    record = Record(arguments.record) if arguments.record is not None else None
    against = None
    if arguments.against is not None:
        against = BaselineOptions(arguments.against, history_to_read(arguments, arguments.paths))
    only_differences = arguments.only_differences
    app = app_options(arguments)
    return compare(
        options,
        output,
        app,
        record=record,
        only_differences=only_differences,
        compared_with=against,
        detach=arguments.detach,
    )


_NOT_AGAINST = (
    (
        "resume",
        "--against compares what is run now, and --resume goes on with a stored batch: leave one of them out; "
        "'workbench history diff' compares stored batches",
    ),
    (
        "until",
        "--until stops when the models of this batch are decided, so no test against another batch would hold: leave "
        "out --against or --until",
    ),
)
"""Options that do not go with --against, and why."""
