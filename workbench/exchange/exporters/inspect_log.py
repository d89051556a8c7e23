"""Exports runs as logs for Inspect's viewer: one file for each suite and model, with a sample for each run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from tempfile import SpooledTemporaryFile
from typing import IO

from workbench.dataclasses import compact_json, dataclass
from workbench.exchange.exporters.exported import ConversationEntry, ExportedRun, request_messages
from workbench.grading.grade import Grade, Issue, RunResult
from workbench.grading.status import Status
from workbench.trajectory.events import JsonValue, ToolCall, ToolDefinition, Usage
from workbench.trajectory.trajectory import Round
from workbench.version import __version__

Json = dict[str, JsonValue]

# Inspect's words for why an answer stopped. Inspect has no word for a refusal, so the most similar word is used.
_STOP_REASONS = {"answered": "stop", "tool calls": "tool_calls", "truncated": "max_tokens", "refused": "content_filter"}
_KEPT_IN_MEMORY_BYTES = 1 << 20


@dataclass
class _Log:
    """A log that is being written.

    The header comes before the samples, but is known only at the end. Samples therefore wait in a temporary file."""

    first: ExportedRun
    samples: IO[str]
    ids: dict[str, None]
    scores: dict[str, list[float]]
    usage: Usage
    count: int = 0
    completed: int = 0
    epochs: int = 1
    ended: str = ""


def files_of_inspect(runs: Iterable[ExportedRun]) -> Iterator[tuple[str, Iterator[str]]]:
    """Yield the name of a file for each suite and model, with the file's text in pieces."""
    logs: dict[tuple[str, str], _Log] = {}
    with ExitStack() as stack:
        for run in runs:
            key = (run.suite, run.result.model)
            if key not in logs:
                samples = stack.enter_context(SpooledTemporaryFile(_KEPT_IN_MEMORY_BYTES, "w+", encoding="utf-8"))
                logs[key] = _Log(run, samples, {}, {}, Usage())
            _add(logs[key], run)
        for log in logs.values():
            yield _name(log.first), _pieces(log)


def _add(log: _Log, run: ExportedRun) -> None:
    result = run.result
    if log.count:
        log.samples.write(",")
    log.samples.write("\n" + compact_json(_sample(run)))
    log.count += 1
    log.completed += result.status != Status.ERROR
    log.ids[result.case_id] = None
    log.epochs = max(log.epochs, result.repeat + 1)
    log.usage += result.usage or Usage()
    log.ended = max(log.ended, run.time(run.ended_ms))
    for grade in result.grades:
        if grade.score is not None:
            log.scores.setdefault(grade.grader, []).append(grade.score)


def _name(run: ExportedRun) -> str:
    when = re.sub(r"[:+]", "-", run.started.isoformat(timespec="seconds"))
    task = re.sub(r"[^A-Za-z0-9-]+", "-", run.suite.removesuffix(".toml")).strip("-") or "suite"
    return f"{when}_{task}_{run.key[:22]}.json"


def _pieces(log: _Log) -> Iterator[str]:
    yield compact_json(_head(log))[:-1] + ',"samples":['
    log.samples.seek(0)
    while piece := log.samples.read(_KEPT_IN_MEMORY_BYTES):
        yield piece
    yield "\n]}\n"


def _head(log: _Log) -> Json:
    run = log.first
    model, created, task = run.result.model, run.time(0), run.suite.removesuffix(".toml")
    scores: list[JsonValue] = []
    for grader, values in log.scores.items():
        # Scores are divided before they are added, because the sum of large scores may overflow.
        mean = sum(value / len(values) for value in values)
        score: Json = {"name": grader, "scorer": grader, "scored_samples": len(values), "params": {}}
        score["metrics"] = {"mean": {"name": "mean", "value": mean, "params": {}}}
        scores.append(score)
    # The ids are cut to 22 characters, the length of the ids that Inspect makes.
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "eval_id": run.key[:22],
            "run_id": run.key[:22],
            "created": created,
            "task": task,
            "task_id": run.key[:22],
            "task_version": 0,
            "dataset": {"name": task, "samples": len(log.ids), "sample_ids": [*log.ids], "shuffled": False},
            "model": model,
            "config": {"epochs": log.epochs},
            "packages": {"toolcall-workbench": __version__},
            "scorers": [{"name": grader} for grader in log.scores],
        },
        "plan": {"name": "plan", "steps": [], "config": {}},
        "results": {"total_samples": log.count, "completed_samples": log.completed, "scores": scores},
        "stats": {"started_at": created, "completed_at": log.ended, "model_usage": {model: _usage(log.usage)}},
    }


def _sample(run: ExportedRun) -> Json:
    result, model = run.result, run.result.model
    answers = []
    for each in result.trajectory.rounds:
        if each.stop_reason is not None:
            answers.append(each)
    entries = run.conversation
    first = 0
    while first < len(entries) and entries[first].answer is None:
        first += 1
    messages: list[JsonValue] = [_message(each, model) for each in entries]
    sample: Json = {
        "id": result.case_id,
        "epoch": result.repeat + 1,
        "input": messages[:first],
        "target": list(run.expected),
        "messages": messages,
        "output": {"model": model, "choices": []},
        "scores": {},
        "metadata": {**run.facts, "name": result.case_name},
        "model_usage": {},
        "started_at": run.time(0),
        "completed_at": run.time(run.ended_ms),
        "total_time": run.ended_ms / 1_000,
        "uuid": run.key,
        "events": list(_events(run, answers, entries)),
    }
    if answers:
        sample["output"] = _output(answers[-1], entries, model)
    if result.grades:
        sample["scores"] = {grade.grader: _score(result, grade) for grade in result.grades}
    if result.usage is not None:
        sample["model_usage"] = {model: _usage(result.usage)}
    if result.status == Status.ERROR:
        # Inspect requires all three keys, although a run has no traceback.
        why = result.error or "error"
        sample["error"] = {"message": why, "traceback": why, "traceback_ansi": why}
    return sample


def _score(result: RunResult, grade: Grade) -> Json:
    return {
        "value": grade.verdict if grade.score is None else grade.score,
        "answer": result.trajectory.final_answer,
        "explanation": grade.reason,
        "metadata": {"verdict": grade.verdict, "issues": list(map(_why, grade.issues))},
    }


def _why(issue: Issue) -> str:
    return issue.reason


def _events(run: ExportedRun, answers: list[Round], entries: list[ConversationEntry]) -> Iterator[Json]:
    for answer in answers:
        # A replayed answer was read from a recording, so there was no request.
        if not answer.replayed:
            yield _event(run, answer, entries)


def _event(run: ExportedRun, answer: Round, entries: list[ConversationEntry]) -> Json:
    """Return a request to the model and its answer as a model event of Inspect."""
    model, span = run.result.model, run.requests.get(answer.number)
    start_ms = 0.0 if span is None else span.start_ms
    return {
        "event": "model",
        "timestamp": run.time(start_ms),
        "working_start": start_ms / 1_000,
        "model": model,
        "input": [_message(each, model) for each in request_messages(run.result, answer)],
        "tools": list(map(_tool, run.tools)),
        "tool_choice": "auto",
        "config": {},
        "output": _output(answer, entries, model),
    }


def _output(answer: Round, entries: list[ConversationEntry], model: str) -> Json:
    message = next(_message(each, model) for each in entries if each.answer is answer)
    assert answer.stop_reason is not None
    output: Json = {
        "model": model,
        "choices": [{"message": message, "stop_reason": _STOP_REASONS[answer.stop_reason]}],
        "completion": answer.text,
        "time": (answer.latency_ms or 0.0) / 1_000,
    }
    if answer.usage is not None:
        output["usage"] = _usage(answer.usage)
    return output


def _message(entry: ConversationEntry, model: str) -> Json:
    message, answer = entry.message, entry.answer
    table: Json = {"role": entry.role, "content": message.content}
    match entry.role:
        case "assistant":
            if answer is not None and answer.reasoning:
                parts: list[JsonValue] = [{"type": "reasoning", "reasoning": answer.reasoning}]
                table["content"] = [*parts, {"type": "text", "text": message.content}]
            if message.tool_calls:
                table["tool_calls"] = list(map(_call, message.tool_calls))
            if answer is not None:
                table |= {"source": "generate", "model": model}
        case "tool":
            table["tool_call_id"] = message.call_id
            if message.is_error:
                table["error"] = {"type": "unknown", "message": message.content}
        case _:
            table["source"] = "input"
    return table


def _call(call: ToolCall) -> Json:
    table: Json = {"id": call.id, "function": call.tool, "arguments": dict(call.arguments), "type": "function"}
    if call.problem is not None:
        table["parse_error"] = f"{call.problem}: {call.raw or ''}"
    return table


def _tool(tool: ToolDefinition) -> Json:
    # Inspect accepts only these keys of a schema.
    parameters: Json = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    for name in ("type", "properties", "required"):
        if name in tool.parameters:
            parameters[name] = tool.parameters[name]
    return {"name": tool.name, "description": tool.description, "parameters": parameters}


def _usage(usage: Usage) -> Json:
    table: Json = {
        "input_tokens": usage.input_tokens - usage.cached_input_tokens,  # Inspect counts cached tokens separately
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
    if usage.cached_input_tokens:
        table["input_tokens_cache_read"] = usage.cached_input_tokens
    if usage.reasoning_tokens:
        table["reasoning_tokens"] = usage.reasoning_tokens
    return table
