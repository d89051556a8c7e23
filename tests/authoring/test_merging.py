"""Two versions of a suite become one: nothing that one side alone did is lost, and nothing that both did is guessed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import each_row
from workbench.authoring.document import Document
from workbench.authoring.merge import MergeResult, Side, changes_summary, merge
from workbench.suite.suite_file import parse_suite
from workbench.suite.suite_text import SuiteText
from workbench.suite.toml_equality import toml_equal

SUITE = """\
# The house.
format = 1
name = "Home"  # ours
system = "Be brief."

[limits]
max_rounds = 4

# Up and down.
[[tools]]
name = "blinds"

[[tools]]
name = "lights"  # all of them

# In the morning.
[[cases]]
name = "Morning"
user = "Open them."  # politely

# From here on it is dark.

# In the evening.
[[cases]]
name = "Evening"
user = "Close them."

# At night.
[[cases]]
name = "Night"
user = "Off."
"""


def merged(
    mine: str, theirs: str, base: str = SUITE, chosen: Mapping[tuple[object, ...], Side] | None = None
) -> MergeResult:
    found = merge(SuiteText.of(base), SuiteText.of(mine), SuiteText.of(theirs), chosen)
    assert found is not None
    return found


def test_what_one_side_changed_is_that_sides() -> None:
    mine = SUITE.replace("Open them.", "Open all.").replace("max_rounds = 4", "max_rounds = 5")
    theirs = SUITE.replace('"Off."', '"Off!"  # now').replace("# all of them", "# some").replace("Be brief", "Be kind")
    both = mine.replace('"Off."', '"Off!"  # now').replace("# all of them", "# some").replace("Be brief", "Be kind")
    assert merged(mine, theirs) == merged(theirs, mine) == MergeResult(both)


def test_what_both_changed_differently_is_asked_and_the_rest_is_merged() -> None:
    mine = SUITE.replace("Open them.", "Open mine.").replace('"Off."', '"Mine."')
    theirs = SUITE.replace("Open them.", "Open theirs.").replace("max_rounds = 4", "max_rounds = 9")
    found = merged(mine, theirs)
    assert [conflict.what for conflict in found.conflicts] == ['The case "Morning"']
    conflict = found.conflicts[0]
    assert conflict.mine is not None and "Open mine." in conflict.mine
    assert conflict.theirs is not None and "Open theirs." in conflict.theirs
    assert found.text == mine.replace("max_rounds = 4", "max_rounds = 9")
    taken = merged(mine, theirs, chosen={conflict.key: "theirs"})
    assert taken.text == theirs.replace('"Off."', '"Mine."')


def test_pairs_of_the_head_are_merged_one_by_one() -> None:
    mine, theirs = SUITE.replace('"Home"', '"House"'), SUITE.replace("# The house.", "# Our house.")
    assert merged(mine, theirs).text == theirs.replace('"Home"', '"House"')
    theirs = theirs.replace('"Home"', '"Hut"').replace("brief", "kind")
    (conflict,) = merged(mine, theirs).conflicts
    assert (conflict.key, conflict.what) == ((), "The head of the file")
    assert conflict.theirs == theirs[: theirs.index("\n\n[limits]")]
    assert conflict.mine == conflict.theirs.replace('"Hut"', '"House"')


def test_a_deleted_case_that_the_other_side_changed_is_a_conflict() -> None:
    mine = SuiteText.of(SUITE).without_case(1).text
    theirs = SUITE.replace("Close them.", "Close all.")
    (conflict,) = merged(mine, theirs).conflicts
    assert (conflict.what, conflict.mine) == ('The case "Evening"', None)
    assert merged(mine, theirs).text == mine
    assert merged(mine, theirs, chosen={conflict.key: "theirs"}).text == theirs


def test_a_case_that_one_side_renamed_is_still_the_same_case() -> None:
    mine, theirs = SUITE.replace('"Evening"', '"Dusk"'), SUITE.replace("Close them.", "Close all.")
    (conflict,) = merged(mine, theirs).conflicts
    assert conflict.key == ("cases", "evening")
    assert merged(mine, SUITE.replace('"Off."', '"Off!"')).text == mine.replace('"Off."', '"Off!"')


def test_additions_stand_where_they_were_made() -> None:
    added = '[[cases]]\nname = "{}"\nuser = "Hm."'
    mine = SuiteText.of(SUITE).with_new_case_text(1, added.format("Mine")).text
    theirs = SuiteText.of(SUITE).with_case_moved(2, 0).with_new_case_text(3, added.format("Theirs")).text
    found = SuiteText.of(merged(mine, theirs).text)
    assert [case["name"] for case in found.cases] == ["Night", "Morning", "Mine", "Evening", "Theirs"]
    assert found.text.count("# From here on it is dark.") == 1


def test_equal_names_that_meet_are_left_to_a_person() -> None:
    mine = SUITE.replace('"Evening"', '"Dusk"')
    theirs = SuiteText.of(SUITE).with_new_case_text(3, '[[cases]]\nname = "Dusk"\nuser = "Hm."').text
    assert merge(SuiteText.of(SUITE), SuiteText.of(mine), SuiteText.of(theirs)) is None


def test_cases_that_are_not_in_blocks_are_left_to_a_person() -> None:
    base = 'format = 1\nname = "S"\ncases = [{ name = "A", user = "Hi" }]\n'
    mine, theirs = base.replace("Hi", "Ho"), base.replace('"S"', '"T"')
    assert merge(SuiteText.of(base), SuiteText.of(mine), SuiteText.of(theirs)) is None
    assert merged(base, theirs, base).text == theirs


def test_line_ends_are_those_of_the_disk() -> None:
    mine = SUITE.replace('"Off."', '"Mine."')
    theirs = ("\ufeff" + SUITE.replace("Open them.", "Open all.")).replace("\n", "\r\n")
    assert merged(mine, theirs).text == theirs.replace('"Off."', '"Mine."')
    base, mine, theirs = (text[text.index("[[cases]]") :] for text in (SUITE, mine, theirs))
    assert merged(mine, theirs, base).text == theirs.replace('"Off."', '"Mine."')


@pytest.mark.parametrize("part", ['[[mocks]]\ntool = "go"\nresult = {}\n', "[[cases]]\nuser = {}\n"])
def test_parts_that_share_a_name_or_have_none_are_known_by_what_they_say(part: str) -> None:
    def suite(*values: int) -> str:
        return "format = 1\n" + "".join("\n" + part.format(f'"{value}"') for value in values)

    assert merged(suite(1, 2, 3), suite(0, 1, 2), suite(1, 2)) == MergeResult(suite(0, 1, 2, 3))
    assert merged(suite(1, 22), suite(0, 1, 2), suite(1, 2)) == MergeResult(suite(0, 1, 22))
    assert merged(suite(1, 22), suite(2), suite(1, 2)) == MergeResult(suite(22))
    assert merged(suite(2, 1), suite(1, 2, 3), suite(1, 2)) == MergeResult(suite(2, 3, 1))
    found = merged(suite(11, 2), suite(2), suite(1, 2))
    assert (found.text, found.conflicts[0].theirs) == (suite(11, 2), None)
    # Nobody can tell which of the two the first one became.
    base, mine, theirs = (SuiteText.of(suite(*values)) for values in ((1, 2), (8, 9, 2), (11, 2)))
    assert merge(base, mine, theirs) is None


@each_row(
    ("after", "said"),
    [
        (SUITE.replace("Open them.", "Open all."), "1 case changed"),
        (SuiteText.of(SUITE.replace("Off.", "Of.")).with_new_case(3, {"name": "N"}).text, "1 case changed, 1 added"),
        (SuiteText.of(SUITE).without_case(0).without_case(0).text, "2 cases deleted"),
        (SuiteText.of(SUITE).with_case_moved(0, 1).text, "the order changed"),
        (SUITE.replace("rounds = 4", "rounds = 5").replace("Home", "Hut"), "limits, the settings changed"),
        (SUITE.replace("Off.", "Of.").replace('"lights"', '"lamps"'), "1 case changed; tools changed"),
        (SUITE + "\n# The end.\n", "only blank lines and comments"),
        ('format = 1\ncases = [{ name = "A" }]\n', "reloaded"),
    ],
)
def test_what_changed_is_said_in_few_words(after: str, said: str) -> None:
    assert changes_summary(SuiteText.of(SUITE), SuiteText.of(after)) == said


WORDS = st.sampled_from(["dim", "on", "off", "warm"])
PARTS = ("user", "limits", "tools", "move", "delete", "add", "comment", "lone")


@st.composite
def bases(draw: st.DrawFn) -> str:
    """A suite of some cases with comments of their own."""
    text = SUITE[: SUITE.index("# In the morning")]
    for number in range(draw(st.integers(0, 5))):
        text += draw(st.sampled_from(["", f"# Alone {number}.\n\n"]))
        text += f'# About {number}.\n[[cases]]\nname = "Case {number}"\nuser = "{draw(WORDS)}"  # at {number}\n\n'
    return text.rstrip("\n") + draw(st.sampled_from(["\n", "", "\n\n# The end.\n"]))


@st.composite
def edits(draw: st.DrawFn, text: str, side: str, cases: frozenset[int] | None = None) -> str:
    """A text after some edits. With `cases`, only cases of these numbers, and none that moves."""
    version = SuiteText.of(text)
    for number in range(draw(st.integers(0, 4))):
        names = [str(case["name"]) for case in version.cases]
        own = [at for at, name in enumerate(names) if cases is None or name.startswith(side) or int(name[-1]) in cases]
        what = draw(st.sampled_from(PARTS if cases is None else ("user", "delete", "add", "comment")))
        if what == "limits":
            version = version.with_header("limits", {"max_rounds": draw(st.integers(1, 3))})
        elif what == "tools":
            version = version.with_header("name", draw(WORDS))
        elif what == "add":
            block = f'# New {side}.\n[[cases]]\nname = "{side} {number}"\nuser = "New, {draw(WORDS)}"'
            if f"{side} {number}" not in names:
                version = version.with_new_case_text(draw(st.integers(0, len(names))), block)
        elif what == "lone":
            version = SuiteText.of(f"{version.text.rstrip()}\n\n# Lone {side} {number}.\n")
        elif own:
            at = draw(st.sampled_from(own))
            if what == "user":
                version = version.with_case(at, {**version.cases[at], "user": draw(WORDS)})
            elif what == "move":
                version = version.with_case_moved(at, draw(st.integers(0, len(names) - 1)))
            elif what == "delete":
                version = version.without_case(at)
            else:
                version = version.with_case_text(at, f"# {side} says {draw(WORDS)}.\n{version.block(at)}")
    return version.text


@st.composite
def versions(draw: st.DrawFn) -> tuple[str, str, str]:
    base = draw(bases())
    return base, draw(edits(base, "mine")), draw(edits(base, "theirs"))


def blocks(text: str) -> dict[str, str]:
    """The cases of a text by their ids."""
    version = SuiteText.of(text)
    keys = [outline.key for outline in Document.of_parts(version, "").cases]
    return dict(zip(keys, version.blocks, strict=True))


def comments(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("#")]


@given(versions())
def test_a_side_that_did_nothing_changes_nothing(all_three: tuple[str, str, str]) -> None:
    base, mine, theirs = all_three
    for version in (mine, theirs):
        assert merged(base, version, base).text == merged(version, base, base).text == version
        assert merged(version, version, base) == MergeResult(version)


@given(versions())
def test_conflicts_are_exactly_the_cases_that_both_changed_differently(all_three: tuple[str, str, str]) -> None:
    base, mine, theirs = all_three
    found = merged(mine, theirs, base)
    old, left, right = map(blocks, (base, mine, theirs))
    ids = old.keys() | left.keys() | right.keys()
    both = {
        ("cases", key)
        for key in ids
        if left.get(key) != old.get(key) != right.get(key) and left.get(key) != right.get(key)
    }
    assert {conflict.key for conflict in found.conflicts if conflict.key[:1] == ("cases",)} == both
    result = blocks(found.text)
    for key in ids:
        if ("cases", key) not in both:
            wanted = left.get(key) if left.get(key) != old.get(key) else right.get(key)
            assert result.get(key) == wanted


@given(versions())
def test_the_two_sides_are_alike(all_three: tuple[str, str, str]) -> None:
    base, mine, theirs = all_three
    one, other = merged(mine, theirs, base), merged(theirs, mine, base)
    assert {conflict.key for conflict in one.conflicts} == {conflict.key for conflict in other.conflicts}
    other = merged(theirs, mine, base, {conflict.key: "theirs" for conflict in other.conflicts})
    assert blocks(one.text) == blocks(other.text)
    assert toml_equal(SuiteText.of(one.text).header, SuiteText.of(other.text).header)
    assert sorted(comments(one.text)) == sorted(comments(other.text))


@given(versions())
def test_every_comment_of_what_was_kept_is_kept(all_three: tuple[str, str, str]) -> None:
    base, mine, theirs = all_three
    for side in ("mine", "theirs"):
        keys = [conflict.key for conflict in merged(mine, theirs, base).conflicts]
        text = merged(mine, theirs, base, dict.fromkeys(keys, side)).text
        kept = [line for line in comments(mine) if line in comments(theirs)]
        lone = [line for line in (*comments(mine), *comments(theirs)) if line.startswith("# Lone")]
        deleted = [line for key, block in blocks(base).items() for line in comments(block) if key not in blocks(text)]
        assert {line for line in kept if line not in deleted} | set(lone) <= set(comments(text))


@given(st.data())
def test_disjoint_changes_are_both_there_and_can_run(data: st.DataObject) -> None:
    base = data.draw(bases())
    mine = data.draw(edits(base, "mine", frozenset({0, 2, 4})))
    theirs = data.draw(edits(base, "theirs", frozenset({1, 3})))
    found = merged(mine, theirs, base)
    assert found.conflicts == ()
    result = blocks(found.text)
    for number in range(5):
        side = theirs if number % 2 else mine
        assert result.get(f"case-{number}") == blocks(side).get(f"case-{number}")
    for side, prefix in ((mine, "mine"), (theirs, "theirs")):
        added = {key: block for key, block in blocks(side).items() if key.startswith(prefix)}
        assert {key: block for key, block in result.items() if key.startswith(prefix)} == added
    problems = {problem.message for problem in parse_suite(found.text, Path("merged.toml")).errors}
    assert problems <= {each.message for side in (mine, theirs) for each in parse_suite(side, Path("side.toml")).errors}
