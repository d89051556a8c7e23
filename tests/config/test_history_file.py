"""The names of project folders in a history. A history next to a project moves with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.config.folders import folder_of_stored, stored_folder

BESIDE = Path("/there/project/.workbench/history.sqlite3")
MOVED = Path("/moved/.workbench/history.sqlite3")
OWN = Path("/moved/data/history.sqlite3")


@pytest.mark.parametrize(
    ("folder", "moved"),
    [
        ("/there/project", "/moved"),
        ("/there/project/a part/deep", "/moved/a part/deep"),
        ("/there/other", "/there/other"),
        ("/there", "/there"),
    ],
)
def test_the_project_of_a_history_and_what_is_below_it_moves_with_it(folder: str, moved: str) -> None:
    kept = stored_folder(BESIDE, Path(folder))
    assert (folder_of_stored(BESIDE, kept), folder_of_stored(MOVED, kept)) == (folder, moved)


def test_a_history_of_many_projects_has_whole_paths() -> None:
    assert stored_folder(OWN, Path("/moved/data")) == "/moved/data"


@pytest.mark.parametrize("kept", ["./..", "./a/../../b", "a", ".", ""])
def test_what_is_no_folder_of_the_project_is_left_as_it_is(kept: str) -> None:
    assert folder_of_stored(BESIDE, kept) == kept


def test_no_kept_folder_leads_out_of_the_project() -> None:
    assert folder_of_stored(BESIDE, ".//etc") == "/there/project/etc"
