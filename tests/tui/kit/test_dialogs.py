"""Dialogs and completions do not cover their subject."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.geometry import Region, Size

from tests.tui.apps import SMART_HOME, opened, suites_in
from workbench.authoring.form.completions import Completion
from workbench.show.spans import cells, plain
from workbench.tui.kit.dialogs import Dialog, fitting_keys, keys_line, place_for
from workbench.tui.kit.suggestions import CompletionList

MANY_CASES = SMART_HOME + "".join(f'\n[[cases]]\nname = "Room {number}"\nuser = "On."\n' for number in range(40))

SIZES = st.builds(Size, st.integers(1, 60), st.integers(1, 30))


@given(SIZES, SIZES, st.builds(Region, st.integers(0, 59), st.integers(0, 29), st.integers(1, 60), st.integers(1, 30)))
def test_a_frame_covers_its_subject_only_without_room(frame: Size, screen: Size, subject: Region) -> None:
    frame = Size(min(frame.width, screen.width), min(frame.height, screen.height))
    subject = subject.intersection(screen.region)
    place = Region.from_offset(place_for(frame, screen, subject), frame)
    assert screen.region.contains_region(place)
    if place.overlaps(subject):
        assert subject.y < frame.height and screen.height - subject.bottom < frame.height
        first = Region(subject.x, subject.y, subject.width, 1)
        assert not place.overlaps(first) or screen.height - first.bottom < frame.height


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_a_dialog_leaves_the_row_it_asks_about_visible(tmp_path: Path, size: tuple[int, int]) -> None:
    async with opened(suites_in(tmp_path, home=MANY_CASES), size=size) as app:
        tree, places = app.app.main.suite_tree, set()
        for row in (2, size[1] // 2 - 3, size[1] // 2, size[1] - 6):
            tree.move_cursor(row)
            tree.moved()
            for key in ("f2", "T"):
                await app.press(key)
                dialog = app.app.screen
                assert isinstance(dialog, Dialog)
                frame = dialog.children[0].region
                assert not frame.overlaps(tree.cursor_region)
                assert dialog.region.contains_region(frame)
                places.add(frame.y)
                await app.press("escape")
        assert len(places) > 1


@given(st.integers(1, 30), st.integers(3, 30), st.integers(0, 29), st.integers(1, 8))
def test_completions_never_cover_their_field(count: int, height: int, y: int, lines: int) -> None:
    pane = Region(0, 0, 40, height)
    field = Region(5, min(y, height - 1), 20, lines).intersection(pane)
    listed = CompletionList()
    listed.found = tuple(Completion(f"tool_{at}", f"tool_{at}") for at in range(count))
    listed.place(field, pane)
    top, rows = listed.styles.offset.y.value, listed.styles.height
    assert rows is not None
    if field.height < height:
        assert not Region(0, int(top), 40, int(rows.value)).overlaps(field)
        assert top >= 0 and top + rows.value <= height


def test_keys_of_a_dialog_move_closer_and_the_last_one_stays() -> None:
    keys = keys_line(("Space", "check"), ("Enter", "use"), ("a", "add"), ("e", "change"), ("Esc", "leave"))
    whole = cells(keys)
    assert fitting_keys(keys, whole) == keys
    closer = plain(fitting_keys(keys, whole - 2))
    assert closer.split() == plain(keys).split() and "   " not in closer
    for width in range(24, whole):
        shown = fitting_keys(keys, width)
        assert cells(shown) <= width and plain(shown).startswith(" Space check") and plain(shown).endswith("Esc leave")
