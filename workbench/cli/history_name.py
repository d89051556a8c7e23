"""`workbench history name`: give a batch a name, or remove the name."""

from __future__ import annotations

from workbench.cli.history_command import HistoryCommand
from workbench.dataclasses import dataclass
from workbench.evaluation.exit_codes import OK
from workbench.history.edits import name_batch
from workbench.show.visible import one_line


@dataclass(frozen=True)
class Options:
    """The batch and its new name. With `remove`, the batch loses its name."""

    batch: str
    name: str | None
    remove: bool


def execute(options: Options, command: HistoryCommand) -> int:
    with command.history() as history:
        batch = history.batch(options.batch)
        others = {}
        for number, name in history.names().items():
            if number != batch.number:
                others[name] = number
    if options.remove:
        name_batch(command.file, batch.number, None, command.warn)
        had = f"no longer {one_line(batch.name)}" if batch.name else "which had no name"
        command.write([f"#{batch.number}, {had}"])
        return OK
    # The parser requires a name unless --remove is given.
    assert options.name is not None
    name_batch(command.file, batch.number, options.name, command.warn)
    done = f"#{batch.number} is now {one_line(options.name)}"
    if options.name in others:
        done += f"; #{others[options.name]} no longer is"
    command.write([done])
    return OK
