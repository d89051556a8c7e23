"""Full names of models: `openai:gpt-6.1-sol` for the bare name `gpt-6.1-sol` in a list of OpenAI's models."""

from __future__ import annotations

import os
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from workbench.config.folders import folder_of, home_folder, user_folders
from workbench.config.model_book import ModelBook
from workbench.config.model_list import are_full, full_names
from workbench.providers.built_in import is_built_in
from workbench.suite.project import find_suites
from workbench.suite.suite_file import load_suite


def full_model_names(lists: Sequence[Sequence[str]], paths: Sequence[str | PathLike[str]]) -> tuple[str, ...]:
    """Return the full names of the models in all lists, in order.

    A bare name gets the provider and address of the name before it in its list. Three kinds of names stay as they are:
    built-in models, subjects of suites at the paths, and models in a `workbench.toml` there. Files are read only if a
    list has a bare name.

    Raises ConfigError if a needed `workbench.toml` cannot be used."""
    known: set[str] = set()
    if not all(map(are_full, lists)):
        known = _names_at([Path(path) for path in paths or ["."]])
    found: list[str] = []
    for names in lists:
        found += full_names(names, lambda name: is_built_in(name) or name in known)
    return tuple(found)


def _names_at(paths: Sequence[Path]) -> set[str]:
    book = ModelBook(user_folders().config, home=home_folder(os.environ))
    folders = {folder_of(path).absolute() for path in paths}
    names: set[str] = set()
    for file in map(load_suite, find_suites([path for path in paths if path.exists()])):
        folders.add(file.path.absolute().parent)
        if file.suite is not None and file.suite.subject is not None:
            names.add(file.suite.subject.name)
    for folder in folders:
        names.update(spec.name for spec in book.named(folder))
    return names
