"""Dialogs for names of cases, suites and files, and for the target suite of a case."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from workbench.authoring.form.row_changes import CaseKind
from workbench.show.spans import EMPTY, with_margin
from workbench.tui.kit.asking import _ROWS_AROUND, AskScreen, Refusal, _Naming
from workbench.tui.kit.dialogs import ChooseLines, Dialog, Option, keys_line

KINDS: tuple[tuple[CaseKind, Option], ...] = (
    ("positive", Option("positive", "calls are expected")),
    ("negative", Option("negative", "calling nothing is right")),
    ("chain", Option("chain", "one call after the other, each step judged on its own", "step by step")),
)


class NewCase(NamedTuple):
    """The name and kind of a new case."""

    name: str
    kind: CaseKind


class NewCaseScreen(_Naming[NewCase]):
    """Asks for the name and kind of a new case."""

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
        """Select a kind while the name is typed."""
        kinds = self.query_one("#kinds", ChooseLines)
        kinds.move_cursor((kinds.cursor + step) % len(KINDS))

    def answer(self, text: str) -> None:
        self.dismiss(NewCase(text, KINDS[self.query_one("#kinds", ChooseLines).cursor][0]))

    @on(ChooseLines.Chosen)
    def _chosen(self) -> None:
        self.submit()


SUITE_KINDS: tuple[Option, ...] = (
    Option("empty", "tools are written into it, or added later"),
    Option("from a server", "its tools are those of an MCP server", "tools of an MCP server"),
)


class NewSuite(NamedTuple):
    """The file name of a new suite, and whether its tools come from a server."""

    name: str
    from_server: bool


class NewSuiteScreen(_Naming[NewSuite]):
    """Asks for the file and kind of a new suite."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "kind(-1)", show=False),
        Binding("down", "kind(1)", show=False),
    ]

    def __init__(self, explanation: str, refusal: Refusal, *, from_server: bool) -> None:
        keys = keys_line(("Enter", "make it"), ("↑↓", "kind"), ("Esc", "leave"))
        super().__init__("New suite", "", explanation, refusal, keys)
        self._from_server = from_server

    def body(self) -> ComposeResult:
        yield from super().body()
        yield ChooseLines(SUITE_KINDS, cursor=int(self._from_server), widget_id="kinds")

    def action_kind(self, step: int) -> None:
        """Select a kind while the name is typed."""
        kinds = self.query_one("#kinds", ChooseLines)
        kinds.move_cursor((kinds.cursor + step) % len(SUITE_KINDS))

    def answer(self, text: str) -> None:
        self.dismiss(NewSuite(text, self.query_one("#kinds", ChooseLines).cursor == 1))

    @on(ChooseLines.Chosen)
    def _chosen(self) -> None:
        self.submit()


class BeginScreen(AskScreen[Literal["new", "server", "samples", "no"]]):
    """Offers ways to begin in a folder without suites."""

    TITLE_LINE = "No suites here"

    def __init__(self, folder: str) -> None:
        text = (
            f"{folder} holds no suites. A suite is a TOML file of cases: what a user asks, and which calls you expect."
        )
        super().__init__(
            lambda width: [EMPTY, *with_margin(text, width), EMPTY],
            [
                ("new", Option("new suite", "an empty one, in this folder")),
                ("server", Option("from a server", "test the tools of an MCP server")),
                ("samples", Option("samples", "open the suites that come with the program", "open those")),
                ("no", Option("nothing yet", "")),
            ],
            leaving="leave",
            harmless=frozenset({"new", "server", "samples"}),
        )


class WhichSuiteScreen(Dialog[int]):
    """Asks for one of several suites, by index."""

    TITLE_LINE = "Move the case to"
    VERB: ClassVar[str] = "move"

    def __init__(self, suites: Sequence[Option]) -> None:
        super().__init__(keys_line(("Enter", self.VERB), ("Esc", "leave")))
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
    """Asks before deleting a suite's file."""

    TITLE_LINE = "Delete the suite"

    def __init__(self, texts: Sequence[str]) -> None:
        super().__init__(
            lambda width: [
                EMPTY,
                *(row for text in texts for row in with_margin(text, width)),
                EMPTY,
            ],
            [
                ("delete", Option("delete", "move the file to the program's own folder", "move the file")),
                ("no", Option("no", "leave it")),
            ],
            leaving="leave it",
        )
