"""Cloud models in the form: the fields of the chosen cloud, their problems, and the saved text."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.providers.server import document, serve
from tests.tui.apps import Opened, opened, suites_in
from tests.tui.models.test_adding import TALK, offer, typed

KEY = "planted-key-0123456789"


async def to(app: Opened, field: str, key: str = "down") -> None:
    for _ in range(30):
        focused = app.app.focused
        if focused is not None and focused.id == field:
            return
        await app.press(key)
    raise AssertionError(f"no way to {field}")


async def choose(app: Opened, field: str, words: str) -> None:
    await to(app, field)
    for _ in range(8):
        if f"‹ {words} ›" in app.screen:
            return
        await app.press("right")
    raise AssertionError(f"{field} has no {words}")


@pytest.mark.slow
async def test_each_cloud_has_its_fields_and_is_written_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(monkeypatch)
    suites = suites_in(tmp_path, talk=TALK)
    (suites / ".env").write_text(f"MY_KEY={KEY}\n")
    with serve(document({"message": "no"}, 403), document({"message": "no"}, 403)) as server:
        async with opened(suites, size=(100, 40), variables={"HOME": str(tmp_path)}) as app:
            await app.press("m", "ctrl+n")
            assert "AWS profile" not in app.screen
            await choose(app, "provider", "azure")
            assert "resource" in app.screen and "API version" in app.screen and "region" not in app.screen
            assert "It has no address: write resource" in app.screen
            await to(app, "resource")
            await typed(app, "contoso")
            assert "It is asked at https://contoso.openai.azure.com/openai/v1 with Entra ID" in app.screen
            await to(app, "provider", "up")
            await choose(app, "provider", "bedrock")
            assert "AWS profile" in app.screen and "resource" not in app.screen
            await to(app, "region")
            await typed(app, "x/#")
            await to(app, "model")
            await typed(app, "my-claude")
            await app.press("enter")
            assert "▲ must be a region of AWS, such as us-east-1" in app.screen
            await to(app, "region", "up")
            await app.press(*["backspace"] * len("x/#"))
            await typed(app, "us-east-1")
            assert "https://bedrock-runtime.us-east-1.amazonaws.com" in app.screen
            await choose(app, "endpoint", "mantle")
            await to(app, "base_url", "up")
            await typed(app, server.url)
            await to(app, "api_key_env")
            await typed(app, "MY_KEY")
            assert "✓ The key is found in MY_KEY." in app.screen
            await app.press("enter")
            await app.until(lambda: "[✓] my-claude" in app.screen)
            assert KEY not in app.screen
            assert "authorization" not in server.requests[0].headers
    file = tmp_path / "state" / "config" / "workbench.toml"
    assert tomllib.loads(file.read_text())["models"]["my-claude"] == {
        "provider": "bedrock",
        "region": "us-east-1",
        "endpoint": "mantle",
        "base_url": server.url,
        "api_key_env": "MY_KEY",
    }


@pytest.mark.slow
async def test_a_known_model_keeps_what_is_not_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch)
    suites = suites_in(tmp_path, talk=TALK)
    settings = '[models.m]\nprovider = "vertex"\nmodel = "claude"\nproject = "old"  # ours\napi = "messages"\n'
    (suites / "workbench.toml").write_text(settings)
    async with opened(suites, size=(100, 40), variables={"HOME": str(tmp_path)}) as app:
        await app.press("m", "down", "ctrl+e")
        assert "Change m" in app.screen
        await to(app, "project", "up")
        await app.press(*["backspace"] * 3)
        await typed(app, "new")
        await app.press("enter")
        # Nothing is fetched for a workbench.toml that is not trusted.
        await app.until(lambda: "that you do not trust yet" in app.screen)
        await app.press("enter")
    assert (suites / "workbench.toml").read_text() == settings.replace('"old"', '"new"')
