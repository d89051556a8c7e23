"""Servers as configurations of MCP clients describe them, and as they are typed, as tables of a suite.

A suite holds no secret, so every literal value of `env`, of a header and of a telling argument becomes a variable.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import chain, count
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from workbench.config.secret_values import names_a_secret, passwords_in
from workbench.config.typed_keys import looks_like_key
from workbench.dataclasses import dataclass
from workbench.suite.render import Table
from workbench.suite.server_texts import server_at, server_name, words_of

_TRANSPORTS = {"http": "http", "streamable-http": "http", "streamableHttp": "http", "sse": "sse"}
_REFERENCE = re.compile(r"\$\{([^{}]*)\}|\A\$([A-Za-z_]\w*)\Z", re.ASCII)
"""A variable inside a text, or one that is all of it; other dollar signs may belong to a password."""
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_OPTION = re.compile(r"(--?[A-Za-z][\w.-]*)=(.*)", re.DOTALL)
_HEADER = re.compile(r"([A-Za-z][A-Za-z0-9-]*):\s*(.+)", re.DOTALL)
_SCHEMES = ("bearer", "basic", "token", "apikey")
_SCHEME = re.compile(rf"({'|'.join(_SCHEMES)})\s+(.+)", re.DOTALL | re.IGNORECASE)
_NO_SECRETS = ("accept", "content-type", "user-agent")
"""Headers whose values are kept."""


class _Variable(str):
    """The name of a variable, among parts of a text."""

    __slots__ = ()


class ClientConfigError(ValueError):
    """A configuration cannot be used. The message says where and why, and never what it holds."""


@dataclass(frozen=True)
class FoundServers:
    """Servers as tables of a suite, without secrets. `variables` are what they read, each with the value that the
    configuration holds for it, `None` where it holds none; `notes` say what could not be taken over."""

    tables: tuple[Table, ...]
    variables: Mapping[str, str | None] = field(repr=False)
    notes: tuple[str, ...] = ()


def server_of_text(text: str) -> FoundServers:
    """Return the server of a text that is a command or a URL. Raises ClientConfigError."""
    return typed_server(None, text) if re.match(r"[a-z]+:", text) else typed_server(text, None)


def typed_server(command: str | None, url: str | None) -> FoundServers:
    """Return the server of a command as in a shell, with `NAME=value` before it, or of a URL. Raises ClientConfigError
    for what is neither."""
    try:
        if url is not None:
            table = server_at(url)
            server = {"url": url, **({"type": "sse"} if urlsplit(url).path.rstrip("/").endswith("/sse") else {})}
            return read_servers({str(table["name"]): server}, Reading("--url", None, Path()))
        words = words_of(command or "")
    except ValueError as error:
        raise ClientConfigError(str(error).replace("--url.url", "--url")) from None
    env: dict[str, str] = {}
    while len(words) > 1 and (match := _ASSIGNMENT.fullmatch(words[0])):
        env[match[1]] = match[2]
        del words[0]
    entry = {"command": words[0], "args": words[1:], "env": env}
    return read_servers({server_name(words): entry}, Reading("--command", None, Path()))


@dataclass
class Reading:
    """What is found out while servers are read. `where` begins messages, `root` is the folder that a client calls its
    workspace, `folder` that of the suite."""

    where: str
    root: Path | None
    folder: Path
    variables: dict[str, str | None] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def variable(self, server: str, name: str, value: str | None) -> _Variable:
        """Return the variable for a value; one of the same name with another value gets the server's name before it."""
        plain, before = _variable_name(name), _variable_name(server.upper())
        longer = plain if plain.startswith(before) else f"{before}_{plain}"
        for wanted in chain((plain, longer), (f"{longer}_{number}" for number in count(2))):
            known = self.variables.get(wanted)
            if known is None or value in (None, known):
                self.variables[wanted] = known if value is None else value
                return _Variable(wanted)
        raise AssertionError("counting ends")


def read_servers(servers: Mapping[str, object], reading: Reading) -> FoundServers:
    """Return the servers of a client's table, each by its name. Raises ClientConfigError."""
    tables = []
    for name, entry in servers.items():
        where = reading.where if len(servers) == 1 and reading.root is None else f"{reading.where}.{name}"
        if not isinstance(entry, dict):
            raise ClientConfigError(f"{where} must be an object with command or url")
        if entry.get("disabled") is True or entry.get("enabled") is False:
            reading.notes.append(f"{name} is left out: it is disabled in the configuration")
            continue
        tables.append(_Server(name or "server", entry, where, reading).table())
    return FoundServers(tuple(tables), dict(reading.variables), tuple(reading.notes))


class _Server:
    """One server of a configuration, which becomes a table of a suite."""

    def __init__(self, name: str, entry: Mapping[str, object], where: str, reading: Reading) -> None:
        self._name, self._entry, self._where, self._reading = name, entry, where, reading
        self._base = reading.folder.absolute()
        """The folder in which it runs."""

    def table(self) -> Table:
        entry, kind = self._entry, self._entry.get("type", self._entry.get("transport"))
        if ("command" in entry) == ("url" in entry):
            raise ClientConfigError(f"{self._where} must have one of command and url")
        if entry.get("envFile") is not None:
            self._reading.notes.append(
                f"envFile of {self._name} is not read: put what the server needs into a .env beside the suite"
            )
        if "command" in entry:
            return self._started()
        url = self._text("url", entry["url"])
        secret = any(passwords_in(url)) or any(
            names_a_secret(key.upper()) or looks_like_key(value) for key, value in parse_qsl(_query(url))
        )
        if secret or _REFERENCE.search(url):
            what = "holds a secret" if secret else "has a variable"
            raise ClientConfigError(
                f"{self._where}.url {what}, and a suite's address is taken as it is: have it sent as a header, "
                "or choose other servers with --server"
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
        return table

    def _started(self) -> Table:
        program = self._text("command", self._entry["command"])
        args = self._entry.get("args", [])
        if not program or not isinstance(args, list):
            raise ClientConfigError(
                f"{self._where}.{'args must be a list' if program else 'command must be a program'}"
            )
        words = [program, *(self._text(f"args[{index}]", word) for index, word in enumerate(args))]
        folder = self._references(self._text("cwd", self._entry["cwd"]), "cwd") if self._entry.get("cwd") else None
        if folder is not None:
            self._base /= "".join(folder)
        env: dict[str, object] = {}
        for name, value in self._texts("env", numbers=True).items():
            env[name] = self._value(name, value, f"env.{name}")
        written = [self._word(words, at, env) for at in range(len(words))]
        if folder is None and not any(isinstance(part, _Variable) for word in written for part in word):
            command = ["".join(word) for word in written]
            return {"name": self._name, "command": command, **({"env": env} if env else {})}
        # Words of a command are taken as they are, so a shell changes the folder and fills in what variables hold.
        line = " ".join(["exec", *map(_shell_word, written)])
        if folder is not None:
            line = f"cd {_shell_word(folder)} && {line}"
        for part in (part for word in (*written, folder or []) for part in word):
            if isinstance(part, _Variable) and part != "HOME":  # which servers have anyway
                env.setdefault(part, f"${part}")
        return {"name": self._name, "command": ["sh", "-c", line], **({"env": env} if env else {})}

    def _word(self, words: Sequence[str], at: int, env: dict[str, object]) -> list[str]:
        """Return one word of a command in parts, of which some are variables."""
        word, before = words[at], words[at - 1] if at else ""
        place = f"args[{at - 1}]" if at else "command"
        assigned = _ASSIGNMENT.fullmatch(word)
        option = before if before.startswith("-") and "=" not in before else ""
        asked = names_a_secret(_words_of_name(option))
        if assigned and before in ("-e", "--env"):
            # What docker passes on from its own environment.
            env[assigned[1]] = self._value(assigned[1], assigned[2], place)
            return [assigned[1]]
        if _REFERENCE.search(word):
            parts = self._references(word, place)
            if not _holds_secret(parts, telling=asked):
                return parts
            address = any(passwords_in(word))
            return [self._variable(f"{self._name}_{'url' if address else 'key'}".upper(), None)]
        if (header := _HEADER.fullmatch(word)) and before in ("--header", "-H"):
            *before_it, variable = self._header_parts(header[1], header[2])
            return ["".join([f"{header[1]}: ", *before_it]), variable]
        inside = None if asked else assigned or _OPTION.fullmatch(word)
        named, value = (inside[1], inside[2]) if inside else (option, word)
        name = _words_of_name(named)
        telling = names_a_secret(name) and bool(value) and not value.startswith("-")
        address = any(passwords_in(value))
        like_key = looks_like_key(value) and not value.startswith(("/", "~", ".", "@"))
        if not at or not (telling or address or like_key):
            return [word]
        what = name if inside or telling else "url" if address else "key"
        return [word[: len(word) - len(value)], self._variable(f"{self._name}_{what}".upper(), value)]

    def _value(self, name: str, value: str, place: str, *, telling: bool = False) -> str:
        """Return a value of `env`, or of a header, as a suite writes it."""
        if not value:
            return value
        if _REFERENCE.search(value):
            parts = self._references(value, place)
            if not _holds_secret(parts, telling=telling or names_a_secret(name.upper())):
                return _with_references(parts)
            return _with_references([self._variable(name, None)])
        return _with_references([self._variable(name, value)])

    def _header(self, name: str, value: str) -> str:
        if name.lower() in _NO_SECRETS and not _REFERENCE.search(value):
            return value.replace("$", "$$")
        if _REFERENCE.search(value):
            return self._value(self._header_variable(name), value, f"headers.{name}", telling=True)
        return _with_references(self._header_parts(name, value))

    def _header_parts(self, name: str, value: str) -> list[str]:
        scheme = _SCHEME.fullmatch(value)
        variable = self._variable(self._header_variable(name), scheme[2] if scheme else value)
        return [f"{scheme[1]} ", variable] if scheme else [variable]

    def _header_variable(self, name: str) -> str:
        return f"{self._name}_{'token' if name.lower() == 'authorization' else name}".upper()

    def _references(self, text: str, place: str) -> list[str]:
        """Return a text in parts, its references as variables. Raises ClientConfigError for one that nobody can fill
        in."""
        parts: list[str] = []
        end = 0
        for match in _REFERENCE.finditer(text):
            parts += [text[end : match.start()], self._reference(match[1] or match[2], place)]
            end = match.end()
        return [part for part in (*parts, text[end:]) if part]

    def _reference(self, inner: str, place: str) -> str:
        kind, colon, name = inner.partition(":")
        if inner in ("workspaceFolder", "workspaceRoot"):
            return Path(os.path.relpath(self._reading.root or self._base, self._base)).as_posix()
        if inner == "workspaceFolderBasename":
            return self._reading.root.name if self._reading.root else "."
        if inner in ("userHome", "HOME", "env:HOME"):
            return _Variable("HOME")
        if inner in ("/", "pathSeparator"):
            return "/"
        if kind in ("input", "env") and colon and name:
            return self._variable(name.upper() if kind == "input" else name, None)
        if _NAME.fullmatch(kind) and (not colon or name.startswith(("-", "+", "?"))):
            return self._variable(kind, None)  # a default is left to whoever sets the variable
        raise ClientConfigError(f"{self._where}.{place}: ${{{kind}…}} has no counterpart in a suite; write it out")

    def _variable(self, name: str, value: str | None) -> _Variable:
        return self._reading.variable(self._name, name, value)

    def _text(self, place: str, value: object) -> str:
        if not isinstance(value, str) or "\0" in value:
            raise ClientConfigError(f"{self._where}.{place} must be a text")
        return value

    def _texts(self, key: str, *, numbers: bool = False) -> dict[str, str]:
        table = self._entry.get(key)
        if table is None:
            return {}
        if not isinstance(table, dict):
            raise ClientConfigError(f"{self._where}.{key} must be an object of texts")
        texts = {}
        for name, value in table.items():
            if numbers and isinstance(value, int | float):
                value = json.dumps(value)
            if value is not None:
                texts[name] = self._text(f"{key}.{name}", value)
        return texts


def _words_of_name(option: str) -> str:
    return re.sub(r"\W+", "_", option.lstrip("-")).upper()


def _variable_name(text: str) -> str:
    name = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_").upper() if not _NAME.fullmatch(text) else text
    return name if _NAME.fullmatch(name) and name.isascii() else f"SERVER_{name}".rstrip("_")


def _holds_secret(parts: Sequence[str], *, telling: bool = False) -> bool:
    """Return whether what is written between variables may be secret: with `telling`, all but the word for a scheme."""
    literal = [part.strip() for part in parts if not isinstance(part, _Variable)]
    if telling and any(part and part.lower() not in _SCHEMES for part in literal):
        return True
    return any(looks_like_key(part) or any(passwords_in(part)) for part in literal)


def _with_references(parts: Sequence[str]) -> str:
    """Return parts as a value of a suite: braces where a name would go on, other dollar signs doubled."""
    text = ""
    for part, after in zip(parts, (*parts[1:], ""), strict=True):
        if not isinstance(part, _Variable):
            text += part.replace("$", "$$")
        else:
            text += f"${{{part}}}" if re.match(r"\w", after) else f"${part}"
    return text


def _shell_word(parts: Sequence[str]) -> str:
    quoted = (f'"${part}"' if isinstance(part, _Variable) else shlex.quote(part) for part in parts if part)
    return "".join(quoted) or "''"


def _query(url: str) -> str:
    try:
        return urlsplit(url).query
    except ValueError:
        return ""
