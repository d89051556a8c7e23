"""Long names are cut where they differ the least."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from workbench.show.spans import cut_middle


def test_names_that_differ_at_their_ends_still_do_when_they_are_cut() -> None:
    names = ("Weather in Tokyo, exact units", "Weather in Tokyo, any units")
    assert [cut_middle(name, 26) for name in names] == ["Weather in Tokyo,…ct units", "Weather in Tokyo,…ny units"]
    assert cut_middle("Times ten", 9) == "Times ten"


@given(st.text(max_size=40), st.integers(0, 40))
def test_whatever_is_cut_fits(text: str, width: int) -> None:
    assert cell_len(cut_middle(text, width)) <= width
