"""The examples in docs/graders/critics.md are what really happens."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from tests.trajectories import trajectory_of
from workbench.grading.run import grade_run
from workbench.suite.model import Suite

DOCUMENT = (Path(__file__).parents[2] / "docs" / "graders" / "critics.md").read_text(encoding="utf-8")
EXAMPLE = re.compile(r"```toml\n(.+?)```\n\n```json\n(.+?)```\n\nScore ([\d.]+): (\w+)\.", re.DOTALL)

EXAMPLES = EXAMPLE.findall(DOCUMENT)


def graded(suite: str, calls: str) -> tuple[float | None, str]:
    document = Suite.model_validate({"format": 1, "name": "example", **tomllib.loads(suite)})
    made = ((call["tool"], call["arguments"]) for call in json.loads(calls))
    (grade,), status = grade_run(document, document.cases[0], trajectory_of(*made))
    return grade.score, status


@pytest.mark.parametrize(("suite", "calls", "score", "status"), EXAMPLES)
def test_an_example_is_true(suite: str, calls: str, score: str, status: str) -> None:
    got, verdict = graded(suite, calls)
    assert got == pytest.approx(float(score), abs=0.5e-3)
    assert verdict == status


def test_no_example_is_left_out() -> None:
    assert len(EXAMPLES) == DOCUMENT.count("```toml") == DOCUMENT.count("```json")


def test_the_last_example_without_the_option_scores_what_the_text_says() -> None:
    suite, calls, *_ = EXAMPLES[-1]
    without = suite.replace("arcade_compatible = true\n", "")
    assert without != suite
    assert graded(without, calls)[0] == 0.5
    assert "the same run scores 0.5" in DOCUMENT
