"""Trust: what a suite would make happen on its reader's machine, and which suites the user has allowed to do so."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from workbench.suite.checks import Checks, PythonCheck, with_parts
from workbench.suite.disk import absolute, resolved
from workbench.suite.loading import SuiteFile
from workbench.suite.model import Mock, Suite
from workbench.suite.references import environment_names

_STORE_FORMAT = 1

_Need = TypeVar("_Need")

Settings = tuple[tuple[str, str], ...]
"""Names and values exactly as a suite writes them, sorted by name; variables stand in values by name (`$TOKEN`)."""


@dataclass(frozen=True, slots=True)
class Command:
    """A program with its arguments and the environment variables that it is given."""

    words: tuple[str, ...]
    env: Settings = ()

    def __str__(self) -> str:
        """One line as in a shell, of which no two commands have the same: `NAME=value program argument`."""
        program, *arguments = self.words
        shown = f"'{program}'" if "=" in program and shlex.quote(program) == program else shlex.quote(program)
        return " ".join((*_quoted(self.env), shown, *map(shlex.quote, arguments)))


@dataclass(frozen=True, slots=True)
class Address:
    """A server's address with the headers that it is sent; `transport` is empty where none is written."""

    url: str
    transport: str = ""
    headers: Settings = ()

    def __str__(self) -> str:
        """One line, the headers first, of which no two addresses have the same."""
        over = (f"over {self.transport}",) if self.transport else ()
        return " ".join((*_quoted(self.headers), shlex.quote(self.url), *over))


@dataclass(frozen=True, slots=True)
class Module:
    """A module that holds a server, and the server's name in it."""

    module: str
    object: str

    def __str__(self) -> str:
        return f"{self.module}:{self.object}"


@dataclass(frozen=True, slots=True)
class ModelNeed:
    """A model that is asked: its name there, its endpoint's address, and the variable that holds its key, if any."""

    model: str
    url: str
    key: str | None = None

    def __str__(self) -> str:
        """One line, of which no two models have the same."""
        key = f" with the key in {self.key}" if self.key is not None else ""
        return f"{shlex.quote(self.model)} at {shlex.quote(self.url)}{key}"


def _quoted(settings: Settings) -> Iterator[str]:
    for name, value in settings:
        yield f"{shlex.quote(name)}={shlex.quote(value)}"


@dataclass(frozen=True, slots=True)
class Needs:
    """Everything in a suite that needs trust, sorted and exactly as written. `folder` is where commands run and modules
    are looked for. `models` are those that the suite and the settings beside it name (`workbench.batches.trusting`)."""

    folder: Path
    commands: tuple[Command, ...] = ()
    modules: tuple[Module, ...] = ()
    urls: tuple[Address, ...] = ()
    python: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    models: tuple[ModelNeed, ...] = ()

    @property
    def nothing(self) -> bool:
        """Whether the suite can run without trust, whatever model it runs on."""
        return not (self.beside_models or self.models)

    @property
    def beside_models(self) -> bool:
        """Whether anything is needed beside models."""
        return bool(self.commands or self.modules or self.urls or self.python or self.environment)

    def lines(self, asked: Collection[ModelNeed] = ()) -> tuple[str, ...]:
        """What trust allows, one line each, for a person. The models that are about to be `asked` have a line each, the
        others one for all. The texts are the suite's own: show them as data."""
        others = tuple(model for model in self.models if model not in asked)
        return (
            *(f"run the command: {command} (in {self.folder})" for command in self.commands),
            *(f"import the module: {module} (from {self.folder})" for module in self.modules),
            *(f"open the address: {url}" for url in self.urls),
            *(f"call the Python function: {reference} (from {self.folder})" for reference in self.python),
            *(f"read the environment variable: {name}" for name in self.environment),
            *(f"ask the model {model}" for model in self.models if model in asked),
            *([f"ask, when chosen, {_together(others, 'more ' if asked else '')}"] if others else []),
        )

    @property
    def fingerprint(self) -> str:
        """SHA-256 in hex of everything but the folder: it changes when any of the needs does."""
        parts = asdict(self)
        del parts["folder"]
        if not self.models:
            del parts["models"]  # as it was before models needed trust
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _together(models: Sequence[ModelNeed], more: str) -> str:
    """Models in one line, those of the same endpoint and key together: neither is left out, since trust covers it."""
    at: dict[tuple[str, str | None], list[str]] = {}
    for model in models:
        at.setdefault((model.url, model.key), []).append(shlex.quote(model.model))
    places = (
        f"{', '.join(names)} at {shlex.quote(url)}{f' with the key in {key}' if key is not None else ''}"
        for (url, key), names in at.items()
    )
    return f"{len(models)} {more}{'model' if len(models) == 1 else 'models'}: {'; '.join(places)}"


def needs_trust(suite: Suite, path: Path) -> Needs:
    """What a suite that stands at `path` would start, import, open, call and read."""
    values = [value for server in suite.servers for value in (*server.env.values(), *server.headers.values())]
    return Needs(
        folder=path.absolute().parent,
        commands=_sorted(Command(server.command, _settings(server.env)) for server in suite.servers if server.command),
        modules=_sorted(Module(server.module, server.object or "mcp") for server in suite.servers if server.module),
        urls=_sorted(
            Address(server.url, server.transport or "", _settings(server.headers))
            for server in suite.servers
            if server.url
        ),
        python=_sorted(_python_references(suite)),
        environment=_sorted(name for value in values for name in environment_names(value)),
    )


def _sorted(needs: Iterator[_Need]) -> tuple[_Need, ...]:
    return tuple(sorted(set(needs), key=str))


def _settings(written: Mapping[str, str]) -> Settings:
    return tuple(sorted(written.items()))


def _python_references(suite: Suite) -> Iterator[str]:
    yield from _of_mocks(suite.mocks)
    for case in suite.cases:
        yield from _of_mocks(case.mocks)
        yield from (check.python for check in case.written_checks() if isinstance(check, PythonCheck))


def _of_mocks(mocks: tuple[Mock, ...]) -> Iterator[str]:
    for mock in mocks:
        if mock.python is not None:
            yield mock.python
        yield from _of_checks(mock.when)


def _of_checks(checks: Checks | None) -> Iterator[str]:
    for check in (checks or {}).values():
        yield from (part.python for part in with_parts(check) if isinstance(part, PythonCheck))


class TrustError(Exception):
    """Trust could not be remembered; the message says why."""


class TrustStore:
    """The suites that the user trusts, in one JSON file of the user's state folder.

    Suites below `bundled_folder` are trusted without asking. A suite is known by its path and the fingerprint of its
    needs. The path's folder is resolved but the file's own link is not, since the folder decides what is started.
    """

    def __init__(self, file: Path, bundled_folder: Path | None = None) -> None:
        self._file = file
        self._bundled_folder = bundled_folder.resolve() if bundled_folder is not None else None
        self.notice: str | None = None
        """What the user should know about the store: set when it was damaged, or could not be read."""

    def is_trusted(self, suite_path: Path, needs: Needs, *, of_history: bool = False) -> bool:
        """Whether the suite may do all that it needs; without needs, always. `of_history`: not all of that is what the
        file at the path says, and a history may come from anywhere."""
        if needs.nothing or (not of_history and self.is_bundled(suite_path)):
            return True
        return self._read().get(str(_known_as(suite_path))) == needs.fingerprint

    def trust(self, suite_path: Path, needs: Needs) -> None:
        """Remember that the suite may do exactly this; raises TrustError when the file cannot be written."""
        self._write({**self._read(), str(_known_as(suite_path)): needs.fingerprint})

    def is_bundled(self, suite_path: Path) -> bool:
        """Whether the suite lies below the bundled folder, by its path and by what that leads to."""
        folder = self._bundled_folder
        if folder is None:
            return False
        return _known_as(suite_path).is_relative_to(folder) and resolved(suite_path).is_relative_to(folder)

    def is_exempt(self, file: SuiteFile) -> bool:
        """Whether real executions of the suite are not asked about: it came with the program as it is."""
        return not file.as_then and self.is_bundled(file.path)

    def _read(self) -> dict[str, str]:
        try:
            content = self._file.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as error:
            self.notice = f"{self._file} cannot be read ({error.strerror}): no suite counts as trusted"
            return {}
        try:
            return _trusted_in(json.loads(content.decode("utf-8")))
        except (ValueError, RecursionError):
            self._set_aside()
            return {}

    def _set_aside(self) -> None:
        aside = self._file.with_name(f"{self._file.name}.damaged")
        try:
            self._file.replace(aside)
            self.notice = f"{self._file} was damaged and is now {aside.name}: suites are asked about again"
        except OSError as error:
            self.notice = f"{self._file} is damaged and cannot be moved ({error.strerror}): no suite counts as trusted"

    def _write(self, trusted: Mapping[str, str]) -> None:
        content = json.dumps({"format": _STORE_FORMAT, "trusted": dict(sorted(trusted.items()))}, indent=1)
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomically(self._file, content.encode("utf-8"))
        except OSError as error:
            raise TrustError(f"trust cannot be remembered in {self._file}: {error.strerror}") from error


def _known_as(suite_path: Path) -> Path:
    return resolved(absolute(suite_path).parent) / suite_path.name


def _trusted_in(document: object) -> dict[str, str]:
    """The paths and fingerprints of a store; raises ValueError when it is not one."""
    if isinstance(document, dict) and document.get("format") == _STORE_FORMAT:
        trusted = document.get("trusted")
        if isinstance(trusted, dict) and all(isinstance(fingerprint, str) for fingerprint in trusted.values()):
            return trusted
    raise ValueError("this is not a trust store")


def write_atomically(file: Path, content: bytes) -> None:
    """Replace a file as a whole, readable and writable by its owner only."""
    descriptor, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
        temporary.replace(file)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
