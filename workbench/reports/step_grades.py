"""The steps of a chain as lines of text: each with its sign, its score and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from workbench.grading.grade import StepGrade
from workbench.reports.paint import Paint
from workbench.reports.signs import STATUS_SIGNS
from workbench.reports.values import score_text
from workbench.reports.visible import one_line, shortened

NOT_REACHED = "–"
"""The sign of a step that was never reached, and what stands for its score."""


def step_lines(steps: Sequence[StepGrade], paint: Paint, width: int) -> Iterator[str]:
    """A line for each step, cut to so many cells: `✓ step 1  1.00  right: tool 1.00, arguments 1.00`."""
    digits = len(str(len(steps)))
    for step in steps:
        sign, tone = (STATUS_SIGNS[step.status], step.status) if step.status else (NOT_REACHED, "skipped")
        score = f"{NOT_REACHED:>4}" if step.score is None else score_text(step.score)
        said = f"step {step.step:>{digits}}  {score}  {one_line(step.why)}"
        yield f"{paint(sign, tone)} {shortened(said, width - 2)}"
