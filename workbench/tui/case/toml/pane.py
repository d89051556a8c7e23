"""The TOML of a case, of a suite's head, or of a whole file: to read, search and edit."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message as TextualMessage
from textual.widget import Widget

from workbench.authoring.document import Document
from workbench.trajectory.events import ToolDefinition
from workbench.tui.case.excerpt_view import CasePicture, CaseView
from workbench.tui.case.toml.actions import TomlActions
from workbench.tui.case.toml.completing import TomlCompleting
from workbench.tui.case.toml.part import TomlPart, found_in
from workbench.tui.kit.actions import actions_at, bindings_for
from workbench.tui.kit.search_bar import SearchedPane
from workbench.tui.kit.suggestions import CompletionList, ProblemList
from workbench.tui.kit.text_editor import TomlEditor
from workbench.tui.kit.typed_text import Place, line_within, marks

Change = Callable[[TomlPart, Document, str, Hashable], None]
"""Applies typed text: the part, the new document, a description, and the undo group."""


class TomlPane(SearchedPane):
    """The read-only view, replaced while typing by the editor with the problems below it."""

    DEFAULT_CSS = """
    TomlPane { height: 1fr; layers: default completions; }
    TomlPane > CompletionList { layer: completions; }
    TomlPane > TomlEditor, TomlPane > ProblemList { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings_for(actions_at("toml", TomlActions))

    class Turned(TextualMessage):
        """Posted when typing begins or ends."""

    def __init__(self, change: Change, widget_id: str | None = None) -> None:
        super().__init__(widget_id)
        self.part: TomlPart | None = None
        """The displayed part."""
        self._change = change
        self._typing = False
        self._told = ""
        """The part's text as the editor last saw it; a different one comes from elsewhere."""
        self._telling = False
        self._column = 0
        """The character where the current match begins, in the view."""
        self._sessions = 0
        self.tools: Callable[[], Sequence[ToolDefinition]] = tuple
        """Returns the known tools of the displayed part."""

    def compose(self) -> ComposeResult:
        yield CaseView("case")
        yield TomlEditor(self._tell, "toml-editor")
        yield ProblemList("toml-problems")
        yield CompletionList()

    def on_mount(self) -> None:
        self.editor.assist = self._completing.take_key

    @property
    def view(self) -> CaseView:
        return self.query_one(CaseView)

    @property
    def editor(self) -> TomlEditor:
        return self.query_one(TomlEditor)

    @property
    def typing(self) -> bool:
        """Whether the text is being edited."""
        return self._typing

    @property
    def text(self) -> str:
        """The selection while typing, otherwise all of the text."""
        if self._typing:
            return self.editor.typed.selected or self.editor.typed.text
        return self.view.excerpt.text if self.view.excerpt is not None else ""

    @property
    def line(self) -> int:
        """The line of the part, from 0, under the cursor."""
        return self.editor.typed.cursor[0] if self._typing else self.view.line

    @property
    def target(self) -> Widget:
        """The widget that gets the focus of the pane."""
        return self.editor if self._typing else self.view

    @cached_property
    def _completing(self) -> TomlCompleting:
        return TomlCompleting(self.editor, self.query_one(CompletionList), lambda: self.tools())

    # Display

    def show(self, part: TomlPart | None, picture_of: Callable[[], CasePicture], *, is_same: bool) -> None:
        """Show a part, or a message if there is none. `is_same` is whether it is the part shown before. While it is
        edited, changes from elsewhere, such as undo, are taken over; a different part ends typing."""
        if self._typing and self.part is not None:
            if self._telling:
                return
            if part is not None and self._is_typed(part, is_same):
                if self.part.index is not None:
                    self.part = part
                self._follow()
                return
            self._stop()
        self.part = part
        picture = picture_of()
        self.view.show(picture.excerpt, picture.message, picture.line)
        self._find()

    def _is_typed(self, part: TomlPart, is_same: bool) -> bool:
        typed = self.part
        if typed is None or part.suite is not typed.suite:
            return False
        return typed.index is None or (is_same and part.index is not None)

    def _follow(self) -> None:
        """Take over changes from elsewhere, and current problems."""
        assert self.part is not None
        if self.part.text != self._told:
            self._told = self.part.text
            self.editor.take(self._told)
        self._show_problems()
        self._find()

    def _show_problems(self) -> None:
        if self.part is not None:
            first, problems = self.part.first, self.part.problems
            self.editor.mark(marks(problems, first, self.editor.line_count()), first)
            self.query_one(ProblemList).show(problems)

    # Typing

    def begin(self) -> None:
        """Begin to edit the text, at the line under the cursor."""
        if self._typing or self.part is None:
            return
        view = self.view
        self._typing, self._told = True, self.part.text
        self._sessions += 1
        self.editor.begin(self._told, self.part.first, (view.line, 0), max(view.line - (view.cursor - view.top), 0))
        view.display, self.editor.display = False, True
        self._show_problems()
        self.query_one(ProblemList).display = bool(self.part.problems)
        self.screen.set_focus(self.editor)
        self.post_message(self.Turned())

    def end(self) -> None:
        """End editing. The text has already been applied."""
        if self._typing:
            line = self.editor.typed.cursor[0]
            self._stop()
            self.post_message(self.Turned())
            self.call_after_refresh(self.view.go_to, line)

    def _stop(self) -> None:
        self._typing = False
        self._completing.close()
        if self.part is not None:
            self.part.suite.end_group()
        had_focus = self.editor.has_focus
        self.editor.display = self.query_one(ProblemList).display = False
        self.view.display = True
        if had_focus:
            self.screen.set_focus(self.view)

    def _tell(self, text: str, step: int) -> None:
        part = self.part
        assert part is not None
        self._telling = True
        try:
            self._change(part, part.with_text(text), f"typing in {part.name}", (part.index, self._sessions, step))
        finally:
            self._telling = False
        self._told = part.text
        self._show_problems()
        self._find()

        self._completing.text_changed()

    @on(CompletionList.Chosen)
    def _completion_chosen(self, event: CompletionList.Chosen) -> None:
        event.stop()
        self._completing.choose(event.completion)

    @on(TomlEditor.Ended)
    def _ended(self) -> None:
        self.end()

    @on(CaseView.Chosen)
    async def _chosen(self) -> None:
        await self.run_action("screen.do('toml.edit')")

    # Problems

    def go_to_problem(self) -> None:
        """Move the cursor to the next line with a problem."""
        if self.part is None:
            return
        count = self.editor.line_count() if self._typing else len(self.part.text.split("\n"))
        lines = sorted(marks(self.part.problems, self.part.first, count))
        if lines:
            self._go_to(next((line for line in lines if line > self.line), lines[0]))

    @on(ProblemList.Chosen)
    def _problem_chosen(self, event: ProblemList.Chosen) -> None:
        event.stop()
        if self.part is not None:
            self._go_to(line_within(event.problem, self.part.first, self.editor.line_count()))
            self.target.focus()

    def go_to_text(self, text: str, column: int) -> None:
        """Move the cursor to a column of the first line that has a text, if there is one."""
        lines = self.part.text.split("\n") if self.part is not None else []
        at = next((at for at, line in enumerate(lines) if text in line), None)
        if at is not None:
            self._go_to(at, lines[at].index(text) + column)

    def _go_to(self, line: int, column: int | None = None) -> None:
        if self._typing:
            self.editor.go_to(line, column)
        else:
            self.view.go_to(line)

    # Searching

    def _go_to_match(self, step: int) -> None:
        places = self._places()
        if not places:
            return
        here = self.editor.typed.cursor if self._typing else (self.view.line, self._column)
        after = [place for place in places if place > here] if step > 0 else [p for p in places if p < here]
        at = (after or places)[0 if step > 0 else -1]
        self._column = at[1]
        self._go_to(*at)
        self._find(at)

    def _places(self) -> list[tuple[int, int]]:
        lines = self.editor.typed.lines if self._typing else self.view.excerpt.lines if self.view.excerpt else ()
        searched = self.searched
        return [(line, begin) for line, spans in found_in(lines, searched).items() for begin, _, _ in spans]

    def _find(self, current: Place | None = None) -> None:
        """Mark the matches of the search. `current` is the selected one."""
        searched = self.searched
        if self._typing:
            self.editor.highlight(found_in(self.editor.typed.lines, searched, current))
        elif self.view.excerpt is not None:
            self.view.highlight(found_in(self.view.excerpt.lines, searched, current))
        if searched:
            places = self._places()
            self.say_found((places.index(current) if current is not None else None, len(places)))

    def mark_found(self) -> None:
        self._find()

    def _take_keyboard(self) -> None:
        self.screen.set_focus(self.target)
