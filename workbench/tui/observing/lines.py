"""The lines of the screen of a program and its model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from workbench.config.models import ANTHROPIC_URL, Provider
from workbench.config.secrets import Secrets
from workbench.numerals import counted
from workbench.show.glyphs import GLYPHS
from workbench.show.lazy_lines import JoinedLines, LazyLines
from workbench.show.spans import EMPTY, Line, Message, Role, Span, cut_line, paragraph, signed, spread
from workbench.show.views.run_view import RunView
from workbench.show.visible import one_line
from workbench.trajectory.events import Event
from workbench.tui.observing.live import LiveRecording, Seen, State
from workbench.tui.observing.state import Conversations
from workbench.tui.trajectory.run_lines import RunLines

_SIGNS: dict[State, tuple[str, Role, str]] = {
    "asking": (GLYPHS.running, "running", "the model is being asked"),
    "calling": (GLYPHS.running, "running", "going on: the program has the calls"),
    "whole": (GLYPHS.passed, "passed", "whole: the model has answered"),
    "broken off": (GLYPHS.error, "error", "broken off"),
}


def environment_line(address: str, provider: Provider | None, upstream: str) -> str:
    """Return the line that tells a program where the proxy is. `provider` is that of the endpoint, if it is known."""
    speaks_messages = upstream == ANTHROPIC_URL if provider is None else provider == "anthropic"
    return f"{'ANTHROPIC' if speaks_messages else 'OPENAI'}_BASE_URL={address}"


def head_lines(live: LiveRecording, line: str, width: int) -> list[Line]:
    """Return how the program is told of the proxy, and where that passes requests on to."""
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
    """Return the message of an empty list."""
    if state.filter:
        return ((f"No conversation matches {one_line(state.filter)}", "muted"),)
    if live.stopped:
        return (("No conversation was recorded.", "muted"),)
    return (("No conversation yet: each appears with its first request.", "muted"),)


def row_line(seen: Seen, made: bool, width: int) -> Line:
    """Return the row of a conversation: its state, what was asked, its calls and model."""
    sign, role, _ = _SIGNS[seen.state]
    head: Line = (Span(f" {sign} ", role), Span(one_line(seen.request[:width]) or "(no request of a user)"))
    calls = f"{counted(seen.calls, 'call')}  " if seen.calls else ""
    case: Line = (Span(f"{GLYPHS.marked} case  ", "accent"),) if made else EMPTY
    return spread(head, (Span("  "), *case, Span(f"{calls}{one_line(seen.conversation.model)} ", "muted")), width)


class _Steps(LazyLines):
    """The steps of a conversation, laid out as those of a run."""

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


def detail_lines(seen: Seen, where: str | None, secrets: Secrets, width: int) -> Sequence[Line]:
    """Return the state of a conversation and its steps. `where` is the case that was made of it, if there is one."""
    sign, role, words = _SIGNS[seen.state]
    text = f"{words}: {seen.problem}" if seen.problem else words
    facts = f"conversation {seen.number} {GLYPHS.dot} {seen.wire} {GLYPHS.dot} {counted(seen.requests, 'request')}"
    head: list[Line] = [*signed(sign, text, role, width, 1), cut_line((Span(f"   {facts}", "muted"),), width)]
    if where is not None:
        head += signed(GLYPHS.marked, where, "accent", width, 1)
    return JoinedLines([head, _Steps(map(secrets.redacted, seen.events()), width)])
