"""Suites in the documentation load; those of docs/coming-from.md run on `offline`, and score what the page says."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import yaml

from tests.cli.program import Program
from tests.grading.test_document import graded
from workbench.suite.suite_file import load_suite

ROOT = Path(__file__).parents[1]
TOML = re.compile(r"^```toml\n(format = 1\n.*?)^```$", re.MULTILINE | re.DOTALL)
SCORED = re.compile(r"^```json\n(.+?)```\n\nScore ([\d.]+): (\w+)\.", re.MULTILINE | re.DOTALL)
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
SUITES = [(page, suite) for page in PAGES for suite in TOML.findall(page.read_text(encoding="utf-8"))]
PAGE = (ROOT / "docs" / "coming-from.md").read_text(encoding="utf-8")
COMING = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
(WEATHER,) = TOML.findall(PAGE)
CASE = re.compile(r"^```toml\n(\[\[cases\]\]\n.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("page", "suite"), SUITES, ids=lambda value: value.name if isinstance(value, Path) else "")
def test_a_suite_of_the_documentation_loads(page: Path, suite: str, tmp_path: Path) -> None:
    file = tmp_path / "suite.toml"
    file.write_text(suite, encoding="utf-8")
    assert [str(problem) for problem in load_suite(file).problems if problem.severity == "error"] == []


@pytest.mark.parametrize("system", COMING)
def test_the_case_of_a_section_runs_and_scores_what_it_says(system: str, program: Program) -> None:
    text = COMING[system]
    (case,) = CASE.findall(text)
    ((said, score, status),) = SCORED.findall(text)
    assert text.count("```toml") == text.count("```json") == 1
    suite = f"{WEATHER}\n{case}"
    program.write("suite.toml", suite)
    assert program.run("validate", "suite.toml").stderr == ""
    done = program.run("run", "suite.toml", "--no-history")
    assert done.returncode == 0, done.stdout
    got, verdict = graded("critics", suite, said)
    assert got == pytest.approx(float(score), abs=0.5e-3)
    assert verdict == status


def test_the_examples_of_others_can_be_read() -> None:
    text = "".join(COMING.values())
    of_python, of_yaml = (re.findall(rf"^```{form}\n(.*?)^```$", text, re.M | re.S) for form in ("python", "yaml"))
    assert len(of_python) == 3 and len(of_yaml) == 1
    for example in of_python:
        ast.parse(example)
    (test,) = yaml.safe_load(of_yaml[0])["tests"]
    assert test["assert"][0]["value"] == {"name": "get_weather", "args": {"city": "Oslo"}, "mode": "exact"}


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)
