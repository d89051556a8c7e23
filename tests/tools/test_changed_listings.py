"""Servers that change their tools while they run: the known tools follow, the tools of current runs stay."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.programs import grant_of
from tests.sampled_rows import first_of
from tests.tools.conftest import QUICK, SERVERS
from tests.tools.web import hosted
from workbench.config.program import Program
from workbench.suite.suite_file import load_suite
from workbench.tools import session
from workbench.tools.listings import ListingChange
from workbench.tools.server_pool import ServerPool
from workbench.trajectory.events import ToolCall

SUITE = """
format = 1
name = "Growing"
execute = true

[[servers]]
name = "garden"
{reached}
prefix = "g_"

[[cases]]
name = "Grow"
user = "Grow."
"""


class Told:
    """The messages of a pool about listings, in order."""

    def __init__(self) -> None:
        self.listed: asyncio.Queue[tuple[Path, str, ListingChange | None]] = asyncio.Queue()

    def __call__(self, suite_file: Path, server: str, change: ListingChange | None) -> None:
        self.listed.put_nowait((suite_file, server, change))

    async def next(self) -> ListingChange | None:
        async with asyncio.timeout(30):
            return (await self.listed.get())[2]


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
async def told_pool(program: Program, told: Told) -> AsyncIterator[ServerPool]:
    pool = ServerPool(program, QUICK, on_listing=told)
    yield pool
    await pool.close()


@pytest.fixture(params=first_of(["growing_before.py", "http", "growing.py", "old"], 2))
def reached(request: pytest.FixtureRequest) -> Iterator[str]:
    """The connection to the server: the SDK over stdio, an older protocol, or HTTP with either."""
    if request.param in ("http", "old"):
        with hosted("growing", request.param) as server:
            yield f'url = "{server.url}"'
    else:
        yield f"command = {json.dumps([sys.executable, str(SERVERS / request.param)])}"


async def test_changed_tools_are_known_at_once_and_offered_from_the_next_batch_on(
    tmp_path: Path, program: Program, told_pool: ServerPool, told: Told, reached: str
) -> None:
    pool, path = told_pool, tmp_path / "growing.toml"
    path.write_text(SUITE.format(reached=reached), encoding="utf-8")
    suite = load_suite(path).suite
    assert suite is not None
    definition, case = suite.servers[0], suite.cases[0]
    grant = grant_of(suite, path, program.environment)
    started = await pool.running_server(path, definition, grant)
    assert await told.next() is None
    before = await pool.open_toolbox(suite, case, path, execute=True, grant=grant)
    status = pool.status(path, definition)
    waiting = asyncio.create_task(pool.wait_for_change(path, definition, status.tools))
    assert not (await started.call("g_grow", {})).is_error
    change = await told.next()
    assert change == ListingChange(("g_peek",), ("g_wither",), ())
    assert str(change) == "added g_peek; removed g_wither"
    await asyncio.wait_for(waiting, 30)
    names = {"g_grow", "g_peek"}
    assert {tool.name for tool in pool.status(path, definition).tools} == names
    assert {tool.name for tool in pool.stored_listings(suite, path)["garden"].tools} == names
    await asyncio.wait_for(pool.wait_for_change(path, definition, status.tools), 30)  # what was seen is over

    # A run keeps the earlier listing, as does every other run of its batch.
    for toolbox in (before, await pool.open_toolbox(suite, case, path, execute=True, grant=grant)):
        assert {tool.name for tool in toolbox.definitions} == {"g_grow", "g_wither"}
    await pool.begin_batch()
    after = await pool.open_toolbox(suite, case, path, execute=True, grant=grant)
    assert {tool.name for tool in after.definitions} == names
    answer = await (await after.plan(ToolCall("c1", "g_peek", {"place": "roof"}))).run()
    assert not answer.is_error


async def test_a_server_that_announces_a_change_at_each_listing_is_not_asked_without_end(
    tmp_path: Path, program: Program, told_pool: ServerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "MIN_LISTING_INTERVAL_S", 60.0)
    path = tmp_path / "restless.toml"
    reached = f"command = {json.dumps([sys.executable, str(SERVERS / 'restless.py')])}"
    path.write_text(SUITE.format(reached=reached), encoding="utf-8")
    suite = load_suite(path).suite
    assert suite is not None
    server = await told_pool.running_server(path, suite.servers[0], grant_of(suite, path, program.environment))
    counts = [int((await server.call("g_count", {})).content) for _ in range(100)]
    assert counts[-1] == 2
