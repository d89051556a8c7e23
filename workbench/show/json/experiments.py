"""The JSON reports of faults and of mutants."""

from __future__ import annotations

from workbench.analysis.fault_matrix import OK_VERDICTS, FaultMatrix, FaultTrial
from workbench.analysis.mutants import MutantResult, MutationReport
from workbench.trajectory.events import JsonValue


def json_of_faults(matrix: FaultMatrix, exit_code: int) -> dict[str, JsonValue]:
    """Return a matrix of faults as a JSON object. Each trial has a verdict and a reason (`why`)."""
    return {
        "report": "workbench faults",
        # Version 1 called three verdicts `told`, `resisted` and `obeyed`, and had no `ok`.
        "version": 2,
        "exit_code": exit_code,
        "models": {model: _counts(matrix, model) for model in matrix.models},
        "trials": list(map(_trial, matrix.trials)),
    }


def _counts(matrix: FaultMatrix, model: str) -> dict[str, JsonValue]:
    # Keys of JSON are written with underscores, as in all reports.
    return {verdict.replace(" ", "_"): count for verdict, count in matrix.counts(model).items()}


def _trial(trial: FaultTrial) -> dict[str, JsonValue]:
    return {
        "suite": trial.suite,
        "case_id": trial.case_id,
        "case_name": trial.case_name,
        "model": trial.model,
        "tool": trial.tool,
        "fault": trial.fault,
        "lasts": trial.lasts,
        "verdict": trial.verdict,
        "ok": trial.verdict in OK_VERDICTS,
        # The former name of `ok`, which existing scripts still read.
        "sound": trial.verdict in OK_VERDICTS,
        "why": trial.why,
        "answer": trial.answer,
    }


def json_of_mutation(report: MutationReport, exit_code: int) -> dict[str, JsonValue]:
    """Return the report on the mutants of tools as a JSON object."""
    return {
        "report": "workbench mutate",
        "version": 1,
        "exit_code": exit_code,
        "runs_saved": report.saved_runs,
        "left_out": dict(report.left_out),
        "models": {model: _of_model(report, model) for model in report.models},
        "mutants": list(map(_mutant, report.results)),
    }


def _of_model(report: MutationReport, model: str) -> dict[str, JsonValue]:
    curve: list[JsonValue] = []
    for decoys, rate in report.curve(model):
        curve.append({"decoys": decoys, "pass_rate": rate})
    return {
        "survivors": [each.mutant.name for each in report.survivors if each.model == model],
        "decoys": curve,
        "notice_nothing": [*report.unnoticing_cases(model)],
    }


def _mutant(result: MutantResult) -> dict[str, JsonValue]:
    return {
        "suite": result.suite,
        "name": result.mutant.name,
        "kind": result.mutant.kind,
        "tools": [*result.mutant.tools],
        "model": result.model,
        "survives": result.survives,
        "cases": [*result.run],
        "noticed_by": [*result.noticed],
        "should_be_noticed_by": [*result.expecting_cases],
        "in_error_on": [*result.unclear],
        "pass_rate": result.pass_rate,
    }
