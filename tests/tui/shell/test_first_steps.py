"""The tutorial of docs/first-steps.md, followed to the letter."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.pages import FENCE, ROOT, blocks_of, clone_in, follow, page, pressed, shell_in

PAGE = page("first-steps.md").partition("\n## Go on\n")[0]
INSTALLS = "python3 -m venv .venv && .venv/bin/pip install -e . && "

MINUTES = 5
WORDS_A_MINUTE = 220
"""The speed of a calm reader."""
CHARACTERS_A_MINUTE = 150
"""The speed of a slow typist. A pasted block counts as one character."""

BLOCKS = blocks_of(PAGE)[1:]
"""All blocks except the first, which explains the blocks."""


@pytest.mark.slow
def test_what_the_page_says_is_what_one_sees(tmp_path: Path) -> None:
    clone = clone_in(tmp_path)
    installed = BLOCKS[0]._replace(text=BLOCKS[0].text.removeprefix(INSTALLS))
    with shell_in(clone) as terminal:
        follow([installed, *BLOCKS[1:]], terminal)
    assert 'args = { room = "kitchen", state = "on" }' in (clone / "lights" / "lights.toml").read_text()


def test_the_page_starts_as_the_readme_does() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"<!-- start command -->\n```sh\n{BLOCKS[0].text}\n```" in readme
    assert BLOCKS[0].text.startswith(INSTALLS)
    assert "(docs/first-steps.md)" in readme
    assert f"```sh\n{BLOCKS[0].text}\n```" in page("index.md")


def test_five_minutes_are_enough() -> None:
    words = len(FENCE.sub("", PAGE).split())
    typed = sum(len(keys) for kind, text in BLOCKS if kind in ("keys", "sh") for keys in pressed(text))
    assert words / WORDS_A_MINUTE + typed / CHARACTERS_A_MINUTE < MINUTES
