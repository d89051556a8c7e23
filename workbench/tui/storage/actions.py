"""The actions that save suites and reload suites from disk."""

from __future__ import annotations

from workbench.show.glyphs import GLYPHS
from workbench.tui.kit.actions import MainActions, MainSituation, action, key_for


def _save(situation: MainSituation) -> str | None:
    if not situation.has_file:
        return "put the cursor on a suite or a case"
    if situation.is_deleted:
        return f"the file no longer exists: {key_for('edit.undo')} restores its text, then save it again"
    if situation.is_unsaved:
        return None
    return "there is nothing to save: the suite is the same as on disk"


def _save_all(situation: MainSituation) -> str | None:
    if situation.dirty_suites:
        return None
    return "there is nothing to save"


def _save_as(situation: MainSituation) -> str | None:
    return situation.why_row_not_editable


class FileActions(MainActions):
    """The actions that save the selected suite or all suites, and reload suites from disk."""

    GROUP = "Files"

    @action("f5 ctrl+r", "Reload the suites from disk", name="reload", label="reload", words="refresh import open")
    def reload(self) -> None:
        services = self.app.services
        services.saver.postponed.clear()
        services.reader.read_soon()
        services.history_reader.read_again()

    @action(
        "ctrl+s",
        "Save the suite",
        name="save",
        label="save",
        needs=_save,
        changes=True,
        priority=True,
        words="write store",
    )
    def save(self) -> None:
        suite = self.app.selection.suite
        if suite is None:
            return
        if suite.invalid_text_message is not None and not suite.dirty:
            self.app.announce(f"Nothing to save but {suite.invalid_text_message}", "warned", GLYPHS.warned)
        else:
            self.app.services.saver.save_soon((suite,))

    @action("S", "Save all suites", name="save.all", needs=_save_all, changes=True, words="write store")
    def save_all(self) -> None:
        self.app.services.saver.save_soon(self.app.open_suites.dirty)

    @action("", "Save the suite under another name", name="save.as", needs=_save_as, changes=True, words="export copy")
    def save_as(self) -> None:
        if (suite := self.app.selection.suite) is not None:
            self.app.services.saver.save_as_soon(suite)
