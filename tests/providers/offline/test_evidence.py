from __future__ import annotations

import pytest

from tests.tables import each_row
from workbench.providers.offline.evidence import find_evidence, find_expressions, joined_groups


def found(text: str) -> list[tuple[str, object]]:
    return [(one.kind, one.value) for one in find_evidence(text)]


@each_row(
    ("text", "evidence"),
    [
        ("with subject 'Lunch?' and body 'Don't be late'", [("quoted", "Lunch?"), ("quoted", "Don't be late")]),
        ('how many a\'s are in "banana" and “kiwi”', [("quoted", "banana"), ("quoted", "kiwi")]),
        ("mail john.doe+x@example.com, please", [("email", "john.doe+x@example.com")]),
        ("see https://example.test/a?b=c.", [("url", "https://example.test/a?b=c")]),
        ("tell @alice.b about it", [("handle", "alice.b")]),
        ("show user u-1042", [("id", "u-1042")]),
        ("in octocat/hello-world open src/main.py", [("pair", "octocat/hello-world"), ("path", "src/main.py")]),
        ("status of /tmp/stranger/repo.", [("path", "/tmp/stranger/repo")]),
        ("repo_path is /tmp", [("path", "/tmp")]),
        (
            "move ./a/b.txt, ../c and ~/d/2025/ (not /, not ~)",
            [("path", "./a/b.txt"), ("path", "../c"), ("path", "~/d/2025/")],
        ),
        (r"open C:\work\notes or D:/x", [("path", r"C:\work\notes"), ("path", "D:/x")]),
        (
            "in .github/workflows, a/b/c/d/e and src/app/",
            [("path", ".github/workflows"), ("path", "a/b/c/d/e"), ("path", "src/app/")],
        ),
        ("either/or, <b>no</b> path, w/o any, ftp://a/b", [("pair", "either/or"), ("pair", "w/o")]),
    ],
)
def test_addresses_names_and_quotes_are_found(text: str, evidence: list[tuple[str, object]]) -> None:
    assert found(text) == evidence


@each_row(
    ("text", "numbers"),
    [
        ("15 * 23", [15, 23]),
        ("5-3", [5, 3]),
        ("-7 and 3.5", [-7, 3.5]),
        ("1,250.5 in the 5-day list", [1250.5, 5]),
        ("up to three of twenty", [3, 20]),
        ("no one of v2 or 1.2.3.4 and 12345678901234567890", [1.2]),
    ],
)
def test_numbers_are_read_as_they_are_written(text: str, numbers: list[float]) -> None:
    assert [one.value for one in find_evidence(text) if one.kind == "number"] == numbers


@each_row(
    ("text", "kind", "value"),
    [
        ("due 2025-12-01", "date", "2025-12-01"),
        ("on 2025-12-01T09:30:00Z", "datetime", "2025-12-01T09:30:00+00:00"),
        ("on 10 June 2026 at 3 pm", "datetime", "2026-06-10T15:00:00"),
        ("on June 10th, 2026", "date", "2026-06-10"),
        ("by the 1st of May 2027", "date", "2027-05-01"),
        ("at 3:30pm", "time", "15:30"),
        ("16:05 sharp", "time", "16:05"),
    ],
)
def test_dates_and_times_become_iso_text(text: str, kind: str, value: str) -> None:
    assert found(text) == [(kind, value)]


@pytest.mark.parametrize("text", ["tomorrow", "next Monday", "in June", "on 2026-13-45"])
def test_what_needs_a_clock_or_is_no_date_is_no_date(text: str) -> None:
    assert not [kind for kind, _ in found(text) if kind in ("date", "datetime", "time")]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("What's the weather in New York?", ["New York"]),
        ("Compare Seattle with Ho Chi Minh City", ["Seattle", "Ho Chi Minh City"]),
        ("I'm near the Bank of America, I think", ["Bank of America"]),
        ("Find our PTO policy", ["PTO"]),
        ("weather in Paris. Send it to Ann's team on Monday", ["Paris", "Ann"]),
    ],
)
def test_capitalised_words_are_names_unless_they_begin_a_sentence(text: str, names: list[str]) -> None:
    assert [one.value for one in find_evidence(text) if one.kind == "name" and not one.is_uncertain] == names


def test_an_unknown_word_that_begins_a_sentence_is_a_weak_name() -> None:
    assert [(one.value, one.is_uncertain) for one in find_evidence("Mississippi contains an s")] == [
        ("Mississippi", True)
    ]


def test_arithmetic_stands_between_neighbouring_numbers() -> None:
    text = "What is 15 multiplied by 23, or 7 / 2, and 9 of 4?"
    expressions = find_expressions(text, find_evidence(text))
    assert [(one.operation, one.text) for one in expressions] == [
        ("multiply", "15 multiplied by 23"),
        ("divide", "7 / 2"),
    ]


def test_things_strung_together_form_a_group() -> None:
    text = "in Seattle, Portland and Boise but not near Paris"
    groups = joined_groups(text, find_evidence(text))
    assert [[one.value for one in group] for group in groups] == [["Seattle", "Portland", "Boise"], ["Paris"]]
