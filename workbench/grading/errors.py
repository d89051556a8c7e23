"""The ways in which grading fails that say nothing about the model."""

from __future__ import annotations

from workbench.suite.checks import Judged
from workbench.trajectory.messages import JsonValue


class GradingError(Exception):
    """A case cannot be graded as its suite asks. The message names the key and what to write instead."""


class JudgementNeededError(Exception):
    """A judge must be asked of a value before the run can be graded; raised by an `CheckContext.judge` that can be.

    It is no CheckError, so that whoever adds words to one lets it pass.
    """

    def __init__(self, check: Judged, value: JsonValue) -> None:
        super().__init__(f"a judge has not been asked yet: {check.judged}")
        self.check = check
        self.value = value
