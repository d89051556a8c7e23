"""The recipe of docs/stepping.md, followed to the letter: a call corrected in a held run, and kept as a mock."""

from __future__ import annotations

from pathlib import Path

from tests.tui.pages import blocks_of, clone_in, follow, page, shell_in
from workbench.checks.value_kinds import Equals
from workbench.suite.suite_file import load_suite

RECIPE = page("stepping.md").partition("## A recipe")[2]


def test_what_the_recipe_says_is_what_one_sees(tmp_path: Path) -> None:
    clone = clone_in(tmp_path)
    with shell_in(clone) as terminal:
        follow(blocks_of(RECIPE), terminal)
    suite = load_suite(clone / "held" / "office.toml").suite
    assert suite is not None
    (mock,) = next(case for case in suite.cases if case.id == "e-mail-to-a-name").mocks
    assert mock.when is not None
    assert mock.when["to"] == Equals(equals="Ann", plain=True), "what the model wrote"
    assert isinstance(mock.result, str)
    assert '"message_id": "message-1"' in mock.result
