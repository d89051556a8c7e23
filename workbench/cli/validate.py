"""`workbench validate`: check suite files, and the settings beside them, without running anything.

With `--audit`, also whether the cases can find anything out, and whether they can be passed at all.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.evaluation.exit_codes import OK, USAGE

if TYPE_CHECKING:
    from workbench.config.program import Program
    from workbench.suite.loading import SuiteFile


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="PATH", help="suite files, or folders that hold them")
    parser.add_argument(
        "--audit",
        action="store_true",
        help="also show which cases check too little, what in them can never be met, and which tools no case covers",
    )


def execute(arguments: argparse.Namespace) -> int:
    """0 when no suite and no `workbench.toml` has an error, else 2. Warnings and what an audit finds change nothing."""
    # Imported here, so that `--help` answers at once.
    from workbench.cli.door import begin_program, know_suites, warn, warn_of_problems, write
    from workbench.evaluation.suites import NoSuitesError, load_suites
    from workbench.suite.numerals import counted

    try:
        files = _with_listed_names(load_suites(arguments.paths))
    except NoSuitesError as error:
        warn(str(error))
        return USAGE
    program = begin_program()
    know_suites(program, files)
    warn_of_problems(problem for file in files for problem in file.problems)
    settings = _settings_problems([*map(Path, arguments.paths), *(file.path for file in files)], program)
    for problem in settings:
        warn(problem)
    unjudged = () if settings else _unjudged(files, program)
    for problem in unjudged:
        warn(problem)
    broken = sum(1 for file in files if file.suite is None)
    warnings = sum(len(file.warnings) for file in files) + len(unjudged)
    cases = sum(len(file.suite.cases) for file in files if file.suite is not None)
    valid = len(files) - broken
    found = f" ({counted(cases, 'case')})" if cases else ""
    parts = [f"{valid:,} valid {'suite' if valid == 1 else 'suites'}{found}"]
    parts += [f"{broken:,} with errors"] if broken else []
    parts += [counted(warnings, "warning")] if warnings else []
    audited = list(_audited(files)) if arguments.audit else []
    if arguments.audit:
        skipped = f" ({counted(broken, 'suite')} with errors not audited)" if broken else ""
        parts.append(counted(sum(number for number, _ in audited), "audit finding") + skipped)
    for _, lines in audited:
        write("".join(f"{line}\n" for line in lines))
    write(f"{', '.join(parts)}\n")
    return USAGE if broken or settings else OK


def _with_listed_names(files: Iterable[SuiteFile]) -> list[SuiteFile]:
    """The files with the tool names that servers, as far as they are remembered, do not have."""
    from workbench.config.folders import user_folders
    from workbench.tools.listings import Listings, with_listed_names

    listings = Listings(user_folders().listings)
    return [with_listed_names(file, listings) for file in files]


def _audited(files: Iterable[SuiteFile]) -> Iterator[tuple[int, list[str]]]:
    """How much was found in each sound suite, and how that is said. Tools of servers are those they listed last."""
    from workbench.analysis.audit.audit import audit_suite, unsaid
    from workbench.config.folders import user_folders
    from workbench.reports.audit import audit_lines
    from workbench.reports.paint import paint_for
    from workbench.tools.listings import Listings

    listings = Listings(user_folders().listings)
    paint = paint_for(sys.stdout, os.environ)
    for file in files:
        if file.suite is not None:
            audit = audit_suite(file.suite, listings.of(file.suite, file.path))
            found = unsaid(file, audit.findings)
            yield len(found), list(audit_lines(file, found, audit.coverage, paint))


def _unjudged(files: Iterable[SuiteFile], program: Program) -> tuple[str, ...]:
    """Why checks of the sound suites would not be judged."""
    from workbench.evaluation.judges import unjudged_checks

    sound = [(file, case) for file in files if file.suite is not None for case in file.suite.cases]
    return tuple(unjudged_checks(sound, program.models))


def _settings_problems(paths: Iterable[Path], program: Program) -> tuple[str, ...]:
    """What is wrong with every `workbench.toml` that applies to the paths, each problem once."""
    models = program.models
    folders = dict.fromkeys((path if path.is_dir() else path.parent).absolute() for path in paths)
    return tuple(dict.fromkeys(problem for folder in folders for problem in models.problems(folder)))
