"""The process of a batch without a terminal: runs the plan, sends events to viewers, and writes the reports."""

from __future__ import annotations

import logging
import os
import pickle
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from workbench.cli.batch_command import run_approved
from workbench.cli.compare import ComparisonCommand
from workbench.cli.detach import BatchBegun, Job, JobRefused, TerminalLine, send_answer, silence_descriptor
from workbench.cli.live import Show
from workbench.cli.redaction import continue_as, redacted, warn
from workbench.cli.report_output import Output
from workbench.cli.run import report_on_runs
from workbench.dataclasses import dataclass
from workbench.engine.events import BatchEvent
from workbench.evaluation.approval import Approval
from workbench.evaluation.exit_codes import INFRASTRUCTURE, USAGE
from workbench.evaluation.plan import Plan
from workbench.evaluation.runtime import Runtime
from workbench.history.claims import claim
from workbench.history.history import History
from workbench.history.records import HistoryError
from workbench.remote.batch_server import BatchBroadcast
from workbench.remote.records import AttachError, DetachedBatch, claim_process, remove_stale, socket_address
from workbench.show.forms import forms_of
from workbench.show.text import Paint
from workbench.version import __version__

_logger = logging.getLogger(__name__)

_FINAL_OUTPUT_TIMEOUT_S = 2.0

_STORE_TIMEOUT_S = 30.0
"""The maximum time in seconds for storing the plan of a large batch."""

MakeReport = Callable[[Output], Iterable[str]]

_ERRORS = 2
"""The file descriptor of standard error, to which a suite's servers and modules write as well."""


def main(descriptor: int) -> None:
    """Receive a job over the socket `descriptor` from the command that started this process, and execute the job."""
    # This process has its own session without a terminal, so the hang-up of a terminal must not stop it.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    connection = socket.socket(fileno=descriptor)
    os.set_inheritable(descriptor, False)
    with connection.makefile("rb") as given:
        job, approval = pickle.load(given)
    _Process(connection, job, approval).run()


class _Process:
    """Runs the batch in the detached process.

    Output for a terminal goes to the waiting command until the batch has begun, and to viewers from then on."""

    def __init__(self, connection: socket.socket, job: Job, approval: Approval) -> None:
        self._connection = connection
        self._approval = approval
        self._broadcast: BatchBroadcast | None = None
        self._pieces: MakeReport | None = None
        self._problem: str | None = None
        output = job.output
        self._job = replace(
            job,
            output=_KeptOutput(
                output.form,
                output.file,
                output.quiet,
                output.verbose,
                output.further_outputs,
                summary=False,
                keep=self._keep,
            ),
        )

    def run(self) -> None:
        program = self._job.plan.program
        continue_as(program)
        # The batch may outlast the CI job that started it, so it must not write annotations or the summary.
        for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
            os.environ.pop(name, None)
        listening = self._listen()
        code = INFRASTRUCTURE
        try:
            code = self._make()
        except Exception:
            _logger.exception("the batch broke")
            warn("the batch failed unexpectedly: the log has the reason")
        sys.stderr.flush()
        silence_descriptor(_ERRORS)
        # A suite's processes may still hold standard error open, so the wait is limited.
        listening.join(_FINAL_OUTPUT_TIMEOUT_S)
        if self._broadcast is None:
            send_answer(self._connection, JobRefused(code))
        else:
            self._broadcast.end(code)
            reports = None
            if self._pieces is not None:
                reports = _viewer_output(self._pieces, self._job.command)
            self._broadcast.serve_reports(reports)
        sys.exit(code)

    def _make(self) -> int:
        job, plan = self._job, self._job.plan
        try:
            _reclaim(plan)
        except HistoryError as error:
            warn(f"nothing was run: {error}")
            return USAGE
        show = Show(sys.stdout, False, False, 80, Paint(False), plan.program.secrets)
        from_history = job.options is None
        live = run_approved(
            *(plan, self._approval, show, job.output, job.record, job.command, self), from_history=from_history
        )
        if self._problem is not None:
            warn(self._problem)
            return USAGE
        if isinstance(live, int):
            return live
        if job.options is None:
            return report_on_runs(live, plan, self._approval, job.baseline, job.output, show)
        comparing = ComparisonCommand(plan.program, job.options, job.output, job.only_differences)
        return comparing.report(live, plan, job.baseline)

    def begun(self, runtime: Runtime, name: str) -> None:
        until, plan = time.monotonic() + _STORE_TIMEOUT_S, self._job.plan
        while (number := runtime.batch_number(name)) is None and time.monotonic() < until:
            runtime.flush_history()
        history, folders = plan.history, plan.program.folders
        assert history is not None
        count = len(plan.runs)
        if plan.resumed is not None:
            count += plan.resumed.before.count
        try:
            if number is None:
                raise AttachError(f"the history {history} cannot be written, so no program could attach to the batch")
            # Killed processes leave their records behind, which each new batch removes.
            remove_stale(folders)
            claim_process(folders, history, number)
            known = DetachedBatch(
                history=str(history.resolve()),
                batch=number,
                command=self._job.command,
                version=__version__,
                pid=os.getpid(),
                socket=str(socket_address(folders, history, number)),
                planned=count,
                started_at=runtime.began_at(name) or "",
            )
            self._broadcast = BatchBroadcast(plan, known, _stop)
        except (AttachError, OSError) as error:
            self._problem = f"the batch was abandoned: {error}"
            runtime.stop_all()
            return
        send_answer(self._connection, BatchBegun(number, os.getpid()))
        self._connection.close()

    def on_event(self, event: BatchEvent) -> None:
        if self._broadcast is not None:
            self._broadcast.on_event(event)

    def _keep(self, pieces: MakeReport) -> None:
        self._pieces = pieces

    def _listen(self) -> threading.Thread:
        """Redirect standard error of this process and its children to the waiting command or to viewers."""
        reading, writing = os.pipe()
        os.dup2(writing, _ERRORS)
        os.close(writing)
        sys.stderr = os.fdopen(_ERRORS, "w", buffering=1, encoding="utf-8", errors="replace", closefd=False)

        def listen() -> None:
            with os.fdopen(reading, encoding="utf-8", errors="replace") as lines:
                for line in lines:
                    text = redacted(line.rstrip("\n"))
                    if self._broadcast is not None:
                        self._broadcast.send_output(text)
                    else:
                        send_answer(self._connection, TerminalLine(text))

        thread = threading.Thread(target=listen, name="errors", daemon=True)
        thread.start()
        return thread


@dataclass(frozen=True)
class _KeptOutput(Output):
    """The output of a process without a terminal: reports are written to files, and created for viewers on request."""

    keep: Callable[[MakeReport], None] = lambda _pieces: None

    def deliver(self, pieces: MakeReport) -> bool:
        """Write the reports to files, and keep `pieces`, which creates a report for each viewer.

        Returns whether all files could be written."""
        self.keep(pieces)
        written = self.deliver_to_file(pieces, "; 'workbench attach' shows the report")
        return self.deliver_further(pieces) and written


@dataclass(frozen=True)
class _ViewerOutput(Output):
    """A report's output for a viewer, in the form that the viewer asks for."""

    columns: int = 100
    cut: bool = False
    coloured: bool = False

    @property
    def width(self) -> int:
        return self.columns

    @property
    def cut_at(self) -> int | None:
        return self.columns if self.cut else None

    @property
    def paint(self) -> Paint:
        return Paint(self.coloured)


def _viewer_output(pieces: MakeReport, command: str) -> Callable[[Mapping[str, Any]], Iterable[str]]:
    def report_pieces(request: Mapping[str, Any]) -> Iterable[str]:
        form = request.get("form") or "text"
        forms = forms_of("compare" if command == "compare" else "run", for_report=True)
        if form not in forms:
            raise ValueError(f"'workbench {command}' has no {form} report to attach to; there are {', '.join(forms)}")
        columns = request.get("columns")
        return pieces(
            _ViewerOutput(
                form=form,
                quiet=request.get("quiet") is True,
                verbose=request.get("verbose") is True,
                columns=columns if isinstance(columns, int) and 0 < columns < 10_000 else 100,
                cut=request.get("cut") is True,
                coloured=request.get("coloured") is True,
            )
        )

    return report_pieces


def _stop() -> None:
    # The signal is sent to the main thread, because a signal to another thread might not wake it up.
    with suppress(ProcessLookupError):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)


def _reclaim(plan: Plan) -> None:
    """Reserve the batch to resume for this process, which runs it as it was planned.

    Raises HistoryError if another process runs the batch, or has run it since then."""
    if plan.resumed is None or plan.history is None:
        return
    number, handle = plan.resumed.batch.number, plan.resumed.handle
    taken = claim(Path(plan.history), number)
    with History(plan.history) as history:
        # Another program may have resumed the batch between planning and this claim.
        missing = {row.place for row in history.missing_runs(number)}
    if missing != set(handle.places.values()):
        taken.release()
        raise HistoryError(
            f"another program has continued batch {number} since it was planned: check the batch, and resume it again"
        )
    handle.claim = taken
