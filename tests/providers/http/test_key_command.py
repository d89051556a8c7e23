"""Commands that print keys: their time limit, and one run for all that wait for the key."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path

import pytest

from workbench.config.secrets import Secrets
from workbench.providers.http.key_command import KeyCommand, KeyCommandError

HANGS = "import time; pipe = open('pipe', 'w'); print(1, file=pipe, flush=True); time.sleep(60)"
"""Says that it runs, and holds the pipe open until it has ended."""
COUNTS = "open('ran', 'a').write('x'); print('key-' + str(len(open('ran').read())))"


def command(folder: Path, script: str, timeout_s: float = 30.0, now_s: list[float] | None = None) -> KeyCommand:
    clock = now_s or [0.0]
    words = (sys.executable, "-c", script)
    return KeyCommand(words, folder, os.environ, Secrets(), lambda: clock[0], timeout_s)


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


async def test_a_command_that_does_not_end_is_killed_with_what_it_started(pipe: Path) -> None:
    script = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {HANGS!r}])"
    reading = asyncio.create_task(asyncio.to_thread(pipe.read_text))
    with pytest.raises(KeyCommandError, match=r"printed no key within 1(\.0)? s: run it in a shell"):
        await command(pipe.parent, script, 1.0).key()
    assert await reading == "1\n", "read to its end, which comes with the end of the last process"


async def test_a_command_whose_run_is_stopped_is_killed(pipe: Path) -> None:
    task = asyncio.create_task(command(pipe.parent, HANGS).key())
    with await asyncio.to_thread(pipe.open) as opened:
        assert await asyncio.to_thread(opened.readline) == "1\n"
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(opened.readline) == ""


@pytest.mark.parametrize(("printed", "is_hidden"), [("error", False), ("key-of-mine-1234", True)])
async def test_a_command_that_fails_hides_keys_and_no_words(tmp_path: Path, printed: str, is_hidden: bool) -> None:
    secrets = Secrets()
    script = f"print('{printed}'); raise SystemExit('{printed} it is')"
    failing = KeyCommand((sys.executable, "-c", script), tmp_path, os.environ, secrets)
    shown = f"${failing.name}" if is_hidden else printed
    with pytest.raises(KeyCommandError, match=re.escape(f"({shown} it is)")):
        await failing.key()
    assert secrets.redact(f"an {printed}.") == f"an {shown}."


async def test_all_who_wait_share_one_run_also_for_a_new_key(tmp_path: Path) -> None:
    now_s = [0.0]
    shared = command(tmp_path, COUNTS, now_s=now_s)
    assert set(await asyncio.gather(*(shared.key() for _ in range(5)))) == {"key-1"}
    shared.note_accepted()
    assert set(await asyncio.gather(*(shared.renewed_key("key-1") for _ in range(5)))) == {"key-2"}
    assert await shared.renewed_key("key-2") is None, "it was just run, and no request was accepted since"
    now_s[0] = 60.0
    assert await shared.renewed_key("key-2") == "key-3"
    shared.note_accepted()
    assert await shared.renewed_key("key-3") == "key-4", "an accepted key may expire at any time"
