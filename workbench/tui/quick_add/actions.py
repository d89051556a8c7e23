"""Actions of quick add, the input line below the panes in which the user writes requests for new cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.tui.kit.actions import Condition, MainActions, MainSituation, action

if TYPE_CHECKING:
    from workbench.tui.quick_add.adder import QuickAdder


def _needs_state(*states: str, otherwise: str) -> Condition:
    def why_not(situation: MainSituation) -> str | None:
        return None if situation.line in states else otherwise

    return why_not


_CHECKED = _needs_state("check", otherwise="no result is shown to be accepted")
_RUNNING = _needs_state("run", otherwise="no request is running")


class QuickAddActions(MainActions):
    """The actions of quick add.

    A letter key is an action only while a result has the focus. Otherwise it is typed text."""

    GROUP = "Quick add"

    @property
    def _adder(self) -> QuickAdder:
        from workbench.tui.quick_add.adder import QuickAdder

        return self.app.part(QuickAdder)

    @action(
        "enter",
        "Run the typed request, or accept the result that is shown",
        name="quick.enter",
        scope="line",
        changes=True,
        listed=False,
    )
    def enter(self) -> None:
        """Run the typed request. If the input line is empty, accept the displayed result or show the next result."""
        self._adder.enter()

    @action(
        "tab",
        "Choose the kind of case; on an empty line, use letters as keys",
        name="quick.kind",
        scope="line",
        listed=False,
    )
    def kind(self) -> None:
        """Switch to the next kind of request.

        If a result is shown and the input line is empty, switch letter keys between text and commands."""
        self._adder.tab()

    @action("shift+tab", "Go to the run; Tab returns", name="quick.panes", scope="line", listed=False)
    def panes(self) -> None:
        self._adder.to_panes()

    @action("up", "Earlier request; at a result, up", name="quick.up", scope="line", listed=False)
    def up(self) -> None:
        """Recall an earlier request, or move up in the displayed result."""
        self._adder.move(-1)

    @action("down", "Later request; at a result, down", name="quick.down", scope="line", listed=False)
    def down(self) -> None:
        """Recall a later request, or move down in the displayed result."""
        self._adder.move(1)

    @action("right", "Another check for the argument; in a text, right", name="quick.check", scope="line", listed=False)
    def other_check(self) -> None:
        """Choose the next check for the focused argument. If the input line has text, move the text cursor right."""
        self._adder.sideways(1)

    @action("left", "The previous check; in a text, left", name="quick.check_before", scope="line", listed=False)
    def check_before(self) -> None:
        """Choose the previous check for the focused argument. If the input line has text, move the text cursor left."""
        self._adder.sideways(-1)

    @action("e", "Edit the expectation at the mark", name="quick.change", scope="line", needs=_CHECKED, listed=False)
    def change(self) -> None:
        self._adder.change()

    @action(
        "-",
        "Leave out the call, or expect it again",
        name="quick.leave_out",
        scope="line",
        needs=_CHECKED,
        listed=False,
    )
    def leave_out(self) -> None:
        self._adder.leave_out()

    @action("o", "Switch the order: as called, or any", name="quick.order", scope="line", needs=_CHECKED, listed=False)
    def order(self) -> None:
        self._adder.order()

    @action("x", "Stop the request that runs", name="quick.stop", scope="line", needs=_RUNNING, listed=False)
    def stop(self) -> None:
        self._adder.stop()

    @action("m", "Choose models for requests", name="quick.models", scope="line", changes=True, listed=False)
    def models(self) -> None:
        self._adder.choose_models()

    @action("l", "Server log of the suite", name="quick.log", scope="line", listed=False)
    def log(self) -> None:
        self._adder.show_log()

    @action("f4", "Write the request in your editor", name="quick.outside", scope="line", listed=False)
    def outside(self) -> None:
        self._adder.outside()

    @action("ctrl+z", "Undo the last case that was added", name="quick.undo", scope="line", listed=False)
    def undo(self) -> None:
        self._adder.undo()

    @action("pageup", "A page up in the run", name="quick.page_up", scope="line", listed=False)
    def page_up(self) -> None:
        self._adder.scroll(-1)

    @action("pagedown", "A page down in the run", name="quick.page_down", scope="line", listed=False)
    def page_down(self) -> None:
        self._adder.scroll(1)

    @action(
        "esc",
        "Skip the result that is shown, or close the line; its text stays",
        name="quick.end",
        scope="line",
        listed=False,
    )
    def end(self) -> None:
        """Skip the displayed result. Without a result, close the input line and keep its text."""
        self._adder.escape()
