"""Asks what becomes of a suite that is something else on the disk than it was, or would be than it should."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal

from textual.binding import Binding, BindingType

from workbench.reports.visible import one_line
from workbench.tui.screens.asking import AskScreen
from workbench.tui.state.difference import Difference
from workbench.tui.state.spans import EMPTY, Line, Role, Span, wrap
from workbench.tui.widgets.dialogs import Option

ChangedAnswer = Literal["mine", "theirs", "name", "later"]
_Choice = tuple[ChangedAnswer, Option]

_MINE: _Choice = ("mine", Option("keep mine", "write it over what is on the disk", "over the disk's", key="m"))
_MINE_ANEW: _Choice = ("mine", Option("keep mine", "write the file again", key="m"))
_THEIRS: _Choice = ("theirs", Option("take the disk's", "yours comes back with Ctrl+Z", "Ctrl+Z undoes", key="d"))
_NAME: _Choice = ("name", Option("save mine elsewhere", "under another name", "a new name", key="s"))
_LATER: _Choice = ("later", Option("later", "both stay as they are; saving asks again", "saving asks again", key="l"))


class ChangedScreen(AskScreen[ChangedAnswer]):
    """For a suite that changed here and on the disk, or is gone there (`gone`). `found` is what the disk's text differs
    from the text here."""

    TITLE_LINE = "Changed here and on the disk"
    REST_S = 0.4
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("m", "answer('mine')", show=False),
        Binding("d", "answer('theirs')", show=False),
        Binding("s", "answer('name')", show=False),
        Binding("l", "answer('later')", show=False),
    ]

    def __init__(self, path: Path, found: Difference, *, gone: bool) -> None:
        if gone:
            said = "The file is no longer on the disk, and what was changed here is not saved."
            answers = [_MINE_ANEW, _NAME, _LATER]
        else:
            said = f"The file is another one than when it was read. From the disk to here: {found}."
            answers = [_MINE, _THEIRS, _NAME, _LATER]
        super().__init__(
            lambda width: said_lines(path, [(said, "text")], found, width),
            answers,
            leaving="later",
            harmless=frozenset({"theirs", "name"} if not gone else {"mine", "name"}),
        )


RewrittenAnswer = Literal["save", "no"]


class RewrittenScreen(AskScreen[RewrittenAnswer]):
    """Before more is written to a suite than was changed in it."""

    TITLE_LINE = "Saving writes more than you changed"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "answer('save')", show=False),
        Binding("n", "answer('no')", show=False),
    ]

    def __init__(self, path: Path, found: Difference) -> None:
        said = f"Comments or formatting could not all be kept. From the disk to what would be saved: {found}."
        super().__init__(
            lambda width: said_lines(path, [(said, "text")], found, width),
            [("save", Option("save", "as shown", key="s")), ("no", Option("not now", "it stays as a draft", key="n"))],
            leaving="not now",
        )


def said_lines(path: Path, said: Sequence[tuple[str, Role]], found: Difference, width: int) -> list[Line]:
    """A suite's path, what there is to say about it, and a difference."""
    room = max(width - 4, 10)
    lines: list[Line] = [EMPTY]
    lines += [(Span("  "), Span(row, "strong")) for row in wrap(one_line(str(path)), room)]
    for text, role in said:
        lines += [(Span("  "), Span(row, role)) for row in wrap(text, room)]
    return [*lines, EMPTY, *found.drawn(width), EMPTY]
