"""A newly written server: the question of trust appears automatically, and after a yes its tools are known."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from textual.events import Paste

from tests.tools.conftest import SERVERS
from tests.tui.apps import Opened, opened, suites_in
from tests.tui.form_app import KEYS
from workbench.authoring.document import HEAD
from workbench.evaluation.approval import Needs
from workbench.tui.runs.dialogs import TrustScreen

SUITE = """
format = 1
name = "New"

[[cases]]
name = "Grow"
user = "Grow."
"""
COMMAND = [sys.executable, str(SERVERS / "growing_before.py")]


def written(command: list[str]) -> str:
    return f'\n\n[[servers]]\nname = "garden"\ncommand = {json.dumps(command)}\n\n'


async def write(app: Opened, text: str) -> None:
    """Write a text above the first case, in the TOML of the suite, and leave it."""
    suite = app.app.open_suites.suites[0]
    app.app.main.selection.select(suite.path)
    await app.press("2", *(["o"] if app.app.main.case_pane.view == "form" else []), "e", "ctrl+end")
    app.app.post_message(Paste(text))
    await app.settle()
    assert not isinstance(app.app.screen, TrustScreen), "not while it is typed"
    await app.pilot.press("escape")


async def add(app: Opened) -> None:
    """Add a server in the form, up to the question for its name."""
    await app.press("2", "ampersand", *"server", "enter")


def known(app: Opened) -> set[str]:
    suite = app.app.open_suites.suites[0]
    return {tool.name for tool in app.app.main.known_tools.of(suite.document.table(HEAD), suite.path)}


@pytest.mark.slow
async def test_a_new_server_is_offered_and_its_tools_are_known_after_a_yes(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, new=SUITE), live=True, size=(120, 40)) as app:
        await write(app, written(COMMAND))
        await app.until(lambda: isinstance(app.app.screen, TrustScreen))
        assert "run the command" in app.screen
        assert known(app) == set(), "nothing has run"
        await app.until(lambda: "Esc start nothing" in app.screen)
        await app.press("1")
        await app.until(lambda: known(app) == {"grow", "wither"})
        await app.until(lambda: "garden runs: 2 tools known now" in app.screen)


@pytest.mark.slow
async def test_in_the_form_the_question_comes_when_the_command_was_pasted(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, new=SUITE)
    (suites / "garden.py").write_bytes(Path(COMMAND[1]).read_bytes())
    async with opened(suites, live=True, size=(120, 40)) as app:
        app.app.main.selection.select(app.app.open_suites.suites[0].path)
        await add(app)
        app.app.post_message(Paste("garden"))
        await app.press("enter")
        assert app.app.screen is app.app.main, "its command is being typed"
        app.app.post_message(Paste("python garden.py"))
        await app.settle()
        await app.pilot.press("enter")
        await app.until(lambda: isinstance(app.app.screen, TrustScreen))
        assert "run the command" in app.screen and "garden.py" in app.screen
        await app.until(lambda: "Esc start nothing" in app.screen)
        await app.press("1")
        await app.until(lambda: known(app) == {"grow", "wither"})


OWN = f'[[servers]]\nname = "own"\ncommand = {json.dumps([sys.executable, "own.py"])}\n\n[[cases]]'
OWN_SERVER = "from pathlib import Path\nPath('started').touch()\n"


@pytest.mark.parametrize("own", [False, True], ids=["alone", "beside a foreign one"])
async def test_a_server_that_is_typed_into_the_form_starts_and_the_question_names_the_others(
    tmp_path: Path, own: bool
) -> None:
    suites = suites_in(tmp_path, new=SUITE.replace("[[cases]]", OWN) if own else SUITE)
    (suites / "own.py").write_text(OWN_SERVER)
    (suites / "garden.py").write_bytes(Path(COMMAND[1]).read_bytes())
    async with opened(suites, live=True, size=(120, 40)) as app:
        app.app.main.selection.select(app.app.open_suites.suites[0].path)
        await add(app)
        await app.pilot.press(*"garden", "enter")
        await app.pilot.press(*(KEYS.get(letter, letter) for letter in "python garden.py"))
        await app.settle()
        assert app.app.screen is app.app.main, "it is being typed"
        await app.pilot.press("enter")
        if own:
            await app.until(lambda: isinstance(app.app.screen, TrustScreen))
            assert app.screen.count("run the command: ") == 1
            assert known(app) == set(), "nothing has run"
            await app.press("2")
        await app.until(lambda: known(app) == {"grow", "wither"})
        assert not (suites / "started").exists(), "only what was added starts by itself"
        (request,) = Needs.of_servers([app.app.open_suites.suites[0].file], app.app.program).requests
        assert app.app.services.trust.store.is_trusted(request.file.path, request.all_needs)


async def test_a_no_is_not_asked_again_for_the_same_text(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, new=SUITE), live=True, size=(120, 40)) as app:
        await write(app, written(COMMAND))
        await app.until(lambda: isinstance(app.app.screen, TrustScreen))
        await app.press("escape")
        await app.until(lambda: "Nothing was started: new.toml is not trusted" in app.screen)
        await app.press("e", "ctrl+home")
        app.app.post_message(Paste("# about\n"))
        await app.press("escape")
        assert app.app.screen is app.app.main
        await app.press("u")
        assert app.app.screen is app.app.main
        # Another text is another server.
        await write(app, '\nprefix = "g_"\n')
        await app.until(lambda: isinstance(app.app.screen, TrustScreen))
        await app.press("escape")


async def test_servers_that_were_there_before_are_not_offered(tmp_path: Path) -> None:
    suite = SUITE.replace("[[cases]]", written(COMMAND) + "[[cases]]")
    async with opened(suites_in(tmp_path, new=suite), live=True) as app:
        await write(app, "# about\n")
        await app.settle()
        assert app.app.screen is app.app.main
