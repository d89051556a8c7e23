"""Mistakes in cases and their conversations are found at their line and path, with a remedy."""

from __future__ import annotations

import pytest

from tests.suite.examples import CASE, HEAD
from tests.suite.problems import CALL, assert_only_problem
from tests.tables import each_row


@each_row(
    ("text", "where", "says", "hint"),
    [
        ("[[cases]] #!\nname = 'x'", "cases[0]", "needs `user`", ""),
        (CASE + "repeats = 1001 #!", "cases[0].repeats", "must be at most 1000, not 1001", ""),
        ("[[cases]] #!\nuser = 'x'", "cases[0].name", "`name` is missing: a case needs it", ""),
        ("[cases] #!\nname = 'x'", "cases", "a list", "`[[cases]]`"),
        (CASE + "[[cases]]\nname = 'a  CASE' #!\nuser = 'x'", "cases[1].name", "derived from the name", "`id`"),
        (CASE + "[[cases]]\nname = 'x'\nid = 'a-case' #!\nuser = 'x'", "cases[1].id", "also cases[0]", "`id`"),
        (CASE + "expect_no_calls = true\nunordered = [{ tool = 't' }] #!", "cases[0].unordered",
         "expects calls", "`disallowed`"),
        ("[[cases]]\nname = 'x'\nsteps = [] #!", "cases[0].steps", "must not be empty", ""),
        ("[[cases]]\nname = 'x'\nsteps = 'a' #!", "cases[0].steps", "must be a list", "write `[[cases.steps]]`"),
        ("[[cases]]\nname = 'x'\nsteps = [{ tool = 't' }] #!", "cases[0].steps[0]", "the first step needs `user`", ""),
        ("[[cases]]\nname = 'x'\nsteps = [{ user = 'u', args = {} }] #!", "cases[0].steps[0].args", "needs `tool`", ""),
        (CASE + "ordered = [{ tool = 't', only_args = true }] #!", "cases[0].ordered[0].only_args", "needs `args`", ""),
        ("[[cases]]\nname = 'x'\nsteps = [{ user = 'u', only_args = true }] #!", "cases[0].steps[0].only_args",
         "needs `tool`", ""),
        (CASE + "[[cases.tools]]\nname = 'a'\n[[cases.tools]]\nname = 'a' #!", "cases[0].tools[1].name",
         "two tools with the name", ""),
        (CASE + "[[cases.tools]]\nname = 'a'\nparameters = '[]' #!", "cases[0].tools[0].parameters",
         "must be an object", "write"),
        (CASE + "[[cases.tools]]\nname = 'a'\nparameters = { type = 'objct' } #!", "cases[0].tools[0].parameters.type",
         "not a JSON Schema type", "`object`"),
        (CASE + "[[cases.tools]]\nname = 'a'\nparams = {} #!", "cases[0].tools[0].params", "unknown key",
         "`parameters`"),
        ("[[cases]]\nname = 'x'\nextra_calls = 'allow' #!\nsteps = [{ user = 'u' }]", "cases[0].extra_calls",
         "`extra_calls` cannot be used together with `steps`", "not both"),
        ("[[cases]]\nname = 'x'\nexpect_no_calls = false #!\nsteps = [{ user = 'u' }]", "cases[0].expect_no_calls",
         "cannot be used together with `steps`", ""),
        ("[[cases]]\nname = 'x'\nordered = [] #!\nsteps = [{ user = 'u' }]", "cases[0].ordered", "with `steps`", ""),
    ],
)  # fmt: skip
def test_cases_are_checked(text: str, where: str, says: str, hint: str) -> None:
    assert_only_problem(HEAD + text, where, says, hint)


@each_row(
    ("messages", "where", "says", "hint"),
    [
        ("{ role = 'usr', content = 'x' }", "[0].role", "`user`, `assistant` or `tool`", "`user`"),
        ("{ content = 'x' }", "[0].role", "`role` is missing: a message needs it", ""),
        ("{ role = 'user' }", "[0]", "needs `content`", ""),
        ("{ role = 'assistant' }", "[0]", "needs `content` or `tool_calls`", ""),
        ("{ role = 'user', content = 'x', call = 'c' }", "[0].call", "takes no `call`", "`content`"),
        ("{ role = 'user', content = 'x', is_error = true }", "[0].is_error", "takes no `is_error`", ""),
        ("{ role = 'assistant', content = 'x', call = 'c' }", "[0].call", "takes no `call`", "`tool_calls`"),
        ("{ role = 'tool', content = 'x' }", "[0]", "needs `call`", ""),
        ("{ role = 'tool', content = 'x', call = 'c' }", "[0].call", "no earlier call has", "earlier assistant"),
        ("{ role = 'assistant', tool_calls = [{ tool = 't' }] }", "[0].tool_calls[0].id", "a tool call needs it", ""),
        ("{ role = 'assistant', tool_calls = [{ id = 'c', tool = 't', arg = 1 }] }, "
         "{ role = 'tool', call = 'c', content = '' }", "[0].tool_calls[0].arg", "unknown key `arg`", "`args`"),
        ("{ role = 'assistant', tool_calls = [{ id = 'c', tool = 't' }, { id = 'c', tool = 't' }] }, "
         "{ role = 'tool', call = 'c', content = '' }", "[0].tool_calls[1].id", "two calls have the id", "own"),
        ("{ role = 'assistant', tool_calls = [{ id = 'c', tool = 't' }] }, "
         "{ role = 'tool', call = 'c', content = '' }, "
         "{ role = 'tool', call = 'c', content = '' }", "[2].call", "answered twice", ""),
    ],
)  # fmt: skip
def test_the_conversation_before_the_request_is_checked(messages: str, where: str, says: str, hint: str) -> None:
    assert_only_problem(HEAD + CASE + f"messages = [{messages}] #!", f"cases[0].messages{where}", says, hint)


def test_an_earlier_call_without_an_answer_is_warned_of() -> None:
    text = HEAD + CASE + "messages = [{ role = 'assistant', tool_calls = [{ id = 'c', tool = 't' }] }] #!"
    assert_only_problem(text, "cases[0].messages[0].tool_calls[0]", "has no answer", "`tool`", "warning")


@pytest.mark.parametrize("plain", ["b = 1 #!", "b = { present = true } #!", "b = { weights = 1 } #!"])
def test_either_every_argument_of_a_call_has_a_weight_or_none(plain: str) -> None:
    text = f"{HEAD}{CALL}[cases.ordered.args]\na = {{ equals = 1, weight = 0 }}\n{plain}"
    assert_only_problem(text, "cases[0].ordered[0].args.b", "have a weight, but not", "every argument a weight or none")
