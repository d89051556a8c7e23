"""Equal runs are independent: one run's effects on its tools do not affect another's."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import workbench
from tests.cli.program import Program
from tests.tables import each_row
from workbench.authoring.case_list import has_same_grading
from workbench.engine.plan import plan_runs, sends_same_requests
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
    """Add two items, and answer with the tool's text."""
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
    assert problem.message == '"mocks" has another `state` than at mocks[0], but a module has only one'


SHOP = """format = 1
name = "Shop"

[[tools]]
name = "get_order"
annotations = { readOnlyHint = true }
parameters = { type = "object", properties = { id = { type = "string" } } }

[[tools]]
name = "pay_order"
parameters = { type = "object", properties = { id = { type = "string" }, tip = { type = "number" } } }

[[tools]]
name = "open_order"
parameters = { type = "object", properties = { id = { type = "string" } } }

[[mocks]]
tool = "get_order"
python = "shop:get"

[[mocks]]
tool = "pay_order"
python = "shop:pay"

[[mocks]]
tool = "open_order"
python = "shop:open_order"
"""

SHOP_CODE = """
ORDERS = {}

def open_order(arguments):
    ORDERS[arguments["id"]] = {"status": "open"}
    return "opened"

def pay(arguments):
    ORDERS[arguments["id"]]["status"] = "paid"
    return "done"

def get(arguments):
    return ORDERS[arguments["id"]]
"""

CASE = """
[[cases]]
name = "Pay"
user = "Pay A17."
offer = ["get_order", "pay_order"]
{limits}
[[cases.setup]]
tool = "open_order"
args = {{ id = "A17" }}
{final}
"""


def case_with(final: str, limits: str = "") -> str:
    return CASE.format(final=final, limits=limits)


STATE = (
    '[[cases.final.state]]\ntool = "get_order"\nargs = { id = "A17" }\nresult = { has_fields = { status = "paid" } }\n'
)
ONE_CHANGE = '[cases.final]\nchanges = [{ tool = "pay_order", args = { id = "A17" }, only_args = true }]\n'


def model_of(*calls: tuple[str, dict[str, Any]]) -> Any:
    """Return an agent that makes all calls in one answer, and then answers with text."""

    async def agent(request: Any) -> Any:
        if request.results:
            return "Done."
        return [workbench.call(tool, **arguments) for tool, arguments in calls] or "No."

    return agent


PAID = ("pay_order", {"id": "A17"})
LOOKED = ("get_order", {"id": "A17"})


def shop(
    folder: Path, final: str, *calls: tuple[str, dict[str, Any]], text: str = SHOP, limits: str = "", **options: Any
) -> Any:
    (folder / "shop.py").write_text(SHOP_CODE)
    path = folder / "shop.toml"
    path.write_text(text + case_with(final, limits))
    report = workbench.evaluate(path, model=model_of(*calls), approve=workbench.ALL, **options)
    (result,) = report.results
    return result


@pytest.mark.parametrize(
    ("final", "calls", "status", "says"),
    [
        (STATE, [PAID], "passed", ""),
        (STATE, [LOOKED], "failed", 'status: expected "paid", got "open"'),
        (STATE.replace('"A17"', '"B2"'), [PAID], "failed", "\"B2\"}: the tool answered with an error: KeyError: 'B2'"),
        (ONE_CHANGE, [PAID, LOOKED], "passed", ""),
        (ONE_CHANGE, [LOOKED], "failed", "expects this call to succeed, and no such call was made"),
        (ONE_CHANGE, [PAID, PAID], "failed", "does not list this call, which succeeded"),
        (ONE_CHANGE, [("pay_order", {"id": "A17", "tip": 2})], "failed", "tip: must not be given"),
        (ONE_CHANGE, [("pay_order", {"id": "B2"})], "failed", "and the call failed"),
        ("[cases.final]\nchanges = []", [("pay_order", {"id": "B2"}), LOOKED], "passed", ""),
        ("[cases.final]\nchanges = []", [PAID], "failed", "does not list this call"),
        ('[cases.final]\nchanges = []\nreaders = ["pay_*"]', [PAID], "passed", ""),
        (ONE_CHANGE + STATE, [PAID], "passed", ""),
    ],
)
def test_final_decides_by_the_changes_of_a_run_and_the_state_that_it_leaves(
    tmp_path: Path, final: str, calls: list[Any], status: str, says: str
) -> None:
    result = shop(tmp_path, final, *calls)
    assert result.status == status, result.error
    assert result.score is None
    assert says in "; ".join(issue.why for grade in result.grades[:1] for issue in grade.issues if issue.decides)
    assert [call.content for call in result.trajectory.setup_calls] == ["opened"]
    assert len(result.trajectory.final_calls) == final.count("cases.final.state")


def test_a_call_of_setup_that_fails_makes_the_run_an_error_that_names_it(tmp_path: Path) -> None:
    result = shop(tmp_path, '[[cases.setup]]\ntool = "get_order"\nargs = { id = "B2" }', PAID)
    assert (result.status, result.error) == ("error", "setup[1], get_order, failed: KeyError: 'B2'")


def test_a_state_that_nothing_can_tell_is_an_error(tmp_path: Path) -> None:
    unmocked = SHOP.replace('[[mocks]]\ntool = "get_order"\npython = "shop:get"\n', "")
    result = shop(tmp_path, STATE, PAID, text=unmocked)
    assert result.status == "error"
    assert "final.state[0], get_order, failed: neither a mock nor a server answers this call" in result.error


def test_a_function_of_setup_that_does_not_exist_is_named_with_its_call(tmp_path: Path) -> None:
    result = shop(tmp_path, STATE, PAID, text=SHOP.replace("shop:open_order", "shop:opened"))
    assert result.status == "error"
    assert "setup[0], open_order, failed: shop:opened cannot be loaded" in result.error


def test_a_call_of_setup_that_does_not_end_is_given_up(tmp_path: Path) -> None:
    slow = SHOP.replace('python = "shop:open_order"', 'result = "opened"\ndelay_ms = 60000')
    result = shop(tmp_path, STATE, PAID, text=slow, limits="limits = { timeout_s = 0.05 }")
    assert result.status == "error"
    assert "setup[0], open_order, failed: no answer within 0.05 s" in result.error


@pytest.mark.parametrize(
    ("final", "code", "says"),
    [
        (STATE, 0, "1 passed"),
        (STATE.replace("paid", "sent"), 1, 'status: expected "sent", got "paid"'),
        (ONE_CHANGE, 0, "1 passed"),
        (STATE.replace("get_order", "open_order"), 3, "after the run, open_order"),
    ],
)
def test_a_recorded_run_is_graded_again_by_what_its_tools_said_then(
    tmp_path: Path, final: str, code: int, says: str
) -> None:
    shop(tmp_path, STATE, PAID, record=tmp_path / "runs")
    (tmp_path / "shop.toml").write_text(SHOP + case_with(final))
    done = Program(tmp_path).run("grade", "runs", "--suite", "shop.toml")
    assert (done.returncode, says in done.stdout + done.stderr) == (code, True), done.stdout + done.stderr


SERVERS = """format = 1
name = "Shop"
execute = true

[[servers]]
name = "shop"
command = ["shop"]
{state}

[[cases]]
name = "One"
user = "Pay."
final = {{ state = [{{ tool = "get_order", result = 1 }}] }}
"""


@each_row(
    ("text", "place", "message"),
    [
        (SERVERS.format(state=""), "servers[0].state", "all runs share this state"),
        (SERVERS.format(state='state = "run"'), "", ""),
        (SERVERS.format(state="") + '[[mocks]]\ntool = "get_order"\nresult = 1\n', "tool", "answers the same whatever"),
        (SHOP + case_with(STATE), "", ""),
        (
            SHOP.replace(":get", ':get"\nstate = "batch')
            .replace(":pay", ':pay"\nstate = "batch')
            .replace(":open_order", ':open_order"\nstate = "batch')
            + case_with(STATE),
            "mocks[0].state",
            "all runs share this state",
        ),
        (SERVERS.format(state='state = "each"'), "servers[0].state", 'must be `run` or `batch`, not the text "each"'),
        (SHOP + case_with("[cases.final]"), "final", "`final` needs `changes`, `says`, `state` or `goal`"),
        (SHOP + case_with('[cases.final]\nreaders = ["x"]\nstate = []'), "readers", "needs `changes`"),
        (SHOP + case_with(STATE.replace("paid", 'paid", goal = "x')), "", ""),
        (SHOP + case_with(STATE + "weight = 1"), "weight", "unknown key `weight` in a final state"),
        (SHOP + case_with(STATE.replace("{ has", "{ weight = 1, has")), "weight", "has no meaning in `final`"),
        (SHOP + case_with("[cases.final]\nsaid = ['x']\nchanges = []"), "said", "unknown key `said`"),
        (SHOP + case_with(STATE.replace('"get_order"', '"got_order"')), "tool", "calls 'got_order', but there"),
    ],
)
def test_a_suite_is_told_what_is_wrong_or_shared(text: str, place: str, message: str) -> None:
    found = [f"{problem.where}: {problem.message}" for problem in parse_suite(text, Path("shop.toml")).problems]
    assert any(place in each and message in each for each in found) if message else found == [], found


RENAMED = """
[[variants]]
name = "renamed"
changes = [
  { tool = "open_order", name = "begin_order", arguments = { id = "order" } },
  { tool = "pay_order", name = "settle", arguments = { id = "order" } },
  { tool = "get_order", name = "show_order", arguments = { id = "order" } },
]
"""


def test_a_variant_that_renames_tools_renames_them_in_setup_and_final(tmp_path: Path) -> None:
    final = ONE_CHANGE + STATE
    (tmp_path / "shop.py").write_text(SHOP_CODE.replace('"id"', '"order"'))
    path = tmp_path / "shop.toml"
    path.write_text(SHOP + RENAMED + case_with(final))
    settling = model_of(("settle", {"order": "A17"}))
    report = workbench.evaluate(path, model=settling, variants=["renamed"], approve=workbench.ALL)
    renamed = report.results[-1]
    assert (renamed.model, str(renamed.status)) == ("agent × renamed", "passed"), renamed.error
    assert [call.tool for call in renamed.trajectory.own_calls] == ["begin_order", "show_order"]


@pytest.mark.parametrize(
    ("before", "after", "asked_alike", "graded"),
    [
        ('id = "A17" }\nresult', 'id = "B2" }\nresult', True, False),
        ('status = "paid"', 'status = "sent"', True, False),
        ('id = "A17" }\n[[cases.final', 'id = "B2" }\n[[cases.final', False, True),
        ("", "", True, True),
    ],
)
def test_another_setup_is_another_question_and_another_final_another_verdict(
    before: str, after: str, asked_alike: bool, graded: bool
) -> None:
    text = SHOP + case_with(STATE)
    file = parse_suite(text, Path("shop.toml"))
    (run,) = plan_runs([file], models=("offline",))
    assert before in text
    now = parse_suite(text.replace(before, after) if before else text, Path("shop.toml")).suite
    assert now is not None
    assert sends_same_requests(run, now, now.cases[0]) is asked_alike
    assert has_same_grading(run, now, now.cases[0]) is graded
