"""Says on standard error that a server is downloaded, so that nobody mistakes a long start for a hang."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def announce_download(what: str, *, downloads: bool = False) -> Iterator[Callable[[], object]]:
    """Announce a start-up if a launcher may be downloading its server; see `workbench.tools.connection.Announce`."""
    if downloads:
        # Imported on use: commands import this file for their options alone.
        from workbench.cli.redaction import warn

        warn(f"downloading {what}: this may take some minutes")
    yield lambda: None
