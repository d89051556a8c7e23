"""What is kept of what a server writes to standard error."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workbench.config.secrets import Secrets
from workbench.tools.server_log import MAX_LOG_BYTES, ServerLog

LONG, SHORT = "abc-123-456", "abc-123"


def secrets_of(**values: str) -> Secrets:
    secrets = Secrets()
    for name, value in values.items():
        secrets.add(name, value)
    return secrets


async def kept(file: Path, chunks: Sequence[bytes], secrets: Secrets) -> str:
    """What stands in the log after a server has written so, below the title."""
    file.unlink(missing_ok=True)
    log = ServerLog(file, "title", secrets)
    stream = asyncio.StreamReader()
    following = asyncio.create_task(log.follow(stream))
    for chunk in chunks:
        stream.feed_data(chunk)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    stream.feed_eof()
    await following
    log.close()
    return file.read_text().removeprefix("== title\n")


@given(st.lists(st.sampled_from([LONG, SHORT, LONG[:5], LONG[5:], "3", "-456", "a", "é", "\n"])), st.data())
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
def test_a_secret_is_hidden_wherever_the_stream_is_cut(tmp_path: Path, words: list[str], data: st.DataObject) -> None:
    secrets = secrets_of(LONG=LONG, SHORT=SHORT)
    written = "".join(words).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(written)), max_size=8)))
    chunks = [written[start:end] for start, end in zip([0, *cuts], [*cuts, len(written)], strict=True)]
    log = asyncio.run(kept(tmp_path / "log", [chunk for chunk in chunks if chunk], secrets))
    assert log == secrets.redact("".join(words))


async def test_a_secret_on_several_lines_is_hidden_and_its_beginning_alone_is_not(tmp_path: Path) -> None:
    secrets = secrets_of(KEY="-----BEGIN KEY-----\nMIIEv\n-----END KEY-----")
    chunks = [b"-----BEGIN KEY-----\n", b"MIIEv\n-----END", b" KEY----- and -----BEGIN KEY"]
    assert await kept(tmp_path / "log", chunks, secrets) == "$KEY and -----BEGIN KEY"


async def test_what_is_said_is_there_at_once(tmp_path: Path) -> None:
    log = ServerLog(tmp_path / "log", "title", secrets_of(KEY=LONG))
    stream = asyncio.StreamReader()
    following = asyncio.create_task(log.follow(stream))
    stream.feed_data(b"ready\n")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert (tmp_path / "log").read_text() == "== title\nready\n"
    following.cancel()


async def test_a_flood_is_read_to_its_end_and_kept_to_a_limit(tmp_path: Path) -> None:
    chunks = [b"complaint\n" * 10_000] * 30
    log = await kept(tmp_path / "log", chunks, Secrets())
    assert len(log) < MAX_LOG_BYTES + 200
    assert log.endswith("\n[workbench] the rest of what the server says until it starts again is not kept\n")


async def test_bytes_that_are_no_text_are_spelled_out(tmp_path: Path) -> None:
    assert await kept(tmp_path / "log", [b"caf\xc3", b"\xa9 \xff\n"], Secrets()) == "café \\xff\n"


async def test_only_its_owner_may_read_a_log_that_was_open_to_others_too(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.touch(mode=0o644)
    ServerLog(file, "title", Secrets()).close()
    assert file.stat().st_mode & 0o777 == 0o600


async def test_a_file_that_takes_no_more_stops_the_log_and_not_the_server(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "log")
    reader = os.open(tmp_path / "log", os.O_RDONLY | os.O_NONBLOCK)
    log = ServerLog(tmp_path / "log", "title", Secrets())
    os.close(reader)
    stream = asyncio.StreamReader()
    stream.feed_data(b"more")
    stream.feed_eof()
    await log.follow(stream)
    assert log.problem == "Broken pipe after its beginning"
    log.close()
