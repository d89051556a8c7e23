"""Input of a terminal is split into keys, sequences and pastes, wherever a read ends, and impossible numbers are
ignored."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import events
from textual._xterm_parser import XTermParser
from textual.message import Message

from tests.tables import each_row
from workbench.limits import MAX_MOUSE_COORDINATE, MAX_PASTE_CHARS, MAX_TERMINAL_COLUMNS, MAX_TERMINAL_ROWS
from workbench.tui.terminal.driver import (
    END,
    LATE_ESCAPE_S,
    MIN_PASTE_CHARS,
    PASTE_TIMEOUT_S,
    SEQUENCE_TIMEOUT_S,
    START,
    InputPart,
    PastedText,
    TerminalInput,
    Typed,
)
from workbench.tui.terminal.environment import ESCAPE_S
from workbench.tui.terminal.key_queue import without_controls

NUMBERS = st.sampled_from(
    ["0", "1", "2", "48", "27", "97", "200", "201", "1049", "55296", "99999", "1114112", "9" * 30, ""]
)
SEQUENCES = st.builds(
    lambda opening, numbers, between, end: opening + between.join(numbers) + end,
    st.sampled_from(["\x1b[", "\x1b[<", "\x1b[?", "\x1b[>", "\x1bO", "\x1bP", "\x1b]", "\x1b_", "\x1b[[", "\x1b[M"]),
    st.lists(NUMBERS, max_size=6),
    st.sampled_from([";", ";", ":"]),
    st.sampled_from([*"ABCDHIMORSmntuyz~@", "$y", "\x1b\\", "\x07", "\x18", "\n", "", "é", "!!!"]),
)
STREAMS = st.lists(
    SEQUENCES
    | st.sampled_from(["\x1b", "a", "q", "\r", "\x00", "\ufffd", "\x1b\x1b", "\x1bf", "漢", START, END, "\x9c"]),
    max_size=8,
).map("".join)
CUTS = st.lists(st.integers(1, 6), max_size=60)


def cut(text: str, sizes: Iterable[int]) -> list[str]:
    chunks = []
    for size in sizes:
        chunks.append(text[:size])
        text = text[size:]
    return [*chunks, text]


def read(chunks: Iterable[str], *, until_s: float = 0.0) -> list[InputPart]:
    """Return the parts of several reads. With `until_s`, a pause follows. Typed characters are joined."""
    source = TerminalInput()
    arrived = [one for chunk in chunks for one in source.feed(chunk, 0.0)]
    arrived += source.flush(until_s)
    joined: list[InputPart] = []
    for one in arrived:
        last = joined[-1] if joined else None
        if isinstance(one, Typed) and isinstance(last, Typed) and "\x1b" not in one.text + last.text:
            joined[-1] = Typed(last.text + one.text)
        else:
            joined.append(one)
    return joined


def parsed(arrived: Iterable[InputPart]) -> list[Message]:
    """Return Textual's messages for input. Each part must be complete for Textual."""
    parser = XTermParser()
    messages = []
    for one in arrived:
        if isinstance(one, Typed):
            messages += list(parser.feed(one.text))
            if parser._timeout_time is not None and len(one.text) <= 2:
                parser._timeout_time = 0.0
                messages += list(parser.tick())
        assert parser._timeout_time is None, one
    return messages


@given(STREAMS, CUTS)
def test_a_stream_means_the_same_however_it_is_cut_and_holds_nothing_impossible(stream: str, sizes: list[int]) -> None:
    whole = read([stream], until_s=10.0)
    assert read(cut(stream, sizes), until_s=10.0) == whole
    messages = parsed(whole)
    for message in messages:
        if isinstance(message, events.Resize):
            assert 1 <= message.size.width <= MAX_TERMINAL_COLUMNS
            assert 1 <= message.size.height <= MAX_TERMINAL_ROWS
        elif isinstance(message, events.MouseEvent):
            assert 0 <= message.x < MAX_MOUSE_COORDINATE
            assert 0 <= message.y < MAX_MOUSE_COORDINATE
        elif isinstance(message, events.Key):
            message.key.encode()
            assert not set(message.character or "") & set("\x00\ufffd")


@given(st.text(st.sampled_from("ab\x1b[2OA~\r"), max_size=8), st.text(max_size=20), st.text("abc", max_size=8), CUTS)
def test_a_paste_is_one_text_however_it_is_cut(before: str, pasted: str, after: str, sizes: list[int]) -> None:
    if START in (before + START)[:-1] or (pasted + END).index(END) != len(pasted):
        return
    arrived = read(cut(f"{before}{START}{pasted}{END}{after}", sizes))
    assert [one.text for one in arrived if isinstance(one, PastedText)] == [without_controls(pasted)]
    assert arrived[-1] == Typed(after) if after else isinstance(arrived[-1], PastedText)


@each_row(
    "hostile",
    [
        *("\x1b[1114112u", "\x1b[55296u", "\x1b[99999999999999999999u", "\x1b[0u", "\x1b[97;999u"),
        *("\x1b[999999999999999999999A", "\x1b[5000A", "\x1b[97:65:9:9~", "\x1b[97;5:3u", f"\x1b[{'1;' * 5_000}A"),
        *("\x1b[97;1;1114112:5u", "\x1b[32;99;99M"),
        *("\x1b[48;99999;99999;1;1t", "\x1b[48;0;0;0;0t", "\x1b[48;24;80;0;0t", "\x1b[48;24;80t", "\x1b[8;9999;9999t"),
        *("\x1b[<0;99999;1M", "\x1b[<0;0;0M", "\x1b[<-1;1;1M", "\x1b[<9999;1;1m", "\x1b[M\xff\xff\xff"),
        *("\x1b[9999;9999R", "\x1b[?1;2c", "\x1b[?2026;9$y", "\x1b]11;rgb:ff/ff/ff\x07", "\x1b[201~"),
        *("\x1b]52;c;aGk=\x1b\\", "\x1bP1$r\x1b\\", "\x1b_Gi=1;OK\x1b\\", "\x1bOz", "\x1b[[Z"),
        "\x00\x00\x80",
    ],
)  # fmt: skip
def test_what_no_terminal_sends_is_no_key(hostile: str) -> None:
    arrived = read(["a", *hostile, "b"])
    keys = [message.key for message in parsed(arrived) if isinstance(message, events.Key)]
    assert keys in (["a", "b"], ["a", "a", "b"]), "but for the letter of a key with unlikely text"
    assert len(parsed(arrived)) == len(keys)


@each_row(
    ("sent", "keys"),
    [
        ("\x1b[97;5u\x1b[57363u\x1b[27u\x1b[13u\x1b[127u", ["ctrl+a", "menu", "escape", "enter", "backspace"]),
        ("\x1b[0;;228:246:252:28450:23383:12354:12356u", ["ä", "ö", "ü", "漢", "字", "あ", "い"]),
        ("\x1b[97:65;2;65u", ["A"]),
        ("\x1b[A\x1bOA\x1b[1;2A\x1b[1;5C\x1b[5~", ["up", "up", "shift+up", "ctrl+right", "pageup"]),
        ("\x1bOP\x1b[15~\x1b[[A", ["f1", "f5", "f1"]),
        ("\x1bf\x1bx\x1bXq\x1b\\", ["ctrl+right", "alt+x"]),
        ("\x1b\x1b[B", ["escape", "down"]),
    ],
)  # fmt: skip
def test_what_terminals_do_send_stays_what_it_is(sent: str, keys: list[str]) -> None:
    assert [message.key for message in parsed(read([sent])) if isinstance(message, events.Key)] == keys


def test_what_else_terminals_report_is_passed_on() -> None:
    sent = "\x1b[<0;3;4M\x1b[<35;200;100M\x1b[I\x1b[O\x1b[?2026;2$y\x1b[48;30;100;600;1000t"
    assert [type(message).__name__ for message in parsed(read([sent]))] == [
        *("MouseDown", "MouseMove", "AppFocus", "AppBlur", "TerminalSupportsSynchronizedOutput", "Resize")
    ]


def test_what_is_held_is_waited_for_no_longer_than_it_deserves() -> None:
    source = TerminalInput()
    for begun, patience_s, key in [
        ("\x1b", ESCAPE_S, ["\x1b"]),
        ("\x1b[", ESCAPE_S, ["\x1b["]),
        ("\x1b]", ESCAPE_S, ["\x1b]"]),
        ("\x1b[1;2", SEQUENCE_TIMEOUT_S, []),
        ("\x1b]0;title", SEQUENCE_TIMEOUT_S, []),
        ("\x1b[" + "1;" * 1_000, SEQUENCE_TIMEOUT_S, []),
        ("\x1bPq\x1b", ESCAPE_S, ["\x1b"]),
    ]:
        assert source.feed(begun, 0.0) == [], begun
        assert source.wait_s(0.0) == patience_s, begun
        assert not source.flush(patience_s * 0.9)
        assert list(source.flush(patience_s)) == [Typed(text) for text in key], begun
        assert source.wait_s(9.0) is None
        assert source.feed("q", 9.0) == [Typed("q")]


@each_row(
    ("begun", "late", "late_s", "arrived"),
    [
        ("\x1b", "[A", LATE_ESCAPE_S * 0.9, [Typed("\x1b[A")]),
        ("\x1b", "OAq", LATE_ESCAPE_S * 0.9, [Typed("\x1bOA"), Typed("q")]),
        ("\x1b[", "A", LATE_ESCAPE_S * 0.9, [Typed("\x1b[A")]),
        ("\x1b", f"[200~rm{END}", LATE_ESCAPE_S * 0.9, [PastedText("rm")]),
        ("\x1b", "[", LATE_ESCAPE_S * 0.9, [Typed("[")]),
        ("\x1b", "q", LATE_ESCAPE_S * 0.9, [Typed("q")]),
        ("\x1b", "\x1b[A", LATE_ESCAPE_S * 0.9, [Typed("\x1b[A")]),
        ("\x1b", "[A", LATE_ESCAPE_S * 1.1, [Typed("[A")]),
    ],
)
def test_the_late_end_of_a_sequence_is_not_typed_text(
    begun: str, late: str, late_s: float, arrived: list[InputPart]
) -> None:
    source = TerminalInput()
    assert source.feed(begun, 0.0) == []
    assert source.flush(ESCAPE_S) == [Typed(begun)], "the key is passed on before the end may be late"
    assert source.feed(late, late_s) == arrived
    assert source.feed("[A", late_s) == [Typed("[A")], "only the first text after it"


@pytest.mark.parametrize("escape_s", [0.0, 0.5])
def test_the_wait_after_an_escape_is_given(escape_s: float) -> None:
    source = TerminalInput(escape_s)
    source.feed("\x1b", 0.0)
    assert source.wait_s(0.0) == escape_s
    assert source.flush(escape_s) == [Typed("\x1b")]


def test_a_paste_that_does_not_end_gives_the_keyboard_back_and_its_end_is_still_no_key() -> None:
    source = TerminalInput()
    assert source.feed(f"{START}rm", 0.0) == []
    assert source.flush(PASTE_TIMEOUT_S) == [PastedText("rm")]
    assert source.feed("q", 5.0) == [Typed("q")]
    assert source.feed(f" -rf\x07{END}q", 9.0) == [PastedText(" -rf", 1), Typed("q")]
    source.feed(START, 10.0)
    for _ in range(3):
        source.feed("x" * (MAX_PASTE_CHARS // 2), 10.0)
    assert source.feed(END, 10.0) == [PastedText("x" * MAX_PASTE_CHARS, is_truncated=True)]


def test_a_text_at_once_is_a_paste_of_a_terminal_that_marks_none() -> None:
    text = "delete all of it\r" * MIN_PASTE_CHARS
    source = TerminalInput()
    assert source.feed(text, 0.0) == [PastedText(text.replace("\r", "\n"))]
    assert source.feed("q", 0.0) == [PastedText("q")], "its end"
    source.flush(0.1)
    assert source.feed("jj" * MIN_PASTE_CHARS, 1.0) == [Typed("jj" * MIN_PASTE_CHARS)], "a key that is held down"
    assert source.feed("q", 1.0) == [Typed("q")]
