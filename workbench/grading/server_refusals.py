"""Recognises results by which a server refuses the arguments of a call, rather than reporting that its work failed."""

from __future__ import annotations

import re

from workbench.checks.describe import cut
from workbench.late_patterns import late_pattern
from workbench.trajectory.trajectory import CallRecord

INVALID_PARAMS = -32602
"""The code of JSON-RPC for invalid parameters."""

# MCP has no field for it: its SDKs report invalid arguments as a tool error whose text begins in one of these ways.
_REFUSALS = late_pattern(
    r"""
      (?: MCP\ error\ -32602 .* )? Input\ validation\ error     # the SDKs for Python (jsonschema) and TypeScript (zod)
    | MCP\ error\ -32602
    | Invalid\ arguments\ for\ tool                             # earlier versions of the TypeScript SDK
    | (?: Error\ (?: executing | calling )\ tool\ [^\n]{1,200}:\ )?
      \d+\ validation\ errors?\ for\ .                          # pydantic, in FastMCP
    | (?: invalid\ params:\ )? validating\ "arguments"          # the SDK for Go
    """,
    re.VERBOSE | re.IGNORECASE,
)

_NO_SUCH_TOOL = late_pattern(r"\bunknown tool\b|\btool\b.{0,200}\bnot found\b", re.IGNORECASE)


def refusal_of(record: CallRecord) -> str | None:
    """Return the message of a server that refused the arguments of a call, in one line; `None` if none did.

    Only the answers of real servers, and of tools elsewhere, tell something about the arguments: a mock answers as its
    suite says.
    """
    result = record.unedited or record.result
    if result is None or not result.is_error or result.source not in ("server", "reported"):
        return None
    refused = result.code == INVALID_PARAMS or _REFUSALS.match(result.content) is not None
    # The same code says that a server has no such tool.
    return cut(result.content) if refused and not _NO_SUCH_TOOL.search(result.content) else None
