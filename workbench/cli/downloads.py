"""Announces the download of a server on standard error, so that a long start does not look like a hang."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def announce_download(description: str, *, downloads: bool = False) -> Iterator[Callable[[], object]]:
    """Announce, if `downloads` is true, that the launcher of a server may have to download the server first.

    This function is an `AnnounceStart` of `workbench.tools.connection`."""
    if downloads:
        # Lazy import: most commands that import this module download nothing.
        from workbench.cli.redaction import warn

        warn(f"downloading {description}: this may take some minutes")
    yield lambda: None
