"""`workbench grade`: regrade finished runs by the current suites, and report the changes. Calls no model."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

from workbench.cli.model_options import add_judging_options
from workbench.cli.parser import (
    add_amount_options,
    add_exit_codes,
    add_history_options,
    add_report_options,
    history_to_read,
    names_batch,
    show_first,
)
from workbench.cli.run_options import add_by_option, add_min_score_option, add_repeat_rule_option
from workbench.evaluation.exit_codes import DESCRIPTIONS, USAGE
from workbench.startup import executes

if executes(__name__):
    from workbench.cli.approval import approved
    from workbench.cli.batch_command import judge_is_known
    from workbench.cli.redaction import create_program, printing_to, register_suite_secrets, warn, warn_of_problems
    from workbench.cli.report_output import Output
    from workbench.cli.run import pieces_of_runs, report_to_github
    from workbench.config.model_book import ModelOptions
    from workbench.config.models import ConfigError
    from workbench.evaluation.regrade import BrokenSuiteError, GradeOptions, grade_recordings, plan_grading
    from workbench.trajectory.recording import RecordingError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs",
        nargs="*",
        metavar="PATH|BATCH",
        help="recordings, or folders of them; or batches of the history, which store the new grades",
    )
    parser.add_argument(
        "--calls",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="grade these calls of an agent by the cases of --suite; repeatable",
    )
    parser.add_argument(
        "--suite",
        type=Path,
        metavar="FILE",
        help="grade by this suite, not by that of the runs",
    )
    add_by_option(parser)
    add_repeat_rule_option(parser)
    add_min_score_option(parser)
    add_judging_options(parser)
    add_report_options(parser, "grade")
    add_amount_options(parser, "show the issues of passed runs too")
    add_history_options(parser, may_be_none=False)
    add_exit_codes(parser, DESCRIPTIONS)
    show_first(
        *(parser, "--calls", "--suite", "--by", "--min-score", "--judge", "--trust"),
        *("--format", "--report", "--quiet", "--verbose"),
    )


def execute(arguments: argparse.Namespace) -> int:
    from workbench.cli.report_output import output_of

    if not (arguments.runs or arguments.calls):
        warn("name recordings or batches to grade, or a file of calls: workbench grade --suite FILE --calls FILE")
        return USAGE
    if any(map(names_batch, arguments.runs)):
        return _grade_batches(arguments)
    output = output_of(arguments, "grade")
    if output is None:
        return USAGE
    if suites := [name for name in arguments.runs if name.endswith(".toml")]:
        warn(f"{suites[0]} is a suite, not a recording: give it with --suite {suites[0]}")
        return USAGE
    if arguments.calls and arguments.suite is None:
        warn("--calls needs --suite FILE, the suite with the cases of the calls")
        return USAGE
    if not output.can_write():
        return USAGE
    options = GradeOptions(
        paths=tuple(map(Path, arguments.runs)),
        calls=tuple(arguments.calls),
        suite=arguments.suite,
        by=arguments.by,
        repeat_rule=arguments.repeat_rule,
        min_score=arguments.min_score,
        judge=arguments.judge,
    )
    return regrade_and_report(options, output, trust=arguments.trust)


_RECORDING_OPTIONS = (
    ("repeat_rule", "--repeat-rule"),
    ("min_score", "--min-score"),
    ("output", "--output"),
    ("report", "--report"),
    ("lean", "--lean"),
    ("no_step_summary", "--no-step-summary"),
    ("quiet", "--quiet"),
    ("verbose", "--verbose"),
)
"""The options that do not apply to batches: attribute of the parsed arguments and name of the option."""


def _grade_batches(arguments: argparse.Namespace) -> int:
    from workbench.cli import history_regrade
    from workbench.cli.history_command import run_history_command, run_on_batch

    batch = next(filter(names_batch, arguments.runs))
    if arguments.calls:
        suite = arguments.suite or "FILE"
        warn(
            f"{batch} is a batch and has its own calls, but --calls grades the calls of a file: use two commands, "
            f"'workbench grade {batch}' and 'workbench grade --suite {suite} --calls {arguments.calls[0]}'"
        )
        return USAGE
    if others := [name for name in arguments.runs if not names_batch(name)]:
        warn(f"{others[0]} is a recording and {batch} is a batch: grade recordings and batches with separate commands")
        return USAGE
    for attribute, name in _RECORDING_OPTIONS:
        if getattr(arguments, attribute) not in (None, False, []):
            warn(f"{name} applies only to recordings and calls: omit it, or see 'workbench history show BATCH'")
            return USAGE
    if arguments.format not in (None, "text", "json"):
        warn(f"--format {arguments.format} applies only to recordings: for a batch, give text or json")
        return USAGE
    options = history_regrade.Options(
        batches=arguments.runs,
        suite=arguments.suite,
        by=arguments.by,
        judge=arguments.judge,
        trust=arguments.trust,
        format=arguments.format or "text",
    )
    grade = partial(run_on_batch, history_regrade.execute, options)
    return run_history_command(grade, history_to_read(arguments, ()), arguments.judge)


def regrade_and_report(options: GradeOptions, output: Output, *, trust: bool) -> int:
    """Grade recordings and report the changes. Return an exit code."""
    try:
        program = create_program(ModelOptions(judge=options.judge))
    except ConfigError as error:
        warn(f"nothing was graded: {error}")
        return USAGE
    try:
        plan = plan_grading(options, program)
    except RecordingError as error:
        if isinstance(error, BrokenSuiteError):
            warn_of_problems(error.problems, program.secrets)
        warn(f"nothing was graded: {error}", program.secrets)
        return USAGE
    for problem in plan.problems:
        if problem.severity == "error" and not plan.runs:
            warn(f"nothing was graded: {problem.text}", program.secrets)
        else:
            warn(problem.text, program.secrets)
    if not plan.runs:
        return USAGE
    register_suite_secrets(program, plan.files)
    if not judge_is_known(options.judge, plan.files, program):
        return USAGE
    # There may be thousands of recordings, so one question covers all with the same needs.
    approval = approved(plan.needs(), program, all_of_them=trust, together=True)
    if approval is None:
        return USAGE
    # Python code of a suite may print. Its output must not get into the report.
    with printing_to(sys.stderr):
        report = grade_recordings(plan, approval)
    written = output.deliver(partial(pieces_of_runs, report))
    report_to_github(report, output)
    return report.exit_code if written else USAGE
