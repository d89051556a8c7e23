"""Rerunning cells of the comparison: only cells with errors, and after a question if it costs money."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.providers.server import Answer, Request, Server, said
from tests.tui.apps import SMART_HOME, Opened, opened, suites_in
from tests.tui.comparison.test_compare import added_up, comparing, finish
from tests.tui.comparison.test_compared_batch import GREETINGS
from workbench.analysis.estimate import Estimate, estimate
from workbench.providers.built_in import is_built_in
from workbench.show.views.values import estimate_text
from workbench.tui.comparison.cells_screen import RerunScreen

HELLO = said("openai", "Hello.")
MODEL = '[models.{name}]\nprovider = "openai"\nmodel = "m"\nbase_url = "{url}/v1"\n{price}'


async def all_ended(app: Opened, requests: list[Request], number: int) -> None:
    await app.until(lambda: len(requests) == number and not app.app.main.book.progress().is_active)


@pytest.mark.slow
async def test_paid_cells_run_again_after_a_question_with_an_estimate_also_the_next_day(tmp_path: Path) -> None:
    suites, history = suites_in(tmp_path, greetings=GREETINGS), tmp_path / "history.sqlite3"
    with Server(lambda _: HELLO) as paid:
        price = "price = { input = 1000.0, output = 1000.0 }\n"
        (suites / "workbench.toml").write_text(MODEL.format(name="paid", url=paid.url, price=price), encoding="utf-8")
        async with opened(suites, size=(80, 24), trust=True, live=True, history=history, models=("paid",)) as app:
            await comparing(app, "home")
            await app.press("R")
            await all_ended(app, paid.requests, 2)
            await app.press("r")
            assert isinstance(app.app.screen, RerunScreen)
            assert "1 run: about" in app.screen and "$" in app.screen and "It ran before." in app.screen
            await app.press("escape")
            await app.press("r", "1")
            await all_ended(app, paid.requests, 3)
        async with opened(suites, size=(160, 48), trust=True, live=True, history=history, models=("paid",)) as app:
            await comparing(app, "home")
            await app.press("R")
            assert isinstance(app.app.screen, RerunScreen)
            assert "2 runs: about" in app.screen and "2 cells ran before." in app.screen
            await app.press("escape")
            assert len(paid.requests) == 3
            await app.press("R", "1")
            await all_ended(app, paid.requests, 5)


async def test_only_what_ended_in_an_error_is_run_again(tmp_path: Path) -> None:
    broken = [True]

    def answer(request: Request) -> Answer:
        if broken[0] and "hello again" in str(request.body):
            return Answer((b'{"error": {"message": "no"}}',), status=400)
        return HELLO

    suites = suites_in(tmp_path, greetings=GREETINGS.replace("Say hello.", "Say hello again.", 1))
    with Server(answer) as local:
        (suites / "workbench.toml").write_text(MODEL.format(name="local", url=local.url, price=""), encoding="utf-8")
        async with opened(suites, size=(160, 48), trust=True, live=True, models=("local",)) as app:
            screen = await comparing(app, "home")
            await app.press("F")
            assert "No cell that is shown ended in an error" in app.screen
            await app.press("R")
            await all_ended(app, local.requests, 2)
            await app.press("R")
            assert "F reruns the 1 cell in error" in app.screen and "tokens, cost unknown" in app.screen
            broken[0] = False
            await app.press("F")
            await all_ended(app, local.requests, 3)
            assert [screen.state.at(key).is_in_error for key in screen.state.planned()] == [False, False]


def test_nothing_is_estimated_without_earlier_runs() -> None:
    nothing = estimate([(("suite", "case", "model"), 3)], {}, is_free=is_built_in)
    assert (nothing.runs, nothing.without_cost, estimate_text(nothing)) == (3, 3, "cost unknown")
    assert estimate_text(estimate([(("suite", "case", "offline"), 3)], {}, is_free=is_built_in)) == "$0"
    assert estimate_text(Estimate(3, 1200, 0.0, 0, 2)) == "about 1,200 tokens, cost unknown for 2 runs"
    assert (
        estimate_text(Estimate(3, 1200, 0.5, 0, 2)) == "about 1,200 tokens and about $0.5000, cost unknown for 2 runs"
    )
    assert estimate_text(Estimate(1, 1200, 0.0, 0, 0)) == "about 1,200 tokens and $0"


async def test_a_total_that_rests_on_part_of_the_cases_says_on_how_many(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, home=SMART_HOME), size=(160, 48), models=("one", "two")) as app:
        screen = await comparing(app)
        for planned in await app.run("R"):
            if planned.model == "one" or planned.case.name == "Lights off":
                finish(app, planned)
        await added_up(app, screen)
        totals = dict(screen.totals.rows)
        assert (totals["graded cases"], totals["pass rate"]) == (["3 of 3", "1 of 3"], ["100.0%", "100.0% of 1"])
        assert "100.0% of 1" in app.screen
