"""MCP servers as tables of a suite, read from the configurations of other clients or typed by the user.

A suite must not contain a secret. In a client's configuration, these literal values become variables: values of `env`,
of headers, and of arguments whose names suggest a secret. In a typed server, only values of `env` that may be secret
become variables."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import chain, count
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from workbench.config.secrets import names_a_secret, passwords_in
from workbench.config.typed_keys import looks_like_key
from workbench.config.variables import environment_names
from workbench.dataclasses import dataclass
from workbench.limits import MAX_CLIENT_FILE_BYTES
from workbench.suite.problems import did_you_mean
from workbench.suite.render import Table

# Servers that the user types: a command as in a shell, or an address.

_STARTER = re.compile(r"uvx?|pipx|npx|npm|pnpm|bunx?|deno|node|python[\d.]*|docker|podman|tool|run|exec|dlx|env|sudo")
_GENERIC_NAME = re.compile(
    r"\.{0,2}|index|main|__main__|server|mcp|mcp-server|app|cli|start|dist|build|out|src|lib|bin", re.IGNORECASE
)
"""Matches the names of files and folders that any server may have."""
_OF_SERVERS = re.compile(r"^(mcp[-_])?(server[-_])?|[-_](mcp|server)(?=$|[-_])")


def server_at(url: str) -> Table:
    """Return the table of the MCP server at an address.

    Raises ValueError for a text that is not an address."""
    try:
        host = urlsplit(url).hostname
    except ValueError:
        host = None
    if not re.match(r"https?:", url):
        raise ValueError("a URL of an MCP server must begin with http:// or https://")
    if not host:
        raise ValueError("the URL names no host")
    return {"name": host, "url": url}


def words_of(command: str) -> list[str]:
    """Split a command into words, as a shell does.

    Raises ValueError if there are no words."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ValueError(f"the command cannot be split into words: {str(error).lower()}") from None
    if not words:
        raise ValueError("a command or a URL is needed")
    return words


def server_name(command: Sequence[str]) -> str:
    """Return a name for the server that a command starts: `git` for `uvx mcp-server-git --repository .`."""
    words = []
    for word in command:
        if not word.startswith("-"):
            words.append(re.split(r"[/\\]", word))
    words = words or [[command[0]]]
    # The name comes from the first word that is not a launcher such as `npx` or `python`. If all words are launchers,
    # it comes from the first word.
    program = words[0]
    for path in words:
        if not _STARTER.fullmatch(path[-1]):
            program = path
            break
    # The last parts of a path often say nothing, as in `dist/index.js`. The name is the last part that is not generic.
    names = [re.sub(r"\.(py|js|mjs|ts|exe)$|(?<=.)@[\w.^~]+$", "", part) for part in program]
    name = names[-1]
    for each in reversed(names):
        if not _GENERIC_NAME.fullmatch(each):
            name = each
            break
    return _OF_SERVERS.sub("", name).lstrip("@") or name


_TRANSPORTS = {"http": "http", "streamable-http": "http", "streamableHttp": "http", "sse": "sse"}
_REFERENCE = re.compile(r"\$\{([^{}]*)\}|\A\$([A-Za-z_]\w*)\Z", re.ASCII)
"""Matches a variable inside a text, or a text that is one variable. Other dollar signs may be part of a password."""
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_OPTION = re.compile(r"(--?[A-Za-z][\w.-]*)=(.*)", re.DOTALL)
_HEADER = re.compile(r"([A-Za-z][A-Za-z0-9-]*):\s*(.+)", re.DOTALL)
_SCHEMES = ("bearer", "basic", "token", "apikey")
_SCHEME = re.compile(rf"({'|'.join(_SCHEMES)})\s+(.+)", re.DOTALL | re.IGNORECASE)
_NO_SECRETS = ("accept", "content-type", "user-agent")
"""The headers whose values are not secret."""


class _Variable(str):
    """The name of a variable, among the literal parts of a text."""

    __slots__ = ()


class ClientConfigError(ValueError):
    """A configuration of an MCP client cannot be used.

    The message has the place and the reason. It never quotes a value, because a value may be a secret."""


@dataclass(frozen=True)
class FoundServers:
    """Servers as tables of a suite, without secrets.

    `variables` maps the variables in the tables to their values in the configuration. A value is `None` if the
    configuration only refers to the variable. `notes` are sentences about settings that were left out."""

    tables: tuple[Table, ...]
    variables: Mapping[str, str | None] = field(repr=False)
    notes: tuple[str, ...] = ()


def server_of_text(text: str, env: Sequence[str] = (), cwd: str | None = None) -> FoundServers:
    """Return the server that a text describes: a URL, or a command.

    Raises ClientConfigError."""
    if re.match(r"[a-z]+:", text):
        return typed_server(None, text, env, cwd)
    return typed_server(text, None, env, cwd)


def typed_server(
    command: str | Sequence[str] | None, url: str | None, env: Sequence[str] = (), cwd: str | None = None
) -> FoundServers:
    """Return the server that a command starts, or that a URL names.

    `command` is a shell line or a list of words, either of which may start with assignments `NAME=value`. `env` holds
    more assignments, or `NAME` alone for a variable of the shell. `cwd` is the folder of the command, as suites write
    it. Values that may be secret become variables.

    Raises ClientConfigError if there is neither a command nor a URL, or if a URL comes with `env` or `cwd`."""
    try:
        if url is not None:
            if env or cwd is not None:
                raise ClientConfigError(
                    "only a server that a command starts can have variables and a folder: omit them"
                )
            server = {"url": url}
            name = str(server_at(url)["name"])
            if urlsplit(url).path.rstrip("/").endswith("/sse"):
                server["type"] = "sse"
            return read_servers({name: server}, Reading("--url", None, Path()))
        words = words_of(command or "") if command is None or isinstance(command, str) else [*command]
    except ValueError as error:
        raise ClientConfigError(str(error).replace("--url.url", "--url")) from None
    given: dict[str, str] = {}
    while len(words) > 1 and (match := _ASSIGNMENT.fullmatch(words[0])):
        given[match[1]] = match[2]
        del words[0]
    given |= dict(map(_typed_variable, env))
    entry: dict[str, object] = {"command": words[0], "args": words[1:], "env": given}
    if cwd is not None:
        entry["cwd"] = cwd
    return read_servers({server_name(words): entry}, Reading("--command", None, Path(), typed=True))


def _typed_variable(text: str) -> tuple[str, str]:
    """Return the name and the value of an assignment `NAME=value`.

    For `NAME` alone, the value is a reference to the shell's variable."""
    if (match := _ASSIGNMENT.fullmatch(text)) is not None:
        return match[1], match[2]
    if _NAME.fullmatch(text):
        return text, f"${text}"
    # The message does not quote the text because the text may hold a secret.
    raise ClientConfigError("write a variable as NAME=value, or as NAME for a variable of your shell")


@dataclass
class Reading:
    """The variables and notes collected while a client's servers are read.

    Messages begin with `where`. `root` is the client's workspace folder. `folder` is the suite's folder. With `typed`,
    values of `env` become variables only if they may be secret."""

    where: str
    root: Path | None
    folder: Path
    variables: dict[str, str | None] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    typed: bool = False

    def variable(self, server: str, name: str, value: str | None) -> _Variable:
        """Return the variable that replaces a value in a suite.

        If a variable with this name already has another value, the server's name is put before the variable's name."""
        # Two servers may use the same name for different keys, such as API_KEY.
        plain, before = _variable_name(name), _variable_name(server.upper())
        longer = plain
        if not plain.startswith(before):
            longer = f"{before}_{plain}"
        for wanted in chain((plain, longer), (f"{longer}_{number}" for number in count(2))):
            known = self.variables.get(wanted)
            if known is None or value in (None, known):
                if value is not None:
                    known = value
                self.variables[wanted] = known
                return _Variable(wanted)
        raise AssertionError("counting ends")


def read_servers(servers: Mapping[str, object], reading: Reading) -> FoundServers:
    """Convert a client's servers, keyed by name, to tables of a suite.

    Raises ClientConfigError."""
    tables = []
    for name, entry in servers.items():
        where = f"{reading.where}.{name}"
        if len(servers) == 1 and reading.root is None:
            where = reading.where
        if not isinstance(entry, dict):
            raise ClientConfigError(f"{where} must contain the settings of a server, with command or url")
        if entry.get("disabled") is True or entry.get("enabled") is False:
            reading.notes.append(f"{name} is left out: it is disabled in the configuration")
            continue
            continue
        tables.append({**_Server(name or "server", entry, where, reading).table(), **_time_limits(entry)})
    return FoundServers(tuple(tables), dict(reading.variables), tuple(reading.notes))


_TIME_LIMITS = {"startup_timeout_sec": "start_timeout_s", "tool_timeout_sec": "call_timeout_s"}
"""The keys of time limits in Codex. Other clients use `timeout` with different units, so their limits are not read."""


def _time_limits(entry: Mapping[str, object]) -> Table:
    limits: Table = {}
    for key, ours in _TIME_LIMITS.items():
        seconds = entry.get(key)
        if isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 < seconds < math.inf:
            limits[ours] = seconds
    return limits


class _Server:
    """Converts one server of a configuration to a table of a suite."""

    def __init__(self, name: str, entry: Mapping[str, object], location: str, reading: Reading) -> None:
        self._name, self._entry, self._where, self._reading = name, entry, location, reading
        self._base: Path | None = reading.folder.absolute()
        """The folder in which the server runs; `None` if it depends on a variable."""

    def table(self) -> Table:
        entry, kind = self._entry, self._entry.get("type", self._entry.get("transport"))
        # A client either starts a server or connects to it, so an entry with both keys or neither is ambiguous.
        if ("command" in entry) == ("url" in entry):
            raise ClientConfigError(f"{self._where} must have exactly one of the keys command and url")
        if entry.get("envFile") is not None:
            self._reading.notes.append(
                f"envFile of {self._name} is not read: put the variables that the server needs into a .env beside the "
                "suite"
            )
        if "command" in entry:
            return self._started()
        url = self._text("url", entry["url"])
        if problem := _problem_of_url(url):
            raise ClientConfigError(
                f"{self._where}.url {problem}, and a suite's address cannot contain variables: send the value as a "
                "header, or choose other servers with --server"
            )
        try:
            server_at(url)
        except ValueError as error:
            raise ClientConfigError(f"{self._where}.url: {error}") from None
        table: Table = {"name": self._name, "url": url}
        if isinstance(kind, str) and kind != "http" and kind in _TRANSPORTS:
            table["transport"] = _TRANSPORTS[kind]
        if headers := self._texts("headers"):
            table["headers"] = {key: self._header(key, value) for key, value in headers.items()}
        # Claude Code calls this key `oauth`, and Cursor calls it `auth`.
        login = entry.get("oauth", entry.get("auth"))
        if isinstance(login, dict) and "authorization" not in map(str.lower, headers):
            table |= self._login(login)
        return table

    def _login(self, login: Mapping[str, object]) -> Table:
        """Convert a client's OAuth settings.

        A client secret is left out, and a note says so. A suite with `client_secret` must also name the issuer, which
        the client's configuration does not contain."""
        keys: Table = {"auth": "oauth"}
        client = login.get("clientId", login.get("CLIENT_ID"))
        if client is not None:
            place = "oauth.clientId"
            keys["client_id"] = _with_references(self._references(self._text(place, client), place))
        scopes = login.get("scopes")
        if isinstance(scopes, list) and scopes:
            keys["scope"] = " ".join(self._text("oauth.scopes", scope) for scope in scopes)
        if login.get("clientSecret", login.get("CLIENT_SECRET")) is not None:
            self._reading.notes.append(
                f"the client secret of {self._name} is left out: put it into a variable, and give it as client_secret, "
                "with the issuer"
            )
        return keys

    def _started(self) -> Table:
        program = self._text("command", self._entry["command"])
        args = self._entry.get("args", [])
        if not program:
            raise ClientConfigError(f"{self._where}.command must be a program")
        if not isinstance(args, list):
            raise ClientConfigError(f"{self._where}.args must be a list")
        words = [program, *(self._text(f"args[{index}]", word) for index, word in enumerate(args))]
        folder: list[str] = []
        if self._entry.get("cwd"):
            folder = self._references(self._text("cwd", self._entry["cwd"]), "cwd")
        cwd = _as_cwd(folder)
        if cwd is not None:
            folder = []
            self._base = self._reading.folder.absolute() / Path(cwd).expanduser()
        elif folder:
            self._base = None
        env: dict[str, object] = {}
        for name, value in self._texts("env", numbers=True).items():
            env[name] = self._value(name, value, f"env.{name}")
        written = [self._word(words, at, env) for at in range(len(words))]
        variables = [part for part in chain(*written, folder) if isinstance(part, _Variable)]
        if folder or variables:
            # A suite takes the words of a command literally, so a shell must expand the variables, also those in the
            # path of the folder.
            line = " ".join(["exec", *map(_shell_word, written)])
            if folder:
                line = f"cd {_shell_word(folder)} && {line}"
            command = ["sh", "-c", line]
        else:
            command = ["".join(word) for word in written]
        for variable in variables:
            # Every server inherits HOME, so `env` need not name it.
            if variable != "HOME":
                env.setdefault(variable, f"${variable}")
        table: Table = {"name": self._name, "command": command}
        if cwd is not None:
            table["cwd"] = cwd
        if env:
            table["env"] = env
        return table

    def _word(self, words: Sequence[str], index: int, env: dict[str, object]) -> list[str]:
        word, before, place = words[index], "", "command"
        if index:
            before, place = words[index - 1], f"args[{index - 1}]"
        assigned = _ASSIGNMENT.fullmatch(word)
        option = ""
        if before.startswith("-") and "=" not in before:
            option = before
        asked = names_a_secret(_words_of_name(option))
        if assigned and before in ("-e", "--env"):
            # `docker run -e NAME` takes the value from docker's environment. So the value moves to `env`, and only the
            # name stays in the command.
            env[assigned[1]] = self._value(assigned[1], assigned[2], place)
            return [assigned[1]]
        if _REFERENCE.search(word):
            parts = self._references(word, place)
            if not _holds_secret(parts, suggests_secret=asked):
                return parts
            return [self._variable(f"{self._name}_{_kind_of_secret(word)}".upper(), None)]
        if (header := _HEADER.fullmatch(word)) and before in ("--header", "-H"):
            *before_it, variable = self._header_parts(header[1], header[2])
            return ["".join([f"{header[1]}: ", *before_it]), variable]
        name, value = _words_of_name(option), word
        inside = None
        if not asked:
            inside = assigned or _OPTION.fullmatch(word)
        if inside:
            name, value = _words_of_name(inside[1]), inside[2]
        suggests_secret = names_a_secret(name) and bool(value) and not value.startswith("-")
        # A path or a package name such as `@scope/name` can look as random as a key, so it is not taken for a key.
        like_key = looks_like_key(value) and not value.startswith(("/", "~", ".", "@"))
        if not index or not (suggests_secret or like_key or any(passwords_in(value))):
            return [word]
        if not inside and not suggests_secret:
            name = _kind_of_secret(value)
        return [word[: len(word) - len(value)], self._variable(f"{self._name}_{name}".upper(), value)]

    def _value(self, name: str, value: str, place: str, *, suggests_secret: bool = False) -> str:
        if not value:
            return value
        if self._reading.typed and not _may_be_secret(name, value):
            for variable in environment_names(value):
                self._reading.variable(self._name, variable, None)
            return value
        if _REFERENCE.search(value):
            parts = self._references(value, place)
            if not _holds_secret(parts, suggests_secret=suggests_secret or names_a_secret(name.upper())):
                return _with_references(parts)
            return _with_references([self._variable(name, None)])
        return _with_references([self._variable(name, value)])

    def _header(self, name: str, value: str) -> str:
        if name.lower() in _NO_SECRETS and not _REFERENCE.search(value):
            return value.replace("$", "$$")
        if _REFERENCE.search(value):
            return self._value(self._header_variable(name), value, f"headers.{name}", suggests_secret=True)
        return _with_references(self._header_parts(name, value))

    def _header_parts(self, name: str, value: str) -> list[str]:
        scheme = _SCHEME.fullmatch(value)
        if scheme is None:
            return [self._variable(self._header_variable(name), value)]
        return [f"{scheme[1]} ", self._variable(self._header_variable(name), scheme[2])]

    def _header_variable(self, name: str) -> str:
        if name.lower() == "authorization":
            name = "token"
        return f"{self._name}_{name}".upper()

    def _references(self, text: str, place: str) -> list[str]:
        """Split a text into literal parts and references to variables.

        Raises ClientConfigError for a reference that a suite cannot express."""
        parts: list[str] = []
        end = 0
        for match in _REFERENCE.finditer(text):
            parts += [text[end : match.start()], self._reference(match[1] or match[2], place)]
            end = match.end()
        return [part for part in (*parts, text[end:]) if part]

    def _reference(self, inner: str, place: str) -> str:
        kind, colon, name = inner.partition(":")
        if inner in ("workspaceFolder", "workspaceRoot"):
            root = self._reading.root or self._reading.folder.absolute()
            if self._base is None:
                return root.as_posix()
            return Path(os.path.relpath(root, self._base)).as_posix()
        if inner == "workspaceFolderBasename":
            if self._reading.root:
                return self._reading.root.name
            return "."
        if inner in ("userHome", "HOME", "env:HOME"):
            return _Variable("HOME")
        if inner in ("/", "pathSeparator"):
            return "/"
        if kind == "input" and name:
            return self._variable(name.upper(), None)
        if kind == "env" and name:
            return self._variable(name, None)
        if _NAME.fullmatch(kind) and (not colon or name.startswith(("-", "+", "?"))):
            # A suite cannot express the default in `${NAME:-default}`, so it is dropped.
            return self._variable(kind, None)
        raise ClientConfigError(f"{self._where}.{place}: a suite has no counterpart of ${{{kind}…}}: write the value")

    def _variable(self, name: str, value: str | None) -> _Variable:
        return self._reading.variable(self._name, name, value)

    def _text(self, place: str, value: object) -> str:
        if not isinstance(value, str) or "\0" in value:
            raise ClientConfigError(f"{self._where}.{place} must be a string")
        return value

    def _texts(self, key: str, *, numbers: bool = False) -> dict[str, str]:
        table = self._entry.get(key)
        if table is None:
            return {}
        if not isinstance(table, dict):
            raise ClientConfigError(f"{self._where}.{key} must map names to strings")
        texts = {}
        for name, value in table.items():
            if numbers and isinstance(value, int | float):
                value = json.dumps(value)
            if value is not None:
                texts[name] = self._text(f"{key}.{name}", value)
        return texts


def _as_cwd(parts: Sequence[str]) -> str | None:
    """Return a folder as the `cwd` of a suite's server, in which a leading `$HOME` becomes `~`.

    Returns `None` if there is no folder, or if a suite cannot express it because it contains another variable."""
    if not parts:
        return None
    first, rest = parts[0], "".join(parts[1:])
    if any(isinstance(part, _Variable) for part in parts[1:]):
        return None
    if not isinstance(first, _Variable):
        return first + rest
    if first == "HOME" and (not rest or rest.startswith("/")):
        return f"~{rest}"
    return None


def _may_be_secret(name: str, value: str) -> bool:
    """Return whether the value that a user typed for a variable of `env` may be a secret.

    A reference to another variable is not a secret."""
    if environment_names(value):
        return any(passwords_in(value))
    path = value.startswith(("/", "~", "."))
    return names_a_secret(name.upper()) or any(passwords_in(value)) or (looks_like_key(value) and not path)


def _words_of_name(option: str) -> str:
    return re.sub(r"\W+", "_", option.lstrip("-")).upper()


def _variable_name(text: str) -> str:
    if _NAME.fullmatch(text):
        return text
    name = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_").upper()
    if _NAME.fullmatch(name):
        return name
    return f"SERVER_{name}".rstrip("_")


def _problem_of_url(url: str) -> str | None:
    pairs = parse_qsl(_query(url))
    if any(passwords_in(url)) or any(names_a_secret(key.upper()) or looks_like_key(value) for key, value in pairs):
        return "holds a secret"
    if _REFERENCE.search(url):
        return "has a variable"
    return None


def _kind_of_secret(text: str) -> str:
    if any(passwords_in(text)):
        return "url"
    return "key"


def _holds_secret(parts: Sequence[str], *, suggests_secret: bool) -> bool:
    """Return whether the literal parts of a text may contain a secret.

    If the name of the setting `suggests_secret`, every literal part may be a secret, except the name of an
    authorization scheme such as `Bearer`."""
    for part in parts:
        if isinstance(part, _Variable):
            continue
        literal = part.strip()
        if suggests_secret and literal and literal.lower() not in _SCHEMES:
            return True
        if looks_like_key(literal) or any(passwords_in(literal)):
            return True
    return False


def _with_references(parts: Sequence[str]) -> str:
    """Join literal parts and variables to a value as a suite writes it.

    A variable gets braces if the following text would extend its name. Literal dollar signs are doubled."""
    text = ""
    for part, after in zip(parts, (*parts[1:], ""), strict=True):
        if not isinstance(part, _Variable):
            text += part.replace("$", "$$")
        elif re.match(r"\w", after):
            text += f"${{{part}}}"
        else:
            text += f"${part}"
    return text


def _shell_word(parts: Sequence[str]) -> str:
    word = ""
    for part in filter(None, parts):
        if isinstance(part, _Variable):
            word += f'"${part}"'
        else:
            word += shlex.quote(part)
    return word or "''"


def _query(url: str) -> str:
    try:
        return urlsplit(url).query
    except ValueError:
        return ""


# Configurations of MCP clients on this machine: Claude Desktop and Claude Code, Cursor, VS Code, Codex.

_PLACES = (("mcpServers",), ("servers",), ("mcp", "servers"), ("mcp", "mcpServers"), ("mcp_servers",))
"""The keys under which clients store their servers. The third and fourth are in the settings of editors. The last is
Codex's key."""

_OF_PROJECTS = (
    ("Claude Code", ".mcp.json"),
    ("Cursor", ".cursor/mcp.json"),
    ("VS Code", ".vscode/mcp.json"),
    ("Codex", ".codex/config.toml"),
)
"""The clients and their files in a project."""

_OF_USERS = (
    ("Claude Code", ".claude.json"),
    ("Cursor", ".cursor/mcp.json"),
    ("Codex", ".codex/config.toml"),
    ("Claude Desktop", ".config/Claude/claude_desktop_config.json"),
    ("Claude Desktop", "Library/Application Support/Claude/claude_desktop_config.json"),
    ("Claude Desktop", "AppData/Roaming/Claude/claude_desktop_config.json"),
    ("VS Code", ".config/Code/User/mcp.json"),
    ("VS Code", "Library/Application Support/Code/User/mcp.json"),
    ("VS Code", "AppData/Roaming/Code/User/mcp.json"),
)
"""The clients and their files below the user's home, on Linux, macOS and Windows."""


@dataclass(frozen=True)
class ConfiguredServer:
    """An MCP server in the configuration of a client on this machine."""

    client: str
    file: Path
    name: str
    found: FoundServers


def servers_of_client(file: Path, folder: Path, names: Sequence[str] = ()) -> FoundServers:
    """Return the servers in a client's configuration, for a suite in `folder`.

    With `names`, only the servers with these names are returned. Raises ClientConfigError."""
    place, servers, root = _servers_in(_document(file), file, folder.absolute(), names)
    if unknown := [name for name in names if name not in servers]:
        hint = did_you_mean(unknown[0], servers) or f"there are {', '.join(servers)}"
        raise ClientConfigError(f"{file}: there is no server {unknown[0]!r}: {hint}")
    chosen = servers
    if names:
        chosen = {name: entry for name, entry in servers.items() if name in names}
    found = read_servers(chosen, Reading(f"{file}: {place}", root, folder))
    if not found.tables:
        raise ClientConfigError(f"{file}: every server in {place} is disabled")
    return found


def servers_on_machine(folder: Path, home: Path | None) -> Iterator[ConfiguredServer]:
    """Yield each server that clients on this machine use in a folder or everywhere.

    Servers of the nearest folder come first. A server is skipped if its configuration cannot be read or a suite cannot
    express it. `servers_of_client` reports the reason."""
    seen: list[object] = []
    for client, file in _files(folder.absolute(), home):
        try:
            if not file.is_file() or file.stat().st_size > MAX_CLIENT_FILE_BYTES:
                continue
            names = tuple(_servers_in(_document(file), file, folder.absolute(), ())[1])
        except (ClientConfigError, OSError):
            continue
        for name in names:
            try:
                found = servers_of_client(file, folder, [name])
            except ClientConfigError:
                continue
            # A server may be in the configurations of two clients, but is yielded only once.
            if found.tables not in seen:
                seen.append(found.tables)
                yield ConfiguredServer(client, file, name, found)


def _files(folder: Path, home: Path | None) -> Iterator[tuple[str, Path]]:
    for place in (folder, *folder.parents):
        if place == home:
            break
        for client, name in _OF_PROJECTS:
            yield (client, place / name)
    if home is not None:
        for client, name in _OF_USERS:
            yield (client, home / name)


def _document(file: Path) -> object:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ClientConfigError(f"{file} is not UTF-8: save it as UTF-8 text") from None
    except OSError as error:
        raise ClientConfigError(f"{file} cannot be read: {error.strerror}") from None
    try:
        if file.suffix == ".toml":
            return tomllib.loads(text)
        return json.loads(_plain_json(text))
    except json.JSONDecodeError as error:
        raise ClientConfigError(f"{file}:{error.lineno} is not JSON: {error.msg.lower()}") from None
    except tomllib.TOMLDecodeError as error:
        raise ClientConfigError(f"{file} is not TOML: {error}") from None
    except RecursionError:
        raise ClientConfigError(f"{file} is nested too deeply: use fewer levels") from None


def _servers_in(
    document: object, file: Path, folder: Path, names: Sequence[str]
) -> tuple[str, dict[str, object], Path]:
    absolute = file.absolute()
    root = absolute.parent
    # A file in a folder such as `.cursor` or `.vscode` belongs to the workspace that contains this folder.
    if root.name in (".vscode", ".cursor", ".codex"):
        root = root.parent
    project, of_project = _of_project(document, file, folder, names)
    for place in _PLACES:
        inner: object = document
        for key in place:
            inner = _table(inner).get(key)
        if inner is None or (inner == {} and of_project):
            continue
        where = ".".join(place)
        if not isinstance(inner, dict):
            raise ClientConfigError(f"{file}: {where} must map the name of each server to its settings")
        if not inner:
            raise ClientConfigError(f"{file}: {where} is empty: it names no server")
        if place == ("mcp_servers",):
            inner = {name: _of_codex(entry) for name, entry in inner.items()}
        # Claude Code prefers a project's server to a global server of the same name.
        return where, {**inner, **of_project}, project or root
    if of_project and project is not None:
        return f"projects.{project}.mcpServers", of_project, project
    raise ClientConfigError(
        f"{file} is not a configuration of an MCP client: it has no mcpServers (Claude, Cursor), servers (VS Code) or "
        "mcp_servers (Codex)"
    )


def _of_project(
    document: object, file: Path, folder: Path, server_names: Sequence[str]
) -> tuple[Path | None, dict[str, object]]:
    """Return the folder and the servers of the Claude Code project that contains `folder`.

    If this project lacks some of the servers named and exactly one other project has all of them, the other
    project is returned."""
    tables: dict[Path, Mapping[str, object]] = {}
    for path, settings in _table(_table(document).get("projects")).items():
        if servers := _table(_table(settings).get("mcpServers")):
            tables[Path(path)] = servers
    around: Path | None = None
    here: dict[str, object] = {}
    for project in (folder, *folder.parents):
        if project in tables:
            around, here = project, dict(tables[project])
            break
    known = {**_table(_table(document).get("mcpServers")), **here}
    if not known.keys() >= set(server_names):
        others = [path for path, servers in tables.items() if servers.keys() >= set(server_names)]
        if len(others) > 1:
            raise ClientConfigError(
                f"{file}: several projects have {', '.join(server_names)}: write the suite in the folder of one of "
                f"them ({', '.join(map(str, others))})"
            )
        if others:
            return others[0], dict(tables[others[0]])
    if not known and tables:
        names = dict.fromkeys(chain(*tables.values()))
        raise ClientConfigError(
            f"{file}: its servers belong to other projects: choose some with --server ({', '.join(names)})"
        )
    return around, here


def _of_codex(entry: object) -> object:
    if not isinstance(entry, dict):
        return entry
    server = {}
    for key in ("command", "args", "cwd", "url", "enabled", *_TIME_LIMITS):
        if key in entry:
            server[key] = entry[key]
    # Codex does not expand variables in values. Its setting `env_vars` names variables to pass on instead.
    passed = entry.get("env_vars")
    env: dict[str, object] = {}
    if isinstance(passed, list):
        for name in passed:
            if isinstance(name, str):
                env[name] = f"${{{name}}}"
    env |= _table(entry.get("env"))
    headers = dict(_table(entry.get("http_headers")))
    for key, name in _table(entry.get("env_http_headers")).items():
        headers[key] = f"${{{name}}}"
    if isinstance(token := entry.get("bearer_token_env_var"), str):
        headers["Authorization"] = f"Bearer ${{{token}}}"
    if env:
        server["env"] = env
    if headers:
        server["headers"] = headers
    return server


def _table(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        return {}
    return value


def _plain_json(text: str) -> str:
    """Remove comments and trailing commas from JSON. Every line keeps its number."""

    def blank(match: re.Match[str]) -> str:
        return match[1] or re.sub(r"[^\n]", " ", match[0])

    # Strings are matched first, so that `//` in a URL is not taken for a comment. Matches become spaces, so errors keep
    # their columns.
    without_comments = re.sub(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', blank, text, flags=re.DOTALL)
    return re.sub(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', blank, without_comments, flags=re.DOTALL)
