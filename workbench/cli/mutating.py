"""What `workbench mutate` does: run cases, run them again with changed tools, and report what nobody noticed."""

from __future__ import annotations

import os
import sys

from workbench.cli.door import begin_program, redacted, warn, write, write_json
from workbench.cli.making import experiment
from workbench.cli.report_output import Output
from workbench.evaluation.exit_codes import INFRASTRUCTURE, INTERRUPTED, OK, QUALITY_MISSED, USAGE
from workbench.evaluation.mutating import Mutation, MutationOptions
from workbench.evaluation.options import RunOptions
from workbench.reports.mutants import json_of_mutation, text_of_mutation
from workbench.show.text import paint_for


def mutate(options: RunOptions, asked: MutationOptions, *, form: str, quiet: bool, trust: bool) -> int:
    """Run, mutate and report; returns an exit code: 0 if every mutant is noticed."""
    program = begin_program(options.model_options)
    trying = experiment(options, program, Output(form, quiet=quiet), trust=trust)
    if trying is None:
        return USAGE
    first = trying.run(trying.plan, "nothing was mutated")
    if first is None:
        return INTERRUPTED
    mutation = Mutation.of(trying.plan, first, asked)
    while (wave := mutation.wave()) is not None:
        results = trying.run(wave, "not every mutant was run")
        if results is None:
            return INTERRUPTED
        mutation.take(results)
    report = mutation.report()
    if not report.results:
        for title, why in report.left_out.items():
            warn(f"{title}: {why}", program.secrets)
        warn("nothing was mutated: no case that passes offers a tool that is meant")
        return INFRASTRUCTURE if any(result.status == "error" for result in first) else USAGE
    code = QUALITY_MISSED if report.survivors else OK
    if any(result.unclear for result in report.results):
        code = INFRASTRUCTURE
    if form == "json":
        write_json(program.secrets.redacted(json_of_mutation(report, code)))
    else:
        write(redacted("".join(text_of_mutation(report, paint_for(sys.stdout, os.environ)))))
    return code
