"""Recognises results by which a server refuses the arguments of a call, rather than reporting that its work failed."""

from __future__ import annotations

import re

from workbench.checks.values import cut
from workbench.trajectory.trajectory import CallRecord

INVALID_PARAMS = -32602
"""The code of JSON-RPC for invalid parameters."""

# MCP has no field for it: its SDKs report invalid arguments as a tool error whose text begins in one of these ways.
_REFUSALS = re.compile(
    r"""
      (?: MCP\ error\ -32602 .* )? Input\ validation\ error     # the SDKs for Python (jsonschema) and TypeScript (zod)
    | MCP\ error\ -32602
    | Invalid\ arguments\ for\ tool                             # earlier versions of the TypeScript SDK
    | (?: Error\ (?: executing | calling )\ tool\ [^\n]{1,200}:\ )?
      \d+\ validation\ errors?\ for\ (?: call\[ | \S+Arguments\b )  # pydantic, in FastMCP and the SDK for Python
    | (?: invalid\ params:\ )? validating\ "arguments"          # the SDK for Go
    """,
    re.VERBOSE | re.IGNORECASE,
)

# The same code and the same beginnings report other faults: no such tool, one that is switched off, a result of a form
# that the tool does not declare.
_NOT_OF_ARGUMENTS = re.compile(
    r"\bunknown tool\b|\btool\b.{0,200}\b(?:not found|disabled)\b|^(?:MCP error -32602: *)?Output validation error",
    re.IGNORECASE,
)


def refusal_of(record: CallRecord) -> str | None:
    """Return the message of a server that refused the arguments of a call, in one line; `None` if none did.

    Only the answers of real servers, and of tools elsewhere, tell something about the arguments: a mock answers as its
    suite says.
    """
    result = record.unedited or record.result
    if result is None or not result.is_error or result.source not in ("server", "reported"):
        return None
    refused = result.code == INVALID_PARAMS or _REFUSALS.match(result.content) is not None
    # What follows the first line are values, which may hold any words.
    first = result.content.partition("\n")[0]
    return cut(result.content) if refused and not _NOT_OF_ARGUMENTS.search(first) else None
