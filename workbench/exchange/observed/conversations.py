"""Conversations between a program and a model, seen by a proxy: which request continues which, and the resulting cases.

An `Observer` receives requests and answers in their order, and reports what it observes to a listener. It does not
depend on connections or screens. Use it on one thread."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from workbench.config.models import Provider
from workbench.config.secrets import Secrets
from workbench.dataclasses import compact_json, dataclass, json_text, parsed_json, reader_of
from workbench.exchange.importers.conversations import (
    Conversation,
    ImportedCase,
    ImportedFile,
    MappedPart,
    Note,
    calls_in,
    case_of,
    last_request,
    tool_of,
)
from workbench.exchange.importers.import_files import (
    RULE_OF_NEW_SUITES,
    make_suite,
    register_keys,
    require_unused_paths,
    write_import,
)
from workbench.exchange.importers.messages import conversation_of
from workbench.exchange.importers.source_files import Node, RefusedError, read_source
from workbench.exchange.observed.wire_formats import Answer, ObservedAnswerReader, body_node, messages_in, tools_in
from workbench.numerals import counted, counted_of
from workbench.suite.render import Table
from workbench.tools.answer import ToolAnswer, answer_of
from workbench.trajectory.events import Deviation, JsonValue, Message, ToolCall, Usage

Key = tuple[str, str, tuple[tuple[str, str, str], ...], str]
"""The part of a message that every request repeats: role, text without blanks, calls, id of an answered call.

Blanks are left out, because clients change them when they repeat a conversation."""


@dataclass(frozen=True)
class ConversationBegan:
    """The first request of a conversation was forwarded.

    `number` counts conversations from 1. `started_at` is ISO 8601 text. `request` is the user's last message. `tools`
    is the number of offered tools."""

    number: int
    wire: Provider
    model: str
    request: str
    tools: int
    started_at: str


@dataclass(frozen=True)
class StepBegan:
    """A request of the conversation `number` was forwarded. `step` counts its requests from 1."""

    number: int
    step: int


@dataclass(frozen=True)
class StepEnded:
    """The answer to a request ended. If it cannot be used, `answer.problem` is the reason."""

    number: int
    step: int
    answer: Answer


@dataclass(frozen=True)
class ConversationEnded:
    """A conversation ended, which is reported when the recording ends.

    `case` was made from the conversation. If it is `None`, `why` is the reason."""

    number: int
    case: ImportedCase | None
    why: str = ""


@dataclass(frozen=True)
class UnreadableRequest:
    """A request was forwarded but could not be read, so it belongs to no conversation."""

    note: Note


Observation = ConversationBegan | StepBegan | StepEnded | ConversationEnded | UnreadableRequest
Listener = Callable[[Observation], object]


@dataclass(eq=False)
class Step:
    """A request of a conversation, with its answer once the answer has ended.

    Times are in seconds since 1970."""

    messages: list[JsonValue]
    head: dict[str, JsonValue]
    """The request without its messages: tools, system prompt, model."""
    conversation: Conversation
    keys: list[Key]
    reading: ObservedAnswerReader
    began_s: float
    notes: tuple[Note, ...] = ()
    """The parts of the request that are left out."""
    answer: Answer | None = None
    keys_after: list[Key] = field(default_factory=list)
    ended_s: float = 0.0

    @property
    def answer_messages(self) -> list[JsonValue]:
        """A list with the answer as its only message; empty if there is no usable answer."""
        if self.answer is None or self.answer.problem:
            return []
        return [self.answer.message]


@dataclass(eq=False)
class ObservedConversation:
    """A conversation with its requests so far."""

    number: int
    wire: Provider
    started_at: str
    steps: list[Step] = field(default_factory=list)

    @property
    def place(self) -> str:
        return f"conversation {self.number}"

    def conversation(self) -> Conversation:
        """Return the conversation up to its last usable answer, with times and tokens.

        Raises RefusedError if no answer is complete."""
        answers: list[tuple[Step, Answer]] = []
        sound: list[tuple[Step, Answer]] = []
        for step in self.steps:
            if step.answer is None:
                continue
            answers.append((step, step.answer))
            if not step.answer.problem:
                sound.append((step, step.answer))
        last = self.steps[-1]
        messages = list(last.messages)
        if last.answer is None:
            problem = "still under way when the recording ended"
        else:
            problem = last.answer.problem
            if not problem:
                messages.append(last.answer.message)
        if not sound:
            raise RefusedError(f"has no complete answer: {problem}", self.place)
        read = conversation_of(Node({**last.head, "messages": messages}, self.place))
        # Each request repeats earlier items, so a note on one of them may occur several times.
        left_out: dict[str, None] = {}
        for step in self.steps:
            for note in step.notes:
                left_out[note.why] = None
        notes = [Note(self.place, note.why) for note in read.notes]
        notes += [Note(self.place, why) for why in left_out]
        if problem:
            notes.append(Note(self.place, f"its last request has no complete answer: {problem}"))
        for step, answer in answers[:-1] if problem else answers:
            if answer.problem:
                notes.append(Note(self.place, f"a request that was repeated: {answer.problem}"))
            elif answer.stop in ("truncated", "refused"):
                notes.append(Note(self.place, f"answer {self.steps.index(step) + 1} was {answer.stop} by the endpoint"))
        # The last request has all messages. Only the answers themselves have reasoning, times and tokens.
        reasoning, latency_ms = dict(read.reasoning), {}
        first_token_ms: dict[int, float] = {}
        usage: dict[int, Usage] = {}
        at = {len(step.conversation.messages): answer for step, answer in sound}
        for index, answer in at.items():
            latency_ms[index] = answer.latency_ms
            if answer.reasoning:
                reasoning[index] = answer.reasoning
            if answer.first_token_ms is not None:
                first_token_ms[index] = answer.first_token_ms
            if answer.usage is not None:
                usage[index] = answer.usage
        return replace(
            read,
            started_at=self.started_at,
            reasoning=reasoning,
            latency_ms=latency_ms,
            first_token_ms=first_token_ms,
            deviations={**read.deviations, **dict(_deviations(read, at))},
            usage=usage,
            notes=tuple(notes),
        )

    def case(self) -> ImportedCase:
        """Return a case made from the conversation, with its run. Raises RefusedError if no case can be made."""
        return case_of(self.conversation())


def _deviations(read: Conversation, answers: Mapping[int, Answer]) -> Iterator[tuple[int, tuple[Deviation, ...]]]:
    for index, answer in answers.items():
        calls = read.messages[index].tool_calls if index < len(read.messages) else ()
        ids = {}
        for theirs, ours in zip(answer.calls, calls, strict=False):
            ids[theirs.id] = ours.id
        if answer.deviations:
            yield index, tuple(replace(each, call_id=ids.get(each.call_id or "")) for each in answer.deviations)


class Observer:
    """Sorts requests into conversations.

    `listener` is called with each observation as it happens. `notes` are about requests that belong to no
    conversation."""

    def __init__(
        self,
        secrets: Secrets,
        listener: Listener = lambda _: None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.conversations: list[ObservedConversation] = []
        self.notes: list[Note] = []
        self._secrets = secrets
        self._listener = listener
        self._clock = clock
        self._requests = 0
        self._of_step: dict[Step, ObservedConversation] = {}
        self._by_response: dict[str, Step] = {}
        self._kept: dict[str, Step] = {}
        """The last step of each conversation that the endpoint stores, by its id at the endpoint."""

    def record_request(self, wire: Provider, body: bytes, encoding: str, address: str) -> Step | None:
        """Record a request with this body, content encoding and target address.

        Returns the request as a step of its conversation. If the request cannot be read, returns `None` and adds a
        note."""
        self._requests += 1
        try:
            step, parent, kept = self._read(wire, body_node(body, encoding, f"request {self._requests}"), address)
        except RefusedError as error:
            self.notes.append(Note(error.place, f"not recorded: {error.why}"))
            self._listener(UnreadableRequest(self.notes[-1]))
            return None
        conversation: ObservedConversation | None = None
        if parent is None:
            conversation = self._continued(wire, step.keys)
        # A request may continue an earlier step than the last one. The request then begins a separate conversation.
        elif self._of_step[parent].steps[-1] is parent:
            conversation = self._of_step[parent]
        if conversation is None:
            started_at = datetime.fromtimestamp(step.began_s, UTC).isoformat(timespec="milliseconds")
            conversation = ObservedConversation(len(self.conversations) + 1, wire, started_at)
            self.conversations.append(conversation)
        conversation.steps.append(step)
        self._of_step[step] = conversation
        if kept:
            self._kept[kept] = step
        if len(conversation.steps) == 1:
            self._listener(_began(conversation, step))
        self._listener(StepBegan(conversation.number, len(conversation.steps)))
        return step

    def record_answer(self, step: Step) -> None:
        """Record the answer to a request once it has been read to its end."""
        if step.answer is not None or step.reading.answer is None:
            return
        answer = step.answer = step.reading.answer
        step.ended_s = self._clock()
        if not answer.problem:
            try:
                after = conversation_of(Node({"messages": [*step.messages, answer.message]}, "answer"))
            except RefusedError as error:
                answer = step.answer = replace(answer, problem=f"the answer {error.why}")
            else:
                step.keys_after = _keys(after.messages)
                if answer.response_id:
                    self._by_response[answer.response_id] = step
        conversation = self._of_step[step]
        self._listener(StepEnded(conversation.number, conversation.steps.index(step) + 1, answer))

    def end(
        self, case_of: Callable[[ObservedConversation], ImportedCase] = ObservedConversation.case
    ) -> tuple[ConversationEnded, ...]:
        """End the recording. Makes a case from each conversation with `case_of`, and reports the conversation's end."""
        every: list[ConversationEnded] = []
        for conversation in self.conversations:
            try:
                ended = ConversationEnded(conversation.number, case_of(conversation))
            except RefusedError as error:
                ended = ConversationEnded(conversation.number, None, error.why)
            every.append(ended)
            self._listener(ended)
        return tuple(every)

    def _read(self, wire: Provider, body: Node, address: str) -> tuple[Step, Step | None, str]:
        body.table()
        parent: Step | None = None
        kept = ""
        notes: list[Note] = []
        messages = messages_in(wire, body, notes)
        if wire == "openai-responses":
            # In the Responses API, the endpoint stores the conversation. A request refers to the response or the
            # conversation that it continues.
            if (named := body.get("conversation")) is not None:
                kept = named.text_of("id") or str(named.value)
            previous = body.text_of("previous_response_id")
            parent = self._by_response.get(previous) if previous else self._kept.get(kept)
            if previous and parent is None:
                raise body.refused(f"continues the response {previous}, which was not recorded")
            if parent is not None:
                messages = [*parent.messages, *parent.answer_messages, *messages]
        head: dict[str, JsonValue] = {}
        for key in ("tools", "functions", "system", "model"):
            if (found := body.get(key)) is not None:
                head[key] = found.value
        if wire == "openai-responses" and (instructions := body.get("instructions")) is not None:
            head["system"] = instructions.value
        conversation = conversation_of(Node({**head, "messages": messages}, body.place))
        reading = ObservedAnswerReader(wire, body.text_of("model"), address, tools_in(body), self._secrets)
        keys = _keys(conversation.messages)
        return Step(messages, head, conversation, keys, reading, self._clock(), tuple(notes)), parent, kept

    def _continued(self, wire: Provider, keys: list[Key]) -> ObservedConversation | None:
        """Return the conversation that a request continues; `None` if the request begins a new conversation.

        If several conversations fit, return the conversation from which the request repeats the most messages."""
        fitting = []
        for each in self.conversations:
            if each.wire == wire and _continues(keys, each.steps[-1]):
                fitting.append(each)
        return max(fitting, key=lambda each: len(each.steps[-1].keys), default=None)


def _began(conversation: ObservedConversation, step: Step) -> ConversationBegan:
    messages, request = step.conversation.messages, ""
    if (asked := last_request(messages)) is not None:
        request = messages[asked].content
    return ConversationBegan(
        conversation.number,
        conversation.wire,
        step.conversation.model,
        request,
        len(step.conversation.tools),
        conversation.started_at,
    )


def _continues(keys: list[Key], last: Step) -> bool:
    """Return whether a request repeats the request `last` and its answer, so that it continues the conversation.

    If `last` failed, the request need not repeat an answer. If `last` has no answer yet, the request must add a
    message. Without a new message, it could begin a parallel conversation with the same text."""
    if last.answer is None:
        return len(keys) > len(last.keys) and keys[: len(last.keys)] == last.keys
    before = last.keys if last.answer.problem else last.keys_after
    return keys[: len(before)] == before


def _keys(messages: tuple[Message, ...]) -> list[Key]:
    return list(map(_key, messages))


def _key(message: Message) -> Key:
    calls = tuple((call.id, call.tool, _meant(call)) for call in message.tool_calls)
    return message.role, "".join(message.content.split()), calls, message.call_id or ""


def _meant(call: ToolCall) -> str:
    if call.problem is not None:
        return call.raw or ""
    return json_text(dict(sorted(call.arguments.items())))


# Conversations are stored in a file while they are recorded, so that no conversation is lost if the program is killed.
# The file has a redacted JSON line for each answered request. It is removed once the suite and the recordings are
# written. If the recording was interrupted, the conversations can be read from the file.

SUFFIX = ".kept.jsonl"
"""The ending of the file, after the name of the suite or of the folder of recordings."""


@dataclass(frozen=True)
class _StoredStep:
    """A request with its answer, as a line of the journal.

    Requests repeat the whole conversation, so storing all repetitions would make the file grow quadratically.
    Therefore, the first `same` messages are taken from the conversation's previous request. `head` has the other fields
    of the request, or is `None` if they equal those of the previous request. Times are in seconds since 1970."""

    conversation: int
    wire: Provider
    started_at: str
    same: int
    messages: tuple[JsonValue, ...]
    head: Mapping[str, JsonValue] | None
    answer: Answer
    began_s: float
    ended_s: float
    notes: tuple[str, ...] = ()


_READ = reader_of(_StoredStep)


class ConversationJournal:
    """Writes each answered request into a file, from which an interrupted recording can be restored.

    Of several write errors in a row, only the first is reported. Lines that could not be written are written with the
    next request. Use each journal on one thread."""

    def __init__(self, path: Path, secrets: Secrets, complain: Callable[[str], object]) -> None:
        self.path = path
        self._secrets = secrets
        self._complain = complain
        self._file: int | None = None
        self._good = 0
        """Size of the complete lines in the file, in bytes."""
        self._waiting: list[bytes] = []
        self._before: dict[int, Step] = {}
        self._is_broken = False

    def check(self) -> None:
        """Raise RefusedError if the file of an earlier, interrupted recording still exists."""
        if self.path.exists():
            raise RefusedError(
                f"{self.path} has the conversations of an interrupted recording: make a suite of them with"
                f" `workbench record --kept {self.path} --output NEW.toml`, or remove the file"
            )

    def write_step(self, conversation: ObservedConversation, step: Step) -> None:
        """Write a request with its answer into the file."""
        assert step.answer is not None
        before = self._before.get(conversation.number)
        self._before[conversation.number] = step
        earlier: list[JsonValue] = []
        head: dict[str, JsonValue] | None = step.head
        if before is not None:
            earlier = before.messages
            if before.head == step.head:
                head = None
        same = 0
        while same < min(len(step.messages), len(earlier)) and step.messages[same] == earlier[same]:
            same += 1
        kept = _StoredStep(
            conversation.number,
            conversation.wire,
            conversation.started_at,
            same,
            tuple(step.messages[same:]),
            head,
            step.answer,
            step.began_s,
            step.ended_s,
            tuple(note.why for note in step.notes),
        )
        try:
            register_keys([list(kept.messages), step.head, step.answer.message], "RECORDED_KEY", self._secrets)
            self._waiting.append(compact_json(self._secrets.redacted(kept)).encode() + b"\n")
            self._write()
        except (OSError, ValueError, TypeError, RecursionError) as error:
            if not self._is_broken:
                why = getattr(error, "strerror", None) or error
                self._complain(f"{self.path} cannot be written, so what is recorded is in memory only: {why}")
            self._is_broken = True
        else:
            self._is_broken = False

    def remove(self) -> None:
        """Remove the file. Call this method once the suite and the recordings are written."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
            self.path.unlink(missing_ok=True)

    def leftover_advice(self) -> str:
        """Return the end of a message that says how to use the file; empty if the file was removed."""
        if self._file is None or not self._good:
            return ""
        return f"; what was recorded is kept in {self.path}: workbench record --kept {self.path} --output NEW.toml"

    def _write(self) -> None:
        if self._file is None:
            # Only the user may read the file. `O_EXCL` prevents overwriting the file of another recording.
            self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        text = b"".join(self._waiting)
        # A line that was written only in part is removed and written again.
        os.ftruncate(self._file, self._good)
        written = 0
        # `pwrite` may write only a part of the bytes.
        while written < len(text):
            written += os.pwrite(self._file, text[written:], self._good + written)
        self._good += len(text)
        self._waiting.clear()


def read_journal(path: Path, secrets: Secrets) -> list[ObservedConversation]:
    """Return the conversations in the file of an interrupted recording. Raises RefusedError.

    A last line that was only partly written is ignored."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise RefusedError(f"{path} cannot be read: {error.strerror}") from error
    found: dict[int, ObservedConversation] = {}
    # The text after the last line break is not a complete line. It is empty, or its writing was interrupted.
    for number, line in enumerate(lines[:-1], 1):
        try:
            kept: _StoredStep = _READ(parsed_json(line.decode("utf-8")))
            conversation = found.setdefault(
                kept.conversation, ObservedConversation(len(found) + 1, kept.wire, kept.started_at)
            )
            conversation.steps.append(_step(kept, conversation, secrets))
        except (ValueError, IndexError, RefusedError) as error:
            raise RefusedError(f"{path}, line {number}: not a line that `workbench record` wrote: {error}") from error
    return list(found.values())


def _step(stored: _StoredStep, conversation: ObservedConversation, secrets: Secrets) -> Step:
    messages = list(stored.messages)
    if conversation.steps:
        messages = conversation.steps[-1].messages[: stored.same] + messages
    head = conversation.steps[-1].head if stored.head is None else dict(stored.head)
    read: Conversation = conversation_of(Node({**head, "messages": messages}, conversation.place))
    return Step(
        messages,
        head,
        read,
        [],
        ObservedAnswerReader(stored.wire, read.model, "", (), secrets),
        stored.began_s,
        tuple(Note(conversation.place, why) for why in stored.notes),
        stored.answer,
        ended_s=stored.ended_s,
    )


# Calls that `workbench record --server` logged. They are matched with calls in conversations by time, tool and
# arguments.

_SLACK_S = 1.0
"""The largest difference between the clocks of two programs on one machine, in seconds."""


@dataclass(frozen=True, eq=False)
class ServerCall:
    """A call as an MCP server received it, with the server's answer. `began_s` is in seconds since 1970."""

    tool: str
    arguments: Mapping[str, JsonValue]
    began_s: float
    answer: ToolAnswer


@dataclass(frozen=True)
class ServerLog:
    """What `workbench record --server` logged: the server's tools by name, and its answered calls."""

    path: Path
    tools: Mapping[str, Table]
    calls: tuple[ServerCall, ...]


def read_server_log(path: Path) -> ServerLog:
    """Read the log that `workbench record --server` wrote. Raises RefusedError."""
    from mcp_types import CallToolResult
    from pydantic import ValidationError

    tools: dict[str, Table] = {}
    calls: list[ServerCall] = []
    for line in read_source(path).records:
        match line.text_of("seen"):
            case "tools":
                for tool in line.need("tools").items():
                    tools[tool.need("name").text()] = tool_of(tool)
            case "call":
                if (result := line.get("result")) is not None:
                    try:
                        answer = answer_of(CallToolResult.model_validate(result.value))
                    except ValidationError:
                        # A result that is not valid reached no client either, so the call is dropped.
                        continue
                else:
                    answer = ToolAnswer(line.text_of("error"), is_error=True)
                arguments = (line.get("arguments") or Node({})).table()
                at_s = datetime.fromisoformat(line.need("at").text()).timestamp()
                calls.append(ServerCall(line.need("tool").text(), arguments, at_s, answer))
            case "start":
                pass
            case _:
                raise line.refused(f"is not a line of a server's log: {path} must be a file that `--server` wrote")
    return ServerLog(path, tools, tuple(calls))


class ServerLogMerger:
    """Adds results from the logs of MCP servers to the cases of conversations. Each logged call is used once."""

    def __init__(self, logs: tuple[ServerLog, ...], secrets: Secrets) -> None:
        self._logs = logs
        self._secrets = secrets
        self._used: set[ServerCall] = set()

    @property
    def lines(self) -> list[str]:
        """A line of text for each log, with the number of its calls that were found in conversations."""
        return [
            f"{log.path}: {counted_of(len(self._used.intersection(log.calls)), len(log.calls), 'call')} matched"
            for log in self._logs
        ]

    def case(self, observed: ObservedConversation) -> ImportedCase:
        """Return the case of a conversation. Raises RefusedError if no case can be made.

        The mocks of the case return the results that the servers sent. The run of the case has the results that the
        model read, because the client may have shortened them."""
        as_read = observed.case()
        if not self._logs:
            return as_read
        conversation = observed.conversation()
        answers = self._answers(observed, conversation.messages)
        messages: list[Message] = []
        for message in conversation.messages:
            if (answer := answers.get(message.call_id or "")) is not None:
                message = replace(message, content=answer.content, is_error=answer.is_error)
            messages.append(message)
        tools, notes = self._tools(conversation.tools, observed.place)
        notes = [*conversation.notes, *notes]
        case = case_of(replace(conversation, messages=tuple(messages), tools=tools, notes=tuple(notes)))
        mapped = list(case.mapped)
        if calls := list(calls_in(conversation.messages)):
            found = f"{counted_of(len(answers), len(calls), 'call')} found in the servers' logs"
            mapped.append(MappedPart(found, "their raw results"))
        return replace(case, runs=as_read.runs, mapped=tuple(mapped))

    def _answers(self, observed: ObservedConversation, messages: tuple[Message, ...]) -> dict[str, ToolAnswer]:
        # The index of an answer among the messages is the number of messages in its request.
        ended: dict[int, float] = {}
        began: list[tuple[int, float]] = []
        for step in observed.steps:
            at = len(step.conversation.messages)
            began.append((at, step.began_s))
            if step.answer is not None:
                ended[at] = step.ended_s
        found: dict[str, ToolAnswer] = {}
        for index, message in enumerate(messages):
            if message.role != "assistant" or index not in ended:
                continue
            # A call is made after the answer that requests it, and before the next request, which contains its result.
            until_s = min((at_s for at, at_s in began if at > index), default=float("inf"))
            for call in message.tool_calls:
                match = self._match(call, ended[index] - _SLACK_S, until_s + _SLACK_S)
                if match is not None:
                    self._used.add(match)
                    found[call.id] = match.answer
        return found

    def _match(self, call: ToolCall, from_s: float, to_s: float) -> ServerCall | None:
        arguments = self._secrets.redacted(dict(call.arguments))
        # Logs contain no secrets, so the arguments of the conversation are redacted before they are compared.
        fitting: list[ServerCall] = []
        for each in chain.from_iterable(log.calls for log in self._logs):
            in_time = each not in self._used and from_s <= each.began_s <= to_s
            if in_time and _is_tool(call.tool, each.tool) and each.arguments in (arguments, call.arguments):
                fitting.append(each)
        return min(fitting, key=lambda each: each.began_s, default=None)

    def _tools(self, offered: tuple[Table, ...], place: str) -> tuple[tuple[Table, ...], list[Note]]:
        listed: dict[str, Table] = {}
        for log in self._logs:
            listed |= log.tools
        tools: list[Table] = []
        notes: list[Note] = []
        for tool in offered:
            theirs = _listed_as(str(tool["name"]), listed)
            if theirs is None:
                tools.append(tool)
                continue
            tools.append({**theirs, **tool})
            if "parameters" not in tool and "parameters" in theirs:
                notes.append(Note(place, f"the schema of {tool['name']} is the server's"))
            elif tool.get("parameters") != theirs.get("parameters"):
                notes.append(Note(place, f"the schema of {tool['name']} is the model's, not the server's"))
        return tuple(tools), notes


def _listed_as(offered_name: str, listings: Mapping[str, Table]) -> Table | None:
    for name, tool in listings.items():
        if _is_tool(offered_name, name):
            return tool
    return None


def _is_tool(offered_name: str, listed_name: str) -> bool:
    """Return whether a name offered to the model is this tool of a server, possibly with a prefix such as `server_`."""
    return offered_name == listed_name or re.search(rf"[_./:-]{re.escape(listed_name)}$", offered_name) is not None


# Saving: conversations become the cases of a suite, and their runs become recordings.

_NAME = "recorded"


@dataclass(frozen=True)
class Destination:
    """The paths of a suite and a folder of recordings, one of which may be `None`.

    With `force`, an existing suite is replaced, and recordings may be added to those in the folder."""

    suite: Path | None
    recordings: Path | None
    force: bool = False

    @property
    def kept(self) -> Path:
        """The file that holds the conversations until the suite and the recordings are written.

        The file is beside the suite, or beside the folder of recordings if no suite is written."""
        beside = self.suite or self.recordings
        assert beside is not None
        return beside.with_name(beside.name + SUFFIX)

    def check(self) -> None:
        """Raise RefusedError if the suite or recordings already exist, unless `force` is set."""
        if not self.force:
            require_unused_paths(self.suite, self.recordings, "--output")


@dataclass(frozen=True)
class SaveSummary:
    """The numbers of saved cases and runs, and the lines of the report."""

    cases: int
    runs: int
    lines: tuple[str, ...]


def save_observed(
    observer: Observer, destination: Destination, secrets: Secrets, logs: Iterable[ServerLog] = ()
) -> SaveSummary:
    """Save all usable conversations as cases and runs, with the results in the logs of servers.

    The report names each conversation that cannot be used, with the reason. Raises RefusedError if nothing can be
    written."""
    values: list[JsonValue] = []
    for each in observer.conversations:
        # The last request has the messages of all earlier requests.
        for step in each.steps[-1:]:
            values += [*step.messages, *step.head.values(), *step.answer_messages]
    register_keys(values, "RECORDED_KEY", secrets)
    merger = ServerLogMerger(tuple(logs), secrets)
    ended = observer.end(merger.case)
    cases = tuple(each.case for each in ended if each.case is not None)
    lines = [f"· {note}" for note in observer.notes]
    if not cases:
        nothing = "no conversation can be used, so nothing was written"
        return SaveSummary(0, 0, (*_refused(ended), *lines, *merger.lines, nothing))
    path = destination.suite or Path(f"{_NAME}.toml")
    name = path.stem
    try:
        made = make_suite(ImportedFile(cases, suite=RULE_OF_NEW_SUITES), name, path, secrets)
    except RefusedError as error:
        return SaveSummary(0, 0, (*_refused(ended), f"· {error}", *lines, "nothing is written"))
    runs = write_import(made, destination.suite, destination.recordings, secrets, force=destination.force)
    assert made.file.suite is not None
    report = []
    for case, imported in zip(made.file.suite.cases, made.cases, strict=True):
        report.append(f"{imported.place} → {case.id}")
        report += imported.report
    report += [*_refused(ended), *(f"· {note}" for note in made.notes), *lines, *merger.lines]
    if destination.suite is not None:
        report.append(f"{destination.suite}: {counted(len(made.cases), 'case')}")
    if destination.recordings is not None:
        report.append(f"{destination.recordings}: {counted(runs, 'run')}: workbench grade {destination.recordings}")
    return SaveSummary(len(made.cases), runs, tuple(report))


def _refused(events: Iterable[ConversationEnded]) -> list[str]:
    refused = []
    for each in events:
        if each.case is None:
            refused.append(f"✗ conversation {each.number}: {each.why}")
    return refused
