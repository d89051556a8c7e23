"""`workbench mutate`: run cases, repeat them with changed tools, and report unnoticed changes."""

from __future__ import annotations

import argparse

from workbench.cli.parser import COMMON_OF_RUNS, REPORTS, add_exit_codes, group, show_first
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
    from workbench.cli.batch_command import experiment, print_broken_suites
    from workbench.cli.redaction import create_program, redacted, warn, write, write_json
    from workbench.cli.report_output import Output
    from workbench.evaluation.options import RunOptions
    from workbench.evaluation.plan import broken_suites_of
    from workbench.grading.status import Status
    from workbench.lab.mutation import Mutation, MutationOptions
    from workbench.show.json.experiments import json_of_mutation
    from workbench.show.text import block_lines
    from workbench.show.views.mutation import mutation_view


KINDS = (
    "no description",
    "no parameter descriptions",
    "parameter renamed",
    "no enum",
    "nothing required",
    "descriptions swapped",
    "decoys",
)
"""The names of all kinds of mutants, written out here so that `--help` imports nothing."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_experiment_options(parser)
    add_choice_options(parser, "--kind", KINDS, "mutants of this kind", "mutants")
    parser.add_argument("--all-cases", action="store_true", help="run every mutant on every case")
    add_execution_options(parser)
    group(parser, REPORTS).add_argument(
        "--format", choices=("text", "json"), default="text", help="format of the report (default text)"
    )
    add_history_and_quiet(parser)
    add_exit_codes(
        parser,
        {
            OK: "every mutant was noticed",
            QUALITY_MISSED: "a mutant was not noticed",
            USAGE: "wrong usage or missing trust",
            INFRASTRUCTURE: "a run with a mutant ended in an error",
            INTERRUPTED: "interrupted",
        },
    )
    show_first(parser, "--kind", "--tool", "--all-cases", *COMMON_OF_RUNS[:4], "--trust", "--format", "--quiet")


def execute(arguments: argparse.Namespace) -> int:
    from workbench.analysis.mutants import MUTANT_KINDS

    options = run_options(arguments, compares=False, command="mutate")
    if options is None:
        return USAGE
    kinds = tuple(kind for kind in MUTANT_KINDS if kind in arguments.kind) or MUTANT_KINDS
    asked = MutationOptions(kinds, tuple(arguments.tool), arguments.all_cases)
    return mutate(options, asked, form=arguments.format, quiet=arguments.quiet, trust=arguments.trust)


def mutate(options: RunOptions, mutation_options: MutationOptions, *, form: str, quiet: bool, trust: bool) -> int:
    """Run the cases, repeat them with changed tools, and report.

    Returns an exit code, 0 if every mutant is noticed."""
    program = create_program(options.model_options)
    output = Output(form, quiet=quiet)
    trying = experiment(options, program, output, trust=trust)
    if trying is None:
        return USAGE
    # Only a case that passes with the real tools can notice a mutant.
    first = trying.run(trying.plan, "nothing was mutated")
    if first is None:
        return INTERRUPTED
    mutation = Mutation.of(trying.plan, first, mutation_options)
    # Mutants run in several plans. A mutant that a case has noticed is not run on further cases.
    while (wave := mutation.next_plan()) is not None:
        results = trying.run(wave, "not every mutant was run")
        if results is None:
            return INTERRUPTED
        mutation.record_results(results)
    report = mutation.report()
    if not report.results:
        for title, why in report.left_out.items():
            warn(f"{title}: {why}", program.secrets)
        warn("nothing was mutated: no case that passes offers a tool to mutate")
        if any(result.status == Status.ERROR for result in first):
            return INFRASTRUCTURE
        return USAGE
    # An error has priority over an unnoticed mutant, because the case that ended in the error might have noticed it.
    code = QUALITY_MISSED if report.survivors else OK
    if any(result.unclear for result in report.results):
        code = INFRASTRUCTURE
    if trying.plan.broken:
        code = USAGE
    if form == "json":
        write_json(program.secrets.redacted(json_of_mutation(report, code)))
    else:
        lines = block_lines(mutation_view(report), output.width, output.paint)
        write(redacted("".join(f"{line}\n" for line in lines)))
    print_broken_suites(broken_suites_of(trying.plan.broken), program.secrets)
    return code
