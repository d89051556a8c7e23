"""Formulas as terms: evaluated, written in words, and written with the numbers of one run."""

from __future__ import annotations

from workbench.dataclasses import dataclass
from workbench.numerals import figure


@dataclass(frozen=True, slots=True)
class Amount:
    """A number. Without a name it is a constant, shown alike in words and in numbers."""

    value: float
    name: str = ""


@dataclass(frozen=True, slots=True)
class Sum:
    """Terms added up."""

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
    """A term clamped to 0..1; always outermost."""

    term: Term


@dataclass(frozen=True, slots=True)
class Rounded:
    """A term rounded to three digits by Python's rule; always outermost."""

    term: Term


Term = Amount | Sum | Difference | Product | Quotient | Clamped | Rounded


def evaluate(term: Term) -> float:
    """Returns the value of a term. Raises ZeroDivisionError."""
    match term:
        case Amount(value=value):
            return value
        case Sum(terms=terms):
            return sum(map(evaluate, terms))  # in sequence, as `dimensions` adds up what it then rounds
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


def in_words(term: Term) -> str:
    """Returns the formula in words: `(exact + 0.5 × name only) ÷ expected, kept within 0..1`."""
    match term:
        case Clamped(term=inner):
            return f"{in_words(inner)}, kept within 0..1"
        case Rounded(term=inner):
            return f"{in_words(inner)}, rounded to 3 digits"
    return _written(term, words=True)


def in_numbers(term: Term) -> str:
    """Returns the formula filled in and computed: `(1 + 0.5 × 1) ÷ 2 = 0.75`; a single number unchanged."""
    match term:
        case Amount(value=value):
            return figure(value)
        case Clamped(term=inner):
            worked_out, kept = in_numbers(inner), evaluate(term)
            return worked_out if kept == evaluate(inner) else f"{worked_out}, kept within 0..1: {figure(kept)}"
        case Rounded(term=inner):
            return in_numbers(inner)
    return f"{_written(term, words=False)} = {figure(evaluate(term))}"


_LOOSE, _TIGHT, _WHOLE = range(3)
"""How tightly a term binds: sums, products and quotients, single numbers."""


def _written(term: Term, *, words: bool, inside: int = _LOOSE) -> str:
    match term:
        case Amount(value=value, name=name):
            return name if words and name else figure(value)
        case Sum(terms=terms):
            text, holds = " + ".join(_written(each, words=words) for each in terms), _LOOSE
            if len(terms) == 1:
                return _written(terms[0], words=words, inside=inside)
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
    return f"({text})" if holds < inside else text
