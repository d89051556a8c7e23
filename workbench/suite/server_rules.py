"""Validation rules of servers, of answers to server requests, and of subjects. The rules read parsed TOML."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath, PureWindowsPath
from urllib.parse import urlsplit

from workbench.checks.check import check_names_in
from workbench.checks.values import is_module_name
from workbench.config.variables import environment_names, has_stray_dollar
from workbench.startup import late_pattern
from workbench.suite.check_rules import check_rules, given_rules, unknown_text_check
from workbench.suite.problems import (
    Finding,
    Place,
    exactly_one,
    quoted,
    requires_key,
    table,
    tables,
    warning,
)

_SCOPE = late_pattern(r"[!#-\[\]-~]+( [!#-\[\]-~]+)*")
"""One or several scopes (RFC 6749, section 3.3)."""

_SUBJECT_NAME = late_pattern(r"(?!offline\Z)[A-Za-z0-9][A-Za-z0-9._-]*")


def _command_rules(command: object, place: Place, hint: str, key: str = "command") -> Iterator[Finding]:
    if isinstance(command, str):
        yield Finding((*place, key), "must be a list of words, not one string", hint)
    elif isinstance(command, list):
        if command[:1] == [""]:
            yield Finding((*place, key, 0), "must name a program")
        for index, word in enumerate(command):
            yield from _no_control_characters(word, (*place, key, index), "\0")


def subject_rules(raw: dict[str, object], subject: dict[str, object]) -> Iterator[Finding]:
    """Find problems in the subject of a suite. `models` beside it are a problem, because the subject replaces them."""
    place: Place = ("subject",)
    # A subject with both `acp` and `agent` is one agent: `acp` is its command, and `agent` names its setup. The two
    # keys therefore count as one kind of subject.
    kinds: tuple[str, ...] = ("command", "python", "agent" if "agent" in subject and "acp" not in subject else "acp")
    if not subject.keys() & {"agent", "acp"}:
        kinds = ("command", "python", "agent", "acp")  # the message names all kinds
    yield from exactly_one(subject, kinds, place, "a subject")
    if not subject.keys() & {"agent", "acp"}:
        yield from requires_key(subject, dict.fromkeys(("mode", "builtin", "folder"), "agent"), place)
    if "python" in subject:
        yield from requires_key(subject, {"env": "command"}, place)
    for key in ("command", "acp"):
        yield from _command_rules(subject.get(key), place, 'write ["python", "agent.py"]', key)
    yield from _no_control_characters(subject.get("folder"), (*place, "folder"), "\0\r\n")
    for variable, value in table(subject.get("env")).items():
        yield from _reference_rules(variable, value, (*place, "env", variable))
    name = subject.get("name")
    if isinstance(name, str) and not _SUBJECT_NAME.fullmatch(name):
        message = f"{quoted(name)} cannot be the name of a subject"
        yield Finding((*place, "name"), message, "use letters, digits, . _ and -, but not offline")
    hint = "remove it; --model NAME still runs the cases on a model"
    message = "`models` cannot be combined with `subject`, which replaces the models"
    if "models" in raw:
        yield Finding(("models",), message, hint)
    for index, case in tables(raw.get("cases")):
        if "models" in case:
            yield Finding(("cases", index, "models"), message, hint)


def server_rules(server: dict[str, object], place: Place) -> Iterator[Finding]:
    yield from exactly_one(server, ("command", "url", "module"), place, "a server")
    if any(key in server for key in ("command", "url", "module")):
        options = {"cwd": "command", "env": "command", "object": "module"}
        options |= dict.fromkeys(("transport", "headers", "auth"), "url")
        yield from requires_key(server, options, place)
    yield from _auth_rules(server, place)
    yield from _request_rules(server, place)
    yield from _command_rules(server.get("command"), place, 'write ["python", "server.py"]')
    yield from _no_control_characters(server.get("cwd"), (*place, "cwd"), "\0\r\n")
    url = server.get("url")
    if isinstance(url, str) and url and not is_web_address(url):
        yield Finding((*place, "url"), f"{quoted(url)} is not a web address", "write https://host/path")
    for key in ("env", "headers"):
        for name, value in table(server.get(key)).items():
            yield from _reference_rules(name, value, (*place, key, name))
    for key in ("module", "object"):
        module = server.get(key)
        if isinstance(module, str) and module:
            yield from _module_rules(module, (*place, key))


def _request_rules(server: dict[str, object], place: Place) -> Iterator[Finding]:
    answers, roots = server.get("answers"), server.get("roots")
    answered = answers if isinstance(answers, list) else []
    if "roots" in server and "roots" not in answered:
        yield Finding((*place, "roots"), "are not declared to the server", 'write answers = ["roots"]')
    if "roots" in answered and not roots:
        hint = 'write roots = ["."] for the suite\'s folder'
        yield Finding((*place, "answers"), '"roots" needs the folders that the server may use', hint)
    if answered and server.get("protocol") == "auto":
        message = "servers whose requests are answered speak the older protocol"
        yield Finding((*place, "protocol"), message, "remove it, or `answers`")
    for index, root in enumerate(roots if isinstance(roots, list) else []):
        at = (*place, "roots", index)
        yield from _no_control_characters(root, at, "\0\r\n")
        if isinstance(root, str) and _leads_out(root):
            hint = 'write a folder inside it, such as "data", or "." for itself'
            yield Finding(at, f"{quoted(root)} leads out of the suite's folder", hint)


def _leads_out(root: str) -> bool:
    """Return whether a path leads out of a folder, even without following links."""
    # The suite may come from another system, so Windows paths are checked on all systems.
    windows = PureWindowsPath(root)
    return PurePath(root).is_absolute() or bool(windows.anchor) or ".." in windows.parts or root.startswith("~")


def _auth_rules(server: dict[str, object], place: Place) -> Iterator[Finding]:
    yield from requires_key(server, dict.fromkeys(("client_id", "client_secret", "issuer", "scope"), "auth"), place)
    for key in ("client_id", "client_secret"):
        if key in server:
            yield from _reference_rules(key, server[key], (*place, key))
    if "auth" not in server:
        return
    secret = server.get("client_secret")
    if isinstance(secret, str) and secret and not environment_names(secret):
        message = "a suite holds no secret"
        yield Finding((*place, "client_secret"), message, "name the variable that holds it: ${NAME}")
    needed: tuple[str, ...] = ()
    if server["auth"] == "client_credentials":
        needed, why = ("client_id", "client_secret", "issuer"), '`auth = "client_credentials"`'
    elif "client_secret" in server:
        needed, why = ("client_id", "issuer"), "`client_secret`"
    for key in needed:
        if key not in server:
            hint = ""
            if key == "issuer":
                hint = "write the address of the authorization server, the only one that gets the secret"
            yield Finding(place, f"{why} needs `{key}`", hint)
    issuer = server.get("issuer")
    if isinstance(issuer, str) and issuer and not is_web_address(issuer):
        yield Finding((*place, "issuer"), f"{quoted(issuer)} is not a web address", "write https://host")
    scope = server.get("scope")
    if isinstance(scope, str) and scope and not _SCOPE.fullmatch(scope):
        yield Finding(
            (*place, "scope"), f"{quoted(scope)} is not a scope", "write words with single spaces: read write"
        )
    for name in table(server.get("headers")):
        if name.lower() == "authorization":
            message = "`auth` sends this header itself"
            yield Finding((*place, "headers", name), message, "remove the header, or `auth`")


def is_web_address(url: str) -> bool:
    """Return whether a text is an address that is reached over HTTP."""
    try:
        parts = urlsplit(url)
        # `port` raises ValueError for a number above 65535.
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and url.isprintable()
    except ValueError:
        return False


def _reference_rules(name: str, value: object, place: Place) -> Iterator[Finding]:
    if not name or any(character in name for character in "=:\0\r\n"):
        yield Finding(place, f"{quoted(name)} cannot be used as a name here")
    yield from _no_control_characters(value, place, "\0\r\n")
    if isinstance(value, str) and has_stray_dollar(value):
        yield Finding(
            place,
            "contains a `$` that does not start a variable name",
            "write $NAME or ${NAME}, and $$ for a dollar sign",
        )


def _no_control_characters(value: object, place: Place, message: str) -> Iterator[Finding]:
    if isinstance(value, str) and any(character in value for character in message):
        yield Finding(place, "contains a control character, which cannot be passed on")


def _module_rules(name: str, place: Place) -> Iterator[Finding]:
    if name.endswith(".py"):
        yield Finding(place, f"{quoted(name)} is a file name", f'write the module: "{name[:-3].replace("/", ".")}"')
    elif not is_module_name(name):
        yield Finding(place, f"{quoted(name)} is not a Python name", "write it as in an `import` statement")


_FLAT = "text, a number, true or false, or a list of texts"
"""The values that a field of a form may hold, in words."""


def reply_rules(answers: object, place: Place) -> Iterator[Finding]:
    """Check the `answers` of a suite or a case. They are replies to the requests that servers send."""
    for index, answer in tables(answers):
        at: Place = (*place, index)
        action, to = answer.get("action", "accept"), answer.get("to")
        if to == "sampling":
            yield from _sampling_rules(answer, at)
        elif to == "elicitation" and "text" in answer:
            yield Finding(
                (*at, "text"),
                "`text` answers a sampling request, not an elicitation",
                "fill the form with content = { … }",
            )
        if to == "elicitation" and action in ("decline", "cancel") and "content" in answer:
            message = f"`content` is sent with `accept` alone, and this answer is `{action}`"
            yield Finding((*at, "content"), message, "remove one of them")
        for name, value in table(answer.get("content")).items():
            if not _is_flat(value):
                message = f"a form has no such value: a field is {_FLAT}"
                yield Finding((*at, "content", name), message, 'a list of texts is written ["a", "b"]')
        if isinstance(check := answer.get("message"), dict):
            yield from check_rules(check, (*at, "message"))
            yield from given_rules(check, (*at, "message"))
            if check and not check_names_in(check):
                key = next(iter(check))
                message_of = f"{quoted(key)} is not a check, and a message is text"
                yield from unknown_text_check([key], (*at, "message", key), message_of)


def _sampling_rules(answer: dict[str, object], place: Place) -> Iterator[Finding]:
    action = answer.get("action", "accept")
    if "content" in answer:
        yield Finding(
            (*place, "content"), "`content` answers an elicitation, not a sampling request", 'write text = "…"'
        )
    if action == "cancel":
        yield Finding(
            (*place, "action"), "a sampling request can only be accepted or declined", 'write action = "decline"'
        )
    elif action == "decline" and "text" in answer:
        yield Finding((*place, "text"), "`text` is not sent when the sampling is declined", "remove one of them")
    elif action == "accept" and "text" not in answer:
        hint = 'write what the model says, text = "…", or action = "decline"'
        yield Finding(place, "an answer to a sampling needs `text`", hint)


def _is_flat(value: object) -> bool:
    if isinstance(value, list):
        return all(isinstance(each, str) for each in value)
    return isinstance(value, str | int | float)


def unrequested_answer_rules(raw: dict[str, object]) -> Iterator[Finding]:
    """Find answers to a kind of request that no server of the suite may send."""
    declared: set[object] = set()
    for owner in (raw, *(variant for _, variant in tables(raw.get("variants")))):
        for _, server in tables(owner.get("servers")):
            answers = server.get("answers")
            if isinstance(answers, list):
                declared.update(each for each in answers if isinstance(each, str))
    owners: list[tuple[dict[str, object], Place]] = [(raw, ())]
    owners += [(case, ("cases", number)) for number, case in tables(raw.get("cases"))]
    for owner, place in owners:
        for index, answer in tables(owner.get("answers")):
            to = answer.get("to")
            if to in ("elicitation", "sampling") and to not in declared:
                message = f"no server declares that {quoted(str(to))} is answered, so none asks for it"
                yield warning((*place, "answers", index, "to"), message, f'write answers = ["{to}"] at the server')
