"""Where the program keeps what it writes: trust, logs and other state of this user."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import platformdirs

APP_NAME = "toolcall-workbench"


@dataclass(frozen=True)
class Folders:
    """The user's folders. Nothing is created before it is needed."""

    state: Path
    """What the program remembers: trust."""
    log: Path
    """Logs, among them each MCP server's standard error."""

    @property
    def trust_file(self) -> Path:
        return self.state / "trust.json"

    @property
    def server_logs(self) -> Path:
        return self.log / "servers"


def user_folders() -> Folders:
    """The folders of the current user, as the platform (and `XDG_STATE_HOME`) would have them."""
    return Folders(
        state=platformdirs.user_state_path(APP_NAME, appauthor=False),
        log=platformdirs.user_log_path(APP_NAME, appauthor=False),
    )
