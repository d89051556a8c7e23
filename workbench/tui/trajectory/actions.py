"""Actions on the displayed run: unfold, search, save, fork, accept, or select another run of the case."""

from __future__ import annotations

from workbench.engine.plan import AGENT_NOT_FORKED
from workbench.tui.kit.actions import Action, MainActions, MainSituation, action, key_for, unless_read_only, why_no_run


def why_no_other_run(situation: MainSituation) -> str | None:
    """Return why no other run of the case can be selected, `None` if another run exists."""
    if not situation.runs:
        return why_no_run(situation)
    if situation.runs > 1:
        return None
    more = unless_read_only(f"; {key_for('models')} chooses more models")
    return f"this case has only one run to show{more}"


def _open(situation: MainSituation) -> str | None:
    if situation.has_stored_runs:
        return None
    return _item(situation)


def _item(situation: MainSituation) -> str | None:
    if situation.runs:
        return None
    return why_no_run(situation)


def _save_run(situation: MainSituation) -> str | None:
    if situation.shown == "a finished run" or situation.held is not None:
        return None
    if situation.shown == "a recording":
        return "this run is a recording already"
    if situation.shown == "a run":
        return f"this run is not finished yet; {key_for('step')} holds it, and then its part so far can be saved"
    return why_no_run(situation)


def _fix_prompt(situation: MainSituation) -> str | None:
    if situation.shown == "nothing":
        return why_no_run(situation)
    if situation.shown_failed:
        return None
    return "this run did not fail"


def _fork(situation: MainSituation) -> str | None:
    if situation.shown == "nothing":
        return why_no_run(situation)
    if situation.by_agent:
        return AGENT_NOT_FORKED
    if situation.shown == "a run" and situation.held is None:
        return f"this run is under way: {key_for('step')} holds it at its next stop, and then it can be forked"
    return None


def _accept_several(situation: MainSituation) -> str | None:
    if situation.cases:
        return None
    return "no case is shown whose runs could be accepted"


def _accept(situation: MainSituation) -> str | None:
    if situation.shown == "nothing":
        return why_no_run(situation)
    if situation.shown == "a run":
        return "this run is not finished yet"
    if situation.broke_off:
        return f"only a finished run can be accepted; {key_for('run.case')} runs the case again"
    return situation.why_row_not_editable or situation.why_case_not_editable


_freeze_user = _accept


class ShownRunActions(MainActions):
    GROUP = "The displayed run"

    @action(
        "enter",
        "Show all of a value, or fold it",
        name="run.expand",
        scope="run",
        label="expand",
        needs=_open,
        listed=False,
    )
    def expand(self) -> None:
        run_list = self.app.main.run_pane.run_list
        if run_list.lines is not None:
            run_list.toggle()
        else:
            self.app.screens.open_last_run()

    @action("", "Search the run", name="run.find", needs=_item, words="grep")
    def find(self) -> None:
        self.app.main.go_to("run")
        self.app.main.run_pane.search()

    @action("ctrl+g", "Next match of the search", name="run.find_next", scope="run", needs=_item, listed=False)
    def find_next(self) -> None:
        self.app.main.run_pane.find(1)

    @action(
        "left",
        "Previous model or repeat",
        name="run.previous",
        scope="run",
        needs=why_no_other_run,
        words="result",
    )
    def previous(self) -> None:
        self._choose_run(-1)

    @action("right", "Next model or repeat", name="run.next", scope="run", needs=why_no_other_run, words="result")
    def next(self) -> None:
        self._choose_run(1)

    def _choose_run(self, step: int) -> None:
        selection = self.app.selection
        selection.choose_run((selection.chosen_run + step) % len(selection.runs))

    @action(
        "a",
        "Accept the model's calls: the one at the cursor, or all",
        name="accept",
        label="accept",
        needs=_accept,
        changes=True,
        words="expect update snapshot approve golden baseline assert",
    )
    def accept(self) -> None:
        """Accept the call under the cursor. Outside of the run pane, accept the whole run."""
        self._accept(whole=self.app.main.pane != "run")

    @action("A", "Accept the whole run", name="accept.run", needs=_accept, changes=True)
    def accept_run(self) -> None:
        self._accept(whole=True)

    def _accept(self, *, whole: bool) -> None:
        from workbench.tui.acceptance.accept import RunAccepter

        self.app.part(RunAccepter).accept(whole=whole)

    @action(
        "",
        "Accept the calls that all runs of a case share",
        name="accept.several",
        needs=_accept_several,
        changes=True,
        words="expect propose snapshot approve golden baseline update several",
    )
    def accept_several(self) -> None:
        from workbench.tui.acceptance.accept_several import CasesAccepter

        self.app.part(CasesAccepter).begin()

    @action(
        "",
        "Freeze the user: write its messages in this run as a script",
        name="run.freeze_user",
        needs=_freeze_user,
        changes=True,
        words="conversation played simulated script turns",
    )
    def freeze_user(self) -> None:
        from workbench.tui.acceptance.freeze import freeze_user

        freeze_user(self.app)

    @action(
        "",
        "Copy a prompt for a coding agent",
        name="run.fix_prompt",
        needs=_fix_prompt,
        words="agent claude codex explain repair advice",
    )
    def copy_fix_prompt(self) -> None:
        run = self.app.selection.run
        if run is None or (result := run.shown_result) is None:
            return
        # Lazy import: few sessions need it.
        from workbench.show.views.fix_prompt import fix_prompt

        prompt = fix_prompt(run.shown_case, result, str(run.path))
        self.app.copy(prompt, "the prompt", self.app.announce)

    @action(
        "Y",
        "Fork the run at the cursor",
        name="run.fork",
        scope="run",
        label="fork",
        needs=_fork,
        changes=True,
        words="branch continue",
    )
    def fork(self) -> None:
        from workbench.tui.holds.fork_screen import Forker

        self.app.part(Forker).fork()

    @action(
        "w",
        "Save this run, or its part so far, as a recording",
        name="run.save",
        label="save",
        needs=_save_run,
        changes=True,
        words="export record replay",
    )
    def save(self) -> None:
        if (run := self.app.selection.run) is not None:
            self.app.services.run_saver.save_soon(run, self.app.announce)


OPEN_STORED_RUN = Action("run.expand", "Open the last run, from the history", ("enter",), "run", "open")
"""The key of the key bar while the pane describes the last run in the history."""
