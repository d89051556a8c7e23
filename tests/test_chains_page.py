"""The page on chains is true: its suite runs as it says, and what it says to the model is what is said."""

from __future__ import annotations

import re
from pathlib import Path

from tests.cli.program import Program
from workbench.engine.turns import CONTINUE

PAGE = (Path(__file__).parents[1] / "docs" / "chains.md").read_text(encoding="utf-8")
LATENCY = re.compile(r"<?\d+(\.\d+)? ms")


def example(marker: str) -> str:
    """The example behind a marker."""
    found = re.search(rf"<!-- {marker} -->\n```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def test_the_chain_of_the_page_runs_as_it_says(tmp_path: Path) -> None:
    program = Program(tmp_path)
    program.write("trip.toml", example("the suite"))
    done = program.run("run", "trip.toml")
    told = [line for line in done.stdout.splitlines() if line.startswith("Pack for Oslo")]
    assert [LATENCY.sub("ms", line) for line in told] == [
        LATENCY.sub("ms", line) for line in example("what it prints").splitlines()
    ]


def test_the_page_quotes_what_is_said_where_a_step_says_nothing() -> None:
    assert f'"{CONTINUE}"' in PAGE
