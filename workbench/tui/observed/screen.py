"""The screen of a recording: conversations of a program with its model, and the steps of each conversation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from workbench.config.models import ANTHROPIC_URL, Provider
from workbench.config.secrets import Secrets
from workbench.numerals import count_text, counted
from workbench.show.glyphs import GLYPHS
from workbench.show.lazy_lines import JoinedLines, LazyLines
from workbench.show.spans import EMPTY, Line, Message, Role, Span, cut_line, paragraph, sign_paragraph, spread
from workbench.show.views.run_view import RunView
from workbench.show.visible import one_line
from workbench.trajectory.events import Event
from workbench.tui.kit.actions import Situation, action
from workbench.tui.kit.list_screen import ListScreen
from workbench.tui.kit.rows import ListState
from workbench.tui.kit.side_screen import ActionOverride
from workbench.tui.kit.stage import Announce
from workbench.tui.observed.dialogs import EndScreen
from workbench.tui.observed.live import LiveRecording, SeenConversation, State
from workbench.tui.trajectory.run_lines import RunLines

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench


class Conversations(ListState[SeenConversation]):
    """The recorded conversations in the order they began."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[int, SeenConversation] = {}
        self.case_places: dict[int, str] = {}
        """The place of the case made of a conversation, by the number of the conversation."""

    def update(self, news: Sequence[SeenConversation]) -> None:
        """Add new conversations, and update known conversations."""
        for seen in news:
            self._seen[seen.number] = seen
            # The conversation has grown, so the text that the filter searches is built again.
            self._texts.pop(seen.number, None)
        self._rebuild()

    @property
    def count(self) -> int:
        """The number of conversations, including hidden ones."""
        return len(self._seen)

    @property
    def active_count(self) -> int:
        """The number of conversations with an active request."""
        return sum(seen.state == "asking" for seen in self._seen.values())

    @property
    def unused(self) -> int:
        """The number of conversations that could become cases but did not."""
        return sum(not seen.why_no_case and number not in self.case_places for number, seen in self._seen.items())

    def _key(self, row: SeenConversation) -> int:
        return row.number

    def _shown_rows(self) -> list[SeenConversation]:
        # The filter searches requests, model, called tools and state.
        return [seen for number, seen in self._seen.items() if self._fits(number, partial(_text, seen))]


def _text(conversation: SeenConversation) -> str:
    words = []
    for message in conversation.conversation.messages:
        if message.role == "user":
            words.append(message.content)
        words += [call.tool for call in message.tool_calls]
    return " ".join((*words, conversation.conversation.model, conversation.state))


_SIGNS: dict[State, tuple[str, Role, str]] = {
    "asking": (GLYPHS.running, "running", "the model is being asked"),
    "calling": (GLYPHS.running, "running", "under way: the program has the calls"),
    "whole": (GLYPHS.passed, "passed", "whole: the model has answered"),
    "broken off": (GLYPHS.error, "error", "broken off"),
}


def environment_line(address: str, provider: Provider | None, upstream: str) -> str:
    """Return the environment variable that sends a program to the proxy, such as `OPENAI_BASE_URL=http://…`.

    `provider` is the provider of the endpoint `upstream`, if known."""
    speaks_messages = provider == "anthropic" or (provider is None and upstream == ANTHROPIC_URL)
    if speaks_messages:
        return f"ANTHROPIC_BASE_URL={address}"
    return f"OPENAI_BASE_URL={address}"


def head_lines(live: LiveRecording, line: str, width: int) -> list[Line]:
    """Return the lines above the list: the environment variable for the program, and the endpoint."""
    if live.stopped:
        return paragraph(
            "Recording has stopped: nothing listens any more. Conversations can still become cases.", width
        )
    return [
        *paragraph("Set this for the program, and start it:", width, "muted"),
        (Span("   "), Span(one_line(line), "strong")),
        *paragraph(f"Passed on to {live.upstream}, byte for byte; no header is kept", width, "muted"),
    ]


def list_message(state: Conversations, live: LiveRecording) -> Message:
    """Return the message in place of an empty list."""
    if state.filter:
        return ((f"No conversation matches {one_line(state.filter)}", "muted"),)
    if live.stopped:
        return (("No conversation was recorded.", "muted"),)
    return (("No conversation yet: each appears with its first request.", "muted"),)


def row_line(conversation: SeenConversation, has_case: bool, width: int) -> Line:
    """Return the row of a conversation: its state, request, calls and model. `has_case` is whether it became a case."""
    sign, role, _ = _SIGNS[conversation.state]
    head: Line = (Span(f" {sign} ", role), Span(one_line(conversation.request[:width]) or "(no request of a user)"))
    right: list[Span] = [Span("  ")]
    if has_case:
        right.append(Span(f"{GLYPHS.marked} case  ", "accent"))
    if conversation.calls:
        right.append(Span(f"{counted(conversation.calls, 'call')}  ", "muted"))
    right.append(Span(f"{one_line(conversation.conversation.model)} ", "muted"))
    return spread(head, tuple(right), width)


class _Steps(LazyLines):
    """The steps of a conversation as lines, laid out like the lines of a run."""

    def __init__(self, events: Iterable[Event], width: int) -> None:
        view = RunView()
        for event in events:
            view.add(event)
        self._lines = RunLines(view, width)
        self._lines.settle(0, self._lines.count)

    def __len__(self) -> int:
        return self._lines.count

    def line(self, index: int) -> Line:
        return self._lines.line(index)


def detail_lines(conversation: SeenConversation, where: str | None, secrets: Secrets, width: int) -> Sequence[Line]:
    """Return the details of a conversation: state and steps.

    `where` is the place of the case that was made from the conversation, `None` if there is no such case."""
    sign, role, words = _SIGNS[conversation.state]
    text = f"{words}: {conversation.problem}" if conversation.problem else words
    requests = counted(conversation.requests, "request")
    facts = f"conversation {conversation.number} {GLYPHS.dot} {conversation.wire} {GLYPHS.dot} {requests}"
    head: list[Line] = [*sign_paragraph(sign, text, role, width, 1), cut_line((Span(f"   {facts}", "muted"),), width)]
    if where is not None:
        head += sign_paragraph(GLYPHS.marked, where, "accent", width, 1)
    return JoinedLines([head, _Steps(map(secrets.redacted, conversation.events()), width)])


MakeCase = Callable[[SeenConversation, Announce], Awaitable[str | None]]
"""Makes a case of a conversation. Returns the place of the case, `None` if the user declined."""


def _add(situation: Situation) -> str | None:
    return situation.refusals.get("live.add")


def _stop(situation: Situation) -> str | None:
    return situation.refusals.get("live.stop")


class LiveScreen(ListScreen[None, Conversations]):
    """The screen of a recording. Closing it ends the recording. `line` is the environment variable to set."""

    LIST_SHARES = (0.35, 0.5)
    TWO_COLUMNS_CELLS = 110
    FILTER_PLACEHOLDER = "words of request, model, tools or state"
    NAME = "live"
    TITLE_IN_TEXT = "a program and its model"
    ACTION_OVERRIDES = (
        ActionOverride(
            "back", keys="escape left", title="Leave the filter or the steps, or end the recording", label="end"
        ),
    )
    AUTO_FOCUS = "#live-list"

    def __init__(self, app: Workbench, live: LiveRecording, line: str, secrets: Secrets, make_case: MakeCase) -> None:
        super().__init__(app, Conversations())
        self._live = live
        self._line = line
        self._secrets = secrets
        self._make_case = make_case
        self._is_outdated = False
        """Whether observations arrived while this screen was covered."""

    def on_mount(self) -> None:
        self.show_observations()

    def on_unmount(self) -> None:
        self._live.stop()

    def show_observations(self) -> None:
        if not self.is_mounted:
            return
        # Observations are conversations, or sentences about errors outside of conversations.
        news = self._live.take_all()
        self.state.update([each for each in news if isinstance(each, SeenConversation)])
        sentences = [each for each in news if isinstance(each, str)]
        if sentences:
            # A notice replaces the previous notice, so only the last sentence is announced.
            self.announce(sentences[-1], "warned", GLYPHS.warned)
        if self.is_covered:
            self._is_outdated = True
        else:
            self._show_state(cursor_moved=False)

    def on_screen_resume(self) -> None:
        if self._is_outdated:
            self._is_outdated = False
            self._show_state(cursor_moved=False)

    def _show_state(self, *, cursor_moved: bool = True) -> None:
        super()._show_state(cursor_moved=cursor_moved)
        self._list.repaint()

    def _row_line(self, index: int, width: int) -> Line:
        seen = self.state.rows[index]
        return row_line(seen, seen.number in self.state.case_places, width)

    def _message(self) -> Message:
        return list_message(self.state, self._live)

    def _head_lines(self, width: int) -> Sequence[Line]:
        return head_lines(self._live, self._line, width)

    def _detail_lines(self, width: int) -> Sequence[Line]:
        seen = self.state.selected
        if seen is None:
            return ()
        return detail_lines(seen, self.state.case_places.get(seen.number), self._secrets, width)

    def _title(self) -> tuple[Line, Sequence[Line]]:
        what = "Recorded" if self._live.stopped else "Recording"
        left: Line = (Span(f" {what} ", "badge"), Span(f" {one_line(self._live.upstream)}{self._filter_text}"))
        count = Span(f"{counted(self.state.count, 'conversation')} ", "muted")
        if not self.state.active_count:
            return left, ((count,), EMPTY)
        active = Span(f"{count_text(self.state.active_count)} under way  ", "running")
        return left, ((active, count), (active,))

    def _refusals(self) -> Mapping[str, str]:
        seen, why = self.state.selected, {}
        if seen is None:
            why["live.add"] = "there is no conversation here"
        elif seen.why_no_case:
            why["live.add"] = f"it cannot become a case: {one_line(seen.why_no_case)}"
        if self._live.stopped:
            why["live.stop"] = "recording has stopped"
        return why

    @action("enter right", "Go to the steps of the conversation")
    def do_open(self) -> None:
        self._go_to("detail")

    @action("y", "Copy the environment variable for the program", label="copy")
    def do_copy(self) -> None:
        self.workbench.copy(self._line, "the line for the program", self.announce)

    @action("a", "Add a case made from the conversation", label="make a case", needs=_add, changes=True)
    def do_add(self) -> None:
        seen = self.state.selected
        assert seen is not None

        async def add() -> None:
            case_place = await self._make_case(seen, self.announce)
            if case_place is not None:
                self.state.case_places[seen.number] = case_place
                self._show_state(cursor_moved=False)

        self.workbench.work(add(), "ask", exclusive=True)

    @action("x", "Stop recording; what was recorded stays", label="stop", needs=_stop, changes=True)
    def do_stop(self) -> None:
        """Stop recording. Ask first if there are active requests."""
        self._ask_to_end(self.state.active_count, 0, self._stop)

    def do_back(self) -> None:
        """Go back by one step: end the filter, or leave the steps, or end the recording."""
        if self._filtering or self.state.filter or self.column == "detail":
            super().do_back()
        else:
            self._ask_to_end(self.state.active_count, self.state.unused, self.dismiss)

    def _stop(self) -> None:
        self._live.stop()
        self._show_state(cursor_moved=False)
        self.query_one("#live-head").refresh(layout=True)
        self.announce("Recording has stopped; what was recorded stays until you leave")

    def _ask_to_end(self, under_way: int, unused: int, end: Callable[[], object]) -> None:
        async def ask() -> None:
            if await self.workbench.ask(EndScreen(under_way, unused)) == "end":
                end()

        if under_way or unused:
            self.workbench.work(ask(), "ask")
        else:
            end()
