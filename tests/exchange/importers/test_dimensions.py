"""Scripts of the five-dimension evaluator: their tests are imported, and scored as the published formula does."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from tests.trajectories import trajectory_of
from workbench.config.secrets import Secrets
from workbench.exchange.importers.forms import format_of
from workbench.exchange.importers.import_files import ImportedSuite, make_suite
from workbench.exchange.importers.scripts import gathered_sources, run_script
from workbench.exchange.importers.source_files import RefusedError
from workbench.grading.run import grade_run

SYSTEM = """
import re
import socket
from dataclasses import dataclass, field
from typing import Callable

UNITS = ["celsius", "fahrenheit"]

@dataclass
class ToolCallExpectation:
    tool_name: str
    required_params: dict = field(default_factory=dict)
    forbidden_params: list = field(default_factory=list)
    param_validators: dict[str, Callable] = field(default_factory=dict)

@dataclass
class TestCase:
    id: str
    description: str
    user_message: str
    expected_tool_calls: list = field(default_factory=list)
    expected_response_contains: list = field(default_factory=list)
    should_not_call_tools: bool = False
    max_tool_calls: int = 5

class ToolEvaluator:
    def __init__(self, tools, system_prompt=""):
        self.tools, self.system_prompt = tools, system_prompt

    def run(self, test):
        socket.create_connection(("api.anthropic.com", 443))

class ToolTestSuite:
    def __init__(self, evaluator):
        self.evaluator, self.tests = evaluator, []

    def run_all(self):
        for test in self.tests:
            self.evaluator.run(test)

TOOLS = [{"name": "get_weather", "description": "Weather", "input_schema": {"type": "object", "properties": {
    "city": {"type": "string"}, "units": {"type": "string"}, "days": {"type": "integer"}}}}]
"""
MAIN = """
def main():
    suite = ToolTestSuite(ToolEvaluator(TOOLS, "You know the weather."))
    suite.tests += [
        TestCase("T001", "Hanoi", "Weather in Hanoi?", [CALL], ["Hanoi"], max_tool_calls=2),
        TestCase("T002", "Small talk", "Hello!", should_not_call_tools=True),
    ]
    suite.run_all()

if __name__ == "__main__":
    main()
"""
Validators = Mapping[str, Callable[[Any], object]]


def made_of(folder: Path, script: str) -> ImportedSuite:
    file = folder / "eval_weather.py"
    file.write_text(script)
    source = run_script(file, file.read_bytes(), sys.executable, os.environ)
    (gathered,) = gathered_sources({file: source})
    form = format_of("dimensions")
    assert form.recognizes(gathered)
    imported = form.read(gathered)
    return make_suite(
        type(imported)(imported.cases, imported.suite | {"grading": dict(form.grading)}, imported.notes),
        "Weather",
        Path("made.toml"),
        Secrets(),
    )


def published_parameters(required: Mapping[str, Any], validators: Validators, given: Mapping[str, Any]) -> float:
    """Return the published score of the parameters of one expected call."""
    entries: list[float] = []
    for name, value in required.items():
        if name not in given:
            entries.append(0)
        else:
            entries.append(1 if value is None or given[name] == value else 0.5)
    for name, validator in validators.items():
        try:
            holds = name not in given or bool(validator(given[name]))
        except Exception:  # noqa: BLE001 - a validator that raises has failed
            holds = False
        if not holds:
            entries.append(0)
    return fmean(entries) if entries else 1.0


@pytest.mark.parametrize(
    ("required", "validators"),
    [
        ({"city": "Hanoi"}, {"units": "lambda x: x in UNITS"}),
        ({"city": "Hanoi", "days": 5}, {"city": "lambda c: c.startswith(('H', 'D'))", "days": "lambda d: 1 <= d <= 7"}),
        ({"city": None}, {"city": "lambda c: isinstance(c, str) and len(c) > 2", "days": "lambda d: not d > 6"}),
        ({}, {"city": r"lambda c: re.match(r'[A-Z]\\w+', c) is not None", "days": "lambda d: d not in (1, 2)"}),
        (
            {"city": "hanoi"},
            {"city": "lambda c: c.lower() == 'hanoi' or 'oi' in c.lower()", "units": "lambda u: u != ''"},
        ),
    ],
)
def test_a_script_scores_as_its_own_functions_do(required: Any, validators: dict[str, str], tmp_path: Path) -> None:
    written = ", ".join(f"{name!r}: {code}" for name, code in validators.items())
    call = f"CALL = ToolCallExpectation('get_weather', {required!r}, ['country'], {{{written}}})"
    made = made_of(tmp_path, SYSTEM + call + MAIN)
    suite = made.file.suite
    assert suite is not None
    assert [note.why for case in made.cases for note in case.notes] == []
    namespace: dict[str, Any] = {}
    exec(SYSTEM, namespace)
    functions = {name: eval(code, namespace) for name, code in validators.items()}
    for city in ("Hanoi", "hanoi", "Hue", "rome", None):
        for more in ({}, {"units": "celsius"}, {"units": "kelvin", "days": 5}, {"days": 9}, {"days": 1, "units": ""}):
            given: dict[str, Any] = ({} if city is None else {"city": city}) | more
            (grade, *_), _ = grade_run(
                suite, suite.cases[0], trajectory_of(("get_weather", given), answer="Hanoi: sun")
            )
            assert grade.grader == "dimensions"
            expected = published_parameters(required, functions, given)
            assert grade.numbers["parameters"] == pytest.approx(expected), (given, grade.issues)
            assert grade.score == round(0.3 + 0.3 + 0.3 * expected + 0.1, 3)


def test_a_script_runs_until_it_would_ask_a_model(tmp_path: Path) -> None:
    code = "def odd(days):\n    for _ in range(3):\n        days += 1\n    return days % 2\n"
    call = "CALL = ToolCallExpectation('get_weather', {'city': None}, param_validators={'days': odd, 'city': len})\n"
    made = made_of(tmp_path, SYSTEM + code + call + MAIN)
    suite = made.file.suite
    assert suite is not None
    hanoi, talk = suite.cases
    assert (suite.system, [tool.name for tool in suite.tools]) == ("You know the weather.", ["get_weather"])
    assert (hanoi.id, hanoi.name, hanoi.response_contains) == ("T001", "Hanoi", ("Hanoi",))
    assert (hanoi.limits.max_tool_calls, hanoi.limits.max_rounds, talk.expect_no_calls) == (2, 3, True)
    notes = [note.why for case in made.cases for note in case.notes]
    assert [note.partition(":")[0] for note in notes] == [
        f"the validator of {name} is not mapped" for name in ("days", "city")
    ]


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("import nothing_of_that_name\nTestCase()", "ModuleNotFoundError"),
        ("class TestCase: ...\nTestCase()", "none of user_message, user_input"),
        ("class TestCase: ...\nprint(TestCase (1) if 0 else 2)", "makes no TestCase"),
    ],
)
def test_what_is_not_such_a_script_is_refused(script: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match=said):
        made_of(tmp_path, script)
