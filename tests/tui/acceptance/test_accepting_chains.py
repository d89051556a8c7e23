"""Accepting a run of a chain on screen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chains import chain_happenings
from tests.trajectories import CallSpec
from tests.tui.apps import Opened, opened, opening, suites_in
from workbench.show.spans import plain

CHAIN = """
format = 1
name = "Sums"

[[cases]]
id = "sum"
name = "Sum"

[[cases.steps]]
user = "Add 2 and 3, then take half of it."
tool = "add"
args = { a = { range = [1, 4] }, b = 3 }
mock_result = "5"

[[cases.steps]]
tool = "halve"
args = { a = 5 }

[[cases.steps]]
user = "Double it."
tool = "double"

[[tools]]
name = "add"

[[tools]]
name = "halve"

[[tools]]
name = "double"
""".lstrip()
ADD: CallSpec = ("add", {"a": 2, "b": 3})
HALVE: CallSpec = ("halve", {"a": 4})


async def ran(app: Opened) -> None:
    (run,) = await app.run("r")
    app.session.finish(run, chain_happenings([ADD], [HALVE], [], start=opening(run)))
    app.session.end_batch()
    await app.settle()


async def test_a_run_of_a_chain_is_accepted_step_by_step(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, sums=CHAIN), size=(80, 24)) as app:
        await ran(app)
        await app.press("A")
        for line in ("step 1 add", "step 2 halve", "double in step 3  no longer expected", "as written"):
            assert line in app.screen
        await app.press("enter")
        assert "Sum: accepted 2 calls, 1 expectation dropped: Ctrl+Z brings it back" in " ".join(app.screen.split())
        assert "the run now passes" in " ".join(app.screen.split())
        (suite,) = app.app.main.open_suites.suites
        block = suite.document.block(0)
        assert "args = { a = { range = [1, 4] }, b = 3 }" in block
        assert "args = { a = 4 }" in block
        assert 'tool = "double"' not in block
        await app.press("ctrl+z")
        assert suite.document.text == CHAIN


@pytest.mark.slow
async def test_one_step_takes_its_call_from_the_call_or_from_where_it_begins(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, sums=CHAIN), size=(80, 24)) as app:
        await ran(app)
        await app.press("3")
        (suite,) = app.app.main.open_suites.suites
        pane = app.app.main.run_pane.run_list
        for line in ("   → halve", " step 2 of 3"):
            shown = [plain(pane.line_at(at)) for at in range(pane.line_count())]
            pane.move_cursor(next(at for at, text in enumerate(shown) if text.startswith(line)))
            await app.press("a", "enter")
            assert "args = { a = 4 }" in suite.document.block(0)
            assert 'tool = "double"' in suite.document.block(0)
            await app.press("ctrl+z")
        assert suite.document.text == CHAIN
