"""What a case is called in a table: the suite's part is cut before the case's."""

from __future__ import annotations

from rich.cells import cell_len

from tests.tables import each_row
from workbench.show.views.cases import Title, cut_titles

SUITE = "Customer support assistant"


@each_row(
    ("title", "width", "cut"),
    [
        (Title("Weather", "Oslo"), 14, "Weather › Oslo"),
        (Title("Weather", "Oslo"), 13, "Weath… › Oslo"),
        (Title(SUITE, "Refund of a late order"), 32, "Custom… › Refund of a late order"),
        (Title(SUITE, "Refund of a late order"), 26, "… › Refund of a late order"),
        (Title(SUITE, "Refund of a late order"), 25, "Refund of a late order"),
        (Title(SUITE, "Refund of a late order"), 12, "Refund of a…"),
        (Title(SUITE, "Refund of a late order", tail=" #2"), 29, "… › Refund of a late order #2"),
        (Title(SUITE, "Refund of a late order", lead="fork ", tail=" #2"), 20, "fork Refund of a… #2"),
        (Title("天気", "予報"), 8, "… › 予報"),
        (Title("", "Refund of a late order"), 22, "Refund of a late order"),
        (Title("", "Refund of a late order"), 12, "Refund of a…"),
    ],
)
def test_the_suite_is_cut_first(title: Title, width: int, cut: str) -> None:
    assert title.cut(width) == cut
    assert cell_len(cut) <= width


def test_titles_stand_in_a_column_and_are_whole_where_nothing_is_cut() -> None:
    titles = [Title(SUITE, "Refund of a late order"), Title("Weather", "Oslo")]
    assert list(cut_titles(titles, 16)) == ["Refund of a lat…", "Weather › Oslo  "]
    assert [each.rstrip() for each in cut_titles(titles, None)] == [title.whole for title in titles]
    assert len({cell_len(each) for each in cut_titles(titles, None)}) == 1
