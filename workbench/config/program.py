"""What the whole program shares: folders, environment, secrets, models. Made once, when it starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workbench.config.environment import Environment
from workbench.config.folders import Folders, home_in
from workbench.config.model_book import NOTHING_SAID, ModelBook, ModelOptions
from workbench.config.secrets import Secrets


@dataclass(frozen=True)
class Program:
    """The surroundings of one run of the program."""

    folders: Folders
    environment: Environment
    secrets: Secrets
    models: ModelBook


def program_in(folders: Folders, environment: Mapping[str, str], options: ModelOptions = NOTHING_SAID) -> Program:
    """The program with the user's folders, the process's environment and what the command line says of models."""
    secrets = Secrets()
    home = home_in(environment)
    return Program(
        folders, Environment(environment, secrets, home), secrets, ModelBook(folders.config, home=home, options=options)
    )
