"""Words that select cases: an exact id takes precedence over a name, and a name over a pattern."""

from __future__ import annotations

import pytest

from workbench.suite.case_selectors import matching_ids, near_ids
from workbench.suite.model import Case

NAMES = {
    "oslo": "Weather in Oslo",
    "oslo-twice": "oslo",
    "refund/1": "Refund of one",
    "refund/2": "Refund of two [late]",
    "E-mail": "Straße",
    "a*": "Star",
}
CASES = [Case.model_construct(id=id_, name=name) for id_, name in NAMES.items()]


@pytest.mark.parametrize(
    ("word", "ids"),
    [
        ("oslo", ["oslo"]),
        ("Weather in Oslo", ["oslo"]),
        ("weather IN oslo", ["oslo"]),
        ("Oslo", ["oslo", "oslo-twice"]),
        ("OSLO*", ["oslo", "oslo-twice"]),
        ("*oslo", ["oslo", "oslo-twice"]),
        ("refund/1", ["refund/1"]),
        ("refund/*", ["refund/1", "refund/2"]),
        ("Refund/?", ["refund/1", "refund/2"]),
        ("refund", ["refund/1", "refund/2"]),
        ("refund/[13]", ["refund/1"]),
        ("Refund of two [late]", ["refund/2"]),
        ("STRASSE", ["E-mail"]),
        ("a*", ["a*"]),
        ("*", [*NAMES]),
        ("bergen", []),
        ("refund/", []),
        ("", []),
        ("[", []),
    ],
)
def test_a_word_chooses(word: str, ids: list[str]) -> None:
    assert matching_ids(word, CASES) == ids


@pytest.mark.parametrize(
    ("word", "near"),
    [("olso", ["oslo"]), ("refunt/*", ["refund/2", "refund/1"]), ("Weather of Oslo", ["oslo"]), ("zzz", [])],
)
def test_a_word_that_chooses_nothing_is_answered_with_near_ids(word: str, near: list[str]) -> None:
    assert near_ids(word, CASES) == near
