"""A suite comes to the same report from the command line, in the app and from Python."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import workbench
from tests.cli.program import Program
from tests.tui.apps import opened
from workbench.config.resources import bundled
from workbench.evaluation.plan import FinishedRun
from workbench.suite.loading import load_suite
from workbench.suite.model import Suite
from workbench.trajectory.messages import JsonValue

SAMPLES = bundled("sample_suites")

OF_THE_CLOCK = ("started_at", "timing", "batch", "latency", "run_id")
"""Of a report, what is different each time."""


def timeless(report: str) -> JsonValue:
    """A report without times and the numbers of runs."""

    def without(value: JsonValue) -> JsonValue:
        if isinstance(value, list):
            return [without(item) for item in value]
        if isinstance(value, dict):
            kept = {name: item for name, item in value.items() if name not in OF_THE_CLOCK}
            return {name: without(item) for name, item in kept.items() if not name.endswith("_ms")}
        return value

    return without(json.loads(report))


async def report_of_the_app(folder: Path) -> workbench.Report:
    """Open all samples in the app, run everything, and report on what its run book then holds."""
    files = [load_suite(file) for file in sorted(SAMPLES.glob("*.toml"))]
    cases = [(file, case) for file in files if file.suite is not None for case in file.suite.cases]
    wanted = sum(case.repeats for _, case in cases)
    async with opened(folder, paths=[SAMPLES], live=True, trust=True) as app:
        book = app.app.main.book
        await app.press("E")
        await app.until(lambda: book.progress().done == wanted, within_s=60)
        records = [record for file, case in cases for record in book.finished((file.path, case.id))]
        runs = [(record.planned.case, record.result) for record in records]
    suites: dict[str, Suite] = {str(file.path): file.suite for file in files if file.suite is not None}
    finished = tuple(FinishedRun(place, case, run) for place, (case, run) in enumerate(runs) if run is not None)
    return workbench.Report(runs=finished, suites=suites, started_at="")


@pytest.mark.slow
async def test_the_samples_come_to_the_same_report_from_the_command_line_in_the_app_and_from_python(
    folder: Path, tmp_path: Path
) -> None:
    program = Program(tmp_path / "program")
    program.folder.mkdir()
    report = await workbench.evaluate_async(SAMPLES, approve=workbench.ALL)
    done = program.run("run", str(SAMPLES), "--trust", "--no-history", "--format", "json")
    assert done.returncode == report.exit_code, done.stderr
    assert len(report.runs) > 50
    assert timeless(report.json()) == timeless(done.stdout)
    assert timeless((await report_of_the_app(folder)).json()) == timeless(report.json())
