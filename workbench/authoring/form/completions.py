"""Suggests completions for a field, the likeliest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal, get_args

from workbench.authoring.form.argument_schemas import arguments_of
from workbench.authoring.form.cells import KINDS, kind_of, options_of
from workbench.authoring.form.edits import schema_of
from workbench.authoring.form.row import Cell, FormSource
from workbench.authoring.form.tables import value_at
from workbench.authoring.form.typed import (
    last_item,
    read_text,
    read_texts,
    shown_name,
    shown_range,
    shown_value,
    shown_values,
)
from workbench.checks.kinds import JSON_TYPES, NAMED_WEIGHTS, OffsetRule, SimilarityMetric
from workbench.dataclasses import dataclass
from workbench.reports.visible import one_line
from workbench.suite.model import ANY_TOOL
from workbench.trajectory.json_schema import Schema
from workbench.trajectory.json_types import allowed_values, is_list, items_of, keyword, types_of
from workbench.trajectory.messages import ToolDefinition

What = Literal[
    "tool", "expected tool", "tools", "argument", "value", "check", "option", "option value", "weight", "word", "words"
]
"""What a field contains. In comma-separated lists (`tools`, `words`, a list as `value`, or a value of the check
`one_of`) the last item is completed."""

MEANINGS = {
    "is": "equal to the value",
    "equals_null": "null",
    "present": "given, with any value",
    "one_of": "equal to one of the values: red, blue",
    "range": "a number from 5..40, ends included",
    "near": "a number close to the value",
    "similar": "text similar to the value",
    "datetime": "a date and time close to the value",
    "contains": "text that contains the value",
    "prefix": "text that starts with the value",
    "suffix": "text that ends with the value",
    "pattern": "text that matches the regular expression",
    "type": "a value of this type: string, integer, number, boolean, null, array or object",
    "equals_text": "equal to the value, ignoring case, spaces and punctuation",
    "all_of": "all of the listed checks hold",
    "any_of": "one of the listed checks holds",
    "judged": "a language model judges that it meets the criteria",
    "python": "module:function returns True; needs trust",
}
"""A short description of each check."""

_OPTIONS = {
    "cast": "whether critics may convert types first",
    "tolerance": "how far off it may be",
    "value_range": "low..high, the scale of the distance",
    "match_threshold": "the lowest score that passes, 0 to 1",
    "threshold": "how similar it must be, 0 to 1",
    "metric": "how similarity is measured",
    "max_difference": "the distance at which it earns nothing",
    "offset": "whether a time without an offset from UTC may hold",
    "model": "the model that judges",
    "scale": "low..high, of the numbers the judge rates by",
    "at_least": "the lowest number that is enough",
    "sees": "what the function is called with",
}
_FITS: dict[str, frozenset[str]] = {
    "range": frozenset({"number", "integer"}),
    "near": frozenset({"number", "integer"}),
    "equals_null": frozenset({"null"}),
    "similar": frozenset({"string", "array"}),
    "equals_text": frozenset({"string", "array", "object"}),
    **dict.fromkeys(("datetime", "contains", "prefix", "suffix", "pattern"), frozenset({"string"})),
}
_DURATIONS = ("30s", "500s", "15m", "2h", "1d")
_LEAST_LIKENESS = 70.0
_SHORTEST_RESEMBLING = 3


@dataclass(frozen=True, slots=True)
class Completion:
    """A suggestion for a field: `text` is the complete content of the field, `label` what is displayed, `detail` a few
    words about it on one line."""

    text: str
    label: str
    detail: str = ""


def complete(
    what: What,
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
    """Return everything that begins with, contains or resembles the typed text, in this order. Returns everything if
    nothing was typed.

    - `tool`, `tools`: from `tools`; `expected tool`: those and any tool; `argument`: from `tool`, without those `used`;
      `value`: from `schema` under the check `kind`; `check`: those that fit `schema`;
    - `option`: of the check `kind`, without those `used`; `option value`: of its `option`; `weight`: the named ones;
    - `word`, `words`: from `words`, each once, most frequent first: tags, models, the arguments for `forbidden_args`.
    """
    found: Iterable[Completion]
    match what:
        case "tool" | "tools":
            found = (_named(tool.name, tool.description) for tool in tools)
        case "expected tool":
            found = (*(_named(tool.name, tool.description) for tool in tools), _named(ANY_TOOL, "a call of any tool"))
        case "argument":
            found = _arguments(tool)
        case "value":
            found = _values(schema, kind)
        case "check":
            found = (
                _named(name, MEANINGS[name]) for name in KINDS if types_of(schema) & _FITS.get(name, types_of(None))
            )
        case "option":
            found = _options(kind)
        case "option value":
            found = map(_named, words if option == "model" else _option_values(kind, option))
        case "weight":
            found = (_named(name, f"counts {count} to 1 of minimal") for name, count in NAMED_WEIGHTS.items())
        case "word" | "words":
            found = (_named(word) for word, _ in Counter(words).most_common())
    head = ""
    if what in ("tools", "words") or (what == "value" and (kind == "one_of" or is_list(schema))):
        head, typed = last_item(typed)
        used = {*used, *read_texts(head)}
    taken = {shown_name(name) for name in used}
    ranked = _ranked((one for one in found if one.text not in taken), read_text(typed))
    return tuple(replace(one, text=head + one.text) for one in ranked)


def _named(name: str, detail: str = "") -> Completion:
    return Completion(shown_name(name), one_line(name), one_line(detail.strip().partition("\n")[0]))


def _arguments(tool: ToolDefinition | None) -> Iterator[Completion]:
    for argument in arguments_of(tool) if tool is not None else ():
        about = ", ".join([argument.type_words, *["required"] * argument.required])
        yield _named(argument.name, f"{about} · {argument.description}" if argument.description else about)


def _values(schema: Schema | None, kind: str) -> Iterator[Completion]:
    match kind:
        case "range":
            low, high = keyword(schema, "minimum"), keyword(schema, "maximum")
            if isinstance(low, int | float) and isinstance(high, int | float):
                yield Completion(text := shown_range(low, high), text, "all that the schema allows")
        case "type":
            yield from map(_named, JSON_TYPES)
        case "is" | "one_of" | "equals_text":
            of_items = kind == "is" and is_list(schema)
            own = items_of(schema) if of_items else schema
            default, examples = keyword(own, "default"), keyword(own, "examples")
            others = [
                ("default", default),
                *(("example", one) for one in (examples if isinstance(examples, list) else [])),
            ]
            listed = [("", value) for value in allowed_values(own) or ()]
            found: dict[str, Completion] = {}
            for detail, value in (*listed, *others):
                if value is None:
                    continue
                text = shown_values([value], own) if of_items or kind == "one_of" else shown_value(value, own)
                detail = "default" if not detail and value == default else detail
                found.setdefault(text, Completion(text, one_line(text), detail))
            yield from found.values()


def _options(kind: str) -> Iterator[Completion]:
    if kind not in KINDS:
        return
    for cell in options_of({"equals" if kind == "is" else kind: True}):
        default = f", default {cell.default}" if cell.default else ""
        yield _named(cell.name, _OPTIONS[cell.name] + default)


def _option_values(kind: str, option: str) -> Sequence[str]:
    match option:
        case "cast":
            return ("true", "false")
        case "metric":
            return get_args(SimilarityMetric)
        case "sees":
            return ("value", "run")
        case "offset":
            return get_args(OffsetRule)
        case "tolerance" | "max_difference" if kind == "datetime":
            return _DURATIONS
    return ()


def _ranked(found: Iterable[Completion], typed: str) -> list[Completion]:
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
        elif len(typed) >= _SHORTEST_RESEMBLING:
            from rapidfuzz import fuzz  # imported only when needed, because it takes a while

            likeness = fuzz.WRatio(typed, label, score_cutoff=_LEAST_LIKENESS)
            if likeness:
                ranks[index] = (2, -likeness)
            elif typed in candidate.detail.casefold():
                ranks[index] = (3, 0)
    return [candidates[index] for index in sorted(ranks, key=lambda index: ranks[index])]


CHOSEN = frozenset({"choice", "check", "one_key", "args", "yes_no", "optional", "required"})
"""Cells with a fixed set of words."""


def suggestions(source: FormSource, cell: Cell, typed: str) -> tuple[Completion, ...]:
    """Return completions for the text in a cell, all possible ones if it is empty."""
    key = cell.place[-1]
    match cell.kind:
        case "tool":
            is_named = cell.place[:1] in (("mocks",), ("variants",)) or "tool_calls" in cell.place
            return complete("tool" if is_named else "expected tool", typed, tools=source.tools)
        case "key" if len(cell.place) > 1 and cell.place[-2] in ("args", "when"):
            table = value_at(source.table, cell.place[:-1])
            used = [name for name in table if name != key] if isinstance(table, dict) else []
            tool = source.tool(value_at(source.table, cell.place[:-2]))
            return complete("argument", typed, tool=tool, used=used)
        case "expected":
            kind = kind_of(value_at(source.table, cell.place))
            return complete("value", typed, schema=schema_of(source, cell.place), kind=kind)
        case "check":
            return complete("check", typed, schema=schema_of(source, cell.place))
        case "option":
            kind = kind_of(value_at(source.table, cell.place))
            return complete("option value", typed, kind=kind, option=cell.option, words=source.models)
        case "weight":
            return complete("weight", typed)
        case "yes_no" | "optional" | "required":
            return complete("word", typed, words=("yes", "no"))
        case "names" if key == "offer":
            return complete("tools", typed, tools=source.tools)
        case "names" if key == "forbidden_args":
            tool = source.tool(value_at(source.table, cell.place[:-1]))
            names = [argument.name for argument in arguments_of(tool)] if tool is not None else []
            return complete("words", typed, words=names)
        case "names":
            return complete("words", typed, words={"tags": source.tags, "models": source.models}.get(str(key), ()))
        case _:
            return complete("word", typed, words=cell.choices) if cell.choices else ()
