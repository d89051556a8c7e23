"""Fuzzy search: the titles that a query finds, the marked letters, and the order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.tables import each_row
from workbench.show.search import fuzzy_match, marked_spans
from workbench.show.spans import plain

SUITE = "Run the whole suite or folder"


def marked(query: str, title: str = SUITE) -> str:
    """The title with the matched letters in brackets."""
    match = fuzzy_match(query, title)
    if match is None:
        return ""
    spans = marked_spans(title, match.positions, "text", "match")
    return "".join(f"[{text}]" if role == "match" else text for text, role in spans)


@each_row(
    ("query", "found"),
    [
        ("suite", "Run the whole [suite] or folder"),
        ("SUITE run", "[Run] the whole [suite] or folder"),
        ("rws", "[R]un the [w]hole [s]uite or folder"),
        ("runsu", "[Run] the whole [su]ite or folder"),
        ("foder", "Run the whole suite or [fo]l[der]"),
        ("old", "Run the whole suite or f[old]er"),
        ("rnx", ""),
        ("nse", ""),  # letters from the middles of several words are none of what somebody types
        ("whole case", ""),
    ],
)
def test_words_are_found_by_substrings_initials_or_with_letters_left_out(query: str, found: str) -> None:
    assert marked(query) == found


def test_a_word_at_its_start_comes_before_one_inside_and_that_before_pieces() -> None:
    titles = ("Run the case", "Reach an old note", "Prune")
    scores = {title: match.score for title in titles if (match := fuzzy_match("run", title)) is not None}
    assert sorted(scores, key=lambda title: -scores[title]) == ["Run the case", "Prune"]
    pieces, whole = fuzzy_match("rs", "Run the suite"), fuzzy_match("rs", "Errs")
    assert pieces is not None and whole is not None and whole.score > pieces.score


@given(st.text(max_size=12), st.text(max_size=30))
def test_whatever_is_typed_the_title_stays_what_it_is(query: str, title: str) -> None:
    match = fuzzy_match(query, title)
    if match is not None:
        spans = marked_spans(title, match.positions, "text", "match")
        assert plain(tuple(spans)) == title
        if title.isascii():
            letters = sorted(query.lower().replace(" ", ""))
            assert set(letters) <= set(title.lower()) | {*"\t\n\r\x0b\x0c\x1c\x1d\x1e\x1f"}
