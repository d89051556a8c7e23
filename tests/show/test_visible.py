"""Text from elsewhere is shown, never interpreted."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.tables import each_row
from workbench.show.visible import fit, one_line, shortened, visible


@each_row(
    ("hostile", "shown"),
    [
        ("\x1b[2Jgone", "␛[2Jgone"),
        ("ring\x07", "ring␇"),
        ("\x9b31m", "<U+009B>31m"),
        ("abc\u202edef", "abc<U+202E>def"),
        ("zero\u200bwidth", "zero<U+200B>width"),
        ("del\x7f", "del␡"),
        ("lone \ud800 surrogate", "lone <U+D800> surrogate"),
        ("heart ❤\ufe0f", "heart ❤<U+FE0F>"),
    ],
)
def test_characters_that_a_terminal_acts_on_become_visible(hostile: str, shown: str) -> None:
    assert visible(hostile) == shown


@given(st.text(st.characters()))
def test_nothing_that_controls_is_left(text: str) -> None:
    shown = visible(text)
    assert not [char for char in shown if unicodedata.category(char) in ("Cc", "Cs") and char not in "\t\n"]
    assert not [char for char in shown if unicodedata.bidirectional(char) in ("LRE", "RLE", "LRO", "RLO", "PDF")]
    shown.encode()
    assert visible(shown) == shown


@given(st.text(st.characters()))
def test_one_line_is_one_line(text: str) -> None:
    assert len(one_line(text).splitlines()) <= 1


@given(st.text(), st.integers(0, 40))
def test_fitting_gives_exactly_the_width_and_shortening_at_most(text: str, width: int) -> None:
    line = one_line(text)
    assert cell_len(fit(line, width)) == width
    assert cell_len(shortened(line, width)) <= width


def test_wide_characters_are_measured_in_cells() -> None:
    assert fit("東京都", 4) == "東 …"
    assert fit("東京", 6) == "東京  "
    assert shortened("東京都", 5) == "東京…"
    assert shortened("x" * 1_000_000, 10) == "x" * 9 + "…"
