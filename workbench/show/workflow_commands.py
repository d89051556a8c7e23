"""Workflow commands of GitHub Actions: annotations, and the escaping of commands in other output.

A runner obeys `::command::` at the start of a line, after blanks. It also obeys the old form `##[command]` anywhere in
a line (`ActionCommand.cs` of actions/runner). A model's answer could contain either form."""

from __future__ import annotations

import re

from workbench.show.visible import one_line
from workbench.suite.files import is_outside

ANNOTATIONS_MAX = 9
"""Number of errors before one more error counts the others. GitHub shows only ten errors of a step."""

_OLD_COMMAND = re.compile(r"##(?=\[)")
_COMMAND = re.compile(r"(^|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])(\s*):(?=:)")


def inert(text: str) -> str:
    """Return a text with blanks inserted into workflow commands, so that a runner does not obey them."""
    if "::" in text:
        text = _COMMAND.sub(r"\1\2: ", text)
    if "##[" in text:
        text = _OLD_COMMAND.sub("## ", text)
    return text


def inert_json(text: str) -> str:
    """Escape workflow commands in a JSON text. Its values do not change."""
    # A line of JSON never begins with `::`, so only the old form `##[` matters. In JSON, it can occur only inside a
    # string, where `[` may be escaped.
    return text.replace("##[", "##\\u005b")


def command(level: str, message: str, *, title: str, file: str | None = None, line: int | None = None) -> str:
    """Return a line of output that GitHub Actions reads as an annotation.

    `level` is error, warning or notice. The annotation names no file if `line` is `None` or the file is outside the
    repository."""
    properties: dict[str, object] = {}
    if file is not None and line is not None and not is_outside(file):
        properties |= {"file": one_line(file), "line": line, "endLine": line}
    properties["title"] = title
    written = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
    return f"::{level} {written}::{_data(message)}\n"


def _data(text: str) -> str:
    # The percent sign comes first, because the replacements of the other characters contain it.
    return inert(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
