"""The app sends the probes of tool calling to a model, and shows their results."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.providers.server import HANG, Answer, Server
from tests.providers.tool_model import endpoint
from tests.sampled_rows import first_of
from tests.tui.apps import opened, suites_in
from workbench.config import models

TALK = """
format = 1
name = "Talk"
models = ["MODEL"]
[[cases]]
name = "Rain"
user = "Say rain."
response_contains = ["rain"]
"""


@pytest.fixture(autouse=True)
def no_presets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "PRESETS", ())


@pytest.mark.parametrize("size", first_of([(80, 24), (160, 48)], 1))
async def test_a_key_shows_what_works_and_what_is_wrong(tmp_path: Path, size: tuple[int, int]) -> None:
    with Server(endpoint("openai", "as text")) as server:
        suites = suites_in(tmp_path, talk=TALK.replace("MODEL", f"openai:test-model@{server.url}/v1"))
        async with opened(suites, size=size) as app:
            await app.press("m", "ctrl+t")
            assert "offline has no endpoint" in app.screen.replace("Offline", "offline")
            await app.press("down")
            assert "test tools" in app.screen or size[0] == 80
            await app.press("ctrl+t")
            await app.until(lambda: "one call" in app.screen and "Asking" not in app.screen)
            assert "✗ one call               the endpoint returned the call as text" in app.screen
            await app.press("pagedown", "pagedown")
            assert "✓ usage while streaming" in app.screen
            assert "→ turn on the tool parser" in app.screen
            await app.press("escape")
            assert "handles tools" not in app.screen
            assert "Models" in app.screen


async def test_leaving_stops_the_probes(tmp_path: Path) -> None:
    with Server(lambda _request: Answer((HANG,))) as server:
        suites = suites_in(tmp_path, talk=TALK.replace("MODEL", f"openai:test-model@{server.url}/v1"))
        async with opened(suites, size=(80, 24)) as app:
            await app.press("m", "down")
            await app.pilot.press("ctrl+t")
            while not server.requests:
                await app.pilot.pause()
            assert "answers and has test-model" in app.screen
            await app.press("escape")
            assert "handles tools" not in app.screen
        assert len(server.requests) == 1


@pytest.mark.slow
async def test_a_projects_model_is_probed_once_a_run_was_allowed(tmp_path: Path) -> None:
    with Server(endpoint("openai")) as server:
        suites = suites_in(tmp_path, talk=TALK.replace("MODEL", "near"))
        (suites / "workbench.toml").write_text(f'[models.near]\nprovider = "openai"\nbase_url = "{server.url}/v1"\n')
        async with opened(suites, size=(80, 24), variables={"HOME": str(tmp_path)}) as app:
            await app.press("R")
            await app.until(lambda: "until this program ends" in app.screen)
            await app.press("1")
            await app.press("m", "down", "ctrl+t")
            await app.until(lambda: "one call" in app.screen and "Asking" not in app.screen)


async def test_a_projects_model_is_not_probed_before_trust(tmp_path: Path) -> None:
    with Server(endpoint("openai")) as server:
        suites = suites_in(tmp_path, talk=TALK.replace("MODEL", "near"))
        (suites / "workbench.toml").write_text(f'[models.near]\nprovider = "openai"\nbase_url = "{server.url}/v1"\n')
        async with opened(suites, size=(80, 24), variables={"HOME": str(tmp_path)}) as app:
            await app.press("m", "down", "ctrl+t")
            await app.until(lambda: "that you do not trust yet" in app.screen)
        assert server.requests == server.listings == []
