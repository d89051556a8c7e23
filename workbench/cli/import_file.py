"""`workbench import`: convert a file of another tool to a suite, and its runs to recordings."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.evaluation.exit_codes import OK, USAGE
from workbench.exchange.importers.forms import FORMS

if TYPE_CHECKING:
    from workbench.config.program import Program
    from workbench.exchange.importers.source_files import Source


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="a file, or a folder of files of one form")
    parser.add_argument(
        "--from",
        dest="form",
        choices=[*FORMS],
        metavar="FORM",
        help=f"the form, if it is not recognized: {', '.join(FORMS)}",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="SUITE",
        help="the suite to write (default: the file's name, in this folder)",
    )
    parser.add_argument(
        "--map",
        metavar="MEANING=FIELD,...",
        help="fields of a table, such as user=question,tool=expected_tool",
    )
    parser.add_argument(
        "--match",
        metavar="MODE,...",
        help="the comparison with calls of a reference, such as superset,args=ignore (agentevals, adk, …)",
    )
    parser.add_argument(
        "--tools-from",
        type=Path,
        metavar="FILE",
        help="take tools and servers from this suite, or tools from a server's tools/list in JSON",
    )
    parser.add_argument(
        "--recordings", type=Path, metavar="DIR", help="write the runs in the file to this folder, as recordings"
    )
    parser.add_argument("--force", action="store_true", help="replace the suite, and add to recordings in the folder")
    parser.add_argument("--dry-run", action="store_true", help="only show what would be imported")
    parser.add_argument(
        "--python", metavar="EXE", help="the Python that runs a file of Arcade evals (default: Workbench's own)"
    )
    parser.add_argument("--trust", action="store_true", help="run such a file without asking")


def execute(arguments: argparse.Namespace) -> int:
    """Import a file and report; returns an exit code."""
    # Imported here, so that `--help` answers at once.
    from dataclasses import replace

    from workbench.cli.redaction import begin_program, warn, write
    from workbench.exchange.importers.import_files import ImportOptions, import_file, is_code, must_be_free
    from workbench.exchange.importers.source_files import RefusedError
    from workbench.exchange.importers.tables import fields_of
    from workbench.show.visible import one_line

    program = begin_program()
    try:
        fields = fields_of(arguments.map) if arguments.map is not None else None
    except RefusedError as error:
        warn(str(error))
        return USAGE
    # "." has no name of its own.
    named = arguments.file.resolve() if arguments.file.is_dir() else arguments.file
    options = ImportOptions(
        file=arguments.file,
        output=arguments.output or Path(f"{named.name.split('.')[0] or 'imported'}.toml"),
        form=arguments.form,
        recordings=arguments.recordings,
        fields=fields,
        match=arguments.match,
        tools_from=arguments.tools_from,
        force=arguments.force,
        dry=arguments.dry_run,
    )
    try:
        if is_code(options.file, options.form):
            # Checked before the file is run: to run it for nothing would be a surprise.
            if not (options.force or options.dry):
                must_be_free(options.output, options.recordings, "-o")
            source = _executed(options.file, arguments.python, program, trusted=arguments.trust)
            if source is None:
                return USAGE
            options = replace(options, source=source)
        report = import_file(options, program.secrets)
    except RefusedError as error:
        place = f"{arguments.file}: " if error.place else ""
        warn(f"nothing was imported: {place}{error}", program.secrets)
        return USAGE
    for line in report.lines:
        write(f"{one_line(line)}\n")
    return OK


def _executed(file: Path, python: str | None, program: Program, *, trusted: bool) -> Source | None:
    """Run a file of Arcade evals after asking, and return its content; `None` if the user refused.

    The code that runs is the code that was read before the question was asked.
    """
    import sys

    from workbench.cli.redaction import ask, warn
    from workbench.exchange.importers.arcade import executed
    from workbench.exchange.importers.source_files import RefusedError
    from workbench.show.visible import one_line

    try:
        code = file.read_bytes()
    except OSError as error:
        raise RefusedError(f"{file} cannot be read: {error.strerror}") from error
    python = python or sys.executable
    if not trusted:
        warn(f"importing {file} runs it, on this machine, and with it all that it imports:", program.secrets)
        warn(f"  run the command: {python} {file.name} (in {file.absolute().parent})", program.secrets)
        answer = ""
        if sys.stdin.isatty() and sys.stderr.isatty():
            ask(f"Run {one_line(file.name)} this once? [yes/no]")
            answer = sys.stdin.readline().strip().lower()
        if answer not in ("yes", "y"):
            warn("not trusted, nothing was run: answer 'yes' on a terminal, or give --trust for this one import")
            return None
    return executed(file, code, python, program.environment.own)
