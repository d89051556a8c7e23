"""The recipe of docs/comparing.md, followed to the letter: a comparison saved as recordings, and repeated from them
when no model can be reached."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cli.test_compare import MODEL, SUITE, lazy, right
from tests.providers.server import Server
from tests.tui.in_terminal import Terminal
from tests.tui.pages import blocks_of, clone_in, follow, page
from workbench.grading.run_summary import RunSummary
from workbench.history.history import History

RECIPE = blocks_of(page("comparing.md").partition("Make the comparison once")[2].partition("## ")[0])
AGAIN = max(at for at, block in enumerate(RECIPE) if block.kind == "sh")


def figures_in(history: Path) -> list[dict[tuple[str, str], RunSummary | None]]:
    """Return the results of each batch by case and model, the newest last."""
    with History(history) as kept:
        batches = sorted(batch.number for batch in kept.batches())
        return [{(run.case_id, run.model): run.figures for run in kept.runs(number)} for number in batches]


@pytest.mark.slow
def test_the_recordings_of_a_comparison_are_compared_without_a_model(tmp_path: Path) -> None:
    clone = clone_in(tmp_path)
    (clone / "suites").mkdir()
    (clone / "suites" / "weather.toml").write_text(SUITE, encoding="utf-8")
    own = clone / ".config" / "toolcall-workbench"
    own.mkdir(parents=True)
    environment = {
        "PS1": "$ ",
        "XDG_CONFIG_HOME": str(clone / ".config"),
        "PATH": f"{clone / '.venv' / 'bin'}:/usr/bin:/bin",
    }
    with Terminal([], clone, columns=80, rows=24, folder=clone, environment=environment, program=("sh",)) as terminal:
        with ExitStack() as stack:
            scripts = {"gpt-6-luna": right, "local": lazy}
            urls = {name: stack.enter_context(Server(script)).url for name, script in scripts.items()}
            (own / "workbench.toml").write_text("".join(MODEL.format(name=name, url=url) for name, url in urls.items()))
            follow(RECIPE[:AGAIN], terminal)
        follow(RECIPE[AGAIN:], terminal)
        terminal.send("q")
        terminal.wait_for(lambda: terminal.output.endswith(b"$ "))
    asked, played = figures_in(next(clone.glob("data/**/*.sqlite3")))
    by_case_and_model = {(case, model.rpartition("#")[2]): found for (case, model), found in played.items()}
    assert by_case_and_model.keys() == asked.keys()
    for key, found in asked.items():
        again = by_case_and_model[key]
        assert found is not None
        assert again is not None
        assert (again.status, again.score) == (found.status, found.score)
    assert {found.status for found in asked.values() if found is not None} == {"passed", "failed"}
