"""Warnings about valid suites that will not do what they seem to, and refusals of what `arcade_compatible` cannot
express.

A `#!` in a text marks the line of the expected finding."""

from __future__ import annotations

import pytest

from tests.suite.examples import CASE, HEAD, parsed
from tests.suite.problems import assert_only_problem
from tests.tables import each_row

TOOL = '[[tools]]\nname = "set_lights"\n'
SERVER = '[[servers]]\nname = "s"\ncommand = ["x"]\n'
CALL = 'ordered = [{ tool = "set_lights" }]\n'


@each_row(
    ("text", "where", "says"),
    [
        (SERVER + "[grading.critics]\narcade_compatible = true\n" + CASE + CALL + "extra_calls = 'allow' #!",
         "cases[0].extra_calls", "arcade_compatible"),
        (SERVER + CASE + CALL + "extra_calls = 'forbid'\ngrading.extra_calls = 'allow' #!",
         "cases[0].grading.extra_calls", "twice"),
        (SERVER + CASE.replace('user = "Do it."', "") + "steps = [{ user = 'u' }]\ngrading.extra_calls = 'allow' #!",
         "cases[0].grading.extra_calls", "chain"),
        (CASE + "[[cases]]\nname = 'A case' #!\nid = 'b'\nuser = 'x'", "cases[1].name", "also cases[0]"),
        (CASE + "id = 'b'\n" + CASE.replace('name = "A case"', 'name = "A case" #!'), "cases[1].name", "also cases[0]"),
        (CASE.replace("A case", "b: 1") + "[[cases]]\nname = 'b' #!\nuser = '{x}'\neach = [{ x = 1 }, { x = 2 }]",
         "cases[1].name", "also cases[0]"),
        (TOOL + CASE + "extra_calls = ['fli'] #!", "cases[0].extra_calls[0]", "no such tool"),
        (SERVER + CASE + "expect_no_calls = true\nextra_calls = 'allow' #!", "cases[0].extra_calls", "expect_no_calls"),
        (SERVER + CASE + CALL + "limits.max_rounds = 1\nresponse_contains = ['x'] #!", "cases[0].response_contains",
         "no final answer"),
        (SERVER + "[limits]\nmax_rounds = 1\n" + CASE + CALL + "response = 'x' #!", "cases[0].response",
         "max_rounds = 1"),
        (SERVER + "[limits]\nmax_tool_calls = 0 #!\n" + CASE + CALL, "limits.max_tool_calls", "1 expected calls"),
        (SERVER + CASE + CALL + "limits.max_tool_calls = 0 #!", "cases[0].limits.max_tool_calls", "conflicts with"),
        (SERVER + CASE + "disallowed = [{ tool = 'set_lights' }]\nordered = [{ tool = 'set_lights' }] #!",
         "cases[0].ordered[0].tool", "expected and disallowed"),
        (SERVER + CASE + "offer = ['other']\nunordered = [{ tool = 'set_lights' }] #!", "cases[0].unordered[0].tool",
         "expects 'set_lights', but no such tool is offered"),
        (SERVER + CASE + "ordered = [{ tool = 't', args = { x = 1 }, forbidden_args = ['x'] }] #!",
         "cases[0].ordered[0].forbidden_args[0]", "expected and forbidden"),
        (SERVER + "[grading]\nfail_threshold = 0.9\nwarn_threshold = 0.8 #!\n" + CASE,
         "grading.warn_threshold", "below"),
        (SERVER + "[grading]\nfail_threshold = 0.95 #!\n" + CASE, "grading.fail_threshold", "(0.9) is below"),
        (SERVER + "[grading]\nfail_threshold = 0.5\nwarn_threshold = 0.6\n" + CASE + "grading.fail_threshold = 0.7 #!",
         "cases[0].grading.fail_threshold", "(0.6) is below"),
        (SERVER + CASE + "ordered = [{ tool = 'a' }, { tool = 'b' }] #!", "cases[0].ordered",
         "`critics` ignores the order"),
        (SERVER + CASE + "ordered = [{ tool = 'a' }, { tool = 'b' }] #!\ngrading.by = 'dimensions'",
         "cases[0].ordered", "`dimensions` ignores"),
        (SERVER + CASE + "ordered = [{ tool = 'a' }, { tool = 'b' }] #!\ngrading.by = 'accuracy'\n"
         "grading.accuracy.mode = 'flexible'", "cases[0].ordered", "flexible mode"),
        (SERVER + CASE + "ordered = [{ tool = 't', args = { x = { equals = 1, weight = 0 } } }] #!",
         "cases[0].ordered[0].args", "weight 0"),
        (SERVER + "[grading]\nfail_threshold = 0 #!\n" + CASE, "grading.fail_threshold", "no run fails by its score"),
        (SERVER + CASE + "ordered = [{ tool = 't', args = { x = { similar = 'a b', threshold = 0 } } }] #!",
         "cases[0].ordered[0].args.x.threshold", "every comparable value passes"),
        (SERVER + CASE + "response_contains = ['x', ''] #!", "cases[0].response_contains[1]", "empty"),
        (SERVER + CASE + "response_contains = ['  '] #!", "cases[0].response_contains[0]", "blank"),
        ("execute = true #!\n" + TOOL + CASE, "execute", "no server"),
        (TOOL + CASE + "execute = true #!", "cases[0].execute", "no server"),
        (SERVER + CASE + "ordered = [{ tool = 't', args = { x = { datetime = 'soonish' } } }] #!",
         "cases[0].ordered[0].args.x.datetime", "is not a date and time"),
        (SERVER + CASE + "ordered = [{ tool = 't', args = { x = { datetime = '2026-W22-3' } } }] #!",
         "cases[0].ordered[0].args.x.datetime", "is not a date and time"),
        (SERVER + CASE + "ordered = [{ tool = 't', args = { x = { type = 'integr' } } }] #!",
         "cases[0].ordered[0].args.x.type", "not a JSON type"),
        (SERVER + CASE + "ordered = [{ tool = 't', args = { x = { type = 'string', optionl = true } } }] #!",
         "cases[0].ordered[0].args.x.optionl", "not an option of the check"),
        (SERVER + CASE + "ordered = [{ tool = 't', args = { x = { any_of = [1, { datetime = 'soonish' }] } } }] #!",
         "cases[0].ordered[0].args.x.any_of[1].datetime", "is not a date and time"),
        (SERVER + CASE + "ordered = [{ tool = 't', args = { x = { pattern = '^(\\w+\\s?)*$' } } }] #!",
         "cases[0].ordered[0].args.x.pattern", "a search may take too long"),
        (SERVER + CASE + "mocks = [{ tool = 't', when = { x = { pattern = '(a+)+b' } }, result = 1 }] #!",
         "cases[0].mocks[0].when.x.pattern", "a search may take too long"),
        (SERVER + CASE + "response = { pattern = '(a|aa)+$' } #!", "cases[0].response.pattern", "in many ways"),
        ("[[aggregates]]\nname = 'a'\ntags = ['slow'] #!\n" + TOOL + CASE + "tags = ['slwo']", "aggregates[0].tags[0]",
         'no case has the tag "slow"'),
        (TOOL, "", "no cases"),
    ],
)  # fmt: skip
def test_settings_that_work_against_each_other_are_warned_of(text: str, where: str, says: str) -> None:
    text = HEAD + text if where else HEAD.replace("\n", " #!\n", 1) + text
    assert_only_problem(text, where, says, "", "warning")
    assert parsed(text).errors == ()


EXPECTS = "expects 'set_light', but no such tool is offered"
FORBIDS, MOCKS, OFFERS = (f"{what} 'set_light', but there is no such tool" for what in ("forbids", "mocks", "offers"))


@each_row(
    ("text", "where", "says"),
    [
        (CASE + "ordered = [{ tool = 'set_light' }] #!", "cases[0].ordered[0].tool", EXPECTS),
        (CASE + "ordered = [{ any_order = [{ tool = 'set_light' }] }] #!", "cases[0].ordered[0].any_order[0].tool",
         EXPECTS),
        (CASE + "unordered = [{ tool = 'set_light' }] #!", "cases[0].unordered[0].tool", EXPECTS),
        (CASE + "disallowed = [{ tool = 'set_light' }] #!", "cases[0].disallowed[0].tool", FORBIDS),
        (CASE + "offer = ['set_light'] #!", "cases[0].offer[0]", OFFERS),
        (CASE + "mocks = [{ tool = 'set_light', result = 1 }] #!", "cases[0].mocks[0].tool", MOCKS),
        (CASE + "[[mocks]]\nresult = 1\ntool = 'set_light' #!", "mocks[0].tool", MOCKS),
    ],
)  # fmt: skip
def test_a_tool_that_nobody_has_is_warned_of_unless_a_server_may_bring_it(text: str, where: str, says: str) -> None:
    assert_only_problem(HEAD + TOOL + text, where, says, "did you mean 'set_lights'?", "warning")
    assert parsed(HEAD + SERVER + TOOL + text).warnings == ()
    prefixed = SERVER.rstrip() + "\nprefix = 'home_'\n"
    assert_only_problem(HEAD + prefixed + TOOL + text, where, says, "did you mean 'set_lights'?", "warning")
    assert parsed(HEAD + prefixed + TOOL + text.replace("set_light", "home_light")).warnings == ()
    if says != OFFERS:
        on_purpose = text.replace("tool = 'set_light'", "tool = 'set_light', unlisted = true")
        on_purpose = (
            on_purpose.replace(", unlisted = true #!", "\nunlisted = true #!") if "[[mocks]]" in text else on_purpose
        )
        assert parsed(HEAD + TOOL + on_purpose).warnings == ()


def test_names_are_compared_as_the_grader_that_decides_compares_them() -> None:
    def warned(by: str, **tools: str) -> list[str]:
        text = "".join(f"{key} = [{{ tool = '{tool}' }}]\n" for key, tool in tools.items())
        return [problem.where for problem in parsed(f"{HEAD}grading.by = '{by}'\n{TOOL}{CASE}{text}").warnings]

    assert warned("critics", unordered="Set-Lights", disallowed="SET.lights") == []
    assert warned("trajectory", unordered="Set-Lights") == ["cases[0].unordered[0].tool"]
    assert warned("trajectory", disallowed="SET.lights") == []


@pytest.mark.parametrize("by", ["trajectory", "decision", "accuracy"])
def test_an_order_is_fine_under_graders_that_look_at_it_and_so_is_one_group(by: str) -> None:
    ordered = f"grading.by = '{by}'\nordered = [{{ tool = 'a' }}, {{ tool = 'b' }}]"
    assert parsed(HEAD + SERVER + CASE + ordered).warnings == ()
    group = "ordered = [{ any_order = [{ tool = 'a' }, { tool = 'b' }] }]"
    assert parsed(HEAD + SERVER + CASE + group).warnings == ()


def test_required_without_a_weight_that_judges_is_refused() -> None:
    text = "ordered = [{ tool = 't', args = { x = { equals = 1, weight = 0, required = true } } }] #!"
    assert_only_problem(HEAD + SERVER + CASE + text, "cases[0].ordered[0].args.x.required", "conflicts with", "weight")
    # As a value it is no option: tables with only this key were values before the option existed.
    value = "ordered = [{ tool = 't', args = { x = { required = true } } }]"
    assert parsed(HEAD + SERVER + CASE + value).problems == ()


def test_the_calls_of_steps_are_advised_on_too() -> None:
    steps = "steps = [{ user = 'u', tool = 'set_light', args = { x = { datetime = 'soonish' } } }]"
    places = {problem.where for problem in parsed(f"{HEAD}{TOOL}[[cases]]\nname = 'a'\n{steps}").warnings}
    assert places >= {"cases[0].steps[0].tool", "cases[0].steps[0].args.x.datetime"}


def advised_on_a_chain(case: str, step: str = "tool = 'set_lights'", head: str = "") -> list[str]:
    steps = f"steps = [{{ user = 'u', {step} }}, {{ {step} }}]"
    return [problem.where for problem in parsed(f"{HEAD}{head}{TOOL}[[cases]]\nname = 'a'\n{case}{steps}").problems]


def test_what_does_nothing_for_a_chain_is_said() -> None:
    assert advised_on_a_chain("limits.max_rounds = 1\nresponse = 'Done.'\n") == ["cases[0].limits.max_rounds"]
    assert advised_on_a_chain("limits.max_tool_calls = 1\n") == []
    assert advised_on_a_chain("response = 'Done.'\n", head="limits.max_rounds = 1\n") == []


def test_a_blank_message_to_the_model_is_warned_of() -> None:
    assert_only_problem(HEAD + TOOL + "[[cases]]\nname = 'a'\nuser = ' ' #!", "cases[0].user", "blank", "", "warning")
    steps = "steps = [{ user = 'u' }, { user = '' }, {}]"
    where = [problem.where for problem in parsed(f"{HEAD}{TOOL}[[cases]]\nname = 'a'\n{steps}").problems]
    assert where == ["cases[0].steps[1].user"]


def test_the_calls_of_steps_may_contradict_other_settings_too() -> None:
    assert advised_on_a_chain("offer = []\n") == ["cases[0].steps[0].tool", "cases[0].steps[1].tool"]
    both = "tool = 'set_lights', args = { x = 1 }, forbidden_args = ['x']"
    assert advised_on_a_chain("", both) == [f"cases[0].steps[{number}].forbidden_args[0]" for number in (0, 1)]


def test_spellings_that_graders_take_for_one_tool_are_no_surprise() -> None:
    assert parsed(HEAD + TOOL + CASE + "ordered = [{ tool = 'Set-Lights' }]").problems == ()


@each_row(
    "settings",
    [
        "extra_calls = 'allow'",
        "extra_calls = 'forbid'\ngrading.critics.fail_on_tool_call_quantity = true",
        "grading = { fail_threshold = 0.9, warn_threshold = 0.9 }",
        "limits.max_tool_calls = 1",
        "response = { contains = 'x' }",
        "disallowed = [{ tool = 'set_lights', args = { room = 'bath' } }]",
        "offer = ['set_lights']",
    ],
)
def test_settings_that_go_together_are_left_in_peace(settings: str) -> None:
    assert parsed(HEAD + TOOL + CASE + CALL + settings).problems == ()


ARCADE = HEAD + SERVER + "[grading.critics]\narcade_compatible = true\n" + CASE


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("'a'", "{ similar = 'a' }"),
        ("{ equals = 'a', weight = 1 }", "{ equals = 'b', weight = 2 }"),
        ("{ equals = 1 }", "{ equals = 2, cast = false }"),
        ("{ near = 1, value_range = [0, 1] }", "{ near = 1, value_range = [0, 2] }"),
    ],
)
def test_arcade_compatible_refuses_different_checks_for_one_argument_name(first: str, second: str) -> None:
    calls = [f"{{ tool = '{tool}', args = {{ x = {check} }} }}" for tool, check in (("a", first), ("b", second))]
    text = f"{ARCADE}ordered = [\n{calls[0]},\n{calls[1]}, #!\n]"
    assert_only_problem(text, "cases[0].ordered[1].args.x", "the same check and weight", "ordered[0].args.x")
    assert parsed(text).suite is None
    assert parsed(text.replace("arcade_compatible = true", "")).errors == ()


def test_arcade_compatible_allows_different_values_under_one_check() -> None:
    calls = "{ tool = 'a', args = { x = 1 } }, { tool = 'a', args = { x = { equals = 2 } } }"
    assert parsed(f"{ARCADE}ordered = [{calls}]").errors == ()


def test_arcade_compatible_allows_a_tolerance() -> None:
    text = f"{ARCADE}ordered = [{{ tool = 'a', args = {{ x = {{ near = 1, tolerance = 1 }} }} }}]"
    assert parsed(text).problems == ()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("'a'", "{ equals_null = true }"),
        ("{ equals_null = true, weight = 2 }", "{ equals = 'a', weight = 2 }"),
        ("{ contains = 'a', optional = true }", "{ contains = 'b' }"),
    ],
)
def test_arcade_compatible_allows_null_and_leaving_out_as_its_grader_does(first: str, second: str) -> None:
    calls = f"{{ tool = 'a', args = {{ x = {first} }} }}, {{ tool = 'b', args = {{ x = {second} }} }}"
    assert parsed(f"{ARCADE}ordered = [{calls}]").errors == ()


def test_a_case_may_switch_arcade_compatible_off() -> None:
    text = f"{ARCADE}grading.critics.arcade_compatible = false\n"
    calls = "ordered = [{ tool = 'a', args = { x = 1 } }, { tool = 'a', args = { x = { prefix = '2' } } }]"
    assert parsed(text + calls).errors == ()


def test_a_tool_of_a_case_is_known_in_that_case_alone() -> None:
    own = "[[cases.tools]]\nname = 'set_light'\n"
    one = CASE + "unordered = [{ tool = 'set_light' }, { tool = 'set_lights' }]\n" + own
    other = "[[cases]]\nname = 'b'\nuser = 'u'\nordered = [{ tool = 'set_light' }] #!\n"
    assert_only_problem(HEAD + TOOL + one + other, "cases[1].ordered[0].tool", EXPECTS, "did you mean", "warning")
    assert parsed(HEAD + TOOL + one + "[[mocks]]\ntool = 'set_light'\nresult = 1").warnings == ()
