"""Colours never change the text."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from workbench.authoring.form.field_text import shown_value, shown_values
from workbench.show.highlight import cut_json, json_line, json_rows, toml_lines
from workbench.show.lazy_lines import GrowingText, JsonLines
from workbench.show.spans import Line, Role, cut, plain, wrap_line
from workbench.trajectory.events import JsonValue
from workbench.tui.kit.edited_text import value_line

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
    assert json_line(f"{long}a") == ((f"{long}a", "text"),)


documents = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-99, 99)
    | st.text(st.sampled_from('ab 3,:"\\[{}é漢true'), max_size=80)
    | st.sampled_from(["3", "true", "null", " x ", "say: 4, null", "a" * 90]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab :3", max_size=9), inner, max_size=4),
    max_leaves=8,
)


def told_apart(text: str) -> list[tuple[str, Role]]:
    """Each character of a JSON text that is no blank, with its role, read one character after the other."""
    found: list[tuple[str, Role]] = []
    at = 0
    while at < len(text):
        end = at + 1
        if text[at] == '"':
            while text[end] != '"':
                end += 2 if text[end] == "\\" else 1
            end += 1
            role: Role = "key" if text[end:].lstrip().startswith(":") else "string"
        elif text[at] in "{}[],: \n":
            role = "muted"
        else:
            while end < len(text) and text[end] not in ",]} \n":
                end += 1
            role = "literal" if text[at] in "tfn" else "number"
        found += [(sign, role) for sign in text[at:end] if not sign.isspace()]
        at = end
    return found


def signs(lines: Sequence[Line]) -> list[tuple[str, Role]]:
    return [(sign, span.role) for line in lines for span in line for sign in span.text if not sign.isspace()]


@given(documents, st.integers(12, 70))
def test_a_value_of_json_has_its_colours_on_every_row(value: JsonValue, width: int) -> None:
    pretty, compact = json.dumps(value, ensure_ascii=False, indent=2), json.dumps(value, ensure_ascii=False)
    punctuation = {("muted", "key"), ("key", "muted")}  # the colon behind a key is drawn with it where it is alone
    for drawn, text in (
        (list(JsonLines(value, width, 3)), pretty),
        (wrap_line(json_line(compact), width, hang=4), compact),
        (json_rows(rows := GrowingText(compact).rows(width), len(rows)), compact),
        (json_rows(rows := GrowingText(pretty).rows(width), len(rows)), pretty),
    ):
        for (sign, role), (wanted, own) in zip(signs(drawn), told_apart(text), strict=True):
            assert sign == wanted
            assert role == own or (sign == ":" and (role, own) in punctuation)
    rows = GrowingText(compact).rows(width)
    assert signs(json_rows(rows, 2)) == signs(json_rows(rows, len(rows)))[: len(signs(json_rows(rows, 2)))]
    assert plain(cut_json(compact, width)) == cut(compact, width)


@given(documents.filter(lambda value: value is not None and not isinstance(value, dict | list)))
def test_a_text_in_a_form_is_never_mistaken_for_something_else(value: JsonValue) -> None:
    for schema in (None, {"type": "string"}):
        shown = shown_value(value, schema)
        role: Role = "string" if isinstance(value, str) else "literal" if isinstance(value, bool) else "number"
        assert {span.role for span in value_line(shown)} == {role}
        assert {span.role for span in value_line(f"{shown_values([value])}, x", several=True)} == {
            role,
            "muted",
            "string",
        }
        if isinstance(value, str) and (value != value.strip() or value in ("3", "true", "null")):
            assert (shown[0], shown[-1]) in (('"', '"'), ("'", "'"))
