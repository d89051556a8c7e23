"""The app asks before a batch goes beyond its limit on cost."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.providers.server import Server, said
from tests.tui.apps import Opened, opened, suites_in
from workbench.tui.runs.dialogs import CostLimitScreen

PAID = (
    '[models.paid]\nprovider = "openai"\nmodel = "m"\nbase_url = "{url}/v1"\nprice = {{ input = 0, output = 100000 }}\n'
)
UNPRICED = '[models.paid]\nprovider = "openai"\nmodel = "m"\nbase_url = "{url}/v1"\n'
GREETINGS = 'format = 1\nname = "Greetings"\nlimits = { batch_cost_usd = 1.5 }\n' + "".join(
    f'\n[[cases]]\nname = "Greeting {number}"\nuser = "Say hello."\nexpect_no_calls = true\n' for number in range(5)
)
"""A run costs $0.70."""


@asynccontextmanager
async def asking(tmp_path: Path, server: Server, models: str = PAID) -> AsyncIterator[Opened]:
    suites = suites_in(tmp_path, greetings=GREETINGS)
    (suites / "workbench.toml").write_text(models.format(url=server.url), encoding="utf-8")
    async with opened(suites, size=(100, 30), trust=True, live=True, models=("paid",)) as app:
        await app.press("home", "R")
        yield app


@pytest.mark.slow
async def test_it_shows_what_was_spent_and_goes_on_as_far_as_it_may(tmp_path: Path) -> None:
    with Server(lambda _: said("openai", "Hello.")) as server:
        async with asking(tmp_path, server) as app:
            await app.until(lambda: "↑↓ choose" in app.screen)
            assert len(server.requests) == 2
            assert "$1.40 of $1.50 is spent, judges included." in app.screen
            assert "3 runs left: the next one would probably go beyond the limit." in app.screen
            assert "up to $3.00" in app.screen
            await app.press("1")
            await app.until(lambda: "$2.80 of $3.00 is spent" in app.screen and "↑↓ choose" in app.screen)
            assert len(server.requests) == 4
            await app.press("2")
            await app.until(lambda: not app.app.main.book.progress().is_active)
            assert len(server.requests) == 5


@pytest.mark.slow
async def test_stop_leaves_the_rest_unmade(tmp_path: Path) -> None:
    with Server(lambda _: said("openai", "Hello.")) as server:
        async with asking(tmp_path, server) as app:
            await app.until(lambda: "↑↓ choose" in app.screen)
            await app.press("escape")
            await app.until(lambda: not app.app.main.book.progress().is_active)
            assert len(server.requests) == 2
            assert "3 runs not made: cost limit of $1.50" in app.screen


@pytest.mark.slow
async def test_stopping_everything_withdraws_the_question(tmp_path: Path) -> None:
    with Server(lambda _: said("openai", "Hello.")) as server:
        async with asking(tmp_path, server) as app:
            await app.until(lambda: "↑↓ choose" in app.screen)
            app.app.services.stop_all()
            await app.until(lambda: not app.app.main.book.progress().is_active)
            assert not isinstance(app.app.screen, CostLimitScreen)


async def test_an_unknown_price_runs_nothing_and_says_where_prices_are_set(tmp_path: Path) -> None:
    with Server(lambda _: said("openai", "Hello.")) as server:
        async with asking(tmp_path, server, UNPRICED) as app:
            await app.until(
                lambda: "Nothing was run: a limit on cost needs the price of the model 'paid'" in app.screen
            )
            assert server.requests == []
