"""Explanations of grades: the formula of the published system, with the numbers of a run filled in.

The scores come from the graders and are not computed again here. Tests check that the filled formula yields the
score."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from workbench.dataclasses import dataclass
from workbench.grading.decision import EXTRA_COST
from workbench.grading.dimensions import SHARES
from workbench.grading.grade import CallPairing, Grade, Issue
from workbench.grading.pairing_issues import ALLOWED_EXTRA_CALL
from workbench.grading.scoring import ROUNDING_SLACK
from workbench.grading.status import NOT_APPLICABLE, PASS_SCORE, WORST_FIRST, Status, graders_disagree
from workbench.grading.traits import TRAITS
from workbench.numerals import figure
from workbench.suite.settings import Grading

# Formulas as terms. One tree yields the formula in words, the formula with a run's numbers, and the value. The text on
# the screen therefore cannot differ from the computation.


@dataclass(frozen=True, slots=True)
class Amount:
    """A named number, or a constant if the name is empty."""

    value: float
    name: str = ""


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum of some terms."""

    terms: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    left: Term
    right: Term


@dataclass(frozen=True, slots=True)
class Product:
    left: Term
    right: Term


@dataclass(frozen=True, slots=True)
class Quotient:
    top: Term
    bottom: Term


@dataclass(frozen=True, slots=True)
class Clamped:
    """A term clamped to 0..1. It is always the outermost term."""

    term: Term


@dataclass(frozen=True, slots=True)
class Rounded:
    """A term rounded to three digits by Python's rule. It is always the outermost term."""

    term: Term


Term = Amount | Sum | Difference | Product | Quotient | Clamped | Rounded


def evaluate(term: Term) -> float:
    """Return the value of a term.

    Raises ZeroDivisionError for a division by 0."""
    match term:
        case Amount(value=value):
            return value
        case Sum(terms=terms):
            return sum(map(evaluate, terms))  # the order of addition matters, because `dimensions` rounds the sum
        case Difference(left=left, right=right):
            return evaluate(left) - evaluate(right)
        case Product(left=left, right=right):
            return evaluate(left) * evaluate(right)
        case Quotient(top=top, bottom=bottom):
            return evaluate(top) / evaluate(bottom)
        case Clamped(term=inner):
            return min(max(evaluate(inner), 0.0), 1.0)
        case Rounded(term=inner):
            return round(evaluate(inner), 3)


def formula_in_words(term: Term) -> str:
    """Return a formula in words: `(exact + 0.5 × name only) ÷ expected, kept within 0..1`."""
    match term:
        case Clamped(term=inner):
            return f"{formula_in_words(inner)}, kept within 0..1"
        case Rounded(term=inner):
            return f"{formula_in_words(inner)}, rounded to 3 digits"
    return _written(term, words=True)


def formula_in_numbers(term: Term) -> str:
    """Return a formula in numbers with its value, `(1 + 0.5 × 1) ÷ 2 = 0.75`, or just a single number."""
    match term:
        case Amount(value=value):
            return figure(value)
        case Clamped(term=inner):
            kept = evaluate(term)
            if kept == evaluate(inner):
                return formula_in_numbers(inner)
            return f"{formula_in_numbers(inner)}, kept within 0..1: {figure(kept)}"
        case Rounded(term=inner):
            return formula_in_numbers(inner)
    return f"{_written(term, words=False)} = {figure(evaluate(term))}"


_LOOSE, _TIGHT, _WHOLE = range(3)
"""The precedence of terms: sums and differences, products and quotients, single numbers."""


def _written(term: Term, *, words: bool, inside: int = _LOOSE) -> str:
    """Write a term in words or numbers, in parentheses if its precedence is below `inside`."""
    match term:
        case Amount(value=value, name=name):
            if words and name:
                return name
            return figure(value)
        case Sum(terms=(only,)):
            return _written(only, words=words, inside=inside)
        case Sum(terms=terms):
            text, holds = " + ".join(_written(each, words=words) for each in terms), _LOOSE
        case Difference(left=left, right=right):
            text = f"{_written(left, words=words)} − {_written(right, words=words, inside=_TIGHT)}"
            holds = _LOOSE
        case Product(left=left, right=right):
            text = f"{_written(left, words=words, inside=_TIGHT)} × {_written(right, words=words, inside=_WHOLE)}"
            holds = _TIGHT
        case Quotient(top=top, bottom=bottom):
            text = f"{_written(top, words=words, inside=_TIGHT)} ÷ {_written(bottom, words=words, inside=_WHOLE)}"
            holds = _TIGHT
        case Clamped(term=inner) | Rounded(term=inner):
            return _written(inner, words=words, inside=inside)
    if holds < inside:
        return f"({text})"
    return text


# For each published system, a function returns a grade's formula, the rules behind it, and the credit of each pairing.


@dataclass(frozen=True, slots=True)
class Contribution:
    """The contribution of one pairing to the score of a grade.

    `formula` shows how the pairing's credit was computed. `share` is the contribution to the score, and `most` is the
    largest possible contribution. Both are 0 for an extra call that costs nothing. Under `dimensions`, which does not
    add up pairings, both are `None`, and `formula` is the formula of the parameter score. `arguments` is the credit of
    the arguments if some of them were unexpected, otherwise `None`."""

    formula: Term | None
    share: float | None
    most: float | None
    arguments: Term | None = None


@dataclass(frozen=True, slots=True)
class GraderExplanation:
    """The parts of an `Explanation` that depend on the grader.

    `shortcut` describes the rule that decided before scoring, and is empty if the formula decided. `rule` describes the
    formula if its own words do not suffice, and is otherwise empty."""

    formula: Term
    shortcut: str
    verdict: str
    more: tuple[str, ...]
    contributions: tuple[Contribution | None, ...]
    rule: str = ""


def _number(grade: Grade, name: str, words: str = "") -> Amount:
    return Amount(grade.numbers.get(name, 0.0), words or name.replace("_", " "))


def _thresholds(grade: Grade, grading: Grading) -> str:
    low, high = sorted((grading.fail_threshold, grading.warn_threshold))
    score = figure(grade.score or 0.0)
    if grade.verdict == Status.FAILED:
        return f"{score} is below {figure(low)}: {Status.FAILED}"
    if grade.verdict == Status.WARNED:
        return f"{score} reaches {figure(low)}, but not {figure(high)}: {Status.WARNED}"
    return f"{score} reaches {figure(high)}: {Status.PASSED}"


def _counted_calls(grade: Grade) -> int:
    made = set()
    for line in grade.pairings:
        if line.call is not None and line.outcome != ALLOWED_EXTRA_CALL:
            made.add(line.call)
    return len(made)


# The explanation of the `critics` grader.


def _critics(grade: Grade, grading: Grading) -> GraderExplanation:
    options = grading.critics
    formula: Term = Quotient(_number(grade, "earned"), _number(grade, "possible"))
    more = [
        "Expected calls are paired with actual calls so that they earn as much as possible; order does not matter.",
        f"The right tool earns {figure(options.tool_selection_weight)}, an argument its weight times how well its "
        "check holds. Arguments without a weight share 1 equally.",
    ]
    if options.arcade_compatible:
        more.append("An expected call without a matching call is not counted.")
    else:
        formula = Clamped(formula)
        more.append("An expected call without a matching call earns 0 of its full weight.")
    if options.fail_on_tool_call_quantity:
        more.append("fail_on_tool_call_quantity: with more or fewer calls than expected, the score is 0.")
    else:
        more.append("An extra call earns nothing and costs nothing.")
    if not options.arcade_compatible:
        more.append(
            "An argument without a weight must pass its check, or the run fails regardless of its score. An argument "
            "with a weight only counts toward the score. `required` overrides this for an argument."
        )
    if options.fail_on_tool_selection:
        more.append("fail_on_tool_selection: if other tools were called than expected, the score is 0.")
    verdict = _thresholds(grade, grading) if grade.numbers else "The thresholds are not used"
    accounts = []
    for line in grade.pairings:
        accounts.append(_critics_account(line, grade, grading))
    return GraderExplanation(formula, _critics_shortcut(grade, grading), verdict, tuple(more), tuple(accounts))


def _critics_shortcut(grade: Grade, grading: Grading) -> str:
    if grade.numbers:
        if grade.numbers["possible"]:
            return ""
        return "nothing has a weight, so the score is 0"
    expected, made = len(grade.expected_pairings), _counted_calls(grade)
    if grading.critics.fail_on_tool_call_quantity and expected != made:
        return f"fail_on_tool_call_quantity: {expected} expected, {made} made, so the score is 0"
    if not expected and not made:
        return "no call is expected and none was made, so the score is 1"
    if not expected and grade.score == 0:
        were_made = "one was" if made == 1 else f"{made} were"
        return f"no call is expected and {were_made} made, so the score is 0"
    if grade.score == 0:
        return f"fail_on_tool_selection: {grade.reason.removeprefix('selection: ')}, so the score is 0"
    return "no argument has a check, so the score is 1 whatever was called"


def _critics_account(line: CallPairing, grade: Grade, grading: Grading) -> Contribution | None:
    possible = grade.numbers.get("possible")
    if not possible:
        return None
    if line.expected_call is None:
        return Contribution(None, 0.0, 0.0)
    if line.call is None and grading.critics.arcade_compatible:
        return Contribution(Amount(0.0), 0.0, 0.0)
    earned = [line.tool_score, *(verdict.score for verdict in line.arguments)]
    weight = line.tool_weight + sum(verdict.weight for verdict in line.arguments if verdict.counted)
    formula: Term = Amount(0.0)
    if line.call is not None:
        formula = Sum(tuple(map(Amount, earned)))
    return Contribution(formula, sum(earned) / possible, weight / possible)


# The explanation of the `decision` grader.


def _decision(grade: Grade, grading: Grading) -> GraderExplanation:
    items = grade.numbers.get("items", 0.0)
    # In a chain, a step that correctly made no call has no pairing. Otherwise, at most one decision has no pairing.
    chain = any(len(line.parts) == 2 for line in grade.pairings) or items > len(grade.pairings) + 1
    parts = (
        "Tool name: 1 if it is the same to the letter. Arguments: the share of the expected ones that are right, less "
        "half the share of those that nobody expects, and never below 0."
    )
    more: tuple[str, ...]
    if chain:
        rule = "mean of (tool name + arguments) ÷ 2 over all steps"
        more = ("Each step is compared with the first call of its round.", parts)
    else:
        rule = "mean of (should call + tool name + arguments) ÷ 3 over all calls"
        more = (
            "The first expected call is compared with the first call, the second with the second, and so on.",
            "Should call: 1 if a call was made where one is expected, or none where none is.",
            parts,
            "A missing call loses the first part, and its arguments are graded as empty; an extra call is one more "
            "that earns 0.",
        )
    shortcut = ""
    if not items:
        shortcut = f"there is nothing to score, so the score is {figure(grade.score or 0.0)}"
    return GraderExplanation(
        Quotient(_number(grade, "total", "what the calls earn"), _number(grade, "items", "their number")),
        shortcut,
        _thresholds(grade, grading),
        more,
        tuple(_decision_account(line, items) for line in grade.pairings),
        rule,
    )


def _decision_account(line: CallPairing, items: float) -> Contribution | None:
    if not items:
        return None
    if line.outcome == ALLOWED_EXTRA_CALL:
        return Contribution(None, 0.0, 0.0)
    return Contribution(_mean_of_parts(line), line.credit / items, 1 / items, _less_unlisted(line))


def _less_unlisted(line: CallPairing) -> Term | None:
    """Return the formula for the credit of arguments if some are unexpected, otherwise `None`."""
    listed = [verdict for verdict in line.arguments if verdict.listed]
    unlisted = len(line.arguments) - len(listed)
    if not listed or not unlisted:
        return None
    right = Amount(sum(verdict.holds is True for verdict in listed))
    return Clamped(Quotient(Difference(right, Product(Amount(EXTRA_COST), Amount(unlisted))), Amount(len(listed))))


def _mean_of_parts(line: CallPairing) -> Term:
    if line.expected_call is None and line.credit == 0:
        return Amount(0.0)
    if not line.parts:
        return Amount(line.credit)
    parts = tuple(Amount(value, name.replace("_", " ")) for name, value in line.parts.items())
    return Quotient(Sum(parts), Amount(len(parts)))


# The explanation of the `accuracy` grader.


def _accuracy(grade: Grade, grading: Grading) -> GraderExplanation:
    options, numbers = grading.accuracy, grade.numbers
    name_only = figure(options.name_only)
    if options.mode == "exact":
        faults, fault = "wrong", options.wrong_penalty
        rules = (
            "Each call is compared with the expected call in its place.",
            f"The right tool with equal arguments earns 1, the right tool alone {name_only}.",
            f"Another tool counts as wrong and takes {figure(fault)}; a call beyond the last expected one counts as "
            "wrong twice. A missing call earns nothing and takes nothing.",
        )
    else:
        faults, fault = "extra", options.extra_penalty
        rules = (
            "A call counts as exact when an expected call has its tool and equal arguments, in any position.",
            f"Any other call earns {name_only} if an expected call of its tool is still unmatched; otherwise it is "
            f"extra and takes {figure(fault)}. A missing call earns nothing and takes nothing.",
            "An expected call without args is exact only for a call without arguments.",
        )
    names = Product(Amount(options.name_only), _number(grade, "name_only", "right name only"))
    top = Difference(Sum((_number(grade, "exact"), names)), Product(Amount(fault), _number(grade, faults)))
    expected, made = numbers.get("expected", 0.0), numbers.get("made", 0.0)
    shortcut = ""
    if not expected and made:
        shortcut = f"calls were made, but none are expected, so the score is {figure(grade.score or 0.0)}"
    elif not expected:
        shortcut = f"no call is expected and none was made, so the score is {figure(grade.score or 0.0)}"
    elif not made:
        shortcut = "no call was made, so the score is 0"
    if options.answer_checks == "averaged" and ("calls" in numbers or "expected" not in numbers):
        shortcut = f"the score is the {grade.reason}"
    return GraderExplanation(
        Clamped(Quotient(top, _number(grade, "expected"))),
        shortcut,
        _thresholds(grade, grading),
        (f"Mode {options.mode}.", *rules),
        tuple(_accuracy_account(line, expected) for line in grade.pairings),
    )


def _accuracy_account(line: CallPairing, expected: float) -> Contribution | None:
    if not expected:
        return None
    most = 0.0 if line.expected_call is None else 1 / expected
    return Contribution(Amount(line.credit), line.credit / expected, most)


# The explanation of the `trajectory` grader.


def _trajectory(grade: Grade, grading: Grading) -> GraderExplanation:
    total = grade.numbers.get("total", 0.0)
    shortcut, verdict = "nothing is expected, so the score is 1", "All expectations are met"
    if total:
        met = figure(grade.numbers.get("matched", 0.0))
        shortcut, verdict = "", f"All expectations must be met; {met} of {figure(total)} are"
    return GraderExplanation(
        Quotient(_number(grade, "matched", "expectations met"), _number(grade, "total", "expectations")),
        shortcut,
        verdict,
        (
            "Each ordered expectation looks for a call after the last one found; if it finds none, the next "
            "expectation looks from the same place.",
            "An expectation is met when a call has the tool and all of its checks hold; arguments without a check are "
            "ignored.",
            "Unordered expectations look at all calls. A prohibition is an expectation that is met when no call breaks "
            "it.",
            "Where extra calls are forbidden, each one is an expectation that is not met.",
        ),
        _trajectory_accounts(grade, total),
    )


def _trajectory_accounts(grade: Grade, total: float) -> tuple[Contribution | None, ...]:
    if not total:
        return (None,) * len(grade.pairings)
    # A prohibition has a pairing for each call that breaks it. It counts only once, with its first pairing.
    seen: set[int] = set()
    accounts: list[Contribution | None] = []
    for line in grade.pairings:
        counts = line.expected_call is not None
        if line.prohibition is not None:
            counts = line.prohibition not in seen
            seen.add(line.prohibition)
        elif not counts:
            counts = line.outcome == "unexpected"
        accounts.append(Contribution(Amount(line.credit), line.credit / total, counts / total))
    return tuple(accounts)


# The explanation of the `dimensions` grader.


def _dimensions(grade: Grade, grading: Grading) -> GraderExplanation:
    published = grading.dimensions.repeated_calls == "as published"
    shares = tuple(Product(Amount(share), _number(grade, name)) for name, share in SHARES.items())
    numbers = grade.numbers
    if grade.expected_pairings or not numbers:
        shortcut = ""
    elif numbers["precision"] == 0:
        shortcut = "calls were made, but none are allowed: 0"
    elif numbers["content"] == 1:
        shortcut = f"no call is expected, and every keyword is in the answer: {figure(grade.score or 0.0)}"
    else:
        shortcut = f"no call is expected, and a keyword is missing: {figure(grade.score or 0.0)}"
    recall = "Recall: the share of the expected calls that were made."
    compared = "A tool that is expected N times is compared with its first N calls."
    if published:
        recall += " Every call of an expected tool counts, so that recall may be above 1."
        compared = "All expected calls of a tool are compared with its first call."
    verdict = "The pass mark is not used" if shortcut else _pass_mark(grade)
    return GraderExplanation(
        Rounded(Sum(shares)),
        shortcut,
        verdict,
        (
            f"Precision: the share of the calls whose tool is expected. {recall}",
            "Parameters: for each expected call, the mean over its arguments: 1 for a right one, 0.5 for a wrong one, "
            "0 for a missing one. Forbidden and invalid arguments count as further zeros.",
            compared,
            "Content: the share of the keywords (response_contains) in the final answer.",
            "Latency is shown next to the score and does not change it.",
        ),
        tuple(map(_dimensions_account, grade.pairings)),
    )


def _pass_mark(grade: Grade) -> str:
    score, mark = figure(grade.score or 0.0), figure(PASS_SCORE)
    if grade.verdict == Status.PASSED:
        return f"{score} reaches {mark}, and no expected call is missing: passed"
    # The rounded score may equal the pass mark even if the exact score is below it.
    reached = math.fsum(SHARES[name] * grade.numbers[name] for name in SHARES) >= PASS_SCORE - ROUNDING_SLACK
    missing = any(line.call is None for line in grade.expected_pairings)
    if reached:
        return f"{score} reaches {mark}, but an expected call is missing: failed"
    below = f"{score} is below {mark}"
    if score == mark:
        below += " before it is rounded"
    if missing:
        below += ", and an expected call is missing"
    return f"{below}: failed"


def _dimensions_account(line: CallPairing) -> Contribution | None:
    if line.expected_call is None:
        return None
    worth = tuple(Amount(verdict.score / verdict.weight) for verdict in line.arguments if verdict.counted)
    if not worth:
        return Contribution(Amount(line.credit), None, None)
    return Contribution(Quotient(Sum(worth), Amount(len(worth))), None, None)


GRADER_EXPLANATIONS: Mapping[str, Callable[[Grade, Grading], GraderExplanation]] = {
    "critics": _critics,
    "decision": _decision,
    "accuracy": _accuracy,
    "trajectory": _trajectory,
    "dimensions": _dimensions,
}


@dataclass(frozen=True, slots=True)
class Explanation:
    """The derivation of a grade's score and verdict from its pairings.

    `system` is the name of the published system. `rule` is the system's formula in words, and `more` lists its rules
    point by point. `formula` holds the numbers of the run. It is `None` for a grade without a score, and if a rule
    decided before scoring. Then `shortcut` describes that rule. `verdict` compares the score with its thresholds.
    `deciding_issues` holds the issues that fail the run regardless of the score. `contributions` has one entry for each
    pairing. An entry is `None` if the pairing does not affect the score."""

    system: str
    rule: str
    formula: Term | None
    shortcut: str
    verdict: str
    deciding_issues: tuple[Issue, ...]
    more: tuple[str, ...]
    contributions: tuple[Contribution | None, ...]


def explain(grade: Grade, grading: Grading) -> Explanation:
    """Explain how a grade was computed. `grading` must be the options that the grade was made with."""
    reading = GRADER_EXPLANATIONS[grade.grader](grade, grading)
    more = reading.more
    if grade.published is not None:
        more = (*more, "Surplus calls that extra_calls frees are removed before anything is compared.")
    formula: Term | None = None
    shortcut = verdict = ""
    accounts: tuple[Contribution | None, ...] = (None,) * len(grade.pairings)
    if grade.score is not None:
        shortcut, verdict = reading.shortcut, reading.verdict
        if not shortcut:
            formula, accounts = reading.formula, reading.contributions
    return Explanation(
        TRAITS[grade.grader].system,
        reading.rule or formula_in_words(reading.formula),
        formula,
        shortcut,
        verdict,
        tuple(grade.deciding_issues),
        more,
        accounts,
    )


def disagreement(grades: Iterable[Grade]) -> tuple[tuple[Status, tuple[Grade, ...]], ...]:
    """Return the conflicting statuses that graders give a run, worst first, each with its grades.

    Returns an empty tuple if the graders agree."""
    grades = tuple(grades)
    if not graders_disagree(grades):
        return ()
    sides: dict[Status, list[Grade]] = {}
    for grade in grades:
        if grade.verdict not in (NOT_APPLICABLE, Status.ERROR) and grade.status is not None:
            sides.setdefault(grade.status, []).append(grade)
    return tuple((status, tuple(sides[status])) for status in WORST_FIRST if status in sides)


# The dimensions of the `dimensions` grader, each as a fraction.

_MAX_TERMS = 12
"""The largest number of terms that a sum shows. A longer sum shows only its total."""


class DimensionTerm(NamedTuple):
    """One dimension of a score: its name, the formula of its amount, and a description of what it counts."""

    name: str
    formula: Term
    counted: str


def dimension_terms(grade: Grade, keywords: int) -> tuple[DimensionTerm, ...]:
    """Return the dimensions of a grade's score. `keywords` is the number of keywords that the case requires.

    The result is empty for the grade of another grader, and for a run with calls if the case forbids all calls."""
    numbers = grade.numbers
    if grade.grader != "dimensions" or "content" not in numbers:
        return ()
    content = DimensionTerm("content", Amount(numbers["content"]), "no keywords expected")
    if keywords:
        found = Amount(round(numbers["content"] * keywords))
        content = DimensionTerm("content", Quotient(found, Amount(keywords)), "keywords found")
    wanted = grade.expected_pairings
    if not wanted:
        calls_forbidden = numbers["precision"] == 0
        if calls_forbidden:
            return ()
        return (content,)
    made = _counted_calls(grade)
    precision = DimensionTerm("precision", Amount(numbers["precision"]), "no call was made")
    if made:
        known = Amount(round(numbers["precision"] * made))
        precision = DimensionTerm("precision", Quotient(known, Amount(made)), "calls of an expected tool")
    called = Amount(round(numbers["recall"] * len(wanted)))
    earned = Sum(tuple(Amount(line.credit) for line in wanted))
    if len(wanted) > _MAX_TERMS:
        earned = Sum((Amount(numbers["parameters"] * len(wanted)),))
    return (
        precision,
        DimensionTerm("recall", Quotient(called, Amount(len(wanted))), "expected calls made"),
        DimensionTerm("parameters", Quotient(earned, Amount(len(wanted))), "of calls below"),
        content,
    )
