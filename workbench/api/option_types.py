"""The types of the options of `evaluate`, checked before anything is planned."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import fields
from typing import Any

from workbench.api.suites import Cell, UsageError
from workbench.evaluation.options import CommonOptions
from workbench.suite.grading_model import GRADERS, REPEAT_RULES

_Fits = Callable[[Any], bool]


def check_types(options: CommonOptions) -> None:
    """Raise UsageError if options have values of the wrong type. The message names all of them."""
    problems = []
    for option in fields(options):
        value, kind = getattr(options, option.name), str(option.type)
        if value is None and kind.endswith(" | None"):
            continue
        fits, what = _TYPES[kind.removesuffix(" | None")]
        if fits(value):
            continue
        problem = f"{option.name} must be {what}, not {value!r}"
        if isinstance(value, str) and "list" in what:
            problem += f": write {option.name}=[{value!r}]"
        problems.append(problem)
    if problems:
        raise UsageError("\n".join(problems))


def _one_of(*types: type) -> _Fits:
    # `True` is an int in Python. Where a number is expected, `True` is a mistake.
    return lambda value: isinstance(value, types) and (bool in types or not isinstance(value, bool))


def _words(words: Iterable[str]) -> tuple[_Fits, str]:
    named = tuple(words)
    return (lambda value: value in named), "one of " + ", ".join(map(repr, named))


def _listed(container: Any, *types: type) -> _Fits:
    def fits(value: Any) -> bool:
        return (
            isinstance(value, container)
            and not isinstance(value, str | bytes | Mapping)
            and all(isinstance(each, types) for each in value)
        )

    return fits


_is_path = _one_of(str, os.PathLike)

_TYPES: Mapping[str, tuple[_Fits, str]] = {
    "bool": (_one_of(bool), "True or False"),
    "int": (_one_of(int), "a whole number"),
    "float": (_one_of(int, float), "a number"),
    "str": (_one_of(str), "a string"),
    "Sequence[str]": (_listed(Collection, str), "a list of strings"),
    "Mapping[str, JsonValue]": (_one_of(Mapping), "a mapping of names to values"),
    "GraderName": _words(GRADERS),
    "RepeatRule": _words(REPEAT_RULES),
    "Confirm": _words(("reruns", "repeats", "none")),
    "FailOn": _words(("regression",)),
    # The models in a list are checked later, when they are resolved.
    "AnyModel": (lambda value: True, ""),
    "Sequence[AnyModel]": (_listed(Iterable, object), "a list of models"),
    "Iterable[Cell]": (_listed(Collection, Cell), "a list of cells, as suite.cells() returns"),
    "bool | Sequence[SuitePath | Mapping[str, Any]]": (
        lambda value: isinstance(value, bool) or _listed(Collection, str, os.PathLike, Mapping)(value),
        "True, False or a list of names, paths and tables",
    ),
    "SuitePath": (lambda value: _is_path(value) and bool(os.fspath(value)), "a path"),
    "bool | SuitePath": (
        lambda value: isinstance(value, bool) or (_is_path(value) and bool(os.fspath(value))),
        "True, False or a path",
    ),
    "bool | int | str": (_one_of(bool, int, str), "True, False, or the number or name of a batch"),
    "int | str": (_one_of(int, str), "the number or name of a batch"),
    "Approve": (callable, "a function, such as workbench.ALL"),
    "Callable[[BatchEvent], object]": (callable, "a function"),
    "Callable[[CellDone], object]": (callable, "a function"),
}
"""The check of each annotation of an option, and its words."""
