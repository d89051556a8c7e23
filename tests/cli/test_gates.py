"""Gates on the command line: with several models, and over runs that failed despite their score."""

from __future__ import annotations

import json

import pytest

from tests.cli.program import Program
from tests.cli.suites import WEATHER
from tests.cli.test_compare import endpoints
from tests.schemas import fits

BOTH = ("run", "weather.toml", "--trust", "--quiet", "--model", "right", "--model", "lazy")
GATED = """[gate]
min_score = 0.6
{per}
[[aggregates]]
name = "All"
{per}
statistics = ["mean"]
at_least = {{ mean = 0.6 }}

[[tools]]"""


@pytest.mark.slow
def test_each_model_must_meet_the_gates_of_a_suite(program: Program) -> None:
    """One model is right on both cases, the other on one of them: 0.75 together."""
    suite = program.folder / "weather.toml"
    with endpoints(program.folder):
        plain = suite.read_text(encoding="utf-8")
        suite.write_text(plain.replace("[[tools]]", GATED.format(per=""), 1), encoding="utf-8")
        missed = program.run(*BOTH, "--format", "text", "--record", "runs")
        assert missed.returncode == 1, missed.stderr
        lines = missed.stdout.splitlines()
        assert "gate of Weather with right: mean score 1.00, 0.6 required: met" in lines
        assert "gate of Weather with lazy: mean score 0.50, 0.6 required: missed" in lines
        assert "All of Weather with lazy: score, 2 runs: mean 0.50" in lines
        assert program.run(*BOTH, "--min-score", "0.6").returncode == 1
        assert program.run(*BOTH, "--min-score", "0.5").returncode == 0
        again = program.run("grade", "runs", "--format", "json")
        exported = program.run("export", "1", "-o", "out", "--format", "json")
        assert (again.returncode, exported.returncode) == (1, 0), exported.stderr
        for text in (again.stdout, (program.folder / "out" / "batch-1.json").read_text(encoding="utf-8")):
            report = json.loads(text)
            assert report["exit_code"] == 1
            assert {gate["model"]: gate["met"] for gate in report["gates"]} == {"right": True, "lazy": False}
            assert {each["model"]: each["met"] for each in report["aggregates"]} == {"right": True, "lazy": False}
        told = [line for line in lines if line.startswith("gate of ")]
        shown = program.run("history", "show", "1").stdout.splitlines()
        assert [line for line in shown if line.startswith("gate of ")] == told
        kept = json.loads(program.run("history", "show", "1", "--format", "json").stdout)
        assert {gate["model"]: gate["met"] for gate in kept["gates"]} == {"right": True, "lazy": False}
        for words in (("weather.toml", "--trust", *BOTH[4:]), ("--resume", "1")):  # the second one reads the history
            reports = [program.run("compare", *words, "--format", form).stdout for form in ("text", "markdown", "json")]
            [row] = [line.split() for line in reports[0].splitlines() if line.startswith("gate: mean score 0.6 ")]
            assert row[-4:] == ["1.00", "met", "0.50", "missed"]
            assert "| gate: mean score 0.6 | 1.00 met | 0.50 missed |" in reports[1].splitlines()
            totals = json.loads(reports[2])["totals"]
            assert [[gate["met"] for gate in each["gates"]] for each in totals] == [[True], [False]]
        suite.write_text(plain.replace("[[tools]]", GATED.format(per='per = "batch"'), 1), encoding="utf-8")
        met = program.run(*BOTH, "--format", "text")
        assert met.returncode == 0
        assert "gate of Weather with all models: mean score 0.75, 0.6 required: met" in met.stdout.splitlines()


def test_a_gate_is_not_green_over_failures_that_the_score_does_not_see(program: Program) -> None:
    answers = WEATHER.replace("[[tools]]", "[gate]\nmin_score = 0.8\n[[tools]]", 1).replace(
        'tags = ["easy"]', 'response_contains = ["sunshine"]'
    )
    program.write("weather.toml", answers)
    for words in ((), ("--min-score", "0.8")):
        done = program.run("run", "weather.toml", "--format", "json", *words)
        report = json.loads(done.stdout)
        fits(report, "report")
        [gate], [run] = report["gates"], report["runs"]
        assert (done.returncode, run["status"], run["score"]) == (1, "failed", 1)
        assert (gate["reached"], gate["counted_zero"], gate["met"]) == (0, 1, False)
