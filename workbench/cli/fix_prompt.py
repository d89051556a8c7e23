"""`workbench fix-prompt`: describe a failed run in a text to paste into a coding agent."""

from __future__ import annotations

import argparse

from workbench.cli.parser import add_history_options, add_named_run
from workbench.evaluation.exit_codes import OK, USAGE


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_named_run(parser)
    add_history_options(parser, may_be_none=False)


def execute(arguments: argparse.Namespace) -> int:
    from workbench.cli.named_run import named_run
    from workbench.cli.redaction import create_program, redacted, warn, write
    from workbench.config.models import ConfigError
    from workbench.history.records import HistoryError
    from workbench.show.views.fix_prompt import fix_prompt
    from workbench.trajectory.recording import RecordingError

    try:
        program = create_program()
        run = named_run(arguments, program)
        write(redacted(fix_prompt(run.case, run.result, run.suite)))
    except (ConfigError, HistoryError, RecordingError, ValueError) as error:
        warn(str(error))
        return USAGE
    return OK
