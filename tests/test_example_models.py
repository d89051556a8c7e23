"""One constant names all hosted models in the program and its docs, so none is overlooked when its vendor retires
it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.tables import each_row
from workbench.config.models import EXAMPLE_MODELS

ROOT = Path(__file__).parents[1]
NAMES = re.compile(
    r"\b(?:gpt-\d|chatgpt-|o\d-(?:mini|pro)|claude-(?:[a-z]+-)?\d|gemini-\d)(?:[\w.-]*\w)?|(?<=openai:)o\d\b"
)
SCANNED = ("action.yml", "README.md", "docs", "workbench", "sample_suites", "benchmarks")
ENDINGS = {".py", ".md", ".toml", ".yml", ".yaml", ".js", ".html", ".json", ".txt"}


def files() -> Iterator[Path]:
    for place in (ROOT / name for name in SCANNED):
        yield from (place.rglob("*") if place.is_dir() else [place])


def named(text: str) -> set[str]:
    return set(NAMES.findall(text))


@each_row(
    "name",
    ["gpt-4o-mini", "gpt-5", "gpt-4.1-mini", "o3-mini", "claude-3-5-sonnet", "claude-opus-4.5", "gemini-2.5-pro"],
)
def test_a_name_is_found_in_text(name: str) -> None:
    assert named(f"--model openai:{name}, or `{name}`.") == {name}
    assert not named("the Claude Code form claude-code, gpt and o2 of a claude-agent")


def test_no_other_model_is_named() -> None:
    others = {
        f"{file.relative_to(ROOT)}: {name}"
        for file in files()
        if file.suffix in ENDINGS
        for name in named(file.read_text(encoding="utf-8")) - {*EXAMPLE_MODELS}
    }
    assert not others


def test_each_is_named_in_the_docs() -> None:
    pages = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "docs").rglob("*.md"))
    assert named(pages) >= {*EXAMPLE_MODELS}
