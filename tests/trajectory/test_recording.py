"""A recording reads back to its run, even if it is incomplete. Anything else is refused with its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trajectory.scripts import events_of, json_values, scripts
from workbench.trajectory.events import Event, JsonValue
from workbench.trajectory.fold import fold
from workbench.trajectory.recording import (
    Header,
    RecordedSuite,
    RecordingError,
    event_to_line,
    header_line,
    read_recording,
    result_line,
)

HEADER = Header("1.0", "run", "2026-11-21T09:30:00+00:00", RecordedSuite("a.toml", "f00", "format = 1\n"), "c", "m", 2)
LINES = [header_line(HEADER), *map(event_to_line, events_of([("Hi", 1), ("Bye", 0)])), result_line("run", {"a": 1})]
WHOLE = "".join(f"{line}\n" for line in LINES).encode()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recordings") / "a.run.jsonl"


@given(scripts(), st.dictionaries(st.text(max_size=5), json_values, max_size=3))
def test_what_is_written_reads_back_equal(file: Path, script: list[Event], result: dict[str, JsonValue]) -> None:
    lines = [header_line(HEADER), *map(event_to_line, script), result_line("run", result)]
    file.write_bytes("".join(f"{line}\n" for line in lines).encode())
    read = read_recording(file)
    assert (read.path, read.header, read.complete) == (file, HEADER, True)
    assert list(read.events) == script
    assert read.trajectory == fold(script)
    assert read.result == result


@given(st.integers(len(LINES[0]), len(WHOLE)))
def test_a_recording_cut_off_anywhere_reads_as_far_as_it_goes(file: Path, length: int) -> None:
    file.write_bytes(WHOLE[:length])
    read = read_recording(file)
    whole_lines = WHOLE[: length + 1].count(b"\n")
    assert len(read.events) == min(whole_lines, len(LINES) - 1) - 1
    assert read.complete == (whole_lines == len(LINES))


def test_keys_and_events_of_the_future(file: Path) -> None:
    more = [json.dumps({**json.loads(line), "new": [1]}) for line in LINES]
    file.write_text("\n".join(more))
    assert list(read_recording(file).events) == events_of([("Hi", 1), ("Bye", 0)])
    file.write_text("\n".join([*LINES[:3], LINES[3].replace("text_delta", "picture_delta")]))
    with pytest.raises(RecordingError, match=r"a\.run\.jsonl:4: this version knows no event 'picture_delta'"):
        read_recording(file)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty, not a recording"),
        (b"\x00\xff\x1f", "not a recording: its first line is not JSON"),
        (b"format = 1\n", "not a recording: its first line is not JSON"),
        (b"[1]\n", 'its first line must hold "recording": 1'),
        (b'{"recording": "1"}\n', 'its first line must hold "recording": 1'),
        (b'{"recording": 2}\n', "of version 2, and this program reads 1: update Workbench"),
        (b'{"recording": 1}\n', ":1: incomplete header: program is missing"),
        (WHOLE.replace(b'"repeat":2', b'"repeat":"2"'), ":1: incomplete header: repeat: must be a whole number"),
        (WHOLE.replace(b'"hash":"f00"', b'"hash":0'), ":1: incomplete header: suite: hash: must be a text"),
        (WHOLE.replace(b'"Hi"', b'"\xff"'), ":4: not JSON"),
        (WHOLE.replace(b'"Hi"', b"7"), ":4: incomplete text_delta event: text: must be a text"),
        (WHOLE.replace(b'"ms":2.0', b'"ms":1e999'), ":4: not JSON (1e999 is too large a number)"),
        (WHOLE.replace(b'"seq":2,', b'"seq":3,'), ":4: event 3 came where event 2 was expected"),
        (WHOLE.replace(b'"answered"', b'"bored"', 1), ":12: incomplete response_finished event: stop_reason: must be"),
        (
            WHOLE.replace(b'"arguments":{}', b'"arguments":[]'),
            ":7: incomplete call_finished event: arguments: must be an object",
        ),
        (WHOLE.replace(b'"Hi"', b"[" * 100_000), ":4: not JSON"),
        (WHOLE + LINES[0].encode(), ":15: another run begins here, but a recording holds one run"),
        (WHOLE + LINES[-1].encode(), ":15: this line follows the result"),
        (WHOLE.replace(b'"result":{"a":1}', b'"result":3'), ":14: result: must be an object"),
        (WHOLE.replace(b'"event":"request_started"', b'"happening":1'), ":3: not an event"),
    ],
)
def test_what_is_no_recording_is_refused_with_file_and_line(file: Path, content: bytes, said: str) -> None:
    file.write_bytes(content)
    with pytest.raises(RecordingError) as refused:
        read_recording(file)
    assert str(refused.value).startswith(str(file))
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [("nowhere.run.jsonl", "No such file"), (".", "a folder"), ("/dev/zero", "a special file"), ("\0", "null")],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(RecordingError, match=f"cannot be read: .*{said}"):
        read_recording(tmp_path / name)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(file: Path, content: bytes) -> None:
    file.write_bytes(LINES[0].encode() + b"\n" + content)
    try:
        read_recording(file)
    except RecordingError as error:
        assert str(error).startswith(str(file))
