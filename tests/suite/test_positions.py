"""The scanner finds every key and element that `tomllib` finds, on its line."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings

from tests.example_counts import examples
from tests.suite.examples import WHOLE
from tests.suite.toml_texts import Value, written_documents
from workbench.suite.positions import _Scanner, scan
from workbench.suite.problems import Place, place_text
from workbench.suite.suite_file import lines_of, load_suite
from workbench.suite.suite_text import SpliceError


def places_in(value: object, place: Place = ()) -> set[Place]:
    found = {place} if place else set()
    if isinstance(value, dict):
        for key, inner in value.items():
            found |= places_in(inner, (*place, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            found |= places_in(inner, (*place, index))
    return found


@settings(
    max_examples=examples(300),
)
@given(written_documents())
def test_positions_agree_with_tomllib_and_with_what_was_written(
    case: tuple[dict[str, Value], str, dict[Place, int]],
) -> None:
    document, text, lines = case
    assert tomllib.loads(text) == document
    positions = scan(text)
    assert set(positions.lines) == places_in(document)
    assert positions.lines == lines


def test_every_key_of_a_whole_suite_stands_on_its_line() -> None:
    positions = scan(WHOLE)
    assert set(positions.lines) == places_in(tomllib.loads(WHOLE))
    lines = WHOLE.split("\n")
    for place, line in positions.lines.items():
        if isinstance(place[-1], str):
            assert place[-1] in lines[line - 1]


def test_a_place_that_is_not_written_has_the_line_of_what_is_around_it() -> None:
    positions = scan("a = 1\n\n[b]\nc = [\n  { d = 1 },\n]\n")
    assert positions.line(("b", "c", 0, "d", "e", 5)) == 5
    assert positions.line(("b", "nothing")) == 3
    assert positions.line(("nothing", 0)) == 1
    assert positions.line(()) == 1


def test_texts_that_look_like_headers_and_quotes_mislead_nobody() -> None:
    text = 'a = """x""""" # two quotes belong to the text\nb = \'\'\'\n[c]\n\'\'\'\'\nd = "\\"[e]" \n[f]\n'
    assert tomllib.loads(text) == {"a": 'x""', "b": "[c]\n'", "d": '"[e]', "f": {}}
    assert scan(text).lines == {("a",): 1, ("b",): 2, ("d",): 5, ("f",): 6}


def test_a_place_reads_as_a_path_with_unusual_keys_in_quotes() -> None:
    assert place_text(("cases", 3, "ordered", 0, "args", "city")) == "cases[3].ordered[0].args.city"
    assert place_text(("a b", "c", "", 0)) == '"a b".c.""[0]'
    assert place_text(()) == ""


def test_a_text_that_the_scanner_cannot_follow_stops_nobody_and_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(self: _Scanner) -> None:
        raise ValueError("this is not TOML (at character 5)")

    monkeypatch.setattr(_Scanner, "scan", refuses)
    (file := tmp_path / "whole.toml").write_text(WHOLE, encoding="utf-8")
    suite = load_suite(file)
    assert suite.suite is not None and not suite.positions.are_known
    assert lines_of([suite])(str(file), suite.suite.cases[0].id) is None
    with pytest.raises(IndexError):
        suite.case_lines(0)
    parts = suite.parts
    assert parts is not None and not parts.in_blocks and parts.text == WHOLE
    with pytest.raises(
        SpliceError, match="the lines of the text cannot be found, so only the whole text can be edited"
    ):
        parts.with_case(0, {**parts.cases[0], "name": "Another"})
    file.write_text("format = 1\nname = 'x'\n[[cases]]\nuser = 5\n", encoding="utf-8")
    problems = load_suite(file).problems
    assert {problem.line for problem in problems} == {None}
    assert any("could not be found" in problem.message for problem in problems)
