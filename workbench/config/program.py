"""The shared folders, environment, secrets and models of the program, created once at its start."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.config.folders import Folders, home_folder, project_file
from workbench.config.model_book import NO_MODEL_OPTIONS, ModelBook, ModelOptions
from workbench.config.models import ConfigError
from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass

if TYPE_CHECKING:
    from dotenv.parser import Original


DOTENV_NAME = ".env"

SERVED_VARIABLE = "WORKBENCH_SERVED"
"""The environment variable with which `workbench serve` marks an app that a browser shows."""


class Environment:
    """The environment variables that suites and models refer to. Secret values are added to `secrets`.

    The variables of a folder are read again if one of their files has changed. `home` is the user's home. A
    `workbench.toml` in a folder above it is ignored. Any thread may use the object."""

    def __init__(self, variables: Mapping[str, str], secrets: Secrets, home: Path | None = None) -> None:
        self.variables = variables
        self._secrets = secrets
        self.home = home
        self._files: dict[Path, tuple[tuple[int, int], Mapping[str, str]]] = {}
        for name, value in variables.items():
            secrets.add_if_it_looks_secret(name, value)

    def __getstate__(self) -> dict[str, object]:
        # Pickles are made only for worker processes. `os.environ` cannot be pickled, so it becomes a dictionary.
        return {**self.__dict__, "variables": dict(self.variables)}

    def of(self, folder: Path) -> Mapping[str, str]:
        """Return the variables for the suites in a folder.

        They come from the process, then the folder's `.env`, then the `.env` next to the `workbench.toml`. An earlier
        source takes precedence. Raises ConfigError if a `.env` cannot be read."""
        folders = [folder.resolve()]
        settings = project_file(folder, self.home)
        if settings is not None and settings.parent not in folders:
            folders.append(settings.parent)
        read = [self._read(place / DOTENV_NAME) for place in folders]
        if not any(read):
            return self.variables
        merged: dict[str, str] = {}
        for variables in (self.variables, *read):
            merged = {**variables, **merged}
        return merged

    def _read(self, file: Path) -> Mapping[str, str]:
        # A folder named `.env` is usually a virtual environment.
        if not file.is_file():
            return {}
        # This import is lazy, because most folders have no such file.
        from workbench.config.read_only import is_read_only

        # A read-only process runs nothing, so it reads no keys.
        if is_read_only():
            return {}
        try:
            status = file.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            known = self._files.get(file)
            if known is not None and known[0] == stamp:
                return known[1]
            variables, broken = _variables_in(file.read_bytes().decode("utf-8-sig"))
        except OSError as error:
            raise ConfigError(f"{file} cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise ConfigError(f"{file} is not text with NAME=value lines: write it again, in UTF-8") from error
        for name, value in variables.items():
            self._secrets.add_from_file(name, value)
        # The message does not quote the line, which may be a key.
        if broken:
            problems = [f"{file}:{line} is not NAME=value: correct it, including its quotes" for line in broken]
            raise ConfigError(*problems)
        self._files[file] = (stamp, variables)
        return variables


def _variables_in(text: str) -> tuple[Mapping[str, str], list[int]]:
    """Return the variables of a `.env`, and the numbers of invalid lines, from 1.

    Raises ValueError for bytes that are not text."""
    if "\0" in text:
        raise ValueError("binary")
    # This import is lazy, because most folders have no such file.
    from dotenv.parser import parse_stream

    variables, broken = {}, []
    for read in parse_stream(io.StringIO(text)):
        if read.key is not None and read.value is not None:
            variables[read.key] = read.value
        if read.error:
            broken.append(_line_of(read.original))
    return variables, broken


def _line_of(original: Original) -> int:
    # The parser includes blank lines before a statement in its text, and gives the line where that text begins.
    return original.line + len(original.string) - len(original.string.lstrip("\r\n"))


@dataclass(frozen=True)
class Program:
    """The folders, environment, secrets and models of the running program."""

    folders: Folders
    environment: Environment
    secrets: Secrets
    models: ModelBook


def create_program(
    folders: Folders, environment: Mapping[str, str], options: ModelOptions = NO_MODEL_OPTIONS
) -> Program:
    """Create the shared state of a program from the user's folders, the environment and the options for models."""
    secrets = Secrets()
    home = home_folder(environment)
    variables = Environment(environment, secrets, home)
    models = ModelBook(
        folders.config, home=home, options=options, environment=variables.of, own_variables=dict(environment)
    )
    return Program(folders, variables, secrets, models)
