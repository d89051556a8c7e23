"""docs/reports.md: its table is the program's, and its examples are real output."""

from __future__ import annotations

import re
from pathlib import Path

from tests.cli.program import Program
from tests.durations import DURATION
from workbench.numerals import duration_text
from workbench.show import markdown
from workbench.show.forms import FORMS

PAGE = (Path(__file__).parents[1] / "docs" / "reports.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[str]:
    return [text for found, text in FENCE.findall(PAGE) if found == language]


def timeless(text: str) -> str:
    """Return a text without the parts that differ between runs."""
    text = re.sub(r'time="[\d.]+"', "time", text)
    return re.sub(rf"\\?{DURATION}", "N s", text)  # Markdown escapes "<1 ms"


def test_texts_of_slow_and_quick_runs_are_alike() -> None:
    for time_ms in (0.2, 15, 1_500, 75_000, 120_000):
        text = f"took {duration_text(time_ms)}"
        assert (timeless(text), timeless(markdown.text(text))) == ("took N s", "took N s")


def test_the_table_is_that_of_the_program() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \|$", PAGE.partition("## JUnit")[0], re.MULTILINE)
    assert rows == [(form.name, " ".join(form.endings), form.purpose) for form in FORMS]


def test_the_examples_are_what_is_written(tmp_path: Path) -> None:
    program = Program(tmp_path)
    (program.folder / ".git").mkdir()
    (suite,) = blocks("toml")
    program.write("weather.toml", suite)
    files = ("a.xml", "a.md", "a.csv")
    words = [word for file in files for word in ("--report", file)]
    done = program.run("run", "weather.toml", "--format", "github", "--no-history", *words)
    written = {file: (program.folder / file).read_text(encoding="utf-8") for file in files}
    for language, where in (("xml", "a.xml"), ("markdown", "a.md"), ("csv", "a.csv")):
        (example,) = blocks(language)
        assert timeless(example) in timeless(written[where]).replace(
            'fails the case)">wrong', 'fails the case)">\nwrong'
        )
    (annotation,) = (text for text in blocks("") if text.startswith("::"))
    assert annotation in done.stdout
    command = next(text for text in blocks("sh") if "lint" in text).split()
    assert program.run(*command[1:]).returncode == 0
    (finding,) = blocks("json")
    assert finding in (program.folder / "lint.codequality.json").read_text(encoding="utf-8")
