"""The documentation of checks and statuses follows from their classes, and its examples are true."""

from __future__ import annotations

import json
import os
import re
import tomllib
from pathlib import Path

import pytest

from tests.strategies import CHECK
from tests.tables import each_row
from workbench.analysis.causes import ADVICE, CAUSES
from workbench.checks.check import CHECK_CLASSES, Check, evaluate
from workbench.grading.status import Status

DOCUMENT = Path(__file__).parents[2] / "docs" / "checks.md"
ROW = re.compile(r"^\| `(.+)` \| `(.+)` \| (yes|no) \| ([\d.]+) \|$", re.MULTILINE)

EXAMPLES = ROW.findall(DOCUMENT.read_text(encoding="utf-8"))


def written(check: str) -> Check:
    return CHECK.validate_python(tomllib.loads(f"check = {check}")["check"])


@each_row(("check", "value", "holds", "score"), EXAMPLES)
def test_an_example_is_true(check: str, value: str, holds: str, score: str) -> None:
    verdict = evaluate(written(check), json.loads(value))
    assert verdict.holds is (holds == "yes")
    assert verdict.score == pytest.approx(float(score), abs=0.5e-3)


def test_every_check_that_needs_no_help_has_an_example() -> None:
    shown = {written(check).kind for check, *_ in EXAMPLES}
    assert shown == CHECK_CLASSES.keys() - {"judged", "python"}


def form_rows() -> list[str]:
    """The rows of the form's table: checks whose values are typed alike share one."""
    names: dict[str, list[str]] = {}
    for cls in CHECK_CLASSES.values():
        names.setdefault(cls.typed, []).append(f"`{cls.form_name}`")
    return [f"| {', '.join(alike)} | {typed} |" for typed, alike in names.items()]


def status_row(status: Status) -> str:
    return f"| {status.sign} | {status.ascii} | {status} | {status.meaning} |"


def cause_rows() -> list[str]:
    return [f"{number}. {cause}: {ADVICE[cause].meaning}" for number, cause in enumerate(CAUSES, start=1)]


@pytest.mark.parametrize(
    ("page", "head", "rows"),
    [
        ("checks.md", "| check | holds for | options (default) |", [cls.row() for cls in CHECK_CLASSES.values()]),
        ("authoring.md", "| check | value as you type it |", form_rows()),
        ("glossary.md", "| sign | ASCII | status | meaning |", [*map(status_row, Status)]),
        ("results.md", "runs with another main cause are dimmed.", cause_rows()),
    ],
)
def test_the_rows_of_checks_statuses_and_causes_are_made_of_them(page: str, head: str, rows: list[str]) -> None:
    file = DOCUMENT.with_name(page)
    before, after = file.read_text(encoding="utf-8").split(f"{head}\n", 1)
    line, _, rest = after.partition("\n")
    _, end, rest = rest.partition("\n\n")
    table = "\n".join([line, *rows])
    if os.environ.get("UPDATE_GOLDENS"):
        file.write_text(f"{before}{head}\n{table}{end}{rest}", encoding="utf-8")
    assert after.startswith(f"{table}\n\n"), "run the tests once with UPDATE_GOLDENS=1"
