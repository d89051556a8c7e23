"""A chain in the app: its steps in the tree, their targets, and its grades."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.chains import chain_happenings, step_happenings
from tests.trajectories import CallSpec
from tests.tui.apps import Opened, opened, opening, suites_in
from workbench.engine.plan import PlannedRun
from workbench.show.views.run_items import StepItem
from workbench.trajectory.events import EventPayload
from workbench.tui.case.form.view import FormView
from workbench.tui.grades.screen import GradesScreen
from workbench.tui.trajectory.view import RunList
from workbench.tui.tree.view import SuiteTree

CHAIN = """
format = 1
name = "Sums"

[[cases]]
name = "Sum"

[[cases.steps]]
user = "Add 2 and 3, then halve it."
system = "You are a math expert."
tool = "add"
args = { a = 2, b = 3 }
mock_result = "5"

[[cases.steps]]
tool = "halve"
args = { a = 5 }

[[cases.steps]]
user = "Thank you."

[[tools]]
name = "add"

[[tools]]
name = "halve"
""".lstrip()
ADD: CallSpec = ("add", {"a": 2, "b": 3})
WRONG: CallSpec = ("halve", {"a": 4})
ANSWERS: Sequence[Sequence[CallSpec]] = ([ADD], [WRONG], [])


def happenings(run: PlannedRun) -> list[EventPayload]:
    return chain_happenings(*ANSWERS, start=opening(run))


async def made(app: Opened) -> None:
    """Run the chain, to its end."""
    await app.press("1", "home", "down", "down")
    (run,) = await app.run("r")
    app.session.finish(run, happenings(run))
    app.session.end_batch()
    await app.settle()


def step_in_form(app: Opened) -> object:
    row = app.app.main.query_one(FormView).page.current
    return row.place if row is not None else None


def step_in_run(app: Opened) -> object:
    shown = app.app.main.query_one("#run", RunList)
    assert shown.cursor == shown.top + 1 or shown.top == shown.last_top
    return shown.item.step if isinstance(shown.item, StepItem) else shown.item


def steps(app: Opened) -> list[str]:
    tree = app.app.main.query_one("#suites", SuiteTree)
    lines = ("".join(span.text for span in tree.line_at(index)) for index in range(2, tree.line_count()))
    return [" ".join(line.split()) for line in lines]


async def test_the_steps_of_a_chain_follow_its_run_and_its_edits(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, sums=CHAIN), size=(160, 48)) as app:
        await app.press("home", "down", "down")
        assert steps(app) == ["· ▾ Sum", "1 add", "2 halve", "3 no call"]
        (run,) = await app.run("r")
        app.session.say(run, *happenings(run)[:2])
        await app.settle()
        assert steps(app)[1:] == ["… 1 add running", "… 2 halve waiting", "… 3 no call waiting"]
        app.session.finish(run, happenings(run))
        app.session.end_batch()
        await app.settle()
        assert steps(app)[1:] == ["✓ 1 add 1.00", "✗ 2 halve 0.50", "✓ 3 no call 1.00"]
        form = app.app.main.query_one(FormView)
        await app.press("2")
        form.go_to(("steps", 1, "args", "a"))
        form.page.go(form.page.row)
        await app.press("enter", "backspace", "4", "enter")
        await app.until(lambda: steps(app)[2] == "✓ 2 halve 1.00")
        assert "no model call" in app.screen


async def test_a_step_shows_its_part_of_the_form_and_of_the_run(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, sums=CHAIN), size=(120, 20)) as app:
        await made(app)
        await app.press("down", "down")
        assert step_in_form(app) == ("steps", 1)
        assert step_in_run(app) == 2
        await app.press("down")
        assert step_in_form(app) == ("steps", 2)
        assert step_in_run(app) == 3
        await app.press("up", "2", "down", "down")
        place = step_in_form(app)
        await app.press("1")
        app.app.main.show_selected()
        assert step_in_form(app) == place, "only a step that is newly come to moves the cursor"


async def test_a_step_is_found_in_the_toml_too(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, sums=CHAIN), size=(120, 20)) as app:
        await app.press("1", "home", "down", "down", "o", "1", "down", "down")
        view = app.app.main.case_pane.toml.view
        assert view.excerpt is not None
        assert view.excerpt.lines[view.line : view.line + 2] == ("[[cases.steps]]", 'tool = "halve"')


async def test_the_step_under_way_is_followed_and_one_before_it_stands_still(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, sums=CHAIN), size=(120, 20)) as app:
        await app.press("1", "home", "down", "down")
        (run,) = await app.run("r")
        app.session.say(run, *[*happenings(run)[:7], *step_happenings(2, [WRONG])])
        await app.settle()
        shown = app.app.main.query_one("#run", RunList)
        await app.press("down")
        assert not shown.is_following
        assert step_in_run(app) == 1
        await app.press("down")
        assert shown.is_following
        await app.press("down")
        assert shown.is_following, "what has not begun is not gone to"


async def test_a_chain_s_grades_name_its_steps(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, sums=CHAIN), size=(160, 48)) as app:
        await made(app)
        await app.press("equals_sign")
        assert isinstance(app.app.screen, GradesScreen)
        assert "Steps, each on its own" in app.screen
        assert "✗ step 2  0.50" in app.screen
        await app.press("down")
        assert "step 3  no call expected" in app.screen


async def test_the_failures_and_the_audit_take_chains(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, sums=CHAIN), size=(120, 36)) as app:
        await made(app)
        await app.press("f")
        assert "wrong argument" in app.screen
        assert "halve.a" in app.screen
        await app.press("escape", "exclamation_mark")
        assert "Audit" in app.screen
        assert "3 findings" in app.screen
