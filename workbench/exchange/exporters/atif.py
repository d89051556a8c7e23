"""Exports runs as ATIF v1.7 (Agent Trajectory Interchange Format), one file for each run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from workbench.dataclasses import escape_lone_surrogates, json_text
from workbench.exchange.exporters.exported import ConversationEntry, ExportedRun, function_of
from workbench.trajectory.events import JsonValue, ToolCall, Usage
from workbench.version import __version__

VERSION = "ATIF-v1.7"


def files_of_atif(runs: Iterable[ExportedRun]) -> Iterator[tuple[str, Iterator[str]]]:
    """Yield the name of a file for each run, with the file's text in pieces."""
    for run in runs:
        result = run.result
        name = f"{run.suite.removesuffix('.toml')}.{result.case_id}.{result.model}.{result.repeat + 1}.atif.json"
        yield name, iter((escape_lone_surrogates(json_text(atif_of(run), indent=2)), "\n"))


def atif_of(run: ExportedRun) -> dict[str, JsonValue]:
    agent: dict[str, JsonValue] = {
        "name": "toolcall-workbench",
        "version": __version__,
        "model_name": run.result.model,
        "tool_definitions": list(map(function_of, run.tools)),
    }
    facts = {**run.facts, "name": run.result.case_name}
    steps = list(_steps(run))
    return {
        "schema_version": VERSION,
        "session_id": run.key,
        "agent": agent,
        "steps": [{"step_id": number, **step} for number, step in enumerate(steps, start=1)],
        "final_metrics": _final_metrics(run, len(steps)),
        "extra": {"workbench": facts},
    }


def _steps(run: ExportedRun) -> Iterator[dict[str, JsonValue]]:
    """Yield the steps of a run. The results of calls belong to the agent's step that made the calls."""
    entries = run.conversation
    # The results of an answer's calls follow the answer directly.
    for at, each in enumerate(entries):
        message = each.message
        match each.role:
            case "tool":
                continue
            case "assistant":
                results = []
                for later in entries[at + 1 :]:
                    if later.role != "tool":
                        break
                    results.append(_observed(later))
                yield _agent_step(run, each, results)
            case role:
                yield {"source": role, "message": message.content}


def _observed(entry: ConversationEntry) -> JsonValue:
    result: dict[str, JsonValue] = {"source_call_id": entry.message.call_id, "content": entry.message.content}
    if entry.message.is_error:
        result["extra"] = {"is_error": True}
    return result


def _agent_step(run: ExportedRun, entry: ConversationEntry, results: list[JsonValue]) -> dict[str, JsonValue]:
    step: dict[str, JsonValue] = {"source": "agent", "message": entry.message.content}
    answer = entry.answer
    if answer is not None:
        # In ATIF, the time of a step is the time at which it ended.
        if (span := run.requests.get(answer.number)) is not None:
            step["timestamp"] = run.time(span.end_ms)
        step["model_name"] = run.result.model
        if answer.reasoning:
            step["reasoning_content"] = answer.reasoning
        if answer.usage is not None:
            step["metrics"] = _metrics(answer.usage)
    if calls := entry.message.tool_calls:
        step["tool_calls"] = list(map(_call, calls))
    if results:
        step["observation"] = {"results": results}
    return step


def _call(call: ToolCall) -> JsonValue:
    table: dict[str, JsonValue] = {
        "tool_call_id": call.id,
        "function_name": call.tool,
        "arguments": dict(call.arguments),
    }
    # ATIF requires arguments to be objects, so the text of broken arguments goes into `extra`.
    if call.problem is not None and call.raw:
        table["extra"] = {"raw_arguments": call.raw}
    return table


def _metrics(usage: Usage) -> dict[str, JsonValue]:
    metrics: dict[str, JsonValue] = {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_input_tokens,
    }
    if usage.reasoning_tokens:
        metrics["extra"] = {"reasoning_tokens": usage.reasoning_tokens}
    return metrics


def _final_metrics(run: ExportedRun, steps: int) -> dict[str, JsonValue]:
    metrics: dict[str, JsonValue] = {"total_steps": steps}
    if (usage := run.result.usage) is not None:
        metrics |= {
            "total_prompt_tokens": usage.input_tokens,
            "total_completion_tokens": usage.output_tokens,
            "total_cached_tokens": usage.cached_input_tokens,
        }
    if run.result.cost_usd is not None:
        metrics["total_cost_usd"] = run.result.cost_usd
    return metrics
