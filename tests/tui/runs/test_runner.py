"""Between the engine's thread and the screen: many events are one delivery, and silence is none."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.tui.apps import SMART_HOME, ScriptedRuntime, conversation, opened, opening, suites_in
from workbench.authoring.case_list import CaseKey
from workbench.trajectory.events import RequestStarted, TextDelta


async def test_what_comes_in_together_is_painted_together(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        (run,) = await app.run("r")
        deliveries: list[set[CaseKey]] = []
        app.app.services.runner.on_delivery = lambda cases, _: deliveries.append(cases)
        app.session.say(run, opening(run), RequestStarted(1), *[TextDelta(1, "word ") for _ in range(500)])
        await app.settle()
        assert deliveries == [{(run.file.path, "movie-night")}]
        await app.settle()
        assert len(deliveries) == 1


@pytest.mark.slow
async def test_events_from_a_thread_come_in_order_however_fast(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        (run,) = await app.run("r")
        words = [f"{number} " for number in range(3_000)]

        def talk() -> None:
            app.session.say(run, opening(run), RequestStarted(1), *[TextDelta(1, word) for word in words])

        await asyncio.to_thread(talk)
        await app.settle()
        record = app.app.main.selection.run
        assert record is not None
        assert record.view.items[-1].text.text == "".join(words)  # type: ignore[union-attr]


async def test_a_batch_is_begun_off_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []
    begin = ScriptedRuntime.start

    def start(*given: Any, **more: Any) -> str:
        threads.append(threading.current_thread())
        return begin(*given, **more)

    monkeypatch.setattr(ScriptedRuntime, "start", start)
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        await app.run("r")
        assert [thread is threading.main_thread() for thread in threads] == [False]
        assert len(app.app.main.book.active_runs()) == 1


async def test_the_session_is_opened_once_and_closed_at_the_end(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        first, *_ = await app.run("R")
        session = app.session
        app.session.finish(first, conversation(first, [], "Hm."))
        await app.settle()
        await app.run("r")
        assert app.session is session
        await app.pilot.press("q", "q")
        await app.until(lambda: session.closed)
