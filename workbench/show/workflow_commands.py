"""The commands that a runner of GitHub Actions takes from the output of a job, and texts that hold none.

A runner takes `::command::` for a command at the start of a line, blanks before it left aside, and `##[command]`
anywhere in one.
"""

from __future__ import annotations

import re

from workbench.show.visible import one_line
from workbench.suite.files import is_outside

ANNOTATIONS_MAX = 9
"""GitHub shows ten errors of a step and none of the others, without a word; the tenth says how many there are."""

_OLD_COMMAND = re.compile(r"##(?=\[)")
_COMMAND = re.compile(r"(^|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])(\s*):(?=:)")


def inert(text: str) -> str:
    """Return a text that begins at the start of a line, with a blank in all that a runner takes for a command."""
    if "::" in text:
        text = _COMMAND.sub(r"\1\2: ", text)
    return _OLD_COMMAND.sub("## ", text) if "##[" in text else text


def inert_json(text: str) -> str:
    """Return a JSON text of the same values that holds nothing that a runner takes for a command."""
    return text.replace("##[", "##\\u005b")


def command(level: str, message: str, *, title: str, file: str | None = None, line: int | None = None) -> str:
    """Return an annotation as a line.

    `level` is error, warning or notice. Without a `line`, or for a file outside of the repository, it belongs to no
    file.
    """
    is_placed = file is not None and line is not None and not is_outside(file)
    place = {"file": one_line(file or ""), "line": line, "endLine": line} if is_placed else {}
    properties = {**place, "title": title}
    written = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
    return f"::{level} {written}::{_data(message)}\n"


def _data(text: str) -> str:
    return inert(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
