"""Import evaluation sets of Google's ADK: sets with `eval_cases`, and older files that are lists of turns.

A turn in an older file has `query`, `expected_tool_use` and `reference`. Each turn becomes a case, and the turns before
it become the case's conversation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from workbench.exchange.importers.conversations import (
    Conversation,
    Format,
    ImportedCase,
    ImportedFile,
    Note,
    calls_in,
    case_name,
    case_of,
    first_refusal,
    graded_as,
    last_request,
    not_imported,
    results_in,
    with_reference_calls,
    without_expectations,
    without_tool_note,
)
from workbench.exchange.importers.match import ArgsMode, Match, match_in
from workbench.exchange.importers.messages import conversation_of, nonnegative_number, openai_call, openai_result
from workbench.exchange.importers.source_files import Node, RefusedError, Source, placed_at, read_source
from workbench.trajectory.events import JsonValue

_THRESHOLD = 0.8
"""ADK's threshold of `response_match_score`, unless a file beside the set sets another."""


def _at(node: Node, key: str) -> Node:
    """Return a table's value under a key in snake case, or in the camel case of ADK's server.

    For example, `eval_cases` is also found as `evalCases`. The value is `None` if the table has neither key."""
    # ADK accepts both forms of a key, and its own files use both.
    first, *others = key.split("_")
    return node.first(key, first + "".join(map(str.capitalize, others))) or Node(None, node.place)


def _elements(node: Node, key: str) -> list[Node]:
    found = _at(node, key)
    return [] if found.value is None else found.items()


def _is_turn(node: Node) -> bool:
    return node.has("query") and isinstance(node.value, dict) and "expected_tool_use" in node.value


def _is_old_case(node: Node) -> bool:
    data = node.at("data")
    return isinstance(data.value, list) and bool(data.value) and _is_turn(data.items()[0])


def _recognizes(source: Source) -> bool:
    if source.kind == "csv":
        return False
    first = source.beginning
    return _at(source.root, "eval_cases").value is not None or _is_old_case(first) or _is_turn(first)


def _read(source: Source) -> ImportedFile:
    cases: list[ImportedCase] = []
    notes: list[Note] = []
    criteria = _criteria(source, notes)
    for name, turns in _conversations(source, notes):
        try:
            cases += _cases(name, turns, criteria)
        except RefusedError as error:
            notes.append(not_imported(error.place, error.why))
    if not cases:
        raise first_refusal(notes, "holds no conversation")
    return ImportedFile(tuple(cases), notes=tuple(notes))


def _conversations(source: Source, notes: list[Note]) -> Iterator[tuple[str, list[Node]]]:
    if _at(source.root, "eval_cases").value is None:
        if source.records and _is_turn(source.records[0]):
            yield source.name, source.records
            return
        for case in source.records:
            data = case.at("data")
            if not isinstance(data.value, list):
                notes.append(not_imported(case.place, "has no list of turns (data)"))
                continue
            _left_out(case, ("initial_session",), notes)
            yield case.text_of("name"), data.items()
        return
    for case in _elements(source.root, "eval_cases"):
        if _at(case, "conversation_scenario").value is not None:
            notes.append(not_imported(case.place, "its requests come from a simulated user, not from the file"))
            continue
        turns = case.at("conversation")
        if not isinstance(turns.value, list):
            notes.append(not_imported(case.place, "has no conversation"))
            continue
        _left_out(case, ("session_input", "rubrics", "final_session_state"), notes)
        yield case.text_of("eval_id", "evalId"), turns.items()


def _left_out(node: Node, keys: tuple[str, ...], notes: list[Note]) -> None:
    names = [key for key in keys if _at(node, key).value]
    if names:
        notes.append(not_imported(node.place, ", ".join(names)))


class _Criteria(NamedTuple):
    match: Match | None = Match("exact")
    answers: float | None = _THRESHOLD


_MATCH_TYPES = ("exact", "in_order", "any_order")


def _criteria(source: Source, notes: list[Note]) -> _Criteria:
    beside = source.path.parent / "test_config.json"
    written = Node(None)
    if beside != source.path and beside.is_file():
        written = _at(Node(read_source(beside).root.value, beside.name), "criteria")
    if written.value is None:
        return _Criteria(match_in(source) or Match("exact"))
    answers = None
    if (score := written.get("response_match_score")) is not None:
        answers = _threshold_of(score)
    match = None
    if (trajectory := written.get("tool_trajectory_avg_score")) is not None:
        match = _match(trajectory)
        if _threshold_of(trajectory) < 1:
            why = "a threshold of tool_trajectory_avg_score below 1 is not mapped: each turn is judged by itself here"
            notes.append(Note(beside.name, why))
    if others := written.other_keys(("response_match_score", "tool_trajectory_avg_score")):
        notes.append(not_imported(beside.name, ", ".join(others)))
    return _Criteria(match_in(source) or match, answers)


def _threshold_of(criterion: Node) -> float:
    number = nonnegative_number(criterion if _at(criterion, "threshold").value is None else _at(criterion, "threshold"))
    if number is None or not 0 <= number <= 1:
        raise criterion.refused("must be a threshold from 0 to 1")
    return number


def _match(criterion: Node) -> Match:
    args: ArgsMode = "exact"
    if _at(criterion, "ignore_args").value is True:
        args = "ignore"
    written = _at(criterion, "match_type").value
    mode = "exact" if written is None else str(written).strip().lower().replace("-", "_").replace(" ", "_")
    if mode in ("0", "1", "2"):
        mode = _MATCH_TYPES[int(mode)]
    if mode not in _MATCH_TYPES:
        raise criterion.refused(f"the match type {written!r} is not one of {', '.join(_MATCH_TYPES)}")
    return Match(mode, args)


def _cases(name: str, turns: list[Node], criteria: _Criteria) -> Iterator[ImportedCase]:
    before: list[Node] = []
    for number, turn in enumerate(turns, start=1):
        # The set has no answers of a model. So the conversation before a turn has the expected answers of the earlier
        # turns.
        notes: list[Note] = []
        request, *answers = placed_at(turn.place, _messages(turn, notes))
        full = conversation_of(Node({}, turn.place), [*before, request, *answers])
        before += [request, *answers]
        messages = full.messages
        asked = last_request(messages)
        assert asked is not None
        title = f"{name} {number}" if name and len(turns) > 1 else name
        case = case_of(
            Conversation(
                turn.place,
                messages[: asked + 1],
                name=title or case_name(messages[asked].content, turn.place),
                notes=without_tool_note(full.notes),
            ),
            asked,
        )
        if not answers:
            yield case.with_notes(*notes)
            continue
        if (final := _answer_of(turn)) and criteria.answers is not None:
            case.table["response"] = {"similar": final, "threshold": criteria.answers}
            notes.append(
                Note(turn.place, "the reference answer is compared by `similar`; ADK compares words (ROUGE-1)")
            )
        case = with_reference_calls(
            case, list(calls_in(messages[asked:])), results_in(messages[asked:]), match=criteria.match
        )
        if criteria.match is None:
            case = without_expectations(case)
            if not case.table.get("response"):
                case.table["expect_nothing_yet"] = True
            notes.append(
                Note(turn.place, "without tool_trajectory_avg_score in test_config.json, no calls are compared")
            )
        else:
            why = f"the calls are compared as under ADK's match type {criteria.match.mode.upper()}"
            notes.append(Note(turn.place, why))
        yield case.with_notes(*notes)


def _answer_of(turn: Node) -> str:
    final = _at(turn, "final_response")
    if final.value is None:
        return turn.text_of("reference")
    return _text(final, [])


def _messages(turn: Node, notes: list[Note]) -> Iterator[JsonValue]:
    asked = _at(turn, "user_content")
    request = turn.need("query").text() if asked.value is None else _text(asked, notes)
    yield {"role": "user", "content": request}
    _left_out(turn, ("rubrics", "app_details", "expected_intermediate_agent_responses"), notes)
    calls: list[JsonValue] = []
    results: list[JsonValue] = []
    data = _at(turn, "intermediate_data")
    for use in _elements(turn, "expected_tool_use"):
        given = f"call-{len(calls) + 1}"
        calls.append(openai_call(given, use.text_of("tool_name"), use.value_of("tool_input")))
        if (output := use.get("mock_tool_output")) is not None:
            results.append(openai_result(given, output.value))
    # ADK writes events if it recorded the set from a session. Sets written by hand have lists of uses and responses.
    uses, answers = _elements(data, "tool_uses"), _elements(data, "tool_responses")
    for event in _elements(data, "invocation_events"):
        for part in _elements(event.at("content"), "parts"):
            if (use := _at(part, "function_call")).value is not None:
                uses.append(use)
            if (answer := _at(part, "function_response")).value is not None:
                answers.append(answer)
    _left_out(data, ("intermediate_responses",), notes)
    for use in uses:
        calls.append(openai_call(use.text_of("id"), use.text_of("name"), use.value_of("args")))
    for answer in answers:
        written = openai_result(answer.text_of("id"), answer.value_of("response"))
        assert isinstance(written, dict)
        results.append(written | {"name": answer.text_of("name")})
    if calls:
        yield {"role": "assistant", "tool_calls": calls}
        yield from results
    if final := _answer_of(turn):
        yield {"role": "assistant", "content": final}
    elif not calls and data.value is not None:
        yield {"role": "assistant", "content": ""}


def _text(content: Node, notes: list[Note]) -> str:
    texts: list[str] = []
    for part in _elements(content, "parts"):
        if isinstance(part.value, dict) and not isinstance(part.value.get("text"), str):
            notes.append(Note(part.place, "a part that is not text: left out"))
        texts.append(part.text_of("text"))
    return "\n".join(filter(None, texts))


ADK = Format(_recognizes, _read, {"by": "trajectory", **graded_as("mean")})
