"""What the whole program shares: folders, environment, secrets, models. Made once, when it starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workbench.config.environment import Environment
from workbench.config.folders import Folders
from workbench.config.model_book import ModelBook
from workbench.config.secrets import Secrets


@dataclass(frozen=True)
class Program:
    """The surroundings of one run of the program."""

    folders: Folders
    environment: Environment
    secrets: Secrets
    models: ModelBook


def program_in(folders: Folders, environment: Mapping[str, str]) -> Program:
    """The program with the user's folders and the process's environment."""
    secrets = Secrets()
    return Program(folders, Environment(environment, secrets), secrets, ModelBook(folders.config))
