"""What this version cannot run yet is named by its key, for exactly the cases that need it."""

from __future__ import annotations

import pytest

from tests.suite.examples import CASE, HEAD, parsed, suite_of
from workbench.suite.unbuilt import unbuilt_parts

JUDGED = "{ judged = 'polite' }"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (CASE, ()),
        (CASE + "grading.by = 'critics'", ()),
        (CASE + "grading.by = 'decision'", ('grading.by = "decision"',)),
        ("[grading]\nby = 'accuracy'\n" + CASE, ('grading.by = "accuracy"',)),
        ("[grading]\nby = 'accuracy'\n" + CASE + "grading.by = 'critics'", ()),
        (CASE + "grading.repeat_rule = 'mean'", ()),
        (CASE + "repeats = 2", ()),
        (CASE + "repeats = 2\ngrading.repeat_rule = 'mean'", ('grading.repeat_rule = "mean"',)),
        ("[[cases]]\nname = 'a'\nsteps = [{ user = 'x' }]", ("steps",)),
        (CASE + f"ordered = [{{ tool = 't', args = {{ x = {JUDGED} }} }}]", ("ordered[0].args.x.judged",)),
        (CASE + f"ordered = [{{ any_order = [{{ tool = 't', args = {{ x = {JUDGED} }} }}] }}]",
         ("ordered[0].any_order[0].args.x.judged",)),
        (CASE + f"unordered = [{{ tool = 't' }}, {{ tool = 't', args = {{ 'a b' = {JUDGED} }} }}]",
         ('unordered[1].args."a b".judged',)),
        (CASE + f"disallowed = [{{ tool = 't', args = {{ x = {JUDGED} }} }}]", ("disallowed[0].args.x.judged",)),
        ("[[cases]]\nname = 'a'\nsteps = [{ user = 'x', tool = 't', args = { x = " + JUDGED + " } }]",
         ("steps", "steps[0].args.x.judged")),
        (CASE + f"response = {JUDGED}", ("response.judged",)),
        (CASE + f"mocks = [{{ tool = 't', result = 1, when = {{ x = {JUDGED} }} }}]", ("mocks[0].when.x.judged",)),
        (f"[[mocks]]\ntool = 't'\nresult = 1\nwhen = {{ x = {JUDGED} }}\n" + CASE, ("mocks[0].when.x.judged",)),
        ("[[servers]]\nname = 's'\ncommand = ['x']\n" + CASE, ()),
        ("[[servers]]\nname = 's'\nurl = 'http://x'\n[[servers]]\nname = 'm'\nmodule = 'x'\n" + CASE,
         ()),
        (CASE + f"response = {JUDGED}\ngrading.by = 'dimensions'", ('grading.by = "dimensions"', "response.judged")),
    ],
)  # fmt: skip
def test_the_keys_that_keep_a_case_from_running_are_named(text: str, parts: tuple[str, ...]) -> None:
    suite = suite_of(HEAD + text)
    assert unbuilt_parts(suite, suite.cases[0]) == parts
    warned = [problem for problem in parsed(HEAD + text).warnings if "not built yet" in problem.message]
    assert len(warned) == len(parts)


def test_a_setting_of_the_suite_is_warned_of_once_and_named_for_every_case() -> None:
    text = HEAD + "[grading]\nby = 'decision'\n" + CASE + CASE.replace("A case", "B") + "grading.by = 'critics'\n"
    text += CASE.replace("A case", "C")
    suite = suite_of(text)
    assert [bool(unbuilt_parts(suite, case)) for case in suite.cases] == [True, False, True]
    assert [(problem.where, problem.line) for problem in parsed(text).warnings] == [("grading.by", 4)]


def test_an_unbuilt_part_is_a_warning_at_the_case_that_has_it() -> None:
    [problem] = parsed(HEAD + CASE + CASE.replace("A case", "B") + f"response = {JUDGED}").problems
    assert (problem.severity, problem.where, problem.line) == ("warning", "cases[1].response.judged", 9)
