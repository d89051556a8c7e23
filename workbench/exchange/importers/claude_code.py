"""Import sessions of Claude Code. A file has one JSON line for each message, linked to the preceding message."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from workbench.exchange.importers.conversations import (
    Format,
    ImportedCase,
    ImportedFile,
    Note,
    case_of,
    collect_cases,
    first_refusal,
)
from workbench.exchange.importers.messages import conversation_of
from workbench.exchange.importers.source_files import Node, RefusedError, Source, has_type
from workbench.numerals import counted
from workbench.trajectory.events import JsonValue


def _is_line(node: Node) -> bool:
    return node.has("sessionId", "uuid", "message") and node.text_of("type") in ("user", "assistant")


def _recognizes(source: Source) -> bool:
    return source.kind == "lines" and any(map(_is_line, source.records))


def _read(source: Source) -> ImportedFile:
    lines = [line for line in source.records if _is_line(line)]
    if not lines:
        raise RefusedError("holds no line of a session: such a line has the keys type, uuid, sessionId and message")
    main = [line for line in lines if line.value_of("isSidechain") is not True]
    notes: list[Note] = []
    if aside := len(lines) - len(main):
        notes.append(Note("", f"{counted(aside, 'line')} of side chains (agents that the session started): left out"))
    turns = _turns(_last_branch(main), notes)
    cases, refused = collect_cases(partial(_case, turn) for turn in turns)
    if not cases:
        raise first_refusal(refused, "holds no request")
    return ImportedFile(cases, notes=(*notes, *refused))


def _last_branch(lines: list[Node]) -> list[Node]:
    """Return the lines that are linked to the last line. Lines that the user undid by rewinding are left out."""
    known = {line.text_of("uuid"): line for line in lines}
    found: list[Node] = []
    line = lines[-1] if lines else None
    # A damaged file may link its lines in a circle.
    while line is not None and len(found) < len(lines):
        found.append(line)
        # In a conversation that was compacted, the next line has `logicalParentUuid` instead of `parentUuid`.
        parent = line.value_of("parentUuid", "logicalParentUuid")
        line = known.get(parent) if isinstance(parent, str) else None
    return found[::-1]


def _turns(lines: list[Node], notes: list[Note]) -> list[list[Node]]:
    turns: list[list[Node]] = []
    before = 0
    for line in lines:
        if line.value_of("isMeta") is True:
            continue
        if _is_request(line):
            turns.append([line])
        elif turns:
            turns[-1].append(line)
        else:
            before += 1
    if before:
        notes.append(Note("", f"{counted(before, 'line')} before the first request: left out"))
    return turns


def _is_request(line: Node) -> bool:
    parts = line.need("message").listed_of("content")
    if line.text_of("type") != "user" or not line.at("message").has("content"):
        return False
    # Lines with results of calls have the role `user` too, but are not requests.
    return not has_type(parts, ("tool_result",))


def _case(turn: list[Node]) -> ImportedCase:
    messages: list[JsonValue] = []
    # This dictionary has the answers by the id that the endpoint gave them. All lines of an answer have its id.
    written: dict[str, dict[str, JsonValue]] = {}
    model = ""
    for line in turn:
        message = line.need("message")
        table = dict(message.table())
        model = model or message.text_of("model")
        same = written.get(message.text_of("id"))
        # Claude Code writes a line for each part of an answer.
        if same is not None:
            same["content"] = [*_parts(same), *_parts(table)]
            # Only the last line of an answer counts the tokens of the whole answer.
            same["usage"] = table.get("usage")
            continue
        if message.text_of("id"):
            written[message.text_of("id")] = table
        messages.append(table)
    place = turn[0].place
    document: dict[str, JsonValue] = {"messages": messages, "model": model or None}
    conversation = conversation_of(Node(document, place))
    case = case_of(replace(conversation, started_at=turn[0].text_of("timestamp")))
    return case.with_notes(Note(place, "the session's earlier requests are cases of their own, not its conversation"))


def _parts(message: dict[str, JsonValue]) -> list[JsonValue]:
    content = message.get("content")
    if isinstance(content, list):
        return content
    if content is None:
        return []
    return [{"type": "text", "text": content}]


CLAUDE_CODE = Format(_recognizes, _read)
