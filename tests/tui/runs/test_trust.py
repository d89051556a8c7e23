"""The question of trust: everything that would be started can be read, and is read before a yes counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.apps import NEEDY, SMART_HOME, conversation, opened, suites_in
from workbench.suite.suite_file import load_suite
from workbench.tools.listings import StoredListings
from workbench.trajectory.events import ToolDefinition
from workbench.tui.kit.dialogs import TextView
from workbench.tui.runs.dialogs import TrustScreen

LONG = NEEDY.replace(
    '"server.py"', '"server.py", "--root", "rooms/home", "--rooms", "kitchen,hall,attic", "--last-word"'
)
SMALL = (40, 10)


async def test_on_a_small_screen_a_yes_counts_only_after_the_end_was_shown(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, needy=LONG), size=SMALL) as app:
        await app.press("r")
        await app.until(lambda: isinstance(app.app.screen, TrustScreen))
        assert "PgDn read on" in app.screen
        assert "--last-word" not in app.screen
        for answer in (["1"], ["2"], ["up", "enter"]):
            await app.press(*answer)
            assert isinstance(app.app.screen, TrustScreen)
            assert "Read to the end first: PgDn" in app.screen
        reading = app.app.screen.query_one("#reading", TextView)
        seen = app.screen
        while not reading.was_at_end:
            before = reading.top
            await app.press("pagedown")
            assert reading.top > before
            seen += app.screen
        assert "server.py" in seen
        assert "--last-word" in seen
        assert "Read to the end first" not in app.screen
        await app.press("pageup")
        assert reading.top < reading.last_top
        assert len(await app.run("1")) == 1


async def test_on_a_small_screen_a_no_needs_no_reading(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, needy=LONG), size=SMALL) as app:
        await app.press("r")
        await app.until(lambda: isinstance(app.app.screen, TrustScreen))
        await app.press("escape")
        await app.until(lambda: "Nothing was run" in app.screen)


async def test_mocks_are_offered_where_the_tools_are_remembered_and_start_nothing(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, needy=NEEDY)
    suite = load_suite(suites / "needy.toml").suite
    assert suite is not None
    async with opened(suites, size=SMALL) as app:
        await app.press("r")
        await app.until(lambda: isinstance(app.app.screen, TrustScreen))
        await app.press("3")
        assert isinstance(app.app.screen, TrustScreen)
        await app.press("escape")
        listings = StoredListings(app.app.program.folders.listings)
        listings.remember(suites / "needy.toml", suite.servers[0], (ToolDefinition("look", server="home"),))
        (run,) = await app.run("r", "3")
        assert run.case.name == "Ask"
        assert app.session.trusted == [False]


async def test_what_is_shown_whole_needs_no_scrolling(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, needy=NEEDY)) as app:
        await app.press("r")
        await app.until(lambda: "choose" in app.screen)
        assert "PgDn" not in app.screen
        assert "until this changes" in app.screen
        assert len(await app.run("2")) == 1


ASKING = SMART_HOME.replace("system =", 'models = ["openai:gpt@http://localhost:1/v1"]\nsystem =', 1)


@pytest.mark.slow
async def test_a_suite_that_only_names_models_is_asked_about_only_when_they_are_used(tmp_path: Path) -> None:
    folder = suites_in(tmp_path, asking=ASKING)
    async with opened(folder, models=["offline"]) as app:
        assert len(await app.run("r")) == 1
        assert app.session.trusted == [False]
    async with opened(folder) as app:
        await app.press("r")
        await app.until(lambda: isinstance(app.app.screen, TrustScreen))
        assert "ask the model gpt at http://localhost:1/v1" in app.screen
        assert len(await app.run("1")) == 1
        assert app.session.trusted == [True]


async def test_what_is_rewritten_while_the_question_is_shown_is_not_what_runs(tmp_path: Path) -> None:
    text = ASKING.replace('"openai:gpt@http://localhost:1/v1"', '"local"')
    server = '[[servers]]\nname = "s"\ncommand = ["srv"]\n'
    suites = suites_in(tmp_path, asking=text.replace("[[cases]]", f"{server}[[cases]]", 1))

    def settle(port: int) -> None:
        model = f'[models.local]\nprovider = "openai"\nbase_url = "http://localhost:{port}/v1"\napi_key_env = "KEY"\n'
        (suites / "workbench.toml").write_text(model)
        (suites / ".env").write_text(f"KEY=key-{port}\n")

    settle(1)
    async with opened(suites) as app:
        await app.press("r")
        await app.until(lambda: isinstance(app.app.screen, TrustScreen))
        assert "ask the model local at http://localhost:1/v1 with the key in KEY" in app.screen
        settle(2)
        await app.run("1")
        (approval,) = app.session.approvals
        (planned,) = app.session.runs
        spec, grant = approval.specs.of(planned), approval.grant(planned.file.path)
        assert spec is not None
        assert grant is not None
        assert spec.base_url == "http://localhost:1/v1"
        assert approval.specs.environment_at(planned.file.path)["KEY"] == "key-1"
        assert grant.variables(planned.suite.servers[0])["KEY"] == "key-1"
        # The approval until the end of the program covers the displayed content, not the present content.
        app.session.finish(planned, conversation(planned, (), "Done."))
        app.session.end_batch()
        await app.settle()
        await app.press("r")
        await app.until(lambda: isinstance(app.app.screen, TrustScreen))
        assert "ask the model local at http://localhost:2/v1" in app.screen
