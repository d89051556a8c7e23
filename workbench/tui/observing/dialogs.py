"""The dialogs of a recording: where it listens and what is asked, where its cases go, and whether it ends."""

from __future__ import annotations

from typing import Literal, NamedTuple

from textual.app import ComposeResult
from textual.widgets import Input

from workbench.exchange.observed.proxy import ListenError, listen_at, upstream_at
from workbench.numerals import counted
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import EMPTY, Line, Span, with_margin
from workbench.show.visible import one_line
from workbench.tui.kit.asking import AskScreen, _Naming
from workbench.tui.kit.dialogs import Option, ReadLines, keys_line
from workbench.tui.kit.fields import SafeInput
from workbench.tui.tree.dialogs import WhichSuiteScreen


class Wanted(NamedTuple):
    """What is to be recorded, as it was typed: the endpoint, and where the program reaches the proxy."""

    upstream: str
    listen: str


class ObserveScreen(_Naming[Wanted]):
    """Asks what to record. `problem` is why that could not be done before."""

    def __init__(self, before: Wanted, problem: str = "") -> None:
        super().__init__(
            "Record a program and its model",
            before.upstream,
            "A proxy passes requests on to the endpoint, and shows each conversation. The endpoint: openai, anthropic, "
            "or a base URL.",
            _why_not_upstream,
            keys_line(("Enter", "begin"), ("Tab", "other field"), ("Esc", "leave")),
        )
        self._listen = before.listen
        self._problem = problem

    def body(self) -> ComposeResult:
        yield from super().body()
        where = "Where the program reaches the proxy, on this machine; port 0 takes a free one."
        yield ReadLines(lambda width: with_margin(where, width), "where")
        yield SafeInput(self._listen, widget_id="listen")

    def on_mount(self) -> None:
        for texts in self.query(ReadLines):
            texts.can_focus = False  # Tab goes from field to field

    def _lines(self, width: int) -> list[Line]:
        problem = with_margin(f"{GLYPHS.warned} {self._problem}", width, "warned") if self._problem else []
        return [*super()._lines(width), *problem]

    def submit(self) -> None:
        try:
            listen_at(self._listens)
        except ListenError as error:
            self.say_keys((Span(f" {GLYPHS.warned} {one_line(str(error))}", "warned"),))
        else:
            super().submit()

    @property
    def _listens(self) -> str:
        return self.query_one("#listen", Input).value.strip()

    def answer(self, text: str) -> None:
        self.dismiss(Wanted(text, self._listens))


def _why_not_upstream(text: str) -> str | None:
    try:
        upstream_at(text)
    except ListenError as error:
        return str(error)
    return None


class WhereScreen(WhichSuiteScreen):
    """Asks for the suite of a new case, by index."""

    TITLE_LINE = "Add the case to"
    VERB = "show what changes"


class EndScreen(AskScreen[Literal["end", "no"]]):
    """Asks before something is broken off or lost."""

    TITLE_LINE = "End the recording?"

    def __init__(self, under_way: int, unused: int) -> None:
        texts = []
        if under_way:
            texts.append(f"In {counted(under_way, 'conversation')} the model is being asked: that is broken off.")
        if unused:
            lost = "1 conversation is no case yet" if unused == 1 else f"{unused:,} conversations are no cases yet"
            texts.append(f"{lost}, and will be forgotten.")
        super().__init__(
            lambda width: [EMPTY, *(line for text in texts for line in with_margin(text, width)), EMPTY],
            [("end", Option("end it", "")), ("no", Option("no", "go on"))],
            leaving="go on",
        )
