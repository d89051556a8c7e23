"""Conversations as they are seen on the wire: which request continues which, and the case that each of them makes.

An `Observer` is told of requests and answers in the order in which they pass, and tells a listener what they come to.
It knows no connection and no screen; all of it belongs on one thread.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from datetime import UTC, datetime
from pathlib import Path

from workbench.config.models import Provider
from workbench.config.secrets import Secrets
from workbench.dataclasses import compact_json, dataclass, json_text, parsed_json, reader_of
from workbench.exchange.importers.conversations import (
    Conversation,
    Imported,
    ImportedCase,
    Mapped,
    Note,
    case_of,
    tool_of,
)
from workbench.exchange.importers.import_files import RULE_OF_NEW_SUITES, learn_keys, made_suite, must_be_free, written
from workbench.exchange.importers.messages import conversation_of
from workbench.exchange.importers.source_files import Node, RefusedError, read_source
from workbench.exchange.observed.wires import Answer, AnswerReading, body_node, messages_in, tools_in
from workbench.numerals import counted
from workbench.suite.render import Table
from workbench.tools.answer import ToolAnswer, answer_of
from workbench.trajectory.events import Deviation, JsonValue, Message, ToolCall

Key = tuple[str, str, tuple[tuple[str, str, str], ...], str]
"""What of a message is the same in every request that repeats it: role, text without blanks, calls, the call that a
result answers."""


@dataclass(frozen=True)
class ConversationBegan:
    """A request came that continues no other.

    Conversations count from 1; `started_at` is ISO 8601 text, and `request` what the user asks for last."""

    number: int
    wire: Provider
    model: str
    request: str
    tools: int
    started_at: str


@dataclass(frozen=True)
class StepBegan:
    """A request of a conversation was sent on.

    Its requests count from 1."""

    number: int
    step: int


@dataclass(frozen=True)
class StepEnded:
    """The answer to a request is over; `answer.problem` says why it cannot be taken, if it cannot."""

    number: int
    step: int
    answer: Answer


@dataclass(frozen=True)
class ConversationEnded:
    """Nothing more is recorded.

    `case` is what became of the conversation; `None` where `why` says why nothing did."""

    number: int
    case: ImportedCase | None
    why: str = ""


@dataclass(frozen=True)
class RequestUnread:
    """A request was passed on that cannot be read, and belongs to no conversation."""

    note: Note


Observation = ConversationBegan | StepBegan | StepEnded | ConversationEnded | RequestUnread
Listener = Callable[[Observation], object]


@dataclass(eq=False)
class Step:
    """One request of a conversation and its answer, `None` while it comes.

    `began_s` is in seconds since 1970."""

    messages: list[JsonValue]
    head: dict[str, JsonValue]
    """All of the request that is no message: tools, system prompt, model."""
    conversation: Conversation
    keys: list[Key]
    reading: AnswerReading
    began_s: float
    notes: tuple[Note, ...] = ()
    """What of the request is left out."""
    answer: Answer | None = None
    keys_after: list[Key] = field(default_factory=list)
    ended_s: float = 0.0


@dataclass(eq=False)
class ObservedConversation:
    """A conversation, as far as it is."""

    number: int
    wire: Provider
    started_at: str
    steps: list[Step] = field(default_factory=list)

    @property
    def place(self) -> str:
        return f"conversation {self.number}"

    def conversation(self) -> Conversation:
        """Return all of it that can be taken.

        Raises RefusedError where no answer can be."""
        answers = [(step, step.answer) for step in self.steps if step.answer is not None]
        sound = [(step, answer) for step, answer in answers if not answer.problem]
        last = self.steps[-1]
        problem = last.answer.problem if last.answer is not None else "still under way when the recording ended"
        if not sound:
            raise RefusedError(f"has no whole answer: {problem}", self.place)
        messages = [*last.messages, last.answer.message] if last.answer is not None and not problem else last.messages
        read = conversation_of(Node({**last.head, "messages": messages}, self.place))
        left_out = dict.fromkeys(note.why for step in self.steps for note in step.notes)
        notes = [Note(self.place, why) for why in (*(note.why for note in read.notes), *left_out)]
        if problem:
            notes.append(Note(self.place, f"its last request has no whole answer: {problem}"))
        for step, answer in answers[:-1] if problem else answers:
            if answer.problem:
                notes.append(Note(self.place, f"a request that was made again: {answer.problem}"))
            elif answer.stop in ("truncated", "refused"):
                notes.append(Note(self.place, f"answer {self.steps.index(step) + 1} was {answer.stop} by the endpoint"))
        at = {len(step.conversation.messages): answer for step, answer in sound}
        return replace(
            read,
            started_at=self.started_at,
            reasoning={**read.reasoning, **{index: each.reasoning for index, each in at.items() if each.reasoning}},
            latency_ms={index: each.latency_ms for index, each in at.items()},
            first_token_ms={
                index: each.first_token_ms for index, each in at.items() if each.first_token_ms is not None
            },
            deviations={**read.deviations, **dict(_deviations(read, at))},
            usage={index: each.usage for index, each in at.items() if each.usage is not None},
            notes=tuple(notes),
        )

    def case(self) -> ImportedCase:
        """Return the case that it makes, with its run.

        Raises RefusedError, which says why it makes none."""
        return case_of(self.conversation())


def _deviations(read: Conversation, answers: Mapping[int, Answer]) -> Iterator[tuple[int, tuple[Deviation, ...]]]:
    """Yield the deviations of answers by the index of their message, with the ids that their calls have there."""
    for index, answer in answers.items():
        calls = read.messages[index].tool_calls if index < len(read.messages) else ()
        ids = {theirs.id: ours.id for theirs, ours in zip(answer.calls, calls, strict=False)}
        if answer.deviations:
            yield index, tuple(replace(each, call_id=ids.get(each.call_id or "")) for each in answer.deviations)


class Observer:
    """Sorts requests into conversations.

    `listener` is called with each observation as it happens; `notes` are of requests that belong to no conversation."""

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
        """The last step of each conversation that the endpoint keeps, by its id there."""

    def asked(self, wire: Provider, body: bytes, encoding: str, address: str) -> Step | None:
        """Return a request came: its body, how that is compressed, and where it is sent on to.

        Returns the step that it is; `None` where it cannot be read, which is among the notes then."""
        self._requests += 1
        try:
            step, parent, kept = self._read(wire, body_node(body, encoding, f"request {self._requests}"), address)
        except RefusedError as error:
            self.notes.append(Note(error.place, f"not recorded: {error.why}"))
            self._listener(RequestUnread(self.notes[-1]))
            return None
        conversation = self._of_step[parent] if parent is not None and self._is_last(parent) else None
        if parent is None:
            conversation = self._continued(wire, step.keys)
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

    def answered(self, step: Step) -> None:
        """The answer to a request is over, as far as its reading says."""
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
        """Nothing more comes: tell, and return, what became of each conversation.

        `case_of` makes the cases."""
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
            of = body.get("conversation")
            kept = "" if of is None else of.text_of("id") or str(of.value)
            previous = body.text_of("previous_response_id")
            parent = self._by_response.get(previous) if previous else self._kept.get(kept)
            if previous and parent is None:
                raise body.refused(f"continues the response {previous}, which did not pass here")
            if parent is not None:
                said = [parent.answer.message] if parent.answer is not None and not parent.answer.problem else []
                messages = [*parent.messages, *said, *messages]
        head: dict[str, JsonValue] = {}
        for ours, theirs in (("tools", "tools"), ("functions", "functions"), ("system", "system"), ("model", "model")):
            if (found := body.get(theirs)) is not None:
                head[ours] = found.value
        if wire == "openai-responses" and (instructions := body.get("instructions")) is not None:
            head["system"] = instructions.value
        conversation = conversation_of(Node({**head, "messages": messages}, body.place))
        reading = AnswerReading(wire, body.text_of("model"), address, tools_in(body), self._secrets)
        keys = _keys(conversation.messages)
        return Step(messages, head, conversation, keys, reading, self._clock(), tuple(notes)), parent, kept

    def _is_last(self, step: Step) -> bool:
        return self._of_step[step].steps[-1] is step

    def _continued(self, wire: Provider, keys: list[Key]) -> ObservedConversation | None:
        """Return the conversation that a request of these messages goes on with: the one of which it repeats most."""
        fitting = [each for each in self.conversations if each.wire == wire and _continues(keys, each.steps[-1])]
        return max(fitting, key=lambda each: len(each.steps[-1].keys), default=None)


def _began(conversation: ObservedConversation, step: Step) -> ConversationBegan:
    asked = [message.content for message in step.conversation.messages if message.role == "user"]
    return ConversationBegan(
        conversation.number,
        conversation.wire,
        step.conversation.model,
        asked[-1] if asked else "",
        len(step.conversation.tools),
        conversation.started_at,
    )


def _continues(keys: list[Key], last: Step) -> bool:
    """Return whether a request repeats another one and what it was answered.

    One whose answer is not known may be made again, or go on with more."""
    if last.answer is None:
        return len(keys) > len(last.keys) and keys[: len(last.keys)] == last.keys
    before = last.keys if last.answer.problem else last.keys_after
    return keys[: len(before)] == before


def _keys(messages: tuple[Message, ...]) -> list[Key]:
    return [
        (
            message.role,
            "".join(message.content.split()),
            tuple((call.id, call.tool, _meant(call)) for call in message.tool_calls),
            message.call_id or "",
        )
        for message in messages
    ]


def _meant(call: ToolCall) -> str:
    return call.raw or "" if call.problem is not None else json_text(dict(sorted(call.arguments.items())))


# Keeps conversations on the disk while they go on, so that nothing is lost with the program: a file of JSON lines,
# one for each request that was answered, without secrets. It is removed when suite and recordings are written; one
# that was left behind is read back.

SUFFIX = ".kept.jsonl"
"""What the name of the suite, or of the folder of recordings, is followed by."""


@dataclass(frozen=True)
class _Kept:
    """A request with its answer.

    The first `same` messages are those of the conversation's request before, and `head` is `None` where it is that of
    the request before. Times in seconds since 1970."""

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


_READ = reader_of(_Kept)


class Keeper:
    """Writes each step down when it has ended.

    What goes wrong with the file is told once, and written down with the next step that can be. To be used on one
    thread."""

    def __init__(self, path: Path, secrets: Secrets, complain: Callable[[str], object]) -> None:
        self.path = path
        self._secrets = secrets
        self._complain = complain
        self._file: int | None = None
        self._good = 0
        """How many bytes of the file are whole lines."""
        self._waiting: list[bytes] = []
        self._before: dict[int, Step] = {}
        self._is_broken = False

    def check(self) -> None:
        """Raise RefusedError where an earlier recording left its file."""
        if self.path.exists():
            raise RefusedError(
                f"{self.path} holds what a recording that was broken off has kept: make a suite of it with"
                f" `workbench record --kept {self.path} --suite NEW.toml`, or remove it"
            )

    def ended(self, conversation: ObservedConversation, step: Step) -> None:
        """A step has its answer."""
        assert step.answer is not None
        before = self._before.get(conversation.number)
        self._before[conversation.number] = step
        earlier = before.messages if before is not None else []
        pairs = zip(step.messages, earlier, strict=False)
        same = next(
            (at for at, (one, other) in enumerate(pairs) if one != other), min(len(step.messages), len(earlier))
        )
        kept = _Kept(
            conversation.number,
            conversation.wire,
            conversation.started_at,
            same,
            tuple(step.messages[same:]),
            None if before is not None and before.head == step.head else step.head,
            step.answer,
            step.began_s,
            step.ended_s,
            tuple(note.why for note in step.notes),
        )
        try:
            learn_keys([list(kept.messages), step.head, step.answer.message], "RECORDED_KEY", self._secrets)
            self._waiting.append(compact_json(self._secrets.redacted(kept)).encode() + b"\n")
            self._write()
        except (OSError, ValueError, TypeError, RecursionError) as error:
            if not self._is_broken:
                why = error.strerror if isinstance(error, OSError) else error
                self._complain(f"{self.path} cannot be written, so what is recorded is in memory only: {why}")
            self._is_broken = True
        else:
            self._is_broken = False

    def remove(self) -> None:
        """All is written elsewhere."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
            self.path.unlink(missing_ok=True)

    def rest(self) -> str:
        """What to do after the end, if something is kept; else empty."""
        if self._file is None or not self._good:
            return ""
        return f"; what was recorded is kept in {self.path}: workbench record --kept {self.path} --suite NEW.toml"

    def _write(self) -> None:
        if self._file is None:
            self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        text = b"".join(self._waiting)
        os.ftruncate(self._file, self._good)  # a line that was broken off begins anew
        written = 0
        while written < len(text):
            written += os.pwrite(self._file, text[written:], self._good + written)
        self._good += len(text)
        self._waiting.clear()


def read_kept(path: Path, secrets: Secrets) -> list[ObservedConversation]:
    """Return the conversations that a recording has kept; a last line that was broken off is left out.

    Raises RefusedError."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise RefusedError(f"{path} cannot be read: {error.strerror}") from error
    found: dict[int, ObservedConversation] = {}
    for number, line in enumerate(lines[:-1], 1):
        try:
            kept: _Kept = _READ(parsed_json(line.decode("utf-8")))
            conversation = found.setdefault(
                kept.conversation, ObservedConversation(len(found) + 1, kept.wire, kept.started_at)
            )
            conversation.steps.append(_step(kept, conversation, secrets))
        except (ValueError, IndexError, RefusedError) as error:
            raise RefusedError(f"{path}, line {number}: this was not kept by `workbench record`: {error}") from error
    return list(found.values())


def _step(kept: _Kept, conversation: ObservedConversation, secrets: Secrets) -> Step:
    before = conversation.steps[-1] if conversation.steps else None
    messages = [*(before.messages[: kept.same] if before is not None else []), *kept.messages]
    head = dict(kept.head) if kept.head is not None else conversation.steps[-1].head
    read: Conversation = conversation_of(Node({**head, "messages": messages}, conversation.place))
    return Step(
        messages,
        head,
        read,
        [],
        AnswerReading(kept.wire, read.model, "", (), secrets),
        kept.began_s,
        tuple(Note(conversation.place, why) for why in kept.notes),
        kept.answer,
        ended_s=kept.ended_s,
    )


# Merges what servers were asked, as their tees wrote it down, with conversations: by time, tool and arguments.

_SLACK_S = 1.0
"""Clocks of two programs on one machine agree better than that."""


@dataclass(frozen=True, eq=False)
class ServerCall:
    """A call as a server got it, in seconds since 1970, and what it answered."""

    tool: str
    arguments: Mapping[str, JsonValue]
    began_s: float
    answer: ToolAnswer


@dataclass(frozen=True)
class ServerLog:
    """What a tee wrote down: the tools that the server listed, by name, and the calls that it answered."""

    path: Path
    tools: Mapping[str, Table]
    calls: tuple[ServerCall, ...]


def read_server_log(path: Path) -> ServerLog:
    """Return the log that `workbench record --server --to` wrote.

    Raises RefusedError."""
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
                arguments = line.get("arguments")
                if (result := line.get("result")) is not None:
                    try:
                        answer = answer_of(CallToolResult.model_validate(result.value))
                    except ValidationError:
                        continue  # the client got no result of it either
                else:
                    answer = ToolAnswer(line.text_of("error"), is_error=True)
                calls.append(
                    ServerCall(
                        line.need("tool").text(),
                        arguments.table() if arguments is not None else {},
                        datetime.fromisoformat(line.need("at").text()).timestamp(),
                        answer,
                    )
                )
            case "start":
                pass
            case _:
                raise line.refused(f"is no line of a server's log: {path} must be what --server --to has written")
    return ServerLog(path, tools, tuple(calls))


class Merger:
    """Makes cases of conversations with what logs know.

    Each call of a log is used once."""

    def __init__(self, logs: tuple[ServerLog, ...], secrets: Secrets) -> None:
        self._logs = logs
        self._secrets = secrets
        self._used: set[ServerCall] = set()

    @property
    def lines(self) -> list[str]:
        """How much of each log was found in conversations."""
        return [
            f"{log.path}: {len(self._used.intersection(log.calls))} of {counted(len(log.calls), 'call')} matched"
            for log in self._logs
        ]

    def case(self, observed: ObservedConversation) -> ImportedCase:
        """Return the case of a conversation: its mocks answer what servers answered, its run what the model read.

        Raises RefusedError."""
        as_read = observed.case()
        if not self._logs:
            return as_read
        conversation = observed.conversation()
        answers = self._answers(observed, conversation.messages)
        messages = tuple(
            replace(message, content=answers[message.call_id].content, is_error=answers[message.call_id].is_error)
            if message.call_id in answers
            else message
            for message in conversation.messages
        )
        tools, notes = self._tools(conversation.tools, observed.place)
        case = case_of(replace(conversation, messages=messages, tools=tools, notes=(*conversation.notes, *notes)))
        calls = sum(len(message.tool_calls) for message in conversation.messages)
        found = f"{len(answers)} of {counted(calls, 'call')} found in the servers' logs"
        mapped = [Mapped(found, "their raw results")] if calls else []
        return replace(case, runs=as_read.runs, mapped=(*case.mapped, *mapped))

    def _answers(self, observed: ObservedConversation, messages: tuple[Message, ...]) -> dict[str, ToolAnswer]:
        """Return what servers answered, by the ids of calls."""
        ended = {len(step.conversation.messages): step.ended_s for step in observed.steps if step.answer is not None}
        began = [(len(step.conversation.messages), step.began_s) for step in observed.steps]
        found: dict[str, ToolAnswer] = {}
        for index, message in enumerate(messages):
            if message.role != "assistant" or index not in ended:
                continue
            until_s = min((at_s for at, at_s in began if at > index), default=float("inf"))
            for call in message.tool_calls:
                match = self._match(call, ended[index] - _SLACK_S, until_s + _SLACK_S)
                if match is not None:
                    self._used.add(match)
                    found[call.id] = match.answer
        return found

    def _match(self, call: ToolCall, from_s: float, to_s: float) -> ServerCall | None:
        arguments = self._secrets.redacted(dict(call.arguments))
        fitting = (
            each
            for log in self._logs
            for each in log.calls
            if each not in self._used
            and from_s <= each.began_s <= to_s
            and _is_tool(call.tool, each.tool)
            and each.arguments in (arguments, call.arguments)
        )
        return min(fitting, key=lambda each: each.began_s, default=None)

    def _tools(self, offered: tuple[Table, ...], place: str) -> tuple[tuple[Table, ...], list[Note]]:
        """Return tools with the descriptions and schemas that the model was offered, those of the server where it was
        offered none."""
        listed = {name: tool for log in self._logs for name, tool in log.tools.items()}
        tools: list[Table] = []
        notes: list[Note] = []
        for tool in offered:
            theirs = next((each for name, each in listed.items() if _is_tool(str(tool["name"]), name)), None)
            if theirs is None:
                tools.append(tool)
                continue
            tools.append({**theirs, **tool})
            if "parameters" not in tool and "parameters" in theirs:
                notes.append(Note(place, f"the schema of {tool['name']} is the server's"))
            elif tool.get("parameters") != theirs.get("parameters"):
                notes.append(Note(place, f"the schema of {tool['name']} is the model's, not the server's"))
        return tuple(tools), notes


def _is_tool(offered: str, listed: str) -> bool:
    """Return whether a model's tool is that of a server: programs put the server's name before it."""
    return offered == listed or re.search(rf"[_./:-]{re.escape(listed)}$", offered) is not None


# Writes what was observed: conversations as cases of a suite, and as recordings of their runs.

_NAME = "recorded"


@dataclass(frozen=True)
class Destination:
    """Where a suite and recordings go; one of both may be `None`.

    What exists is replaced or added to with `force`."""

    suite: Path | None
    recordings: Path | None
    force: bool = False

    @property
    def kept(self) -> Path:
        """Where conversations are kept until these are written: beside them."""
        beside = self.suite or self.recordings
        assert beside is not None
        return beside.with_name(beside.name + SUFFIX)

    def check(self) -> None:
        """Raise RefusedError where something is in the way."""
        if not self.force:
            must_be_free(self.suite, self.recordings, "--suite")


@dataclass(frozen=True)
class Saved:
    """What was written, and the report for a person."""

    cases: int
    runs: int
    lines: tuple[str, ...]


def save_observed(
    observer: Observer, destination: Destination, secrets: Secrets, logs: Iterable[ServerLog] = ()
) -> Saved:
    """Write all conversations that can be taken, with what the logs of servers know of their calls.

    The report names each conversation, and why it was not taken if it was not. Raises RefusedError where nothing can be
    written."""
    learn_keys(
        [
            [*step.messages, *step.head.values(), *([step.answer.message] if step.answer is not None else [])]
            for each in observer.conversations
            for step in each.steps[-1:]
        ],
        "RECORDED_KEY",
        secrets,
    )
    merger = Merger(tuple(logs), secrets)
    ended = observer.end(merger.case)
    cases = tuple(each.case for each in ended if each.case is not None)
    lines = [f"· {note}" for note in observer.notes]
    if not cases:
        return Saved(
            0, 0, (*_refused(ended), *lines, *merger.lines, "no conversation can be taken: nothing is written")
        )
    name = destination.suite.stem if destination.suite is not None else _NAME
    path = destination.suite or Path(f"{_NAME}.toml")
    try:
        made = made_suite(Imported(cases, suite=RULE_OF_NEW_SUITES), name, path, secrets)
    except RefusedError as error:
        return Saved(0, 0, (*_refused(ended), f"· {error}", *lines, "nothing is written"))
    runs = written(made, destination.suite, destination.recordings, secrets, force=destination.force)
    assert made.file.suite is not None
    report = []
    for case, imported in zip(made.file.suite.cases, made.cases, strict=True):
        report.append(f"{imported.place} → {case.id}")
        report += [f"  ✓ {line}" for line in imported.mapped]
        report += [f"  · {_said(note, imported.place)}" for note in imported.notes]
    report += [*_refused(ended), *(f"· {note}" for note in made.notes), *lines, *merger.lines]
    if destination.suite is not None:
        report.append(f"{destination.suite}: {counted(len(made.cases), 'case')}")
    if destination.recordings is not None:
        report.append(f"{destination.recordings}: {counted(runs, 'run')}: workbench grade {destination.recordings}")
    return Saved(len(made.cases), runs, tuple(report))


def _refused(ended: Iterable[ConversationEnded]) -> list[str]:
    return [f"✗ conversation {each.number}: {each.why}" for each in ended if each.case is None]


def _said(note: Note, place: str) -> str:
    return str(note).removeprefix(f"{place}: ")
