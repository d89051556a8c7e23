"""What `workbench faults` does: run cases, fork them at results made faulty, and report what came of it."""

from __future__ import annotations

from collections.abc import Iterable

from workbench.analysis.faults import FaultMatrix
from workbench.cli.door import begin_program, json_report, redacted, warn
from workbench.cli.making import experiment
from workbench.cli.report_output import Output
from workbench.evaluation.exit_codes import INFRASTRUCTURE, INTERRUPTED, OK, QUALITY_MISSED, USAGE
from workbench.evaluation.faulting import FaultOptions, plan_faults
from workbench.evaluation.options import RunOptions
from workbench.reports.faults import json_of_faults, text_of_faults
from workbench.suite.numerals import counted


def try_faults(options: RunOptions, faults: FaultOptions, output: Output, *, trust: bool) -> int:
    """Run, fork and report; returns an exit code: 0 if everything tried is ok."""
    program = begin_program(options.model_options)
    trying = experiment(options, program, output, trust=trust)
    if trying is None:
        return USAGE
    first = trying.run(trying.plan, "no fault was tried")
    if first is None:
        return INTERRUPTED
    trials = plan_faults(trying.plan, first, faults)
    if not trials.plan.runs:
        for each in trials.untried:
            warn(f"{each.case_name} with {each.model}: {each.why}", program.secrets)
        warn("no fault was tried: no run called a tool that is meant")
        return INFRASTRUCTURE if trials.untried else USAGE
    if not output.quiet:
        warn(f"trying {counted(len(trials.plan.runs), 'fault')}, each forked from a run at the result of a call")
    second = trying.run(trials.plan, "not every fault was tried")
    if second is None:
        return INTERRUPTED
    matrix = program.secrets.redacted(trials.matrix(second))
    code = QUALITY_MISSED if matrix.weak else OK
    if any(result.status == "error" for result in first):
        code = INFRASTRUCTURE
    return code if output.deliver(lambda each: _pieces(matrix, code, each)) else USAGE


def _pieces(matrix: FaultMatrix, code: int, output: Output) -> Iterable[str]:
    """Return the pieces of the report in the form of an output."""
    match output.form:
        case "json":
            return (json_report(json_of_faults(matrix, code)),)
        case "html":
            from workbench.reports.html.faults import page_of_faults

            return map(redacted, page_of_faults(matrix, code))
        case _:
            return map(redacted, text_of_faults(matrix, output.paint))
