"""The dialogs of a new variant: the text that it changes, and the change before it is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from textual import events, on
from textual.app import ComposeResult

from workbench.show.glyphs import GLYPHS
from workbench.show.spans import EMPTY, Line, Role, Span
from workbench.show.visible import one_line
from workbench.tui.kit.asking import AskScreen
from workbench.tui.kit.dialogs import Dialog, Option, ReadLines, keys_line
from workbench.tui.kit.text_editor import TextEditor
from workbench.tui.lines.difference import difference
from workbench.tui.lines.highlight import PlainColours
from workbench.tui.lines.prose import with_margin

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench

_MIN_ROWS = 4
_AROUND = 11
"""The rows of the frame, the title, the explanation, the keys, and the screen around them."""


class VariantTextScreen(Dialog[str]):
    """Asks for another text in place of the present one, beginning with `text`. Closes with it once it differs."""

    HAS_SUBJECT: ClassVar[bool] = False
    DEFAULT_CSS = """
    VariantTextScreen > Vertical { width: 110; }
    VariantTextScreen TextEditor { background: $panel; }
    """

    def __init__(self, stage: Workbench, title: str, explanation: str, present: str, text: str) -> None:
        self.TITLE_LINE = title  # type: ignore[misc]
        self._stage = stage
        self._explanation = explanation
        self._present, self._text = present, text
        super().__init__(keys_line(("Ctrl+S", "name it"), ("Esc", "leave")))

    def body(self) -> ComposeResult:
        yield ReadLines(lambda width: [EMPTY, *with_margin(self._explanation, width, "muted"), EMPTY], "reading")
        yield TextEditor(self._tell, PlainColours, "variant-text")

    def on_mount(self) -> None:
        editor = self.query_one(TextEditor)
        editor.assist = self._assist
        editor.begin(self._text, 1, (0, 0), 0)
        editor.typed.move("text_end")
        self.set_focus(editor)
        self._fit()

    def _assist(self, key: str) -> bool:
        # Not a binding, which would come before letters of the same burst.
        if key == "ctrl+s":
            self._take()
        return key == "ctrl+s"

    def _take(self) -> None:
        """Close with the text, or say why it cannot be taken."""
        text = self.query_one(TextEditor).typed.text.strip()
        if not text:
            self._say("Write a text: an empty one cannot be told from none", "warned", GLYPHS.warned)
        elif text == self._present.strip():
            self._say("This is the present text: write another one", "warned", GLYPHS.warned)
        else:
            self.dismiss(text)

    @on(TextEditor.Ended)
    def _ended(self) -> None:
        self.action_leave()

    @on(TextEditor.Copied)
    def _copied(self, event: TextEditor.Copied) -> None:
        self._stage.copy(event.text, event.what, self._say)

    def _say(self, text: str, role: Role = "text", sign: str = "") -> None:
        self.say_keys((Span(f" {sign} {one_line(text)}", role),))

    def _tell(self, text: str, step: int) -> None:
        self.say_keys(self._keys)
        self._fit()

    def on_resize(self, event: events.Resize) -> None:
        self._fit()

    def _fit(self) -> None:
        editor = self.query_one(TextEditor)
        rows = max(editor.line_count(), _MIN_ROWS)
        editor.styles.height = max(min(rows, self.app.size.height - _AROUND), 1)


WhatNext = Literal["run", "write", "no"]


class VariantScreen(AskScreen[WhatNext]):
    """Shows a variant as the difference of a text, and what is written into the suite, before it is."""

    DEFAULT_CSS = "VariantScreen > Vertical { width: 110; }"
    HAS_SUBJECT: ClassVar[bool] = False

    def __init__(self, name: str, what: str, texts: tuple[str, str], documents: tuple[str, str], file: str) -> None:
        self.TITLE_LINE = f"The variant {one_line(name)}"  # type: ignore[misc]
        text, written = difference(*texts), difference(*documents)

        def lines(width: int) -> list[Line]:
            return [
                EMPTY,
                *with_margin(f"{what}: {text}.", width),
                *text.drawn(width),
                EMPTY,
                *with_margin(f"Written into {one_line(file)}, in one undo step:", width),
                *written.drawn(width),
                EMPTY,
            ]

        answers: list[tuple[WhatNext, Option]] = [
            ("run", Option("write and run", "as written and as the variant, and compare them", "and compare")),
            ("write", Option("write", "the variant into the suite, and run nothing", "run nothing")),
            ("no", Option("back", "to the text: nothing is written yet", "")),
        ]
        super().__init__(lines, answers, leaving="go back to the text")
