"""Conversations as they are seen on the wire: which request continues which, and the case that each of them makes.

An `Observer` is told of requests and answers in the order in which they pass, and tells a listener what they come to.
It knows no connection and no screen; all of it belongs on one thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from datetime import UTC, datetime

from workbench.config.models import Provider
from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass
from workbench.importing.bounds import RefusedError
from workbench.importing.conversations import Conversation, case_of
from workbench.importing.imported import ImportedCase, Note
from workbench.importing.messages import conversation_of
from workbench.importing.reading import Node
from workbench.observing.wires import Answer, AnswerReading, body_node, messages_in, tools_in
from workbench.trajectory.events import Deviation
from workbench.trajectory.messages import JsonValue, Message, ToolCall
from workbench.trajectory.typed_json import json_text

Key = tuple[str, str, tuple[tuple[str, str, str], ...], str]
"""What of a message is the same in every request that repeats it: role, text without blanks, calls, the call that a
result answers."""


@dataclass(frozen=True)
class ConversationBegan:
    """A request came that continues no other. Conversations count from 1; `started_at` is ISO 8601 text, and `request`
    what the user asks for last."""

    number: int
    wire: Provider
    model: str
    request: str
    tools: int
    started_at: str


@dataclass(frozen=True)
class StepBegan:
    """A request of a conversation was sent on. Its requests count from 1."""

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
    """Nothing more is recorded. `case` is what became of the conversation; `None` where `why` says why nothing did."""

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
    """One request of a conversation and its answer, `None` while it comes. `began_s` is in seconds since 1970."""

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
        """All of it that can be taken. Raises RefusedError where no answer can be."""
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
        """The case that it makes, with its run. Raises RefusedError, which says why it makes none."""
        return case_of(self.conversation())


def _deviations(read: Conversation, answers: Mapping[int, Answer]) -> Iterator[tuple[int, tuple[Deviation, ...]]]:
    """Yield the deviations of answers by the index of their message, with the ids that their calls have there."""
    for index, answer in answers.items():
        calls = read.messages[index].tool_calls if index < len(read.messages) else ()
        ids = {theirs.id: ours.id for theirs, ours in zip(answer.calls, calls, strict=False)}
        if answer.deviations:
            yield index, tuple(replace(each, call_id=ids.get(each.call_id or "")) for each in answer.deviations)


class Observer:
    """Sorts requests into conversations. `listener` is called with each observation as it happens; `notes` are of
    requests that belong to no conversation."""

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
        """A request came: its body, how that is compressed, and where it is sent on to. Returns the step that it is;
        `None` where it cannot be read, which is among the notes then."""
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
        """Nothing more comes: tell, and return, what became of each conversation. `case_of` makes the cases."""
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
        """Returns the conversation that a request of these messages goes on with: the one of which it repeats most."""
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
    """Returns whether a request repeats another one and what it was answered. One whose answer is not known may be made
    again, or go on with more."""
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
