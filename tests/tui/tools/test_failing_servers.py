"""Servers that do not start, or die in the middle of a call, as a run and the screen of tools show them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.tui.apps import Opened, opened, suites_in
from workbench.tui.case.form.view import FormView
from workbench.tui.tools.log_screen import LogScreen

SERVERS = Path(__file__).parents[2] / "tools" / "servers"
SERVER = f"""
import os, sys
from pathlib import Path

sys.path.insert(0, {str(SERVERS)!r})
from plain import PlainServer

def complain(about):
    for number in range(1, 13):
        print(f"{{about}} line {{number}}", file=sys.stderr, flush=True)

here = Path(__file__).parent
if (here / "broken").exists():
    complain("start")
    sys.exit(3)
server = PlainServer("shop")

@server.tool(readOnlyHint=True)
def crash() -> str:
    "Crash it, at once."
    complain("call")
    os._exit(4)

def polish() -> str:
    "Polish it."
    return "polished"

if (here / "more").exists():
    server.tool()(polish)
server.run()
"""
SUITE = """
format = 1
name = "Workshop"

[[servers]]
name = "shop"
command = ["python", "server.py"]

[[cases]]
name = "Crash"
user = "Crash it."
execute = true
[[cases.ordered]]
tool = "crash"
""".lstrip()


def workshop(tmp_path: Path) -> Path:
    suites = suites_in(tmp_path, shop=SUITE)
    (suites / "server.py").write_text(SERVER, encoding="utf-8")
    return suites


def shows_the_end_of(app: Opened, about: str) -> bool:
    """Return whether the last ten of the server's twelve lines are on the screen."""
    shown = {int(number) for number in re.findall(rf"{about} line (\d+)", app.screen)}
    return shown == set(range(3, 13)) and "the last 10 of 12 lines" in app.screen


async def offered_in_the_form(app: Opened) -> str:
    """The screen while the tool of a new call is typed in the form, which is then left as it was."""
    await app.press("2")
    app.app.main.query_one(FormView).go_to(("ordered",))
    await app.press("plus")
    screen = app.screen
    await app.press("escape", "escape")
    return screen


@pytest.mark.slow
async def test_the_line_that_tells_why_a_server_ended_is_in_the_notice_and_on_its_row(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, shop=SUITE)
    why = "boom: DATABASE_URL is not set"
    (suites / "server.py").write_text(f"import sys\nsys.exit({why!r})\n", encoding="utf-8")
    async with opened(suites, size=(120, 36), trust=True, live=True, models=("offline",)) as app:
        await app.press("t", "home", "r")
        await app.until(lambda: "shop  down: boom: DATABASE" in app.screen)
        await app.until(lambda: "opens it" in app.screen)
        said = " ".join(" ".join(app.screen.splitlines()[-3:]).split())
        assert f"server 'shop' ended with exit code 1 before it listed its tools: {why}; log: l opens it" in said


@pytest.mark.slow
async def test_what_a_dying_server_wrote_is_in_the_run_and_on_the_screen_of_tools(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, shop=SUITE)
    (suites / "server.py").write_text(SERVER, encoding="utf-8")
    (suites / "broken").touch()
    async with opened(suites, size=(160, 60), trust=True, live=True, models=("offline",)) as app:
        await app.press("t", "home", "r")
        await app.until(lambda: "shop  down" in app.screen and shows_the_end_of(app, "start"))
        await app.press("escape")
        await app.press("r")
        await app.until(lambda: shows_the_end_of(app, "start"))
        assert "ended with exit code 3" in app.screen
        assert "executing" not in app.screen
        assert "starting" not in app.screen
        assert "Crash it, at once" not in await offered_in_the_form(app)

        (suites / "broken").unlink()
        await app.press("1", "r")
        await app.until(lambda: shows_the_end_of(app, "call"))
        assert "ended with exit code 4" in app.screen
        assert "executing" not in app.screen
        assert "→ crash  on shop" in app.screen
        offered = await offered_in_the_form(app)
        assert "Crash it, at once" in offered
        assert "Polish it" not in offered

        await app.press("t", "home")
        await app.until(lambda: "shop  down" in app.screen and shows_the_end_of(app, "call"))
        await app.press("down", "i", "r")
        await app.until(lambda: "No answer" in app.screen and shows_the_end_of(app, "call"))
        assert "ended with exit code 4" in app.screen
        assert "l log" in app.screen.splitlines()[-1]
        await app.press("l")
        await app.until(lambda: isinstance(app.app.screen, LogScreen) and "call line 12" in app.screen)
        await app.press("escape", "escape")
        (suites / "more").touch()
        await app.press("r")
        await app.until(lambda: "✓ shop runs: 2 tools" in app.screen)
        await app.press("escape")
        assert "Polish it" in await offered_in_the_form(app)


async def test_a_server_that_wants_a_login_says_what_to_type(tmp_path: Path) -> None:
    address = 'url = "https://shop.test/mcp"\nauth = "oauth"'
    suites = suites_in(tmp_path, shop=SUITE.replace('command = ["python", "server.py"]', address))
    async with opened(suites, size=(160, 60), trust=True, live=True, models=("offline",)) as app:
        await app.press("t", "home", "r")
        await app.until(lambda: "shop  down" in app.screen)
        assert "run 'workbench login shop" in app.screen
        await app.press("escape", "r")
        await app.until(lambda: "wants a login: run 'workbench login shop" in app.screen)
