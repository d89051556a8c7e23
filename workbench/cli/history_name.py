"""`workbench history name`: what a batch is called."""

from __future__ import annotations

import argparse

from workbench.cli.history_desk import Desk
from workbench.evaluation.exit_codes import OK
from workbench.history.editing import name_batch
from workbench.reports.visible import one_line


def execute(options: argparse.Namespace, desk: Desk) -> int:
    """Name the batch, or take its name away; returns an exit code."""
    with desk.history() as history:
        batch = history.batch(options.batch)
        loses = next((each for each in history.all_batches() if options.name and each.name == options.name), None)
    name_batch(desk.file, batch.number, None if options.remove else options.name, desk.warn)
    if options.remove:
        had = f", no longer {one_line(batch.name)}" if batch.name else ", which had no name"
        desk.write([f"#{batch.number}{had}"])
        return OK
    lost = f"; #{loses.number} was, until now" if loses is not None and loses.number != batch.number else ""
    desk.write([f"#{batch.number} is {one_line(options.name)} now{lost}"])
    return OK
