"""The run that a command's arguments name: a run of a stored batch, or a recording."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from workbench.cli.parser import history_to_read
from workbench.cli.redaction import register_suite_secrets
from workbench.config.program import Program
from workbench.dataclasses import dataclass
from workbench.engine.plan import parse_grader
from workbench.engine.recordings import case_of_recording, result_of_recording, suite_of_recording
from workbench.grading.grade import RunResult
from workbench.history.history import History
from workbench.history.records import HistoryError
from workbench.numerals import counted
from workbench.suite.grading_model import GraderName
from workbench.suite.model import Case
from workbench.suite.suite_file import SuiteFile
from workbench.suite.variants import variant_of, varied_case
from workbench.trajectory.recording import RecordingError, read_recording


@dataclass(frozen=True)
class NamedRun:
    """A run, with its suite and its case at the time of the run.

    `file` is the suite at that time. `written` is the case without the run's variant. `suite` is the path of the suite
    for messages."""

    file: SuiteFile
    written: Case
    result: RunResult
    suite: str
    by: GraderName | None
    """The deciding grader if it differs from the case's."""

    @property
    def case(self) -> Case:
        """The case with the changes of the run's variant."""
        assert self.file.suite is not None
        return varied_case(self.written, variant_of(self.file.suite, self.result.model))


def named_run(arguments: argparse.Namespace, program: Program) -> NamedRun:
    """Return the run that the arguments of a command name, and register the secrets of its suite.

    Raises HistoryError or RecordingError."""
    name: str = arguments.run
    if arguments.number is None:
        if not Path(name).is_file():
            raise HistoryError(
                f"there is no recording {name}: for a run of the history write its batch and its number, such as"
                f" '{name} --run 1'; 'workbench history show BATCH' lists the runs"
            )
        recording, path = read_recording(Path(name)), None
    else:
        with History(history_to_read(arguments, ())) as history:
            batch = history.batch(name)
            row = history.run_at(batch.number, arguments.number - 1)
            if row is None:
                raise HistoryError(
                    f"batch {batch.number} has {counted(batch.planned, 'run')}: there is no run {arguments.number}"
                )
            recording, path = history.recording(row, None), row.suite.file
    file = suite_of_recording(recording)
    if file.suite is None:
        unreadable = f"{recording.path}: its suite cannot be read"
        raise RecordingError(": ".join([unreadable, *(problem.message for problem in file.errors[:1])]))
    case = case_of_recording(recording, file)
    if path is not None:
        # Paths in a stored suite are relative to the file of the suite, not to the history.
        file = replace(file, path=path)
    register_suite_secrets(program, [file])
    header = recording.header
    return NamedRun(file, case, result_of_recording(recording), str(path or header.suite.path), parse_grader(header.by))
