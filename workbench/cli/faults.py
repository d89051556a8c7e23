"""`workbench faults`: run cases, repeat the runs with faulty tool results, and report the models' reactions."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from workbench.cli.parser import COMMON_OF_RUNS, add_exit_codes, add_report_options, show_first
from workbench.cli.run_options import (
    add_choice_options,
    add_execution_options,
    add_experiment_options,
    add_history_and_quiet,
    run_options,
)
from workbench.evaluation.exit_codes import INFRASTRUCTURE, INTERRUPTED, OK, QUALITY_MISSED, USAGE
from workbench.startup import executes

if executes(__name__):
    from workbench.analysis.fault_matrix import FaultMatrix
    from workbench.cli.batch_command import experiment, print_broken_suites
    from workbench.cli.redaction import create_program, json_report, redacted, warn
    from workbench.cli.report_output import Output
    from workbench.evaluation.options import RunOptions
    from workbench.evaluation.plan import broken_suites_of
    from workbench.grading.status import Status
    from workbench.lab.faults import FaultOptions, plan_faults
    from workbench.numerals import counted
    from workbench.show.json.experiments import json_of_faults
    from workbench.show.text import block_lines
    from workbench.show.views.faults import faults_view


FAULTS = ("error", "timeout", "rate limit", "empty", "cut", "wrong type", "stale", "injection")
"""The names of all faults, written out here so that `--help` imports nothing."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_experiment_options(parser, variants=True)
    add_choice_options(parser, "--fault", FAULTS, "this fault", "faults")
    parser.add_argument(
        "--lasts",
        choices=("once", "for-good", "both"),
        default="both",
        metavar="HOW",
        help="which results of a tool are faulty: 'once' only the first, 'for-good' all; 'both' (default) tries each",
    )
    add_execution_options(parser)
    add_report_options(parser, "faults", summary=False)
    add_history_and_quiet(parser)
    add_exit_codes(
        parser,
        {
            OK: "all verdicts are ok",
            QUALITY_MISSED: "a verdict is not ok",
            USAGE: "wrong usage or missing trust",
            INFRASTRUCTURE: "a run without a fault ended in an error",
            INTERRUPTED: "interrupted",
        },
    )
    show_first(parser, "--fault", "--tool", "--lasts", *COMMON_OF_RUNS[:4], "--trust", "--format", "--report")


def execute(arguments: argparse.Namespace) -> int:
    from workbench.analysis.fault_matrix import FAULT_DURATIONS
    from workbench.analysis.fault_matrix import FAULTS as ALL_FAULTS
    from workbench.cli.report_output import output_of

    output = output_of(arguments, "faults")
    if output is None or (options := run_options(arguments, compares=True, command="faults")) is None:
        return USAGE
    # Faults run in the order of the table, not of the options.
    chosen = tuple(fault for fault in ALL_FAULTS if fault in arguments.fault) or ALL_FAULTS
    lasts = tuple(each for each in FAULT_DURATIONS if arguments.lasts in ("both", each.replace(" ", "-")))
    faults = FaultOptions(chosen, frozenset(arguments.tool), lasts)
    return try_faults(options, faults, output, trust=arguments.trust)


def try_faults(options: RunOptions, faults: FaultOptions, output: Output, *, trust: bool) -> int:
    """Run the cases, repeat the runs with faults, and report the models' reactions.

    Return an exit code, 0 if every reaction is acceptable."""
    program = create_program(options.model_options)
    trying = experiment(options, program, output, trust=trust)
    if trying is None:
        return USAGE
    first = trying.run(trying.plan, "no fault was tried")
    if first is None:
        return INTERRUPTED
    trials = plan_faults(trying.plan, first, faults)
    # No run can be repeated with a fault if no run called a chosen tool, or if every run already failed without faults.
    if not trials.plan.runs:
        for each in trials.untried:
            warn(f"{each.case_name} with {each.model}: {each.why}", program.secrets)
        if trials.untried:
            warn("no fault was tried, because no run allowed a fault: the lines above give the reasons")
            return INFRASTRUCTURE
        warn("no fault was tried: no run called one of the chosen tools")
        return USAGE
    if not output.quiet:
        warn(f"trying {counted(len(trials.plan.runs), 'fault')}, each at the result of a call of a finished run")
    second = trying.run(trials.plan, "not every fault was tried")
    if second is None:
        return INTERRUPTED
    matrix = program.secrets.redacted(trials.matrix(second))
    code = QUALITY_MISSED if matrix.failed_trials else OK
    if any(result.status == Status.ERROR for result in first):
        code = INFRASTRUCTURE
    if trying.plan.broken:
        code = USAGE
    written = output.deliver(lambda each: _pieces(matrix, code, each))
    print_broken_suites(broken_suites_of(trying.plan.broken), program.secrets)
    return code if written else USAGE


def _pieces(matrix: FaultMatrix, code: int, output: Output) -> Iterable[str]:
    match output.form:
        case "json":
            return (json_report(json_of_faults(matrix, code)),)
        case "html":
            from workbench.show.html.faults import page_of_faults

            return map(redacted, page_of_faults(matrix, code))
        case _:
            lines = block_lines(faults_view(matrix), output.width, output.paint)
            return (redacted(f"{line}\n") for line in lines)
