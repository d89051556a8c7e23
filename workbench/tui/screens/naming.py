"""Asks for names: of cases with their kind, of suites and their files; and for the suite to which a case goes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Literal, NamedTuple, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input

from workbench.reports.visible import one_line
from workbench.tui.glyphs import GLYPHS
from workbench.tui.screens.asking import AskScreen
from workbench.tui.state.form.templates import CaseKind
from workbench.tui.state.spans import EMPTY, Line, Span, wrap
from workbench.tui.widgets.dialogs import ChooseLines, Dialog, Option, ReadLines, keys_line
from workbench.tui.widgets.safe_input import SafeInput

_Answer = TypeVar("_Answer")

Refusal = Callable[[str], str | None]
"""Why a text will not do, if it will not."""

KINDS: tuple[tuple[CaseKind, Option], ...] = (
    ("positive", Option("positive", "calls are expected")),
    ("negative", Option("negative", "calling nothing is right")),
    ("chain", Option("chain", "one call after the other, each step judged on its own", "step by step")),
)

LOW_ROWS = 14
"""On a screen that is lower than this, the title has to say it all."""

_ROWS_AROUND = 8
"""What a dialog needs beside its choices."""


class _Naming(Dialog[_Answer]):
    """A dialog with one line to type in."""

    DEFAULT_CSS = """
    _Naming Input { height: 1; border: none; padding: 0 1; margin: 0 1 1 1; background: $background; }
    _Naming.low Input { margin: 0 1; }
    _Naming.low ReadLines { display: none; }
    """

    def __init__(self, title: str, proposed: str, said: str, refusal: Refusal, keys: Line) -> None:
        super().__init__(keys)
        self.TITLE_LINE = title  # type: ignore[misc]
        self._proposed = proposed
        self._said = said
        self._refusal = refusal

    def body(self) -> ComposeResult:
        yield ReadLines(self._lines, "reading")
        yield SafeInput(self._proposed, widget_id="name")

    def on_mount(self) -> None:
        self.set_focus(self.query_one("#name", Input))

    def answer(self, text: str) -> None:
        """Close with a text that will do."""
        raise NotImplementedError

    def submit(self) -> None:
        """Take what was typed, or say why it will not do."""
        text = self.query_one("#name", Input).value.strip()
        why = self._refusal(text) if text else "a name is needed"
        if why is None:
            self.answer(text)
        else:
            self.say_keys((Span(f" {GLYPHS.warned} {one_line(why)}", "warned"),))

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self.submit()

    @on(Input.Changed)
    def _changed(self) -> None:
        self.say_keys(self._keys)

    def _lines(self, width: int) -> list[Line]:
        said = wrap(one_line(self._said), max(width - 4, 10))
        return [EMPTY, *((Span("  "), Span(row)) for row in said)]

    def _make_room(self, height: int) -> None:
        super()._make_room(height)
        self.set_class(height < LOW_ROWS, "low")


class NameScreen(_Naming[str]):
    """Answers with a name."""

    def __init__(self, title: str, proposed: str, said: str, refusal: Refusal) -> None:
        super().__init__(title, proposed, said, refusal, keys_line(("Enter", "take it"), ("Esc", "leave")))

    def answer(self, text: str) -> None:
        self.dismiss(text)


class NewCase(NamedTuple):
    """What a new case is to be."""

    name: str
    kind: CaseKind


class NewCaseScreen(_Naming[NewCase]):
    """Answers with the name of a new case, and its kind."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "kind(-1)", show=False),
        Binding("down", "kind(1)", show=False),
    ]

    def __init__(self, suite: str, refusal: Refusal) -> None:
        keys = keys_line(("Enter", "make it"), ("↑↓", "kind"), ("Esc", "leave"))
        super().__init__("New case", "", f"What the case in {suite} is called:", refusal, keys)

    def body(self) -> ComposeResult:
        yield from super().body()
        yield ChooseLines([option for _, option in KINDS], widget_id="kinds")

    def action_kind(self, step: int) -> None:
        """Choose another kind while the name is typed."""
        kinds = self.query_one("#kinds", ChooseLines)
        kinds.move_cursor((kinds.cursor + step) % len(KINDS))

    def answer(self, text: str) -> None:
        self.dismiss(NewCase(text, KINDS[self.query_one("#kinds", ChooseLines).cursor][0]))

    @on(ChooseLines.Chosen)
    def _chosen(self) -> None:
        self.submit()


class WhichSuiteScreen(Dialog[int]):
    """Answers with the index of one of some suites."""

    TITLE_LINE = "Move the case to"

    def __init__(self, suites: Sequence[Option]) -> None:
        super().__init__(keys_line(("Enter", "move"), ("Esc", "leave")))
        self._suites = suites

    def body(self) -> ComposeResult:
        yield ChooseLines(self._suites, widget_id="suites")

    def on_mount(self) -> None:
        self.set_focus(self.query_one("#suites"))

    def _make_room(self, height: int) -> None:
        self.query_one("#suites").styles.max_height = max(height - _ROWS_AROUND, 2)

    @on(ChooseLines.Chosen)
    def _chosen(self, event: ChooseLines.Chosen) -> None:
        self.dismiss(event.index)


class DeleteSuiteScreen(AskScreen[Literal["delete", "no"]]):
    """Before a suite's file is taken away."""

    TITLE_LINE = "Delete the suite"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("d", "answer('delete')", show=False),
        Binding("n", "answer('no')", show=False),
    ]

    def __init__(self, said: Sequence[str]) -> None:
        super().__init__(
            lambda width: [
                EMPTY,
                *((Span("  "), Span(row)) for text in said for row in wrap(one_line(text), max(width - 4, 10))),
                EMPTY,
            ],
            [
                ("delete", Option("delete", "move the file to the program's own folder", "move the file", key="d")),
                ("no", Option("no", "leave it", key="n")),
            ],
            leaving="leave it",
        )
