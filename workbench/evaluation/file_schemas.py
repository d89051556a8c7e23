"""JSON Schemas of the files that users write, for their editors. The models that read the files define them.

The schemas allow no unknown keys. Schemas of TOML files are draft 7 because TOML editors support it best. `workbench
validate` also checks what a schema cannot express, such as rules between keys."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from workbench.checks.check import CHECK_CLASSES, CHECK_REFERENCE
from workbench.config.settings_file import settings_schema
from workbench.suite.model import Suite

FileKind = Literal["suite", "settings", "calls"]

_Json = dict[str, Any]

_CHECK = {"$ref": "#/definitions/Check"}


def file_schema(kind: FileKind) -> _Json:
    """Return the JSON Schema of suites, of `workbench.toml`, or of files of calls."""
    if kind == "calls":
        # This import is lazy, because only the grading of calls needs it.
        from workbench.evaluation.calls_file import CallsDocument

        made = CallsDocument.model_json_schema(by_alias=True)
        head = {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}
        return {**head, "title": "Calls that an agent made, for workbench grade --calls"}
    if kind == "settings":
        return _for_editors(settings_schema(), "Settings of Workbench: workbench.toml")
    models: tuple[type[BaseModel], ...] = (Suite, *CHECK_CLASSES.values())
    made = models_json_schema([(model, "validation") for model in models])[1]
    suite = made["$defs"].pop("Suite")
    made["$defs"] = dict(sorted({**made["$defs"], "Check": {}}.items()))
    schema = _for_editors({**suite, **made}, "A suite of Workbench, format 1")
    definitions = schema["definitions"]
    # An id may be omitted, because it is derived from the name. `plain` is not a key of suites: it records how a value
    # was written.
    definitions["Case"]["required"].remove("id")
    for name in ("Equals", "HasFields"):
        del definitions[name]["properties"]["plain"]
    parameters = definitions["Tool"]["properties"]["parameters"]
    # Parameters are a table or JSON text.
    definitions["Tool"]["properties"]["parameters"] = {"anyOf": [parameters, {"type": "string"}]}
    definitions["Check"] = _check_as_written()
    definitions["Case"]["properties"]["response"] = {
        "description": "What the final answer must be: text, one check, or checks by name",
        "anyOf": [_CHECK, {"type": "object", "additionalProperties": _CHECK}],
    }
    return schema


def _for_editors(schema: _Json, title: str) -> _Json:
    """Convert a schema that pydantic made to draft 7. Null is removed, because TOML has no null."""
    definitions = {}
    for name, each in schema.pop("$defs", {}).items():
        definitions[name] = _plain(each)
    # TOML can write only values that JSON has too, so every value is allowed.
    definitions["JsonValue"] = {}
    head = {"$schema": "http://json-schema.org/draft-07/schema#", "title": title}
    return {**head, **_plain(schema), "definitions": definitions}


def _plain(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_plain(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "anyOf" in schema:
        others = [each for each in schema["anyOf"] if each != {"type": "null"}]
        if len(others) == 1:
            rest = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
            return _plain({**others[0], **rest})
        schema = {**schema, "anyOf": others}
    result: _Json = {}
    for key, value in schema.items():
        if key == "properties":
            result[key] = {name: _plain(each) for name, each in value.items()}
        elif key == "prefixItems":
            result["items"], result["additionalItems"] = _plain(value), False
        elif key == "$ref":
            result[key] = value.replace("#/$defs/", "#/definitions/").replace(CHECK_REFERENCE, _CHECK["$ref"])
        elif key == "description":
            result[key] = " ".join(value.split())
        elif key == "default" and not isinstance(value, str | int | float | bool):
            continue
        elif key not in ("title", "discriminator", "ge"):
            result[key] = _plain(value)
    if "$ref" in result and len(result) > 1:
        # Draft 7 ignores every key beside a `$ref`.
        return {"allOf": [{"$ref": result.pop("$ref")}], **result}
    return result


def _check_as_written() -> _Json:
    """Return the schema of a check in a suite: a bare value, or a table with the key of one kind of check.

    A table without such a key is a value to compare with."""
    keys: list[_Json] = []
    checks: list[_Json] = []
    for name, check in CHECK_CLASSES.items():
        checks.append({"$ref": f"#/definitions/{check.__name__}"})
        if name != "type" and not check.is_newer:
            keys.append({"required": [name]})
    value = {"type": "object", "not": {"anyOf": keys}}
    bare = {"type": ["string", "number", "boolean", "array"]}
    return {
        "description": "A value to equal, or one check: " + ", ".join(CHECK_CLASSES),
        "anyOf": [bare, *checks, value],
    }
