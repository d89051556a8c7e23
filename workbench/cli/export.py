"""`workbench export`: convert runs to the file formats of other programs, or send them as OpenTelemetry traces."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.cli.parser import add_history_options, grading_number, history_to_read, names_batch
from workbench.evaluation.exit_codes import OK, USAGE
from workbench.exchange.exporters.forms import FORMS

if TYPE_CHECKING:
    from workbench.evaluation.report import Report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs", nargs="+", metavar="PATH|BATCH", help="recordings, or folders of them; or one batch of the history"
    )
    forms = {name: FORMS[name].what for name in FORMS} | _BATCH_OPTIONS
    explained = "; ".join(f"{name}: {what}" for name, what in forms.items())
    parser.add_argument("--format", choices=[*forms], metavar="FORM", help=explained)
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="PATH",
        help="the folder to write into, or the file for a form of one file",
    )
    add_sending_options(parser)
    parser.add_argument(
        "--grading", type=grading_number, metavar="N|latest", help="use the grades of this regrade of the batch"
    )
    add_history_options(parser, may_be_none=False)


_BATCH_OPTIONS = {
    "recordings": "a recording for each run of a batch (default for batches)",
    "json": "the report of a batch",
}
"""The file formats that are available only for batches, each with its description."""


def add_sending_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--otlp",
        nargs="?",
        const="",
        metavar="URL",
        help="send the runs as traces to this collector (default: $OTEL_EXPORTER_OTLP_ENDPOINT)",
    )
    parser.add_argument(
        "--otlp-content",
        action="store_true",
        help="also send texts, arguments and results, not only names, counts, times and verdicts",
    )


def execute(arguments: argparse.Namespace) -> int:
    # Lazy import: `--help` stays fast.
    from workbench.cli.export_output import Export, export_runs, read_runs
    from workbench.cli.redaction import create_program, warn
    from workbench.exchange.exporters.export import report_of

    if any(map(names_batch, arguments.runs)):
        return _export_batch(arguments)
    if arguments.format in _BATCH_OPTIONS or arguments.grading is not None:
        option = "--grading" if arguments.grading is not None else f"--format {arguments.format}"
        warn(f"nothing was exported: {option} needs a batch of the history, and {arguments.runs[0]} is not one")
        return USAGE
    program = create_program()
    export = Export(arguments.format, arguments.output, arguments.otlp, arguments.otlp_content, "name a folder with -o")
    if not export.is_complete():
        return USAGE
    damaged: list[str] = []
    read = read_runs(map(Path, arguments.runs), program, damaged.append)
    runs = (run for _, run in read)

    # Tables need the report instead of the runs, so it is created only for them.
    def report() -> Report:
        return report_of((recording for recording, _ in read), program.secrets)

    done = export_runs(export, program, runs, report, "runs")
    for why in dict.fromkeys(damaged):
        warn(f"left out: {why}", program.secrets)
    return OK if done and not damaged else USAGE


def _export_batch(arguments: argparse.Namespace) -> int:
    from workbench.cli import history_export
    from workbench.cli.history_command import run_history_command, run_on_batch
    from workbench.cli.redaction import warn

    if len(arguments.runs) > 1:
        warn(
            f"nothing was exported, because a batch is exported alone: leave out {arguments.runs[1]}, or give -o FOLDER"
        )
        return USAGE
    options = history_export.Options(
        batch=arguments.runs[0],
        folder=arguments.output,
        grading=arguments.grading,
        format=arguments.format or "recordings",
        otlp=arguments.otlp,
        otlp_content=arguments.otlp_content,
    )
    return run_history_command(
        partial(run_on_batch, history_export.execute, options), history_to_read(arguments, ()), None
    )
