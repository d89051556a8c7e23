"""`workbench accept`: run cases, and propose expectations from the common calls of their runs."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace

from workbench.cli.parser import CASES, COMMON_OF_RUNS, REPORTS, add_exit_codes, group, show_first
from workbench.cli.run_options import add_execution_options, add_experiment_options, add_history_and_quiet, run_options
from workbench.dataclasses import dataclass
from workbench.evaluation.exit_codes import INFRASTRUCTURE, INTERRUPTED, OK, QUALITY_MISSED, USAGE
from workbench.startup import executes

if executes(__name__):
    from workbench.authoring.accept import (
        CaseToAccept,
        RunToAccept,
        accepted_suite,
        case_table,
        exclusion_note,
        exclusion_reason,
    )
    from workbench.authoring.document import expects_something
    from workbench.cli.batch_command import planned, print_broken_suites, run_plan, step_output
    from workbench.cli.redaction import create_program, redacted, warn, write, write_json
    from workbench.cli.report_output import Output
    from workbench.config.secrets import Secrets
    from workbench.evaluation.options import RunOptions
    from workbench.evaluation.plan import Plan, broken_suites_of
    from workbench.evaluation.trust import trust_store
    from workbench.grading.grade import RunResult
    from workbench.numerals import counted
    from workbench.show.markdown import document
    from workbench.show.text import block_lines, paint_for
    from workbench.show.views.accept import AcceptedSuite, accept_view, json_of_accept, toml_of_accept
    from workbench.suite.files import FileState, SavingError, save
    from workbench.suite.model import Case
    from workbench.suite.suite_file import SuiteFile, parse_suite


DEFAULT_REPEATS = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_experiment_options(parser, repeats=f"run each case this often (default {DEFAULT_REPEATS})")
    group(parser, CASES).add_argument("--only-empty", action="store_true", help="only cases that expect nothing yet")
    add_execution_options(parser)
    what = group(parser, REPORTS).add_mutually_exclusive_group()
    what.add_argument("--write", action="store_true", help="also write them into the suites")
    what.add_argument(
        "--format",
        choices=("text", "toml", "json", "markdown"),
        metavar="FORM",
        help="form of the proposals: text, toml, json, markdown (default: text, with a diff)",
    )
    add_history_and_quiet(parser)
    parser.set_defaults(repeats=DEFAULT_REPEATS)
    add_exit_codes(
        parser,
        {
            OK: "each case has a proposal, needs none, or is skipped",
            QUALITY_MISSED: "the runs of a case differ too much for a proposal",
            USAGE: "wrong usage or missing trust",
            INFRASTRUCTURE: "some run ended in an error and was left out",
            INTERRUPTED: "interrupted",
        },
    )
    show_first(parser, "--write", "--only-empty", *COMMON_OF_RUNS[:6], "--format", "--quiet")


def execute(arguments: argparse.Namespace) -> int:
    options = run_options(arguments, compares=False, command="accept")
    if options is None:
        return USAGE
    asked = AcceptOptions(arguments.only_empty, arguments.write, arguments.format, arguments.quiet)
    return accept(options, asked, trust=arguments.trust)


@dataclass(frozen=True)
class AcceptOptions:
    """The options of `workbench accept` about cases to accept and the output of proposals."""

    only_empty: bool = False
    write: bool = False
    form: str | None = None
    quiet: bool = False


def accept(options: RunOptions, accept_options: AcceptOptions, *, trust: bool) -> int:
    """Run the cases, propose expectations, and write them with `--write`. Return an exit code."""
    program = create_program(options.model_options)
    plan = planned(options, program, quiet=accept_options.quiet)
    if plan is None:
        return USAGE
    plan = _chosen(plan, only_empty=accept_options.only_empty)
    if not plan.runs:
        warn("nothing was run: every chosen case already has expectations; leave out --only-empty to replace them")
        return OK
    exempt = trust_store(program.folders).is_exempt
    # This check comes before the runs, which cost money.
    if accept_options.write and (bundled := [file.path for file in plan.files if exempt(file)]):
        warn(f"nothing was run: {bundled[0]} is a bundled sample, which is not changed; accept into a copy of it")
        return USAGE
    output = Output(accept_options.form, quiet=accept_options.quiet)
    live = run_plan(plan, step_output(output, program), output, trust=trust, record=None, command="run")
    if isinstance(live, int):
        return live
    if live.outcome.interrupted:
        warn("interrupted: nothing was accepted")
        return INTERRUPTED
    # Expectations are made from the calls that all repeats of a case have in common.
    results = {result.run_id: result for result in live.outcome.results}
    suites = []
    for file in plan.files:
        suites.append(_accepted(file, plan, results, program.secrets))
    code = USAGE if plan.broken else _exit_code(suites)
    _show(suites, accept_options.form, code)
    if accept_options.write:
        for file, suite in zip(plan.files, suites, strict=True):
            if suite.proposed and not _written(file, suite):
                code = USAGE
    print_broken_suites(broken_suites_of(plan.broken), program.secrets)
    return code


def _chosen(plan: Plan, *, only_empty: bool) -> Plan:
    runs = plan.runs
    if only_empty:
        runs = tuple(run for run in runs if not expects_something(case_table(run.file, run.case)[1]))
    paths = {run.file.path for run in runs}
    return replace(plan, runs=runs, files=tuple(file for file in plan.files if file.path in paths))


def _accepted(file: SuiteFile, plan: Plan, results: dict[str, RunResult], secrets: Secrets) -> AcceptedSuite:
    by_case: dict[str, tuple[Case, list[RunResult]]] = {}
    for run in plan.runs:
        if run.file.path == file.path:
            _, of_case = by_case.setdefault(run.case.id, (run.case, []))
            if run.run_id in results:
                of_case.append(results[run.run_id])
    return accepted_suite(file, [_to_accept(case, of_case) for case, of_case in by_case.values()], secrets)


def _to_accept(case: Case, results: Sequence[RunResult]) -> CaseToAccept:
    accepted = []
    others = []
    for run in results:
        if (why := exclusion_reason(run)) is not None:
            others.append(exclusion_note(run, why))
        else:
            pairings = run.grade.pairings if run.grade is not None else ()
            accepted.append(RunToAccept(run.trajectory, pairings, run.cost_usd))
    return CaseToAccept(case, tuple(accepted), tuple(others))


def _exit_code(suites: Sequence[AcceptedSuite]) -> int:
    code = OK
    for suite in suites:
        # Errors come first, because the runs might have agreed without the error.
        if any(case.left_out for case in suite.cases):
            return INFRASTRUCTURE
        if any(case.outcome == "not agreed" for case in suite.cases):
            code = QUALITY_MISSED
    return code


def _show(suites: Sequence[AcceptedSuite], form: str | None, code: int) -> None:
    if form == "json":
        write_json(json_of_accept(suites, code))
    elif form == "toml":
        write("".join(toml_of_accept(suites)))
    elif form == "markdown":
        write(document(accept_view(suites)))
    else:
        lines = block_lines(accept_view(suites), None, paint_for(sys.stdout, os.environ))
        write("".join(f"{line}\n" for line in lines))


def _written(file: SuiteFile, suite: AcceptedSuite) -> bool:
    # An invalid proposal must not replace a valid suite.
    broken = parse_suite(suite.after, file.path).errors
    if broken:
        warn(f"{suite.path} was not written: {broken[0]}")
        return False
    # Saving is refused if the file was edited during the runs.
    try:
        save(file.path, suite.after, FileState(file.hash))
    except SavingError as error:
        warn(redacted(str(error)))
        return False
    write(f"wrote {counted(len(suite.proposed), 'case')} to {suite.path}\n")
    return True
