"""`workbench run --break`: the app is opened, where the selected cases are run and held at the breakpoints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from workbench.cli.app import AppOptions, show_app
from workbench.cli.door import begin_program, warn
from workbench.cli.making import planned
from workbench.engine.breakpoint_doubts import doubt_about
from workbench.engine.breakpoint_text import BreakpointError, breakpoint_of
from workbench.engine.breakpoints import Breakpoint
from workbench.evaluation.exit_codes import USAGE
from workbench.evaluation.options import Begin, RunOptions
from workbench.suite.loading import SuiteFile
from workbench.tools.listings import Listings, definition_of
from workbench.trajectory.messages import ToolDefinition


def open_at_breakpoints(options: RunOptions, lines: Sequence[str], app: AppOptions) -> int:
    """Open the app with runs that are held at the breakpoints that lines describe; returns its exit code."""
    breakpoints = _breakpoints(lines)
    if breakpoints is None:
        return USAGE
    program = begin_program(options.model_options)
    plan = planned(options, program, quiet=False)
    if plan is None:
        return USAGE
    tools = _known_tools(plan.files, Listings(program.folders.listings))
    for line, point in zip(lines, breakpoints, strict=True):
        if (doubt := doubt_about(point, tools)) is not None:
            warn(f"--break {line!r}: {doubt}", program.secrets)
    return show_app(app, program, begin=Begin(options, breakpoints))


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


def _breakpoints(lines: Sequence[str]) -> tuple[Breakpoint, ...] | None:
    """The breakpoints that lines are; `None` when some are none, which has then been said."""
    found: list[Breakpoint] = []
    for line in lines:
        try:
            found.append(breakpoint_of(line))
        except BreakpointError as error:
            warn(f"--break {line!r}: {error}")
    return tuple(found) if len(found) == len(lines) else None
