from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.checks.values import SimilarityMetric, as_text, cosine, similarity

METRICS: list[SimilarityMetric] = ["cosine", "ratio", "partial_ratio", "token_sort_ratio", "token_set_ratio"]
TEXTS = st.one_of(
    st.text(max_size=30),
    st.lists(st.sampled_from(["deploy", "the", "service", "now", "a", "Über"]), max_size=6).map(" ".join),
)


@given(TEXTS, TEXTS, st.sampled_from(METRICS))
def test_similarity_lies_between_nothing_and_everything(left: str, right: str, metric: SimilarityMetric) -> None:
    assert 0.0 <= similarity(left, right, metric) <= 1.0


@given(TEXTS, TEXTS)
def test_cosine_is_symmetric(left: str, right: str) -> None:
    assert cosine(left, right) == pytest.approx(cosine(right, left), abs=1e-12)


@given(TEXTS, st.sampled_from(METRICS))
def test_a_text_is_wholly_similar_to_itself(text: str, metric: SimilarityMetric) -> None:
    assert similarity(text, text, metric) == 1.0


@given(st.lists(st.sampled_from(["alpha", "beta", "gamma"]), min_size=1))
def test_cosine_does_not_see_the_order_of_words(words: list[str]) -> None:
    assert cosine(" ".join(words), " ".join(reversed(words))) == 1.0


@pytest.mark.parametrize("metric", METRICS)
def test_blank_texts_are_equal_to_each_other_and_to_nothing_else(metric: SimilarityMetric) -> None:
    assert similarity(" ", "", metric) == 1.0
    assert similarity("", "word", metric) == 0.0
    assert similarity("word", "\n", metric) == 0.0


def test_rapidfuzz_metrics_forgive_typing_errors_that_cosine_does_not() -> None:
    assert similarity("Meeting at 3 PM", "Meeting at 3PM", "ratio") > 0.95
    assert similarity("Meeting at 3 PM", "Meeting at 3PM") == pytest.approx(0.5031026, abs=1e-6)


def test_values_that_are_no_text_are_compared_as_python_writes_them() -> None:
    assert as_text(["red", 5]) == "red 5"
    assert as_text({"a": 1}) == "{'a': 1}"
    assert as_text(None) == "None"
    assert as_text(True) == "True"
