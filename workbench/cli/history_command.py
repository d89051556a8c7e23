"""What the subcommands of `workbench history` share: their context, and functions that read the history."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from workbench.cli.redaction import create_program, warn, write, write_json
from workbench.cli.report_output import Output, report_width
from workbench.config.folders import history_option
from workbench.config.model_book import ModelOptions
from workbench.config.models import ConfigError
from workbench.config.program import Program
from workbench.dataclasses import dataclass
from workbench.engine.suite_secrets import register_secrets
from workbench.evaluation.exit_codes import OK, USAGE
from workbench.history.claims import is_claimed
from workbench.history.history import History
from workbench.history.records import BatchRow, HistoryError, NoSuchBatchError, Regrade, SuiteRef
from workbench.numerals import counted
from workbench.show.text import Paint, paint_for
from workbench.trajectory.recording import RecordingError

if TYPE_CHECKING:
    from workbench.show.json.base import ReportModel


_Options = TypeVar("_Options")


@dataclass(frozen=True)
class HistoryCommand:
    """The context of a subcommand of `workbench history`: the program, the history's file, and the style of text."""

    program: Program
    file: Path
    paint: Paint
    width: int

    @property
    def cut_at(self) -> int | None:
        """The width at which lines are cut, `None` if there is no terminal."""
        return self.width if sys.stdout.isatty() else None

    def history(self) -> History:
        return History(self.file)

    def is_running(self, batch: BatchRow) -> bool:
        """Return whether a program is running this batch now."""
        return batch.ended_at is None and is_claimed(self.file, batch.number)

    def warn(self, message: str) -> None:
        warn(message, self.program.secrets)

    def warn_of_damage(self, damage_messages: Iterable[str]) -> None:
        """Warn of the reasons why runs were left out. A repeated reason is printed once."""
        for why in dict.fromkeys(damage_messages):
            self.warn(f"left out: {why}")

    def register_secrets(self, *batches: BatchRow) -> None:
        """Register the secrets of batches' suites. Call this before any of their content is shown or written."""
        self.register_suite_secrets(chain.from_iterable(batch.suites for batch in batches))

    def register_suite_secrets(self, suites: Iterable[SuiteRef]) -> None:
        """Register the secrets of suites. Call this before any of their content is shown or written."""
        # Secrets come from a folder's `.env` and settings, so one suite per folder is enough.
        for folder in {suite.file.parent for suite in suites}:
            try:
                register_secrets(self.program, folder)
            except ConfigError as error:
                self.warn(str(error))

    def write(self, lines: Iterable[str]) -> None:
        for line in lines:
            write(f"{line}\n")

    def deliver(self, output: Output, pieces: Callable[[Output], Iterable[str]]) -> int:
        return OK if output.deliver(pieces) else USAGE

    def write_json(self, report: ReportModel) -> None:
        write_json(report)


def run_history_command(run: Callable[[HistoryCommand], int], file: Path, judge: str | None) -> int:
    """Run a subcommand of `workbench history` and return its exit code, `USAGE` if the history cannot be used."""
    try:
        program = create_program(ModelOptions(judge=judge))
    except ConfigError as error:
        warn(str(error))
        return USAGE
    try:
        return run(HistoryCommand(program, file, paint_for(sys.stdout, os.environ), report_width(sys.stdout)))
    except (HistoryError, RecordingError) as error:
        warn(str(error), program.secrets)
        return USAGE


def run_on_batch(word: Callable[[_Options, HistoryCommand], int], options: _Options, command: HistoryCommand) -> int:
    """Run a subcommand on a batch, and return its exit code.

    Raises HistoryError. If the batch is unknown, the message says that there is no such file either, because commands
    also take paths."""
    try:
        return word(options, command)
    except NoSuchBatchError as error:
        raise HistoryError(f"{error}; no file and no folder has this name either") from error


def newest(history: History) -> BatchRow:
    """Return the newest batch that is not a fork.

    Raises HistoryError if there is no such batch."""
    for batch in history.each_batch(forks=False):
        if batch.damage is None:
            return batch
    keeps_one = f"'workbench run PATH{history_option(history.file)}' keeps one"
    raise HistoryError(f"there is no batch in {history.file}: {keeps_one}")


def grading_of(history: History, batch: BatchRow, selector: int | str | None) -> Regrade | None:
    """Return the regrade that `--grading` selects, `None` for the original grades.

    Raises HistoryError if the batch has no regrade of that number."""
    if selector is None:
        return None
    gradings = history.gradings(batch.number)
    if selector == "latest":
        return next(reversed(gradings), None)
    for grading in gradings:
        if grading.number == selector:
            return grading
    was = f"was regraded {counted(len(gradings), 'time')}" if gradings else "was never regraded"
    raise HistoryError(
        f"batch {batch.number} {was}: there is no grading {selector}; "
        f"'workbench grade {batch.number}{history_option(history.file)}' makes one"
    )
