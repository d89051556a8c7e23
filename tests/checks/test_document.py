"""The table in docs/checks.md says what really happens."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from tests.strategies import CHECK
from workbench.checks.evaluate import evaluate
from workbench.checks.kinds import CHECK_CLASSES, Check

DOCUMENT = Path(__file__).parents[2] / "docs" / "checks.md"
ROW = re.compile(r"^\| `(.+)` \| `(.+)` \| (yes|no) \| ([\d.]+) \|$", re.MULTILINE)

EXAMPLES = ROW.findall(DOCUMENT.read_text(encoding="utf-8"))


def written(check: str) -> Check:
    return CHECK.validate_python(tomllib.loads(f"check = {check}")["check"])


@pytest.mark.parametrize(("check", "value", "holds", "score"), EXAMPLES)
def test_an_example_is_true(check: str, value: str, holds: str, score: str) -> None:
    verdict = evaluate(written(check), json.loads(value))
    assert verdict.holds is (holds == "yes")
    assert verdict.score == pytest.approx(float(score), abs=0.5e-3)


def test_every_check_that_needs_no_help_has_an_example() -> None:
    shown = {written(check).kind for check, *_ in EXAMPLES}
    assert shown == CHECK_CLASSES.keys() - {"judged", "python"}
