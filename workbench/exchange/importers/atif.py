"""Import ATIF trajectories (Agent Trajectory Interchange Format 1.0 to 1.7).

A file has one trajectory, a list of trajectories, or a trajectory on each line."""

from __future__ import annotations

import re
from dataclasses import replace

from workbench.exchange.importers.conversations import Format, ImportedCase, ImportedFile, Note, case_of, imported_of
from workbench.exchange.importers.messages import conversation_of, nonnegative_number, openai_call, openai_result
from workbench.exchange.importers.source_files import Node, Source, placed_at, texts_of
from workbench.numerals import counted
from workbench.trajectory.events import JsonValue

_VERSION = re.compile(r"ATIF-v1\.([0-9]{1,3})(?:\.[0-9]{1,3})?")
_NEWEST = 7


def _recognizes(source: Source) -> bool:
    return source.beginning.text_of("schema_version").startswith("ATIF-v")


def _read(source: Source) -> ImportedFile:
    return imported_of(source.records, _case, "trajectory")


def _case(record: Node) -> ImportedCase:
    version = record.need("schema_version")
    match = _VERSION.fullmatch(version.text())
    if match is None:
        raise version.refused(f"{version.text()} is none of ATIF-v1.0 to ATIF-v1.{_NEWEST}")
    notes: list[Note] = []
    if int(match[1]) > _NEWEST:
        newer = f"{version.text()} is newer than ATIF-v1.{_NEWEST}: its new fields are not read"
        notes.append(Note(version.place, newer))
    messages: list[Node] = []
    steps = record.need("steps").items()
    for step in steps:
        messages += placed_at(step.place, _messages(step, bool(messages), notes))
    agent = record.get("agent") or Node({})
    models = texts_of([agent, *steps], "model_name")
    document: dict[str, JsonValue] = {
        "tools": agent.value_of("tool_definitions"),
        "model": models[0] if models else None,
    }
    # Each step may name another model, but a run has only one.
    if len(set(models)) > 1:
        notes.append(Note(record.place, f"steps of several models: the run is recorded as one of {document['model']}"))
    if (inner := record.get("subagent_trajectories")) is not None and inner.value:
        notes.append(Note(inner.place, f"{counted(len(inner.items()), 'agent')} started by this one: left out"))
    if record.has("continued_trajectory_ref"):
        notes.append(Note(record.place, "continues in another file, which is not read"))
    started_at = next(iter(texts_of(steps, "timestamp")), "")
    conversation = conversation_of(Node(document, record.place), messages)
    return case_of(replace(conversation, started_at=started_at, notes=(*conversation.notes, *notes)))


def _messages(step: Node, has_begun: bool, notes: list[Note]) -> list[JsonValue]:
    content = step.value_of("message")
    match step.need("source").text():
        case "user":
            return [{"role": "user", "content": content}]
        case "system":
            if has_begun and content:
                notes.append(Note(step.place, "a step of the system in the middle of the run: left out"))
            if has_begun or not content:
                return []
            return [{"role": "system", "content": content}]
        case "agent":
            pass
        case source:
            raise step.refused(f"has the source {source!r}, which is none of system, user and agent")
    if nonnegative_number(step.get("llm_call_count")) == 0:
        notes.append(Note(step.place, "no model was asked in this step, but the run includes it"))
    calls: list[JsonValue] = []
    ids: set[str] = set()
    for call in step.items_of("tool_calls"):
        # `workbench export` writes `raw_arguments` if the model's arguments are not an object.
        arguments = call.at("extra").value_of("raw_arguments") or call.value_of("arguments")
        ids.add(given := call.text_of("tool_call_id"))
        calls.append(openai_call(given, call.text_of("function_name"), arguments))
    answer: dict[str, JsonValue] = {"role": "assistant", "content": content, "tool_calls": calls}
    answer["reasoning_content"] = step.text_of("reasoning_content")
    if (metrics := step.get("metrics")) is not None:
        tokens: dict[str, JsonValue] = {}
        for key in ("prompt_tokens", "completion_tokens"):
            tokens[key] = metrics.table().get(key)
        answer["usage"] = tokens | {"prompt_tokens_details": {"cached_tokens": metrics.value_of("cached_tokens")}}
    answered: list[JsonValue] = []
    for result in step.at("observation").items_of("results"):
        given = result.text_of("source_call_id")
        if not given or given not in ids:
            notes.append(Note(result.place, "an observation that answers no call of its step: left out"))
            continue
        if result.has("subagent_trajectory_ref"):
            notes.append(Note(result.place, "the other agent's steps are not in the run, only its answer"))
        written = openai_result(given, "", result.at("extra").value_of("is_error") is True)
        assert isinstance(written, dict)
        answered.append(written | {"content": result.value_of("content")})
    return [answer, *answered]


ATIF = Format(_recognizes, _read)
