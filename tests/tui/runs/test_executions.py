"""The question whether a tool may be executed for real: one at a time, shown in full, never answered by accident."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.apps import NEEDY, SMART_HOME, Opened, opened, suites_in
from tests.tui.calm import Gate
from workbench.authoring.workspace import is_stale
from workbench.config.secrets import Secrets
from workbench.engine.plan import PlannedRun
from workbench.suite.suite_file import SuiteFile
from workbench.trajectory.events import (
    ExecutionProgress,
    ExecutionStarted,
    JsonValue,
    ResultReceived,
    Resumed,
    RunFinished,
    ToolDefinition,
)
from workbench.trajectory.trajectory import Trajectory
from workbench.tui.kit.dialogs import TextView
from workbench.tui.runs import start
from workbench.tui.runs.dialogs import ExecutionScreen, ManualExecutionScreen, TrustScreen
from workbench.tui.shell.main_screen import MainScreen

SEND = ToolDefinition(
    "send_email", "Sends an e-mail.", annotations={"destructiveHint": True, "x": [1]}, server="office"
)


async def asked(app: Opened, run: PlannedRun, tool: ToolDefinition = SEND, **arguments: JsonValue) -> None:
    app.session.ask(run, tool, arguments)
    await app.until(lambda: isinstance(app.app.screen, ExecutionScreen))


async def ready(app: Opened) -> None:
    """Wait until keys are taken as answers."""
    await app.until(lambda: "Esc no" in app.screen)


async def test_everything_that_would_be_called_is_shown_and_a_yes_goes_to_the_session(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        (run,) = await app.run("r")
        await asked(app, run, to="ann@example.com", body="Hello\n\x1b[31m[b]Ann[/b]\u202e")
        for said in (
            "smart_home › Movie night, on offline (baseline)",
            "server  office",
            "tool    send_email",
            "Sends an e-mail.",
            "destructive · x [1]",
            '"to": "ann@example.com"',
            '"body": "Hello\\n\\u001b[31m[b]Ann[/b]<U+202E>"',
            "once      this call only",
            "this run  this tool, until this run ends",
        ):
            assert said in app.screen
        await ready(app)
        await app.press("1")
        assert app.session.allowed == [(run.run_id, "c0", "call")]
        assert isinstance(app.app.screen, MainScreen)
        assert "send_email is executed this once in Movie night" in app.screen


async def test_behind_a_question_the_summary_of_the_suite_counts_what_is_done(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        await app.press("home", "down", "left")
        first, second, _ = await app.run("R")
        app.session.say(first, RunFinished("answered"))
        app.session.grade(first, Trajectory(first.run_id))
        await app.settle()
        await asked(app, second)
        (counts, _), *_ = app.app.main.run_pane.run_list._text
        assert counts.endswith("2 not run")


@pytest.mark.slow
async def test_a_tool_is_allowed_until_its_run_ends(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        (run,) = await app.run("r")
        await asked(app, run)
        await ready(app)
        await app.press("2")
        assert app.session.allowed == [(run.run_id, "c0", "run")]
        assert "send_email is executed in Movie night" in app.screen


@pytest.mark.slow
async def test_no_and_escape_are_a_no_and_so_is_enter_where_the_cursor_begins(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        runs = await app.run("R")
        for run, key in zip(runs, ("escape", "enter", "escape"), strict=True):
            await asked(app, run)
            await ready(app)
            await app.press(key)
            await app.until(lambda: isinstance(app.app.screen, MainScreen))
        assert app.session.allowed == [(run.run_id, "c0", "no") for run in runs]


@pytest.mark.slow
async def test_a_tool_is_allowed_for_all_runs_of_a_batch_and_for_no_other_tool_or_batch(tmp_path: Path) -> None:
    other = ToolDefinition("delete_email", "Deletes an e-mail.", server="office")
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        first, second, third = await app.run("R")
        await asked(app, first)
        app.session.ask(second, SEND, {})
        await ready(app)
        await app.press("3")
        await app.until(lambda: isinstance(app.app.screen, MainScreen))
        assert app.session.allowed == [(first.run_id, "c0", "run"), (second.run_id, "c0", "run")]
        assert "send_email is executed in all runs of this batch of smart_home.toml" in app.screen
        await asked(app, third, other)
        await ready(app)
        await app.press("escape")
        for run in (first, second, third):
            app.session.say(run, RunFinished("stopped"), first=5)
            app.session.grade(run, Trajectory(run.run_id))
        app.session.end_batch()
        await app.settle()
        (again, *_) = await app.run("R")
        await asked(app, again)
        assert len(app.session.allowed) == 3


async def test_a_key_pressed_as_the_question_appears_answers_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ExecutionScreen, "ANSWER_DELAY_S", 60.0)  # however slow this machine is, these keys come early
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        (run,) = await app.run("r")
        await asked(app, run)
        await app.press("1", "enter", "2", "escape")
        assert isinstance(app.app.screen, ExecutionScreen)
        assert app.session.allowed == []


async def test_a_key_pressed_as_trust_is_asked_for_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suites = suites_in(tmp_path, needy=NEEDY)
    async with opened(suites) as app:
        monkeypatch.setattr(TrustScreen, "ANSWER_DELAY_S", 60.0)
        await app.press("r")
        await app.until(lambda: isinstance(app.app.screen, TrustScreen))
        await app.press("1", "2", "up", "enter", "escape")
        assert isinstance(app.app.screen, TrustScreen)


async def test_a_yes_counts_only_after_the_end_of_the_arguments_was_shown(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(60, 16)) as app:
        (run,) = await app.run("r")
        await asked(app, run, lines=[f"line {number}" for number in range(40)])
        await ready(app)
        assert "line 39" not in app.screen
        for answer in (["1"], ["up", "enter"]):
            await app.press(*answer)
            assert "Read to the end first" in app.screen
        reading = app.app.screen.query_one("#reading", TextView)
        while not reading.was_at_end:
            await app.press("pagedown")
        await app.press("1")
        assert app.session.allowed == [(run.run_id, "c0", "call")]


@pytest.mark.slow
async def test_several_questions_come_one_after_the_other_each_naming_its_case(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        runs = await app.run("R")
        for run in runs:
            app.session.ask(run, SEND)
        await app.until(lambda: isinstance(app.app.screen, ExecutionScreen))
        for run in runs:
            await app.until(lambda name=run.case.name: f"› {name}," in app.screen)  # type: ignore[misc]
            await ready(app)
            await app.press("1")
        assert app.session.allowed == [(run.run_id, "c0", "call") for run in runs]
        assert isinstance(app.app.screen, MainScreen)


async def test_a_question_whose_run_was_stopped_goes_away(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        first, second, _ = await app.run("R")
        app.session.ask(first, SEND)
        app.session.ask(second, SEND)
        await app.until(lambda: isinstance(app.app.screen, ExecutionScreen))
        app.session.grade(second, Trajectory(second.run_id))
        app.session.say(first, RunFinished("stopped"), first=5)
        app.session.grade(first, Trajectory(first.run_id))
        await app.until(lambda: isinstance(app.app.screen, MainScreen))
        assert app.session.allowed == []
        assert "Movie night no longer asks" in app.screen


async def test_x_stops_the_run_that_asks_and_no_other(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(80, 24)) as app:
        first, second, _ = await app.run("R")
        app.session.ask(first, SEND)
        app.session.ask(second, SEND)
        await app.until(lambda: isinstance(app.app.screen, ExecutionScreen))
        await ready(app)
        assert "x stop   X stop all   q quit" in app.screen
        await app.press("x")
        await app.until(lambda: f"› {second.case.name}," in app.screen)
        assert app.session.stopped == [first.run_id]
        assert app.session.allowed == []


async def test_shift_x_stops_everything_and_nothing_more_is_asked(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        runs = await app.run("R")
        for run in runs:
            app.session.ask(run, SEND)
        await app.until(lambda: isinstance(app.app.screen, ExecutionScreen))
        await app.press("X")
        await app.until(lambda: isinstance(app.app.screen, MainScreen))
        assert app.session.stopped == [run.run_id for run in runs]
        assert "Stopping everything" in app.screen
        assert app.session.allowed == []


@pytest.mark.slow
async def test_q_leaves_the_app_from_a_question_when_pressed_twice(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(80, 24)) as app:
        (run,) = await app.run("r")
        await asked(app, run)
        await ready(app)
        await app.press("q")
        assert app.screen.count("1 run still under way: q again stops and quits") == 1
        await app.pilot.press("q")
        await app.until(lambda: app.session.closed)


@pytest.mark.slow
async def test_below_a_question_no_keys_of_the_main_screen_are_offered(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(120, 40)) as app:
        (run,) = await app.run("r")
        assert "m models" in app.screen
        await asked(app, run)
        await ready(app)
        assert "m models" not in app.screen
        await app.press("ctrl+p", "1")
        assert isinstance(app.app.screen, MainScreen)
        assert "m models" not in app.screen
        await app.press("escape")
        assert "m models" in app.screen


@pytest.mark.slow
async def test_a_held_run_is_marked_and_goes_on_where_it_stood(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(160, 48)) as app:
        (run,) = await app.run("r")
        await asked(app, run)
        await ready(app)
        await app.press("1")
        assert "? Movie night" in app.screen
        assert "1 ? asks" in app.screen
        assert "‖ asks: may send_email be executed on server 'office'?" in app.screen
        app.session.say(run, Resumed(3_200.0), ExecutionStarted("c0", "office"), first=5)
        app.session.say(run, *(ExecutionProgress("c0", float(n), 9.0, f"part {n}") for n in range(5)), first=7)
        await app.settle()
        assert "? Movie night" not in app.screen
        assert app.screen.count("part ") == 1
        assert "… 4 of 9  part 4" in app.screen
        app.session.say(run, ResultReceived("c0", "sent", False, "server", 12.0), first=12)
        await app.settle()
        assert "← server · 12 ms · held 3.2 s  sent" in app.screen
        assert "part 4" not in app.screen


@pytest.mark.slow
async def test_a_question_waits_until_the_filter_is_closed(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        (run,) = await app.run("r")
        await app.press("slash", *"mo")
        app.session.ask(run, SEND)
        await app.settle()
        await app.press("o")
        assert app.app.main.selection.tree.filter == "moo"
        await app.press("escape")
        await app.until(lambda: isinstance(app.app.screen, ExecutionScreen))


async def test_a_question_waits_until_another_dialog_is_closed(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        (run,) = await app.run("r")
        await app.press("question_mark")
        app.session.ask(run, SEND)
        await app.settle()
        assert "Here, in Suites" in app.screen
        await app.press("escape")
        await app.until(lambda: isinstance(app.app.screen, ExecutionScreen))


async def test_only_the_suites_that_came_with_the_program_are_exempt(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        await app.run("r")
        assert app.session.exempt == [False]


@pytest.mark.slow
async def test_no_question_comes_up_while_a_run_begins_that_may_itself_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Gate()

    def slowly(file: SuiteFile) -> bool:
        disk.wait()
        return is_stale(file)

    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        (run,) = await app.run("r")
        monkeypatch.setattr(start, "is_stale", slowly)
        await app.press("down")
        await app.press("r")
        app.session.ask(run, SEND)
        await app.settle()
        assert isinstance(app.app.screen, MainScreen)
        disk.open()
        await app.until(lambda: isinstance(app.app.screen, ExecutionScreen))
        assert len(app.session.runs) == 2


async def test_secrets_in_the_arguments_are_not_shown(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        app.app.program.secrets.add("MAIL_KEY", "sk-planted-7c1d90")
        (run,) = await app.run("r")
        await asked(app, run, key="sk-planted-7c1d90")
        assert '"key": "$MAIL_KEY"' in app.screen
        assert '"key": "sk-' not in app.screen


def test_a_key_before_the_question_is_on_the_screen_answers_nothing() -> None:
    ManualExecutionScreen(SEND, {}, Secrets()).action_answer("yes")
