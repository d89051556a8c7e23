"""`O`: a proxy between a real SDK program and a local endpoint, its conversations on the screen, and cases of them."""

from __future__ import annotations

import asyncio
import re
import socket
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp
import pytest

from tests.exchange.observed.test_proxy import KEY, body_of, exchanged, talk
from tests.providers.server import APIS, HANG, Answer, Api, Call, Server, Signal, Tell, said
from tests.sampled_rows import first_of
from tests.tui.apps import SMART_HOME, Opened, opened, suites_in
from workbench.api.evaluate import evaluate_async
from workbench.tui.observed.screen import LiveScreen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

CITY = Call("get_weather", {"city": "Oslo"}, "call_1")


@asynccontextmanager
async def recording(
    tmp_path: Path, answers: Sequence[Answer], api: Api = "openai", size: tuple[int, int] = (120, 36)
) -> AsyncIterator[tuple[Opened, str]]:
    """The app with a proxy before an endpoint of these answers, and the base URL for a program."""
    suites = suites_in(tmp_path, home=SMART_HOME)
    with Server(list(answers)) as server:
        own = server.url if api == "anthropic" else f"{server.url}/v1"
        async with opened(suites, models=[f"{api}:m@{own}"], size=size) as app:
            await app.press("O")
            assert own in app.screen and "127.0.0.1:0" in app.screen
            await app.press("enter")
            variable = "ANTHROPIC_BASE_URL" if api == "anthropic" else "OPENAI_BASE_URL"
            await app.until(lambda: f"{variable}=" in app.screen)
            found = re.search(rf"{variable}=(\S+)", app.screen)
            assert found is not None
            yield app, found[1]


async def refuses(url: str) -> bool:
    try:
        async with aiohttp.ClientSession() as session, session.get(url):
            return False
    except aiohttp.ClientConnectorError:
        return True


@pytest.mark.slow
@pytest.mark.parametrize("api", first_of(APIS, 1))
async def test_a_conversation_appears_step_by_step_and_becomes_a_case_that_passes(api: Api, tmp_path: Path) -> None:
    first, last = Signal(), Signal()
    called, told = said(api, calls=[CITY]), said(api, f"It rains, {KEY} \x1b[31m.")
    answers = [replace(called, pieces=(first, *called.pieces)), replace(told, pieces=(last, *told.pieces))]
    async with recording(tmp_path, answers, api, size=(120, 50)) as (app, url):
        program = asyncio.create_task(talk(api, url, "Oslo", stream=True))
        await app.until(lambda: "the model is being asked" in app.screen)
        assert "What is the weather in Oslo?" in app.screen and "1 conversation" in app.screen
        await app.press("a")
        assert "the model is being asked: wait" in app.screen
        first.set()
        await app.until(lambda: "→ get_weather" in app.screen and "rain Oslo" in app.screen)
        last.set()
        await program
        await app.until(lambda: "whole" in app.screen)
        assert "It rains, $RECORDED_KEY" in app.screen and KEY not in app.screen and "\x1b" not in app.screen

        suite = app.app.open_suites.suites[0]
        before = suite.document.text
        await app.pilot.press("a")
        await app.until(lambda: "Add the case to" in app.screen)
        await app.pilot.press("enter")
        await app.until(lambda: "A case in home.toml" in app.screen)
        assert suite.document.text == before
        await app.pilot.press("enter")
        await app.until(lambda: "New case What is the weather in Oslo?" in app.screen)
        assert len(suite.cases) == 4 and not suite.file.errors
        case = suite.cases[-1]
        (run,) = app.app.main.selection.book.runs_of((suite.path, case.id))
        assert run.status == "passed" and run.recorded
        await app.press("escape")
        await app.until(lambda: not isinstance(app.app.screen, LiveScreen))
        # The proxy closes on the engine's thread, after the screen is gone.
        for _ in range(1000):
            if await refuses(url):
                break
            await app.pilot.pause()
        assert await refuses(url)
        await app.until(lambda: "get_weather" in app.screen)
        assert KEY not in suite.document.text
        await app.press("ctrl+z")
        assert suite.document.text == before


@pytest.mark.slow
async def test_a_new_suite_holds_the_case_and_its_run_can_be_replayed(tmp_path: Path) -> None:
    answers = [said("openai", calls=[CITY]), said("openai", "It rains.")]
    async with recording(tmp_path, answers, size=(80, 24)) as (app, url):
        await talk("openai", url, "Oslo", stream=True)
        await app.until(lambda: "whole" in app.screen)
        await app.pilot.press("a")
        await app.until(lambda: "a new suite" in app.screen)
        await app.pilot.press("down", "enter")
        await app.until(lambda: "The file, in" in app.screen)
        await app.pilot.press(*"seen", "enter")
        await app.until(lambda: "A case in seen.toml" in app.screen)
        await app.pilot.press("enter")
        await app.until(lambda: "New case" in app.screen)
        await app.press("escape")  # it is a case, and nothing is under way: no question
        await app.press("ctrl+s")
        await app.until(lambda: (tmp_path / "suites" / "seen.toml").is_file())
        await app.press("w")
        await app.until(lambda: "Saved in" in app.screen)
    (run,) = (tmp_path / "suites").rglob("*.jsonl")
    report = await evaluate_async(tmp_path / "suites" / "seen.toml", model=f"replay:{run}")
    assert [finished.result.status for finished in report.runs] == ["passed"]


@pytest.mark.slow
async def test_what_is_under_way_is_asked_about_and_what_breaks_off_is_said(tmp_path: Path) -> None:
    came = Signal()
    answers = [said("openai", "Hello."), said("openai"), Answer((b": waits\n\n", Tell(came), HANG))]
    async with recording(tmp_path, answers) as (app, url):
        await exchanged(url, "/chat/completions", body_of("openai", "First"), {})
        await exchanged(url, "/chat/completions", b"{", {})
        await app.until(lambda: "is not JSON" in app.screen)
        waiting = asyncio.create_task(exchanged(url, "/chat/completions", body_of("openai", "Second"), {}))
        await asyncio.to_thread(came.wait)
        await app.until(lambda: "2 conversations" in app.screen)
        await app.press("down")
        await app.pilot.press("x")
        await app.until(lambda: "that request is dropped" in app.screen)
        await app.press("escape")
        assert not waiting.done()
        await app.pilot.press("x")
        await app.until(lambda: "that request is dropped" in app.screen)
        await app.pilot.press("1")
        await app.until(lambda: "broken off: the program or the proxy" in app.screen)
        assert not (await waiting)[3] and await refuses(url)
        await app.press("a")
        assert "It cannot become a case" in app.screen
        await app.press("slash", *"first", "enter")
        assert "Second" not in app.screen
        await app.press("escape")
        await app.pilot.press("escape")
        await app.until(lambda: "1 conversation is not a case yet" in app.screen)
        await app.pilot.press("1")
        await app.until(lambda: app.app.shows_main)


@pytest.mark.slow
async def test_a_port_in_use_is_said_and_asked_for_again(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        async with opened(suites_in(tmp_path, home=SMART_HOME)) as app:
            await app.press("O")
            assert "openai" in app.screen
            await app.press("tab", "ctrl+u", *"0.0.0.0:80", "enter")
            words = " ".join(app.screen.replace("│", " ").split())
            assert "so listen on this machine only, such as on 127.0.0.1:80" in words
            await app.press("ctrl+u", *f":{port}", "enter")
            await app.until(lambda: f"cannot listen on 127.0.0.1:{port}: " in app.screen)
            assert "in use; name another port" in app.screen
            await app.press("tab", "ctrl+u", *":0", "enter")
            await app.until(lambda: "OPENAI_BASE_URL=" in app.screen)
            await app.press("y")
            assert "Copied" in app.screen or "copied" in app.screen
