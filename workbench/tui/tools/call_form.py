"""The form of a call by hand: text for each parameter, validated against the tool's schema on every change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from workbench.analysis.schemas import Parameter, parameters_of
from workbench.authoring.form.json_types import allowed_values, type_words, types_of, with_definitions
from workbench.authoring.form.typed import CellError, read_value, shown_value
from workbench.tools.argument_check import BrokenSchemaError, argument_problems
from workbench.trajectory.messages import JsonValue, ToolDefinition

NULL = "null"


class CallForm:
    """The parameters of a tool and their texts. A parameter without text is not given."""

    def __init__(self, tool: ToolDefinition) -> None:
        self.tool = tool
        fields = [field for field in parameters_of(tool.parameters) if field.depth == 0 and not field.item]
        self.fields: tuple[Parameter, ...] = tuple(sorted(fields, key=lambda field: not field.required))
        """The parameters, required ones first."""
        self._schemas = {field.name: with_definitions(field.schema, tool.parameters) for field in self.fields}
        self._texts: dict[str, str] = {}
        for field in self.fields:
            if field.required and "default" in field.schema:
                self._texts[field.name] = shown_value(field.schema["default"], self._schemas[field.name])
        self._read()

    def text(self, name: str) -> str:
        """Return the text of a parameter, empty if it is not given."""
        return self._texts.get(name, "")

    def type_of(self, name: str) -> str:
        """Describe the type of a parameter in a few words."""
        return type_words(self._schemas[name])

    def choices(self, name: str) -> tuple[str, ...]:
        """Return the values that the schema lists as texts, empty if it lists none."""
        schema = self._schemas[name]
        values = allowed_values(schema)
        if values is None and types_of(schema) - {"null"} == {"boolean"}:
            values = (True, False)
        return tuple(shown_value(value, schema) for value in values or ())

    def set(self, name: str, text: str) -> None:
        """Set the text of a parameter. Empty text (but not `""`) removes the argument."""
        if text.strip():
            self._texts[name] = text
        else:
            self._texts.pop(name, None)
        self._read()

    def choose_next(self, name: str, step: int) -> None:
        """Select the next choice; after the last one comes none."""
        choices = ("", *self.choices(name))
        at = choices.index(self.text(name)) if self.text(name) in choices else 0
        self.set(name, choices[(at + step) % len(choices)])

    def _read(self) -> None:
        self.arguments: dict[str, JsonValue] = {}
        """The arguments that would be sent: all valid ones."""
        self.problems: dict[str, str] = {}
        """The problems by parameter. The empty name has those of all arguments together."""
        for name, text in self._texts.items():
            try:
                self.arguments[name] = self._value(name, text)
            except CellError as error:
                self.problems[name] = str(error)
        for field in self.fields:
            if field.required and field.name not in self._texts:
                self.problems[field.name] = "must be given"
        try:
            found = argument_problems(self.arguments, self.tool.parameters)
        except BrokenSchemaError as error:
            self.unchecked: str | None = f"not checked: the tool's schema is broken: {error}"
            """Why the arguments could not be checked."""
            return
        self.unchecked = None
        for problem in found:
            place, _, said = problem.partition(": ")
            name = self._field_at(place)
            if name or not self.problems:
                self.problems.setdefault(name, said if name else problem)

    def _value(self, name: str, text: str) -> JsonValue:
        schema = self._schemas[name]
        if text.strip() == NULL and "null" in types_of(schema) and NULL not in self.choices(name):
            return None
        return cast(JsonValue, read_value(text, schema))

    def _field_at(self, place: str) -> str:
        """Return the parameter that contains a place such as `args.to[0]`, the longest match. Empty if the place is
        about all arguments."""
        inside = place.removeprefix("args.")
        names = [field.name for field in self.fields if inside == field.name or _is_inside(inside, field.name)]
        return max(names, key=len, default="") if place != "args" else ""


def _is_inside(place: str, name: str) -> bool:
    return place.startswith((f"{name}.", f"{name}["))


def is_read_only(annotations: Mapping[str, JsonValue]) -> bool:
    """Return whether a server declares a tool as read-only."""
    return annotations.get("readOnlyHint") is True
