"""Definitions of tools from Python functions: the name, the docstring, and a schema made from type hints."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any, cast, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError

from workbench.api.suites import UsageError
from workbench.trajectory.events import JsonValue

Table = dict[str, Any]

_SECTION = re.compile(r"^\s*(Args|Arguments|Parameters|Returns|Raises|Yields|Examples?|Notes?):\s*$|^\s*:param ", re.M)
_ARGUMENT = re.compile(r"^(\s+)(\w+)(?:\s*\([^)]*\))?:\s+(.*)$")


def tool_of_function(function: Callable[..., object]) -> Table:
    """Return the definition of the tool that a function implements, as the table of a suite file.

    The tool's description is the docstring without sections such as `Args:`. The section `Args:` describes the
    parameters, and so does `Annotated[str, "…"]`. The function is not called. Raises UsageError for a function without
    a name, and for parameters that no JSON Schema describes.

    >>> def search_docs(query: str, limit: int = 10) -> list[str]:
    ...     "Search the documents."
    >>> tool = tool_of_function(search_docs)
    >>> tool["name"], tool["description"], tool["parameters"]["required"]
    ('search_docs', 'Search the documents.', ['query'])
    >>> tool["parameters"]["properties"]
    {'query': {'type': 'string'}, 'limit': {'default': 10, 'type': 'integer'}}"""
    name = getattr(function, "__name__", "")
    if not name.isidentifier():
        raise UsageError(f"a tool needs a name: define {function!r} with def, or write the tool as a table")
    text = inspect.getdoc(function) or ""
    section = _SECTION.search(text)
    tool: Table = {"name": name}
    if description := text[: section.start() if section is not None else None].strip():
        tool["description"] = description
    described = dict(_described(text))
    try:
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
                raise TypeError(f"calls pass arguments by name, which {parameter} does not allow")
        for each, hint in get_type_hints(function, include_extras=True).items():
            if get_origin(hint) is Annotated:
                described.update((each, words) for words in get_args(hint)[1:] if isinstance(words, str))
        schema = _plain(TypeAdapter(cast("Any", function)).json_schema())
    except (PydanticUserError, NameError, TypeError, ValueError) as error:
        reason = str(error).partition(". ")[0]
        raise UsageError(f"the type hints of {name} cannot be turned into a schema: {reason}") from error
    properties = schema.get("properties", {})
    for each, words in described.items():
        if each in properties:
            properties[each] = {**properties[each], "description": words}
    tool["parameters"] = {key: schema[key] for key in (*_ORDER, *schema) if key in schema}
    return tool


_ORDER = ("type", "properties", "required", "additionalProperties", "$defs")
"""The keys of the schema of a function's arguments, in the usual order."""


def _described(docstring: str) -> Iterator[tuple[str, str]]:
    """Yield each parameter in the section `Args:` of a docstring with its description."""
    name, words, indent = "", "", ""
    for line in docstring.splitlines():
        match = _ARGUMENT.match(line)
        if match is not None and (not name or len(match[1]) <= len(indent)):
            if name:
                yield name, words
            indent, name, words = match[1], match[2], match[3].strip()
        elif name and line.startswith(indent + " "):
            words += f" {line.strip()}"
        elif name:
            yield name, words
            name = ""
    if name:
        yield name, words


def _plain(schema: JsonValue) -> Any:
    """Return a schema without the titles that pydantic adds and without defaults of null."""
    if isinstance(schema, list):
        return [*map(_plain, schema)]
    if not isinstance(schema, dict):
        return schema
    plain = {}
    for key, value in schema.items():
        # If `title` is a schema, it is the schema of a property with this name.
        if (key == "title" and isinstance(value, str)) or (key == "default" and value is None):
            continue
        if key in ("default", "const", "enum", "examples"):
            plain[key] = value
        else:
            plain[key] = _plain(value)
    return plain
