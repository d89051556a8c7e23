"""Makes cases from conversations in imported files.

The messages before the last request become the case's conversation. The messages after it become a run, and the case
expects the calls of this run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Literal, NamedTuple, cast

from workbench.authoring.form.field_text import items_at, without_keys
from workbench.authoring.from_calls import case_with_expected_call, case_with_mock
from workbench.dataclasses import dataclass, json_text
from workbench.exchange.importers.match import Match
from workbench.exchange.importers.source_files import Node, RefusedError, Source
from workbench.limits import MAX_MILLISECONDS
from workbench.numerals import counted, figure
from workbench.providers.wire.repairs import DETAILS, repair
from workbench.providers.wire.tool_calls import read_arguments
from workbench.suite.grading_model import RepeatRule
from workbench.suite.render import Table, holds_null
from workbench.suite.settings import Limits
from workbench.tools.answer import ToolAnswer
from workbench.trajectory.events import (
    CallFinished,
    Deviation,
    FinishReason,
    JsonValue,
    Message,
    Role,
    SourceScore,
    ToolCall,
    Usage,
    checked_call,
)
from workbench.trajectory.external_run import ExternalResult, ExternalRound

# The result of reading a file: cases, their runs, and notes on parts that were left out.

NO_TOOLS = "no definitions of tools: write [[tools]] or [[servers]] into the suite"
"""The note on a case that calls tools without definitions in its file."""


NoteKind = Literal["other", "not imported", "check calls", "expects nothing yet", "no tools", "no mock"]
"""The kinds of notes, for code that drops or counts them.

`not imported` counts as left out. `check calls` is dropped if the file states its own expectations. `expects nothing
yet` is dropped if the case gets expectations, and `no tools` if it gets tools."""


@dataclass(frozen=True)
class Note:
    """A note for the report of an import: a place in the file, and what the suite omits or changes there."""

    place: str
    why: str
    kind: NoteKind = "other"

    def __str__(self) -> str:
        if self.place:
            return f"{self.place}: {self.why}"
        return self.why


def notes_without(notes: Iterable[Note], *kinds: NoteKind) -> list[Note]:
    """Return the notes that are not of these kinds."""
    return [note for note in notes if note.kind not in kinds]


def without_tool_note(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Return all notes except the note that tool definitions are missing."""
    return tuple(note for note in notes if note.why != NO_TOOLS)


def tool_names(tools: Iterable[Table]) -> list[str]:
    return [str(tool["name"]) for tool in tools]


def not_imported(place: str, reason: str) -> Note:
    """Return a note that a part of the file did not become a case, with the reason."""
    return Note(place, f"not imported: {reason}", "not imported")


class MappedPart(NamedTuple):
    """A part of the file and the key of the case into which it was imported.

    `into` is empty if the part and the key have the same name."""

    what: str
    into: str = ""

    def __str__(self) -> str:
        if self.into:
            return f"{self.what} → {self.into}"
        return self.what


@dataclass(frozen=True)
class ImportedUser:
    """The user of an imported conversation.

    `said` holds the user's messages, each by the index of the round that answers it. `last_words` is the last message,
    which has no answer."""

    said: Mapping[int, str]
    reason: FinishReason
    last_words: str = ""


@dataclass(frozen=True)
class ImportedRun:
    """A run of a case, made by another program.

    `started_at` is ISO 8601 text, or empty if the file has no time."""

    model: str
    rounds: tuple[ExternalRound, ...]
    started_at: str = ""
    scores: tuple[SourceScore, ...] = ()
    """The verdicts of the system that made the run."""
    user: ImportedUser | None = None
    """The user of a whole conversation; `None` for the answer to one request."""

    @property
    def is_wrong(self) -> bool:
        """Whether the program that made this run judged it wrong. A case never expects the calls of such a run."""
        return any(not score.passed for score in self.scores)


@dataclass(frozen=True)
class ImportedCase:
    """A case as the suite will contain it, with its tools and imported runs.

    `mapped` lists the parts of the file that were imported into the case."""

    place: str
    table: Table
    mapped: tuple[MappedPart, ...] = ()
    notes: tuple[Note, ...] = ()
    runs: tuple[ImportedRun, ...] = ()

    @property
    def expects_nothing_yet(self) -> bool:
        return self.table.get("expect_nothing_yet") is True

    def with_notes(self, *notes: Note) -> ImportedCase:
        return replace(self, notes=(*self.notes, *notes))

    def table_without(self, *keys: str) -> Table:
        return without_keys(self.table, *keys)

    def with_scores(self, scores: tuple[SourceScore, ...]) -> ImportedCase:
        """Return the case with scores of the original system added to every run."""
        return replace(self, runs=tuple(replace(run, scores=scores) for run in self.runs))

    @property
    def report(self) -> Iterator[str]:
        """Lines about the case for the report of an import: each mapped part, then each note."""
        for mapped in self.mapped:
            yield f"  ✓ {mapped}"
        for note in self.notes:
            # The report prints the place once, beside the name of the case.
            yield f"  · {note.why if note.place == self.place else note}"


@dataclass(frozen=True)
class ImportedFile:
    """The imported content of a file: its cases, other keys of the suite, and notes that concern the whole file."""

    cases: tuple[ImportedCase, ...]
    suite: Table = field(default_factory=dict)
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True)
class Format:
    """A file format that can be imported.

    `recognizes` returns whether a file clearly has this format, and never raises. `read` raises RefusedError if nothing
    in the file can be imported."""

    recognizes: Callable[[Source], bool]
    read: Callable[[Source], ImportedFile]
    grading: Table = field(default_factory=dict)
    """The suite's `grading`, which reproduces the verdicts of the file's own system."""


def graded_as(repeat_rule: RepeatRule | None = None) -> Table:
    """Return the `grading` of a suite that should reproduce the verdicts of another system.

    Arguments that do not fit a tool's schema are only noted, because the other system does not check them.
    `repeat_rule` is the other system's rule for repeats of a case, if it has repeats."""
    grading: Table = {"invalid_arguments": "note"}
    if repeat_rule is not None:
        grading["repeat_rule"] = repeat_rule
    return grading


def collect_cases(
    source_cases: Iterable[Callable[[], ImportedCase]],
) -> tuple[tuple[ImportedCase, ...], tuple[Note, ...]]:
    """Call functions, each of which makes a case.

    Returns the cases, and a note for each function that raises RefusedError."""
    cases: list[ImportedCase] = []
    notes: list[Note] = []
    for make in source_cases:
        try:
            cases.append(make())
        except RefusedError as error:
            notes.append(not_imported(error.place, error.why))
    return tuple(cases), tuple(notes)


def imported_of(nodes: Iterable[Node], make: Callable[[Node], ImportedCase], description: str) -> ImportedFile:
    """Make a case from each node with `make`. Raises RefusedError if no case can be made.

    `description` names the nodes in the error's message."""
    cases, notes = collect_cases(partial(make, node) for node in nodes)
    if not cases:
        raise first_refusal(notes, f"holds no {description}")
    return ImportedFile(cases, notes=notes)


def first_refusal(notes: Sequence[Note], otherwise: str, place: str = "") -> RefusedError:
    """Return an error for a file without a usable case. It has the reason of the first note, or else `otherwise`."""
    if notes:
        return RefusedError(notes[0].why, notes[0].place)
    return RefusedError(otherwise, place)


_MAX_NAME_CHARS = 60


@dataclass(frozen=True)
class Conversation:
    """A conversation from a file of any format.

    Each call has a unique id. The mappings from `reasoning` to `deviations` are keyed by the index of a message. Times
    are in milliseconds."""

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


class CallRegistry:
    """Gives each call of a conversation a unique id, so that each result belongs to one call."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._open: list[tuple[str, str, str]] = []
        self.made = 0
        self.repaired: dict[str, Deviation] = {}
        """The deviations that were repaired, by the calls' own ids."""

    def call(self, place: Node, given_id: str, tool: str, arguments: object) -> ToolCall:
        """Return a call as the model wrote it. Raises RefusedError for a call without the name of a tool.

        A repeated or missing id is replaced."""
        if not tool:
            raise place.refused("is a call without the name of a tool")
        self.made += 1
        own_id = given_id or f"call-{self.made}"
        call_id, number = own_id, 1
        # Some models number the calls of each answer from the start, so ids may repeat in a file.
        while call_id in self._taken:
            number += 1
            call_id = f"{own_id}-{number}"
        self._taken.add(call_id)
        self._open.append((call_id, given_id, tool))
        read, problem = read_arguments(arguments)
        raw: str | None = None
        if problem is not None:
            raw = arguments if isinstance(arguments, str) else json_text(arguments)
        # Arguments are repaired as those of live answers are, so imported runs are graded in the same way.
        if problem is not None and isinstance(arguments, str) and (found := repair([arguments])) is not None:
            read, problem = found.arguments, None
            self.repaired[call_id] = Deviation(found.kind, DETAILS[found.kind], call_id)
        done = checked_call(CallFinished(call_id, read, raw, problem))
        return ToolCall(call_id, tool, done.arguments, done.raw, done.problem)

    def id_of_answer(self, given_id: str, tool: str) -> str | None:
        """Return the new id of the call that a result answers; `None` if there is no such call.

        `given_id` is the id in the file. A result without an id answers the tool's first call that has no result
        yet."""
        for index, (call_id, theirs, name) in enumerate(self._open):
            if (given_id and theirs == given_id) or (not given_id and tool in ("", name)):
                del self._open[index]
                return call_id
        return None


def indices_of(role: Role, messages: Iterable[Message]) -> Iterator[int]:
    for index, message in enumerate(messages):
        if message.role == role:
            yield index


def last_request(messages: Sequence[Message]) -> int | None:
    """Return the index of the last message of a user; `None` if there is none."""
    return max(indices_of("user", messages), default=None)


def calls_in(messages: Iterable[Message]) -> Iterator[ToolCall]:
    for message in messages:
        yield from message.tool_calls


def results_in(messages: Iterable[Message]) -> dict[str, ExternalResult]:
    """Return the tool results among messages, by the ids of their calls."""
    results: dict[str, ExternalResult] = {}
    for message in messages:
        if message.call_id is not None:
            results[message.call_id] = ExternalResult(message.content, message.is_error)
    return results


def case_of(conversation: Conversation, request_index: int | None = None) -> ImportedCase:
    """Make a case from a conversation, with a run if the request was answered.

    `request_index` is the index of the message that becomes the request. By default, this is the user's last message
    with an answer. Raises RefusedError for a conversation without a user's message."""
    messages = conversation.messages
    requests = list(indices_of("user", messages))
    # A request without an answer has no calls that a case could expect. It may be the last request of an abandoned
    # session.
    followed = []
    for at in requests:
        if at + 1 < len(messages) and messages[at + 1].role == "assistant":
            followed.append(at)
    if not requests:
        raise RefusedError("has no user message, so it cannot become a case", conversation.place)
    request = "the request"
    if request_index is None:
        request = "the last request"
        request_index = (followed or requests)[-1]
    mapped = [MappedPart(request, "user")]
    table: Table = {"name": conversation.name or case_name(messages[request_index].content, conversation.place)}
    notes = list(conversation.notes)
    if conversation.tags:
        table["tags"] = list(conversation.tags)
    table["user"] = messages[request_index].content
    if conversation.system:
        table["system"] = conversation.system
        mapped.append(MappedPart("system"))
    if before := messages[:request_index]:
        table["messages"], more = written_messages(before, conversation.place)
        notes += more
        mapped.append(MappedPart(f"{counted(len(before), 'message')} before it", "messages"))
    if conversation.tools:
        table["tools"] = [dict(tool) for tool in conversation.tools]
        mapped.append(MappedPart(counted(len(conversation.tools), "tool")))
    later = requests[requests.index(request_index) + 1 :]
    end = len(messages)
    # A run has the answer to one request, so later requests are left out.
    if later:
        end = later[0]
        then = "and what followed" if set(later) & set(followed) else "which no answer followed"
        why = f"{counted(len(later), 'message')} of the user after it, {then}, left out"
        notes.append(Note(conversation.place, why))
    rounds = rounds_of(conversation, request_index + 1, end)
    if not rounds:
        notes.append(Note(conversation.place, _NO_ANSWER, "expects nothing yet"))
        table["expect_nothing_yet"] = True
        return ImportedCase(conversation.place, table, tuple(mapped), tuple(notes))
    table, expected, of_run = _expecting(table, rounds, conversation.place)
    run = ImportedRun(conversation.model, rounds, conversation.started_at)
    return ImportedCase(conversation.place, table, (*mapped, *expected), (*notes, *of_run), (run,))


def merge_cases(cases: Iterable[ImportedCase]) -> tuple[ImportedCase, ...]:
    """Merge cases with the same request and conversation into one case that has all their runs.

    The case expects the calls of the first run that the source did not judge wrong."""
    found: dict[str, ImportedCase] = {}
    for case in cases:
        asked = {key: case.table.get(key) for key in ("name", "user", "system", "messages", "tools")}
        key = json_text(cast("JsonValue", asked))
        first = found.get(key)
        if first is None:
            found[key] = case
        # The source judged all earlier runs wrong, so the case expects the calls of this run.
        elif first.expects_nothing_yet:
            found[key] = replace(case, runs=(*first.runs, *case.runs), place=first.place)
        else:
            known = {note.why for note in first.notes}
            notes = [note for note in case.notes if note.why not in known]
            found[key] = replace(first, notes=(*first.notes, *notes), runs=(*first.runs, *case.runs))
    for key, case in found.items():
        if len(case.runs) > 1 and not case.expects_nothing_yet:
            why = f"{counted(len(case.runs), 'run')}: the calls of the first right one are expected"
            found[key] = case.with_notes(Note(case.place, why))
    return tuple(found.values())


def case_name(text: str, place: str) -> str:
    """Return a name for a case: the first line of its request, cut after a word."""
    # The name must fit on one line of the tree, and gives the case its id.
    line = " ".join(next(filter(str.strip, text.splitlines()), "").split())
    if len(line) > _MAX_NAME_CHARS:
        line = line[:_MAX_NAME_CHARS].rpartition(" ")[0] or line[:_MAX_NAME_CHARS]
    return line.rstrip(" .,:;") or place or "A case"


def tool_table(name: str, description: str, parameters: Mapping[str, JsonValue] | None) -> Table:
    """Return the definition of a tool as a suite writes it."""
    table: Table = {"name": name}
    if description:
        table["description"] = description
    if parameters:
        # TOML has no null. A suite therefore also accepts a schema as JSON text.
        schema = dict(parameters)
        table["parameters"] = json_text(schema) if holds_null(schema) else schema
    return table


def tool_of(node: Node) -> Table:
    """Return a tool, defined in the form of OpenAI, Anthropic, MCP or OpenTelemetry, as a suite writes it.

    Raises RefusedError."""
    inner = node.at("function")
    if not isinstance(inner.value, dict):
        inner = node
    name = inner.need("name").text()
    if not name:
        raise inner.refused("is a tool without a name")
    parameters: dict[str, JsonValue] | None = None
    if (schema := inner.first("parameters", "input_schema", "inputSchema")) is not None:
        parameters = schema.parsed().table()
    return tool_table(name, inner.text_of("description"), parameters)


def rounds_of(conversation: Conversation, first: int, end: int) -> tuple[ExternalRound, ...]:
    """Return the model's answers among the messages, with the results of their calls.

    Only messages from index `first` up to `end` (exclusive) are read."""
    rounds: list[ExternalRound] = []
    for index in range(first, end):
        message = conversation.messages[index]
        if message.role == "assistant":
            latency_ms = min(conversation.latency_ms.get(index, 0.0), MAX_MILLISECONDS)
            reasoning = conversation.reasoning.get(index, "")
            usage = conversation.usage.get(index)
            first_ms = conversation.first_token_ms.get(index)
            deviations = conversation.deviations.get(index, ())
            calls = message.tool_calls
            rounds.append(ExternalRound(message.content, reasoning, calls, {}, latency_ms, usage, first_ms, deviations))
        elif message.call_id is not None:
            _add_result(rounds, message.call_id, ExternalResult(message.content, message.is_error))
    return tuple(rounds)


def _add_result(rounds: list[ExternalRound], call_id: str, result: ExternalResult) -> None:
    for at, each in enumerate(rounds):
        if any(call.id == call_id for call in each.calls):
            rounds[at] = replace(each, results={**each.results, call_id: result})
            return


def _expecting(
    table: Table, rounds: tuple[ExternalRound, ...], place: str
) -> tuple[Table, tuple[MappedPart, ...], tuple[Note, ...]]:
    notes: list[Note] = []
    mapped: list[MappedPart] = []
    ordered: list[Table] = []
    calls: list[ToolCall] = []
    results: dict[str, ExternalResult] = {}
    for each in rounds:
        calls += each.calls
        results.update(each.results)
        group: list[Table] = []
        for call in each.calls:
            if call.problem is not None:
                notes.append(Note(place, f"the call of {call.tool} is not expected: its arguments are {call.problem}"))
                continue
            group.append(expected_call(call))
        # The model made the calls of one answer at the same time, so their order has no meaning.
        if len(group) > 1:
            ordered.append({"any_order": group})
        else:
            ordered += group
    if ordered:
        table = table | {"ordered": ordered}
        verb = "was" if len(calls) == 1 else "were"
        mapped.append(MappedPart(f"{counted(len(calls), 'call')} that {verb} made", "ordered"))
        why = "the expected calls are those that the run made: check whether they are right"
        notes.append(Note(place, why, "check calls"))
    elif calls:
        table = table | {"expect_nothing_yet": True}
    else:
        table = table | {"expect_no_calls": True}
        mapped.append(MappedPart("no call was made", "expect_no_calls"))
        why = "no call is expected because none was made: check whether that is right"
        notes.append(Note(place, why, "check calls"))
    table = _with_mocks(table, calls, results, place, mapped, notes)
    last = rounds[-1]
    if last.calls:
        # Without this limit, a new run would send one more request than the recorded run.
        table = table | {"limits": {"max_rounds": len(rounds)}}
        notes.append(Note(place, "ends with calls and no answer, so `max_rounds` stops a run there too"))
    elif last.text:
        notes.append(Note(place, "the final answer is in the run, and no check asks for it"))
    if not last.calls and len(rounds) > Limits().max_rounds:
        table = table | {"limits": {"max_rounds": len(rounds)}}
    return table, tuple(mapped), tuple(notes)


_NO_ANSWER = "no answer follows the request: the case expects nothing yet"
_EXPECTATIONS = ("ordered", "unordered", "expect_no_calls", "expect_nothing_yet", "extra_calls")


def without_expectations(case: ImportedCase) -> ImportedCase:
    """Return a case without expected calls."""
    table = case.table_without(*_EXPECTATIONS)
    notes = notes_without(case.notes, "check calls")
    mapped = tuple(each for each in case.mapped if each.into not in _EXPECTATIONS)
    return replace(case, table=table, notes=tuple(notes), mapped=mapped)


def without_wrong_expectations(case: ImportedCase) -> ImportedCase:
    """Return the case without its expectations if the original system judged the case's first run wrong."""
    if not case.runs or not case.runs[0].is_wrong:
        return case
    score = next(each for each in case.runs[0].scores if not each.passed)
    case = without_expectations(case)
    case.table["expect_nothing_yet"] = True
    why = f"{score.name} is {figure(score.value)}: its calls are not expected, so the case expects nothing yet"
    return case.with_notes(Note(case.place, why, "expects nothing yet"))


def with_reference_calls(
    case: ImportedCase,
    calls: Sequence[ToolCall],
    results: Mapping[str, ExternalResult],
    *,
    key: Literal["ordered", "unordered"] = "ordered",
    match: Match | None = None,
    answers: Sequence[Sequence[ToolCall]] = (),
) -> ImportedCase:
    """Return a case that expects the calls of a reference trajectory.

    Mocks answer the calls with `results`, which are keyed by call id. `key` is the case's key for the calls. If `match`
    is given, it decides both the key and how arguments are compared. `answers` holds the same calls, grouped by the
    answer in which the model made them."""
    table = case.table_without("expect_nothing_yet")
    notes = notes_without(case.notes, "expects nothing yet")
    mapped = list(case.mapped)
    expected: list[Table] = []
    expected_of: dict[str, Table] = {}
    for call in calls:
        if call.problem is not None:
            notes.append(Note(case.place, f"the call of {call.tool} is not expected: its arguments are {call.problem}"))
            continue
        wanted = expected_call(call)
        if match is not None:
            wanted = match.expected(wanted, case.place)
        expected.append(wanted)
        expected_of[call.id] = wanted
    if expected:
        into = match.key if match is not None else key
        table[into] = expected
        if match is not None and match.by_answer:
            table[into] = _by_answer(answers, expected_of)
        mapped.append(MappedPart(counted(len(expected), "call"), into))
        if "tools" not in table:
            notes.append(Note(case.place, NO_TOOLS, "no tools"))
    elif not calls and (match is None or match.extra_calls == "forbid"):
        table["expect_no_calls"] = True
        mapped.append(MappedPart("no call", "expect_no_calls"))
    elif match is None and "response" not in table:
        table["expect_nothing_yet"] = True
    if match is not None and "expect_no_calls" not in table:
        table["extra_calls"] = match.extra_calls
    table = _with_mocks(table, calls, results, case.place, mapped, notes)
    return replace(case, table=table, mapped=tuple(mapped), notes=tuple(notes))


def _by_answer(answers: Iterable[Sequence[ToolCall]], expected: Mapping[str, Table]) -> list[Table]:
    """Return expected calls in order, grouped by the reference's answers.

    Calls of one group must be in a single answer of the run too."""
    found: list[Table] = []
    for calls in answers:
        group = [expected[call.id] for call in calls if call.id in expected]
        if len(group) > 1:
            found.append({"any_order": group, "parallel": True})
        else:
            found += group
    return found


def expected_call(call: ToolCall) -> Table:
    (expected,) = items_at(case_with_expected_call({}, call.tool, call.arguments), ("ordered",))
    assert isinstance(expected, dict)
    return expected


def _with_mocks(
    table: Table,
    calls: Iterable[ToolCall],
    results: Mapping[str, ExternalResult],
    place: str,
    mapped_parts: list[MappedPart],
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
            notes.append(Note(place, f"the result of {call.tool} cannot become a mock: {error}", "no mock"))
    if mocks:
        mapped_parts.append(MappedPart(counted(mocks, "result"), "mocks"))
    return table


def written_messages(messages: Iterable[Message], place: str) -> tuple[list[Table], list[Note]]:
    """Return the messages before the request as a case writes them, and notes on parts that TOML cannot express."""
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
        # An answer without text and calls cannot be written into a suite, and says nothing.
        if len(table) > 1:
            written.append(table)
    return written, notes


def _prior_call(call: ToolCall, place: str, notes: list[Note]) -> Table:
    arguments = {}
    for name, value in call.arguments.items():
        if not holds_null(value):
            arguments[name] = value
    for name in call.arguments.keys() - arguments.keys():
        notes.append(Note(place, f"{call.tool}.{name} of an earlier call holds null, which TOML lacks: left out"))
    if call.problem is not None:
        notes.append(Note(place, f"the arguments of an earlier call of {call.tool} are {call.problem}: left out"))
    written: Table = {"id": call.id, "tool": call.tool}
    if arguments:
        written["args"] = arguments
    return written
