"""Opens the screen of tools, and implements what it needs from the rest of the app."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.show.glyphs import GLYPHS
from workbench.show.visible import one_line
from workbench.tui.kit.stage import Announce, Stage
from workbench.tui.tree.selection import Selection

if TYPE_CHECKING:
    from workbench.evaluation.approval import Approval
    from workbench.suite.model import Server
    from workbench.suite.render import Table
    from workbench.suite.suite_file import SuiteFile
    from workbench.trajectory.events import ToolDefinition
    from workbench.tui.tools.call_lines import CallForm
    from workbench.tui.tools.drafting import ToolDrafter
    from workbench.tui.tools.servers import Known


class ToolsCommands:
    """Opens the screen of tools. The forms of calls by hand are stored until the program ends."""

    def __init__(
        self,
        stage: Stage,
        selection: Selection,
        known: Known,
        *,
        approve_servers: Callable[[SuiteFile], Coroutine[Any, Any, Approval | str]],
        tools_changed: Callable[[], None],
        turn_breakpoint: Callable[[str, Announce], None],
        drafter: ToolDrafter,
        logs: Path,
        vary: Callable[[Path, ToolDefinition, Announce, Callable[[], object]], None],
    ) -> None:
        self._logs = logs
        self._stage = stage
        self._selection = selection
        self._known = known
        self.approve_servers = approve_servers
        self.tools_changed = tools_changed
        self.turn_breakpoint = turn_breakpoint
        self.vary = vary
        self.draft_or_stop = drafter.draft_or_stop
        self._forms: dict[tuple[Path, str], CallForm] = {}
        self.methods: dict[str, Callable[[], object]] = {"tools": self._open, "server.log": self._open_log}

    def _open(self) -> None:
        from workbench.tui.tools.screen import ToolsScreen

        suites, place = self._selection.suites_below()
        screen = ToolsScreen(self._stage, [suite.file for suite in suites], place, self._forms, self._known, self)
        # The main form uses the known tools, which may have changed meanwhile.
        self._stage.show(screen, lambda _: self._selection.show_again())

    def _open_log(self) -> None:
        """Show the log of the server that ended the selected run, otherwise of the suite's first server."""
        suite, run = self._selection.suite, self._selection.run
        servers = suite.file.suite.servers if suite is not None and suite.file.suite is not None else ()
        if suite is None or not servers:
            self._stage.announce("This suite has no servers, so there is no log", "warned", GLYPHS.warned)
            return
        result = run.result if run is not None else None
        finish = result.trajectory.finish if result is not None else None
        ended_by = finish.server_output.server if finish is not None and finish.server_output is not None else None
        commands = [server for server in servers if server.command is not None]
        server = next((server for server in servers if server.name == ended_by), (commands or servers)[0])
        self.show_log(suite.path, server, self._stage.announce)

    def show_log(self, suite_file: Path, server: Server, announce: Announce) -> None:
        """Show the log of a server, or announce why it has none."""
        if server.command is None:
            where = (
                "where it runs" if server.url is not None else "in the program's log, because it runs inside Workbench"
            )
            announce(f"The log of {one_line(server.name)} is {where}", "warned", GLYPHS.warned)
            return
        from workbench.tools.server_process import log_file_of
        from workbench.tui.tools.log_screen import LogScreen

        self._stage.show(LogScreen(self._stage, server.name, log_file_of(self._logs, suite_file, server)))

    def file_at(self, path: Path) -> SuiteFile | None:
        """Return the current state of a suite."""
        suite = self._selection.open_suites.at(path)
        return suite.file if suite is not None else None

    def change_case(self, suite_file: Path, change: Callable[[Table], Table], done: str) -> str:
        """Change the selected case. See `call_screen.IntoCase`."""
        from workbench.tui.tools.call_screen import NotInCaseError

        suite, case = self._selection.suite, self._selection.outline
        if suite is None or case is None or suite.path != suite_file:
            raise NotInCaseError
        if suite.why_not_editable is not None:
            raise ValueError(suite.why_not_editable)
        document = suite.document.with_case(case.index, change(suite.document.table(case.index)))
        self._selection.open_suites.change(suite, document, done, case=case.key)
        return case.name
