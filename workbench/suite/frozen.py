"""The base of the models of a suite, and the types of their values."""

from __future__ import annotations

from typing import Annotated, Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, Strict

from workbench.dataclasses import kept_property

_Item = TypeVar("_Item")

# Strict validation would refuse the list that TOML gives for a tuple.
Items = Annotated[tuple[_Item, ...], Strict(False)]
"""A TOML array as a tuple."""

NonEmpty = Annotated[str, Field(min_length=1)]


class Frozen(BaseModel):
    """Base of all models of a suite: immutable, strictly typed, and without unknown keys."""

    # `defer_build` builds a validator only when a model is validated by itself. A whole suite needs only one validator.
    # The validators of all nested models would take 14% of the processor time of `workbench history`, which reads no
    # suite, and 5% of that of a short run.
    model_config = ConfigDict(
        defer_build=True, frozen=True, extra="forbid", strict=True, ignored_types=(kept_property,)
    )

    def __copy__(self) -> Self:
        copied = super().__copy__()
        # The copy may get other values, from which other kept properties follow.
        for name in self.__dict__.keys() - type(self).__pydantic_fields__.keys():
            copied.__dict__.pop(name, None)
        return copied


def values_of(model: BaseModel) -> dict[str, Any]:
    """Return the values of a model that are not `None`, with nested models as dictionaries.

    Unlike `model_dump`, it builds no serializer."""
    values = {}
    for name, value in model:
        if isinstance(value, BaseModel):
            values[name] = values_of(value)
        elif value is not None:
            values[name] = value
    return values
