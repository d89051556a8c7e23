"""The actions of the TOML of a case, or of a suite's settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.show.glyphs import GLYPHS
from workbench.tui.kit.actions import Action, MainActions, MainSituation, action, key_for

if TYPE_CHECKING:
    from workbench.tui.case.toml.part import TomlPart


def _edit(now: MainSituation) -> str | None:
    return now.not_editable


def _outside(now: MainSituation) -> str | None:
    return now.not_editable or (None if now.editor else now.no_editor)


def _shown(now: MainSituation) -> str | None:
    if now.view == "toml" and now.has_file:
        return None
    return f"show the TOML of a suite or a case first ({key_for('edit.view')})"


class TomlActions(MainActions):
    """Edits the TOML of a case or a suite's settings."""

    GROUP = "Editing"

    @action(
        "enter",
        "Type in the TOML, at the cursor",
        name="toml.edit",
        where="toml",
        label="type",
        needs=_edit,
        changes=True,
        listed=False,
    )
    def edit(self) -> None:
        """Type at the cursor."""
        self.app.main.case_pane.edit()

    @action("f8", "Next line with a problem", name="toml.problem", where="toml", needs=_shown, words="error")
    def next_problem(self) -> None:
        """Go to the next line with a problem."""
        self.app.main.case_pane.toml.go_to_problem()

    @action("/", "Search the TOML", name="toml.find", where="toml", label="find", needs=_shown)
    def find(self) -> None:
        """Search the TOML."""
        self.app.main.go_to("case")
        self.app.main.case_pane.toml.search()

    @action("ctrl+g", "Next match of the search", name="toml.find_next", where="toml", needs=_shown, listed=False)
    def find_next(self) -> None:
        """Go to the next match."""
        self.app.main.case_pane.toml.find(1)

    @action(
        "f4",
        "Open the TOML that is selected in your editor",
        name="toml.outside",
        needs=_outside,
        changes=True,
        words="external vim nano",
    )
    def edit_outside(self) -> None:
        """Edit what is selected in the user's editor."""
        from workbench.tui.case.toml.part import part_of

        part = part_of(self.app.selection.row)
        if part is None:
            return
        before = part.text
        text = self.app.editor.changed(before, part.file_name, self.app.main.case_pane.line_of(part))
        if text is not None and text.rstrip("\n") == before.rstrip("\n"):
            self.app.announce(f"Nothing was changed in {part.name}")
        elif text is not None:
            self._take(part, text)

    def _take(self, part: TomlPart, text: str) -> None:
        from workbench.suite.splice import SpliceError

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
"""The keys shown in the key bar while text is typed."""
