"""The actions of the suite tree: filter, fold, and change suites and cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.tui.kit.actions import Condition, MainActions, MainSituation, action, key_for

if TYPE_CHECKING:
    from workbench.tui.tree.edits import SuiteChanger
    from workbench.tui.tree.new_suites import NewSuites


def _new(situation: MainSituation) -> str | None:
    # The new case needs a suite that can be edited. Without a suite at the cursor, the action creates a new suite.
    if situation.has_file:
        return situation.why_row_not_editable
    return None


def _here(situation: MainSituation) -> str | None:
    return situation.why_row_not_editable or situation.why_case_not_editable


def _as_a_whole(situation: MainSituation) -> str | None:
    if situation.on_step and situation.why_row_not_editable is None:
        return "put the cursor on the case; its steps are changed in the form"
    return situation.why_row_not_editable or situation.why_case_not_editable


def _case(situation: MainSituation) -> str | None:
    why = _as_a_whole(situation)
    if why is None and situation.row != "case":
        return "put the cursor on a case"
    return why


def _moved(step: int, edge: str) -> Condition:
    def why_not(situation: MainSituation) -> str | None:
        why = _case(situation)
        if why is None and step not in situation.move_directions:
            return f"this is the {edge} case shown of its suite"
        return why

    return why_not


def _moved_over(situation: MainSituation) -> str | None:
    why = _case(situation)
    if why is None and not situation.has_other_suite:
        return f"there is no other suite to move it to; {key_for('tree.new_suite')} makes one"
    return why


class TreeActions(MainActions):
    """Filters, folds and changes the tree of suites."""

    GROUP = "Suites and cases"

    @action(
        "/",
        "Filter the suites as you type; in a run, search it",
        name="tree.filter",
        label="find",
        words="find search grep",
    )
    def filter(self) -> None:
        main = self.app.main
        if main.pane == "run" and main.selection.runs:
            main.run_pane.search()
        else:
            main.filter_box.begin()

    @action("enter", "Show the case, or fold the branch", name="tree.open", scope="suites", listed=False)
    def open(self) -> None:
        """Go to the case or its run, or fold the branch.

        An empty tree offers to create a suite."""
        main, row, tree = self.app.main, self.app.selection.row, self.app.selection.tree
        if row is None:
            if not tree.filter:
                self._suites.offer()
            return
        # A suite without cases has nothing to fold, so its text is opened.
        if row.case is None and tree.is_foldable(row) and (row.open is None or row.open.cases):
            self._fold(not tree.is_folded(row))
        else:
            main.go_to("run" if main.selection.runs else "case")

    @action("left", "Fold the branch", name="tree.fold", scope="suites", listed=False)
    def fold(self) -> None:
        """Fold the branch. If that is impossible, select the parent of the branch."""
        self._fold(True)

    @action("right", "Unfold the branch", name="tree.unfold", scope="suites", listed=False)
    def unfold(self) -> None:
        self._fold(False)

    def _fold(self, folded: bool) -> None:
        row, tree = self.app.selection.row, self.app.selection.tree
        if row is None:
            return
        if folded and (not tree.is_foldable(row) or tree.is_folded(row)):
            tree.move_to(tree.parent(tree.cursor))
        else:
            tree.fold(row, folded)
        self.app.main.suite_tree.follow_state()

    @action(
        "n",
        "New case; on a folder, a new suite",
        name="tree.new",
        label="new",
        needs=_new,
        changes=True,
        words="add create insert test",
    )
    def new(self) -> None:
        suite = self.app.selection.suite
        if suite is None:
            self._suites.ask()
        else:
            self.app.main.add_to(suite)

    @action("N", "New suite", name="tree.new_suite", changes=True, words="add create import file server mcp")
    def new_suite(self) -> None:
        self._suites.ask()

    @action(
        "d",
        "Duplicate the case or suite",
        name="tree.duplicate",
        scope="suites",
        needs=_as_a_whole,
        changes=True,
        words="copy clone",
    )
    def duplicate(self) -> None:
        self._changer.duplicate()

    @action(
        "f2",
        "Rename the case or suite",
        name="tree.rename",
        scope="suites",
        needs=_here,
        changes=True,
        words="name title",
    )
    def rename(self) -> None:
        self._changer.rename()

    @action(
        "alt+up K",
        "Move the case up",
        name="tree.up",
        scope="suites",
        needs=_moved(-1, "first"),
        changes=True,
        words="reorder",
    )
    def up(self) -> None:
        self._changer.move(-1)

    @action(
        "alt+down J",
        "Move the case down",
        name="tree.down",
        scope="suites",
        needs=_moved(1, "last"),
        changes=True,
        words="reorder",
    )
    def down(self) -> None:
        self._changer.move(1)

    @action(
        "P",
        "Put the case into another suite",
        name="tree.move",
        scope="suites",
        needs=_moved_over,
        changes=True,
        words="move cut paste",
    )
    def move(self) -> None:
        self._changer.move_over()

    @action(
        "del",
        "Delete the case or suite",
        name="tree.delete",
        scope="suites",
        needs=_as_a_whole,
        changes=True,
        words="remove",
    )
    def delete(self) -> None:
        self._changer.delete()

    # Lazy import: the first screen shows the tree without the code that changes it.

    @property
    def _changer(self) -> SuiteChanger:
        from workbench.tui.tree.edits import SuiteChanger

        return self.app.part(SuiteChanger)

    @property
    def _suites(self) -> NewSuites:
        from workbench.tui.tree.new_suites import NewSuites

        return self.app.part(NewSuites)
