"""The calls of `setup` and `final` are labelled wherever a run is shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.results import result
from tests.show.html_page import Page
from workbench.grading.grade import Grade, Issue
from workbench.grading.status import Status
from workbench.show.spans import plain
from workbench.show.text import Paint
from workbench.show.views.copied_text import copied_text
from workbench.show.views.run_items import SuiteCallItem
from workbench.show.views.run_lines import lines_of
from workbench.show.views.run_view import RunView
from workbench.show.views.trajectory import StepLines, trajectory_lines
from workbench.trajectory.events import Event, EventPayload, OwnCallAnswered, RunFinished, RunStarted
from workbench.trajectory.fold import fold

SETUP = OwnCallAnswered("setup", "open", {"id": "A17"}, "opened", False, "suite mock", 2.0)
FINAL = OwnCallAnswered("final", "get", {"id": "A17"}, '{"status": "open"}', True, "server", 3.0, "shop")
PAYLOADS: tuple[EventPayload, ...] = (
    RunStarted("hash", "pay", "Pay", "model", None, (), ()),
    SETUP,
    FINAL,
    RunFinished("error", "final.state[0], get, failed"),
)
EVENTS = [Event("r", number, number * 10.0, payload) for number, payload in enumerate(PAYLOADS)]

LINES = [
    'setup  open(id="A17")  ← suite mock · 2 ms  opened',
    'final  get(id="A17")  ← server shop · 3 ms · error  {"status": "open"}',
]


def test_the_steps_of_a_run_name_them_and_their_time_is_not_that_of_the_agent() -> None:
    steps = StepLines(Paint(False), verbose=False, width=200)
    assert [line for event in EVENTS for line in steps.lines(event)] == LINES
    trajectory = fold(EVENTS)
    assert list(trajectory_lines(trajectory)) == LINES
    assert (trajectory.setup_calls, trajectory.final_calls) == ((SETUP,), (FINAL,))
    assert (trajectory.duration_ms, trajectory.loop_ms) == (30.0, 10.0)


@pytest.mark.parametrize("width", [24, 80])
def test_the_app_shows_each_with_its_result(width: int) -> None:
    view = RunView()
    for event in EVENTS:
        view.add(event)
    items = [item for item in view.items if isinstance(item, SuiteCallItem)]
    assert [item.call for item in items] == [SETUP, FINAL]
    shown = "\n".join(plain(line) for item in items for line in lines_of(item, width))
    assert all(len(line) <= width for line in shown.split("\n"))
    if width == 80:
        assert 'setup  open(id="A17")' in shown
        assert "← server shop · 3 ms · error" in shown
        assert '{"status": "open"}' in shown
    assert copied_text(items[0]) == ('open {"id": "A17"}\nopened', "the call and its result")


@pytest.mark.parametrize(
    ("status", "why", "holds", "head"),
    [
        ("passed", "", True, "final  ✓ get("),
        ("failed", 'get {"id": "A17"}: wrong', False, "final  ✗ get("),
        ("failed", 'get {"id": "B2"}: wrong', True, "final  ✓ get("),
        ("error", "", None, "final  get("),
    ],
)
def test_a_state_is_marked_once_the_run_is_graded(status: str, why: str, holds: bool | None, head: str) -> None:
    view = RunView()
    for event in EVENTS:
        view.add(event)
    issues = (Issue("final state", why, decides=True),) * bool(why)
    grade = Grade("critics", None, Status.PASSED, "", issues=issues, status=Status(status))
    view.grade(result(Status(status), trajectory=fold(EVENTS), grade=grade))
    (item,) = (item for item in view.items if isinstance(item, SuiteCallItem) and item.call is FINAL)
    assert item.holds is holds
    assert head in plain(lines_of(item, 80)[0])


SUITE = """format = 1
name = "Shop"
tools = [{ name = "open" }, { name = "get", annotations = { readOnlyHint = true } }]
mocks = [{ tool = "open", result = "opened" }, { tool = "get", result = { status = "open" } }]

[[cases]]
name = "Pay"
user = "Pay it."
setup = [{ tool = "open" }]

[cases.final]
changes = [{ tool = "open" }]
state = [{ tool = "get", result = { has_fields = { status = "paid" } } }]
"""


def test_reports_show_what_was_set_up_what_was_said_and_what_is_wrong(tmp_path: Path) -> None:
    program = Program(tmp_path)
    program.write("shop.toml", SUITE)
    done = program.run("run", "shop.toml", "--report", "r.json", "--report", "r.html", "--report", "r.md")
    assert done.returncode == 1
    assert "final state" in done.stdout
    (run,) = json.loads((tmp_path / "r.json").read_text())["runs"]
    assert [(call["stage"], call["tool"], call["content"]) for call in run["own_calls"]] == [
        ("setup", "open", "opened"),
        ("final", "get", '{"status":"open"}'),
    ]
    kinds = [issue["kind"] for issue in run["grades"][0]["issues"]]
    assert kinds == ["missing change", "final state"]
    (shown,) = Page((tmp_path / "r.html").read_text()).runs
    assert "setup, by the suite" in shown
    assert "changed by open, with any arguments" in shown
    assert 'get() returns {status: "paid", …}' in shown
    assert "expected {status: " in (tmp_path / "r.md").read_text()
