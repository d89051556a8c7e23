"""What `run` and `compare` do alike: ask for what runs need, make them, and say how an interrupted batch goes on."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Literal

from workbench.batches.approval import Proposal
from workbench.batches.recordings import recording_lines
from workbench.cli.judges import judge_problems
from workbench.cli.live import Live, Show, run_live
from workbench.cli.planning import ToRun, suite_names
from workbench.cli.recordings import can_record, recordings_of
from workbench.cli.report_output import can_write, stream_of
from workbench.cli.resuming import to_go_on, way_to_go_on
from workbench.cli.suites import complain
from workbench.cli.trust import approved
from workbench.config.program import Program
from workbench.history.records import HistoryError

Command = Literal["run", "compare"]


def says_what(options: argparse.Namespace, command: Command) -> bool:
    """Whether the options say what is to be run; if not, that has been said."""
    if not options.paths and options.resume is None:
        complain(f"say what to {command}: workbench {command} PATH …, or --resume to go on with a batch")
        return False
    if options.anyway and options.resume is None:
        complain("--anyway is about a batch that goes on: give --resume too")
        return False
    return True


def make_runs(
    options: argparse.Namespace, program: Program, asked: ToRun, history: Path | None, command: Command, show: Show
) -> Live | None:
    """Make runs and keep them in a history; `None` when they cannot be made, which has then been said before any
    begins."""
    if not options.quiet:
        cases = {(run.file.path, run.case.id): (run.file, run.case) for run in asked.runs}.values()
        for problem in judge_problems(cases, program.models):
            complain(problem, program.secrets)
    proposal = Proposal.of_runs(asked.runs, program, asked.known)
    approval = approved(proposal, program, all_of_them=options.trust)
    if approval is None or not can_write(options.output) or not can_record(options):
        return None
    lines = recording_lines(program.secrets)
    record = recordings_of(options, lines)
    try:
        with stream_of(options, show.stream) as stream:
            live = run_live(
                asked.runs,
                suite_names=suite_names(asked.files),
                program=program,
                execution=asked.execution,
                concurrency=asked.concurrency,
                approval=approval,
                show=replace(show, stream=stream),
                lines=lines if options.format == "jsonl" else None,
                record=record,
                own_pace=options.pace == "recorded",
                judge_anew=options.no_judge_cache,
                history=history,
                going_on=asked.going_on,
                over=asked.over.values(),
                compares=command == "compare",
            )
    except HistoryError as error:  # whoever goes on does so for the history
        complain(f"nothing was run: {error}", program.secrets)
        return None
    if record is not None and record.problem is not None:
        live.recorded = False
        complain(record.problem, program.secrets)
    if live.interrupted_by is not None and live.batch is not None and history is not None:
        complain(f"{to_go_on(command)}: {way_to_go_on(history, live.batch, command)}", program.secrets)
    return live
