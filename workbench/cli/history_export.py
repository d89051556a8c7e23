"""`workbench export BATCH`: write a batch's runs as recordings, reports or files of other programs, or send traces."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path

from workbench.cli.export_output import Export, export_runs
from workbench.cli.history_command import HistoryCommand, grading_of
from workbench.cli.report_output import can_record_in
from workbench.config.folders import history_option
from workbench.dataclasses import dataclass
from workbench.engine.recordings import export_recording
from workbench.engine.suite_secrets import exempt_stored_suites
from workbench.evaluation.exit_codes import OK, USAGE
from workbench.evaluation.stored_runs import result_of_row, stored_report
from workbench.exchange.exporters.exported import exported_run
from workbench.exchange.exporters.forms import FORMS
from workbench.grading.lazy_sequences import SelectedSequence
from workbench.history.history import History
from workbench.history.records import BatchRow, Regrade, RunRow
from workbench.numerals import counted
from workbench.show.forms import any_form_of_file, why_too_many
from workbench.show.views.batch_list import batch_name
from workbench.show.visible import one_line


@dataclass(frozen=True)
class Options:
    """The options of `workbench export` for a batch.

    `otlp` is the collector to send traces to, "" for the collector in an environment variable, `None` to write files.
    """

    batch: str
    folder: Path | None
    grading: int | str | None
    format: str
    otlp: str | None
    otlp_content: bool


def execute(options: Options, command: HistoryCommand) -> int:
    form = None if options.format == "recordings" else options.format
    export = Export(form, options.folder, options.otlp, options.otlp_content, "name the folder with -o")
    folder = options.folder if options.otlp is None and form not in FORMS else None
    if folder is not None and any_form_of_file(folder) is not None and not folder.is_dir():
        command.warn(f"{folder} looks like a file name: give the folder to export into")
        return USAGE
    if folder is None and not export.is_complete():
        return USAGE
    with command.history() as history:
        batch = history.batch(options.batch)
        command.register_secrets(batch)
        exempt_stored_suites(command.program, history, batch)
        grading = grading_of(history, batch, options.grading)
        runs = history.runs(batch.number, grading)
        # A batch may have a million runs, so only their indices are kept in memory.
        over = SelectedSequence(runs, array("L", (place for place, run in enumerate(runs) if run.figures is not None)))
        if missing := len(runs) - len(over):
            command.warn(f"{counted(missing, 'run')} of batch {batch.number} never ran and cannot be exported")
        if not over:
            command.warn("nothing was exported")
            return USAGE
        damaged: list[str] = []
        secrets = command.program.secrets
        if folder is None:
            # This is a generator, because the recordings of a large batch do not fit into memory.
            runs_of_batch = (
                exported_run(recording, secrets, result_of_row(row, recording))
                for row, recording in history.recordings(over, grading, damaged.append)
            )
            done = export_runs(
                export,
                command.program,
                runs_of_batch,
                lambda: stored_report(history, batch, runs, grading, secrets, damaged.append),
                _name(batch, grading),
                f"{batch_name(batch)}: ",
            )
            command.warn_of_damage(damaged)
            return OK if done and not damaged else USAGE
        if not can_record_in(folder):
            return USAGE
        shows = f"'workbench history show {batch.number} --format records{history_option(history.file)}'"
        if options.format == "json":
            if (why := why_too_many("json", len(over), f"{shows} has a line of JSON for each of them")) is not None:
                command.warn(f"nothing was exported: {why}")
                return USAGE
            return _report(history, batch, runs, grading, folder, command)
        count = 0
        for _, recording in history.recordings(over, grading, damaged.append):
            export_recording(folder, recording, secrets, f"{_name(batch, grading)}.")
            count += 1
    command.warn_of_damage(damaged)
    command.write([f"{batch_name(batch)}: {counted(count, 'recording')} in {one_line(str(folder))}"])
    return USAGE if damaged else OK


def _name(batch: BatchRow, grading: Regrade | None) -> str:
    if grading is None:
        return f"batch-{batch.number}"
    return f"batch-{batch.number}.grading-{grading.number}"


def _report(
    history: History,
    batch: BatchRow,
    runs: Sequence[RunRow],
    grading: Regrade | None,
    folder: Path,
    command: HistoryCommand,
) -> int:
    file = folder / f"{_name(batch, grading)}.json"
    damaged: list[str] = []
    report = stored_report(history, batch, runs, grading, command.program.secrets, damaged.append)
    command.warn_of_damage(damaged)
    try:
        # Exports never replace a file. The mode "x" fails if it exists.
        with file.open("x", encoding="utf-8") as written:
            written.writelines(report.json_pieces())
    except FileExistsError:
        command.warn(f"{file} already exists: move it away, or export into another folder")
        return USAGE
    except OSError as error:
        command.warn(f"cannot write {file}: {error.strerror}")
        return USAGE
    command.write([f"{batch_name(batch)}: {counted(len(report.runs), 'run')} in {one_line(str(file))}"])
    return USAGE if damaged else OK
