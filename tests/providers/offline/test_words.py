from __future__ import annotations

import pytest

from tests.tables import each_row
from workbench.providers.offline.words import operation_of, split_name, stem, stems_of


@each_row(
    ("name", "words"),
    [
        ("get_weather", ("get", "weather")),
        ("Weather_GetCurrent", ("weather", "get", "current")),
        ("searchHTTPDocs", ("search", "http", "docs")),
        (
            "calendar.events-list",
            (
                "calendar",
                "events",
                "list",
            ),
        ),
        ("größeÄndern", ("größeändern",)),
        ("", ()),
    ],
)
def test_identifiers_fall_into_their_words(name: str, words: tuple[str, ...]) -> None:
    assert split_name(name) == words


@each_row(
    ("one", "other"),
    [
        ("policy", "policies"),
        ("multiply", "multiplied"),
        ("tag", "tagged"),
        ("create", "creating"),
        ("branch", "branches"),
        ("message", "Messages"),
        ("call", "calling"),
    ],
)
def test_forms_of_a_word_have_one_stem(one: str, other: str) -> None:
    assert stem(one) == stem(other)


@pytest.mark.parametrize("word", ["address", "status", "thing", "bed", "is"])
def test_a_stem_keeps_what_is_part_of_the_word(word: str) -> None:
    assert stem(word) == word


def test_stems_of_a_text_leave_out_small_words_numbers_and_possessives() -> None:
    assert list(stems_of("What's the company's 2 newest policies, and don't the policies change?")) == [
        "company",
        "newest",
        "policy",
        "chang",
    ]


@pytest.mark.parametrize(
    ("word", "operation"),
    [("plus", "add"), ("*", "multiply"), ("times", "multiply"), ("Divided", "divide"), ("minus", "subtract")],
)
def test_operations_are_known_by_word_and_sign(word: str, operation: str) -> None:
    assert operation_of(word) == operation


def test_a_word_without_arithmetic_is_no_operation() -> None:
    assert operation_of("weather") is None
    assert operation_of("") is None
