"""`workbench submission`: check and run the example prompts that a plugin directory requires."""

from __future__ import annotations

import argparse
from dataclasses import replace

from workbench.cli.parser import COMMON_OF_RUNS, add_exit_codes, add_report_options, show_first
from workbench.cli.run_options import (
    add_by_option,
    add_execution_options,
    add_experiment_options,
    add_history_and_quiet,
    run_options,
)
from workbench.evaluation.exit_codes import DESCRIPTIONS, USAGE
from workbench.show.forms import pieces_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_experiment_options(parser)
    add_by_option(parser)
    add_execution_options(parser)
    add_report_options(parser, "submission", "format of the table (default: by the ending of --output, else markdown)")
    add_history_and_quiet(parser)
    add_exit_codes(parser, DESCRIPTIONS)
    show_first(parser, *(option for option in COMMON_OF_RUNS if option != "--resume"))


def execute(arguments: argparse.Namespace) -> int:
    from workbench.cli.batch_command import planned, run_plan, step_output
    from workbench.cli.redaction import create_program, warn
    from workbench.cli.report_output import output_of
    from workbench.cli.run import report_to_github
    from workbench.show.views.submission import what_is_missing

    output = output_of(arguments, "submission")
    if output is None or (options := run_options(arguments, compares=False, command="submission")) is None:
        return USAGE
    output = replace(output, form=output.form or "markdown")
    program = create_program(options.model_options)
    plan = planned(options, program, quiet=output.quiet)
    if plan is None:
        return USAGE
    cases = {(run.file.path, run.case.id): run.case for run in plan.runs}
    # This check comes before the runs, which cost money.
    if (missing := what_is_missing(cases.values())) is not None:
        warn(f"nothing was run: {missing}", program.secrets)
        return USAGE
    live = run_plan(plan, step_output(output, program), output, trust=arguments.trust, record=None, command="run")
    if isinstance(live, int):
        return live
    report = live.outcome.report(plan)
    written = output.deliver(lambda each: pieces_of(str(each.form), "submission", report))
    report_to_github(report, output)
    return report.exit_code if written else USAGE
