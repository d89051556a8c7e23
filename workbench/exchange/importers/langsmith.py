"""Import examples of LangSmith datasets, and trajectories of agentevals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

from workbench.exchange.importers.conversations import (
    Format,
    ImportedCase,
    ImportedFile,
    Note,
    calls_in,
    case_name,
    case_of,
    graded_as,
    imported_of,
    last_request,
    not_imported,
    notes_without,
    results_in,
    with_reference_calls,
    without_expectations,
    without_tool_note,
)
from workbench.exchange.importers.match import Match, match_in
from workbench.exchange.importers.messages import conversation_of, is_list_of_messages, is_message
from workbench.exchange.importers.source_files import Node, Source, bare_values
from workbench.trajectory.events import JsonValue, ToolCall
from workbench.trajectory.external_run import ExternalResult

_KEYS = ("inputs", "outputs", "reference_outputs")


def _agentevals_messages(node: Node | None) -> Node | None:
    if node is None or is_list_of_messages(node):
        return node
    inner = node.get("messages")
    return inner if is_list_of_messages(inner) else None


def is_trajectory(record: Node) -> bool:
    return any(_agentevals_messages(record.get(key)) is not None for key in _KEYS[1:])


def is_example(record: Node) -> bool:
    """Return whether a record is an example of a LangSmith dataset.

    The outputs of an example are the reference. The outputs of any other record are a run."""
    # LangSmith adds these keys to an exported dataset. The other keys are the same in agentevals.
    marked = record.first("dataset_id", "source_run_id", "modified_at") is not None
    return marked and not record.has("reference_outputs")


def _is_agentevals(source: Source) -> bool:
    return is_trajectory(source.beginning) and not is_example(source.beginning)


def _read_agentevals(source: Source) -> ImportedFile:
    match = match_in(source) or Match("strict")
    return imported_of(source.records, partial(_agentevals_case, match=match), "trajectory")


def _agentevals_case(record: Node, match: Match) -> ImportedCase:
    record.table()
    reference = _agentevals_messages(record.get("reference_outputs"))
    made = _agentevals_messages(record.get("outputs"))
    wanted = reference or made
    if wanted is None:
        raise record.refused("has neither outputs nor reference_outputs that are messages")

    def read(messages: Node) -> ImportedCase:
        entries = [*_asked(record, messages), *bare_values(messages.items())]
        document: dict[str, JsonValue] = {"messages": entries, "tools": record.value_of("tools")}
        return case_of(conversation_of(Node(document, messages.place)))

    case = read(wanted)
    # Without a reference, `outputs` is a run, and the case expects the calls of this run.
    if reference is None:
        return replace(case, place=record.place)
    answers: list[Sequence[ToolCall]] = []
    results: dict[str, ExternalResult] = {}
    for run in case.runs:
        for each in run.rounds:
            answers.append(each.calls)
            results |= each.results
    case = without_expectations(case)
    # The mocks made from the run are removed, because `with_reference_calls` adds those of the reference.
    mapped = tuple(each for each in case.mapped if each.into != "mocks")
    notes = notes_without(case.notes, "no mock")
    case = replace(case, table=case.table_without("mocks"), mapped=mapped, notes=tuple(notes))
    case = with_reference_calls(case, [*chain(*answers)], results, match=match, answers=answers)
    runs = () if made is None else read(made).runs
    note = Note(reference.place, f"the reference's calls are compared as under `{match.mode}`")
    return replace(case, place=record.place, runs=runs).with_notes(note)


def _asked(record: Node, messages: Node) -> list[JsonValue]:
    """Return the request's messages from `inputs`; empty if the trajectory itself begins with the request."""
    if any(each.text_of("role") in ("user", "human") for each in messages.items()):
        return []
    inputs = record.get("inputs")
    before = _agentevals_messages(inputs)
    if before is not None:
        return bare_values(before.items())
    texts: list[str] = []
    if inputs is not None and isinstance(inputs.value, dict):
        texts += _texts_in(inputs)
    elif inputs is not None and isinstance(inputs.value, str):
        texts.append(inputs.value)
    if len(texts) != 1:
        raise record.refused("needs exactly one request, in the trajectory or in inputs")
    return [{"role": "user", "content": texts[0]}]


def _texts_in(table: Node) -> Iterator[str]:
    for value in table.table().values():
        if isinstance(value, str):
            yield value


AGENTEVALS = Format(_is_agentevals, _read_agentevals, {"by": "trajectory", **graded_as()})


_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}


def _recognizes(source: Source) -> bool:
    if source.kind == "csv" or not source.records:
        return False
    first = source.records[0]
    inputs, outputs = first.get("inputs"), first.get("outputs")
    tables = isinstance(inputs and inputs.value, dict) and isinstance(outputs and outputs.value, dict)
    return tables and not first.has("reference_outputs") and (is_example(first) or not is_trajectory(first))


def _read(source: Source) -> ImportedFile:
    return imported_of(source.records, partial(_case, match=match_in(source)), "example")


def _case(record: Node, match: Match | None) -> ImportedCase:
    notes: list[Note] = []
    asked = _messages(record.need("inputs"))
    if not asked:
        texts = list(_texts_in(record.need("inputs")))
        if len(texts) != 1:
            raise record.refused(
                "its inputs hold neither messages nor a single text: --map user=inputs.NAME names the request"
            )
        asked = [Node({"role": "user", "content": texts[0]}, record.need("inputs").place)]
    outputs = record.get("outputs") or Node({}, record.place)
    wanted = _messages(outputs)
    # `outputs` may begin with the messages of the conversation.
    if bare_values(wanted[: len(asked)]) == bare_values(asked):
        wanted = wanted[len(asked) :]
    if not wanted and (calls := outputs.get("tool_calls")) is not None:
        wanted = [Node({"role": "assistant", "tool_calls": calls.value}, calls.place)]
    document = Node({"tools": record.need("inputs").value_of("tools")}, record.place)
    full = conversation_of(document, [*asked, *wanted])
    index = last_request(full.messages)
    if index is None:
        raise record.refused("has no user message, so it cannot become a case")
    about = without_tool_note(full.notes)
    name = record.text_of("name") or case_name(full.messages[index].content, record.place)
    metadata = record.at("metadata")
    tags = tuple(map(Node.text, metadata.listed_of("dataset_split")))
    before = replace(full, messages=full.messages[: index + 1], name=name, tags=tags, notes=about)
    case = case_of(before, index)
    entries = full.messages[index + 1 :]
    answer = ""
    for each in entries:
        if each.role == "assistant" and not each.tool_calls:
            answer = each.content
    texts_out = list(_texts_in(outputs))
    if not answer and not wanted and len(texts_out) == 1:
        answer = texts_out[0]
    if answer:
        case.table["response"] = {"similar": answer}
        notes.append(
            Note(record.place, "the reference answer is compared by `similar`; evaluators of LangSmith are code")
        )
    if wanted:
        answers = [each.tool_calls for each in entries]
        case = with_reference_calls(case, list(calls_in(entries)), results_in(entries), match=match, answers=answers)
    elif answer:
        case = replace(case, table=case.table_without("expect_nothing_yet"), notes=about)
    if not wanted and not answer and outputs.value:
        notes.append(not_imported(outputs.place, f"{', '.join(outputs.table())}: neither messages nor one text"))
    if metadata.value is not None and (others := metadata.other_keys(("dataset_split",))):
        notes.append(not_imported(record.place, f"metadata ({', '.join(others)})"))
    return case.with_notes(*notes)


def _messages(table: Node) -> list[Node]:
    table.table()
    listed = table.get("messages")
    if listed is None and len(table.table()) == 1:
        listed = table.first(*table.table())
    if listed is None:
        return []
    found: list[Node] = []
    for each in listed.listed():
        message = _message(each)
        if message is None:
            return []
        found.append(message)
    return found


def _message(node: Node) -> Node | None:
    if is_message(node):
        return node
    kind, inner = node.text_of("type"), node
    if kind == "constructor" and (given := node.get("kwargs")) is not None:
        # LangChain serializes a class's path as `id`, such as `[…, "messages", "HumanMessage"]`.
        path = bare_values(node.listed_of("id"))
        kind = str(path[-1]).removesuffix("Chunk").removesuffix("Message").lower() if path else ""
        inner = given
    elif (given := node.get("data")) is not None:
        inner = given
    if kind not in _ROLES or not isinstance(inner.value, dict):
        return None
    # In older versions of LangChain, calls are in `additional_kwargs`, in OpenAI's form.
    calls = inner.value_of("tool_calls") or inner.at("additional_kwargs").value_of("tool_calls")
    table: dict[str, JsonValue] = {}
    for key in ("content", "tool_call_id", "name"):
        table[key] = inner.value.get(key)
    table |= {"role": _ROLES[kind], "tool_calls": calls}
    return Node(table | {"is_error": inner.text_of("status") == "error"}, node.place)


LANGSMITH = Format(_recognizes, _read, graded_as("mean"))
