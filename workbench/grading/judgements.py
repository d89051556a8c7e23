"""What judges said of values, and what asking them took."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.checks.canonical import canonical
from workbench.checks.describe import CheckError, describe
from workbench.suite.checks import Judged
from workbench.trajectory.messages import JsonValue, Usage
from workbench.trajectory.typed_json import escape_lone_surrogates

if TYPE_CHECKING:
    from workbench.checks.evaluate import CheckVerdict


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a judge found of one value. `model` is what the judge is called in the suite or by the person, `value` is
    the value as `judged_value` writes it, `rationale` one line."""

    model: str
    criteria: str
    value: str
    holds: bool
    rationale: str

    @property
    def verdict(self) -> CheckVerdict:
        """The judgement as that of a check."""
        # Evaluating imports what compares texts and dates; whoever only holds results needs none of it.
        from workbench.checks.evaluate import CheckVerdict

        return CheckVerdict(1.0 if self.holds else 0.0, self.holds, self.rationale.removesuffix("."))


@dataclass(frozen=True, slots=True)
class JudgeUse:
    """What asking judges took, apart from what the run itself took: how often one was asked, the tokens, and US
    dollars, `None` where they are not known."""

    asked: int = 0
    usage: Usage | None = None
    cost_usd: float | None = 0.0

    def __add__(self, other: JudgeUse) -> JudgeUse:
        usages = [use.usage for use in (self, other) if use.usage is not None]
        known = self.cost_usd is not None and other.cost_usd is not None
        cost = (self.cost_usd or 0.0) + (other.cost_usd or 0.0) if known else None
        return JudgeUse(self.asked + other.asked, sum(usages, Usage()) if usages else None, cost)


NOBODY_ASKED = JudgeUse()


def judged_value(value: JsonValue) -> str:
    """A value as it is shown to a judge: JSON on one line, keys sorted, texts in NFC. Equal values have one text.

    Raises ValueError or RecursionError for what JSON cannot say.
    """
    text = json.dumps(canonical(value), ensure_ascii=False, sort_keys=True, allow_nan=False)
    return escape_lone_surrogates(text)


class KnownJudgements:
    """Judgements by what they are about."""

    def __init__(self, judgements: Iterable[Judgement]) -> None:
        self._by_value: dict[tuple[str, str], dict[str, Judgement]] = {}
        for judgement in judgements:
            self._by_value.setdefault((judgement.criteria, judgement.value), {}).setdefault(judgement.model, judgement)

    def of(self, check: Judged, value: str, chosen: str | None = None) -> Judgement | None:
        """The judgement of a value as `judged_value` writes it: by the model that the check names, else by that called
        `chosen`, else by whatever model."""
        found = self._by_value.get((check.judged, value), {})
        model = check.model or chosen
        return found.get(model) if model is not None else next(iter(found.values()), None)


def unjudged(check: Judged, why: str) -> CheckError:
    """The error of a check that has no judgement."""
    return CheckError(f"the check {describe(check)!r} cannot be judged: {why}")


class JudgementNeededError(Exception):
    """A judge must be asked of a value before the run can be graded; raised by an `CheckContext.judge` that can be.

    It is no CheckError, so that whoever adds words to one lets it pass.
    """

    def __init__(self, check: Judged, value: JsonValue) -> None:
        super().__init__(f"a judge has not been asked yet: {check.judged}")
        self.check = check
        self.value = value
