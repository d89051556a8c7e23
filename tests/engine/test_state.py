"""Equal runs do not see each other: what one run does to its tools is nothing to another."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import workbench
from workbench.suite.suite_file import parse_suite

CART = """format = 1
name = "Cart"

[[tools]]
name = "add_item"
parameters = {{ type = "object", properties = {{ name = {{ type = "string" }} }} }}

[[mocks]]
tool = "add_item"
python = "mocks:add"
{state}

[[cases]]
name = "Two apples"
user = "Add two apples."
response_contains = ["1 2"]

[[cases]]
name = "Two pears"
user = "Add two pears."
response_contains = ["1 2"]
"""

MOCKS = """
from . import shelf

def add(arguments):
    shelf.ITEMS.append(arguments)
    return str(len(shelf.ITEMS))
"""


async def shopper(request: Any) -> Any:
    """Add two items, and answer with what the tool said."""
    if not request.results:
        return [workbench.call("add_item", name="apple"), workbench.call("add_item", name="another")]
    return " ".join(result.content for result in request.results)


def statuses(path: Path, **options: Any) -> list[str]:
    report = workbench.evaluate(path, model=shopper, approve=workbench.ALL, repeats=3, concurrency=5, **options)
    return sorted(str(result.status) for result in report.results)


@pytest.mark.parametrize(("state", "passed"), [("", 6), ('state = "run"', 6), ('state = "batch"', 1)])
def test_each_run_loads_the_modules_of_its_mocks_unless_the_batch_shares_them(
    tmp_path: Path, state: str, passed: int
) -> None:
    (tmp_path / "mocks.py").write_text(MOCKS)
    (tmp_path / "shelf.py").write_text("ITEMS = []\n")
    suite = tmp_path / "cart.toml"
    suite.write_text(CART.format(state=state))
    before = {name for name in sys.modules if name.startswith("_workbench_suite")}
    found = Counter(statuses(suite))
    if state == 'state = "batch"':
        assert found["passed"] <= passed
    else:
        assert found == {"passed": passed}
        assert {name for name in sys.modules if name.startswith("_workbench_suite")} == before


def test_two_states_of_one_module_are_a_mistake() -> None:
    text = CART.format(state='state = "batch"') + '[[cases.mocks]]\ntool = "add_item"\npython = "mocks:other"\n'
    (problem,) = parse_suite(text, Path("cart.toml")).problems
    assert problem.where == "cases[1].mocks[0].python"
    assert problem.message == '"mocks" has another state than at mocks[0], and a module has one'
