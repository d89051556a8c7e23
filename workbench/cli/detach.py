"""Runs a batch in a separate process without a terminal.

The command first asks all questions and reports all errors. It then sends the plan and the approval to the process over
a socket."""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.cli.batch_command import Record, approve_runs
from workbench.cli.redaction import warn, write
from workbench.cli.report_output import Output
from workbench.config.folders import history_option
from workbench.dataclasses import dataclass
from workbench.evaluation.approval import Approval
from workbench.evaluation.exit_codes import INFRASTRUCTURE, OK, USAGE
from workbench.evaluation.options import RunOptions
from workbench.evaluation.plan import Plan
from workbench.grading.packed import fast_pickle
from workbench.history.records import ResumedBy
from workbench.numerals import counted
from workbench.remote.records import AttachError, own_folder, socket_folder
from workbench.show.forms import forms_of
from workbench.tools.watched_start import MARK

if TYPE_CHECKING:
    from workbench.evaluation.baseline import Baseline


@dataclass(frozen=True)
class Job:
    """What a process without a terminal has to do: run `plan`, and report like `command`.

    Only a comparison has `options` and `only_differences`."""

    plan: Plan
    output: Output
    record: Record | None
    command: ResumedBy
    baseline: Baseline | None = None
    options: RunOptions | None = None
    only_differences: bool = False


@dataclass(frozen=True)
class BatchBegun:
    """A message of the detached process: the batch has begun, and other programs can attach to it."""

    batch: int
    pid: int


@dataclass(frozen=True)
class JobRefused:
    """A message of the detached process: it has reported an error and starts no runs.

    Holds the exit code for the command."""

    exit_code: int


@dataclass(frozen=True)
class TerminalLine:
    """A message of the detached process before the batch has begun: a line for the terminal."""

    text: str


Answer = BatchBegun | JobRefused | TerminalLine


def detached(job: Job, *, trust: bool, frozen: bool = False) -> int:
    """Run a batch in a process that outlives this one.

    Return an exit code as soon as the batch has begun."""
    plan = job.plan
    if (why := _why_not(job)) is not None:
        plan.release_claim()
        warn(f"nothing was run: {why}", plan.program.secrets)
        return USAGE
    approval = approve_runs(plan, job.output, trust=trust, record=job.record, frozen=frozen)
    if isinstance(approval, int):
        return approval
    # This process releases its claim on a resumed batch, so that the new process can claim it.
    plan.release_claim()
    answer = _hand_over(job, approval)
    if not isinstance(answer, BatchBegun):
        return answer.exit_code
    assert plan.history is not None
    if job.output.quiet:
        write(f"{answer.batch}\n")
        return OK
    option = history_option(plan.history)
    write(
        f"batch {answer.batch} runs without this terminal: {counted(len(plan.runs), 'run')}, process {answer.pid}\n"
        f"  to watch it: workbench attach {answer.batch}{option}\n"
        f"  to stop it: workbench batches --stop {answer.batch}{option}\n"
    )
    return OK


def _why_not(job: Job) -> str | None:
    output = job.output
    if job.plan.history is None:
        return "a batch without a terminal needs a history: leave out --no-history"
    if output.file is None and output.form not in (None, "text"):
        instead = "omit it" if output.form == "github" else "write the report to a file with -o FILE"
        if output.form in forms_of("compare" if job.command == "compare" else "run", for_report=True):
            instead += f", or ask for it with 'workbench attach --format {output.form}'"
        return f"--format {output.form} writes to a terminal, which --detach leaves: {instead}"
    folders = job.plan.program.folders
    try:
        # The folder is created here, because the process without a terminal could not show an error.
        own_folder(folders.detached)
        socket_folder(folders)
    except AttachError as error:
        return str(error)
    except OSError as error:
        return f"the record of the batch cannot be written to {folders.detached}: {error.strerror or error}"
    return None


def _hand_over(job: Job, approval: Approval) -> BatchBegun | JobRefused:
    ours, theirs = socket.socketpair()
    # The process gets the same `sys.path`, so that it imports the same modules. The option `-P` keeps Python from
    # adding the current folder.
    begin = f"from workbench.cli.detached_process import main; main({theirs.fileno()})"
    with ours:
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", f"import sys; sys.path[:] = {sys.path!r}; {begin}", "workbench batch"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                # This end of the pipe is read until the batch has begun. The process then redirects its standard error.
                stderr=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
                # Another Workbench that started this process as a server marks it by this variable. If the new process
                # inherited it, the other Workbench would stop it as well.
                env={name: value for name, value in os.environ.items() if name != MARK},
                start_new_session=True,
            )
        plan = replace(job.plan, specs=None)
        if plan.resumed is not None:
            # A claim is a file lock of this process and cannot be transferred, so the new process claims the batch
            # again.
            handle = replace(plan.resumed.handle, claim=None)
            plan = replace(plan, resumed=replace(plan.resumed, handle=handle))
        try:
            # The process may already have ended. Its last message is read below.
            with suppress(ConnectionError):
                ours.sendall(fast_pickle((replace(job, plan=plan), approval)))
                # Closing this direction marks the end of the job. Answers come back over the same socket.
                ours.shutdown(socket.SHUT_WR)
            return _answer(ours, process)
        except KeyboardInterrupt:
            # The user does not know yet that the batch would continue, so an interrupt also ends the process.
            process.terminate()
            raise


def _answer(connection: socket.socket, process: subprocess.Popen[bytes]) -> BatchBegun | JobRefused:
    with connection.makefile("rb") as answers:
        while True:
            try:
                answer: Answer = pickle.load(answers)
            except (EOFError, pickle.UnpicklingError, ConnectionError):
                assert process.stderr is not None
                ended = "nothing was run: the process of the batch ended before it began"
                if last := process.stderr.read().decode(errors="replace").strip().rpartition("\n")[2]:
                    warn(f"{ended}: {last}")
                else:
                    warn(f"{ended}, exit code {process.wait()}")
                return JobRefused(INFRASTRUCTURE)
            if not isinstance(answer, TerminalLine):
                return answer
            warn(answer.text)


def send_answer(connection: socket.socket, answer: Answer) -> None:
    """Send a message to the waiting command. Do nothing if the command has ended."""
    try:
        connection.sendall(pickle.dumps(answer))
    except OSError:
        return


def silence_descriptor(descriptor: int) -> None:
    """Redirect a standard stream to the null device."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
