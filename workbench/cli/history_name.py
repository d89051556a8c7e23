"""`workbench history name`: what a batch is called."""

from __future__ import annotations

from workbench.cli.history_command import HistoryCommand
from workbench.dataclasses import dataclass
from workbench.evaluation.exit_codes import OK
from workbench.history.edits import name_batch
from workbench.show.visible import one_line


@dataclass(frozen=True)
class Options:
    """Which batch is named; with `remove`, it loses its name."""

    batch: str
    name: str | None
    remove: bool


def execute(options: Options, command: HistoryCommand) -> int:
    """Name the batch, or remove its name; returns an exit code."""
    with command.history() as history:
        batch = history.batch(options.batch)
        loses = next((number for number, name in history.names().items() if name == options.name), None)
    name_batch(command.file, batch.number, None if options.remove else options.name, command.warn)
    if options.remove:
        had = f", no longer {one_line(batch.name)}" if batch.name else ", which had no name"
        command.write([f"#{batch.number}{had}"])
        return OK
    assert options.name is not None  # one of the two is given
    lost = f"; #{loses} no longer is" if loses is not None and loses != batch.number else ""
    command.write([f"#{batch.number} is now {one_line(options.name)}{lost}"])
    return OK
