"""Completions for the text in a field, the most likely first."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

from workbench.authoring.form.argument_schemas import arguments_of
from workbench.authoring.form.cells import class_named, default_text, kind_of, lists_values
from workbench.authoring.form.edits import schema_of
from workbench.authoring.form.field_text import (
    last_item,
    read_text,
    read_texts,
    shown_name,
    shown_range,
    shown_value,
    shown_values,
    value_at,
)
from workbench.authoring.form.row import Cell, FormSource, holds_arguments
from workbench.checks.check import CHECK_CLASSES
from workbench.checks.clock import zone_names
from workbench.checks.fields import NAMED_WEIGHTS
from workbench.dataclasses import dataclass
from workbench.show.visible import one_line
from workbench.suite.expected_calls import ANY_TOOL
from workbench.trajectory.events import ToolDefinition
from workbench.trajectory.json_schema import Schema, allowed_values, is_list, items_of, keyword_value, types_of

CompletionKind = Literal[
    "tool", "expected tool", "tools", "argument", "value", "check", "option", "option value", "weight", "word", "words"
]
"""The content of a field.

In comma-separated lists (`tools`, `words`, a list as `value`, or a value of the check `one_of`), the last item is
completed."""

_MIN_LIKENESS = 70.0
_MIN_RESEMBLING_CHARS = 3


@dataclass(frozen=True, slots=True)
class Completion:
    """A suggestion for a field.

    `text` is the complete content of the field, `label` is displayed, and `detail` is a few words of description."""

    text: str
    label: str
    detail: str = ""


def complete(
    what: CompletionKind,
    typed: str,
    *,
    tools: Sequence[ToolDefinition] = (),
    tool: ToolDefinition | None = None,
    used: Collection[str] = (),
    schema: Schema | None = None,
    kind: str = "is",
    option: str = "",
    words: Iterable[str] = (),
) -> tuple[Completion, ...]:
    """Return the completions that begin with, contain or resemble the typed text, in this order.

    Empty text returns all completions. Their source depends on `what`:

    - `tool`, `tools`: the names of `tools`. `expected tool` also offers any tool.
    - `argument`: the arguments of `tool`, without those in `used`.
    - `value`: the values of `schema` under the check `kind`.
    - `check`: the checks that fit `schema`.
    - `option`: the options of the check `kind`, without those in `used`.
    - `option value`: the values of the check's option `option`.
    - `weight`: the named weights.
    - `word`, `words`: the `words` (such as tags or models), each once, the most frequent first."""
    found: Iterable[Completion]
    match what:
        case "tool" | "tools":
            found = map(_tool, tools)
        case "expected tool":
            found = (*map(_tool, tools), _named(ANY_TOOL, "a call of any tool"))
        case "argument":
            found = _arguments(tool)
        case "value":
            found = _values(schema, kind)
        case "check":
            found = _checks(schema)
        case "option":
            found = _options(kind)
        case "option value":
            found = map(_named, _option_words(kind, option, words))
        case "weight":
            found = _weights()
        case "word" | "words":
            found = (_named(word) for word, _ in Counter(words).most_common())
    # In a list, only the last item is completed, and no earlier item is offered again.
    head = ""
    if what in ("tools", "words") or (what == "value" and (lists_values(kind) or is_list(schema))):
        head, typed = last_item(typed)
        used = {*used, *read_texts(head)}
    # Names are compared as they are shown in a list, which quotes some of them.
    taken = {shown_name(name) for name in used}
    fitting = ranked((one for one in found if one.text not in taken), read_text(typed))
    return tuple(replace(one, text=head + one.text) for one in fitting)


def _tool(tool: ToolDefinition) -> Completion:
    return _named(tool.name, tool.description)


def _named(name: str, detail: str = "") -> Completion:
    return Completion(shown_name(name), one_line(name), one_line(detail.strip().partition("\n")[0]))


def _arguments(tool: ToolDefinition | None) -> Iterator[Completion]:
    if tool is None:
        return
    for argument in arguments_of(tool):
        about = argument.type_words
        if argument.required:
            about += ", required"
        if argument.description:
            about += f" · {argument.description}"
        yield _named(argument.name, about)


def _values(schema: Schema | None, kind: str) -> Iterator[Completion]:
    cls = class_named(kind)
    if cls is None:
        return
    match cls.editor().input_kind:
        case "range":
            low, high = keyword_value(schema, "minimum"), keyword_value(schema, "maximum")
            if isinstance(low, int | float) and isinstance(high, int | float):
                yield Completion(text := shown_range(low, high), text, "all that the schema allows")
        case "choice" | "time":
            yield from map(_named, cls.editor().words)
        case "value" | "values" as reads:
            yield from _listed_values(schema, of_items=kind == "is" and is_list(schema), several=reads == "values")


def _checks(schema: Schema | None) -> Iterator[Completion]:
    types = types_of(schema)
    for cls in CHECK_CLASSES.values():
        if types & (cls.offered or cls.types):
            yield _named(cls.form_name, cls.meaning)


def _weights() -> Iterator[Completion]:
    for name, count in NAMED_WEIGHTS.items():
        yield _named(name, f"counts {count} to 1 of minimal")


def _values_with_details(schema: Schema | None) -> Iterator[tuple[str, object]]:
    for value in allowed_values(schema) or ():
        yield "", value
    yield "default", keyword_value(schema, "default")
    examples = keyword_value(schema, "examples")
    if isinstance(examples, list):
        for value in examples:
            yield "example", value


def _listed_values(schema: Schema | None, *, of_items: bool, several: bool) -> Iterator[Completion]:
    own = items_of(schema) if of_items else schema
    default = keyword_value(own, "default")
    # A value may be listed in the schema, be the default and be an example. It is offered once, with the first
    # description.
    found: dict[str, Completion] = {}
    for detail, value in _values_with_details(own):
        if value is None:
            continue
        text = shown_values([value], own) if of_items or several else shown_value(value, own)
        if not detail and value == default:
            detail = "default"
        found.setdefault(text, Completion(text, one_line(text), detail))
    yield from found.values()


def _options(kind: str) -> Iterator[Completion]:
    cls = class_named(kind)
    if cls is None:
        return
    for option, meaning in cls.options.items():
        about = without_links(meaning)
        if default := default_text(cls, option):
            about += f", default {default}"
        yield _named(option, about)


def without_links(markdown: str) -> str:
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", markdown).replace("`", "")


def _option_words(kind: str, option: str, models: Iterable[str]) -> Iterable[str]:
    cls = class_named(kind)
    if cls is None or option not in cls.options:
        return ()
    editor = cls.editor(option)
    return models if editor.input_kind == "model" else editor.words


def ranked(found: Iterable[Completion], typed: str) -> list[Completion]:
    """Return the completions that match the typed text, the best matches first.

    Labels that begin with the text come first, then labels that contain it, similar labels, and descriptions that
    contain it."""
    # If two candidates contain the text, the candidate with the earlier match comes first. Otherwise candidates of the
    # same rank keep their order.
    candidates = list(found)
    typed = typed.casefold()
    if not typed:
        return candidates
    ranks: dict[int, tuple[float, float]] = {}
    for index, candidate in enumerate(candidates):
        label = candidate.label.casefold()
        if label.startswith(typed):
            ranks[index] = (0, 0)
        elif typed in label:
            ranks[index] = (1, label.index(typed))
        elif len(typed) >= _MIN_RESEMBLING_CHARS:
            from rapidfuzz import fuzz  # imported on use, because it takes 20 ms

            likeness = fuzz.WRatio(typed, label, score_cutoff=_MIN_LIKENESS)
            if likeness:
                ranks[index] = (2, -likeness)
            elif typed in candidate.detail.casefold():
                ranks[index] = (3, 0)
    return [candidates[index] for index in sorted(ranks, key=lambda index: ranks[index])]


FIXED_CHOICE_CELLS = frozenset({"choice", "check", "one_key", "args", "yes_no", "optional", "required"})
"""The kinds of cells with a fixed set of words."""


def suggestions(source: FormSource, cell: Cell, typed: str) -> tuple[Completion, ...]:
    """Return completions for the text in a cell. If the text is empty, return all."""
    key = cell.place[-1]
    match cell.kind:
        case "tool":
            is_named = cell.place[0] in ("mocks", "variants", "setup", "answers") or "tool_calls" in cell.place
            is_named = is_named or cell.place[:2] == ("final", "state") or key == "after_tool"
            return complete("tool" if is_named else "expected tool", typed, tools=source.tools)
        # The call's arguments are not offered again, except for the argument that is edited.
        case "key" if holds_arguments(cell.place[:-1]):
            table = value_at(source.table, cell.place[:-1])
            used = set(table) - {key} if isinstance(table, dict) else ()
            tool = source.tool(value_at(source.table, cell.place[:-2]))
            return complete("argument", typed, tool=tool, used=used)
        case "expected":
            kind = kind_of(value_at(source.table, cell.place))
            return complete("value", typed, schema=schema_of(source, cell.place), kind=kind)
        case "value":
            return complete("value", typed, schema=schema_of(source, cell.place), kind="is")
        case "check":
            return complete("check", typed, schema=schema_of(source, cell.place))
        case "option":
            kind = kind_of(value_at(source.table, cell.place))
            return complete("option value", typed, kind=kind, option=cell.option, words=source.models)
        case "weight":
            return complete("weight", typed)
        case "yes_no" | "optional" | "required":
            return complete("word", typed, words=("yes", "no"))
        case "names" if key in ("offer", "called"):
            return complete("tools", typed, tools=source.tools)
        case "names" if key == "forbidden_args":
            tool = source.tool(value_at(source.table, cell.place[:-1]))
            if tool is None:
                return ()
            return complete("words", typed, words=[argument.name for argument in arguments_of(tool)])
        case "text" if cell.place == ("clock",):
            # The zone may follow a time.
            at, blank, zone = typed.rpartition(" ")
            found = complete("word", zone, words=zone_names())
            return tuple(replace(one, text=at + blank + one.text) for one in found)
        case "text" if cell.place == ("user", "model"):
            return complete("word", typed, words=source.models)
        case "names":
            return complete("words", typed, words={"tags": source.tags, "models": source.models}.get(str(key), ()))
        case _:
            if cell.choices:
                return complete("word", typed, words=cell.choices)
            return ()
