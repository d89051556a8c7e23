"""Any keys in the line for new cases lose no text and change no existing case."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.example_counts import examples
from tests.tui.apps import SMART_HOME, Call, conversation, opened, suites_in
from workbench.tui.quick_add import adder

KEYS = (
    *("e", "o", "x", "m", "l", "q", "minus", "space", "enter", "enter", "enter", "tab", "up", "down", "left", "right"),
    *("backspace", "escape", "ctrl+z", "pageup", "a run ends"),
)
CALLS: tuple[Call, ...] = (("set_lights", {"room": "living room"}), ("set_tv", {"power": "on"}))
BLOCKS = [f"[[cases]]\n{block.strip()}\n" for block in SMART_HOME.split("[[cases]]\n")[1:]]


@pytest.mark.slow
@given(st.lists(st.sampled_from(KEYS), max_size=60), st.booleans())
@settings(max_examples=examples(36))
def test_any_keys_lose_no_text_and_change_no_case(keys: list[str], calls: bool) -> None:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(adder, "ANSWER_DELAY_S", 0.001)
        asyncio.run(_pressed(Path(folder), keys, calls=calls))


async def _pressed(folder: Path, keys: list[str], *, calls: bool) -> None:
    """Press keys in the line, and look after each of them."""
    suites = suites_in(folder, smart_home=SMART_HOME)
    ended = 0
    async with opened(suites, size=(80, 24)) as app:
        await app.press("n", *"one ")
        adder_of_app = app.app.main.adder
        assert adder_of_app is not None
        state, field = adder_of_app.state, app.app.main.request_line.field
        for key in keys:
            before, commands, changing = field.value, field.has_commands, state.changing
            if key != "a run ends":
                await app.press(key)
            elif state.running is not None and state.running.run_ids:
                run = app.session.runs[ended]
                ended += 1
                app.session.finish(run, conversation(run, CALLS if calls else (), "Done."))
                app.session.end_batch()
                await app.settle()
            if not app.app.shows_main:
                app.app.pop_screen()
            if not app.app.main.request_line.typing:
                await app.press("1", "home", "down", "n")
            if len(key) == 1 and not commands:
                assert len(field.value) == len(before) + 1, key
            lost = changing is None and before.strip() and field.value != before and key not in ("backspace", "space")
            if lost and len(key) > 1 and key not in ("minus", "left", "right"):
                kept = {*state.recent, state._typed, field.value}
                assert before.strip() in {text.strip() for text in kept}, key
            text = app.app.open_suites.suites[0].document.text
            assert all(block.strip() in text for block in BLOCKS), key
