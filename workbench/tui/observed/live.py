"""A recording in progress: a proxy in its own thread, and the observed conversations."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Literal

from workbench.config.models import Provider
from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass
from workbench.engine.engine_thread import EngineThread
from workbench.engine.events import Inbox
from workbench.engine.external_run import external_payloads
from workbench.exchange.importers.conversations import Conversation, last_request, rounds_of
from workbench.exchange.importers.import_files import register_keys
from workbench.exchange.importers.source_files import RefusedError
from workbench.exchange.observed.conversations import (
    Observation,
    ObservedConversation,
    Observer,
    StepBegan,
    StepEnded,
    UnreadableRequest,
)
from workbench.exchange.observed.proxy import ListenAddress, RecordingProxy
from workbench.trajectory.events import Event, EventPayload, JsonValue, RequestStarted, RunStarted, ToolDefinition

_CLOSING_S = 5.0
"""The time in seconds for the proxy to close before its thread is ended."""

State = Literal["asking", "calling", "whole", "broken off"]
"""The state of a conversation: the model is asked, the program runs calls, the model has answered, or no complete
answer came."""


@dataclass(frozen=True)
class SeenConversation:
    """What has been observed of a conversation so far. The value is immutable, so any thread may read it.

    `problem` is why the conversation broke off, "" if it did not. `why_no_case` is why it cannot become a case, "" if
    it can."""

    number: int
    wire: Provider
    state: State
    conversation: Conversation
    requests: int
    problem: str = ""
    why_no_case: str = ""

    @property
    def request(self) -> str:
        """The last message of the user, "" if there is none."""
        asked = last_request(self.conversation.messages)
        if asked is not None:
            return self.conversation.messages[asked].content
        return ""

    @property
    def calls(self) -> int:
        return sum(len(message.tool_calls) for message in self.conversation.messages)

    def events(self) -> Sequence[Event]:
        """Return the conversation as events, as if it were an active run."""
        conversation = self.conversation
        # The messages up to the user's last request are the start of the run. The later messages are the rounds of the
        # model.
        asked = last_request(conversation.messages)
        first = len(conversation.messages) if asked is None else asked + 1
        tools = []
        for tool in conversation.tools:
            tools.append(ToolDefinition(str(tool["name"]), str(tool.get("description", ""))))
        rounds = rounds_of(conversation, first, len(conversation.messages))
        payloads: list[EventPayload] = [
            RunStarted(
                suite_hash="",
                case_id="",
                case_name="",
                model=conversation.model,
                system=conversation.system or None,
                messages=conversation.messages[:first],
                tools=tuple(tools),
            ),
            *external_payloads(rounds),
        ]
        if self.state == "asking":
            payloads.append(RequestStarted(len(rounds) + 1))
        return [Event("", number, 0.0, payload) for number, payload in enumerate(payloads)]


def seen_conversation(observed: ObservedConversation) -> SeenConversation:
    """Return what has been observed of a conversation so far. Only the proxy's thread may call this function."""
    last = observed.steps[-1]
    why = problem = ""
    try:
        conversation = observed.conversation()
    except RefusedError as error:
        conversation, why = replace(last.conversation, started_at=observed.started_at), error.why
    state: State = "whole"
    if last.answer is None:
        state, why = "asking", "the model is being asked: wait for its answer, or stop recording"
    elif last.answer.problem:
        state, problem = "broken off", last.answer.problem
    elif last.answer.calls:
        state = "calling"
    return SeenConversation(observed.number, observed.wire, state, conversation, len(observed.steps), problem, why)


class LiveRecording:
    """A recording proxy in front of an endpoint.

    `wake` is called in the proxy's thread when `take_all` has something to return."""

    def __init__(self, upstream: str, secrets: Secrets, wake: Callable[[], None]) -> None:
        self.upstream = upstream
        self.address = ""
        """The base URL of the proxy for the observed program, "" until the proxy listens."""
        self.stopped = False
        self._secrets = secrets
        self._inbox: Inbox[SeenConversation | str] = Inbox(wake)
        self._observer = Observer(secrets, self._record_observation)
        self._proxy = RecordingProxy(upstream, self._observer, secrets, self._inbox.put)
        self._engine = EngineThread()

    async def start(self, listen: ListenAddress) -> None:
        """Begin to listen.

        Raises ListenError if the address cannot be used."""
        try:
            self.address = await asyncio.wrap_future(self._engine.submit(self._proxy.start(listen)))
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop listening and abort active requests. Both happen in the background."""
        if not self.stopped:
            self.stopped = True
            threading.Thread(target=self._end, name="end of a recording", daemon=True).start()

    def take_all(self) -> list[SeenConversation | str]:
        """Return what was observed since the last call: conversations as they are now, and sentences on errors."""
        return self._inbox.take_all()

    def _end(self) -> None:
        # If closing the proxy fails, the end of the thread still closes everything that the proxy opened.
        with suppress(Exception):
            self._engine.submit(self._proxy.close()).result(_CLOSING_S)
        self._engine.close(timeout_s=1.0)

    def _record_observation(self, what: Observation) -> None:
        # Before a text is shown, parts of it that look like a key are registered as secrets. Only new text is searched:
        # messages that the previous step did not have and, in the first step, the beginning of the request.
        if isinstance(what, UnreadableRequest):
            self._inbox.put(str(what.note))
        if not isinstance(what, StepBegan | StepEnded):
            return
        observed = self._observer.conversations[what.number - 1]
        last = observed.steps[-1]
        if isinstance(what, StepEnded):
            new: list[JsonValue] = [what.answer.message]
        else:
            before = observed.steps[-2].messages if len(observed.steps) > 1 else []
            new = [*last.messages[len(before) :]]
            if not before:
                new += last.head.values()
        register_keys(new, f"RECORDED_KEY_{what.number}_{len(observed.steps)}", self._secrets)
        self._inbox.put(seen_conversation(observed))
