"""Offers to start servers that were just written into a suite, so that their tools are known."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.authoring.document import HEAD
from workbench.authoring.open_suite import OpenSuite
from workbench.authoring.workspace import OpenSuites, SuitesChanged
from workbench.numerals import counted
from workbench.show.glyphs import GLYPHS
from workbench.show.views.server_output import failure_text
from workbench.show.visible import one_line
from workbench.suite.suite_file import SuiteFile
from workbench.tui.kit.actions import key_for

if TYPE_CHECKING:
    from workbench.evaluation.approval import Approval
    from workbench.suite.model import Server
    from workbench.tui.runs.runner import Runner
    from workbench.tui.shell.workbench import Workbench


class ServerOffers:
    """Starts servers as soon as they are complete and valid and nothing is being typed, after the question of trust.

    The same text of a server is offered once, whatever the answer."""

    def __init__(
        self,
        stage: Workbench,
        open_suites: OpenSuites,
        runner: Runner,
        approve: Callable[[SuiteFile], Coroutine[Any, Any, Approval | str]],
        is_typing: Callable[[], bool],
    ) -> None:
        """Create the offers.

        `approve` asks for trust and returns the approval for the servers of a suite, or why there is none."""
        self._stage = stage
        self._open_suites = open_suites
        self._runner = runner
        self._approve = approve
        self._is_typing = is_typing
        self._seen: dict[Path, set[str]] = {}
        """The servers, as they are defined, that were not written just now, or were offered."""
        self._edited: set[Path] = set()

    def follow(self, change: SuitesChanged) -> None:
        """Note edits of the settings of suites.

        Servers that come in another way are not offered."""
        for suite in change.suites:
            if change.how == "edited" and change.index == HEAD:
                self._edited.add(suite.path)
            elif change.how != "edited":
                self._see(suite)
        self.look_soon()

    def look_soon(self) -> None:
        """Look for new servers after the key that is being handled."""
        if self._edited:
            self._stage.call_later(self._look)

    def _look(self) -> None:
        if self._is_typing() or not self._stage.shows_main:
            return
        for path in tuple(self._edited):
            self._edited.discard(path)
            suite = self._open_suites.at(path)
            if suite is None or suite.settings_file is None:
                continue
            fresh = self._see(suite)
            if fresh:
                self._stage.work(self._offer(suite.settings_file, fresh), "start")

    def _see(self, suite: OpenSuite) -> list[Server]:
        """Return the servers of a suite that were not seen before."""
        file, seen = suite.settings_file, self._seen.setdefault(suite.path, set())
        if file is None or file.suite is None:
            return []
        fresh = []
        for server in file.suite.servers:
            if server.model_dump_json() not in seen:
                fresh.append(server)
        seen.update(server.model_dump_json() for server in fresh)
        return fresh

    async def _offer(self, file: SuiteFile, servers: list[Server]) -> None:
        from workbench.engine.server_calls import ServerOf

        approval = await self._approve(file)
        if isinstance(approval, str):
            self._stage.announce(approval, "warned", GLYPHS.warned)
            return
        grant = approval.grant(file.path)
        if grant is None:
            return
        serving = await self._runner.open_serving()
        for server in servers:
            status = await asyncio.wrap_future(serving.start(ServerOf(file.path, server), grant))
            if status.state == "running":
                tools = counted(len(status.tools), "tool")
                self._stage.announce(f"{one_line(server.name)} runs: {tools} known now", "passed", GLYPHS.passed)
            else:
                text = failure_text(status.reason, status.output, key_for("server.log"))
                self._stage.announce(text, "error", GLYPHS.error)
