"""Open the app: check the terminal, and set the environment variables that Textual reads at import."""

from __future__ import annotations

import gc
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from workbench.config.program import SERVED_VARIABLE, Program
from workbench.dataclasses import dataclass
from workbench.engine.events import BatchListener
from workbench.engine.garbage import OBJECTS_BETWEEN_COLLECTIONS
from workbench.startup import QuickDataclasses
from workbench.tui.terminal.environment import frames_per_second, terminal_environment, why_unusable

if TYPE_CHECKING:
    from workbench.analysis.side_by_side import LeaveCallback
    from workbench.evaluation.options import AppStart, AppView

OFFLINE_PACE_MS = 15.0
"""The delay between the offline model's events, in milliseconds. Without a delay, no user could follow the answers."""


_WITHOUT_TERMINAL: Mapping[AppView, str] = {
    "run": "without --break, 'workbench run'",
    "compare": "'workbench compare --format text'",
}

NO_TERMINAL = USAGE = 2
"""The exit code if the app cannot be shown at all, or not as requested."""


def open_app(
    paths: Sequence[str],
    program: Program,
    *,
    models: Sequence[str] = (),
    trust: bool = False,
    theme: str | None = None,
    read_only: bool = False,
    only_ascii: bool = False,
    record: Path | None = None,
    history: Path | None = None,
    start: AppStart | None = None,
    on_leave: LeaveCallback | None = None,
    shown_batch: int | None = None,
) -> int:
    """Open the app on suite files and folders, and return the exit code of the session.

    Without a path, open the current folder if it has suites, otherwise the bundled samples.

    `models` are the initially selected models. `trust` trusts every suite. `theme` is the initial theme. Runs are
    recorded in the existing folder `record`, and batches are stored in the file `history`. `start` selects runs to
    start at once. If these runs are a comparison, `on_leave` is called with the results at the end. `shown_batch` is
    the number of a batch to open at once. With `read_only`, the process changes nothing."""
    reason = why_unusable(os.environ, reads=_is_terminal(sys.stdin), writes=_is_terminal(sys.stderr))
    if reason is not None:
        if sys.stderr is not None:
            without = "'workbench run'"
            if shown_batch is not None:
                without = "'workbench attach' without --app"
            elif start is not None:
                without = _WITHOUT_TERMINAL[start.opens]
            _warn(f"the app cannot be shown: {reason}; {without} needs no terminal", program)
        return NO_TERMINAL
    terminal = terminal_environment(os.environ, only_ascii=only_ascii)
    # Textual reads these variables only once, during the import below.
    os.environ.setdefault("TEXTUAL_FPS", str(frames_per_second(os.environ)))
    os.environ.setdefault("TEXTUAL_COLOR_SYSTEM", terminal.colours)
    if terminal.served:
        from workbench.tui.terminal.served_driver import reserve_pipes

        reserve_pipes()
        # Programs that the app starts do not run in the browser, so they must not get this variable.
        del os.environ[SERVED_VARIABLE]

    with QuickDataclasses(dataclass):
        from workbench.tui.runs.runner import AppRuntime
        from workbench.tui.shell.workbench import Workbench

    # Commands use so high a threshold that a collection would stop the screen for a tenth of a second.
    gc.set_threshold(min(gc.get_threshold()[0], OBJECTS_BETWEEN_COLLECTIONS))

    # The offline model is slowed down to make its steps visible. A comparison shows latencies, so the model then runs
    # at full speed.
    pace_ms = OFFLINE_PACE_MS if start is None or start.opens == "run" else 0

    def open_runtime(listener: BatchListener) -> AppRuntime:
        from workbench.evaluation.runtime import Runtime

        return Runtime(
            listener,
            program,
            pace_ms=pace_ms,
            original_pace=start is None or start.options.original_pace,
            asks=True,
            renew_judgements=start is not None and start.options.renew_judgements,
            history=history,
        )

    if read_only:
        from workbench.config.read_only import become_read_only
        from workbench.remote.records import socket_places

        become_read_only(program.folders.log, socket_places(program.folders))
    app = Workbench(
        [Path(path) for path in paths],
        open_runtime=open_runtime,
        program=program,
        terminal=terminal,
        models=models,
        theme=theme,
        trust=trust,
        record=record,
        history=history,
        start=start,
        shown_batch=shown_batch,
    )
    if app.appearance.unknown is not None:
        there_are = ", ".join(known.name for known in app.appearance.themes)
        _warn(f"there is no theme {app.appearance.unknown!r}: give one of {there_are}", program)
        return USAGE
    try:
        app.run()
    finally:
        app.leaving.clean_up()
        logging.shutdown()
        for stream in (sys.__stdout__, sys.__stderr__):
            if stream is not None:
                discard_stream(stream)
    if on_leave is not None and app.starting.compared is not None and not app.return_code:
        app.starting.compared.report(on_leave)
    return app.return_code or 0


def discard_stream(stream: TextIO) -> None:
    """Flush a stream. If its reader is gone, redirect the stream to the null device."""
    # Python flushes the standard streams at exit. A failure there would change the exit code.
    try:
        stream.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


def _warn(message: str, program: Program) -> None:
    sys.stderr.write(f"{program.secrets.redact(message)}\n")
