"""Asks about changes that are not saved: those of this session when it ends, and those that an earlier one left."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal

from textual.binding import Binding, BindingType

from workbench.reports.visible import one_line
from workbench.tui.screens.asking import AskScreen
from workbench.tui.screens.changed import said_lines
from workbench.tui.state.difference import Difference
from workbench.tui.state.spans import EMPTY, Line, Role, Span, wrap
from workbench.tui.state.words import many
from workbench.tui.widgets.dialogs import Option

LeftAnswer = Literal["take", "away", "later"]


class LeftScreen(AskScreen[LeftAnswer]):
    """For changes that a session before this one left: which suite, since when, and the difference they make."""

    TITLE_LINE = "Unsaved changes of before"
    REST_S = 0.4
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("t", "answer('take')", show=False),
        Binding("x", "answer('away')", show=False),
        Binding("l", "answer('later')", show=False),
    ]

    def __init__(self, path: Path, when: str, found: Difference, *, notice: str = "") -> None:
        said: list[tuple[str, Role]] = [(f"Last typed {when}, never saved: {found}.", "text")]
        if notice:
            said.append((notice, "warned"))
        super().__init__(
            lambda width: said_lines(path, said, found, width),
            [
                ("take", Option("take over", "as unsaved changes; Ctrl+Z takes them back", "as unsaved", key="t")),
                ("away", Option("throw away", "for good", key="x")),
                ("later", Option("later", "they stay, and are offered again", "offered again", key="l")),
            ],
            leaving="later",
            harmless=frozenset({"take"}),
        )


UnsavedAnswer = Literal["save", "drafts", "discard", "stay"]


class UnsavedScreen(AskScreen[UnsavedAnswer]):
    """Before the end, when suites have changes that are not saved. `trouble`: why they cannot be kept as drafts."""

    TITLE_LINE = "Not everything is saved"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "answer('save')", show=False),
        Binding("k", "answer('drafts')", show=False),
        Binding("x", "answer('discard')", show=False),
        Binding("n", "answer('stay')", show=False),
    ]

    def __init__(self, paths: Sequence[Path], trouble: str | None) -> None:
        answers: list[tuple[UnsavedAnswer, Option]] = [
            ("save", Option("save", "all of them, then quit", key="s")),
            ("drafts", Option("keep as drafts", "quit; they are offered at the next start", "offered again", key="k")),
            ("discard", Option("discard", "quit; the changes are gone", "all of it", key="x")),
            ("stay", Option("stay", "do not quit", key="n")),
        ]
        if trouble is not None:
            del answers[1]
        super().__init__(
            lambda width: _unsaved_lines(paths, trouble, width),
            answers,
            leaving="stay",
            harmless=frozenset({"save"} if trouble else {"save", "drafts"}),
        )


def _unsaved_lines(paths: Sequence[Path], trouble: str | None, width: int) -> list[Line]:
    room = max(width - 4, 10)
    lines: list[Line] = [EMPTY]
    lines += [(Span("  "), Span(row)) for row in wrap(f"{many(len(paths), 'suite')} with unsaved changes:", room)]
    for path in paths:
        lines += [(Span("    "), Span(row, "strong")) for row in wrap(one_line(str(path)), room - 2)]
    if trouble is not None:
        lines += [(Span("  "), Span(row, "error")) for row in wrap(trouble, room)]
    return [*lines, EMPTY]
