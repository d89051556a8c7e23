"""Results of tau-bench and tau2-bench: conversations of an agent with a simulated user. Each turn after which the agent
called tools is a case, with what was said before as its conversation, and its run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from workbench.importing.bounds import RefusedError
from workbench.importing.conversations import case_of
from workbench.importing.imported import Format, Imported, ImportedCase, Note, graded_as
from workbench.importing.messages import conversation_of, number_of
from workbench.importing.reading import Node, Source
from workbench.suite.numerals import counted
from workbench.suite.render import Table
from workbench.trajectory.messages import JsonValue


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
            notes.append(Note(error.place, f"not imported: {error.why}"))
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
    name = f"Task {task_id}" + (f", trial {trial + 1:g}" if trial else "")
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
    wanted, reward = _wanted(record, results)
    about.append(Note(record.place, f"the actions of its task: {', '.join(wanted) or 'none'}; its reward: {reward}"))
    conversation = replace(
        conversation,
        started_at=record.text_of("start_time", "timestamp"),
        notes=(*conversation.notes, *dict.fromkeys(about)),
    )
    said = conversation.messages
    turns = [index for index, message in enumerate(said) if message.role == "user"]
    if not turns:
        raise record.refused("has no message of a user, so there is no request to make a case of")
    quiet = 0
    for number, (at, end) in enumerate(zip(turns, [*turns[1:], len(said)], strict=True), start=1):
        if any(message.tool_calls for message in said[at:end]):
            yield case_of(replace(conversation, messages=said[:end], name=f"{name}, turn {number}"), at)
        else:
            quiet += 1
    if quiet:
        notes.append(Note(record.place, f"{counted(quiet, 'turn')} without a call: no case, only what was said before"))


def _wanted(record: Node, results: Node | None) -> tuple[list[str], str]:
    """Returns the names of the actions that a task asks for, and the reward of what was done."""
    if results is None:
        info, reward = record.get("info"), record.get("reward")
        task = info.get("task") if info is not None else None
    else:
        of_run = record.get("reward_info")
        reward = of_run.get("reward") if of_run is not None else None
        tasks = results.get("tasks")
        same = [
            task
            for task in (tasks.items() if tasks is not None else [])
            if task.table().get("id") == record.table().get("task_id")
        ]
        task = same[0].get("evaluation_criteria") if same else None
    actions = task.get("actions") if task is not None else None
    names = [action.text_of("name") for action in (actions.items() if actions is not None else [])]
    amount = number_of(reward)
    return [each for each in names if each], "not said" if amount is None else f"{amount:g}"


def _second(message: Node, about: list[Note]) -> Iterator[JsonValue]:
    """Yields a message of tau2 as OpenAI has it: what the user did with tools of his own is left out."""
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


TAU = Format(_recognizes, _read, graded_as("every"))
