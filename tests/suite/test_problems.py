"""Every kind of mistake is found at its line and path, with a remedy.

A `#!` in a text marks the line of the expected problem."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.suite.examples import CASE, HEAD, parsed
from tests.suite.problems import CALL, assert_only_problem
from tests.tables import each_row
from workbench.suite.problems import message_with_line
from workbench.suite.suite_file import load_suite

# --- the text itself


@pytest.mark.parametrize(
    ("text", "line", "says", "hint"),
    [
        ("", 1, "empty", "format = 1"),
        (" \n\n", 1, "empty", "format = 1"),
        ("format = 1\nname = Paris", 2, "column 8", "quotes"),
        ("format = 1\nexecute = True", 2, "column 11", "write true"),
        ("format = 1\nsystem = null", 2, "column 10", "no null"),
        ("format = 1\nname =", 2, "end of the file", "after ="),
        ('format = 1\nname = "x', 2, "end of the file", "quotation mark"),
        ('format = 1\nname = "x\nb = 1', 2, "Illegal character", "same line"),
        ("format = 1\nformat = 1\n\n", 2, "overwrite", "already written"),
        ("[limits]\n[limits]\n", 2, "twice", "already written"),
        ("format = 1\ntags = [1\nname = 2", 3, "array", "]"),
        ("[limits\nx = 1", 1, "column 8", "bracket"),
        ("two words = 1", 1, "column 5", "quotes"),
        ('name = "a" extra', 1, "column 12", "quotes"),
        ("x = { a = 1,\n b = 2 }", 1, "column 13", "one line"),
        ('x = "C:\\data"', 1, "column", "apostrophes"),
        ("x = " + "9" * 5000, None, "4300 digits", "quotes"),
        ("x = " + "[" * 2000 + "]" * 2000, None, "nested", ""),
        ("x = " + "[" * 90 + "]" * 90, None, "nested", ""),
    ],
)
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_text_that_is_not_a_suite_says_where_and_what_to_do(
    mark: str, text: str, line: int | None, says: str, hint: str
) -> None:
    file = parsed(mark + text)
    assert file.suite is None
    [problem] = file.problems
    assert problem.line == line
    assert says in problem.message
    assert hint in problem.hint


@pytest.mark.parametrize(
    ("value", "says"),
    [("2", "newer"), ("0", "must be the number 1"), ('"1"', 'the text "1"'), ("true", "true"), ("1.0", "1.0")],
)
def test_another_format_is_one_clear_problem(value: str, says: str) -> None:
    file = parsed(f"name = 5\nformat = {value}\nunknown = 1")
    assert [(problem.line, problem.where) for problem in file.problems] == [(2, "format")]
    assert says in file.problems[0].message


def test_a_file_of_something_else_is_told_that_format_is_missing_and_nothing_more() -> None:
    [problem] = parsed('[tool.ruff]\nline-length = 100\nformat = "x"').problems
    assert "`format` is missing" in problem.message


def test_a_suite_without_format_hears_of_its_other_problems_too() -> None:
    file = parsed("name = 5\n" + CASE)
    assert [problem.where for problem in file.errors] == ["", "name"]


# --- keys


@each_row(
    ("text", "where", "says", "hint"),
    [
        ('format = 1\nname = "x"\nsytem = "y" #!\n' + CASE, "sytem", "unknown key `sytem` in the suite", "`system`"),
        (HEAD + CASE + "tagz = [] #!", "cases[0].tagz", "unknown key `tagz` in a case", "`tags`"),
        (HEAD + CASE + "expected = [] #!", "cases[0].expected", "unknown key `expected` in a case", "`ordered`"),
        (HEAD + CASE + "prompt = 'x' #!", "cases[0].prompt", "unknown key `prompt` in a case", "`user`"),
        ('format = 1\nname = "x"\nsystem_prompt = "y" #!\n' + CASE, "system_prompt", "unknown key", "`system`"),
        (HEAD + CASE + "zzz = 1 #!", "cases[0].zzz", "unknown key", "known keys: `id`"),
        (HEAD + CASE + "[cases.limits]\nmax_round = 1 #!", "cases[0].limits.max_round", "limits", "`max_rounds`"),
        (HEAD + CASE + 'limits = { max_rounds = 1, y = 2 } #!', "cases[0].limits.y", "unknown", "known keys"),
        (HEAD + CASE + "[cases.limits]\nrepeats = 2 #!", "cases[0].limits.repeats", "unknown",
         "above `[cases.limits]`"),
        (HEAD + CALL + "expect_no_calls = true #!", "cases[0].ordered[0].expect_no_calls", "unknown",
         "a key of a case"),
        (HEAD + CALL + "gate = 1 #!", "cases[0].ordered[0].gate", "unknown", "a key of the suite"),
        (HEAD + '[limits]\ntags = ["x"] #!\n' + CASE, "limits.tags", "unknown", "above `[limits]`"),
        (HEAD + CALL + '"odd key" = 1 #!', 'cases[0].ordered[0]."odd key"', "unknown key", "known keys"),
        (HEAD + CALL + "args = { x = { near = 1, tolerence = 2 } } #!", "cases[0].ordered[0].args.x.tolerence",
         "not an option of the check", "`tolerance`"),
        (HEAD + CALL + "args = { x = { contains = 'a', size = 2 } } #!", "cases[0].ordered[0].args.x.size",
         "`size` is not an option of the check `contains`", "{ equals = { … } }"),
        (HEAD + CALL + "args = { x = { equals = 1, plain = true } } #!", "cases[0].ordered[0].args.x.plain",
         "not an option of the check", ""),
        (HEAD + CALL + "args = { x = { prefix = 'a', suffix = 'b' } } #!", "cases[0].ordered[0].args.x.suffix",
         "two checks", "choose one"),
        (HEAD + CALL + "args = { x = { weight = 2 } } #!", "cases[0].ordered[0].args.x", "check here takes", "equals"),
        (HEAD + CALL + "args = { x = { threshold = 2, metric = 1 } } #!", "cases[0].ordered[0].args.x",
         "no check here takes `threshold`, `metric`", "equals"),
        (HEAD + CALL + "[cases.ordered.args]\nforbidden_args = ['x'] #!", "cases[0].ordered[0].args.forbidden_args",
         "not allowed directly inside `args`", "above the header"),
        (HEAD + CALL + "[cases.ordered.args]\nargs = {} #!", "cases[0].ordered[0].args.args", "not allowed", "equals"),
        (HEAD + CASE + "[[mocks]]\ntool = 't'\nresult = 1\nwhen = { mock_result = 1 } #!", "mocks[0].when.mock_result",
         "not allowed directly inside `when`", "above the header"),
        (HEAD + CASE + "[[tools]]\nname = 't'\n[tools.parameters]\ntype = 'object'\nname = 'x' #!",
         "tools[0].parameters.name", "a key of the tool", "above `[tools.parameters]`"),
        (HEAD + CASE + "[[tools]]\nname = 't'\n[tools.parameters]\ntype = 'object'\nannotations = {} #!",
         "tools[0].parameters.annotations", "a key of the tool", "above `[tools.parameters]`"),
        (HEAD + CASE + "[[unordered]] #!\ntool = 'x'", "unordered", "unknown key `unordered`",
         "write `[[cases.unordered]]`"),
        (HEAD + CASE + "[[steps]] #!\ntool = 'x'", "steps", "unknown key `steps`", "write `[[cases.steps]]`"),
        (HEAD + "[[cases]]\nname = 'a'\n[[cases.steps]]\nuser = 'x'\nextra_calls = 'forbid' #!",
         "cases[0].steps[0].extra_calls",
         "unknown key `extra_calls` in a step", "a step expects the one call of its `tool`"),
        (HEAD + "[[cases]]\nname = 'a'\n[[cases.steps]]\nuser = 'x'\nmax_rounds = 2 #!", "cases[0].steps[0].max_rounds",
         "unknown key `max_rounds` in a step", "write it into `limits` of the case, or of the suite"),
        ("format = 1\nname = 'x'\nmax_rounds = 2 #!\n" + CASE, "max_rounds", "unknown", "write it into `limits`"),
        (HEAD + CASE + "unordered = [{ any_order = [{ tool = 'x' }] }] #!",
         "cases[0].unordered[0]", "needs `parallel = true`", "calls themselves"),
        (HEAD + CASE + "disallowed = [{ tool = 'y', any_order = [{ tool = 'x' }] }] #!",
         "cases[0].disallowed[0].any_order", "only in `ordered` and `unordered`", ""),
        (HEAD + CASE + "ordered = [{ any_of = [{ tool = 'x' }], args = {} }] #!",
         "cases[0].ordered[0].args", "with `any_of`", "alternatives"),
        (HEAD + CASE + "ordered = [{ any_of = [{ tool = 'x', times = 2 }] }] #!",
         "cases[0].ordered[0].any_of[0].times", "inside `any_of`", "next to `any_of`"),
        (HEAD + CASE + "ordered = [{ any_of = [{ tool = 'x', is_error = true }], is_error = true }] #!",
         "cases[0].ordered[0].any_of[0].is_error", "and inside it", "one of the two"),
        (HEAD + CASE + "ordered = [{ any_of = [] }] #!", "cases[0].ordered[0].any_of", "must not be empty", ""),
        (HEAD + CASE + "ordered = [{ args = {} }] #!", "cases[0].ordered[0].tool", "or `any_of`", ""),
        (HEAD + CASE + "ordered = [{ tool = 'x', optional = true, times = 2 }] #!",
         "cases[0].ordered[0].optional", "with `times`", "times = [0, 3]"),
        (HEAD + CASE + "ordered = [{ tool = 'x', times = [2, 1] }] #!",
         "cases[0].ordered[0].times", "the fewest times", "[1, inf]"),
        (HEAD + CASE + "ordered = [{ tool = 'x', times = '2' }] #!",
         "cases[0].ordered[0].times", "a number of calls", "[1, inf]"),
        (HEAD + CASE + "ordered = [{ tool = 'x', times = [2000, inf] }] #!",
         "cases[0].ordered[0].times", "must demand at most", "lower number"),
        (HEAD + CASE + "ordered = [{ tool = 'x', result = { range = [1, 2], weight = 2 } }] #!",
         "cases[0].ordered[0].result.weight", "no meaning for a result", ""),
        (HEAD + CASE + "disallowed = [{ tool = 'x', times = 2 }] #!",
         "cases[0].disallowed[0].times", "no meaning in `disallowed`", ""),
        (HEAD + CASE + "grading.critics.arcade_compatible = true\nordered = [{ tool = 'x', optional = true }] #!",
         "cases[0].ordered[0].optional", "has no `optional`", "arcade_compatible"),
        (HEAD + CASE + "ordered = [{ any_order = [{ tool = 'x' }], tool = 'y' }] #!",
         "cases[0].ordered[0].tool", "next to `any_order`", "into its calls"),
    ],
)  # fmt: skip
def test_a_key_that_cannot_be_meant_is_refused_at_its_line(text: str, where: str, says: str, hint: str) -> None:
    assert_only_problem(text, where, says, hint)


def test_an_argument_may_have_a_refused_name_when_it_is_an_explicit_check() -> None:
    text = HEAD + CALL + "args = { args = { equals = 1 }, forbidden_args = { present = true } }"
    assert parsed(text).errors == ()


# --- types and values


@each_row(
    ("line", "where", "says", "hint"),
    [
        ("name = 5 #!", "name", "text in quotes, not the number 5", ""),
        ("name = true #!", "name", "not true", ""),
        ('name = "" #!', "name", "must not be empty", ""),
        ('name = "x"\ntags = "demo" #!', "tags", 'a list, not the text "demo"', '["demo"]'),
        ('name = "x"\ntags = ["a", 2] #!', "tags[1]", "must be text", ""),
        ('name = "x"\ntags = [\n  "a",\n  2, #!\n]', "tags[1]", "must be text", ""),
        ('name = "x"\nmodels = [] #!', "models", "must not be empty", "omit it"),
        ('name = "x"\nexecute = "yes" #!', "execute", "true or false", "lower case"),
        ('name = "x"\nlimits = { max_rounds = 0 } #!', "limits.max_rounds", "at least 1, not 0", ""),
        ('name = "x"\nlimits = { max_rounds = 1.5 } #!', "limits.max_rounds", "a whole number", ""),
        ('name = "x"\nlimits = { max_rounds = true } #!', "limits.max_rounds", "a whole number, not true", ""),
        ('name = "x"\nlimits = { timeout_s = 0 } #!', "limits.timeout_s", "more than 0", ""),
        ('name = "x"\nlimits = { timeout_s = nan } #!', "limits.timeout_s", "`nan`", ""),
        ('name = "x"\n[[limits]] #!', "limits", "a table, not a list", "`[limits]`"),
        ('name = "x"\ngate = { min_score = 2 } #!', "gate.min_score", "at most 1", ""),
        ('name = "x"\n[aggregates] #!\nname = "a"', "aggregates", "a list, not a table", "`[[aggregates]]`"),
        ('name = "x"\n[[aggregates]] #!', "aggregates[0].name", "an aggregate needs it", ""),
        ('name = "x"\n[[aggregates]]\nname = "a"\nof = "trajectory.allpass" #!', "aggregates[0].of",
         'no "trajectory.allpass"', "`trajectory.all_pass`"),
        ('name = "x"\n[[aggregates]]\nname = "a"\nof = "speed" #!', "aggregates[0].of", 'no "speed"', '"latency_ms"'),
        ('name = "x"\n[[aggregates]]\nname = "a"\nstatistics = ["mean", "avg"] #!', "aggregates[0].statistics[1]",
         'not the text "avg"', ""),
        ('name = "x"\n[[aggregates]]\nname = "a"\nabove = { medium = 0.9 } #!', "aggregates[0].above.medium",
         "unknown key `medium` in the gates of an aggregate", "`median`"),
        ('name = "x"\n[[aggregates]]\nname = "a"\nat_least = { mean = "0.9" } #!', "aggregates[0].at_least.mean",
         "must be a number", ""),
        ('name = "x"\n[[aggregates]]\nname = "a"\nat_least = { mean = inf } #!', "aggregates[0].at_least.mean",
         "infinite", ""),
        ('name = "x"\ngrading.by = "critic" #!', "grading.by", '`dimensions`, not the text "critic"', "`critics`"),
        ('name = "x"\ngrading.fail_threshold = -0.1 #!', "grading.fail_threshold", "at least 0", ""),
        ('name = "x"\n[grading.critics]\ntool_selection_weight = inf #!',
         "grading.critics.tool_selection_weight", "infinite", "`range`"),
        ('name = "x"\ndescription = 2026-01-01 #!', "description", "dates", '"2026-01-01"'),
    ],
)  # fmt: skip
def test_a_wrong_value_of_the_suite_is_explained(line: str, where: str, says: str, hint: str) -> None:
    assert_only_problem(f"format = 1\n{line}\n{CASE}", where, says, hint)


@each_row(
    ("line", "where", "says", "hint"),
    [
        ("repeats = 0 #!", "repeats", "at least 1", ""),
        ("skip = true #!", "skip", "must be text", ""),
        ('skip = "" #!', "skip", "must say why", "reason"),
        ('id = "" #!', "id", "must not be empty", ""),
        ("models = [] #!", "models", "must not be empty", "omit it"),
        ('extra_calls = "never" #!', "extra_calls", "`allow` or `forbid`", ""),
        ("response = 5 #!", "response", "text or one check", "final answer is text"),
        ("response = {} #!", "response", "text, one check, or checks by name", "contains"),
        ("response = { contain = 'x' } #!", "response.contain", "a table with one check", "`contains`"),
        ("response = { polite = {} } #!", "response.polite", "a table with one check", "contains"),
        ("response = { polite = { a = 1 } } #!", "response.polite", "a table with one check", "contains"),
        ("response = { ' ' = { contains = 'x' } } #!", 'response." "', "cannot be the name", "one line"),
        ("response = { model = { contains = 'x' } } #!", "response", "no check here takes", ""),
        ("response = { scale = { contians = 'x' } } #!", "response.scale", "cannot be the name", "another"),
        ("response = { contains = 'x', a = { contains = 'x' } } #!", "response.a", "not an option", ""),
        ("response = { a = { contains = 5 } } #!", "response.a.contains", "must be text", ""),
        ("response = { a = { judged = 'x', scale = [1, 5] } } #!", "response.a", "need each other", ""),
        ("response = { judged = 'x', scale = [5, 1], at_least = 4 } #!", "response", "low < high", ""),
        ("response = { judged = 'x', scale = [1], at_least = 1 } #!", "response.scale", "exactly two numbers", ""),
        ("response = { judged = 'x', scale = [1, 5], at_least = 6 } #!", "response", "on the scale", ""),
        ("response = { python = 'm:f', at_least = 2 } #!", "response.at_least", "at most 1", ""),
        ("response = { python = 'm:f', sees = 'all' } #!", "response.sees", "`value` or `run`", ""),
        ("response = { threshold = 0.5 } #!", "response", "no check here takes", ""),
        ("response = 2026-01-01 #!", "response", "dates", "write the text"),
        ('response_contains = "x" #!', "response_contains", "a list", '["x"]'),
        ('offer = ["a", "b", "a"] #!', "offer[2]", "offered twice", "remove"),
        ("stop_on_failure = true #!", "stop_on_failure", "needs `steps`", "remove"),
        ("[cases.ordered] #!\ntool = 't'", "ordered", "a list, not a table", "`[[cases.ordered]]`"),
        ("ordered = [5] #!", "ordered[0]", "a table, not the number 5", ""),
        ("ordered = [{ any_order = [] }] #!", "ordered[0].any_order", "must not be empty", ""),
        ("ordered = [{ args = {} }] #!", "ordered[0].tool", "`tool` is missing: an expected call needs it", ""),
        ("disallowed = [{ args = {} }] #!", "disallowed[0].tool", "`tool` is missing", ""),
        ("steps = [{ user = 'x' }] #!", "user", "", ""),
    ],
)  # fmt: skip
def test_a_wrong_value_of_a_case_is_explained(line: str, where: str, says: str, hint: str) -> None:
    if line.startswith("steps"):
        text = HEAD + '[[cases]]\nname = "A case"\nuser = "Do it." #!\n' + line.replace("#!", "")
        assert_only_problem(text, "cases[0].user", "`user` cannot be used together with `steps`", "first step")
    else:
        assert_only_problem(HEAD + CASE + line, f"cases[0].{where}", says, hint)


@pytest.mark.parametrize(
    ("value", "where", "says", "hint"),
    [
        ("2026-05-27", "", "dates", '{ datetime = "2026-05-27" }'),
        ("07:30:00", "", "dates", "write the text"),
        ("[1, { y = 2026-05-27T10:00:00Z }]", "[1].y", "dates", "2026-05-27T10:00:00"),
        ("nan", "", "`nan`", ""),
        ("inf", "", "infinite", ""),
        ("{ equals = 2026-05-27 }", ".equals", "dates", "text"),
        ("{ range = [1, 'x'] }", ".range[1]", "must be a number", ""),
        ("{ range = [1, 1" + "0" * 400 + "] }", ".range[1]", "below 1.8e308", ""),
        ("{ type = 'integer', range = [1, 2] }", ".type", "one argument has two checks, `range` and `type`", "all_of"),
        ("{ all_of = [] }", ".all_of", "must not be empty", ""),
        ("{ all_of = { range = [1, 2] } }", ".all_of", "must be a list", ""),
        ("{ all_of = [{ range = [1, 'x'] }] }", ".all_of[0].range[1]", "must be a number", ""),
        (
            "{ any_of = [5, { all_of = [{ patern = 'x', contains = 'y' }] }] }",
            ".any_of[1].all_of[0].patern",
            "not an option of the check",
            "",
        ),
        (
            "{ all_of = [{ range = [1, 2], weight = 2 }] }",
            ".all_of[0].weight",
            "not allowed inside `all_of`",
            "next to",
        ),
        ("{ range = [true, 2] }", ".range[0]", "must be a number, not true", ""),
        ("{ range = [1] }", ".range", "exactly two numbers", ""),
        ("{ range = [1, 2, 3] }", ".range", "exactly two numbers", ""),
        ("{ range = 5 }", ".range", "a list", ""),
        ("{ range = [5, 1] }", ".range", "low ≤ high", "swap"),
        ("{ range = [nan, 1] }", ".range[0]", "`nan`", ""),
        ("{ near = 'x', tolerance = 1 }", ".near", "must be a number", ""),
        ("{ near = 1 }", "", "exactly one of `tolerance` and `value_range`", ""),
        ("{ near = 1, tolerance = 1, value_range = [0, 1] }", "", "exactly one of", ""),
        ("{ near = 1, tolerance = -1 }", ".tolerance", "at least 0", ""),
        ("{ near = 1, value_range = [1, 1] }", "", "low < high", ""),
        ("{ near = 1, tolerance = inf }", ".tolerance", "infinite", ""),
        ("{ similar = 5 }", ".similar", "must be text", ""),
        ("{ similar = 'x', threshold = 1.5 }", ".threshold", "at most 1", ""),
        ("{ similar = 'x', metric = 'cosin' }", ".metric", "must be", "`cosine`"),
        ("{ datetime = 2026-05-27 }", ".datetime", "dates", "text"),
        ("{ datetime = '2026-05-27', tolerance = '5' }", ".tolerance", "is not a duration", "a number with ms"),
        ("{ pattern = '(' }", ".pattern", "is not a regular expression", ""),
        ("{ present = 1 }", ".present", "must be true or false, not the number 1", ""),
        ("{ present = false, weight = 1 }", ".weight", "has no meaning beside `present = false`", ""),
        ("{ equals_null = false }", ".equals_null", "takes only true, not false", ""),
        ("{ any_of = [{ present = false }, 5] }", ".any_of[0].present", "never holds", "optional = true"),
        ("{ equals = 1, because = '' }", ".because", "must not be empty", ""),
        ("{ near = 1, tolerance = '5 percent' }", ".tolerance", "a number, or a share of the expected number", ""),
        ("{ near = 1, tolerance = -1 }", ".tolerance", "must be at least 0, not -1", ""),
        ("{ has_length = [3, 1] }", ".has_length", "low ≤ high", "swap"),
        ("{ has_length = -1 }", ".has_length", "whole numbers of at least 0", ""),
        ("{ has_elements = [5, { range = [1] }] }", ".has_elements[1].range", "two numbers", ""),
        (
            "{ each_element = { each_element = { range = ['a', 1] } } }",
            ".each_element.each_element.range[0]",
            "a number",
            "",
        ),
        (
            "{ has_fields.each_element.each_element.range = [2, 1] }",
            ".has_fields.each_element.each_element.range",
            "low",
            "",
        ),
        (
            "{ same_elements = [{ equals = 1, weight = 2 }] }",
            ".same_elements[0].weight",
            "inside `same_elements`",
            "next to",
        ),
        (
            "{ each_element = { equals = 1, optional = true } }",
            ".each_element.optional",
            "inside `each_element`",
            "next",
        ),
        ("{ none_of = [{ contains = 5 }] }", ".none_of[0].contains", "text in quotes", ""),
        ("{ equals_null = 'x' }", ".equals_null", "takes only true", ""),
        ("{ one_of = 'x' }", ".one_of", "a list", '["x"]'),
        ("{ one_of = [] }", ".one_of", "must list at least one value", ""),
        ("{ python = 'checks' }", ".python", "is not a Python reference", "'module:function'"),
        ("{ python = 'a..b:f' }", ".python", "is not a Python reference", "'module:function'"),
        ("{ python = 'a.:f' }", ".python", "is not a Python reference", "'module:function'"),
        ("{ python = 'a.1b:f' }", ".python", "is not a Python reference", "'module:function'"),
        ("{ python = 'checks.py:f' }", ".python", "is a file name", '"checks:f"'),
        ("{ equals = 1, weight = -1 }", ".weight", "a number from 0, or one of `minimal`", ""),
        ("{ equals = 1, weight = 'hig' }", ".weight", "`very_high`", ""),
        ("{ equals = 1, weight = true }", ".weight", "not true", ""),
        ("{ equals = 1, optional = 'yes' }", ".optional", "true or false", ""),
        ("{ equals = 1, cast = 0 }", ".cast", "true or false", ""),
    ],
)
@pytest.mark.parametrize("style", ["inline", "header"])
def test_a_wrong_check_is_explained_at_its_own_line(value: str, where: str, says: str, hint: str, style: str) -> None:
    args = f"args = {{ x = {value} }} #!" if style == "inline" else f"[cases.ordered.args]\n\nx = {value} #!"
    assert_only_problem(HEAD + CALL + args, f"cases[0].ordered[0].args.x{where}", says, hint)


def test_a_problem_deep_inside_a_list_over_several_lines_has_the_line_of_its_value() -> None:
    text = HEAD + CASE + (
        "ordered = [\n"
        '  { tool = "a" },\n'
        "  # { tool = [, a comment\n"
        "  { any_order = [\n"
        '    { tool = "b", args = { text = """\n'
        "[[cases]]\n"
        '""", level = { range = [\n'
        "        1,\n"
        '        "two", #!\n'
        "    ] } } },\n"
        "  ] },\n"
        "]\n"
    )  # fmt: skip
    assert_only_problem(text, "cases[0].ordered[1].any_order[0].args.level.range[1]", "must be a number", "")


# --- servers, tools and mocks

LOGIN = "auth = 'oauth'\n"
LOGINS = [
    ("client_id = 'c'\nissuer = 'http://as'\nclient_secret = 'hush' #!",
     "servers[0].client_secret", "a suite holds no secret", "${NAME}"),
    ("client_id = 'c$'#!", "servers[0].client_id", "`$`", "$$"),
    ("client_id = 'c'\nissuer = 'as.test' #!", "servers[0].issuer", "not a web address", "https://"),
    ("scope = 'a  b' #!", "servers[0].scope", "is not a scope", "single spaces"),
    ("headers = { authorization = 'Bearer $T' } #!", "servers[0].headers.authorization", "sends this header", "remove"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("keys", "lacks"),
    [
        ("auth = 'oauth'\nclient_secret = '$S'", ["client_id", "issuer"]),
        ("auth = 'oauth'\nclient_secret = '$S'\nclient_id = 'c'", ["issuer"]),
        ("auth = 'client_credentials'", ["client_id", "client_secret", "issuer"]),
        ("auth = 'client_credentials'\nclient_id = '$C'\nclient_secret = '$S'\nissuer = 'https://as.test'", []),
        ("auth = 'oauth'\nclient_id = 'c'\nscope = 'read write'", []),
    ],
)
def test_a_login_names_what_it_needs(keys: str, lacks: list[str]) -> None:
    file = parsed(HEAD + f"[[servers]]\nname = 's'\nurl = 'http://x'\n{keys}\n" + CASE)
    assert [problem.where for problem in file.problems] == ["servers[0]"] * len(lacks)
    for problem, key in zip(file.problems, lacks, strict=True):
        assert problem.message.endswith(f"needs `{key}`")


@each_row(
    ("lines", "where", "says", "hint"),
    [
        ("[[servers]] #!\nname = 's'", "servers[0]", "one of `command`, `url`, `module`", ""),
        ("[[servers]]\nname = 's'\ncommand = ['x']\nurl = 'http://x' #!", "servers[0].url", "only one of", "remove"),
        ("[[servers]]\nname = 's'\ncommand = [] #!", "servers[0].command", "must not be empty", ""),
        ("[[servers]]\nname = 's'\ncommand = [''] #!", "servers[0].command[0]", "must name a program", ""),
        ("[[servers]]\nname = 's'\ncommand = ['a\\u0000'] #!".replace("'a\\u0000'", '"a\\u0000"'),
         "servers[0].command[0]", "control character", ""),
        ("[[servers]]\nname = 's'\ncommand = ['x']\nheaders = {} #!", "servers[0].headers", "needs `url`", ""),
        ("[[servers]]\nname = 's'\ncommand = ['x']\ntransport = 'sse' #!", "servers[0].transport", "`url`", ""),
        ("[[servers]]\nname = 's'\ncommand = ['x']\nobject = 'mcp' #!", "servers[0].object", "needs `module`", ""),
        ("[[servers]]\nname = 's'\nurl = 'http://x'\nenv = {} #!", "servers[0].env", "needs `command`", ""),
        ("[[servers]]\nname = 's'\nurl = 'example.test' #!", "servers[0].url", "not a web address", "https://"),
        ("[[servers]]\nname = 's'\nurl = 'http://[' #!", "servers[0].url", "not a web address", ""),
        ("[[servers]]\nname = 's'\nurl = 'file:///x' #!", "servers[0].url", "not a web address", ""),
        ("[[servers]]\nname = 's'\ncommand = ['x']\nauth = 'oauth' #!", "servers[0].auth", "needs `url`", "remove"),
        ("[[servers]]\nname = 's'\nurl = 'http://x'\nauth = 'basic' #!", "servers[0].auth", "must be `oauth` or", ""),
        ("[[servers]]\nname = 's'\nurl = 'http://x'\nscope = 'a' #!", "servers[0].scope", "needs `auth`", "remove"),
        *((f"[[servers]]\nname = 's'\nurl = 'http://x'\n{LOGIN}{lines}", place, says, hint)
          for lines, place, says, hint in LOGINS),
        ("[[servers]]\nname = 's'\nmodule = 'my_server.py' #!", "servers[0].module", "a file name", '"my_server"'),
        ("[[servers]]\nname = 's'\nmodule = 'my-server' #!", "servers[0].module", "not a Python name", ""),
        ("[[servers]]\nname = 's'\ncommand = ['x']\nenv = { A = 'cost $5' } #!", "servers[0].env.A", "`$`", "$$"),
        ("[[servers]]\nname = 's'\ncommand = ['x']\nenv = { A = '${B' } #!", "servers[0].env.A", "`$`", "${NAME}"),
        ("[[servers]]\nname = 's'\ncommand = ['x']\nenv = { 'A=B' = '' } #!", 'servers[0].env."A=B"', "a name", ""),
        ("[[servers]]\nname = 's'\ncommand = ['x']\nenv = { A = 5 } #!", "servers[0].env.A", "must be text", ""),
        ("[[servers]]\nname = 's'\ncommand = ['x']\n[[servers]]\nname = 's' #!\ncommand = ['y']",
         "servers[1].name", 'two servers with the name "s": also servers[0]', "another name"),
        ("[servers] #!\nname = 's'", "servers", "a list, not a table", "`[[servers]]`"),
        ("[[tools]]\nname = 't'\n[[tools]]\nname = 't' #!", "tools[1].name", "two tools", "another name"),
        ("[[tools]]\nname = 't'\nparameters = 5 #!", "tools[0].parameters", "must be a table", ""),
        ("[[tools]]\nname = 't'\nparameters = '{' #!", "tools[0].parameters", "not JSON", ""),
        ("[[tools]]\nname = 't'\nparameters = '[1]' #!", "tools[0].parameters", "must be", ""),
        ("[[tools]]\nname = 't'\nparameters = { } #!", "tools[0].parameters", "must have a type", '"object"'),
        ("[[tools]]\nname = 't'\nparameters.type = 'array' #!", "tools[0].parameters.type", '"object"', '"object"'),
        ("[[tools]]\nname = 't'\n[tools.parameters]\ntype = 'object'\n"
         "[tools.parameters.properties.x]\ntype = 'strng' #!",
         "tools[0].parameters.properties.x.type", 'the text "strng" is not a JSON Schema type', "`string`"),
        ("[[tools]]\nname = 't'\nparameters = { type = 'object', required = 'x' } #!",
         "tools[0].parameters.required", "not a valid JSON Schema", "array"),
        ("[[tools]]\nname = 't'\nparameters = { type = 'object', properties = { x = { pattern = '(' } } } #!",
         "tools[0].parameters.properties.x.pattern", "not a regular expression", ""),
        ("[[tools]]\nname = 't'\n[tools.parameters]\ntype = 'object'\n"
         "[tools.parameters.properties.x]\n'$ref' = '#/$defs/X' #!",
         "tools[0].parameters.properties.x.\"$ref\"", 'the reference "#/$defs/X" leads nowhere', "`$defs`"),
        ("[[tools]]\nname = 't'\nannotations = { readonlyHint = true } #!",
         "tools[0].annotations.readonlyHint", "unknown key", "`readOnlyHint`"),
        ("[[mocks]] #!\ntool = 't'", "mocks[0]", "one of `result`, `results`, `error`, `python`", ""),
        ("[[mocks]]\ntool = 't'\nresult = 1\nerror = 'x' #!", "mocks[0].error", "`result` is given too", "remove"),
        ("[[mocks]] #!\ntool = 't'\n[mocks.when]\nresult = 1", "mocks[0]", "a mock needs", "inside `when`"),
        ("[[mocks]]\ntool = 't'\nresults = [] #!", "mocks[0].results", "must not be empty", ""),
        ("[[mocks]]\ntool = 't'\nresult = [1, 2026-01-01] #!", "mocks[0].result[1]", "dates", "text"),
        ("[[mocks]]\ntool = 't'\nresult = 1\ndelay_ms = -1 #!", "mocks[0].delay_ms", "at least 0", ""),
        ("[[mocks]]\ntool = 't'\npython = 'f' #!", "mocks[0].python", "not a Python reference", ""),
        ("[[mocks]]\ntool = 't'\nresult = 1\nwhen = { x = { near = 1 } } #!", "mocks[0].when.x", "exactly one", ""),
        ("[[mocks]]\ntool = 't'\nresult = 1\nwhen = 5 #!", "mocks[0].when", "a table", "argument"),
    ],
)  # fmt: skip
def test_servers_tools_and_mocks_are_checked(lines: str, where: str, says: str, hint: str) -> None:
    assert_only_problem(f"{HEAD}{lines}\n{CASE}", where, says, hint)


def _tool(dialect: str, keywords: str) -> str:
    schema = f"'$schema' = '{dialect}'\ntype = 'object'\n[tools.parameters.properties.x]\n{keywords}"
    return f"{HEAD}[[tools]]\nname = 't'\n[tools.parameters]\n{schema}\n{CASE}"


def test_a_schema_is_checked_in_the_dialect_that_it_declares() -> None:
    draft_4, draft_7 = (f"http://json-schema.org/draft-0{number}/schema#" for number in (4, 7))
    pair, flag = "items = [{ type = 'integer' }, { type = 'string' }]", "minimum = 0\nexclusiveMinimum = true"
    assert parsed(_tool(draft_7, f"{pair}\nadditionalItems = false")).errors == ()
    assert parsed(_tool(draft_4, flag)).errors == ()
    where = "tools[0].parameters.properties.x"
    assert_only_problem(_tool(draft_7, f"{flag} #!"), f"{where}.exclusiveMinimum", "not a valid JSON Schema", "")
    latest = "https://json-schema.org/draft/2020-12/schema"
    assert_only_problem(_tool(latest, f"{pair} #!"), f"{where}.items", "not a valid JSON Schema", "")


@pytest.mark.parametrize("result", ["false", "0", '""', "[]", "{}"])
def test_any_value_may_be_a_result_of_a_mock(result: str) -> None:
    assert parsed(f"{HEAD}[[mocks]]\ntool = 't'\nresult = {result}\n{CASE}").errors == ()


# --- all at once


def test_all_problems_of_a_file_are_reported_at_once_in_the_order_of_their_lines() -> None:
    text = (
        'format = 1\nname = 5\n[limits]\nmax_rounds = "x"\n'
        "[[servers]]\nname = 's'\n"
        "[[cases]]\nname = 'a'\nuser = 1\nordered = [{ tool = 't', args = { d = 2026-01-01, e = { weight = 1 } } }]\n"
        "[[cases]]\nname = 'b'\n[[cases.ordered]]\ntool = 't'\nargz = 1\n"
        "[[cases]]\nname = 'a'\nuser = 'x'\n"
    )
    assert [(problem.line, problem.where) for problem in parsed(text).errors] == [
        (2, "name"),
        (4, "limits.max_rounds"),
        (5, "servers[0]"),
        (9, "cases[0].user"),
        (10, "cases[0].ordered[0].args.d"),
        (10, "cases[0].ordered[0].args.e"),
        (11, "cases[1]"),
        (15, "cases[1].ordered[0].argz"),
        (17, "cases[2].name"),
    ]


def test_no_message_speaks_the_language_of_the_validator() -> None:
    text = HEAD + CASE + (
        "id = 1\ntags = {}\nmessages = 5\nskip = []\nrepeats = 'x'\nordered = { x = 1 }\nunordered = 'x'\n"
        "extra_calls = 1\nexpect_no_calls = 1\nresponse_contains = [[]]\nresponse = []\nsteps = 1\noffer = {}\n"
        "models = 'x'\nexecute = 1\nmocks = {}\nlimits = []\ngrading = 5\n"
    )  # fmt: skip
    problems = parsed(text).errors
    assert len(problems) >= 18
    for problem in problems:
        assert "Input" not in problem.message
        assert "tuple" not in problem.message
        assert "valid" not in problem.message


def test_warnings_of_sound_cases_are_not_hidden_by_the_error_of_another() -> None:
    text = HEAD + "[[cases]]\nname = 'broken'\n" + CASE + "response = { judged = 'polite', model = 'offline' }\n"
    file = parsed(text)
    assert [problem.where for problem in file.errors] == ["cases[0]"]
    assert [(problem.where, problem.line) for problem in file.warnings] == [("cases[1].response.model", 8)]


TOOL = '[[tools]]\nname = "t"\n'
SUBJECT = '[subject]\nagent = "codex"\nbuiltin = "allow"\n'
ORDERED = 'ordered = [{ tool = "t" }, { tool = "t" }]\n'


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("name = \n", {"not TOML"}),
        (f"a = {'[' * 5_000}", {"not TOML"}),
        (HEAD, {"no cases"}),
        (f'{HEAD}{CASE}expect_no_calls = true\n[[cases]]\nid = "other"\n{CASE[10:]}', {"several cases"}),
        (f"{HEAD}[limits]\nmax_tool_calls = 1\n{TOOL}{CASE}{ORDERED}", {"several cases", "order ignored"}),
        (f'{HEAD}{TOOL}{CASE}ordered = [{{ tool = "u" }}]\n', {"unknown tool"}),
        (f'{HEAD}{SUBJECT}{TOOL}{CASE}ordered = [{{ tool = "u" }}]\n', {"tool of the subject"}),
        (f'{HEAD}[grading]\nby = "critics"\n{TOOL}{CASE}{ORDERED}', {"order ignored"}),
        (f'{HEAD}{CASE}expect_no_calls = "cases[0] is not TOML"\n', {""}),
    ],
)
def test_problems_that_the_program_recognises_have_a_kind(text: str, kinds: set[str]) -> None:
    assert {problem.kind for problem in parsed(text).problems} == kinds


def test_a_file_that_is_not_utf_8_has_a_problem_of_this_kind(tmp_path: Path) -> None:
    path = tmp_path / "suite.toml"
    path.write_bytes(HEAD.encode() + b"\n# \xff\n")
    [problem] = load_suite(path).problems
    assert problem.kind == "not UTF-8"
    assert message_with_line(problem, "line").startswith(f"line {problem.line} is not UTF-8")


def test_only_problems_of_the_text_itself_have_the_line_as_their_subject() -> None:
    [problem] = parsed("name = \n").problems
    assert message_with_line(problem, "line").startswith("line 1 is not TOML: ")
    other = replace(problem, message="is given twice", kind="")
    assert message_with_line(other, "line") == "line 1: is given twice"
