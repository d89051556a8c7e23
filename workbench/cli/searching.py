"""Shows a long search for suites on standard error: where it is, and what it has found."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from workbench.cli.door import warn, write
from workbench.show.visible import one_line
from workbench.suite.project import Search

SHOWN_AFTER_S = 1.0
_REDRAWN_EVERY_S = 0.2


@contextmanager
def shown_search(*, quiet: bool = False) -> Iterator[Search]:
    """Give a search that is shown while it lasts. Afterwards, unless `quiet`, warn of folders that it skipped."""
    search, over = Search(), threading.Event()
    shower = threading.Thread(target=_show, args=(search, over), daemon=True)
    shower.start()
    try:
        yield search
    finally:
        over.set()
        shower.join()
    if search.skipped_message is not None and not quiet:
        warn(f"{search.skipped_message} (give a folder to search it)")


def _show(search: Search, over: threading.Event) -> None:
    """Draw one line again and again on a terminal; elsewhere, write it once."""
    is_drawn = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    wait_s = SHOWN_AFTER_S
    while not over.wait(wait_s):
        wait_s = _REDRAWN_EVERY_S
        message = search.progress_message
        if is_drawn:
            _draw(f"Ctrl+C stops: {message}" if message is not None else "")
        elif message is not None:
            warn(f"{message} (Ctrl+C stops the search)")
            return
    if is_drawn and wait_s != SHOWN_AFTER_S:
        _draw("")


def _draw(line: str) -> None:
    """Replace the line, cut where the terminal ends."""
    from rich.cells import set_cell_size  # on use: most searches take no second

    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns
    except OSError:
        columns = 80
    fitting = set_cell_size(one_line(line), max(columns - 3, 1)).rstrip()  # room for the ^C that the terminal shows
    write(f"\r\x1b[2K{fitting}", sys.stderr)
    sys.stderr.flush()
