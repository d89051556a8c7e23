"""The state that the whole program shares: folders, environment, secrets, models. Made once, at the start."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.config.environment import Environment
from workbench.config.folders import Folders, home_in
from workbench.config.model_book import NOTHING_SAID, ModelBook, ModelOptions
from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass


@dataclass(frozen=True)
class Program:
    """The folders, environment, secrets and models of the running program."""

    folders: Folders
    environment: Environment
    secrets: Secrets
    models: ModelBook


def program_in(folders: Folders, environment: Mapping[str, str], options: ModelOptions = NOTHING_SAID) -> Program:
    """Returns the program with the user's folders, the process's environment and the command line's options for
    models."""
    secrets = Secrets()
    home = home_in(environment)
    return Program(
        folders, Environment(environment, secrets, home), secrets, ModelBook(folders.config, home=home, options=options)
    )
