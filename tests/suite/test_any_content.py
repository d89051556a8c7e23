"""Whatever a file holds, loading answers with a suite or with problems that lie inside the file, and never raises."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.example_counts import examples
from tests.suite.examples import PATH, WHOLE
from workbench.suite.suite_file import SuiteFile, load_suite, parse_suite
from workbench.suite.trust import needs_trust

QUICK = settings(
    max_examples=examples(250),
)

LINES = WHOLE.split("\n")
TOKENS = (
    "true", "-1", "0", "1.5", "nan", "-inf", '"text"', '""', "[]", "[1]", "{}", "{ a = 1 }", "[[{ x = 2 }]]",
    "2026-01-01", "07:30:00", "{ equals = 1 }", "{ weight = 1 }", "{ near = 1 }", "{ range = [2] }",
    '{ pattern = "(" }', "9" * 400,
    '{ judged = "x", prefix = "y" }', "[{ any_order = [{ any_order = [] }] }]", '{ type = "objekt", properties = [] }',
    "{ present = 1.0 }", "{ one_of = [inf] }", "'$x$'", "[{ role = 'tool' }, { tool_calls = [{ id = 'c' }] }]",
    '{ polite = { judged = "x", scale = [1, 5], at_least = 4 }, b = { python = "m:f", sees = "run" } }', '"response.x"',
)  # fmt: skip


def assert_sound(file: SuiteFile) -> None:
    """A suite or errors, and all problems within the file."""
    last_line = file.text.count("\n") + 1
    assert (file.suite is None) == bool(file.errors)
    for problem in file.problems:
        assert problem.line is None or 1 <= problem.line <= last_line
        assert problem.message
        assert "Input should" not in problem.message
        assert "\n" not in str(problem)
    if file.suite is not None:
        needs_trust(file.suite, file.path)
        for index in range(len(file.suite.cases)):
            first, last = file.case_lines(index)
            assert 1 <= first <= last <= last_line


@QUICK
@given(st.text())
def test_any_text_is_read(text: str) -> None:
    assert_sound(parse_suite(text, PATH))


@QUICK
@given(st.text(st.sampled_from("[]{}='\"#.,\\\n abc1")))
def test_any_text_that_looks_like_toml_is_read(text: str) -> None:
    assert_sound(parse_suite("format = 1\n" + text, PATH))


@settings(max_examples=examples(100))
@given(st.binary() | st.text().map(lambda text: b"format = 1\nname = 'x'\n" + text.encode()))
def test_any_bytes_are_read(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "s.toml")
        path.write_bytes(content)
        assert_sound(load_suite(path))


@QUICK
@given(st.data())
def test_a_suite_with_lines_lost_moved_and_values_changed_is_read(data: st.DataObject) -> None:
    lines = list(LINES)
    for _ in range(data.draw(st.integers(1, 4))):
        number = data.draw(st.integers(0, len(lines) - 1))
        match data.draw(st.sampled_from(["drop", "move", "replace", "rename"])):
            case "drop":
                del lines[number]
            case "move":
                lines.insert(data.draw(st.integers(0, len(lines) - 1)), lines.pop(number))
            case "replace":
                key, equals, _ = lines[number].partition(" = ")
                lines[number] = f"{key}{equals}{data.draw(st.sampled_from(TOKENS))}" if equals else lines[number]
            case "rename":
                lines[number] = lines[number].replace("e", data.draw(st.sampled_from("eEx")), 1)
    assert_sound(parse_suite("\n".join(lines), PATH))


KEYS = st.sampled_from(
    [
        "format",
        "name",
        "cases",
        "tools",
        "servers",
        "mocks",
        "limits",
        "grading",
        "critics",
        "accuracy",
        "gate",
        "aggregates",
        "above",
        "user",
        "ordered",
        "any_order",
        "args",
        "x",
        "tool",
        "steps",
        "when",
        "result",
        "messages",
        "role",
        "tool_calls",
        "id",
        "parameters",
        "type",
        "properties",
        "weight",
        "near",
        "range",
        "response",
        "models",
        "offer",
        "env",
        "url",
        "command",
        "module",
        "annotations",
        "skip",
        "repeats",
        "polite",
        "scale",
        "at_least",
        "at_most",
        "sees",
        "judged",
        "python",
        "a.b",
    ]
)
NESTED: st.SearchStrategy[str] = st.recursive(
    st.sampled_from(TOKENS),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.dictionaries(KEYS, inner, max_size=5).map(
            lambda table: "{" + ", ".join(f"'{key}' = {value}" for key, value in table.items()) + "}"
        )
    ),
    max_leaves=12,
)


@QUICK
@given(st.dictionaries(KEYS, NESTED, max_size=6))
def test_the_words_of_the_format_in_any_order_are_read(table: dict[str, str]) -> None:
    text = "\n".join(f"'{key}' = {value}" for key, value in {**table, "format": "1"}.items())
    assert_sound(parse_suite(text, PATH))


def test_deep_json_and_deep_schemas_are_problems() -> None:
    head = "format = 1\nname = 'x'\n[[tools]]\nname = 't'\nparameters = "
    for parameters in ("'" + "[" * 100_000 + "'", "'" + '{"properties":{"a":' * 400 + "{}" + "}}" * 400 + "'"):
        assert_sound(parse_suite(head + parameters, PATH))
        assert parse_suite(head + parameters, PATH).suite is None
