"""Judgements of values by judges, and the cost of asking for them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.checks.check import describe
from workbench.checks.combined_kinds import Judged
from workbench.checks.patterns import CheckError
from workbench.checks.values import canonical
from workbench.dataclasses import dataclass
from workbench.trajectory.messages import JsonValue, Usage
from workbench.trajectory.typed_json import escape_lone_surrogates

if TYPE_CHECKING:
    from workbench.checks.check import CheckVerdict


@dataclass(frozen=True, slots=True)
class Judgement:
    """A judge's finding on one value. `model` is the judge's name in the suite or as chosen by the person, `value` is
    the value as `judged_value` writes it, `rationale` is one line. Where the judge rated the value, `number` is what it
    gave on the `scale` (low, high), and `holds` says whether that is enough."""

    model: str
    criteria: str
    value: str
    holds: bool
    rationale: str
    scale: tuple[float, float] | None = None
    number: float | None = None

    @property
    def verdict(self) -> CheckVerdict:
        """The judgement as the verdict of a check. A rating scores 0 at the low end of its scale and 1 at the high
        one."""
        # Imported here: `evaluate` imports what compares texts and dates, which code that only reads results does not
        # need.
        from workbench.checks.check import CheckVerdict

        reason = self.rationale.removesuffix(".")
        if self.scale is None or self.number is None:
            return CheckVerdict(1.0 if self.holds else 0.0, self.holds, reason)
        low, high = self.scale
        rated = f"{self.number:g} on {low:g}..{high:g}: {reason}"
        return CheckVerdict((self.number - low) / (high - low), self.holds, rated, number=self.number)

    def by(self, check: Judged) -> Judgement:
        """Returns the judgement with whether the number is enough for a check."""
        if self.number is None or check.at_least is None:
            return self
        return replace(self, holds=self.number >= check.at_least)


@dataclass(frozen=True, slots=True)
class JudgeUse:
    """The cost of asking judges, apart from that of the run itself: the number of questions, the tokens, and US
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
    """Returns a value as judges see it: JSON on one line, keys sorted, texts in NFC. Equal values have one text.

    Raises ValueError or RecursionError for what JSON cannot express.
    """
    text = json.dumps(canonical(value), ensure_ascii=False, sort_keys=True, allow_nan=False)
    return escape_lone_surrogates(text)


class KnownJudgements:
    """Judgements by criteria, scale and value."""

    def __init__(self, judgements: Iterable[Judgement]) -> None:
        self._by_value: dict[tuple[str, tuple[float, float] | None, str], dict[str, Judgement]] = {}
        for judgement in judgements:
            asked = judgement.criteria, judgement.scale, judgement.value
            self._by_value.setdefault(asked, {}).setdefault(judgement.model, judgement)

    def of(self, check: Judged, value: str, chosen: str | None = None) -> Judgement | None:
        """Returns the judgement of a value as `judged_value` writes it: by the model that the check names, else by the
        one called `chosen`, else by any model."""
        found = self._by_value.get((check.judged, check.scale, value), {})
        model = check.model or chosen
        judgement = found.get(model) if model is not None else next(iter(found.values()), None)
        return judgement.by(check) if judgement is not None else None


def unjudged(check: Judged, why: str) -> CheckError:
    """Returns the error of a check that has no judgement."""
    return CheckError(f"the check {describe(check)!r} cannot be judged: {why}")


class JudgementNeededError(Exception):
    """A judge must be asked about a value before the run can be graded. Raised by a `CheckContext.judge` that can be
    asked later.

    It is no CheckError, so that handlers that add context to one do not catch it.
    """

    def __init__(self, check: Judged, value: JsonValue) -> None:
        super().__init__(f"a judge has not been asked yet: {check.judged}")
        self.check = check
        self.value = value
