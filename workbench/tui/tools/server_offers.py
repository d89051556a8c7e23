"""Offers to start a server that the user has just added to a suite, so the app can list its tools."""

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
    from workbench.suite.server_model import Server
    from workbench.tui.runs.runner import Runner
    from workbench.tui.shell.workbench import Workbench


class ServerOffers:
    """Asks for trust in newly typed servers, and starts them.

    The user is asked once about each definition of a server, when it is valid and the user has stopped typing."""

    def __init__(
        self,
        app: Workbench,
        open_suites: OpenSuites,
        runner: Runner,
        approve: Callable[[SuiteFile], Coroutine[Any, Any, Approval | str]],
        is_typing: Callable[[], bool],
    ) -> None:
        """Create the offers.

        `approve` asks the user for trust in a suite's servers. It returns an approval, or why there is none."""
        self._app = app
        self._open_suites = open_suites
        self._runner = runner
        self._approve = approve
        self._is_typing = is_typing
        self._seen: dict[Path, set[str]] = {}
        """The definitions of servers that were offered or came with a file, by suite."""
        self._edited: set[Path] = set()
        """The suites with settings edited since the last check."""

    def follow(self, change: SuitesChanged) -> None:
        """Look for new servers in edited suites. The servers of a suite read from disk are not new."""
        # Only servers that the user typed are offered, not servers in a file read from disk.
        for suite in change.suites:
            if change.how == "edited" and change.index == HEAD:
                self._edited.add(suite.path)
            elif change.how != "edited":
                self._take_new_servers(suite)
        self.check_soon()

    def check_soon(self) -> None:
        """Look for new servers after the current key was handled."""
        if self._edited:
            self._app.call_later(self._check)

    def _check(self) -> None:
        # Until the user stops typing and is on the main screen, the edited suites stay recorded.
        if self._is_typing() or not self._app.shows_main:
            return
        for path in tuple(self._edited):
            self._edited.discard(path)
            suite = self._open_suites.at(path)
            if suite is None or suite.settings_file is None:
                continue
            fresh = self._take_new_servers(suite)
            if fresh:
                self._app.work(self._offer(suite.settings_file, fresh), "start")

    def _take_new_servers(self, suite: OpenSuite) -> list[Server]:
        """Return the servers of a suite with unseen definitions, and mark these definitions as seen."""
        file, seen = suite.settings_file, self._seen.setdefault(suite.path, set())
        if file is None or file.suite is None:
            return []
        fresh: list[Server] = []
        for server in file.suite.servers:
            definition = repr(server)
            if definition not in seen:
                seen.add(definition)
                fresh.append(server)
        return fresh

    async def _offer(self, file: SuiteFile, servers: list[Server]) -> None:
        from workbench.engine.server_calls import SuiteServer

        approval = await self._approve(file)
        if isinstance(approval, str):
            self._app.announce(approval, "warned", GLYPHS.warned)
            return
        grant = approval.grant(file.path)
        if grant is None:
            return
        serving = await self._runner.open_serving()
        for server in servers:
            status = await asyncio.wrap_future(serving.start(SuiteServer(file.path, server), grant))
            if status.state == "running":
                tools = counted(len(status.tools), "tool")
                self._app.announce(f"{one_line(server.name)} runs: {tools} known now", "passed", GLYPHS.passed)
            else:
                text = failure_text(status.reason, status.output, key_for("server.log"))
                self._app.announce(text, "error", GLYPHS.error)
