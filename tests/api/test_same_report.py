"""A suite run from the command line and from Python comes to the same report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import workbench
from tests.cli.program import Program
from workbench.config.resources import bundled
from workbench.trajectory.messages import JsonValue

OF_THE_CLOCK = ("started_at", "timing", "batch")
"""Of a report, what is different each time."""


def timeless(value: JsonValue) -> JsonValue:
    """A report without times, and with the runs numbered from the beginning."""
    if isinstance(value, list):
        return [timeless(item) for item in value]
    if isinstance(value, dict):
        return {
            name: timeless(item)
            for name, item in value.items()
            if name not in OF_THE_CLOCK and not name.endswith("_ms") and name not in ("latency", "run_id")
        }
    return value


@pytest.mark.slow
def test_the_samples_come_to_the_same_report_from_the_command_line_and_from_python(
    folder: Path, tmp_path: Path
) -> None:
    samples = str(bundled("sample_suites"))
    program = Program(tmp_path / "program")
    program.folder.mkdir()
    done = program.run("run", samples, "--trust", "--no-history", "--format", "json")
    report = workbench.evaluate(samples, approve=workbench.ALL)
    assert done.returncode == report.exit_code, done.stderr
    assert len(report.runs) > 50
    assert timeless(json.loads(report.json())) == timeless(json.loads(done.stdout))
