"""A run of a subject: a program that gets one request and does all of a case by itself."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass, json_text, parsed_json
from workbench.engine.external_run import Told, ToldError, run_document, told_payloads
from workbench.engine.recorder import Recorder
from workbench.engine.run import RunRequest, start
from workbench.engine.time_limit import TimeLimit
from workbench.engine.turns import opening_messages
from workbench.limits import MAX_OUTPUT_BYTES
from workbench.suite.model import Mock, Subject, Suite
from workbench.suite.render import to_toml_data
from workbench.tools.answer import ToolsError
from workbench.tools.connection import INHERITED, MissingVariableError, filled
from workbench.tools.program import Ended, run_program
from workbench.tools.toolbox import Toolbox
from workbench.trajectory.events import FinishReason, Message, RequestStarted, RunFinished
from workbench.trajectory.trajectory import Trajectory, TrajectoryError

_logger = logging.getLogger(__name__)

REQUEST_FORMAT = 1

_SHOWN_OUTPUT = 80
"""Characters of output that is no JSON in a message."""


class SubjectError(ToolsError):
    """A subject did not do what it should. The message names the cause."""


@dataclass(frozen=True)
class SubjectRun:
    """What one run of a subject needs: the suite, where the subject is started, and the variables there. `repeat`
    counts from 0."""

    suite: Suite
    subject: Subject
    folder: Path
    environment: Mapping[str, str]
    secrets: Secrets
    repeat: int


async def run_subject(request: RunRequest, run: SubjectRun, tools: Toolbox, recorder: Recorder) -> Trajectory:
    """Make one run and return its trajectory, as `run_case` does. What the subject did is told when it is over."""
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
            f"the subject {run.subject.name!r} was ended after {seconds:g} s: raise {key}.timeout_s to wait longer",
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
        given = {name: filled(value, run.environment, run.secrets) for name, value in subject.env.items()}
    except MissingVariableError as error:
        raise SubjectError(f"{who} is not started: the variable {error.name} is not set") from error
    inherited = {name: run.environment[name] for name in INHERITED if name in run.environment}
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
    """Return what a subject reads: docs/grading-your-agent.md describes it key by key."""
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
