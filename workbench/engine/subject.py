"""A run of a subject: a program that gets one request and does all of a case by itself."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass, json_text, parsed_json
from workbench.engine.agent_loop import RunRequest, start
from workbench.engine.external_run import Told, ToldError, run_document, told_payloads
from workbench.engine.recorder import Recorder, TimeLimit
from workbench.engine.turns import opening_messages
from workbench.limits import MAX_ERROR_BYTES, MAX_OUTPUT_BYTES
from workbench.numerals import seconds_text
from workbench.suite.model import Mock, Subject, Suite
from workbench.suite.render import to_toml_data
from workbench.tools.answer import ToolsError
from workbench.tools.connection import INHERITED, MissingVariableError, filled
from workbench.tools.server_process import ends_within, left_behind, new_mark, signal_group, started_process
from workbench.tools.toolbox import Toolbox
from workbench.trajectory.events import FinishReason, Message, RequestStarted, RunFinished
from workbench.trajectory.trajectory import Trajectory, TrajectoryError

_CHUNK = 64 * 2**10
_DRAIN_S = 1.0
"""How long output may come after the program's end: of processes that it left behind, which are killed then."""
_REAP_S = 1.0
_POLL_S = 0.01


@dataclass(frozen=True)
class Ended:
    """The end of a program: its exit code (negative for a signal), and its output.

    Of standard error, the end is kept. `too_much` says that it wrote more than it may: it was killed then."""

    code: int
    output: bytes
    errors: bytes
    too_much: bool = False

    @property
    def last_error(self) -> str:
        """The last line of standard error that holds something."""
        lines = self.errors.decode("utf-8", "replace").splitlines()
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    @property
    def how(self) -> str:
        """How it ended, for a person."""
        if self.code < 0:
            return f"was ended by {signal.Signals(-self.code).name}"
        return f"ended with exit code {self.code}"


async def run_program(
    command: Sequence[str],
    text: str,
    *,
    folder: Path,
    environment: Mapping[str, str],
) -> Ended:
    """Run a command to its end.

    Everything that it started is killed when it writes too much, when this is cancelled, and in any case at the end.
    Raises OSError when the command cannot be started."""
    mark = new_mark()
    words = (sys.executable if command[0] == "python" else command[0], *command[1:])
    process, watcher = await started_process(words, folder=folder, environment=environment, limit=_CHUNK, mark=mark)
    output, errors = _Collected(MAX_OUTPUT_BYTES), _Collected(MAX_ERROR_BYTES, keeps_end=True)
    code: int | None = None
    writing = asyncio.create_task(_write(process, text.encode("utf-8", "replace")))
    reading = {asyncio.create_task(output.read(process.stdout)), asyncio.create_task(errors.read(process.stderr))}
    try:
        # The end of its output says nothing: processes that it left behind may hold that open.
        while process.returncode is None and not output.too_much:  # noqa: ASYNC110
            await asyncio.sleep(_POLL_S)
        code = process.returncode
        await asyncio.wait(reading, timeout=_DRAIN_S if code is not None else 0)
    finally:
        signal_group(process, hard=True)
        for pid, left in left_behind(process, mark):
            _logger.warning("process %d was left behind by %s, and killed: %s", pid, words[0], left)
        try:
            await ends_within(process, _REAP_S)
        finally:
            for task in (writing, *reading):
                task.cancel()
            if watcher is not None:
                watcher.close()
            process._transport.close()  # type: ignore[attr-defined]  # as in `StdioTransport`
    return Ended(code if code is not None else -9, bytes(output.kept), bytes(errors.kept), output.too_much)


class _Collected:
    """Return the bytes of a pipe: up to `most`, or the last ones."""

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
    """Write all of the input and close it.

    A program need not read it."""
    assert process.stdin is not None
    with suppress(OSError):
        process.stdin.write(content)
        await process.stdin.drain()
        process.stdin.close()


_logger = logging.getLogger(__name__)

REQUEST_FORMAT = 1

_SHOWN_OUTPUT = 80
"""Characters of output that is no JSON in a message."""


class SubjectError(ToolsError):
    """A subject did not keep the protocol.

    The message names the cause."""


@dataclass(frozen=True)
class SubjectRun:
    """The needs of one run of a subject: the suite, where the subject is started, and the variables there.

    `repeat` counts from 0."""

    suite: Suite
    subject: Subject
    folder: Path
    environment: Mapping[str, str]
    secrets: Secrets
    repeat: int


async def run_subject(request: RunRequest, run: SubjectRun, tools: Toolbox, recorder: Recorder) -> Trajectory:
    """Make one run and return its trajectory, as `run_case` does.

    The subject's actions are told when it is over."""
    seconds = run.subject.timeout_s or request.settings.limits.timeout_s
    start(request, tools.definitions, recorder, None, tools.notices, tools.server_outputs)
    recorder.emit(RequestStarted(1))
    began = recorder.clock()
    try:
        async with TimeLimit(seconds):
            told = await _ask(request, run, tools, recorder.run_id)
        finish = _tell(told, request, recorder, recorder.ms_since(began))
    except TimeoutError:
        key = "subject" if run.subject.timeout_s else "limits"
        finish = RunFinished(
            "timed out",
            f"the subject {run.subject.name!r} was ended after {seconds_text(seconds)}: "
            f"raise {key}.timeout_s to wait longer",
        )
    except asyncio.CancelledError:
        finish = RunFinished("stopped")
    except ToolsError as error:
        finish = RunFinished("error", run.secrets.redact(str(error)))
    except TrajectoryError as error:
        finish = RunFinished("error", f"the answer of the subject {run.subject.name!r} is invalid: {error}")
    except Exception as error:
        _logger.exception("run of case %s on the subject %s", request.case.id, run.subject.name)
        finish = RunFinished("error", f"unexpected {type(error).__name__}: {error}; the log holds the details")
    recorder.emit(finish)
    return recorder.trajectory


def _tell(told: Told, request: RunRequest, recorder: Recorder, took_ms: float) -> RunFinished:
    *before, last = told.rounds
    if told.latency_ms is None:
        last = replace(last, latency_ms=took_ms)
    first, *others = told_payloads([*before, last])
    assert isinstance(first, RequestStarted)  # it was emitted when the subject was asked
    for payload in others:
        recorder.emit(payload)
    if told.error is not None:
        return RunFinished("error", told.error)
    reason: FinishReason = "steps done" if request.case.steps else "answered"
    return RunFinished(reason)


async def _ask(request: RunRequest, run: SubjectRun, tools: Toolbox, run_id: str) -> Told:
    subject, command = run.subject, run.subject.command
    who = f"the subject {subject.name!r}"
    try:
        given = {}
        for name, value in subject.env.items():
            given[name] = filled(value, run.environment, run.secrets)
    except MissingVariableError as error:
        raise SubjectError(f"{who} is not started: the variable {error.name} is not set") from error
    inherited = {}
    for name in INHERITED:
        if name in run.environment:
            inherited[name] = run.environment[name]
    asked = json_text(request_document(request, run, tools, run_id))
    try:
        ended = await run_program(command, f"{asked}\n", folder=run.folder, environment={**inherited, **given})
    except (OSError, ValueError) as error:
        why = f"there is no program {command[0]!r}" if isinstance(error, FileNotFoundError) else str(error)
        raise SubjectError(f"{who} cannot be started: {why}") from error
    return _read(ended, who)


def _read(ended: Ended, who: str) -> Told:
    said = f": {ended.last_error}" if ended.last_error else ""
    if ended.too_much:
        raise SubjectError(MAX_OUTPUT_BYTES.reached(who=who))
    if ended.code != 0:
        raise SubjectError(f"{who} {ended.how}{said}")
    text = ended.output.decode("utf-8", "replace").strip()
    if not text:
        wanted = '{"calls": […], "answer": "…"}'
        raise SubjectError(f"{who} wrote nothing to standard output, where {wanted} belongs{said}")
    try:
        return run_document(parsed_json(text)).told
    except ToldError as error:
        raise SubjectError(f"{who} wrote an answer that cannot be used: {error}") from error
    except ValueError as error:
        begins = " ".join(text[:_SHOWN_OUTPUT].split())
        raise SubjectError(
            f"{who} wrote to standard output what is not one JSON object ({error}): {begins!r}; "
            "logs belong to standard error"
        ) from error


def request_document(request: RunRequest, run: SubjectRun, tools: Toolbox, run_id: str) -> dict[str, Any]:
    """Return the subject's input: docs/your-agent.md describes it key by key."""
    case = request.case
    steps = [{"user": step.user, "system": step.system} for step in case.steps]
    messages = opening_messages(case)
    return {
        "format": REQUEST_FORMAT,
        "case": case.id,
        "name": case.name,
        "run": run_id,
        "repeat": run.repeat,
        "system": request.settings.system,
        "user": messages[-1].content if messages else "",
        "messages": [_message(message) for message in messages],
        "steps": steps,
        "tools": [
            {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
            for tool in tools.definitions
        ],
        "mocks": [_mock(mock) for mock in (*case.mocks, *run.suite.mocks) if mock.python is None],
        "limits": asdict(request.settings.limits),
    }


def _message(message: Message) -> dict[str, Any]:
    said: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        said["tool_calls"] = [
            {"id": call.id, "tool": call.tool, "arguments": dict(call.arguments)} for call in message.tool_calls
        ]
    if message.call_id is not None:
        said |= {"call": message.call_id, "is_error": message.is_error}
    return said


def _mock(mock: Mock) -> dict[str, Any]:
    return {key: value for key, value in to_toml_data(mock).items() if key != "unlisted"}
