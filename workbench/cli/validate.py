"""`workbench validate`: check suite files, and the settings files beside them, without running anything.

With `--audit`, also check whether the cases can detect a failure, and whether a model could pass them."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from workbench.cli.parser import add_exit_codes, add_report_option
from workbench.evaluation.exit_codes import OK, QUALITY_MISSED, USAGE
from workbench.show.forms import forms_of

if TYPE_CHECKING:
    from workbench.analysis.audit.audit import Coverage
    from workbench.analysis.audit.contradictions import AuditFinding
    from workbench.cli.report_output import Output
    from workbench.config.program import Program
    from workbench.show.text import Paint
    from workbench.show.views.findings import StaticFinding
    from workbench.suite.model import Case
    from workbench.suite.suite_file import SuiteFile


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="PATH", help="suite files, folders of them, or a workbench.toml")
    parser.add_argument(
        "--audit",
        action="store_true",
        help="also find cases that check too little or cannot pass, and tools without a case",
    )
    parser.add_argument(
        "--fail-on",
        choices=("error", "warning", "note"),
        default="error",
        help="'warning': exit with 1 if there is a warning; 'note': also if --audit has a note; 'error' (default): "
        "exit only with 2, for errors",
    )
    parser.add_argument("--format", choices=forms_of("validate"), help="format of the findings (default: text)")
    add_report_option(parser, "validate")
    add_exit_codes(
        parser,
        {
            OK: "no error",
            QUALITY_MISSED: "something that --fail-on names",
            USAGE: "wrong usage, or a suite with an error",
        },
    )


def execute(arguments: argparse.Namespace) -> int:
    """Check the files.

    Returns 2 if a file has an error, 1 if there is a finding of a severity that `--fail-on` includes, and otherwise 0.
    """
    # Lazy import: `--help` answers at once.
    from workbench.cli.redaction import (
        create_program,
        lines_redacted,
        register_suite_secrets,
        shown_search,
        warn,
        warn_of_problems,
    )
    from workbench.cli.report_output import annotate, output_of
    from workbench.evaluation.suites import NoSuitesError, load_suites
    from workbench.numerals import count_text, counted
    from workbench.show.forms import pieces_of
    from workbench.suite.project import is_settings
    from workbench.suite.suite_file import suites_of

    output = output_of(arguments, "validate")
    if output is None or not output.can_write():
        return USAGE
    # A folder that only has a workbench.toml contains no suites, so they are not searched for.
    only_settings = all(is_settings(Path(path)) for path in arguments.paths)
    try:
        with shown_search() as search:
            loaded = [] if only_settings else load_suites(arguments.paths, search)
    except NoSuitesError as error:
        warn(str(error))
        return USAGE
    files = _with_known_tools(loaded)
    program = create_program()
    register_suite_secrets(program, files)
    warn_of_problems(chain.from_iterable(file.problems for file in files))
    # The settings of every folder with a suite are checked, not only those of the given paths.
    settings = _settings_problems([*map(Path, arguments.paths), *(file.path for file in files)], program)
    unjudged: tuple[str, ...] = ()
    # If the settings have errors, it is unknown which models can judge.
    if not settings:
        unjudged = _unjudged(files, program)
    for problem in (*settings, *unjudged):
        warn(problem)
    warnings = sum(len(file.warnings) for file in files) + len(unjudged)
    suites = suites_of(files)
    broken = len(files) - len(suites)
    parts = []
    if only_settings and not settings:
        parts.append("valid settings")
    elif cases := sum(len(suite.cases) for suite in suites.values()):
        parts.append(f"{counted(len(suites), 'valid suite')} ({counted(cases, 'case')})")
    else:
        parts.append(counted(len(suites), "valid suite"))
    if broken:
        parts.append(f"{count_text(broken)} with errors")
    if warnings:
        parts.append(counted(warnings, "warning"))
    audited: list[_Audited] = []
    if arguments.audit:
        audited += _audited(files)
        found = counted(sum(len(each.findings) for each in audited), "audit finding")
        if broken:
            found += f" ({counted(broken, 'suite')} with errors not audited)"
        parts.append(found)
    found_in = {each.file.path: each.findings for each in audited}

    def pieces(output: Output) -> Iterator[str]:
        if output.is_text:
            lines = chain.from_iterable(each.lines(output.paint) for each in audited)
            return lines_redacted((*lines, *_default_surplus_rules(files), ", ".join(parts)))
        return pieces_of(str(output.form), "validate", findings())

    def findings() -> list[StaticFinding]:
        from workbench.show.views.findings import findings_of_file

        found: list[StaticFinding] = []
        for file in files:
            found += map(program.secrets.redacted, findings_of_file(file, found_in.get(file.path, ())))
        return found

    written = output.deliver(pieces)
    annotate(output, findings)
    if broken or settings or not written:
        return USAGE
    weights: set[str] = set()
    for each in audited:
        for finding in each.findings:
            weights.add(finding.weight)
    if warnings:
        weights.add("warning")
    # `--fail-on note` includes warnings, which are more severe. Errors have their own exit code.
    failing = {"error": set(), "warning": {"warning"}, "note": {"warning", "note"}}[arguments.fail_on]
    return QUALITY_MISSED if weights & failing else OK


def _with_known_tools(files: Iterable[SuiteFile]) -> list[SuiteFile]:
    from workbench.analysis.audit.contradictions import with_contradictions
    from workbench.config.folders import user_folders
    from workbench.tools.listings import StoredListings, with_listed_names

    listings = StoredListings(user_folders().listings)
    return [with_contradictions(with_listed_names(file, listings), listings) for file in files]


class _Audited(NamedTuple):
    file: SuiteFile
    findings: tuple[AuditFinding, ...]
    coverage: Coverage

    def lines(self, paint: Paint) -> Iterator[str]:
        from workbench.show.views.audit import audit_lines

        return audit_lines(self.file, self.findings, self.coverage, paint)


def _audited(files: Iterable[SuiteFile]) -> Iterator[_Audited]:
    from workbench.analysis.audit.audit import audit_suite, findings_without_warning
    from workbench.config.folders import user_folders
    from workbench.tools.listings import StoredListings

    listings = StoredListings(user_folders().listings)
    for file in files:
        if file.suite is not None:
            audit = audit_suite(file.suite, listings.of(file.suite, file.path))
            yield _Audited(file, findings_without_warning(file, audit.findings), audit.coverage)


def _unjudged(files: Iterable[SuiteFile], program: Program) -> tuple[str, ...]:
    from workbench.suite.settings import judged_checks

    cases: list[tuple[SuiteFile, Case]] = []
    for file in files:
        if (suite := file.suite) is not None:
            cases += [(file, case) for case in suite.cases if any(judged_checks(suite, case))]
    if not cases:
        return ()
    # Lazy import: few suites have judged checks.
    from workbench.evaluation.judges import unjudged_checks

    return tuple(unjudged_checks(cases, program.models))


def _default_surplus_rules(files: Iterable[SuiteFile]) -> Iterator[str]:
    """Yield a line for each grader that treats surplus calls by its default rule, because suites set none."""
    from workbench.numerals import counted
    from workbench.suite.grading_model import NEW_SUITE_EXTRA_CALLS
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
        suites_text = next(iter(counts)) if len(counts) == 1 else f"{len(counts)} suites"
        cases = counted(sum(counts.values()), "case")
        yield (
            f"note: `extra_calls` is not set for {cases} of {suites_text}: under `{by}` {rule}, even of a look-up;"
            f' extra_calls = "{NEW_SUITE_EXTRA_CALLS}" in [grading] allows calls of read-only tools'
        )


def _settings_problems(paths: Iterable[Path], program: Program) -> tuple[str, ...]:
    from workbench.config.folders import folder_of

    folders = dict.fromkeys(map(Path.absolute, map(folder_of, paths)))
    return tuple(dict.fromkeys(chain.from_iterable(map(program.models.problems, folders))))
