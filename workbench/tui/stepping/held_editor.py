"""The editor of text for a held run, below its trajectory, with problems shown while typing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widget import Widget

from workbench.show.highlight import Colours, JsonColours, PlainColours
from workbench.show.spans import EMPTY, Line, Span, spread
from workbench.tui.kit.actions import ANSWERS, HeldKind
from workbench.tui.kit.painting import Bar
from workbench.tui.kit.suggestions import ProblemList
from workbench.tui.kit.text_editor import TextEditor
from workbench.tui.kit.typed_text import marks
from workbench.tui.stepping.held_text import HeldText, in_words

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench

MIN_ROWS = 2
"""The minimum rows of the text. The maximum is half of the pane."""


class HeldEditor(Vertical):
    """An editor with, for results, a switch for tool errors. It closes only on request: text stays, whatever the run
    does."""

    DEFAULT_CSS = """
    HeldEditor { height: auto; }
    HeldEditor > Bar { background: $panel; }
    HeldEditor > ProblemList { display: none; max-height: 3; }
    """

    class Kept(Message):
        """Posted to send the text."""

    class Ended(Message):
        """Posted when typing ends without sending."""

    def __init__(self, stage: Workbench, held: HeldText, text: str, is_error: bool) -> None:
        super().__init__()
        self._stage = stage
        self.held = held
        self.is_error = is_error
        self.is_sending = False
        """Whether the text was sent and not answered yet."""
        self.refused = ""
        """Why the text was last refused."""
        self._begun = text
        self._undoable: list[str] = []
        self._redoable: list[str] = []
        self._known = (text, 0)
        """The last known text, and its undo step."""
        self._gone: str | None = None

    def compose(self) -> ComposeResult:
        yield Bar("held-title")
        colours: type[Colours] = PlainColours if self.held.kind == "message" else JsonColours
        yield TextEditor(self._tell, colours, "held-text")
        yield ProblemList("held-problems")

    def on_mount(self) -> None:
        editor = self.editor
        editor.assist = self._assist
        editor.begin(self._begun, 1, (0, 0), 0)
        if not self.held.original:  # continue a draft at its end
            editor.typed.move("text_end")
        self._say()
        self.screen.set_focus(editor)

    @property
    def editor(self) -> TextEditor:
        """The text editor."""
        return self.query_one(TextEditor)

    @property
    def typing(self) -> HeldKind | None:
        """The kind of text being typed, while the editor has the focus."""
        return self.held.kind if self.editor.has_focus else None

    @property
    def text(self) -> str:
        """The current text."""
        return self.editor.typed.text if self.is_mounted else self._begun

    @property
    def is_changed(self) -> bool:
        """Whether the text differs from the original."""
        return (self.text, self.is_error) != (self.held.original, self.held.is_error)

    def follow(self) -> None:
        """Update the display if the text can no longer be sent."""
        if self.is_mounted and self.held.why_gone != self._gone:
            self._say()

    def undo(self, *, again: bool = False) -> None:
        """Undo or redo."""
        source, target = (self._redoable, self._undoable) if again else (self._undoable, self._redoable)
        if source:
            target.append(self._known[0])
            self._known = (source.pop(), -1)
            self.editor.take(self._known[0])
            self._say()

    def take(self, text: str) -> None:
        """Replace the text by one from elsewhere."""
        self.editor.take(text)
        self._tell(text, -1)

    def switch_error(self) -> None:
        """Switch whether it is a tool error."""
        self.is_error = not self.is_error
        self._say()

    def go_to_problem(self) -> None:
        """Go to the error."""
        if (at := self.held.mistake_at(self.text)) is not None:
            self.editor.go_to(*at)

    def _tell(self, text: str, step: int) -> None:
        before, step_before = self._known
        if step != step_before or not self._undoable:
            self._undoable.append(before)
        self._redoable.clear()
        self._known = (text, step)
        self._say()
        if self.refused:
            self._stage.end_notice(self.refused)
            self.refused = ""

    def _say(self) -> None:
        self._gone = self.held.why_gone
        problems = self.held.problems(self.text) if self._gone is None else self.held.gone_problems
        self.editor.mark(marks([each for each in problems if each.line], 1, self.editor.line_count()), 1)
        self.query_one(ProblemList).show([in_words(each) for each in problems])
        self.query_one("#held-title", Bar).say(self._title)
        self.fit()

    def _title(self, width: int) -> Line:
        sign = "x" if self.is_error else " "
        switch: Line = EMPTY
        if self.held.kind in ANSWERS:
            switch = (Span(f"[{sign}] tool error ", "failed" if self.is_error else "muted"),)
        return spread((Span(f" {self.held.title}", "strong"),), switch, width)

    def fit(self) -> None:
        """Adjust the height to the text and the available room."""
        assert isinstance(self.parent, Widget)
        most = max(self.parent.size.height // 2 - 1, MIN_ROWS)
        rows = min(max(self.editor.line_count(), MIN_ROWS), most)
        if self.editor.styles.height is None or self.editor.styles.height.value != rows:
            self.editor.styles.height = rows

    def _assist(self, key: str) -> bool:
        one_line = self.held.kind != "arguments" and self.editor.line_count() == 1
        if key == "ctrl+enter" or (key == "enter" and one_line):
            self.post_message(self.Kept())
            return True
        return False

    @on(TextEditor.Ended)
    def _ended(self, event: TextEditor.Ended) -> None:
        event.stop()
        self.post_message(self.Ended())

    @on(ProblemList.Chosen)
    def _problem_chosen(self, event: ProblemList.Chosen) -> None:
        event.stop()
        self.go_to_problem()
        self.editor.focus()

    def on_click(self, event: events.Click) -> None:
        if event.widget is self.query_one("#held-title") and self.held.kind in ANSWERS:
            self.switch_error()
