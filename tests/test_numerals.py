"""Numbers have one spelling: on every surface, and in one module."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import workbench
from tests.api.conftest import CLOCK
from tests.cli.program import Program
from tests.integrations.sessions import session
from tests.show.html_page import page_of
from workbench.history.history import History
from workbench.show.spans import plain
from workbench.show.text import Paint
from workbench.tui.history.batches import HistoryList, detail_lines
from workbench.tui.run_book.stored_batches import LoadedBatches

ROOT = Path(__file__).parents[1] / "workbench"

NOT_FOR_SHOWING = {
    "analysis/published_reports.py": "numbers as the systems that are reproduced there round them",
    "analysis/statistics.py": "steps of a grid",
    "analysis/estimate.py": "an estimate in whole tokens",
    "remote/records.py": "whole milliseconds on a socket",
    "authoring/proposal.py": "a tolerance that is written into a suite",
    "engine": "microseconds in recordings",
    "grading/critics.py": "whole units of an assignment",
    "grading/dimensions.py": "a score that the reproduced system rounds",
    "grading/explanation.py": "a score that the reproduced system rounds",
    "grading/scoring.py": "a share of an argument, which is never shown as all or nothing",
    "exchange/observed/tee.py": "microseconds in recordings",
    "providers/http/endpoints.py": "microseconds in recordings",
    "providers/model.py": "microseconds in recordings",
    "show/html/charts.py": "coordinates of a drawing",
    "show/junit.py": "seconds of the format",
    "show/views/timing.py": "microseconds in JSON",
    "tools/audit.py": "microseconds in the audit log",
    "engine/server_calls.py": "microseconds in the audit log",
    "trajectory/fold.py": "microseconds in JSON",
    "dataclasses.py": "a bound of numbers in files",
    "tui/kit/line_view.py": "a row of a scroll bar",
    "tui/kit/list_screen.py": "cells of a pane",
    "tui/shell/panes.py": "cells of a pane",
}
"""Modules and folders that round for another reason than to show a number to a person, with that reason."""


MAY_SPELL = re.compile(r"\bround\(|:[^\n:\"' ]*[feEg%,]\}")
"""A filter by text, because parsing all modules takes seconds."""


def spellings(tree: ast.AST) -> list[int]:
    """The lines that spell a number: with `round(`, or with a format for decimals, per cent, digits or groups."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "round":
            found.append(node.lineno)
        if isinstance(node, ast.FormattedValue) and isinstance(node.format_spec, ast.JoinedStr):
            parts = node.format_spec.values
            spec = "".join(str(part.value) if isinstance(part, ast.Constant) else "0" for part in parts)
            if re.fullmatch(r"[^%]*[feEg%,]", spec):
                found.append(node.lineno)
    return found


def test_no_other_module_spells_a_number() -> None:
    found, needless = [], set(NOT_FOR_SHOWING)
    for path in sorted(ROOT.rglob("*.py")):
        name, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        lines = spellings(ast.parse(text)) if name != "numerals.py" and MAY_SPELL.search(text) else []
        allowed = {key for key in NOT_FOR_SHOWING if name == key or name.startswith(f"{key}/")} if lines else set()
        needless -= allowed
        found += [f"{name}:{line}" for line in lines] if not allowed else []
    assert not found, "workbench.numerals has functions for numbers"
    assert not needless


MORE = """
[[cases]]
name = "Thanks"
user = "Thank you!"
expect_no_calls = true
"""


def app_of(history: Path) -> str:
    with History(history) as stored:
        (batch,) = stored.batches()
    state = HistoryList()
    state.replace_all(LoadedBatches((batch,)))
    return "\n".join(map(plain, [state.layout.line(state.facts(batch), 100), *detail_lines(state, batch, 100)]))


@pytest.fixture(scope="module")
def surfaces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The same batch, of which two of three cases pass, on each surface."""
    folder = tmp_path_factory.mktemp("surfaces")
    suite, history = folder / "clock.toml", folder / "history.sqlite"
    suite.write_text(CLOCK + MORE, encoding="utf-8")
    report = workbench.evaluate(suite, models=["offline"], history=history)
    assert (report.totals.passed, report.totals.graded) == (2, 3)

    program = Program(folder)
    page = page_of(report)
    lines = report.summary_lines(width=100, paint=Paint(False), amount="much")
    return {
        "text": "\n".join(line for line in lines if " reports it:" not in line),  # that quotes another system
        "markdown": "".join(report.pieces("markdown")),
        "html": "\n".join((" ".join(page.texts), *page.runs)),
        "junit": "".join(report.pieces("junit")),
        "pytest": session(folder, "--workbench", "--workbench-model=offline", str(suite)).output,
        "history": program.run("history", "--history", str(history)).stdout,
        "show": program.run("history", "show", "1", "--history", str(history)).stdout,
        "app": app_of(history),
    }


MS = re.compile(r"\S+ ms")
SPELLINGS = {
    "rate": (r"\b66[.\d]* ?%", "66.7%", {"text", "markdown", "html", "pytest", "history", "show", "app"}),
    "mean": (r"\bmean score (\d\.\d+)", "0.67", {"text", "html", "pytest", "show"}),
    "latency": (r"\bp50 \S+ ms, p95 \S+ ms, .*? \S+ ms", "p50 MS, p95 MS, max MS", {"text", "html", "show"}),
}


@pytest.mark.parametrize("what", SPELLINGS)
def test_each_surface_spells_the_numbers_of_a_batch_alike(surfaces: dict[str, str], what: str) -> None:
    pattern, expected, on = SPELLINGS[what]
    found = {name: {MS.sub("MS", each) for each in re.findall(pattern, text)} for name, text in surfaces.items()}
    assert {name: spelled for name, spelled in found.items() if spelled} == {name: {expected} for name in on}
