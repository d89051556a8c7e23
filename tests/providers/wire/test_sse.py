from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.providers.http import answers
from workbench.providers.http.answers import SseParser
from workbench.providers.model import ModelError
from workbench.providers.wire.wire import SseEvent


def parsed(*chunks: bytes) -> list[SseEvent]:
    parser = SseParser()
    return [event for chunk in chunks for event in parser.feed(chunk)] + parser.close()


def datas(*chunks: bytes) -> list[str]:
    return [event.data for event in parsed(*chunks)]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_lines_end_in_any_of_three_ways(end: bytes) -> None:
    stream = end.join([b"event: greeting", b"data: one", b"", b"data: two", b"", b""])
    assert parsed(stream) == [SseEvent("greeting", "one"), SseEvent("message", "two")]


def test_a_line_end_may_be_cut_in_two() -> None:
    assert datas(b"data: a\r", b"\ndata: b\r", b"\n\r", b"\ndata: c\r\n\r\n") == ["a\nb", "c"]


def test_an_event_comes_as_soon_as_its_blank_line_does() -> None:
    parser = SseParser()
    assert parser.feed(b"data: a\n") == []
    assert parser.feed(b"\n") == [SseEvent("message", "a")]
    assert parser.feed(b"data: b\r\n\r") == [SseEvent("message", "b")]


def test_comments_and_other_fields_say_nothing() -> None:
    assert datas(b": OPENROUTER PROCESSING\n\nid: 7\nretry: 10\ndata: a\nnonsense\n\n: x\n\n") == ["a"]


def test_data_of_several_lines_is_joined() -> None:
    assert datas(b"data: a\ndata\ndata:b\ndata:  c\n\n") == ["a\n\nb\n c"]


def test_a_byte_order_mark_is_skipped_even_when_it_is_cut() -> None:
    assert datas(b"\xef", b"\xbb\xbfdata: a\n\n") == ["a"]


def test_a_character_may_be_cut_and_what_is_not_utf_8_is_replaced() -> None:
    assert datas(b"data: \xe2\x82", b"\xac \xff\n\n") == ["€ �"]


def test_an_event_without_data_is_none_and_its_name_is_forgotten() -> None:
    assert parsed(b"event: ping\n\ndata: a\n\n") == [SseEvent("message", "a")]


@pytest.mark.parametrize("ending", [b"", b"\n", b"\r\n"])
def test_the_last_event_counts_without_its_blank_line(ending: bytes) -> None:
    assert datas(b"data: a\n\ndata: [DONE]" + ending) == ["a", "[DONE]"]


def test_nothing_is_left_after_a_whole_stream() -> None:
    assert datas(b"data: a\n\n", b"") == ["a"]


def test_a_bare_json_line_counts_as_data() -> None:
    assert datas(b'data: {"a": 1}\n\n{"error": "out of memory"}\n') == ['{"a": 1}', '{"error": "out of memory"}']


@pytest.mark.parametrize("chunk", [b"data: " + b"x" * 600, b"data: " + b"x" * 90 + b"\n"])
def test_an_event_that_does_not_end_is_refused(monkeypatch: pytest.MonkeyPatch, chunk: bytes) -> None:
    monkeypatch.setattr(answers, "MAX_MESSAGE_BYTES", 1000)
    parser = SseParser()
    with pytest.raises(ModelError, match="more than"):
        for _ in range(20):
            parser.feed(chunk)


def test_a_long_stream_of_small_events_is_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MAX_MESSAGE_BYTES", 100)
    assert len(datas(*[b"data: 12345\n\n"] * 1000)) == 1000


_pieces = st.sampled_from(
    [
        b"data: ",
        b"data:",
        b"data",
        b"event: x",
        b":",
        b"{",
        b"\n",
        b"\r\n",
        b"\r",
        b"\xef\xbb\xbf",
        "é€🎉".encode(),
        b"\xff",
    ]
)


@given(st.lists(_pieces, max_size=40).map(b"".join), st.lists(st.integers(0, 120), max_size=12))
def test_any_way_of_cutting_gives_the_same_events(stream: bytes, cuts: list[int]) -> None:
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    chunks = [stream[start:end] for start, end in itertools.pairwise(edges)]
    assert parsed(*chunks) == parsed(stream)
