"""Keeps secrets out of what the program writes into a suite from a run or a call.

A check on a value that contains a secret only asks that the argument is given: `$NAME` in its place would expect a
different value. Text that is already in the suite stays as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace

from workbench.authoring.accepting.calls import KEPT, AcceptedArgument, AcceptedCall, AcceptError, CheckChoice
from workbench.authoring.accepting.proposal import Proposal
from workbench.checks.check import OPTION_NAMES
from workbench.config.secrets import Secrets
from workbench.suite.problems import Place
from workbench.suite.problems import written as written_place
from workbench.suite.render import Table

_CHECKS = ("args", "when")


def proposal_without_secrets(proposal: Proposal, secrets: Secrets) -> Proposal:
    """Return a proposal without secrets, except those already in the suite. Raises AcceptError if a tool's name
    contains one."""
    return replace(proposal, calls=tuple(_call(call, secrets) for call in proposal.calls))


def table_without_secrets(table: Table, before: Table, secrets: Secrets) -> Table:
    """Return a case that is safe to write; `before` is its present table. Secrets outside of checks become `$NAME`.
    Raises ValueError if a tool's name contains a secret."""
    if secrets.redacted(table) is table:
        return table
    written = {_text(value) for value in _all_values(before)}
    cleaned = _cleaned(table, written, secrets)
    assert isinstance(cleaned, dict)
    return cleaned


def places_without_secrets(before: object, after: object, place: Place = ()) -> Iterator[str]:
    """Yield what `table_without_secrets` did to a table: each place, and whether it is a check or a text."""
    if before == after:
        return
    if _is_present(after):
        yield f"{written_place(place)} holds a secret: checked only for `present = true`"
        return
    pairs: Iterable[tuple[str | int, object, object]]
    if isinstance(before, dict) and isinstance(after, dict) and len(before) == len(after):
        pairs = ((name, old, new) for name, old, new in zip(after, before.values(), after.values(), strict=True))
    elif isinstance(before, list) and isinstance(after, list):
        pairs = ((index, old, new) for index, (old, new) in enumerate(zip(before, after, strict=True)))
    else:
        yield f"{written_place(place)} holds a secret: replaced"
        return
    for step, old, new in pairs:
        yield from places_without_secrets(old, new, (*place, step))


def _call(call: AcceptedCall, secrets: Secrets) -> AcceptedCall:
    _check_name(call.tool, secrets)
    named = (each for each in call.arguments if each.was_expected or secrets.redact(each.name) is each.name)
    return replace(call, arguments=tuple(_argument(each, secrets) for each in named))


def _argument(argument: AcceptedArgument, secrets: Secrets) -> AcceptedArgument:
    choices = tuple(
        choice
        for choice in argument.choices
        if choice.kind == KEPT or secrets.redacted(choice.written) is choice.written
    )
    if len(choices) == len(argument.choices):
        return argument
    if choices[0].kind != KEPT and not any(_is_present(choice.written) for choice in choices):
        choices = (CheckChoice("present", _present(argument.choices[0].written)), *choices)
    return replace(argument, choices=choices, chosen=0)


def _cleaned(value: object, written: set[str], secrets: Secrets) -> object:
    shown = secrets.redacted(value)
    if shown is value or _text(value) in written:
        return value
    if isinstance(value, list):
        return [_cleaned(item, written, secrets) for item in value]
    if not isinstance(value, dict):
        return shown
    if isinstance(tool := value.get("tool"), str):
        _check_name(tool, secrets)
    return {
        name if _text(name) in written else secrets.redact(name): _cleaned_item(name, item, written, secrets)
        for name, item in value.items()
    }


def _cleaned_item(name: str, item: object, written: set[str], secrets: Secrets) -> object:
    if name not in _CHECKS or not isinstance(item, dict):
        return _cleaned(item, written, secrets)
    return {
        argument: check if secrets.redacted(check) is check or _text(check) in written else _present(check)
        for argument, check in item.items()
        if _text(argument) in written or secrets.redact(argument) is argument
    }


def _present(check: object) -> Table:
    options = {key: check[key] for key in sorted(OPTION_NAMES) if key in check} if isinstance(check, dict) else {}
    return {"present": True, **options}


def _is_present(check: object) -> bool:
    return isinstance(check, dict) and check.get("present") is True


def _check_name(tool: str, secrets: Secrets) -> None:
    if secrets.redact(tool) is not tool:
        raise AcceptError(
            f"the name of the tool {secrets.redact(tool)} contains a secret, which must not go into a suite"
        )


def _all_values(value: object) -> Iterator[object]:
    yield value
    if isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from _all_values(item)
    elif isinstance(value, list):
        for item in value:
            yield from _all_values(item)


def _text(value: object) -> str:
    return json.dumps(value, default=str, sort_keys=True)
