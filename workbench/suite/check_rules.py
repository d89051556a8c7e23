"""Validation rules for the checks of arguments, results and answers.

The rules read parsed TOML, like those of `workbench.suite.rules`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from difflib import get_close_matches
from typing import Final

from workbench.checks.check import AMBIGUOUS_ARGUMENTS, CHECK_CLASSES, OPTION_NAMES, CheckBase, check_names_in
from workbench.checks.structure_kinds import mixed_check
from workbench.suite.problems import Finding, Place, did_you_mean, in_backticks, kind_of_value, quoted, table

_EXPLICIT = "to compare a table as a value, write { equals = { … } }"


def checks_rules(checks: object, place: Place) -> Iterator[Finding]:
    """Find problems in a table of checks by argument name, such as the `args` of a call or the `when` of a mock."""
    for name, value in table(checks).items():
        if name in AMBIGUOUS_ARGUMENTS and not is_check(value):
            hint = f"write it above the header of `{place[-1]}`; for an argument of that name, {{ equals = … }}"
            yield Finding((*place, name), f"`{name}` is not allowed directly inside `{place[-1]}`", hint)
        elif isinstance(value, dict):
            yield from check_rules(value, (*place, name))
            yield from _absence_rules(value, (*place, name), place[-1] == "args")


def _absence_rules(check: dict[str, object], place: Place, is_graded: bool) -> Iterator[Finding]:
    """Find options that have no meaning beside `present = false`. This check forbids an argument and has no score."""
    if check.get("present") is False:
        options = ("optional", "weight", "required") if is_graded else ("optional",)
        for option in options:
            if option in check:
                yield Finding((*place, option), f"`{option}` has no meaning beside `present = false`", "remove it")


def is_check(value: object) -> bool:
    """Return whether a value is a table that names a check."""
    return isinstance(value, dict) and bool(check_names_in(value))


def check_rules(
    value: dict[str, object], place: Place, *, of_answer: bool = False, in_fields: bool = False
) -> Iterator[Finding]:
    """Find problems in a table that is a check, or that looks like a check with a mistake.

    `of_answer` is true for a check of an answer, which is always text. `in_fields` is true inside `has_fields`, where a
    table without a check's name is a table of fields."""
    names = check_names_in(value)
    if not names and in_fields:
        yield from _plain_fields_rules(value, place, of_answer)
        return
    if not names:
        if value and all(key in OPTION_NAMES for key in value):
            options = in_backticks(value)
            yield Finding(place, f"no check here takes {options}", f"name the check; {_EXPLICIT}")
        return
    name = names[0]
    options_of_check = []
    for option in CHECK_CLASSES[name].model_fields:
        if option not in (name, "plain"):
            options_of_check.append(option)
    for key in value:
        if key in CHECK_CLASSES and key != name:
            message = f"one argument has two checks, `{name}` and `{key}`"
            hint = f"choose one, or write all_of = [{{ {name} = … }}, {{ {key} = … }}]; {_EXPLICIT}"
            yield Finding((*place, key), message, hint)
        elif key != name and key not in options_of_check:
            hint = did_you_mean(key, options_of_check) or _EXPLICIT
            yield Finding((*place, key), f"`{key}` is not an option of the check `{name}`", hint)
    if len(names) == 1:
        yield from _expected_rules(CHECK_CLASSES[name], value[name], (*place, name), of_answer, in_fields)
    for option, word in CHECK_CLASSES[name].only_in_answers.items():
        if value.get(option) == word and not of_answer:
            message = f'`{option} = "{word}"` is only for checks of the answer'
            yield Finding((*place, option), message, "write it in `response`")
    if of_answer:
        yield from answer_rules(name, place)


_NEAR: Final = 0.85
"""The similarity (difflib's ratio) from which a key may be a misspelt check: `patern` reaches this similarity, and
`orange` stays below it."""

_NEAR_OF_WORDS: Final = 0.82
"""The similarity limit if both key and check have several words. It is lower than `_NEAR`, because hardly any other key
resembles such a check.

`has_feild` reaches this limit."""


def near_check(key: str) -> str | None:
    """Return the check that a key names or may misspell, or `None` if no name is similar."""
    squeezed = key.replace("_", "").replace("-", "").lower()
    of_words = {name.replace("_", ""): name for name in CHECK_CLASSES if "_" in name}
    found = get_close_matches(squeezed, of_words, n=1, cutoff=_NEAR_OF_WORDS) if "_" in key else []
    known = of_words | {name: name for name in CHECK_CLASSES if "_" not in name}
    found = found or get_close_matches(squeezed, known, n=1, cutoff=_NEAR)
    if found and found[0][0] == squeezed[0]:
        return known[found[0]]
    return None


def check_of_alias(word: str) -> str | None:
    """Return the check that other programs call `word`, or `None` if there is none."""
    alias = word.replace("_", "").replace("-", "").lower()
    for name, kind in CHECK_CLASSES.items():
        if alias in kind.aliases:
            return name
    return None


TEXT_CHECKS: Final = tuple(name for name, kind in CHECK_CLASSES.items() if "string" in kind.types)
"""The checks that a text can meet."""


def unknown_text_check(names: Collection[str], place: Place, message: str) -> Iterator[Finding]:
    """Report a table that should be a check of a text but names no known check. `names` may hold the misspelt name.

    The hint names the most similar check of texts."""
    hints = []
    for word in names:
        kind = near_check(word) or check_of_alias(word)
        if kind is not None and (never := [*answer_rules(kind, place)]):
            yield from never
            return
        hints.append(did_you_mean(kind or word, TEXT_CHECKS))
    yield Finding(place, message, next(filter(None, hints), 'such as { contains = "text" }'))


def answer_rules(name: str, place: Place) -> Iterator[Finding]:
    """Find a check that never holds for an answer, because an answer is always text. `name` is the check's name."""
    if CHECK_CLASSES[name].is_newer and "string" not in CHECK_CLASSES[name].types:
        hint = 'check the text, such as { contains = "text" }, or the `result` of a call'
        yield Finding(place, f"`{name}` never holds here: the final answer is text", hint)


def _expected_rules(
    kind: type[CheckBase], expected: object, place: Place, of_answer: bool, in_fields: bool
) -> Iterator[Finding]:
    if kind.editor().input_kind == "nothing" and type(expected) in (int, float):
        yield Finding(place, f"`{kind.kind}` takes only true, not {kind_of_value(expected)}")
    for message, hint in kind.faults(expected):
        yield Finding(place, message, hint)
    if kind.nests == "list" and isinstance(expected, list):
        for index, part in enumerate(expected):
            yield from _given_part_rules(part, (*place, index), kind, of_answer, in_fields)
    if kind.nests == "check":
        yield from _given_part_rules(expected, place, kind, of_answer, in_fields)
    if kind.nests == "table" and isinstance(expected, dict):
        yield from _fields_rules(expected, place, of_answer)


def _given_part_rules(
    part: object, place: Place, outer: type[CheckBase], of_answer: bool, in_fields: bool
) -> Iterator[Finding]:
    """Find problems in a check that is nested in another check, where its value cannot be absent."""
    if not isinstance(part, dict):
        return
    yield from check_rules(part, place, of_answer=of_answer, in_fields=in_fields)
    yield from _options_elsewhere(part, place, _OF_ALL_PARTS, outer.kind)
    yield from given_rules(part, place)


def given_rules(check: dict[str, object], place: Place) -> Iterator[Finding]:
    """Find a check with `present = false` for a value that is always present."""
    if check.get("present") is False and is_check(check):
        hint = "for an argument or a field that may be left out, write optional = true"
        yield Finding((*place, "present"), "`present = false` never holds: a value is always given here", hint)


def _options_elsewhere(part: object, place: Place, options: Iterable[str], outer: str) -> Iterator[Finding]:
    for option in options:
        if is_check(part) and option in table(part):
            yield Finding(
                (*place, option), f"`{option}` is not allowed inside `{outer}`", f"write it next to `{outer}`"
            )


_OF_ALL_PARTS: Final = ("weight", "optional", "required")
"""The options that apply to all checks of one value and cannot belong to a single check."""

_OF_WHOLE_ARGUMENT: Final = ("weight", "required")
"""The options that the check of a field cannot have. `optional` belongs to the field itself."""


def _fields_rules(fields: dict[str, object], place: Place, of_answer: bool) -> Iterator[Finding]:
    for name, part in fields.items():
        if isinstance(part, dict):
            yield from check_rules(part, (*place, name), of_answer=of_answer, in_fields=True)
            yield from _options_elsewhere(part, (*place, name), _OF_WHOLE_ARGUMENT, "has_fields")


def _plain_fields_rules(written: dict[str, object], place: Place, of_answer: bool) -> Iterator[Finding]:
    if (mixed := mixed_check(written)) is not None:
        yield from mixed_rules(*mixed, place)
    else:
        yield from _fields_rules(written, place, of_answer)


def mixed_rules(name: str, other_keys: Iterable[str], place: Place) -> Iterator[Finding]:
    """Report keys that stand beside the name of a check but are not its options."""
    options = [*CHECK_CLASSES[name].options, "because"]
    for key in other_keys:
        hint = did_you_mean(key, options) or f"write {{ equals = … }} for a field `{name}`"
        yield Finding((*place, key), f"`{key}` is not an option of the check `{name}`", hint)


def weight_rules(args: object, place: Place) -> Iterator[Finding]:
    """Check that all arguments of a call have a weight, or that no argument has a weight.

    `weight = 0` counts as a weight. Also finds `required = true` beside `weight = 0`."""
    if not any(map(_has_weight, table(args).values())):
        return
    graded = {name: value for name, value in table(args).items() if table(value).get("present") is not False}
    without = [name for name, value in graded.items() if not _has_weight(value)]
    if without and len(without) < len(graded):
        message = f"other arguments of this call have a weight, but not {', '.join(map(quoted, without))}"
        hint = "give every argument a weight or none (weight = 0 records without judging)"
        yield Finding((*place, without[0]), message, hint)
    for name, value in table(args).items():
        if _has_weight(value) and table(value).get("required") is True and table(value)["weight"] == 0:
            message = "`required = true` conflicts with `weight = 0`, which records the argument without judging it"
            yield Finding((*place, name, "required"), message, "give it a weight, or leave `weight` out")


def _has_weight(value: object) -> bool:
    return isinstance(value, dict) and "weight" in value and bool(check_names_in(value))
