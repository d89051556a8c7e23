"""Users of conversations in suites: reading, problems and their places, and the saved text."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tables import each_row
from workbench.suite.render import suite_text, to_toml_data
from workbench.suite.settings import settings_of
from workbench.suite.suite_file import parse_suite

HEAD = """\
format = 1
name = "Desk"

[[tools]]
name = "get_order"

[[cases]]
name = "Cancel"
"""
FILE = Path("desk.toml")
SCRIPT = '[[cases.user.messages]]\nid = "yes"\nsay = "Yes."\n'


@each_row(
    ("text", "where", "message"),
    [
        ('[cases.user]\ngoal = "x"\nmessages = [{ say = "Hi" }]', "user", "`goal` and `messages` exclude each other"),
        ("[cases.user]\nmax_turns = 3", "user", "needs `messages` or `goal`"),
        ('[cases.user]\ngoal = "x"\npatience = 1', "user.patience", "`patience` needs `messages`"),
        ('[cases.user]\nstyle = "x"\nmessages = [{ say = "Hi" }]', "user.style", "`style` needs `goal`"),
        ("[cases.user]\nmessages = []", "user.messages", "must not be empty"),
        ('[cases.user]\ngoal = "x"\nstop = {}', "user.stop", "must not be empty"),
        ('[cases.user]\ngoal = "x"\nmaxturns = 3', "user.maxturns", "unknown key `maxturns` in the user"),
        ('[cases.user]\ngoal = "x"\ntries = 0', "user.tries", "must be at least 1"),
        ('[cases.user]\ngoal = "x"\nreview = "all"', "user.review", '`never` or `failed`, not the text "all"'),
        ('[cases.user]\ngoal = "x"\nfacts = { a = 5 }', "user.facts.a", "must be a table"),
        ('[cases.user]\ngoal = "x"\nfacts = { a = { value = "b", if = 1 } }', "user.facts.a.if", "in a fact"),
        ('[cases.user]\ngoal = "x"\nfacts = { a = { when = {} } }', "user.facts.a.value", "a fact needs it"),
        ('[[cases.user.messages]]\ntext = "x"\nsay = "y"', "user.messages[0].text", "in a message of the user"),
        ('[[cases.user.messages]]\nsay = "y"\nend = "ok"', "user.messages[0].end", "`done` or `gave up`"),
        (f"{SCRIPT}{SCRIPT}", "user.messages[1].id", 'two messages have the id "yes"'),
        ('[[cases.user.messages]]\nsay = "y"\nwhen = { called = ["f"] }', "user.messages[0].when", "can begin"),
        (
            '[cases.user]\nmessages = [{ say = "a" }, { say = "b", when = { answer = { patern = "x" } } }]',
            "user.messages[1].when.answer",
            "",
        ),
        (f"{SCRIPT}ordered = [{{ args = {{}} }}]", "user.messages[0].ordered[0].tool", "`tool` is missing"),
        (f'{SCRIPT}[cases.final]\nsays = [{{ txt = "a" }}]', "final.says[0].txt", "unknown key `txt`"),
        (f'{SCRIPT}[cases.final]\ngoal = {{ contains = "a" }}', "final.goal", "must be a judged check"),
        (
            f'{SCRIPT}[cases.final]\nchanges = [{{ tool = "get_order", after_message = "yess" }}]',
            "final.changes[0].after_message",
            'no message has the id "yess"',
        ),
        (
            'user = "Hi"\nordered = [{ tool = "get_order", after_message = "yes" }]',
            "ordered[0].after_message",
            'no message has the id "yes"',
        ),
        (
            f'disallowed = [{{ tool = "get_order", after_message = "yes" }}]\n{SCRIPT}',
            "disallowed[0].after_message",
            "no meaning here",
        ),
        (f'steps = [{{ user = "Hi" }}]\n{SCRIPT}', "user", "cannot be used together with `steps`"),
    ],
)
def test_a_mistake_is_named_with_its_place(text: str, where: str, message: str) -> None:
    file = parse_suite(HEAD + text, FILE)
    errors = [problem for problem in file.problems if problem.severity == "error"]
    assert file.suite is None
    assert f"cases[0].{where}" in [problem.where for problem in errors], errors
    assert any(message in problem.message for problem in errors), errors


CONTAINS = "did you mean `contains`?"
WHEN = '[cases.user]\nmessages = [{ say = "a" }, { say = "b", when = { answer = %s } }]'
STOP = '[cases.user]\nstop = { answer = %s }\nmessages = [{ say = "a" }]'
IN_TURN = '[cases.user]\nmessages = [{ say = "a", response = %s }]'


@pytest.mark.parametrize("place", [WHEN, STOP, IN_TURN], ids=["when", "stop", "response"])
@pytest.mark.parametrize(
    ("check", "hint"),
    [
        ('{ contians = "x" }', CONTAINS),
        ('{ contains_itmes = "x" }', CONTAINS),
        ('{ includes = "x" }', CONTAINS),
        ('{ regex = "x" }', "did you mean `pattern`?"),
        ('{ rang = "x" }', 'such as { contains = "text" }'),
        ("{ has_feilds = { a = 1 } }", 'check the text, such as { contains = "text" }, or the `result` of a call'),
        ('{ every = "x" }', 'check the text, such as { contains = "text" }, or the `result` of a call'),
    ],
)
def test_a_misspelt_check_of_an_answer_gets_a_hint_that_an_answer_can_meet(place: str, check: str, hint: str) -> None:
    file = parse_suite(HEAD + place % check, FILE)
    assert [problem.hint for problem in file.problems if problem.severity == "error"] == [hint]


def test_the_misspelt_id_of_a_message_has_a_way_out() -> None:
    text = f'{HEAD}{SCRIPT}[cases.final]\nchanges = [{{ tool = "get_order", after_message = "yess" }}]'
    [problem] = [each for each in parse_suite(text, FILE).problems if each.severity == "error"]
    assert problem.hint == "did you mean `yes`?"


USERS = """\
user = { goal = "Cancel.", facts = { name = "Ann", order = { value = "A17", when = { answer = "x" } } }, vary = false }

[cases.final]
says = ["47.50", { text = "back", after_tool = "get_order" }]
goal = { judged = "all is well" }
"""


@pytest.mark.parametrize(
    "text", [USERS, f'{SCRIPT}when = {{ called = ["get_order"] }}\n[[cases.user.messages]]\nsay = "Hi"\n'], ids=str
)
def test_a_user_is_the_same_after_it_was_written(text: str) -> None:
    suite = parse_suite(HEAD + text, FILE).suite
    assert suite is not None
    again = parse_suite(suite_text(to_toml_data(suite)), FILE)
    assert again.suite == suite


@pytest.mark.parametrize(
    ("limits", "timeout_s"), [("", 600), ("limits = { timeout_s = 5 }\n", 5), ("limits = { max_rounds = 2 }\n", 600)]
)
def test_a_conversation_has_ten_minutes_unless_the_suite_says_otherwise(limits: str, timeout_s: float) -> None:
    suite = parse_suite(f"{HEAD}{limits}{SCRIPT}", FILE).suite
    assert suite is not None
    assert settings_of(suite, suite.cases[0]).limits.timeout_s == timeout_s
