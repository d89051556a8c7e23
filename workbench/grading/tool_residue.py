"""Names of tools with pieces of a chat template in them, which an endpoint's parser should have removed."""

from __future__ import annotations

import re
from collections.abc import Iterable

_WORDS = (
    r"functions?|tools?|tool_calls?|function_calls?|default_api|assistant|analysis|commentary|final|json|to|recipient"
    r"|namespace|call|name|code|constrain|message|channel"
)
_BEFORE = re.compile(rf"""(?:<[^<>]*>|[\s.:=/<"'`,\[\](){{}}|]|{_WORDS})*""")
_AFTER = re.compile(rf"""(?:<[|｜/].*|[\s.:=/"'`,\[\](){{}}|>]|:\d+|{_WORDS})*""", re.DOTALL)


def meant_tool(written: str, names: Iterable[str]) -> str | None:
    """Return the tool that is meant by a name with a template's residue around it; `None` for any other name."""
    for name in sorted(names, key=len, reverse=True):
        place = written.find(name) if name else -1
        if place < 0 or name == written:
            continue
        before, after = written[:place], written[place + len(name) :]
        touches = (before and _of_name(before[-1])) or (after and _of_name(after[0]))
        if not touches and _BEFORE.fullmatch(before) and _AFTER.fullmatch(after):
            return name
    return None


def _of_name(character: str) -> bool:
    return character.isalnum() or character in "_-"
