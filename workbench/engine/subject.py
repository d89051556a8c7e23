"""Executes runs of a subject: a program, such as an agent, that receives one request and performs the whole run."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass, json_text, parsed_json
from workbench.engine.agent_loop import RunRequest, emit_start
from workbench.engine.external_run import RunDocumentError, external_payloads, parse_run_document
from workbench.engine.own_calls import OwnCalls
from workbench.engine.recorder import Recorder, TimeLimit
from workbench.engine.turns import opening_messages
from workbench.limits import MAX_ERROR_BYTES, MAX_OUTPUT_BYTES
from workbench.numerals import seconds_text
from workbench.suite.case_rows import with_columns
from workbench.suite.model import Mock, Subject, Suite
from workbench.suite.render import to_toml_data
from workbench.tools.answer import ServerError, ToolsError
from workbench.tools.connection import MissingVariableError, expand_variables, inherited_variables
from workbench.tools.server_process import ends_within, kill_left_behind, new_mark, signal_group, started_process
from workbench.tools.toolbox import Toolbox
from workbench.trajectory.events import FinishReason, Message, RequestStarted, RunFinished, ToolDefinition
from workbench.trajectory.external_run import ExternalRun
from workbench.trajectory.fold import TrajectoryError
from workbench.trajectory.trajectory import Trajectory

_CHUNK = 64 * 2**10
_DRAIN_S = 1.0
"""The seconds to read the output of processes that a program left running. These processes are then killed."""
_REAP_S = 1.0
_POLL_S = 0.01


@dataclass(frozen=True)
class ProgramResult:
    """The result of a program: its exit code, its output and the end of its standard error.

    The exit code is negative if a signal ended the program. With `output_too_large`, the program was killed because its
    output exceeded the limit."""

    code: int
    output: bytes
    errors: bytes
    output_too_large: bool = False

    @property
    def last_error(self) -> str:
        """The last line of standard error that is not blank; empty if there is none."""
        lines = self.errors.decode("utf-8", "replace").splitlines()
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    @property
    def how(self) -> str:
        """How the program ended, as a phrase for messages, such as "ended with exit code 2"."""
        if self.code < 0:
            return f"was ended by {signal.Signals(-self.code).name}"
        return f"ended with exit code {self.code}"


async def run_program(
    command: Sequence[str],
    text: str,
    *,
    folder: Path,
    environment: Mapping[str, str],
) -> ProgramResult:
    """Run a command to its end, with `text` as its standard input.

    All processes that the command started are killed when it ends, when its output exceeds the limit, or when the task
    is cancelled. Raises OSError if the command cannot be started."""
    mark = new_mark()
    program = command[0]
    # `python` means this program's interpreter, which has the same packages. PATH may have no `python`, or a different
    # one.
    if program == "python":
        program = sys.executable
    words = (program, *command[1:])
    process, watcher = await started_process(words, folder=folder, environment=environment, limit=_CHUNK, mark=mark)
    output, errors = _OutputCollector(MAX_OUTPUT_BYTES), _OutputCollector(MAX_ERROR_BYTES, keeps_end=True)
    code: int | None = None
    writing = asyncio.create_task(_write(process, text.encode("utf-8", "replace")))
    reading = {asyncio.create_task(output.read(process.stdout)), asyncio.create_task(errors.read(process.stderr))}
    try:
        # Poll the process instead of waiting for its pipes, because processes that outlive it may hold the pipes open.
        while process.returncode is None and not output.too_much:  # noqa: ASYNC110
            await asyncio.sleep(_POLL_S)
        code = process.returncode
        if code is not None:
            await asyncio.wait(reading, timeout=_DRAIN_S)
    finally:
        signal_group(process, hard=True)
        for pid, left in kill_left_behind(process, mark):
            _logger.warning("process %d was left behind by %s, and killed: %s", pid, words[0], left)
        try:
            await ends_within(process, _REAP_S)
        finally:
            for task in (writing, *reading):
                task.cancel()
            if watcher is not None:
                watcher.close()
            process._transport.close()  # type: ignore[attr-defined]  # as in `StdioTransport`
    if code is None:
        code = -signal.SIGKILL
    return ProgramResult(code, bytes(output.kept), bytes(errors.kept), output.too_much)


class _OutputCollector:
    """Collects the first `most` bytes of a pipe, or the last `most` bytes with `keeps_end`."""

    def __init__(self, most: int, *, keeps_end: bool = False) -> None:
        self.kept = bytearray()
        self.too_much = False
        self._most = most
        self._keeps_end = keeps_end

    async def read(self, pipe: asyncio.StreamReader | None) -> None:
        assert pipe is not None
        while piece := await pipe.read(_CHUNK):
            self.kept += piece
            if len(self.kept) > self._most and self._keeps_end:
                del self.kept[: -self._most]
            elif len(self.kept) > self._most:
                self.too_much = True
                return


async def _write(process: asyncio.subprocess.Process, content: bytes) -> None:
    assert process.stdin is not None
    # A program may close its input without reading it. This is not an error.
    with suppress(OSError):
        process.stdin.write(content)
        await process.stdin.drain()
        process.stdin.close()


_logger = logging.getLogger(__name__)

REQUEST_FORMAT = 1

_SHOWN_OUTPUT = 80
"""The number of characters that a message quotes from invalid output."""


class SubjectError(ToolsError):
    """A subject could not be started, or broke the protocol.

    The message names the cause."""


@dataclass(frozen=True)
class SubjectRun:
    """A subject to run, with its suite, folder and environment variables.

    `repeat` counts from 0. `passed` holds the names of variables that every subject receives."""

    suite: Suite
    subject: Subject
    folder: Path
    environment: Mapping[str, str]
    secrets: Secrets
    repeat: int
    passed: tuple[str, ...] = ()


async def run_subject(
    request: RunRequest, run: SubjectRun, tools: Toolbox, recorder: Recorder, own_calls: OwnCalls | None
) -> Trajectory:
    """Execute one run of a case with a subject, and return its trajectory.

    The events of the subject's calls are emitted only after the subject has ended."""
    seconds = run.subject.timeout_s or request.settings.limits.timeout_s
    emit_start(request, tools, recorder, None, tools.notices, _offered(tools))
    try:
        if own_calls is not None:
            await own_calls.run_setup()
        recorder.emit(RequestStarted(1))
        began = recorder.clock()
        async with TimeLimit(seconds):
            answered = await _ask(request, run, tools, recorder.run_id)
        finish = _emit_run(answered, request, recorder, recorder.ms_since(began))
        if own_calls is not None and finish.reason != "error":
            await own_calls.run_final()
    except TimeoutError:
        key = "subject" if run.subject.timeout_s else "limits"
        ended = f"the subject {run.subject.name!r} was ended after {seconds_text(seconds)}"
        finish = RunFinished("timed out", f"{ended}: raise {key}.timeout_s to wait longer")
    except asyncio.CancelledError:
        finish = RunFinished("stopped")
    except ServerError as error:
        finish = RunFinished("error", run.secrets.redact(str(error)), error.output)
    except ToolsError as error:
        finish = RunFinished("error", run.secrets.redact(str(error)))
    except TrajectoryError as error:
        finish = RunFinished("error", f"the answer of the subject {run.subject.name!r} is invalid: {error}")
    except Exception as error:
        _logger.exception("run of case %s on the subject %s", request.case.id, run.subject.name)
        finish = RunFinished("error", f"unexpected {type(error).__name__}: {error}; the log holds the details")
    recorder.emit(finish)
    return recorder.trajectory


def _emit_run(run: ExternalRun, request: RunRequest, recorder: Recorder, took_ms: float) -> RunFinished:
    first, *others = external_payloads(run.with_latency(took_ms).rounds)
    assert isinstance(first, RequestStarted)  # this event was already emitted, before the subject was started
    for payload in others:
        recorder.emit(payload)
    if run.error is not None:
        return RunFinished("error", run.error)
    reason: FinishReason = "steps done" if request.case.steps else "answered"
    return RunFinished(reason)


async def _ask(request: RunRequest, run: SubjectRun, tools: Toolbox, run_id: str) -> ExternalRun:
    subject, command = run.subject, run.subject.command
    assert command is not None
    who = f"the subject {subject.name!r}"
    try:
        given = {}
        for name, value in subject.env.items():
            given[name] = expand_variables(value, run.environment, run.secrets)
    except MissingVariableError as error:
        raise SubjectError(f"{who} is not started: the variable {error.name} is not set") from error
    # The subject gets only a part of the environment, because the rest may hold keys of other programs.
    inherited = inherited_variables(run.environment, run.passed, run.secrets)
    asked = json_text(request_document(request, run, tools, run_id))
    try:
        ended = await run_program(command, f"{asked}\n", folder=run.folder, environment={**inherited, **given})
    except (OSError, ValueError) as error:
        why = str(error)
        if isinstance(error, FileNotFoundError):
            why = f"there is no program {command[0]!r}"
        raise SubjectError(f"{who} cannot be started: {why}") from error
    return _read(ended, who)


def _read(result: ProgramResult, subject_name: str) -> ExternalRun:
    error_text = f": {result.last_error}" if result.last_error else ""
    if result.output_too_large:
        raise SubjectError(MAX_OUTPUT_BYTES.reached(who=subject_name))
    if result.code != 0:
        raise SubjectError(f"{subject_name} {result.how}{error_text}")
    text = result.output.decode("utf-8", "replace").strip()
    if not text:
        wanted = '{"calls": […], "answer": "…"}'
        raise SubjectError(f"{subject_name} wrote nothing to standard output, where {wanted} belongs{error_text}")
    try:
        return parse_run_document(parsed_json(text)).external_run
    except RunDocumentError as error:
        raise SubjectError(f"{subject_name} wrote an answer that cannot be used: {error}") from error
    except ValueError as error:
        begins = " ".join(text[:_SHOWN_OUTPUT].split())
        raise SubjectError(
            f"the output of {subject_name} is not one JSON object ({error}): {begins!r}; logs belong on standard error"
        ) from error


def request_document(request: RunRequest, run: SubjectRun, tools: Toolbox, run_id: str) -> dict[str, Any]:
    """Return the JSON document that a subject reads from its standard input.

    docs/your-agent.md describes its keys."""
    case = request.case
    messages = opening_messages(case, request.images)
    steps = [{"user": step.user, "system": step.system} for step in case.steps]
    # Mocks of the case come first, because they take precedence. Mocks that are Python functions are left out, because
    # only this program can call them.
    mocks = [_mock(mock, case.row) for mock in (*case.mocks, *run.suite.mocks) if mock.python is None]
    tool_documents = []
    for tool in _offered(tools):
        document = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
        tool_documents.append(document)
    return {
        "format": REQUEST_FORMAT,
        "case": case.id,
        "name": case.name,
        "run": run_id,
        "repeat": run.repeat,
        "system": request.settings.system,
        "instructions": list(map(asdict, tools.instructions)),
        "clock": request.clock,
        "user": messages[-1].content if messages else "",
        "messages": list(map(_message, messages)),
        "steps": steps,
        "tools": tool_documents,
        "mocks": mocks,
        "limits": asdict(request.settings.limits),
    }


def _message(message: Message) -> dict[str, Any]:
    table: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        table["tool_calls"] = [
            {"id": call.id, "tool": call.tool, "arguments": dict(call.arguments)} for call in message.tool_calls
        ]
    if message.call_id is not None:
        table |= {"call": message.call_id, "is_error": message.is_error}
    if message.media:
        table["images"] = [{"file": each.file, "media_type": each.media_type} for each in message.media]
    return table


def _mock(mock: Mock, row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: with_columns(value, row) for key, value in to_toml_data(mock).items() if key != "unlisted"}


def _offered(tools: Toolbox) -> tuple[ToolDefinition, ...]:
    """Return the tools that a subject receives: all tools except those that model providers run."""
    return tuple([tool for tool in tools.definitions if tool.provider is None])
