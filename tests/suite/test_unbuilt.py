"""What this version cannot run yet is named by its key, for exactly the cases that need it."""

from __future__ import annotations

from tests.suite.examples import CASE, HEAD, parsed, suite_of
from workbench.suite.unbuilt import unbuilt_parts


def test_a_chain_cannot_be_run_yet_and_all_else_can() -> None:
    rest = "repeats = 2\ngrading.repeat_rule = 'mean'\ngrading.by = 'decision'\nresponse = { judged = 'polite' }\n"
    suite = suite_of(HEAD + CASE + rest + "[[cases]]\nname = 'a'\nsteps = [{ user = 'x' }]")
    assert [unbuilt_parts(case) for case in suite.cases] == [(), ("steps",)]


def test_an_unbuilt_part_is_a_warning_at_the_case_that_has_it() -> None:
    [problem] = parsed(HEAD + CASE + "[[cases]]\nname = 'B'\nsteps = [{ user = 'x' }]\n").problems
    assert (problem.severity, problem.where, problem.line) == ("warning", "cases[1].steps", 8)
