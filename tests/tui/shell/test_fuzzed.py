"""Random input with runs in progress: the app has no error, leaves on request, restores the terminal, and journals
unsaved changes."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest
from textual import events
from textual._xterm_parser import XTermParser
from textual.geometry import Size
from textual.message import Message

from tests.sampled_rows import first_of
from tests.tui.apps import opened
from tests.tui.frames import every_frame
from tests.tui.in_terminal import CURSOR_ON, ENTERS, LEAVES, MOUSE_OFF, Terminal
from tests.tui.random_session import LENGTH, Deed, Resize, Send, as_text, session, size_of, suites_for_fuzzing
from workbench.limits import MAX_TERMINAL_COLUMNS, MAX_TERMINAL_ROWS
from workbench.suite.drafts import Drafts
from workbench.tui.shell.workbench import Workbench
from workbench.tui.terminal.driver import PastedText, TerminalInput

MOST_BYTES_AT_ONCE = 4096

FIRST_OF_THE_HUNDRED = 100
SHORT = 120
"""The number of operations in three of four of the hundred sessions, which together are to take a minute."""


class Keyboard:
    """Makes messages from input, as the driver does."""

    def __init__(self) -> None:
        self._input, self._parser = TerminalInput(), XTermParser()

    def messages(self, content: bytes, now_s: float) -> Iterator[Message]:
        text = content.decode("utf-8", "replace")
        for start in range(0, max(len(text), 1), MOST_BYTES_AT_ONCE):
            piece = text[start : start + MOST_BYTES_AT_ONCE]
            for arrived in self._input.feed(piece, now_s) if piece else self._input.flush(now_s):
                if isinstance(arrived, PastedText):
                    yield events.Paste(arrived.text)
                    continue
                yield from self._parser.feed(arrived.text)
                if self._parser._timeout_time is not None:
                    self._parser._timeout_time = 0.0
                    yield from self._parser.tick()


async def fuzz_in_process(folder: Path, seed: int, operations: list[Deed]) -> None:
    """Play a session without a terminal."""
    suites = suites_for_fuzzing(folder)
    environment = {"EDITOR": "true"}
    async with opened(
        suites, size=size_of(seed), live=True, trust=True, history=folder / "history.sqlite3", environment=environment
    ) as app:
        keyboard, now_s = Keyboard(), 0.0
        for number, deed in enumerate(operations):
            if isinstance(deed, Send):
                now_s += 0.01
                for message in keyboard.messages(deed.content, now_s):
                    message.set_sender(app.app)
                    app.app.post_message(message)
            elif isinstance(deed, Resize):
                columns, rows = min(deed.columns or 80, MAX_TERMINAL_COLUMNS), min(deed.rows or 24, MAX_TERMINAL_ROWS)
                size = Size(columns, rows)
                app.app.post_message(events.Resize(size, size))
            else:
                now_s += deed.seconds
                for message in keyboard.messages(b"", now_s):
                    app.app.post_message(message)
                await asyncio.sleep(deed.seconds)
            if number % 3 == 0:
                await asyncio.sleep(0)
            if app.app.message_queue_size > 50:
                await quiet(app.app)
            if not app.app.is_running:
                break
        await quiet(app.app)
        for error in app.app.containment.recent:
            raise error
        assert not app.app.return_code
        stays = app.app.is_running and not app.app.is_ending and not app.app.leaving._is_leaving
        dirty = app.app.main.open_suites.dirty if stays else ()  # who left was asked about them
        unsaved = {suite.path.resolve(): suite.document.text for suite in dirty}
    for journal in (folder / "state" / "drafts").glob("*"):
        with journal.open() as locked:  # by a server, too, from when it is forked until it is executed
            fcntl.flock(locked, fcntl.LOCK_EX)
    drafts = Drafts(folder / "state" / "drafts")
    left = {draft.path.resolve(): draft.text for draft in drafts.recoverable([suites, Path()]).drafts}
    drafts.close()
    # A save that was in progress has ended since.
    saved = {path for path, text in unsaved.items() if path.is_file() and path.read_text(encoding="utf-8") == text}
    assert {path: text for path, text in unsaved.items() if path not in saved}.items() <= left.items()


async def quiet(app: Workbench) -> None:
    """Wait until the app has taken all that was sent."""
    async with asyncio.timeout(60):
        for _ in iter(lambda: app.is_running and app.message_queue_size, 0):
            await asyncio.sleep(0.001)


def fuzz_in_terminal(folder: Path, seed: int, operations: list[Deed]) -> None:
    """Play a session in a real terminal; then the program is asked to end."""
    suites = suites_for_fuzzing(folder)
    columns, rows = size_of(seed)
    with Terminal(
        ["--trust", str(suites)],
        folder,
        columns=columns,
        rows=rows,
        folder=folder,
        environment={"EDITOR": "true"},
        shows=False,
    ) as terminal:
        terminal.wait_for(lambda: b"\x1b[?7l" in terminal.output)  # the last of what the app sets up
        terminal.quiet(0.2)
        for deed in operations:
            if terminal.process.poll() is not None:
                break
            if isinstance(deed, Send):
                terminal.send_all(deed.content)
            elif isinstance(deed, Resize):
                terminal.resize_only(deed.columns, deed.rows)
            else:
                end = time.monotonic() + deed.seconds
                while (left := end - time.monotonic()) > 0:
                    terminal.read(left)
            while terminal.read(0):
                pass
        if terminal.process.poll() is None:
            terminal.signal(signal.SIGTERM)
        code = terminal.end()
        # A program that has left, except for the interpreter's shutdown, has no handler any more.
        assert code in (0, 128 + signal.SIGTERM, -signal.SIGTERM), f"{code}: {bytes(terminal.output[-2000:])!r}"
        assert_given_back(bytes(terminal.output))
        log = folder / "toolcall-workbench" / "log" / "workbench.log"
        said = log.read_text() if log.exists() else ""
        assert not any(level in said for level in (" ERROR ", " CRITICAL ")), said


def assert_given_back(output: bytes) -> None:
    """The user's editor has had the terminal meanwhile, maybe."""
    assert output.count(ENTERS) == output.count(LEAVES)
    last = output.rindex(ENTERS)
    assert output.rindex(LEAVES) > last
    assert output.rindex(MOUSE_OFF) > last
    assert output.rindex(CURSOR_ON) > output.rindex(LEAVES)


def play(folder: Path, seed: int) -> None:
    """A session of a seed: every third in a real terminal."""
    operations = session(seed, LENGTH if seed % 4 == 1 or seed < FIRST_OF_THE_HUNDRED else SHORT)
    try:
        if seed % 3 == 0:
            fuzz_in_terminal(folder, seed, operations)
        else:
            with chdir(folder), every_frame():  # where pictures are saved
                asyncio.run(fuzz_in_process(folder, seed, operations))
    except BaseException:
        print(f"seed {seed} sent, at first of {size_of(seed)}:\n{as_text(operations)}", file=sys.stderr)  # noqa: T201
        raise


@pytest.mark.slow
@pytest.mark.parametrize("seed", first_of(range(4), 1))
def test_nothing_that_is_sent_does_harm(tmp_path: Path, seed: int) -> None:
    play(tmp_path, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(FIRST_OF_THE_HUNDRED, FIRST_OF_THE_HUNDRED + 100))
def test_nothing_that_a_hundred_sessions_send_does_harm(tmp_path: Path, seed: int) -> None:
    play(tmp_path, seed)


@pytest.mark.skipif("FUZZ" not in os.environ, reason="FUZZ=FIRST:LAST plays the sessions of these seeds")
def test_nothing_that_more_sessions_send_does_harm(tmp_path: Path) -> None:
    first, _, last = os.environ.get("FUZZ", "").partition(":")
    for seed in range(int(first), int(last or first) + 1):
        folder = tmp_path / str(seed)
        folder.mkdir()
        play(folder, seed)
