"""The state that the whole program shares: folders, environment, secrets, models.

Made once, at the start."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.config.folders import Folders, home_in, project_file
from workbench.config.model_book import NOTHING_SAID, ModelBook, ModelOptions
from workbench.config.models import ConfigError
from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass

if TYPE_CHECKING:
    from dotenv.parser import Original


DOTENV_NAME = ".env"

SERVED = "WORKBENCH_SERVED"
"""The variable by which `workbench serve` tells an app that it talks to a browser."""


class Environment:
    """The variables to which `$NAME` in a suite and a model's `api_key_env` refer; secret ones join `secrets`.

    A folder's variables are read again when a file that holds them has changed. `home` is the user's: no
    `workbench.toml` above it counts. Usable from any thread."""

    def __init__(self, own: Mapping[str, str], secrets: Secrets, home: Path | None = None) -> None:
        self.own = own
        self._secrets = secrets
        self.home = home
        self._files: dict[Path, tuple[tuple[int, int], Mapping[str, str]]] = {}
        for name, value in own.items():
            secrets.guess(name, value)

    def __getstate__(self) -> dict[str, object]:
        """For worker processes, which get the variables as they are now."""
        return {**self.__dict__, "own": dict(self.own)}

    def of(self, folder: Path) -> Mapping[str, str]:
        """Return the variables for the suites in a folder.

        The process's own come first, then those of the folder's `.env`, then those of the one next to its
        `workbench.toml`. Raises ConfigError if a `.env` cannot be read or understood."""
        settings = project_file(folder, self.home)
        folders = [folder.resolve(), *([settings.parent] if settings is not None else [])]
        read = []
        for place in dict.fromkeys(folders):
            read.append(self._read(place / DOTENV_NAME))
        if not any(read):
            return self.own
        merged: dict[str, str] = {}
        for variables in (self.own, *read):
            merged = {**variables, **merged}
        return merged

    def _read(self, file: Path) -> Mapping[str, str]:
        if not file.is_file():  # a folder of that name is a virtual environment
            return {}
        from workbench.config.read_only import is_read_only  # on use: most folders have no such file

        if is_read_only():  # what only shows needs no keys
            return {}
        try:
            status = file.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            known = self._files.get(file)
            if known is not None and known[0] == stamp:
                return known[1]
            variables, broken = _variables_in(file.read_bytes().decode("utf-8-sig"))
        except OSError as error:
            raise ConfigError(f"{file}: cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise ConfigError(f"{file}: is not text with NAME=value lines: write it again, in UTF-8") from error
        for name, value in variables.items():
            self._secrets.add_from_file(name, value)
        if broken:  # without quoting the line, which may be a key
            raise ConfigError(
                *(f"{file}:{line}: is not NAME=value: correct it, including its quotes" for line in broken)
            )
        self._files[file] = (stamp, variables)
        return variables


def _variables_in(text: str) -> tuple[Mapping[str, str], list[int]]:
    """Return the variables, and the lines (from 1) that hold none.

    Raises ValueError for bytes that are no text."""
    if "\0" in text:
        raise ValueError("binary")
    # Imported here: most folders have no such file.
    from dotenv.parser import parse_stream

    found = tuple(parse_stream(io.StringIO(text)))
    variables = {}
    for read in found:
        if read.key is not None and read.value is not None:
            variables[read.key] = read.value
    return variables, [_line_of(read.original) for read in found if read.error]


def _line_of(original: Original) -> int:
    """Return the parser counts from where it stopped before, blank lines included."""
    return original.line + len(original.string) - len(original.string.lstrip("\r\n"))


@dataclass(frozen=True)
class Program:
    """The folders, environment, secrets and models of the running program."""

    folders: Folders
    environment: Environment
    secrets: Secrets
    models: ModelBook


def program_in(folders: Folders, environment: Mapping[str, str], options: ModelOptions = NOTHING_SAID) -> Program:
    """Return the program with the user's folders, the environment and the command line's options for models."""
    secrets = Secrets()
    home = home_in(environment)
    return Program(
        folders, Environment(environment, secrets, home), secrets, ModelBook(folders.config, home=home, options=options)
    )
