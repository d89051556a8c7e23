"""The deviations of endpoints that were repaired, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from workbench.numerals import counted
from workbench.show.visible import one_line
from workbench.trajectory.events import Deviation

if TYPE_CHECKING:
    from workbench.grading.grade import RunResult
    from workbench.grading.run_summary import RunSummary


def deviation_text(deviation: Deviation) -> str:
    """Return a deviation as a line of a run."""
    return f"repaired: {one_line(deviation.detail)}"


def deviation_lines(deviations: Iterable[Deviation]) -> list[str]:
    """Return the deviations of an answer as lines, each text once."""
    return list(dict.fromkeys(map(deviation_text, deviations)))


def repaired_line(results: Sequence[RunResult]) -> str | None:
    """Return in how many of the runs that asked a model which deviations were repaired, `None` if there were none."""
    return _line(Counter(kind for result in results for kind in result.repaired), sum(r.was_asked for r in results))


def repaired_line_of(runs: Iterable[RunSummary]) -> str | None:
    """Return the same of summaries of runs."""
    kinds = Counter[str]()
    asked = 0
    for run in runs:
        kinds.update(run.repaired)
        asked += run.asked
    return _line(kinds, asked)


def _line(kinds: Mapping[str, int], runs_asked: int) -> str | None:
    asked = counted(runs_asked, "run")
    parts = [f"{one_line(kind)} in {runs:,} of {asked}" for kind, runs in kinds.items()]
    return f"repaired: {', '.join(parts)}" if parts else None
