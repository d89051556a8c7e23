"""Colours never change the text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from workbench.tui.lines.highlight import json_line, toml_lines
from workbench.tui.lines.spans import Line, Role, plain

toml_like = st.text(st.sampled_from("abc_-=[]{}\"'#., \t\\019:T") | st.characters(exclude_characters="\n"), max_size=60)


def roles(line: Line) -> list[tuple[str, Role]]:
    return [(span.text, span.role) for span in line if span.text.strip()]


@given(st.lists(toml_like, max_size=6))
def test_toml_lines_stay_what_they_are(texts: list[str]) -> None:
    assert [plain(line) for line in toml_lines(texts)] == texts


@given(toml_like)
def test_json_lines_stay_what_they_are(text: str) -> None:
    assert plain(json_line(text)) == text


def test_the_parts_of_toml_are_told_apart() -> None:
    (line,) = toml_lines(['args = { door = "front", n = [1, 2.5], on = true } # why'])
    assert roles(line) == [
        ("args", "key"),
        ("=", "key"),
        ("{", "muted"),
        ("door", "key"),
        ("=", "key"),
        ('"front"', "string"),
        (",", "muted"),
        ("n", "key"),
        ("=", "key"),
        ("[", "muted"),
        ("1", "number"),
        (",", "muted"),
        ("2.5", "number"),
        ("],", "muted"),
        ("on", "key"),
        ("=", "key"),
        ("true", "literal"),
        ("}", "muted"),
        ("# why", "comment"),
    ]


def test_headers_are_headers_and_lists_over_several_lines_are_not() -> None:
    lines = toml_lines(["[[cases.ordered]]  # first", "tags = [", '  ["a"],', "]", "[tools]"])
    assert roles(lines[0]) == [("[[cases.ordered]]", "heading"), ("# first", "comment")]
    assert ('"a"', "string") in roles(lines[2])
    assert roles(lines[4]) == [("[tools]", "heading")]


def test_a_string_over_several_lines_is_one() -> None:
    lines = toml_lines(['user = """one', "[not a header]", 'end""" # over', "n = 1"])
    assert roles(lines[1]) == [("[not a header]", "string")]
    assert roles(lines[2]) == [('end"""', "string"), ("# over", "comment")]
    assert roles(lines[3]) == [("n", "key"), ("=", "key"), ("1", "number")]


def test_the_parts_of_json_are_told_apart() -> None:
    assert roles(json_line('{"a": [1, "x", null]}')) == [
        ("{", "muted"),
        ('"a"', "key"),
        (":", "muted"),
        ("[", "muted"),
        ("1", "number"),
        (",", "muted"),
        ('"x"', "string"),
        (",", "muted"),
        ("null", "literal"),
        ("]}", "muted"),
    ]


def test_a_very_long_line_is_left_plain() -> None:
    long = "a" * 100_000
    assert toml_lines([long]) == [((long, "text"),)]
    assert json_line(long) == ((long, "text"),)
