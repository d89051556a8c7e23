"""With which score a run counts in gates."""

from __future__ import annotations

from typing import Protocol

from workbench.grading.grade import Status


class Scored(Protocol):
    """What the rule needs of a run or of a single grade."""

    @property
    def status(self) -> Status | None: ...
    @property
    def score(self) -> float | None: ...
    @property
    def is_broken(self) -> bool: ...


def counts_zero(run: Scored) -> bool:
    """Whether a graded run counts 0 whatever its score is: it failed for a reason beside the score, or without one."""
    return run.is_broken or (run.status == "failed" and run.score is None)


def counted_score(run: Scored) -> float | None:
    """The score with which a graded run counts in gates, aggregates and baselines; `None` where it has none and did not
    fail."""
    return 0.0 if counts_zero(run) else run.score
