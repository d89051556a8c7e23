"""The tests of promptfoo as cases: a prompt with variables, and what its assertions expect."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import product

from workbench.importing.conversations import Conversation, case_of, last_request
from workbench.importing.imported import ImportedCase, Mapped, not_imported
from workbench.importing.messages import conversation_of
from workbench.importing.promptfoo_asserts import Expectations
from workbench.importing.reading import Node
from workbench.limits import MAX_TEST_CASES
from workbench.suite.render import Table
from workbench.trajectory.messages import JsonValue, Message
from workbench.trajectory.typed_json import json_text

_VARIABLE = re.compile(r"\{\{-?\s*([A-Za-z_][\w.]*)\s*-?\}\}")
_OF_TEST = {"description", "vars", "assert"}


def cases_of(
    test: Node, defaults: Node | None, prompts: list[Node], tools: tuple[Table, ...]
) -> Iterator[ImportedCase]:
    test.table()
    given: dict[str, JsonValue] = {}
    for each in (defaults, test):
        variables = each.get("vars") if each is not None else None
        given |= variables.table() if variables is not None else {}
    choices: list[list[JsonValue]] = [value if isinstance(value, list) else [value] for value in given.values()]
    count = len(prompts)
    for values in choices:
        count *= len(values)
    if count > MAX_TEST_CASES:
        raise test.refused(MAX_TEST_CASES.reached(count=count))
    variants = [dict(zip(given, chosen, strict=True)) for chosen in product(*choices)]
    for number, (prompt, variant) in enumerate(product(prompts, variants), start=1):
        asserts = [one for each in (defaults, test) for one in _asserts(each)]
        conversation = _conversation(prompt, variant, test)
        name = test.text_of("description")
        numbered = f"{name} {number}".strip() if name and count > 1 else name
        yield case_of_test(test, asserts, conversation, variant, tools, numbered)


def _asserts(test: Node | None) -> list[Node]:
    listed = test.get("assert") if test is not None else None
    return listed.items() if listed is not None else []


def case_of_test(
    test: Node,
    asserts: list[Node],
    conversation: Conversation,
    values: dict[str, JsonValue],
    tools: tuple[Table, ...],
    name: str,
) -> ImportedCase:
    """Returns a case that expects what assertions say about the answer to a conversation. Raises RefusedError."""
    opening = Conversation(test.place, conversation.messages, conversation.system, tools, name=name)
    asked = case_of(opening, last_request(opening.messages))
    expectations = Expectations(values, [str(tool["name"]) for tool in tools])
    for one in asserts:
        expectations.take(one)
    table = {key: value for key, value in asked.table.items() if key != "expect_nothing_yet"}
    table |= expectations.keys()
    notes = list(conversation.notes) + expectations.notes
    others = [key for key in test.table() if key not in _OF_TEST and test.table()[key] not in (None, {}, [])]
    if others:
        notes.append(not_imported(test.place, ", ".join(others)))
    return ImportedCase(test.place, table, (Mapped("prompt and vars", "user"), *expectations.mapped), tuple(notes))


def _conversation(prompt: Node, values: dict[str, JsonValue], test: Node) -> Conversation:
    """Returns a prompt with its variables filled in. Raises RefusedError for a template that does more."""

    def filled(text: str) -> str:
        return _VARIABLE.sub(lambda match: _value(match[1], values, test), text)

    text = prompt.text()
    if "{%" in text or "{#" in text or "{{" in _VARIABLE.sub("", text):
        raise prompt.refused("a template with more than {{variables}}: write the request of each case")
    return conversation_of_prompt(Node(text, prompt.place), filled)


def conversation_of_prompt(prompt: Node, filled: Callable[[str], str] = lambda text: text) -> Conversation:
    """Returns a prompt as a conversation: the JSON text of messages, or the request itself. Raises RefusedError."""
    text = prompt.text()
    if text.lstrip().startswith("["):
        return conversation_of(Node(_filled(prompt.parsed().value, filled), prompt.place))
    return Conversation(prompt.place, (Message("user", filled(text)),))


def _filled(value: JsonValue, filled: Callable[[str], str]) -> JsonValue:
    if isinstance(value, dict):
        return {key: _filled(inner, filled) for key, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, filled) for inner in value]
    return filled(value) if isinstance(value, str) else value


def _value(name: str, values: dict[str, JsonValue], test: Node) -> str:
    found: JsonValue = values
    for key in name.split("."):
        if not isinstance(found, dict) or key not in found:
            raise test.refused(f"has no variable {name!r}, which the prompt asks for")
        found = found[key]
    if isinstance(found, str):
        if found.startswith("file://"):
            raise test.refused(f"the variable {name!r} is in another file")
        return found
    return json_text(found)
