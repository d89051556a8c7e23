"""`workbench validate`: check suite files, and the settings beside them, without running anything.

With `--audit`, also whether the cases can find anything out, and whether they can be passed at all.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from workbench.cli.parser import add_exit_codes, add_report_option
from workbench.evaluation.exit_codes import OK, QUALITY_MISSED, USAGE
from workbench.show.forms import forms_of

if TYPE_CHECKING:
    from workbench.analysis.audit.audit import Coverage
    from workbench.analysis.audit.unmeetable import AuditFinding
    from workbench.cli.report_output import Output
    from workbench.config.program import Program
    from workbench.show.text import Paint
    from workbench.show.views.findings import StaticFinding
    from workbench.suite.suite_file import SuiteFile


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="PATH", help="suite files, folders of them, or a workbench.toml")
    parser.add_argument(
        "--audit",
        action="store_true",
        help="also show which cases check too little, what in them can never be met, and which tools no case covers",
    )
    parser.add_argument(
        "--fail-on",
        choices=("error", "warning", "note"),
        default="error",
        help="exit with 1 if there are warnings, or even notes of --audit (default: error, which is exit 2)",
    )
    parser.add_argument("--format", choices=forms_of("validate"), help="format of the findings (default: text)")
    add_report_option(parser, "validate")
    add_exit_codes(
        parser,
        {
            OK: "no error",
            QUALITY_MISSED: "no error, but something that --fail-on names",
            USAGE: "wrong usage, or a suite with an error",
        },
    )


def execute(arguments: argparse.Namespace) -> int:
    """0 when no suite and no `workbench.toml` has an error, else 2; 1 where `--fail-on` asks for it."""
    # Imported here, so that `--help` answers at once.
    from workbench.cli.redaction import begin_program, know_suites, lines_redacted, shown_search, warn, warn_of_problems
    from workbench.cli.report_output import annotate, output_of
    from workbench.evaluation.suites import NoSuitesError, load_suites
    from workbench.numerals import count_text, counted
    from workbench.show.forms import pieces_of
    from workbench.suite.project import is_settings

    output = output_of(arguments, "validate")
    if output is None or not output.can_write():
        return USAGE
    only_settings = all(is_settings(Path(path)) for path in arguments.paths)
    try:
        with shown_search() as search:
            loaded = [] if only_settings else load_suites(arguments.paths, search)
    except NoSuitesError as error:
        warn(str(error))
        return USAGE
    files = _with_known_tools(loaded)
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
    parts = [f"{count_text(valid)} valid {'suite' if valid == 1 else 'suites'}{found}"]
    if only_settings and not settings:
        parts = ["valid settings"]
    parts += [f"{count_text(broken)} with errors"] if broken else []
    parts += [counted(warnings, "warning")] if warnings else []
    audited = list(_audited(files)) if arguments.audit else []
    if arguments.audit:
        skipped = f" ({counted(broken, 'suite')} with errors not audited)" if broken else ""
        parts.append(counted(sum(len(each.findings) for each in audited), "audit finding") + skipped)
    found_in = {each.file.path: each.findings for each in audited}

    def pieces(wanted: Output) -> Iterator[str]:
        if wanted.is_text:
            lines = (line for each in audited for line in each.lines(wanted.paint))
            return lines_redacted((*lines, *_unfreed(files), ", ".join(parts)))
        return pieces_of(str(wanted.form), "validate", findings())

    def findings() -> list[StaticFinding]:
        from workbench.show.views.findings import findings_of_file

        found = (each for file in files for each in findings_of_file(file, found_in.get(file.path, ())))
        return [program.secrets.redacted(each) for each in found]

    written = output.deliver(pieces)
    annotate(output, findings)
    if broken or settings or not written:
        return USAGE
    weights = {finding.weight for each in audited for finding in each.findings} | ({"warning"} if warnings else set())
    failing = {"error": set(), "warning": {"warning"}, "note": {"warning", "note"}}[arguments.fail_on]
    return QUALITY_MISSED if weights & failing else OK


def _with_known_tools(files: Iterable[SuiteFile]) -> list[SuiteFile]:
    """Return the files with what the tools of suites and servers, as far as these are remembered, show to be wrong."""
    from workbench.analysis.audit.unmeetable import with_unmeetable
    from workbench.config.folders import user_folders
    from workbench.tools.listings import Listings, with_listed_names

    listings = Listings(user_folders().listings)
    return [with_unmeetable(with_listed_names(file, listings), listings) for file in files]


class _Audited(NamedTuple):
    """What an audit found in a sound suite."""

    file: SuiteFile
    findings: tuple[AuditFinding, ...]
    coverage: Coverage

    def lines(self, paint: Paint) -> Iterator[str]:
        from workbench.show.views.audit import audit_lines

        return audit_lines(self.file, self.findings, self.coverage, paint)


def _audited(files: Iterable[SuiteFile]) -> Iterator[_Audited]:
    """What is found in each sound suite.

    Tools of servers are those they listed last."""
    from workbench.analysis.audit.audit import audit_suite, unsaid
    from workbench.config.folders import user_folders
    from workbench.tools.listings import Listings

    listings = Listings(user_folders().listings)
    for file in files:
        if file.suite is not None:
            audit = audit_suite(file.suite, listings.of(file.suite, file.path))
            yield _Audited(file, unsaid(file, audit.findings), audit.coverage)


def _unjudged(files: Iterable[SuiteFile], program: Program) -> tuple[str, ...]:
    """Return why checks of the sound suites would not be judged."""
    from workbench.evaluation.judges import unjudged_checks

    sound = [(file, case) for file in files if file.suite is not None for case in file.suite.cases]
    return tuple(unjudged_checks(sound, program.models))


def _unfreed(files: Iterable[SuiteFile]) -> Iterator[str]:
    """Yield which suites leave surplus calls to the rule of their grader, a line for each such rule."""
    from workbench.numerals import counted
    from workbench.suite.model import NEW_SUITES_FREE
    from workbench.suite.settings import settings_of, surplus_calls_cost, surplus_rule

    suites: dict[tuple[str, str], dict[str, int]] = {}
    for file in files:
        if file.suite is None:
            continue
        for case in file.suite.cases:
            grading = settings_of(file.suite, case).grading
            if (case.ordered or case.unordered) and surplus_calls_cost(grading):
                counts = suites.setdefault((grading.by, surplus_rule(grading)), {})
                counts[file.path.name] = counts.get(file.path.name, 0) + 1
    for (by, rule), counts in suites.items():
        where = next(iter(counts)) if len(counts) == 1 else f"{len(counts)} suites"
        cases = counted(sum(counts.values()), "case")
        yield (
            f"note: `extra_calls` is not written for {cases} of {where}: under `{by}` {rule}, a look-up too;"
            f' extra_calls = "{NEW_SUITES_FREE}" in [grading] frees calls of read-only tools'
        )


def _settings_problems(paths: Iterable[Path], program: Program) -> tuple[str, ...]:
    """What is wrong with every `workbench.toml` that applies to the paths, each problem once."""
    models = program.models
    folders = dict.fromkeys((path if path.is_dir() else path.parent).absolute() for path in paths)
    return tuple(dict.fromkeys(problem for folder in folders for problem in models.problems(folder)))
