"""The examples of docs/python.md run unchanged, and print what the page shows."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.forking import write_forked_python
from tests.providers.server import Answer, Call, Request, Server, base_url_of, said

PAGE = (Path(__file__).parents[2] / "docs" / "python.md").read_text(encoding="utf-8").partition("\n## pytest\n")[0]
FILE = re.compile(r"<!-- file: (\S+) -->\n```toml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLE = re.compile(r"^```python\n(.*?)^```$(?:\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
MODEL = "openai:gpt-6-luna"


def _clever(request: Request) -> Answer:
    """Answers the cases of the page as they expect it."""
    asked = request.json["messages"][-1]
    calls = []
    if asked["role"] == "user" and "time" in asked["content"]:
        calls = [Call("get_time", {"timezone": "Europe/Oslo"})]
    if asked["role"] == "user" and "vacation" in asked["content"]:
        calls = [Call("search_docs", {"query": "vacation policy"})]
    text = "" if calls else "It is noon."
    return said("openai", text=text, calls=calls)


def test_the_examples_of_the_page_run_and_print_what_it_says(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples share their names, as if typed in one session. A local server plays the model."""
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    for name, text in FILE.findall(PAGE):
        (folder / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(sys, "executable", str(write_forked_python(folder.parent / "python")))
    names: dict[str, Any] = {}
    with Server(_clever) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-page")
        for source, expected in EXAMPLE.findall(PAGE):
            local = f"{MODEL}@{base_url_of(server, 'openai')}"
            printed, ends = io.StringIO(), "sys.exit" in source
            with contextlib.redirect_stdout(printed), pytest.raises(SystemExit) if ends else contextlib.nullcontext():
                exec(compile(source.replace(MODEL, local), "docs/python.md", "exec"), names)
            if expected:
                assert _lines(printed.getvalue().replace(local, MODEL)) == _lines(expected), source


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]
