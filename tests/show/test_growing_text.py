"""Text that grows is wrapped as if it had been complete from the start."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from workbench.show.lazy_lines import DISPLAY_LIMIT, GrowingText

pieces = st.lists(st.text(st.sampled_from("ab \n漢") | st.characters(exclude_characters="\r"), max_size=12), max_size=8)


@given(pieces, st.lists(st.integers(2, 20), min_size=1, max_size=3))
def test_pieces_wrap_like_the_whole(texts: list[str], widths: list[int]) -> None:
    growing = GrowingText()
    for number, text in enumerate(texts):
        growing.append(text)
        growing.rows(widths[number % len(widths)])
    whole = GrowingText("".join(texts))
    for width in widths:
        assert growing.rows(width) == whole.rows(width)
    assert growing.text == "".join(texts)


def test_a_text_beyond_the_limit_is_counted_but_kept() -> None:
    text = GrowingText("x" * 1_000_000)
    assert sum(map(len, text.rows(80))) == DISPLAY_LIMIT
    assert text.hidden == 1_000_000 - DISPLAY_LIMIT
    assert len(text.text) == 1_000_000
    text.append("y")
    assert text.hidden == 1_000_001 - DISPLAY_LIMIT
