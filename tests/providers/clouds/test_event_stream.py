"""Amazon's binary event streams: frames however they arrive, their checksums, exceptions, and their ends."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path

import pytest
from botocore.eventstream import EventStreamBuffer
from hypothesis import given
from hypothesis import strategies as st

from tests.providers.clouds.asking import calls_in, cloud_spec
from tests.providers.clouds.frames import STREAM, chunk, exception, frame, frames_of, streamed
from tests.providers.http.asking import ask, text_of
from tests.providers.http.runs import TWICE, failures, retries_of, run_alone
from tests.providers.server import CUT, Answer, Call, serve
from workbench.limits import MAX_MESSAGE_BYTES
from workbench.providers.clouds.event_stream import EventStreamParser
from workbench.providers.model import AnswerTooLargeError, ModelError
from workbench.providers.wire.wire import SseEvent

KEY = {"MY_KEY": "bedrock-key-0123456789"}
SETTINGS = 'provider = "bedrock"\nmodel = "x"\napi_key_env = "MY_KEY"'
CALL = Call("get_weather", {"city": "Zürich"})


@given(st.lists(st.binary(max_size=60), max_size=5), st.integers(1, 90))
def test_frames_are_found_however_the_stream_is_cut(contents: list[bytes], size: int) -> None:
    stream = b"".join(map(chunk, contents))
    parser, events = EventStreamParser(), list[SseEvent]()
    for start in range(0, len(stream), size):
        events += parser.feed(stream[start : start + size])
    assert parser.close() == []
    assert [event.data for event in events] == [content.decode("utf-8", "replace") for content in contents]
    # AWS's own decoder accepts the same frames.
    theirs = EventStreamBuffer()
    theirs.add_data(stream)
    assert [base64.b64decode(json.loads(each.payload)["bytes"]) for each in theirs] == contents


@given(st.binary(max_size=300))
def test_any_bytes_end_in_events_or_an_error(stream: bytes) -> None:
    parser = EventStreamParser()
    try:
        parser.feed(stream)
        parser.close()
    except ModelError as error:
        assert "stream of the answer" in str(error) or isinstance(error, AnswerTooLargeError)


@given(st.integers(0, 10**6), st.integers(1, 255))
def test_a_changed_byte_is_noticed(at: int, change: int) -> None:
    whole = bytearray(chunk(b'{"type": "ping"}'))
    whole[at % len(whole)] ^= change
    parser = EventStreamParser()
    with pytest.raises(ModelError) as raised:
        parser.feed(bytes(whole))
        parser.close()
    assert raised.value.retryable or isinstance(raised.value, AnswerTooLargeError)


def test_headers_of_other_types_are_passed_over() -> None:
    others = (
        b"\x01a\x00" + b"\x01b\x02\x07" + b"\x01c\x08" + bytes(8) + b"\x01d\x09" + bytes(16) + b"\x01e\x06\x00\x02hi"
    )
    (event,) = EventStreamParser().feed(frame({":message-type": "event", ":event-type": "x"}, b"{}", others=others))
    assert event == SseEvent("x", "{}")
    with pytest.raises(ModelError, match="unreadable headers"):
        EventStreamParser().feed(frame({}, b"{}", others=b"\x01a\x63"))


def test_a_frame_without_end_is_not_collected() -> None:
    whole = frame({}, b"x" * 8)
    head = (MAX_MESSAGE_BYTES + 17).to_bytes(4) + whole[4:8]
    with pytest.raises(AnswerTooLargeError):
        EventStreamParser().feed(head + zlib.crc32(head).to_bytes(4))


LATER = exception("throttlingException", "Too many tokens, please wait before trying again.")


@pytest.mark.parametrize(
    ("answer", "said", "retryable"),
    [
        (streamed(*frames_of("Looking.", [CALL])[:4], LATER), "reports: Too many tokens, please wait", True),
        (streamed(exception("modelStreamErrorException", "The model failed.")), "reports: The model failed.", True),
        (streamed(exception("serviceUnavailableException", "Busy.")), "reports: Busy.", True),
        (streamed(exception("internalServerException", "Oops.")), "reports: Oops.", True),
        (streamed(exception("modelTimeoutException", "Slow.")), "reports: Slow.", True),
        (streamed(exception("validationException", "Too long.")), "reports: Too long.", False),
        (
            streamed(
                frame({":message-type": "error", ":error-code": "InternalFailure", ":error-message": "Bad."}, b"")
            ),
            "reports: Bad.",
            False,
        ),
        (streamed(b"".join(frames_of("Looking.", [CALL]))[:-10]), "ended in the middle of an event", True),
        (streamed(*frames_of("Looking.", [CALL], end=False)), "ended too early", True),
        (
            Answer((b"".join(frames_of("Looking."))[:200], CUT), headers=STREAM),
            "closed the connection in the middle",
            True,
        ),
        (
            streamed(*frames_of("Looking.")[:3], frames_of("Looking.")[3][:-1] + b"\x00"),
            "the content of an event has a wrong checksum",
            True,
        ),
        (streamed(b"{}" + b" " * 20), "the beginning of an event has a wrong checksum", True),
        (streamed(chunk(b'{"type": "message_start"'), size=9999), "contains something that is not JSON", False),
        (streamed(), "held no answer", True),
    ],
)
async def test_a_stream_that_fails_says_so_and_whether_to_try_again(
    tmp_path: Path, answer: Answer, said: str, retryable: bool
) -> None:
    with serve(answer) as server:
        spec = cloud_spec(server, tmp_path, SETTINGS, KEY)
        with pytest.raises(ModelError) as raised:
            await ask(spec, KEY)
    assert said in str(raised.value)
    assert raised.value.retryable == retryable


async def test_a_run_goes_on_after_throttling_in_the_middle_of_a_stream(tmp_path: Path) -> None:
    answers = [streamed(*frames_of("Look", [CALL])[:4], LATER), streamed(*frames_of("Done."))]
    with serve(*answers) as server:
        made = await run_alone(cloud_spec(server, tmp_path, SETTINGS, KEY), TWICE, **KEY)
    assert len(failures(made)) == len(retries_of(made)) == 1
    assert made.trajectory.final_answer == "Done."


@pytest.mark.parametrize("arguments", ['{"city": "Paris", "unit": }', '{"city": "Par'])
async def test_broken_arguments_arrive_as_the_model_wrote_them(tmp_path: Path, arguments: str) -> None:
    with serve(streamed(*frames_of("", [Call("get_weather", arguments)]), size=7)) as server:
        answer = await ask(cloud_spec(server, tmp_path, SETTINGS, KEY), KEY)
    assert (text_of(answer), calls_in([*answer])) == ("", {"get_weather": arguments})
