"""Examples of LangSmith's datasets: `inputs`, and `outputs` that are the reference. Messages may be of OpenAI's form or
of LangChain's three."""

from __future__ import annotations

from dataclasses import replace

from workbench.engine.external_run import ToldResult
from workbench.exchange.importers.agentevals import is_example, is_trajectory
from workbench.exchange.importers.conversations import (
    NO_TOOLS,
    Format,
    Imported,
    ImportedCase,
    Note,
    case_of,
    graded_as,
    imported_of,
    name_of,
    not_imported,
    of_reference,
)
from workbench.exchange.importers.messages import conversation_of, is_message
from workbench.exchange.importers.source_files import Node, Source
from workbench.trajectory.events import JsonValue

_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}


def _recognizes(source: Source) -> bool:
    if source.kind == "csv" or not source.records:
        return False
    first = source.records[0]
    inputs, outputs = first.get("inputs"), first.get("outputs")
    tables = isinstance(inputs and inputs.value, dict) and isinstance(outputs and outputs.value, dict)
    return tables and not first.has("reference_outputs") and (is_example(first) or not is_trajectory(first))


def _read(source: Source) -> Imported:
    return imported_of(source.records, _case, "example")


def _case(record: Node) -> ImportedCase:
    notes: list[Note] = []
    asked = _messages(record.need("inputs"))
    if not asked:
        texts = {key: value for key, value in record.need("inputs").table().items() if isinstance(value, str)}
        if len(texts) != 1:
            raise record.refused(
                "its inputs hold no messages and not just one text: --map user=inputs.NAME names the request"
            )
        asked = [Node({"role": "user", "content": next(iter(texts.values()))}, record.need("inputs").place)]
    outputs = record.get("outputs") or Node({}, record.place)
    wanted = _messages(outputs)
    begin = [each.value for each in asked]
    if [each.value for each in wanted[: len(asked)]] == begin:  # outputs may repeat the conversation from its start
        wanted = wanted[len(asked) :]
    if not wanted and (calls := outputs.get("tool_calls")) is not None:
        wanted = [Node({"role": "assistant", "tool_calls": calls.value}, calls.place)]
    tools = record.need("inputs").get("tools")
    document = Node({"tools": tools.value if tools is not None else None}, record.place)
    full = conversation_of(document, [*asked, *wanted])
    index = max((at for at, each in enumerate(full.messages) if each.role == "user"), default=None)
    if index is None:
        raise record.refused("has no message of a user")
    about = tuple(note for note in full.notes if note.why != NO_TOOLS)
    name = record.text_of("name") or name_of(full.messages[index].content, record.place)
    metadata = record.get("metadata")
    split = metadata.get("dataset_split") if metadata is not None else None
    tags = tuple(each.text() for each in split.listed()) if split is not None else ()
    before = replace(full, messages=full.messages[: index + 1], name=name, tags=tags, notes=about)
    case = case_of(before, index)
    said = full.messages[index + 1 :]
    answer = next((each.content for each in reversed(said) if each.role == "assistant" and not each.tool_calls), "")
    texts_out = [value for value in outputs.table().values() if isinstance(value, str)]
    answer = answer or (texts_out[0] if not wanted and len(texts_out) == 1 else "")
    if answer:
        case.table["response"] = {"similar": answer}
        notes.append(
            Note(record.place, "the reference answer is compared by `similar`; evaluators of LangSmith are code")
        )
    if wanted:
        results = {each.call_id: ToldResult(each.content, each.is_error) for each in said if each.call_id is not None}
        case = of_reference(case, [call for each in said for call in each.tool_calls], results)
    elif answer:
        table = {key: value for key, value in case.table.items() if key != "expect_nothing_yet"}
        case = replace(case, table=table, notes=about)
    if not wanted and not answer and outputs.value:
        notes.append(not_imported(outputs.place, f"{', '.join(outputs.table())}: neither messages nor one text"))
    others = [key for key in (metadata.table() if metadata is not None else {}) if key != "dataset_split"]
    if others:
        notes.append(not_imported(record.place, f"metadata ({', '.join(others)})"))
    return case.noted(*notes)


def _messages(table: Node) -> list[Node]:
    """Returns the messages of inputs or outputs: a list of them, or the one that is their only value."""
    table.table()
    listed = table.get("messages")
    if listed is None and len(table.table()) == 1:
        listed = table.first(*table.table())
    if listed is None:
        return []
    found = [_message(each) for each in listed.listed()]
    return [each for each in found if each is not None] if None not in found else []


def _message(node: Node) -> Node | None:
    """Returns a message as OpenAI has it; `None` for what is none."""
    if is_message(node):
        return node
    kind, inner = node.text_of("type"), node
    if kind == "constructor" and (given := node.get("kwargs")) is not None:
        path = node.get("id")
        names = path.listed() if path is not None else []
        last = names[-1].value if names else ""
        kind = str(last).removesuffix("Chunk").removesuffix("Message").lower()
        inner = given
    elif (given := node.get("data")) is not None:
        inner = given
    if kind not in _ROLES or not isinstance(inner.value, dict):
        return None
    more = inner.get("additional_kwargs")
    calls = inner.get("tool_calls")
    if (calls is None or not calls.value) and more is not None:
        calls = more.get("tool_calls")
    table: dict[str, JsonValue] = {key: inner.value.get(key) for key in ("content", "tool_call_id", "name")}
    table |= {"role": _ROLES[kind], "tool_calls": calls.value if calls is not None else None}
    return Node(table | {"is_error": inner.text_of("status") == "error"}, node.place)


LANGSMITH = Format(_recognizes, _read, graded_as("mean"))
