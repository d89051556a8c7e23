"""Runs with which the app begins, by the options of the command line."""

from __future__ import annotations

import argparse

from workbench.batches.begin import Begin, Opened
from workbench.batches.plan import Selection
from workbench.engine.breakpoints import Breakpoint


def begin_from(options: argparse.Namespace, opens: Opened, breakpoints: tuple[Breakpoint, ...] = ()) -> Begin:
    """What `--case`, `--repeats`, `--execute` and so on ask of the app."""
    return Begin(
        breakpoints,
        Selection(frozenset(options.case), frozenset(options.tag)),
        options.repeats,
        options.by,
        True if options.execute or options.execute_all else None,
        options.execute_all,
        options.concurrency,
        options.no_judge_cache,
        options.pace == "recorded",
        opens,
        opens == "compare" and options.only_differences,
    )
