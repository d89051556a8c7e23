"""`workbench validate`: check suite files without running anything."""

from __future__ import annotations

import argparse
import sys

from workbench.cli.exit_codes import OK, USAGE


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="PATH", help="suite files, or folders that hold them")


def execute(options: argparse.Namespace) -> int:
    """0 when no suite has an error, else 2. Warnings are said and change nothing."""
    # Imported here, so that `--help` answers at once.
    from workbench.cli.suites import NoSuitesError, complain, load_suites, say_problems
    from workbench.reports.values import counted

    try:
        files = load_suites(options.paths)
    except NoSuitesError as error:
        complain(str(error))
        return USAGE
    say_problems(problem for file in files for problem in file.problems)
    broken = sum(1 for file in files if file.suite is None)
    warnings = sum(len(file.warnings) for file in files)
    cases = sum(len(file.suite.cases) for file in files if file.suite is not None)
    sound = f"{counted(len(files) - broken, 'sound suite')} with {counted(cases, 'case')}"
    sys.stdout.write(f"{sound}, {broken or 'none'} broken, {counted(warnings, 'warning')}\n")
    return USAGE if broken else OK
