"""`workbench run --break`: the app is opened, where the selected cases are run and held at the breakpoints."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from workbench.cli.beginning import begin_from
from workbench.cli.exit_codes import USAGE
from workbench.cli.main import show_app
from workbench.cli.model_options import program_for
from workbench.cli.planning import plan_of
from workbench.cli.suites import complain
from workbench.engine.breakpoint_doubts import doubt_about
from workbench.engine.breakpoint_text import BreakpointError, breakpoint_of
from workbench.engine.breakpoints import Breakpoint
from workbench.suite.loading import SuiteFile
from workbench.tools.listings import Listings, definition_of
from workbench.trajectory.messages import ToolDefinition

_OF_REPORTS = (
    ("format", "--format", None),
    ("output", "--output", None),
    ("min_score", "--min-score", None),
    ("baseline", "--baseline", None),
    ("fail_on", "--fail-on", None),
    ("record_failed", "--record-failed", None),
    ("quiet", "--quiet", False),
    ("verbose", "--verbose", False),
)
"""Options that the app has no use for: what they are kept as, their names, and what stands there without them."""


def open_at_breakpoints(options: argparse.Namespace) -> int:
    """Open the app with runs that are held at breakpoints; returns its exit code."""
    for kept_as, name, without in _OF_REPORTS:
        if getattr(options, kept_as) != without:
            complain(f"{name} is about the report of 'workbench run', and --break opens the app: leave one of them out")
            return USAGE
    breakpoints = _breakpoints(options.breakpoints)
    program = program_for(options) if breakpoints is not None else None
    planned = plan_of(options, program) if program is not None else None
    if breakpoints is None or program is None or planned is None:
        return USAGE
    tools = _known_tools(planned[0], Listings(program.folders.listings))
    for line, point in zip(options.breakpoints, breakpoints, strict=True):
        if (doubt := doubt_about(point, tools)) is not None:
            complain(f"--break {line!r}: {doubt}", program.secrets)
    begin = begin_from(options, "run", breakpoints)
    return show_app(options, program, begin=begin)


def _known_tools(files: Iterable[SuiteFile], listings: Listings) -> list[ToolDefinition]:
    """The tools of suites, as far as they are written out or were listed before."""
    tools: list[ToolDefinition] = []
    for file in files:
        if file.suite is not None:
            tools += map(definition_of, file.suite.tools)
            tools += (definition_of(tool) for case in file.suite.cases for tool in case.tools)
            for listing in listings.of(file.suite, file.path).values():
                tools += listing.tools
    return tools


def _breakpoints(lines: list[str]) -> tuple[Breakpoint, ...] | None:
    """The breakpoints that lines are; `None` when some are none, which has then been said."""
    found: list[Breakpoint] = []
    for line in lines:
        try:
            found.append(breakpoint_of(line))
        except BreakpointError as error:
            complain(f"--break {line!r}: {error}")
    return tuple(found) if len(found) == len(lines) else None
