"""Stepping in the app: continuing, editing at a hold, and making mocks and expectations from calls."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.engine.agents.test_agents import OSLO, suite_of
from tests.providers.server import Server, base_url_of, said
from tests.sampled_rows import first_of
from tests.tui.apps import SMART_HOME, Opened, opened, opening, suites_in
from tests.tui.stepped import editor, held, shown, stepped, typed
from workbench.authoring.form.field_text import items_at
from workbench.engine.checkpoint import (
    AddMessage,
    AnswerCall,
    AnswerQuestion,
    EditArguments,
    EditResult,
    Regenerate,
    SkipCall,
)
from workbench.providers.model import HttpRequest
from workbench.show.views.run_items import CallItem
from workbench.trajectory.events import (
    CallEdited,
    CallFinished,
    CallStarted,
    EventPayload,
    HoldPlace,
    Paused,
    RequestStarted,
    ResponseFinished,
    ResultReceived,
    Resumed,
    RunFinished,
    ServerAsked,
)
from workbench.trajectory.recording import read_recording
from workbench.trajectory.trajectory import Trajectory

# Continuing


async def test_s_starts_a_case_held_at_its_first_stop_and_then_goes_from_stop_to_stop(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        run = await stepped(app)
        assert app.session.until == ["stop"]
        await held(app, run, "request")
        assert "‖ Movie night" in app.screen and "1 ‖ held" in app.screen
        await app.press("s")
        assert app.session.gone_on == [(run.run_id, "stop")]
        app.session.say(run, Resumed(1.0), first=2)
        await app.settle()
        assert "held" not in app.screen.splitlines()[0]
        await app.press("s")
        assert "Movie night is held at its next stop" in app.screen


async def test_keys_at_a_held_call_reach_its_run_unless_nothing_changed_or_the_run_refuses(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        run = await stepped(app)
        await held(app, run)
        app.session.refused = "the run is not held"
        await app.press("D")
        assert "Nothing was done: the run is not held" in app.screen
        app.session.refused = None
        app.session.done.clear()
        await app.press("D")
        assert "set_lights is skipped, and the model is informed" in app.screen
        await app.press("L")
        assert app.session.done == [(run.run_id, SkipCall()), (run.run_id, Regenerate())]
        await app.press("e", "ctrl+s")
        assert "Nothing was changed" in app.screen
        assert len(app.session.done) == 2
        await app.press("escape", "3", "right_curly_bracket", "c")
        assert app.session.gone_on == [(run.run_id, "round"), (run.run_id, "end")]


@pytest.mark.slow
async def test_only_one_run_is_stepped_through_and_with_several_models_it_is_said_which(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME.replace('user = "Start', 'repeats = 3\nuser = "Start'))
    async with opened(suites, models=("offline", "script:two.py")) as app:
        run = await stepped(app)
        assert (run.model, run.repeat) == ("offline", 0)
        assert "Step by step on offline (baseline), the first of 2 models" in app.screen


async def test_what_cannot_be_done_says_why(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        await app.press("c")
        assert "This case is not running; r runs it to the first breakpoint" in app.screen
        await app.press("H")
        assert "No run is held; s steps through a case" in app.screen
        await app.press("3", "D")
        assert "The run is not held; s steps through the case" in app.screen
        await app.press("M")
        assert "This case has not been run; r runs it" in app.screen
        run = await stepped(app)
        await held(app, run, "request")
        for key, why in (
            ("i", "The run is held before a request: a call can be answered before it is made"),
            ("e", "The run is held before a request: arguments can be changed before a call"),
            ("L", "The run is held before a request: a round can be asked again before one of its calls"),
            ("C", "Put the cursor on a call or its result"),
        ):
            await app.press(key)
            assert why in app.screen, key
        assert app.session.done == []


async def test_keys_for_the_call_that_is_held_say_so_where_the_cursor_is_on_another_one(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(160, 36)) as app:
        run = await stepped(app)
        calls: list[EventPayload] = [CallStarted(1, "c1", "set_tv"), CallFinished("c1", {})]
        calls += [CallStarted(1, "c2", "set_lights"), CallFinished("c2", {})]
        calls += [ResponseFinished(1, "tool calls", None, 1.0, 2.0), Paused("step by step", "c1", "call", 1)]
        so_far = [opening(run), RequestStarted(1), *calls]
        app.session.say(run, *so_far)
        await app.settle()
        run_list = app.app.main.run_pane.run_list
        run_list.move_cursor(run_list.line_count() - 1)
        for key in "eiD":
            await app.press(key)
            assert "The run is held before set_tv: set_lights comes later; H goes to the one held" in app.screen
        after = (ResultReceived("c1", "on", False, "case mock", 1.0), Paused("step by step", "c2", "call", 1))
        app.session.say(run, Resumed(1.0), *after, first=len(so_far))
        await app.settle()
        assert run_list.lines is not None
        first = next(at for at, item in enumerate(shown(app).view.items) if isinstance(item, CallItem))
        run_list.move_cursor(run_list.lines.start_of(first))
        await app.press("D")
        assert "The run is held before set_lights: set_tv is over" in app.screen
        assert app.session.done == []
        await app.press("H", "D")
        assert app.session.done == [(run.run_id, SkipCall())]


@pytest.mark.parametrize("key", first_of(["s", "right_curly_bracket", "c", "L", "H"], 2))
async def test_a_key_of_stepping_shows_where_the_run_is_held(tmp_path: Path, key: str) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(80, 12)) as app:
        run = await stepped(app)
        await held(app, run, "result", "\n".join(map(str, range(30))))
        await app.press("3", "up", "enter")
        assert "held after the result" not in app.screen
        await app.press(key)
        assert "‖ held after the result of set_lights" in app.screen


async def test_what_is_offered_where_a_run_is_held_can_be_clicked(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(80, 24)) as app:
        run = await stepped(app)
        await held(app, run)
        for words in ("s next stop", "c continue"):
            rows = app.screen.splitlines()
            at = next(at for at, row in enumerate(rows) if "s next stop" in row)
            await app.pilot.click(offset=(rows[at].index(words) + 2, at))
            await app.settle()
        assert app.session.gone_on == [(run.run_id, "stop"), (run.run_id, "end")]


@pytest.mark.slow
async def test_a_run_that_waits_behind_held_ones_says_so(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(240, 24)) as app:
        (first, *_) = await app.run("R")
        await app.press("down", "down", "3")
        assert "Waiting for its turn." in app.screen
        await held(app, first)
        assert "Waiting for its turn behind a run on this model that is held; H goes there." in app.screen
        assert "1 ‖ held  3 left" in app.screen


@pytest.mark.parametrize("size", first_of([(80, 24), (40, 10)], 1))
async def test_the_bar_names_the_keys_of_stepping_while_a_run_is_held(tmp_path: Path, size: tuple[int, int]) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=size) as app:
        run = await stepped(app)
        await held(app, run)
        await app.press("escape", "3")
        last = app.screen.splitlines()[-1]
        by_use = "s step   c continue   e edit   i answer   D skip   ? keys"
        wanted = (by_use,) if size[0] > 40 else ("s step", "c continue")
        assert all(key in last for key in wanted), last


async def test_a_run_held_out_of_sight_is_announced_once_and_h_goes_there(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        run = await stepped(app)
        await app.press("1", "down")
        await held(app, run)
        assert "Movie night is held before a call; H goes there" in app.screen
        await app.press("z", "z", "up", "down")
        assert "H goes there" not in app.screen
        assert "H held run" in app.screen.splitlines()[-1]
        await app.press("H")
        assert shown(app).run_id == run.run_id
        assert app.app.main.pane == "run"


@pytest.mark.slow
async def test_of_several_runs_held_out_of_sight_it_is_said_how_many_are_held_in_all(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        first, second, third = await app.run("R")
        await app.press("1")
        await held(app, first)
        for run in (second, third):
            app.session.say(run, opening(run), Paused("step by step", None, "request", 1))
        await app.settle()
        assert "3 runs are held; H goes there" in app.screen


# Typed text


async def test_changed_arguments_are_sent_as_they_are_typed(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        run = await stepped(app)
        await held(app, run)
        await app.press("e")
        assert '"brightness": 60' in app.screen and "Arguments of set_lights" in app.screen
        assert "→ set_lights" in app.screen  # the trajectory stays in sight
        await typed(app, '{"room": "Küche",\n "brightness": 5}')
        await app.press("ctrl+s")
        assert app.session.done == [(run.run_id, EditArguments({"room": "Küche", "brightness": 5}))]
        assert app.app.main.run_pane.editor is None
        assert "set_lights is called with these arguments when the run continues" in app.screen


async def test_a_mistake_is_shown_where_it_is_and_nothing_is_lost(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        run = await stepped(app)
        await held(app, run)
        await app.press("e")
        await typed(app, '{"room": "Küche",\n "brightness": }')
        assert "line 2, column 16: expecting value" in app.screen
        await app.press("ctrl+s")
        assert "Not sent, but kept: line 2, column 16" in app.screen
        assert app.session.done == []
        await app.press("escape")
        assert "Not sent, but kept" in app.screen
        await app.press("e")
        assert editor(app).text == '{"room": "Küche",\n "brightness": }'
        app.app.main.go_to("suites")
        await app.press("down")
        assert app.app.main.run_pane.editor is None, "another run is in the pane"
        await app.press("H", "e")
        assert editor(app).text == '{"room": "Küche",\n "brightness": }'


async def test_a_result_is_changed_with_undo_and_made_a_tool_error(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        run = await stepped(app)
        await held(app, run, "result")
        await app.press("e")
        assert editor(app).text == "dimmed\n"
        assert "[ ] tool error" in app.screen and "F3 tool error" in app.screen
        await typed(app, "dark")
        await app.press("ctrl+z")
        assert editor(app).text == "dimmed\n"
        await app.press("ctrl+y")
        assert editor(app).text == "dark"
        await typed(app, "no power\n\n")
        await app.press("f3", "ctrl+s")
        assert app.session.done == [(run.run_id, EditResult("no power\n\n", True))]


async def test_enter_sends_an_answer_of_one_line_and_a_message(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        run = await stepped(app)
        await held(app, run)
        await app.press("i", *"ok", "enter")
        await app.press("I", "enter")
        assert "Not sent, but kept: there is nothing to say yet" in app.screen
        await app.press(*"Stop", "alt+enter", *"now", "ctrl+s")
        assert app.session.done == [(run.run_id, AnswerCall("ok")), (run.run_id, AddMessage("Stop\nnow"))]


async def test_what_is_typed_stays_when_the_run_ends_meanwhile_and_it_is_said_why(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(160, 36)) as app:
        run = await stepped(app)
        await held(app, run)
        await app.press("i", *"half a senten")
        app.session.say(run, Resumed(1.0), RunFinished("stopped"), first=6)
        app.session.grade(run, Trajectory(run.run_id))
        await app.settle()
        assert "the run has finished: this was not sent" in app.screen
        await app.press("ctrl+s")
        assert app.session.done == []
        assert editor(app).text == "half a senten"


# Mocks and expectations


@pytest.mark.slow
async def test_m_makes_a_mock_of_the_call_and_c_an_expectation_and_both_can_be_undone(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(160, 36)) as app:
        run = await stepped(app)
        call = CallFinished("c1", {"room": "living room", "brightness": 60})
        app.session.say(
            run,
            *(opening(run), RequestStarted(1), CallStarted(1, "c1", "set_lights"), call),
            ResponseFinished(1, "tool calls", None, 1.0, 2.0),
            CallEdited("c1", {"room": "attic", "brightness": 5}, call.arguments),
            ResultReceived("c1", "dimmed", False, "case mock", 1.0),
            Paused("step by step", "c1", "result", 1),
        )
        await app.settle()
        suite = app.app.main.selection.suite
        assert suite is not None
        await app.press("M")
        assert "Mock of set_lights, for the arguments as the model wrote them, in Movie night" in app.screen
        when = {"room": "living room", "brightness": 60}
        assert suite.document.table(0)["mocks"] == [{"tool": "set_lights", "when": when, "result": "dimmed"}]
        await app.press("C")
        args = {"room": "attic", "brightness": {"range": [5, 40]}}
        assert items_at(suite.document.table(0), ("ordered",))[0] == {"tool": "set_lights", "args": args}
        assert suite.dirty
        await app.press("ctrl+z", "ctrl+z")
        assert not suite.dirty


async def test_a_run_that_is_over_is_graded_anew_by_the_expectation_made_of_it(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), live=True, size=(160, 36)) as app:
        await app.press("down", "r")
        await app.until(lambda: bool(app.app.main.selection.runs) and shown(app).result is not None)
        before = shown(app).result
        call = next(call.call.id for call in shown(app).trajectory.calls)
        at = next(at for at, item in enumerate(shown(app).view.items) if getattr(item, "call_id", "") == call)
        run_list = app.app.main.run_pane.run_list
        app.app.main.go_to("run")
        assert run_list.lines is not None
        run_list.move_cursor(run_list.lines.start_of(at))
        await app.press("C")
        assert "is expected as it was sent" in app.screen or "already says all of that" in app.screen
        after = shown(app).result
        assert before is not None and after is not None
        assert after.status == "passed"


# Real runs


async def at_stop(app: Opened, at: HoldPlace) -> None:
    def is_there() -> bool:
        run = app.app.main.selection.run
        return run is not None and run.paused is not None and run.paused.at == at

    await app.until(is_there)


async def test_a_real_run_is_stepped_through_its_call_changed_and_the_model_reads_the_answer(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), live=True, size=(160, 36)) as app:
        await app.press("down", "s")
        await at_stop(app, "request")
        await app.press("s")
        await at_stop(app, "call")
        await app.press("e")
        await typed(app, '{"room": "attic"}')
        await app.press("ctrl+s")
        await app.until(lambda: shown(app).trajectory.calls[0].edited == {"room": "attic"})
        await app.press("i", *"dark", "enter")
        await at_stop(app, "result")
        await app.press("c")
        await app.until(lambda: shown(app).result is not None)
        first = shown(app).trajectory.calls[0]
        assert (first.sent.arguments, first.result and first.result.content) == ({"room": "attic"}, "dark")


@pytest.mark.slow
async def test_a_held_run_is_saved_as_far_as_it_is_and_opens(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites, live=True, size=(160, 36)) as app:
        await app.press("down", "s")
        await at_stop(app, "request")
        await app.press("s")
        await at_stop(app, "call")
        await app.press("w")
        await app.until(lambda: "Saved so far in " in app.screen)
        (file,) = (suites / "recordings").iterdir()
        recording = read_recording(file)
        assert recording.events == tuple(shown(app).events)
        assert not recording.complete
    async with opened(suites, paths=[file], size=(160, 36)) as app:
        await app.press("3")
        assert "the recording ends where the run was held" in app.screen
        assert shown(app).is_held is False


async def test_runs_are_recorded_as_they_happen_so_that_a_killed_program_leaves_one_that_opens(tmp_path: Path) -> None:
    folder = tmp_path / "recorded"
    folder.mkdir()
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), live=True, record=folder) as app:
        await app.press("s")
        await at_stop(app, "request")
        await app.press("I", *"Wait", "enter")
        await app.until(lambda: len(shown(app).events) == 3)
        (file,) = folder.iterdir()  # as the program would leave it, were it killed now
        assert read_recording(file).events == tuple(shown(app).events)
        await app.press("c")
        await app.until(lambda: shown(app).result is not None)
        await app.until(lambda: bool(list(folder.glob("*.run.jsonl"))))
        (file,) = folder.iterdir()
        assert read_recording(file).complete


async def test_a_folder_that_cannot_be_recorded_in_is_said_and_stops_no_run(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    async with opened(suites, live=True, record=tmp_path / "gone", size=(160, 36)) as app:
        await app.press("r")
        await app.until(lambda: "Not every run could be recorded" in app.screen)
        await app.until(lambda: shown(app).result is not None)


async def test_stopping_ends_a_held_run_as_stopped(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), live=True) as app:
        await app.press("s")
        await at_stop(app, "request")
        await app.press("x")
        await app.until(lambda: shown(app).result is not None)
        result = shown(app).result
        assert result is not None and result.status == "stopped"


async def test_a_run_held_before_a_request_shows_what_is_about_to_be_sent(tmp_path: Path) -> None:
    key = "sk-" + "held0request0key"
    with Server(lambda _: said("openai", "Done.")) as server:
        url = base_url_of(server, "openai")
        suites = suites_in(tmp_path, smart_home=SMART_HOME)
        model = f'provider = "openai"\nbase_url = "{url}"\nmodel = "llama"\napi_key_env = "HELD_KEY"\n'
        (suites / "workbench.toml").write_text(f"[models.local]\n{model}", encoding="utf-8")
        variables = {"HELD_KEY": key}
        async with opened(suites, live=True, trust=True, models=("local",), variables=variables, size=(200, 60)) as app:
            await app.press("s")
            await app.until(lambda: f"POST {url}/chat/completions  Enter: what is sent" in app.screen)
            assert '"stream"' not in app.screen, "folded at first"
            await app.press("3", "I")
            await typed(app, f"Use {key} and hurry.")
            await app.press("ctrl+s")
            await app.until(lambda: "added by hand" in app.screen and "Enter: what is sent" in app.screen)
            await app.press("H", "enter")
            assert "authorization: Bearer $HELD_KEY" in app.screen
            assert '"content": "Use $HELD_KEY and hurry."' in app.screen
            assert key not in app.screen
            assert server.requests == []
            request = shown(app).request
            assert isinstance(request, HttpRequest)
            await app.press("c")
            await app.until(lambda: shown(app).result is not None)
            assert "POST" not in app.screen
            (sent,) = server.requests
            assert (sent.json, sent.path) == (request.body, "/v1/chat/completions")


async def test_a_server_that_asks_is_answered_or_declined_by_hand(tmp_path: Path) -> None:
    asked = ServerAsked(
        *("c1", "set_lights", "shop", "elicitation", "Which size?"),
        {"requestedSchema": {"type": "object", "properties": {"size": {"type": "integer"}}}},
        *("decline", "nobody"),
    )
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(160, 40)) as app:
        run = await stepped(app)
        await held(app, run)
        app.session.say(run, Resumed(1.0), Paused("step by step", "c1", "question", 1, asked), first=6)
        await app.settle()
        assert "server shop asks in set_lights: Which size?" in app.screen
        await app.press("3", "D", "i")
        assert editor(app).held_text.title == "Reply to shop"
        await typed(app, '{"size": "big"}')
        await app.press("ctrl+s")
        assert "'big' is not of type 'integer'" in app.screen
        await typed(app, '{"size": 7}')
        await app.press("ctrl+s")
        assert app.session.done == [
            (run.run_id, AnswerQuestion("decline")),
            (run.run_id, AnswerQuestion("accept", {"size": 7})),
        ]
        app.session.say(
            run, Resumed(1.0), replace(asked, action="accept", source="person", content={"size": 7}), first=8
        )
        await app.settle()
        assert 'by hand · accept {"size": 7}' in app.screen


async def test_a_held_agent_is_offered_no_fork_no_retry_and_no_step_back(tmp_path: Path) -> None:
    folder = tmp_path / "suites"
    folder.mkdir()
    suite_of(folder, OSLO, ["result"])
    async with opened(folder, live=True, trust=True, size=(160, 40)) as app:
        await app.press("down", "s")
        for at in ("request", "call", "result"):

            def is_held(at: str = at) -> bool:
                run = app.app.main.selection.run
                return run is not None and run.paused is not None and run.paused.at == at

            await app.until(is_held)
            await app.press("3")
            bar = app.screen.splitlines()[-1]
            assert "s step" in bar and not any(key in bar for key in ("Y fork", "L retry", "{ back"))
            for key in ("Y", "{"):
                await app.press(key)
                assert "cannot be forked" in app.screen
            if at != "request":
                await app.press("L")
                assert "agent cannot be asked again" in app.screen
            await app.press("s")
