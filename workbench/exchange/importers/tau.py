"""Import results of tau-bench and tau2-bench, which are conversations of an agent with a simulated user.

Each task becomes a case whose user is played by a model, and the task's trials become runs of the case. If a file does
not say what the user wants, each turn with tool calls becomes a case instead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import NamedTuple

from workbench.exchange.importers.conversations import (
    CallRegistry,
    Conversation,
    Format,
    ImportedCase,
    ImportedFile,
    ImportedRun,
    ImportedUser,
    MappedPart,
    Note,
    calls_in,
    case_of,
    expected_call,
    first_refusal,
    graded_as,
    indices_of,
    not_imported,
    rounds_of,
    without_expectations,
    without_wrong_expectations,
    written_messages,
)
from workbench.exchange.importers.match import Match
from workbench.exchange.importers.messages import conversation_of, nonnegative_number
from workbench.exchange.importers.source_files import Node, RefusedError, Source, bare_values, placed_at
from workbench.numerals import count_text, counted, setting_text
from workbench.suite.render import Table
from workbench.suite.toml_equality import toml_equal
from workbench.trajectory.events import FinishReason, JsonValue, Message, SourceScore, ToolCall
from workbench.trajectory.external_run import ExternalRound

_ROUNDING = 1e-6
"""The largest difference from 1 of a reward that counts as success, in both systems."""


_READERS = ("get_*", "find_*", "search_*", "list_*", "calculate", "think", "transfer_to_human_agents")
"""The tools of the systems' own domains that do not change the database."""

_SORTED = {
    "return_delivered_order_items": ("item_ids",),
    "exchange_delivered_order_items": ("item_ids", "new_item_ids"),
    "modify_pending_order_items": ("item_ids", "new_item_ids"),
}
"""Arguments that are lists without a meaningful order. All other lists are compared in order."""


class _Action(NamedTuple):
    """A call that a task expects.

    `compared` are the names of the arguments to compare. `None` means that all arguments are compared."""

    call: ToolCall
    compared: tuple[str, ...] | None

    @property
    def writes(self) -> bool:
        return not any(fnmatchcase(self.call.tool, pattern) for pattern in _READERS)

    @property
    def change(self) -> Table:
        call = expected_call(self.call)
        args = call["args"]
        assert isinstance(args, dict)
        for name in _SORTED.get(self.call.tool, ()):
            if isinstance(items := args.get(name), list):
                args[name] = {"same_elements": items}
        return call

    @property
    def compared_call(self) -> Table:
        """The expected call of a case, which compares arguments in the same way as tau2.

        If `compared` is set, only these arguments are compared. An argument in `compared` that the expected call lacks
        must be missing in the run too. Without `compared`, each argument of the run must equal the expected one, but
        may be missing."""
        if self.compared is None:
            return Match("any_order", "subset").expected(expected_call(self.call))
        call = expected_call(self.call)
        args = call.pop("args")
        assert isinstance(args, dict)
        if kept := {name: args[name] for name in self.compared if name in args}:
            call["args"] = kept
        if absent := [name for name in self.compared if name not in args]:
            call["forbidden_args"] = absent
        return call


class _Task(NamedTuple):
    """A task of the benchmark.

    `goal` says what the user wants, and is empty if the file lacks it. `end_state` and `all_actions` say how the task
    is judged: by the final database, by all its actions, or by both. `outputs` are texts that the agent must say.
    `not_compared` are criteria that a suite cannot express."""

    goal: str
    actions: tuple[_Action, ...]
    end_state: bool
    all_actions: bool
    outputs: tuple[str, ...]
    not_compared: tuple[str, ...]

    @property
    def changes(self) -> list[Table]:
        return [action.change for action in self.actions if action.writes]


def _is_task(node: Node) -> bool:
    return node.has("user_scenario") and node.has("evaluation_criteria")


def _recognizes(source: Source) -> bool:
    if source.root.has("simulations"):
        return source.root.first("tasks", "info") is not None
    first = source.beginning
    return first.has("traj", "task_id") or _is_task(first)


def _read(source: Source) -> ImportedFile:
    if _is_task(source.beginning):
        raise RefusedError(
            "holds tasks, which need a simulated user and a database: import the results of a run of them"
        )
    simulations = source.root.get("simulations")
    results = None if simulations is None else source.root
    cases: list[ImportedCase] = []
    whole: dict[str, ImportedCase] = {}
    notes: list[Note] = []
    for record in source.records if simulations is None else simulations.items():
        try:
            trial = _trial(record, results)
            if trial.task is not None and trial.task.goal:
                case = _whole(trial, trial.task)
                whole[str(case.table["name"])] = _joined(whole.get(str(case.table["name"])), case)
            else:
                cases += _turns(trial, notes)
        except RefusedError as error:
            notes.append(not_imported(error.place, error.why))
    cases += whole.values()
    if not cases:
        raise first_refusal(notes, "holds no conversation")
    systems = {str(case.table.get("system", "")) for case in cases}
    suite: Table = {}
    # The system prompt is the same for all cases of a domain, so it is moved into the suite.
    if len(systems) == 1 and "" not in systems:
        suite["system"] = systems.pop()
        cases = [replace(case, table=case.table_without("system")) for case in cases]
    return ImportedFile(tuple(cases), suite, tuple(notes))


class _Trial(NamedTuple):
    record: Node
    name: str
    conversation: Conversation
    task: _Task | None
    scores: tuple[SourceScore, ...]
    trial: str
    """The name with the number of the trial."""


def _trial(record: Node, results: Node | None) -> _Trial:
    name = f"Task {record.table().get('task_id')}"
    number = nonnegative_number(record.get("trial")) or 0
    trial = name
    if number:
        trial += f", trial {setting_text(number + 1)}"
    about: list[Note] = []
    info = Node(None)
    messages: list[Node] = []
    if results is None:
        for each in record.need("traj").items():
            failed = each.text_of("role") == "tool" and each.text_of("content").startswith("Error:")
            messages.append(Node(each.table() | {"is_error": True}, each.place) if failed else each)
    else:
        info = results.at("info")
        for each in record.need("messages").items():
            messages += placed_at(each.place, _openai_messages(each, about))
    document: dict[str, JsonValue] = {
        "system": info.at("environment_info").text_of("policy") or None,
        "model": info.at("agent_info").text_of("llm") or None,
    }
    conversation = conversation_of(Node(document, record.place), messages)
    task = _task(record, results)
    if task is not None:
        named = f"its task names {counted(len(task.actions), 'action')}"
        if task.end_state:
            writes = sum(action.writes for action in task.actions)
            named += f", {count_text(writes)} of which change the database: exactly these changes are expected"
        about.append(Note(record.place, named))
    conversation = replace(
        conversation,
        started_at=record.text_of("start_time", "timestamp"),
        notes=(*conversation.notes, *dict.fromkeys(about)),
    )
    return _Trial(record, name, conversation, task, _scores(record, results, trial), trial)


# Whole conversations: each task becomes a case whose user is played by a model, and each trial becomes a run.

_MAX_STEPS = 30
"""The most answers of the agent in tau-bench, over all turns."""

_TRANSFER = "transfer_to_human_agents"
"""The call that ends a conversation in tau-bench."""

_STOP, _OTHER_STOPS = "###STOP###", ("###TRANSFER###", "###OUT-OF-SCOPE###")


def _whole(trial: _Trial, task: _Task) -> ImportedCase:
    conversation, record = trial.conversation, trial.record
    entries = conversation.messages
    begins = next(indices_of("user", entries), None)
    if begins is None:
        raise record.refused("has no user message, so it cannot become a case")
    user: Table = {"goal": task.goal, "max_turns": _MAX_STEPS, "stop": {"called": [_TRANSFER]}}
    table: Table = {"name": trial.name, "user": user, "limits": {"max_rounds": _MAX_STEPS}}
    if conversation.system:
        table["system"] = conversation.system
    notes = [*conversation.notes]
    if before := entries[:begins]:
        table["messages"], more = written_messages(before, conversation.place)
        notes += more
    if task.not_compared:
        notes.append(Note(record.place, f"also judged by {', '.join(task.not_compared)}, which is not imported"))
    mapped = [MappedPart("what the user wants", "user.goal")]
    final: Table = {}
    if task.end_state:
        final |= {"changes": task.changes, "readers": list(_READERS)}
        mapped.append(MappedPart(counted(len(task.changes), "change"), "final.changes"))
    if task.outputs:
        final["says"] = list(task.outputs)
        mapped.append(MappedPart(counted(len(task.outputs), "text"), "final.says"))
    if final:
        table["final"] = final
    if task.all_actions and task.actions:
        table["unordered"] = [action.compared_call for action in task.actions]
        table["extra_calls"] = "allow"
    elif not final:
        table["expect_nothing_yet"] = True
        notes.append(Note(record.place, "its task requires nothing: it expects nothing yet", "expects nothing yet"))
    rounds = rounds_of(conversation, begins, len(entries))
    imported = ImportedRun(conversation.model, rounds, conversation.started_at, trial.scores, _user(entries, rounds))
    return ImportedCase(record.place, table, tuple(mapped), tuple(notes), (imported,))


def _user(entries: Sequence[Message], rounds: Sequence[ExternalRound]) -> ImportedUser:
    spoken: dict[int, str] = {}
    answered = 0
    waiting: list[str] = []
    for message in entries:
        if message.role == "user":
            waiting.append(message.content)
        elif message.role == "assistant" and (waiting or spoken):
            if waiting:
                spoken[answered] = "\n\n".join(waiting)
                waiting = []
            answered += 1
    last = "\n\n".join(waiting)
    for end in (_STOP, *_OTHER_STOPS):
        if end in last:
            reason: FinishReason = "user done" if end == _STOP else "user gave up"
            return ImportedUser(spoken, reason, last.replace(end, "").strip())
    if rounds and any(call.tool == _TRANSFER for call in rounds[-1].calls):
        return ImportedUser(spoken, "stopped by rule")
    return ImportedUser(spoken, "rounds exhausted")


def _joined(known: ImportedCase | None, case: ImportedCase) -> ImportedCase:
    if known is None:
        return case
    return replace(known, runs=(*known.runs, *case.runs))


# Single turns, for files that do not say what the user wants.


def _turns(trial: _Trial, notes: list[Note]) -> Iterator[ImportedCase]:
    record, task = trial.record, trial.task
    conversation = trial.conversation
    if task is not None and (not_compared := [*task.not_compared, *(["outputs"] if task.outputs else [])]):
        why = f"also judged by {', '.join(not_compared)}, which is not imported"
        conversation = replace(conversation, notes=(*conversation.notes, Note(record.place, why)))
    entries = conversation.messages
    turns = list(indices_of("user", entries))
    if not turns:
        raise record.refused("has no user message, so it cannot become a case")
    spans = list(zip(turns, [*turns[1:], len(entries)], strict=True))
    calls: list[list[ToolCall]] = []
    for at, end in spans:
        calls.append(list(calls_in(entries[at:end])))
    last_answered = len(turns)
    for number, (at, end) in enumerate(spans, start=1):
        if end > at + 1:
            last_answered = number
    expected = _by_turn([] if task is None else task.actions, calls, last_answered)
    quiet = 0
    for number, ((at, end), made) in enumerate(zip(spans, calls, strict=True), start=1):
        if not made and number not in expected:
            quiet += 1
            continue
        case = case_of(
            replace(conversation, messages=entries[:end], name=f"{trial.trial}, turn {number}"), at
        ).with_scores(trial.scores)
        if task is not None:
            yield _expecting(case, expected.get(number, []), task)
        else:
            yield without_wrong_expectations(case)
    if quiet:
        notes.append(Note(record.place, f"{counted(quiet, 'turn')} without a call: no case, only conversation"))


def _expecting(case: ImportedCase, actions: list[_Action], task: _Task) -> ImportedCase:
    case = without_expectations(case)
    notes: list[Note] = []
    if task.all_actions and actions:
        case.table["unordered"] = [action.compared_call for action in actions]
        case.table["extra_calls"] = "allow"
    if task.end_state:
        changes = [action.change for action in actions if action.writes]
        case.table["final"] = {"changes": changes, "readers": list(_READERS)}
    elif not actions or not task.all_actions:
        case.table["expect_nothing_yet"] = True
        why = "its task requires no call in this turn: it expects nothing yet"
        notes.append(Note(case.place, why, "expects nothing yet"))
    return case.with_notes(*notes)


def _by_turn(actions: Sequence[_Action], calls: list[list[ToolCall]], answered_turn: int) -> dict[int, list[_Action]]:
    """Return the actions of a task by the number (from 1) of the turn in which the agent executed them.

    An action that the agent did not execute belongs to the last turn with calls. If no turn has calls, it belongs to
    `answered_turn`."""
    # First, actions are matched with calls that have the same arguments, over all turns. Otherwise, an action could
    # take the call that belongs to a later action.
    free = []
    for number, made in enumerate(calls, start=1):
        for call in made:
            free.append((number, call))
    last = max((number for number, _ in free), default=answered_turn)
    turn_of: dict[int, int] = {}
    for exactly in (True, False):
        for index, action in enumerate(actions):
            if index in turn_of:
                continue
            found = next((each for each in free if _is_made(action.call, each[1], exactly=exactly)), None)
            if found is not None:
                free.remove(found)
                turn_of[index] = found[0]
    found_in: dict[int, list[_Action]] = {}
    for index, action in enumerate(actions):
        found_in.setdefault(turn_of.get(index, last), []).append(action)
    return found_in


def _is_made(action: ToolCall, call: ToolCall, *, exactly: bool) -> bool:
    return call.tool == action.tool and (not exactly or toml_equal(dict(call.arguments), dict(action.arguments)))


def _task(record: Node, results: Node | None) -> _Task | None:
    # tau-bench repeats the task in each record; tau2 lists the tasks separately.
    task = record.at("info").at("task")
    goal = task.text_of("instruction")
    if results is not None:
        task_id = record.table().get("task_id")
        # The number of a task is not its index, because a file may have only some of the domain's tasks.
        same_id = []
        for each in results.items_of("tasks"):
            if each.table().get("id") == task_id:
                same_id.append(each)
        of_task = same_id[0] if same_id else Node(None)
        task, goal = of_task.at("evaluation_criteria"), _goal(of_task.at("user_scenario"))
    if not task.has("actions"):
        return None
    ids = CallRegistry()
    found = []
    for action in task.items_of("actions"):
        if action.text_of("requestor") == "user":
            continue  # the simulated user calls one of its own tools
        arguments = action.first("kwargs", "arguments") or Node({})
        call = ids.call(action, "", action.text_of("name"), arguments.value)
        if call.problem is not None:
            raise action.refused(f"the arguments of {call.tool} are {call.problem}")
        compared = None
        if action.has("compare_args"):
            compared = tuple(map(Node.text, action.need("compare_args").items()))
        found.append(_Action(call, compared))
    basis = set(bare_values(task.listed_of("reward_basis"))) or {"DB", "COMMUNICATE"}
    outputs: list[str] = []
    if "COMMUNICATE" in basis:
        outputs = [str(text) for text in bare_values(task.listed_of("outputs", "communicate_info"))]
    not_compared = sorted(map(str, basis - {"DB", "ACTION", "COMMUNICATE"}))
    if task.value_of("env_assertions"):
        not_compared.append("env_assertions")
    return _Task(
        goal, tuple(found), "DB" in basis, "ACTION" in basis, tuple(filter(None, outputs)), tuple(not_compared)
    )


def _goal(scenario: Node) -> str:
    instructions = scenario.at("instructions")
    if isinstance(instructions.value, str):
        return instructions.value
    parts = [
        instructions.text_of(key) for key in ("reason_for_call", "known_info", "unknown_info", "task_instructions")
    ]
    return "\n\n".join(filter(None, (*parts, scenario.text_of("persona"))))


def _scores(record: Node, results: Node | None, name: str) -> tuple[SourceScore, ...]:
    """Return the reward of a conversation as its only score; empty without a reward.

    The reward judges all turns together."""
    system, of_run = "tau-bench", record
    if results is not None:
        system, of_run = "tau2-bench", record.at("reward_info")
    reward = nonnegative_number(of_run.get("reward"))
    if reward is None:
        return ()
    return (SourceScore(f"reward of {system}", min(reward, 1.0), reward >= 1 - _ROUNDING, name),)


def _openai_messages(message: Node, notes: list[Note]) -> Iterator[JsonValue]:
    """Convert a message of tau2 to messages in OpenAI's form. Calls of the user's own tools are left out."""
    table = message.table()
    inner = message.get("tool_messages")
    if inner is not None:
        for each in inner.items():
            yield from _openai_messages(each, notes)
        return
    by_user = message.text_of("requestor") == "user"
    if by_user or (message.text_of("role") == "user" and message.has("tool_calls")):
        notes.append(Note("", "the simulated user has its own tools in this domain: their calls are left out"))
    if message.text_of("role") == "tool":
        if not by_user:
            failed = table.get("error") is True
            yield {"role": "tool", "tool_call_id": table.get("id"), "content": table.get("content"), "is_error": failed}
        return
    if message.text_of("role") == "user" and not message.text_of("content"):
        return
    seconds = nonnegative_number(message.get("generation_time_seconds"))
    calls = table.get("tool_calls") if message.text_of("role") == "assistant" else None
    yield {**table, "tool_calls": calls, "latency_ms": seconds * 1000 if seconds is not None else None}


TAU = Format(_recognizes, _read, {"by": "trajectory", **graded_as("every")})
