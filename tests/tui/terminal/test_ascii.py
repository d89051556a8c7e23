"""The screens in ASCII: as wide as before, and no two signs mean the same."""

from __future__ import annotations

from dataclasses import fields

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from workbench.show.glyphs import GLYPHS
from workbench.tui.terminal.output_filters import SIGNS, in_ascii

DRAWN = {"bar", "rest", "thumb"}
"""Glyphs of lines, which have no meaning."""


def test_every_glyph_has_a_sign_of_its_own() -> None:
    glyphs = {getattr(GLYPHS, field.name) for field in fields(GLYPHS) if field.name not in DRAWN}
    signs = {glyph: in_ascii(glyph, all_of_it=False) for glyph in glyphs}
    assert all(sign.isascii() and len(sign) == 1 for sign in signs.values()), signs
    assert len(set(signs.values())) == len(glyphs), signs


def test_no_status_looks_like_a_part_of_a_formula() -> None:
    statuses = {in_ascii(sign, all_of_it=False) for sign in (GLYPHS.passed, GLYPHS.failed, GLYPHS.disagree, GLYPHS.dot)}
    formula = in_ascii("0.5 × (1 + 1 − 0.25) ÷ 2 = 0.4375 ≥ 0.4", all_of_it=False)
    assert statuses.isdisjoint(formula)


def test_lines_are_drawn_in_ascii_too() -> None:
    drawn = "".join(getattr(GLYPHS, name) for name in DRAWN) + "╭─╮│╰╯▊▔▁█▕┏┳━"
    assert in_ascii(drawn, all_of_it=False).isascii()


def test_what_others_wrote_stays_where_the_terminal_can_show_it() -> None:
    assert in_ascii("✓ 漢字 née", all_of_it=False) == "Y 漢字 née"
    assert in_ascii("✓ 漢字 née", all_of_it=True) == "Y ???? n?e"


@given(st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("".join(SIGNS)), max_size=30))
def test_a_line_stays_as_wide_as_it_was(text: str) -> None:
    line = "".join(char for char in text if cell_len(char) == 1)
    for all_of_it in (False, True):
        assert cell_len(in_ascii(line, all_of_it=all_of_it)) == cell_len(line)
    assert in_ascii(text, all_of_it=True).isascii()
