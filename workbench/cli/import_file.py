"""`workbench import`: convert a file of another tool to a suite, and its runs to recordings."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.evaluation.exit_codes import OK, USAGE
from workbench.exchange.importers.forms import FORMS

if TYPE_CHECKING:
    from workbench.config.program import Program
    from workbench.exchange.importers.source_files import RefusedError, Source


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
        help="how calls are compared with the reference's, such as superset,args=ignore (agentevals, adk, …)",
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
        "--python",
        metavar="EXE",
        help="the Python that runs an imported script (default: Workbench's own)",
    )
    parser.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME",
        help="pass this variable on to an imported script (repeatable)",
    )
    parser.add_argument("--trust", action="store_true", help="run an imported script without asking")


def execute(arguments: argparse.Namespace) -> int:
    # Lazy import: `--help` stays fast.
    from dataclasses import replace

    from workbench.cli.redaction import create_program, warn, write
    from workbench.exchange.importers.import_files import ImportOptions, import_file, require_unused_paths
    from workbench.exchange.importers.scripts import scripts_of
    from workbench.exchange.importers.source_files import RefusedError
    from workbench.exchange.importers.tables import fields_of
    from workbench.show.visible import one_line

    program = create_program()
    try:
        fields = fields_of(arguments.map) if arguments.map is not None else None
    except RefusedError as error:
        warn(str(error))
        return USAGE
    # The path "." has no name, so it is resolved first.
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
        dry_run=arguments.dry_run,
    )
    every = [options]
    try:
        if scripts := scripts_of(options.file, options.form):
            # This check comes first, so that no file is run for nothing.
            if not (options.force or options.dry_run):
                require_unused_paths(options.output, options.recordings, "-o")
            sources = _executed(scripts, options.output, arguments, program)
            if sources is None:
                return USAGE
            every = []
            outputs: list[Path] = []
            for source in sources:
                outputs.append(_output(options.output, source, outputs))
                every.append(replace(options, source=source, output=outputs[-1]))
            for each in every[1:]:
                if not (options.force or options.dry_run):
                    require_unused_paths(each.output, None, "-o")
    except RefusedError as error:
        return _refused("nothing was imported", arguments.file, error, program)
    code = OK
    for each in every:
        try:
            report = import_file(each, program.secrets)
        except RefusedError as error:
            what = "nothing was imported" if len(every) == 1 else f"{each.output} was not written"
            code = _refused(what, arguments.file, error, program)
        else:
            for line in report.lines:
                write(f"{one_line(line)}\n")
    return code


def _refused(what: str, file: Path, error: RefusedError, program: Program) -> int:
    from workbench.cli.redaction import warn

    place = f"{file}: " if error.place else ""
    warn(f"{what}: {place}{error}", program.secrets)
    return USAGE


def _output(first: Path, source: Source, taken: Sequence[Path]) -> Path:
    """Return the path of the file for the next suite.

    The first suite gets the path `first`. The path of a further suite also contains the name of its source."""
    from workbench.suite.model import derived_id

    if not taken:
        return first
    own = first.with_stem(f"{first.stem}-{derived_id(source.name)}")
    if own in taken:
        own = own.with_stem(f"{own.stem}-{len(taken) + 1}")
    return own


def _executed(
    scripts: Sequence[Path], output: Path, arguments: argparse.Namespace, program: Program
) -> list[Source] | None:
    """Run Python files after asking the user once. Return the content for each suite file.

    The files are read before the question, so exactly this code is run. Returns `None` if the user refused."""
    import os
    import sys

    from workbench.cli.redaction import ask, warn
    from workbench.exchange.importers.scripts import gathered_sources, run_script
    from workbench.exchange.importers.source_files import RefusedError
    from workbench.show.visible import one_line

    codes = {}
    for file in scripts:
        try:
            codes[file] = file.read_bytes()
        except OSError as error:
            raise RefusedError(f"{file} cannot be read: {error.strerror}") from error
    python = arguments.python or sys.executable
    if not arguments.trust:
        what = "it" if len(scripts) == 1 else "them"
        warn(f"importing {arguments.file} runs {what} and all imported code, on this machine:", program.secrets)
        for file in scripts:
            warn(f"  run the command: {python} {file} (in {Path.cwd()})", program.secrets)
        if arguments.env:
            warn(f"  with the variables {', '.join(arguments.env)}", program.secrets)
        answer = ""
        if sys.stdin.isatty() and sys.stderr.isatty():
            ask(f"Run {one_line(arguments.file.name)} this once? [yes/no]")
            answer = sys.stdin.readline().strip().lower()
        if answer not in ("yes", "y"):
            warn("not trusted, nothing was run: answer 'yes' on a terminal, or give --trust for this one import")
            return None
    variables = program.environment.of(Path())
    for name in arguments.env:
        program.secrets.add(name, variables.get(name, ""))
    sources: dict[Path, Source | RefusedError] = {}
    for file, code in codes.items():
        try:
            sources[file] = run_script(file, code, python, variables, passed=arguments.env)
        except RefusedError as error:
            if len(codes) == 1:
                raise
            sources[file] = error
    # Commands of the imported file start in the current folder, but commands of a suite start in the suite's folder.
    cwd = os.path.relpath(Path.cwd(), output.absolute().parent)
    return gathered_sources(sources, python=arguments.python, cwd="" if cwd == "." else cwd)
