"""The log of a server's standard error."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workbench.config.secrets import Secrets
from workbench.tools.server_process import MAX_LOG_BYTES, ServerLog

LONG, SHORT = "abc-123-456", "abc-123"
STARTED = datetime(2026, 11, 23, 10, 2, 11)
TITLE = "== title, started 2026-11-23 10:02:11"


def secrets_of(**values: str) -> Secrets:
    secrets = Secrets()
    for name, value in values.items():
        secrets.add(name, value)
    return secrets


async def kept(file: Path, chunks: Sequence[bytes], secrets: Secrets) -> str:
    """Return the log after a server has written these chunks, without its title."""
    file.unlink(missing_ok=True)
    log = ServerLog(file, "title", secrets, now=lambda: STARTED)
    stream = asyncio.StreamReader()
    following = asyncio.create_task(log.follow(stream))
    for chunk in chunks:
        stream.feed_data(chunk)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    stream.feed_eof()
    await following
    log.close()
    return file.read_text().removeprefix(f"{TITLE}\n")


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
    log = ServerLog(tmp_path / "log", "title", secrets_of(KEY=LONG), now=lambda: STARTED)
    stream = asyncio.StreamReader()
    following = asyncio.create_task(log.follow(stream))
    stream.feed_data(b"ready\n")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert (tmp_path / "log").read_text() == f"{TITLE}\nready\n"
    following.cancel()


async def test_of_a_flood_the_end_is_kept_and_what_was_dropped_is_named(tmp_path: Path) -> None:
    flood = b"".join(b"complaint %d\n" % number for number in range(300_000))
    log = await kept(tmp_path / "log", [flood[:2_500_000], flood[2_500_000:]], Secrets())
    assert len(log) < 2 * MAX_LOG_BYTES + 70_000
    notice, first, *_ = log.splitlines()
    assert notice.startswith("[workbench] ")
    assert notice.endswith(" bytes that came before this line were dropped")
    assert first.startswith("complaint ")
    assert log.endswith("complaint 299999\n")


async def test_the_last_lines_are_known_also_without_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    log = ServerLog(tmp_path / "file" / "log", "title", secrets_of(KEY=LONG))
    assert log.problem is not None
    assert log.last_lines() == ((), 0)
    stream = asyncio.StreamReader()
    stream.feed_data(b"".join(b"line %d\n" % number for number in range(12)) + b"the key abc-123-456\r\n" + b"x" * 500)
    stream.feed_eof()
    await log.follow(stream)
    log.write_note("ended with exit code 1")
    lines, earlier = log.last_lines()
    assert (earlier, len(lines), lines[0]) == (4, 10, "line 4")
    assert lines[-2:] == ("the key $KEY", "x" * 400 + "…")


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
    assert log.problem == f"{tmp_path / 'log'} cannot be written any more, Broken pipe"
    log.close()
