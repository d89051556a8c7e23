"""The screen of tools: the tools of servers, which are started and called only by a key."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.programs import grant_of
from tests.tui.apps import Opened, assert_golden, opened, suites_in
from workbench.engine.server_calls import SuiteServer
from workbench.suite.suite_file import load_suite
from workbench.tools.listings import StoredListings
from workbench.trajectory.events import ToolDefinition
from workbench.tui.kit.help import HelpScreen
from workbench.tui.runs.dialogs import ManualExecutionScreen, TrustScreen
from workbench.tui.tools.call import CallScreen
from workbench.tui.tools.screen import ToolsScreen

SERVERS = Path(__file__).parents[2] / "tools" / "servers"
SHOP = f"""
format = 1
name = "Workshop"

[[tools]]
name = "written"
description = "Written out, for the sake of it."

[[servers]]
name = "shop"
command = ["python", "{SERVERS / "workshop.py"}"]

[[cases]]
name = "Add"
user = "Add 1 and 2"
[[cases.ordered]]
tool = "add"
args = {{ a = 1, b = 2 }}
""".lstrip()
HOSTILE = "\x1b[31m[/nope]\u202e list[int]\r\n\0 end"


async def tools_of(app: Opened) -> ToolsScreen:
    """Open the screen and wait until it knows all tools."""
    await app.press("t")
    screen = app.app.screen
    assert isinstance(screen, ToolsScreen)
    await app.until(lambda: bool(screen.state.rows))
    return screen


async def go_to(app: Opened, tool: str) -> None:
    """Put the cursor on a tool, by the filter."""
    await app.press("slash")
    for letter in tool:
        await app.pilot.press("underscore" if letter == "_" else letter)
    await app.press("enter")


def remember(suites: Path, *tools: ToolDefinition, days: int = 3) -> None:
    """Let the server of the shop have listed some tools before."""
    file = suites / "shop.toml"
    suite = load_suite(file).suite
    assert suite is not None
    listings = StoredListings(
        suites.parent / "state" / "listings", lambda: datetime.now().astimezone() - timedelta(days=days)
    )
    listings.remember(file, suite.servers[0], tools)


def audited(folder: Path) -> list[tuple[str, str, str]]:
    """Return the finished executions in the audit log."""
    lines = (folder / "state" / "executions.jsonl").read_text(encoding="utf-8").splitlines()
    said = map(json.loads, lines)
    return [(line["tool"], line["allowed"], line["outcome"]) for line in said if line["event"] == "ended"]


@pytest.mark.slow
async def test_a_server_is_started_by_a_key_after_trust_called_and_what_it_answers_is_used(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, shop=SHOP)) as app:
        screen = await tools_of(app)
        assert "· shop  not started" in app.screen
        await app.pilot.press("end", "r")
        await app.until(lambda: isinstance(app.app.screen, TrustScreen))
        assert "workshop.py" in app.screen
        await app.pilot.press("escape")
        await app.until(lambda: "Nothing was started" in app.screen)
        await app.pilot.press("r")
        await app.until(lambda: isinstance(app.app.screen, TrustScreen))
        await app.pilot.press("1")
        await app.until(lambda: "✓ shop runs: 13 tools" in app.screen)
        await go_to(app, "add")
        assert_golden(app.screen, "tools-120x36")

        await app.press("i")
        assert isinstance(app.app.screen, CallScreen)
        await app.press("enter", "4", "enter", "enter", "x", "enter", "r")
        assert "✗ 'x' is not of type 'integer'" in app.screen
        assert "Not called: b: 'x' is not of type 'integer'" in app.screen
        await app.pilot.press("enter", "backspace", "5", "enter", "r")
        await app.until(lambda: "✓ Answer" in app.screen)
        assert "\n  9" in app.screen
        await app.press("M", "C", "escape")
        case = app.app.main.selection.tree.selected
        assert case is not None
        assert case.open is not None
        edited = case.open.document.block(0)
        assert '[[cases.mocks]]\ntool = "add"\nwhen = { a = 4, b = 5 }\nresult = "9"' in edited
        assert edited.count("[[cases.ordered]]") == 2
        assert audited(tmp_path) == [("add", "by hand", "ok")]

        await go_to(app, "crash")
        await app.press("i")
        assert "asks first" in app.screen
        await app.pilot.press("r")
        await app.until(lambda: isinstance(app.app.screen, ManualExecutionScreen))
        await app.pilot.press("1")
        await app.until(lambda: "▲ server 'shop' ended with exit code 3" in app.screen)
        await app.pilot.press("escape")
        await app.until(lambda: "▲ shop  down" in app.screen)
        assert not [shelf for shelf in screen.state.sources if shelf.state == "running"]
        assert audited(tmp_path)[-1] == ("crash", "by hand", "server error")


@pytest.mark.slow
async def test_a_server_that_dies_by_itself_is_seen_without_a_key(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, shop=SHOP), trust=True, size=(80, 24)) as app:
        await tools_of(app)
        await app.pilot.press("end", "r")
        await app.until(lambda: "shop  running" in app.screen)
        serving = app.app.services.runner.serving
        assert serving is not None
        (shelf,) = [shelf for shelf in app.app.screen.state.sources if shelf.server]  # type: ignore[attr-defined]
        grant = grant_of(shelf.file.suite, shelf.file.path, app.app.program.environment)
        serving.call(SuiteServer(shelf.file.path, shelf.server), grant, "crash", {})
        await app.until(lambda: "shop  down" in app.screen)
        assert "shop runs" not in app.screen
        await app.pilot.press("r")
        await app.until(lambda: "shop  running" in app.screen)
        await app.pilot.press("x")
        await app.until(lambda: "shop  not started" in app.screen)
        assert "14 tools" in app.screen


async def test_without_starting_anything_the_remembered_tools_are_shown_one_column_at_a_time(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, shop=SHOP)
    schema = {"type": "object", "required": ["room"], "properties": {"room": {"type": "string"}}}
    remember(suites, ToolDefinition("set_lights", "Sets the lights of a room.", schema, {"destructiveHint": False}))  # type: ignore[arg-type]
    async with opened(suites, size=(80, 24)) as app:
        await tools_of(app)
        await app.press("end")
        assert_golden(app.screen, "tools-80x24")
        await app.press("enter")
        assert "3 days ago" in app.screen
        assert "non-destructive" in app.screen
        assert "! room: it has no description" in app.screen
        assert "shop  not started" not in app.screen
        await app.press("escape")
        assert "shop  not started" in app.screen
        await app.press("home", "down", "i")
        assert "there is no server to call" in app.screen
        await app.press("question_mark")
        assert isinstance(app.app.screen, HelpScreen)
        assert "Here, in the tools" in app.screen
        await app.press("escape", "escape")
        assert len(app.app.screen_stack) == 1


async def test_what_servers_say_is_shown_safely(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, shop=SHOP)
    properties = {HOSTILE: {"type": "string", "description": HOSTILE, "enum": [HOSTILE]}}
    remember(suites, ToolDefinition(f"zz{HOSTILE}", HOSTILE, {"properties": properties}, {HOSTILE: HOSTILE}))  # type: ignore[dict-item]
    for size in ((120, 36), (40, 10)):
        async with opened(suites, size=size) as app:
            await tools_of(app)
            seen = ""
            for keys in (("end",), ("enter",), ("i",), ("right",), ("enter",)):
                await app.press(*keys)
                seen += app.screen
            assert isinstance(app.app.screen, CallScreen)
            assert "␛[31m[/nope]" in seen
            assert not {"\x1b", "\u202e", "\0", "\r"} & set(seen)


@pytest.mark.slow
async def test_all_commands_of_the_screen_are_offered_there_too(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, shop=SHOP), size=(120, 60)) as app:
        tools = await tools_of(app)
        await app.press("question_mark", "ctrl+p")
        assert "Stop the server" in app.screen
        assert "Run the case" not in app.screen
        await app.press(*"log is", "enter")
        await app.until(lambda: app.app.screen is tools)
        assert "it will be in" in app.screen
