"""`n` on a tool: a model drafts cases for it, which are shown and become one step of the suite."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_draft import ADD, SHOP, drafting, submitted
from tests.providers.server import HANG, Answer, Server, document, error_document
from tests.tui.apps import Opened, opened, suites_in
from tests.tui.tools.test_tools import tools_of


def words(app: Opened) -> str:
    """Return the text of the screen without frames and line breaks."""
    return " ".join(word for word in app.screen.split() if word not in "│┃")


async def ask(app: Opened) -> None:
    await tools_of(app)
    await app.pilot.press("down", "n")
    await app.until(lambda: "About add: " in app.screen)
    assert "is asked 1 question, and each draft is run 3 times: up to 13 requests" in words(app)
    await app.pilot.press("1")


@pytest.mark.slow
async def test_cases_are_shown_and_added_as_one_step(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, shop=SHOP)
    with Server(drafting(lambda _: submitted(*ADD))) as server:
        async with opened(suites, models=[f"openai:m@{server.url}/v1"], live=True, size=(100, 60)) as app:
            suite = app.app.open_suites.at(suites / "shop.toml")
            assert suite is not None
            before = suite.document.text
            for answer, count in (("escape", 1), ("1", 3)):
                await ask(app)
                await app.until(lambda: "Add the drafted cases?" in app.screen and "choose" in app.screen)
                assert 'the schema of echo refuses "text"' in app.screen
                assert "add.a: expected 5, got 6" in words(app)
                assert "[31m" not in app.screen.replace("␛[31m", "")
                assert suite.document.text == before
                await app.pilot.press(answer)
                await app.until(lambda: "Add the drafted cases?" not in app.screen)
                assert len(suite.cases) == count
                await app.pilot.press("escape")
            assert suite.file.errors == ()
            drafted = suite.file.suite.cases[1:] if suite.file.suite is not None else ()
            assert {case.tags for case in drafted} == {("draft",)}
            await app.pilot.press("ctrl+z")
            assert suite.document.text == before


@pytest.mark.slow
async def test_what_goes_wrong_is_said_and_the_suite_stays(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, shop=SHOP)
    answers = [document(error_document("openai", "no"), 401), submitted("rubbish"), Answer((HANG,))]
    with Server(drafting(lambda _: answers.pop(0))) as server:
        async with opened(suites, models=[f"openai:m@{server.url}/v1"], live=True) as app:
            for said in ("requires a key", "add: the draft is not a JSON object"):
                await ask(app)
                await app.until(lambda: "Nothing was drafted: " in app.screen)
                assert said in app.screen
                await app.pilot.press("escape")
            await ask(app)
            await app.until(lambda: "n stops it" in app.screen)
            await app.pilot.press("n")
            await app.until(lambda: "Drafting was stopped" in app.screen)
            suite = app.app.open_suites.at(suites / "shop.toml")
            assert suite is not None and not suite.dirty
