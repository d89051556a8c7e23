"""The examples in docs/graders.md are true.

An example has a part of a suite, the calls of a model (or its calls and final answer), and the score and status."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from tests.trajectories import trajectory_of
from workbench.grading.run import GRADERS_BY_NAME, grade_run
from workbench.suite.model import Suite

PAGE = (Path(__file__).parents[2] / "docs" / "graders.md").read_text(encoding="utf-8")
EXAMPLE = re.compile(r"```toml\n(.+?)```\n\n```json\n(.+?)```\n\nScore ([\d.]+): (\w+)\.", re.DOTALL)
Example = tuple[str, str, str, str]

OVERVIEW, *PARTS = re.split(r"^## `(\w+)`\n", PAGE, flags=re.MULTILINE)
TEXTS = dict(zip(PARTS[::2], PARTS[1::2], strict=True))
EXAMPLES: dict[str, list[Example]] = {grader: EXAMPLE.findall(text) for grader, text in TEXTS.items()}


def graded(grader: str, suite: str, said: str) -> tuple[float | None, str]:
    document = Suite.model_validate({"format": 1, "name": "example", "grading": {"by": grader}, **tomllib.loads(suite)})
    run = json.loads(said)
    if isinstance(run, list):
        run = {"calls": run, "answer": ""}
    made = ((call["tool"], call["arguments"]) for call in run["calls"])
    (grade, *_), status = grade_run(document, document.cases[0], trajectory_of(*made, answer=run["answer"]))
    return grade.score, status


@pytest.mark.parametrize(
    ("grader", "example"), [(grader, example) for grader, examples in EXAMPLES.items() for example in examples]
)
def test_an_example_is_true(grader: str, example: Example) -> None:
    suite, said, score, status = example
    got, verdict = graded(grader, suite, said)
    assert got == pytest.approx(float(score), abs=0.5e-3)
    assert verdict == status


@pytest.mark.parametrize("grader", GRADERS_BY_NAME)
def test_no_example_is_left_out(grader: str) -> None:
    text = TEXTS[grader]
    assert len(EXAMPLES[grader]) == text.count("```toml") == text.count("```json")


def test_the_overview_s_run_scores_under_each_grader_what_the_table_says() -> None:
    (suite,), (said,) = (re.findall(rf"```{form}\n(.+?)```", OVERVIEW, re.DOTALL) for form in ("toml", "json"))
    rows = re.findall(r"^\| `(\w+)` \| ([\d.]+) \| (\w+) \|", OVERVIEW, re.MULTILINE)
    assert [name for name, *_ in rows] == list(GRADERS_BY_NAME)
    for grader, score, status in rows:
        got, verdict = graded(grader, suite, said)
        assert got == pytest.approx(float(score), abs=0.5e-3), grader
        assert verdict == status, grader
