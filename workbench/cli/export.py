"""`workbench export`: convert recordings to forms of other programs, or send them as OpenTelemetry traces."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.evaluation.exit_codes import OK, USAGE
from workbench.exchange.exporters.forms import FORMS

if TYPE_CHECKING:
    from workbench.evaluation.report import Report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "recordings", nargs="+", type=Path, metavar="PATH", help="recordings of runs, or folders of them"
    )
    parser.add_argument("--format", choices=[*FORMS], help="; ".join(f"{name}: {FORMS[name].what}" for name in FORMS))
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="PATH",
        help="the folder to write into; for a form of one file, also that file",
    )
    add_sending_options(parser)


def add_sending_options(parser: argparse.ArgumentParser) -> None:
    """Add `--otlp` and `--otlp-content`."""
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
    """Export recordings; returns an exit code."""
    # Imported here, so that `--help` answers at once.
    from workbench.cli.export_output import Export, export_runs, read_runs
    from workbench.cli.redaction import begin_program, warn
    from workbench.exchange.exporters.export import report_of

    program = begin_program()
    export = Export(arguments.format, arguments.output, arguments.otlp, arguments.otlp_content, "name a folder with -o")
    if not export.is_complete():
        return USAGE
    damaged: list[str] = []
    read = read_runs(arguments.recordings, program, damaged.append)
    runs = (run for _, run in read)

    # Only tables ask for the report, instead of the runs.
    def report() -> Report:
        return report_of((recording for recording, _ in read), program.secrets)

    done = export_runs(export, program, runs, report, "runs")
    for why in dict.fromkeys(damaged):
        warn(f"left out: {why}", program.secrets)
    return OK if done and not damaged else USAGE
