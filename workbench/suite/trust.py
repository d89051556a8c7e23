"""What a suite needs from the user's machine, and the store of the suites that the user trusts."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TypeGuard, TypeVar

from workbench.checks.check import Checks, with_parts
from workbench.config.agents import KNOWN_AGENTS
from workbench.config.variables import environment_names
from workbench.dataclasses import dataclass
from workbench.numerals import seconds_text
from workbench.suite.files import LockedError, absolute, locked, resolved, write_atomically
from workbench.suite.model import Mock, ProviderTool, Subject, Suite, agents_of, servers_of
from workbench.suite.server_model import Answer, Server, texts_with_variables
from workbench.suite.suite_file import SuiteFile

_STORE_FORMAT = 1

LOCK_TIMEOUT_S = 5.0
"""Longest wait in seconds for another program that writes the trust file."""

_Need = TypeVar("_Need")

Settings = tuple[tuple[str, str], ...]
"""Names and values as written in the suite, sorted by name. Variables (`$TOKEN`) are not replaced."""


@dataclass(frozen=True, slots=True)
class AgentSetup:
    """How an agent is set up, apart from its command: preset, mode, tools, folder and environment variables.

    The agent works in a copy of `folder`, a resolved path. If the path is empty, its working folder is empty.
    `variables` are the variables of the user's environment that the agent's preset passes on."""

    preset: str
    mode: str
    builtin: str
    folder: str
    variables: tuple[str, ...]

    def __str__(self) -> str:
        parts = [f"set up as {self.preset}"] if self.preset else []
        if self.mode:
            parts.append(f"in the mode {shlex.quote(self.mode)}")
        parts.append({"off": "its own tools off", "forbid": "its own tools refused"}.get(self.builtin, ALLOWED_TOOLS))
        if self.folder:
            parts.append(f"in a copy of {shlex.quote(self.folder)}")
        if self.variables:
            parts.append(f"with those that are set of {', '.join(self.variables)}")
        return ", ".join(parts)


ALLOWED_TOOLS = "its own tools, such as a shell, allowed"


@dataclass(frozen=True, slots=True)
class Command:
    """A command that a suite starts: a program with arguments and environment variables.

    `folder` is the resolved path of the server's `cwd`. It is empty for a command that runs in the suite's folder.
    `agent` is set for an agent, which runs in its own folder."""

    words: tuple[str, ...]
    env: Settings = ()
    folder: str = ""
    agent: AgentSetup | None = None

    def __str__(self) -> str:
        """Return one line in shell syntax, unique to this command: `NAME=value program argument (in folder)`."""
        program, *arguments = self.words
        shown = shlex.quote(program)
        # `shlex.quote` does not quote `A=b`, so a program with such a name would look like a variable.
        if "=" in program and shown == program:
            shown = f"'{program}'"
        words = [*_quoted(self.env), shown, *map(shlex.quote, arguments)]
        if self.folder:
            words.append(f"(in {self.folder})")
        if self.agent is not None:
            words.append(f"(an agent, {self.agent})")
        return " ".join(words)


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a server with its headers and login. `transport` is empty if the suite names none.

    `auth` has the keys of the login: `auth` itself, `client_id`, `client_secret`, `issuer` and `scope`."""

    url: str
    transport: str = ""
    headers: Settings = ()
    auth: Settings = ()

    def __str__(self) -> str:
        """Return one line, with the headers first. The line is unique to this address."""
        words = [*_quoted(self.headers), shlex.quote(self.url)]
        if self.transport:
            words.append(f"over {self.transport}")
        return " ".join(words) + self._login_text()

    def _login_text(self) -> str:
        keys = {key: shlex.quote(value) for key, value in self.auth}
        if not keys:
            return ""
        text = " with your OAuth login"
        if keys["auth"] == "client_credentials":
            text = " with the OAuth login of a machine"
        if "scope" in keys:
            text += f" for the scope {keys['scope']}"
        if "client_id" in keys:
            text += f" as the client {keys['client_id']}"
        place = "the authorization server that it names"
        if "issuer" in keys:
            place = f"{keys['issuer']} alone"
        text += f", from {place}"
        if "client_secret" in keys:
            text += f", which gets the secret {keys['client_secret']}"
        return text


@dataclass(frozen=True, slots=True)
class Module:
    """A Python module with a server. `object` is the server's name in the module."""

    module: str
    object: str

    def __str__(self) -> str:
        return f"{self.module}:{self.object}"


@dataclass(frozen=True, slots=True, order=True)
class CodeFile:
    """A file of Python code that a suite imports: its path relative to the suite's folder, and its SHA-256 in hex."""

    path: str
    sha256: str


@dataclass(frozen=True, slots=True)
class ModelNeed:
    """A model that a suite asks: its name at the endpoint, the endpoint's address, and everything that is sent there.

    `key` is the variable with the key, and `command` is the program that prints the key. `headers` and `query` may
    still contain variables. `credentials` describes cloud credentials other than a key."""

    model: str
    url: str
    key: str | None = None
    headers: Settings = ()
    query: Settings = ()
    command: tuple[str, ...] = ()
    credentials: str = ""

    def __str__(self) -> str:
        """Return one line that is unique to this model."""
        return f"{shlex.quote(self.model)} at {self.endpoint}"

    @property
    def endpoint(self) -> str:
        """The address and everything that requests send there, such as headers."""
        parts = []
        if self.key is not None:
            parts.append(f"the key in {self.key}")
        if self.command:
            parts.append(f"the key that {shlex.join(self.command)} prints")
        if self.credentials:
            parts.append(self.credentials)
        for noun, settings in (("header", self.headers), ("query", self.query)):
            if settings:
                parts.append(f"the {noun} {' '.join(_quoted(settings))}")
        if not parts:
            return shlex.quote(self.url)
        return f"{shlex.quote(self.url)} with {' and '.join(parts)}"


@dataclass(frozen=True, slots=True)
class OwnCall:
    """A call that a suite makes before or after runs: the tool, and the arguments as JSON."""

    tool: str
    arguments: str

    def __str__(self) -> str:
        return f"{self.tool} {self.arguments}"


@dataclass(frozen=True, slots=True)
class ServerRoots:
    """The folders that a server may use, with links resolved."""

    server: str
    folders: tuple[str, ...]

    def __str__(self) -> str:
        return f"{shlex.quote(self.server)} {shlex.join(self.folders)}"


def _quoted(settings: Settings) -> Iterator[str]:
    for name, value in settings:
        yield f"{shlex.quote(name)}={shlex.quote(value)}"


@dataclass(frozen=True, slots=True)
class SuiteNeeds:
    """Everything in a suite that needs trust, sorted and exactly as written.

    Commands run in `folder`, and modules are found there. `models` are the models that the suite and its settings file
    name (`workbench.evaluation.approval`). `files` is the code of `modules` and `python`
    (`workbench.tools.python_code`). `passed` are the shell variables that the suite's commands get without naming them
    (`workbench.config.passed_variables`). `calls` are the calls that the suite itself makes (`setup` and `final`), if a
    server may answer them. `provider_tools` are tools that model providers would run. `roots` are folders that servers
    may use. `answers` are replies to requests of servers."""

    folder: Path
    commands: tuple[Command, ...] = ()
    modules: tuple[Module, ...] = ()
    urls: tuple[Address, ...] = ()
    python: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    models: tuple[ModelNeed, ...] = ()
    files: tuple[CodeFile, ...] = ()
    passed: tuple[str, ...] = ()
    calls: tuple[OwnCall, ...] = ()
    provider_tools: tuple[str, ...] = ()
    roots: tuple[ServerRoots, ...] = ()
    answers: tuple[str, ...] = ()

    @property
    def nothing(self) -> bool:
        """Whether the suite can run without trust."""
        return not (self.beside_models or self.models or self.provider_tools)

    @property
    def beside_models(self) -> bool:
        """Whether the suite needs anything other than models and their providers' tools."""
        return bool(self.commands or self.modules or self.urls or self.python or self.environment)

    @property
    def code(self) -> tuple[str, ...]:
        """The names of the modules that servers and functions would import."""
        names = [need.module for need in self.modules]
        names += [reference.partition(":")[0] for reference in self.python]
        return tuple(dict.fromkeys(names))

    def lines(self, models: Collection[ModelNeed] = ()) -> tuple[str, ...]:
        """Return one line for each thing that the suite may do if the user trusts it.

        `models` holds the models of the coming run. Each of them has its own line, and all other models share one line.
        The texts come from the suite, so do not interpret markup in them."""
        lines = []
        for command in self.commands:
            where = "" if command.folder or command.agent else f" (in {self.folder})"
            lines.append(f"run the command: {command}{where}")
        for module in self.modules:
            lines.append(f"import the module: {module} (from {self.folder})")
        for url in self.urls:
            lines.append(f"open the address: {url}")
        for reference in self.python:
            lines.append(f"call the Python function: {reference} (from {self.folder})")
        for name in self.environment:
            lines.append(f"read the environment variable: {name}")
        for call in self.calls[:_MAX_SHOWN_CALLS]:
            lines.append(f"call the tool: {call} (for `setup` or `final`)")
        if len(self.calls) > _MAX_SHOWN_CALLS:
            tools = dict.fromkeys(call.tool for call in self.calls[_MAX_SHOWN_CALLS:])
            more = f"{len(self.calls) - _MAX_SHOWN_CALLS} more calls for `setup` and `final`"
            lines.append(f"make {more}: of {', '.join(tools)}")
        for roots in self.roots:
            lines.append(f"let a server use the folders: {roots}")
        for answer in self.answers[:_MAX_SHOWN_CALLS]:
            lines.append(f"answer what a server asks: {answer}")
        if len(self.answers) > _MAX_SHOWN_CALLS:
            lines.append(f"give {len(self.answers) - _MAX_SHOWN_CALLS} more answers to what servers ask")
        for tool in self.provider_tools:
            lines.append(f"let the provider of a model run its own tool: {tool}")
        if self.passed:
            lines.append(f"give its commands these variables of your shell: {', '.join(self.passed)}")
        others = []
        for words in dict.fromkeys(model.command for model in self.models if model in models):
            if words:
                lines.append(f"run the command: {shlex.join(words)} (beside its workbench.toml), which prints a key")
        for model in self.models:
            if model in models:
                lines.append(f"ask the model {model}")
            else:
                others.append(model)
        if others:
            more = "more " if models else ""
            lines.append(f"ask, if chosen, {_grouped_by_endpoint(others, more)}")
        return tuple(lines)

    @property
    def fingerprint(self) -> str:
        """The SHA-256 in hex of all needs except `folder`, `files` and `passed`.

        `files` and `passed` are compared separately."""
        parts = asdict(self)
        del parts["folder"], parts["files"], parts["passed"]
        # Earlier versions lacked some of these parts. An empty part is left out, so that suites without it keep their
        # fingerprint.
        for command in parts["commands"]:
            for name in ("folder", "agent"):
                if not command[name]:
                    del command[name]
        for address in parts["urls"]:
            if not address["auth"]:
                del address["auth"]
        # Earlier versions lacked headers, query, key command and credentials. A model without these keeps its
        # fingerprint.
        for model in parts["models"]:
            for name in ("headers", "query", "command", "credentials"):
                if not model[name]:
                    del model[name]
        if not self.models:
            del parts["models"]
        if not self.calls:
            del parts["calls"]
        for name in ("provider_tools", "roots", "answers"):
            if not parts[name]:
                del parts[name]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


_MAX_SHOWN_CALLS = 10
"""Maximum number of the suite's own calls, and of answers to servers, that are listed with one line each."""


def _grouped_by_endpoint(models: Sequence[ModelNeed], more: str) -> str:
    """Return models on one line, grouped by endpoint and key, because the user trusts both.

    `more` stands before the word "models"."""
    at: dict[str, list[str]] = {}
    for model in models:
        at.setdefault(model.endpoint, []).append(shlex.quote(model.model))
    places = []
    for endpoint, names in at.items():
        places.append(f"{', '.join(names)} at {endpoint}")
    noun = "model" if len(models) == 1 else "models"
    return f"{len(models)} {more}{noun}: {'; '.join(places)}"


@dataclass(frozen=True)
class TypedServer:
    """A server that the user typed into the app.

    `now` is its present form. `before` is its earlier form, or `None` if the user added it."""

    now: Server
    before: Server | None = None

    @property
    def is_trusted_by_typing(self) -> bool:
        """Whether the server is trusted because the user typed it.

        A server with `auth` is not trusted for this reason, because the user did not type its login."""
        return self.now.auth is None and (self.before is None or self.before.auth is None)


def split_by_typing(needs: SuiteNeeds, suite: Suite, typed: Collection[TypedServer]) -> tuple[SuiteNeeds, SuiteNeeds]:
    """Split the needs of a suite in which the user typed servers.

    Returns the needs before the user typed, and the present needs without the servers that the user added. Both include
    the calls that the suite makes itself and the answers to servers, because the user did not type these."""
    before: list[Server] = []
    others: list[Server] = []
    for server in suite.servers:
        of_server = next((each for each in typed if each.is_trusted_by_typing and each.now == server), None)
        if of_server is None:
            before.append(server)
            others.append(server)
        elif of_server.before is not None:
            before.append(of_server.before)
            others.append(server)
    return _with_servers(needs, suite, before), _with_servers(needs, suite, others)


def _with_servers(needs: SuiteNeeds, suite: Suite, servers: Sequence[Server]) -> SuiteNeeds:
    """Return needs with the given servers in place of the suite's servers. `files` stays unchanged."""
    found = needs_trust(suite.model_copy(update={"servers": tuple(servers)}), needs.folder / "suite.toml")
    passed = needs.passed if found.commands else ()
    return replace(
        needs,
        commands=found.commands,
        modules=found.modules,
        urls=found.urls,
        environment=found.environment,
        roots=found.roots,
        passed=passed,
    )


def needs_trust(suite: Suite, path: Path) -> SuiteNeeds:
    """Return what a suite at `path` needs trust for, such as commands, modules, addresses and environment variables."""
    agents = agents_of(suite)
    commands = [agent_need(agent, path.absolute().parent) for agent in agents]
    modules: list[Module] = []
    addresses: list[Address] = []
    variables: list[str] = []
    for agent in agents:
        for value in agent.env.values():
            variables += environment_names(value)
    for server in servers_of(suite):
        match server_need(server, path.absolute().parent):
            case Command() as command:
                commands.append(command)
            case Module() as module:
                modules.append(module)
            case Address() as address:
                addresses.append(address)
        for value in texts_with_variables(server):
            variables += environment_names(value)
    return SuiteNeeds(
        folder=path.absolute().parent,
        commands=_sorted(commands),
        modules=_sorted(modules),
        urls=_sorted(addresses),
        python=_sorted(_python_references(suite)),
        environment=_sorted(variables),
        calls=_sorted(_own_calls(suite)),
        provider_tools=_sorted(map(provider_tool_need, suite.provider_tools)),
        roots=_sorted(_roots(suite, path.absolute().parent)),
        answers=_sorted(_answers(suite)),
    )


def _roots(suite: Suite, folder: Path) -> Iterator[ServerRoots]:
    for server in servers_of(suite):
        if roots := roots_need(server, folder):
            yield roots


def roots_need(server: Server, folder: Path) -> ServerRoots | None:
    """Return what the user must approve for the roots of a server, or `None` if the server has no roots.

    `folder` is the folder of the suite."""
    if not server.roots:
        return None
    return ServerRoots(server.name, tuple(str(resolved(folder / root)) for root in server.roots))


def _answers(suite: Suite) -> Iterator[str]:
    if not any(server.answers for server in servers_of(suite)):
        return
    answers = [*suite.answers]
    for case in suite.cases:
        answers += case.answers
    for answer in answers:
        reply: object = answer.text if answer.content is None else answer.content
        words = [answer.to, answer.tool or "", answer.action]
        if reply is not None:
            words.append(json.dumps(reply, ensure_ascii=False, sort_keys=True))
        yield " ".join(filter(None, words))


def provider_tool_need(tool: ProviderTool) -> str:
    """Return one line that is unique to this provider tool: its name, and its form in requests to each API."""
    return f"{shlex.quote(tool.name)} {json.dumps(tool.forms, ensure_ascii=False, sort_keys=True)}"


def _own_calls(suite: Suite) -> Iterator[OwnCall]:
    if not any(server_need(server, Path()) for server in servers_of(suite)):
        return
    for case in suite.cases:
        for _, call in case.own_calls():
            yield OwnCall(call.tool, json.dumps(call.args, ensure_ascii=False, sort_keys=True))


def server_need(server: Server, folder: Path) -> Command | Module | Address | None:
    """Return the command, module or address of a server that the user must trust, or `None` if it has none.

    `folder` is the suite's folder."""
    if server.command:
        place = ""
        if server.cwd is not None:
            place = str(server_folder(server, folder))
        return Command(server.command, _settings(server.env), place)
    if server.module:
        return Module(server.module, server.object or "mcp")
    if server.url:
        return Address(server.url, server.transport or "", _settings(server.headers), _login_settings(server))
    return None


def agent_need(agent: Subject, folder: Path) -> Command:
    command = agent.started_command
    assert command is not None
    known = KNOWN_AGENTS.get(agent.agent or "")
    copied = "" if agent.folder is None else str(resolved(folder / agent.folder))
    variables = () if known is None else known.variables
    setup = AgentSetup(agent.agent or "", agent.mode or "", agent.builtin, copied, variables)
    return Command(command, _settings(agent.env), agent=setup)


def server_folder(server: Server, folder: Path) -> Path:
    """Return the resolved folder in which the command of a server runs, for a suite in `folder`.

    The folder need not exist. `~` at the beginning of `cwd` is the user's home."""
    if server.cwd is None:
        return folder
    try:
        return resolved(folder / Path(server.cwd).expanduser())
    except RuntimeError:
        # Without a user of that name, `~name` is the name of a folder.
        return resolved(folder / server.cwd)


def _login_settings(server: Server) -> Settings:
    keys = {}
    for key in ("auth", "client_id", "client_secret", "issuer", "scope"):
        value = getattr(server, key)
        if value is not None:
            keys[key] = value
    return _settings(keys)


def _sorted(needs: Iterable[_Need]) -> tuple[_Need, ...]:
    return tuple(sorted(set(needs), key=str))


def _settings(written: Mapping[str, str]) -> Settings:
    return tuple(sorted(written.items()))


def _python_references(suite: Suite) -> Iterator[str]:
    if suite.subject is not None and suite.subject.python is not None:
        yield suite.subject.python
    yield from _of_mocks(suite.mocks)
    yield from _of_answers(suite.answers)
    for variant in suite.variants:
        yield from _of_mocks(variant.mocks)
    for case in suite.cases:
        yield from _of_mocks(case.mocks)
        yield from _of_answers(case.answers)
        for version in case.versions:
            for check in version.written_checks():
                if check.function is not None:
                    yield check.function


def _of_mocks(mocks: tuple[Mock, ...]) -> Iterator[str]:
    for mock in mocks:
        if mock.python is not None:
            yield mock.python
        yield from _of_checks(mock.when)


def _of_answers(answers: tuple[Answer, ...]) -> Iterator[str]:
    for answer in answers:
        yield from _of_checks(answer.when)


def _of_checks(checks: Checks | None) -> Iterator[str]:
    for check in (checks or {}).values():
        for part in with_parts(check):
            if part.function is not None:
                yield part.function


class TrustError(Exception):
    """Trust could not be stored. The message gives the reason."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """The trust in one suite: the fingerprint of its needs, and its code files.

    `files` is `None` in an entry from an earlier version of Workbench that did not compare the content of files.
    `passed` are the shell variables that the suite's commands may get."""

    fingerprint: str
    files: tuple[CodeFile, ...] | None = None
    passed: tuple[str, ...] = ()


class TrustStore:
    """The suites that the user trusts, in one JSON file of the user's state folder.

    Suites below `bundled_folder` are trusted without asking. A suite is identified by its path, the fingerprint of its
    needs and the content of its code files. Concurrent writers wait for each other."""

    def __init__(self, file: Path, bundled_folder: Path | None = None) -> None:
        self._file = file
        self._bundled_folder = bundled_folder
        if bundled_folder is not None:
            self._bundled_folder = bundled_folder.resolve()
        self.notice: str | None = None
        """A message for the user if the store was damaged or could not be read."""

    def is_trusted(self, suite_path: Path, needs: SuiteNeeds, *, of_history: bool = False) -> bool:
        """Return whether the suite may do everything that it needs. A suite without needs is always trusted.

        `of_history` is true if some needs come from a history and not from the file at the path."""
        # A history may come from anywhere, so a bundled path in it proves nothing.
        if needs.nothing or (not of_history and self.is_bundled(suite_path)):
            return True
        entry = self._read().get(str(_known_as(suite_path)))
        if entry is None or entry.fingerprint != needs.fingerprint:
            return False
        # A variable that is no longer set needs no new trust.
        if not set(needs.passed) <= set(entry.passed):
            return False
        return entry.files is None or entry.files == needs.files

    def changed_files(self, suite_path: Path, needs: SuiteNeeds) -> tuple[str, ...]:
        """Return the paths of the code files that changed since the suite was trusted.

        The result is empty if the suite was never trusted or if its other needs changed."""
        entry = self._read().get(str(_known_as(suite_path)))
        if entry is None or entry.files is None or entry.fingerprint != needs.fingerprint:
            return ()
        return tuple(sorted({file.path for file in {*entry.files} ^ {*needs.files}}))

    def trust(self, suite_path: Path, needs: SuiteNeeds) -> None:
        """Store the user's trust in exactly the `needs` of the suite.

        Raises TrustError if the file cannot be written."""
        self._update(str(_known_as(suite_path)), needs, lambda _entry: True)

    def add_files(self, suite_path: Path, needs: SuiteNeeds) -> None:
        """Complete an entry that an earlier version of Workbench wrote without code files: store the present files.

        Raises TrustError if the file cannot be written."""
        known_as = str(_known_as(suite_path))

        def lacks_files(entry: _Entry | None) -> bool:
            return entry is not None and entry.files is None and entry.fingerprint == needs.fingerprint

        if needs.files and lacks_files(self._read().get(known_as)):
            self._update(known_as, needs, lacks_files)

    def is_bundled(self, suite_path: Path) -> bool:
        """Return whether both the suite's path and the target of its links are below the bundled folder."""
        folder = self._bundled_folder
        if folder is None:
            return False
        return _known_as(suite_path).is_relative_to(folder) and resolved(suite_path).is_relative_to(folder)

    def is_exempt(self, file: SuiteFile) -> bool:
        """Return whether a suite may execute without approval: it is bundled and was read from its file."""
        return not file.is_historical and self.is_bundled(file.path)

    def _read(self) -> dict[str, _Entry]:
        # Reading needs no lock, because the file is always replaced as a whole. Only renaming a damaged file needs one.
        try:
            return self._load()
        except ValueError:
            pass
        try:
            with self._alone():
                return self._load_or_set_aside()
        except (LockedError, OSError) as error:
            self.notice = f"{self._file} is damaged and cannot be moved ({error}): no suite is trusted"
            return {}

    def _load(self) -> dict[str, _Entry]:
        try:
            content = self._file.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as error:
            self.notice = f"{self._file} cannot be read ({error.strerror}): no suite is trusted"
            return {}
        try:
            return _trusted_in(json.loads(content.decode("utf-8")))
        except RecursionError as error:
            raise ValueError("the trust store is nested too deeply") from error

    def _load_or_set_aside(self) -> dict[str, _Entry]:
        """Read the store, or rename it if it is damaged.

        Call this under the lock, because another program may have just replaced a damaged store by a new store."""
        try:
            return self._load()
        except ValueError:
            aside = self._file.with_name(f"{self._file.name}.damaged")
            try:
                self._file.replace(aside)
                self.notice = f"{self._file} was damaged and renamed to {aside.name}: the app asks about suites again"
            except OSError as error:
                why = error.strerror
                self.notice = f"{self._file} is damaged and cannot be moved ({why}): no suite is trusted"
            return {}

    def _alone(self) -> AbstractContextManager[None]:
        return locked(self._file.with_name(f"{self._file.name}.lock"), LOCK_TIMEOUT_S)

    def _update(self, known_as: str, needs: SuiteNeeds, condition: Callable[[_Entry | None], bool]) -> None:
        """Write an entry for a suite if `condition` returns true for the stored entry.

        The entry is read under the lock."""
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._alone():
                entries = self._load_or_set_aside()
                if condition(entries.get(known_as)):
                    entries[known_as] = _Entry(needs.fingerprint, needs.files, needs.passed)
                    write_atomically(self._file, _document(entries).encode("utf-8"))
        except LockedError:
            locked = f"another program has locked it for {seconds_text(LOCK_TIMEOUT_S)}"
            raise TrustError(f"trust cannot be stored in {self._file}: {locked}") from None
        except OSError as error:
            raise TrustError(f"trust cannot be stored in {self._file}: {error.strerror}") from error


def _known_as(suite_path: Path) -> Path:
    # The folder decides which commands and modules run, so its links are resolved. A link of the file itself is not
    # resolved: the same file, linked in two folders, starts different commands.
    return resolved(absolute(suite_path).parent) / suite_path.name


def _document(entries: Mapping[str, _Entry]) -> str:
    # The files of suites have a separate key. Earlier versions ignore it and still read the fingerprints.
    trusted: dict[str, str] = {}
    files: dict[str, dict[str, str]] = {}
    passed: dict[str, str] = {}
    for path, entry in sorted(entries.items()):
        trusted[path] = entry.fingerprint
        if entry.files is not None:
            files[path] = {file.path: file.sha256 for file in entry.files}
        if entry.passed:
            passed[path] = " ".join(entry.passed)
    document = {"format": _STORE_FORMAT, "trusted": trusted, "files": files, "passed": passed}
    return json.dumps(document, indent=1)


def _trusted_in(document: object) -> dict[str, _Entry]:
    if isinstance(document, dict) and document.get("format") == _STORE_FORMAT:
        trusted, files, passed = document.get("trusted"), document.get("files", {}), document.get("passed", {})
        of_files = isinstance(files, dict) and all(map(_is_texts, files.values()))
        if _is_texts(trusted) and of_files and _is_texts(passed):
            entries = {}
            for path, fingerprint in trusted.items():
                names = tuple(passed.get(path, "").split())
                entries[path] = _Entry(fingerprint, _files_in(files.get(path)), names)
            return entries
    raise ValueError("the file is not a trust store")


def _is_texts(value: object) -> TypeGuard[dict[str, str]]:
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())


def _files_in(files: Mapping[str, str] | None) -> tuple[CodeFile, ...] | None:
    if files is None:
        return None
    return tuple(sorted(CodeFile(path, sha256) for path, sha256 in files.items()))
