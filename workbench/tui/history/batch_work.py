"""Operations on batches of the history: name, remove, export, resume, regrade."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from textual.screen import Screen

from workbench.authoring.workspace import RECORDINGS_FOLDER
from workbench.config.models import ConfigError
from workbench.engine.recordings import export_recording
from workbench.exchange.exporters.exported import exported_run
from workbench.exchange.exporters.forms import EXPORTS_FOLDER, FORMS, ExportError
from workbench.history.records import BatchRow, HistoryError
from workbench.numerals import counted
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import Role
from workbench.show.views.batch_list import batch_name
from workbench.show.views.grade_moves import Move, moves_text
from workbench.suite.suite_file import load_suite
from workbench.trajectory.recording import RecordingError
from workbench.tui.run_book.stored_batches import opened
from workbench.tui.tree.selection import Selection

if TYPE_CHECKING:
    from workbench.config.program import Program
    from workbench.engine.missing_runs import Resumption
    from workbench.evaluation.approval import Approval
    from workbench.evaluation.regrade import RegradingPlan, RunRegrade
    from workbench.exchange.exporters.exported import ExportedRun
    from workbench.suite.model import Case
    from workbench.suite.suite_file import SuiteFile
    from workbench.tui.history.batches_screen import HistoryScreen
    from workbench.tui.runs.runner import Runner
    from workbench.tui.shell.workbench import Workbench


Result = TypeVar("Result")

MayGrade: TypeAlias = "Callable[[Sequence[tuple[SuiteFile, Case]]], Awaitable[Approval | str]]"


class BatchWork:
    """Changes, exports and resumes stored batches. Each operation runs in a thread, and only one runs at a time."""

    def __init__(
        self,
        app: Workbench,
        file: Path | None,
        program: Program,
        selection: Selection,
        runner: Runner,
        *,
        may_grade: MayGrade,
        resume: Callable[[Resumption], Awaitable[str | None]],
        screens: Callable[[], Iterable[Screen[Any]]],
    ) -> None:
        self._app = app
        self._stored_in = file
        self._program = program
        self._selection = selection
        self._runner = runner
        self._may_grade = may_grade
        """Asks for trust to grade some cases. Returns the approval, or the reason why there is none."""
        self._resume = resume
        """Executes missing runs, after asking for trust. Returns why the runs are not executed, or `None`."""
        self._screens = screens
        """Returns the screens above the main screen."""
        self._lock = asyncio.Lock()
        self._begun, self._is_stoppable = "", False
        """The name of the current operation, and whether it can be interrupted."""
        self._idle = asyncio.Event()
        self._idle.set()
        self._stopped = False

    @property
    def _file(self) -> Path:
        assert self._stored_in is not None, "without a history, its actions are unavailable"
        return self._stored_in

    @property
    def running_operation(self) -> str | None:
        """The name of the operation that is running in a thread. `None` while an operation waits for the user."""
        if not self._idle.is_set():
            return self._begun
        return None

    @property
    def stoppable_operation(self) -> str | None:
        """The name of the current operation if it may take long. Quitting the app then asks first."""
        return self.running_operation if self._is_stoppable else None

    def stop(self) -> None:
        """Interrupt the current operation if possible. New grades are discarded, but exported recordings are kept."""
        self._stopped = True

    async def wait_until_idle(self) -> None:
        """Wait until no operation runs in a thread."""
        await self._idle.wait()

    def _until_stopped(self, each: Iterable[Result]) -> Iterator[Result]:
        for one in each:
            if self._stopped:
                return
            yield one

    @asynccontextmanager
    async def _one_at_a_time(
        self, screen: HistoryScreen, operation: str, *, is_stoppable: bool = False
    ) -> AsyncIterator[None]:
        """Wait for the previous operation, then run the body of the `with` statement as the operation `operation`.

        If there is a previous operation, announce that this one waits."""
        if self._lock.locked():
            self._say(screen, f"{operation[:1].upper()}{operation[1:]} waits for another task: {self._begun}")
        async with self._lock:
            self._begun, self._is_stoppable = operation, is_stoppable
            yield

    async def _on_thread(self, work: Callable[[], Result]) -> Result:
        self._idle.clear()
        try:
            return await asyncio.to_thread(work)
        finally:
            self._idle.set()

    def _say(self, screen: HistoryScreen, text: str, role: Role = "text", sign: str = "") -> None:
        """Announce a text on the screen that began the operation. If that screen is closed, use the current screen."""
        screen.announce(text, role, sign)

    def _fail(self, screen: HistoryScreen, text: str) -> None:
        self._say(screen, text, "error", GLYPHS.error)
        # The failure may come from another program that replaced the file, so the list is read again.
        self.read_again()

    def read_again(self) -> None:
        """Reload the list of batches if it is open."""
        from workbench.tui.history.batches_screen import HistoryScreen

        for screen in self._screens():
            if isinstance(screen, HistoryScreen):
                screen.read_soon()

    def ask_name(self, screen: HistoryScreen, batch: BatchRow) -> None:
        from workbench.tui.history.questions import BatchNameScreen

        def on_answer(name: str | None) -> None:
            if name is not None and name != (batch.name or ""):
                self._app.work(self._name(screen, batch, name), "history")

        self._app.show(BatchNameScreen(batch), on_answer)

    async def _name(self, screen: HistoryScreen, batch: BatchRow, name: str) -> None:
        """Name a batch. An empty name removes the name."""

        def change(messages: list[str]) -> None:
            from workbench.history.edits import name_batch

            name_batch(self._file, batch.number, name or None, messages.append)

        done = f"#{batch.number} no longer has a name"
        if name:
            done = f"#{batch.number} is now named {name}"
            # A name belongs to one batch. Any other batch with the new name loses it.
            loses = next((other for other in screen.state.batches if other.name == name), None)
            if loses is not None:
                done += f"; #{loses.number} no longer is"
        await self._change(screen, f"naming {batch_name(batch)}", change, done)

    def ask_to_remove(self, screen: HistoryScreen, batch: BatchRow) -> None:
        """Ask whether to remove a batch, and remove it if the user confirms."""
        from workbench.tui.history.questions import RemoveScreen

        def on_answer(answer: str | None) -> None:
            if answer == "remove":
                self._app.work(self._remove(screen, batch), "history")

        self._app.show(RemoveScreen(batch), on_answer)

    async def _remove(self, screen: HistoryScreen, batch: BatchRow) -> None:
        def change(messages: list[str]) -> None:
            from workbench.history.edits import remove_batches

            remove_batches(self._file, [batch.number], messages.append)

        await self._change(screen, f"removing {batch_name(batch)}", change, f"{batch_name(batch)} was removed")

    async def _change(
        self, screen: HistoryScreen, operation: str, change: Callable[[list[str]], None], success_text: str
    ) -> None:
        parts: list[str] = []
        async with self._one_at_a_time(screen, operation):
            try:
                await self._on_thread(lambda: change(parts))
            except HistoryError as error:
                self._fail(screen, str(error))
                return
        if parts:
            self._say(screen, parts[0], "warned", GLYPHS.warned)
        else:
            self._say(screen, success_text, "passed", GLYPHS.passed)
        self.read_again()

    def ask_form(self, screen: HistoryScreen, batch: BatchRow) -> None:
        """Ask for a file format, and export the runs of a batch."""
        from workbench.tui.history.questions import FormScreen

        def on_answer(form: str | None) -> None:
            if form:
                self._app.work(self.export(screen, batch, form), "history")

        self._app.show(FormScreen(batch), on_answer)

    async def export(self, screen: HistoryScreen, batch: BatchRow, form: str | None = None) -> None:
        """Export the runs of a batch with the selected grades.

        `form` is the file format. Without a format, the runs are saved as recordings in a new folder."""
        grading = screen.state.grading(batch)
        name = f"batch-{batch.number}"
        if grading is not None:
            name += f".grading-{grading.number}"
        folder = Path(RECORDINGS_FOLDER) / name if form is None else Path(EXPORTS_FOLDER)

        damaged: list[str] = []

        def save() -> str:
            from workbench.engine.suite_secrets import exempt_stored_suites, register_secrets

            program = self._program
            # Stored runs lack only the secrets that were known when the runs were stored. All secrets known now are
            # registered, so that they are removed as well.
            for place in {suite.file.parent for suite in batch.suites}:
                with suppress(ConfigError):
                    register_secrets(program, place)
            count = 0
            with opened(self._file) as history:
                exempt_stored_suites(program, history, batch)
                rows = history.runs(batch.number, grading)
                over = (run for run in rows if run.figures is not None)
                recordings = self._until_stopped(history.recordings(over, grading, damaged.append))
                if form is not None:
                    from workbench.evaluation.stored_runs import result_of_row, stored_report
                    from workbench.exchange.exporters.export import write_runs, write_table

                    def runs() -> Iterator[ExportedRun]:
                        for row, each in recordings:
                            yield exported_run(each, program.secrets, result_of_row(row, each))
                        # A file with only part of the runs would look complete.
                        if self._stopped:
                            raise ExportError("the app was left before all runs were read")

                    if FORMS[form].writer:
                        files = write_runs(runs(), form, folder, name)
                    else:
                        report = stored_report(history, batch, rows, grading, program.secrets, damaged.append)
                        files = write_table(report, form, folder, name)
                    if len(files) == 1:
                        return str(files[0].absolute())
                    return f"{counted(len(files), 'file')} in {folder.absolute()}"
                for _, recording in recordings:
                    export_recording(folder, recording, program.secrets)
                    count += 1
            return f"{counted(count, 'recording')} in {folder.absolute()}"

        async with self._one_at_a_time(screen, f"saving the runs of {batch_name(batch)}", is_stoppable=True):
            try:
                text = f"Saved {await self._on_thread(save)}"
            except (HistoryError, RecordingError, ExportError) as error:
                self._fail(screen, f"Not everything was saved: {error}")
                return
        if damaged:
            self._say(screen, f"{text}; left out: {_first_of(damaged)}", "warned", GLYPHS.warned)
        else:
            self._say(screen, text, "passed", GLYPHS.passed)

    async def resume(self, screen: HistoryScreen, batch: BatchRow) -> None:
        """Run the missing runs of a batch. If something has changed since the batch ran, ask first."""
        async with self._one_at_a_time(screen, f"resuming {batch_name(batch)}"):
            # A thread of the engine writes results. Until it is done, finished runs would count as missing.
            await self._on_thread(self._runner.flush_history)
            try:
                resumption = await self._on_thread(lambda: self._resumption(batch.number))
            except HistoryError as error:
                self._fail(screen, str(error))
                return
            # `resumption` has claimed the batch, so that no other process resumes it. If the runs begin, the engine
            # takes over the claim. Otherwise, it is released below.
            under_way = False
            try:
                why_not = await self._why_not_resumed(screen, resumption)
                if why_not is not None:
                    self._say(screen, f"Nothing was run: {why_not}")
                    return
                why_not = await self._resume(resumption)
                under_way = why_not is None
            finally:
                if not under_way:
                    resumption.handle.release()
        if why_not is None:
            self._say(screen, f"Resuming {batch_name(batch)}: {counted(len(resumption.runs), 'run')}", "running")
            self.read_again()
        else:
            self._say(screen, f"Nothing was run: {why_not}", "warned", GLYPHS.warned)

    def _resumption(self, number: int) -> Resumption:
        from workbench.engine.missing_runs import claim_and_read

        with opened(self._file) as history:
            return claim_and_read(history, number, self._program, self._selection.models)

    async def _why_not_resumed(self, screen: HistoryScreen, resumption: Resumption) -> str | None:
        """If something changed since the batch ran, ask the user. Return why the batch is not resumed, or `None`."""
        from workbench.tui.history.questions import ResumeScreen

        parts = [*resumption.stored_text_notices, *resumption.differences]
        if resumption.execute_all:
            parts.append("every tool is executed for real, as in this batch")
        if not parts:
            return None
        # On another screen, the user's next keys are for that screen and must not answer the question.
        if not self._app.shows(screen):
            return f"there is a question about {batch_name(resumption.batch)}, but the history was closed"
        question = ResumeScreen(resumption.batch, parts, today=bool(resumption.differences))
        answer = await self._app.ask(question)
        if answer == "resume":
            return None
        return "the batch stays as it is"

    async def regrade(self, screen: HistoryScreen, batch: BatchRow) -> None:
        """Regrade a batch by the current expectations of its suites. The new grades are stored beside the old ones."""
        damaged: list[str] = []
        async with self._one_at_a_time(screen, f"regrading {batch_name(batch)}", is_stoppable=True):
            try:
                # Cases are graded as edited, even if the edits are not saved. Runs use such edits, too.
                edited = {}
                for suite in self._selection.open_suites.dirty:
                    edited[suite.path.resolve()] = suite.file
                plan = await self._on_thread(lambda: self._plan(batch.number, edited))
                if not plan.runs:
                    why = "; ".join(plan.problems) or "its suites no longer have any case of the batch"
                    self._say(screen, f"Nothing was graded: {why}", "warned", GLYPHS.warned)
                    return
                wanted = [(run.file, run.case) for run in plan.runs]
                approval = await self._may_grade(wanted)
                if isinstance(approval, str):
                    self._say(screen, f"Nothing was graded: {approval}", "warned", GLYPHS.warned)
                    return
                self._say(screen, f"Regrading {counted(len(plan.runs), 'run')} of {batch_name(batch)} …")
                graded = await self._on_thread(lambda: self._graded(plan, approval, damaged))
            except (HistoryError, RecordingError) as error:
                self._fail(screen, f"Nothing was graded: {error}")
                return
        if self._stopped:
            return
        if not graded:
            self._say(screen, f"Nothing was graded: {_first_of(damaged)}", "error", GLYPHS.error)
            return
        screen.state.select_grading(batch.number, screen.state.regraded.get(batch.number, 0) + 1)
        self.read_again()
        text = _regraded_text(plan, graded)
        if damaged:
            self._say(screen, f"{text}; left out: {_first_of(damaged)}", "warned", GLYPHS.warned)
        else:
            self._say(screen, text, "passed", GLYPHS.passed)

    async def grade_added(self, number: int, suite: SuiteFile) -> str | None:
        """Store grades for a batch of quick add after its case was added to a suite.

        Return why that is impossible, or `None`."""
        async with self._lock:
            self._begun, self._is_stoppable = f"storing the grade of a new case in batch #{number}", False
            try:
                await self._on_thread(self._runner.flush_history)
                plan = await self._on_thread(lambda: self._plan(number, {suite.path.resolve(): suite}))
                if not plan.runs:
                    return "; ".join(plan.problems) or "its suite no longer has the case"
                approval = await self._may_grade([(run.file, run.case) for run in plan.runs])
                if isinstance(approval, str):
                    return approval
                await self._on_thread(lambda: self._graded(plan, approval, []))
            except (HistoryError, RecordingError) as error:
                return str(error)
        self.read_again()
        return None

    def _plan(self, number: int, edited: Mapping[Path, SuiteFile]) -> RegradingPlan:
        from workbench.evaluation.regrade import plan_regrading

        def load(path: Path) -> SuiteFile:
            if path in edited:
                return edited[path]
            return load_suite(path)

        with opened(self._file) as history:
            return plan_regrading(history, history.batch(f"#{number}"), self._program, load=load)

    def _graded(self, plan: RegradingPlan, approval: Approval, damage_messages: list[str]) -> Sequence[RunRegrade]:
        from workbench.evaluation.regrade import RegradingJudges, regrade_stored_runs, store_grades

        program = self._program
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        with opened(self._file) as history:
            # All grades are stored together at the end, so an interruption leaves no half regrade.
            regrades = regrade_stored_runs(
                history, plan.runs, lambda: RegradingJudges(program, approval), damage_messages.append
            )
            graded = list(self._until_stopped(regrades))
        if graded and not self._stopped:
            store_grades(self._file, plan, graded, now, program.secrets, lambda _: None)
        return graded


def _first_of(damage_messages: Sequence[str]) -> str:
    first, *others = damage_messages
    if others:
        return f"{first}, and {counted(len(others), 'other run')}"
    return first


def _regraded_text(plan: RegradingPlan, graded: Sequence[RunRegrade]) -> str:
    moved = moves_text(Move(each.before, each.after) for each in graded)
    parts = [f"Regraded: {moved}" if moved else "Regraded: no grade changed"]
    not_regraded = [each.after.not_regraded for each in graded if each.after.not_regraded is not None]
    if not_regraded:
        parts.append(f"{counted(len(not_regraded), 'run')} not regraded, the first: {not_regraded[0]}")
    otherwise = sum(each.run.has_other_requests for each in graded)
    if otherwise:
        parts.append(f"{counted(otherwise, 'run')} of cases that have changed since")
    if plan.missing:
        parts.append(f"{counted(len(plan.missing), 'run')} left out, because their cases no longer exist")
    return "; ".join([*parts, *plan.problems])
