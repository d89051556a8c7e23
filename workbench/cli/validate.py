"""`workbench validate`: check suite files, and the settings beside them, without running anything."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from workbench.cli.exit_codes import OK, USAGE


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="PATH", help="suite files, or folders that hold them")


def execute(options: argparse.Namespace) -> int:
    """0 when no suite and no `workbench.toml` has an error, else 2. Warnings are said and change nothing."""
    # Imported here, so that `--help` answers at once.
    from workbench.cli.suites import NoSuitesError, complain, load_suites, say_problems
    from workbench.reports.values import counted

    try:
        files = load_suites(options.paths)
    except NoSuitesError as error:
        complain(str(error))
        return USAGE
    say_problems(problem for file in files for problem in file.problems)
    settings = _settings_problems([*map(Path, options.paths), *(file.path for file in files)])
    for said in settings:
        complain(said)
    broken = sum(1 for file in files if file.suite is None)
    warnings = sum(len(file.warnings) for file in files)
    cases = sum(len(file.suite.cases) for file in files if file.suite is not None)
    sound = f"{counted(len(files) - broken, 'sound suite')} with {counted(cases, 'case')}"
    sys.stdout.write(f"{sound}, {broken or 'none'} broken, {counted(warnings, 'warning')}\n")
    return USAGE if broken or settings else OK


def _settings_problems(paths: Iterable[Path]) -> tuple[str, ...]:
    """What is wrong with every `workbench.toml` that applies to the paths, each problem once."""
    from workbench.config.folders import user_folders
    from workbench.config.program import program_in

    models = program_in(user_folders(), os.environ).models
    folders = dict.fromkeys((path if path.is_dir() else path.parent).absolute() for path in paths)
    return tuple(dict.fromkeys(problem for folder in folders for problem in models.problems(folder)))
