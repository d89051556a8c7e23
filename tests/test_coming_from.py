"""Suites in the documentation load. Those of docs/coming-from.md run on `offline`, with the scores on the page."""

from __future__ import annotations

import ast
import functools
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import workbench
from tests.cli.program import Program
from tests.exchange.importers.samples import SAMPLES
from tests.exchange.importers.test_dimensions import SYSTEM, made_of
from tests.grading.test_document import graded
from tests.tables import each_row
from workbench.config.secrets import Secrets
from workbench.exchange.importers.forms import format_of, forms_that_fit
from workbench.exchange.importers.import_files import ImportOptions, import_file
from workbench.exchange.importers.source_files import source_of
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


def test_the_cases_of_all_sections_pass_on_offline(tmp_path: Path) -> None:
    program = Program(tmp_path)
    for number, text in enumerate(COMING.values()):
        program.write(f"suites/{number}.toml", f"{WEATHER}\n{CASE.findall(text)[0]}")
    assert program.run("validate", "suites").stderr == ""
    done = program.run("run", "suites", "--no-history")
    assert done.returncode == 0 and f"{len(COMING)} runs: {len(COMING)} passed" in done.stdout, done.stdout


@each_row("system", COMING)
def test_the_run_of_a_section_scores_what_it_says(system: str) -> None:
    text = COMING[system]
    (case,) = CASE.findall(text)
    ((said, score, status),) = SCORED.findall(text)
    assert text.count("```toml") == text.count("```json") == 1
    got, verdict = graded("critics", f"{WEATHER}\n{case}", said)
    assert got == pytest.approx(float(score), abs=0.5e-3)
    assert verdict == status


def test_python_that_builds_a_case_makes_the_case_of_its_section() -> None:
    built = 0
    for text in COMING.values():
        for code in re.findall(r"^```python\n(suite\.case\(.*?)^```$", text, re.M | re.S):
            suite = workbench.Suite("Weather")
            exec(f"from workbench.checks import equals, near, one_of\n{code}", {"suite": suite})
            assert suite.to_dict()["cases"] == [case_of(text)]
            built += 1
    assert built == 1


def case_of(text: str) -> dict[str, Any]:
    """Return the case of a section, without the suite-wide `grading`."""
    (case,) = tomllib.loads(*CASE.findall(text))["cases"]
    return {key: value for key, value in case.items() if key != "grading"}


THEIRS = {
    system: re.findall(r"^```(python|ts|swift|yaml)\n(?!suite\.case)(.*?)^```$", text, re.M | re.S)
    for system, text in COMING.items()
}


@each_row("system", COMING)
def test_each_value_of_their_example_stands_in_ours(system: str) -> None:
    ((language, example),) = THEIRS[system]
    (ours,) = CASE.findall(COMING[system])
    if language == "python":
        ast.parse(example)
    if language in ("python", "swift"):
        values = re.findall(r'"([^"]+)"|(?<![\w.])(\d[\d.]*)', example)
        assert len(values) >= 4
        assert [text or number for text, number in values if (text or number) not in ours] == []
    else:
        assert imported(system, example) == case_of(COMING[system])


def imported(system: str, example: str) -> dict[str, Any]:
    """Return the case imported from an example. The example of Evalite gets the run of the page."""
    if system == "promptfoo":
        name, content = "promptfooconfig.yaml", example
    else:
        (data,) = re.findall(r"data: (\[.*?\]),\n", example)
        # YAML reads literals of JavaScript.
        (row,) = yaml.safe_load(data)
        ((said, score, _),) = SCORED.findall(COMING[system])
        output = [{"toolName": call["tool"], "input": call["arguments"]} for call in json.loads(said)]
        scores = [{"name": "Tool Call Accuracy", "score": float(score), "metadata": {"mode": "exact"}}]
        suite = {"name": "Weather", "evals": [{**row, "output": output, "scores": scores}]}
        name, content = "results.json", json.dumps({"run": {"runType": "full"}, "suites": [suite]})
    source = source_of(Path(name), content.encode())
    (form,) = forms_that_fit(source)
    (case,) = format_of(form).read(source).cases
    return {key: value for key, value in case.table.items() if key not in ("tags", "limits")}


FORMS = {
    "Arcade evals": "arcade",
    "Toolvaluator": "toolvaluator",
    "Evalite": "evalite",
    "The five-dimension evaluator": "dimensions",
    "promptfoo": "promptfoo",
}


@pytest.mark.parametrize("system", FORMS)
def test_the_import_writes_the_keys_that_a_section_marks(system: str, tmp_path: Path) -> None:
    name, content = SAMPLES[FORMS[system]]
    (tmp_path / name).write_bytes(content)
    import_file(ImportOptions(tmp_path / name, tmp_path / "made.toml"), Secrets())
    made = tomllib.loads((tmp_path / "made.toml").read_text(encoding="utf-8"))
    marked = re.findall(r"`((?:grading|limits)\.\S+ = [^`]+)` †", COMING[system])
    assert len(marked) >= 2
    for path, _, value in (each.partition(" = ") for each in marked):
        assert functools.reduce(dict.__getitem__, path.split("."), made) == tomllib.loads(f"value = {value}")["value"]


def test_the_script_of_the_five_dimensions_imports_as_the_case_of_its_section(tmp_path: Path) -> None:
    system = "The five-dimension evaluator"
    ((_, example),) = THEIRS[system]
    made = made_of(tmp_path, f"{SYSTEM}\nToolTestSuite(ToolEvaluator(TOOLS)).tests.append({example})\n")
    assert dict(made.cases[0].table) == case_of(COMING[system])
