"""The lines of the screen of breakpoints, and completions while one is typed."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.authoring.form.completions import Completion
from workbench.engine.breakpoint_text import KINDS, breakpoint_line
from workbench.engine.breakpoints import Breakpoint
from workbench.reports.visible import one_line
from workbench.tui.breakpoints.state import Breakpoints
from workbench.tui.lines.glyphs import GLYPHS
from workbench.tui.lines.prose import paragraph
from workbench.tui.lines.spans import Line, Span, cut_line, wrap

_NAMED = ("tool", "error", "failed-check")


def point_line(point: Breakpoint, width: int) -> Line:
    """Return one breakpoint: whether it is enabled, and its text."""
    text = one_line(breakpoint_line(point))
    if point.enabled:
        return cut_line((Span(f" {GLYPHS.breakpoint} ", "failed"), Span(text)), width)
    return cut_line((Span(f"   off  {text}", "muted"),), width)


def kept_lines(breakpoints: Breakpoints, width: int) -> list[Line]:
    """Return where breakpoints are stored, or why they are not."""
    if breakpoints.problem is not None:
        return warned_lines(breakpoints.problem, width)
    if breakpoints.file is None:
        said = "For this session only: given with --break on the command line."
    else:
        said = f"Stored in {one_line(str(breakpoints.file.path))}"
    return [(Span(f" {row}", "muted"),) for row in wrap(said, max(width - 2, 10))]


def typing_lines(text: str, mistake: str | None, width: int) -> list[Line]:
    """Return the error in the typed text, otherwise the meaning of its first word."""
    if mistake is not None:
        return warned_lines(mistake, width)
    kind = text.split(" ", 1)[0]
    meaning = next((said for name, said in KINDS.items() if name == kind), "")
    meaning = meaning or f"one of {', '.join(KINDS)}"
    return [(Span(f" {row}", "muted"),) for row in wrap(meaning, max(width - 2, 10))]


def warned_lines(text: str | None, width: int) -> list[Line]:
    """Return a warning, empty if there is none."""
    return paragraph(f"{GLYPHS.warned} ", one_line(text), "warned", 1, max(width - 4, 10)) if text is not None else []


def completions_of(text: str, tools: Sequence[str]) -> tuple[Completion, ...]:
    """Return the completions of the typed text, as complete lines. Names that begin with it come first."""
    kind, blank, name = text.lstrip().partition(" ")
    if not blank:
        begun = (each for each in KINDS if each.startswith(kind))
        return tuple(
            Completion(f"{each} " if each in ("tool", "round") else each, each, KINDS[each].partition(":")[0])
            for each in begun
        )
    if kind not in _NAMED:
        return ()
    typed = name.strip().casefold()
    holding = [tool for tool in tools if typed in tool.casefold()]
    named = sorted(holding, key=lambda tool: not tool.casefold().startswith(typed))
    lines = (breakpoint_line(Breakpoint(on, tool)) for on in KINDS if on == kind for tool in named)
    return tuple(Completion(line, one_line(line)) for line in lines if line != text.strip())
