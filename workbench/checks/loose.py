"""Values whose texts are compared without case, blanks and punctuation."""

from __future__ import annotations

from pydantic import JsonValue

from workbench.checks.canonical import canonical_text

_LEFT_OUT = str.maketrans({**dict.fromkeys(" ,./-_*^", ""), "'": '"'})


def loose(value: JsonValue) -> JsonValue:
    """The value with its texts in lower case and in NFC, without blanks and `, . / - _ * ^`, single quotes as double
    ones, as BFCL standardises texts. Names in objects stay. May raise RecursionError."""
    if isinstance(value, str):
        return canonical_text(value.translate(_LEFT_OUT).lower())
    if isinstance(value, list):
        return [loose(inner) for inner in value]
    if isinstance(value, dict):
        return {name: loose(inner) for name, inner in value.items()}
    return value
