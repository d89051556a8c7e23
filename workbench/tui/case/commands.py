"""Editing in the case pane, undo and redo, and the user's editor."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from workbench.authoring.open_suite import OpenSuite
from workbench.authoring.workspace import OpenSuites, SuiteChange, redo, undo
from workbench.show.glyphs import GLYPHS
from workbench.suite.splice import SpliceError
from workbench.tui.case.form.view import FormView
from workbench.tui.case.pane import CasePane
from workbench.tui.case.toml.part import TomlPart, part_of
from workbench.tui.kit.outside_editing import OutsideEditing
from workbench.tui.kit.stage import Announce, Panes, Stage
from workbench.tui.tree.selection import Selection
from workbench.tui.tree.state import Row


class EditingCommands:
    """Handles editing, undo, redo, and the user's editor for a suite's file."""

    def __init__(
        self,
        stage: Stage,
        selection: Selection,
        panes: Panes,
        case_pane: CasePane,
        editor: OutsideEditing,
        read_again: Callable[[str | None], object],
    ) -> None:
        self._stage = stage
        self._selection = selection
        self._open_suites = selection.open_suites
        self._panes = panes
        self._case_pane = case_pane
        self._editor = editor
        self._read_again = read_again
        self.methods: dict[str, Callable[[], object]] = {
            "edit": case_pane.edit,
            "edit.view": self._other_view,
            "edit.undo": partial(self._go, undo, "Undone"),
            "edit.redo": partial(self._go, redo, "Redone"),
            "edit.file": self._open_in_editor,
        }

    def _other_view(self) -> None:
        self._case_pane.show_as("toml" if self._case_pane.view == "form" else "form")
        self._panes.go_to("case")

    def _go(self, go: Callable[[OpenSuite, OpenSuites], list[SuiteChange] | str], what: str) -> None:
        """Undo or redo. If a field contains invalid text, it is only closed, because that text is not part of any
        change."""
        if (refused := self._case_pane.give_up_refused()) is not None:
            reason = f"Its text is invalid: {refused}. Enter in its cell shows it again"
            text = f"The field was closed, and nothing else was {what.lower()}. {reason}"
            self._stage.announce(text, "warned", GLYPHS.warned)
        elif (suite := self._selection.suite) is not None:
            shown = self._case_pane.shown
            self._went(go(suite, self._open_suites), what)
            self._case_pane.go_to_change(shown)

    def _went(self, went: list[SuiteChange] | str, what: str) -> None:
        if isinstance(went, str):
            self._stage.announce(f"Nothing was changed: {went}", "warned", GLYPHS.warned)
            return
        for _, change in went:
            self._stage.announce(f"{what}: {change.summary}{self._open_suites.and_moved}")

    def _open_in_editor(self) -> None:
        row = self._selection.row
        if row is not None and row.open is not None and self._editor.command is not None:
            self._read_again(self._editor.open_file(row.open.path, _line_of(row, row.open)))


def _line_of(row: Row, suite: OpenSuite) -> int:
    if row.problem is not None:
        return row.problem.line or 1
    if row.case is not None and suite.file.suite is not None:
        return suite.file.case_lines(row.case.index)[0]
    return next((problem.line for problem in suite.file.errors if problem.line), 1)


class FormCommands:
    """The keys of the form."""

    def __init__(self, form: Callable[[], FormView], announce: Announce, new_case: Callable[[], object]) -> None:
        def reporting(do: Callable[[FormView], str | None]) -> Callable[[], None]:
            """Return a function that changes the form, and announces why if that fails."""

            def perform() -> None:
                if (why := do(form())) is not None:
                    announce(why[:1].upper() + why[1:], "warned", GLYPHS.warned)

            return perform

        add = reporting(FormView.add)

        def add_or_begin() -> None:
            """Add an element of the list at the cursor. Elsewhere, a suite without cases gets its first one."""
            begin = form().page.begins_with_case
            (new_case if begin else add)()

        self.methods: dict[str, Callable[[], object]] = {
            "form.edit": lambda: form().edit(),
            "form.left": lambda: form().next_cell(-1),
            "form.right": lambda: form().next_cell(1),
            "form.add": add_or_begin,
            "form.duplicate": reporting(FormView.duplicate),
            "form.remove": reporting(FormView.take_away),
            "form.up": reporting(lambda shown: shown.move(-1)),
            "form.down": reporting(lambda shown: shown.move(1)),
            "form.group": reporting(FormView.group),
            "form.ungroup": reporting(FormView.ungroup),
            "form.every": lambda: form().show_every_key(),
        }


class TomlCommands:
    """The keys of the TOML of a case."""

    def __init__(
        self, stage: Stage, selection: Selection, panes: Panes, case_pane: CasePane, editor: OutsideEditing
    ) -> None:
        self._stage = stage
        self._selection = selection
        self._panes = panes
        self._case_pane = case_pane
        self._editor = editor
        self.methods: dict[str, Callable[[], object]] = {
            "toml.edit": case_pane.edit,
            "toml.problem": lambda: case_pane.toml.go_to_problem(),
            "toml.find": self._find,
            "toml.find_next": lambda: case_pane.toml.find(1),
            "toml.outside": self._edit_outside,
        }

    def _find(self) -> None:
        self._panes.go_to("case")
        self._case_pane.toml.search()

    def _edit_outside(self) -> None:
        part = part_of(self._selection.row)
        if part is None:
            return
        before = part.text
        text = self._editor.changed(before, part.file_name, self._case_pane.line_of(part))
        if text is not None and text.rstrip("\n") == before.rstrip("\n"):
            self._stage.announce(f"Nothing was changed in {part.name}")
        elif text is not None:
            self._take(part, text)

    def _take(self, part: TomlPart, text: str) -> None:
        part.suite.end_group()
        try:
            document = part.with_text(text)
        except SpliceError as error:
            self._stage.announce(str(error), "error", GLYPHS.error)
            return
        self._selection.open_suites.change(part.suite, document, f"Changing {part.name} in your editor", case=part.key)
        wrong = part.problems
        if wrong:
            self._stage.announce(f"{part.name[:1].upper()}{part.name[1:]}: {wrong[0].message}", "warned", GLYPHS.warned)
        else:
            self._stage.announce(f"Updated {part.name} from your editor", "passed", GLYPHS.passed)
