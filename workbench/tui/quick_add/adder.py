"""Quick add in the app: run requests typed in an input line, show results, and save accepted results as cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from textual.suggester import SuggestFromList

from workbench.authoring.accept import exclusion_reason
from workbench.authoring.case_list import CaseKey, index_after, with_new_case
from workbench.authoring.document import HEAD, Document
from workbench.authoring.form.field_text import CellError
from workbench.authoring.open_suite import OpenSuite
from workbench.authoring.proposal import AcceptError
from workbench.authoring.quick_add import (
    KINDS,
    UNRUN_KINDS,
    QuickAdd,
    Request,
    case_with_request,
    new_request,
    question_for,
    suite_to_run,
)
from workbench.authoring.workspace import NotEditableError, undo
from workbench.history.records import HistoryError
from workbench.numerals import counted
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import Line, Message, Role, Span
from workbench.show.visible import model_label, one_line
from workbench.suite.suite_file import SuiteFile
from workbench.suite.suite_text import SpliceError
from workbench.trajectory.events import ToolDefinition
from workbench.tui.kit.actions import Action, key_for, key_name
from workbench.tui.kit.memory import ProjectPosition, SavedRequestLine, project_of
from workbench.tui.kit.questions import ANSWER_DELAY_S
from workbench.tui.quick_add.proposal_lines import call_lines, row_in_call, unseen_calls
from workbench.tui.run_book.record import RunRecord

if TYPE_CHECKING:
    from textual.timer import Timer

    from workbench.tui.kit.actions import Pane
    from workbench.tui.shell.workbench import Workbench

STORE_DELAY_S = 1.0
"""The time in seconds from the last key until the typed text is stored."""

WAITING: Final = "Enter on the empty line"


class QuickAdder:
    """Controls quick add: runs requests typed in the input line, shows results, and adds accepted results as cases."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        self._main = app.main
        self._line = app.main.request_line
        self._open_suites = app.open_suites
        self._selection = app.selection
        self.state = QuickAdd()
        self._suite: Path | None = None
        """The suite of the next request."""
        self._from: Pane = "suites"
        self._is_settled = True
        """Whether the question was visible long enough to be answered."""
        self._answer_timer: Timer | None = None
        self._store_timer: Timer | None = None
        self._may_ask_while_typing = False
        """Whether the user lets a run ask for permission. The question takes the keyboard."""
        self._is_open = False
        """Whether the run pane shows the runs of the line instead of the selected case."""
        self._notice: Line = ()
        self._only_added: dict[Path, Document] = {}
        """The documents of suites whose only unsaved changes are newly added cases."""
        self._added: list[tuple[Path, Document, str]] = []
        """The added cases: the suite, its document with the case, and the request."""
        self._saving: set[Path] = set()
        self._ungraded: list[tuple[str, Path]] = []
        """The batches of added cases without grades in the history, with their suites."""
        app.services.run_update_callbacks.append(self.update_runs)
        self._restore_line()

    @property
    def _project(self) -> str:
        return project_of(self._open_suites.workspace)

    def _restore_line(self) -> None:
        state, kept = self.state, self._app.memory.read().projects.get(self._project, ProjectPosition()).line
        state.text, state.recent = kept.text, list(kept.recent)
        state.kind = next((kind for kind in KINDS if kind == kept.kind), state.kind)
        self._set_text(state.text)

    # The line

    def open(self, suite: OpenSuite) -> None:
        """Open the input line for new cases of a suite, and focus the line."""
        main, line = self._main, self._line
        try:
            self._editable(suite.path)
        except NotEditableError as error:
            self._say(str(error), "warned")
            return
        self._suite = suite.path
        self._is_open = True
        if not line.is_open:
            self._from = main.pane
            line.add_class("open")
        main.show_run_beside_tree()
        self.focus()

    def focus(self) -> None:
        self._is_open = True
        self._main.set_focus(self._line.field)
        self._main.show_run()
        self._annotate()
        self.show()
        if self.state.show_result():
            self._show_question()

    def to_panes(self) -> None:
        """Focus the run pane. The input line stays open."""
        self._store_line()
        self._main.go_to("run")

    def close(self) -> None:
        """Close the input line. Its text and requests are kept."""
        self._store_line()
        self._line.remove_class("open")
        self._is_open = False
        self._notice = ()
        self._annotate()
        self._main.go_to(self._from)
        self._main.show_run()
        self._app.services.show_pending()

    def typed(self, text: str) -> None:
        """Update the state after the user changed the text in the input line."""
        state = self.state
        if state.changing is not None:
            state.changing = text
            return
        if text == state.text:
            return
        was_open, self._may_ask_while_typing = state.is_open, False
        state.type(text)
        self._notice = ()
        if was_open:
            self._annotate()
        if self._store_timer is not None:
            self._store_timer.stop()
        self._store_timer = self._main.set_timer(STORE_DELAY_S, self._store_line)
        self.show()

    def _set_text(self, text: str) -> None:
        field = self._line.field
        if field.value != text:
            with field.prevent(field.Changed):
                field.value = text
        field.cursor_position = len(text)

    def _store_line(self) -> None:
        if self._store_timer is not None:
            self._store_timer.stop()
            self._store_timer = None
        self._app.memory.change(lambda known: known.with_request_line(self._project, self.kept))

    @property
    def kept(self) -> SavedRequestLine:
        """The part of the input line's state to store for the next session."""
        state, redact = self.state, self._app.program.secrets.redact
        if not state.text and not state.recent:
            return SavedRequestLine()
        return SavedRequestLine(redact(state.text), state.kind, tuple(map(redact, state.recent)))

    # Keys

    def enter(self) -> None:
        """Handle Enter: run the typed request, or act on the displayed result or question."""
        self.typed(self._line.field.value)
        state = self.state
        if state.changing is not None:
            self._take_change()
        elif state.text.strip():
            self._submit()
        elif self._is_asked_by_run and not state.is_open:
            self._may_ask_while_typing = True
            self._app.services.show_pending()
        elif not state.is_open:
            if state.open():
                self._show_question()
            elif state.state == "ask":
                self._say("Type what a user asks", "warned")
        elif not self._is_settled:
            return
        elif state.state == "failed":
            state.requeue_failed()
            self._start_next()
            self.show()
        else:
            self._accept()

    def tab(self) -> None:
        """Switch to the next kind of request.

        If a result is shown and the input line is empty, switch letter keys between text and commands."""
        state = self.state
        if state.changing is not None:
            return
        if not state.text and state.state != "ask":
            state.has_keyboard = not state.has_keyboard
        else:
            state.next_kind()
        self.show()

    def move(self, step: int) -> None:
        """Recall an earlier (-1) or later (1) request.

        If a result is shown and the input line is empty, move the focus in the result."""
        state = self.state
        if state.question is not None and not state.text and state.changing is None:
            # A user who moves the focus has seen the question, so the delay of Enter ends.
            self._accept_answers()
            state.has_keyboard = True
            state.replace_question(state.question.moved(step))
            self._annotate()
        elif state.state == "failed" and step < 0 and state.head is not None:
            failed = state.drop()
            assert failed is not None
            self._forget(failed)
            state.type(failed.text)
            self._set_text(state.text)
            self._start_next()
        elif state.changing is None and state.recall(-step):
            self._set_text(state.text)
        self.show()

    def sideways(self, step: int) -> None:
        """Choose the next (1) or previous (-1) check of the focused argument.

        If the input line has text, move the text cursor."""
        state, field = self.state, self._line.field
        if state.question is None or field.value:
            if step > 0:
                field.action_cursor_right()
            else:
                field.action_cursor_left()
            return
        self._accept_answers()
        state.has_keyboard = True
        state.replace_question(state.question.with_other_check(step))
        self._annotate()
        self.show()

    def change(self) -> None:
        """Let the user type another expected value in the input line."""
        state = self.state
        if state.question is None:
            return
        if state.question.name_to_change == "tool":
            self._line.field.suggester = SuggestFromList([tool.name for tool in self._tools()])
        state.changing = state.question.to_change
        state.has_keyboard = False
        self._set_text(state.changing)
        self._line.field.select_all()
        self.show()

    def _take_change(self) -> None:
        state = self.state
        question, text = state.question, state.changing
        if question is None or text is None:
            return
        try:
            changed = question.changed(text, self._tools())
        except CellError as error:
            self._say(f"{question.name_to_change}: {error}", "warned")
            return
        state.replace_question(changed)
        self._end_change()

    def _end_change(self) -> None:
        self._line.field.suggester = None
        self.state.changing = None
        self.state.has_keyboard = True
        self._set_text(self.state.text)
        self._annotate()
        self.show()

    def leave_out(self) -> None:
        """Toggle whether the new case expects the focused call."""
        if self.state.question is not None:
            self.state.replace_question(self.state.question.with_call_left_out())
            self._annotate()
            self.show()

    def order(self) -> None:
        """Toggle whether the new case expects its calls in order."""
        question = self.state.question
        if question is None:
            return
        if not question.has_order:
            self._say("These calls have no order: they are part of one answer", "warned")
            return
        self.state.replace_question(question.with_other_order())
        self._annotate()
        self.show()

    def stop(self) -> None:
        running = self.state.running
        if running is not None:
            self.state.has_keyboard = False
            self._app.services.runner.stop(running.run_ids)
            self.show()

    def choose_models(self) -> None:
        from workbench.tui.models.chooser import ModelChooser

        self.state.has_keyboard = False
        ModelChooser(self._app).choose(self._selection.notify_all)

    def show_log(self) -> None:
        from workbench.tui.tools.server_logs import open_log

        self.state.has_keyboard = False
        open_log(self._app)

    def outside(self) -> None:
        """Let the user write the request in an external editor."""
        if self.state.changing is not None:
            return
        text = self._app.editor.changed(self._line.field.value, "request.txt", 1)
        if text is not None:
            self._set_text(text.strip("\n"))
            self.typed(self._line.field.value)

    def scroll(self, step: int) -> None:
        """Scroll the run by a page."""
        run_list = self._main.run_pane.run_list
        page = max(run_list.size.height - 1, 1)
        run_list.move_cursor((run_list.top if step < 0 else run_list.top + page) + step * page)

    def escape(self) -> None:
        """Stop editing an expected value, or skip the displayed result, or end the letter commands, or close the line.

        Only the first of these that applies is done."""
        state = self.state
        if state.changing is not None:
            self._end_change()
        elif state.is_open:
            if self._is_settled:
                self._skip()
        elif state.has_keyboard:
            state.has_keyboard = False
            self.show()
        else:
            self.close()

    def unused(self, key: str) -> None:
        """Announce that the pressed letter is not a command."""
        self._say(f"No command on {key_name(key)} here: Tab gives letters back to the line", "muted")

    # Requests

    def _submit(self) -> None:
        state = self.state
        try:
            suite = self._editable(self._suite)
        except NotEditableError as error:
            self._say(str(error), "warned")
            return
        same = case_with_request(state.text, suite)
        if same is not None and state.confirmed != state.text:
            state.confirmed = state.text
            self._say(f"{same} asks the same: Enter again adds it", "warned")
            return
        if state.kind not in UNRUN_KINDS and state.why_full is not None:
            self._say(state.why_full, "warned")
            return
        request = new_request(state.text.strip(), state.kind, suite, state.requests)
        if state.kind in UNRUN_KINDS:
            if self._add(request, request.table):
                state.add(request)
                state.requests.remove(request)
        else:
            state.add(request)
        self._set_text(state.text)
        self._notice = self._notice if request.kind in UNRUN_KINDS else ()
        self._store_line()
        self._start_next()
        self.show()

    def _editable(self, path: Path | None) -> OpenSuite:
        """Return the open suite at a path.

        Raises NotEditableError if no suite is open there or its text is not TOML."""
        if path is None:
            raise NotEditableError("put the cursor on a suite first")
        suite = self._open_suites.editable(path)
        if suite.document.parts is None:
            raise NotEditableError(f"{path.name} is not TOML: correct its text first")
        return suite

    def _start_next(self) -> None:
        if self.state.running is not None:
            return
        for request in self.state.requests:
            if request.state == "waiting":
                request.state = "running"
                self._app.work(self._run(request), "start")
                return

    async def _run(self, request: Request) -> None:
        request.run_ids = ()
        try:
            started = await self._app.services.starter.run_unsaved_case(
                self._editable(request.suite), lambda suite: suite_to_run(suite, request.table), request.case_id
            )
        except (NotEditableError, HistoryError) as error:
            started = str(error)
        if isinstance(started, str):
            self._fail(request, started)
            return
        request.run_ids = tuple(run.run_id for run in started)
        self._main.end_notice()
        self._main.show_run()
        self.show()
        self.update_runs()

    def _fail(self, request: Request, why: str) -> None:
        request.state, request.why = "failed", why
        self._show_next_result()

    def update_runs(self) -> None:
        """Record the result of the running request once all its runs have ended."""
        request = self.state.running
        if request is not None and request.run_ids:
            runs = self._runs_of(request)
            if runs and all(run.result is not None for run in runs):
                self._record_result(request, runs)
        self._store_grades()
        if self._line.is_open:
            self.show()

    def _record_result(self, request: Request, runs: Sequence[RunRecord]) -> None:
        found, why = [], ""
        for run in runs:
            result = run.result
            assert result is not None
            left_out = exclusion_reason(result)
            if left_out is None:
                found.append((model_label(run.model), result.trajectory))
            else:
                why = why or one_line(self._app.program.secrets.redact(left_out))
        if not found:
            self._fail(request, why)
            return
        planned = runs[0].planned
        try:
            question = question_for(request, planned.suite, planned.case, found, self._app.program.secrets)
        except AcceptError as error:
            self._fail(request, str(error))
            return
        if why:
            question = replace(question, note=f"one model gave no result: {why}")
        request.state, request.question = "answered", question
        self._show_next_result()

    def _show_next_result(self) -> None:
        """Start the next waiting request. If the user is not typing, also show the first finished result."""
        if self._line.typing and not self._line.field.value and self.state.show_result():
            self._show_question()
        self._start_next()
        self.show()

    def _show_question(self) -> None:
        """Show the result of a request, and ask whether to accept it.

        The Enter key works only after a short delay. A key press meant for the input line therefore does not accept the
        result."""
        self._is_settled = False
        if self._answer_timer is not None:
            self._answer_timer.stop()
        self._answer_timer = self._main.set_timer(ANSWER_DELAY_S, self._accept_answers)
        self._notice = ()
        self._is_open = True
        self._main.show_run()
        self._annotate()
        self.show()

    def _accept_answers(self) -> None:
        self._is_settled = True

    def _runs_of(self, request: Request) -> list[RunRecord]:
        runs = self._main.book.runs_of((request.suite, request.case_id))
        return [run for run in runs if run.run_id in request.run_ids]

    def _skip(self) -> None:
        skipped = self.state.drop()
        if skipped is None:
            return
        self._forget(skipped)
        self._notice = (Span(f"Skipped; {GLYPHS.up} brings the request back", "muted"),)
        self._after_answer()

    def _forget(self, request: Request) -> None:
        self._main.book.forget_case((request.suite, request.case_id))
        self._main.show_status()

    def _accept(self) -> None:
        head, question = self.state.head, self.state.question
        if head is None or question is None:
            return
        if self._add(head, question.case, question.why_not):
            # The run of a chain's first request had no further steps, so its grades are not stored for the chain's
            # case.
            if head.kind != "chain" or question.expects_no_call:
                self._ungraded += dict.fromkeys((run.batch, head.suite) for run in self._runs_of(head))
                self._store_grades()
            self.state.drop()
            self._after_answer()

    def _after_answer(self) -> None:
        self._annotate()
        self._start_next()
        self._main.show_run()
        if self.state.show_result():
            notice = self._notice
            self._show_question()
            self._notice = notice
        self.show()

    # Cases

    def _add(self, request: Request, case: dict[str, object], why_not: str | None = None) -> bool:
        """Add the case of a request after the selected case, as one undo step, and save the suite.

        `why_not` is the reason why the request's run fails the case, `None` if it passes. A suite with other unsaved
        changes is not saved. Returns whether the case was added."""
        try:
            suite = self._editable(request.suite)
            row = self._selection.row
            behind = row.case_key if row is not None and row.open is suite else None
            changed = with_new_case(suite, index_after(suite, behind), case)
        except (NotEditableError, SpliceError) as error:
            self._say(f"Nothing was added: {error}", "error")
            return False
        is_alone = not suite.dirty or suite.document is self._only_added.get(suite.path)
        self._open_suites.change(suite, changed.document, changed.summary, case=changed.cursor_key)
        self._added.append((suite.path, suite.document, request.text))
        self.state.added += 1
        self._selection.select(suite.path, changed.case)
        file = one_line(suite.path.name)
        if self._app.services.is_bundled(suite.path):
            self._notice = (Span(f"Added; {key_for('save')} saves {file} as your own", "text"),)
        elif suite.is_new:
            self._notice = (Span(f"Added; {key_for('save')} saves {file}", "text"),)
        elif not is_alone:
            self._notice = (Span(f"Added; {file} has other changes: {key_for('save.all')} saves all", "warned"),)
        else:
            self._only_added[suite.path] = suite.document
            self._save_soon(suite)
            fails = f", {GLYPHS.failed} on this model" if why_not is not None else ""
            self._notice = (Span(f"{GLYPHS.passed} Saved in {file}{fails}", "passed"),)
        return True

    def _save_soon(self, suite: OpenSuite) -> None:
        if suite.path not in self._saving:
            self._saving.add(suite.path)
            self._app.work(self._save(suite), "ask")

    async def _save(self, suite: OpenSuite) -> None:
        """Save the added cases of a suite, including cases added while saving."""
        try:
            while suite.dirty and suite.document is self._only_added.get(suite.path):
                if not await self._app.services.saver.save([suite]):
                    # The saver has announced the reason, and its notice stays.
                    self._notice = ()
                    self.show()
                    return
                self._main.end_notice()
        finally:
            self._saving.discard(suite.path)

    def _store_grades(self) -> None:
        """Store grades of the runs of added cases in the history.

        These runs had no expectations when they ended."""
        services = self._app.services
        for batch, path in list(self._ungraded):
            if self._main.book.has_ended(batch):
                self._ungraded.remove((batch, path))
                number, suite = services.runner.batch_number(batch), self._open_suites.at(path)
                if number is not None and suite is not None:
                    self._app.work(self._store_grade(number, suite.file), "history")

    async def _store_grade(self, number: int, suite: SuiteFile) -> None:
        why = await self._app.services.batch_work.grade_added(number, suite)
        if why is not None:
            self._say(f"The history has no grade of the new case: {why}", "warned")

    def undo(self) -> None:
        """Remove the last added case, and save. If no case was added, undo the last change of the suite."""
        if self.state.changing is not None:
            return
        suite = self._open_suites.at(self._added[-1][0]) if self._added else None
        if suite is None or suite.document is not self._added[-1][1]:
            self._app.perform("edit.undo")
            return
        path, _, request = self._added.pop()
        is_ours = suite.document is self._only_added.get(path)
        went = undo(suite, self._open_suites)
        if isinstance(went, str):
            self._say(went, "warned")
            return
        self.state.added -= 1
        self.state.remember(request)
        if is_ours:
            self._only_added[path] = suite.document
            self._save_soon(suite)
        self._notice = (Span(f"Taken out again; {GLYPHS.up} brings the request back", "text"),)
        self.show()

    # The display

    @property
    def runs_shown(self) -> tuple[list[RunRecord], Message] | None:
        """The runs to show in the run pane, and a message for an empty pane.

        `None` if the pane shows the selected case."""
        if not self._is_open or not self._line.is_open:
            return None
        requests = self.state.requests
        if requests:
            text = requests[0].why or "Starting …"
            return self._runs_of(requests[0]), ((one_line(requests[0].text), "strong"), (one_line(text), "muted"))
        if self.state.added or self._suite is None:
            return None
        message: Message = (
            ("Type what a user asks. The model's calls", "text"),
            ("become what the case expects.", "text"),
        )
        tools = ", ".join(tool.name for tool in self._tools())
        if tools:
            message = (
                (f"tools  {counted(len(self._tools()), 'tool')}: {one_line(tools)}", "muted"),
                ("", "text"),
                *message,
            )
        return [], message

    def is_about(self, cases: set[CaseKey]) -> bool:
        """Return whether `cases` contains the case of the displayed request."""
        requests = self.state.requests
        return bool(requests) and (requests[0].suite, requests[0].case_id) in cases

    def leave_run(self) -> None:
        """Let the run pane show the selected case, because the tree's cursor moved."""
        if not self._line.typing:
            self._is_open = False

    @property
    def allows_questions(self) -> bool:
        """Whether a run may ask its question now.

        While the user types, the question waits until the user presses Enter."""
        return not self._line.typing or self._may_ask_while_typing

    @property
    def _is_asked_by_run(self) -> bool:
        return bool(self._main.book.questions or self._main.book.limits_reached)

    def _tools(self) -> tuple[ToolDefinition, ...]:
        suite = self._open_suites.at(self._suite) if self._suite is not None else None
        if suite is None or suite.document.parts is None:
            return ()
        return self._main.known_tools.of(suite.document.table(HEAD), suite.path)

    def _say(self, text: str, role: Role) -> None:
        if "." not in text.partition(" ")[0]:
            # A file name at the beginning keeps its first letter.
            text = text[:1].upper() + text[1:]
        self._app.announce(text, role, "" if role == "muted" else GLYPHS.warned)

    def show(self) -> None:
        """Update the title, the field and the keys of the input line."""
        if not self._line.is_open:
            return
        state, field = self.state, self._line.field
        field.has_commands = state.has_keyboard and state.changing is None
        head = state.head
        placeholder = ""
        if state.is_open and head is not None and state.changing is None:
            placeholder = one_line(head.text)
        if field.placeholder != placeholder:
            field.placeholder = placeholder
        self._line.show_title(*self._title())
        self._main.refresh_bars()

    def _title(self) -> tuple[str, Role]:
        state = self.state
        question, head = state.question, state.head
        if state.changing is not None and question is not None:
            what = one_line(question.name_to_change)
            hint = f" (name=value for arguments, {GLYPHS.call} completes)" if what == "tool" else ""
            return f"Expected {what}{hint}", "strong"
        if question is not None:
            title = "Expect no call?" if question.expects_no_call else f"Expect {unseen_calls(question) or 'this'}?"
            if question.why_not is not None:
                why = question.why_not.partition(": ")[2] or question.why_not
                title += f" {GLYPHS.failed} on this model: {one_line(why)}"
            elif question.note:
                title += f" {GLYPHS.dot} {one_line(question.note)}"
            return title, "strong"
        if state.state == "failed" and head is not None:
            return f"{GLYPHS.error} {one_line(head.why)}", "error"
        parts = [f"New case in {one_line(self._suite.stem) if self._suite is not None else ''}"]
        if state.kind != KINDS[0]:
            parts.append(state.kind)
        added = sum(path == self._suite for path, _, _ in self._added)
        if added:
            parts.append(f"{added} added")
        counts = []
        if state.running is not None:
            counts.append("running 1")
        if state.count("waiting"):
            counts.append(f"waiting {state.count('waiting')}")
        if counts:
            parts.append(", ".join(counts))
        over = state.count("answered", "failed")
        if self._is_asked_by_run:
            parts.append(f"a run asks: {WAITING}")
        elif over and state.head is not None:
            parts.append(f"{over} {'waits' if over == 1 else 'wait'}: {WAITING}")
        return f" {GLYPHS.dot} ".join(parts), "strong"

    def keys(self) -> tuple[Line, list[tuple[Action, bool]]]:
        """Return the notice before the keys, and the actions for the key bar, each with whether it is available."""
        state = self.state
        labels: dict[str, str]
        match state.state:
            case "change":
                labels = {"enter": "keep", "end": "leave it as it was"}
            case "check":
                # A suite without a file is not saved at once. The user saves it later.
                suite = self._open_suites.at(state.head.suite) if state.head is not None else None
                save = "save"
                if suite is None or suite.is_new or self._app.services.is_bundled(suite.path):
                    save = "add, unsaved"
                labels = {"enter": f"yes, {save}, next", "check": "other check"}
                if state.has_keyboard:
                    labels |= {"enter": save, "change": "change", "leave_out": "not this call", "order": "order"}
                    if state.question is None or not state.question.has_order:
                        labels.pop("order")
                else:
                    labels["kind"] = "change"
                if state.question is not None and state.question.focus is None:
                    # If the model made no call, no check can be changed and no call left out.
                    for name in ("check", "leave_out"):
                        labels.pop(name, None)
                labels["end"] = "skip"
            case "failed":
                labels = {"enter": "again", "up": "change it", "kind": "log, models", "end": "skip"}
                if state.has_keyboard:
                    labels = {"enter": "again", "log": "log", "models": "models", "kind": "back", "end": "skip"}
            case "run" if state.has_keyboard:
                labels = {"stop": "stop", "models": "models", "kind": "back", "end": "back"}
            case "run":
                labels = {"enter": "queue", "kind": f"kind: {state.kind}" if state.text else "stop, models"}
                labels |= {"up": "last request", "end": "close"}
            case _:
                labels = {"enter": "add" if state.kind in UNRUN_KINDS else "run", "kind": f"kind: {state.kind}"}
                if self._added and self._notice:
                    labels = {"enter": labels["enter"], "undo": "undo the last", "kind": labels["kind"]}
                if state.recent:
                    labels["up"] = "last request"
                labels |= {"outside": "editor", "end": "close"}
        actions = self._app.keymap.actions
        offered = [(replace(actions[f"quick.{name}"], label=label), True) for name, label in labels.items()]
        # While a result is shown, there is no notice, because the keys for the result need its room.
        return self._notice if state.state in ("ask", "run") else (), offered

    def _annotate(self) -> None:
        run_list, question = self._main.run_pane.run_list, self.state.question
        if question is None or not self._is_open or not self._line.is_open:
            run_list.annotate(None)
            return
        run_list.annotate(call_lines(question))
        focus = question.focus
        if focus is not None:
            run_list.go_to_call(*row_in_call(question, focus))
