"""Trajectories of agentevals: what an agent did (`outputs`), and what it should have done
(`reference_outputs`), as messages."""

from __future__ import annotations

from dataclasses import replace

from workbench.exchange.importers.conversations import (
    Format,
    Imported,
    ImportedCase,
    Mapped,
    Note,
    case_of,
    graded_as,
    imported_of,
)
from workbench.exchange.importers.messages import conversation_of, is_list_of_messages
from workbench.exchange.importers.source_files import Node, Source
from workbench.numerals import counted
from workbench.trajectory.events import JsonValue

_KEYS = ("inputs", "outputs", "reference_outputs")


def _messages(node: Node | None) -> Node | None:
    """Returns the messages of one of the three: a list, or a table with `messages`."""
    if node is None or is_list_of_messages(node):
        return node
    inner = node.get("messages")
    return inner if is_list_of_messages(inner) else None


def is_trajectory(record: Node) -> bool:
    """Whether the outputs of a record, or those it is compared with, are messages."""
    return any(_messages(record.get(key)) is not None for key in _KEYS[1:])


def is_example(record: Node) -> bool:
    """Whether a record is of a dataset of LangSmith, whose outputs are the reference."""
    marked = record.first("dataset_id", "source_run_id", "modified_at") is not None
    return marked and not record.has("reference_outputs")


def _recognizes(source: Source) -> bool:
    return bool(source.records) and is_trajectory(source.records[0]) and not is_example(source.records[0])


def _read(source: Source) -> Imported:
    return imported_of(source.records, _case, "trajectory")


def _case(record: Node) -> ImportedCase:
    record.table()
    tools = record.get("tools")
    reference, made = (_messages(record.get(key)) for key in ("reference_outputs", "outputs"))
    wanted = reference or made
    if wanted is None:
        raise record.refused("has neither outputs nor reference_outputs that are messages")

    def read(messages: Node) -> ImportedCase:
        said = [*_asked(record, messages), *(each.value for each in messages.items())]
        document: dict[str, JsonValue] = {"messages": said, "tools": tools.value if tools is not None else None}
        return case_of(conversation_of(Node(document, messages.place)))

    case = read(wanted)
    if reference is None:
        return replace(case, place=record.place)
    notes = [note for note in case.notes if note.kind != "check calls"]
    notes.append(Note(reference.place, "the reference's calls are expected in their order, as under `strict`"))
    calls = sum(len(each.calls) for run in case.runs for each in run.rounds)
    of_reference = Mapped(f"{counted(calls, 'call')} of the reference", "ordered")
    mapped = tuple(of_reference if each.into == "ordered" else each for each in case.mapped)
    runs = read(made).runs if made is not None else ()
    return replace(case, place=record.place, mapped=mapped, notes=tuple(notes), runs=runs)


def _asked(record: Node, messages: Node) -> list[JsonValue]:
    """Returns the messages of `inputs`, where the trajectory does not begin with the request itself."""
    if any(each.text_of("role") in ("user", "human") for each in messages.items()):
        return []
    inputs = record.get("inputs")
    before = _messages(inputs)
    if before is not None:
        return [each.value for each in before.items()]
    values = [inputs.value] if inputs is not None and isinstance(inputs.value, str) else []
    if inputs is not None and isinstance(inputs.value, dict):
        values = [value for value in inputs.value.values() if isinstance(value, str)]
    if len(values) != 1:
        raise record.refused("has no request: neither the trajectory nor inputs holds just one")
    return [{"role": "user", "content": values[0]}]


AGENTEVALS = Format(_recognizes, _read, graded_as())
