"""Pages whose commands, keys and screens are followed to the letter, in a clone of the repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sampled_rows import first_of
from tests.tui.pages import blocks_of, clone_in, follow, page, shell_in
from workbench.checks.value_kinds import Equals
from workbench.suite.suite_file import load_suite

FOLLOWED = {"sh", "keys", "screen"}


@pytest.mark.parametrize("name", first_of(["authoring.md", "recording.md", "results.md", "recordings.md"], 2))
def test_what_a_page_says_is_what_one_sees(name: str, tmp_path: Path) -> None:
    with shell_in(clone_in(tmp_path), columns=120, rows=40) as terminal:
        follow([block for block in blocks_of(page(name)) if block.kind in FOLLOWED], terminal)


@pytest.mark.slow
def test_the_recipe_of_a_held_run_keeps_what_was_corrected_as_a_mock(tmp_path: Path) -> None:
    clone = clone_in(tmp_path)
    with shell_in(clone) as terminal:
        follow([block for block in blocks_of(page("debugging.md")) if block.kind in FOLLOWED], terminal)
    suite = load_suite(clone / "held" / "office.toml").suite
    assert suite is not None
    (mock,) = next(case for case in suite.cases if case.id == "e-mail-to-a-name").mocks
    assert mock.when is not None
    assert mock.when["to"] == Equals(equals="Ann", plain=True), "what the model wrote"
    assert isinstance(mock.result, str)
    assert '"message_id": "message-1"' in mock.result
