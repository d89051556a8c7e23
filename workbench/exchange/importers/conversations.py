"""Makes cases of conversations: what came before the last request is the case's conversation, what came after it is a
run, and the calls in it are what the case expects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Literal, NamedTuple, cast

from workbench.authoring.form.typed import items_at
from workbench.authoring.from_calls import case_expecting, case_with_mock
from workbench.dataclasses import dataclass, json_text
from workbench.engine.external_run import ToldResult, ToldRound
from workbench.exchange.importers.source_files import Node, RefusedError, Source
from workbench.limits import MAX_MILLISECONDS
from workbench.numerals import counted, figure
from workbench.providers.wire.repairs import DETAILS, repaired
from workbench.providers.wire.tool_calls import read_arguments
from workbench.suite.model import RepeatRule
from workbench.suite.render import Table
from workbench.suite.settings import Limits
from workbench.tools.answer import ToolAnswer
from workbench.trajectory.events import (
    CallFinished,
    Deviation,
    JsonValue,
    Message,
    SourceScore,
    ToolCall,
    Usage,
    usable,
)

# What an importer makes of a file: cases, the runs that were made of them, and what it could not take.

NO_TOOLS = "no definitions of tools: write [[tools]] or [[servers]] into the suite"
"""What is said of a case that calls tools which its file does not define."""


NoteKind = Literal["other", "not imported", "check calls", "expects nothing yet", "no tools", "no mock"]
"""What code decides by a note: `not imported` counts as left out, `check calls` goes when a file names its own
expectations, and so do `expects nothing yet` and `no tools` when it has some."""


@dataclass(frozen=True)
class Note:
    """What of the file is not in the suite, or is there in another way: its place, and why."""

    place: str
    why: str
    kind: NoteKind = "other"

    def __str__(self) -> str:
        return f"{self.place}: {self.why}" if self.place else self.why


def not_imported(place: str, why: str) -> Note:
    """Return the note on something that became no case."""
    return Note(place, f"not imported: {why}", "not imported")


class Mapped(NamedTuple):
    """What of the file became what in the case.

    `into` is the key of the case, empty where `what` names it."""

    what: str
    into: str = ""

    def __str__(self) -> str:
        return f"{self.what} → {self.into}" if self.into else self.what


@dataclass(frozen=True)
class ImportedRun:
    """A run of a case, made elsewhere.

    `started_at` is ISO 8601 text, empty where the file does not say it."""

    model: str
    rounds: tuple[ToldRound, ...]
    started_at: str = ""
    scores: tuple[SourceScore, ...] = ()
    """What the system that made it says of it."""

    @property
    def is_wrong(self) -> bool:
        """Whether that system called it wrong, so that no case expects what was done in it."""
        return any(not score.passed for score in self.scores)


@dataclass(frozen=True)
class ImportedCase:
    """A case as the suite has it, with its tools; `mapped` says what of the file became what in it."""

    place: str
    table: Table
    mapped: tuple[Mapped, ...] = ()
    notes: tuple[Note, ...] = ()
    runs: tuple[ImportedRun, ...] = ()

    def noted(self, *notes: Note) -> ImportedCase:
        return replace(self, notes=(*self.notes, *notes))


@dataclass(frozen=True)
class Imported:
    """All of a file.

    `suite` is what stands at the top of the suite beside its name; `notes` are about no one case."""

    cases: tuple[ImportedCase, ...]
    suite: Table = field(default_factory=dict)
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True)
class Format:
    """A form of files.

    `recognizes` says whether a file is plainly of this form, and never raises; `read` raises RefusedError where nothing
    of the file can be taken."""

    recognizes: Callable[[Source], bool]
    read: Callable[[Source], Imported]
    grading: Table = field(default_factory=dict)
    """What the suite says of grading, because the system that the file is of grades so."""


def graded_as(repeat_rule: RepeatRule | None = None) -> Table:
    """Return the grading of another system, which knows nothing of a tool's schema; `repeat_rule` is what repeats of a
    case come to there, where it has repeats."""
    rule: Table = {"repeat_rule": repeat_rule} if repeat_rule is not None else {}
    return {"invalid_arguments": "note", **rule}


def gathered(
    source_cases: Iterable[Callable[[], ImportedCase]],
) -> tuple[tuple[ImportedCase, ...], tuple[Note, ...]]:
    """Return the cases that can be made, and notes of those that cannot."""
    cases: list[ImportedCase] = []
    notes: list[Note] = []
    for make in source_cases:
        try:
            cases.append(make())
        except RefusedError as error:
            notes.append(not_imported(error.place, error.why))
    return tuple(cases), tuple(notes)


def imported_of(nodes: Iterable[Node], make: Callable[[Node], ImportedCase], what: str) -> Imported:
    """Return a case of each node that can be made one.

    Raises RefusedError where there is none: for the first reason, or because the file holds no `what`."""
    cases, notes = gathered(partial(make, node) for node in nodes)
    if not cases:
        raise RefusedError(notes[0].why if notes else f"holds no {what}", notes[0].place if notes else "")
    return Imported(cases, notes=notes)


_MAX_NAME_CHARS = 60


@dataclass(frozen=True)
class Conversation:
    """A conversation of whatever form.

    The id of each call is its own; By the index of their message: reasoning, latencies and times to the first token in
    milliseconds, tokens, and the endpoint's deviations that were repaired."""

    place: str
    messages: tuple[Message, ...]
    system: str = ""
    tools: tuple[Table, ...] = ()
    model: str = "imported"
    name: str = ""
    started_at: str = ""
    tags: tuple[str, ...] = ()
    reasoning: Mapping[int, str] = field(default_factory=dict)
    latency_ms: Mapping[int, float] = field(default_factory=dict)
    first_token_ms: Mapping[int, float] = field(default_factory=dict)
    usage: Mapping[int, Usage] = field(default_factory=dict)
    deviations: Mapping[int, tuple[Deviation, ...]] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()


class Calls:
    """The calls of one conversation, each with an id of its own, so that it is plain which one a result answers."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._open: list[tuple[str, str, str]] = []
        self.made = 0
        self.repaired: dict[str, Deviation] = {}
        """The deviations that were repaired, by the calls' own ids."""

    def call(self, place: Node, given_id: str, tool: str, arguments: object) -> ToolCall:
        """Return a call as the model wrote it.

        Raises RefusedError for one of no tool."""
        if not tool:
            raise place.refused("is a call without the name of a tool")
        self.made += 1
        call_id, number = given_id or f"call-{self.made}", 1
        while call_id in self._taken:
            number += 1
            call_id = f"{given_id or f'call-{self.made}'}-{number}"
        self._taken.add(call_id)
        self._open.append((call_id, given_id, tool))
        read, problem = read_arguments(arguments)
        raw = None if problem is None else arguments if isinstance(arguments, str) else json_text(arguments)
        if problem is not None and isinstance(arguments, str) and (found := repaired([arguments])) is not None:
            read, problem = found.arguments, None
            self.repaired[call_id] = Deviation(found.kind, DETAILS[found.kind], call_id)
        done = usable(CallFinished(call_id, read, raw, problem))
        return ToolCall(call_id, tool, done.arguments, done.raw, done.problem)

    def answered(self, given_id: str, tool: str = "") -> str | None:
        """Return the id of the call that a result answers: the one of the same id, else the first unanswered one of the
        tool; `None` where there is none."""
        for index, (call_id, theirs, name) in enumerate(self._open):
            if (given_id and theirs == given_id) or (not given_id and tool in ("", name)):
                del self._open[index]
                return call_id
        return None


def last_request(messages: Sequence[Message]) -> int | None:
    """Return the index of the last message of a user: what a case asks whose answer is still to come."""
    return max((index for index, message in enumerate(messages) if message.role == "user"), default=None)


def case_of(conversation: Conversation, asked: int | None = None) -> ImportedCase:
    """Return a conversation as a case, with its run if an answer followed the request: the message with the index
    `asked`, else the last one of the user that was answered. Raises RefusedError for one in which nobody asks for
    anything."""
    messages = conversation.messages
    requests = [index for index, message in enumerate(messages) if message.role == "user"]
    followed = [at for at in requests if at + 1 < len(messages) and messages[at + 1].role == "assistant"]
    if not requests:
        raise RefusedError("has no message of a user, so there is no request to make a case of", conversation.place)
    mapped = [Mapped("the last request" if asked is None else "the request", "user")]
    if asked is None:
        asked = followed[-1] if followed else requests[-1]
    table: Table = {"name": conversation.name or name_of(messages[asked].content, conversation.place)}
    notes = list(conversation.notes)
    if conversation.tags:
        table["tags"] = list(conversation.tags)
    table["user"] = messages[asked].content
    if conversation.system:
        table["system"] = conversation.system
        mapped.append(Mapped("system"))
    if before := messages[:asked]:
        table["messages"], more = _written(before, conversation.place)
        notes += more
        mapped.append(Mapped(f"{counted(len(before), 'message')} before it", "messages"))
    if conversation.tools:
        table["tools"] = [dict(tool) for tool in conversation.tools]
        mapped.append(Mapped(counted(len(conversation.tools), "tool")))
    later = requests[requests.index(asked) + 1 :]
    if later:
        then = "and what followed" if set(later) & set(followed) else "which no answer followed"
        why = f"{counted(len(later), 'message')} of the user after it, {then}, left out"
        notes.append(Note(conversation.place, why))
    end = later[0] if later else len(messages)
    rounds = rounds_of(conversation, asked + 1, end)
    if not rounds:
        notes.append(Note(conversation.place, _NO_ANSWER, "expects nothing yet"))
        table["expect_nothing_yet"] = True
        return ImportedCase(conversation.place, table, tuple(mapped), tuple(notes))
    table, expected, of_run = _expecting(table, rounds, conversation.place)
    run = ImportedRun(conversation.model, rounds, conversation.started_at)
    return ImportedCase(conversation.place, table, (*mapped, *expected), (*notes, *of_run), (run,))


def joined(cases: Iterable[ImportedCase]) -> tuple[ImportedCase, ...]:
    """Return cases of which those that ask the same in the same conversation are one, with the runs of all of them.

    It expects what was done in the first run that its source did not call wrong."""
    found: dict[str, ImportedCase] = {}
    for case in cases:
        asked = {key: case.table.get(key) for key in ("name", "user", "system", "messages", "tools")}
        key = json_text(cast("JsonValue", asked))
        if (first := found.get(key)) is None:
            found[key] = case
            continue
        if first.table.get("expect_nothing_yet") is True:  # the first right one says what is expected
            found[key] = replace(case, runs=(*first.runs, *case.runs), place=first.place)
            continue
        notes = (note for note in case.notes if note.why not in {known.why for known in first.notes})
        found[key] = replace(first, notes=(*first.notes, *notes), runs=(*first.runs, *case.runs))
    return tuple(
        case.noted(Note(case.place, f"{counted(len(case.runs), 'run')}: the first right one's calls are expected"))
        if len(case.runs) > 1 and case.table.get("expect_nothing_yet") is not True
        else case
        for case in found.values()
    )


def name_of(text: str, place: str) -> str:
    """Return a name for a case: the first line of its request, cut after a word."""
    line = " ".join(next((line for line in text.splitlines() if line.strip()), "").split())
    if len(line) > _MAX_NAME_CHARS:
        line = line[:_MAX_NAME_CHARS].rpartition(" ")[0] or line[:_MAX_NAME_CHARS]
    return line.rstrip(" .,:;") or place or "A case"


def tool_table(name: str, description: str, parameters: Mapping[str, JsonValue] | None) -> Table:
    """Return a tool as a suite writes it."""
    table: Table = {"name": name}
    if description:
        table["description"] = description
    if parameters:
        schema = dict(parameters)
        table["parameters"] = json_text(schema) if _has_null(schema) else schema
    return table


def tool_of(node: Node) -> Table:
    """Return a definition of a tool as OpenAI, Anthropic, MCP and OpenTelemetry write it.

    Raises RefusedError."""
    inner = node.get("function") or node
    inner = inner if isinstance(inner.value, dict) else node
    schema = inner.first("parameters", "input_schema", "inputSchema")
    name = inner.need("name").text()
    if not name:
        raise inner.refused("is a tool without a name")
    return tool_table(name, inner.text_of("description"), schema.parsed().table() if schema is not None else None)


def rounds_of(conversation: Conversation, first: int, end: int) -> tuple[ToldRound, ...]:
    """Return the answers among some messages, by index, with what their calls were answered."""
    rounds: list[ToldRound] = []
    for index in range(first, end):
        message = conversation.messages[index]
        if message.role == "assistant":
            latency_ms = min(conversation.latency_ms.get(index, 0.0), MAX_MILLISECONDS)
            reasoning = conversation.reasoning.get(index, "")
            usage = conversation.usage.get(index)
            first_ms = conversation.first_token_ms.get(index)
            deviations = conversation.deviations.get(index, ())
            calls = message.tool_calls
            rounds.append(ToldRound(message.content, reasoning, calls, {}, latency_ms, usage, first_ms, deviations))
        elif message.call_id is not None and rounds:
            of_call = next(
                (at for at, each in enumerate(rounds) if message.call_id in {call.id for call in each.calls}), None
            )
            if of_call is not None:
                results = {
                    **rounds[of_call].results,
                    message.call_id: ToldResult(message.content, message.is_error),
                }
                rounds[of_call] = replace(rounds[of_call], results=results)
    return tuple(rounds)


def _expecting(
    table: Table, rounds: tuple[ToldRound, ...], place: str
) -> tuple[Table, tuple[Mapped, ...], tuple[Note, ...]]:
    """Return a case that expects the calls of a run, answered by mocks as they were there; what was mapped; notes."""
    notes: list[Note] = []
    mapped: list[Mapped] = []
    ordered: list[Table] = []
    for each in rounds:
        group: list[Table] = []
        for call in each.calls:
            if call.problem is not None:
                notes.append(Note(place, f"the call of {call.tool} is not expected: its arguments are {call.problem}"))
                continue
            group.append(_expected_call(call, place, notes))
        ordered += group if len(group) < 2 else [{"any_order": group}]
    calls = [call for each in rounds for call in each.calls]
    if ordered:
        table = table | {"ordered": ordered}
        verb = "was" if len(calls) == 1 else "were"
        mapped.append(Mapped(f"{counted(len(calls), 'call')} that {verb} made", "ordered"))
        why = "the expected calls are those that were made: check whether they are right"
        notes.append(Note(place, why, "check calls"))
    elif calls:
        table = table | {"expect_nothing_yet": True}
    else:
        table = table | {"expect_no_calls": True}
        mapped.append(Mapped("no call was made", "expect_no_calls"))
        why = "no call is expected because none was made: check whether that is right"
        notes.append(Note(place, why, "check calls"))
    results = {call_id: result for each in rounds for call_id, result in each.results.items()}
    table = _with_mocks(table, calls, results, place, mapped, notes)
    last = rounds[-1]
    if last.calls:
        table = table | {"limits": {"max_rounds": len(rounds)}}
        notes.append(Note(place, "ends with calls and no answer: max_rounds stops a run there too"))
    elif last.text:
        notes.append(Note(place, "the final answer is in the run, and no check asks for it"))
    if not last.calls and len(rounds) > Limits().max_rounds:
        table = table | {"limits": {"max_rounds": len(rounds)}}
    return table, tuple(mapped), tuple(notes)


_NO_ANSWER = "no answer follows the request: the case expects nothing yet"
_EXPECTATIONS = ("ordered", "unordered", "expect_no_calls", "expect_nothing_yet", "extra_calls")


def without_expectations(case: ImportedCase) -> ImportedCase:
    """Return a case of a conversation that does not expect what was done in it."""
    table = {key: value for key, value in case.table.items() if key not in _EXPECTATIONS}
    notes = tuple(note for note in case.notes if note.kind != "check calls")
    mapped = tuple(each for each in case.mapped if each.into not in _EXPECTATIONS)
    return replace(case, table=table, notes=notes, mapped=mapped)


def unless_wrong(case: ImportedCase) -> ImportedCase:
    """Return a case of a conversation, which expects nothing yet where the source called its first run wrong."""
    if not case.runs or not case.runs[0].is_wrong:
        return case
    score = next(each for each in case.runs[0].scores if not each.passed)
    case = without_expectations(case)
    case.table["expect_nothing_yet"] = True
    why = f"{score.name} is {figure(score.value)}: what was done is not expected, so the case expects nothing yet"
    return case.noted(Note(case.place, why, "expects nothing yet"))


def of_reference(
    case: ImportedCase,
    calls: Sequence[ToolCall],
    results: Mapping[str, ToldResult],
    *,
    key: Literal["ordered", "unordered"] = "ordered",
    exact: bool = False,
) -> ImportedCase:
    """Return a case that expects the calls that a file asks for, answered as the file says by their ids.

    With `exact`, these calls with these arguments and no others."""
    table = {name: value for name, value in case.table.items() if name != "expect_nothing_yet"}
    notes = [note for note in case.notes if note.kind != "expects nothing yet"]
    mapped = list(case.mapped)
    expected: list[Table] = []
    for call in calls:
        if call.problem is not None:
            notes.append(Note(case.place, f"the call of {call.tool} is not expected: its arguments are {call.problem}"))
        else:
            expected.append(_expected_call(call, case.place, notes) | ({"only_args": True} if exact else {}))
    if expected:
        table[key] = expected
        mapped.append(Mapped(counted(len(expected), "call"), key))
        if "tools" not in table:
            notes.append(Note(case.place, NO_TOOLS, "no tools"))
    elif not calls:
        table["expect_no_calls"] = True
        mapped.append(Mapped("no call", "expect_no_calls"))
    elif "response" not in table:
        table["expect_nothing_yet"] = True
    if expected and exact:
        table["extra_calls"] = "forbid"
    table = _with_mocks(table, calls, results, case.place, mapped, notes)
    return replace(case, table=table, mapped=tuple(mapped), notes=tuple(notes))


def _expected_call(call: ToolCall, place: str, notes: list[Note]) -> Table:
    (expected,) = items_at(case_expecting({}, call.tool, call.arguments), ("ordered",))
    assert isinstance(expected, dict)
    notes += [
        Note(place, f"{call.tool}.{name} holds null inside a value: only its presence is checked")
        for name, value in call.arguments.items()
        if value is not None and _has_null(value)
    ]
    return expected


def _with_mocks(
    table: Table,
    calls: Iterable[ToolCall],
    results: Mapping[str, ToldResult],
    place: str,
    mapped: list[Mapped],
    notes: list[Note],
) -> Table:
    mocks = 0
    for call in calls:
        result = results.get(call.id)
        if result is None or call.problem is not None:
            continue
        try:
            table = case_with_mock(table, call.tool, call.arguments, ToolAnswer(result.content, result.is_error))
            mocks += 1
        except ValueError as error:
            notes.append(Note(place, f"the result of {call.tool} is no mock: {error}", "no mock"))
    if mocks:
        mapped.append(Mapped(counted(mocks, "result"), "mocks"))
    return table


def _written(messages: Iterable[Message], place: str) -> tuple[list[Table], list[Note]]:
    written: list[Table] = []
    notes: list[Note] = []
    for message in messages:
        table: Table = {"role": message.role}
        if message.content or message.role != "assistant":
            table["content"] = message.content
        if message.tool_calls:
            table["tool_calls"] = [_prior_call(call, place, notes) for call in message.tool_calls]
        if message.call_id is not None:
            table["call"] = message.call_id
        if message.is_error:
            table["is_error"] = True
        if len(table) > 1:
            written.append(table)
    return written, notes


def _prior_call(call: ToolCall, place: str, notes: list[Note]) -> Table:
    arguments = {name: value for name, value in call.arguments.items() if not _has_null(value)}
    for name in call.arguments.keys() - arguments.keys():
        notes.append(Note(place, f"{call.tool}.{name} of an earlier call holds null, which TOML lacks: left out"))
    if call.problem is not None:
        notes.append(Note(place, f"the arguments of an earlier call of {call.tool} are {call.problem}: left out"))
    return {"id": call.id, "tool": call.tool, **({"args": arguments} if arguments else {})}


def _has_null(value: JsonValue) -> bool:
    if isinstance(value, dict):
        return any(map(_has_null, value.values()))
    return any(map(_has_null, value)) if isinstance(value, list) else value is None
