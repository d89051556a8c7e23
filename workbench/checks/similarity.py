"""Measures how similar two texts are, 0..1: by TF-IDF cosine as Arcade's similarity critic does, or by a metric of
rapidfuzz."""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import lru_cache
from typing import Literal

from pydantic import JsonValue

SimilarityMetric = Literal["cosine", "ratio", "partial_ratio", "token_sort_ratio", "token_set_ratio"]

_TOKEN = re.compile(r"\w\w+")
_ONE_SIDED_IDF = math.log(3 / 2) + 1
"""ln((1 + n) / (1 + df)) + 1 over n = 2 texts for a token in one of them; a shared token weighs 1."""


def as_text(value: JsonValue) -> str:
    """Returns a value as the text to compare: lists joined by blanks, everything else as Python writes it (null is
    `None`). Raises RecursionError or ValueError for values nested too deeply or numbers too long to be written."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return " ".join(map(str, value))
    return str(value)


def similarity(expected: str, actual: str, metric: SimilarityMetric = "cosine") -> float:
    """Returns the similarity of two texts, 0..1, symmetric except for rapidfuzz's own subtleties. Two blank texts are
    equal; a blank text and any other have nothing in common."""
    if not expected.strip() or not actual.strip():
        return 1.0 if not expected.strip() and not actual.strip() else 0.0
    if metric == "cosine":
        return cosine(expected, actual)
    from rapidfuzz import fuzz  # on use: by default similarity is the cosine

    by_metric = {
        "ratio": fuzz.ratio,
        "partial_ratio": fuzz.partial_ratio,
        "token_sort_ratio": fuzz.token_sort_ratio,
        "token_set_ratio": fuzz.token_set_ratio,
    }
    return by_metric[metric](expected, actual) / 100


def cosine(left: str, right: str) -> float:
    """Returns the cosine of the TF-IDF vectors of two texts, over these two texts alone.

    Tokens are runs of two or more word characters, in lower case; texts without any token are compared literally. The
    formula is that of Arcade evals, which uses scikit-learn's defaults (smoothed idf, L2 norm).
    """
    if left == right:
        return 1.0
    left_counts, right_counts = _token_counts(left), _token_counts(right)
    shared = left_counts.keys() & right_counts.keys()
    dot = sum(left_counts[token] * right_counts[token] for token in shared)
    norms = _square_norm(left_counts, shared) * _square_norm(right_counts, shared)
    return min(dot / math.sqrt(norms), 1.0) if dot else 0.0


@lru_cache(maxsize=256)
def _token_counts(text: str) -> Counter[str]:
    return Counter(_TOKEN.findall(text.lower()))


def _square_norm(counts: Counter[str], shared: set[str]) -> float:
    return sum((count if token in shared else count * _ONE_SIDED_IDF) ** 2 for token, count in counts.items())
