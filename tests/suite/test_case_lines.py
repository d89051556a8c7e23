"""The lines of cases in reports, and the blocks of cases in the history, come from one scan of the text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from workbench.suite.excerpts import case_blocks
from workbench.suite.positions import scan
from workbench.suite.suite_file import lines_of, parse_suite
from workbench.suite.suite_text import SuiteText

HEAD = """format = 1
name = "Weather"
[[tools]]
name = "get_weather"
description = "Current weather."
"""
CASE = '[[cases]]\nname = "NAME"\nuser = "Weather?"\nordered = [{ tool = "get_weather" }]\n'
TEXTS = {
    "plain": HEAD + CASE.replace("NAME", "one") + "\n\n" + CASE.replace("NAME", "two"),
    "comments": HEAD
    + "# a\n  # b\n"
    + CASE.replace("NAME", "one")
    + "# c\n\n# d\n [[cases]]\nname='x # [['\nuser='u'\n",
    "comment in text": HEAD + '[[cases]]\nname = "one"\nuser = """\n# no comment\n[[cases]]\n"""\n' + CASE,
    "tables below": HEAD + CASE + "[cases.grading]\nby = 'accuracy'\n" + CASE.replace("NAME", "two"),
    "rows": HEAD + CASE + "each = [{ n = 1 }, { n = 2 }]\n".replace("n", "x") + CASE.replace("NAME", "two"),
    "in brackets": HEAD.replace(
        "[[tools]]", "cases = [\n{ name = 'a', user = 'b' },\n\n{ name = 'c', user = 'd' }]\n[[tools]]"
    ),
    "tools between": CASE.replace("NAME", "one").join((HEAD[:28], HEAD[28:])) + CASE,
}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_lines_and_blocks_of_cases_are_those_of_the_whole_text(text: str, mark: str, end: str) -> None:
    file = parse_suite(mark + text.replace("\n", end), Path("weather.toml"))
    assert file.suite is not None, file.problems
    positions, line_of = scan(file.text), lines_of([file])
    for index, case in enumerate(file.suite.cases):
        assert line_of("weather.toml", case.id) == positions.line(file.place_in_text(("cases", index)))
    alone = file.standalone
    blocks, parts = case_blocks(file), SuiteText.of(alone.text)
    assert [alone.text[first:after].rstrip() for _, first, after in blocks or ()] == [
        block.rstrip() for block in parts.blocks
    ]
    assert [case for case, _, _ in blocks or ()] == [case.id for case in file.suite.cases][: len(parts.blocks)]
    assert case_blocks(replace(file, header=None)) == blocks


def test_a_header_that_is_not_that_of_the_text_gives_no_blocks() -> None:
    file = parse_suite(TEXTS["plain"], Path("weather.toml"))
    assert case_blocks(file) is not None
    assert case_blocks(replace(file, header={"format": 1})) is None
