"""A first suite for the tools of a real server, created in the app."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from textual.widgets import Input

from tests.tools.conftest import SERVERS
from tests.tui.apps import SMART_HOME, Opened, opened, suites_in
from workbench.suite.suite_file import load_suite
from workbench.tui.kit.dialogs import PreviewScreen
from workbench.tui.runs.dialogs import TrustScreen
from workbench.tui.tree.new_suites import ListingScreen, ServerScreen

SERVER = f"""
import sys
from pathlib import Path

sys.path.insert(0, {str(SERVERS)!r})
from plain import PlainServer

if not Path("garden.key").exists():
    print("no garden.key here", file=sys.stderr)
    sys.exit(3)
server = PlainServer("garden")

@server.tool(readOnlyHint=True)
def grow(plant: str) -> str:
    "Grow a plant."
    return "grown"

server.run()
"""


async def taken(app: Opened, text: str) -> None:
    """Type a text into the field of a dialog and take it."""
    app.app.screen.query_one("#name", Input).value = text
    await app.pilot.press("enter")


@pytest.mark.slow
async def test_a_server_that_dies_is_asked_again_and_its_suite_is_opened_unsaved(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    (suites / "garden.py").write_text(SERVER, encoding="utf-8")
    async with opened(suites, live=True, size=(120, 40)) as app:
        await app.press("N")
        await taken(app, "a/b*?")
        await app.until(lambda: "cannot hold" in app.screen)
        app.app.screen.query_one("#name", Input).value = "garden"
        await app.press("down")
        # The typed file becomes the suite's path, and not a part of the command.
        await app.until(lambda: isinstance(app.app.screen, ServerScreen) and "garden" in app.screen)
        assert app.app.screen.query_one("#name", Input).value == ""
        app.app.screen.query_one("#name", Input).value = "uvx typed"
        await app.press("escape")
        await app.until(lambda: "from a server" in app.screen and "garden" in app.screen)
        await app.press("down")
        await app.until(lambda: isinstance(app.app.screen, ServerScreen) and "uvx typed" in app.screen)
        await taken(app, "ftp://x")
        await app.until(lambda: "must begin with http://" in app.screen)
        env, cwd = app.app.screen.query_one("#env", Input), app.app.screen.query_one("#cwd", Input)
        env.value, cwd.value = "TOKEN=planted-0451-secret, LEVEL=debug", "yard"
        await taken(app, f"{sys.executable} ../garden.py")
        await app.until(lambda: "there is no folder yard in" in app.screen)
        (suites / "yard").mkdir()
        await app.pilot.press("enter")
        await app.until(lambda: "try again" in app.screen)
        assert "no garden.key here" in app.screen
        await app.pilot.press("escape")
        await app.until(lambda: isinstance(app.app.screen, ServerScreen))
        # The typed texts are restored.
        (suites / "yard" / "garden.key").touch()
        await app.pilot.press("enter")
        await app.until(lambda: isinstance(app.app.screen, PreviewScreen))
        assert "No case yet: n in the suite takes a request" in app.screen
        assert "1 tool: grow." in app.screen and "Set before it runs" in app.screen
        assert 'env = { TOKEN = "$TOKEN", LEVEL = "debug" }' in app.screen
        assert 'cwd = "yard"' in app.screen
        await app.pilot.press("enter")
        await app.until(lambda: app.app.screen is app.app.main)
        assert not (suites / "garden.toml").exists(), "it is unsaved"
        suite = app.app.main.selection.suite
        assert suite is not None and suite.dirty
        await app.press("ctrl+s")
        await app.until(lambda: (suites / "garden.toml").exists())
        loaded = load_suite(suites / "garden.toml")
        assert [problem.message for problem in loaded.problems] == ["the suite has no cases"]
        assert loaded.suite is not None and loaded.suite.cases == ()
        assert "planted" not in loaded.text


@pytest.mark.slow
async def test_servers_of_clients_are_offered_and_every_question_can_be_left(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    slow = {"command": sys.executable, "args": ["-c", "import time; time.sleep(600)"]}
    (suites / ".mcp.json").write_text(json.dumps({"mcpServers": {"sloth": slow}}), encoding="utf-8")
    async with opened(suites, live=True, size=(120, 40)) as app:
        await app.press("N", "down")
        await app.until(lambda: "sloth  Claude Code: " in app.screen)
        await app.press("down", "enter")
        await app.until(lambda: isinstance(app.app.screen, TrustScreen) and "Esc start nothing" in app.screen)
        await app.pilot.press("1")
        await app.until(lambda: isinstance(app.app.screen, ListingScreen) and "It starts" in app.screen)
        await app.pilot.press("escape")
        await app.until(lambda: isinstance(app.app.screen, ServerScreen))
        await app.press("escape")
        await app.until(lambda: "New suite" in app.screen)
        await app.press("escape")
        await app.until(lambda: app.app.screen is app.app.main)
        assert len(app.app.main.open_suites.suites) == 1
