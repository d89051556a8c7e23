"""Conversations are written in the form by keys alone, and look handwritten in the file."""

from __future__ import annotations

import pytest

from tests.cli.conversations import HEAD
from tests.tui.form_app import Typist, form_of

NEW = HEAD + '\n[[cases]]\nname = "New"\nuser = ""\nexpect_nothing_yet = true\n'

SCRIPTED = """
[[cases]]
id = "new"
name = "New"

[cases.user]
max_turns = 6

[[cases.user.messages]]
say = "I want to cancel an order."

[[cases.user.messages]]
say = "It is A17."
when = { answer = { pattern = "(?i)which order" } }

[[cases.user.messages.ordered]]
tool = "get_order"
args = { order = "A17" }

[[cases.user.messages]]
say = "Yes, please cancel it."
when = { called = ["get_order"] }
id = "yes"

[[cases.user.messages]]
say = "Thanks, bye."
end = "done"

[cases.final]
changes = [{ tool = "cancel_order", args = { order = "A17" }, after_message = "yes" }]
says = [{ text = "47.50", after_tool = "cancel_order" }, "paid back"]
goal = { judged = "The user knows that the order is cancelled" }

[[cases.final.state]]
tool = "get_order"
args = { order = "A17" }
result = { has_fields = { status = "cancelled" } }
"""

PLAYED = """
[[cases]]
id = "new"
name = "New"

[cases.user]
goal = "Get the order cancelled."
opening = "Hello."
style = "short"
model = "player"
max_turns = 6
stop = { called = ["cancel_order"] }

[cases.user.facts]
name = "Ann Lee"
order = { value = "A17", when = { answer = { pattern = "(?i)which order" } } }

[cases.final]
changes = []
"""


async def add(typist: Typist, key: str, *typed: str) -> None:
    """Search for a key, choose it, and fill in its fields."""
    await typist.press("ampersand")
    await typist.type(key)
    await typist.press("enter")
    for text in typed:
        await typist.type(text)
        await typist.press("enter")


async def go_up_to(typist: Typist, *place: str | int) -> None:
    """Press the arrow key until a row is selected."""
    page = typist.app.form.page
    assert not typist.app.form.typing, typist.screen
    at = page.row_at_place(place)
    assert at is not None, typist.screen
    await typist.press(*["up"] * (page.row - at))


async def fill_in_below(typist: Typist, text: str) -> None:
    """Fill in the first argument of the selected call."""
    await typist.press("down", "enter")
    await typist.type(text)
    await typist.press("enter")


async def test_a_scripted_conversation_is_written_from_nothing() -> None:
    async with form_of(NEW, size=(80, 40)) as typist:
        await typist.press("enter")
        await typist.type("I want to cancel an order.")
        await typist.press("enter")
        # The message of the case becomes the first of the script.
        await add(typist, "user.messages", "It is A17.")
        await add(typist, "when.a", "pattern", "(?i)which order")
        await add(typist, "ordered", "get_order")
        await fill_in_below(typist, "A17")
        await go_up_to(typist, "user", "messages", 1)
        await typist.press("plus")
        await typist.type("Yes, please cancel it.")
        await typist.press("enter")
        await add(typist, "when.c", "get_order")
        await add(typist, "id", "yes")
        await go_up_to(typist, "user", "messages", 2)
        await typist.press("plus")
        await typist.type("Thanks, bye.")
        await typist.press("enter")
        await add(typist, "end", "done")
        await add(typist, "max_turns", "6")
        await add(typist, "final.changes", "cancel_order")
        await fill_in_below(typist, "A17")
        await add(typist, "after_message", "yes")
        await add(typist, "final.says", "47.50")
        await add(typist, "after_tool", "cancel_order")
        await typist.press("plus")
        await typist.type("paid back")
        await typist.press("enter")
        await add(typist, "final.state", "get_order")
        await fill_in_below(typist, "A17")
        await typist.press("left", "enter")
        await typist.type("has_fields")
        await typist.press("enter")
        await typist.type('{ status = "cancelled" }')
        await typist.press("enter")
        await add(typist, "final.goal", "The user knows that the order is cancelled")
        assert typist.app.refused == []
        assert typist.app.suite.document.text == HEAD + SCRIPTED
        assert typist.app.file.problems == ()


async def test_a_played_conversation_is_written_from_nothing() -> None:
    async with form_of(NEW, size=(80, 40)) as typist:
        await typist.press("enter")
        await typist.type("Hello.")
        await typist.press("enter")
        # The message of the case becomes the opening.
        await add(typist, "user.goal", "Get the order cancelled.")
        await add(typist, "user.facts", "name", "Ann Lee")
        await typist.press("plus")
        for text in ("order", "A17"):
            await typist.type(text)
            await typist.press("enter")
        await add(typist, "when.answer", "pattern", "(?i)which order")
        for key, text in (("style", "short"), ("user.model", "player"), ("max_turns", "6")):
            await add(typist, key, text)
        await add(typist, "stop.called", "cancel_order")
        typist.app.go_to(("final", "changes"))
        await typist.press("enter")
        await typist.type("none")
        await typist.press("enter")
        assert typist.app.refused == []
        assert typist.app.suite.document.text == HEAD + PLAYED
        assert typist.app.file.problems == ()


COMMENTED = (
    NEW.replace('user = ""\nexpect_nothing_yet = true\n', "")
    + """
[cases.user] # Ann
facts = { order = { value = "A17", when = { answer = "which?" } }, name = "Ann" } # what she knows
goal = "Get it cancelled." # not the money

[cases.final]
says = ["done", { text = "47.50", after_tool = "cancel_order" }] # the amount
"""
)


@pytest.mark.parametrize(
    ("place", "keys", "before", "after"),
    [
        (
            ("user", "facts", "order", "when", "answer"),
            ["delete"],
            '{ value = "A17", when = { answer = "which?" } }',
            '"A17"',
        ),
        (("user", "facts", "name"), ["delete"], ', name = "Ann"', ""),
        (("user", "facts", "order"), ["right", "enter", "B", "enter"], '"A17"', '"B"'),
        (("final", "says", 1, "after_tool"), ["delete"], '{ text = "47.50", after_tool = "cancel_order" }', '"47.50"'),
        (
            ("final", "says", 0),
            ["J"],
            '["done", { text = "47.50", after_tool = "cancel_order" }]',
            '[{ text = "47.50", after_tool = "cancel_order" }, "done"]',
        ),
        (("final", "says", 0), ["d"], '["done", ', '["done", "done", '),
        (("user", "goal"), ["enter", "end", "!", "enter"], "cancelled.", "cancelled.!"),
    ],
)
async def test_a_change_keeps_the_rest_of_the_text_and_is_undone(
    place: tuple[str | int, ...], keys: list[str], before: str, after: str
) -> None:
    async with form_of(COMMENTED, size=(80, 40)) as typist:
        typist.app.go_to(place)
        await typist.press(*keys)
        assert typist.app.refused == []
        changed = COMMENTED.replace(before, after, 1).replace('name = "New"', 'id = "new"\nname = "New"', 1)
        assert typist.app.suite.document.text == changed
        typist.app.suite.undo()
        assert typist.app.suite.document.text == COMMENTED


async def test_messages_are_moved_duplicated_and_removed() -> None:
    async with form_of(HEAD + SCRIPTED, size=(80, 40)) as typist:

        def said() -> list[str]:
            return [message["say"][:6] for message in typist.says("user")["messages"]]

        typist.app.go_to(("user", "messages", 2, "id"))
        await typist.press("K")
        assert said() == ["I want", "Yes, p", "It is ", "Thanks"]
        await typist.press("d")
        assert [message.get("id") for message in typist.says("user")["messages"]][1:3] == ["yes", "yes_2"]
        await typist.press("delete")
        assert said() == ["I want", "Yes, p", "It is ", "Thanks"]


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (('after_message = "yes"', 'after_message = "no"'), ("final", "changes", 0, "after_message")),
        (("(?i)which", "(?i"), ("user", "messages", 1, "when", "answer")),
        (('end = "done"', 'end = "gone"'), ("user", "messages", 3, "end")),
        (("max_turns = 6", "max_turns = 0"), ("user", "max_turns")),
        (("max_turns = 6", 'style = "short"'), ("user", "style")),
        (('{ judged = "The user knows that the order is cancelled" }', '"yes"'), ("final", "goal")),
        (('"paid back"]', '""]'), ("final", "says", 1)),
    ],
)
async def test_a_problem_stands_at_its_row(change: tuple[str, str], place: tuple[str | int, ...]) -> None:
    text = HEAD + SCRIPTED
    assert change[0] in text
    async with form_of(text.replace(*change), size=(80, 40)) as typist:
        marked = [row.place for row in typist.app.form.page.rows if row.problems]
        assert marked == [place], typist.screen
