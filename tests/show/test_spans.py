"""Widths are counted in cells, and no row is ever wider than it may be."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.tables import each_row
from workbench.show.spans import (
    EMPTY,
    Line,
    Role,
    Span,
    cells,
    cut,
    cut_line,
    natural_cells,
    padded,
    plain,
    spread,
    with_blanks_joined,
    wrap,
    wrap_line,
)
from workbench.show.visible import one_line

texts = st.text(st.sampled_from("ab c漢字é👩-") | st.characters(), max_size=40).map(one_line)
roles: st.SearchStrategy[Role] = st.sampled_from(["text", "muted", "key"])
lines: st.SearchStrategy[Line] = st.lists(st.builds(Span, texts, roles), max_size=5).map(tuple)
widths = st.integers(1, 30)


@given(texts, st.integers(-2, 30))
def test_a_cut_text_fits(text: str, width: int) -> None:
    assert cell_len(cut(text, width)) <= max(width, 0)


@given(texts, widths)
def test_a_text_that_fits_is_not_cut(text: str, width: int) -> None:
    if cell_len(text) <= width:
        assert cut(text, width) == text


@given(lines)
def test_joining_blanks_changes_no_character_and_no_meaning_of_one(line: Line) -> None:
    joined = with_blanks_joined(line)
    assert plain(joined) == plain(line)
    assert [(char, span.role) for span in joined for char in span.text if char != " "] == [
        (char, span.role) for span in line for char in span.text if char != " "
    ]
    assert len(joined) <= len(line)


@given(texts, widths)
def test_a_padded_text_is_exactly_as_wide_as_asked(text: str, width: int) -> None:
    assert cell_len(padded(text, width)) == width


@given(texts, st.integers(2, 30))
def test_wrapped_rows_fit_and_lose_nothing_but_blanks(text: str, width: int) -> None:
    rows = wrap(text, width)
    assert all(cell_len(row) <= width for row in rows)
    assert "".join(rows).replace(" ", "") == text.replace(" ", "")


@given(lines, st.integers(6, 30), st.integers(0, 4))
def test_a_wrapped_line_fits_and_loses_nothing(line: Line, width: int, hang: int) -> None:
    rows = wrap_line(line, width, hang)
    assert all(cells(row) <= width for row in rows)
    assert plain(rows[0]) + "".join(plain(row)[hang:] for row in rows[1:]) == plain(line)


@given(lines, widths)
def test_a_cut_line_fits(line: Line, width: int) -> None:
    assert cells(cut_line(line, width)) <= width


@given(lines, lines, widths)
def test_what_is_spread_fits(left: Line, right: Line, width: int) -> None:
    assert cells(spread(left, right, width)) <= width


def test_the_right_end_stays_when_room_is_short() -> None:
    line = spread((Span("a long name"),), (Span("0.85"),), 10)
    assert plain(line) == "a lo… 0.85"


@each_row(
    ("text", "width", "rows"),
    [
        ("one two three", 7, ["one two", "three"]),
        ("onetwothree", 4, ["onet", "woth", "ree"]),
        ("漢字漢字", 5, ["漢字", "漢字"]),
        ("/home/ann/suites/weather.toml.", 20, ["/home/ann/suites/", "weather.toml."]),
        ("/a/rather-long-name-of-a-file", 20, ["/a/rather-long-name-", "of-a-file"]),
        ("", 5, [""]),
    ],
)
def test_words_are_kept_together_where_they_fit(text: str, width: int, rows: list[str]) -> None:
    assert wrap(text, width) == rows


def test_an_empty_line_stays_one_row() -> None:
    assert wrap_line(EMPTY, 10) == [EMPTY]


def test_a_row_as_wide_as_it_needs_is_not_cut() -> None:
    left, right = (
        (Span("Weather and a sum  "), Span("offline (baseline)", "muted")),
        (Span("   73.5%"), Span("  61/83")),
    )
    wide = spread(left, right, 100)
    needed = natural_cells(wide)
    assert needed <= cells(left) + cells(right) + 1
    assert plain(left) in plain(spread(left, right, needed))
