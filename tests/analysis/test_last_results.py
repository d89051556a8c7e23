"""The last result of each case, from histories of real runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.history.batches import HEAD, SUITE, run_kept
from tests.tui.apps import SMART_HOME, suites_in
from tests.tui.histories import BEGAN, Made, well, write_history
from workbench.analysis.over_time import LastResult, last_results
from workbench.history.history import History
from workbench.suite.suite_file import SuiteFile, load_suite


def read(history: Path, *suites: SuiteFile) -> dict[str, LastResult]:
    """The last results by the ids of cases."""
    with History(history) as opened:
        found = last_results(opened, suites, lambda text: text, pytest.fail)
        return {case_id: result for (_, case_id), result in found.items()}


def test_the_last_batch_of_each_case_counts_with_all_its_models_and_repeats(tmp_path: Path) -> None:
    home, history = suites_in(tmp_path, home=SMART_HOME) / "home.toml", tmp_path / "history.sqlite3"
    write_history(
        history,
        home,
        Made(well("Movie night")),
        Made(well("Lights off"), models=("offline", "silent"), cases=("lights-off",), repeats=2),
        Made(well("Lights off", "Nothing to do"), cases=("lights-off", "nothing-to-do"), cut_after=0),
    )
    found = read(history, load_suite(home))
    assert {case: (result.status, len(result.runs)) for case, result in found.items()} == {
        "movie-night": ("failed", 1),
        "lights-off": ("failed", 4),
        "nothing-to-do": ("passed", 1),
    }
    assert not any(result.edited for result in found.values())
    assert {cell.model for cell in found["lights-off"].cells} == {"offline", "silent"}
    assert found["movie-night"].began_ms == BEGAN.timestamp() * 1000
    assert read(history) == {}
    assert read(tmp_path / "none.sqlite3", load_suite(home)) == {}


def test_only_a_case_with_other_content_was_edited_since(tmp_path: Path) -> None:
    history = tmp_path / "history.sqlite3"
    run_kept(tmp_path, history)
    file = tmp_path / "weather.toml"

    def edited(text: str) -> set[str]:
        file.write_text(text, encoding="utf-8")
        return {case for case, result in read(history, load_suite(file)).items() if result.edited}

    assert edited(SUITE) == set()
    assert edited(SUITE.replace('name = "Weather"', 'name = "The weather"')) == set()
    assert edited(SUITE.replace('name = "Paris"', 'name   = "Paris" # in France')) == set()
    assert edited(SUITE.replace('city = "Rome"', 'city = "Berlin"')) == {"nowhere"}
    # The order of cases, an error elsewhere, and a new case do not matter.
    first, second = SUITE.removeprefix(HEAD).split("\n\n")
    assert edited(f'{HEAD}\n{second}\n\n[[cases]]\nname = "New"\nuser = 3\n\n{first.strip()}\n') == set()
    assert edited("no TOML [") == set()
    # A version of the suite that never ran has no effect. One that ran replaces the old one.
    changed = SUITE.replace('city = "Rome"', 'city = "Berlin"')
    run_kept(tmp_path, history, suite=changed)
    assert edited(changed) == set()
    assert edited(SUITE) == {"nowhere"}
