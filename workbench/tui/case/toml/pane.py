"""The view and the editor of a case, a suite's settings, or a whole file as TOML."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message as TextualMessage
from textual.widget import Widget

from workbench.authoring.case_list import line_of_row, row_file
from workbench.authoring.document import HEAD, CaseOutline, Document
from workbench.authoring.open_suite import OpenSuite
from workbench.dataclasses import dataclass
from workbench.numerals import count_text
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import Role
from workbench.suite.problems import Problem
from workbench.suite.suite_text import SpliceError
from workbench.trajectory.events import ToolDefinition
from workbench.tui.case.excerpt_view import CasePicture, CaseView
from workbench.tui.case.toml.completions import TomlCompleting
from workbench.tui.kit.actions import Action, MainActions, MainSituation, action, actions_at, bindings_for, key_for
from workbench.tui.kit.edited_text import MAX_LINE_CHARS, MAX_SHOWN_LINES, Found, Place, line_within, marks
from workbench.tui.kit.search_bar import SearchedPane
from workbench.tui.kit.suggestions import CompletionList, ProblemList
from workbench.tui.kit.text_editor import TomlEditor
from workbench.tui.tree.state import Row


@dataclass(frozen=True)
class TomlPart:
    """A part of an open suite. `index` is the index of a case, `HEAD` for the settings, `None` for the whole file."""

    suite: OpenSuite
    index: int | None
    key: str | None = None

    @property
    def text(self) -> str:
        """The current text.

        Raises IndexError if the case no longer exists."""
        document = self.suite.document
        if self.index is None:
            return document.text
        return document.block(self.index)

    @property
    def first(self) -> int:
        """The number of the part's first line in the file."""
        if self.index is None or self.index == HEAD:
            return 1
        return self.suite.document.first_line(self.index)

    @property
    def problems(self) -> tuple[Problem, ...]:
        if self.index is None:
            return self.suite.file.problems
        return self.suite.problems_of(self.index)

    @property
    def name(self) -> str:
        """The name of the part, as used in a sentence."""
        if self.index is None:
            return self.suite.path.name
        case = self._case
        if case is not None:
            return case.name
        return f"the head of {self.suite.path.name}"

    @property
    def file_name(self) -> str:
        """The name of a file that contains only this part."""
        case, name = self._case, self.suite.path.stem
        if case is not None:
            name = case.id
        stem = re.sub(r"[^\w-]+", "-", name).strip("-")
        return f"{stem[:60] or 'suite'}.toml"

    @property
    def _case(self) -> CaseOutline | None:
        return next((case for case in self.suite.cases if case.index == self.index), None)

    @property
    def too_large(self) -> str | None:
        """Why the part is too large for the built-in editor, `None` if it is not."""
        lines = self.text.split("\n")
        longest = max(map(len, lines))
        if len(lines) > MAX_SHOWN_LINES:
            return f"{self.name} has {count_text(len(lines))} lines: F4 opens it in your editor"
        if longest > MAX_LINE_CHARS:
            return f"{self.name} has a line of {count_text(longest)} characters: F4 opens it in your editor"
        return None

    def with_text(self, text: str) -> Document:
        """Return the document with `text` in place of this part. The text may be invalid TOML."""
        document = self.suite.document
        if self.index is None:
            return Document.of(text)
        return document.with_block(self.index, text)


def part_of(row: Row | None) -> TomlPart | None:
    """Return the part displayed for a row of the tree, `None` if the row has no suite."""
    if row is None or row.open is None:
        return None
    if not row.open.document.in_blocks:
        return TomlPart(row.open, None)
    if row.case is None:
        return TomlPart(row.open, HEAD)
    return TomlPart(row.open, row.case.index, row.case.key)


def found_in(lines: Sequence[str], text: str, current: Place | None = None) -> Found:
    """Return where a text occurs in lines, ignoring case. The match at `current` is highlighted differently."""
    if not text.strip():
        return {}
    pattern = re.compile(re.escape(text), re.IGNORECASE)
    found: dict[int, list[tuple[int, int, Role]]] = {}
    for index, line in enumerate(lines):
        for match in pattern.finditer(line):
            role: Role = "match"
            if (index, match.start()) == current:
                role = "badge"
            found.setdefault(index, []).append((*match.span(), role))
    return found


def _edit(situation: MainSituation) -> str | None:
    return situation.why_row_not_editable


def _outside(situation: MainSituation) -> str | None:
    if situation.why_row_not_editable or situation.editor:
        return situation.why_row_not_editable
    return situation.why_no_editor


def _shown(situation: MainSituation) -> str | None:
    if situation.view == "toml" and situation.has_file:
        return None
    return f"show the TOML of a suite or a case first ({key_for('edit.view')})"


class TomlActions(MainActions):
    """The actions on the TOML of a case or of a suite's settings."""

    GROUP = "Editing"

    @action(
        "enter",
        "Type in the TOML, at the cursor",
        name="toml.edit",
        scope="toml",
        label="type",
        needs=_edit,
        changes=True,
        listed=False,
    )
    def edit(self) -> None:
        self.app.main.case_pane.edit()

    @action("f8", "Next line with a problem", name="toml.problem", scope="toml", needs=_shown, words="error")
    def next_problem(self) -> None:
        self.app.main.case_pane.toml.go_to_problem()

    @action("/", "Search the TOML", name="toml.find", scope="toml", label="find", needs=_shown)
    def find(self) -> None:
        self.app.main.go_to("case")
        self.app.main.case_pane.toml.search()

    @action("ctrl+g", "Next match of the search", name="toml.find_next", scope="toml", needs=_shown, listed=False)
    def find_next(self) -> None:
        self.app.main.case_pane.toml.find(1)

    @action(
        "f4",
        "Open the selected TOML, or the file of a row, in your editor",
        name="toml.outside",
        needs=_outside,
        changes=True,
        words="external vim nano",
    )
    def edit_outside(self) -> None:
        """Edit the selected part in the user's editor. A case from a table file opens that file at the case's row."""
        row = self.app.selection.row
        part = part_of(row)
        if row is None or part is None:
            return
        if row.case is not None and row.case.is_row and (file := row_file(part.suite, row.case)):
            opened = self.app.editor.open_file(part.suite.path.parent / file, line_of_row(part.suite, row.case))
            self.app.services.reader.read_soon(opened)
            return
        before = part.text
        text = self.app.editor.changed(before, part.file_name, self.app.main.case_pane.line_of(part))
        if text is not None and text.rstrip("\n") == before.rstrip("\n"):
            self.app.announce(f"Nothing was changed in {part.name}")
        elif text is not None:
            self._apply_text(part, text)

    def _apply_text(self, part: TomlPart, text: str) -> None:
        # Without a new undo step, undo would revert the change together with the last typing.
        part.suite.end_group()
        try:
            document = part.with_text(text)
        except SpliceError as error:
            self.app.announce(str(error), "error", GLYPHS.error)
            return
        self.app.open_suites.change(part.suite, document, f"Changing {part.name} in your editor", case=part.key)
        wrong = part.problems
        if wrong:
            self.app.announce(f"{part.name[:1].upper()}{part.name[1:]}: {wrong[0].message}", "warned", GLYPHS.warned)
        else:
            self.app.announce(f"Updated {part.name} from your editor", "passed", GLYPHS.passed)


TYPING_TOML: tuple[Action, ...] = (
    Action("toml.end", "Done typing", ("escape",), "toml", "done"),
    Action("toml.problem", "Next problem", ("f8",), "toml", "next problem"),
    Action("toml.outside", "Your editor", ("f4",), "toml", "your editor"),
    Action("edit.undo", "Undo", ("ctrl+z",), "toml", "undo"),
)
"""Actions of the key bar while the user types."""


Change = Callable[[TomlPart, Document, str, Hashable], None]
"""Applies typed text. Arguments: the part, the new document, a description, and the undo group."""


class TomlPane(SearchedPane):
    """The TOML of a part, read-only. While the user edits, an editor and a list of problems replace it."""

    DEFAULT_CSS = """
    TomlPane { height: 1fr; layers: default completions; }
    TomlPane > CompletionList { layer: completions; }
    TomlPane > TomlEditor, TomlPane > ProblemList { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings_for(actions_at("toml", TomlActions))

    class Turned(TextualMessage):
        """Posted when editing begins or ends."""

    def __init__(self, change: Change, widget_id: str | None = None) -> None:
        super().__init__(widget_id)
        self.part: TomlPart | None = None
        """The displayed part."""
        self._change = change
        self._typing = False
        self._editor_text = ""
        """The text in the editor. After a change from elsewhere, the part has a different text."""
        self._is_applying = False
        """Whether typed text is being applied. Applying the text shows the part again."""
        self._column = 0
        """The column of the selected match in the view. The view's cursor is a whole line."""
        self._sessions = 0
        """The number of typing sessions. No undo step spans two sessions."""
        self.tools: Callable[[], Sequence[ToolDefinition]] = tuple
        """Returns the known tools of the displayed part."""

    def compose(self) -> ComposeResult:
        yield CaseView("case")
        yield TomlEditor(self._text_changed, "toml-editor")
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
        return self._typing

    @property
    def text(self) -> str:
        """The selected text while the user types, otherwise the whole text."""
        if self._typing:
            return self.editor.typed.selected or self.editor.typed.text
        if self.view.excerpt is not None:
            return self.view.excerpt.text
        return ""

    @property
    def line(self) -> int:
        """The line of the part under the cursor (from 0)."""
        if self._typing:
            return self.editor.typed.cursor[0]
        return self.view.line

    @property
    def target(self) -> Widget:
        """The widget that gets the focus of the pane."""
        if self._typing:
            return self.editor
        return self.view

    @cached_property
    def _completing(self) -> TomlCompleting:
        return TomlCompleting(self.editor, self.query_one(CompletionList), lambda: self.tools())

    # Display

    def show(self, part: TomlPart | None, picture_of: Callable[[], CasePicture], *, is_same: bool) -> None:
        """Show a part, or a message if there is none. `is_same` is whether `part` is already displayed.

        While the user edits, changes made elsewhere, such as undo, appear in the editor. Showing a different part ends
        the editing."""
        if self._typing and self.part is not None:
            if self._is_applying:
                return
            if part is not None and self._is_typed(part, is_same):
                # The index of the edited case changes when a case is added above it. An editor of the whole file keeps
                # its part.
                if self.part.index is not None:
                    self.part = part
                self._follow()
                return
            self._stop()
        self.part = part
        picture = picture_of()
        self.view.show(picture.excerpt, picture.message, picture.line)
        self._highlight_matches()

    def _is_typed(self, part: TomlPart, is_same: bool) -> bool:
        typed = self.part
        if typed is None or part.suite is not typed.suite:
            return False
        # Typing may make the text of a whole file valid. The row then shows a case, but the editor keeps the whole
        # file.
        return typed.index is None or (is_same and part.index is not None)

    def _follow(self) -> None:
        assert self.part is not None
        if self.part.text != self._editor_text:
            self._editor_text = self.part.text
            self.editor.set_text(self._editor_text)
        self._show_problems()
        self._highlight_matches()

    def _show_problems(self) -> None:
        if self.part is not None:
            first, problems = self.part.first, self.part.problems
            self.editor.mark(marks(problems, first, self.editor.line_count()), first)
            self.query_one(ProblemList).show(problems)

    # Typing

    def begin(self) -> None:
        """Begin to edit the text at the line under the cursor."""
        if self._typing or self.part is None:
            return
        view = self.view
        self._typing, self._editor_text = True, self.part.text
        self._sessions += 1
        top = max(view.line - (view.cursor - view.top), 0)
        self.editor.begin(self._editor_text, self.part.first, (view.line, 0), top)
        view.display, self.editor.display = False, True
        self._show_problems()
        self.query_one(ProblemList).display = bool(self.part.problems)
        self.screen.set_focus(self.editor)
        self.post_message(self.Turned())

    def end(self) -> None:
        """Close the editor. Its text needs no saving here, because it was applied while the user typed."""
        if self._typing:
            line = self.editor.typed.cursor[0]
            self._stop()
            self.post_message(self.Turned())
            # The view shows the new text only after `Turned` was handled.
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

    def _text_changed(self, text: str, step: int) -> None:
        part = self.part
        assert part is not None
        self._is_applying = True
        try:
            self._change(part, part.with_text(text), f"typing in {part.name}", (part.index, self._sessions, step))
        finally:
            self._is_applying = False
        self._editor_text = part.text
        self._show_problems()
        self._highlight_matches()
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
        """Move the cursor to the next line with a problem. After the last problem, start again at the first."""
        if self.part is None:
            return
        count = len(self.part.text.split("\n"))
        if self._typing:
            count = self.editor.line_count()
        lines = sorted(marks(self.part.problems, self.part.first, count))
        if lines:
            self._go_to(next((line for line in lines if line > self.line), lines[0]))

    @on(ProblemList.Chosen)
    def _problem_chosen(self, event: ProblemList.Chosen) -> None:
        event.stop()
        if self.part is not None:
            self._go_to(line_within(event.problem, self.part.first, self.editor.line_count()))
            self.target.focus()

    def _go_to(self, line: int, column: int | None = None) -> None:
        if self._typing:
            self.editor.go_to(line, column)
        else:
            self.view.go_to(line)

    # Searching

    def _go_to_match(self, step: int) -> None:
        places = self._match_places()
        if not places:
            return
        here = (self.view.line, self._column)
        if self._typing:
            here = self.editor.typed.cursor
        # The search wraps around at both ends.
        if step > 0:
            at = next((place for place in places if place > here), places[0])
        else:
            at = next((place for place in reversed(places) if place < here), places[-1])
        self._column = at[1]
        self._go_to(*at)
        self._highlight_matches(at)

    def _match_places(self) -> list[tuple[int, int]]:
        lines: Sequence[str] = ()
        if self._typing:
            lines = self.editor.typed.lines
        elif self.view.excerpt is not None:
            lines = self.view.excerpt.lines
        places: list[tuple[int, int]] = []
        for line, spans in found_in(lines, self.searched).items():
            places += [(line, begin) for begin, _, _ in spans]
        return places

    def _highlight_matches(self, current: Place | None = None) -> None:
        searched = self.searched
        if self._typing:
            self.editor.highlight(found_in(self.editor.typed.lines, searched, current))
        elif self.view.excerpt is not None:
            self.view.highlight(found_in(self.view.excerpt.lines, searched, current))
        if searched:
            places = self._match_places()
            at: int | None = None
            if current is not None:
                at = places.index(current)
            self.show_match_count((at, len(places)))

    def mark_found(self) -> None:
        self._highlight_matches()

    def _take_keyboard(self) -> None:
        self.screen.set_focus(self.target)
