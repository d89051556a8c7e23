"""The engine's thread: programs start on it, and closing it ends the running ones."""

from __future__ import annotations

import asyncio
import sys
import threading

import pytest

from workbench.engine.engine_thread import EngineThread


@pytest.fixture
def thread() -> EngineThread:
    return EngineThread()


async def _said_by(*words: str) -> bytes:
    process = await asyncio.create_subprocess_exec(
        *words, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, start_new_session=True
    )
    said, _ = await process.communicate(b"heard")
    return said + str(process.returncode).encode()


def test_programs_start_and_end_on_it(thread: EngineThread) -> None:
    echo = (sys.executable, "-I", "-S", "-c", "print(input(), end=''); raise SystemExit(3)")
    assert thread.submit(_said_by(*echo)).result(30) == b"heard3"
    thread.close(1)


def test_closing_cancels_what_still_runs_and_ends_the_thread(thread: EngineThread) -> None:
    waiting, cancelled = threading.Event(), threading.Event()

    async def wait() -> None:
        try:
            waiting.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    thread.submit(wait())
    assert waiting.wait(5)
    thread.close(5)
    assert cancelled.is_set()
    assert not thread.alive


def test_other_threads_can_wait_until_the_engine_has_nothing_to_compute(thread: EngineThread) -> None:
    computing, enough = threading.Event(), threading.Event()

    async def compute() -> None:
        computing.set()
        enough.wait(30)

    assert thread.wait_until_idle(30)
    computed = thread.submit(compute())
    assert computing.wait(30)
    assert not thread.wait_until_idle(0)
    enough.set()
    assert computed.result(30) is None
    assert thread.wait_until_idle(30)
    thread.close(1)
    assert thread.wait_until_idle(0)
