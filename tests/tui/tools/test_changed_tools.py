"""A server changes its tools while it runs: the app follows and reports it on any screen."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from tests.programs import grant_of
from tests.tools.conftest import SERVERS
from tests.tui.apps import opened, suites_in
from workbench.authoring.document import HEAD
from workbench.engine.server_calls import SuiteServer

SUITE = f"""
format = 1
name = "Growing"

[[servers]]
name = "garden"
command = {json.dumps([sys.executable, str(SERVERS / "growing_before.py")])}

[[cases]]
name = "Grow"
user = "Grow."
[[cases.ordered]]
tool = "peek"
"""


@pytest.mark.slow
async def test_changed_tools_are_known_and_named_in_a_quiet_notice(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, growing=SUITE)
    async with opened(suites, live=True, trust=True, size=(160, 40)) as app:
        (open_suite,) = app.app.open_suites.suites
        suite = open_suite.file.suite
        assert suite is not None
        server = SuiteServer(open_suite.path, suite.servers[0])
        grant = grant_of(suite, open_suite.path, app.app.program.environment)
        serving = await app.app.services.runner.open_serving()

        def known() -> set[str]:
            header = open_suite.document.table(HEAD)
            return {tool.name for tool in app.app.main.known_tools.of(header, open_suite.path)}

        await asyncio.wrap_future(serving.start(server, grant))
        await app.until(lambda: known() == {"grow", "wither"})
        assert "lists different tools" not in app.screen
        await app.press("t")
        await app.until(lambda: "wither" in app.screen)
        await asyncio.wrap_future(serving.call(server, grant, "grow", {}))
        await app.until(lambda: known() == {"grow", "peek"})
        await app.until(lambda: "peek" in app.screen and "wither" not in app.screen)
        await app.press("escape")
        await app.until(lambda: "garden lists different tools now: added peek; removed wither" in app.screen)
