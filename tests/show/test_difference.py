"""The difference between two texts: every changed line with its sign, and no more around it than helps."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from workbench.show.difference import MOST_SHOWN, difference
from workbench.show.spans import plain

texts = st.lists(st.sampled_from(["", "a", "b", "c"]), max_size=14).map("\n".join)


def drawn(old: str, new: str, width: int = 40) -> list[str]:
    return [plain(line) for line in difference(old, new).drawn(width)]


def test_a_changed_line_stands_between_its_neighbours() -> None:
    old = "\n".join("abcdefgh")
    assert drawn(old, old.replace("d", "D\nD")) == ["  line 2", "   b", "   c", " - d", " + D", " + D", "   e", "   f"]


def test_changes_far_apart_stand_apart_with_their_places() -> None:
    lines = [str(number) for number in range(1, 41)]
    changed = ["one", *lines[1:-1], "forty"]
    assert drawn("\n".join(lines), "\n".join(changed))[:4] == ["  line 1", " - 1", " + one", "   2"]
    assert drawn("\n".join(lines), "\n".join(changed))[-4:] == ["   38", "   39", " - 40", " + forty"]
    assert "  line 38" in drawn("\n".join(lines), "\n".join(changed))


def test_how_much_differs_is_said_in_words() -> None:
    assert str(difference("a\nb", "a\nc\nd")) == "1 line changed, 1 added"
    assert str(difference("a", "a")) == "no difference"


def test_what_the_texts_hold_is_shown_as_data() -> None:
    assert "\x1b" not in "".join(drawn("a", "\x1b[2J" + "x" * 100_000))
    assert all(len(line) <= 40 for line in drawn("a", "x" * 100_000))


def test_large_texts_are_compared_quickly_and_shown_in_part() -> None:
    old = "\n".join(f"old {number}" for number in range(20_000))
    new = "\n".join(f"new {number}" for number in range(20_000))
    found = difference(old, new)
    assert (found.removed, found.added) == (20_000, 20_000)
    assert len(found.drawn(40)) == MOST_SHOWN + 1


@given(old=texts, new=texts)
def test_every_line_that_came_or_went_is_named(old: str, new: str) -> None:
    found = difference(old, new)
    assert found.added - found.removed == new.count("\n") - old.count("\n")
    assert bool(found.lines) == (old != new)
    kept = [text for sign, text in found.lines if sign == "-"]
    assert all(kept.count(line) <= old.split("\n").count(line) for line in kept)
