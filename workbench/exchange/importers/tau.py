"""Results of tau-bench and tau2-bench: conversations of an agent with a simulated user.

Each turn after which the agent called tools is a case, with what was said before as its conversation, and its run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from workbench.exchange.importers.conversations import (
    Calls,
    Format,
    Imported,
    ImportedCase,
    Note,
    case_of,
    graded_as,
    not_imported,
    of_reference,
    unless_wrong,
    without_expectations,
)
from workbench.exchange.importers.messages import conversation_of, number_of
from workbench.exchange.importers.source_files import Node, RefusedError, Source
from workbench.numerals import counted, setting_text
from workbench.suite.render import Table
from workbench.suite.sameness import same
from workbench.trajectory.events import JsonValue, SourceScore, ToolCall

_ROUNDING = 1e-6
"""How far a reward may be below 1 and count as success, as in both systems."""


def _is_task(node: Node) -> bool:
    return node.has("user_scenario") and node.has("evaluation_criteria")


def _recognizes(source: Source) -> bool:
    if source.root.has("simulations"):
        return source.root.first("tasks", "info") is not None
    first = source.records[0] if source.records else source.root
    return first.has("traj", "task_id") or _is_task(first)


def _read(source: Source) -> Imported:
    if source.records and _is_task(source.records[0]):
        raise RefusedError(
            "holds tasks, which need a simulated user and a database: import the results of a run of them"
        )
    second = source.root.get("simulations")
    listed = second.items() if second is not None else source.records
    cases: list[ImportedCase] = []
    notes: list[Note] = []
    for record in listed:
        try:
            cases += _cases(record, source.root if second is not None else None, notes)
        except RefusedError as error:
            notes.append(not_imported(error.place, error.why))
    if not cases:
        raise RefusedError(notes[0].why if notes else "holds no conversation", notes[0].place if notes else "")
    systems = {str(case.table.get("system", "")) for case in cases}
    suite: Table = {}
    if len(systems) == 1 and "" not in systems:  # the policy of the domain, which every case would repeat
        suite["system"] = systems.pop()
        cases = [
            replace(case, table={key: value for key, value in case.table.items() if key != "system"}) for case in cases
        ]
    return Imported(tuple(cases), suite, tuple(notes))


def _cases(record: Node, results: Node | None, notes: list[Note]) -> Iterator[ImportedCase]:
    task_id, trial = record.table().get("task_id"), number_of(record.get("trial")) or 0
    name = f"Task {task_id}" + (f", trial {setting_text(trial + 1)}" if trial else "")
    info = results.get("info") if results is not None else None
    about: list[Note] = []
    messages = [
        Node(message, each.place)
        for each in record.need("traj" if results is None else "messages").items()
        for message in ([each.value] if results is None else _second(each, about))
    ]
    agent = info.get("agent_info") if info is not None else None
    environment = info.get("environment_info") if info is not None else None
    document: dict[str, JsonValue] = {
        "system": (environment.text_of("policy") or None) if environment is not None else None,
        "model": (agent.text_of("llm") or None) if agent is not None else None,
    }
    conversation = conversation_of(Node(document, record.place), messages)
    wanted, scores = _wanted(record, results), _scores(record, results, name)
    if wanted is not None:
        named = f"its task names {counted(len(wanted), 'action')}: these are expected, in any order"
        about.append(Note(record.place, named))
    conversation = replace(
        conversation,
        started_at=record.text_of("start_time", "timestamp"),
        notes=(*conversation.notes, *dict.fromkeys(about)),
    )
    said = conversation.messages
    turns = [index for index, message in enumerate(said) if message.role == "user"]
    if not turns:
        raise record.refused("has no message of a user, so there is no request to make a case of")
    ends = [*turns[1:], len(said)]
    spans = zip(turns, ends, strict=True)
    calls = [[call for message in said[at:end] for call in message.tool_calls] for at, end in spans]
    answered = [number for number, (at, end) in enumerate(zip(turns, ends, strict=True), start=1) if end > at + 1]
    expected = _by_turn(wanted or [], calls, answered[-1] if answered else len(turns))
    quiet = 0
    for number, (at, end, made) in enumerate(zip(turns, ends, calls, strict=True), start=1):
        if not made and number not in expected:
            quiet += 1
            continue
        case = case_of(replace(conversation, messages=said[:end], name=f"{name}, turn {number}"), at)
        case = replace(case, runs=tuple(replace(run, scores=scores) for run in case.runs))
        if wanted is not None:
            yield _expecting(case, expected.get(number, []))
        else:
            yield unless_wrong(case)
    if quiet:
        notes.append(Note(record.place, f"{counted(quiet, 'turn')} without a call: no case, only what was said before"))


def _expecting(case: ImportedCase, actions: list[ToolCall]) -> ImportedCase:
    """Return a case that expects actions of its task and leaves other calls free; without any, nothing yet."""
    case = without_expectations(case)
    if not actions:
        case.table["expect_nothing_yet"] = True
        why = "its task names no action for this turn: it expects nothing yet"
        return case.noted(Note(case.place, why, "expects nothing yet"))
    case = of_reference(case, actions, {}, key="unordered")
    case.table["extra_calls"] = "allow"
    return case


def _by_turn(actions: list[ToolCall], calls: list[list[ToolCall]], answered: int) -> dict[int, list[ToolCall]]:
    """Return the actions of a task by the turn, from 1, in which they were made: with these arguments or, failing that,
    with others. What was never made is expected in the last turn with calls, else in the last one that was
    `answered`."""
    free = [(number, call) for number, made in enumerate(calls, start=1) for call in made]
    last = max((number for number, _ in free), default=answered)
    turn_of: dict[int, int] = {}
    for exactly in (True, False):
        for index, action in enumerate(actions):
            found = next((each for each in free if _is_made(action, each[1], exactly=exactly)), None)
            if index not in turn_of and found is not None:
                free.remove(found)
                turn_of[index] = found[0]
    found_in: dict[int, list[ToolCall]] = {}
    for index, action in enumerate(actions):
        found_in.setdefault(turn_of.get(index, last), []).append(action)
    return found_in


def _is_made(action: ToolCall, call: ToolCall, *, exactly: bool) -> bool:
    return call.tool == action.tool and (not exactly or same(dict(call.arguments), dict(action.arguments)))


def _wanted(record: Node, results: Node | None) -> list[ToolCall] | None:
    """Return the actions that a task asks for; `None` where the file does not say."""
    if results is None:
        info = record.get("info")
        task = info.get("task") if info is not None else None
    else:
        tasks = results.get("tasks")
        same_id = [
            task
            for task in (tasks.items() if tasks is not None else [])
            if task.table().get("id") == record.table().get("task_id")
        ]
        task = same_id[0].get("evaluation_criteria") if same_id else None
    actions = task.get("actions") if task is not None else None
    if actions is None or actions.value is None:
        return None
    ids = Calls()
    found = []
    for action in actions.items():
        if action.text_of("requestor") == "user":
            continue  # a tool of the user's own
        arguments = action.first("kwargs", "arguments")
        found.append(ids.call(action, "", action.text_of("name"), arguments.value if arguments is not None else {}))
    return found


def _scores(record: Node, results: Node | None, name: str) -> tuple[SourceScore, ...]:
    """Return the reward of a conversation, which is about all of its turns."""
    of_run = record.get("reward_info") if results is not None else record
    reward = number_of(of_run.get("reward")) if of_run is not None else None
    if reward is None:
        return ()
    system = "tau-bench" if results is None else "tau2-bench"
    return (SourceScore(f"reward of {system}", min(reward, 1.0), reward >= 1 - _ROUNDING, name),)


def _second(message: Node, about: list[Note]) -> Iterator[JsonValue]:
    """Yield a message of tau2 as OpenAI has it: what the user did with tools of his own is left out."""
    table = message.table()
    inner = message.get("tool_messages")
    if inner is not None:
        for each in inner.items():
            yield from _second(each, about)
        return
    by_user = message.text_of("requestor") == "user"
    if by_user or (message.text_of("role") == "user" and message.has("tool_calls")):
        about.append(Note("", "the user has tools of his own in this domain: what he did with them is left out"))
    if message.text_of("role") == "tool":
        if not by_user:
            failed = table.get("error") is True
            yield {"role": "tool", "tool_call_id": table.get("id"), "content": table.get("content"), "is_error": failed}
        return
    if message.text_of("role") == "user" and not message.text_of("content"):
        return
    seconds = number_of(message.get("generation_time_seconds"))
    calls = table.get("tool_calls") if message.text_of("role") == "assistant" else None
    yield {**table, "tool_calls": calls, "latency_ms": seconds * 1000 if seconds is not None else None}


TAU = Format(_recognizes, _read, {"by": "trajectory", **graded_as("every")})
