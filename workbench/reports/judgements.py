"""Judgements, and what asking for them took, as text."""

from __future__ import annotations

from workbench.grading.judgements import Judgement, JudgeUse
from workbench.reports.values import cost_text, counted, tokens_text
from workbench.reports.visible import one_line


def judgement_text(judgement: Judgement) -> str:
    """Who found what, and why, on one line."""
    criteria = " ".join(judgement.criteria.split())
    verb = "holds" if judgement.holds else "does not hold"
    return one_line(f'judged by {judgement.model}: "{criteria}" {verb}: {judgement.rationale}')


def judging_text(use: JudgeUse) -> str:
    """How often judges were asked, their tokens and what these cost, where that is known."""
    tokens = [f"tokens: {tokens_text(use.usage)}"] if use.usage is not None else []
    cost = [f"cost: {cost_text(use.cost_usd)}"] if use.usage is not None and use.cost_usd is not None else []
    return " · ".join((counted(use.asked, "question"), *tokens, *cost))
