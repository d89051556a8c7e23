"""Edits of any suite's text: the text has the wanted document, and its other parts stay."""

from __future__ import annotations

import copy
import tomllib
from contextlib import suppress
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.example_counts import examples
from tests.suite.examples import WHOLE
from tests.suite.toml_texts import KEYS, TEXTS, VALUES, Value, Writer, written_documents
from workbench.suite.positions import scan, scan_headers
from workbench.suite.problems import Place
from workbench.suite.render import suite_text
from workbench.suite.sections import join_sections, split_sections
from workbench.suite.suite_text import SuiteText
from workbench.suite.toml_equality import toml_equal

MANY = settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

ARGS = st.dictionaries(KEYS, VALUES, max_size=3)
CALLS = st.lists(st.fixed_dictionaries({"tool": TEXTS}, optional={"args": ARGS, "any_order": VALUES}), max_size=3)
ADDED = st.text("ab", min_size=1) | st.just([{"tool": "t"}])
CASES: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"name": TEXTS},
    optional={
        "id": TEXTS, "user": TEXTS, "repeats": st.integers(1, 3), "tags": st.lists(TEXTS, max_size=2),
        "ordered": CALLS, "unordered": CALLS, "limits": ARGS, "grading": st.fixed_dictionaries({"critics": ARGS}),
        "response": VALUES, "a.b": VALUES,
    },
)  # fmt: skip
HEADERS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"format": st.just(1), "name": TEXTS},
    optional={
        "limits": ARGS, "grading": st.fixed_dictionaries({"critics": ARGS}, optional={"by": TEXTS}),
        "tools": CALLS, "mocks": CALLS, "system": TEXTS, "models": st.lists(TEXTS, max_size=2), "x y": VALUES,
    },
)  # fmt: skip


@st.composite
def written_suites(draw: st.DrawFn, fewest_cases: int = 0) -> str:
    """A suite's text in some style: cases in blocks or in brackets, anywhere among the tables."""
    cases: list[Any] = draw(st.lists(CASES, min_size=fewest_cases, max_size=4))
    document: dict[str, Value] = {**draw(HEADERS), **({"cases": cases} if cases else {})}
    names = draw(st.permutations(list(document)))
    writer = Writer(draw)
    writer.document({name: document[name] for name in names})
    return draw(st.sampled_from(["", "\ufeff"])) + writer.text


def said(text: str) -> dict[str, Any]:
    return tomllib.loads(text.removeprefix("\ufeff"))


@MANY
@given(written_suites() | written_documents().map(lambda written: written[1]))
def test_a_text_that_was_only_taken_apart_is_the_same_to_the_byte(text: str) -> None:
    sections = split_sections(text.removeprefix("\ufeff"))
    assert join_sections(sections) == text.removeprefix("\ufeff")
    assert all(not line or line[0] == "#" for section in sections for line in map(str.strip, section.gap.split("\n")))
    suite = SuiteText.of(text)
    assert suite.text == text
    assert toml_equal(suite.document, said(text))
    assert suite.checked() is suite


@MANY
@given(written_suites() | written_documents().map(lambda written: written[1]))
def test_headers_are_the_same_when_values_are_skipped(text: str) -> None:
    known, found = scan(text), scan_headers(text)
    assert (found.headers, found.head_end, found.last_line) == (known.headers, known.head_end, known.last_line)


@MANY
@given(written_suites(), st.integers(0, 2000))
@example('name = "Weather', 15)
@example("[[cases]]\n'user = 1", 18)
def test_a_text_that_is_cut_off_is_taken_apart_or_refused(text: str, length: int) -> None:
    cut_off = text.removeprefix("\ufeff")[:length]
    with suppress(ValueError):
        assert join_sections(split_sections(cut_off)) == cut_off


@MANY
@given(written_suites(), st.data())
def test_any_changes_one_after_the_other_give_the_wanted_document(text: str, data: st.DataObject) -> None:
    suite = SuiteText.of(text)
    for _ in range(data.draw(st.integers(1, 4))):
        wanted = copy.deepcopy(suite.document)
        cases = wanted.pop("cases", [])
        assert isinstance(cases, list)
        ways = ["insert", "header"] + ["change", "tweak", "delete", "move", "copy"] * bool(cases)
        index = data.draw(st.integers(0, len(cases) - 1)) if cases else 0
        match data.draw(st.sampled_from(ways)):
            case "insert":
                cases.insert(index, data.draw(CASES))
                suite = suite.with_new_case(index, cases[index])
            case "copy":
                cases.insert(index + 1, cases[index])
                suite = suite.with_new_case_text(index + 1, suite.block(index))
            case "change":
                cases[index] = data.draw(CASES)
                suite = suite.with_case(index, cases[index])
            case "tweak":
                cases[index] = {**cases[index], **data.draw(CASES)}
                suite = suite.with_case(index, cases[index])
            case "delete":
                del cases[index]
                suite = suite.without_case(index)
            case "move":
                to = data.draw(st.integers(0, len(cases) - 1))
                cases.insert(to, cases.pop(index))
                suite = suite.with_case_moved(index, to)
            case "header":
                key = data.draw(st.sampled_from(["limits", "grading", "tools", "mocks", "name", "x y", "new"]))
                value = data.draw(HEADERS).get(key)
                wanted = {name: inner for name, inner in wanted.items() if name != key}
                if value is not None:
                    wanted[key] = value
                suite = suite.with_header(key, value)
        if cases:
            wanted["cases"] = cases
        assert toml_equal(suite.document, wanted)
        assert toml_equal(said(suite.text), wanted)
        assert suite.checked() is suite


@MANY
@given(written_suites(fewest_cases=1).map(SuiteText.of).filter(lambda suite: bool(suite.blocks)), st.data())
def test_a_changed_case_changes_its_block_alone(suite: SuiteText, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(suite.cases) - 1))
    changed = suite.with_case(index, {**suite.cases[index], **data.draw(CASES)})
    before, _, after = around(suite, index)
    assert changed.text.startswith(before)
    assert changed.text.endswith(after)
    assert changed.text == before + changed.blocks[index] + after
    assert changed.checked() is changed


def around(suite: SuiteText, index: int) -> tuple[str, str, str]:
    parts = [part for pair in zip(suite.between, (*suite.blocks, ""), strict=True) for part in pair]
    return "".join(parts[: 2 * index + 1]), parts[2 * index + 1], "".join(parts[2 * index + 2 :])


@MANY
@given(HEADERS, st.lists(CASES, max_size=3))
def test_a_suite_written_anew_says_its_document_and_stands_in_blocks(header: dict[str, Any], cases: list[Any]) -> None:
    document = {**header, "cases": cases} if cases else header
    text = suite_text(document)
    assert toml_equal(tomllib.loads(text), document)
    assert SuiteText.of(text).in_blocks


def places(value: object, place: Place = ()) -> list[Place]:
    found = [place] if place else []
    if isinstance(value, dict):
        for key, inner in value.items():
            found += places(inner, (*place, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            found += places(inner, (*place, index))
    return found


COMMENTED = """\
# above the case
[[cases]] # the case
# above the name
name = "A" # the name
# above the user
user = \"\"\"
# not a comment
\"\"\" # the user
tags = [
  "x", # the tag x
  "y", # the tag y
] # the tags
# at the end

# above a call
[[cases.ordered]] # a call
# above the tool
tool = "t" # the tool
args = { a = 1, b = { range = [1, 2] } } # the arguments

# alone

# above another call
[[cases.ordered]] # another call
tool = "u" # another tool
# above its arguments
[cases.ordered.args] # its arguments
a = 1 # its a
b.c = 2 # its b

# above the limits
[cases.limits] # the limits
max_rounds = 2 # rounds
timeout_s = 5 # seconds\
"""
SUITE = 'format = 1\nname = "S"\n\n' + COMMENTED + "\n\n# the next case\n[[cases]]\nname = 'B'\nuser = 'b'\n"


@settings(max_examples=examples(100))
@given(st.data())
def test_comments_of_everything_that_is_still_there_survive_any_change_of_a_value(data: st.DataObject) -> None:
    suite = SuiteText.of(SUITE)
    case = copy.deepcopy(suite.cases[0])
    place = data.draw(st.sampled_from([place for place in places(case) if isinstance(at(case, place), str | int)]))
    owner = at(case, place[:-1])
    owner[place[-1]] = data.draw(st.sampled_from(["new", 7, True, {"one_of": [1, 2]}, [1, "x" * 120]]))
    changed = suite.with_case(0, case)
    assert changed.kept_formatting
    assert comments(changed.block(0)) == comments(COMMENTED)
    assert around(changed, 0)[2] == around(suite, 0)[2]


@settings(max_examples=examples(100))
@given(st.data())
def test_keys_that_come_and_go_take_no_comments_of_others_along(data: st.DataObject) -> None:
    suite = SuiteText.of(SUITE)
    case = copy.deepcopy(suite.cases[0])
    added = data.draw(st.dictionaries(st.sampled_from(["id", "repeats", "skip", "mocks"]), ADDED, max_size=3))
    gone = data.draw(st.sets(st.sampled_from(["user", "tags", "limits", "name"])))
    changed = suite.with_case(0, {key: value for key, value in {**case, **added}.items() if key not in gone})
    assert changed.kept_formatting
    lost = {
        "user": {"# the user"},
        "name": {"# the name"},
        "tags": {"# the tag x", "# the tag y", "# the tags"},
        "limits": {"# above the limits", "# the limits", "# rounds", "# seconds"},
    }
    assert comments(changed.block(0)) == comments(COMMENTED) - {line for key in gone for line in lost[key]}


@settings(max_examples=examples(100))
@given(st.data())
def test_the_whole_format_is_edited_value_by_value_without_loss(data: st.DataObject) -> None:
    suite = SuiteText.of(WHOLE)
    index = data.draw(st.integers(0, len(suite.cases) - 1))
    case = copy.deepcopy(suite.cases[index])
    place = data.draw(st.sampled_from(places(case)))
    owner = at(case, place[:-1])
    if data.draw(st.booleans()):
        del owner[place[-1]]
    else:
        owner[place[-1]] = data.draw(VALUES)
    changed = suite.with_case(index, case)
    assert changed.kept_formatting
    assert changed.checked() is changed


def at(value: Any, place: Place) -> Any:
    for part in place:
        value = value[part]
    return value


def comments(text: str) -> set[str]:
    return {"#" + line.rpartition("#")[2] for line in text.split("\n") if "#" in line and line != "# not a comment"}
