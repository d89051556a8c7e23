"""A new kind of check is one class: everything that knows checks asks it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from workbench.checks.check import CHECK_CLASSES, CheckBase

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    """The results of the program in `new_kind` on the kind that it defines."""
    done = subprocess.run([sys.executable, "-m", "tests.checks.new_kind"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_new_kind_is_evaluated_and_described(told: dict[str, Any]) -> None:
    assert told["evaluated"] == [True, "no multiple", "not given"]
    assert told["described"] == "a multiple of 5"


def test_a_new_kind_is_read_written_and_refused_like_any_other(told: dict[str, Any]) -> None:
    assert told["written"] == {"multiple_of": 5, "least": 10}
    assert told["refused"] == [
        'must be a number, not the text "x"',
        "`most` is not an option of the check `multiple_of`",
    ]


def test_the_audit_knows_where_a_new_kind_never_holds(told: dict[str, Any]) -> None:
    of_text, of_choices, of_numbers = told["unreachable"]
    assert "never holds: a multiple of 5 never holds: it needs a number, and the schema requires string" in of_text
    assert "never holds: a multiple of 5 never holds: the schema allows only 1|2|3" in of_choices
    assert not [each for each in of_numbers if each.startswith("never holds")]


def test_a_mutant_of_a_run_misses_a_new_kind(told: dict[str, Any]) -> None:
    assert told["misses"] == -995


def test_the_form_offers_and_edits_a_new_kind(told: dict[str, Any]) -> None:
    assert told["offered"] == [["multiple_of: a multiple of this number"], []]
    assert told["changed"] == [
        {"multiple_of": 7},
        {"multiple_of": 6},
        "5",
        {"multiple_of": 5, "least": 10},
        ["least"],
        {"one_of": [5]},
    ]
    assert told["marked"] == "it needs a number, and the schema requires string"


def test_a_new_kind_has_its_rows_in_the_documentation(told: dict[str, Any]) -> None:
    assert told["documented"] == [
        "| `multiple_of = n` | a multiple of this number | `least` (`0`): the least multiple that holds |",
        "a number",
    ]


@pytest.mark.parametrize(
    ("part", "lacks"),
    [
        *((part, part) for part in ("written", "meaning", "typed", "types")),
        *((part, part) for part in ("describe", "evaluate", "samples", "from_replaced")),
        ("options", "options['least']"),
    ],
)
def test_a_kind_without_one_of_its_parts_cannot_be_defined(part: str, lacks: str) -> None:
    def nothing(check: Any, /) -> None:
        """Stand for a method."""

    parts = {
        "kind": "half",
        "written": "half = n",
        "meaning": "m",
        "typed": "t",
        "types": frozenset({"number"}),
        "describe": nothing,
        "evaluate": nothing,
        "samples": nothing,
        "from_replaced": classmethod(nothing),
        "options": {"least": "the least"},
        "half": 0,
        "least": 0,
    }
    kept = {name: value for name, value in parts.items() if name != part}
    annotations = {"half": int, "least": int}
    with pytest.raises(TypeError, match="the check half lacks") as refused:
        type("Half", (CheckBase,), {**kept, "__annotations__": annotations, "__module__": __name__})
    assert str(refused.value) == f"the check half lacks {lacks}"
    assert "half" not in CHECK_CLASSES
