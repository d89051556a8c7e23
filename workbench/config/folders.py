"""The folders into which the program writes, and where it looks for the user's settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import platformdirs

from workbench.dataclasses import dataclass

APP_NAME = "toolcall-workbench"

HISTORY_NAME = "history.sqlite3"


@dataclass(frozen=True)
class Folders:
    """The user's folders. Nothing is created before it is needed."""

    state: Path
    """State of the program: trust, drafts, breakpoints, listings of tools, the audit log, judgements."""
    log: Path
    """Logs, among them each MCP server's standard error."""
    config: Path
    """The user's settings: `workbench.toml` with models."""
    data: Path
    """The user's data: the history of all batches."""

    @property
    def trust_file(self) -> Path:
        return self.state / "trust.json"

    @property
    def listings(self) -> Path:
        """The tools that servers listed when they last ran."""
        return self.state / "listings"

    @property
    def drafts(self) -> Path:
        """Unsaved changes of suites, one journal for each."""
        return self.state / "drafts"

    @property
    def deleted(self) -> Path:
        """Suites that were deleted in the app."""
        return self.state / "deleted"

    @property
    def breakpoints(self) -> Path:
        """Breakpoints, one file for each project."""
        return self.state / "breakpoints"

    @property
    def audit_log(self) -> Path:
        """Every real execution of a tool, one JSON line each."""
        return self.state / "executions.jsonl"

    @property
    def judgements(self) -> Path:
        """Judgements of values, one JSON line each."""
        return self.state / "judgements.jsonl"

    @property
    def detached(self) -> Path:
        """Batches that go on without a terminal: their sockets, and what became of them."""
        return self.state / "batches"

    @property
    def history(self) -> Path:
        """The history of all batches, for projects without their own."""
        return self.data / HISTORY_NAME

    @property
    def server_logs(self) -> Path:
        return self.log / "servers"


def home_in(environment: Mapping[str, str]) -> Path | None:
    """Returns the user's home, as the environment names it."""
    named = environment.get("HOME") or environment.get("USERPROFILE")
    return Path(named).resolve() if named else None


def user_folders() -> Folders:
    """Returns the folders of the current user by the conventions of the platform and `XDG_STATE_HOME`,
    `XDG_CONFIG_HOME` and `XDG_DATA_HOME`."""
    return Folders(
        state=platformdirs.user_state_path(APP_NAME, appauthor=False),
        log=platformdirs.user_log_path(APP_NAME, appauthor=False),
        config=platformdirs.user_config_path(APP_NAME, appauthor=False),
        data=platformdirs.user_data_path(APP_NAME, appauthor=False),
    )
