"""A text while it is typed: the cursor, the selection and the effects of keys."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from workbench.show.highlight import shown
from workbench.show.spans import Span, cells, plain
from workbench.tui.kit.edited_text import EditedText, Motion, column_at, shift_for, window

texts = st.text(st.sampled_from("ab \t\r\n\"'=[]{}#é\u0301漢\x1b\u202e\u200b"), max_size=60)
motions = st.sampled_from(list(Motion.__args__))  # type: ignore[attr-defined]


def typed(*keys: str, text: str = "") -> EditedText:
    made = EditedText(text)
    for key in keys:
        made.type(key)
    return made


@given(text=texts)
def test_a_text_that_is_not_changed_comes_out_as_it_went_in(text: str) -> None:
    assert EditedText(text).text == text


@given(text=texts, moves=st.lists(st.tuples(motions, st.booleans()), max_size=20))
def test_moving_stays_in_the_text_and_changes_nothing(text: str, moves: list[tuple[Motion, bool]]) -> None:
    made = EditedText(text)
    for motion, select in moves:
        made.move(motion, select=select)
        line, column = made.cursor
        assert 0 <= column <= len(made.lines[line])
    assert made.text == text


@given(text=texts, moves=st.lists(motions, max_size=8), pasted=texts)
def test_what_is_typed_takes_the_place_of_what_is_selected(text: str, moves: list[Motion], pasted: str) -> None:
    made = EditedText(text.replace("\r", ""))
    for motion in moves:
        made.move(motion, select=True)
    before, rest = made.text, made.selected
    at = before.find(rest)
    made.type(pasted)
    wanted = pasted.replace("\r\n", "\n").replace("\r", "\n")
    assert len(made.text) == len(before) - len(rest) + len(wanted)
    assert wanted in made.text
    assert at >= 0


@given(text=texts, other=texts)
def test_another_text_is_taken_with_the_cursor_at_the_first_difference(text: str, other: str) -> None:
    made = EditedText(text)
    made.set_text(other)
    assert made.text == other
    line, column = made.cursor
    assert made.lines[:line] == text.split(made._line_end)[:line] or "\r" in text + other
    assert column <= len(made.lines[line])


def test_line_ends_of_a_dos_file_stay() -> None:
    made = EditedText("a = 1\r\nb = 2\r\n")
    made.type("x\ny\r\n")
    assert made.text == "x\r\ny\r\na = 1\r\nb = 2\r\n"


def test_a_return_that_is_no_line_end_stays_a_character() -> None:
    made = EditedText("a\rb\r\nc\n")
    assert made.lines == ["a\rb\r", "c", ""]


def test_a_new_line_is_as_far_in_as_the_one_before() -> None:
    made = EditedText("  a = [", (0, 7))
    made.new_line()
    assert (made.text, made.cursor) == ("  a = [\n  ", (1, 2))


def test_the_tab_key_goes_to_the_next_stop_and_indents_what_is_selected() -> None:
    made = EditedText("a\nb\n\nc")
    made.place_cursor((0, 1))
    made.indent()
    assert made.lines[0] == "a "
    made.place_cursor((0, 0))
    made.place_cursor((3, 0), select=True)
    made.indent()
    assert made.lines == ["  a ", "  b", "", "c"]
    made.outdent()
    assert made.lines == ["a ", "b", "", "c"]


def test_without_a_selection_the_whole_line_is_cut() -> None:
    made = EditedText("one\ntwo\nthree", (1, 2))
    assert (made.cut(), made.text, made.cursor) == ("two\n", "one\nthree", (1, 0))


def test_moving_up_and_down_keeps_to_the_cell_it_began_in() -> None:
    made = EditedText("abcdef\n漢\nabcdef", (0, 5))
    made.move("down")
    assert made.cursor == (1, 1)
    made.move("down")
    assert made.cursor == (2, 5)


def test_a_mark_on_top_of_a_letter_goes_with_it() -> None:
    made = EditedText("e\u0301x", (0, 0))
    made.move("right")
    assert made.cursor == (0, 2)
    made.delete("left")
    assert made.text == "x"


def test_letters_of_a_word_are_one_step_and_a_new_word_another() -> None:
    made = typed("a", "b")
    assert made.step == 1
    made.type(" ")
    made.type("c")
    assert made.step == 2
    made.delete("left")
    made.delete("left")
    assert made.step == 3
    made.type("pasted text")
    assert made.step == 4
    made.type("x")
    made.move("left")
    made.type("y")
    assert made.step == 6


def test_what_a_terminal_would_act_on_is_made_visible_and_has_its_cells() -> None:
    line = shown("a\x1b\t\u202eb")
    assert line.text == "a␛    <U+202E>b"
    assert list(line.cells) == [0, 1, 2, 6, 14, 15]
    assert column_at("a\x1b\t\u202eb", 9) == 3


@given(line=texts.map(lambda text: text.replace("\n", "")), at=st.integers(0, 60), room=st.integers(10, 30))
def test_a_window_shows_the_cursor_and_is_no_wider_than_it_may(line: str, at: int, room: int) -> None:
    column = min(at, len(line))
    shift = shift_for(line, column, room, 0)
    places = shown(line).cells
    seen = window((Span(shown(line).text), Span(" ")), line, shift, room)
    assert cells(seen) <= room
    assert shift <= places[column] < shift + room
    if column < len(line) and places[column + 1] > places[column]:
        assert shown(line[column]).text in plain(seen)
