"""The dialogs on files of suites: changes on disk, lost formatting, drafts, unsaved changes, another name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar, Literal

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Input

from workbench.authoring.case_list import named_path
from workbench.numerals import counted
from workbench.show.difference import Difference
from workbench.show.spans import EMPTY, Line, Role, Span, with_margin, wrap
from workbench.show.visible import one_line
from workbench.tui.kit.dialogs import Dialog, Option, TextView, keys_line
from workbench.tui.kit.fields import SafeInput
from workbench.tui.kit.questions import QuestionScreen

ChangedAnswer = Literal["mine", "theirs", "name", "later"]
_Choice = tuple[ChangedAnswer, Option]

_MINE: _Choice = ("mine", Option("keep mine", "overwrite the file on disk", "over the disk's"))
_MINE_AGAIN: _Choice = ("mine", Option("keep mine", "write the file again"))
_MINE_FOR_PART: _Choice = ("mine", Option("keep mine", "your version of this part", "your version"))
_THEIRS: _Choice = ("theirs", Option("take the disk's", "yours comes back with Ctrl+Z", "Ctrl+Z undoes"))
_NAME: _Choice = ("name", Option("save mine elsewhere", "under another name", "a new name"))
_LATER: _Choice = ("later", Option("later", "both stay as they are; saving asks again", "saving asks again"))


class ChangedScreen(QuestionScreen[ChangedAnswer]):
    """Asks about a suite that was changed in the app and also changed or deleted (`gone`) on disk.

    `difference` is the difference from the text on disk to the text in the app. `part` names the only part that could
    not be merged. `None` means that nothing was merged."""

    TITLE_LINE = "Changed here and on disk"

    def __init__(self, path: Path, difference: Difference, *, gone: bool = False, part: str | None = None) -> None:
        if part is not None:
            text = f"{part}. Your version: {difference}."
            answers = [_MINE_FOR_PART, _THEIRS, _NAME, _LATER]
        elif gone:
            text = "The file no longer exists on disk, and your changes are not saved."
            answers = [_MINE_AGAIN, _NAME, _LATER]
        else:
            text = f"The file changed on disk since it was opened. Your version: {difference}."
            answers = [_MINE, _THEIRS, _NAME, _LATER]
        super().__init__(
            lambda width: difference_lines(path, [(text, "text")], difference, width),
            answers,
            leaving="later",
            harmless=frozenset({"theirs", "name"} if not gone else {"mine", "name"}),
        )


RewrittenAnswer = Literal["save", "no"]


class RewrittenScreen(QuestionScreen[RewrittenAnswer]):
    """Asks for consent before comments or formatting of a suite are lost by saving."""

    TITLE_LINE = "Saving writes more than you changed"

    def __init__(self, path: Path, difference: Difference) -> None:
        text = f"Some comments or formatting would be lost. Saving changes the file: {difference}."
        super().__init__(
            lambda width: difference_lines(path, [(text, "text")], difference, width),
            [("save", Option("save", "as shown")), ("no", Option("not now", "it stays as a draft"))],
            leaving="not now",
        )


def difference_lines(path: Path, texts: Sequence[tuple[str, Role]], difference: Difference, width: int) -> list[Line]:
    """Return the body of a question about a suite: its path, texts with their roles, and a difference."""
    lines: list[Line] = [EMPTY]
    lines += with_margin(str(path), width, "strong")
    for text, role in texts:
        lines += with_margin(text, width, role)
    return [*lines, EMPTY, *difference.drawn(width), EMPTY]


EarlierDraftAnswer = Literal["take", "away", "later"]


class EarlierDraftScreen(QuestionScreen[EarlierDraftAnswer]):
    """Asks about unsaved changes of an earlier session. `when` is the time of the last change, as text."""

    TITLE_LINE = "Unsaved changes from an earlier session: take them?"

    def __init__(self, path: Path, when: str, difference: Difference, *, notice: str = "") -> None:
        parts: list[tuple[str, Role]] = [(f"Last typed {when}, never saved: {difference}.", "text")]
        if notice:
            parts.append((notice, "warned"))
        super().__init__(
            lambda width: difference_lines(path, parts, difference, width),
            [
                ("take", Option("take them", "as unsaved changes; Ctrl+Z undoes them", "as unsaved")),
                ("away", Option("throw away", "for good")),
                ("later", Option("later", "they stay, and are offered again", "offered again")),
            ],
            leaving="later",
            harmless=frozenset({"take"}),
            default="take",
        )


UnsavedAnswer = Literal["save", "drafts", "discard", "stay"]


class UnsavedScreen(QuestionScreen[UnsavedAnswer]):
    """Asks about unsaved changes when the app ends.

    `save_error` is the reason if drafts cannot be stored, or `None`."""

    TITLE_LINE = "Save before quitting?"

    def __init__(self, paths: Sequence[Path], save_error: str | None) -> None:
        answers: list[tuple[UnsavedAnswer, Option]] = [
            ("save", Option("save", "all of them, then quit")),
            ("drafts", Option("keep as drafts", "quit; they are offered at the next start", "offered again")),
            ("discard", Option("discard", "quit; the changes are gone", "all of it")),
            ("stay", Option("stay", "do not quit")),
        ]
        if save_error is not None:
            del answers[1]
        super().__init__(
            lambda width: _unsaved_lines(paths, save_error, width),
            answers,
            leaving="stay",
            harmless=frozenset({"save"} if save_error else {"save", "drafts"}),
            default="save",
        )


def _unsaved_lines(paths: Sequence[Path], save_error: str | None, width: int) -> list[Line]:
    room = max(width - 4, 10)
    lines: list[Line] = [EMPTY]
    lines += with_margin(f"{counted(len(paths), 'suite')} with unsaved changes:", width)
    for path in paths:
        lines += [(Span("    "), Span(row, "strong")) for row in wrap(one_line(str(path)), room - 2)]
    if save_error is not None:
        lines += with_margin(save_error, width, "error")
    return [*lines, EMPTY]


_OTHER_ROWS = 5
"""The rows of border, title, field and keys."""


class SaveAsScreen(Dialog[Path]):
    """Asks for the path of a new file. `refusal` returns why a path cannot be used, `None` if it can."""

    TITLE_LINE = "Save under another name"
    DEFAULT_CSS = """
    SaveAsScreen Input { height: 1; border: none; padding: 0 1; margin: 0 1; background: $background; }
    """
    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(self, proposed: Path, explanation: str, refusal: Callable[[Path], str | None]) -> None:
        super().__init__(keys_line(("Enter", "save"), ("Esc", "not now")))
        self._proposed = proposed
        self._explanation = explanation
        self._refusal = refusal

    def body(self) -> ComposeResult:
        yield TextView(self._lines, "reading")
        yield SafeInput(str(self._proposed), widget_id="name")

    def _make_room(self, height: int) -> None:
        self.query_one("#reading").styles.max_height = max(height - _OTHER_ROWS, 1)

    def on_mount(self) -> None:
        self.set_focus(self.query_one("#name", Input))

    def _lines(self, width: int) -> list[Line]:
        return [EMPTY, *with_margin(self._explanation, width), EMPTY]

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        if not event.value.strip():
            return
        path = named_path(Path(), event.value.strip(), self._refusal)
        if isinstance(path, Path):
            self.dismiss(path)
        else:
            self.show_notice(path)
