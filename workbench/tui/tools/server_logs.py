"""Opens the log of a server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from workbench.show.glyphs import GLYPHS
from workbench.show.visible import one_line
from workbench.suite.server_model import Server
from workbench.tools.server_process import log_file_of
from workbench.tui.kit.stage import Announce
from workbench.tui.tools.log_screen import LogScreen

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench


def open_log(app: Workbench) -> None:
    """Show the log of the server that ended the selected run, or else of the suite's first server."""
    suite, run = app.selection.suite, app.selection.run
    if suite is None or suite.file.suite is None or not suite.file.suite.servers:
        app.announce("This suite has no servers, so there is no log", "warned", GLYPHS.warned)
        return
    servers = suite.file.suite.servers
    # A server has a log only if the app starts it by a command. A server at a URL has none.
    server = next((server for server in servers if server.command is not None), servers[0])
    if run is not None and run.result is not None:
        finish = run.result.trajectory.finish
        if finish is not None and finish.server_output is not None:
            for other in servers:
                if other.name == finish.server_output.server:
                    server = other
    show_log(app, suite.path, server, app.announce)


def show_log(app: Workbench, suite_file: Path, server: Server, announce: Announce) -> None:
    """Show the log of a server, or announce why there is none."""
    if server.command is None:
        place = "in the program's log, because it runs inside Workbench"
        if server.url is not None:
            place = "where it runs"
        announce(f"The log of {one_line(server.name)} is {place}", "warned", GLYPHS.warned)
        return
    app.show(LogScreen(app, server.name, log_file_of(app.program.folders.server_logs, suite_file, server)))
